//! The loop of a body and a brain, and what a run of it recorded.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tectum::{Device, Result, WorkProgress};
use tectum_control::body as bodies;
use tectum_control::body::motors::{Driven, MotorRule};
use tectum_control::brain as brains;
use tectum_control::clock::{Clock, ClockKind};
use tectum_control::closed_loop::{
    ClosedLoop, End, LoopSettings, Outcome, Progress, Sink, TickRecord,
};
use tectum_control::live::{Controls, Pace};

use crate::body::{BodySpec, Lent, NativeBody, PythonBody, Raised, spec_of};
use crate::brain::{NativeBrain, PythonBrain};
use crate::error::{OrRaise, exception};
use crate::interrupt::{Finished, INTERVAL, Interrupt, LongWork};
use crate::mutex::locked;
use crate::process;
use crate::receipt::Receipt;
use crate::whole;

/// A clock by its name in scenarios.
pub fn clock_kind(name: &str) -> PyResult<ClockKind> {
    match name {
        "real" => Ok(ClockKind::Real),
        "sim" => Ok(ClockKind::Sim),
        _ => Err(PyValueError::new_err(format!(
            "clock is {name:?}, needs \"real\" or \"sim\""
        ))),
    }
}

/// The progress of a loop.
pub fn running(done: &Progress) -> WorkProgress<'static> {
    WorkProgress {
        stage: "running",
        done: done.tick,
        total: done.ticks,
    }
}

/// A clock whose waits end when the work is interrupted; its time is then that of the end of the
/// wait.
pub struct PolledClock<'a, 'w> {
    clock: Box<dyn Clock>,
    /// The end of a wait that was interrupted.
    skipped_to_ns: u64,
    interrupt: &'a RefCell<&'w mut Interrupt>,
    /// Where those who watch set the pace of a simulated clock, and what ends its waits.
    pace: Option<(Pace, &'a AtomicBool)>,
}

impl<'a, 'w> PolledClock<'a, 'w> {
    /// A clock of a kind, at 0.
    pub fn start(kind: ClockKind, interrupt: &'a RefCell<&'w mut Interrupt>) -> Self {
        Self {
            clock: kind.start(),
            skipped_to_ns: 0,
            interrupt,
            pace: None,
        }
    }

    /// With the pace of those who watch, under a simulated clock; `stop` ends the run.
    pub fn at_pace(self, controls: Option<&Controls>, stop: &'a AtomicBool) -> Self {
        let pace = controls.filter(|_| !self.clock.is_real());
        Self {
            pace: pace.map(|controls| (Pace::new(controls.clone()), stop)),
            ..self
        }
    }
}

impl Clock for PolledClock<'_, '_> {
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns().max(self.skipped_to_ns)
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        if let Some((pace, stop)) = &mut self.pace {
            let interrupt = self.interrupt;
            pace.wait(deadline_ns, &|| {
                stop.load(Ordering::Relaxed) || interrupt.borrow_mut().poll().is_break()
            });
        }
        let interval_ns = INTERVAL.as_nanos() as u64 / 2;
        while self.clock.is_real() && deadline_ns > self.clock.now_ns() + interval_ns {
            let next_ns = self.clock.now_ns() + interval_ns;
            self.clock.wait_until(next_ns);
            if self.interrupt.borrow_mut().poll().is_break() {
                self.skipped_to_ns = deadline_ns;
                return 0;
            }
        }
        self.clock.wait_until(deadline_ns)
    }

    fn is_real(&self) -> bool {
        self.clock.is_real()
    }
}

/// Ends a run of a loop from any thread: a `StopSignal` is given to `run_loop` or `run`, and `stop`
/// ends the run after its present period. The run returns what it recorded, with `end` "stopped".
///
/// >>> import threading, tectum as tt
/// >>> signal = tt.StopSignal()
/// >>> threading.Timer(0.1, signal.stop).start()
/// >>> run = tt.run_loop(tt.body("pendulum"), tt.brain("lqr", "pendulum"), seconds=60, stop=signal)
/// >>> run.end, len(run) > 0, signal.is_stopped
/// ('stopped', True, True)
#[pyclass(frozen, module = "tectum")]
pub struct StopSignal {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl StopSignal {
    #[new]
    fn new() -> Self {
        Self {
            flag: Arc::default(),
        }
    }

