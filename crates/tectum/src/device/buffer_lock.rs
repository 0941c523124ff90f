//! Locks for memory that several runs and the host share: writers have exclusive access, readers
//! share it.
//!
//! `tests/models.rs` checks this file under every order in which threads can be scheduled.

use std::sync::PoisonError;

use super::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock of one buffer.
#[derive(Debug)]
pub(super) struct BufferLock(RwLock<()>);

/// A lock on one buffer, released when this is dropped.
pub(super) enum BufferGuard<'a> {
    /// Shared with other readers.
    Reads { _guard: RwLockReadGuard<'a, ()> },
    /// Exclusive.
    Writes { _guard: RwLockWriteGuard<'a, ()> },
}

impl BufferLock {
    pub(super) fn new() -> Self {
        Self(RwLock::new(()))
    }

    /// Waits for the lock.
    pub(super) fn lock(&self, writes: bool) -> BufferGuard<'_> {
        if writes {
            BufferGuard::Writes {
                _guard: self.0.write().unwrap_or_else(PoisonError::into_inner),
            }
        } else {
            BufferGuard::Reads {
                _guard: self.0.read().unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The locks of one run.
#[derive(Debug)]
pub(super) struct BufferLocks {
    /// Index of the buffer and whether the run writes it, in the global order in which every run
    /// takes its locks, so that no two wait for each other.
    order: Vec<(usize, bool)>,
}

impl BufferLocks {
    /// The locks of these buffers, given by address and whether the run writes them; one lock per
    /// address.
    pub(super) fn new(buffers: impl IntoIterator<Item = (usize, usize, bool)>) -> Self {
        let mut buffers: Vec<_> = buffers.into_iter().collect();
        buffers.sort_unstable_by_key(|&(_, address, writes)| (address, !writes));
        buffers.dedup_by_key(|&mut (_, address, _)| address);
        Self {
            order: buffers
                .into_iter()
                .map(|(buffer, _, writes)| (buffer, writes))
                .collect(),
        }
    }

    /// Does `work` while the run holds all its locks.
    pub(super) fn with_locks<'a, R>(
        &self,
        lock_of: &dyn Fn(usize) -> &'a BufferLock,
        work: impl FnOnce() -> R,
    ) -> R {
        with_locks(&self.order, lock_of, work)
    }
}

/// Locks are released as the recursion unwinds, so that a waiting run allocates nothing.
fn with_locks<'a, R>(
    order: &[(usize, bool)],
    lock_of: &dyn Fn(usize) -> &'a BufferLock,
    work: impl FnOnce() -> R,
) -> R {
    match order {
        [] => work(),
        [(buffer, writes), rest @ ..] => {
            let _turn = lock_of(*buffer).lock(*writes);
            with_locks(rest, lock_of, work)
        }
    }
}
