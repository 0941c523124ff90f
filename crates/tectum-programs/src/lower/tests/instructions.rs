//! Every instruction that computes, of every type, on GPUs compared with the reference's
//! arithmetic.

use super::devices::{devices, run_on};
use super::{Bounds, LaunchConfig};
use crate::{
    Address, BinaryOp, BufferAccess, BufferIndex, Condition, Instruction, Predicate,
    ProgramBuilder, Register, TernaryOp, Type, UnaryOp, scalar,
};

/// A result of the reference: its bits, and the magnitudes that a rounding may be relative to.
struct Expected {
    name: String,
    ty: Type,
    bits: u64,
    scale: f64,
}

/// Bytes between results.
const SLOT: u64 = 8;
const A: Register = Register(0);
const B: Register = Register(1);
const N: Register = Register(2);
const C: Register = Register(3);
const RESULT: Register = Register(4);

/// Values at the limits and in the middle of a type.
fn samples(ty: Type) -> Vec<u64> {
    if ty.is_integer() {
        let top = 1u64 << (ty.bits() - 1);
        return [
            0,
            1,
            2,
            7,
            100,
            top - 1,
            top,
            top + 1,
            ty.mask(),
            ty.mask() - 5,
            0x1234_5678_9abc_def1 & ty.mask(),
        ]
        .to_vec();
    }
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        3.25,
        0.3,
        -0.007,
        20.5,
        700.0,
        -3000.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-3,
    ];
    numbers
        .iter()
        .map(|value| scalar::convert(ty, Type::F64, value.to_bits()))
        .collect()
}

fn number(ty: Type, bits: u64) -> f64 {
    f64::from_bits(scalar::convert(Type::F64, ty, bits))
}

/// The instructions for a type that device code supports; each leaves its result in [`RESULT`], or
/// a predicate.
fn instructions(ty: Type) -> Vec<(Instruction, Type)> {
    let dst = RESULT;
    let mut all = vec![(Instruction::Move { ty, dst, src: A }, ty)];
    all.extend(UnaryOp::ALL.iter().filter(|op| op.takes(ty)).map(|op| {
        (
            Instruction::Unary {
                op: *op,
                ty,
                dst,
                src: A,
            },
            ty,
        )
    }));
    for op in BinaryOp::ALL.iter().filter(|op| op.takes(ty)) {
        all.push((
            Instruction::Binary {
                op: *op,
                ty,
                dst,
                a: A,
                b: if op.is_shift() { N } else { B },
            },
            ty,
        ));
    }
    all.extend(TernaryOp::ALL.iter().filter(|op| op.takes(ty)).map(|op| {
        (
            Instruction::Ternary {
                op: *op,
                ty,
                dst,
                a: A,
                b: B,
                c: C,
            },
            ty,
        )
    }));
    for condition in Condition::ALL
        .iter()
        .filter(|condition| condition.takes(ty))
    {
        all.push((
            Instruction::Compare {
                condition: *condition,
                ty,
                dst: Predicate(0),
                a: A,
                b: B,
            },
            ty,
        ));
    }
    all.extend(Type::ALL.map(|to| {
        (
            Instruction::Convert {
                to,
                from: ty,
                dst,
                src: A,
            },
            to,
        )
    }));
    // Device code has no arithmetic of f64.
    all.retain(|(instruction, _)| match instruction {
        Instruction::Unary {
            op, ty: Type::F64, ..
        } => matches!(op, UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu),
        Instruction::Binary {
            op, ty: Type::F64, ..
        } => matches!(op, BinaryOp::Min | BinaryOp::Max),
        Instruction::Ternary { ty: Type::F64, .. } => false,
        _ => true,
    });
    all
}

/// The reference's result of an instruction; `None` if it faults.
fn expected(instruction: Instruction, [a, b, n, c]: [u64; 4]) -> Option<Expected> {
    let exact = |name: String, ty, bits| {
        Some(Expected {
            name,
            ty,
            bits,
            scale: 0.0,
        })
    };
    let rounded = |name: String, ty: Type, bits: u64, scale: f64| {
        Some(Expected {
            name,
            ty,
            bits,
            scale: if ty.is_float() { scale } else { 0.0 },
        })
    };
    match instruction {
        Instruction::Move { ty, .. } => exact("mov".to_owned(), ty, a),
        Instruction::Unary { op, ty, .. } => {
            let bits = scalar::unary(op, ty, a);
            rounded(
                op.name().to_owned(),
                ty,
                bits,
                if matches!(op, UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu) {
                    0.0
                } else {
                    number(ty, bits).abs()
                },
            )
        }
        Instruction::Binary { op, ty, .. } => {
            let bits = scalar::binary(op, ty, a, if op.is_shift() { n } else { b })?;
            let scale = if matches!(op, BinaryOp::Min | BinaryOp::Max) {
                0.0
            } else {
                number(ty, bits).abs()
            };
            rounded(op.name().to_owned(), ty, bits, scale)
        }
        Instruction::Ternary { op, ty, .. } => {
            let product = number(ty, a) * number(ty, b);
            rounded(
                op.name().to_owned(),
                ty,
                scalar::ternary(op, ty, a, b, c),
                product.abs().max(number(ty, c).abs()),
            )
        }
        Instruction::Compare { condition, ty, .. } => exact(
            format!("set.{condition}"),
            Type::U32,
            u64::from(scalar::compare(condition, ty, a, b)),
        ),
        Instruction::Convert { to, from, .. } => {
            exact(format!("cvt.{to}.{from}"), to, scalar::convert(to, from, a))
        }
        _ => None,
    }
}

