//! `tectum explain GENOME.json`: how a genome's network runs on devices, mapping by mapping, and
//! why.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tectum::Result;
use tectum::route::Choice;
use tectum_spiking::genome::{AreaProperties, Genome, Morphology, PlasticMorphology};
use tectum_spiking::{
    ConnectedNetwork, ExtraState, FormatGroup, NetworkExplanation, PlasticityRule, ScaleLimit,
    ShardLayout, SimulationOptions, Stimulus, UnsupportedFeature, ZeroSumReason, grown_directions,
    layout, rule, unsupported_features,
};

use super::choice_text;
use crate::count::counted;
use crate::network_args::NetworkArgs;
use crate::table::{bytes, print, print_json, table};

/// What genomes take, and of it device and JSON models too.
#[derive(Args)]
pub struct GenomeArgs {
    /// Of a genome or model: the device; the fastest one if not given.
    ///
    /// The fastest is found by trial for a genome, by prediction for a model.
    #[arg(long)]
    device: Option<String>,
    #[command(flatten)]
    network: NetworkArgs,
    /// Of a genome or model: prints one line of JSON.
    #[arg(long)]
    json: bool,
}

impl GenomeArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [("--device", self.device.is_some()), ("--json", self.json)];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
            .or(self.given_of_network())
    }

    /// The first given option that only genomes take.
    pub fn given_of_network(&self) -> Option<&'static str> {
        self.network.first_given_option()
    }

    /// The requested device.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Whether JSON was requested.
    pub fn json(&self) -> bool {
        self.json
    }
}

/// The output, as JSON.
#[derive(Serialize)]
struct Explanation<'a> {
    kind: &'static str,
    genome: &'a str,
    /// How `auto` chose the device.
    route: Option<&'a Choice>,
    network: &'a NetworkExplanation,
    shards: &'a [ShardLayout],
    mappings: Vec<MappingExplanation<'a>>,
    /// Settings that the binary places of potentials distort.
    notes: &'a [String],
}

/// How one mapping is stored.
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
    /// How its synapses learn.
    rule: Option<PlasticityRule>,
    /// For each shard that has targets of it, the shard and the parts.
    parts: Vec<(usize, Vec<usize>)>,
    unsupported: Vec<UnsupportedFeature>,
}

/// How a mapping's synapses are stored.
#[derive(Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// In rows by source, packed in four bytes: target within the part, sign, weight. Psp is stored
    /// with the sender, not with the synapse.
    PackedRows,
    /// No synapses: none are in the boxes, or the random choice left none.
    Empty,
    /// In such rows of eight bytes: next to the word, the firings of its target when it last
    /// learned.
    PlasticRows,
    /// As plastic rows, between all pairs of neurons, in both directions unless another mapping
    /// leads back, with weight 0 until they grow.
    Grown,
    /// No synapses: the destination stores patterns of the source's firings.
    Remembered,
    /// No synapses: the destination is not a memory area.
    Forgotten,
    /// No synapses: the destination would replay the source's memories.
    Replayed,
    /// No synapses: the morphology has no known definition.
    Unknown,
}

/// What a firing of the source sends through a weight of 1.
#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Sends {
    /// The area's psp.
    Whole(u8),
    /// The area's psp divided by the number of the sender's synapses in all its mappings.
    Divided(u8),
    /// The potential at which it fired, clamped to 0 to 255.
    Potential,
    /// That divided by the number of the sender's synapses.
    PotentialDivided,
}

/// Prints the explanation.
pub fn explain_genome(path: &Path, args: &GenomeArgs) -> Result<()> {
    let (
        genome,
        ConnectedNetwork {
            network,
            constant_inputs,
            memories,
            precision,
            ..
        },
    ) = args.network.connect(path, 0)?;
    let (network, options) = (
        Arc::new(network),
        SimulationOptions {
            constant_inputs,
            ..SimulationOptions::default()
        },
    );
    let (devices, choice) = args.network.devices(
        args.device.as_deref().unwrap_or("auto"),
        &network,
        &options,
        &Stimulus::new(&genome, 0.0, 0)?,
    )?;
    let shards = layout(&network, &devices, &options);
    let network = network.explain();
    let areas = Areas {
        genome: &genome,
        memories: &memories,
        network: &network,
    };
    let mappings = (0..genome.mappings().len())
        .map(|index| mapping(&areas, index, &shards, args.network.learns()))
        .collect();
    let explanation = Explanation {
        kind: "genome",
        genome: genome.title(),
        route: choice.as_ref(),
        network: &network,
        shards: &shards,
        mappings,
        notes: &precision,
    };
    if args.json {
        print_json(&explanation)
    } else {
        print(&text(path, &areas, &explanation))
    }
}

