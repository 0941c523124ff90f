//! A network in integers: neurons with their profiles, synapses by source, and the formats in which
//! no sum overflows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use tectum::{ContentHash, ContentHasher, Error, Result, host_memory};

use super::connectivity_stats::ConnectivityStats;
use super::formats::{FormatGroup, Formats, same_format};
use super::learning::PlasticityRule;
use super::memory::{self, Memory};
use super::network_options::NetworkOptions;
use super::neurons::{GROUP_BYTES, NeuronOptions, Neurons};
use super::precision::{Imprecision, imprecisions};
use super::rule::{
    ALWAYS, FRACTION_BITS, IdleUpdate, LEAK_ONE, NEVER, POTENTIAL_MAX, Profile, fixed,
};
use super::synapses::{Synapse, SynapseRows};

/// Bytes of a neuron while a network is made: the start of its row, its degree, its maximum arrival
/// and slack, and its unit.
const BUILD_BYTES: u64 = 8 + 4 + 2 * 8 + 4;
/// Maximum number of plasticity rules.
const RULES_MAX: usize = 16;

/// A network that can run on any device.
pub struct Network {
    pub(super) options: NetworkOptions,
    pub(super) formats: Formats,
    pub(super) format_groups: Vec<FormatGroup>,
    /// Settings that the formats distort.
    pub(super) imprecisions: Vec<Imprecision>,
    pub(super) profiles: Vec<Profile>,
    /// The profile of each neuron, by ranges of neurons.
    pub(super) runs: Vec<(Range<u32>, u32)>,
    /// For each neuron the unit that its firing sends, or, where that depends on the firing, the
    /// number of synapses that share it.
    pub(super) senders: Vec<u32>,
    pub(super) rows: Box<dyn SynapseRows>,
    /// Whether a sum of 0 must be distinguished from no arrival.
    pub(super) zero_sums_matter: bool,
    synapses: u64,
    /// Plastic synapses, by rule.
    pub(super) plastic: Vec<u64>,
    /// Of them, those with an initial weight above 0.
    pub(super) plastic_at_first: Vec<u64>,
    /// The hash of everything that determines its behaviour.
    pub(super) fingerprint: ContentHash,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Network({} neurons, {} synapses, {} binary places)",
            self.neurons(),
            self.synapses,
            self.fraction_bits_text()
        )
    }
}

impl Network {
    /// Connects neurons and chooses the format of each: the maximum number of fraction bits, up to
    /// 16, with every possible sum within 2³⁰.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse or the neuron, for an unknown target, options out of their
    /// range, or if even integers could overflow; `OutOfMemory` if it does not fit into memory.
    ///
    /// # Cost
    /// Two passes over the synapses. 24 bytes of memory for each neuron, of which four remain.
    pub fn new(
        neurons: &Neurons,
        rows: Box<dyn SynapseRows>,
        options: NetworkOptions,
    ) -> Result<Self> {
        let count = neurons.len() as usize;
        if count == 0 {
            return Err(Error::invalid("a network without neurons"));
        }
        if let Some(sources) = rows.sources().filter(|sources| *sources != neurons.len()) {
            return Err(Error::invalid(format!(
                "synapses of {sources} neurons for a network of {count}"
            )));
        }
        check_rules(&options.plasticity)?;
        if !(0.0..=f32::MAX).contains(&options.max_injected) {
            return Err(Error::invalid(format!(
                "a maximum injection of {}; needs a finite number from 0",
                options.max_injected
            )));
        }
        options
            .plasticity
            .iter()
            .enumerate()
            .try_for_each(|(index, rule)| {
                rule.check()
                    .map_err(|error| error.at(format_args!("plasticity rule {index}")))
            })?;
        memory::check(&options.memories, neurons.len())?;
        host_memory::check(
            format_args!("a network of {count} neurons"),
            build_bytes(neurons),
        )?;
        let survey = ConnectivityStats::new(neurons, &*rows, &options)?;
        let (formats, format_groups) = survey.formats(neurons, options.max_injected)?;
        let kinds = kinds(&neurons.groups, &options.memories);
        let (profiles, runs) = profiles(&kinds, &formats);
        let senders = survey.senders(neurons, &options.memories)?;
        Ok(Self {
            zero_sums_matter: profiles
                .iter()
                .any(|profile| profile.zero_sums(options.idle_update).is_some()),
            imprecisions: imprecisions(&kinds, &formats),
            fingerprint: fingerprint(survey.hasher, &options, &profiles, &runs, &senders),
            synapses: survey.synapses,
            plastic: survey.plastic,
            plastic_at_first: survey.plastic_at_first,
            senders,
            options,
            formats,
            format_groups,
            profiles,
            runs,
            rows,
        })
    }

