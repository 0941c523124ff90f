//! `tectum run GENOME.json`: a genome as a spiking network, burst after burst.

mod observe;
mod plot;
mod raster;
mod spikes;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tectum::route::Choice;
use tectum::snapshot::Snapshot;
use tectum::{Error, Receipt, Result};
use tectum_control::clock::ClockKind;
use tectum_control::live::About;
use tectum_spiking::genome::{AreaRole, Genome};
use tectum_spiking::{
    ConnectedNetwork, MemoryReport, PlasticSynapse, Simulation, SimulationOptions, SpikeCounts,
    Stimulus, mapping_outcomes,
};

use self::observe::{ObserveArgs, Observer};
use super::RunArgs;
use super::live::Shown;
use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::interrupt::Interrupt;
use crate::messages;
use crate::network_args::NetworkArgs;
use crate::progress::{Bar, Unit};
use crate::receipt::line;
use crate::table::{self, print, print_json};

/// Time between snapshots if no number of bursts is given.
const SNAPSHOT_PERIOD: Duration = Duration::from_secs(5);

/// Maximum number of areas that a note names.
const MAX_NAMES: usize = 4;

/// Maximum number of changes of units that a note gives.
const MAX_CHANGES: usize = 3;

/// What only genomes take.
#[derive(Args)]
pub struct GenomeArgs {
    /// Of a genome: the number of the last burst; 1000 if not given.
    ///
    /// A resumed run continues from the burst of its snapshot up to this one.
    #[arg(long)]
    bursts: Option<u32>,
    #[command(flatten)]
    network: NetworkArgs,
    /// Of a genome: the probability that a neuron of an input area gets a stimulus in a burst, 0 to 1.
    ///
    /// Draws are independent for each neuron and burst, and the same for a seed. All input areas
    /// have the same probability.
    #[arg(long, value_name = "PART")]
    stimulus: Option<f64>,
    /// Of a genome: what a stimulated neuron gets, in units of potential as thresholds are; 1 if
    /// not given.
    #[arg(
        long,
        value_name = "AMOUNT",
        requires = "stimulus",
        allow_negative_numbers = true
    )]
    amplitude: Option<f32>,
    /// Of a genome: the file for its state, during the run and at the end, to continue with
    /// --resume FILE.
    #[arg(long, value_name = "FILE.safetensors", value_parser = FileEnding(&["safetensors"]))]
    snapshot: Option<PathBuf>,
    /// Of a genome: bursts between snapshots; every five seconds if not given.
    #[arg(long, value_name = "BURSTS", requires = "snapshot", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    #[command(flatten)]
    observe: ObserveArgs,
}

impl GenomeArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--bursts", self.bursts.is_some()),
            ("--stimulus", self.stimulus.is_some()),
            ("--amplitude", self.amplitude.is_some()),
            ("--snapshot", self.snapshot.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
            .or(self.network.first_given_option())
            .or(self.observed())
    }

    /// The first option that observes firings.
    pub fn observed(&self) -> Option<&'static str> {
        self.observe.given()
    }
}

/// The result, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    kind: &'static str,
    genome: &'a str,
    device: String,
    shards: u32,
    neurons: u32,
    synapses: u64,
    /// The fewest binary places of a potential.
    fraction_bits: u32,
    max_fraction_bits: u32,
    /// Bursts of this run; the others are those of a run before that it continued.
    ran: u32,
    bursts: u32,
    spikes: u64,
    events: u64,
    spike_hash: String,
    seconds: f64,
    /// None if nothing was executed, like the next field.
    bursts_per_s: Option<f64>,
    events_per_s: Option<f64>,
    plastic: Option<PlasticReport>,
    memories: Vec<MemoryLine>,
    notes: &'a [String],
    /// How `auto` chose the device.
    route: Option<Choice>,
    receipt: Receipt,
    /// `completed` or `interrupted`.
    end: &'static str,
}

/// Summary of plastic synapses.
#[derive(Serialize)]
struct PlasticReport {
    synapses: usize,
    mean_weight: f64,
    /// With a weight of 0, so that they send nothing.
    silent: usize,
    /// With the maximum weight.
    full: usize,
}

/// Contents of a memory area.
#[derive(Serialize)]
struct MemoryLine {
    area: String,
    #[serde(flatten)]
    memory: MemoryReport,
}

