//! A genome as a network: the areas' neurons, the mappings' synapses, the memories, and the power
//! area's constant input.

use std::ops::Range;

use tectum::{Result, Watch, WorkProgress, host_memory};

use super::connect_options::ConnectOptions;
use super::genome_synapses::GenomeSynapses;
use super::limitations::limitations;
use super::mapping_rules::feeds_memory;
use super::network::{self, Network};
use super::precision::imprecisions;
use super::synapses::{LIST_BYTES, SynapseCounts, SynapseList};
use super::{Imprecision, Memory, NeuronOptions, Neurons};
use crate::genome::{Area, AreaProperties, CoreArea, Genome};

/// The input of the power area's neurons in every burst.
const POWER: f32 = 1.0;

/// A network made from a genome.
#[derive(Debug)]
pub struct ConnectedNetwork {
    /// Neurons have the genome's numbers; those of its memories follow.
    pub network: Network,
    /// The constant input of the power area in every burst.
    pub constant_inputs: Vec<(u32, f32)>,
    /// The indices of the areas that are the network's memories.
    pub memories: Vec<usize>,
    /// Settings of the genome that have no effect here, or another one: [`limitations`] and
    /// `precision`.
    pub notes: Vec<String>,
    /// Settings that the formats of neurons distort, by area: [`Network::imprecisions`].
    pub precision: Vec<String>,
}

/// Connects a genome.
///
/// # Errors
/// As [`Network::new`], naming the area or the mapping; `Unsupported` for a mapping that may grow
/// more than 2²⁶ synapses; `OutOfMemory`, with the bytes that are needed and those that are
/// available, for a genome whose network does not fit into memory; `Cancelled` if the watch, which
/// sees each mapping and parts of large ones before their synapses are made, breaks it off.
///
/// # Cost
/// Two passes over the synapses. Six bytes of memory for each, and those of [`Network::new`].
pub fn connect(
    genome: &Genome,
    options: ConnectOptions,
    watch: &mut Watch<'_>,
) -> Result<ConnectedNetwork> {
    let synapses = GenomeSynapses::new(genome, &options)?;
    let ConnectOptions {
        learns,
        memory_neurons,
        mut network,
        ..
    } = options;
    network.plasticity = synapses.rules().to_vec();
    network::check_rules(&network.plasticity)?;
    let neurons = neurons(genome, &synapses, memory_neurons)?;
    network.memories.extend(
        synapses
            .memory_areas()
            .iter()
            .filter_map(|&area| memory(genome, area, synapses.active_neurons())),
    );
    let rows = rows(genome, &synapses, &neurons, watch)?;
    let memories = synapses.memory_areas().to_vec();
    let power = genome
        .core(CoreArea::Power)
        .map(|area| genome.areas()[area].neurons.clone())
        .unwrap_or_default();
    let network = Network::new(&neurons, Box::new(rows), network)?;
    let precision = precision_notes(genome, &network);
    tracing::info!(
        genome = genome.title(),
        neurons = network.neurons(),
        synapses = network.synapses(),
        plastic = network.plastic_synapses(),
        binary_places = network.fraction_bits_text(),
        "network built"
    );
    let mut constant_inputs = host_memory::with_capacity("inputs of the power area", power.len())?;
    constant_inputs.extend(power.map(|neuron| (neuron, POWER)));
    Ok(ConnectedNetwork {
        network,
        constant_inputs,
        memories,
        notes: [&limitations(genome, learns)[..], &precision].concat(),
        precision,
    })
}

/// The neurons of the areas, then those of memories.
fn neurons(genome: &Genome, synapses: &GenomeSynapses<'_>, memory_neurons: u32) -> Result<Neurons> {
    let mut neurons = Neurons::default();
    for area in genome.areas() {
        add(&mut neurons, area).map_err(|error| error.at(format_args!("area {}", area.id)))?;
    }
    for &area in synapses.memory_areas() {
        neurons.add(
            memory_neurons,
            &neuron_options(&genome.areas()[area].properties, 0.0),
        )?;
    }
    Ok(neurons)
}