/// Areas with the neurons of those that are memories.
struct Areas<'a> {
    genome: &'a Genome,
    /// The area of each memory.
    memories: &'a [usize],
    network: &'a NetworkExplanation,
}

impl Areas<'_> {
    /// The neurons that represent an area in learning: its memory's, or its own.
    fn active(&self, area: usize) -> Range<u32> {
        let memory = self.memories.iter().position(|memory| *memory == area);
        memory.map_or(self.genome.areas()[area].neurons.clone(), |memory| {
            self.network.memories[memory].neurons.clone()
        })
    }

    /// The areas that some neurons are in.
    fn of(&self, neurons: &Range<u32>) -> Vec<usize> {
        let meets = |other: &Range<u32>| other.start < neurons.end && neurons.start < other.end;
        let own = (0..self.genome.areas().len())
            .filter(|area| meets(&self.genome.areas()[*area].neurons));
        own.chain(
            self.memories
                .iter()
                .zip(&self.network.memories)
                .filter(|(_, memory)| meets(&memory.neurons))
                .map(|(area, _)| *area),
        )
        .collect()
    }
}

fn mapping<'a>(
    areas: &Areas<'a>,
    index: usize,
    shards: &[ShardLayout],
    learns: bool,
) -> MappingExplanation<'a> {
    let genome = areas.genome;
    let mapping = &genome.mappings()[index];
    let (from, to) = (
        &genome.areas()[mapping.source],
        &genome.areas()[mapping.destination],
    );
    let rule = if learns { rule(genome, mapping) } else { None };
    let mut synapses = 0u64;
    genome.mapping_synapses(index, from.neurons.clone(), 0, &mut |_| synapses += 1);
    if areas.memories.contains(&mapping.source) {
        let mut row = 0;
        genome.mapping_synapses(
            index,
            from.neurons.start..from.neurons.start + 1,
            0,
            &mut |_| row += 1,
        );
        synapses += areas.active(mapping.source).len() as u64 * row;
    }
    let (strategy, targets) = match mapping.morphology {
        Morphology::Plastic(PlasticMorphology::Memory)
            if areas.memories.contains(&mapping.destination) =>
        {
            (Strategy::Remembered, 0..0)
        }
        Morphology::Plastic(PlasticMorphology::Memory) => (Strategy::Forgotten, 0..0),
        Morphology::Plastic(PlasticMorphology::Replay) => (Strategy::Replayed, 0..0),
        Morphology::Plastic(PlasticMorphology::Associative) => {
            let ends = [mapping.source, mapping.destination].map(|area| areas.active(area));
            synapses = if rule.is_some() {
                let directions = u64::from(grown_directions(genome, mapping));
                directions * ends[0].len() as u64 * ends[1].len() as u64
            } else {
                0
            };
            (Strategy::Grown, ends[1].clone())
        }
        Morphology::Unknown => (Strategy::Unknown, 0..0),
        Morphology::Voxels(_) if synapses == 0 => (Strategy::Empty, 0..0),
        Morphology::Voxels(_) if rule.is_some() => (Strategy::PlasticRows, to.neurons.clone()),
        Morphology::Voxels(_) => (Strategy::PackedRows, to.neurons.clone()),
    };
    let meets = |part: &Range<u32>| part.start < targets.end && targets.start < part.end;
    let parts_of = |shard: &ShardLayout| {
        shard
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| meets(part))
            .map(|(part, _)| part)
            .collect::<Vec<_>>()
    };
    MappingExplanation {
        from: from.id.to_string(),
        to: to.id.to_string(),
        morphology: &mapping.morphology_name,
        strategy,
        synapses,
        bytes: if rule.is_some() { 8 } else { 4 } * synapses,
        sends: sends(&from.properties),
        weight: mapping.multiplier,
        rule,
        parts: shards
            .iter()
            .map(parts_of)
            .enumerate()
            .filter(|(_, parts)| synapses > 0 && !parts.is_empty())
            .collect(),
        unsupported: unsupported_features(mapping),
    }
}

fn sends(properties: &AreaProperties) -> Sends {
    match (
        properties.mp_driven_psp,
        properties.psp_uniform_distribution,
    ) {
        (true, true) => Sends::Potential,
        (true, false) => Sends::PotentialDivided,
        (false, true) => Sends::Whole(properties.postsynaptic_current),
        (false, false) => Sends::Divided(properties.postsynaptic_current),
    }
}

