//! A running network: its state on one device, or split by target over several, burst after burst.
//!
//! ```text
//! burst: propagate (what fired in the burst before) → inject → dynamics → what fires, in a list on the device
//! ```

mod layout;
mod learning;
mod record;
mod shape;
mod shard;
#[cfg(test)]
mod tests;
mod views;

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Instant;

use roaring::RoaringBitmap;
use tectum::route::{self, Choice};
use tectum::{
    CodeObject, Device, Error, Executable, LayoutPreferences, Result, RunStats, Session,
    host_memory,
};

use self::learning::{SavedLearning, ShardLearning};
use self::shard::Shard;
use super::connectome;
use super::kernels::FIXED_PSP;
use super::memory::MemoryReport;
use super::network::Network;
use super::rule::FRACTION_BITS;
use super::rule::NeuronState;
pub use layout::{MemoryUse, ShardLayout, layout};
pub use learning::PlasticSynapse;
use tectum::snapshot::{Array, Snapshot};

/// Bursts of the longest refractory period including the snooze, plus one.
const MAX_REFRACTORY: u32 = 2 * (1 << 16);
/// Names of a neuron's state variables in a snapshot.
const PLANES: [&str; 4] = ["potential", "last", "ready", "consecutive"];
/// Timed bursts of a trial; the same number of untimed bursts precedes them, to compile device code
/// and let activity spread.
const TRIAL_BURSTS: u32 = 64;
/// Maximum injections into one burst: one into each neuron.
const MAX_INPUTS: usize = 1 << 31;
/// Maximum bursts of a ledger, whose number and one more have 32 bits.
const MAX_LEDGER: u32 = 1 << 31;
/// Bursts of the plan that runs a batch of them.
const BATCH: u32 = 16;

/// How a network runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationOptions {
    /// Constant input to some neurons in every burst, such as the power area's. Default: none.
    pub constant_inputs: Vec<(u32, f32)>,
    /// Maximum injections into one burst. Default: 4096.
    pub max_inputs: usize,
    /// Parts that the targets of a device are split into; if none, chosen by its size. Default:
    /// none.
    pub parts: Option<u32>,
    /// How work is laid out; if none, as each device prefers. Results are the same. Default: none.
    pub layout: Option<LayoutPreferences>,
    /// Neurons whose firings come back with every run, for [`Simulation::has_fired`]. Default:
    /// none.
    pub recorded_neurons: Vec<Range<u32>>,
    /// Minimum number of bursts whose firings stay on the device, for [`Simulation::ledger`].
    /// Default: 0.
    pub ledger: u32,
    /// Whether the arrivals of the last burst can be read, with [`Simulation::candidates`].
    /// Default: no.
    pub candidates: bool,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            constant_inputs: Vec::new(),
            max_inputs: 4096,
            parts: None,
            layout: None,
            recorded_neurons: Vec::new(),
            ledger: 0,
            candidates: false,
        }
    }
}

impl SimulationOptions {
    fn check(&self) -> Result<()> {
        if self.max_inputs > MAX_INPUTS {
            return Err(Error::invalid(format!(
                "max_inputs {}; at most {MAX_INPUTS} injections into one burst are possible",
                self.max_inputs
            )));
        }
        if self.ledger > MAX_LEDGER {
            return Err(Error::invalid(format!(
                "a ledger of {} bursts; at most {MAX_LEDGER} are possible",
                self.ledger
            )));
        }
        Ok(())
    }
}

/// The firings of the last bursts, ascending: each burst's number with the neurons that fired in
/// it.
pub type FireLedger = Vec<(u32, RoaringBitmap)>;

/// Counts of a run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpikeCounts {
    /// Bursts; the first is number 1.
    pub bursts: u32,
    /// Firings.
    pub spikes: u64,
    /// Synapses that carried a spike.
    pub events: u64,
    /// The same for the same (burst, neuron) pairs in any order on any device: a checksum to
    /// compare results by, not an identity.
    pub spike_hash: u64,
}

