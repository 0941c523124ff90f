//! `tectum explain`: the choices for a workload and their reasons.

mod genome;
mod model;
mod program;

use clap::{Args, Subcommand};
use serde::Serialize;
use tectum::route::{self, Calibration, Choice, Rates};
use tectum::{
    DType, DeviceInfo, Error, ErrorKind, GemmEpilogue, Matrix, Plan, PlanBuilder, Result,
};
use tectum_control::brain::Recipe;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body, open_device};

use crate::table::{bytes, print, print_json, table};
use crate::workload::Workload;

/// Explains what is chosen for a program, a genome or a model, and why.
///
/// For a lane-level program: what it was recognised as, what was refused and why, its WGSL and PTX.
/// For a genome: how its mappings are stored, what its state and scale depend on, and memory. For a
/// model: what each node of a run becomes, where and why, copies and memory.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExplainArgs {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    program: program::ProgramArgs,
    #[command(flatten)]
    genome: genome::GenomeArgs,
    #[command(flatten)]
    model: model::ModelArgs,
}

#[derive(Subcommand)]
enum Subject {
    Route(RouteArgs),
}

/// Shows the measured rates of each device, predicted times of a plan, and the choice of auto.
#[derive(Args)]
struct RouteArgs {
    /// A scenario, gemm:N (a product of N by N) or add:N (a sum of N elements).
    ///
    /// k and M are powers of two. Without it: the pendulum scenario, gemm:64, gemm:1024, add:1k and
    /// add:16M.
    #[arg(value_name = "SCENARIO|PLAN")]
    thing: Option<String>,
    /// Measures again, even if results are cached.
    #[arg(long)]
    recalibrate: bool,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What is explained by default.
const STANDARD: [&str; 5] = ["pendulum", "gemm:64", "gemm:1024", "add:1k", "add:16M"];
/// APIs that a device may be reached through.
const APIS: [&str; 4] = ["cuda", "vulkan", "metal", "dx12"];
/// The largest product and sum: what fits the plans' indices.
const MAX_SIDE: usize = 16_384;
const MAX_LEN: usize = 1 << 29;

#[derive(Serialize)]
struct Explanation {
    devices: Vec<Entry>,
    /// APIs without a device here.
    absent: Vec<String>,
    /// Where calibrations are stored.
    cache: Option<String>,
    choices: Vec<Choice>,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    name: String,
    software: bool,
    rates: Option<Rates>,
    error: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A scenario, plan or program that is unknown or not valid; a standard output that cannot be
/// written.
pub fn explain(args: &ExplainArgs) -> Result<()> {
    let program = &args.program;
    let file = match (&args.subject, &program.file) {
        (Some(Subject::Route(args)), _) => return explain_route(args),
        (None, Some(file)) => file,
        (None, None) => {
            return Err(Error::invalid(
                "explain: a program, a genome, a model or route is needed",
            ));
        }
    };
    let refuse = |option: Option<&str>, kind: &str, other: &str| match option {
        Some(option) => Err(Error::invalid(format!(
            "explain {}: {option} is for {kind}, and this is {other}",
            file.display()
        ))),
        None => Ok(()),
    };
    let kind = Workload::of(file)?;
    Workload::refuse_part_of_model(file)?;
    if kind != Workload::Program {
        refuse(program.given(), "programs", kind.name())?;
    }
    match kind {
        Workload::Model => {
            refuse(args.genome.given_of_network(), "genomes", kind.name())?;
            model::explain_model(file, args.genome.device(), &args.model, args.genome.json())
        }
        Workload::Genome => {
            refuse(args.model.given(), "models", kind.name())?;
            genome::explain_genome(file, &args.genome)
        }
        Workload::Program => {
            refuse(args.genome.given(), "genomes", kind.name())?;
            refuse(args.model.given(), "models", kind.name())?;
            program::explain_program(file, program)
        }
        Workload::Scenario => Err(Error::invalid(format!(
            "explain {0}: a scenario; tectum explain route {0} shows where it runs",
            file.display()
        ))),
        Workload::Twin | Workload::Plant | Workload::Policy | Workload::Recording => {
            Err(Error::invalid(format!(
                "explain {0}: {1}; tectum inspect {0} shows it",
                file.display(),
                kind.name()
            )))
        }
    }
}

fn explain_route(args: &RouteArgs) -> Result<()> {
    let things = args
        .thing
        .as_deref()
        .map_or(STANDARD.to_vec(), |thing| vec![thing]);
    let routed = things
        .into_iter()
        .map(routed)
        .collect::<Result<Vec<_>>>()?
        .concat();
    let path = route::default_path();
    let found = route::calibrate_all(path.as_deref(), args.recalibrate);
    let absent = APIS
        .iter()
        .filter(|api| found.iter().all(|(info, _)| info.api.name() != **api))
        .map(|api| (*api).to_owned());
    let known: Vec<Calibration> = found
        .iter()
        .filter_map(|(_, calibration)| calibration.as_ref().ok().cloned())
        .collect();
    let choices = routed.iter().map(|routed| match routed {
        Routed::Plan(name, plan) => Ok(Choice {
            plan: name.clone(),
            ..route::choose(&plan.work(), &known)?
        }),
        Routed::Tried(choice) => Ok(choice.clone()),
    });
    let choices = choices.collect::<Result<Vec<_>>>()?;
    let absent = absent.collect();
    let cache = path.map(|path| path.display().to_string());
    let explanation = Explanation {
        devices: found.into_iter().map(entry).collect(),
        absent,
        cache,
        choices,
    };
    if args.json {
        print_json(&explanation)
    } else {
        print(&text(&explanation))
    }
}

/// The workload that a name denotes.
#[derive(Clone)]
enum Routed {
    /// A plan, with its name.
    Plan(String, Plan),
    /// A brain without one, which was tried on each device.
    Tried(Choice),
}

/// The workload that a name denotes.
fn routed(thing: &str) -> Result<Vec<Routed>> {
    if let Some(side) = thing.strip_prefix("gemm:") {
        return Ok(vec![Routed::Plan(
            thing.to_owned(),
            product(size(thing, side, MAX_SIDE)?)?,
        )]);
    } else if let Some(len) = thing.strip_prefix("add:") {
        return Ok(vec![Routed::Plan(
            thing.to_owned(),
            sum(size(thing, len, MAX_LEN)?)?,
        )]);
    }
    let scenario = Scenario::open(thing).map_err(|error| match error.kind() {
        ErrorKind::Invalid => error.at("neither gemm:N nor add:N"),
        _ => error,
    })?;
    let recipe = brain_recipe(&scenario, build_body(&scenario)?.spec())?;
    let Recipe::Device(of_device) = &recipe else {
        return Err(Error::invalid(format!(
            "scenario {thing}: brain {} is plain host arithmetic; there is nothing to route",
            scenario.brain.name()
        )));
    };
    let Some(tick) = of_device.tick_plan() else {
        let (_, choice) = open_device(&scenario, &recipe)?;
        return Ok(choice
            .map(|choice| {
                Routed::Tried(Choice {
                    plan: format!("{thing}: trial ticks"),
                    ..choice
                })
            })
            .into_iter()
            .collect());
    };
    let plans = std::iter::once(("control tick", tick.clone())).chain(
        of_device
            .training_plan()?
            .map(|plan| ("training step", plan)),
    );
    Ok(plans
        .map(|(name, plan)| Routed::Plan(format!("{thing}: {name}"), plan))
        .collect())
}

fn size(thing: &str, text: &str, most: usize) -> Result<usize> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => text
            .strip_suffix('M')
            .map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let size = digits
        .parse::<usize>()
        .ok()
        .and_then(|size| size.checked_mul(scale))
        .filter(|size| (1..=most).contains(size));
    size.ok_or_else(|| Error::invalid(format!("plan {thing:?}: a size from 1 to {most} is needed")))
}

fn product(side: usize) -> Result<Plan> {
    let mut plan = PlanBuilder::new("gemm");
    let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, side * side));
    plan.gemm(
        Matrix::new(a, side, side),
        Matrix::new(b, side, side),
        y,
        GemmEpilogue::default(),
    )?;
    plan.finish()
}

