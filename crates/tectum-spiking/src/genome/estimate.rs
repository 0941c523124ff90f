//! The size of a genome's network, before any allocation.

use serde::Serialize;

use super::morphology::Morphology;
use super::{Genome, draw, relation};

/// Bytes of a synapse in a run: six in the list by source, from which the four on the device are
/// packed.
const SYNAPSE_BYTES: u64 = 10;
/// Bytes of one that may learn, which takes eight on the device.
const PLASTIC_SYNAPSE_BYTES: u64 = 14;
/// Maximum bytes of a neuron's state and parameters in a run without learning.
const NEURON_BYTES: u64 = 48;
/// Standard deviations that a random number of synapses is never below its mean by.
const MAX_DEVIATIONS: f64 = 10.0;

/// The size of a genome's network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenomeEstimate {
    /// Exact number of neurons.
    pub neurons: u64,
    /// Synapses of all mappings, as in [`MappingEstimate`].
    pub synapses: u64,
    /// Whether `synapses` is exact.
    pub exact: bool,
    /// Maximum bytes of neurons in a run without learning.
    pub neuron_bytes: u64,
    /// Maximum bytes of synapses in a run.
    pub synapse_bytes: u64,
    /// By mapping, in order.
    pub mappings: Vec<MappingEstimate>,
}

/// The synapses of one mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MappingEstimate {
    /// Upper bound of the number of synapses; `u64::MAX` for more than can be counted.
    pub synapses: u64,
    /// Whether the number is exact: patterns do not overlap and attractivity is 100.
    pub exact: bool,
}

impl Genome {
    /// Counts neurons, synapses and bytes, by arithmetic on box sizes.
    ///
    /// # Cost
    /// At most the sum of side lengths for each rule of each mapping; no memory except the result.
    pub fn estimate(&self) -> GenomeEstimate {
        let mappings = (0..self.mappings().len())
            .map(|index| self.estimate_mapping(index))
            .collect::<Vec<_>>();
        let synapses = mappings
            .iter()
            .map(|mapping| mapping.synapses)
            .fold(0, u64::saturating_add);
        let neurons = u64::from(self.neurons());
        GenomeEstimate {
            neurons,
            synapses,
            exact: mappings.iter().all(|mapping| mapping.exact),
            neuron_bytes: neurons * NEURON_BYTES,
            synapse_bytes: mappings
                .iter()
                .zip(self.mappings())
                .map(|(count, mapping)| {
                    count.synapses.saturating_mul(if mapping.plastic {
                        PLASTIC_SYNAPSE_BYTES
                    } else {
                        SYNAPSE_BYTES
                    })
                })
                .fold(0, u64::saturating_add),
            mappings,
        }
    }

    /// Synapses that a mapping has at least; 0 if that takes an enumeration.
    pub(crate) fn min_synapses(&self, index: usize) -> u64 {
        let (pairs, is_exact) = self.neuron_pairs(index);
        if !is_exact {
            return 0;
        }
        let chance = draw::chance(self.mappings()[index].attractivity);
        if chance >= 1 << 32 {
            return pairs;
        }
        let mean = pairs as f64 * (chance as f64 / 2f64.powi(32));
        (mean - MAX_DEVIATIONS * mean.sqrt()).max(0.0) as u64
    }

    fn estimate_mapping(&self, index: usize) -> MappingEstimate {
        let (synapses, is_exact) = self.neuron_pairs(index);
        MappingEstimate {
            synapses,
            exact: is_exact && self.mappings()[index].attractivity == 100.0,
        }
    }

    /// Pairs of neurons that a mapping's rules connect at most, and whether none is counted twice.
    fn neuron_pairs(&self, index: usize) -> (u64, bool) {
        let mapping = &self.mappings()[index];
        let Morphology::Voxels(relations) = &mapping.morphology else {
            return (0, true);
        };
        let (from, to) = (
            &self.areas()[mapping.source],
            &self.areas()[mapping.destination],
        );
        let (pairs, is_exact) = relation::pairs(relations, from.size, to.size);
        // Pairs that are counted twice cannot exceed all pairs.
        let pairs = pairs.min(from.voxels().saturating_mul(to.voxels()));
        let synapses = pairs
            .saturating_mul(u64::from(from.per_voxel))
            .saturating_mul(u64::from(to.per_voxel));
        (synapses, is_exact)
    }
}
