//! The contents of a genome.

use serde::Serialize;
use tectum::Result;
use tectum_spiking::genome::{Area, Genome, GenomeEstimate, GenomeOptions, Mapping, Morphology, Physiology, QuantityReport, Region, UnitReport};
use tectum_spiking::{ConnectOptions, connect};

use super::InspectArgs;
use crate::count::counted;
use crate::progress::{Bar, Unit};
use crate::table::{bytes, print, print_json, table};

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
    estimate: &'a GenomeEstimate,
    /// What a run has, with its default options.
    run: Option<RunCounts>,
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
    let genome = Genome::read(&args.file, &GenomeOptions { units: args.units, strict: args.strict })?;
    let estimate = genome.estimate();
    let file = args.file.display().to_string();
    let run = if estimate.synapses > MAX_COUNTED { None } else { Some(count_run(&genome)) };
    if !args.json {
        return print(&(text(&file, &genome, &estimate) + &run_text(run.as_ref())));
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
        estimate: &estimate,
        run,
        warnings: genome.warnings(),
    })
}

/// Connects the genome as a run does without options.
fn count_run(genome: &Genome) -> Result<RunCounts> {
    let bar = Bar::new(Unit::Steps);
    let network = connect(genome, ConnectOptions::default(), &mut bar.watch())?.network;
    let memory_neurons = network.memories().iter().map(|memory| memory.neurons.len() as u64).sum();
    Ok(RunCounts { neurons: network.neurons(), memory_neurons, synapses: network.synapses() })
}

fn run_text(run: Option<&Result<RunCounts>>) -> String {
    match run {
        Some(Ok(RunCounts { neurons, memory_neurons: 0, synapses })) => {
            format!("a run has {} and {}\n", counted(neurons, "neuron"), counted(synapses, "synapse"))
        }
        Some(Ok(RunCounts { neurons, memory_neurons, synapses })) => {
            let (neurons, synapses) = (counted(neurons, "neuron"), counted(synapses, "synapse"));
            format!("a run has {neurons}, {memory_neurons} of them for patterns of memories, and {synapses}\n")
        }
        Some(Err(error)) => format!("a run is refused: {}\n", error.messages().join(": ")),
        None => "a run's synapses are not counted: there may be too many\n".to_owned(),
    }
}

fn text(file: &str, genome: &Genome, estimate: &GenomeEstimate) -> String {
    let title = if genome.title().is_empty() { "without a title" } else { genome.title() };
    let timestep_ms = genome.physiology().timestep_s * 1e3;
    let mut text = format!("genome {title:?} ({file}), version {}, {timestep_ms} ms a burst\n\n", genome.version());
    text += &table(&area_rows(genome));
    if !genome.mappings().is_empty() {
        text += &format!("\n{}", table(&mapping_rows(genome, estimate)));
    }
    text += &format!("\n{}\n", unit_text(genome.units()));
    for warning in genome.warnings() {
        text += &format!("warning: {warning}\n");
    }
    let synapses = if estimate.exact { counted(estimate.synapses, "synapse") } else { format!("<= {} synapses", estimate.synapses) };
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
        let ramp = if increments == [0.0; 3] { String::new() } else { format!(" + {increments:?}·xyz") };
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
            if properties.mp_charge_accumulation { "yes" } else { "no" }.to_owned(),
            match (properties.mp_driven_psp, properties.psp_uniform_distribution) {
                (true, true) => "potential, whole",
                (true, false) => "potential, divided",
                (false, true) => "whole",
                (false, false) => "divided",
            }
            .to_owned(),
        ]
    });
    std::iter::once(head.map(str::to_owned).to_vec()).chain(rows).collect()
}

/// A limit; 0 means no limit.
fn limit(limit: f64) -> String {
    if limit == 0.0 { "-".to_owned() } else { limit.to_string() }
}

fn mapping_rows(genome: &Genome, estimate: &GenomeEstimate) -> Vec<Vec<String>> {
    let head = ["from", "to", "morphology", "synapses", "multiplier", "attractivity", "plastic"].map(str::to_owned).to_vec();
    let area = |index: usize| genome.areas()[index].id.to_string();
    let rows = genome.mappings().iter().zip(&estimate.mappings).map(|(mapping, counted)| {
        let plasticity = mapping.plasticity;
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
            if mapping.plastic { format!("{} x {} / {}", plasticity.constant, plasticity.ltp, plasticity.ltd) } else { "no".to_owned() },
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn count(count: u64, exact: bool) -> String {
    if exact { count.to_string() } else { format!("<= {count}") }
}

fn unit_text(units: &UnitReport) -> String {
    let quantity = |name: &str, report: &QuantityReport, newer: &str, legacy: &str| {
        let unit = if report.legacy { legacy } else { newer };
        let mut text = format!("{name}: {unit} ({})\n", report.evidence);
        let mut shown: Vec<(f64, f64, Vec<String>)> = Vec::new();
        for conversion in &report.converted {
            match shown.iter_mut().find(|(given, taken, _)| (*given, *taken) == (conversion.given, conversion.taken)) {
                Some((.., areas)) => areas.push(conversion.area.to_string()),
                None => shown.push((conversion.given, conversion.taken, vec![conversion.area.to_string()])),
            }
        }
        for (given, taken, areas) in shown {
            let list = if areas.len() > 4 { format!("{} areas", areas.len()) } else { areas.join(", ") };
            text += &format!("  {given} became {taken}: {list}\n");
        }
        text
    };
    quantity("leak", &units.leak, "a fraction", "legacy: an amount of potential")
        + &quantity("excitability", &units.excitability, "a fraction", "legacy: percent")
        + &quantity("current", &units.current, "a whole number to 255", "legacy: any amount")
}
