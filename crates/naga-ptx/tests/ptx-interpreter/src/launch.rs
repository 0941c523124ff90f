//! Parameters and report of a launch.

use crate::compute::Approximation;
use crate::schedule::Schedule;

/// One launch of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The name of the entry.
    pub entry: &'a str,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Each `.param` in order, its value in the low bits.
    pub params: &'a [u64],
    /// The size of the `.extern .shared` arrays.
    pub dynamic_shared_bytes: u32,
    /// The order of threads and blocks.
    pub schedule: Schedule,
    /// Maximum instructions that all threads together may execute.
    pub instruction_limit: u64,
    /// Whether unordered conflicting accesses fault.
    pub race_check: bool,
    /// Results of the approximate instructions.
    pub approximation: Approximation,
}

impl<'a> Launch<'a> {
    /// Describes a launch of one block of one thread, in forward order, with the race check on.
    pub fn new(entry: &'a str, params: &'a [u64]) -> Launch<'a> {
        Launch {
            entry,
            grid: [1; 3],
            block: [1; 3],
            params,
            dynamic_shared_bytes: 0,
            schedule: Schedule::Forward,
            instruction_limit: 1 << 32,
            race_check: true,
            approximation: Approximation::Exact,
        }
    }
}

/// Statistics of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions executed by all threads, those with a false guard included.
    pub instructions: u64,
    /// Block barriers completed.
    pub barriers: u64,
    /// Load instructions executed, in any state space.
    pub loads: u64,
    /// Store instructions executed, in any state space.
    pub stores: u64,
    /// Atomic instructions executed, in any state space.
    pub atomics: u64,
    /// Bytes loaded from global memory, atomics included.
    pub global_bytes_loaded: u64,
    /// Bytes stored to global memory, atomics included.
    pub global_bytes_stored: u64,
}
