//! A network that runs: its state on one device, or split by target over several, burst after burst.
//!
//! ```text
//! burst: propagate (what fired in the burst before) → inject → dynamics → what fires, in a list on the device
//! ```

mod layout;
mod learning;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;
use tectum::{Api, DType, Device, Error, Executable, Plan, PlanBuilder, Result, RunStats, View};

use super::connectome::{self, Part};
use super::explanation;
use super::memory::MemoryReport;
use super::kernels::{HEADER, Kernels, STATIC, profile_words, set_bits};
use super::network::Network;
use super::rule::{POTENTIAL_MAX, Silence};
use crate::snapshot::{Array, Snapshot};
pub use layout::{MemoryUse, ShardLayout, layout};
use learning::{Held, Learned, LearnedViews, Saved, Slots};
pub use learning::PlasticSynapse;

/// Neurons from which a part for each thread is worth it.
const SHARED_FROM_NEURONS: u32 = 1 << 15;
/// Workgroups that walk rows.
const WALKERS: u32 = 2048;
/// Bursts of the longest refractory period with its snooze, and the next.
const LONGEST_PAUSE: u32 = 2 * (1 << 16);
/// Names of a neuron's numbers in a snapshot.
const PLANES: [&str; 4] = ["potential", "last", "ready", "consecutive"];
/// Bursts of the plan that runs several at once.
const BATCH: u32 = 16;

/// How a network runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationOptions {
    /// What arrives at some neurons in every burst, such as the power area's.
    pub steady: Vec<(u32, f32)>,
    /// The most injections into one burst.
    pub most_inputs: usize,
    /// Parts that the targets of a device are split into; by its size if none.
    pub parts: Option<u32>,
    /// Neurons whose firings come back with every run, for [`Simulation::has_fired`].
    pub watched: Vec<Range<u32>>,
    /// Bursts whose firings stay on the device at least, for [`Simulation::ledger`].
    pub ledger: u32,
    /// Whether what arrived in the last burst can be read, with [`Simulation::candidates`].
    pub candidates: bool,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self { steady: Vec::new(), most_inputs: 4096, parts: None, watched: Vec::new(), ledger: 0, candidates: false }
    }
}

/// The firings of the last bursts, ascending: each burst's number with the neurons that fired in it.
pub type FireLedger = Vec<(u32, RoaringBitmap)>;

/// What a run has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpikeCounts {
    /// Bursts; the first is number 1.
    pub bursts: u32,
    /// Firings.
    pub spikes: u64,
    /// Synapses that carried a spike.
    pub events: u64,
    /// The same for the same (burst, neuron) pairs, in whatever order, on whatever device.
    pub spike_hash: u64,
}

/// A network with its state.
pub struct Simulation {
    network: Arc<Network>,
    shards: Vec<Shard>,
    inputs: Vec<(u32, i32)>,
    most_inputs: usize,
    /// What fired in the last burst on all shards, if there are several.
    exchanged: Vec<[u32; 2]>,
    counts: SpikeCounts,
    /// The first burst whose firings are in the ledger.
    ledger_from: u32,
    stats: RunStats,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation({:?} on {} devices, {:?})", self.network, self.shards.len(), self.counts)
    }
}

/// What a plan's slots are.
#[derive(Clone)]
struct Views {
    clock: View,
    inputs: View,
    state: View,
    sums: View,
    fired: View,
    totals: View,
    head: View,
    events: View,
    watched: Option<View>,
    candidates: Option<View>,
    /// Of a shard among others: what fired on all of them, as bits.
    exchanged: Option<View>,
    learned: Option<LearnedViews>,
    /// As [`tables`] has them.
    tables: Vec<View>,
}

impl Views {
    /// What two plans of the same network share.
    fn shared(&self) -> Vec<View> {
        let learned = self.learned.iter().flat_map(|views| [views.synapses, views.histories, views.ledger, views.kept]);
        [self.state, self.sums, self.fired, self.totals].into_iter().chain(self.candidates).chain(learned).chain(self.tables.iter().copied()).collect()
    }
}

/// The targets that one device has.
struct Shard {
    targets: Range<u32>,
    views: Views,
    single: Executable,
    batch: Option<Executable>,
    /// Spikes, marks and events as the device last told them.
    told: [u32; 4],
    /// The bits of the last burst's firings, of the shape's watched words.
    watched: Vec<u32>,
    shape: Shape,
    learned: Option<Learned>,
    /// Whether what fired was handed over as bits.
    is_packed: bool,
}

/// Where things are in a shard's buffers.
struct Shape {
    targets: Range<u32>,
    ranges: Vec<Range<u32>>,
    len: usize,
    planes: usize,
    tracked: bool,
    list_at: usize,
    bits_at: usize,
    bit_words: usize,
    /// Words of bits that come back with every run.
    watched: Vec<Range<usize>>,
    /// Whether arrivals are kept for the host.
    candidates: bool,
}