/// Runs the command.
///
/// # Errors
/// An invalid genome, and what the device reports.
pub fn run(path: &Path, args: &RunArgs) -> Result<()> {
    let seed = args.seed.unwrap_or(0);
    let read = [
        &[path.to_owned()][..],
        &args.resume.clone().map_or(Vec::new(), |file| vec![file]),
    ]
    .concat();
    let inputs = args.receipt.inputs(args.json, || Ok(read))?;
    let shown = args.live.begin(ClockKind::Sim)?;
    let (
        genome,
        ConnectedNetwork {
            network,
            constant_inputs,
            memories,
            notes,
            ..
        },
    ) = args.genome.network.connect(path, seed)?;
    let network = Arc::new(network);
    let stimulus = Stimulus::new(&genome, args.genome.stimulus.unwrap_or(0.0), seed)
        .map_err(|error| error.at("--stimulus"))?;
    let stimulus = args
        .genome
        .amplitude
        .map_or(Ok(stimulus.clone()), |amount| stimulus.with_amount(amount))
        .and_then(|stimulus| stimulus.check(&network).map(|()| stimulus))
        .map_err(|error| error.at("--amplitude"))?;
    let warnings: Vec<String> = notes
        .into_iter()
        .chain(stimulus_warnings(&genome, &args.genome))
        .collect();
    warnings.iter().for_each(messages::warning);
    let notes: Vec<String> = stimulus
        .is_none()
        .then(|| without_input(&genome))
        .flatten()
        .into_iter()
        .chain(unit_notes(&genome))
        .chain((network.plastic_synapses() > 0).then(|| genome.weight_loss().note()))
        .collect();
    let options = SimulationOptions {
        constant_inputs,
        max_inputs: stimulus.max_inputs(),
        ..SimulationOptions::default()
    };
    let (devices, choice) =
        args.genome
            .network
            .devices(&args.device, &network, &options, &stimulus)?;
    let mut simulation = Simulation::sharded(network.clone(), &devices, &options)?;
    if let Some(file) = &args.resume {
        simulation
            .restore(&Snapshot::load(file)?)
            .map_err(|error| error.at(file.display()))?;
    }

    let end = args.genome.bursts.unwrap_or(1000);
    let first = simulation.counts();
    let mut observer = Observer::new(
        &genome,
        args,
        (&*network, memories.as_slice()),
        first.bursts..end.max(first.bursts),
    )?;
    let interrupt = Interrupt::watch()?;
    if let Some(shown) = &shown {
        show(shown, &genome, &simulation, end)?;
        observer = observer.with_page(&shown.live, &genome, &interrupt);
    }
    let start = Instant::now();
    let advanced = advance(
        &mut simulation,
        &stimulus,
        &mut observer,
        end,
        (&args.genome, &interrupt),
    );
    let seconds = start.elapsed().as_secs_f64();
    // Observations before a failure are saved too.
    let observed = observer.finish();
    let counts = advanced?;
    observed?;
    let receipt = Receipt {
        inputs,
        ..simulation.session().receipt()
    };
    args.receipt.save(&receipt)?;
    let synapses = if receipt.device.executes() {
        simulation.plastic_synapses()?
    } else {
        Vec::new()
    };
    let outcomes = mapping_outcomes(&genome, &network, &memories, &synapses);
    outcomes.iter().for_each(messages::warning);
    let notes = [notes, outcomes].concat();
    let rate = |count: f64| receipt.device.executes().then(|| count / seconds);
    let report = Report {
        kind: "genome",
        genome: genome.title(),
        device: devices[0].info().id.clone(),
        shards: devices.len() as u32,
        neurons: network.neurons(),
        synapses: network.synapses(),
        fraction_bits: *network.fraction_bits().start(),
        max_fraction_bits: *network.fraction_bits().end(),
        ran: counts.bursts - first.bursts,
        bursts: counts.bursts,
        spikes: counts.spikes,
        events: counts.events,
        spike_hash: format!("{:016x}", counts.spike_hash),
        seconds,
        bursts_per_s: rate(f64::from(counts.bursts - first.bursts)),
        events_per_s: rate((counts.events - first.events) as f64),
        plastic: plastic(&synapses),
        memories: if receipt.device.executes() {
            simulation.memories()?
        } else {
            Vec::new()
        }
        .into_iter()
        .zip(&memories)
        .map(|(memory, area)| MemoryLine {
            area: genome.areas()[*area].id.to_string(),
            memory,
        })
        .collect(),
        notes: &[&warnings[..], &notes].concat(),
        route: choice,
        receipt,
        end: if counts.bursts < end {
            "interrupted"
        } else {
            "completed"
        },
    };
    table::report(&text(path, &report, &genome, &notes), args.json)?;
    let printed = match (
        args.json,
        messages::is_quiet() && report.receipt.device.executes(),
    ) {
        (true, _) => print_json(&report),
        (false, true) => print(&result(&report)),
        (false, false) => Ok(()),
    };
    shown.map_or(Ok(()), |shown| {
        shown.end(&report, &report.receipt, &interrupt)
    })?;
    printed
}

