//! The loop of a body and a brain, and what a run of it recorded.

use std::ops::ControlFlow;
use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tectum::{Device, Result, WorkProgress};
use tectum_control::body as bodies;
use tectum_control::brain as brains;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{
    ClosedLoop, End, LoopSettings, Outcome, Progress, Sink, TickRecord,
};

use crate::body::{BodySpec, NativeBody, PythonBody, Raised, locked, spec_of};
use crate::brain::{NativeBrain, PythonBrain};
use crate::error::OrRaise;
use crate::interrupt::LongWork;
use crate::receipt::Receipt;

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

/// What a run of a loop recorded: one row for each period.
#[pyclass(frozen, get_all, module = "tectum")]
pub struct Run {
    /// Observations, float32 of shape (periods, channels).
    observations: Py<PyArray2<f32>>,
    /// Actions that the body received, float32 of shape (periods, channels).
    actions: Py<PyArray2<f32>>,
    /// Rewards, float64 of shape (periods,).
    rewards: Py<PyArray1<f64>>,
    /// Whether an answer was late, so that the body received the one before.
    held: Py<PyArray1<bool>>,
    /// Whether the brain failed, so that the body received its safe action.
    fallback: Py<PyArray1<bool>>,
    /// Whether the episode ended with the period.
    ended: Py<PyArray1<bool>>,
    /// Host time of each answer in seconds; NaN where it was not measured.
    latency: Py<PyArray1<f64>>,
    /// Time between two rows, in seconds.
    dt: f64,
    /// "completed" or "interrupted".
    end: &'static str,
    /// Results of the task by name; None without a task.
    task: Option<Py<PyAny>>,
    /// Periods whose answer was late.
    deadline_misses: u64,
    /// On which device and by which code it was computed.
    receipt: Py<Receipt>,
    /// The run folder; None if none was requested.
    folder: Option<PathBuf>,
    /// The constants of the body, with names and units of the columns.
    spec: Py<BodySpec>,
}

impl Run {
    pub fn new(
        py: Python<'_>,
        periods: Periods,
        outcome: Outcome,
        spec: &bodies::BodySpec,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let rows = periods.rewards.len();
        let table = |numbers: Vec<f32>, columns: usize| -> PyResult<Py<PyArray2<f32>>> {
            Ok(PyArray1::from_vec(py, numbers)
                .reshape([rows, columns])?
                .unbind())
        };
        let end = if matches!(outcome.end, End::Interrupted) {
            "interrupted"
        } else {
            "completed"
        };
        let task = outcome
            .task
            .as_ref()
            .map(|task| crate::json::to_python(py, task).map(Bound::unbind))
            .transpose()?;
        Ok(Self {
            observations: table(periods.observations, spec.observation.len())?,
            actions: table(periods.actions, spec.action.len())?,
            rewards: PyArray1::from_vec(py, periods.rewards).unbind(),
            held: PyArray1::from_vec(py, periods.held).unbind(),
            fallback: PyArray1::from_vec(py, periods.fallback).unbind(),
            ended: PyArray1::from_vec(py, periods.ended).unbind(),
            latency: PyArray1::from_vec(py, periods.latency_s).unbind(),
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

#[pymethods]
impl Run {
    /// Sum of the rewards.
    #[getter]
    fn total_reward(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.rewards.bind(py).readonly().as_array().sum())
    }

    /// The beginning of each period in the body's time, float64 of shape (periods,), in seconds.
    #[getter]
    fn t<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = self.rewards.bind(py).len();
        Ok(PyArray1::from_vec(
            py,
            (0..rows).map(|row| row as f64 * self.dt).collect(),
        ))
    }

    /// Draws each channel over time by matplotlib, and returns the figure.
    fn plot<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("tectum.plots")?
            .call_method1("plot_run", (this,))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.rewards.bind(py).len()
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let rows = [
            (
                "periods",
                format!("{} of {} s, {}", self.__len__(py), self.dt, self.end),
            ),
            ("return", self.total_reward(py)?.to_string()),
            ("deadline misses", self.deadline_misses.to_string()),
            ("device", self.receipt.get().device().to_owned()),
            ("trace", self.receipt.get().trace().unwrap_or_default()),
        ];
        Ok(crate::html::table(
            &format!("run of body {}", self.spec.get().inner.name),
            &rows,
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = self.rewards.bind(py).len();
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
/// the periods.
#[pyfunction]
#[pyo3(signature = (body, brain, *, seconds = 60.0, clock = "real", seed = 1, progress = false))]
pub fn run_loop(
    py: Python<'_>,
    body: &Bound<'_, PyAny>,
    brain: &Bound<'_, PyAny>,
    seconds: f64,
    clock: &str,
    seed: u64,
    progress: bool,
) -> PyResult<Run> {
    let clock = clock_kind(clock)?;
    if !(seconds > 0.0 && seconds <= 1e6) {
        return Err(PyValueError::new_err(format!(
            "seconds is {seconds}, needs a number above 0, at most 1000000"
        )));
    }
    let (work, raised) = (LongWork::new(py, progress)?, Raised::default());
    let spec = spec_of(body)?;
    if let Ok(native) = body.cast::<NativeBody>() {
        native.get().check_free()?;
    }
    let brain: Box<dyn brains::Brain> = match brain.cast::<NativeBrain>() {
        Ok(native) => native.get().take(py, &spec)?,
        Err(_) => Box::new(PythonBrain::new(brain, &raised)?),
    };
    let mut body: Box<dyn bodies::Body> = match body.cast::<NativeBody>() {
        Ok(native) => native.get().take()?,
        Err(_) => Box::new(PythonBody::new(body, &raised)?),
    };
    let settings = LoopSettings {
        seconds,
        seed,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let (periods, outcome, spec) = work.run(py, |interrupt| {
        body.reset(seed);
        if let Some(error) = locked(&raised).take() {
            return Err(error);
        }
        let spec = body.spec().clone();
        let device = brain
            .device()
            .cloned()
            .map_or_else(|| Device::open("cpu"), Ok)
            .or_raise()?;
        let mut closed_loop = ClosedLoop::new(body, brain, &settings, &device).or_raise()?;
        let mut periods = Periods::default();
        let outcome = closed_loop.run(clock.start().as_mut(), &mut periods, &mut |done| {
            if let Some(error) = locked(&raised).take() {
                interrupt.raise(error);
                return ControlFlow::Break(());
            }
            interrupt.watch(running(done))
        });
        Ok((periods, outcome.into_result().or_raise()?, spec))
    })?;
    Run::new(py, periods, outcome, &spec, None)
}
