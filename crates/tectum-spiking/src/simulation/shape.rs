//! The layout of a shard's buffers.

use std::ops::Range;

use tectum::Device;

use super::SimulationOptions;
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
    pub fn new(network: &Network, targets: Range<u32>, device: &Device, options: &SimulationOptions) -> Self {
        let count = targets.len() as u32;
        let natural = if device.info().preferences().joined_parts {
            // Walking fewer and longer rows saves more than sums that stay in L2.
            if count < MIN_PARALLEL_NEURONS { 1 } else { device.info().compute_units.unwrap_or(1) }
        } else {
            let words = device.info().limits.max_binding_bytes / 4;
            // Random targets spread evenly; a tenth more leaves room for uneven ones.
            let synapses = network.synapses() + network.plastic_synapses();
            let by_words = (synapses + synapses / 10).div_ceil(words.max(1)) as u32;
            count.div_ceil(connectome::PART_NEURONS).max(by_words)
        };
        // Views of parts begin at multiples of 64 elements, and so do the bits after a part's sums.
        let len = count.div_ceil(options.parts.unwrap_or(natural).max(1)).next_multiple_of(2048).min(connectome::PART_NEURONS) as usize;
        let ranges: Vec<Range<u32>> = targets.clone().step_by(len).map(|first| first..(first + len as u32).min(targets.end)).collect();
        let padded = ranges.len() * len;
        // All of a network may fire in one burst, and every shard receives all firings.
        let room = padded.max(network.neurons().next_multiple_of(2048) as usize);
        let has_past = |profile: &Profile| explanation::extra_state(profile, network.options.idle_update).is_some();
        Self {
            watched: watched_words(&options.recorded_neurons, &targets),
            targets,
            len,
            planes: if network.profiles.iter().any(has_past) { 4 } else { 1 },
            tracked: network.zero_sums_matter || options.candidates,
            candidates: options.candidates,
            list_at: HEADER_WORDS,
            bits_at: HEADER_WORDS + 2 * room,
            bit_words: padded / 32,
            ranges,
        }
    }

    /// Words of a part's sums, with its bits of arrivals.
    pub fn chunk(&self) -> usize {
        if self.tracked { self.len + self.len / 32 } else { self.len }
    }

    /// The index of the potential of a shard's neuron in the state.
    pub fn potential_at(&self, i: usize) -> usize {
        i / self.len * self.planes * self.len + i % self.len
    }
}

/// The words of bits that hold some neurons' firings, ascending, without duplicates: in whole blocks of 64 words, where views may begin.
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