/// A network with its state.
pub struct Simulation {
    network: Arc<Network>,
    shards: Vec<Shard>,
    inputs: Vec<(u32, i32)>,
    max_inputs: usize,
    watched: Vec<Range<u32>>,
    /// The firings of the last burst on all shards, if there are several.
    exchanged: Vec<[u32; 2]>,
    counts: SpikeCounts,
    /// The first burst whose firings are in the ledger.
    ledger_from: u32,
    stats: RunStats,
    code: Vec<CodeObject>,
    session: Session,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Simulation({:?} on {} devices, {:?})",
            self.network,
            self.shards.len(),
            self.counts
        )
    }
}

impl Simulation {
    /// Puts a network on a device; no neuron has fired yet, and every potential is at rest.
    ///
    /// # Errors
    /// `Invalid` for an injection that the network rejects or an option out of its range;
    /// `OutOfMemory` if the host or the device lacks memory; errors of compiling a plan.
    pub fn new(
        network: Arc<Network>,
        device: &Device,
        options: &SimulationOptions,
    ) -> Result<Self> {
        Self::sharded(network, std::slice::from_ref(device), options)
    }

    /// Opens the device with the minimum time of a trial of a network in `shards` parts, in which
    /// `advance` runs a number of bursts. No plan predicts it: the work depends on what fires.
    ///
    /// # Errors
    /// As [`route::open_by_trial`].
    pub fn choose_device(
        network: &Arc<Network>,
        shards: usize,
        options: &SimulationOptions,
        advance: &mut dyn FnMut(&mut Self, u32) -> Result<()>,
    ) -> Result<(Device, Choice)> {
        route::open_by_trial("network", &mut |device| {
            let mut simulation =
                Self::sharded(network.clone(), &vec![device.clone(); shards], options)?;
            advance(&mut simulation, TRIAL_BURSTS)?;
            let start = Instant::now();
            advance(&mut simulation, TRIAL_BURSTS)?;
            Ok(start.elapsed())
        })
    }

