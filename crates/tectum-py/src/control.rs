//! Bodies, brains and the loop that runs them.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tectum::snapshot::Snapshot;
use tectum::{Result, RunStats};
use tectum_control::body::{self as bodies, Step};
use tectum_control::brain as brains;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, End, LoopSettings, Outcome, Sink, TickRecord};

use crate::device::DeviceArgument;
use crate::error::{OrRaise, exception};
use crate::interrupt::interruptible;
use crate::receipt::Receipt;

/// One number of an observation.
///
/// `low` and `high` are the values expected, for plots and checks; `scale` is the typical magnitude, by default the larger bound.
///
/// >>> import tectum as tt
/// >>> tt.ObservationChannel("x", "m", -2.4, 2.4)
/// ObservationChannel('x', 'm', -2.4, 2.4)
#[pyclass(frozen, from_py_object, module = "tectum")]
#[derive(Clone)]
pub struct ObservationChannel {
    inner: bodies::ObservationChannel,
}

#[pymethods]
impl ObservationChannel {
    #[new]
    #[pyo3(signature = (name, unit = "", low = -1.0, high = 1.0, *, scale = None))]
    fn new(name: &str, unit: &str, low: f32, high: f32, scale: Option<f32>) -> Self {
        let channel = bodies::ObservationChannel::new(name, unit, low..=high);
        Self { inner: scale.map_or(channel.clone(), |scale| channel.scaled(scale)) }
    }

    /// The name, as in recordings.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The unit, as printed.
    #[getter]
    fn unit(&self) -> &str {
        &self.inner.unit
    }

    /// The lowest value expected.
    #[getter]
    fn low(&self) -> f32 {
        self.inner.low
    }

    /// The highest value expected.
    #[getter]
    fn high(&self) -> f32 {
        self.inner.high
    }

    fn __repr__(&self) -> String {
        let channel = &self.inner;
        format!("ObservationChannel({:?}, {:?}, {:?}, {:?})", channel.name, channel.unit, channel.low, channel.high).replace('"', "'")
    }
}

/// One number of an action. Values outside [low, high] are clipped; with `discrete` the body applies `high` for values of at least 0, else `low`.
#[pyclass(frozen, from_py_object, module = "tectum")]
#[derive(Clone)]
pub struct ActionChannel {
    inner: bodies::ActionChannel,
}

#[pymethods]
impl ActionChannel {
    #[new]
    #[pyo3(signature = (name, unit, low, high, *, discrete = false))]
    fn new(name: &str, unit: &str, low: f32, high: f32, discrete: bool) -> Self {
        Self { inner: bodies::ActionChannel { discrete, ..bodies::ActionChannel::new(name, unit, low..=high) } }
    }

    /// The name, as in recordings.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The unit, as printed.
    #[getter]
    fn unit(&self) -> &str {
        &self.inner.unit
    }

    /// The lowest value.
    #[getter]
    fn low(&self) -> f32 {
        self.inner.low
    }

    /// The highest value.
    #[getter]
    fn high(&self) -> f32 {
        self.inner.high
    }

    /// Whether only `low` and `high` are possible.
    #[getter]
    fn discrete(&self) -> bool {
        self.inner.discrete
    }

    fn __repr__(&self) -> String {
        let channel = &self.inner;
        format!("ActionChannel({:?}, {:?}, {:?}, {:?})", channel.name, channel.unit, channel.low, channel.high).replace('"', "'")
    }
}

/// The constants of a body: name, time between two actions in seconds, channels, and the action that it receives when the brain gives none (zeros by default).
#[pyclass(frozen, from_py_object, module = "tectum")]
#[derive(Clone)]
pub struct BodySpec {
    inner: bodies::BodySpec,
}

#[pymethods]
impl BodySpec {
    #[new]
    #[pyo3(signature = (name, dt, observation, action, safe_action = None))]
    fn new(name: String, dt: f64, observation: Vec<ObservationChannel>, action: Vec<ActionChannel>, safe_action: Option<Vec<f32>>) -> PyResult<Self> {
        if !(dt.is_finite() && dt > 0.0) {
            return Err(PyValueError::new_err(format!("dt is {dt}, needs a positive number of seconds")));
        }
        let safe_action = safe_action.unwrap_or_else(|| vec![0.0; action.len()]);
        if safe_action.len() != action.len() {
            return Err(PyValueError::new_err(format!("safe_action has {} numbers for {} action channels", safe_action.len(), action.len())));
        }
        let observation = observation.into_iter().map(|channel| channel.inner).collect();
        let action = action.into_iter().map(|channel| channel.inner).collect();
        Ok(Self { inner: bodies::BodySpec { name, dt_s: dt, observation, action, safe_action } })
    }

