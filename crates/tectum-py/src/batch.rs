//! Many instances of a body, stepped at once on a device.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tectum_control::body::batch::Batch;
use tectum_control::body::{self as bodies, BodySettings, Start};

use crate::array::{array, floats, shaped};
use crate::body::BodySpec;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::{Receipt, Runs};
use crate::sequence::Sequence;
use crate::whole;

/// What a step of all instances returned: observations, rewards, and whether each episode ended.
type Stepped<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
);

/// Many instances of a body, stepped at once on a device, in float32.
///
/// `name` is a built-in body or an equation file. An instance whose episode ended is reset to its
/// start by the next step, which returns that start and no reward. `tectum.gym` has vector
/// environments of these.
///
/// Raises ValueError for an unknown name or no instances, UnsupportedError for a body that has no
/// such kernel.
///
/// >>> import numpy as np, tectum as tt
/// >>> poles = tt.BodyBatch("cart_pole", 100)
/// >>> poles.reset(seed=1).shape
/// (100, 4)
/// >>> observations, rewards, terminated = poles.step(np.full((100, 1), 10.0))
/// >>> rewards.sum(), terminated.any()
/// (np.float64(100.0), np.False_)
#[pyclass(frozen, module = "tectum")]
pub struct BodyBatch {
    inner: Exclusive<Batch>,
    runs: Runs,
    spec: bodies::BodySpec,
    count: usize,
}

#[pymethods]
impl BodyBatch {
    #[new]
    #[pyo3(signature = (name, count: "int", *, start = None, device = DeviceArgument::Id("cpu".to_owned())))]
    fn new(
        py: Python<'_>,
        name: PathBuf,
        #[pyo3(from_py_with = whole::count)] count: usize,
        start: Option<&str>,
        device: DeviceArgument<'_>,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let name = name.to_string_lossy().into_owned();
        let start = start.map(Start::from_name).transpose().or_raise()?;
        if start.is_some() && name.ends_with(".plant") {
            return Err(PyValueError::new_err(format!(
                "{name}: start is not possible; the file says where its states start"
            )));
        }
        let device = device.open(py)?;
        let batch = run_long(py, move || match start {
            None => Batch::new(&name, count, device.as_ref()),
            start => Batch::of(
                &BodySettings {
                    start,
                    ..BodySettings::named(&name)
                },
                count,
                device.as_ref(),
            ),
        })?;
        Ok(Self {
            spec: batch.spec().clone(),
            runs: Runs::new(batch.device(), batch.code()),
            inner: Exclusive::new(batch),
            count,
        })
    }

    /// The constants of the body.
    #[getter]
    fn spec(&self) -> BodySpec {
        BodySpec::of(&self.spec)
    }

    fn __len__(&self) -> usize {
        self.count
    }

    /// Resets instance k to the body's start for `seed + k`, or all to those of a list of seeds,
    /// and returns the observations: float32 of shape (count, channels).
    #[pyo3(signature = (seed: "int | None" = None, *, seeds: "Sequence[int] | None" = None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole::seed)] seed: Option<u64>,
        #[pyo3(from_py_with = whole::seeds)] seeds: Option<Sequence<u64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let seeds = match (seed, seeds) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("reset: give seed or seeds, not both"));
            }
            (seed, None) => (0..self.count as u64)
                .map(|k| seed.unwrap_or(0).wrapping_add(k))
                .collect(),
            (None, Some(Sequence(seeds))) if seeds.len() == self.count => seeds,
            (None, Some(Sequence(seeds))) => {
                return Err(PyValueError::new_err(format!(
                    "{} seeds for {} instances",
                    seeds.len(),
                    self.count
                )));
            }
        };
        let all: Vec<usize> = (0..self.count).collect();
        self.restart(py, Sequence(all), Sequence(seeds))
    }

    /// Resets some instances, each to the body's start for its seed; returns their observations:
    /// float32 of shape (instances, channels).
    #[pyo3(signature = (instances: "Sequence[int]", seeds: "Sequence[int]"))]
    fn restart<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole::instances)] instances: Sequence<usize>,
        #[pyo3(from_py_with = whole::seeds)] seeds: Sequence<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let (Sequence(instances), Sequence(seeds)) = (instances, seeds);
        if instances.len() != seeds.len() {
            return Err(PyValueError::new_err(format!(
                "{} seeds for {} instances",
                seeds.len(),
                instances.len()
            )));
        }
        let restarts: Vec<(usize, u64)> = instances.into_iter().zip(seeds).collect();
        let count = restarts.len();
        let (_, observations) = self.inner.run(py, self.inner.lock(py)?, move |batch| {
            batch.restart(&restarts)
        })?;
        shaped(py, observations, &[count, self.spec.observation.len()])
    }

    /// Steps every instance by one period under its action, of shape (count, action channels).
    ///
    /// Returns `(observations, rewards, terminated)`: float32 of shape (count, channels), float64
    /// and bool of shape (count,). Raises ValueError for another shape.
    fn step<'py>(&self, py: Python<'py>, actions: &Bound<'py, PyAny>) -> PyResult<Stepped<'py>> {
        let _call = process::enter(py)?;
        let actions = floats(actions, "actions")?;
        let needed = [self.count, self.spec.action.len()];
        if actions.shape() != needed {
            return Err(PyValueError::new_err(format!(
                "actions have the shape {:?}, needs {needed:?}",
                actions.shape()
            )));
        }
        let actions = actions.into_vec()?;
        let (count, width) = (self.count, self.spec.observation.len());
        let (batch, runs) = (self.inner.lock(py)?, self.runs.clone());
        let (_, stepped) = self.inner.run(py, batch, move |batch| {
            runs.timed(|| batch.step(&actions))?;
            let mut observations = Vec::with_capacity(count * width);
            (0..count)
                .for_each(|instance| observations.extend_from_slice(batch.observation(instance)));
            let rewards: Vec<f64> = (0..count)
                .map(|instance| f64::from(batch.reward(instance)))
                .collect();
            let terminated: Vec<bool> = (0..count)
                .map(|instance| batch.is_terminated(instance))
                .collect();
            Ok((observations, rewards, terminated))
        })?;
        let (observations, rewards, terminated) = stepped;
        Ok((
            shaped(py, observations, &[count, width])?,
            PyArray1::from_vec(py, rewards),
            PyArray1::from_vec(py, terminated),
        ))
    }

    /// The exact states: float32 of shape (count, numbers), as `NativeBody.state` orders them.
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let (_, states) = self
            .inner
            .run(py, self.inner.lock(py)?, |batch| batch.states())?;
        let width = states.first().map_or(0, Vec::len);
        shaped(
            py,
            states.into_iter().flatten().collect(),
            &[self.count, width],
        )
    }

    #[setter]
    fn set_states(&self, py: Python<'_>, states: &Bound<'_, PyAny>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let states = array::<f64>(states, "states")?;
        let &[rows, width] = states.shape() else {
            return Err(PyValueError::new_err(format!(
                "states have the shape {:?}, needs a row for each of {} instances",
                states.shape(),
                self.count
            )));
        };
        let numbers = states.into_vec()?;
        let rows: Vec<Vec<f64>> = (0..rows)
            .map(|row| numbers[row * width..(row + 1) * width].to_vec())
            .collect();
        let batch = self.inner.lock(py)?;
        self.inner
            .run(py, batch, move |batch| batch.set_states(&rows))?;
        Ok(())
    }

    /// On which device and by which code the steps were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum batch: {} of body '{}'>",
            self.count, self.spec.name
        )
    }
}
