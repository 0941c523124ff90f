//! Bodies: built in, or objects of Python.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use numpy::{PyArray1, PyArray3, PyArrayDescr, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tectum_control::body::{self as bodies, Step};
use tectum_control::message::ElementType;
use tectum_control::scenario::build::named_body;
use tectum_equations::{Dimension, Unit};

use crate::array::{array, floats, numbers};
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::json;
use crate::mutex::locked;
use crate::picture;
use crate::process;
use crate::sequence::Sequence;
use crate::whole;

/// Arguments and keywords of a constructor.
type Made<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// A part of an observation: one number, or an array of a `shape` such as a picture, whose elements
/// have a `dtype` of NumPy: float32, uint8, int8 or bool.
///
/// `low` and `high` are the values expected, for plots and checks; `scale` is the typical
/// magnitude, by default the larger bound. `wraps` marks an angle that begins again after a full
/// turn: its unit is "rad", "deg" or "", which is radians too.
///
/// >>> import tectum as tt
/// >>> tt.ObservationChannel("x", "m", -2.4, 2.4)
/// ObservationChannel('x', 'm', -2.4, 2.4)
/// >>> tt.ObservationChannel("yaw", "deg", -180, 180, wraps=True)
/// ObservationChannel('yaw', 'deg', -180.0, 180.0, wraps=True)
/// >>> tt.ObservationChannel("camera", "", 0, 255, shape=(48, 64, 3), dtype="uint8")
/// ObservationChannel('camera', '', 0.0, 255.0, shape=(48, 64, 3), dtype='uint8')
#[pyclass(frozen, eq, from_py_object, module = "tectum")]
#[derive(Clone, PartialEq)]
pub struct ObservationChannel {
    inner: bodies::ObservationChannel,
}

/// Refuses bounds that are no range.
fn check_range(name: &str, low: f32, high: f32) -> PyResult<()> {
    if low.is_finite() && high.is_finite() && low <= high {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "channel {name}: the range is {low} to {high}, needs two finite numbers, the lower one first"
    )))
}

#[pymethods]
impl ObservationChannel {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords of a constructor")]
    #[pyo3(signature = (name, unit = "", low = -1.0, high = 1.0, *, scale = None, wraps = false, shape = None, dtype = None))]
    fn new(
        name: &str,
        unit: &str,
        low: f32,
        high: f32,
        scale: Option<f32>,
        wraps: bool,
        shape: Option<Sequence<usize>>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        check_range(name, low, high)?;
        let element = dtype.map_or(Ok(ElementType::F32), |dtype| element_of(name, dtype))?;
        let shape = shape.map_or_else(Vec::new, |shape| shape.0);
        let mut channel =
            bodies::ObservationChannel::new(name, unit, low..=high).array(shape, element);
        if wraps {
            let angle = match unit {
                "" => Some(Unit::NONE),
                unit => Unit::parse(unit).filter(|unit| unit.dimension == Dimension::NONE),
            };
            let angle = angle.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "channel {name}: wraps is for angles, and its unit is {unit:?}; needs \"rad\" or \"deg\""
                ))
            })?;
            channel = channel.wrapping(angle.scale);
        }
        Ok(Self {
            inner: scale.map_or(channel.clone(), |scale| channel.scaled(scale)),
        })
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

    /// Whether it is an angle that wraps after a full turn.
    #[getter]
    fn wraps(&self) -> bool {
        self.inner.kind != bodies::ChannelKind::Linear
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

    /// The typical magnitude.
    #[getter]
    fn scale(&self) -> f32 {
        self.inner.scale
    }

    /// The sizes of an array; empty for one number.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.inner.shape)
    }

    /// NumPy's type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        PyArrayDescr::new(py, self.inner.element.name())
    }

    /// What `copy` and `pickle` make it of again.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Made<'py>> {
        let channel = &self.inner;
        let keywords = PyDict::new(py);
        keywords.set_item("scale", channel.scale)?;
        keywords.set_item("wraps", self.wraps())?;
        keywords.set_item("shape", self.shape(py)?)?;
        keywords.set_item("dtype", channel.element.name())?;
        let range = (&channel.name, &channel.unit, channel.low, channel.high);
        Ok((range.into_pyobject(py)?, keywords))
    }

    fn __repr__(&self) -> String {
        let channel = &self.inner;
        let wraps = if self.wraps() { ", wraps=True" } else { "" };
        let array = if channel.is_array() {
            let sizes: Vec<String> = channel.shape.iter().map(usize::to_string).collect();
            let comma = if sizes.len() == 1 { "," } else { "" };
            let (sizes, dtype) = (sizes.join(", "), channel.element.name());
            format!(", shape=({sizes}{comma}), dtype={dtype:?}")
        } else {
            String::new()
        };
        format!(
            "ObservationChannel({:?}, {:?}, {:?}, {:?}{wraps}{array})",
            channel.name, channel.unit, channel.low, channel.high
        )
        .replace('"', "'")
    }
}