    /// The name, as in scenarios.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Time between two actions, in seconds.
    #[getter]
    fn dt(&self) -> f64 {
        self.inner.dt_s
    }

    /// The numbers of an observation, in order.
    #[getter]
    fn observation(&self) -> Vec<ObservationChannel> {
        self.inner.observation.iter().map(|channel| ObservationChannel { inner: channel.clone() }).collect()
    }

    /// The numbers of an action, in order.
    #[getter]
    fn action(&self) -> Vec<ActionChannel> {
        self.inner.action.iter().map(|channel| ActionChannel { inner: channel.clone() }).collect()
    }

    /// The action applied when the brain gives none.
    #[getter]
    fn safe_action(&self) -> Vec<f32> {
        self.inner.safe_action.clone()
    }

    fn __repr__(&self) -> String {
        let spec = &self.inner;
        format!("BodySpec('{}', dt={}, {} observation channels, {} action channels)", spec.name, spec.dt_s, spec.observation.len(), spec.action.len())
    }
}

/// An action or observation from Python: any sequence of numbers, a NumPy array without conversion.
fn numbers(py: Python<'_>, value: &Bound<'_, PyAny>, what: &str, expected: usize) -> PyResult<Vec<f32>> {
    let numbers = match value.extract::<PyReadonlyArray1<'_, f32>>() {
        Ok(array) => array.as_array().to_vec(),
        Err(_) => {
            let array = py.import("numpy")?.call_method1("asarray", (value, "float32"))?.call_method1("reshape", (-1,))?;
            array.extract::<PyReadonlyArray1<'_, f32>>()?.as_array().to_vec()
        }
    };
    if numbers.len() != expected {
        return Err(PyValueError::new_err(format!("{what} has {} numbers, needs {expected}", numbers.len())));
    }
    Ok(numbers)
}

/// The lock of a value that no panic leaves half-changed.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A built-in body, for one loop or to be stepped by hand.
///
/// `reset(seed)` returns an observation, `step(action)` returns `(observation, reward, terminated, truncated)`. `tectum.body(name)` makes one.
#[pyclass(frozen, module = "tectum")]
pub struct NativeBody {
    spec: bodies::BodySpec,
    /// None while and after a loop owns it.
    inner: Mutex<Option<Box<dyn bodies::Body>>>,
}

impl NativeBody {
    /// Its name, as in scenarios.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    fn with<T>(&self, work: impl FnOnce(&mut dyn bodies::Body) -> PyResult<T>) -> PyResult<T> {
        let mut inner = locked(&self.inner);
        let body = inner.as_deref_mut().ok_or_else(|| PyValueError::new_err(format!("body {}: a loop owns it", self.spec.name)))?;
        work(body)
    }

    fn take(&self) -> PyResult<Box<dyn bodies::Body>> {
        locked(&self.inner).take().ok_or_else(|| PyValueError::new_err(format!("body {}: another loop owns it", self.spec.name)))
    }
}

fn observation<'py>(py: Python<'py>, body: &dyn bodies::Body) -> Bound<'py, PyArray1<f32>> {
    let mut numbers = vec![0.0; body.spec().observation.len()];
    body.observe(&mut numbers);
    PyArray1::from_vec(py, numbers)
}

#[pymethods]
impl NativeBody {
    /// The constants of the body.
    #[getter]
    fn spec(&self) -> BodySpec {
        BodySpec { inner: self.spec.clone() }
    }

    /// Puts the body at its start and returns the observation; the same seed gives the same start on every machine.
    #[pyo3(signature = (seed = 0))]
    fn reset<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.with(|body| {
            body.reset(seed);
            Ok(observation(py, body))
        })
    }

    /// The observation, float32 of shape (channels,).
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.with(|body| Ok(observation(py, body)))
    }

    /// Applies an action for one period. Returns `(observation, reward, terminated, truncated)`.
    ///
    /// Raises ValueError if the action does not have one number for each channel.
    fn step<'py>(&self, py: Python<'py>, action: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyArray1<f32>>, f64, bool, bool)> {
        let action = numbers(py, action, "action", self.spec.action.len())?;
        self.with(|body| {
            let step = body.step(&action);
            Ok((observation(py, body), step.reward, step.terminated, step.truncated))
        })
    }

    /// The exact state, float64: everything that the next step depends on. Raises UnsupportedError for a body that has none.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.with(|body| Ok(PyArray1::from_vec(py, body.state().or_raise()?)))
    }

    #[setter]
    fn set_state(&self, state: Vec<f64>) -> PyResult<()> {
        self.with(|body| body.set_state(&state).or_raise())
    }

    fn __repr__(&self) -> String {
        format!("<tectum body '{}'>", self.spec.name)
    }
}

