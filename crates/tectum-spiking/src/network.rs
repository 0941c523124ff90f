//! A network in integers: neurons with their profiles, synapses by source, and the scale at which no sum overflows.

use std::collections::HashMap;
use std::ops::Range;

use tectum::{ContentHash, ContentHasher, Error, Result};

use super::connectivity_stats::ConnectivityStats;
use super::explanation::{self, ScaleLimit};
use super::learning::PlasticityRule;
use super::memory::{self, Memory};
use super::rule::{ALWAYS, IdleUpdate, LEAK_ONE, NEVER, POTENTIAL_MAX, Profile};

/// The options of a group of neurons. Potentials are in units of psp · weight.
///
/// # Source
/// The properties of a cortical area of a FEAGI genome; see `docs/spiking.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct NeuronOptions {
    /// The minimum potential at which it fires.
    pub threshold: f32,
    /// The maximum potential at which it fires; none for no limit. A neuron whose limit is below its threshold never fires.
    pub threshold_limit: Option<f32>,
    /// The initial potential, to which it also resets and leaks.
    pub resting_potential: f32,
    /// The fraction of the potential that is lost in a burst without firing, 0 to 1.
    pub leak: f32,
    /// The probability that a candidate in its window fires, 0 to 1; at 0.999 or more it always does.
    pub excitability: f32,
    /// Bursts after a firing in which arrivals are lost.
    pub refractory: u16,
    /// Firings in a row after which a neuron snoozes; 0 or 65,535 for no limit.
    pub consecutive_fire_limit: u16,
    /// Bursts that this adds to the refractory period.
    pub snooze: u16,
    /// Whether the potential persists from burst to burst.
    pub charge_accumulation: bool,
    /// The psp that a firing sends through weight 1.
    pub psp: u8,
    /// Whether every synapse carries the whole psp, or the psp is divided by their number.
    pub uniform_psp: bool,
    /// Whether the firing potential, rounded and clamped to 0 to 255, is sent instead.
    pub potential_driven_psp: bool,
}

impl Default for NeuronOptions {
    fn default() -> Self {
        Self {
            threshold: 1.0,
            threshold_limit: None,
            resting_potential: 0.0,
            leak: 0.0,
            excitability: 1.0,
            refractory: 0,
            consecutive_fire_limit: 0,
            snooze: 0,
            charge_accumulation: true,
            psp: 1,
            uniform_psp: false,
            potential_driven_psp: false,
        }
    }
}

/// A synapse's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synapse {
    /// The target neuron.
    pub target: u32,
    /// The factor of its sender's psp.
    pub weight: u8,
    /// Whether it subtracts instead.
    pub inhibitory: bool,
    /// Index in [`NetworkOptions::plasticity`] of its learning rule; none for a fixed weight.
    pub plasticity: Option<u8>,
}

impl Synapse {
    /// A synapse with a fixed weight.
    pub fn fixed(target: u32, weight: u8, inhibitory: bool) -> Self {
        Self { target, weight, inhibitory, plasticity: None }
    }

    /// Whether it exists from the beginning, and not only after learning.
    pub(super) fn is_there(&self) -> bool {
        self.plasticity.is_none() || self.weight > 0
    }
}

/// Synapses by source. A network visits them twice, so that they need not be in memory.
pub trait SynapseRows: Send + Sync {
    /// Visits a source's synapses, the same ones in the same order each time.
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse));

    /// Bytes that they take in memory; 0 for synapses that are generated when visited.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Synapses in memory, by source.
#[derive(Debug, Clone, Default)]
pub struct SynapseList {
    starts: Vec<u64>,
    synapses: Vec<Synapse>,
}