fn text(path: &Path, areas: &Areas<'_>, explanation: &Explanation<'_>) -> String {
    let Explanation {
        network,
        shards,
        mappings,
        ..
    } = explanation;
    let [neurons, kinds, synapses] = [
        counted(network.neurons, "neuron"),
        counted(network.profiles, "kind"),
        counted(network.synapses, "synapse"),
    ];
    let mut text = format!("{}: {neurons} of {kinds}, {synapses}\n", path.display());
    if let Some(choice) = explanation.route {
        text += &choice_text(choice);
    }
    if !mappings.is_empty() {
        text += &format!("\n{}", table(&mapping_rows(mappings)));
    }
    if mappings
        .iter()
        .any(|mapping| mapping.strategy == Strategy::PackedRows)
    {
        text += "packed rows: by source, 4 bytes a synapse: 23 bits of target within its part, sign, 8 bits of weight; what is sent is the sender's, so no synapse holds it\n";
    }
    if mappings
        .iter()
        .any(|mapping| matches!(mapping.strategy, Strategy::PlasticRows | Strategy::Grown))
    {
        text += "plastic rows: 8 bytes a synapse, learnt when the source fires and when its window closes; + what a weight gains where both ends fired in all bursts of the window, − what it loses where either did in some\n";
    }
    text += &format!("\n{}\n", scale_text(areas, network));
    for note in explanation.notes {
        text += &format!("note: {note}\n");
    }
    text += &zero_sums_text(areas, network);
    text += &past_text(areas, network);
    for (area, memory) in areas.memories.iter().zip(&network.memories) {
        text += &format!(
            "memory {}: {}, patterns of {} of {}; kept {}, {} more each time, permanent from {} on\n",
            areas.genome.areas()[*area].id,
            counted(memory.neurons.len(), "neuron"),
            counted(memory.depth, "burst"),
            counted(
                memory.upstream.iter().map(Range::len).sum::<usize>(),
                "upstream neuron"
            ),
            counted(memory.initial_lifespan, "burst"),
            memory.lifespan_growth,
            memory.longterm_threshold,
        );
    }
    for (index, shard) in shards.iter().enumerate() {
        text += &shard_text(index, shard);
    }
    text + &format!(
        "host: synapses {}, kept to pack them for another device\n",
        bytes(network.host_synapse_bytes as f64)
    )
}

