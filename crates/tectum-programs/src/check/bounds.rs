//! Which accesses are proven to be in bounds, given a launch and the sizes of the buffers.
//!
//! Registers are tracked as [`Range`]s through the blocks of the program's own body; after a call,
//! and inside functions, they are unknown. A block that loops on itself by `loop` is analysed as a
//! whole: a register that it increments is between its first value and count steps later. Other
//! loops widen the registers they change to unknown.

use tectum::Result;

use super::flow::{Block, Flow};
use super::postdominators::Postdominators;
use super::range::{self, Range};
use super::{CheckError, Checked};
use crate::diagnostic::{Diagnostic, SourceMap};
use crate::{
    Address, BOUNDARY_BYTES, BinaryOp, BufferIndex, Instruction, LaunchConfig, Program, Register,
    SharedAddress, Type, Write,
};

/// A checked program with a launch and sizes of buffers that fit it, and the proofs for its
/// accesses. Only [`Checked::bound`] makes one.
#[derive(Debug, Clone)]
pub struct Bounded {
    checked: Checked,
    launch: LaunchConfig,
    sizes: Vec<u64>,
    elements: Option<u64>,
    proven: Vec<bool>,
}

impl Checked {
    /// Decides for each access whether it is in bounds.
    ///
    /// # Errors
    /// What [`Checked::elements`] refuses; an access that every lane reaches and that is out of
    /// bounds for every lane.
    pub fn bound(&self, launch: &LaunchConfig, sizes: &[u64]) -> Result<Bounded> {
        let elements = self.elements(launch, sizes)?;
        let program = self.program();
        let mut bounds = Bounds {
            program,
            launch,
            sizes,
            proven: vec![None; program.instructions().len()],
            outside: Vec::new(),
        };
        if launch.lanes() > 0 && program.instructions().iter().any(may_fault) {
            bounds.program();
        }
        if !bounds.outside.is_empty() {
            let places = SourceMap::of(program);
            let found: Vec<Diagnostic> = bounds
                .outside
                .into_iter()
                .map(|mistake| places.diagnostic(mistake.instruction, mistake.message))
                .collect();
            return Err(Diagnostic::error(program.name(), &found));
        }
        let may_fault = |instruction: &Instruction| launch.lanes() > 0 && may_fault(instruction);
        let proven = bounds
            .proven
            .iter()
            .zip(program.instructions())
            .map(|(proven, instruction)| proven.unwrap_or(!may_fault(instruction)))
            .collect();
        Ok(Bounded {
            checked: self.clone(),
            launch: *launch,
            sizes: sizes.to_vec(),
            elements,
            proven,
        })
    }
}

impl Bounded {
    /// The program.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The launch.
    pub fn launch(&self) -> &LaunchConfig {
        &self.launch
    }

    /// Bytes of each buffer.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The count of elements of the buffers accessed as `[b]`.
    pub fn elements(&self) -> Option<u64> {
        self.elements
    }

    /// Whether an instruction is proven to have no fault.
    pub fn is_proven(&self, instruction: usize) -> bool {
        self.proven.get(instruction).copied().unwrap_or(true)
    }

    /// Whether every instruction is proven to have no fault: the program may run unchecked.
    pub fn is_unchecked(&self) -> bool {
        self.proven.iter().all(|proven| *proven)
    }
}

/// Whether an instruction has a fault for some operands.
fn may_fault(instruction: &Instruction) -> bool {
    use Instruction as I;
    match instruction {
        I::LoadGlobal { address, .. } | I::StoreGlobal { address, .. } => {
            !matches!(address, Address::Own { .. })
        }
        I::Binary {
            op: BinaryOp::Div,
            ty,
            ..
        } => ty.is_integer(),
        I::LoadShared { .. }
        | I::StoreShared { .. }
        | I::PoolAllocate { .. }
        | I::PoolLoad { .. }
        | I::PoolStore { .. } => true,
        _ => false,
    }
}

/// The range of each register; `None` if unknown.
type State = [Option<Range>; 256];

struct Bounds<'a> {
    program: &'a Program,
    launch: &'a LaunchConfig,
    sizes: &'a [u64],
    /// The result for each instruction; `None` if unknown.
    proven: Vec<Option<bool>>,
    outside: Vec<CheckError>,
}

