//! Spiking networks: neurons and synapses from arrays or genomes, runs, and monitors.

mod column;
mod edges;
mod genome;
mod monitor;
mod neurons;

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange};
use tectum::snapshot::Snapshot;
use tectum::{Error, WorkProgress};
use tectum_spiking::genome::Genome as Blueprint;
use tectum_spiking::{
    ConnectOptions, IdleUpdate, Network, NetworkOptions, PlasticityRule, Simulation,
    SimulationOptions, SpikeCounts as Counts, Stimulus, Synapse, SynapseList, WeightLoss,
    mapping_outcomes, rule_outcomes, seed_of,
};

use crate::array::{broadcast, integers};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::{Interrupt, LongWork, run_long};
use crate::mutex::locked;
use crate::process;
use crate::receipt::Receipt;
use crate::sequence::Sequence;
use crate::whole;

use self::column::Column;
use self::edges::Edges;
pub use genome::{Area, Genome};
pub use monitor::{PotentialMonitor, SpikeMonitor};
pub use neurons::Neurons;

/// The counts of a spiking network so far.
///
/// `bursts`, `spikes` and `events` (synapses that carried a spike) are numbers; `spike_hash` is the
/// same text for the same (burst, neuron) pairs on every device, with any number of threads.
#[pyclass(frozen, eq, hash, get_all, module = "tectum")]
#[derive(PartialEq, Eq, Hash)]
pub struct SpikeCounts {
    /// Bursts so far; the first is number 1.
    bursts: u32,
    /// Firings.
    spikes: u64,
    /// Synapses that carried a spike.
    events: u64,
    /// Checksum of all (burst, neuron) pairs, as 16 hexadecimal digits.
    spike_hash: String,
}

impl From<Counts> for SpikeCounts {
    fn from(counts: Counts) -> Self {
        Self {
            bursts: counts.bursts,
            spikes: counts.spikes,
            events: counts.events,
            spike_hash: format!("{:016x}", counts.spike_hash),
        }
    }
}

#[pymethods]
impl SpikeCounts {
    #[new]
    fn new(bursts: u32, spikes: u64, events: u64, spike_hash: String) -> Self {
        Self {
            bursts,
            spikes,
            events,
            spike_hash,
        }
    }

    /// What `copy` and `pickle` make it of again.
    fn __getnewargs__(&self) -> (u32, u64, u64, String) {
        (
            self.bursts,
            self.spikes,
            self.events,
            self.spike_hash.clone(),
        )
    }

    fn __repr__(&self) -> String {
        format!(
            "SpikeCounts(bursts={}, spikes={}, events={}, spike_hash='{}')",
            self.bursts, self.spikes, self.events, self.spike_hash
        )
    }
}

/// A network on its device, with what is injected into every burst and what observes it.
pub struct Running {
    simulation: Simulation,
    stimulus: Option<Stimulus>,
    spikes: Vec<monitor::SpikeSink>,
    potentials: Vec<monitor::PotentialSink>,
}

impl Running {
    /// Runs until the watch ends it: burst by burst if each needs input or is observed, otherwise
    /// together.
    fn run(&mut self, bursts: u32, interrupt: &mut Interrupt) -> tectum::Result<Counts> {
        // A monitor that no one reads any more costs nothing.
        self.spikes.retain(|sink| Arc::strong_count(sink) > 1);
        self.potentials.retain(|sink| Arc::strong_count(sink) > 1);
        let is_observed = !(self.spikes.is_empty() && self.potentials.is_empty());
        if self.stimulus.is_none() && !is_observed {
            let before = self.simulation.counts().bursts;
            return self.simulation.run_watched(bursts, |counts| {
                interrupt.watch(progress(counts.bursts - before, bursts))
            });
        }
        for done in 1..=bursts {
            let burst = self.simulation.counts().bursts + 1;
            if let Some(stimulus) = &self.stimulus {
                self.simulation.stimulate(&stimulus.of(burst))?;
            }
            self.simulation.run(1)?;
            if !self.spikes.is_empty() {
                let fired = self.simulation.fired()?;
                self.spikes
                    .iter()
                    .for_each(|sink| locked(sink).add(burst, &fired));
            }
            if !self.potentials.is_empty() {
                let potentials = self.simulation.potentials()?;
                self.potentials
                    .iter()
                    .for_each(|sink| locked(sink).add(burst, &potentials));
            }
            if interrupt.watch(progress(done, bursts)).is_break() {
                break;
            }
        }
        Ok(self.simulation.counts())
    }
}

