//! Brains: built in, trained policies, or objects of Python.

use std::path::PathBuf;

use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::snapshot::Snapshot;
use tectum::{Device, Error, Result, RunStats};
use tectum_control::body as bodies;
use tectum_control::body::motors::MotorRule;
use tectum_control::brain as brains;
use tectum_control::brain::BrainSettings;
use tectum_control::brain::commands::CommandInputs;

use crate::array::{floats, numbers, shaped};
use crate::body::{Lent, Raised, observation_from, spec_of};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interned::interned;
use crate::interrupt::run_long;
use crate::mutex::locked;
use crate::process;
use crate::receipt::{Receipt, Runs};

/// Actions, and the state that was given.
type Prediction<'py> = (Bound<'py, PyAny>, Option<Py<PyAny>>);

/// A built-in brain or a trained policy, for one loop or to be called by hand: `tick(observation)`
/// returns an action.
#[pyclass(frozen, module = "tectum")]
pub struct NativeBrain {
    name: &'static str,
    spec: bodies::BodySpec,
    commands: Option<CommandInputs>,
    /// The stage between its actions and the motors of the body, and the time between two actions.
    motors: Option<(MotorRule, Option<f64>)>,
    /// None while a loop owns it.
    inner: Exclusive<Option<Box<dyn brains::Brain>>>,
    /// The ticks that were called by hand.
    runs: Runs,
}

impl NativeBrain {
    pub fn new(brain: Box<dyn brains::Brain>, spec: bodies::BodySpec) -> Result<Self> {
        let device = brain
            .device()
            .cloned()
            .map_or_else(|| Device::open("cpu"), Ok)?;
        Ok(Self {
            name: brain.name(),
            spec,
            runs: Runs::new(&device, &brain.code()),
            commands: brain.commands(),
            motors: None,
            inner: Exclusive::new(Some(brain)),
        })
    }

    /// The stage that drives a body by its actions, and the time between two actions.
    pub fn motors(&self) -> Option<(MotorRule, Option<f64>)> {
        self.motors.clone()
    }

    fn missing(&self) -> Error {
        Error::invalid(format!("brain {}: a loop owns it", self.name))
    }

    /// Lends the brain to a loop on a body with as many channels as the one that it was made for.
    pub fn lend(
        &self,
        py: Python<'_>,
        body: &bodies::BodySpec,
    ) -> PyResult<Lent<Box<dyn brains::Brain>>> {
        let sizes = |spec: &bodies::BodySpec| (spec.observation_len(), spec.action.len());
        let (own, given) = (sizes(&self.spec), sizes(body));
        if own != given {
            let (name, made_for, body) = (self.name, &self.spec.name, &body.name);
            return Err(PyValueError::new_err(format!(
                "brain {name}: made for body {made_for} with {} observation elements and {} action channels; body {body} has {} and {}",
                own.0, own.1, given.0, given.1
            )));
        }
        Lent::new(py, &self.inner)?
            .ok_or_else(|| self.missing())
            .or_raise()
    }

    /// The constants of the body that it was made for.
    pub fn spec(&self) -> &bodies::BodySpec {
        &self.spec
    }

    /// An action in the ranges of its channels.
    fn answer(&self, py: Python<'_>, observation: Vec<f32>) -> PyResult<Vec<f32>> {
        let (mut action, missing) = (self.spec.safe_action.clone(), self.missing());
        let runs = self.runs.clone();
        let brain = self.inner.lock(py)?;
        let (_, mut action) = self.inner.run(py, brain, move |brain| {
            let brain = brain.as_deref_mut().ok_or(missing)?;
            runs.timed(|| brain.tick(&observation, &mut action))?;
            Ok(action)
        })?;
        for (number, channel) in action.iter_mut().zip(&self.spec.action) {
            *number = channel.applied(*number).unwrap_or(*number);
        }
        Ok(action)
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
    fn device(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let _call = process::enter(py)?;
        let inner = self.inner.lock(py)?;
        let brain = inner.as_deref().ok_or_else(|| self.missing()).or_raise()?;
        Ok(brain.device().map(|device| device.info().id.clone()))
    }

    /// Reads one observation and returns one action, float32 of shape (channels,), in the body's
    /// units and order.
    ///
    /// An observation is a vector of all elements, or a dict with a number or an array for each
    /// channel.
    ///
    /// Raises ValueError if the observation is not one of the body, and what the device reports.
    fn tick<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let _call = process::enter(py)?;
        let observation = observation_from(observation, &self.spec)?;
        Ok(PyArray1::from_vec(py, self.answer(py, observation)?))
    }

