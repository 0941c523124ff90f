//! Many instances of a body, stepped at once on a device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use tectum_control::body::batch::Batch;
use tectum_control::body::{self as bodies, BodySettings, Start};

use crate::array::{floats, shaped};
use crate::body::{BodySpec, locked};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::interrupt::detached;
use crate::receipt::{Receipt, Runs};
use crate::sequence::Sequence;

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
    inner: Mutex<Batch>,
    runs: Runs,
    spec: bodies::BodySpec,
    count: usize,
}

impl BodyBatch {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Batch> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BodyBatch {
    #[new]
    #[pyo3(signature = (name, count, *, start = None, device = DeviceArgument::Id("cpu".to_owned())))]
    fn new(
        py: Python<'_>,
        name: &str,
        count: usize,
        start: Option<&str>,
        device: DeviceArgument<'_>,
    ) -> PyResult<Self> {
        let start = start.map(Start::from_name).transpose().or_raise()?;
        if start.is_some() && name.ends_with(".plant") {
            return Err(PyValueError::new_err(format!(
                "{name}: start is not possible; the file says where its states start"
            )));
        }
        let device = device.open(py)?;
        let batch = detached(py, || match start {
            None => Batch::new(name, count, device.as_ref()),
            start => Batch::of(
                &BodySettings {
                    start,
                    ..BodySettings::named(name)
                },
                count,
                device.as_ref(),
            ),
        })?;
        Ok(Self {
            spec: batch.spec().clone(),
            runs: Runs::new(batch.device(), batch.code()),
            inner: Mutex::new(batch),
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
    #[pyo3(signature = (seed = None, *, seeds = None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seed: Option<u64>,
        seeds: Option<Sequence<u64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
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
    fn restart<'py>(
        &self,
        py: Python<'py>,
        instances: Sequence<usize>,
        seeds: Sequence<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (Sequence(instances), Sequence(seeds)) = (instances, seeds);
        if instances.len() != seeds.len() {
            return Err(PyValueError::new_err(format!(
                "{} seeds for {} instances",
                seeds.len(),
                instances.len()
            )));
        }
        let restarts: Vec<(usize, u64)> = instances.into_iter().zip(seeds).collect();
        let observations = detached(py, || locked(&self.inner).restart(&restarts))?;
        shaped(
            py,
            observations,
            &[restarts.len(), self.spec.observation.len()],
        )
    }

    /// Steps every instance by one period under its action, of shape (count, action channels).
    ///
    /// Returns `(observations, rewards, terminated)`: float32 of shape (count, channels), float64
    /// and bool of shape (count,). Raises ValueError for another shape.
    fn step<'py>(&self, py: Python<'py>, actions: &Bound<'py, PyAny>) -> PyResult<Stepped<'py>> {
        let actions = floats(actions, "actions")?;
        let needed = [self.count, self.spec.action.len()];
        if actions.shape() != needed {
            return Err(PyValueError::new_err(format!(
                "actions have the shape {:?}, needs {needed:?}",
                actions.shape()
            )));
        }
        let actions = actions.as_slice()?;
        let (count, width) = (self.count, self.spec.observation.len());
        let (observations, rewards, terminated) = detached(py, || {
            let mut batch = locked(&self.inner);
            self.runs.timed(|| batch.step(actions))?;
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
        Ok((
            shaped(py, observations, &[count, width])?,
            PyArray1::from_vec(py, rewards),
            PyArray1::from_vec(py, terminated),
        ))
    }

    /// The exact states: float32 of shape (count, numbers), as `NativeBody.state` orders them.
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let states = self.lock(py).states().or_raise()?;
        let width = states.first().map_or(0, Vec::len);
        shaped(
            py,
            states.into_iter().flatten().collect(),
            &[self.count, width],
        )
    }

    #[setter]
    fn set_states(&self, py: Python<'_>, states: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = py
            .import("numpy")?
            .call_method1("asarray", (states, "float64"))?;
        let array = array.extract::<PyReadonlyArray2<'_, f64>>()?;
        let rows: Vec<Vec<f64>> = array
            .as_array()
            .rows()
            .into_iter()
            .map(|row| row.to_vec())
            .collect();
        detached(py, || locked(&self.inner).set_states(&rows))
    }

    /// On which device and by which code the steps were computed.
    #[getter]
    fn receipt(&self) -> Receipt {
        self.runs.receipt()
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum batch: {} of body '{}'>",
            self.count, self.spec.name
        )
    }
}