fn mapping_rows(mappings: &[MappingExplanation<'_>]) -> Vec<Vec<String>> {
    let head = [
        "from",
        "to",
        "morphology",
        "held",
        "synapses",
        "memory",
        "a firing sends",
        "weight",
        "learns",
        "part",
        "not done",
    ]
    .map(str::to_owned)
    .to_vec();
    let rows = mappings.iter().map(|mapping| {
        let part = |(shard, parts): &(usize, Vec<usize>)| {
            parts
                .iter()
                .map(|part| format!("{shard}.{part}"))
                .collect::<Vec<_>>()
        };
        let unsupported = mapping
            .unsupported
            .iter()
            .map(|unsupported| match unsupported {
                UnsupportedFeature::Replay => "replay".to_owned(),
                UnsupportedFeature::Delay(bursts) => format!("delay of {bursts}"),
            });
        let held = match mapping.strategy {
            Strategy::PackedRows => "packed rows",
            Strategy::Empty => "nothing: no pair of voxels",
            Strategy::PlasticRows => "plastic rows",
            Strategy::Grown => "plastic rows of all pairs",
            Strategy::Remembered => "nothing: it is remembered",
            Strategy::Forgotten => "nothing: no memory area",
            Strategy::Replayed => "nothing: replay",
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
            mapping.rule.map_or(String::new(), |rule| {
                format!(
                    "+{} −{} of {}",
                    rule.gain,
                    rule.loss,
                    counted(rule.window, "burst")
                )
            }),
            mapping
                .parts
                .iter()
                .flat_map(part)
                .collect::<Vec<_>>()
                .join(" "),
            unsupported.collect::<Vec<_>>().join(", "),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn scale_text(areas: &Areas<'_>, network: &NetworkExplanation) -> String {
    let group = |group: &FormatGroup| {
        let FormatGroup {
            fraction_bits: places,
            neurons,
            neuron,
            limit,
        } = group;
        let area = areas
            .of(&(*neuron..neuron + 1))
            .first()
            .map_or(String::new(), |area| {
                areas.genome.areas()[*area].id.to_string()
            });
        let who = if *neurons == network.neurons {
            String::new()
        } else {
            format!(" ({})", counted(neurons, "neuron"))
        };
        let places = counted(places, "binary place");
        match limit {
            ScaleLimit::MaxBits => format!("{places}{who}, the maximum"),
            ScaleLimit::Sum { max_sum } => format!(
                "{places}{who}; neuron {neuron} of {area} can receive {max_sum:.0} in one burst, which with one more could pass 2^30"
            ),
            ScaleLimit::Threshold => format!(
                "{places}{who}; with one more the threshold or limit of neuron {neuron} of {area} would pass 2^30"
            ),
        }
    };
    match &network.formats[..] {
        [alone] => format!("potentials: {}", group(alone)),
        several => format!(
            "potentials: each neuron has its own binary places\n  {}",
            several.iter().map(group).collect::<Vec<_>>().join("\n  ")
        ),
    }
}

fn zero_sums_text(areas: &Areas<'_>, network: &NetworkExplanation) -> String {
    let reason = |why: ZeroSumReason| match why {
        ZeroSumReason::Draws => "draw whether they fire",
        ZeroSumReason::Limited => {
            "may fire at any arrival after their consecutive limit stopped them"
        }
        ZeroSumReason::FiresAtRest => "have a threshold that is not above their rest",
        ZeroSumReason::LeaksIntoWindow => "leak from above their limit into their window",
        ZeroSumReason::Frozen => "leak or recover at arrivals alone",
    };
    match network.zero_sums[..] {
        [] => "arrivals: a sum of 0 is silence, so sums alone are kept\n".to_owned(),
        _ => format!(
            "arrivals: marked next to the sums, since a sum of 0 is no silence to neurons that\n{}",
            areas_text(areas, &network.zero_sums, reason)
        ),
    }
}

fn past_text(areas: &Areas<'_>, network: &NetworkExplanation) -> String {
    let reason = |why: ExtraState| match why {
        ExtraState::Refractory => "have a refractory period",
        ExtraState::Limited => "count firings in a row",
        ExtraState::Leaks => "leak: the bursts of silence are made up for at the next arrival",
    };
    match network.extra_state[..] {
        [] => "state: one plane, the potential\n".to_owned(),
        _ => format!(
            "state: four planes (potential, last arrival, end of the refractory period, firings in a row), since neurons\n{}",
            areas_text(areas, &network.extra_state, reason)
        ),
    }
}

/// Reasons with the areas that have them.
fn areas_text<R: Copy + PartialEq>(
    areas: &Areas<'_>,
    ranges: &[(Range<u32>, R)],
    text: impl Fn(R) -> &'static str,
) -> String {
    const MAX_LISTED_REASONS: usize = 6;
    let mut reasons: Vec<(R, Vec<usize>)> = Vec::new();
    for (range, reason) in ranges {
        let at = reasons
            .iter()
            .position(|(known, _)| known == reason)
            .unwrap_or_else(|| {
                reasons.push((*reason, Vec::new()));
                reasons.len() - 1
            });
        areas.of(range).into_iter().for_each(|area| {
            if reasons[at].1.last() != Some(&area) {
                reasons[at].1.push(area)
            }
        });
    }
    let line = |(reason, found): (R, Vec<usize>)| {
        let named = found
            .iter()
            .take(MAX_LISTED_REASONS)
            .map(|area| areas.genome.areas()[*area].id.to_string())
            .collect::<Vec<_>>()
            .join(", ");
        let more = if found.len() > MAX_LISTED_REASONS {
            format!(" and {} more", found.len() - MAX_LISTED_REASONS)
        } else {
            String::new()
        };
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
    // The limit of a part.
    let why = match shard.device.as_str() {
        "cpu" => "at most as long as its sums fit a thread's cache",
        _ => "at most as long as a packed word can name targets",
    };
    let device = if shard.software {
        format!("{} (software)", shard.device)
    } else {
        shard.device.clone()
    };
    let mut text = format!(
        "\nshard {index} on {device}: targets {} to {}, {parts}, {why}; {}\n",
        shard.targets.start,
        shard.targets.end - 1,
        bytes(total as f64)
    );
    let rows = shard
        .memory
        .iter()
        .map(|memory| vec![format!("  {}", memory.what), bytes(memory.bytes as f64)]);
    text += &table(&rows.collect::<Vec<_>>());
    text
}
