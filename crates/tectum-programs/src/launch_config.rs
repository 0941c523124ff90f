//! The shape of a launch.

use tectum::{Error, Result};

/// How many blocks of how many lanes run a program, and the shared memory of a block.
///
/// Lanes of a block, and blocks of a grid, are numbered with x fastest. A lane's number in the
/// launch is its block's number times the lanes of a block, plus its number in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks in x, y, z; a zero makes an empty launch. Default: `[1; 3]`.
    pub grid: [u32; 3],
    /// Lanes of a block in x, y, z; a zero makes an empty launch. Default: `[1; 3]`.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block; at least the program's own declaration. Default: 0.
    pub shared_bytes: u32,
    /// How often a lane may jump back; a lane that would do so more often ends the run with an
    /// error. So every run ends. Default: `Self::MAX_LOOP_ITERATIONS`.
    pub max_loop_iterations: u32,
}

impl Default for LaunchConfig {
    /// One block of one lane.
    fn default() -> Self {
        Self {
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            max_loop_iterations: Self::MAX_LOOP_ITERATIONS,
        }
    }
}

impl LaunchConfig {
    /// Maximum lanes of one block.
    pub const MAX_BLOCK_LANES: u64 = 1024;
    /// How often a lane may jump back by default.
    pub const MAX_LOOP_ITERATIONS: u32 = 100_000_000;

    /// Enough blocks of `block` lanes in x for `lanes` of them.
    pub fn linear(lanes: u32, block: u32) -> Self {
        Self {
            grid: [lanes.div_ceil(block.max(1)), 1, 1],
            block: [block.max(1), 1, 1],
            ..Self::default()
        }
    }

    /// Lanes of one block.
    pub fn block_lanes(&self) -> u64 {
        self.block
            .iter()
            .fold(1u64, |lanes, size| lanes.saturating_mul(u64::from(*size)))
    }

    /// Blocks.
    pub fn blocks(&self) -> u64 {
        self.grid
            .iter()
            .fold(1u64, |blocks, size| blocks.saturating_mul(u64::from(*size)))
    }

    /// Lanes of the whole launch.
    pub fn lanes(&self) -> u64 {
        self.blocks().saturating_mul(self.block_lanes())
    }

    /// Refuses a block with too many lanes and a launch whose lane count exceeds 32 bits.
    ///
    /// # Errors
    /// Kind `Invalid` with the given values.
    pub fn check(&self) -> Result<()> {
        let (lanes, all) = (self.block_lanes(), self.lanes());
        if lanes > Self::MAX_BLOCK_LANES {
            return Err(Error::invalid(format!(
                "launch: block {:?} has {lanes} lanes, the maximum is {}",
                self.block,
                Self::MAX_BLOCK_LANES
            )));
        } else if self.shared_bytes > super::MAX_SHARED_BYTES {
            return Err(Error::invalid(format!(
                "launch: {} bytes of shared memory, the maximum is {}",
                self.shared_bytes,
                super::MAX_SHARED_BYTES
            )));
        } else if self.max_loop_iterations == u32::MAX {
            return Err(Error::invalid(format!(
                "launch: a limit of {} iterations; the maximum is {}",
                self.max_loop_iterations,
                u32::MAX - 1
            )));
        } else if all > u64::from(u32::MAX) {
            return Err(Error::invalid(format!(
                "launch: grid {:?} of block {:?} has {all} lanes, the maximum is {}",
                self.grid,
                self.block,
                u32::MAX
            )));
        }
        Ok(())
    }
}