    /// Splits a network by target over devices, which may repeat; each burst they exchange the
    /// firings.
    ///
    /// # Errors
    /// As [`Simulation::new`]; `Invalid` without a device.
    pub fn sharded(
        network: Arc<Network>,
        devices: &[Device],
        options: &SimulationOptions,
    ) -> Result<Self> {
        if devices.is_empty() {
            return Err(Error::invalid("a simulation on no device"));
        }
        options.check()?;
        let ranges = connectome::split(network.neurons(), devices.len() as u32);
        let shards = ranges.into_iter().zip(devices).map(|(range, device)| {
            Shard::new(&network, range, device, options, devices.len() == 1)
        });
        let shards = shards.collect::<Result<Vec<_>>>()?;
        let code = Executable::code_of(shards.iter().flat_map(Shard::executables));
        let mut session = Session::of_shared_work(devices)?;
        session.uses_code(&code);
        Ok(Self {
            network,
            code,
            session,
            shards,
            inputs: Vec::new(),
            max_inputs: options.max_inputs,
            watched: options.recorded_neurons.clone(),
            exchanged: Vec::new(),
            counts: SpikeCounts::default(),
            ledger_from: 1,
            stats: RunStats::default(),
        })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The counts of the run.
    pub fn counts(&self) -> SpikeCounts {
        self.counts
    }

    /// Adds injections to the next burst.
    ///
    /// # Errors
    /// `Invalid`, and nothing is added, for an unknown neuron or one that is injected twice, an
    /// amount beyond the network's maximum, or more injections than the simulation allows.
    pub fn inject(&mut self, inputs: &[(u32, f32)]) -> Result<()> {
        if self.inputs.len() + inputs.len() > self.max_inputs {
            return Err(Error::invalid(format!(
                "{} injections into one burst; at most {}",
                self.inputs.len() + inputs.len(),
                self.max_inputs
            )));
        }
        let added = inputs
            .iter()
            .map(|&(neuron, amount)| Ok((neuron, self.network.injected(neuron, amount)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut all: Vec<u32> = self
            .inputs
            .iter()
            .chain(&added)
            .map(|(neuron, _)| *neuron)
            .collect();
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!(
                "neuron {} is injected twice in one burst",
                twice[0]
            )));
        }
        self.inputs.extend(added);
        Ok(())
    }

    /// Adds a stimulus to the next burst: its amounts are added to those of [`Simulation::inject`]
    /// for the same neurons.
    ///
    /// # Units
    /// Potentials in psp · weight.
    ///
    /// # Errors
    /// `Invalid`, and the burst has no injections any more, for an unknown neuron, an amount or a
    /// sum beyond the network's maximum, or more injections than the simulation allows.
    pub fn stimulate(&mut self, inputs: &[(u32, f32)]) -> Result<()> {
        let injected = std::mem::take(&mut self.inputs);
        if injected.is_empty() {
            return self.inject(inputs);
        }
        let mut sums: BTreeMap<u32, i32> = injected.into_iter().collect();
        for &(neuron, amount) in inputs {
            let added = self.network.injected(neuron, amount)?;
            let sum = sums.entry(neuron).or_default();
            let maximum = self.network.injected(neuron, self.network.max_injected())?;
            let total = sum
                .checked_add(added)
                .filter(|total| total.unsigned_abs() <= maximum.unsigned_abs());
            *sum = total.ok_or_else(|| {
                Error::invalid(format!(
                    "neuron {neuron}: an injection of {} and a stimulus of {amount} in one burst; the maximum of their sum is {} either way",
                    self.network.potential(neuron, *sum),
                    self.network.max_injected()
                ))
            })?;
        }
        if sums.len() > self.max_inputs {
            return Err(Error::invalid(format!(
                "{} injections into one burst; at most {}",
                sums.len(),
                self.max_inputs
            )));
        }
        self.inputs.extend(sums);
        Ok(())
    }

    /// Drops the injections since the last burst.
    pub fn clear_inputs(&mut self) {
        self.inputs.clear();
    }

    /// Runs a number of bursts.
    ///
    /// # Errors
    /// `Unsupported`, and nothing changes, beyond the largest burst number. Device errors: the
    /// state is then unknown until one is restored, and injections are dropped.
    pub fn run(&mut self, bursts: u32) -> Result<SpikeCounts> {
        self.run_watched(bursts, |_| ControlFlow::Continue(()))
    }

    /// Runs a number of bursts, or until `watch` breaks the run off: it receives the counts after
    /// every plan that ran, which is one burst or sixteen. The returned counts say how many bursts
    /// there were, and the run continues from them.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_watched(
        &mut self,
        bursts: u32,
        mut watch: impl FnMut(SpikeCounts) -> ControlFlow<()>,
    ) -> Result<SpikeCounts> {
        if self
            .counts
            .bursts
            .checked_add(bursts)
            .is_none_or(|last| last > u32::MAX - MAX_REFRACTORY)
        {
            return Err(Error::unsupported(format!(
                "{bursts} bursts after burst {}: their numbers end at {}",
                self.counts.bursts,
                u32::MAX - MAX_REFRACTORY
            )));
        }
        self.stats = RunStats::default();
        let mut left = bursts;
        while left > 0 {
            let taken = match &self.shards[..] {
                [Shard { batch: Some(_), .. }] if left >= BATCH => BATCH,
                _ => 1,
            };
            self.submit(taken).inspect_err(|_| self.clear_inputs())?;
            left -= taken;
            if watch(self.counts).is_break() {
                break;
            }
        }
        Ok(self.counts)
    }

    fn submit(&mut self, bursts: u32) -> Result<()> {
        let burst = self.counts.bursts + 1;
        for shard in &mut self.shards {
            self.stats
                .add(&shard.submit(burst, bursts, &self.inputs, &mut self.session)?);
        }
        self.inputs.clear();
        self.counts.bursts += bursts;
        for shard in &mut self.shards {
            let ([spikes, first, second], events) = shard.take_counts(bursts);
            self.counts.spikes += u64::from(spikes);
            self.counts.events += events;
            let [low, high] = [
                self.counts.spike_hash as u32,
                (self.counts.spike_hash >> 32) as u32,
            ];
            self.counts.spike_hash =
                u64::from(low.wrapping_add(first)) | u64::from(high.wrapping_add(second)) << 32;
        }
        if self.shards.len() > 1 {
            let can_pack_bits = !self
                .network
                .profiles
                .iter()
                .any(|profile| profile.potential_driven);
            let mut list = Vec::new();
            for shard in &self.shards {
                shard.read_spikes(can_pack_bits, &mut list)?;
            }
            self.broadcast_spikes(list)?;
        }
        Ok(())
    }