fn progress(done: u32, total: u32) -> WorkProgress<'static> {
    WorkProgress {
        stage: "bursts",
        done: done.into(),
        total: total.into(),
    }
}

/// A spiking network on a device.
///
/// `SpikingNetwork(neurons, source, target, weight)` connects neurons: synapse k adds `weight[k]`
/// (0 to 255) times the psp of neuron `source[k]` to neuron `target[k]` one burst after a firing,
/// or subtracts it where `inhibitory[k]`. `rule[k]` is the index in `rules` of its learning rule
/// (window, gain, loss), or -1 for a weight that does not change. `Genome.network` makes one from a
/// genome. The rule of neurons is in docs/spiking.md; potentials are in units of psp times weight,
/// and the same network has the same spikes on every device.
///
/// `shards` splits the network by target into so many parts of the device, which exchange their
/// firings after each burst; it changes no result.
///
/// `silence` is "catch_up" (neurons without arrivals leak and recover) or "freeze" (they do not).
/// `weight_loss` is "any_firing" (a weight that does not gain loses if either end fired in any burst
/// of the window) or "steady_source" (if its source fired in every burst of it).
///
/// Raises ValueError naming the synapse or option that is out of range.
///
/// >>> import tectum as tt
/// >>> neurons = tt.Neurons()
/// >>> neurons.add(2, threshold=10.0)
/// range(0, 2)
/// >>> network = tt.SpikingNetwork(neurons, source=[0], target=[1], weight=[10])
/// >>> spikes = network.monitor()
/// >>> network.inject(0, 10.0)
/// >>> network.run(2).spikes
/// 2
/// >>> spikes.t.tolist(), spikes.i.tolist()
/// ([1, 2], [0, 1])
#[pyclass(frozen, module = "tectum")]
pub struct SpikingNetwork {
    inner: Exclusive<Running>,
    genome: Option<Arc<Blueprint>>,
    /// How the genome was connected.
    options: Option<ConnectOptions>,
    /// The areas of the network's memories.
    memories: Vec<usize>,
    neurons: u32,
    synapses: u64,
    notes: Vec<String>,
}

impl SpikingNetwork {
    /// A network on a device in some shards; without a device, on that with the minimum time of a
    /// trial.
    pub fn new(
        network: Network,
        device: Option<&tectum::Device>,
        shards: usize,
        options: &SimulationOptions,
        stimulus: Option<Stimulus>,
    ) -> tectum::Result<Self> {
        let (neurons, synapses) = (network.neurons(), network.synapses());
        let notes = network
            .imprecisions()
            .iter()
            .map(|found| format!("{}: {found}", found.extent()))
            .collect();
        let network = Arc::new(network);
        let mut advance = |simulation: &mut Simulation, bursts: u32| match &stimulus {
            Some(stimulus) => stimulus.run(simulation, bursts).map(drop),
            None => simulation.run(bursts).map(drop),
        };
        let mut chosen = || Simulation::choose_device(&network, shards, options, &mut advance);
        let device = device.map_or_else(|| Ok(chosen()?.0), |device| Ok(device.clone()))?;
        let simulation = Simulation::sharded(network, &vec![device; shards], options)?;
        let running = Running {
            simulation,
            stimulus: stimulus.filter(|stimulus| !stimulus.is_none()),
            spikes: Vec::new(),
            potentials: Vec::new(),
        };
        Ok(Self {
            inner: Exclusive::new(running),
            genome: None,
            options: None,
            memories: Vec::new(),
            neurons,
            synapses,
            notes,
        })
    }