/// The element type of a type of NumPy.
fn element_of(name: &str, dtype: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let descriptor = dtype
        .py()
        .import("numpy")?
        .call_method1("dtype", (dtype,))?;
    let code: String = descriptor.getattr("str")?.extract()?;
    ElementType::from_code(&code)
        .filter(|element| element.is_exact_in_f32())
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "channel {name}: dtype is {descriptor}, needs float32, uint8, int8 or bool"
            ))
        })
}

/// An observation from a caller: a vector of all elements, or a dict by channel.
pub fn observation_from(value: &Bound<'_, PyAny>, spec: &bodies::BodySpec) -> PyResult<Vec<f32>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return flattened(dict, spec);
    }
    let elements = numbers(value, "observation", spec.observation_len())?;
    for (channel, range) in spec.observation.iter().zip(spec.ranges()) {
        check_elements(channel, &elements[range])?;
    }
    Ok(elements)
}

fn flattened(dict: &Bound<'_, PyDict>, spec: &bodies::BodySpec) -> PyResult<Vec<f32>> {
    let mut elements = Vec::with_capacity(spec.observation_len());
    for channel in &spec.observation {
        let name = &channel.name;
        let value = dict
            .get_item(name)?
            .ok_or_else(|| PyValueError::new_err(format!("observation has no channel {name:?}")))?;
        let array = floats(&value, name)?;
        let shape = if array.is_scalar() {
            &[]
        } else {
            array.shape()
        };
        if shape != channel.shape {
            return Err(PyValueError::new_err(format!(
                "channel {name}: the shape is {shape:?}, needs {:?}",
                channel.shape
            )));
        }
        let start = elements.len();
        elements.extend(array.into_vec()?);
        check_elements(channel, &elements[start..])?;
    }
    if dict.len() > spec.observation.len() {
        let is_own = |name: &str| spec.observation.iter().any(|channel| channel.name == name);
        let names = dict.keys().iter().map(|key| key.to_string());
        let unknown = names.into_iter().find(|name| !is_own(name));
        return Err(PyValueError::new_err(format!(
            "observation: the body {} has no channel {:?}",
            spec.name,
            unknown.unwrap_or_default()
        )));
    }
    Ok(elements)
}

/// Refuses an element that the type of an array cannot represent.
fn check_elements(channel: &bodies::ObservationChannel, elements: &[f32]) -> PyResult<()> {
    let element = channel.element;
    match elements.iter().position(|value| !element.holds(*value)) {
        None => Ok(()),
        Some(place) => Err(PyValueError::new_err(format!(
            "channel {}: {} at place {place} is no value of {}",
            channel.name,
            elements[place],
            element.name()
        ))),
    }
}

/// One number of an action. Values outside [low, high] are clipped; with `discrete` the body
/// applies `high` for values of at least 0, else `low`.
#[pyclass(frozen, eq, from_py_object, module = "tectum")]
#[derive(Clone, PartialEq)]
pub struct ActionChannel {
    inner: bodies::ActionChannel,
}