    /// Gives every shard all firings, in the shorter form: the list, or a bit for each neuron.
    fn broadcast_spikes(&mut self, list: Vec<[u32; 2]>) -> Result<()> {
        let words = self.network.ledger_words();
        let can_pack_bits = self.shards.len() > 1 && list.iter().all(|[_, psp]| *psp == FIXED_PSP);
        if can_pack_bits && words < 2 * list.len() {
            let mut bits = vec![0u32; words];
            list.iter()
                .for_each(|[neuron, _]| bits[*neuron as usize / 32] |= 1 << (neuron % 32));
            self.shards
                .iter_mut()
                .try_for_each(|shard| shard.write_spike_bits(&bits))?;
        } else {
            self.shards
                .iter_mut()
                .try_for_each(|shard| shard.write_spike_list(&list))?;
        }
        self.exchanged = list;
        Ok(())
    }

    /// The firings of the last burst, with the psp that each sends.
    fn list(&self) -> Result<Vec<[u32; 2]>> {
        match &self.shards[..] {
            [alone] => alone.list(),
            _ => Ok(self.exchanged.clone()),
        }
    }

    /// The devices' counters of the last run.
    pub fn stats(&self) -> RunStats {
        self.stats
    }

    /// The work by device since the simulation was made, for a receipt: a run is a plan of a burst
    /// or of a batch of them, on one device.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a neuron fired in the last burst that ran here; false before the first and after a
    /// restore.
    ///
    /// # Cost
    /// No transfer: the firings of watched neurons came with the run.
    ///
    /// # Panics
    /// If the neuron is not in [`SimulationOptions::recorded_neurons`]: an error in the calling
    /// code.
    pub fn has_fired(&self, neuron: u32) -> bool {
        assert!(
            self.watched.iter().any(|watched| watched.contains(&neuron)),
            "neuron {neuron} is not watched"
        );
        let shard = self
            .shards
            .iter()
            .find(|shard| shard.targets.contains(&neuron));
        shard
            .and_then(|shard| shard.has_fired(neuron))
            .unwrap_or_else(|| panic!("neuron {neuron} is not watched"))
    }

    /// The code objects that runs launch, on every device, in single bursts and in batches.
    pub fn code(&self) -> &[CodeObject] {
        &self.code
    }

