//! Runs a launch: blocks by turns, threads by turns, one instruction after the other.

mod access;
mod atomic;
mod barrier;
mod block;
mod step;
mod thread;
mod warp;

use crate::error::{Error, Fault};
use crate::launch::{Launch, Stats};
use crate::memory::{Memory, Region};
use crate::program::{Kernel, Program, Variable, window};
use crate::race::Shadow;
use crate::schedule::{Dealer, Schedule};
use crate::syntax::Space;
use block::Block;
use std::collections::VecDeque;

/// Maximum threads of a block.
const MAX_THREADS: u64 = 1024;

/// Maximum shared memory of a block, static and dynamic.
const MAX_SHARED: usize = 227 * 1024;

/// Executes one launch.
pub(crate) fn run(
    program: &Program,
    memory: &mut Memory,
    launch: &Launch<'_>,
) -> Result<Stats, Error> {
    let kernel = program
        .kernels
        .iter()
        .find(|kernel| kernel.name == launch.entry)
        .ok_or_else(|| Error::launch(format!("no entry is named `{}`", launch.entry)))?;
    check_launch(kernel, launch)?;
    memory.begin_launch();
    for variable in &program.globals {
        memory.place_at(
            variable.address,
            Region::initialised(variable.initial.clone()),
        );
    }
    let mut machine = Machine {
        kernel,
        launch,
        memory,
        constants: region(&program.constants, Space::Const),
        params: params(kernel, launch),
        shadow: Shadow::default(),
        stats: Stats::default(),
    };
    let result = machine.run();
    let stats = machine.stats;
    for variable in &program.globals {
        memory.remove_at(variable.address);
    }
    result.map(|()| stats)
}

fn check_launch(kernel: &Kernel, launch: &Launch<'_>) -> Result<(), Error> {
    let threads = launch
        .block
        .iter()
        .map(|side| u64::from(*side))
        .product::<u64>();
    let most = kernel.max_threads.map_or(MAX_THREADS, u64::from);
    if threads == 0 || threads > most.min(MAX_THREADS) || launch.block[2] > 64 {
        let message = format!("a block of {:?} has 1 to {most} threads", launch.block);
        return Err(Error::launch(message));
    }
    let sides = [u64::from(u32::MAX >> 1), 65535, 65535];
    let fits = |(side, most): (&u32, &u64)| *side != 0 && u64::from(*side) <= *most;
    if !launch.grid.iter().zip(&sides).all(fits) {
        return Err(Error::launch(format!("no grid is {:?}", launch.grid)));
    }
    if kernel
        .required_block
        .is_some_and(|block| block != launch.block)
    {
        return Err(Error::launch(
            "the block is not the one that .reqntid requires",
        ));
    }
    check_resources(kernel, launch)
}

fn check_resources(kernel: &Kernel, launch: &Launch<'_>) -> Result<(), Error> {
    if kernel.params.len() != launch.params.len() {
        return Err(Error::launch(format!(
            "{} parameters were given, `{}` has {}",
            launch.params.len(),
            kernel.name,
            kernel.params.len()
        )));
    }
    let declared: usize = kernel.shared.iter().map(|variable| variable.bytes).sum();
    if declared + launch.dynamic_shared_bytes as usize > MAX_SHARED {
        return Err(Error::launch(format!(
            "a block has at most {MAX_SHARED} bytes of shared memory"
        )));
    }
    Ok(())
}

/// The variables of one state space, each byte valid, and initialised if it has an initial value.
fn region(variables: &[Variable], space: Space) -> Region {
    let base = window(space);
    let end = variables
        .iter()
        .map(|variable| variable.address - base + variable.bytes as u64)
        .max();
    let mut region = Region::empty(end.unwrap_or(0) as usize);
    for variable in variables {
        let offset = (variable.address - base) as usize;
        region.declare(offset, variable.bytes);
        region.fill(offset, &variable.initial);
    }
    region
}

fn params(kernel: &Kernel, launch: &Launch<'_>) -> Region {
    let mut region = region(&kernel.params, Space::Param);
    for (param, value) in kernel.params.iter().zip(launch.params) {
        let offset = (param.address - window(Space::Param)) as usize;
        let len = param.bytes.min(8);
        region.fill(offset, &value.to_le_bytes()[..len]);
    }
    region
}

/// All state of one launch except that of its blocks.
struct Machine<'a> {
    kernel: &'a Kernel,
    launch: &'a Launch<'a>,
    memory: &'a mut Memory,
    constants: Region,
    params: Region,
    shadow: Shadow,
    stats: Stats,
}

/// Number of blocks that run by turns initially.
const RESIDENT: usize = 4;

/// After this many instructions without a finished block, one more block starts, since the others
/// may wait for it.
const PATIENCE: u64 = 1 << 20;

impl Machine<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let [x, y, z] = self.launch.grid.map(u64::from);
        let mut order = Vec::new();
        let mut dealer = Dealer::new(self.launch.schedule, 0);
        let count = usize::try_from(x * y * z)
            .ok()
            .filter(|count| *count <= 1 << 28)
            .ok_or_else(|| Error::launch("the grid has too many blocks to interpret"))?;
        dealer.deal(count, &mut order);
        let mut waiting = order.into_iter();
        let mut resident: VecDeque<Block> = VecDeque::new();
        let mut last_change = 0;
        loop {
            let is_stalled = self.stats.instructions - last_change > PATIENCE;
            if (resident.len() < self.resident() || is_stalled)
                && let Some(index) = waiting.next()
            {
                resident.push_back(Block::new(self, index as u32));
                last_change = self.stats.instructions;
            }
            let Some(mut block) = resident.pop_front() else {
                return Ok(());
            };
            if block.advance(self)? {
                last_change = self.stats.instructions;
            } else {
                resident.push_back(block);
            }
        }
    }

    /// Ordered schedules finish one block before the next unless it waits for another.
    fn resident(&self) -> usize {
        match self.launch.schedule {
            Schedule::Random(_) => RESIDENT,
            Schedule::Forward | Schedule::Reverse => 1,
        }
    }

    /// Instructions that a block may execute before the next one runs.
    fn block_turn(&self) -> u64 {
        match self.launch.schedule {
            Schedule::Random(_) => 1 << 12,
            Schedule::Forward | Schedule::Reverse => 1 << 16,
        }
    }

    fn count_instruction(&mut self) -> Result<(), Error> {
        if self.stats.instructions >= self.launch.instruction_limit {
            return Err(Error::fault(
                Fault::Limit,
                format!("more than {} instructions", self.launch.instruction_limit),
            ));
        }
        self.stats.instructions += 1;
        Ok(())
    }
}
