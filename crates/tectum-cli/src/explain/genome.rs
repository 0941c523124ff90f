//! `tectum explain GENOME.json`: how a genome's network runs on devices, mapping by mapping, and why so.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use tectum::{Device, Result};
use tectum_models::genome::{AreaProperties, Genome, GenomeOptions, Morphology, UnitPolicy};
use tectum_models::spiking::{
    Connected, NetworkExplanation, NetworkOptions, Past, ScaleLimit, ShardLayout, Silence, SimulationOptions, Undone, ZeroSums, connect, layout, undone,
};

use crate::table::{bytes, print, print_json, table};

/// What only genomes take.
#[derive(Args)]
pub struct GenomeArgs {
    /// Of a genome: the device, cpu if not given.
    #[arg(long)]
    device: Option<String>,
    /// Of a genome: parts of the network, by target, that exchange their spikes; one if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: Option<u32>,
    /// Of a genome: the units of its numbers, detect, fraction or legacy; detected if not given.
    #[arg(long)]
    units: Option<UnitPolicy>,
    /// Of a genome: a neuron in which nothing arrives neither leaks nor recovers, as in FEAGI's CPU engine.
    #[arg(long)]
    frozen_silence: bool,
    /// Of a genome: prints one line of JSON.
    #[arg(long)]
    json: bool,
}

impl GenomeArgs {
    /// The first of these that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--device", self.device.is_some()),
            ("--shards", self.shards.is_some()),
            ("--units", self.units.is_some()),
            ("--frozen-silence", self.frozen_silence),
            ("--json", self.json),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// All that is shown, as JSON.
#[derive(Serialize)]
struct Explanation<'a> {
    kind: &'static str,
    genome: &'a str,
    network: &'a NetworkExplanation,
    shards: &'a [ShardLayout],
    mappings: Vec<MappingExplanation<'a>>,
}

/// What becomes of one mapping.
#[derive(Serialize)]
struct MappingExplanation<'a> {
    from: String,
    to: String,
    morphology: &'a str,
    strategy: Strategy,
    synapses: u64,
    bytes: u64,
    sends: Sends,
    weight: i32,
    /// Of each shard that has targets of it, the shard and the parts.
    parts: Vec<(usize, Vec<usize>)>,
    undone: Vec<Undone>,
}

/// How a mapping's synapses are held.
#[derive(Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// In rows by source, packed in four bytes: target within the part, sign, weight. Psp is the sender's, so a synapse has none.
    PackedRows,
    /// It has none: none are in the boxes, or chance left none.
    Empty,
    /// It has none: its kind grows them by learning.
    Grown,
    /// It has none: the morphology has no known definition.
    Unknown,
}

/// What a firing of the source sends through weight 1.
#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Sends {
    /// The area's psp.
    Whole(u8),
    /// The area's psp over the sender's synapses, of all its mappings.
    Divided(u8),
    /// The potential at which it fired, held to 0 to 255.
    Potential,
    /// That over the sender's synapses.
    PotentialDivided,
}

/// Prints the explanation.
pub fn explain_genome(path: &Path, args: &GenomeArgs) -> Result<()> {
    let genome = Genome::read(path, &GenomeOptions { units: args.units.unwrap_or(UnitPolicy::Detect), strict: false })?;
    let silence = if args.frozen_silence { Silence::Skips } else { Silence::Counts };
    let Connected { network, steady, .. } = connect(&genome, 0, NetworkOptions { silence, ..NetworkOptions::default() }).map_err(|error| error.at(path.display()))?;
    let device = Device::open(args.device.as_deref().filter(|id| *id != "auto").unwrap_or("cpu"))?;
    let options = SimulationOptions { steady, ..SimulationOptions::default() };
    let shards = layout(&network, &vec![device; args.shards.unwrap_or(1) as usize], &options);
    let network = network.explain();
    let mappings = (0..genome.mappings().len()).map(|index| mapping(&genome, index, &shards)).collect();
    let explanation = Explanation { kind: "genome", genome: genome.title(), network: &network, shards: &shards, mappings };
    if args.json { print_json(&explanation) } else { print(&text(path, &genome, &explanation)) }
}