impl SynapseList {
    /// Sorts synapses by source; the sort is stable.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse, if its source is not a neuron.
    pub fn new(neurons: u32, list: &[(u32, Synapse)]) -> Result<Self> {
        let mut starts = vec![0u64; neurons as usize + 1];
        for (index, (source, _)) in list.iter().enumerate() {
            let count = starts.get_mut(*source as usize + 1);
            *count.ok_or_else(|| Error::invalid(format!("synapse {index}: source {source} of {neurons} neurons")))? += 1;
        }
        for index in 0..neurons as usize {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut synapses = vec![Synapse::fixed(0, 0, false); list.len()];
        for (source, synapse) in list {
            synapses[next[*source as usize] as usize] = *synapse;
            next[*source as usize] += 1;
        }
        Ok(Self { starts, synapses })
    }
}

impl SynapseRows for SynapseList {
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse)) {
        let range = self.starts[source as usize] as usize..self.starts[source as usize + 1] as usize;
        self.synapses[range].iter().copied().for_each(visit);
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&self.starts[..]) + size_of_val(&self.synapses[..])) as u64
    }
}

/// Neurons, before they are connected.
#[derive(Debug, Clone, Default)]
pub struct Neurons {
    pub(super) groups: Vec<(u32, NeuronOptions)>,
    count: u32,
}

impl Neurons {
    /// Adds `count` neurons with the same options; returns their numbers.
    ///
    /// # Errors
    /// `Invalid`, naming the option, if one is out of its range, or beyond 2³¹ neurons.
    pub fn add(&mut self, count: u32, options: &NeuronOptions) -> Result<Range<u32>> {
        check(options)?;
        let end = self.count.checked_add(count).filter(|&end| end < 1 << 31);
        let end = end.ok_or_else(|| Error::invalid(format!("{} and {count} neurons; at most 2^31 are possible", self.count)))?;
        match self.groups.last_mut() {
            Some((last, same)) if same == options => *last += count,
            _ => self.groups.push((count, options.clone())),
        }
        Ok(std::mem::replace(&mut self.count, end)..end)
    }

    /// Neurons so far.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// The options of each.
    pub(super) fn each(&self) -> impl Iterator<Item = &NeuronOptions> {
        self.groups.iter().flat_map(|(count, options)| std::iter::repeat_n(options, *count as usize))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn check(options: &NeuronOptions) -> Result<()> {
    let part = |name: &str, value: f32| match value {
        value if (0.0..=1.0).contains(&value) => Ok(()),
        value => Err(Error::invalid(format!("{name} {value}; 0 to 1 is needed"))),
    };
    part("leak", options.leak)?;
    part("excitability", options.excitability)?;
    for (name, value) in [("threshold", options.threshold), ("resting_potential", options.resting_potential)] {
        if !value.is_finite() {
            return Err(Error::invalid(format!("{name} {value}; a finite number is needed")));
        }
    }
    match options.threshold_limit {
        Some(limit) if limit.is_nan() => Err(Error::invalid("threshold_limit is no number")),
        _ => Ok(()),
    }
}

/// Options of a network as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOptions {
    /// The effect of a burst without arrivals.
    pub idle_update: IdleUpdate,
    /// Added to each neuron's number for its draws.
    pub seed: u32,
    /// Maximum magnitude of the injection into a neuron in one burst; the scale leaves room for it.
    pub max_injected: f32,
    /// Learning rules of plastic synapses, at most 16.
    pub plasticity: Vec<PlasticityRule>,
    /// Memories, which store patterns of firings.
    pub memories: Vec<Memory>,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self { idle_update: IdleUpdate::CatchUp, seed: 0, max_injected: 1024.0, plasticity: Vec::new(), memories: Vec::new() }
    }
}

/// Maximum number of plasticity rules.
const RULES_MAX: usize = 16;