#[pymethods]
impl ActionChannel {
    #[new]
    #[pyo3(signature = (name, unit, low, high, *, discrete = false))]
    fn new(name: &str, unit: &str, low: f32, high: f32, discrete: bool) -> PyResult<Self> {
        check_range(name, low, high)?;
        Ok(Self {
            inner: bodies::ActionChannel {
                discrete,
                ..bodies::ActionChannel::new(name, unit, low..=high)
            },
        })
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

    /// What `copy` and `pickle` make it of again.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Made<'py>> {
        let channel = &self.inner;
        let keywords = PyDict::new(py);
        keywords.set_item("discrete", channel.discrete)?;
        let range = (&channel.name, &channel.unit, channel.low, channel.high);
        Ok((range.into_pyobject(py)?, keywords))
    }

    fn __repr__(&self) -> String {
        let channel = &self.inner;
        format!(
            "ActionChannel({:?}, {:?}, {:?}, {:?})",
            channel.name, channel.unit, channel.low, channel.high
        )
        .replace('"', "'")
    }
}

/// The constants of a body: name, time between two actions in seconds, channels, and the action
/// that it receives when the brain gives none (zeros by default).
#[pyclass(frozen, eq, from_py_object, module = "tectum")]
#[derive(Clone, PartialEq)]
pub struct BodySpec {
    pub inner: bodies::BodySpec,
}

impl BodySpec {
    /// The constants of a body.
    pub fn of(spec: &bodies::BodySpec) -> Self {
        Self {
            inner: spec.clone(),
        }
    }
}

#[pymethods]
impl BodySpec {
    #[new]
    #[pyo3(signature = (name, dt, observation, action, safe_action = None))]
    fn new(
        name: String,
        dt: f64,
        observation: Sequence<ObservationChannel>,
        action: Sequence<ActionChannel>,
        safe_action: Option<Sequence<f32>>,
    ) -> PyResult<Self> {
        let (Sequence(observation), Sequence(action)) = (observation, action);
        let safe_action = safe_action.map(|action| action.0);
        if !(1e-6..=1e6).contains(&dt) {
            return Err(PyValueError::new_err(format!(
                "dt is {dt}, needs seconds from 0.000001 to 1000000"
            )));
        }
        let safe_action = safe_action.unwrap_or_else(|| vec![0.0; action.len()]);
        if safe_action.len() != action.len() {
            return Err(PyValueError::new_err(format!(
                "safe_action has {} numbers for {} action channels",
                safe_action.len(),
                action.len()
            )));
        }
        if safe_action.iter().any(|number| !number.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "safe_action is {safe_action:?}, needs finite numbers"
            )));
        }
        let observation = observation
            .into_iter()
            .map(|channel| channel.inner)
            .collect();
        let action = action.into_iter().map(|channel| channel.inner).collect();
        let inner = bodies::BodySpec {
            name,
            dt_s: dt,
            observation,
            action,
            safe_action,
        };
        inner.check().or_raise()?;
        Ok(Self { inner })
    }

    /// An observation as one vector, float32 of shape (elements,), of a dict with a number or an
    /// array for each channel.
    ///
    /// Raises ValueError naming a channel that is missing or unknown, or whose value has another
    /// shape or elements that its type cannot represent.
    fn flatten<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(py, flattened(observation, &self.inner)?))
    }

    /// An observation as a dict with an array for each channel, of its shape and dtype, of one
    /// vector of shape (elements,).
    ///
    /// Raises ValueError for a vector of another length.
    fn unflatten<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let elements = numbers(observation, "observation", self.inner.observation_len())?;
        let dict = PyDict::new(py);
        for (channel, range) in self.inner.observation.iter().zip(self.inner.ranges()) {
            let vector = PyArray1::from_slice(py, &elements[range]);
            let array = vector.call_method1("astype", (channel.element.name(),))?;
            let array = array.call_method1("reshape", (PyTuple::new(py, &channel.shape)?,))?;
            dict.set_item(&channel.name, array)?;
        }
        Ok(dict)
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

    /// The channels of an observation, in order.
    #[getter]
    fn observation(&self) -> Vec<ObservationChannel> {
        self.inner
            .observation
            .iter()
            .map(|channel| ObservationChannel {
                inner: channel.clone(),
            })
            .collect()
    }

    /// The numbers of an action, in order.
    #[getter]
    fn action(&self) -> Vec<ActionChannel> {
        self.inner
            .action
            .iter()
            .map(|channel| ActionChannel {
                inner: channel.clone(),
            })
            .collect()
    }

    /// The action applied when the brain gives none.
    #[getter]
    fn safe_action(&self) -> Vec<f32> {
        self.inner.safe_action.clone()
    }

    /// What `copy` and `pickle` make it of again.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let spec = &self.inner;
        let channels = (self.observation(), self.action(), self.safe_action());
        (&spec.name, spec.dt_s, channels.0, channels.1, channels.2).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        let spec = &self.inner;
        format!(
            "BodySpec('{}', dt={}, {} observation channels, {} action channels)",
            spec.name,
            spec.dt_s,
            spec.observation.len(),
            spec.action.len()
        )
    }
}

