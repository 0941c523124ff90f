//! A genome as a network: its areas' neurons, its mappings' synapses, and the power area that feeds it.

use serde::Serialize;
use tectum::Result;

use super::{Network, NetworkOptions, NeuronOptions, Neurons, Synapse, SynapseList};
use crate::genome::{Area, AreaProperties, CoreArea, Genome, Mapping, Morphology};

/// What the power area's neurons receive in every burst.
const POWER: f32 = 1.0;

/// A network made from a genome.
#[derive(Debug)]
pub struct Connected {
    /// Neurons have the genome's numbers.
    pub network: Network,
    /// What arrives in every burst: at the power area.
    pub steady: Vec<(u32, f32)>,
    /// What the genome says and the network does not do.
    pub notes: Vec<String>,
}

/// Connects a genome.
///
/// `seed` is that of synapses which exist with a probability.
///
/// # Errors
/// As [`Network::new`].
pub fn connect(genome: &Genome, seed: u64, options: NetworkOptions) -> Result<Connected> {
    let mut neurons = Neurons::default();
    for area in genome.areas() {
        add(&mut neurons, area).map_err(|error| error.at(format_args!("area {}", area.id)))?;
    }
    let mut synapses = Vec::new();
    genome.synapses(seed, &mut |synapse| {
        synapses.push((synapse.source, Synapse { target: synapse.target, weight: synapse.weight, inhibitory: synapse.inhibitory }));
    });
    let rows = SynapseList::new(neurons.len(), &synapses)?;
    drop(synapses);
    let power = genome.core(CoreArea::Power).map(|area| genome.areas()[area].neurons.clone()).unwrap_or_default();
    Ok(Connected {
        network: Network::new(&neurons, Box::new(rows), options)?,
        steady: power.map(|neuron| (neuron, POWER)).collect(),
        notes: notes(genome),
    })
}

/// Adds an area's neurons in their order: x, y, z, then those of a voxel.
fn add(neurons: &mut Neurons, area: &Area) -> Result<()> {
    if area.properties.threshold_increment == [0.0; 3] {
        neurons.add(area.neurons.len() as u32, &neuron_options(&area.properties, area.properties.threshold))?;
        return Ok(());
    }
    let [columns, rows, layers] = area.size;
    for x in 0..columns {
        for y in 0..rows {
            for z in 0..layers {
                neurons.add(area.per_voxel, &neuron_options(&area.properties, area.threshold_at([x, y, z])))?;
            }
        }
    }
    Ok(())
}

fn neuron_options(properties: &AreaProperties, threshold: f32) -> NeuronOptions {
    NeuronOptions {
        threshold,
        threshold_limit: (properties.threshold_limit > 0.0).then_some(properties.threshold_limit),
        resting_potential: properties.resting_potential,
        leak: properties.leak,
        excitability: properties.excitability,
        refractory: properties.refractory,
        consecutive_fire_limit: properties.consecutive_fire_limit,
        snooze: properties.snooze,
        charge_accumulation: properties.mp_charge_accumulation,
        psp: properties.postsynaptic_current,
        uniform_psp: properties.psp_uniform_distribution,
        potential_driven_psp: properties.mp_driven_psp,
    }
}

/// What a mapping asks for and the network does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// Its synapses do not learn.
    Plastic,
    /// It makes no synapses, and what it feeds or grows is not formed.
    Memory,
    /// What it sends arrives in the next burst, not after so many.
    Delay(u8),
}

/// What a mapping asks for and the network does not do.
pub fn undone(mapping: &Mapping) -> Vec<Undone> {
    let asked = [
        mapping.plastic.then_some(Undone::Plastic),
        matches!(mapping.morphology, Morphology::Plastic(_)).then_some(Undone::Memory),
        (mapping.delay_bursts > 1).then_some(Undone::Delay(mapping.delay_bursts)),
    ];
    asked.into_iter().flatten().collect()
}

/// What the genome says and this network does not do.
fn notes(genome: &Genome) -> Vec<String> {
    let undone: Vec<Undone> = genome.mappings().iter().flat_map(undone).collect();
    let kinds: [(fn(&Undone) -> bool, &str); 3] = [
        (|undone| *undone == Undone::Plastic, "are plastic; their weights stay as they begin"),
        (|undone| *undone == Undone::Memory, "feed memory areas, which form no neurons"),
        (|undone| matches!(undone, Undone::Delay(_)), "have a delay; everything arrives in the next burst"),
    ];
    let counted = kinds.map(|(is_kind, text)| (undone.iter().filter(|undone| is_kind(undone)).count(), text));
    counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} mappings {text}")).collect()
}