    /// The form of Stable-Baselines3's `predict`: an action, and `state` as it was given, since the
    /// brain keeps its own. `episode_start`, a bool or an array of them, clears recurrent state.
    ///
    /// A batch of observations, of shape (batch, channels), gives actions of shape (batch, action
    /// channels): each row is answered from cleared state, since the brain has one state. A batch
    /// of one row, as of a vector environment of one, continues.
    #[pyo3(signature = (observation, state = None, episode_start = None, deterministic = true))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
        state: Option<Py<PyAny>>,
        episode_start: Option<&Bound<'py, PyAny>>,
        deterministic: bool,
    ) -> PyResult<Prediction<'py>> {
        let _call = process::enter(py)?;
        let _ = deterministic;
        let is_start = episode_start.map_or(Ok(false), is_any)?;
        let width = self.spec.observation_len();
        let observations = floats(observation, "observation")?;
        let rows = match *observations.shape() {
            [found] if found == width => None,
            [rows, found] if found == width => Some(rows),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "observation has the shape {:?}, needs ({width},) or (batch, {width})",
                    observations.shape()
                )));
            }
        };
        let (numbers, is_batch) = (observations.into_vec()?, rows.is_some_and(|rows| rows > 1));
        let mut actions = Vec::new();
        for row in 0..rows.unwrap_or(1) {
            if is_start || is_batch {
                self.reset(py)?;
            }
            let observation = numbers[row * width..(row + 1) * width].to_vec();
            actions.extend(self.answer(py, observation)?);
        }
        let width = self.spec.action.len();
        let shape = rows.map_or_else(|| vec![width], |rows| vec![rows, width]);
        Ok((shaped(py, actions, &shape)?, state))
    }

    /// The names of the commands that `set_command` sets.
    #[getter]
    fn commands(&self) -> Vec<String> {
        self.commands
            .as_ref()
            .iter()
            .flat_map(|commands| commands.channels())
            .map(|channel| channel.name.clone())
            .collect()
    }

    /// Sets a command of the policy's contract from the next tick on, instead of its schedule;
    /// None returns to it. The value is clamped to the command's range. It may be called from any
    /// thread, also while a loop runs the policy.
    ///
    /// Raises ValueError for a name that is no command, and for a number that is not finite.
    #[pyo3(signature = (name, value))]
    fn set_command(&self, py: Python<'_>, name: &str, value: Option<f64>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let commands = self.commands.as_ref().ok_or_else(|| {
            PyValueError::new_err(format!("brain {}: it has no commands", self.name))
        })?;
        commands.set(name, value).or_raise()
    }

    /// The inputs of the policy's networks at the last tick, float32 arrays of one dimension by
    /// name: what its contract made of the observation.
    #[getter]
    fn network_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let inner = self.inner.lock(py)?;
        let brain = inner.as_deref().ok_or_else(|| self.missing()).or_raise()?;
        let inputs = PyDict::new(py);
        for (name, values) in brain.network_inputs() {
            inputs.set_item(name, PyArray1::from_vec(py, values))?;
        }
        Ok(inputs)
    }

    /// Begins another episode: recurrent state is cleared.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let _call = process::enter(py)?;
        self.inner
            .lock(py)?
            .as_deref_mut()
            .ok_or_else(|| self.missing())
            .or_raise()?
            .episode_ended();
        Ok(())
    }

    /// On which device and by which code the calls of `tick` were computed. A loop has its own
    /// receipt.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
    }

    fn __repr__(&self) -> String {
        format!("<tectum brain '{}'>", self.name)
    }
}