    /// The state, for any device and number of shards: for each neuron `potential`, `last`,
    /// `ready`, `consecutive`; `fired` pairs of neuron and psp; `counts`; for a network with
    /// plasticity or memories also `ledger`, `histories`, `weights`, `seen` and `kept`.
    ///
    /// # Errors
    /// Device errors.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let neurons = self.network.neurons() as usize;
        let mut planes = (0..self.shards[0].shape.planes)
            .map(|_| host_memory::with_capacity("a snapshot of neurons", neurons))
            .collect::<Result<Vec<_>>>()?;
        for shard in &self.shards {
            let state = shard.single.read_state::<u32>(shard.views.state)?;
            for (number, plane) in planes.iter_mut().enumerate() {
                let at = |i: usize| shard.shape.potential_at(i) + number * shard.shape.len;
                plane.extend((0..shard.targets.len()).map(|i| state[at(i)]));
            }
        }
        let mut snapshot = Snapshot::default();
        for (name, plane) in PLANES.into_iter().zip(planes) {
            snapshot.insert(name, Array::U32(plane));
        }
        let mut fired = self.list()?;
        fired.sort_unstable();
        snapshot.insert("fired", Array::U32(fired.into_iter().flatten().collect()));
        let SpikeCounts {
            bursts,
            spikes,
            events,
            spike_hash,
        } = self.counts;
        snapshot.insert(
            "counts",
            Array::U64(vec![u64::from(bursts), spikes, events, spike_hash]),
        );
        snapshot.insert(
            "network",
            Array::U64(self.network.fingerprint.words().to_vec()),
        );
        if self.network.history_depth() > 0 {
            learning::save(
                &self.network,
                &self.learning_states(),
                bursts,
                &mut snapshot,
            )?;
        }
        Ok(snapshot)
    }

    /// Restores a state; injections for the next burst are dropped.
    ///
    /// # Errors
    /// `Data`, and nothing is changed, for a snapshot of another network or an invalid array;
    /// device errors.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let neurons = self.network.neurons() as usize;
        if snapshot.u64("network", 4)? != self.network.fingerprint.words() {
            return Err(self.another_network());
        }
        let names = &PLANES[..self.shards[0].shape.planes];
        let planes = names
            .iter()
            .map(|name| snapshot.u32(name, neurons))
            .collect::<Result<Vec<_>>>()?;
        let (fired, rest) = snapshot
            .u32("fired", snapshot.len_of("fired").unwrap_or(0))?
            .as_chunks::<2>();
        let ascends = fired.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        if !rest.is_empty()
            || !ascends
            || fired
                .last()
                .is_some_and(|[neuron, _]| *neuron as usize >= neurons)
        {
            return Err(Error::data(
                "the snapshot's array fired is no list of ascending neurons",
            ));
        }
        let counts = snapshot.u64("counts", 4)?;
        let bursts = u32::try_from(counts[0])
            .map_err(|_| Error::data(format!("the snapshot is of burst {}", counts[0])))?;
        self.check_states(&planes, bursts)?;
        let saved = if self.network.history_depth() > 0 {
            Some(SavedLearning::read(&self.network, snapshot, bursts)?)
        } else {
            None
        };
        for index in 0..self.shards.len() {
            let learned = match &saved {
                Some(saved) => {
                    Some(saved.of_shard(&self.network, &self.learning_states(), index, bursts)?)
                }
                None => None,
            };
            let shard = &mut self.shards[index];
            let slots = shard.views.learned.iter().flat_map(|views| {
                [
                    views.synapses,
                    views.histories,
                    views.ledger,
                    views.memory_state,
                ]
            });
            for (slot, words) in slots.zip(learned.into_iter().flatten()) {
                shard.single.write_state(slot, &words)?;
            }
            let mut state =
                host_memory::filled("the state of neurons", 0u32, shard.views.state.len())?;
            for (number, plane) in planes.iter().enumerate() {
                for (i, value) in plane[shard.targets.start as usize..shard.targets.end as usize]
                    .iter()
                    .enumerate()
                {
                    state[shard.shape.potential_at(i) + number * shard.shape.len] = *value;
                }
            }
            shard.single.write_state(shard.views.state, &state)?;
            let sums = host_memory::filled("sums of neurons", 0i32, shard.views.sums.len())?;
            shard.single.write_state(shard.views.sums, &sums)?;
            shard.watched.fill(0);
        }
        self.broadcast_spikes(fired.to_vec())?;
        self.inputs.clear();
        self.counts = SpikeCounts {
            bursts,
            spikes: counts[1],
            events: counts[2],
            spike_hash: counts[3],
        };
        self.ledger_from = bursts.saturating_sub(self.network.history_depth()).max(1);
        Ok(())
    }

    /// The refusal of a snapshot of another network.
    fn another_network(&self) -> Error {
        let what = "the snapshot is of another network, or of the same with other options";
        let places = self.network.fraction_bits_text();
        Error::data(if places == FRACTION_BITS.to_string() {
            what.to_owned()
        } else {
            format!(
                "{what}, or of a version in which all neurons had the same binary places; here they have {places}"
            )
        })
    }

    /// Rejects a neuron's state that no run of this many bursts can reach.
    fn check_states(&self, planes: &[&[u32]], bursts: u32) -> Result<()> {
        for (range, profile) in &self.network.runs {
            let profile = &self.network.profiles[*profile as usize];
            for neuron in range.clone() {
                let of = |plane: usize| {
                    planes
                        .get(plane)
                        .map_or(0, |values| values[neuron as usize])
                };
                let state = NeuronState {
                    potential: of(0) as i32,
                    last: of(1),
                    ready: of(2),
                    consecutive: of(3),
                };
                if let Some(name) =
                    profile.unreachable(self.network.options.idle_update, &state, bursts)
                {
                    let value = match PLANES.iter().position(|plane| *plane == name) {
                        Some(0) | None => self.network.potential(neuron, state.potential),
                        Some(plane) => f64::from(of(plane)),
                    };
                    return Err(Error::data(format!(
                        "the snapshot's neuron {neuron} has {name} {value}, which no run of {bursts} bursts reaches"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The neurons that fired in the last burst, ascending.
    ///
    /// # Errors
    /// Device errors.
    pub fn fired(&self) -> Result<Vec<u32>> {
        let mut fired: Vec<u32> = self.list()?.into_iter().map(|[neuron, _]| neuron).collect();
        fired.sort_unstable();
        Ok(fired)
    }

    /// The firings of the last bursts: at least [`SimulationOptions::ledger`] of them, or as many
    /// as are known. Empty if the network has no ledger.
    ///
    /// # Errors
    /// Device errors.
    pub fn ledger(&self) -> Result<FireLedger> {
        let burst = self.counts.bursts;
        let held = self.learning_states();
        let [first, ..] = &held[..] else {
            return Ok(Vec::new());
        };
        if burst == 0 {
            return Ok(Vec::new());
        }
        let bursts = self
            .ledger_from
            .max(burst.saturating_sub(first.learned.bursts()))..burst;
        let words = first.ledger(bursts.clone())?;
        let row = |words: &[u32]| RoaringBitmap::from_lsb0_bytes(0, bytemuck::cast_slice(words));
        let mut ledger: FireLedger = bursts
            .zip(words.chunks(self.network.ledger_words()).map(row))
            .collect();
        ledger.push((burst, self.fired()?.into_iter().collect()));
        Ok(ledger)
    }

    /// The fire candidates of the last burst that ran: the neurons with arrivals, and the sum of
    /// each, in units of psp · weight.
    ///
    /// # Errors
    /// `Invalid` if [`SimulationOptions::candidates`] is not set; device errors.
    pub fn candidates(&self) -> Result<Vec<(u32, f64)>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let view = shard
                .views
                .candidates
                .ok_or_else(|| Error::invalid("a simulation without candidates"))?;
            let words = shard.single.read_state::<i32>(view)?;
            for (chunk, range) in words.chunks(shard.shape.chunk()).zip(&shard.shape.ranges) {
                let (sums, bits) = chunk.split_at(shard.shape.len);
                let is_touched = |i: &usize| bits[i / 32] >> (i % 32) & 1 != 0;
                all.extend((0..range.len()).filter(is_touched).map(|i| {
                    let neuron = range.start + i as u32;
                    (neuron, self.network.potential(neuron, sums[i]))
                }));
            }
        }
        Ok(all)
    }

    /// The plastic synapses by rule, source and target, with their weights at the end of the last
    /// burst.
    ///
    /// # Errors
    /// Device errors.
    pub fn plastic_synapses(&self) -> Result<Vec<PlasticSynapse>> {
        if self.network.plastic_synapses() == 0 {
            return Ok(Vec::new());
        }
        learning::plastic_synapses(
            &self.network,
            &self.learning_states(),
            &self.fired()?,
            self.counts.bursts,
        )
    }

    /// The state of each of the network's memories.
    ///
    /// # Errors
    /// Device errors.
    pub fn memories(&self) -> Result<Vec<MemoryReport>> {
        self.learning_states()
            .first()
            .map_or(Ok(Vec::new()), |shard| {
                learning::memories(&self.network, shard)
            })
    }

    /// The learning state of the shards; empty for a network that uses no past firings.
    fn learning_states(&self) -> Vec<ShardLearning<'_>> {
        self.shards.iter().filter_map(Shard::held).collect()
    }

    /// The potential of every neuron, in units of psp · weight.
    ///
    /// # Errors
    /// Device errors.
    pub fn potentials(&self) -> Result<Vec<f64>> {
        let mut all = host_memory::with_capacity("potentials", self.network.neurons() as usize)?;
        for shard in &self.shards {
            let potentials = shard.potentials(&self.network, self.counts.bursts)?;
            all.extend(
                shard
                    .targets
                    .clone()
                    .zip(potentials)
                    .map(|(neuron, potential)| self.network.potential(neuron, potential)),
            );
        }
        Ok(all)
    }
}