/// A network that can run on any device.
pub struct Network {
    pub(super) options: NetworkOptions,
    pub(super) fraction_bits: u32,
    pub(super) profiles: Vec<Profile>,
    /// The profile of each neuron, by ranges of neurons.
    pub(super) runs: Vec<(Range<u32>, u32)>,
    /// For each neuron the unit that its firing sends, or, where that depends on the firing, the number of synapses that share it.
    pub(super) senders: Vec<u32>,
    pub(super) rows: Box<dyn SynapseRows>,
    /// Whether a sum of 0 must be distinguished from no arrival.
    pub(super) zero_sums_matter: bool,
    /// The reason why potentials have no more fraction bits.
    pub(super) scale: ScaleLimit,
    synapses: u64,
    /// Plastic synapses, by rule.
    pub(super) plastic: Vec<u64>,
    /// The hash of everything that determines its behaviour.
    pub(super) fingerprint: ContentHash,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Network({} neurons, {} synapses, {} binary places)", self.neurons(), self.synapses, self.fraction_bits)
    }
}

impl Network {
    /// Connects neurons and chooses the scale: the maximum number of fraction bits, up to 16, with every possible sum within 2³⁰.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse or the neuron, for an unknown target, or if even integers could overflow.
    pub fn new(neurons: &Neurons, rows: Box<dyn SynapseRows>, options: NetworkOptions) -> Result<Self> {
        let count = neurons.count as usize;
        if count == 0 {
            return Err(Error::invalid("a network without neurons"));
        }
        if options.plasticity.len() > RULES_MAX {
            return Err(Error::invalid(format!("{} rules of plasticity; at most {RULES_MAX} are possible", options.plasticity.len())));
        }
        options.plasticity.iter().enumerate().try_for_each(|(index, rule)| rule.check().map_err(|error| error.at(format_args!("plasticity rule {index}"))))?;
        memory::check(&options.memories, neurons.count)?;
        let survey = ConnectivityStats::new(neurons, &*rows, &options)?;
        let (fraction_bits, scale) = survey.scale(neurons, options.max_injected)?;
        let (profiles, runs) = profiles(neurons, &options.memories, fraction_bits);
        let senders = survey.senders(neurons, &options.memories, fraction_bits);
        Ok(Self {
            zero_sums_matter: profiles.iter().any(|profile| explanation::zero_sums(profile, options.idle_update).is_some()),
            scale,
            fingerprint: fingerprint(survey.hasher, &options, &profiles, &runs, (&senders, fraction_bits)),
            synapses: survey.synapses,
            plastic: survey.plastic,
            senders,
            options,
            fraction_bits,
            profiles,
            runs,
            rows,
        })
    }

    /// Neurons.
    pub fn neurons(&self) -> u32 {
        self.senders.len() as u32
    }

    /// Synapses.
    pub fn synapses(&self) -> u64 {
        self.synapses
    }

    /// Memories, which store patterns of firings.
    pub fn memories(&self) -> &[Memory] {
        &self.options.memories
    }

    /// Plastic synapses.
    pub fn plastic_synapses(&self) -> u64 {
        self.plastic.iter().sum()
    }

    /// Fraction bits of a potential.
    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// A potential in fixed point, rounded to the nearest.
    ///
    /// # Errors
    /// `Invalid` beyond the maximum injection.
    pub(super) fn injected(&self, neuron: u32, amount: f32) -> Result<i32> {
        if neuron >= self.neurons() {
            return Err(Error::invalid(format!("injection into neuron {neuron} of {}", self.neurons())));
        }
        if amount.is_nan() || amount.abs() > self.options.max_injected {
            return Err(Error::invalid(format!("injection of {amount} into neuron {neuron}; the maximum is {} either way", self.options.max_injected)));
        }
        Ok(fixed(amount, self.fraction_bits))
    }
}

/// The options of each range of neurons; a memory's neurons fire only for their patterns, and send their own psp.
fn kinds(groups: &[(u32, NeuronOptions)], memories: &[Memory]) -> Vec<(Range<u32>, NeuronOptions)> {
    let mut kinds = Vec::new();
    let mut first = 0;
    for (count, options) in groups {
        let range = first..first + count;
        first = range.end;
        let mut begin = range.start;
        let mut inside: Vec<&Range<u32>> =
            memories.iter().map(|memory| &memory.neurons).filter(|neurons| neurons.start < range.end && range.start < neurons.end).collect();
        inside.sort_unstable_by_key(|neurons| neurons.start);
        for neurons in inside {
            let neurons = neurons.start.max(range.start)..neurons.end.min(range.end);
            kinds.push((begin..neurons.start, options.clone()));
            begin = neurons.end;
            kinds.push((neurons, NeuronOptions { threshold: f32::MAX, threshold_limit: None, potential_driven_psp: false, ..options.clone() }));
        }
        kinds.push((begin..range.end, options.clone()));
    }
    kinds.retain(|(range, _)| !range.is_empty());
    kinds
}

