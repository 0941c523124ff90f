//! Numbers of threads and of jobs: work that a call moved to a thread of its own.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The number of this thread, or of the job that it runs.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    /// The jobs that this thread waits for.
    static JOBS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A number that no thread and no job has.
pub fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes this thread that of a job.
pub fn become_job(number: u64) {
    NUMBER.set(number);
}

/// Runs `wait` on the thread that waits for a job: what it calls until then, such as a
/// handler of signals, is part of the job's call.
pub fn waiting_for<R>(job: u64, wait: impl FnOnce() -> R) -> R {
    JOBS.with_borrow_mut(|jobs| jobs.push(job));
    let result = wait();
    JOBS.with_borrow_mut(|jobs| jobs.retain(|other| *other != job));
    result
}

/// The number of this thread or of its job.
pub fn this_thread() -> u64 {
    if NUMBER.get() == 0 {
        NUMBER.set(new_number());
    }
    NUMBER.get()
}

/// Whether the call of a number waits for this thread.
pub fn is_own(number: u64) -> bool {
    number == this_thread() || JOBS.with_borrow(|jobs| jobs.contains(&number))
}
