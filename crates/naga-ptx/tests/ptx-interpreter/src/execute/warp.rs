//! Instructions that the named threads of a warp execute together.

use super::Machine;
use super::atomic::combine;
use super::block::Block;
use super::thread::{State, Surroundings};
use crate::error::{Error, Fault};
use crate::operation::{Operand, ShuffleMode, Slot, VoteMode, WarpKind, WarpOperation};

impl Block {
    /// Leaves a thread waiting at a warp-level instruction and executes it once all named threads
    /// wait there.
    pub(super) fn meet(
        &mut self,
        machine: &mut Machine<'_>,
        index: usize,
        operation: &WarpOperation,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let mask = thread.read(operation.mask, around)? as u32;
        let (lane, at) = (thread.lane(), thread.at);
        if mask >> lane & 1 == 0 {
            let message = format!("lane {lane} is not in its own mask {mask:#010x}");
            return Err(Error::fault(Fault::Divergence, message));
        }
        thread.state = State::InWarp { mask };
        let members: Vec<usize> = self
            .warp_of(index)
            .filter(|other| mask >> self.threads[*other].lane() & 1 == 1)
            .collect();
        self.check_alive(machine, &members, mask)?;
        let is_here = |other: &usize| {
            let other = &self.threads[*other];
            other.state == State::InWarp { mask } && other.at == at
        };
        if members.iter().all(is_here) {
            self.exchange(operation, &members, around)?;
            for member in members {
                let thread = &mut self.threads[member];
                thread.at += 1;
                thread.state = State::Runnable;
            }
        }
        Ok(())
    }

    fn check_alive(
        &self,
        machine: &Machine<'_>,
        members: &[usize],
        mask: u32,
    ) -> Result<(), Error> {
        let has_exited = |member: &&usize| self.threads[**member].state == State::Exited;
        let Some(gone) = members.iter().find(has_exited) else {
            return Ok(());
        };
        let thread = &self.threads[*gone];
        let line = machine.kernel.instructions[thread.at].line;
        Err(Error::fault(
            Fault::Divergence,
            format!(
                "the mask {mask:#010x} names lane {}, which has exited at line {line}",
                thread.lane()
            ),
        ))
    }

    fn exchange(
        &mut self,
        operation: &WarpOperation,
        members: &[usize],
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        match operation.kind {
            WarpKind::Synchronise => self.join_clocks(members),
            WarpKind::Shuffle {
                mode,
                destination,
                in_range,
                value,
                lane,
                clamp,
            } => {
                let values = self.gather_values(members, value, around)?;
                let lanes = self.gather_values(members, lane, around)?;
                let clamps = self.gather_values(members, clamp, around)?;
                for (place, member) in members.iter().enumerate() {
                    let own = self.threads[*member].lane();
                    let (from, is_in_range) =
                        source_lane(mode, own, lanes[place] as u32, clamps[place] as u32);
                    let found = self.place_of(members, from).map(|place| values[place]);
                    self.give(*member, destination, found);
                    self.threads[*member].write(in_range, u64::from(is_in_range));
                }
            }
            WarpKind::Vote {
                mode,
                destination,
                predicate,
                is_negated,
            } => {
                let votes = self.gather_values(members, predicate, around)?;
                let votes: Vec<bool> = votes
                    .iter()
                    .map(|vote| (*vote != 0) != is_negated)
                    .collect();
                let result = self.vote(mode, members, &votes);
                self.give_all(members, destination, result);
            }
            WarpKind::Reduce {
                kind,
                scalar,
                destination,
                value,
            } => {
                let values = self.gather_values(members, value, around)?;
                let mut result = values[0];
                for value in &values[1..] {
                    result = combine(kind, scalar, false, [result, *value, 0])?;
                }
                self.give_all(members, destination, result);
            }
            WarpKind::Match {
                all,
                destination,
                predicate,
                value,
            } => {
                let values = self.gather_values(members, value, around)?;
                self.compare_values(members, &values, all, [destination, predicate]);
            }
            WarpKind::Elect {
                destination,
                predicate,
            } => {
                let leader = self.threads[members[0]].lane();
                for member in members {
                    let is_leader = self.threads[*member].lane() == leader;
                    self.threads[*member].write(destination, u64::from(leader));
                    self.threads[*member].write(predicate, u64::from(is_leader));
                }
            }
        }
        Ok(())
    }