/// Makes a built-in body. `start` is "hanging" or "random"; without it the body's own.
///
/// Raises ValueError for an unknown name, listing the known ones.
///
/// >>> import tectum as tt
/// >>> cart_pole = tt.body("cart_pole")
/// >>> observation, reward, terminated, truncated = cart_pole.step([10.0])
/// >>> reward
/// 1.0
#[pyfunction]
#[pyo3(signature = (name, *, start = None))]
pub fn body(name: &str, start: Option<&str>) -> PyResult<NativeBody> {
    let start = start.map(bodies::Start::from_name).transpose().or_raise()?;
    let body = bodies::body(name, start).or_raise()?;
    Ok(NativeBody { spec: body.spec().clone(), inner: Mutex::new(Some(body)) })
}

/// The exception that a callback raised, for the loop that called it.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// An object of Python as a body.
struct PythonBody {
    object: Py<PyAny>,
    spec: bodies::BodySpec,
    observation: Vec<f32>,
    raised: Raised,
}

impl PythonBody {
    fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let spec: BodySpec = object
            .getattr("spec")
            .and_then(|spec| Ok(spec.extract::<BodySpec>()?))
            .map_err(|error| PyTypeError::new_err(format!("body: {} has no `spec` that is a BodySpec: {error}", object.get_type())))?;
        for method in ["reset", "step"] {
            if !object.hasattr(method)? {
                return Err(PyTypeError::new_err(format!("body {}: it has no method `{method}`", spec.inner.name)));
            }
        }
        let observation = vec![0.0; spec.inner.observation.len()];
        Ok(Self { object: object.clone().unbind(), spec: spec.inner, observation, raised: raised.clone() })
    }

    fn call(&mut self, work: impl FnOnce(&mut Self, Python<'_>) -> PyResult<Step>) -> Step {
        if locked(&self.raised).is_some() {
            return Step { refused: true, ..Step::default() };
        }
        Python::attach(|py| {
            work(self, py).unwrap_or_else(|error| {
                locked(&self.raised).get_or_insert(error);
                Step { refused: true, ..Step::default() }
            })
        })
    }

    fn observe_from(&mut self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.observation = numbers(py, value, "observation", self.spec.observation.len())?;
        Ok(())
    }
}

impl bodies::Body for PythonBody {
    fn spec(&self) -> &bodies::BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        self.call(|this, py| {
            let object = this.object.bind(py).clone();
            let value = object.call_method1("reset", (seed,))?;
            this.observe_from(py, &value)?;
            Ok(Step::default())
        });
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&self.observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        self.call(|this, py| {
            let object = this.object.bind(py).clone();
            let answer = object.call_method1("step", (PyArray1::from_slice(py, action),))?;
            let answer = answer
                .cast::<PyTuple>()
                .map_err(|_| PyTypeError::new_err(format!("body {}: step returned {}, not a tuple", this.spec.name, answer.get_type())))?;
            if !(4..=5).contains(&answer.len()) {
                let found = answer.len();
                return Err(PyTypeError::new_err(format!(
                    "body {}: step returned {found} values, needs (observation, reward, terminated, truncated) and perhaps an info",
                    this.spec.name
                )));
            }
            this.observe_from(py, &answer.get_item(0)?)?;
            Ok(Step {
                reward: answer.get_item(1)?.extract()?,
                terminated: answer.get_item(2)?.is_truthy()?,
                truncated: answer.get_item(3)?.is_truthy()?,
                refused: action.iter().any(|number| !number.is_finite()),
            })
        })
    }
}

/// An action, and the state that was given.
type Prediction<'py> = (Bound<'py, PyArray1<f32>>, Option<Py<PyAny>>);

/// A built-in brain or a trained policy, for one loop or to be called by hand: `tick(observation)` returns an action.
#[pyclass(frozen, module = "tectum")]
pub struct NativeBrain {
    name: &'static str,
    spec: bodies::BodySpec,
    /// None while and after a loop owns it.
    inner: Mutex<Option<Box<dyn brains::Brain>>>,
}

impl NativeBrain {
    pub fn new(brain: Box<dyn brains::Brain>, spec: bodies::BodySpec) -> Self {
        Self { name: brain.name(), spec, inner: Mutex::new(Some(brain)) }
    }

    fn missing(&self) -> PyErr {
        PyValueError::new_err(format!("brain {}: a loop owns it", self.name))
    }