impl Simulation {
    /// Puts a network on a device; nothing has fired yet, and every potential is at rest.
    ///
    /// # Errors
    /// `Invalid` for an injection that the network refuses; what compiling a plan reports.
    pub fn new(network: Arc<Network>, device: &Device, options: &SimulationOptions) -> Result<Self> {
        Self::sharded(network, std::slice::from_ref(device), options)
    }

    /// Splits a network by target over devices, which may be the same one several times; each burst they exchange what fired.
    ///
    /// # Errors
    /// As [`Simulation::new`]; `Invalid` without a device.
    pub fn sharded(network: Arc<Network>, devices: &[Device], options: &SimulationOptions) -> Result<Self> {
        if devices.is_empty() {
            return Err(Error::invalid("a simulation on no device"));
        }
        let ranges = connectome::split(network.neurons(), devices.len() as u32);
        let shards = ranges.into_iter().zip(devices).map(|(range, device)| Shard::new(&network, range, device, options, devices.len() == 1));
        let shards = shards.collect::<Result<Vec<_>>>()?;
        Ok(Self { network, shards, inputs: Vec::new(), most_inputs: options.most_inputs, exchanged: Vec::new(), counts: SpikeCounts::default(), ledger_from: 1, stats: RunStats::default() })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What the run has done.
    pub fn counts(&self) -> SpikeCounts {
        self.counts
    }

    /// Adds to what arrives in the next burst.
    ///
    /// # Errors
    /// `Invalid`, and nothing is added, for a neuron that is none or is injected twice, more than the network leaves room for, or
    /// more injections than the simulation was made for.
    pub fn inject(&mut self, inputs: &[(u32, f32)]) -> Result<()> {
        if self.inputs.len() + inputs.len() > self.most_inputs {
            return Err(Error::invalid(format!("{} injections into one burst; at most {}", self.inputs.len() + inputs.len(), self.most_inputs)));
        }
        let added = inputs.iter().map(|&(neuron, amount)| Ok((neuron, self.network.injected(neuron, amount)?))).collect::<Result<Vec<_>>>()?;
        let mut all: Vec<u32> = self.inputs.iter().chain(&added).map(|(neuron, _)| *neuron).collect();
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("neuron {} is injected twice in one burst", twice[0])));
        }
        self.inputs.extend(added);
        Ok(())
    }

    /// Runs so many bursts.
    ///
    /// # Errors
    /// `Unsupported` past the last number that a burst can have; what the devices report, and the run cannot go on then.
    pub fn run(&mut self, bursts: u32) -> Result<SpikeCounts> {
        if self.counts.bursts.checked_add(bursts).is_none_or(|last| last > u32::MAX - LONGEST_PAUSE) {
            return Err(Error::unsupported(format!("{bursts} bursts after burst {}: their numbers end at {}", self.counts.bursts, u32::MAX - LONGEST_PAUSE)));
        }
        self.stats = RunStats::default();
        let mut left = bursts;
        while left > 0 {
            let taken = match &self.shards[..] {
                [Shard { batch: Some(_), .. }] if left >= BATCH => BATCH,
                _ => 1,
            };
            self.submit(taken)?;
            left -= taken;
        }
        Ok(self.counts)
    }

    fn submit(&mut self, bursts: u32) -> Result<()> {
        let burst = self.counts.bursts + 1;
        for shard in &mut self.shards {
            self.stats.add(&shard.submit(burst, bursts, &self.inputs)?);
        }
        self.inputs.clear();
        self.counts.bursts += bursts;
        for shard in &mut self.shards {
            let [spikes, first, second, events] = shard.news(bursts);
            self.counts.spikes += u64::from(spikes);
            self.counts.events += u64::from(events);
            let [low, high] = [self.counts.spike_hash as u32, (self.counts.spike_hash >> 32) as u32];
            self.counts.spike_hash = u64::from(low.wrapping_add(first)) | u64::from(high.wrapping_add(second)) << 32;
        }
        if self.shards.len() > 1 {
            let may_pack = !self.network.profiles.iter().any(|profile| profile.potential_driven);
            let mut list = Vec::new();
            for shard in &self.shards {
                shard.tell(may_pack, &mut list)?;
            }
            self.hand_over(list)?;
        }
        Ok(())
    }

    /// Gives every shard all that fired, in the shorter form: the list, or a bit for each neuron.
    fn hand_over(&mut self, list: Vec<[u32; 2]>) -> Result<()> {
        let words = self.network.ledger_words();
        let may_pack = self.shards.len() > 1 && list.iter().all(|[_, psp]| *psp == STATIC);
        if may_pack && words < 2 * list.len() {
            let mut bits = vec![0u32; words];
            list.iter().for_each(|[neuron, _]| bits[*neuron as usize / 32] |= 1 << (neuron % 32));
            self.shards.iter_mut().try_for_each(|shard| shard.take_bits(&bits))?;
        } else {
            self.shards.iter_mut().try_for_each(|shard| shard.set_list(&list))?;
        }
        self.exchanged = list;
        Ok(())
    }

    /// What fired in the last burst, with what each firing sends.
    fn list(&self) -> Result<Vec<[u32; 2]>> {
        match &self.shards[..] {
            [alone] => alone.list(),
            _ => Ok(self.exchanged.clone()),
        }
    }

    /// What the devices counted in the last run.
    pub fn stats(&self) -> RunStats {
        self.stats
    }

    /// Whether a neuron fired in the last burst that ran here; false before the first and after a state was taken up.
    ///
    /// # Cost
    /// No transfer: the firings of watched neurons came with the run.
    ///
    /// # Panics
    /// If the neuron is not in [`SimulationOptions::watched`]: a mistake in the calling code.
    pub fn has_fired(&self, neuron: u32) -> bool {
        let shard = self.shards.iter().find(|shard| shard.targets.contains(&neuron));
        shard.and_then(|shard| shard.has_fired(neuron)).unwrap_or_else(|| panic!("neuron {neuron} is not watched"))
    }

    /// The code objects that run: kernel and content hash.
    pub fn code(&self) -> &[(String, u64)] {
        self.shards[0].single.code()
    }

    /// The state, for any device and number of shards: of each neuron `potential`, `last`, `ready`, `consecutive`; `fired` pairs of
    /// neuron and psp; `counts`; of a network that learns or remembers also `ledger`, `histories`, `weights`, `seen` and `kept`.
    ///
    /// # Errors
    /// What the devices report.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let mut planes = vec![Vec::with_capacity(self.network.neurons() as usize); self.shards[0].shape.planes];
        for shard in &self.shards {
            let state = shard.single.read_state::<f32>(shard.views.state)?;
            for (number, plane) in planes.iter_mut().enumerate() {
                let at = |i: usize| shard.shape.potential_at(i) + number * shard.shape.len;
                plane.extend((0..shard.targets.len()).map(|i| state[at(i)].to_bits()));
            }
        }
        let mut snapshot = Snapshot::default();
        for (name, plane) in PLANES.into_iter().zip(planes) {
            snapshot.insert(name, Array::U32(plane));
        }
        let mut fired = self.list()?;
        fired.sort_unstable();
        snapshot.insert("fired", Array::U32(fired.into_iter().flatten().collect()));
        let SpikeCounts { bursts, spikes, events, spike_hash } = self.counts;
        snapshot.insert("counts", Array::U64(vec![u64::from(bursts), spikes, events, spike_hash]));
        snapshot.insert("network", Array::U64(vec![self.network.fingerprint]));
        if self.network.looks_back() > 0 {
            learning::save(&self.network, &self.held(), bursts, &mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// Takes up a state; what was injected for the next burst is forgotten.
    ///
    /// # Errors
    /// `Data`, and nothing is changed, if it is of another network or an array is at fault; what the devices report.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let neurons = self.network.neurons() as usize;
        if snapshot.u64("network", 1)?[0] != self.network.fingerprint {
            return Err(Error::data("the snapshot is of another network, or of the same with other options"));
        }
        let names = &PLANES[..self.shards[0].shape.planes];
        let planes = names.iter().map(|name| snapshot.u32(name, neurons)).collect::<Result<Vec<_>>>()?;
        let (fired, rest) = snapshot.u32("fired", snapshot.len_of("fired").unwrap_or(0))?.as_chunks::<2>();
        let ascends = fired.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        if !rest.is_empty() || !ascends || fired.last().is_some_and(|[neuron, _]| *neuron as usize >= neurons) {
            return Err(Error::data("the snapshot's array fired is no list of ascending neurons"));
        }
        let counts = snapshot.u64("counts", 4)?;
        let bursts = u32::try_from(counts[0]).map_err(|_| Error::data(format!("the snapshot is of burst {}", counts[0])))?;
        let beyond = |plane: usize, most: u32| planes.get(plane).is_some_and(|values| values.iter().any(|value| *value > most));
        let most_ready = bursts.saturating_add(LONGEST_PAUSE);
        if planes[0].iter().any(|potential| (*potential as i32).unsigned_abs() > POTENTIAL_MAX as u32)
            || beyond(1, bursts)
            || beyond(2, most_ready)
            || beyond(3, u32::from(u16::MAX))
        {
            return Err(Error::data("the snapshot has a neuron that is in no possible state"));
        }
        let saved = if self.network.looks_back() > 0 { Some(Saved::read(&self.network, snapshot, bursts)?) } else { None };
        for index in 0..self.shards.len() {
            let learned = match &saved {
                Some(saved) => Some(saved.of_shard(&self.network, &self.held(), index, bursts)?),
                None => None,
            };
            let shard = &mut self.shards[index];
            let slots = shard.views.learned.iter().flat_map(|views| [views.synapses, views.histories, views.ledger, views.kept]);
            for (slot, words) in slots.zip(learned.into_iter().flatten()) {
                shard.single.write_state::<f32>(slot, bytemuck::cast_slice(&words))?;
            }
            let mut state = vec![0u32; shard.views.state.len()];
            for (number, plane) in planes.iter().enumerate() {
                for (i, value) in plane[shard.targets.start as usize..shard.targets.end as usize].iter().enumerate() {
                    state[shard.shape.potential_at(i) + number * shard.shape.len] = *value;
                }
            }
            shard.single.write_state::<f32>(shard.views.state, bytemuck::cast_slice(&state))?;
            shard.single.write_state::<f32>(shard.views.sums, &vec![0.0; shard.views.sums.len()])?;
            shard.watched.fill(0);
        }
        self.hand_over(fired.to_vec())?;
        self.inputs.clear();
        self.counts = SpikeCounts { bursts, spikes: counts[1], events: counts[2], spike_hash: counts[3] };
        self.ledger_from = bursts.saturating_sub(self.network.looks_back()).max(1);
        Ok(())
    }

    /// The neurons that fired in the last burst, ascending.
    ///
    /// # Errors
    /// What the devices report.
    pub fn fired(&self) -> Result<Vec<u32>> {
        let mut fired: Vec<u32> = self.list()?.into_iter().map(|[neuron, _]| neuron).collect();
        fired.sort_unstable();
        Ok(fired)
    }

    /// The firings of the last bursts: of [`SimulationOptions::ledger`] at least, or as far back as they are known. Empty if the
    /// network keeps none.
    ///
    /// # Errors
    /// What the devices report.
    pub fn ledger(&self) -> Result<FireLedger> {
        let burst = self.counts.bursts;
        let held = self.held();
        let [first, ..] = &held[..] else { return Ok(Vec::new()) };
        if burst == 0 {
            return Ok(Vec::new());
        }
        let bursts = self.ledger_from.max(burst.saturating_sub(first.learned.bursts()))..burst;
        let words = first.ledger(bursts.clone())?;
        let row = |words: &[u32]| RoaringBitmap::from_lsb0_bytes(0, bytemuck::cast_slice(words));
        let mut ledger: FireLedger = bursts.zip(words.chunks(self.network.ledger_words()).map(row)).collect();
        ledger.push((burst, self.fired()?.into_iter().collect()));
        Ok(ledger)
    }

    /// The fire candidates of the last burst that ran: the neurons in which something arrived, and the sum, in units of psp · weight.
    ///
    /// # Errors
    /// `Invalid` if [`SimulationOptions::candidates`] was not asked for; what the devices report.
    pub fn candidates(&self) -> Result<Vec<(u32, f64)>> {
        let scale = f64::from(1u32 << self.network.fraction_bits);
        let mut all = Vec::new();
        for shard in &self.shards {
            let view = shard.views.candidates.ok_or_else(|| Error::invalid("a simulation that was not asked for its candidates"))?;
            let words = shard.single.read_state::<f32>(view)?;
            for (chunk, range) in words.chunks(shard.shape.chunk()).zip(&shard.shape.ranges) {
                let (sums, bits) = chunk.split_at(shard.shape.len);
                let is_touched = |i: &usize| bits[i / 32].to_bits() >> (i % 32) & 1 != 0;
                all.extend((0..range.len()).filter(is_touched).map(|i| (range.start + i as u32, f64::from(sums[i].to_bits() as i32) / scale)));
            }
        }
        Ok(all)
    }

    /// The plastic synapses by rule, source and target, with their weights at the end of the last burst.
    ///
    /// # Errors
    /// What the devices report.
    pub fn plastic_synapses(&self) -> Result<Vec<PlasticSynapse>> {
        if self.network.plastic_synapses() == 0 {
            return Ok(Vec::new());
        }
        learning::plastic_synapses(&self.network, &self.held(), &self.fired()?, self.counts.bursts)
    }

    /// What each of the network's memories keeps.
    ///
    /// # Errors
    /// What the devices report.
    pub fn memories(&self) -> Result<Vec<MemoryReport>> {
        self.held().first().map_or(Ok(Vec::new()), |shard| learning::memories(&self.network, shard))
    }

    /// What the shards have learnt; none for a network that looks at no past.
    fn held(&self) -> Vec<Held<'_>> {
        self.shards.iter().filter_map(Shard::held).collect()
    }

    /// The potential of every neuron, in units of psp · weight.
    ///
    /// # Errors
    /// What the devices report.
    pub fn potentials(&self) -> Result<Vec<f64>> {
        let scale = f64::from(1u32 << self.network.fraction_bits);
        let mut all = Vec::with_capacity(self.network.neurons() as usize);
        for shard in &self.shards {
            all.extend(shard.potentials(&self.network, self.counts.bursts)?.into_iter().map(|potential| f64::from(potential) / scale));
        }
        Ok(all)
    }
}