fn mapping<'a>(genome: &'a Genome, index: usize, shards: &[ShardLayout]) -> MappingExplanation<'a> {
    let mapping = &genome.mappings()[index];
    let (from, to) = (&genome.areas()[mapping.source], &genome.areas()[mapping.destination]);
    let mut synapses = 0;
    genome.mapping_synapses(index, from.neurons.clone(), 0, &mut |_| synapses += 1);
    let strategy = match mapping.morphology {
        Morphology::Plastic(_) => Strategy::Grown,
        Morphology::Unknown => Strategy::Unknown,
        Morphology::Voxels(_) if synapses == 0 => Strategy::Empty,
        Morphology::Voxels(_) => Strategy::PackedRows,
    };
    let meets = |part: &std::ops::Range<u32>| part.start < to.neurons.end && to.neurons.start < part.end;
    let parts_of = |shard: &ShardLayout| shard.parts.iter().enumerate().filter(|(_, part)| meets(part)).map(|(part, _)| part).collect::<Vec<_>>();
    MappingExplanation {
        from: from.id.to_string(),
        to: to.id.to_string(),
        morphology: &mapping.morphology_name,
        strategy,
        synapses,
        bytes: 4 * synapses,
        sends: sends(&from.properties),
        weight: mapping.multiplier,
        parts: shards.iter().map(parts_of).enumerate().filter(|(_, parts)| synapses > 0 && !parts.is_empty()).collect(),
        undone: undone(mapping),
    }
}

fn sends(properties: &AreaProperties) -> Sends {
    match (properties.mp_driven_psp, properties.psp_uniform_distribution) {
        (true, true) => Sends::Potential,
        (true, false) => Sends::PotentialDivided,
        (false, true) => Sends::Whole(properties.postsynaptic_current),
        (false, false) => Sends::Divided(properties.postsynaptic_current),
    }
}

fn text(path: &Path, genome: &Genome, explanation: &Explanation<'_>) -> String {
    let Explanation { network, shards, mappings, .. } = explanation;
    let mut text = format!("{}: {} neurons of {} kinds, {} synapses\n", path.display(), network.neurons, network.profiles, network.synapses);
    if !mappings.is_empty() {
        text += &format!("\n{}", table(&mapping_rows(mappings)));
    }
    if mappings.iter().any(|mapping| mapping.strategy == Strategy::PackedRows) {
        text += "packed rows: by source, 4 bytes a synapse: 23 bits of target within its part, sign, 8 bits of weight; what is sent is the sender's, so no synapse holds it\n";
    }
    text += &format!("\n{}\n", scale_text(genome, network));
    text += &zero_sums_text(genome, network);
    text += &past_text(genome, network);
    for (index, shard) in shards.iter().enumerate() {
        text += &shard_text(index, shard);
    }
    text + &format!("host: synapses {}, kept to pack them for another device\n", bytes(network.host_synapse_bytes as f64))
}