    /// Visits the synapses of a neuron with their initial weights, in the order in which the network
    /// received them.
    ///
    /// # Panics
    /// If there is no such neuron.
    pub fn visit_synapses(&self, source: u32, visit: &mut dyn FnMut(Synapse)) {
        self.rows.visit(source, visit);
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

    /// The fewest and the most fraction bits of a potential.
    pub fn fraction_bits(&self) -> RangeInclusive<u32> {
        self.formats.range()
    }

    /// Fraction bits of a neuron's potential.
    pub fn fraction_bits_of(&self, neuron: u32) -> u32 {
        self.formats.of(neuron)
    }

    /// Those of all neurons, in words: `16`, or `8 to 16`.
    pub fn fraction_bits_text(&self) -> String {
        match self.fraction_bits().into_inner() {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        }
    }

    /// Settings that the formats of neurons distort by more than 1 % of their threshold.
    pub fn imprecisions(&self) -> &[Imprecision] {
        &self.imprecisions
    }

    /// The units of senders; then, if targets have formats of their own, their shifts.
    pub(super) fn sender_words(&self) -> Cow<'_, [u32]> {
        match self.formats.shift_words() {
            none if none.is_empty() => Cow::Borrowed(&self.senders),
            shifts => Cow::Owned([&self.senders[..], &shifts].concat()),
        }
    }

    /// Words of the units of senders and of shifts.
    pub(super) fn sender_word_count(&self) -> usize {
        self.senders.len() + self.formats.shift_word_count()
    }

    /// A potential in units of psp · weight.
    pub(super) fn potential(&self, neuron: u32, fixed: i32) -> f64 {
        f64::from(fixed) / f64::from(1u32 << self.formats.of(neuron))
    }

    /// The maximum magnitude of the injection into a neuron in one burst, in units of psp · weight.
    pub fn max_injected(&self) -> f32 {
        self.options.max_injected
    }

    /// A potential in fixed point, rounded to the nearest.
    ///
    /// # Errors
    /// `Invalid` beyond the maximum injection.
    pub(super) fn injected(&self, neuron: u32, amount: f32) -> Result<i32> {
        if neuron >= self.neurons() {
            return Err(Error::invalid(format!(
                "injection into neuron {neuron} of {}",
                self.neurons()
            )));
        }
        if amount.is_nan() || amount.abs() > self.options.max_injected {
            return Err(Error::invalid(format!(
                "injection of {amount} into neuron {neuron}; the maximum is {} either way",
                self.options.max_injected
            )));
        }
        Ok(fixed(amount, self.formats.of(neuron)))
    }
}

/// Rejects more rules than there are numbers for.
pub(super) fn check_rules(rules: &[PlasticityRule]) -> Result<()> {
    if rules.len() > RULES_MAX {
        return Err(Error::invalid(format!(
            "{} rules of plasticity; at most {RULES_MAX} are possible",
            rules.len()
        )));
    }
    Ok(())
}

/// Bytes of neurons while a network is made, with the rows of a list of synapses.
pub(super) fn build_bytes(neurons: &Neurons) -> u64 {
    let groups = (neurons.groups.len() as u64).saturating_mul(GROUP_BYTES);
    u64::from(neurons.len()) * BUILD_BYTES + groups
}