    /// Ends the runs that have this signal. It cannot be taken back: another run needs another
    /// signal.
    fn stop(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether `stop` was called.
    #[getter]
    fn is_stopped(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        let state = if self.is_stopped() {
            "stopped"
        } else {
            "not stopped"
        };
        format!("<tectum stop signal: {state}>")
    }
}

/// The flag of a signal, for a loop.
pub fn stop_flag(signal: Option<&StopSignal>) -> Arc<AtomicBool> {
    signal.map_or_else(Arc::default, |signal| signal.flag.clone())
}

/// Every period of a run, as arrays.
#[derive(Default)]
pub struct Periods {
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f64>,
    held: Vec<bool>,
    fallback: Vec<bool>,
    ended: Vec<bool>,
    latency_s: Vec<f64>,
}

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.observations.extend_from_slice(record.observation);
        self.actions.extend_from_slice(record.action);
        self.rewards.push(record.reward);
        self.held.push(record.held);
        self.fallback.push(record.fallback);
        self.ended.push(record.terminated);
        self.latency_s.push(
            record
                .timing
                .map_or(f64::NAN, |timing| timing.latency_ns as f64 * 1e-9),
        );
        Ok(())
    }
}

/// An array that callers can read and not write. They can still change its type and shape in place,
/// so that no function of this package reads it again.
pub fn read_only<'py, T: Element, D: numpy::ndarray::Dimension>(
    array: Bound<'py, numpy::PyArray<T, D>>,
) -> PyResult<Py<numpy::PyArray<T, D>>> {
    let read_only = array.try_readwrite()?.make_nonwriteable();
    Ok((*read_only).clone().unbind())
}

/// Numbers as an array of rows.
pub fn read_only_rows<T: Element>(
    py: Python<'_>,
    numbers: Vec<T>,
    sizes: [usize; 2],
) -> PyResult<Py<PyArray2<T>>> {
    read_only(PyArray1::from_vec(py, numbers).reshape(sizes)?)
}

/// What a run of a loop recorded: one row for each period. Its arrays are read-only.
#[pyclass(frozen, module = "tectum")]
pub struct Run {
    /// Observations, float32 of shape (periods, channels).
    #[pyo3(get)]
    observations: Py<PyArray2<f32>>,
    /// Actions that the body received, float32 of shape (periods, channels).
    #[pyo3(get)]
    actions: Py<PyArray2<f32>>,
    /// Rewards, float64 of shape (periods,).
    #[pyo3(get)]
    rewards: Py<PyArray1<f64>>,
    /// Whether an answer was late, so that the body received the one before.
    #[pyo3(get)]
    held: Py<PyArray1<bool>>,
    /// Whether the brain failed, so that the body received its safe action.
    #[pyo3(get)]
    fallback: Py<PyArray1<bool>>,
    /// Whether the episode ended with the period.
    #[pyo3(get)]
    ended: Py<PyArray1<bool>>,
    /// Host time of each answer in seconds; NaN where it was not measured.
    #[pyo3(get)]
    latency: Py<PyArray1<f64>>,
    /// Time between two rows, in seconds.
    #[pyo3(get)]
    dt: f64,
    /// Sum of the rewards.
    #[pyo3(get)]
    total_reward: f64,
    /// Number of periods.
    rows: usize,
    /// "completed", "stopped" by a `StopSignal`, "interrupted" by an exception, or "failed" by an
    /// error of the loop.
    #[pyo3(get)]
    end: &'static str,
    /// Results of the task by name; None without a task.
    #[pyo3(get)]
    task: Option<Py<PyAny>>,
    /// Periods whose answer was late.
    #[pyo3(get)]
    deadline_misses: u64,
    /// On which device and by which code it was computed.
    #[pyo3(get)]
    receipt: Py<Receipt>,
    /// The run folder; None if none was requested.
    #[pyo3(get)]
    folder: Option<PathBuf>,
    /// The constants of the body, with names and units of the columns.
    #[pyo3(get)]
    spec: Py<BodySpec>,
}

impl Run {
    pub fn new(
        py: Python<'_>,
        periods: Periods,
        outcome: Outcome,
        spec: &bodies::BodySpec,
        folder: Option<PathBuf>,
        end: &'static str,
    ) -> PyResult<Self> {
        let rows = periods.rewards.len();
        let task = outcome
            .task
            .as_ref()
            .map(|task| crate::json::to_python(py, task).map(Bound::unbind))
            .transpose()?;
        let observations = [rows, spec.observation_len()];
        Ok(Self {
            observations: read_only_rows(py, periods.observations, observations)?,
            actions: read_only_rows(py, periods.actions, [rows, spec.action.len()])?,
            total_reward: periods.rewards.iter().sum(),
            rows,
            rewards: read_only(PyArray1::from_vec(py, periods.rewards))?,
            held: read_only(PyArray1::from_vec(py, periods.held))?,
            fallback: read_only(PyArray1::from_vec(py, periods.fallback))?,
            ended: read_only(PyArray1::from_vec(py, periods.ended))?,
            latency: read_only(PyArray1::from_vec(py, periods.latency_s))?,
            dt: spec.dt_s,
            end,
            task,
            deadline_misses: outcome.metrics.deadline_misses,
            receipt: Py::new(py, Receipt::new(outcome.receipt))?,
            folder,
            spec: Py::new(py, BodySpec::of(spec))?,
        })
    }
}

