//! Random valid programs, for tests that compare interpreters and devices.
//!
//! The same seed gives the same program, launch and buffers everywhere. What is generated has no
//! races and no faults, ends, and passes the check. Floats are never used for predicates, addresses
//! or conversions to integers, and stay within [−1, 1], so that integers are bit-exact on every
//! device and floats within [`Generated::tolerance`].

mod body;
mod float;
mod random;

use super::{
    Address, BinaryOp, BufferAccess, BufferIndex, Checked, Instruction, LaunchConfig, Program,
    ProgramBuilder, Register, Type, UnaryOp,
};
use body::Body;
pub use random::Random;

/// A program with a launch and buffers for it.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The program.
    pub program: Checked,
    /// The launch.
    pub launch: LaunchConfig,
    /// The bytes of each declared buffer.
    pub buffers: Vec<Vec<u8>>,
}

impl Generated {
    /// Upper bound of the steps of any run of a generated program.
    pub const MAX_STEPS: u64 = 50_000_000;

    /// What a float of a type may differ by between two devices: each of some hundred operations
    /// adds a few units of the last place of 1, and none amplifies earlier errors. A value
    /// converted from a narrower type has the error of that type.
    pub fn tolerance(&self, ty: Type) -> f64 {
        let coarsest =
            self.program.program().instructions().iter().filter_map(
                |instruction| match *instruction {
                    Instruction::Convert { to, from, .. } if to.is_float() && from.is_float() => {
                        Some(units(from))
                    }
                    _ => None,
                },
            );
        coarsest.fold(units(ty), f64::max)
    }

    /// Whether the program has functions, which devices do not compute to the same bits.
    pub fn has_functions(&self) -> bool {
        let is_function = |instruction: &Instruction| matches!(instruction, Instruction::Unary { op, .. } if !matches!(op, UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Not | UnaryOp::Relu));
        self.program
            .program()
            .instructions()
            .iter()
            .any(is_function)
    }
}

/// Maximum sum of hundreds of roundings.
fn units(ty: Type) -> f64 {
    match ty {
        Type::F16 => 512.0 * f64::powi(2.0, -11),
        Type::Bf16 => 512.0 * f64::powi(2.0, -8),
        Type::F32 => 4096.0 * f64::powi(2.0, -24),
        _ => 4096.0 * f64::powi(2.0, -53),
    }
}

/// Values that a lane writes out for each type.
const SLOTS: u64 = 4;
/// Bytes of shared memory: a slot of 8 bytes for each lane of the largest block.
const SHARED_BYTES: u32 = 64 * 8;

/// Makes a program of the features that the seed picks: straight-line code, divergence, loops,
/// irreducible flow, calls, shared memory with barriers, pools, handles, the boundary, classes and
/// phases, of up to four types.
///
/// # Panics
/// If a generated program is refused, which is a bug of the generator.
pub fn generate(seed: u64) -> Generated {
    let mut random = Random::new(seed);
    let block = 1 << random.below(7);
    let blocks = 1 + random.below(4) as u32;
    let launch = LaunchConfig {
        grid: [blocks, 1, 1],
        block: [block, 1, 1],
        ..LaunchConfig::default()
    };
    let lanes = launch.lanes();
    let elements = lanes - random.below(u64::from(block));
    let mut types = random.types();
    types.extend([Type::U32, Type::U64]);
    types.sort_unstable();
    types.dedup();

    let mut builder = ProgramBuilder::new(format!("random_{seed}"));
    builder.shared(SHARED_BYTES).pool(128);
    let mut buffers = Vec::new();
    let inputs: Vec<(Type, BufferIndex)> = types
        .iter()
        .map(|ty| (*ty, input(&mut builder, *ty)))
        .collect();
    buffers.extend(types.iter().map(|ty| random.values(*ty, elements)));
    let outputs: Vec<(Type, BufferIndex)> = types
        .iter()
        .map(|ty| {
            (
                *ty,
                builder.buffer(format!("out_{ty}"), *ty, BufferAccess::ReadWrite),
            )
        })
        .collect();
    buffers.extend(
        types
            .iter()
            .map(|ty| vec![0; (lanes * SLOTS * ty.bytes()) as usize]),
    );

    let mut body = Body::new(builder, random, &inputs, block);
    body.start(elements);
    body.statements();
    store_all(&mut body, &outputs);
    let program = body.finish();
    let program = program.check().unwrap_or_else(|error| {
        panic!("invariant: generated programs pass the check (seed {seed}): {error}\n{program}")
    });
    Generated {
        program,
        launch,
        buffers,
    }
}

/// Changes a valid program's text into one that is most likely not valid.
pub fn mutate(program: &Program, seed: u64) -> String {
    Random::new(seed).mutation(&program.to_string())
}

fn input(builder: &mut ProgramBuilder, ty: Type) -> BufferIndex {
    builder.buffer(format!("in_{ty}"), ty, BufferAccess::Read)
}

/// Writes some values of each type to the lane's own slots.
fn store_all(body: &mut Body, outputs: &[(Type, BufferIndex)]) {
    for &(ty, buffer) in outputs {
        let offset = body.fresh(Type::U64);
        let row = body.constant(Type::U64, SLOTS * ty.bytes());
        body.builder
            .binary(BinaryOp::Mul, Type::U64, offset, Register::GLOBAL_LANE, row);
        let step = body.constant(Type::U64, ty.bytes());
        for _ in 0..SLOTS {
            let value = body.any(ty);
            body.builder
                .store(ty, Address::Indexed { buffer, offset }, value);
            body.builder
                .binary(BinaryOp::Add, Type::U64, offset, offset, step);
        }
    }
}
