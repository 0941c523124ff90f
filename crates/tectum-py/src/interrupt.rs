//! Work without the interpreter's lock, which Ctrl-C stops and tqdm shows.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::WorkProgress;

use crate::body::locked;
use crate::error::OrRaise;

/// Time between two looks at the interpreter's signals.
const INTERVAL: Duration = Duration::from_millis(20);
/// Calls that follow each other faster than this look at the clock only once in `CALLS`.
const FAST: Duration = Duration::from_millis(1);
/// Fast calls between two looks at the clock.
const CALLS: u32 = 16;

/// Whether this process is a fork: it has neither the threads of devices nor what their drivers
/// hold.
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
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> tectum::Result<T> + Send,
) -> PyResult<T> {
    check_fork()?;
    py.detach(work).or_raise()
}

/// Whether Python wants work to stop: a signal arrived, or a callback raised.
pub struct Interrupt<'w> {
    last: Instant,
    /// When the clock was last looked at, and calls until it is again.
    seen: Instant,
    calls: u32,
    raised: Option<PyErr>,
    bar: Option<Bar>,
    /// Of work on other threads: the thread that called looks at the signals, and shows the
    /// progress.
    caller: Option<&'w Caller>,
}

/// What work on other threads and the thread that called say to each other.
struct Caller {
    is_stopped: AtomicBool,
    /// Whether the progress is shown.
    is_shown: bool,
    /// Stage, steps done, steps in all.
    progress: Mutex<Option<(String, u64, u64)>>,
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
        Ok(Self {
            tqdm: py.import("tqdm.auto")?.getattr("tqdm")?.unbind(),
            stage: String::new(),
            shown: None,
            done: 0,
        })
    }

    fn show(&mut self, py: Python<'_>, progress: WorkProgress<'_>) -> PyResult<()> {
        if self.shown.is_none() || self.stage != progress.stage {
            self.close(py);
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

    /// The result of the work matters more than the end of its bar.
    fn close(&mut self, py: Python<'_>) {
        if let Some(bar) = self.shown.take() {
            let _ = bar.call_method0(py, "close");
        }
    }
}

impl Interrupt<'_> {
    /// As `poll`, and shows the progress of the work.
    pub fn watch(&mut self, progress: WorkProgress<'_>) -> ControlFlow<()> {
        if let Some(caller) = self.caller.filter(|caller| caller.is_shown) {
            *locked(&caller.progress) =
                Some((progress.stage.to_owned(), progress.done, progress.total));
        }
        let is_last = progress.done >= progress.total;
        if self.bar.as_ref().is_some_and(|bar| {
            is_last || bar.stage != progress.stage || self.last.elapsed() >= INTERVAL
        }) {
            let shown = Python::attach(|py| {
                self.bar
                    .as_mut()
                    .map_or(Ok(()), |bar| bar.show(py, progress))
            });
            if let Err(error) = shown {
                self.raise(error);
            }
        }
        self.poll()
    }

    /// Looks at the signals if the last look was long enough ago. To be called from time to time
    /// without the interpreter's lock.
    pub fn poll(&mut self) -> ControlFlow<()> {
        if self.raised.is_none() && self.caller.is_none() && self.is_due() {
            self.last = self.seen;
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        let is_stopped = self
            .caller
            .is_some_and(|caller| caller.is_stopped.load(Ordering::Relaxed));
        if self.raised.is_some() || is_stopped {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn is_due(&mut self) -> bool {
        if self.calls > 0 {
            self.calls -= 1;
            return false;
        }
        let before = std::mem::replace(&mut self.seen, Instant::now());
        self.calls = if self.seen - before < FAST {
            CALLS - 1
        } else {
            0
        };
        self.seen - self.last >= INTERVAL
    }

    /// Stops the work; the exception is raised when it has ended.
    pub fn raise(&mut self, error: PyErr) {
        self.raised.get_or_insert(error);
    }
}

/// Long work that may begin: this process is no fork, and tqdm exists if it is to show the
/// progress.
pub struct LongWork {
    bar: Option<Bar>,
}

impl LongWork {
    /// Raises RuntimeError in a fork, ModuleNotFoundError with `progress` but without tqdm.
    pub fn new(py: Python<'_>, progress: bool) -> PyResult<Self> {
        check_fork()?;
        Ok(Self {
            bar: if progress { Some(Bar::new(py)?) } else { None },
        })
    }

    /// Runs the work on this thread without the interpreter's lock. If a signal or a callback
    /// stopped it, the exception of these is raised instead of what the work returned.
    pub fn run<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt<'_>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let now = Instant::now();
        let mut interrupt = Interrupt {
            last: now,
            seen: now,
            calls: 0,
            raised: None,
            bar: self.bar,
            caller: None,
        };
        let result = py.detach(|| work(&mut interrupt));
        interrupt.bar.iter_mut().for_each(|bar| bar.close(py));
        interrupt.raised.map_or(result, Err)
    }

    /// As `run`, for work that moves to threads where Python does not see signals: this one waits
    /// for it, looks at the signals and shows the progress.
    pub fn run_elsewhere<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt<'_>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let (mut raised, mut bar) = (None, self.bar);
        let caller = Caller {
            is_stopped: AtomicBool::new(false),
            is_shown: bar.is_some(),
            progress: Mutex::default(),
        };
        let result = py.detach(|| {
            std::thread::scope(|scope| {
                let (ended, end) = channel::<()>();
                let caller = &caller;
                let worker = scope.spawn(move || {
                    let now = Instant::now();
                    let mut interrupt = Interrupt {
                        last: now,
                        seen: now,
                        calls: 0,
                        raised: None,
                        bar: None,
                        caller: Some(caller),
                    };
                    let result = work(&mut interrupt);
                    drop(ended);
                    interrupt.raised.map_or(result, Err)
                });
                while end.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    look(caller, &mut bar, &mut raised);
                }
                look(caller, &mut bar, &mut raised);
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        bar.iter_mut().for_each(|bar| bar.close(py));
        raised.map_or(result, Err)
    }
}

/// What the thread that called does from time to time.
fn look(caller: &Caller, bar: &mut Option<Bar>, raised: &mut Option<PyErr>) {
    if raised.is_some() {
        return;
    }
    let progress = locked(&caller.progress).take();
    let looked = Python::attach(|py| {
        if let (Some(bar), Some((stage, done, total))) = (bar, progress) {
            bar.show(
                py,
                WorkProgress {
                    stage: &stage,
                    done,
                    total,
                },
            )?;
        }
        py.check_signals()
    });
    if let Err(error) = looked {
        *raised = Some(error);
        caller.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs long work on this thread, as `LongWork`.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    progress: bool,
    work: impl FnOnce(&mut Interrupt<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    LongWork::new(py, progress)?.run(py, work)
}