impl Shard {
    fn new(network: &Network, targets: Range<u32>, device: &Device, options: &SimulationOptions, alone: bool) -> Result<Self> {
        let is_cpu = device.info().api == Api::Cpu;
        let shape = Shape::new(network, targets.clone(), device, options);
        let parts = Arc::new(connectome::pack(network.neurons(), &*network.rows, None, &shape.ranges)?);
        let (learned, synapses) = Learned::new(network, &shape, options.ledger, is_cpu)?.unzip();
        let kernels = Kernels::new(network, if is_cpu { parts.clone() } else { Arc::default() });
        let steady = local(&targets, options.steady.iter().map(|&(neuron, amount)| Ok((neuron, network.injected(neuron, amount)?))))?;
        let source = Source { network, shape: &shape, kernels: &kernels, parts: &parts, steady: &steady, most_inputs: options.most_inputs, is_cpu, is_alone: alone, learned: learned.as_ref() };
        let build = |bursts: u32| record(&source, bursts);
        let (plan, views) = build(1)?;
        let mut single = plan.compile(device)?;
        let mut state = vec![0u32; views.state.len()];
        for (range, profile) in &network.runs {
            let rest = network.profiles[*profile as usize].rest as u32;
            for neuron in range.start.max(targets.start)..range.end.min(targets.end) {
                state[shape.potential_at((neuron - targets.start) as usize)] = rest;
            }
        }
        single.write_state::<f32>(views.state, bytemuck::cast_slice(&state))?;
        if let (Some(views), Some(mut words)) = (&views.learned, synapses) {
            words.resize(views.synapses.len(), 0);
            single.write_state::<f32>(views.synapses, bytemuck::cast_slice(&words))?;
            let mut past = Learned::no_past(network);
            past.resize(views.histories.len(), 0);
            single.write_state::<f32>(views.histories, bytemuck::cast_slice(&past))?;
        }
        for (view, (_, words)) in views.tables.iter().zip(tables(&source)?) {
            single.write_state::<f32>(*view, bytemuck::cast_slice(&words))?;
        }
        let batch = match alone {
            true => {
                let (plan, other) = build(BATCH)?;
                let pairs = other.shared().into_iter().zip(views.shared());
                let buffers = pairs.map(|(other, view)| Ok((other, single.state_buffer(view)?))).collect::<Result<Vec<_>>>()?;
                let shared: Vec<_> = buffers.iter().map(|(view, buffer)| (*view, buffer)).collect();
                Some(plan.compile_with(device, &shared)?)
            }
            false => None,
        };
        let watched = vec![0; shape.watched.iter().map(Range::len).sum()];
        Ok(Self { targets, views, single, batch, told: [0; 4], watched, shape, learned, is_packed: false })
    }

