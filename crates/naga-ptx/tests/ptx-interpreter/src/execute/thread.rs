//! One thread: its registers, each known to be written or not, and its place in the program.

use crate::error::{Error, Fault};
use crate::memory::Region;
use crate::operation::{Operand, SINK, Slot, Special};
use crate::program::Kernel;
use crate::scalar::mask;

/// Whether a thread can advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runnable,
    /// At a barrier of the block.
    AtBarrier,
    /// At a warp-level instruction whose mask names these lanes.
    InWarp {
        mask: u32,
    },
    /// At `activemask`.
    AtActiveMask,
    Exited,
}

/// A thread of a running block.
pub(super) struct Thread {
    pub id: [u32; 3],
    /// The linear index within the block.
    pub index: u32,
    pub at: usize,
    pub state: State,
    registers: Vec<u64>,
    is_written: Vec<bool>,
    pub carry: Option<bool>,
    pub local: Region,
    pub clock: Box<[u32; 32]>,
    pub executed: u64,
}

/// The values that special registers depend on in addition to the thread.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub kernel: &'a Kernel,
    pub grid: [u32; 3],
    pub extent: [u32; 3],
    pub block: [u32; 3],
}

impl Thread {
    pub fn new(kernel: &Kernel, extent: [u32; 3], index: u32, local: Region) -> Thread {
        let mut clock = Box::new([0; 32]);
        clock[(index % 32) as usize] = 1;
        Thread {
            id: coordinates(index, extent),
            index,
            at: 0,
            state: State::Runnable,
            registers: vec![0; kernel.slots],
            is_written: vec![false; kernel.slots],
            carry: None,
            local,
            clock,
            executed: 0,
        }
    }

    pub fn lane(&self) -> u32 {
        self.index % 32
    }

    pub fn warp(&self) -> u32 {
        self.index / 32
    }

    pub fn read(&self, operand: Operand, around: &Surroundings<'_>) -> Result<u64, Error> {
        match operand {
            Operand::Immediate(value) => Ok(value),
            Operand::Register(slot) => self.register(slot, around),
            Operand::Special(special) => Ok(self.special(special, around)),
        }
    }

    pub fn register(&self, slot: Slot, around: &Surroundings<'_>) -> Result<u64, Error> {
        if self.is_written[slot as usize] {
            Ok(self.registers[slot as usize])
        } else {
            Err(undefined(&around.kernel.registers[slot as usize]))
        }
    }

    pub fn write(&mut self, slot: Slot, value: u64) {
        if slot != SINK {
            self.registers[slot as usize] = value;
            self.is_written[slot as usize] = true;
        }
    }

    /// Sets a register to the undefined value that the manual assigns.
    pub fn forget(&mut self, slot: Slot) {
        if slot != SINK {
            self.is_written[slot as usize] = false;
        }
    }

    fn special(&self, special: Special, around: &Surroundings<'_>) -> u64 {
        let lane = self.lane();
        let below = mask(lane);
        let own = 1u64 << lane;
        match special {
            Special::Thread(axis) => u64::from(self.id[axis as usize]),
            Special::BlockExtent(axis) => u64::from(around.extent[axis as usize]),
            Special::Block(axis) => u64::from(around.block[axis as usize]),
            Special::GridExtent(axis) => u64::from(around.grid[axis as usize]),
            Special::Lane => u64::from(lane),
            Special::Warp => u64::from(self.warp()),
            Special::WarpCount => u64::from(around.extent.iter().product::<u32>().div_ceil(32)),
            Special::LaneMaskEqual => own,
            Special::LaneMaskLess => below,
            Special::LaneMaskLessEqual => below | own,
            Special::LaneMaskGreater => mask(32) & !(below | own),
            Special::LaneMaskGreaterEqual => mask(32) & !below,
            Special::Clock => self.executed & mask(32),
            Special::Clock64 | Special::GlobalTimer => self.executed,
        }
    }
}

#[cold]
fn undefined(name: &str) -> Error {
    Error::fault(
        Fault::UndefinedRegister,
        format!("register `{name}` has no defined value here"),
    )
}

/// The coordinates of a linear index, x fastest.
pub(super) fn coordinates(index: u32, extent: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extent;
    [index % x, index / x % y, index / x / y]
}
