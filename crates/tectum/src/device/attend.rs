//! Threads that stay awake between the launches of a run.
//!
//! A thread of rayon's pool that finds nothing to do sleeps after some 10 µs, and waking it takes 10 to 50 µs: more than many a launch. Of a run whose
//! launches are shared, the pool's other threads look for tasks from its first launch to its last.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a thread looks for a task before it goes back to where it may sleep.
const PATIENCE: Duration = Duration::from_micros(500);
/// Looks between two at the clock.
const LOOKS: usize = 64;

thread_local! {
    /// Whether this thread runs launches.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Sets a flag when it goes, by a panic too.
struct AtEnd<F: Fn()>(F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Does `work` on a thread of the pool with so many threads awake, itself among them.
pub(super) fn attended<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    if threads <= 1 {
        return work();
    }
    let is_over = &AtomicBool::new(false);
    rayon::scope(|scope| {
        let was = RUNS.replace(true);
        let _end = AtEnd(|| {
            is_over.store(true, Ordering::Relaxed);
            RUNS.set(was);
        });
        for _ in 1..threads {
            scope.spawn(|_| attend(is_over));
        }
        work()
    })
}

/// Does tasks of the pool until the run is over. A thread that runs launches itself, and only came by while it waited, does not stay.
fn attend(is_over: &AtomicBool) {
    if RUNS.get() {
        return;
    }
    let mut last = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            match rayon::yield_now() {
                Some(rayon::Yield::Executed) => last = Instant::now(),
                _ => std::hint::spin_loop(),
            }
        }
        if last.elapsed() > PATIENCE {
            return;
        }
    }
}