    fn submit(&mut self, burst: u32, bursts: u32, inputs: &[(u32, i32)]) -> Result<RunStats> {
        let inputs = local(&self.targets, inputs.iter().map(|&input| Ok(input)))?;
        let executable = if bursts > 1 { self.batch.as_mut().unwrap_or(&mut self.single) } else { &mut self.single };
        executable.input::<u32>(self.views.clock).copy_from_slice(&[burst, u32::from(self.is_packed)]);
        let slot = executable.input::<u32>(self.views.inputs);
        slot[0] = (inputs.len() / 2) as u32;
        slot[1..][..inputs.len()].copy_from_slice(&inputs);
        executable.run()
    }

    fn held(&self) -> Option<Held<'_>> {
        Some(Held { learned: self.learned.as_ref()?, views: self.views.learned.as_ref()?, executable: &self.single })
    }

    /// Spikes, both marks and events since they were last asked for; keeps the bits of watched neurons.
    fn news(&mut self, bursts: u32) -> [u32; 4] {
        let executable = if bursts > 1 { self.batch.as_ref().unwrap_or(&self.single) } else { &self.single };
        if let Some(view) = self.views.watched {
            self.watched.copy_from_slice(executable.output::<u32>(view));
        }
        let (head, events) = (executable.output::<u32>(self.views.head), executable.output::<u32>(self.views.events));
        let now = [head[1], head[2], head[3], events[0]];
        let before = std::mem::replace(&mut self.told, now);
        [0, 1, 2, 3].map(|index| now[index].wrapping_sub(before[index]))
    }

    /// Whether a neuron fired in the last burst; none if it is not watched.
    fn has_fired(&self, neuron: u32) -> Option<bool> {
        let i = (neuron - self.targets.start) as usize;
        let mut at = 0;
        for words in &self.shape.watched {
            if words.contains(&(i / 32)) {
                return Some(self.watched[at + i / 32 - words.start] >> (i % 32) & 1 != 0);
            }
            at += words.len();
        }
        None
    }

    /// What fired, with what each firing sends.
    fn list(&self) -> Result<Vec<[u32; 2]>> {
        let head = self.single.read_state::<f32>(self.views.fired.part(0..HEADER))?;
        let count = head[0].to_bits() as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let words = self.single.read_state::<f32>(self.views.fired.part(self.shape.list_at..self.shape.list_at + 2 * count))?;
        Ok(words.chunks_exact(2).map(|pair| [pair[0].to_bits(), pair[1].to_bits()]).collect())
    }

    /// Adds what fired here to a list, read in the shorter form if the psp is each sender's own.
    fn tell(&self, may_pack: bool, list: &mut Vec<[u32; 2]>) -> Result<()> {
        let count = self.single.read_state::<f32>(self.views.fired.part(0..1))?[0].to_bits() as usize;
        if !may_pack || 2 * count <= self.shape.bit_words {
            list.extend(self.list()?);
            return Ok(());
        }
        let words = self.single.read_state::<f32>(self.views.fired.part(self.shape.bits_at..self.shape.bits_at + self.shape.bit_words))?;
        let words: Vec<u32> = words.into_iter().map(f32::to_bits).collect();
        list.extend(set_bits(&words, 0..self.targets.len() as u32).map(|i| [self.targets.start + i, STATIC]));
        Ok(())
    }

    /// Gives the device all that fired, as bits, for the next burst to list.
    fn take_bits(&mut self, bits: &[u32]) -> Result<()> {
        self.set_list(&[])?;
        self.is_packed = true;
        match self.views.exchanged {
            Some(view) => self.single.write_state::<f32>(view, bytemuck::cast_slice(bits)),
            None => Ok(()),
        }
    }

    /// Gives the device all that fired, on whatever device.
    fn set_list(&mut self, list: &[[u32; 2]]) -> Result<()> {
        self.is_packed = false;
        let count = [f32::from_bits(list.len() as u32)];
        self.single.write_state::<f32>(self.views.fired.part(0..1), &count)?;
        if list.is_empty() {
            return Ok(());
        }
        let words: &[f32] = bytemuck::cast_slice(list);
        self.single.write_state::<f32>(self.views.fired.part(self.shape.list_at..self.shape.list_at + words.len()), words)
    }

    /// The potentials, with the leak of the bursts in which nothing arrived.
    fn potentials(&self, network: &Network, burst: u32) -> Result<Vec<i32>> {
        let state = self.single.read_state::<f32>(self.views.state)?;
        let leaks = self.shape.planes == 4 && network.options.silence == Silence::Counts;
        let mut potentials = Vec::with_capacity(self.targets.len());
        for (range, profile) in &network.runs {
            let profile = &network.profiles[*profile as usize];
            for neuron in range.start.max(self.targets.start)..range.end.min(self.targets.end) {
                let at = self.shape.potential_at((neuron - self.targets.start) as usize);
                let silent = if leaks { burst - state[at + self.shape.len].to_bits() } else { 0 };
                potentials.push(profile.leaked(state[at].to_bits() as i32, silent));
            }
        }
        Ok(potentials)
    }
}

