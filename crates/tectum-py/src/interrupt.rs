//! Work without the interpreter's lock, which Ctrl-C stops and tqdm shows.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::WorkProgress;

use crate::error::OrRaise;
use crate::job::{become_job, new_number, waiting_for};
use crate::mutex::locked;
use crate::process;

/// Time between two looks at the interpreter's signals.
pub const INTERVAL: Duration = Duration::from_millis(20);
/// Work that does not look at signals for longer than this moves to a thread of its own the next
/// time.
pub const SLOW: Duration = Duration::from_millis(10);
/// How long a call waits for work that has to end, before it leaves the work behind.
const GRACE: Duration = Duration::from_millis(60);
/// Calls that follow each other faster than this look at the clock only once in `CALLS`.
const FAST: Duration = Duration::from_millis(1);
/// Fast calls between two looks at the clock.
const CALLS: u32 = 16;
/// Memory for the stack of a job, as much as Python's main thread has.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// What was raised inside a log record on this thread, for the call that logged.
    static RAISED_IN_LOG: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps what was raised inside a log record, until the work that logged ends.
pub fn raise_after_log(error: PyErr) {
    RAISED_IN_LOG.with_borrow_mut(|raised| {
        raised.get_or_insert(error);
    });
}

/// The exception of a log record of this thread, if there is one.
fn check_log() -> PyResult<()> {
    RAISED_IN_LOG
        .with_borrow_mut(Option::take)
        .map_or(Ok(()), Err)
}

/// Runs short work without the interpreter's lock, on this thread.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> tectum::Result<T> + Send,
) -> PyResult<T> {
    let result = process::detach(py, work);
    check_log()?;
    result.or_raise()
}

/// Runs work that may take long without the interpreter's lock: on Python's main thread on a thread
/// of its own, as `Exclusive::run`.
pub fn run_long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> tectum::Result<T> + Send + 'static,
) -> PyResult<T> {
    LongWork::silent().run(py, |_| work().or_raise())
}

/// Whether Python wants work to stop: a signal arrived, or a callback raised.
pub struct Interrupt {
    last: Instant,
    /// When the clock was last looked at, and calls until it is again.
    seen: Instant,
    calls: u32,
    /// The longest time between two looks at the clock.
    longest: Duration,
    raised: Option<PyErr>,
    bar: Option<Bar>,
    /// Of work on a thread of its own: the thread that called looks at the signals, and shows the
    /// progress.
    caller: Option<Arc<Caller>>,
}

/// What work on a thread of its own and the thread that called say to each other.
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

impl Interrupt {
    fn new(bar: Option<Bar>, caller: Option<Arc<Caller>>) -> Self {
        let now = Instant::now();
        Self {
            last: now,
            seen: now,
            calls: 0,
            longest: Duration::ZERO,
            raised: None,
            bar,
            caller,
        }
    }

    /// As `poll`, and shows the progress of the work.
    pub fn watch(&mut self, progress: WorkProgress<'_>) -> ControlFlow<()> {
        if let Some(caller) = self.caller.as_ref().filter(|caller| caller.is_shown) {
            *locked(&caller.progress) =
                Some((progress.stage.to_owned(), progress.done, progress.total));
        }
        let is_last = progress.done >= progress.total;
        if self.bar.as_ref().is_some_and(|bar| {
            is_last || bar.stage != progress.stage || self.last.elapsed() >= INTERVAL
        }) {
            let shown = process::attach(|py| {
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
        if self.raised.is_none() && self.is_due() {
            self.last = self.seen;
            if self.caller.is_none() && process::is_known_main() {
                self.raised = process::attach(|py| py.check_signals()).err();
            }
        }
        let is_stopped = self
            .caller
            .as_ref()
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
        self.calls = if self.look() < FAST { CALLS - 1 } else { 0 };
        self.seen - self.last >= INTERVAL
    }

    /// Looks at the clock, and returns the time since the last look.
    fn look(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.seen, Instant::now());
        self.longest = self.longest.max(self.seen - before);
        self.seen - before
    }

    /// The longest time so far in which signals had to wait.
    pub fn longest(&mut self) -> Duration {
        self.look();
        self.longest
    }

    /// Stops the work; the exception is raised when it has ended.
    pub fn raise(&mut self, error: PyErr) {
        self.raised.get_or_insert(error);
    }
}

/// Ends what does not look whether it is to end.
type Stop = Box<dyn FnOnce(Python<'_>)>;

/// Long work that may begin: tqdm exists if it is to show the progress.
pub struct LongWork {
    bar: Option<Bar>,
    /// Ends what does not look whether it is to end.
    stop: Option<Stop>,
}

impl LongWork {
    /// Raises ModuleNotFoundError with `progress` but without tqdm.
    pub fn new(py: Python<'_>, progress: bool) -> PyResult<Self> {
        Ok(Self {
            bar: if progress { Some(Bar::new(py)?) } else { None },
            stop: None,
        })
    }

    /// Work whose progress is not shown.
    pub fn silent() -> Self {
        Self {
            bar: None,
            stop: None,
        }
    }

    /// With what ends the work where it does not look whether it is to end.
    pub fn ended_by(self, stop: impl FnOnce(Python<'_>) + 'static) -> Self {
        Self {
            stop: Some(Box::new(stop)),
            ..self
        }
    }

    /// Runs the work without the interpreter's lock. If a signal or a callback stopped it, the
    /// exception of these is raised instead of what the work returned.
    ///
    /// Python's main thread gives the work to a thread of its own. If a handler of signals raises
    /// there and the work does not end soon, it continues without a caller.
    pub fn run<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        self.finish(py, work)?.into_result()
    }

    /// As `run`, with what the work returned next to the exception that stopped it.
    pub fn finish<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send + 'static,
    ) -> PyResult<Finished<T>> {
        if process::is_main(py) {
            self.finish_as(py, new_number(), work)
        } else {
            Ok(self.finish_here(py, work))
        }
    }

    /// As `run`, always on this thread, for work that calls functions of Python.
    pub fn run_here<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.finish_here(py, work).into_result()
    }

    /// As `finish`, always on this thread.
    pub fn finish_here<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send,
    ) -> Finished<T> {
        let mut interrupt = Interrupt::new(self.bar, None);
        let result = process::detach(py, || work(&mut interrupt));
        interrupt.bar.iter_mut().for_each(|bar| bar.close(py));
        let raised_in_log = check_log().err();
        Finished {
            result,
            raised: interrupt.raised.or(raised_in_log),
        }
    }

