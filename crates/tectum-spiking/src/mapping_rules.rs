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

/// In how many directions an associative mapping of the genome grows synapses: 2 if no other one
/// leads back, else 1, as between the neurons of one area; 0 if an earlier one has the same source
/// and destination, or the mapping is no associative one.
pub fn grown_directions(genome: &Genome, mapping: &Mapping) -> u32 {
    if !mapping.grows() {
        return 0;
    }
    let connects = |other: &Mapping, source: usize, destination: usize| {
        other.grows() && (other.source, other.destination) == (source, destination)
    };
    let [source, destination] = [mapping.source, mapping.destination];
    let all = genome.mappings();
    let index = all.iter().position(|other| std::ptr::eq(other, mapping));
    let mut earlier = all[..index.unwrap_or(0)].iter();
    if earlier.any(|other| connects(other, source, destination)) {
        return 0;
    }
    let leads_back = all.iter().any(|other| connects(other, destination, source));
    if leads_back { 1 } else { 2 }
}

/// How a mapping's synapses learn; none if they do not.
pub fn rule(genome: &Genome, mapping: &Mapping) -> Option<PlasticityRule> {
    let grows = mapping.grows();
    if grows && grown_directions(genome, mapping) == 0 {
        return None;
    }
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