impl Shape {
    fn new(network: &Network, targets: Range<u32>, device: &Device, options: &SimulationOptions) -> Self {
        let count = targets.len() as u32;
        let natural = match device.info().api {
            Api::Cpu => {
                // Fewer and longer rows are walked faster than sums that stay in L2 are worth.
                if count < SHARED_FROM_NEURONS { 1 } else { device.info().compute_units.unwrap_or(1) }
            }
            _ => {
                let words = device.info().limits.max_binding_bytes / 4;
                // Random targets spread evenly; a tenth more is room for those that do not.
                let synapses = network.synapses() + network.plastic_synapses();
                let by_words = (synapses + synapses / 10).div_ceil(words.max(1)) as u32;
                count.div_ceil(connectome::PART_NEURONS).max(by_words)
            }
        };
        // Views of parts begin at multiples of 64 elements, and so do the bits behind a part's sums.
        let len = count.div_ceil(options.parts.unwrap_or(natural).max(1)).next_multiple_of(2048).min(connectome::PART_NEURONS) as usize;
        let ranges: Vec<Range<u32>> = targets.clone().step_by(len).map(|first| first..(first + len as u32).min(targets.end)).collect();
        let padded = ranges.len() * len;
        // All of a network may fire at once, and every shard is told.
        let room = padded.max(network.neurons().next_multiple_of(2048) as usize);
        let has_past = |profile: &super::rule::Profile| explanation::past(profile, network.options.silence).is_some();
        Self {
            watched: watched_words(&options.watched, &targets),
            targets,
            len,
            planes: if network.profiles.iter().any(has_past) { 4 } else { 1 },
            tracked: network.zero_sums_matter || options.candidates,
            candidates: options.candidates,
            list_at: HEADER,
            bits_at: HEADER + 2 * room,
            bit_words: padded / 32,
            ranges,
        }
    }