/// Whether a bool, or one of an array of them, is true.
fn is_any(flags: &Bound<'_, PyAny>) -> PyResult<bool> {
    match flags.cast::<PyUntypedArray>() {
        Ok(array) if array.ndim() > 0 => array.call_method0("any")?.is_truthy(),
        _ => flags.is_truthy(),
    }
}

/// A trained policy from an ONNX file, with its contract, for a body.
///
/// `body` is a body, its `BodySpec`, or the name of a built-in one; `contract` a `policy.toml`
/// other than the one next to the file. Names, units, order and sizes of the contract are checked
/// against the body's channels. Where the contract states [motors], `tick` returns targets of
/// joints, and `run_loop` drives the body by them.
///
/// Raises FileNotFoundError, DataError for a file or contract that is malformed, UnsupportedError
/// listing operators that are not supported, ValueError naming the channel that does not fit.
#[pyfunction]
#[pyo3(name = "Policy", signature = (model, body, *, contract = None, device = DeviceArgument::Id("cpu".to_owned())))]
pub fn policy(
    py: Python<'_>,
    model: PathBuf,
    body: &Bound<'_, PyAny>,
    contract: Option<PathBuf>,
    device: DeviceArgument<'_>,
) -> PyResult<NativeBrain> {
    let _call = process::enter(py)?;
    let (spec, device) = (spec_of(body)?, device.open(py)?);
    let settings = brains::policy::spec::PolicySpec {
        contract: contract.map(|path| path.to_string_lossy().into_owned()),
        ..brains::policy::spec::PolicySpec::of(model.to_string_lossy())
    };
    run_long(py, move || {
        let motors = settings.motors(&spec)?;
        let driven = match &motors {
            Some((motors, period_s)) => motors.spec(&spec, *period_s)?,
            None => spec,
        };
        let made = brains::policy::PolicyBrain::new(&settings, &driven, device.as_ref())?;
        let brain = NativeBrain::new(Box::new(made), driven)?;
        Ok(NativeBrain { motors, ..brain })
    })
}

/// An object of Python as a brain.
pub struct PythonBrain {
    object: Py<PyAny>,
    name: &'static str,
    /// Where its exceptions are kept, for the loop that called it; else they are errors of the brain.
    raised: Option<Raised>,
    /// The error that the next answer reports.
    failure: Option<Error>,
}

impl PythonBrain {
    pub fn new(object: &Bound<'_, PyAny>, raised: Option<&Raised>) -> PyResult<Self> {
        if !object.hasattr("tick")? {
            return Err(PyTypeError::new_err(format!(
                "brain: {} has no method `tick`",
                object.get_type()
            )));
        }
        let name = match object.getattr_opt("name")? {
            Some(name) => name.extract()?,
            None => object.get_type().name()?.to_string(),
        };
        Ok(Self {
            object: object.clone().unbind(),
            name: interned(name),
            raised: raised.cloned(),
            failure: None,
        })
    }

    /// Keeps an exception for the loop, which then continues until it looks.
    fn keep(&self, error: PyErr) -> Result<()> {
        match &self.raised {
            Some(raised) => {
                locked(raised).get_or_insert(error);
                Ok(())
            }
            None => Err(Error::data(format!("brain {}: {error}", self.name))),
        }
    }
}

impl brains::Brain for PythonBrain {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let answer = process::attach(|py| {
            let answer = self
                .object
                .bind(py)
                .call_method1("tick", (PyArray1::from_slice(py, observation),))?;
            numbers(&answer, "action", action.len())
        });
        match answer {
            Ok(answer) => action.copy_from_slice(&answer),
            Err(error) => self.keep(error)?,
        }
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    /// The object keeps its state: after an answer that is not finite the loop continues with it.
    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }

    fn episode_ended(&mut self) {
        let called = process::attach(|py| {
            let object = self.object.bind(py);
            if object.hasattr("episode_ended")? {
                object.call_method0("episode_ended").map(drop)
            } else {
                Ok(())
            }
        });
        // An error of the brain is in its next answer.
        let kept = called.or_else(|error| self.keep(error));
        self.failure = kept.err();
    }
}