    /// The network of a genome.
    pub fn of_genome(
        mut self,
        genome: Arc<Blueprint>,
        options: ConnectOptions,
        memories: Vec<usize>,
        notes: Vec<String>,
    ) -> Self {
        (self.genome, self.options) = (Some(genome), Some(options));
        (self.memories, self.notes) = (memories, notes);
        self
    }

    /// Neurons by number, by an array of numbers, or by the name of an area.
    fn select(&self, neurons: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        if let Ok(name) = neurons.extract::<String>() {
            let genome = self.genome.as_ref().ok_or_else(|| {
                PyValueError::new_err(format!("area {name:?}: a network from arrays has no areas"))
            })?;
            let area = genome
                .area(&name)
                .ok_or_else(|| unknown_area(genome, &name))?;
            return Ok(genome.areas()[area].neurons.clone().collect());
        }
        // A range is checked by its ends, before its numbers are made.
        if let (Ok(range), true) = (
            neurons.cast::<PyRange>(),
            neurons.len().is_ok_and(|length| length > 0),
        ) {
            for end in [range.get_item(0)?, range.get_item(-1)?] {
                let number: i64 = end.extract()?;
                if !(0..i64::from(self.neurons)).contains(&number) {
                    return Err(PyValueError::new_err(format!(
                        "neuron {number}: the network has {}",
                        self.neurons
                    )));
                }
            }
        }
        let selected: Vec<u32> = integers(neurons, "neurons")?;
        match selected.iter().find(|neuron| **neuron >= self.neurons) {
            Some(unknown) => Err(PyValueError::new_err(format!(
                "neuron {unknown}: the network has {}",
                self.neurons
            ))),
            None => Ok(selected),
        }
    }
}

/// The largest number of shards of a device.
const MAX_SHARDS: usize = 64;

/// Refuses a number of shards that is not possible.
pub fn check_shards(shards: usize) -> PyResult<()> {
    if (1..=MAX_SHARDS).contains(&shards) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "shards is {shards}, needs 1 to {MAX_SHARDS}"
    )))
}

/// What silence does, by its name.
fn idle_update(name: &str) -> PyResult<IdleUpdate> {
    match name {
        "catch_up" => Ok(IdleUpdate::CatchUp),
        "freeze" => Ok(IdleUpdate::Freeze),
        other => Err(PyValueError::new_err(format!(
            "silence is {other:?}, needs \"catch_up\" or \"freeze\""
        ))),
    }
}

/// The synapses of columns: source, target, weight, inhibitory, rule. Every message names the first
/// synapse that it is true of.
fn synapse_list(neurons: u32, count: usize, columns: &[Column<'_>; 5]) -> PyResult<SynapseList> {
    let [source, target, weight, inhibitory, rule] = columns.each_ref().map(Column::numbers);
    let (source, target, weight) = (source?, target?, weight?);
    let (inhibitory, rule) = (inhibitory?, rule?);
    let out_of_range = |index: usize, what: &str, value: i64, range: &str| {
        Error::invalid(format!("synapse {index}: {what} {value}, needs {range}"))
    };
    let neuron = |index: usize, what: &str, value: i64| {
        u32::try_from(value).map_err(|_| out_of_range(index, what, value, "the number of a neuron"))
    };
    let byte = |index: usize, what: &str, value: i64| {
        u8::try_from(value).map_err(|_| out_of_range(index, what, value, "0 to 255"))
    };
    let synapse = |index: usize| {
        let plasticity = match rule.get(index) {
            -1 => None,
            rule => Some(byte(index, "rule", rule)?),
        };
        let synapse = Synapse {
            target: neuron(index, "target", target.get(index))?,
            weight: byte(index, "weight", weight.get(index))?,
            inhibitory: inhibitory.get(index) != 0,
            plasticity,
        };
        Ok((neuron(index, "source", source.get(index))?, synapse))
    };
    SynapseList::from_passes(neurons, || Ok((0..count).map(synapse))).or_raise()
}

/// When weights lose, by its name.
fn condition_of_loss(name: &str) -> PyResult<WeightLoss> {
    [WeightLoss::AnyFiring, WeightLoss::SteadySource]
        .into_iter()
        .find(|condition| condition.name() == name)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "weight_loss is {name:?}, needs \"any_firing\" or \"steady_source\""
            ))
        })
}

