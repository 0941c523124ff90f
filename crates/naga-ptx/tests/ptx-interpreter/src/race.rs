//! Finds unordered conflicting accesses.
//!
//! Every byte stores the accesses that a later one could still conflict with. A plain write without
//! conflicts is ordered after all of them and replaces them. Two readers of a byte are enough to
//! store, in two blocks if there are two: the next writer is unordered with at least one of them.
//!
//! Order comes from barriers of the block, and within a warp from `bar.warp.sync`. Two
//! simplifications cause missed races, never a false report: a barrier that counts only some
//! threads is assumed to order the whole block, and the bytes of two atomic accesses of different
//! sizes are assumed to be atomic with respect to each other. Atomics and fences order no other
//! accesses, so a flag that one block sets for another does not order the plain accesses around it.

use crate::error::{Error, Fault};
use crate::operation::Strength;
use std::collections::HashMap;

/// The accessing thread, and the accesses that it knows to be complete.
#[derive(Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub block: u32,
    pub thread: u32,
    /// The barriers that its block has completed.
    pub epoch: u32,
    /// For each lane of its warp, the last epoch of that lane known to be complete; its own entry
    /// is the current epoch.
    pub clock: &'a [u32; 32],
}

/// A past access.
#[derive(Clone, Copy)]
struct Access {
    block: u32,
    thread: u32,
    epoch: u32,
    stretch: u32,
    strength: Strength,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    plain_write: [Option<Access>; 1],
    plain_reads: [Option<Access>; 2],
    strong_writes: [Option<Access>; 2],
    strong_reads: [Option<Access>; 2],
}

const PAGE: u64 = 64;

/// The accesses of one launch to global memory, or of one block to its shared memory.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: HashMap<u64, Box<[Cell; PAGE as usize]>>,
}

impl Shadow {
    /// Records an access and reports a race with an earlier one.
    pub fn visit(
        &mut self,
        actor: Actor<'_>,
        address: u64,
        len: usize,
        strength: Strength,
        is_write: bool,
    ) -> Result<(), Error> {
        let (mut start, end) = (address, address + len as u64);
        while start < end {
            let page_end = end.min((start / PAGE + 1) * PAGE);
            let page = self
                .pages
                .entry(start / PAGE)
                .or_insert_with(|| Box::new([Cell::default(); PAGE as usize]));
            for byte in start..page_end {
                let cell = &mut page[(byte % PAGE) as usize];
                cell.check(actor, strength, is_write)
                    .map_err(|other| conflict(byte, &other, is_write))?;
                cell.record(actor, strength, is_write);
            }
            start = page_end;
        }
        Ok(())
    }
}

fn conflict(byte: u64, other: &Access, is_write: bool) -> Error {
    let verb = if is_write { "write" } else { "read" };
    Error::fault(
        Fault::Race,
        format!(
            "{verb} of the byte at {byte:#x} is unordered with an access by thread {} of block {} (linear indices)",
            other.thread, other.block
        ),
    )
}

impl Access {
    /// Whether the access is complete for the actor.
    fn is_before(&self, actor: Actor<'_>) -> bool {
        if self.block != actor.block {
            return false;
        }
        let is_same_warp = self.thread / 32 == actor.thread / 32;
        self.thread == actor.thread
            || self.epoch < actor.epoch
            || is_same_warp && actor.clock[(self.thread % 32) as usize] >= self.stretch
    }

    /// Whether two strong accesses are atomic with respect to each other.
    fn is_mutual(&self, actor: Actor<'_>, strength: Strength) -> bool {
        let both_device = self.strength == Strength::Device && strength == Strength::Device;
        both_device || self.block == actor.block
    }
}

impl Cell {
    fn check(&self, actor: Actor<'_>, strength: Strength, is_write: bool) -> Result<(), Access> {
        let is_weak = strength == Strength::Weak;
        let plain_reads = if is_write { &self.plain_reads[..] } else { &[] };
        let strong_reads = if is_write {
            &self.strong_reads[..]
        } else {
            &[]
        };
        let plain = self.plain_write.iter().chain(plain_reads).flatten();
        let strong = self.strong_writes.iter().chain(strong_reads).flatten();
        let conflicting = strong.filter(|other| is_weak || !other.is_mutual(actor, strength));
        plain
            .chain(conflicting)
            .find(|other| !other.is_before(actor))
            .map_or(Ok(()), |other| Err(*other))
    }

    fn record(&mut self, actor: Actor<'_>, strength: Strength, is_write: bool) {
        let access = Access {
            block: actor.block,
            thread: actor.thread,
            epoch: actor.epoch,
            stretch: actor.clock[(actor.thread % 32) as usize],
            strength,
        };
        match (is_write, strength) {
            (true, Strength::Weak) => {
                *self = Cell::default();
                self.plain_write = [Some(access)];
            }
            (true, _) => {
                self.plain_write = [None];
                self.plain_reads = [None; 2];
                remember(&mut self.strong_writes, actor, access);
            }
            (false, Strength::Weak) => remember(&mut self.plain_reads, actor, access),
            (false, _) => remember(&mut self.strong_reads, actor, access),
        }
    }
}

/// Keeps two accesses that are not ordered, in two blocks if possible.
fn remember(kept: &mut [Option<Access>; 2], actor: Actor<'_>, access: Access) {
    for place in kept.iter_mut() {
        if place.is_some_and(|other| other.is_before(actor)) {
            *place = None;
        }
    }
    match kept {
        [first @ None, _] => *first = Some(access),
        [_, second @ None] => *second = Some(access),
        [Some(first), Some(second)] => {
            if first.block == second.block && access.block != first.block {
                *second = access;
            }
        }
    }
}
