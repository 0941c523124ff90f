//! The reference interpreter: one lane after the other, one instruction after the other, written
//! for obvious correctness.
//!
//! Blocks run in ascending order. The lanes of a block run in ascending order, each until it ends
//! or reaches a barrier; when all remaining lanes are there, the next round begins. Every access is
//! checked. Its cost is linear in the steps taken.

mod lane;
mod memory;
mod pool;
pub mod scalar;

use tectum::{Error, Result};

use super::{Checked, Fault, LaunchConfig};
use lane::{Lane, StopReason};
use memory::Memory;
pub(super) use memory::within;
pub(super) use pool::Pool;

/// How a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All lanes ended.
    Finished,
    /// A lane faulted; writable buffers hold what was stored before.
    Fault(Fault),
    /// The limit of steps was reached.
    OutOfSteps,
}

impl Checked {
    /// Runs the program over buffers of bytes, one for each declaration.
    ///
    /// # Errors
    /// What [`Checked::elements`] refuses. Faults are an [`Outcome`].
    ///
    /// # Example
    /// ```
    /// use tectum_programs::{LaunchConfig, Outcome, Program};
    /// let program = Program::parse("buffer x: i32 read_write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [x], r0")?.check()?;
    /// let mut buffers = [[1i32, -2, 3].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()];
    /// assert_eq!(program.evaluate(&LaunchConfig::linear(3, 2), &mut buffers, 100)?, Outcome::Finished);
    /// assert_eq!(buffers[0][4..8], (-4i32).to_le_bytes());
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn evaluate(
        &self,
        launch: &LaunchConfig,
        buffers: &mut [Vec<u8>],
        most_steps: u64,
    ) -> Result<Outcome> {
        let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
        self.elements(launch, &sizes)?;
        let mut steps = most_steps;
        let [columns, rows, layers] = launch.grid;
        let mut number = 0;
        for _ in 0..u64::from(rows) * u64::from(layers) {
            for x in 0..columns {
                match self.evaluate_block(launch, buffers, (x, number), &mut steps)? {
                    Outcome::Finished => number += 1,
                    stopped => return Ok(stopped),
                }
            }
        }
        Ok(Outcome::Finished)
    }

    /// Runs one block, given its x and its number in the grid.
    fn evaluate_block(
        &self,
        launch: &LaunchConfig,
        buffers: &mut [Vec<u8>],
        block: (u32, u64),
        steps: &mut u64,
    ) -> Result<Outcome> {
        let program = self.program();
        let mut memory = Memory::new(
            program,
            buffers,
            program.shared_bytes().max(launch.shared_bytes),
        );
        let mut lanes: Vec<Lane> = (0..launch.block_lanes())
            .map(|lane| Lane::new(program, launch, block, lane))
            .collect();
        loop {
            let mut waiting = None;
            for lane in lanes.iter_mut().filter(|lane| !lane.has_ended()) {
                match lane.run(program, &mut memory, steps) {
                    StopReason::Ended => {}
                    StopReason::Fault(fault) => return Ok(Outcome::Fault(fault)),
                    StopReason::OutOfSteps => return Ok(Outcome::OutOfSteps),
                    StopReason::Barrier(id) if waiting.is_none_or(|other| other == id) => {
                        waiting = Some(id)
                    }
                    StopReason::Barrier(id) => {
                        return Err(Error::invalid(format!(
                            "{}: lanes of one block wait at barrier {id} and at another",
                            program.name()
                        )));
                    }
                }
            }
            if waiting.is_none() {
                return Ok(Outcome::Finished);
            }
        }
    }
}