/// A built-in body, for one loop or to be stepped by hand.
///
/// `reset(seed)` returns an observation, `step(action)` returns
/// `(observation, reward, terminated, truncated)`. `tectum.body(name)` makes one.
#[pyclass(frozen, subclass, module = "tectum")]
pub struct NativeBody {
    /// The name or file that it was made by.
    source: String,
    /// Where it starts, unless that is the body's own.
    start: Option<String>,
    spec: bodies::BodySpec,
    /// None while a loop owns it, and after `close`.
    inner: Exclusive<Option<Box<dyn bodies::Body>>>,
    is_closed: AtomicBool,
}

impl NativeBody {
    /// A body by the name or file that it was made by, as in scenarios.
    pub fn new(source: String, start: Option<&str>, body: Box<dyn bodies::Body>) -> Self {
        Self {
            source,
            start: start.map(str::to_owned),
            spec: body.spec().clone(),
            inner: Exclusive::new(Some(body)),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The name or file that it was made by, as in scenarios.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn missing(&self) -> tectum::Error {
        let why = match self.is_closed.load(Ordering::Relaxed) {
            true => "it is closed",
            false => "a loop owns it",
        };
        tectum::Error::invalid(format!("body {}: {why}", self.spec.name))
    }

    /// Runs work with the body: of a family, which may wait for another process, without the
    /// interpreter's lock, and Ctrl-C ends the wait.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn bodies::Body) -> tectum::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (mut held, missing) = (self.inner.lock(py)?, self.missing());
        if bodies::Family::of(&self.spec.name).is_none() {
            let body = held.as_deref_mut().ok_or(missing).or_raise()?;
            return work(body).or_raise();
        }
        let (_, result) = self.inner.run(py, held, move |body| {
            work(body.as_deref_mut().ok_or(missing)?)
        })?;
        Ok(result)
    }

    /// Ends the body, unless a loop owns it; again, it does nothing.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.inner.lock(py)?.take() {
            Some(body) => {
                self.is_closed.store(true, Ordering::Relaxed);
                // Its threads end first.
                process::detach(py, move || drop(body));
                Ok(())
            }
            None if self.is_closed.load(Ordering::Relaxed) => Ok(()),
            None => Err(self.missing()).or_raise(),
        }
    }

    /// Lends the body to a loop.
    ///
    /// Raises ValueError if another loop owns it.
    pub fn lend(&self, py: Python<'_>) -> PyResult<Lent<Box<dyn bodies::Body>>> {
        Lent::new(py, &self.inner)?
            .ok_or_else(|| self.missing())
            .or_raise()
    }
}

impl Drop for NativeBody {
    fn drop(&mut self) {
        // A loop that owns it drops it.
        if let Ok(mut body) = self.inner.lock_detached() {
            body.take().into_iter().for_each(process::drop_detached);
        }
    }
}

/// A value that a loop owns for a time; it goes back when this is dropped.
pub struct Lent<T: Send> {
    home: Exclusive<Option<T>>,
    /// None while the loop has it.
    pub value: Option<T>,
}

impl<T: Send> Lent<T> {
    /// None if the value is not there.
    pub fn new(py: Python<'_>, home: &Exclusive<Option<T>>) -> PyResult<Option<Self>> {
        let value = home.lock(py)?.take();
        Ok(value.map(|value| Self {
            home: home.clone(),
            value: Some(value),
        }))
    }
}

impl<T: Send> Drop for Lent<T> {
    fn drop(&mut self) {
        // A thread that has the lock until then only looks whether the value is there.
        if let (Some(value), Ok(mut home)) = (self.value.take(), self.home.lock_detached()) {
            *home = Some(value);
        }
    }
}