fn mapping_rows(mappings: &[MappingExplanation<'_>]) -> Vec<Vec<String>> {
    let head = ["from", "to", "morphology", "held", "synapses", "memory", "a firing sends", "weight", "part", "not done"].map(str::to_owned).to_vec();
    let rows = mappings.iter().map(|mapping| {
        let part = |(shard, parts): &(usize, Vec<usize>)| parts.iter().map(|part| format!("{shard}.{part}")).collect::<Vec<_>>();
        let undone = mapping.undone.iter().map(|undone| match undone {
            Undone::Plastic => "learning".to_owned(),
            Undone::Memory => "memory".to_owned(),
            Undone::Delay(bursts) => format!("delay of {bursts}"),
        });
        let held = match mapping.strategy {
            Strategy::PackedRows => "packed rows",
            Strategy::Empty => "nothing: no pair of voxels",
            Strategy::Grown => "nothing: it grows by learning",
            Strategy::Unknown => "nothing: morphology unknown",
        };
        let sends = match mapping.sends {
            Sends::Whole(psp) => format!("{psp}"),
            Sends::Divided(psp) => format!("{psp} / its synapses"),
            Sends::Potential => "its potential".to_owned(),
            Sends::PotentialDivided => "its potential / its synapses".to_owned(),
        };
        vec![
            mapping.from.clone(),
            mapping.to.clone(),
            mapping.morphology.to_owned(),
            held.to_owned(),
            mapping.synapses.to_string(),
            bytes(mapping.bytes as f64),
            sends,
            mapping.weight.to_string(),
            mapping.parts.iter().flat_map(part).collect::<Vec<_>>().join(" "),
            undone.collect::<Vec<_>>().join(", "),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn scale_text(genome: &Genome, network: &NetworkExplanation) -> String {
    let places = network.fraction_bits;
    match network.scale {
        ScaleLimit::Most => format!("potentials: {places} binary places, the most there are"),
        ScaleLimit::Sum { neuron, most } => {
            let area = genome.areas()[genome.area_of(neuron)].id;
            format!("potentials: {places} binary places; neuron {neuron} of {area} can receive {most:.0} in one burst, which with one more could pass 2^30")
        }
        ScaleLimit::Threshold => format!("potentials: {places} binary places; with one more the greatest threshold or limit would pass 2^30"),
    }
}

fn zero_sums_text(genome: &Genome, network: &NetworkExplanation) -> String {
    let reason = |why: ZeroSums| match why {
        ZeroSums::Draws => "draw whether they fire",
        ZeroSums::Limited => "may fire at any arrival after their consecutive limit stopped them",
        ZeroSums::FiresAtRest => "have a threshold that is not above their rest",
        ZeroSums::LeaksIntoWindow => "leak from above their limit into their window",
        ZeroSums::Frozen => "leak or recover at arrivals alone",
    };
    match network.zero_sums[..] {
        [] => "arrivals: a sum of 0 is silence, so sums alone are kept\n".to_owned(),
        _ => format!("arrivals: marked beside the sums, since a sum of 0 is no silence to neurons that\n{}", areas_text(genome, &network.zero_sums, reason)),
    }
}

fn past_text(genome: &Genome, network: &NetworkExplanation) -> String {
    let reason = |why: Past| match why {
        Past::Refractory => "have a refractory period",
        Past::Limited => "count firings in a row",
        Past::Leaks => "leak: the bursts of silence are made up for at the next arrival",
    };
    match network.past[..] {
        [] => "state: one plane, the potential\n".to_owned(),
        _ => format!("state: four planes (potential, last arrival, end of the refractory period, firings in a row), since neurons\n{}", areas_text(genome, &network.past, reason)),
    }
}

/// Reasons with the areas that have them.
fn areas_text<R: Copy + PartialEq>(genome: &Genome, ranges: &[(std::ops::Range<u32>, R)], text: impl Fn(R) -> &'static str) -> String {
    const MOST: usize = 6;
    let mut reasons: Vec<(R, Vec<usize>)> = Vec::new();
    for (range, reason) in ranges {
        let areas = genome.area_of(range.start)..=genome.area_of(range.end - 1);
        let at = reasons.iter().position(|(known, _)| known == reason).unwrap_or_else(|| {
            reasons.push((*reason, Vec::new()));
            reasons.len() - 1
        });
        areas.for_each(|area| if reasons[at].1.last() != Some(&area) { reasons[at].1.push(area) });
    }
    let line = |(reason, areas): (R, Vec<usize>)| {
        let named = areas.iter().take(MOST).map(|area| genome.areas()[*area].id.to_string()).collect::<Vec<_>>().join(", ");
        let more = if areas.len() > MOST { format!(" and {} more", areas.len() - MOST) } else { String::new() };
        format!("  {} ({named}{more})\n", text(reason))
    };
    reasons.into_iter().map(line).collect()
}

fn shard_text(index: usize, shard: &ShardLayout) -> String {
    let total: u64 = shard.memory.iter().map(|memory| memory.bytes).sum();
    let parts = match shard.parts.len() {
        1 => "one part".to_owned(),
        parts => format!("{parts} parts"),
    };
    // What bounds a part.
    let why = match shard.device.as_str() {
        "cpu" => "at most as long as its sums fit a thread's cache",
        _ => "at most as long as a packed word can name targets",
    };
    let mut text = format!("\nshard {index} on {}: targets {} to {}, {parts}, {why}; {}\n", shard.device, shard.targets.start, shard.targets.end - 1, bytes(total as f64));
    let rows = shard.memory.iter().map(|memory| vec![format!("  {}", memory.what), bytes(memory.bytes as f64)]);
    text += &table(&rows.collect::<Vec<_>>());
    text
}