/// What a loop left, however it ended.
pub struct Ended {
    pub periods: Periods,
    pub outcome: Outcome,
    pub spec: bodies::BodySpec,
    pub folder: Option<PathBuf>,
    pub is_stopped: bool,
}

/// The run of a loop. If the loop ended by an exception, this is raised with the run so far as its
/// attribute `run`.
pub fn run_of(py: Python<'_>, finished: Finished<Ended>) -> PyResult<Run> {
    let mut ended = finished.result.map_err(|error| match &finished.raised {
        Some(raised) => raised.clone_ref(py),
        None => error,
    })?;
    let (end, failed) = match std::mem::replace(&mut ended.outcome.end, End::Completed) {
        End::Completed => ("completed", None),
        End::Interrupted if finished.raised.is_none() && ended.is_stopped => ("stopped", None),
        End::Interrupted => ("interrupted", None),
        End::Failed(error) => ("failed", Some(exception(error))),
    };
    let run = Run::new(
        py,
        ended.periods,
        ended.outcome,
        &ended.spec,
        ended.folder,
        end,
    )?;
    match finished.raised.or(failed) {
        None => Ok(run),
        Some(error) => {
            // An exception without attributes of its own is raised all the same.
            let _ = error.value(py).setattr("run", Py::new(py, run)?);
            Err(error)
        }
    }
}

#[pymethods]
impl Run {
    /// The beginning of each period in the body's time, float64 of shape (periods,), in seconds.
    #[getter]
    fn t<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(
            py,
            (0..self.rows).map(|row| row as f64 * self.dt).collect(),
        ))
    }

    /// Draws each channel over time by matplotlib, and returns the figure, which pyplot keeps until
    /// `matplotlib.pyplot.close(figure)`.
    fn plot<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("tectum.plots")?
            .call_method1("plot_run", (this,))
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    fn _repr_html_(&self) -> String {
        let rows = [
            (
                "periods",
                format!("{} of {} s, {}", self.rows, self.dt, self.end),
            ),
            ("return", self.total_reward.to_string()),
            ("deadline misses", self.deadline_misses.to_string()),
            ("device", self.receipt.get().device().to_owned()),
            ("trace", self.receipt.get().trace().unwrap_or_default()),
        ];
        crate::html::table(
            &format!("run of body {}", self.spec.get().inner.name),
            &rows,
        )
    }

    fn __repr__(&self) -> String {
        let rows = self.rows;
        format!(
            "<tectum run: {rows} periods of {} s, {}, {} deadline misses>",
            self.dt, self.end, self.deadline_misses
        )
    }
}