fn observation(body: &dyn bodies::Body) -> Vec<f32> {
    let mut numbers = vec![0.0; body.spec().observation_len()];
    body.observe(&mut numbers);
    numbers
}

#[pymethods]
impl NativeBody {
    /// The constants of the body.
    #[getter]
    fn spec(&self) -> BodySpec {
        BodySpec::of(&self.spec)
    }

    /// Puts the body at its start and returns the observation; the same seed gives the same start
    /// on every machine.
    #[pyo3(signature = (seed: "int" = 0))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let _call = process::enter(py)?;
        let numbers = self.with(py, move |body| {
            body.reset(seed);
            body.health()?;
            Ok(observation(body))
        })?;
        Ok(PyArray1::from_vec(py, numbers))
    }

    /// The observation, float32 of shape (elements,): one for each number, all of each array;
    /// `spec.unflatten` makes a dict of it.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let _call = process::enter(py)?;
        let numbers = self.with(py, |body| Ok(observation(body)))?;
        Ok(PyArray1::from_vec(py, numbers))
    }

    /// Applies an action for one period. Returns `(observation, reward, terminated, truncated)`.
    ///
    /// Raises ValueError if the action does not have one number for each channel.
    fn step<'py>(
        &self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, f64, bool, bool)> {
        let _call = process::enter(py)?;
        let action = numbers(action, "action", self.spec.action.len())?;
        let (numbers, step) = self.with(py, move |body| {
            let step = body.step(&action);
            body.health()?;
            Ok((observation(body), step))
        })?;
        let numbers = PyArray1::from_vec(py, numbers);
        Ok((numbers, step.reward, step.terminated, step.truncated))
    }

    /// The exact state, float64: everything that the next step depends on. Raises UnsupportedError
    /// for a body that has none.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let _call = process::enter(py)?;
        let state = self.with(py, |body| {
            let state = body.state()?;
            body.health()?;
            Ok(state)
        })?;
        Ok(PyArray1::from_vec(py, state))
    }

    #[setter]
    fn set_state(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let state = array(state, "state")?.into_vec()?;
        self.with(py, move |body| body.set_state(&state))
    }

    /// A drawing of the body as it is now, as a dict: `min` and `max`, the corners of the region in
    /// metres, and `shapes`, each with its `shape` ("line", "disc" or "rectangle"), its `role` and
    /// its measures in metres. A body of unknown geometry has a gauge for each channel.
    #[getter]
    fn schematic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let schematic = self.with(py, |body| Ok(body.schematic()))?;
        json::to_python(py, &schematic)
    }

    /// The drawing as a picture, or MuJoCo's picture of its model: uint8 of shape (height, width, 3), red, green and blue.
    ///
    /// Raises ValueError for a side that is not from 1 to 4096.
    #[pyo3(signature = (width = 600, height = 400))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        width: u32,
        height: u32,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let _call = process::enter(py)?;
        let picture = self.with(py, move |body| {
            let sides = 1..=picture::MAX_SIDE;
            if sides.contains(&width)
                && sides.contains(&height)
                && let Some(picture) = body.picture(width, height)?
            {
                return Ok(picture.rgb);
            }
            picture::draw(&body.schematic(), width, height).ok_or_else(|| {
                tectum::Error::invalid(format!(
                    "width is {width} and height {height}, each needs 1 to {}",
                    picture::MAX_SIDE
                ))
            })
        })?;
        PyArray1::from_vec(py, picture).reshape([height as usize, width as usize, 3])
    }

    /// For `copy` and `pickle`: what it was made by, and its state. Raises UnsupportedError for a
    /// body without exact state.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Recipe)> {
        let _call = process::enter(py)?;
        let state = self.with(py, |body| body.state())?;
        let make = py.import("tectum._tectum")?.getattr("_restored_body")?;
        Ok((make, (self.source.clone(), self.start.clone(), state)))
    }

    fn __repr__(&self) -> String {
        format!("<tectum body '{}'>", self.spec.name)
    }
}

/// Name or file, start and state of a body.
type Recipe = (String, Option<String>, Vec<f64>);

