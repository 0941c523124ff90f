//! How a lane reports a fault: the first one of a launch claims the words of a buffer.

use crate::{Fault, FaultKind, Instruction, Program, Type};

/// Words of the buffer: how many faults, then lane, instruction, kind, address (two words) and size
/// of the first.
pub const WORDS: usize = 8;

pub const OUT_OF_BOUNDS: u32 = 1;
pub const MISALIGNED: u32 = 2;
pub const UNKNOWN_HANDLE: u32 = 3;
pub const DENIED: u32 = 4;
pub const DIVISION_BY_ZERO: u32 = 5;
pub const POOL_EXHAUSTED: u32 = 6;
pub const LOOP_LIMIT_EXCEEDED: u32 = 7;
pub const CUT_OFF: u32 = 8;

/// Code of kernels that report faults.
pub const REPORT: &str = "\
var<private> faulted: bool;
var<private> lane_number: u32;

fn fault(kind: u32, instruction: u32, at: vec2<u32>, size: u32) {
    faulted = true;
    if atomicAdd(&fault_words[0], 1u) == 0u {
        atomicStore(&fault_words[1], lane_number);
        atomicStore(&fault_words[2], instruction);
        atomicStore(&fault_words[3], kind);
        atomicStore(&fault_words[4], at.x);
        atomicStore(&fault_words[5], at.y);
        atomicStore(&fault_words[6], size);
    }
}
";

/// Code of kernels that have loops: reports a loop that was left before its end.
pub const TURNS: &str = "\
fn stopped(turns: u32, instruction: u32) {
    fault(select(8u, 7u, turns > params.max_turns), instruction, vec2<u32>(params.max_turns, 0u), 0u);
}
";

/// Code of checked kernels.
pub const CHECKED: &str = "\
fn within(at: vec2<u32>, width: u32, size: u32, instruction: u32) -> bool {
    if at.y != 0u || size < width || at.x > size - width {
        fault(1u, instruction, at, size);
        return false;
    }
    if (at.x & (width - 1u)) != 0u {
        fault(2u, instruction, at, size);
        return false;
    }
    return true;
}
";

/// Code of kernels that are forced to run without faults.
pub const FORCED: &str = "\
fn within(at: vec2<u32>, width: u32, size: u32, instruction: u32) -> bool {
    return at.y == 0u && size >= width && at.x <= size - width;
}
";

/// The fault that a launch reported, if any.
pub fn read(words: &[u32], program: &Program) -> Option<Fault> {
    let &[count, lane, instruction, kind, low, high, size, _] = words else {
        return None;
    };
    if count == 0 {
        return None;
    }
    let address = u64::from(high) << 32 | u64::from(low);
    let instruction = instruction as usize;
    let (ty, bytes) = accessed(program.instructions().get(instruction)?);
    let kind = match kind {
        OUT_OF_BOUNDS => FaultKind::OutOfBounds {
            address,
            ty,
            size: u64::from(size),
        },
        MISALIGNED => FaultKind::Misaligned { address, ty },
        UNKNOWN_HANDLE => FaultKind::UnknownHandle { handle: address },
        DENIED => FaultKind::Denied { handle: address },
        DIVISION_BY_ZERO => FaultKind::DivisionByZero,
        POOL_EXHAUSTED => FaultKind::PoolExhausted { bytes },
        LOOP_LIMIT_EXCEEDED => FaultKind::LoopLimitExceeded { limit: low },
        CUT_OFF => FaultKind::CutOff,
        _ => return None,
    };
    Some(Fault {
        lane: u64::from(lane),
        instruction,
        kind,
    })
}

/// The type that an instruction accesses, and the bytes that it allocates from the pool.
fn accessed(instruction: &Instruction) -> (Type, u64) {
    match *instruction {
        Instruction::LoadGlobal { ty, .. } | Instruction::StoreGlobal { ty, .. } => (ty, 0),
        Instruction::LoadShared { ty, .. } | Instruction::StoreShared { ty, .. } => (ty, 0),
        Instruction::PoolLoad { ty, .. } | Instruction::PoolStore { ty, .. } => (ty, 0),
        Instruction::PoolAllocate { bytes, .. } => (Type::U8, bytes),
        _ => (Type::U8, 0),
    }
}
