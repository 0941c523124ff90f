//! Work without the interpreter's lock, which Ctrl-C stops and tqdm shows.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::WorkProgress;

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
    bar: Option<Bar>,
}

/// A bar of tqdm for each stage of the work.
struct Bar {
    /// The class.
    tqdm: Py<PyAny>,
    stage: String,
    shown: Option<Py<PyAny>>,
    done: u64,
}

impl Bar {
    fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self { tqdm: py.import("tqdm.auto")?.getattr("tqdm")?.unbind(), stage: String::new(), shown: None, done: 0 })
    }

    fn show(&mut self, py: Python<'_>, progress: WorkProgress<'_>) -> PyResult<()> {
        if self.shown.is_none() || self.stage != progress.stage {
            self.close(py)?;
            let settings = PyDict::new(py);
            settings.set_item("total", progress.total)?;
            settings.set_item("desc", progress.stage)?;
            self.shown = Some(self.tqdm.call(py, (), Some(&settings))?);
            (self.stage, self.done) = (progress.stage.to_owned(), 0);
        }
        if let Some(bar) = &self.shown {
            bar.call_method1(py, "update", (progress.done.saturating_sub(self.done),))?;
            self.done = self.done.max(progress.done);
        }
        Ok(())
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        self.shown.take().map_or(Ok(()), |bar| bar.call_method0(py, "close").map(drop))
    }
}

impl Interrupt {
    /// As `poll`, and shows the progress of the work.
    pub fn watch(&mut self, progress: WorkProgress<'_>) -> ControlFlow<()> {
        let is_last = progress.done >= progress.total;
        if self.bar.as_ref().is_some_and(|bar| is_last || bar.stage != progress.stage || self.last.elapsed() >= INTERVAL) {
            let shown = Python::attach(|py| self.bar.as_mut().map_or(Ok(()), |bar| bar.show(py, progress)));
            if let Err(error) = shown {
                self.raise(error);
            }
        }
        self.poll()
    }

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
/// With `progress`, tqdm shows it. Raises RuntimeError in a fork, ModuleNotFoundError without tqdm.
pub fn interruptible<T: Send>(py: Python<'_>, progress: bool, work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send) -> PyResult<T> {
    check_fork()?;
    let bar = if progress { Some(Bar::new(py)?) } else { None };
    let now = Instant::now();
    let mut interrupt = Interrupt { last: now, seen: now, calls: 0, raised: None, bar };
    let result = py.detach(|| work(&mut interrupt));
    let closed = interrupt.bar.map_or(Ok(()), |mut bar| bar.close(py));
    interrupt.raised.map_or(result, Err).and_then(|value| closed.map(|()| value))
}