/// A body in a state, for `pickle`.
#[pyfunction]
#[pyo3(name = "_restored_body")]
pub fn restored_body(
    py: Python<'_>,
    name: String,
    start: Option<String>,
    state: Vec<f64>,
) -> PyResult<NativeBody> {
    let body = body(py, name.into(), start.as_deref())?;
    body.with(py, move |body| body.set_state(&state))?;
    Ok(body)
}

/// Makes a body: a built-in one, that of an equation file (`FILE.plant`), or of a MuJoCo model that
/// a process of its own steps (`mujoco:SCENE.xml`; `MujocoBody` is one in this process). `start` is
/// "hanging" or "random"; without it the body's own.
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
pub fn body(py: Python<'_>, name: PathBuf, start: Option<&str>) -> PyResult<NativeBody> {
    let _call = process::enter(py)?;
    let known = start.map(bodies::Start::from_name).transpose().or_raise()?;
    let source = name.to_string_lossy().into_owned();
    let name = source.clone();
    let body = run_long(py, move || named_body(&name, known))?;
    Ok(NativeBody::new(source, start, body))
}

/// The program that steps MuJoCo models, which `MujocoBody` executes.
///
/// >>> import tectum._tectum
/// >>> "class MujocoSimulation" in tectum._tectum.mujoco_program()
/// True
#[pyfunction]
pub fn mujoco_program(py: Python<'_>) -> PyResult<&'static str> {
    let _call = process::enter(py)?;
    Ok(bodies::mujoco::SOURCE)
}

/// The exception that a callback raised, for the loop that called it.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// An object of Python as a body.
pub struct PythonBody {
    object: Py<PyAny>,
    spec: bodies::BodySpec,
    observation: Vec<f32>,
    raised: Raised,
}

impl PythonBody {
    pub fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let spec = spec_of(object)?;
        for method in ["reset", "step"] {
            if !object.hasattr(method)? {
                return Err(PyTypeError::new_err(format!(
                    "body {}: it has no method `{method}`",
                    spec.name
                )));
            }
        }
        let observation = vec![0.0; spec.observation_len()];
        Ok(Self {
            object: object.clone().unbind(),
            spec,
            observation,
            raised: raised.clone(),
        })
    }

    fn call(&mut self, work: impl FnOnce(&mut Self, Python<'_>) -> PyResult<Step>) -> Step {
        if locked(&self.raised).is_some() {
            return Step {
                refused: true,
                ..Step::default()
            };
        }
        process::attach(|py| {
            work(self, py).unwrap_or_else(|error| {
                locked(&self.raised).get_or_insert(error);
                Step {
                    refused: true,
                    ..Step::default()
                }
            })
        })
    }

    fn observe_from(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.observation = observation_from(value, &self.spec)?;
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
            this.observe_from(&value)?;
            Ok(Step::default())
        });
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&self.observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        self.call(|this, py| {
            let object = this.object.bind(py).clone();
            // A plant cannot wait until a brain recovers.
            let refused = action.iter().any(|number| !number.is_finite());
            let action = if refused { &this.spec.safe_action } else { action };
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
            this.observe_from(&answer.get_item(0)?)?;
            Ok(Step {
                reward: answer.get_item(1)?.extract()?,
                terminated: answer.get_item(2)?.is_truthy()?,
                truncated: answer.get_item(3)?.is_truthy()?,
                refused,
            })
        })
    }
}

/// The constants of a body, from whatever has them.
pub fn spec_of(object: &Bound<'_, PyAny>) -> PyResult<bodies::BodySpec> {
    if let Ok(spec) = object.extract::<BodySpec>() {
        return Ok(spec.inner);
    }
    if let Ok(name) = object.extract::<PathBuf>() {
        let name = name.to_string_lossy().into_owned();
        return run_long(object.py(), move || {
            Ok(named_body(&name, None)?.spec().clone())
        });
    }
    let spec = object
        .getattr("spec")
        .and_then(|spec| Ok(spec.extract::<BodySpec>()?));
    Ok(spec
        .map_err(|error| {
            PyTypeError::new_err(format!(
                "body: {} has no `spec` that is a BodySpec: {error}",
                object.get_type()
            ))
        })?
        .inner)
}
