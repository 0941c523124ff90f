//! Synapses packed for a run: four bytes each, in rows by source, once for each part of the
//! targets.
//!
//! ```text
//! word = target within its part (23 bits) · inhibitory (1) · weight (8)
//! ```
//!
//! A part holds all synapses whose targets are in its range of neurons. Threads of the CPU take one
//! part each, so no two threads write the same sum. A launch covers as many parts as its bindings
//! can hold.

use std::ops::Range;

use tectum::{Error, Result, host_memory};

use super::synapses::SynapseRows;

/// Bits of a word below the target: weight and sign.
pub const TARGET_SHIFT: u32 = 9;
/// The sign's bit.
pub const INHIBITORY: u32 = 1 << 8;
/// The weight's bits.
pub const WEIGHT: u32 = 0xff;
/// Approximate number of synapses in a slice of a row.
const SLICE: u32 = 512;
/// Maximum slices of a row.
const SLICES_MAX: u32 = 64;
/// Maximum neurons of a part.
pub const PART_NEURONS: u32 = 1 << (32 - TARGET_SHIFT);
/// Parts begin at multiples of so many synapses.
const PART_ALIGNMENT: usize = 64;
/// Approximate number of words that are packed at a time, so that a large network is not in host
/// memory twice.
const BLOCK_WORDS: usize = 1 << 20;

/// The rows of the synapses whose targets are in a range of neurons.
#[derive(Debug, Clone)]
pub struct SynapsePartition {
    /// The targets.
    pub targets: Range<u32>,
    /// The start of each source's row, then the end of the last.
    pub starts: Vec<u32>,
}

impl SynapsePartition {
    /// The synapses of a source.
    pub fn row(&self, source: u32) -> Range<usize> {
        row_of(&self.starts, source)
    }

    /// Synapses, padded so that the next part begins at an offset that views allow.
    pub fn padded_len(&self) -> usize {
        padded_len(&self.starts)
    }

    fn longest(&self) -> u32 {
        self.starts
            .windows(2)
            .map(|ends| ends[1] - ends[0])
            .max()
            .unwrap_or(0)
    }

    /// Maximum loop iterations of one invocation when this many workgroups of 64 walk the rows of
    /// all sources in slices.
    pub fn loop_turns(&self, workgroups: u32, slices: u32) -> u64 {
        let (sources, slices) = (
            self.starts.len().saturating_sub(1) as u64,
            u64::from(slices),
        );
        (sources * slices).div_ceil(u64::from(workgroups))
            * (2 + u64::from(self.longest()).div_ceil(64 * slices))
            + 1
    }
}

/// The synapses of a source in a part whose rows begin at `starts`.
#[inline(always)]
pub fn row_of(starts: &[u32], source: u32) -> Range<usize> {
    starts[source as usize] as usize..starts[source as usize + 1] as usize
}

/// The number of synapses in a part whose rows begin at `starts`, padded so that the next part
/// begins at an offset that views allow.
pub fn padded_len(starts: &[u32]) -> usize {
    (starts.last().copied().unwrap_or(0) as usize).next_multiple_of(PART_ALIGNMENT)
}

/// The number of slices that a device cuts each row of some parts into, so that the longest row is
/// shared by several workgroups.
pub fn slices(parts: &[SynapsePartition]) -> u32 {
    parts
        .iter()
        .map(SynapsePartition::longest)
        .max()
        .unwrap_or(0)
        .div_ceil(SLICE)
        .clamp(1, SLICES_MAX)
}

/// Counts the synapses of `sources` neurons by target range: either those of one plasticity rule,
/// or the fixed ones.
///
/// # Errors
/// `Invalid` for a range longer than [`PART_NEURONS`]; `Unsupported` for a range with 2³² synapses
/// or more; `OutOfMemory` if the starts of rows do not fit into memory.
pub fn partition(
    sources: u32,
    rows: &dyn SynapseRows,
    plasticity: Option<u8>,
    ranges: &[Range<u32>],
) -> Result<Vec<SynapsePartition>> {
    let parts = ranges.len() as u64;
    host_memory::check(
        format_args!("the rows of {sources} neurons in {parts} parts"),
        host_memory::shape_bytes([parts, u64::from(sources) + 1], size_of::<u32>() as u64),
    )?;
    ranges
        .iter()
        .map(|range| part(sources, rows, plasticity, range.clone()))
        .collect()
}

fn part(
    sources: u32,
    rows: &dyn SynapseRows,
    plasticity: Option<u8>,
    targets: Range<u32>,
) -> Result<SynapsePartition> {
    if targets.len() > PART_NEURONS as usize {
        return Err(Error::invalid(format!(
            "a part of {} neurons; at most {PART_NEURONS} are possible",
            targets.len()
        )));
    }
    let mut starts = host_memory::with_capacity("the rows of a part", sources as usize + 1)?;
    let mut end = 0u64;
    for source in 0..=sources {
        starts.push(u32::try_from(end).map_err(|_| {
            let Range { start, end } = &targets;
            Error::unsupported(format!(
                "the synapses of neurons {start} to {} exceed 2^32 - 1, the maximum of one part; split the network into more parts",
                end - 1
            ))
        })?);
        if source < sources {
            rows.visit(source, &mut |synapse| {
                end +=
                    u64::from(synapse.plasticity == plasticity && targets.contains(&synapse.target))
            });
        }
    }
    Ok(SynapsePartition { targets, starts })
}

/// Packs the synapses of a part, row after row, and passes them on in blocks: the index of a
/// block's first synapse, a multiple of 64, and its words.
///
/// # Errors
/// Errors of `write`; `OutOfMemory` if a block with a long row does not fit into memory.
pub fn pack(
    rows: &dyn SynapseRows,
    plasticity: Option<u8>,
    part: &SynapsePartition,
    mut write: impl FnMut(usize, &[u32]) -> Result<()>,
) -> Result<()> {
    let capacity = part.padded_len().min(BLOCK_WORDS + part.longest() as usize);
    let mut words = host_memory::with_capacity("a block of synapses", capacity)?;
    let mut first = 0;
    for source in 0..part.starts.len().saturating_sub(1) as u32 {
        let begin = words.len();
        rows.visit(source, &mut |synapse| {
            if synapse.plasticity == plasticity && part.targets.contains(&synapse.target) {
                let sign = if synapse.inhibitory { INHIBITORY } else { 0 };
                words.push(
                    (synapse.target - part.targets.start) << TARGET_SHIFT
                        | sign
                        | u32::from(synapse.weight),
                );
            }
        });
        // By target: neighbours share a cache line.
        words[begin..].sort_unstable();
        if words.len() >= BLOCK_WORDS {
            let whole = words.len() / PART_ALIGNMENT * PART_ALIGNMENT;
            write(first, &words[..whole])?;
            first += whole;
            words.drain(..whole);
        }
    }
    if words.is_empty() {
        Ok(())
    } else {
        write(first, &words)
    }
}

/// Splits neurons into ranges of about equal length, each beginning at a multiple of 64.
pub fn split(neurons: u32, parts: u32) -> Vec<Range<u32>> {
    let length = neurons
        .div_ceil(parts.max(1))
        .next_multiple_of(64)
        .min(PART_NEURONS);
    (0..neurons)
        .step_by(length as usize)
        .map(|first| first..(first + length).min(neurons))
        .collect()
}

/// The amount that a synapse adds to its target for each unit.
#[inline(always)]
pub fn weight_of(word: u32) -> i32 {
    let weight = (word & WEIGHT) as i32;
    if word & INHIBITORY == 0 {
        weight
    } else {
        -weight
    }
}