/// The refusal of an area's name.
pub fn unknown_area(genome: &Blueprint, name: &str) -> PyErr {
    let known: Vec<String> = genome
        .areas()
        .iter()
        .map(|area| {
            if area.name.is_empty() {
                area.id.to_string()
            } else {
                area.name.clone()
            }
        })
        .collect();
    PyValueError::new_err(format!("no area {name:?}; there are {}", known.join(", ")))
}

#[pymethods]
impl SpikingNetwork {
    #[new]
    #[pyo3(signature = (neurons, source, target, weight, *, inhibitory = None, rule = None, rules = Sequence(Vec::new()), device = DeviceArgument::Id("cpu".to_owned()), seed: "int" = 0, silence = "catch_up", max_injected = 255.0, constant_inputs = None, weight_loss = "any_firing", shards: "int" = 1))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_arrays(
        py: Python<'_>,
        neurons: &Neurons,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
        inhibitory: Option<&Bound<'_, PyAny>>,
        rule: Option<&Bound<'_, PyAny>>,
        rules: Sequence<(u32, u8, u8)>,
        device: DeviceArgument<'_>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        silence: &str,
        max_injected: f32,
        constant_inputs: Option<Sequence<(u32, f32)>>,
        weight_loss: &str,
        #[pyo3(from_py_with = whole::shards)] shards: usize,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        check_shards(shards)?;
        let source = Column::new(source, "source")?;
        let count = source.numbers()?.len();
        let columns = [
            source,
            Column::of_rows(Some(target), "target", 0, count)?,
            Column::of_rows(Some(weight), "weight", 0, count)?,
            Column::of_rows(inhibitory, "inhibitory", 0, count)?,
            Column::of_rows(rule, "rule", -1, count)?,
        ];
        let neurons = neurons.copy(py)?;
        let synapses = synapse_list(neurons.len(), count, &columns)?;
        drop(columns);
        let idle_update = idle_update(silence)?;
        let weight_loss = condition_of_loss(weight_loss)?;
        let plasticity = rules
            .0
            .into_iter()
            .map(|(window, gain, loss)| PlasticityRule {
                window,
                gain,
                loss,
                weight_loss,
            })
            .collect();
        let device = device.open(py)?;
        run_long(py, move || {
            let options = NetworkOptions {
                seed: seed_of(seed),
                idle_update,
                max_injected,
                plasticity,
                ..NetworkOptions::default()
            };
            let network = Network::new(&neurons, Box::new(synapses), options)?;
            let max_inputs = network.neurons() as usize;
            let constant_inputs = constant_inputs.map_or_else(Vec::new, |inputs| inputs.0);
            let options = SimulationOptions {
                constant_inputs,
                max_inputs,
                ..SimulationOptions::default()
            };
            Self::new(network, device.as_ref(), shards, &options, None)
        })
    }

    /// Number of neurons.
    #[getter]
    fn neurons(&self) -> u32 {
        self.neurons
    }

    /// Number of synapses.
    #[getter]
    fn synapses(&self) -> u64 {
        self.synapses
    }

    /// Settings that have no effect here, or another one; after bursts also mappings (or rules)
    /// whose weights all fell to 0 or reached 255.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let running = self.inner.lock(py)?;
        let simulation = &running.simulation;
        let (network, bursts) = (simulation.network(), simulation.counts().bursts);
        if bursts == 0 || network.plastic_synapses() == 0 {
            return Ok(self.notes.clone());
        }
        let synapses = simulation.plastic_synapses().or_raise()?;
        let outcomes = match &self.genome {
            Some(genome) => mapping_outcomes(genome, network, &self.memories, &synapses),
            None => rule_outcomes(network, &synapses),
        };
        Ok([&self.notes[..], &outcomes].concat())
    }

    /// Adds to the next burst: `amount` (one number, or one for each neuron) arrives at neurons
    /// given by number, as an array, a range, or an area's name. In the network of a genome the
    /// stimulus of the burst is added to it.
    ///
    /// Raises ValueError, and adds nothing, for an unknown neuron, one that is injected twice, or
    /// an amount above `max_injected`.
    fn inject(
        &self,
        py: Python<'_>,
        neurons: &Bound<'_, PyAny>,
        amount: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _call = process::enter(py)?;
        let neurons = self.select(neurons)?;
        let amounts = broadcast(amount, "amount", neurons.len())?;
        let inputs: Vec<(u32, f32)> = neurons.into_iter().zip(amounts).collect();
        self.inner.lock(py)?.simulation.inject(&inputs).or_raise()
    }

    /// Runs bursts and returns the counts of all bursts so far. Ctrl-C ends it after a burst; the
    /// network continues from there. With `progress`, tqdm shows it.
    ///
    /// Raises what the device reports; the state is then unknown until `restore`.
    #[pyo3(signature = (bursts: "int", *, progress = false))]
    fn run(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::bursts)] bursts: u32,
        progress: bool,
    ) -> PyResult<SpikeCounts> {
        let _call = process::enter(py)?;
        let (work, running) = (LongWork::new(py, progress)?, self.inner.lock(py)?);
        let (_, counts) =
            self.inner
                .run_watched(py, work, running, move |running, interrupt| {
                    running.run(bursts, interrupt).or_raise()
                })?;
        Ok(counts.into())
    }

    /// The counts so far.
    #[getter]
    fn counts(&self, py: Python<'_>) -> PyResult<SpikeCounts> {
        let _call = process::enter(py)?;
        Ok(self.inner.lock(py)?.simulation.counts().into())
    }

    /// The neurons that fired in the last burst, ascending: uint32 of shape (firings,).
    #[getter]
    fn fired<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let _call = process::enter(py)?;
        let (_, fired) = self.inner.run(py, self.inner.lock(py)?, |running| {
            running.simulation.fired()
        })?;
        Ok(PyArray1::from_vec(py, fired))
    }

    /// The potential of every neuron: float64 of shape (neurons,), in units of psp times weight.
    #[getter]
    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let _call = process::enter(py)?;
        let (_, potentials) = self.inner.run(py, self.inner.lock(py)?, |running| {
            running.simulation.potentials()
        })?;
        Ok(PyArray1::from_vec(py, potentials))
    }

    /// Records the firings of further bursts: of all neurons, or of those given by number, as an
    /// array, a range or an area's name.
    #[pyo3(signature = (neurons = None))]
    fn monitor(
        &self,
        py: Python<'_>,
        neurons: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<SpikeMonitor> {
        let _call = process::enter(py)?;
        let selected = neurons.map(|neurons| self.select(neurons)).transpose()?;
        let (monitor, sink) = SpikeMonitor::new(self.neurons, selected);
        self.inner.lock(py)?.spikes.push(sink);
        Ok(monitor)
    }

    /// Records the potentials of neurons at the end of further bursts, every burst or every
    /// `every`-th.
    #[pyo3(signature = (neurons, *, every: "int" = 1))]
    fn potential_monitor(
        &self,
        py: Python<'_>,
        neurons: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole::every)] every: u32,
    ) -> PyResult<PotentialMonitor> {
        let _call = process::enter(py)?;
        if every == 0 {
            return Err(PyValueError::new_err("every is 0, needs 1 or more bursts"));
        }
        let (monitor, sink) = PotentialMonitor::new(self.select(neurons)?, every);
        self.inner.lock(py)?.potentials.push(sink);
        Ok(monitor)
    }

    /// All synapses with their initial weights, as a dict of arrays with a number for each:
    /// `source`, `target` (uint32), `weight` (uint8), `inhibitory` (bool) and `rule` (int8), the index
    /// of its learning rule, or -1 for a weight that does not change. A network of a genome also has
    /// `mapping` (uint32), the index of the mapping, and `psp` (uint8), which a firing of the source
    /// sends. They are in the order of mappings, or of sources for a network from arrays;
    /// `plastic_synapses` has the weights at present.
    ///
    /// Raises MemoryError if the arrays do not fit into memory.
    ///
    /// >>> import tectum as tt
    /// >>> neurons = tt.Neurons()
    /// >>> neurons.add(3)
    /// range(0, 3)
    /// >>> edges = tt.SpikingNetwork(neurons, [2, 0], [1, 2], [7, 5], inhibitory=[1, 0]).edges()
    /// >>> edges["source"].tolist(), edges["target"].tolist(), edges["weight"].tolist()
    /// ([0, 2], [2, 1], [5, 7])
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let edges = match (&self.genome, &self.options) {
            (Some(genome), Some(options)) => {
                let (genome, options, synapses) = (genome.clone(), options.clone(), self.synapses);
                LongWork::silent().run(py, move |interrupt| {
                    let mut watch = |done: WorkProgress<'_>| interrupt.watch(done);
                    Edges::of_genome(&genome, &options, synapses, &mut watch).or_raise()
                })?
            }
            _ => {
                let running = self.inner.lock(py)?;
                let edges = |running: &mut Running| Edges::of_network(running.simulation.network());
                self.inner.run(py, running, edges)?.1
            }
        };
        edges.into_dict(py)
    }

    /// The synapses that learn, as a dict of arrays: `source`, `target`, `weight`, `inhibitory`,
    /// `rule`.
    fn plastic_synapses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let (_, synapses) = self.inner.run(py, self.inner.lock(py)?, |running| {
            running.simulation.plastic_synapses()
        })?;
        let columns = PyDict::new(py);
        columns.set_item(
            "source",
            PyArray1::from_iter(py, synapses.iter().map(|synapse| synapse.source)),
        )?;
        columns.set_item(
            "target",
            PyArray1::from_iter(py, synapses.iter().map(|synapse| synapse.target)),
        )?;
        columns.set_item(
            "weight",
            PyArray1::from_iter(py, synapses.iter().map(|synapse| synapse.weight)),
        )?;
        columns.set_item(
            "inhibitory",
            PyArray1::from_iter(py, synapses.iter().map(|synapse| synapse.inhibitory)),
        )?;
        columns.set_item(
            "rule",
            PyArray1::from_iter(py, synapses.iter().map(|synapse| synapse.rule)),
        )?;
        Ok(columns)
    }

    /// Writes the state to a safetensors file, which any device can restore.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let running = self.inner.lock(py)?;
        self.inner.run(py, running, move |running| {
            running.simulation.snapshot()?.save(&path)
        })?;
        Ok(())
    }

    /// Continues from a state of the same network; monitors keep what they recorded.
    ///
    /// Raises DataError naming what does not fit; nothing changes then.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let running = self.inner.lock(py)?;
        self.inner.run(py, running, move |running| {
            let snapshot = Snapshot::load(&path)?;
            let restored = running.simulation.restore(&snapshot);
            restored.map_err(|error| error.at(path.display()))
        })?;
        Ok(())
    }

    /// On which device and by which code the bursts were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = process::enter(py)?;
        Ok(Receipt::new(
            self.inner.lock(py)?.simulation.session().receipt(),
        ))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let counts = SpikeCounts::from(self.inner.lock(py)?.simulation.counts());
        let rows = [
            ("neurons", self.neurons.to_string()),
            ("synapses", self.synapses.to_string()),
            ("bursts", counts.bursts.to_string()),
            ("spikes", counts.spikes.to_string()),
            ("spike hash", counts.spike_hash),
        ];
        Ok(crate::html::table("spiking network", &rows))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let bursts = self.inner.lock(py)?.simulation.counts().bursts;
        Ok(format!(
            "<tectum spiking network: {} neurons, {} synapses, {bursts} bursts>",
            self.neurons, self.synapses
        ))
    }
}