    fn take(&self) -> PyResult<Box<dyn brains::Brain>> {
        locked(&self.inner).take().ok_or_else(|| self.missing())
    }
}

#[pymethods]
impl NativeBrain {
    /// The name, as in scenarios.
    #[getter]
    fn name(&self) -> &str {
        self.name
    }

    /// The id of the device that ticks run on; None for plain host arithmetic.
    #[getter]
    fn device(&self) -> PyResult<Option<String>> {
        let inner = locked(&self.inner);
        let brain = inner.as_deref().ok_or_else(|| self.missing())?;
        Ok(brain.device().map(|device| device.info().id.clone()))
    }

    /// Reads one observation and returns one action, float32 of shape (channels,), in the body's units and order.
    ///
    /// Raises ValueError if the observation does not have one number for each channel, and what the device reports.
    fn tick<'py>(&self, py: Python<'py>, observation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let observation = numbers(py, observation, "observation", self.spec.observation.len())?;
        let mut action = self.spec.safe_action.clone();
        py.detach(|| {
            let mut inner = locked(&self.inner);
            let brain = inner.as_deref_mut().ok_or_else(|| self.missing())?;
            brain.tick(&observation, &mut action).map_err(exception)
        })?;
        for (number, channel) in action.iter_mut().zip(&self.spec.action) {
            *number = channel.applied(*number).unwrap_or(*number);
        }
        Ok(PyArray1::from_vec(py, action))
    }

    /// The same as Stable-Baselines3's `predict`: an action and no state.
    #[pyo3(signature = (observation, state = None, episode_start = None, deterministic = true))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
        state: Option<Py<PyAny>>,
        episode_start: Option<bool>,
        deterministic: bool,
    ) -> PyResult<Prediction<'py>> {
        let _ = deterministic;
        if episode_start == Some(true) {
            self.reset()?;
        }
        Ok((self.tick(py, observation)?, state))
    }

    /// Begins another episode: recurrent state is cleared.
    fn reset(&self) -> PyResult<()> {
        locked(&self.inner).as_deref_mut().ok_or_else(|| self.missing())?.episode_ended();
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<tectum brain '{}'>", self.name)
    }
}

/// The constants of a body, from whatever has them.
fn spec_of(object: &Bound<'_, PyAny>) -> PyResult<bodies::BodySpec> {
    if let Ok(spec) = object.extract::<BodySpec>() {
        return Ok(spec.inner);
    }
    if let Ok(name) = object.extract::<String>() {
        return Ok(bodies::body(&name, None).or_raise()?.spec().clone());
    }
    Ok(object.getattr("spec")?.extract::<BodySpec>()?.inner)
}

/// A trained policy from an ONNX file, with its contract, for a body.
///
/// `body` is a body, its `BodySpec`, or the name of a built-in one; `contract` a `policy.toml` other than the one next to the file. Names, units, order and
/// sizes of the contract are checked against the body's channels.
///
/// Raises FileNotFoundError, DataError for a file or contract that is malformed, UnsupportedError listing operators that are not supported, ValueError naming
/// the channel that does not fit.
#[pyfunction]
#[pyo3(name = "Policy", signature = (model, body, *, contract = None, device = DeviceArgument::Id("cpu".to_owned())))]
pub fn policy(py: Python<'_>, model: PathBuf, body: &Bound<'_, PyAny>, contract: Option<String>, device: DeviceArgument<'_>) -> PyResult<NativeBrain> {
    let (spec, device) = (spec_of(body)?, device.open(py)?);
    let settings = brains::policy::spec::PolicySpec { contract, ..brains::policy::spec::PolicySpec::of(model.to_string_lossy()) };
    let made = py.detach(|| brains::policy::PolicyBrain::new(&settings, &spec, &device)).or_raise()?;
    Ok(NativeBrain::new(Box::new(made), spec))
}

/// An object of Python as a brain.
struct PythonBrain {
    object: Py<PyAny>,
    name: &'static str,
    raised: Raised,
}

/// A name that lasts as long as the process; each is stored once.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = locked(&NAMES);
    match names.iter().find(|known| **known == name) {
        Some(known) => known,
        None => {
            let name: &'static str = Box::leak(name.into_boxed_str());
            names.push(name);
            name
        }
    }
}

impl PythonBrain {
    fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        if !object.hasattr("tick")? {
            return Err(PyTypeError::new_err(format!("brain: {} has no method `tick`", object.get_type())));
        }
        let name = match object.getattr_opt("name")? {
            Some(name) => name.extract()?,
            None => object.get_type().name()?.to_string(),
        };
        Ok(Self { object: object.clone().unbind(), name: interned(name), raised: raised.clone() })
    }
}