/// Whether a device's result is acceptable.
fn agrees(expected: &Expected, bits: u64) -> bool {
    let (ours, theirs) = (
        number(expected.ty, bits),
        number(expected.ty, expected.bits),
    );
    if bits == expected.bits {
        return true;
    } else if !expected.ty.is_float() {
        return false;
    }
    let ulp = match expected.ty {
        Type::F16 => 2f64.powi(-10),
        Type::Bf16 => 2f64.powi(-7),
        Type::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    };
    // Half-width results may differ by one unit in their last place if the f32 before them differs
    // by a few of its own.
    let places = if expected.ty == Type::F32 { 8.0 } else { 1.0 };
    // Below the smallest normal f32 everything may be 0.
    (ours.is_nan() && theirs.is_nan())
        || (ours - theirs).abs()
            <= places * ulp * expected.scale
                + if expected.scale > 0.0 {
                    2f64.powi(-126)
                } else {
                    0.0
                }
}

fn compare_type(ty: Type) {
    let mut builder = ProgramBuilder::new(format!("every_{ty}"));
    let inputs = ["a", "b", "c"].map(|name| builder.buffer(name, ty, BufferAccess::Read));
    let amounts = builder.buffer("n", Type::U32, BufferAccess::Read);
    let out = builder.buffer("out", Type::U8, BufferAccess::ReadWrite);
    for (register, buffer) in [A, B, C].into_iter().zip(inputs) {
        builder.load(ty, register, Address::Own { buffer });
    }
    builder.load(Type::U32, N, Address::Own { buffer: amounts });
    let instructions = instructions(ty);
    store_results(&mut builder, &instructions, out);
    let program = builder
        .finish()
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{error}"));

    // Every sample is combined with every other.
    let samples = samples(ty);
    let lanes: Vec<[u64; 4]> = (0..samples.len() * samples.len())
        .map(|lane| {
            [
                samples[lane / samples.len()],
                samples[lane % samples.len()],
                lane as u64 * 7 % 70,
                samples[lane * 5 % samples.len()],
            ]
        })
        .collect();
    let bytes = |place: usize, ty: Type| {
        lanes
            .iter()
            .flat_map(|lane| lane[place].to_le_bytes()[..ty.bytes() as usize].to_vec())
            .collect::<Vec<u8>>()
    };
    let buffers = [
        bytes(0, ty),
        bytes(1, ty),
        bytes(3, ty),
        bytes(2, Type::U32),
        vec![0; lanes.len() * instructions.len() * SLOT as usize],
    ];
    let launch = LaunchConfig::linear(lanes.len() as u32, 16);
    for device in devices("instructions") {
        let (after, _) = run_on(&device, &program, &launch, &buffers, Bounds::Forced)
            .unwrap_or_else(|error| panic!("{error}"));
        let compared = compare_results(
            &instructions,
            &lanes,
            &after[4],
            &format!("{} on {}", ty, device.info().id),
        );
        println!(
            "{ty} on {}: {compared} results of {} instructions",
            device.info().id,
            instructions.len()
        );
    }
}

/// Compares the lanes' results with the reference; returns how many were compared.
fn compare_results(
    instructions: &[(Instruction, Type)],
    lanes: &[[u64; 4]],
    out: &[u8],
    what: &str,
) -> usize {
    let mut compared = 0;
    for (lane, values) in lanes.iter().enumerate() {
        for (place, (instruction, _)) in instructions.iter().enumerate() {
            let Some(expected) = expected(*instruction, *values) else {
                continue;
            };
            let at = (lane * instructions.len() + place) * SLOT as usize;
            let width = expected.ty.bytes() as usize;
            let bits = out[at..at + width]
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            assert!(
                agrees(&expected, bits),
                "{} of {what}, {values:x?}: {bits:#x}, the reference has {:#x}",
                expected.name,
                expected.bits
            );
            compared += 1;
        }
    }
    compared
}

/// Each instruction and a store of its result to the lane's next slot.
fn store_results(
    builder: &mut ProgramBuilder,
    instructions: &[(Instruction, Type)],
    out: BufferIndex,
) {
    let [offset, row, step, yes, no] = [5, 6, 7, 8, 9].map(Register);
    builder.immediate(Type::U64, row, instructions.len() as u64 * SLOT);
    builder.immediate(Type::U64, step, SLOT);
    builder.immediate(Type::U32, yes, 1);
    builder.immediate(Type::U32, no, 0);
    builder.binary(BinaryOp::Mul, Type::U64, offset, Register::GLOBAL_LANE, row);
    for (instruction, ty) in instructions {
        builder.push(*instruction);
        let mut ty = *ty;
        if let Instruction::Compare { .. } = instruction {
            builder.push(Instruction::Select {
                ty: Type::U32,
                dst: RESULT,
                predicate: Predicate(0),
                on_true: yes,
                on_false: no,
            });
            ty = Type::U32;
        }
        builder.store(
            ty,
            Address::Indexed {
                buffer: out,
                offset,
            },
            RESULT,
        );
        builder.binary(BinaryOp::Add, Type::U64, offset, offset, step);
    }
}

#[test]
fn integers_agree() {
    [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
    ]
    .into_iter()
    .for_each(compare_type);
}

#[test]
fn floats_agree() {
    [Type::F16, Type::Bf16, Type::F32, Type::F64]
        .into_iter()
        .for_each(compare_type);
}
