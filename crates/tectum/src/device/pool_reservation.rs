//! How a run reserves a pool and passes its work to it.
//!
//! `tests/models.rs` checks this file under every order in which threads can be scheduled.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::sync::Arc;
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::mpsc::channel;

/// Whether a pool shares a run.
#[derive(Debug, Clone)]
pub(super) struct PoolReservation(Arc<AtomicBool>);

/// A pool reserved for the launches of this run; released when this is dropped.
pub(super) struct ReservationGuard(PoolReservation);

impl PoolReservation {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Reserves the pool for one run; none if another run has it.
    pub(super) fn try_reserve(&self) -> Option<ReservationGuard> {
        self.0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| ReservationGuard(self.clone()))
    }
}

impl Drop for ReservationGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// Does `work` on the thread that `spawn` gives its task to, and waits for it without doing
/// anything else.
pub(super) fn spawn_and_wait<R: Send>(
    spawn: impl FnOnce(Box<dyn FnOnce() + Send + 'static>),
    work: impl FnOnce() -> R + Send,
) -> R {
    let (send, made) = channel::<Result<R, Box<dyn Any + Send>>>();
    let task: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        let made = catch_unwind(AssertUnwindSafe(work));
        // The receiver outlives the task.
        let _ = send.send(made);
    });
    // SAFETY: the task is done, and all that it borrowed released, when `recv` returns what it
    // sent; it sends exactly once, also on a panic, and this thread does not leave before. After
    // that the task accesses only its end of the channel, which owns what it holds.
    let task = unsafe {
        std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send + 'static>>(
            task,
        )
    };
    spawn(task);
    match made.recv().expect("invariant: the task sends once") {
        Ok(made) => made,
        Err(panic) => resume_unwind(panic),
    }
}
