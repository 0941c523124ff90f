//! Groups of neurons before they are connected.

use pyo3::prelude::*;
use pyo3::types::PyRange;
use tectum_spiking::NeuronOptions;

use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::process;
use crate::whole;

/// Groups of neurons with the same options, for `SpikingNetwork`.
///
/// >>> import tectum as tt
/// >>> neurons = tt.Neurons()
/// >>> neurons.add(80, threshold=10.0, leak=0.1), neurons.add(20, threshold=5.0, refractory=2)
/// (range(0, 80), range(80, 100))
/// >>> len(neurons)
/// 100
#[pyclass(frozen, module = "tectum")]
pub struct Neurons {
    inner: Exclusive<tectum_spiking::Neurons>,
}

impl Neurons {
    /// The neurons so far.
    pub fn copy(&self, py: Python<'_>) -> PyResult<tectum_spiking::Neurons> {
        Ok(self.inner.lock(py)?.clone())
    }
}

#[pymethods]
impl Neurons {
    #[new]
    fn new() -> Self {
        Self {
            inner: Exclusive::new(tectum_spiking::Neurons::default()),
        }
    }

    /// Adds `count` neurons with the same options and returns their numbers.
    ///
    /// `threshold` is the potential from which a neuron fires, up to `threshold_limit`; it starts
    /// at and returns to `resting_potential`. `leak` is the fraction that is lost in a burst (0 to
    /// 1), `excitability` the probability of firing (0 to 1), `refractory` the bursts after a
    /// firing in which arrivals are lost. After `consecutive_fire_limit` firings in a row, `snooze`
    /// bursts are added to that period. Without `charge_accumulation` the potential does not
    /// persist. A firing sends `psp` (0 to 255) divided by the number of synapses, or the whole of
    /// it to each with `uniform_psp`; with `potential_driven_psp` it sends the potential.
    ///
    /// Raises ValueError naming the option that is out of range.
    #[pyo3(signature = (count: "int", *, threshold = 1.0, threshold_limit = None, resting_potential = 0.0, leak = 0.0, excitability = 1.0, refractory: "int" = 0, consecutive_fire_limit: "int" = 0, snooze: "int" = 0, charge_accumulation = true, psp: "int" = 1, uniform_psp = false, potential_driven_psp = false))]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keywords of Python"
    )]
    fn add<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole::count)] count: u32,
        threshold: f32,
        threshold_limit: Option<f32>,
        resting_potential: f32,
        leak: f32,
        excitability: f32,
        #[pyo3(from_py_with = whole::refractory)] refractory: u16,
        #[pyo3(from_py_with = whole::consecutive_fire_limit)] consecutive_fire_limit: u16,
        #[pyo3(from_py_with = whole::snooze)] snooze: u16,
        charge_accumulation: bool,
        #[pyo3(from_py_with = whole::psp)] psp: u8,
        uniform_psp: bool,
        potential_driven_psp: bool,
    ) -> PyResult<Bound<'py, PyRange>> {
        let options = NeuronOptions {
            threshold,
            threshold_limit,
            resting_potential,
            leak,
            excitability,
            refractory,
            consecutive_fire_limit,
            snooze,
            charge_accumulation,
            psp,
            uniform_psp,
            potential_driven_psp,
        };
        let _call = process::enter(py)?;
        let added = self.inner.lock(py)?.add(count, &options).or_raise()?;
        PyRange::new(py, added.start as isize, added.end as isize)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let _call = process::enter(py)?;
        Ok(self.inner.lock(py)?.len() as usize)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<tectum neurons: {}>", self.__len__(py)?))
    }
}