    fn gather_values(
        &self,
        members: &[usize],
        operand: Operand,
        around: &Surroundings<'_>,
    ) -> Result<Vec<u64>, Error> {
        members
            .iter()
            .map(|member| self.threads[*member].read(operand, around))
            .collect()
    }

    fn place_of(&self, members: &[usize], lane: u32) -> Option<usize> {
        members
            .iter()
            .position(|member| self.threads[*member].lane() == lane)
    }

    /// Writes a value, or leaves the register undefined when the source lane does not take part.
    fn give(&mut self, member: usize, destination: Slot, value: Option<u64>) {
        match value {
            Some(value) => self.threads[member].write(destination, value),
            None => self.threads[member].forget(destination),
        }
    }

    fn give_all(&mut self, members: &[usize], destination: Slot, value: u64) {
        for member in members {
            self.threads[*member].write(destination, value);
        }
    }

    fn lanes_where(&self, members: &[usize], holds: impl Fn(usize) -> bool) -> u64 {
        members
            .iter()
            .enumerate()
            .filter(|(place, _)| holds(*place))
            .fold(0, |mask, (_, member)| {
                mask | 1 << self.threads[*member].lane()
            })
    }

    fn vote(&self, mode: VoteMode, members: &[usize], votes: &[bool]) -> u64 {
        let all = votes.iter().all(|vote| *vote);
        let any = votes.iter().any(|vote| *vote);
        match mode {
            VoteMode::All => u64::from(all),
            VoteMode::Any => u64::from(any),
            VoteMode::Uniform => u64::from(all || !any),
            VoteMode::Ballot => self.lanes_where(members, |place| votes[place]),
        }
    }

    fn compare_values(
        &mut self,
        members: &[usize],
        values: &[u64],
        all: bool,
        [destination, predicate]: [Slot; 2],
    ) {
        let is_uniform = values.iter().all(|value| *value == values[0]);
        for (place, member) in members.iter().enumerate() {
            let equal = self.lanes_where(members, |other| values[other] == values[place]);
            let result = if all && !is_uniform { 0 } else { equal };
            self.threads[*member].write(destination, result);
            self.threads[*member].write(predicate, u64::from(is_uniform));
        }
    }

    /// Orders all earlier accesses of the members before all later ones of any member.
    fn join_clocks(&mut self, members: &[usize]) {
        let mut joined = [0; 32];
        for member in members {
            for (known, own) in joined.iter_mut().zip(self.threads[*member].clock.iter()) {
                *known = (*known).max(*own);
            }
        }
        for member in members {
            let thread = &mut self.threads[*member];
            *thread.clock = joined;
            let lane = thread.lane() as usize;
            thread.clock[lane] += 1;
        }
    }
}

/// The lane that a shuffle reads and whether it lies within the segment.
fn source_lane(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let most = lane & segment | clamp & !segment;
    let least = lane & segment;
    let (from, is_in_range) = match mode {
        ShuffleMode::Up => (
            lane.wrapping_sub(b),
            i64::from(lane) - i64::from(b) >= i64::from(most),
        ),
        ShuffleMode::Down => (lane + b, lane + b <= most),
        ShuffleMode::Butterfly => (lane ^ b, (lane ^ b) <= most),
        ShuffleMode::Index => {
            let from = least | b & !segment;
            (from, from <= most)
        }
    };
    (if is_in_range { from } else { lane }, is_in_range)
}
