//! The contents of a genome.

use serde::Serialize;
use tectum::Result;
use tectum_spiking::genome::{
    Area, Genome, GenomeEstimate, GenomeOptions, Mapping, Morphology, Physiology, Region,
    UnitReport, WeightLossReport,
};
use tectum_spiking::{ConnectOptions, ConnectedNetwork, connect, limitations, rule};

use super::InspectArgs;
use super::edges::write_edges;
use crate::count::counted;
use crate::progress::{Bar, Unit};
use crate::table::{bytes, print, print_json, short, table};

/// The output, as JSON.
#[derive(Serialize)]
struct Inspection<'a> {
    kind: &'static str,
    file: String,
    title: &'a str,
    version: &'a str,
    physiology: &'a Physiology,
    areas: &'a [Area],
    mappings: &'a [Mapping],
    regions: &'a [Region],
    units: &'a UnitReport,
    /// When plastic synapses lose weight.
    weight_loss: &'a WeightLossReport,
    estimate: &'a GenomeEstimate,
    /// What a run has, with its default options.
    run: Option<RunCounts>,
    /// Synapses in the file of `--edges`.
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<u64>,
    /// What has no effect in the file, and in the network.
    warnings: &'a [String],
}

/// The counts of a run.
#[derive(Serialize)]
struct RunCounts {
    neurons: u32,
    /// Of them, those that represent the patterns of memories.
    memory_neurons: u64,
    synapses: u64,
}

/// Synapses above which a run's are not counted: that needs their memory.
const MAX_COUNTED: u64 = 100_000_000;

/// Reads a genome and prints its contents.
pub fn inspect_genome(args: &InspectArgs) -> Result<()> {
    let genome = Genome::read(
        &args.file,
        &GenomeOptions {
            units: args.units,
            weight_loss: args.weight_loss,
            strict: args.strict,
        },
    )?;
    let estimate = genome.estimate();
    let file = args.file.display().to_string();
    let (run, notes) = if estimate.synapses > MAX_COUNTED {
        (None, None)
    } else {
        match count_run(&genome) {
            Ok((run, notes)) => (Some(Ok(run)), Some(notes)),
            Err(error) => (Some(Err(error)), None),
        }
    };
    let notes = notes.unwrap_or_else(|| limitations(&genome, true));
    let warnings = [genome.warnings(), &notes].concat();
    let edges = match &args.edges {
        Some(path) => {
            let options = ConnectOptions {
                seed: args.seed.unwrap_or(0),
                ..ConnectOptions::default()
            };
            Some(write_edges(path, &genome, &options)?)
        }
        None => None,
    };
    if !args.json {
        let written = edges.map_or_else(String::new, |count| {
            format!("{} written\n", counted(count, "synapse"))
        });
        return print(
            &(text(&file, &genome, &estimate, &warnings)
                + &run_text(&genome, run.as_ref())
                + &written),
        );
    }
    let run = run.and_then(Result::ok);
    print_json(&Inspection {
        kind: "genome",
        file,
        title: genome.title(),
        version: genome.version(),
        physiology: genome.physiology(),
        areas: genome.areas(),
        mappings: genome.mappings(),
        regions: genome.regions(),
        units: genome.units(),
        weight_loss: genome.weight_loss(),
        estimate: &estimate,
        run,
        edges,
        warnings: &warnings,
    })
}

/// Connects the genome as a run does without options; also returns what has no effect in it, or
/// another one.
fn count_run(genome: &Genome) -> Result<(RunCounts, Vec<String>)> {
    let bar = Bar::new(Unit::Steps);
    let ConnectedNetwork { network, notes, .. } =
        connect(genome, ConnectOptions::default(), &mut bar.watch())?;
    let memory_neurons = network
        .memories()
        .iter()
        .map(|memory| memory.neurons.len() as u64)
        .sum();
    let counts = RunCounts {
        neurons: network.neurons(),
        memory_neurons,
        synapses: network.synapses(),
    };
    Ok((counts, notes))
}

fn run_text(genome: &Genome, run: Option<&Result<RunCounts>>) -> String {
    let is_drawn = genome.mappings().iter().any(|mapping| {
        mapping.attractivity < 100.0 && matches!(mapping.morphology, Morphology::Voxels(_))
    });
    let seed = if is_drawn {
        " with seed 0; another seed draws other synapses"
    } else {
        ""
    };
    match run {
        Some(Ok(RunCounts {
            neurons,
            memory_neurons: 0,
            synapses,
        })) => {
            format!(
                "a run has {} and {}{seed}\n",
                counted(neurons, "neuron"),
                counted(synapses, "synapse")
            )
        }
        Some(Ok(RunCounts {
            neurons,
            memory_neurons,
            synapses,
        })) => {
            let (neurons, synapses) = (counted(neurons, "neuron"), counted(synapses, "synapse"));
            format!(
                "a run has {neurons}, {memory_neurons} of them for patterns of memories, and {synapses}{seed}\n"
            )
        }
        Some(Err(error)) => format!("a run is refused: {}\n", error.messages().join(": ")),
        None => "a run's synapses are not counted: there may be too many\n".to_owned(),
    }
}

