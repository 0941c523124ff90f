//! The block interpreter: runs programs fast on the CPU.
//!
//! ```text
//! launch ─▶ tasks (lanes, parts of buffers) ─▶ chunks of lanes ─▶ instructions in order, each over the whole chunk
//! ```
//!
//! An instruction is one loop over columns of registers that stay in L1 or L2, compiled for the
//! SIMD of this machine; so the cost of interpreting is shared by hundreds of lanes, and a chain of
//! element-wise instructions passes through memory once. If a program has barriers or shared
//! memory, a chunk is a block, else any consecutive lanes. Tasks are distributed over threads.
//!
//! The reference interpreter's code defines the instructions ([`super::scalar`]); functions are
//! those of the math library.

mod arithmetic;
mod chunk;
mod constants;
mod mask;
mod memory;
mod private;
mod register_file;
mod straight;

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tectum::kernel::native::{STREAM_FROM_BYTES, as_atomics, for_each_task, stream_fence};

use self::chunk::Chunk;
use self::mask::Mask;
use self::memory::{FaultMode, Memory, Words};
use self::private::Private;
use self::register_file::{RegisterFile, RegisterStorage};
use super::bounds::Bounds;
use super::{
    Address, BranchTarget, BufferIndex, Checked, Fault, Instruction, LaunchConfig, Program,
    Register,
};

/// Maximum bytes of a chunk's columns, if its size can be chosen: three quarters of a common L1.
const COLUMN_BYTES: usize = 24 << 10;
/// Minimum and maximum lanes of a chunk whose size can be chosen.
const CHUNK_LANES: [usize; 2] = [128, 2048];
/// Minimum lanes of a task, so that the cost of scheduling it is negligible.
const TASK_LANES: usize = 16 << 10;
/// Minimum bytes of a buffer for prefetching: smaller ones are in caches, where a prefetch takes
/// longer than the load.
const PREFETCH_FROM_BYTES: u64 = 8 << 20;
/// Up to so many buffers, the shared memory included, a launch on one thread allocates nothing.
const FEW_BUFFERS: usize = 8;
/// Assumed iterations of a loop when threads are chosen.
const ASSUMED_TRIP_COUNT: usize = 16;

/// How a program uses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    /// Lanes write only their own elements of this many bytes; whether they read none.
    Own {
        bytes: usize,
        is_only_stored: bool,
    },
    Shared,
}

/// A program prepared to run, with its working memory.
#[derive(Debug)]
pub struct PreparedProgram {
    program: Program,
    faults: FaultMode,
    /// Bytes of shared memory, where a chunk is a block.
    block_bytes: Option<u32>,
    modes: Vec<Mode>,
    preloaded: Vec<Register>,
    /// Whether instructions run once each, in order, for all lanes of a chunk.
    is_straight: bool,
    /// Where an instruction can write its result directly to the next instruction's store.
    direct_stores: Vec<Option<BufferIndex>>,
    /// Instructions replaced by columns that are filled once.
    is_hoisted: Vec<bool>,
    chunk_lanes: usize,
    work: usize,
    states: Mutex<Vec<State>>,
}

/// Working memory of one task.
#[derive(Debug)]
struct State {
    kept: RegisterStorage,
    private: Private,
    shared: Vec<u32>,
    /// All lanes of a chunk, and those of the last one.
    all: Mask,
    rest: Mask,
}

/// A whole buffer of a launch: its words and its length in bytes.
pub struct Buffer<'a> {
    pub words: BufferWords<'a>,
    pub bytes: u64,
}

