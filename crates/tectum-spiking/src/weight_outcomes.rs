//! What became of the weights of a run: mappings whose synapses all died, or all reached the
//! maximum.

use std::collections::BTreeMap;

use super::network::Network;
use super::simulation::PlasticSynapse;
#[cfg(feature = "genome")]
use crate::genome::{Genome, Morphology};

/// Maximum sentences about one run.
const MAX_SENTENCES: usize = 8;

/// Synapses of one group.
#[derive(Default)]
struct Counts {
    synapses: u64,
    zero: u64,
    full: u64,
}

impl Counts {
    fn add(&mut self, synapse: &PlasticSynapse) {
        self.synapses += 1;
        self.zero += u64::from(synapse.weight == 0);
        self.full += u64::from(synapse.weight == u8::MAX);
    }

    /// A sentence, if all weights are the same extreme, and were not at first.
    fn outcome(&self, name: &str, [was_above_zero, was_below_full]: [bool; 2]) -> Option<String> {
        let count = match self.synapses {
            1 => "the weight of its 1 plastic synapse is".to_owned(),
            synapses => format!("the weights of all {synapses} plastic synapses are"),
        };
        if self.synapses == 0 {
            None
        } else if self.zero == self.synapses && was_above_zero {
            Some(format!("{name}: {count} 0, so that nothing is sent"))
        } else if self.full == self.synapses && was_below_full {
            Some(format!("{name}: {count} 255, the maximum"))
        } else {
            None
        }
    }
}

/// A sentence for each rule of a network by which all weights fell to 0 or reached the maximum.
pub fn rule_outcomes(network: &Network, synapses: &[PlasticSynapse]) -> Vec<String> {
    let mut groups: BTreeMap<usize, Counts> = BTreeMap::new();
    for synapse in synapses {
        groups
            .entry(usize::from(synapse.rule))
            .or_default()
            .add(synapse);
    }
    let outcomes = groups.iter().filter_map(|(rule, counts)| {
        let was_above_zero = network.plastic_at_first[*rule] > 0;
        counts.outcome(&format!("rule {rule}"), [was_above_zero, true])
    });
    shortened(outcomes.collect())
}

/// A sentence for each pair of areas of which all weights fell to 0 or reached the maximum.
/// `memories` are the areas of the network's memories.
#[cfg(feature = "genome")]
pub fn mapping_outcomes(
    genome: &Genome,
    network: &Network,
    memories: &[usize],
    synapses: &[PlasticSynapse],
) -> Vec<String> {
    let area_of = |neuron: u32| {
        if neuron < genome.neurons() {
            return Some(genome.area_of(neuron));
        }
        let memory = network
            .memories()
            .iter()
            .position(|memory| memory.neurons.contains(&neuron))?;
        memories.get(memory).copied()
    };
    let mut groups: BTreeMap<[usize; 2], Counts> = BTreeMap::new();
    for synapse in synapses {
        if let (Some(source), Some(target)) = (area_of(synapse.source), area_of(synapse.target)) {
            groups.entry([source, target]).or_default().add(synapse);
        }
    }
    let outcomes = groups.iter().filter_map(|(&[source, target], counts)| {
        let [from, to] = [source, target].map(|area| genome.areas()[area].id);
        let weights: Vec<u8> = genome
            .mappings()
            .iter()
            .filter(|mapping| {
                [mapping.source, mapping.destination] == [source, target]
                    && mapping.plastic
                    && matches!(mapping.morphology, Morphology::Voxels(_))
            })
            .map(|mapping| mapping.weight())
            .collect();
        let was = [
            weights.iter().any(|weight| *weight > 0),
            weights.is_empty() || weights.iter().any(|weight| *weight < u8::MAX),
        ];
        counts.outcome(&format!("{from} to {to}"), was)
    });
    shortened(outcomes.collect())
}

fn shortened(mut sentences: Vec<String>) -> Vec<String> {
    if sentences.len() > MAX_SENTENCES {
        let more = sentences.len() - MAX_SENTENCES;
        sentences.truncate(MAX_SENTENCES);
        sentences.push(format!("and {more} more of which all weights are 0 or 255"));
    }
    sentences
}
