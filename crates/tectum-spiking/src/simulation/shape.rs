//! The layout of a shard's buffers.

use std::ops::Range;

use tectum::LayoutPreferences;

use super::SimulationOptions;
use crate::connectome::SynapsePartition;
use crate::kernels::HEADER_WORDS;
use crate::network::Network;
use crate::rule::Profile;
use crate::{connectome, explanation};

/// Minimum number of neurons for which a part for each thread pays off.
const MIN_PARALLEL_NEURONS: u32 = 1 << 15;

/// The layout of a shard's buffers.
pub struct Shape {
    pub targets: Range<u32>,
    pub ranges: Vec<Range<u32>>,
    pub len: usize,
    pub planes: usize,
    pub tracked: bool,
    pub list_at: usize,
    pub bits_at: usize,
    pub bit_words: usize,
    /// Words of bits that every run returns.
    pub watched: Vec<Range<usize>>,
    /// Whether arrivals are kept for the host.
    pub candidates: bool,
}

impl Shape {
    pub fn new(
        network: &Network,
        targets: Range<u32>,
        layout: LayoutPreferences,
        options: &SimulationOptions,
    ) -> Self {
        let count = targets.len() as u32;
        // Walking fewer and longer rows saves more than sums that stay in L2.
        let threads = if count < MIN_PARALLEL_NEURONS {
            1
        } else {
            layout.threads
        };
        // Random targets spread evenly; a tenth more leaves room for uneven ones.
        let synapses = network.synapses() + network.plastic_synapses();
        let launches = (synapses + synapses / 10).div_ceil(launch_words(layout)) as u32;
        let natural = threads
            .saturating_mul(launches)
            .max(count.div_ceil(connectome::PART_NEURONS));
        // Views of parts begin at multiples of 64 elements, and so do the bits after a part's sums.
        let len = count
            .div_ceil(options.parts.unwrap_or(natural).max(1))
            .next_multiple_of(2048)
            .min(connectome::PART_NEURONS) as usize;
        let ranges: Vec<Range<u32>> = targets
            .clone()
            .step_by(len)
            .map(|first| first..(first + len as u32).min(targets.end))
            .collect();
        let padded = ranges.len() * len;
        // All of a network may fire in one burst, and every shard receives all firings.
        let room = padded.max(network.neurons().next_multiple_of(2048) as usize);
        let has_past = |profile: &Profile| {
            explanation::extra_state(profile, network.options.idle_update).is_some()
        };
        Self {
            watched: watched_words(&options.recorded_neurons, &targets),
            targets,
            len,
            planes: if network.profiles.iter().any(has_past) {
                4
            } else {
                1
            },
            tracked: network.zero_sums_matter || options.candidates,
            candidates: options.candidates,
            list_at: HEADER_WORDS,
            bits_at: HEADER_WORDS + 2 * room,
            bit_words: padded / 32,
            ranges,
        }
    }

    /// The parts of each launch: as many as its bindings can hold, of the synapses of each kind.
    pub fn launches(
        &self,
        kinds: &[(usize, &[SynapsePartition])],
        layout: LayoutPreferences,
    ) -> Vec<Range<usize>> {
        let most = launch_words(layout);
        let words = |part: usize| {
            kinds.iter().map(move |(words, parts)| {
                [words * parts[part].padded_len(), parts[part].starts.len()]
            })
        };
        let mut launches: Vec<Range<usize>> = Vec::new();
        let mut room = most;
        for part in 0..self.ranges.len() {
            let own = words(part)
                .flatten()
                .chain([self.chunk(), self.planes * self.len])
                .max()
                .unwrap_or(0) as u64;
            match launches.last_mut() {
                Some(launch) if own <= room => launch.end = part + 1,
                _ => {
                    launches.push(part..part + 1);
                    room = most;
                }
            }
            room = room.saturating_sub(own);
        }
        launches
    }

    /// Words of a part's sums, with its bits of arrivals.
    pub fn chunk(&self) -> usize {
        if self.tracked {
            self.len + self.len / 32
        } else {
            self.len
        }
    }

    /// The index of the potential of a shard's neuron in the state.
    pub fn potential_at(&self, i: usize) -> usize {
        i / self.len * self.planes * self.len + i % self.len
    }
}

/// The maximum number of words that a launch binds at once: device code counts them in 32 bits.
fn launch_words(layout: LayoutPreferences) -> u64 {
    (layout.max_binding_bytes / 4).clamp(1, u64::from(u32::MAX))
}

/// The words of bits that hold some neurons' firings, ascending, without duplicates: in whole
/// blocks of 64 words, where views may begin.
fn watched_words(watched: &[Range<u32>], targets: &Range<u32>) -> Vec<Range<usize>> {
    const NEURONS: u32 = 32 * 64;
    let inside = watched
        .iter()
        .map(|range| range.start.max(targets.start)..range.end.min(targets.end))
        .filter(|range| !range.is_empty());
    let runs = inside.map(|range| {
        (range.start - targets.start) / NEURONS..(range.end - targets.start).div_ceil(NEURONS)
    });
    let mut runs: Vec<Range<u32>> = runs.collect();
    runs.sort_unstable_by_key(|run| run.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for run in runs
        .into_iter()
        .map(|run| 64 * run.start as usize..64 * run.end as usize)
    {
        match merged.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => merged.push(run),
        }
    }
    merged
}