/// The synapses of all mappings by source: counted, then placed.
fn rows(
    genome: &Genome,
    synapses: &GenomeSynapses<'_>,
    neurons: &Neurons,
    watch: &mut Watch<'_>,
) -> Result<SynapseList> {
    let (count, min_total) = (neurons.len(), synapses.min_total());
    host_memory::check(
        format_args!("a network of {count} neurons and at least {min_total} synapses"),
        network::build_bytes(neurons).saturating_add(min_total.saturating_mul(LIST_BYTES)),
    )?;
    let total = genome.mappings().len() as u64;
    let mut progress = |stage: &str, done: usize| {
        WorkProgress {
            stage,
            done: done as u64,
            total,
        }
        .report(watch)
    };
    let mut counts = SynapseCounts::new(count)?;
    for index in 0..genome.mappings().len() {
        progress("counting synapses", index)?;
        synapses.visit(
            index,
            &mut || progress("counting synapses", index),
            |source, _| counts.add(source),
        )?;
    }
    let mut filling = counts.into_filling()?;
    for index in 0..genome.mappings().len() {
        progress("connecting mappings", index)?;
        synapses.visit(
            index,
            &mut || progress("connecting mappings", index),
            |source, synapse| filling.add(source, synapse),
        )?;
    }
    progress("connecting mappings", genome.mappings().len())?;
    filling.finish()
}

/// A sentence for each area and setting that the formats of its neurons distort. Neurons of an area
/// may have thresholds of their own: those with the fewest binary places represent them.
fn precision_notes(genome: &Genome, network: &Network) -> Vec<String> {
    let mut notes = Vec::new();
    for area in genome.areas() {
        let mut worst: Vec<Imprecision> = Vec::new();
        for kind in kinds(area) {
            for found in imprecisions(&[kind], &network.formats) {
                let is_same = |known: &&mut Imprecision| {
                    std::mem::discriminant(&known.effect) == std::mem::discriminant(&found.effect)
                };
                match worst.iter_mut().find(is_same) {
                    None => worst.push(found),
                    Some(known) => {
                        let neurons = known.neurons + found.neurons;
                        if found.fraction_bits < known.fraction_bits {
                            *known = found;
                        }
                        known.neurons = neurons;
                    }
                }
            }
        }
        notes.extend(
            worst
                .iter()
                .map(|found| format!("area {}: {found}; {}", area.id, found.extent())),
        );
    }
    notes
}

fn memory(genome: &Genome, area: usize, active: &[Range<u32>]) -> Option<Memory> {
    let properties = genome.areas()[area].properties.memory?;
    let mut upstream: Vec<Range<u32>> = genome
        .mappings()
        .iter()
        .filter(|mapping| mapping.destination == area && feeds_memory(mapping))
        .map(|mapping| active[mapping.source].clone())
        .collect();
    upstream.sort_unstable_by_key(|range| range.start);
    upstream.dedup();
    upstream.retain(|range| !range.is_empty());
    Some(Memory {
        upstream,
        neurons: active[area].clone(),
        depth: u32::from(properties.temporal_depth),
        initial_lifespan: properties.initial_lifespan,
        lifespan_growth: properties.lifespan_growth as u32,
        longterm_threshold: properties.longterm_threshold,
    })
}

/// Adds an area's neurons.
fn add(neurons: &mut Neurons, area: &Area) -> Result<()> {
    if area.properties.threshold_increment != [0.0; 3] {
        // Each voxel has a threshold of its own.
        neurons.reserve(area.voxels())?;
    }
    kinds(area).try_for_each(|(range, options)| neurons.add(range.len() as u32, &options).map(drop))
}

/// The options of an area's neurons, in order: x, y, z, then place in the voxel.
fn kinds(area: &Area) -> impl Iterator<Item = (Range<u32>, NeuronOptions)> + '_ {
    let [columns, rows, layers] = area.size;
    let is_uniform = area.properties.threshold_increment == [0.0; 3];
    let all = is_uniform.then(|| {
        let options = neuron_options(&area.properties, area.properties.threshold);
        (area.neurons.clone(), options)
    });
    let columns = if is_uniform { 0 } else { columns };
    let voxels = (0..columns)
        .flat_map(move |x| (0..rows).flat_map(move |y| (0..layers).map(move |z| [x, y, z])));
    all.into_iter().chain(voxels.map(|voxel| {
        let first = area.first_neuron(voxel);
        let options = neuron_options(&area.properties, area.threshold_at(voxel));
        (first..first + area.per_voxel, options)
    }))
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
