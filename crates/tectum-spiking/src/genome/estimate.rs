//! The size of a genome's network, before any allocation.

use serde::Serialize;

use super::Genome;
use super::morphology::Morphology;
use super::relation;

/// Maximum bytes of a synapse in the connectome: the packed form takes 4 if the network allows it.
const SYNAPSE_BYTES: u64 = 8;
/// Maximum bytes of a neuron's state and parameters.
const NEURON_BYTES: u64 = 48;

/// The size of a genome's network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenomeEstimate {
    /// Exact number of neurons.
    pub neurons: u64,
    /// Synapses of all mappings, as in [`MappingEstimate`].
    pub synapses: u64,
    /// Whether `synapses` is exact.
    pub exact: bool,
    /// Maximum bytes of neurons.
    pub neuron_bytes: u64,
    /// Maximum bytes of synapses.
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
            synapse_bytes: synapses.saturating_mul(SYNAPSE_BYTES),
            mappings,
        }
    }

    fn estimate_mapping(&self, index: usize) -> MappingEstimate {
        let mapping = &self.mappings()[index];
        let Morphology::Voxels(relations) = &mapping.morphology else {
            return MappingEstimate {
                synapses: 0,
                exact: true,
            };
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
        MappingEstimate {
            synapses,
            exact: is_exact && mapping.attractivity == 100.0,
        }
    }
}