    /// Words of a part's sums, with its bits of arrivals.
    fn chunk(&self) -> usize {
        if self.tracked { self.len + self.len / 32 } else { self.len }
    }

    /// Where the potential of a shard's neuron is in the state.
    fn potential_at(&self, i: usize) -> usize {
        i / self.len * self.planes * self.len + i % self.len
    }
}

/// The words of bits that hold some neurons' firings, ascending and none twice: in whole runs of 64 words, at which views may begin.
fn watched_words(watched: &[Range<u32>], targets: &Range<u32>) -> Vec<Range<usize>> {
    const NEURONS: u32 = 32 * 64;
    let inside = watched.iter().map(|range| range.start.max(targets.start)..range.end.min(targets.end)).filter(|range| !range.is_empty());
    let runs = inside.map(|range| (range.start - targets.start) / NEURONS..(range.end - targets.start).div_ceil(NEURONS));
    let mut runs: Vec<Range<u32>> = runs.collect();
    runs.sort_unstable_by_key(|run| run.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for run in runs.into_iter().map(|run| 64 * run.start as usize..64 * run.end as usize) {
        match merged.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => merged.push(run),
        }
    }
    merged
}

/// The injections into a shard's neurons, numbered within it: neuron and amount in turn.
fn local(targets: &Range<u32>, inputs: impl Iterator<Item = Result<(u32, i32)>>) -> Result<Vec<u32>> {
    let mut words = Vec::new();
    for input in inputs {
        let (neuron, amount) = input?;
        if targets.contains(&neuron) {
            words.extend([neuron - targets.start, amount as u32]);
        }
    }
    Ok(words)
}

