//! Genomes as networks.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyRange;
use tectum::WorkProgress;
use tectum_spiking::genome::{self as genomes, GenomeOptions, UnitPolicy, WeightLossPolicy};
use tectum_spiking::{
    ConnectOptions, NetworkOptions, SimulationOptions, Stimulus, connect, seed_of,
};

use super::{SpikingNetwork, unknown_area};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::interrupt::{LongWork, run_long};
use crate::process;
use crate::whole;

/// An area of a genome: `id`, `name`, `role` ("core", "input", "output", "memory" or "custom"),
/// `size` in voxels along x, y and z, and its `neurons`.
#[pyclass(frozen, module = "tectum")]
pub struct Area {
    inner: genomes::Area,
}

#[pymethods]
impl Area {
    /// The id in the genome.
    #[getter]
    fn id(&self) -> String {
        self.inner.id.to_string()
    }

    /// The display name; may be empty.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// "core", "input", "output", "memory" or "custom".
    #[getter]
    fn role(&self) -> &'static str {
        self.inner.role.name()
    }

    /// Voxels along x, y and z.
    #[getter]
    fn size(&self) -> (u32, u32, u32) {
        self.inner.size.into()
    }

    /// Neurons in each voxel.
    #[getter]
    fn neurons_per_voxel(&self) -> u32 {
        self.inner.per_voxel
    }

    /// The numbers of its neurons: x, then y, then z, then the place in the voxel, which varies
    /// fastest.
    #[getter]
    fn neurons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyRange>> {
        PyRange::new(
            py,
            self.inner.neurons.start as isize,
            self.inner.neurons.end as isize,
        )
    }

    fn __repr__(&self) -> String {
        let [x, y, z] = self.inner.size;
        format!(
            "<tectum area '{}' ({}): {x} x {y} x {z} voxels>",
            self.inner.name,
            self.inner.role.name()
        )
    }
}

/// A FEAGI genome, checked (docs/genomes.md).
///
/// `units` is "detect", "fraction" or "legacy". `weight_loss` says when synapses that learn lose
/// weight: "any_firing" (either end fired in any burst of the window), "steady_source" (the source
/// fired in every burst of it), or "detect". With `strict` a morphology without a known definition
/// is an error rather than a warning.
///
/// Raises FileNotFoundError, DataError naming area and key, UnsupportedError for a function without
/// a known definition.
///
/// >>> import tectum as tt
/// >>> genome = tt.Genome(tt.sample("sample-genome"))
/// >>> [(area.name, len(area.neurons)) for area in genome.areas]
/// [('in', 64), ('mid', 64)]
/// >>> genome.network(stimulus=0.1).run(200).spike_hash
/// '45e51a3e0c4d4310'
#[pyclass(frozen, module = "tectum")]
pub struct Genome {
    inner: Arc<genomes::Genome>,
}

#[pymethods]
impl Genome {
    #[new]
    #[pyo3(signature = (path, *, units = "detect", strict = false, weight_loss = "detect"))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        units: &str,
        strict: bool,
        weight_loss: &str,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let units: UnitPolicy = units
            .parse()
            .map_err(|error| PyValueError::new_err(format!("units: {error}")))?;
        let weight_loss: WeightLossPolicy = weight_loss
            .parse()
            .map_err(|error: tectum::Error| PyValueError::new_err(error.to_string()))?;
        let options = GenomeOptions {
            units,
            weight_loss,
            strict,
        };
        let inner = run_long(py, move || genomes::Genome::read(&path, &options))?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The title.
    #[getter]
    fn title(&self) -> &str {
        self.inner.title()
    }

    /// The areas, in the order of their neurons.
    #[getter]
    fn areas(&self) -> Vec<Area> {
        self.inner
            .areas()
            .iter()
            .map(|area| Area {
                inner: area.clone(),
            })
            .collect()
    }

    /// The area of a name or an id. Raises ValueError listing the areas.
    fn area(&self, name: &str) -> PyResult<Area> {
        let index = self
            .inner
            .area(name)
            .ok_or_else(|| unknown_area(&self.inner, name))?;
        Ok(Area {
            inner: self.inner.areas()[index].clone(),
        })
    }

    /// Number of neurons, without those of memories.
    #[getter]
    fn neurons(&self) -> u32 {
        self.inner.neurons()
    }

    /// What the genome has that is read otherwise than written, or not at all.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }

    /// Connects the genome on a device.
    ///
    /// `seed` determines synapses that exist with a probability, and the neurons' draws. `stimulus`
    /// is the fraction of the neurons of input areas that gets `stimulus_amount` in each burst, at
    /// random. Without `learns`, plastic synapses keep their weights. `memory_neurons` is the
    /// maximum number of patterns of each memory area. `silence` is "catch_up" or "freeze", as in
    /// `SpikingNetwork`, and so is `shards`. With `progress`, tqdm shows it.
    ///
    /// Raises ValueError or UnsupportedError naming area or mapping.
    #[pyo3(signature = (*, device = DeviceArgument::Id("cpu".to_owned()), seed: "int" = 0, stimulus = 0.0, stimulus_amount = 1.0, learns = true, memory_neurons: "int" = 1024, silence = "catch_up", progress = false, shards: "int" = 1))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn network(
        &self,
        py: Python<'_>,
        device: DeviceArgument<'_>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        stimulus: f64,
        stimulus_amount: f32,
        learns: bool,
        #[pyo3(from_py_with = whole::memory_neurons)] memory_neurons: u32,
        silence: &str,
        progress: bool,
        #[pyo3(from_py_with = whole::shards)] shards: usize,
    ) -> PyResult<SpikingNetwork> {
        let _call = process::enter(py)?;
        super::check_shards(shards)?;
        let (device, idle_update) = (device.open(py)?, super::idle_update(silence)?);
        let genome = self.inner.clone();
        LongWork::new(py, progress)?.run(py, move |interrupt| {
            let stimulus = Stimulus::new(&genome, stimulus, seed)
                .and_then(|stimulus| stimulus.with_amount(stimulus_amount))
                .or_raise()?;
            let network = NetworkOptions {
                idle_update,
                seed: seed_of(seed),
                ..NetworkOptions::default()
            };
            let options = ConnectOptions {
                seed,
                learns,
                memory_neurons,
                network,
            };
            let connected = connect(&genome, options.clone(), &mut |done: WorkProgress<'_>| {
                interrupt.watch(done)
            })
            .or_raise()?;
            let checked = stimulus.check(&connected.network);
            checked
                .map_err(|error| error.at("stimulus_amount"))
                .or_raise()?;
            let is_plastic = connected.network.plastic_synapses() > 0;
            let max_inputs = connected.network.neurons() as usize;
            let simulated = SimulationOptions {
                constant_inputs: connected.constant_inputs,
                max_inputs,
                ..SimulationOptions::default()
            };
            let network = SpikingNetwork::new(
                connected.network,
                device.as_ref(),
                shards,
                &simulated,
                Some(stimulus),
            )
            .or_raise()?;
            let mut notes = connected.notes;
            notes.extend(is_plastic.then(|| genome.weight_loss().note()));
            Ok(network.of_genome(genome, options, connected.memories, notes))
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum genome '{}': {} areas, {} neurons>",
            self.inner.title(),
            self.inner.areas().len(),
            self.inner.neurons()
        )
    }
}
