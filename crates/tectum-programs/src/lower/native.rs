//! The CPU form of a lowered kernel: the block interpreter runs the program itself.

use tectum::NativeCall;

use super::faults;
use crate::block::{Buffer, BufferWords, PreparedProgram};
use crate::{FaultKind, LaunchConfig};

/// Parameters before the buffers' sizes.
const LAUNCH_PARAMS: usize = 7;

/// Interprets the launch.
pub fn run(call: &NativeCall<'_>) {
    let prepared = call.data::<PreparedProgram>();
    let declared = prepared.program().buffers();
    let buffer = |(index, access): (usize, crate::BufferAccess)| Buffer {
        words: if access.writes() {
            BufferWords::Write(call.write(index))
        } else {
            BufferWords::Read(call.read(index))
        },
        bytes: u64::from(call.u32(LAUNCH_PARAMS + index)),
    };
    let buffers = declared
        .iter()
        .map(|buffer| buffer.access)
        .enumerate()
        .map(buffer);
    if let Some(fault) = prepared.run(&launch(call), buffers, |work| call.threads_for(work)) {
        let (kind, address, size) = parts(fault.kind);
        let words = [
            1,
            fault.lane as u32,
            fault.instruction as u32,
            kind,
            address as u32,
            (address >> 32) as u32,
            size as u32,
            0,
        ];
        call.write::<u32>(declared.len()).copy_from_slice(&words);
    }
}

/// The launch that the parameters describe, rows and layers merged.
fn launch(call: &NativeCall<'_>) -> LaunchConfig {
    let [blocks, block_lanes, block_x, grid_x, max_loop_iterations] =
        [1, 2, 3, 4, 6].map(|index| call.u32(index));
    LaunchConfig {
        grid: [grid_x, blocks / grid_x.max(1), 1],
        block: [block_x, block_lanes / block_x.max(1), 1],
        shared_bytes: 0,
        max_loop_iterations,
    }
}

fn parts(kind: FaultKind) -> (u32, u64, u64) {
    match kind {
        FaultKind::OutOfBounds { address, size, .. } => (faults::OUT_OF_BOUNDS, address, size),
        FaultKind::Misaligned { address, .. } => (faults::MISALIGNED, address, 0),
        FaultKind::UnknownHandle { handle } => (faults::UNKNOWN_HANDLE, handle, 0),
        FaultKind::Denied { handle } => (faults::DENIED, handle, 0),
        FaultKind::DivisionByZero => (faults::DIVISION_BY_ZERO, 0, 0),
        FaultKind::PoolExhausted { .. } => (faults::POOL_EXHAUSTED, 0, 0),
        FaultKind::LoopLimitExceeded { limit } => {
            (faults::LOOP_LIMIT_EXCEEDED, u64::from(limit), 0)
        }
        FaultKind::CutOff => (faults::CUT_OFF, 0, 0),
    }
}