impl brains::Brain for PythonBrain {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let answer = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("tick", (PyArray1::from_slice(py, observation),))?;
            numbers(py, &answer, "action", action.len())
        });
        match answer {
            Ok(answer) => action.copy_from_slice(&answer),
            Err(error) => {
                locked(&self.raised).get_or_insert(error);
            }
        }
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Err(tectum::Error::unsupported(format!("brain {}: the state of a brain in Python cannot be restored", self.name)))
    }

    fn episode_ended(&mut self) {
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            if object.hasattr("episode_ended")? { object.call_method0("episode_ended").map(drop) } else { Ok(()) }
        });
        if let Err(error) = called {
            locked(&self.raised).get_or_insert(error);
        }
    }
}

/// A clock by its name in scenarios.
pub fn clock_kind(name: &str) -> PyResult<ClockKind> {
    match name {
        "real" => Ok(ClockKind::Real),
        "sim" => Ok(ClockKind::Sim),
        _ => Err(PyValueError::new_err(format!("clock is {name:?}, needs \"real\" or \"sim\""))),
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
        self.latency_s.push(record.timing.map_or(f64::NAN, |timing| timing.latency_ns as f64 * 1e-9));
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
}

impl Run {
    pub fn new(py: Python<'_>, periods: Periods, outcome: Outcome, spec: &bodies::BodySpec, folder: Option<PathBuf>) -> PyResult<Self> {
        let rows = periods.rewards.len();
        let table =
            |numbers: Vec<f32>, columns: usize| -> PyResult<Py<PyArray2<f32>>> { Ok(PyArray1::from_vec(py, numbers).reshape([rows, columns])?.unbind()) };
        let end = if matches!(outcome.end, End::Interrupted) { "interrupted" } else { "completed" };
        let task = outcome.task.as_ref().map(|task| crate::json::to_python(py, task).map(Bound::unbind)).transpose()?;
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
        Ok(PyArray1::from_vec(py, (0..rows).map(|row| row as f64 * self.dt).collect()))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.rewards.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = self.rewards.bind(py).len();
        format!("<tectum run: {rows} periods of {} s, {}, {} deadline misses>", self.dt, self.end, self.deadline_misses)
    }
}

/// A body and a brain, run together on time.
///
/// `body` is a built-in one (`tectum.body`) or an object with `spec`, `reset(seed)` and `step(action)`; `brain` a built-in one (`tectum.brain`,
/// `tectum.Policy`) or an object with `tick(observation)`. With `clock="real"` periods begin on time and an answer that is late is counted, with
/// `clock="sim"` time is simulated and nothing is late.
#[pyfunction]
#[pyo3(signature = (body, brain, *, seconds = 60.0, clock = "real", seed = 1, device = DeviceArgument::Id("cpu".to_owned())))]
pub fn run_loop(
    py: Python<'_>,
    body: &Bound<'_, PyAny>,
    brain: &Bound<'_, PyAny>,
    seconds: f64,
    clock: &str,
    seed: u64,
    device: DeviceArgument<'_>,
) -> PyResult<Run> {
    let clock = clock_kind(clock)?;
    if !(seconds.is_finite() && seconds > 0.0) {
        return Err(PyValueError::new_err(format!("seconds is {seconds}, needs a positive number")));
    }
    let device = device.open(py)?;
    let raised = Raised::default();
    let mut body: Box<dyn bodies::Body> = match body.cast::<NativeBody>() {
        Ok(native) => native.get().take()?,
        Err(_) => Box::new(PythonBody::new(body, &raised)?),
    };
    let brain: Box<dyn brains::Brain> = match brain.cast::<NativeBrain>() {
        Ok(native) => native.get().take()?,
        Err(_) => Box::new(PythonBrain::new(brain, &raised)?),
    };
    let settings = LoopSettings { seconds, seed, clock, snapshot_every: 0, ..LoopSettings::default() };
    let (periods, outcome, spec) = interruptible(py, |interrupt| {
        body.reset(seed);
        if let Some(error) = locked(&raised).take() {
            return Err(error);
        }
        let spec = body.spec().clone();
        let mut closed_loop = ClosedLoop::new(body, brain, &settings, &device).or_raise()?;
        let mut periods = Periods::default();
        let outcome = closed_loop.run(clock.start().as_mut(), &mut periods, &mut |_| {
            if let Some(error) = locked(&raised).take() {
                interrupt.raise(error);
                return ControlFlow::Break(());
            }
            interrupt.poll()
        });
        Ok((periods, outcome.into_result().or_raise()?, spec))
    })?;
    Run::new(py, periods, outcome, &spec, None)
}