fn text(file: &str, genome: &Genome, estimate: &GenomeEstimate, warnings: &[String]) -> String {
    let title = if genome.title().is_empty() {
        "without a title"
    } else {
        genome.title()
    };
    let timestep_ms = short(genome.physiology().timestep_s * 1e3);
    let mut text = format!(
        "genome {title:?} ({file}), version {}, {timestep_ms} ms a burst\n\n",
        genome.version()
    );
    text += &table(&area_rows(genome));
    if !genome.mappings().is_empty() {
        text += &format!("\n{}", table(&mapping_rows(genome, estimate)));
    }
    text += &format!("\n{}", unit_text(genome.units()));
    if genome
        .mappings()
        .iter()
        .any(|mapping| rule(genome, mapping).is_some())
    {
        text += &format!("{}\n", genome.weight_loss().note());
    }
    text += "\n";
    for warning in warnings {
        text += &format!("warning: {warning}\n");
    }
    let synapses = if estimate.exact {
        counted(estimate.synapses, "synapse")
    } else {
        format!("<= {} synapses", estimate.synapses)
    };
    let memory = [estimate.neuron_bytes, estimate.synapse_bytes].map(|size| bytes(size as f64));
    text + &format!(
        "{}, {} ({}), {}, {synapses} ({}) at most\n",
        counted(genome.areas().len(), "area"),
        counted(estimate.neurons, "neuron"),
        memory[0],
        counted(genome.mappings().len(), "mapping"),
        memory[1]
    )
}

fn area_rows(genome: &Genome) -> Vec<Vec<String>> {
    let head = [
        "area",
        "name",
        "role",
        "size",
        "a voxel",
        "neurons",
        "threshold",
        "limit",
        "leak",
        "refractory",
        "excitability",
        "in a row",
        "snooze",
        "current",
        "keeps",
        "psp",
    ];
    let rows = genome.areas().iter().map(|area| {
        let [x, y, z] = area.size;
        let properties = &area.properties;
        let increments = properties.threshold_increment;
        let ramp = if increments == [0.0; 3] {
            String::new()
        } else {
            format!(" + {increments:?}·xyz")
        };
        vec![
            area.id.to_string(),
            area.name.clone(),
            area.role.name().to_owned(),
            format!("{x} x {y} x {z}"),
            area.per_voxel.to_string(),
            area.neurons.len().to_string(),
            format!("{}{ramp}", properties.threshold),
            limit(f64::from(properties.threshold_limit)),
            properties.leak.to_string(),
            properties.refractory.to_string(),
            properties.excitability.to_string(),
            limit(f64::from(properties.consecutive_fire_limit)),
            properties.snooze.to_string(),
            properties.postsynaptic_current.to_string(),
            if properties.mp_charge_accumulation {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
            match (
                properties.mp_driven_psp,
                properties.psp_uniform_distribution,
            ) {
                (true, true) => "potential, whole",
                (true, false) => "potential, divided",
                (false, true) => "whole",
                (false, false) => "divided",
            }
            .to_owned(),
        ]
    });
    std::iter::once(head.map(str::to_owned).to_vec())
        .chain(rows)
        .collect()
}

/// A limit; 0 means no limit.
fn limit(limit: f64) -> String {
    if limit == 0.0 {
        "-".to_owned()
    } else {
        limit.to_string()
    }
}

fn mapping_rows(genome: &Genome, estimate: &GenomeEstimate) -> Vec<Vec<String>> {
    let head = [
        "from",
        "to",
        "morphology",
        "synapses",
        "multiplier",
        "attractivity",
        "plastic",
    ]
    .map(str::to_owned)
    .to_vec();
    let area = |index: usize| genome.areas()[index].id.to_string();
    let rows = genome
        .mappings()
        .iter()
        .zip(&estimate.mappings)
        .map(|(mapping, counted)| {
            let synapses = match mapping.morphology {
                Morphology::Voxels(_) => count(counted.synapses, counted.exact),
                Morphology::Plastic(_) => "none fixed".to_owned(),
                Morphology::Unknown => "none: unknown".to_owned(),
            };
            vec![
                area(mapping.source),
                area(mapping.destination),
                mapping.morphology_name.clone(),
                synapses,
                mapping.multiplier.to_string(),
                format!("{} %", mapping.attractivity),
                rule(genome, mapping).map_or_else(
                    || "no".to_owned(),
                    |rule| format!("+{} / -{}, window {}", rule.gain, rule.loss, rule.window),
                ),
            ]
        });
    std::iter::once(head).chain(rows).collect()
}

fn count(count: u64, exact: bool) -> String {
    if exact {
        count.to_string()
    } else {
        format!("<= {count}")
    }
}

fn unit_text(units: &UnitReport) -> String {
    let mut text = String::new();
    for ((name, legacy, report), newer) in
        units
            .quantities()
            .into_iter()
            .zip(["a fraction", "a fraction", "an integer, 0 to 255"])
    {
        let unit = if report.legacy {
            format!("legacy: {legacy}")
        } else {
            newer.to_owned()
        };
        text += &format!("{name}: {unit} ({})\n", report.evidence);
        for (given, taken, areas) in report.changes() {
            let names: Vec<String> = areas.iter().map(ToString::to_string).collect();
            let list = if names.len() > 4 {
                format!("{} areas", names.len())
            } else {
                names.join(", ")
            };
            text += &format!("  {given} became {taken}: {list}\n");
        }
    }
    text
}
