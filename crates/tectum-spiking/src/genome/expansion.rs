//! Synapses of mappings, generated one after the other without storing them.

use std::ops::Range;

use super::area::Area;
use super::mapping::Mapping;
use super::morphology::Morphology;
use super::relation::Targets;
use super::{Genome, draw};

/// One synapse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Synapse {
    /// Id of the source neuron.
    pub source: u32,
    /// Id of the target neuron.
    pub target: u32,
    /// Magnitude of the mapping's multiplier.
    pub weight: u8,
    /// The source area's postsynaptic current.
    pub psp: u8,
    /// Whether it lowers the target's potential.
    pub inhibitory: bool,
    /// Index of its mapping.
    pub mapping: u32,
}

impl Genome {
    /// Visits every synapse, mapping by mapping. Within a mapping sources ascend, no pair occurs
    /// twice, and the order of a source's targets is unspecified. Two mappings may have the same
    /// pair.
    ///
    /// # Numerics
    /// Whether a synapse exists depends only on the seed, the mapping, the source and the target;
    /// it is the same on every system.
    ///
    /// # Cost
    /// Time proportional to source neurons and synapses; memory for the rules of one morphology.
    ///
    /// # Example
    /// ```
    /// use tectum_spiking::genome::{Genome, GenomeOptions};
    /// let text = r#"{"version": "2.0", "blueprint": {
    ///     "_____10c-_power-cx-___bbx-i": 1, "_____10c-_power-cx-___bby-i": 1, "_____10c-_power-cx-___bbz-i": 1,
    ///     "_____10c-_power-cx-dstmap-d": {"o__mot": [["projector", [1, 1, 1], -2, false]]},
    ///     "_____10c-o__mot-cx-___bbx-i": 3, "_____10c-o__mot-cx-___bby-i": 1, "_____10c-o__mot-cx-___bbz-i": 1
    /// }}"#;
    /// let genome = Genome::parse(text, &GenomeOptions::default())?;
    /// let mut pairs = Vec::new();
    /// genome.synapses(1, &mut |synapse| pairs.push((synapse.source, synapse.target, synapse.weight, synapse.inhibitory)));
    /// assert_eq!(pairs, [(0, 1, 2, true), (0, 2, 2, true), (0, 3, 2, true)]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn synapses(&self, seed: u64, visit: &mut dyn FnMut(Synapse)) {
        for mapping in 0..self.mappings().len() {
            let sources = self.areas()[self.mappings()[mapping].source]
                .neurons
                .clone();
            self.mapping_synapses(mapping, sources, seed, visit);
        }
    }

    /// Visits the synapses of one mapping whose source is in a range of neuron ids, as
    /// [`Genome::synapses`] does.
    pub fn mapping_synapses(
        &self,
        index: usize,
        sources: Range<u32>,
        seed: u64,
        visit: &mut dyn FnMut(Synapse),
    ) {
        let mapping = &self.mappings()[index];
        let Morphology::Voxels(relations) = &mapping.morphology else {
            return;
        };
        let (from, to) = (
            &self.areas()[mapping.source],
            &self.areas()[mapping.destination],
        );
        let template = template(mapping, from, index);
        let chance = draw::chance(mapping.attractivity);
        let mut targets = Targets::default();
        for source in sources.start.max(from.neurons.start)..sources.end.min(from.neurons.end) {
            let draw = draw::of_source(seed, template.mapping, source);
            targets.find(relations, from.voxel_of(source), from.size, to.size, draw);
            targets.each(|voxel| {
                let first = to.first_neuron(voxel);
                for target in first..first + to.per_voxel {
                    if draw::exists(chance, seed, template.mapping, source, target) {
                        visit(Synapse {
                            source,
                            target,
                            ..template
                        });
                    }
                }
            });
        }
    }
}

/// Data that the synapses of a mapping share.
fn template(mapping: &Mapping, from: &Area, index: usize) -> Synapse {
    Synapse {
        source: 0,
        target: 0,
        weight: mapping.weight(),
        psp: from.properties.postsynaptic_current,
        inhibitory: mapping.is_inhibitory(),
        mapping: index as u32,
    }
}