/// The distinct profiles, and the profile of each range of neurons.
fn profiles(neurons: &Neurons, memories: &[Memory], fraction_bits: u32) -> (Vec<Profile>, Vec<(Range<u32>, u32)>) {
    let mut known: HashMap<Profile, u32> = HashMap::new();
    let (mut profiles, mut runs) = (Vec::new(), Vec::<(Range<u32>, u32)>::new());
    for (range, neuron) in kinds(&neurons.groups, memories) {
        let profile = profile(&neuron, fraction_bits);
        let index = *known.entry(profile).or_insert_with(|| {
            profiles.push(profile);
            profiles.len() as u32 - 1
        });
        match runs.last_mut() {
            Some((before, same)) if *same == index => before.end = range.end,
            _ => runs.push((range, index)),
        }
    }
    (profiles, runs)
}

/// The content hash of everything that determines a network's behaviour; its synapses are already in the hasher.
fn fingerprint(
    mut hasher: ContentHasher,
    options: &NetworkOptions,
    profiles: &[Profile],
    runs: &[(Range<u32>, u32)],
    (senders, fraction_bits): (&[u32], u32),
) -> ContentHash {
    let skips = options.idle_update == IdleUpdate::Freeze;
    let counts = [senders.len(), runs.len(), options.plasticity.len(), options.memories.len()].map(|count| count as u32);
    let runs = runs.iter().flat_map(|(range, profile)| [range.end].into_iter().chain(super::kernels::profile_words(&profiles[*profile as usize])));
    let rules = options.plasticity.iter().flat_map(|rule| [rule.window, rule.gain.into(), rule.loss.into()]);
    let memories = options.memories.iter().flat_map(Memory::numbers);
    let first = counts.into_iter().chain([options.seed, u32::from(skips), fraction_bits]);
    let words = first.chain(runs).chain(rules).chain(memories).chain(senders.iter().copied());
    words.for_each(|word| hasher.update(&word.to_le_bytes()));
    hasher.finish()
}

/// A number in fixed point, rounded to the nearest and clamped to the range of a potential.
fn fixed(value: f32, fraction_bits: u32) -> i32 {
    let scaled = (f64::from(value) * f64::from(1u32 << fraction_bits)).round();
    scaled.clamp(-f64::from(POTENTIAL_MAX), f64::from(POTENTIAL_MAX)) as i32
}

fn profile(options: &NeuronOptions, fraction_bits: u32) -> Profile {
    let beyond = |value: f32| f64::from(value) * f64::from(1u32 << fraction_bits) > f64::from(POTENTIAL_MAX);
    let bound = |value: f32| if beyond(value) { NEVER } else { fixed(value, fraction_bits) };
    let limit = match options.consecutive_fire_limit {
        u16::MAX => 0,
        limit => u32::from(limit),
    };
    Profile {
        threshold: bound(options.threshold),
        limit: options.threshold_limit.map_or(NEVER, bound),
        rest: fixed(options.resting_potential, fraction_bits),
        leak: (f64::from(options.leak) * f64::from(LEAK_ONE)).round() as u32,
        chance: if options.excitability >= 0.999 { ALWAYS } else { (f64::from(options.excitability) * 4_294_967_296.0) as u32 },
        refractory: u32::from(options.refractory),
        consecutive_limit: limit,
        snooze: if limit == 0 { 0 } else { u32::from(options.snooze) },
        accumulates: options.charge_accumulation,
        potential_driven: options.potential_driven_psp,
    }
}