/// A body and a brain, run together on time.
///
/// `body` is a built-in one (`tectum.body`) or an object with `spec`, `reset(seed)` and
/// `step(action)`; `brain` a built-in one (`tectum.brain`, `tectum.Policy`) or an object with
/// `tick(observation)`. With `clock="real"` periods begin on time and an answer that is late is
/// counted, with `clock="sim"` time is simulated and nothing is late. With `progress`, tqdm shows
/// the periods. `stop` ends the run from another thread.
///
/// Body and brain can be used again when it has ended, however it ended: the body is in the state
/// after the last period, and a built-in brain begins another episode. An exception, also Ctrl-C,
/// has the periods so far as its attribute `run`, except where a built-in brain needs more than
/// 0.06 seconds to end its tick: body and brain are free when that tick has ended.
#[pyfunction]
#[pyo3(signature = (body, brain, *, seconds = 60.0, clock = "real", seed: "int" = 1, progress = false, stop = None))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn run_loop(
    py: Python<'_>,
    body: &Bound<'_, PyAny>,
    brain: &Bound<'_, PyAny>,
    seconds: f64,
    clock: &str,
    #[pyo3(from_py_with = whole::seed)] seed: u64,
    progress: bool,
    stop: Option<&StopSignal>,
) -> PyResult<Run> {
    let _call = process::enter(py)?;
    let clock = clock_kind(clock)?;
    if !(seconds > 0.0 && seconds <= 1e6) {
        return Err(PyValueError::new_err(format!(
            "seconds is {seconds}, needs a number above 0, at most 1000000"
        )));
    }
    let (work, raised) = (LongWork::new(py, progress)?, Raised::default());
    let spec = spec_of(body)?;
    let (native_body, native_brain) = (body.cast::<NativeBody>(), brain.cast::<NativeBrain>());
    let is_native = native_body.is_ok() && native_brain.is_ok();
    let python_body = match &native_body {
        Ok(_) => None,
        Err(_) => Some(PythonBody::new(body, &raised)?),
    };
    let python_brain = match &native_brain {
        Ok(_) => None,
        Err(_) => Some(PythonBrain::new(brain, Some(&raised))?),
    };
    let motors = native_brain
        .as_ref()
        .ok()
        .and_then(|brain| brain.get().motors());
    let driven = match &motors {
        Some((motors, period_s)) => motors.spec(&spec, *period_s).or_raise()?,
        None => spec,
    };
    let lent_brain = match native_brain {
        Ok(native) => Some(native.get().lend(py, &driven)?),
        Err(_) => None,
    };
    let lent_body = native_body
        .ok()
        .map(|native| native.get().lend(py))
        .transpose();
    let lent_body = match lent_body {
        Ok(lent) => lent,
        Err(error) => {
            process::detach(py, move || drop(lent_brain));
            return Err(error);
        }
    };
    let stop = stop_flag(stop);
    let settings = LoopSettings {
        seconds,
        seed,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let parts = Parts {
        lent_body,
        lent_brain,
        python_body,
        python_brain,
        motors,
        raised,
    };
    let run = move |interrupt: &mut Interrupt| parts.run(&settings, &stop, interrupt);
    // Functions of Python run on the thread that called.
    let finished = if is_native {
        work.finish(py, run)?
    } else {
        work.finish_here(py, run)
    };
    run_of(py, finished)
}

/// What a loop runs: built-in objects that are lent to it, or objects of Python.
struct Parts {
    lent_body: Option<Lent<Box<dyn bodies::Body>>>,
    lent_brain: Option<Lent<Box<dyn brains::Brain>>>,
    python_body: Option<PythonBody>,
    python_brain: Option<PythonBrain>,
    /// The stage that drives the body by the brain's actions.
    motors: Option<(MotorRule, Option<f64>)>,
    raised: Raised,
}

impl Parts {
    /// Runs the loop; what is lent goes back in the end.
    fn run(
        mut self,
        settings: &LoopSettings,
        stop: &AtomicBool,
        interrupt: &mut Interrupt,
    ) -> PyResult<Ended> {
        let lent_body = self.lent_body.as_mut().and_then(|lent| lent.value.take());
        let lent_brain = self.lent_brain.as_mut().and_then(|lent| lent.value.take());
        let body = lent_body.or_else(|| Some(Box::new(self.python_body.take()?)));
        let brain = lent_brain.or_else(|| Some(Box::new(self.python_brain.take()?)));
        let (Some(mut body), Some(brain)) = (body, brain) else {
            return Err(PyValueError::new_err("the loop has no body or no brain"));
        };
        if let Some((motors, period_s)) = &self.motors {
            body = Box::new(Driven::new(body, motors, *period_s).or_raise()?);
        }
        body.reset(settings.seed);
        let spec = body.spec().clone();
        let device = brain
            .device()
            .cloned()
            .map_or_else(|| Device::open("cpu"), Ok)
            .or_raise()?;
        let mut closed_loop = ClosedLoop::new(body, brain, settings, &device).or_raise()?;
        let mut periods = Periods::default();
        let outcome = if locked(&self.raised).is_some() {
            None
        } else {
            let interrupt = RefCell::new(&mut *interrupt);
            let raised = &self.raised;
            let mut clock = PolledClock::start(settings.clock, &interrupt);
            Some(closed_loop.run(&mut clock, &mut periods, &mut |done| {
                let mut interrupt = interrupt.borrow_mut();
                if let Some(error) = locked(raised).take() {
                    interrupt.raise(error);
                }
                if stop.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                interrupt.watch(running(done))
            }))
        };
        let (body, brain) = closed_loop.into_parts();
        if let Some(lent) = &mut self.lent_body {
            lent.value = match self.motors {
                Some(_) => body.into_inner(),
                None => Some(body),
            };
        }
        if let (Some(lent), Some(mut brain)) = (&mut self.lent_brain, brain) {
            brain.episode_ended();
            lent.value = Some(brain);
        }
        if let Some(error) = locked(&self.raised).take() {
            interrupt.raise(error);
        }
        let outcome = outcome.ok_or_else(|| PyValueError::new_err("the body was not reset"))?;
        Ok(Ended {
            periods,
            outcome,
            spec,
            folder: None,
            is_stopped: stop.load(Ordering::Relaxed),
        })
    }
}
