//! Work without the interpreter's lock, which Ctrl-C stops.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::OrRaise;

/// Time between two looks at the interpreter's signals.
const INTERVAL: Duration = Duration::from_millis(20);
/// Calls that follow each other faster than this look at the clock only once in `CALLS`.
const FAST: Duration = Duration::from_millis(1);
/// Fast calls between two looks at the clock.
const CALLS: u32 = 16;

/// Whether this process is a fork: it has neither the threads of devices nor what their drivers hold.
static IS_FORK: AtomicBool = AtomicBool::new(false);

/// Marks this process as a fork of one that imported the package.
#[pyfunction]
pub fn after_fork_in_child() {
    IS_FORK.store(true, Ordering::Relaxed);
}

/// Refuses work in a fork.
fn check_fork() -> PyResult<()> {
    if IS_FORK.load(Ordering::Relaxed) {
        return Err(PyRuntimeError::new_err(
            "tectum was imported before this process was forked, and a fork has no threads and no drivers: start processes with multiprocessing's method \
             \"spawn\" or \"forkserver\"",
        ));
    }
    Ok(())
}

/// Runs short work without the interpreter's lock.
///
/// Raises RuntimeError in a fork, and the exception of the error.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> tectum::Result<T> + Send) -> PyResult<T> {
    check_fork()?;
    py.detach(work).or_raise()
}

/// Whether Python wants work to stop: a signal arrived, or a callback raised.
pub struct Interrupt {
    last: Instant,
    /// When the clock was last looked at, and calls until it is again.
    seen: Instant,
    calls: u32,
    raised: Option<PyErr>,
}

impl Interrupt {
    /// Looks at the signals if the last look was long enough ago. To be called from time to time without the interpreter's lock.
    pub fn poll(&mut self) -> ControlFlow<()> {
        if self.raised.is_none() && self.is_due() {
            self.last = self.seen;
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        if self.raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_due(&mut self) -> bool {
        if self.calls > 0 {
            self.calls -= 1;
            return false;
        }
        let before = std::mem::replace(&mut self.seen, Instant::now());
        self.calls = if self.seen - before < FAST { CALLS - 1 } else { 0 };
        self.seen - self.last >= INTERVAL
    }

    /// Stops the work; the exception is raised when it has ended.
    pub fn raise(&mut self, error: PyErr) {
        self.raised.get_or_insert(error);
    }
}

/// Runs work without the interpreter's lock. If a signal or a callback stopped it, the exception of these is raised instead of what the work returned.
///
/// Raises RuntimeError in a fork.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send) -> PyResult<T> {
    check_fork()?;
    let (result, raised) = py.detach(|| {
        let now = Instant::now();
        let mut interrupt = Interrupt { last: now, seen: now, calls: 0, raised: None };
        let result = work(&mut interrupt);
        (result, interrupt.raised)
    });
    raised.map_or(result, Err)
}
