//! One block: its threads, its shared memory and the order of their turns.

use super::barrier::Barriers;
use super::thread::{State, Surroundings, Thread, coordinates};
use super::{Machine, region};
use crate::error::{Error, Fault, Place};
use crate::memory::Region;
use crate::operation::Operation;
use crate::program::window;
use crate::race::{Actor, Shadow};
use crate::schedule::Dealer;
use crate::syntax::Space;

/// A running block.
pub(super) struct Block {
    pub index: u32,
    pub id: [u32; 3],
    pub threads: Vec<Thread>,
    pub shared: Region,
    pub shadow: Shadow,
    pub barriers: Barriers,
    /// The barriers completed so far.
    pub epoch: u32,
    dealer: Dealer,
    order: Vec<usize>,
}

impl Block {
    pub fn new(machine: &Machine<'_>, index: u32) -> Block {
        let kernel = machine.kernel;
        let extent = machine.launch.block;
        let local = region(&kernel.local, Space::Local);
        let count = extent.iter().product::<u32>();
        Block {
            index,
            id: coordinates(index, machine.launch.grid),
            threads: (0..count)
                .map(|thread| Thread::new(kernel, extent, thread, local.clone()))
                .collect(),
            shared: shared(machine),
            shadow: Shadow::default(),
            barriers: Barriers::default(),
            epoch: 1,
            dealer: Dealer::new(machine.launch.schedule, u64::from(index) + 1),
            order: Vec::new(),
        }
    }

