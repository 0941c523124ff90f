//! The CPU form of a lowered kernel: the program itself, interpreted.

use super::{Bounds, faults};
use crate::kernel::NativeCall;
use crate::program::{Checked, FaultKind, LaunchConfig, Outcome, Program};

/// Parameters before the buffers' sizes.
const LAUNCH_PARAMS: usize = 6;

/// The program as words: bytes of its serialised form, bytes of shared memory, whether it is checked, then the form itself.
pub fn words(checked: &Checked, shared_bytes: u32, bounds: Bounds) -> Vec<u32> {
    let bytes = checked.program().to_bytes();
    let mut words = vec![bytes.len() as u32, shared_bytes, u32::from(bounds == Bounds::Checked)];
    words.extend(bytes.chunks(4).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))));
    words
}

/// Interprets the launch.
pub fn run(call: &NativeCall<'_>) {
    let [length, shared_bytes, is_checked, form @ ..] = call.program() else { unreachable!("invariant: lowered kernels carry a program") };
    let bytes: Vec<u8> = form.iter().flat_map(|word| word.to_le_bytes()).take(*length as usize).collect();
    let checked = Program::from_bytes(&bytes).and_then(|program| program.check()).expect("invariant: the kernel was made of a checked program");
    let program = checked.program();
    let mut buffers: Vec<Vec<u8>> = Vec::with_capacity(program.buffers().len());
    let mut written: Vec<Option<&mut [u32]>> = Vec::with_capacity(program.buffers().len());
    for (index, buffer) in program.buffers().iter().enumerate() {
        let size = call.size(LAUNCH_PARAMS + index);
        if buffer.access.writes() {
            let words = call.write::<u32>(index);
            buffers.push(bytemuck::cast_slice::<u32, u8>(words)[..size].to_vec());
            written.push(Some(words));
        } else {
            buffers.push(bytemuck::cast_slice::<u32, u8>(call.read::<u32>(index))[..size].to_vec());
            written.push(None);
        }
    }
    let outcome = checked.evaluate(&launch(call, *shared_bytes), &mut buffers, u64::MAX).expect("invariant: the launch was checked when it was recorded");
    for (words, bytes) in written.into_iter().zip(&buffers) {
        if let Some(words) = words {
            bytemuck::cast_slice_mut::<u32, u8>(words)[..bytes.len()].copy_from_slice(bytes);
        }
    }
    if let (Outcome::Fault(fault), 1) = (outcome, *is_checked) {
        let (kind, address, size) = parts(fault.kind);
        let words = [1, fault.lane as u32, fault.instruction as u32, kind, address as u32, (address >> 32) as u32, size as u32, 0];
        call.write::<u32>(program.buffers().len()).copy_from_slice(&words);
    }
}

/// The launch that the parameters tell of, rows and layers as one.
fn launch(call: &NativeCall<'_>, shared_bytes: u32) -> LaunchConfig {
    let [blocks, block_lanes, block_x, grid_x] = [1, 2, 3, 4].map(|index| call.u32(index));
    LaunchConfig { grid: [grid_x, blocks / grid_x.max(1), 1], block: [block_x, block_lanes / block_x.max(1), 1], shared_bytes }
}

fn parts(kind: FaultKind) -> (u32, u64, u64) {
    match kind {
        FaultKind::OutOfBounds { address, size, .. } => (faults::OUT_OF_BOUNDS, address, size),
        FaultKind::Misaligned { address, .. } => (faults::MISALIGNED, address, 0),
        FaultKind::UnknownHandle { handle } => (faults::UNKNOWN_HANDLE, handle, 0),
        FaultKind::Denied { handle } => (faults::DENIED, handle, 0),
        FaultKind::DivisionByZero => (faults::DIVISION_BY_ZERO, 0, 0),
        FaultKind::PoolExhausted { .. } => (faults::POOL_EXHAUSTED, 0, 0),
    }
}