impl Bounds<'_> {
    fn program(&mut self) {
        // The flow of a checked program is valid.
        let Ok(flow) = Flow::of(self.program) else {
            return;
        };
        let main = &flow.functions[0];
        let mut states = self.solve(&main.blocks);
        let postdominators = Postdominators::of(main);
        let mut always = vec![false; main.blocks.len()];
        let mut block = Some(0);
        while let Some(index) = block.filter(|index| !std::mem::replace(&mut always[*index], true))
        {
            block = postdominators.nearest(index);
        }
        for (index, block) in main.blocks.iter().enumerate() {
            let Some(mut state) = states[index].take() else {
                continue;
            };
            for (place, instruction) in block.code(self.program) {
                self.decide(&state, place, instruction, always[index]);
                self.step(&mut state, instruction);
            }
        }
        // Blocks that functions share with the body are entered with unknown registers.
        for block in flow.functions[1..]
            .iter()
            .flat_map(|function| &function.blocks)
        {
            for (place, _) in block
                .code(self.program)
                .filter(|(_, instruction)| may_fault(instruction))
            {
                self.proven[place] = Some(false);
            }
        }
    }

    /// The registers before each block, a block that loops on itself already analysed as a whole.
    fn solve(&self, blocks: &[Block]) -> Vec<Option<Box<State>>> {
        const MAX_VISITS: u32 = 3;
        let mut states: Vec<Option<Box<State>>> = vec![None; blocks.len()];
        let (mut entries, mut visits) = (vec![None; blocks.len()], vec![0; blocks.len()]);
        entries[0] = Some(Box::new(self.entry()));
        let mut open = vec![0];
        while let Some(index) = open.pop() {
            let Some(mut state) = entries[index].as_deref().copied().map(Box::new) else {
                continue;
            };
            self.accelerate(&mut state, index, &blocks[index]);
            states[index] = Some(Box::new(*state));
            for (_, instruction) in blocks[index].code(self.program) {
                self.step(&mut state, instruction);
            }
            let is_own = self.is_own_loop(index, &blocks[index]);
            for &next in blocks[index]
                .next
                .iter()
                .filter(|next| !(is_own && **next == index))
            {
                if merge(&mut entries[next], &state, visits[next] >= MAX_VISITS) {
                    visits[next] += 1;
                    if !open.contains(&next) {
                        open.push(next);
                    }
                }
            }
        }
        states
    }

    fn entry(&self) -> State {
        let mut state = [None; 256];
        let [block, grid] = [self.launch.block[0], self.launch.grid[0]].map(u64::from);
        let mut set = |register: Register, range| state[usize::from(register.0)] = Some(range);
        set(Register::LANE, Range::between(0, block - 1));
        set(Register::BLOCK, Range::between(0, grid - 1));
        set(Register::BLOCK_SIZE, Range::constant(block));
        set(
            Register::GLOBAL_LANE,
            Range::between(0, self.launch.lanes() - 1),
        );
        state
    }

    /// Whether a block ends in a `loop` to its own start.
    fn is_own_loop(&self, index: usize, block: &Block) -> bool {
        let last = self.program.instructions()[block.first..block.end].last();
        matches!(last, Some(Instruction::Loop { body, .. }) if body.index() == block.first)
            && block.next.contains(&index)
    }

    /// The registers before any iteration of a block that loops on itself, from those before the
    /// first.
    fn accelerate(&self, state: &mut State, index: usize, block: &Block) {
        if !self.is_own_loop(index, block) {
            return;
        }
        let Some(Instruction::Loop { count, .. }) =
            self.program.instructions()[block.first..block.end].last()
        else {
            return;
        };
        let first = *state;
        let mut writes = [0u32; 256];
        let mut steps = [None; 256];
        for (_, instruction) in block.code(self.program) {
            if let Some(Write::Register(register, _)) = instruction.write() {
                writes[usize::from(register.0)] += 1;
                steps[usize::from(register.0)] = addend(instruction);
            }
        }
        let known = first[usize::from(count.0)].filter(|_| writes[usize::from(count.0)] == 1);
        let turns = known.map(|count| Range::between(0, count.high));
        for register in (0..256).filter(|register| writes[*register] > 0) {
            let step = steps[register]
                .filter(|(by, _)| writes[register] == 1 && writes[usize::from(by.0)] == 0);
            state[register] = step.and_then(|(by, ty)| {
                let added = range::binary(BinaryOp::Mul, ty, turns?, first[usize::from(by.0)]?)?;
                range::binary(BinaryOp::Add, ty, first[register]?, added)
            });
        }
        state[usize::from(count.0)] = turns;
    }

    /// The registers after an instruction.
    fn step(&self, state: &mut State, instruction: &Instruction) {
        if matches!(instruction, Instruction::Call { .. }) {
            *state = [None; 256];
        }
        if let Some(Write::Register(register, ty)) = instruction.write() {
            let known = self.result(state, instruction);
            state[usize::from(register.0)] = if ty.is_float() { None } else { known };
        }
    }

    fn result(&self, state: &State, instruction: &Instruction) -> Option<Range> {
        use Instruction as I;
        let value = |register: Register| state[usize::from(register.0)];
        match *instruction {
            I::Move { src, .. } => value(src),
            I::MoveImmediate { ty, bits, .. } => Range::constant(bits).within(ty),
            I::Convert { to, from, src, .. } if from.is_integer() => value(src)?.within(to),
            I::Binary { op, ty, a, b, .. } if ty.is_integer() => {
                let masked = |register| {
                    value(register).or((op == BinaryOp::And && !ty.is_signed())
                        .then(|| Range::between(0, ty.mask())))
                };
                range::binary(op, ty, masked(a)?, masked(b)?)
            }
            I::Ternary { ty, a, b, c, .. } if ty.is_integer() => {
                let product = range::binary(BinaryOp::Mul, ty, value(a)?, value(b)?)?;
                range::binary(BinaryOp::Add, ty, product, value(c)?)
            }
            I::Select {
                on_true, on_false, ..
            } => Some(value(on_true)?.join(value(on_false)?)),
            I::Loop { count, .. } => Some(Range::between(0, value(count)?.high)),
            I::LoadGlobal { ty, .. } | I::LoadShared { ty, .. } | I::PoolLoad { ty, .. }
                if !ty.is_signed() =>
            {
                Some(Range::between(0, ty.mask()))
            }
            I::ClassGet { .. } | I::Mirror { .. } | I::NeighborGet { .. } => {
                Some(Range::between(0, 95))
            }
            I::NeighborCount { .. } => Some(Range::between(5, 6)),
            I::PhaseGet { .. } => Some(Range::between(0, 767)),
            I::BoundaryMap { .. } => Some(Range::between(0, BOUNDARY_BYTES - 1)),
            _ => None,
        }
    }

    fn decide(&mut self, state: &State, place: usize, instruction: &Instruction, always: bool) {
        if !may_fault(instruction) {
            return;
        }
        if let Instruction::Binary { ty, b, .. } = instruction {
            let divisor = state[usize::from(b.0)];
            self.proven[place] =
                Some(ty.is_integer() && divisor.is_some_and(|divisor| divisor.low > 0));
            return;
        }
        let Some((ty, range, size)) = self.access(state, instruction) else {
            self.proven[place] = Some(false);
            return;
        };
        let fits = |first: u64| first.checked_add(ty.bytes()).is_some_and(|end| end <= size);
        if always && !fits(range.low) {
            let message = format!(
                "{ty} at byte {} or beyond is out of the {size} bytes there are",
                range.low
            );
            self.outside.push(CheckError {
                instruction: place,
                message,
            });
        }
        self.proven[place] = Some(fits(range.high) && range.is_aligned(ty));
    }

    /// The type, the offsets and the size of the memory of an access, if known.
    fn access(&self, state: &State, instruction: &Instruction) -> Option<(Type, Range, u64)> {
        let value = |register: Register| state[usize::from(register.0)];
        let (ty, address, is_store) = match *instruction {
            Instruction::LoadGlobal { ty, address, .. } => (ty, address, false),
            Instruction::StoreGlobal { ty, address, .. } => (ty, address, true),
            Instruction::LoadShared { ty, address, .. }
            | Instruction::StoreShared { ty, address, .. } => {
                let range = match address {
                    SharedAddress::Own => range::binary(
                        BinaryOp::Mul,
                        Type::U64,
                        Range::between(0, self.launch.block_lanes() - 1),
                        Range::constant(ty.bytes()),
                    )?,
                    SharedAddress::Constant(bytes) => Range::constant(bytes),
                    SharedAddress::Indexed(offset) => value(offset)?,
                };
                return Some((
                    ty,
                    range,
                    u64::from(self.program.shared_bytes().max(self.launch.shared_bytes)),
                ));
            }
            _ => return None,
        };
        let named = |handle: Register| {
            let handle = value(handle).filter(|range| range.low == range.high)?.low;
            let index = BufferIndex(u32::try_from(handle.checked_sub(1)?).ok()?);
            let buffer = self.program.buffers().get(index.0 as usize)?;
            (if is_store {
                buffer.access.writes()
            } else {
                buffer.access.reads()
            })
            .then_some(index)
        };
        let (buffer, range) = match address {
            Address::Own { .. } => return None,
            Address::Constant { buffer, bytes } => (buffer, Range::constant(bytes)),
            Address::Indexed { buffer, offset } => (buffer, value(offset)?),
            Address::Handle { handle, bytes } => (named(handle)?, Range::constant(bytes)),
            Address::Computed { handle, offset } => (named(handle)?, value(offset)?),
            Address::Phi(phi) => (self.program.boundary()?, Range::constant(phi.offset())),
        };
        Some((ty, range, self.sizes[buffer.0 as usize]))
    }
}

/// The increment of an instruction that adds to its own result: `add r, r, by`.
fn addend(instruction: &Instruction) -> Option<(Register, Type)> {
    match *instruction {
        Instruction::Binary {
            op: BinaryOp::Add,
            ty,
            dst,
            a,
            b,
        } if dst == a && dst != b && ty.is_integer() => Some((b, ty)),
        Instruction::Binary {
            op: BinaryOp::Add,
            ty,
            dst,
            a,
            b,
        } if dst == b && dst != a && ty.is_integer() => Some((a, ty)),
        _ => None,
    }
}

/// Merges the registers of another path into a block's; returns whether that changed them. `widen`
/// makes changed ones unknown.
fn merge(into: &mut Option<Box<State>>, from: &State, widen: bool) -> bool {
    let Some(into) = into else {
        *into = Some(Box::new(*from));
        return true;
    };
    let mut changed = false;
    for (range, other) in into.iter_mut().zip(from) {
        let joined = range.zip(*other).map(|(a, b)| a.join(b));
        if joined != *range {
            *range = if widen { None } else { joined };
            changed = true;
        }
    }
    changed
}