/// Describes the run to those who watch.
fn show(shown: &Shown, genome: &Genome, simulation: &Simulation, end: u32) -> Result<()> {
    let session = simulation.session();
    let receipt = serde_json::to_value(session.receipt())
        .map_err(|source| Error::data("--live: the receipt").with_source(source))?;
    shown.live.set_device(session.device());
    shown.live.set_about(About {
        title: genome.title().to_owned(),
        workload: json!({ "genome": genome.title() }),
        steps: Some(end.into()),
        receipt,
        summary: None,
    });
    Ok(())
}

/// The result of a run in two lines.
fn result(report: &Report<'_>) -> String {
    let Report {
        bursts,
        spikes,
        events,
        spike_hash,
        ..
    } = report;
    format!("{bursts} bursts, {spikes} spikes, {events} synaptic events\nspike hash {spike_hash}\n")
}

/// Options of the stimulus that have no effect, or not the expected one.
fn stimulus_warnings(genome: &Genome, args: &GenomeArgs) -> Vec<String> {
    let has_input = genome
        .areas()
        .iter()
        .any(|area| area.role == AreaRole::Input);
    let is_asked = args.stimulus.is_some_and(|part| part > 0.0);
    let nowhere = (is_asked && !has_input).then(|| {
        "no input area: --stimulus has no effect; an input area has the group IPU".to_owned()
    });
    let amount = args
        .amplitude
        .filter(|amount| is_asked && has_input && *amount <= 0.0);
    let powerless = amount.map(|amount| format!("--amplitude {amount}: it raises no potential, so that the stimulus makes no neuron fire"));
    nowhere.into_iter().chain(powerless).collect()
}

/// What became of values in legacy units; the first changes of each quantity, or all with
/// `--verbose`.
fn unit_notes(genome: &Genome) -> Vec<String> {
    let max_changes = if messages::is_verbose() {
        usize::MAX
    } else {
        MAX_CHANGES
    };
    let has_more = genome
        .units()
        .quantities()
        .iter()
        .any(|(.., report)| report.changes().len() > max_changes);
    let more =
        has_more.then(|| "units: --verbose gives every change, as tectum inspect does".to_owned());
    genome
        .units()
        .notes(max_changes)
        .into_iter()
        .chain(more)
        .collect()
}

/// The note that nothing reaches the input areas, if there are any.
fn without_input(genome: &Genome) -> Option<String> {
    let areas = || {
        genome
            .areas()
            .iter()
            .filter(|area| area.role == AreaRole::Input)
    };
    let (names, neurons) = (
        areas().map(|area| area.id.to_string()).collect::<Vec<_>>(),
        areas().map(|area| area.neurons.len()).sum::<usize>(),
    );
    let shown = if names.len() > MAX_NAMES {
        format!(
            "{} and {} more",
            names[..MAX_NAMES].join(", "),
            names.len() - MAX_NAMES
        )
    } else {
        names.join(", ")
    };
    (!names.is_empty()).then(|| {
        format!(
            "no input: nothing reached the {neurons} neurons of the input areas ({shown}); --stimulus 0.1 stimulates a tenth of them at random in each burst"
        )
    })
}

fn plastic(synapses: &[PlasticSynapse]) -> Option<PlasticReport> {
    let weights: Vec<u8> = synapses.iter().map(|synapse| synapse.weight).collect();
    let count = |weight: u8| weights.iter().filter(|other| **other == weight).count();
    let mean =
        || weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / weights.len() as f64;
    (!weights.is_empty()).then(|| PlasticReport {
        synapses: weights.len(),
        mean_weight: mean(),
        silent: count(0),
        full: count(u8::MAX),
    })
}

