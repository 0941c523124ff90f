//! A genome as a network: the areas' neurons, the mappings' synapses, the memories, and the power
//! area's constant input.

use std::ops::Range;

use tectum::{Error, Result, Watch, WorkProgress};

use super::limitations::limitations;
use super::mapping_rules::{feeds_memory, memory_areas, rule};
use super::precision::imprecisions;
use super::{
    Imprecision, Memory, Network, NetworkOptions, NeuronOptions, Neurons, PlasticityRule, Synapse,
    SynapseList,
};
use crate::genome::{Area, AreaProperties, CoreArea, Genome, Mapping};

/// The input of the power area's neurons in every burst.
const POWER: f32 = 1.0;
/// Maximum pairs of neurons between which one mapping may grow synapses.
const MAX_PAIRS: u64 = 1 << 26;

/// How a genome is connected.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectOptions {
    /// The seed of synapses that exist with a probability. Default: 0.
    pub seed: u64,
    /// Whether plastic mappings learn; if not, their weights keep their initial values, and no
    /// synapses grow. Default: yes.
    pub learns: bool,
    /// Maximum stored patterns of each memory area. Default: 1024.
    pub memory_neurons: u32,
    /// Options that the genome does not define; the genome's rules and memories are added.
    pub network: NetworkOptions,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            learns: true,
            memory_neurons: 1024,
            network: NetworkOptions::default(),
        }
    }
}

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
/// more than 2²⁶ synapses; `Cancelled` if the watch, which sees each mapping before its synapses
/// are made, breaks it off.
pub fn connect(
    genome: &Genome,
    options: ConnectOptions,
    watch: &mut Watch<'_>,
) -> Result<ConnectedNetwork> {
    let ConnectOptions {
        seed,
        learns,
        memory_neurons,
        mut network,
    } = options;
    let mut neurons = Neurons::default();
    for area in genome.areas() {
        add(&mut neurons, area).map_err(|error| error.at(format_args!("area {}", area.id)))?;
    }
    let memory_areas = memory_areas(genome);
    // The neurons that represent an area in learning: its memory's neurons, or its own.
    let mut active: Vec<Range<u32>> = genome
        .areas()
        .iter()
        .map(|area| area.neurons.clone())
        .collect();
    for &area in &memory_areas {
        active[area] = neurons.add(
            memory_neurons,
            &neuron_options(&genome.areas()[area].properties, 0.0),
        )?;
    }
    network.memories.extend(
        memory_areas
            .iter()
            .filter_map(|&area| memory(genome, area, &active)),
    );

    let mut synapses = Vec::new();
    let total = genome.mappings().len() as u64;
    let mut connected = |done: u64| {
        WorkProgress {
            stage: "connecting mappings",
            done,
            total,
        }
        .report(watch)
    };
    for (index, mapping) in genome.mappings().iter().enumerate() {
        connected(index as u64)?;
        let place = || {
            format!(
                "mapping {} to {}",
                genome.areas()[mapping.source].id,
                genome.areas()[mapping.destination].id
            )
        };
        let rule = if learns { rule(genome, mapping) } else { None };
        let plasticity = rule.map(|rule| rule_index(&mut network.plasticity, rule));
        let (weight, inhibitory) = (mapping.weight(), mapping.is_inhibitory());
        if mapping.grows() {
            let Some(plasticity) = plasticity else {
                continue;
            };
            let ends = [mapping.source, mapping.destination].map(|area| active[area].clone());
            let is_first =
                |other: &Mapping| !other.grows() || area_pair(other) != area_pair(mapping);
            if !genome.mappings()[..index].iter().all(is_first) {
                continue;
            }
            let pairs = 2 * ends[0].len() as u64 * ends[1].len() as u64;
            if pairs > MAX_PAIRS {
                return Err(Error::unsupported(format!(
                    "{}: synapses may grow between {pairs} pairs of neurons; at most {MAX_PAIRS} are possible",
                    place()
                )));
            }
            grow(&ends, plasticity, inhibitory, &mut synapses);
            continue;
        }
        genome.mapping_synapses(
            index,
            genome.areas()[mapping.source].neurons.clone(),
            seed,
            &mut |synapse| {
                synapses.push((
                    synapse.source,
                    Synapse {
                        target: synapse.target,
                        weight,
                        inhibitory,
                        plasticity,
                    },
                ));
            },
        );
        // Every neuron of a memory sends as the area's first neuron does.
        if memory_areas.contains(&mapping.source) {
            let first = genome.areas()[mapping.source].neurons.start;
            let mut row = Vec::new();
            genome.mapping_synapses(index, first..first + 1, seed, &mut |synapse| {
                row.push(Synapse {
                    target: synapse.target,
                    weight,
                    inhibitory,
                    plasticity,
                })
            });
            synapses.extend(
                active[mapping.source]
                    .clone()
                    .flat_map(|source| row.iter().map(move |synapse| (source, *synapse))),
            );
        }
    }
    connected(total)?;
    let rows = SynapseList::new(neurons.len(), &synapses)?;
    drop(synapses);
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
    Ok(ConnectedNetwork {
        network,
        constant_inputs: power.map(|neuron| (neuron, POWER)).collect(),
        memories: memory_areas,
        notes: [&limitations(genome, learns)[..], &precision].concat(),
        precision,
    })
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

/// The areas of a mapping, in either direction.
fn area_pair(mapping: &Mapping) -> (usize, usize) {
    (
        mapping.source.min(mapping.destination),
        mapping.source.max(mapping.destination),
    )
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

fn rule_index(rules: &mut Vec<PlasticityRule>, rule: PlasticityRule) -> u8 {
    let known = rules
        .iter()
        .position(|other| *other == rule)
        .unwrap_or(rules.len());
    if known == rules.len() {
        rules.push(rule);
    }
    // The network rejects more than 16.
    known.min(usize::from(u8::MAX)) as u8
}

/// Synapses between all pairs of two areas, in both directions, with initial weight 0.
fn grow(ends: &[Range<u32>; 2], rule: u8, inhibitory: bool, synapses: &mut Vec<(u32, Synapse)>) {
    let synapse = |target: u32| Synapse {
        target,
        weight: 0,
        inhibitory,
        plasticity: Some(rule),
    };
    for source in ends[0].clone() {
        synapses.extend(
            ends[1]
                .clone()
                .filter(|target| *target != source)
                .map(|target| (source, synapse(target))),
        );
    }
    if ends[0] != ends[1] {
        for source in ends[1].clone() {
            synapses.extend(ends[0].clone().map(|target| (source, synapse(target))));
        }
    }
}

/// Adds an area's neurons.
fn add(neurons: &mut Neurons, area: &Area) -> Result<()> {
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
