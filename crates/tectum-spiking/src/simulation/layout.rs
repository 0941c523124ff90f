//! The memory that a network will take on devices, before anything is allocated.

use std::ops::Range;

use serde::Serialize;
use tectum::Device;

use super::super::kernels::HEADER_WORDS;
use super::super::rule::PROFILE_WORDS;
use super::shape::Shape;
use super::{Network, SimulationOptions, learning};
use crate::connectome;

/// The share of a network on one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardLayout {
    /// The device's id.
    pub device: String,
    /// Whether the device is a software adapter.
    pub software: bool,
    /// Its neurons.
    pub targets: Range<u32>,
    /// Parts that they are split into: on the CPU distributed over threads, on other devices one
    /// launch each.
    pub parts: Vec<Range<u32>>,
    /// State variables of a neuron.
    pub state_planes: usize,
    /// Whether arrivals are marked next to the sums.
    pub marks_arrivals: bool,
    /// Bytes by kind.
    pub memory: Vec<MemoryUse>,
}

/// Bytes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// Their contents.
    pub what: &'static str,
    /// How many.
    pub bytes: u64,
}

/// The share of a network that each device will hold, as [`super::Simulation::sharded`] places it.
///
/// # Cost
/// One pass over the synapses; nothing is allocated for them.
pub fn layout(
    network: &Network,
    devices: &[Device],
    options: &SimulationOptions,
) -> Vec<ShardLayout> {
    let ranges = connectome::split(network.neurons(), devices.len() as u32);
    // Fixed and plastic synapses.
    let mut synapses = vec![[0u64; 2]; ranges.len()];
    for source in 0..network.neurons() {
        network.rows.visit(source, &mut |synapse| {
            synapses[ranges.partition_point(|range| range.end <= synapse.target)]
                [usize::from(synapse.plasticity.is_some())] += 1;
        });
    }
    let is_alone = ranges.len() == 1;
    let shards = ranges.into_iter().zip(devices).zip(synapses);
    shards
        .map(|((range, device), synapses)| {
            shard(network, range, device, options, (synapses, is_alone))
        })
        .collect()
}

fn shard(
    network: &Network,
    targets: Range<u32>,
    device: &Device,
    options: &SimulationOptions,
    ([synapses, plastic], is_alone): ([u64; 2], bool),
) -> ShardLayout {
    let shape = Shape::new(
        network,
        targets.clone(),
        options
            .layout
            .unwrap_or_else(|| device.info().preferences()),
        options,
    );
    let (parts, neurons) = (shape.ranges.len() as u64, u64::from(network.neurons()));
    // A plan of several bursts has its own inputs and outputs.
    let plans = if is_alone { 2 } else { 1 };
    let profiles = network.profiles.len() as u64 * 4 * PROFILE_WORDS as u64;
    let words = |count: usize| 4 * count as u64;
    let [synapses_learning, histories, ledger, kept] =
        learning::sizes(network, plastic, options.ledger).map(|words| 4 * words);
    let rules = network.options.plasticity.len() as u64;
    let memory = [
        ("synapses", 4 * synapses),
        ("plastic synapses", synapses_learning),
        ("row starts", 4 * (1 + rules) * parts * (neurons + 1)),
        (
            "units of senders",
            4 * (neurons + network.formats.shift_word_count() as u64),
        ),
        (
            "constants of neurons",
            profiles + 8 * network.runs.len() as u64,
        ),
        (
            "state",
            words(shape.planes * shape.ranges.len() * shape.len),
        ),
        ("sums", words(shape.ranges.len() * shape.chunk())),
        ("past of neurons that learn", histories),
        ("fire ledger", ledger),
        ("memories", kept),
        ("firings", words(shape.bits_at + shape.bit_words)),
        (
            "firings of all shards",
            if is_alone {
                0
            } else {
                words(network.ledger_words())
            },
        ),
        (
            "inputs and outputs",
            plans
                * words(
                    2 + 1
                        + 2 * options.max_inputs
                        + 3 * HEADER_WORDS
                        + shape.watched.iter().map(Range::len).sum::<usize>(),
                ),
        ),
    ];
    ShardLayout {
        device: device.info().id.clone(),
        software: device.info().software,
        targets,
        parts: shape.ranges.clone(),
        state_planes: shape.planes,
        marks_arrivals: shape.tracked,
        memory: memory
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(what, bytes)| MemoryUse { what, bytes })
            .collect(),
    }
}