    pub fn surroundings<'a>(&self, machine: &Machine<'a>) -> Surroundings<'a> {
        Surroundings {
            kernel: machine.kernel,
            grid: machine.launch.grid,
            extent: machine.launch.block,
            block: self.id,
        }
    }

    pub fn actor(&self, thread: usize) -> Actor<'_> {
        Actor {
            block: self.index,
            thread: self.threads[thread].index,
            epoch: self.epoch,
            clock: &self.threads[thread].clock,
        }
    }

    /// The indices of the threads in the warp of `thread`.
    pub fn warp_of(&self, thread: usize) -> std::ops::Range<usize> {
        let first = thread / 32 * 32;
        first..(first + 32).min(self.threads.len())
    }

    /// Runs the threads by turns; returns whether the block has ended.
    pub fn advance(&mut self, machine: &mut Machine<'_>) -> Result<bool, Error> {
        let end = machine.stats.instructions + machine.block_turn();
        while machine.stats.instructions < end {
            let mut order = std::mem::take(&mut self.order);
            self.dealer.deal(self.threads.len(), &mut order);
            let result = self.pass(machine, &order);
            self.order = order;
            let has_advanced = result?;
            let has_woken = self.resolve_active_masks(machine);
            if self
                .threads
                .iter()
                .all(|thread| thread.state == State::Exited)
            {
                return Ok(true);
            }
            if !has_advanced && !has_woken {
                return Err(self.stuck(machine));
            }
        }
        Ok(false)
    }

    fn pass(&mut self, machine: &mut Machine<'_>, order: &[usize]) -> Result<bool, Error> {
        let mut has_advanced = false;
        for thread in order.iter().copied() {
            if self.threads[thread].state != State::Runnable {
                continue;
            }
            has_advanced = true;
            let turn = self.dealer.turn();
            self.turn(machine, thread, turn)
                .map_err(|error| self.locate(machine, thread, error))?;
        }
        Ok(has_advanced)
    }

    fn turn(&mut self, machine: &mut Machine<'_>, thread: usize, turn: u64) -> Result<(), Error> {
        let around = self.surroundings(machine);
        for _ in 0..turn {
            machine.count_instruction()?;
            self.step(machine, thread, &around)?;
            if self.threads[thread].state != State::Runnable {
                break;
            }
        }
        Ok(())
    }

    fn locate(&self, machine: &Machine<'_>, thread: usize, error: Error) -> Error {
        let thread = &self.threads[thread];
        let line = machine.kernel.instructions[thread.at].line;
        error
            .at_instruction(line, &machine.kernel.texts[thread.at])
            .at_place(Place {
                block: self.id,
                thread: thread.id,
            })
    }

    /// Names a waiting thread and what the others do instead of arriving.
    fn stuck(&self, machine: &Machine<'_>) -> Error {
        let in_warp = |thread: &Thread| matches!(thread.state, State::InWarp { .. });
        let waiting = self
            .threads
            .iter()
            .position(in_warp)
            .or_else(|| {
                self.threads
                    .iter()
                    .position(|thread| thread.state == State::AtBarrier)
            })
            .unwrap_or(0);
        let (fault, others) = match self.threads[waiting].state {
            State::InWarp { mask } => (Fault::Divergence, self.absent(machine, waiting, mask)),
            _ => (Fault::Deadlock, self.absent_from_barrier(machine, waiting)),
        };
        self.locate(machine, waiting, Error::fault(fault, others))
    }

    fn absent(&self, machine: &Machine<'_>, waiting: usize, mask: u32) -> String {
        let own = &self.threads[waiting];
        let absent = self.warp_of(waiting).find(|other| {
            let other = &self.threads[*other];
            let is_named = mask >> other.lane() & 1 == 1;
            is_named && (other.at != own.at || other.state != own.state)
        });
        match absent {
            Some(other) => format!(
                "the mask {mask:#010x} names lane {}, which {}",
                self.threads[other].lane(),
                self.whereabouts(machine, other)
            ),
            None => "the named lanes never meet".to_owned(),
        }
    }

    fn absent_from_barrier(&self, machine: &Machine<'_>, waiting: usize) -> String {
        let own = &self.threads[waiting];
        let absent = (0..self.threads.len()).find(|other| {
            let other = &self.threads[*other];
            other.at != own.at || other.state != own.state
        });
        match absent {
            Some(other) => format!(
                "the barrier waits for thread {:?}, which {}",
                self.threads[other].id,
                self.whereabouts(machine, other)
            ),
            None => "the barrier waits for more threads than the block has".to_owned(),
        }
    }

    fn whereabouts(&self, machine: &Machine<'_>, thread: usize) -> String {
        let thread = &self.threads[thread];
        let line = machine.kernel.instructions[thread.at].line;
        match thread.state {
            State::Exited => format!("has exited at line {line}"),
            _ => format!(
                "waits at line {line}: `{}`",
                machine.kernel.texts[thread.at]
            ),
        }
    }

    /// Lets the threads at one `activemask` of a warp continue together once no other thread of the
    /// warp can reach it.
    fn resolve_active_masks(&mut self, machine: &Machine<'_>) -> bool {
        let mut has_woken = false;
        for first in (0..self.threads.len()).step_by(32) {
            let warp = self.warp_of(first);
            let threads = &self.threads[warp.clone()];
            if threads.iter().any(|thread| thread.state == State::Runnable) {
                continue;
            }
            let here = |thread: &&Thread| thread.state == State::AtActiveMask;
            let Some(at) = threads.iter().find(here).map(|thread| thread.at) else {
                continue;
            };
            self.wake_at_active_mask(machine, warp, at);
            has_woken = true;
        }
        has_woken
    }

    fn wake_at_active_mask(
        &mut self,
        machine: &Machine<'_>,
        warp: std::ops::Range<usize>,
        at: usize,
    ) {
        let Operation::ActiveMask { destination } = machine.kernel.instructions[at].operation
        else {
            unreachable!("threads wait for an active mask at {at}");
        };
        let is_here = |thread: &Thread| thread.state == State::AtActiveMask && thread.at == at;
        let mask = self.threads[warp.clone()]
            .iter()
            .filter(|thread| is_here(thread))
            .fold(0, |mask, thread| mask | 1u64 << thread.lane());
        for thread in &mut self.threads[warp] {
            if is_here(thread) {
                thread.write(destination, mask);
                thread.at += 1;
                thread.state = State::Runnable;
            }
        }
    }
}

/// The static variables and, after them, the dynamic arrays.
fn shared(machine: &Machine<'_>) -> Region {
    let kernel = machine.kernel;
    let Some(dynamic) = kernel.dynamic_shared else {
        return region(&kernel.shared, Space::Shared);
    };
    let mut variables = kernel.shared.clone();
    variables.push(crate::program::Variable {
        address: dynamic.max(window(Space::Shared)),
        bytes: machine.launch.dynamic_shared_bytes as usize,
        initial: Vec::new(),
    });
    region(&variables, Space::Shared)
}