    /// As `run`, on a thread of its own, as the job of a number.
    pub fn run_as<T: Send + 'static>(
        self,
        py: Python<'_>,
        number: u64,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        self.finish_as(py, number, work)?.into_result()
    }

    fn finish_as<T: Send + 'static>(
        self,
        py: Python<'_>,
        number: u64,
        work: impl FnOnce(&mut Interrupt) -> PyResult<T> + Send + 'static,
    ) -> PyResult<Finished<T>> {
        let (mut bar, stop) = (self.bar, self.stop);
        let caller = Arc::new(Caller {
            is_stopped: AtomicBool::new(false),
            is_shown: bar.is_some(),
            progress: Mutex::default(),
        });
        let job = Arc::new(Job {
            state: Mutex::new(JobState::Running),
            ended: Condvar::new(),
        });
        let (on_thread, called_by) = (job.clone(), caller.clone());
        let run = move || {
            become_job(number);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut interrupt = Interrupt::new(None, Some(called_by));
                let result = work(&mut interrupt);
                Finished {
                    result,
                    raised: interrupt.raised,
                }
            }));
            on_thread.end(ended);
        };
        std::thread::Builder::new()
            .name("tectum-call".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(run)?;
        let waited = waiting_for(number, || job.wait(py, &caller, &mut bar, stop));
        bar.iter_mut().for_each(|bar| bar.close(py));
        waited
    }
}

/// What work returned, and the exception that stopped it.
pub struct Finished<T> {
    pub result: PyResult<T>,
    pub raised: Option<PyErr>,
}

impl<T> Finished<T> {
    fn into_result(self) -> PyResult<T> {
        self.raised.map_or(self.result, Err)
    }
}

/// Work on a thread of its own.
struct Job<T> {
    state: Mutex<JobState<T>>,
    ended: Condvar,
}

enum JobState<T> {
    Running,
    Ended(std::thread::Result<Finished<T>>),
    /// No one waits for it any more.
    Left,
}

impl<T: Send> Job<T> {
    fn end(&self, ended: std::thread::Result<Finished<T>>) {
        let mut state = locked(&self.state);
        if matches!(*state, JobState::Running) {
            *state = JobState::Ended(ended);
            self.ended.notify_one();
            return;
        }
        // What it holds is free again only now.
        drop(state);
        drop(ended);
    }

    /// What it returned, if it ends within a time.
    fn ended_within(&self, time: Duration) -> Option<std::thread::Result<Finished<T>>> {
        let state = locked(&self.state);
        let (mut state, _) = self
            .ended
            .wait_timeout_while(state, time, |state| matches!(state, JobState::Running))
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, JobState::Running) {
            JobState::Ended(ended) => Some(ended),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Waits for the end; looks at the signals and shows the progress until then.
    fn wait(
        &self,
        py: Python<'_>,
        caller: &Caller,
        bar: &mut Option<Bar>,
        stop: Option<Stop>,
    ) -> PyResult<Finished<T>> {
        let received = |ended: std::thread::Result<Finished<T>>| {
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        loop {
            let ended = process::detach(py, || self.ended_within(INTERVAL));
            let raised = look(py, caller, bar).err();
            if let Some(ended) = ended {
                let finished = received(ended);
                return Ok(Finished {
                    raised: raised.or(finished.raised),
                    ..finished
                });
            }
            if let Some(error) = raised {
                caller.is_stopped.store(true, Ordering::Relaxed);
                if let Some(stop) = stop {
                    stop(py);
                }
                if let Some(ended) = process::detach(py, || self.ended_within(GRACE)) {
                    return Ok(Finished {
                        raised: Some(error),
                        ..received(ended)
                    });
                }
                return match std::mem::replace(&mut *locked(&self.state), JobState::Left) {
                    JobState::Ended(ended) => Ok(Finished {
                        raised: Some(error),
                        ..received(ended)
                    }),
                    JobState::Running | JobState::Left => Err(error),
                };
            }
        }
    }
}

/// What the thread that called does from time to time.
fn look(py: Python<'_>, caller: &Caller, bar: &mut Option<Bar>) -> PyResult<()> {
    let progress = locked(&caller.progress).take();
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
}