/// What a shard's plans are recorded from.
struct Source<'a> {
    network: &'a Network,
    shape: &'a Shape,
    kernels: &'a Kernels,
    parts: &'a [Part],
    steady: &'a [u32],
    most_inputs: usize,
    is_cpu: bool,
    is_alone: bool,
    learned: Option<&'a Learned>,
}

/// Records so many bursts.
fn record(source: &Source<'_>, bursts: u32) -> Result<(Plan, Views)> {
    let &Source { network, shape, kernels, parts, steady, most_inputs, is_cpu, is_alone, learned } = source;
    let mut plan = PlanBuilder::new("spiking");
    let padded = shape.ranges.len() * shape.len;
    let mut views = Views {
        clock: plan.input("clock", DType::U32, 2),
        inputs: plan.input("inputs", DType::U32, 1 + 2 * most_inputs),
        state: plan.state("state", DType::F32, shape.planes * padded),
        sums: plan.state("sums", DType::F32, shape.ranges.len() * shape.chunk()),
        fired: plan.state("fired", DType::F32, shape.bits_at + shape.bit_words),
        totals: plan.state("totals", DType::F32, HEADER),
        head: plan.output("head", DType::U32, HEADER),
        events: plan.output("events", DType::U32, HEADER),
        watched: match shape.watched.iter().map(Range::len).sum() {
            0 => None,
            words => Some(plan.output("watched", DType::U32, words)),
        },
        candidates: shape.candidates.then(|| plan.state("candidates", DType::F32, shape.ranges.len() * shape.chunk())),
        exchanged: (!is_alone).then(|| plan.state("exchanged", DType::F32, network.ledger_words())),
        learned: learned.map(|learned| learned.slots(&mut plan, network)),
        tables: Vec::new(),
    };
    let [state, fired, totals] = [views.state, views.fired, views.totals].map(|view| view.reinterpret(DType::U32));
    let sums = views.sums.reinterpret(DType::I32);
    let steady_view = plan.constant("steady", if steady.is_empty() { &[0] } else { steady });
    for (name, words) in tables(source)? {
        let table = plan.state(name, DType::F32, words.len());
        views.tables.push(table);
    }
    let tables: Vec<View> = views.tables.iter().map(|table| table.reinterpret(DType::U32)).collect();
    let ([senders, profile_of, profiles], (rows, _)) = ([0, 1, 2].map(|table| tables[table]), tables[3..].as_chunks::<2>());

    let learning = match (learned, &views.learned) {
        (Some(learned), Some(own)) => Some((learned, Slots::new(&mut plan, learned, &views, own, senders, source)?)),
        _ => None,
    };

    let tracked = u32::from(shape.tracked);
    let [len, chunk] = [shape.len as u32, shape.chunk() as u32];
    if let Some(exchanged) = views.exchanged {
        let words = network.ledger_words() as u32;
        plan.launch(&kernels.unpack, &[views.clock, exchanged.reinterpret(DType::U32), fired], &[shape.list_at as u32, words], words.div_ceil(256).min(1024))?;
    }
    for burst in 0..bursts {
        if let Some((learned, slots)) = &learning {
            learned.record_before(&mut plan, slots, source, burst)?;
        }
        for (index, [starts, words]) in rows.iter().enumerate() {
            let sums = if is_cpu { sums } else { sums.part(index * shape.chunk()..(index + 1) * shape.chunk()) };
            let params = [len, tracked, network.fraction_bits, shape.list_at as u32, parts.get(index).map_or(1, Part::slices)];
            plan.launch(&kernels.propagate, &[fired, *starts, *words, senders, sums, totals], &params, WALKERS)?;
        }
        let params = [len, chunk, tracked, u32::from(burst == 0), (steady.len() / 2) as u32, shape.bits_at as u32, shape.bit_words as u32];
        plan.launch(&kernels.inject, &[views.inputs, steady_view, sums, fired], &params, (shape.bit_words as u32).div_ceil(256).clamp(1, 1024))?;
        if let Some(view) = views.candidates {
            plan.copy(views.sums.reinterpret(DType::U32), view.reinterpret(DType::U32))?;
        }
        for (index, range) in shape.ranges.iter().enumerate().take(rows.len()) {
            let count = if is_cpu { shape.targets.len() } else { range.len() };
            let (sums, state, profile_of) = if is_cpu {
                (sums, state, profile_of)
            } else {
                let (chunk, planes) = (shape.chunk(), shape.planes * shape.len);
                let first = index * shape.len;
                (sums.part(index * chunk..(index + 1) * chunk), state.part(index * planes..(index + 1) * planes), profile_of.part(first..first + range.len()))
            };
            let params = [
                range.start,
                (index * shape.len) as u32,
                count as u32,
                len,
                burst,
                shape.planes as u32,
                tracked,
                u32::from(network.options.silence == Silence::Skips),
                network.options.seed,
                network.fraction_bits,
                shape.list_at as u32,
                shape.bits_at as u32,
            ];
            plan.launch(&kernels.dynamics, &[views.clock, profile_of, profiles, sums, state, fired], &params, (range.len() as u32).div_ceil(256))?;
        }
        if let Some((learned, slots)) = &learning {
            learned.record_after(&mut plan, slots, source, burst)?;
        }
    }
    plan.copy(fired.part(0..HEADER), views.head)?;
    plan.copy(totals, views.events)?;
    if let Some(view) = views.watched {
        let mut at = 0;
        for words in &shape.watched {
            plan.copy(fired.part(shape.bits_at + words.start..shape.bits_at + words.end), view.part(at..at + words.len()))?;
            at += words.len();
        }
    }
    Ok((plan.finish()?, views))
}

