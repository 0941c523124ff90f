//! Synapses packed for a run: four bytes each, in rows by source, once for each part of the targets.
//!
//! ```text
//! word = target within its part (23 bits) · inhibitory (1) · weight (8)
//! ```
//!
//! A part holds all synapses whose targets are in its range of neurons. Parts are distributed over threads, so no two threads write the same
//! sum. A device with bindings of limited size gets one launch for each part.

use std::ops::Range;

use tectum::{Error, Result};

use super::synapses::{Synapse, SynapseRows};

/// Bits of a word below the target: weight and sign.
pub const TARGET_SHIFT: u32 = 9;
/// The sign's bit.
pub const INHIBITORY: u32 = 1 << 8;
/// The weight's bits.
pub const WEIGHT: u32 = 0xff;
/// Approximate number of synapses in a slice of a row.
const SLICE: u64 = 512;
/// Maximum slices of a row.
const SLICES_MAX: u64 = 64;
/// Maximum neurons of a part.
pub const PART_NEURONS: u32 = 1 << (32 - TARGET_SHIFT);

/// The synapses whose targets are in a range of neurons.
#[derive(Debug, Clone)]
pub struct SynapsePartition {
    /// The targets.
    pub targets: Range<u32>,
    /// The start of each source's row, then the end of the last; 64 bits, since a part can have more than 2³² synapses.
    pub starts: Vec<u64>,
    /// Packed synapses.
    pub words: Vec<u32>,
}

impl SynapsePartition {
    /// The starts of its rows, in words of 32 bits.
    ///
    /// # Errors
    /// `Unsupported` beyond 2³² synapses.
    pub(crate) fn row_starts_u32(&self) -> Result<Vec<u32>> {
        let starts = self.starts.iter().map(|&start| u32::try_from(start).ok()).collect::<Option<Vec<u32>>>();
        let count = self.starts.last().copied().unwrap_or(0);
        starts.ok_or_else(|| Error::unsupported(format!("{count} synapses in one part; a device takes up to 2^32, so split the network into more parts")))
    }

    /// The synapses of a source.
    #[inline(always)]
    pub fn row(&self, source: u32) -> Range<usize> {
        self.starts[source as usize] as usize..self.starts[source as usize + 1] as usize
    }

    /// Slices that a device cuts each row into, so that the longest row is shared by several invocations.
    pub fn slices(&self) -> u32 {
        self.longest().div_ceil(SLICE).clamp(1, SLICES_MAX) as u32
    }

    fn longest(&self) -> u64 {
        self.starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }

    /// Maximum loop iterations of one invocation when this many workgroups of 64 walk the rows of all sources.
    pub fn loop_turns(&self, workgroups: u32) -> u64 {
        let (sources, slices) = (self.starts.len().saturating_sub(1) as u64, u64::from(self.slices()));
        (sources * slices).div_ceil(u64::from(workgroups)) * (2 + self.longest().div_ceil(64 * slices)) + 1
    }

    /// Synapses, padded so that the next part begins at an offset that views allow.
    pub fn padded_len(&self) -> usize {
        (self.starts.last().copied().unwrap_or(0) as usize).next_multiple_of(32)
    }
}

/// Packs the synapses of `sources` neurons by target range: either those of one plasticity rule, or the fixed ones.
///
/// # Errors
/// `Invalid` for a range longer than [`PART_NEURONS`].
pub fn pack(sources: u32, rows: &dyn SynapseRows, plasticity: Option<u8>, ranges: &[Range<u32>]) -> Result<Vec<SynapsePartition>> {
    ranges.iter().map(|range| part(sources, rows, plasticity, range.clone())).collect()
}

fn part(sources: u32, rows: &dyn SynapseRows, plasticity: Option<u8>, targets: Range<u32>) -> Result<SynapsePartition> {
    if targets.len() > PART_NEURONS as usize {
        return Err(Error::invalid(format!("a part of {} neurons; at most {PART_NEURONS} are possible", targets.len())));
    }
    let is_inside = |synapse: &Synapse| synapse.plasticity == plasticity && targets.contains(&synapse.target);
    let mut starts = Vec::with_capacity(sources as usize + 1);
    let mut end = 0u64;
    for source in 0..sources {
        starts.push(end);
        rows.visit(source, &mut |synapse| end += u64::from(is_inside(&synapse)));
    }
    starts.push(end);
    let mut words = Vec::with_capacity(end as usize);
    for source in 0..sources {
        let begin = words.len();
        rows.visit(source, &mut |synapse| {
            if is_inside(&synapse) {
                let sign = if synapse.inhibitory { INHIBITORY } else { 0 };
                words.push((synapse.target - targets.start) << TARGET_SHIFT | sign | u32::from(synapse.weight));
            }
        });
        // By target: neighbours share a cache line.
        words[begin..].sort_unstable();
    }
    Ok(SynapsePartition { targets, starts, words })
}

/// Splits neurons into ranges of about equal length, each beginning at a multiple of 64.
pub fn split(neurons: u32, parts: u32) -> Vec<Range<u32>> {
    let length = neurons.div_ceil(parts.max(1)).next_multiple_of(64).min(PART_NEURONS);
    (0..neurons).step_by(length as usize).map(|first| first..(first + length).min(neurons)).collect()
}

/// The amount that a synapse adds to its target for each unit.
#[inline(always)]
pub fn weight_of(word: u32) -> i32 {
    let weight = (word & WEIGHT) as i32;
    if word & INHIBITORY == 0 { weight } else { -weight }
}