/// The options of each range of neurons; a memory's neurons fire only for their patterns, and send
/// their own psp.
fn kinds(groups: &[(u32, NeuronOptions)], memories: &[Memory]) -> Vec<(Range<u32>, NeuronOptions)> {
    let mut kinds = Vec::new();
    let mut first = 0;
    for (count, options) in groups {
        let range = first..first + count;
        first = range.end;
        let mut begin = range.start;
        let mut inside: Vec<&Range<u32>> = memories
            .iter()
            .map(|memory| &memory.neurons)
            .filter(|neurons| neurons.start < range.end && range.start < neurons.end)
            .collect();
        inside.sort_unstable_by_key(|neurons| neurons.start);
        for neurons in inside {
            let neurons = neurons.start.max(range.start)..neurons.end.min(range.end);
            kinds.push((begin..neurons.start, options.clone()));
            begin = neurons.end;
            kinds.push((
                neurons,
                NeuronOptions {
                    threshold: f32::MAX,
                    threshold_limit: None,
                    potential_driven_psp: false,
                    ..options.clone()
                },
            ));
        }
        kinds.push((begin..range.end, options.clone()));
    }
    kinds.retain(|(range, _)| !range.is_empty());
    kinds
}

/// The distinct profiles, and the profile of each range of neurons.
fn profiles(
    kinds: &[(Range<u32>, NeuronOptions)],
    formats: &Formats,
) -> (Vec<Profile>, Vec<(Range<u32>, u32)>) {
    let mut known: HashMap<Profile, u32> = HashMap::new();
    let (mut profiles, mut runs) = (Vec::new(), Vec::<(Range<u32>, u32)>::new());
    for (range, neuron) in kinds {
        for (range, fraction_bits) in same_format(range.clone(), formats) {
            let profile = profile(neuron, fraction_bits);
            let index = *known.entry(profile).or_insert_with(|| {
                profiles.push(profile);
                profiles.len() as u32 - 1
            });
            match runs.last_mut() {
                Some((before, same)) if *same == index => before.end = range.end,
                _ => runs.push((range, index)),
            }
        }
    }
    (profiles, runs)
}

/// The content hash of everything that determines a network's behaviour; its synapses are already
/// in the hasher.
fn fingerprint(
    mut hasher: ContentHasher,
    options: &NetworkOptions,
    profiles: &[Profile],
    runs: &[(Range<u32>, u32)],
    senders: &[u32],
) -> ContentHash {
    let skips = options.idle_update == IdleUpdate::Freeze;
    let counts = [
        senders.len(),
        runs.len(),
        options.plasticity.len(),
        options.memories.len(),
    ]
    .map(|count| count as u32);
    let runs = runs.iter().flat_map(|(range, profile)| {
        [range.end]
            .into_iter()
            .chain(profiles[*profile as usize].words())
    });
    let rules = options.plasticity.iter().flat_map(PlasticityRule::numbers);
    let memories = options.memories.iter().flat_map(Memory::numbers);
    let first = counts
        .into_iter()
        .chain([options.seed, u32::from(skips), FRACTION_BITS]);
    let words = first
        .chain(runs)
        .chain(rules)
        .chain(memories)
        .chain(senders.iter().copied());
    words.for_each(|word| hasher.update(&word.to_le_bytes()));
    hasher.finish()
}

fn profile(options: &NeuronOptions, fraction_bits: u32) -> Profile {
    let beyond =
        |value: f32| f64::from(value) * f64::from(1u32 << fraction_bits) > f64::from(POTENTIAL_MAX);
    let bound = |value: f32| {
        if beyond(value) {
            NEVER
        } else {
            fixed(value, fraction_bits)
        }
    };
    let limit = match options.consecutive_fire_limit {
        u16::MAX => 0,
        limit => u32::from(limit),
    };
    Profile {
        threshold: bound(options.threshold),
        limit: options.threshold_limit.map_or(NEVER, bound),
        rest: fixed(options.resting_potential, fraction_bits),
        leak: (f64::from(options.leak) * f64::from(LEAK_ONE)).round() as u32,
        chance: if options.excitability >= 0.999 {
            ALWAYS
        } else {
            (f64::from(options.excitability) * 4_294_967_296.0) as u32
        },
        refractory: u32::from(options.refractory),
        consecutive_limit: limit,
        snooze: if limit == 0 {
            0
        } else {
            u32::from(options.snooze)
        },
        accumulates: options.charge_accumulation,
        potential_driven: options.potential_driven_psp,
        shift: FRACTION_BITS - fraction_bits,
    }
}