/// Runs up to a burst, or until the run is interrupted, with intermediate snapshots if requested.
fn advance(
    simulation: &mut Simulation,
    stimulus: &Stimulus,
    observer: &mut Observer,
    end: u32,
    (args, interrupt): (&GenomeArgs, &Interrupt),
) -> Result<SpikeCounts> {
    let (bar, mut saved) = (
        if observer.is_live() {
            Bar::hidden()
        } else {
            Bar::new(Unit::Steps)
        },
        Instant::now(),
    );
    let mut is_stopped = false;
    while simulation.counts().bursts < end && !interrupt.is_raised() && !is_stopped {
        let done = simulation.counts().bursts;
        let until = args.every.map_or(end, |every| {
            (done / every + 1).saturating_mul(every).min(end)
        });
        let is_due = || {
            args.snapshot.is_some() && args.every.is_none() && saved.elapsed() >= SNAPSHOT_PERIOD
        };
        let mut watch = |counts: SpikeCounts| {
            bar.show(
                counts.bursts.into(),
                end.into(),
                format!("bursts, {} spikes", counts.spikes),
            );
            if is_due() {
                ControlFlow::Break(())
            } else {
                interrupt.flow()
            }
        };
        let is_at_once = stimulus.is_none() && !observer.has_page();
        if is_at_once {
            observer.run(simulation, until - done, &mut watch)?;
        }
        while !is_at_once && simulation.counts().bursts < until {
            let burst = simulation.counts().bursts;
            is_stopped = observer.wait(burst);
            if is_stopped || interrupt.is_raised() {
                break;
            }
            if !stimulus.is_none() {
                simulation.stimulate(&stimulus.of(burst + 1))?;
            }
            if watch(observer.run(simulation, 1, &mut |_| ControlFlow::Continue(()))?).is_break() {
                break;
            }
        }
        if let Some(file) = &args.snapshot {
            simulation.snapshot()?.save(file)?;
            saved = Instant::now();
        }
    }
    Ok(simulation.counts())
}

fn text(path: &Path, report: &Report<'_>, genome: &Genome, notes: &[String]) -> String {
    let Report {
        neurons,
        synapses,
        shards,
        fraction_bits,
        max_fraction_bits,
        seconds,
        ..
    } = report;
    let [neurons, synapses, shards] = [
        counted(neurons, "neuron"),
        counted(synapses, "synapse"),
        counted(shards, "shard"),
    ];
    let places = match (fraction_bits, max_fraction_bits) {
        (first, last) if first == last => counted(first, "binary place"),
        (first, last) => format!("{first} to {last} binary places"),
    };
    let mut text = format!(
        "{}: {neurons}, {synapses} in {shards}, potentials of {places}\n",
        path.display()
    );
    text += &format!("{}\n", line(&report.receipt));
    if let Some(choice) = &report.route {
        text += &format!("auto chose {}: {}\n", choice.device, choice.reason);
    }
    if let (Some(bursts_per_s), Some(events_per_s)) = (report.bursts_per_s, report.events_per_s) {
        let times = bursts_per_s * genome.physiology().timestep_s;
        text += &format!(
            "{} in {seconds:.3} s, {bursts_per_s:.0} a second ({times:.0} times real time); ",
            counted(report.ran, "burst")
        );
        let events_per_s = if events_per_s > 0.0 {
            format!(", {events_per_s:.3e} a second")
        } else {
            String::new()
        };
        let (spikes, events) = (
            counted(report.spikes, "spike"),
            counted(report.events, "synaptic event"),
        );
        text += &format!(
            "{spikes}, {events}{events_per_s}\nspike hash {}\n",
            report.spike_hash
        );
    }
    if let Some(PlasticReport {
        synapses,
        mean_weight,
        silent,
        full,
    }) = &report.plastic
    {
        text += &format!(
            "plastic synapses: {synapses}, weights {mean_weight:.1} on average; {silent} at 0, {full} at 255 (maximum)\n"
        );
    }
    for MemoryLine { area, memory } in &report.memories {
        text += &format!(
            "memory {area}: {}, {} permanent; {} formed, {} lost because no neuron was free\n",
            counted(memory.patterns, "pattern"),
            memory.longterm,
            memory.formed,
            memory.lost
        );
    }
    if report.end != "completed" {
        text += "interrupted: it ended before its last burst\n";
    }
    for note in genome.warnings().iter().chain(notes) {
        text += &format!("note: {note}\n");
    }
    text
}