/// The words of a buffer by its declaration.
pub enum BufferWords<'a> {
    Read(&'a [u32]),
    Write(&'a mut [u32]),
}

/// Lanes that run on one thread, and the memory that they access.
struct Task<'a> {
    first: u64,
    lanes: usize,
    memory: SmallVec<[Memory<'a>; FEW_BUFFERS]>,
}

impl PreparedProgram {
    /// Prepares a program; `block_bytes` of shared memory if its chunks must be blocks.
    pub fn new(checked: &Checked, block_bytes: Option<u32>, bounds: Bounds) -> Self {
        let program = straight::with_own_constants(checked.program());
        let used = register_file::used(&program);
        let is_used = |(register, ty): &(Register, super::Type)| used.contains(&(*register, *ty));
        let mut is_hoisted = vec![false; program.instructions().len()];
        constants::constants(&program)
            .iter()
            .for_each(|(index, ..)| is_hoisted[*index] = true);
        let fitting = COLUMN_BYTES / register_file::bytes_per_lane(&program);
        let [least, most] = CHUNK_LANES;
        let turns = |(index, instruction): (usize, &Instruction)| {
            instruction
                .target()
                .is_some_and(|BranchTarget(to)| to as usize <= index)
        };
        let loops = program.instructions().iter().enumerate().any(turns);
        Self {
            modes: (0..program.buffers().len())
                .map(|buffer| mode(&program, buffer))
                .collect(),
            preloaded: Register::PRELOADED
                .iter()
                .filter(|preloaded| is_used(preloaded))
                .map(|(register, _)| *register)
                .collect(),
            is_straight: straight::is_straight(&program),
            direct_stores: straight::direct_stores(&program),
            is_hoisted,
            chunk_lanes: (fitting / 64 * 64).clamp(least, most),
            work: (program.instructions().len() / 4).max(1)
                * if loops { ASSUMED_TRIP_COUNT } else { 1 },
            faults: if bounds == Bounds::Checked {
                FaultMode::Reported
            } else {
                FaultMode::Ignored
            },
            block_bytes,
            program,
            states: Mutex::new(Vec::new()),
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs a launch; returns the first fault, if faults are reported. `threads` gives the threads
    /// worth using for some work.
    pub fn run<'a>(
        &self,
        launch: &LaunchConfig,
        buffers: impl Iterator<Item = Buffer<'a>>,
        threads: impl Fn(usize) -> usize,
    ) -> Option<Fault> {
        let lanes = launch.lanes() as usize;
        if lanes == 0 {
            return None;
        }
        let threads = threads(lanes.saturating_mul(self.work));
        let unit = if self.block_bytes.is_some() {
            launch.block_lanes() as usize * 4
        } else {
            self.chunk_lanes
        };
        let task_lanes = if threads <= 1 {
            lanes
        } else {
            lanes
                .div_ceil(4 * threads)
                .max(TASK_LANES / 4)
                .next_multiple_of(unit)
        };
        let fault = Mutex::new(None);
        let run = |task: Task<'_>| {
            let known = || fault.lock().unwrap_or_else(PoisonError::into_inner);
            if known().is_none()
                && let Err(found) = self.run_task(launch, task)
            {
                known().get_or_insert(found);
            }
        };
        let tasks = self.tasks(lanes, task_lanes, buffers);
        if threads <= 1 {
            tasks.into_iter().for_each(run)
        } else {
            let tasks: Vec<Mutex<Option<Task<'_>>>> = tasks
                .into_iter()
                .map(|task| Mutex::new(Some(task)))
                .collect();
            for_each_task(tasks.len(), &|index| {
                let task = tasks[index]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                task.into_iter().for_each(&run);
            });
        }
        fault.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distributes lanes and buffers.
    fn tasks<'a>(
        &self,
        lanes: usize,
        task_lanes: usize,
        buffers: impl Iterator<Item = Buffer<'a>>,
    ) -> SmallVec<[Task<'a>; 1]> {
        let firsts = (0..lanes).step_by(task_lanes);
        let task = |first: usize| Task {
            first: first as u64,
            lanes: task_lanes.min(lanes - first),
            memory: SmallVec::with_capacity(self.modes.len() + 1),
        };
        let mut tasks: SmallVec<[Task<'a>; 1]> = firsts.map(task).collect();
        for (buffer, mode) in buffers.zip(&self.modes) {
            let bytes = buffer.bytes;
            match (buffer.words, mode) {
                (
                    BufferWords::Write(words),
                    Mode::Own {
                        bytes: width,
                        is_only_stored,
                    },
                ) => {
                    let mut parts = words.chunks_mut((task_lanes * width).div_ceil(4));
                    let streams =
                        *is_only_stored && *width >= 4 && bytes as usize >= STREAM_FROM_BYTES;
                    for task in &mut tasks {
                        let words = Words::Own(parts.next().unwrap_or_default());
                        task.memory.push(Memory {
                            words,
                            bytes,
                            start: task.first * *width as u64,
                            streams,
                        });
                    }
                }
                (BufferWords::Write(words), _) => {
                    let words = as_atomics(words);
                    tasks.iter_mut().for_each(|task| {
                        task.memory.push(Memory {
                            words: Words::Shared(words),
                            bytes,
                            start: 0,
                            streams: false,
                        })
                    });
                }
                (BufferWords::Read(words), _) => {
                    tasks.iter_mut().for_each(|task| {
                        task.memory.push(Memory {
                            words: Words::Read(words),
                            bytes,
                            start: 0,
                            streams: false,
                        })
                    });
                }
            }
        }
        tasks
    }

    fn run_task(&self, launch: &LaunchConfig, task: Task<'_>) -> Result<(), Fault> {
        let chunk_lanes = if self.block_bytes.is_some() {
            launch.block_lanes() as usize
        } else {
            self.chunk_lanes
        };
        let State {
            kept,
            mut private,
            mut shared,
            mut all,
            mut rest,
        } = self.take_state(chunk_lanes.min(task.lanes));
        let mut columns = RegisterFile::new(kept);
        let Task {
            first,
            lanes,
            memory: buffers,
        } = task;
        // Moved, because the shared memory lives for a shorter time than the buffers.
        let mut memory = SmallVec::<[Memory<'_>; FEW_BUFFERS]>::new();
        for buffer in buffers {
            memory.push(buffer);
        }
        if let Some(bytes) = self.block_bytes {
            memory.push(Memory {
                words: Words::Own(&mut shared),
                bytes: u64::from(bytes),
                start: 0,
                streams: false,
            });
        }
        for (mask, lanes) in [
            (&mut all, chunk_lanes.min(lanes)),
            (&mut rest, lanes % chunk_lanes),
        ] {
            mask.set_all(lanes);
        }
        let result = (0..lanes).step_by(chunk_lanes).try_for_each(|offset| {
            let lanes = chunk_lanes.min(lanes - offset);
            let mut chunk = Chunk {
                prepared: self,
                launch,
                memory: &mut memory,
                columns: &mut columns,
                private: &mut private,
                first: first + offset as u64,
                lanes,
            };
            match self.is_straight {
                true if lanes == all.active() => chunk.run_straight(&all),
                true => chunk.run_straight(&rest),
                false => chunk.run(),
            }
        });
        if memory.iter().any(|memory| memory.streams) {
            stream_fence();
        }
        let kept = columns.into_kept();
        drop(memory);
        self.states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(State {
                kept,
                private,
                shared,
                all,
                rest,
            });
        result
    }

    /// Working memory for chunks of this many lanes.
    fn take_state(&self, lanes: usize) -> State {
        let kept = self
            .states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(state) = kept.filter(|state| state.kept.lanes() >= lanes) {
            return state;
        }
        let shared = vec![0; self.block_bytes.unwrap_or(0).div_ceil(4) as usize];
        let (kept, private) = (
            RegisterStorage::new(&self.program, lanes),
            Private::new(&self.program, lanes),
        );
        State {
            kept,
            private,
            shared,
            all: Mask::all(lanes),
            rest: Mask::default(),
        }
    }
}

/// How a program accesses a buffer.
fn mode(program: &Program, index: usize) -> Mode {
    if !program.buffers()[index].access.writes() {
        return Mode::Read;
    }
    let mut own = None;
    let mut is_only_stored = true;
    for instruction in program.instructions() {
        let (ty, address, stores) = match *instruction {
            Instruction::LoadGlobal { ty, address, .. } => (ty, address, false),
            Instruction::StoreGlobal { ty, address, .. } => (ty, address, true),
            _ => continue,
        };
        let width = ty.bytes() as usize;
        match address {
            Address::Own { buffer }
                if buffer.0 as usize == index && own.is_none_or(|known| known == width) =>
            {
                own = Some(width);
                is_only_stored &= stores;
            }
            Address::Own { buffer }
            | Address::Constant { buffer, .. }
            | Address::Indexed { buffer, .. }
                if buffer.0 as usize != index => {}
            Address::Phi(_) if !program.buffers()[index].boundary => {}
            _ => return Mode::Shared,
        }
    }
    own.map_or(Mode::Shared, |bytes| Mode::Own {
        bytes,
        is_only_stored,
    })
}

#[cfg(test)]
mod tests;