fn sum(len: usize) -> Result<Plan> {
    let mut plan = PlanBuilder::new("add");
    let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, len));
    plan.binary("add", a, b, y)?;
    plan.finish()
}

fn entry((info, found): (DeviceInfo, Result<Calibration>)) -> Entry {
    let (rates, error) = match found {
        Ok(calibration) => (Some(calibration.rates), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Entry {
        id: info.id,
        name: info.name,
        software: info.software,
        rates,
        error,
    }
}

fn text(explanation: &Explanation) -> String {
    let head = [
        "device",
        "run",
        "launch",
        "transfer",
        "up/s",
        "down/s",
        "memory/s",
        "cached/s",
        "arithmetic",
        "a lane",
    ];
    let rows = explanation.devices.iter().map(|entry| match &entry.rates {
        Some(rates) => rates_row(entry, rates),
        None => vec![entry.id.clone(), entry.error.clone().unwrap_or_default()],
    });
    let mut text = table(&[vec![head.map(str::to_owned).to_vec()], rows.collect()].concat());
    for choice in &explanation.choices {
        text += &choice_text(choice);
    }
    text += &format!("\nabsent here: {}\n", explanation.absent.join(", "));
    text + &explanation
        .cache
        .as_ref()
        .map_or_else(String::new, |path| format!("kept in {path}\n"))
}

/// The device of a plan, and the prediction for each device.
pub fn choice_text(choice: &Choice) -> String {
    let rows = choice.predicted.iter().map(|prediction| {
        let seconds = prediction.seconds.map_or_else(|| "-".to_owned(), duration);
        let chosen = if prediction.device == choice.device {
            "chosen"
        } else {
            "slower"
        };
        let verdict = prediction
            .refused
            .clone()
            .unwrap_or_else(|| chosen.to_owned());
        vec![format!("  {}", prediction.device), seconds, verdict]
    });
    format!(
        "\n{} -> {}: {}\n{}",
        choice.plan,
        choice.device,
        choice.reason,
        table(&rows.collect::<Vec<_>>())
    )
}

fn rates_row(entry: &Entry, rates: &Rates) -> Vec<String> {
    let shared = |rate: Option<f64>| rate.map_or_else(|| "shared".to_owned(), bytes);
    let flops = |rate: f64| format!("{:.2} GFLOP/s", rate / 1e9);
    vec![
        if entry.software {
            format!("{} (software)", entry.id)
        } else {
            entry.id.clone()
        },
        duration(rates.run_s),
        duration(rates.launch_s),
        duration(rates.transfer_s),
        shared(rates.upload_bytes_per_s),
        shared(rates.download_bytes_per_s),
        bytes(rates.memory_bytes_per_s),
        bytes(rates.cached_bytes_per_s),
        flops(rates.flop_per_s),
        flops(rates.lane_flop_per_s),
    ]
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{:.2} us", seconds * 1e6),
    }
}