/// The profile of each of some neurons.
fn profile_of(network: &Network, targets: &Range<u32>) -> Vec<u32> {
    let mut all = Vec::with_capacity(targets.len());
    for (range, profile) in &network.runs {
        let part = range.start.max(targets.start)..range.end.min(targets.end);
        all.extend(part.map(|_| *profile));
    }
    all
}

/// A table's name and words.
type Table<'a> = (&'static str, Cow<'a, [u32]>);

/// What does not change while a network runs, in this order: the units of senders; on other devices than the CPU, whose twins carry them, also
/// the profile of each neuron, the profiles, and of each part the starts of rows and the synapses.
fn tables<'a>(source: &Source<'a>) -> Result<Vec<Table<'a>>> {
    let &Source { network, shape, parts, is_cpu, .. } = source;
    let absent = || Cow::Owned(vec![0]);
    let profiles = || Cow::Owned(network.profiles.iter().flat_map(profile_words).collect());
    let mut tables = vec![
        ("senders", Cow::Borrowed(&network.senders[..])),
        ("profile_of", if is_cpu { absent() } else { Cow::Owned(profile_of(network, &shape.targets)) }),
        ("profiles", if is_cpu { absent() } else { profiles() }),
    ];
    for part in parts.iter().take(if is_cpu { 1 } else { parts.len() }) {
        let words = if is_cpu || part.words.is_empty() { absent() } else { Cow::Borrowed(&part.words[..]) };
        tables.extend([("starts", if is_cpu { absent() } else { Cow::Owned(short_starts(part)?) }), ("words", words)]);
    }
    Ok(tables)
}

/// Where a part's rows begin, in words of 32 bits.
fn short_starts(part: &Part) -> Result<Vec<u32>> {
    let starts = part.starts.iter().map(|&start| u32::try_from(start).ok()).collect::<Option<Vec<u32>>>();
    let count = part.starts.last().copied().unwrap_or(0);
    starts.ok_or_else(|| Error::unsupported(format!("{count} synapses in one part; a device takes up to 2^32, so split the network into more parts")))
}
