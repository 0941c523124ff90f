//! Groups of neurons before they are connected.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyRange;
use tectum_spiking::NeuronOptions;

use crate::body::locked;
use crate::error::OrRaise;

/// Groups of neurons with the same options, for `SpikingNetwork`.
///
/// >>> import tectum as tt
/// >>> neurons = tt.Neurons()
/// >>> neurons.add(80, threshold=10.0, leak=0.1), neurons.add(20, threshold=5.0, refractory=2)
/// (range(0, 80), range(80, 100))
/// >>> len(neurons)
/// 100
#[pyclass(frozen, module = "tectum")]
#[derive(Default)]
pub struct Neurons {
    inner: Mutex<tectum_spiking::Neurons>,
}

impl Neurons {
    /// The neurons so far.
    pub fn inner(&self) -> tectum_spiking::Neurons {
        locked(&self.inner).clone()
    }
}

#[pymethods]
impl Neurons {
    #[new]
    fn new() -> Self {
        Self::default()
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
    #[pyo3(signature = (count, *, threshold = 1.0, threshold_limit = None, resting_potential = 0.0, leak = 0.0, excitability = 1.0, refractory = 0, consecutive_fire_limit = 0, snooze = 0, charge_accumulation = true, psp = 1, uniform_psp = false, potential_driven_psp = false))]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keywords of Python"
    )]
    fn add<'py>(
        &self,
        py: Python<'py>,
        count: u32,
        threshold: f32,
        threshold_limit: Option<f32>,
        resting_potential: f32,
        leak: f32,
        excitability: f32,
        refractory: u16,
        consecutive_fire_limit: u16,
        snooze: u16,
        charge_accumulation: bool,
        psp: u8,
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
        let added = locked(&self.inner).add(count, &options).or_raise()?;
        PyRange::new(py, added.start as isize, added.end as isize)
    }

    fn __len__(&self) -> usize {
        locked(&self.inner).len() as usize
    }

    fn __repr__(&self) -> String {
        format!("<tectum neurons: {}>", locked(&self.inner).len())
    }
}
