//! Barriers of a block.

use super::Machine;
use super::block::Block;
use super::thread::{State, Surroundings};
use crate::error::{Error, Fault};
use crate::operation::{Barrier, BarrierKind, BarrierReduction, Operation};

/// The sixteen named barriers.
#[derive(Default)]
pub(super) struct Barriers {
    states: [Gathering; 16],
}

/// Threads that arrived at one barrier since it last completed.
#[derive(Default)]
struct Gathering {
    arrivals: Vec<Arrival>,
    count: Option<u64>,
}

#[derive(Clone, Copy)]
struct Arrival {
    thread: usize,
    at: usize,
    waits: bool,
    /// The predicate of a reducing barrier.
    vote: bool,
}

fn divergence(message: impl Into<String>) -> Error {
    Error::fault(Fault::Divergence, message)
}

impl Block {
    /// Counts a thread at a barrier and releases all threads when it was the last.
    pub(super) fn arrive(
        &mut self,
        machine: &mut Machine<'_>,
        index: usize,
        barrier: &Barrier,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let id = thread.read(barrier.id, around)? as usize;
        let count = match barrier.count {
            Some(count) => Some(thread.read(count, around)?),
            None => None,
        };
        let vote = match barrier.kind {
            BarrierKind::Reduce {
                predicate,
                is_negated,
                ..
            } => (thread.read(predicate, around)? != 0) != is_negated,
            _ => false,
        };
        let waits = !matches!(barrier.kind, BarrierKind::Arrive);
        let arrival = Arrival {
            thread: index,
            at: thread.at,
            waits,
            vote,
        };
        if waits {
            thread.state = State::AtBarrier;
        } else {
            thread.at += 1;
        }
        self.gather(id, count, arrival)?;
        if self.is_complete(id)? {
            self.complete(machine, id)?;
        }
        Ok(())
    }

    fn gather(&mut self, id: usize, count: Option<u64>, arrival: Arrival) -> Result<(), Error> {
        let gathering = self
            .barriers
            .states
            .get_mut(id)
            .ok_or_else(|| Error::fault(Fault::OutOfRange, format!("barrier {id} of 16")))?;
        if count.is_some_and(|count| count == 0 || count % 32 != 0) {
            return Err(divergence(
                "the number of threads is no multiple of the warp size",
            ));
        }
        if gathering.arrivals.is_empty() {
            gathering.count = count;
        } else if gathering.count != count {
            return Err(divergence(
                "threads disagree on the number of threads at the barrier",
            ));
        }
        let known = &gathering.arrivals;
        if known.iter().any(|other| other.thread == arrival.thread) {
            return Err(divergence(
                "a thread arrives twice before the barrier completes",
            ));
        }
        gathering.arrivals.push(arrival);
        Ok(())
    }

    /// Whether the block, or the counted warps in full, have arrived.
    fn is_complete(&self, id: usize) -> Result<bool, Error> {
        let gathering = &self.barriers.states[id];
        let Some(count) = gathering.count else {
            return Ok(gathering.arrivals.len() == self.threads.len());
        };
        let mut per_warp = vec![0usize; self.threads.len().div_ceil(32)];
        for arrival in &gathering.arrivals {
            per_warp[arrival.thread / 32] += 1;
        }
        let partial = |(warp, arrived): (usize, &usize)| {
            *arrived != 0 && *arrived != self.warp_of(warp * 32).len()
        };
        if per_warp.iter().enumerate().any(partial) {
            return Ok(false);
        }
        let warps = per_warp.iter().filter(|arrived| **arrived != 0).count() as u64;
        if warps * 32 > count {
            return Err(divergence("more threads arrive than the barrier counts"));
        }
        Ok(warps * 32 == count)
    }

    fn complete(&mut self, machine: &mut Machine<'_>, id: usize) -> Result<(), Error> {
        let arrivals = std::mem::take(&mut self.barriers.states[id].arrivals);
        check_alignment(machine, &arrivals)?;
        for arrival in arrivals.iter().filter(|arrival| arrival.waits) {
            let thread = &mut self.threads[arrival.thread];
            if let Some((reduction, destination)) = reduction(machine, arrival.at) {
                thread.write(destination, reduce(reduction, &arrivals));
            }
            thread.at += 1;
            thread.state = State::Runnable;
        }
        self.epoch += 1;
        machine.stats.barriers += 1;
        Ok(())
    }
}

fn barrier_at<'a>(machine: &Machine<'a>, at: usize) -> &'a Barrier {
    match &machine.kernel.instructions[at].operation {
        Operation::Barrier(barrier) => barrier,
        other => unreachable!("a thread arrived at {other:?}"),
    }
}

fn reduction(machine: &Machine<'_>, at: usize) -> Option<(BarrierReduction, u32)> {
    match barrier_at(machine, at).kind {
        BarrierKind::Reduce {
            reduction,
            destination,
            ..
        } => Some((reduction, destination)),
        _ => None,
    }
}

fn reduce(reduction: BarrierReduction, arrivals: &[Arrival]) -> u64 {
    let votes = arrivals.iter().filter(|arrival| arrival.vote).count();
    match reduction {
        BarrierReduction::Population => votes as u64,
        BarrierReduction::And => u64::from(votes == arrivals.len()),
        BarrierReduction::Or => u64::from(votes != 0),
    }
}

/// The aligned forms need every thread of a warp at the same instruction.
fn check_alignment(machine: &Machine<'_>, arrivals: &[Arrival]) -> Result<(), Error> {
    let mut sites: Vec<Option<usize>> = vec![None; 32];
    for arrival in arrivals {
        let site = sites[arrival.thread / 32].get_or_insert(arrival.at);
        let is_aligned = barrier_at(machine, arrival.at).aligned;
        if *site != arrival.at && is_aligned {
            let lines = [*site, arrival.at].map(|at| machine.kernel.instructions[at].line);
            return Err(divergence(format!(
                "threads of one warp are at the aligned barriers of lines {} and {}",
                lines[0], lines[1]
            )));
        }
    }
    Ok(())
}
