//! What happened in each burst, as arrays.

use std::sync::{Arc, Mutex};

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::array::shaped;
use crate::mutex::locked;
use crate::process::enter;

/// Firings in the order of their bursts.
#[derive(Default)]
pub struct SpikeLog {
    /// For each neuron whether it is recorded; none for all.
    selected: Option<Vec<bool>>,
    bursts: Vec<u32>,
    neurons: Vec<u32>,
}

impl SpikeLog {
    /// Adds the firings of a burst.
    pub fn add(&mut self, burst: u32, fired: &[u32]) {
        let before = self.neurons.len();
        match &self.selected {
            None => self.neurons.extend_from_slice(fired),
            Some(selected) => self
                .neurons
                .extend(fired.iter().filter(|neuron| selected[**neuron as usize])),
        }
        self.bursts
            .resize(self.bursts.len() + self.neurons.len() - before, burst);
    }
}

/// Potentials of some neurons at the ends of bursts.
pub struct PotentialLog {
    selected: Vec<u32>,
    every: u32,
    bursts: Vec<u32>,
    potentials: Vec<f64>,
}

impl PotentialLog {
    /// Adds the potentials at the end of a burst.
    pub fn add(&mut self, burst: u32, potentials: &[f64]) {
        if burst.is_multiple_of(self.every) {
            self.bursts.push(burst);
            self.potentials.extend(
                self.selected
                    .iter()
                    .map(|neuron| potentials[*neuron as usize]),
            );
        }
    }
}

/// A monitor's log, which the network fills.
pub type SpikeSink = Arc<Mutex<SpikeLog>>;
/// A monitor's log, which the network fills.
pub type PotentialSink = Arc<Mutex<PotentialLog>>;

/// The firings of a network from `SpikingNetwork.monitor` on: `t` has the burst and `i` the neuron
/// of each.
#[pyclass(frozen, module = "tectum")]
pub struct SpikeMonitor {
    log: SpikeSink,
}

impl SpikeMonitor {
    /// A monitor of some neurons, or of all of them, and the log to fill.
    pub fn new(neurons: u32, selected: Option<Vec<u32>>) -> (Self, SpikeSink) {
        let mask = |selected: Vec<u32>| {
            let mut mask = vec![false; neurons as usize];
            selected
                .into_iter()
                .for_each(|neuron| mask[neuron as usize] = true);
            mask
        };
        let log = Arc::new(Mutex::new(SpikeLog {
            selected: selected.map(mask),
            ..SpikeLog::default()
        }));
        (Self { log: log.clone() }, log)
    }
}

#[pymethods]
impl SpikeMonitor {
    /// The burst of each firing, ascending: uint32 of shape (firings,).
    #[getter]
    fn t<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let _call = enter(py)?;
        let bursts = locked(&self.log).bursts.clone();
        Ok(PyArray1::from_vec(py, bursts))
    }

    /// The neuron of each firing: uint32 of shape (firings,).
    #[getter]
    fn i<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let _call = enter(py)?;
        let neurons = locked(&self.log).neurons.clone();
        Ok(PyArray1::from_vec(py, neurons))
    }

    /// Forgets the firings so far.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let _call = enter(py)?;
        let mut log = locked(&self.log);
        (log.bursts, log.neurons) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// Draws the record by matplotlib, and returns the axes.
    #[pyo3(signature = (axes = None))]
    fn plot<'py>(
        this: &Bound<'py, Self>,
        axes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("tectum.plots")?
            .call_method1("plot_spikes", (this, axes))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let _call = enter(py)?;
        Ok(locked(&self.log).bursts.len())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<tectum spike monitor: {} firings>",
            self.__len__(py)?
        ))
    }
}

/// The potentials of some neurons from `SpikingNetwork.potential_monitor` on: `t` has the bursts,
/// `v` a row of potentials for each.
#[pyclass(frozen, module = "tectum")]
pub struct PotentialMonitor {
    log: PotentialSink,
}

impl PotentialMonitor {
    /// A monitor of some neurons, and the log to fill.
    pub fn new(selected: Vec<u32>, every: u32) -> (Self, PotentialSink) {
        let log = Arc::new(Mutex::new(PotentialLog {
            selected,
            every,
            bursts: Vec::new(),
            potentials: Vec::new(),
        }));
        (Self { log: log.clone() }, log)
    }
}

#[pymethods]
impl PotentialMonitor {
    /// The bursts, ascending: uint32 of shape (rows,).
    #[getter]
    fn t<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let _call = enter(py)?;
        let bursts = locked(&self.log).bursts.clone();
        Ok(PyArray1::from_vec(py, bursts))
    }

    /// The potentials: float64 of shape (rows, neurons), in units of psp times weight.
    #[getter]
    fn v<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = enter(py)?;
        let (potentials, shape) = {
            let log = locked(&self.log);
            let shape = [log.bursts.len(), log.selected.len()];
            (log.potentials.clone(), shape)
        };
        shaped(py, potentials, &shape)
    }

    /// The recorded neurons, in the order of the columns of `v`: uint32 of shape (neurons,).
    #[getter]
    fn i<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let _call = enter(py)?;
        let selected = locked(&self.log).selected.clone();
        Ok(PyArray1::from_vec(py, selected))
    }

    /// Forgets the potentials so far.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let _call = enter(py)?;
        let mut log = locked(&self.log);
        (log.bursts, log.potentials) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// Draws the record by matplotlib, and returns the axes.
    #[pyo3(signature = (axes = None))]
    fn plot<'py>(
        this: &Bound<'py, Self>,
        axes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("tectum.plots")?
            .call_method1("plot_potentials", (this, axes))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let _call = enter(py)?;
        Ok(locked(&self.log).bursts.len())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = enter(py)?;
        let log = locked(&self.log);
        Ok(format!(
            "<tectum potential monitor: {} neurons, {} bursts>",
            log.selected.len(),
            log.bursts.len()
        ))
    }
}
