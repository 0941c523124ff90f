//! What the mappings of a genome learn and remember.

use super::PlasticityRule;
use crate::genome::{Genome, Mapping, Morphology, PlasticMorphology};

/// Areas that are the destination of a memory mapping.
pub(super) fn memory_areas(genome: &Genome) -> Vec<usize> {
    let is_shown = |area: &usize| {
        genome
            .mappings()
            .iter()
            .any(|mapping| mapping.destination == *area && feeds_memory(mapping))
    };
    (0..genome.areas().len())
        .filter(|area| genome.areas()[*area].properties.memory.is_some())
        .filter(is_shown)
        .collect()
}

/// Whether a mapping shows its destination what it remembers.
pub(super) fn feeds_memory(mapping: &Mapping) -> bool {
    matches!(
        mapping.morphology,
        Morphology::Plastic(PlasticMorphology::Memory)
    )
}

/// How a mapping's synapses learn; none if they do not.
pub fn rule(genome: &Genome, mapping: &Mapping) -> Option<PlasticityRule> {
    let grows = mapping.grows();
    let plasticity = mapping.plasticity;
    let [gain, loss] = plasticity
        .steps()
        .map(|step| step.round().clamp(0.0, 255.0) as u8);
    let window = if plasticity.window == 0 {
        genome.physiology().plasticity_queue_depth
    } else {
        plasticity.window
    };
    let rule = PlasticityRule {
        window: u32::from(window).max(1),
        gain,
        loss,
        weight_loss: genome.weight_loss().condition,
    };
    let learns = (mapping.plastic || grows) && (rule.gain > 0 || !grows && rule.loss > 0);
    learns.then_some(rule)
}
