//! `tectum run`: a scenario in its closed loop, from the command line to the run folder; a program
//! over arrays; or a genome.

mod frames;
mod genome;
mod live;
pub mod program;
pub mod progress;
mod summary;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tectum::snapshot::Snapshot;
use tectum::{Device, Error, InputFile, Result};
use tectum_control::body::equations::ENDING;
use tectum_control::body::{BODIES, Body};
use tectum_control::brain::{BrainSpec, Recipe, standard_names};
use tectum_control::clock::Clock;
use tectum_control::closed_loop::{
    ClosedLoop, End, Fault, Outcome, Progress, Sink, ThreadedSink, run_with_sink_thread,
};
use tectum_control::live::{Controls, PacedClock};
use tectum_control::real_time::{GrantedRealTime, MAX_PRIORITY, RealTime};
use tectum_control::run_folder::{
    RunFolder, RunSummary, SCENARIO_FILE, SNAPSHOT_FILE, read_scenario,
};
use tectum_control::scenario::build::{
    brain_recipe, build_body, build_loop, open_device, show_loop,
};
use tectum_control::scenario::{ClockKind, Scenario, embedded};
use tectum_programs::library_text;
use tectum_transformer::gguf_file;

use self::live::Shown;
use self::progress::Display;
use crate::interrupt::Interrupt;
use crate::messages;
use crate::plots::{self, slices::Film};
use crate::receipt::ReceiptArgs;
use crate::table::{print_json, report};
use crate::threads::ThreadsArgs;
use crate::workload::Workload;

/// Runs a brain or a trained policy on a body, a program over arrays in files, or a genome's
/// spiking network.
#[derive(Args)]
pub struct RunArgs {
    /// A scenario, or a file: a plant (.plant), a policy (.onnx), a program (.atlas), a genome
    /// (.json).
    ///
    /// Short names: those of scenarios/ in the working directory, and the built-in ones
    /// (`tectum scenario list`). A program that is no file may be a built-in one.
    #[arg(required_unless_present = "resume")]
    scenario: Option<String>,
    #[command(flatten)]
    program: program::ProgramArgs,
    #[command(flatten)]
    genome: genome::GenomeArgs,
    /// Length of the run in the body's time, counted from tick 0.
    #[arg(long)]
    seconds: Option<f64>,
    /// Seed of starts, noise and training: 0 of a genome, else that of the scenario, if not given.
    ///
    /// A scenario without a seed has 1. The maximum is 9223372036854775807 (2^63 - 1).
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// The device: auto, cpu, null, cuda:N, vulkan:N, metal:N or dx12:N.
    ///
    /// auto is the device that a tick is fastest on: predicted, or tried for a genome and a field.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// The clock: the machine's, or simulated time that runs as fast as possible and meets every
    /// deadline.
    #[arg(long)]
    clock: Option<ClockArg>,
    /// Priority of the loop's threads under SCHED_FIFO, 1 to 99: no ordinary thread preempts them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_PRIORITY)))]
    priority: Option<u8>,
    /// Locks the memory in use when the loop begins, so that it is not swapped out.
    #[arg(long)]
    lock_memory: bool,
    #[arg(long, help = format!("Another brain: {}.", standard_names().collect::<Vec<_>>().join(", ")))]
    brain: Option<String>,
    #[arg(long, help = body_help())]
    body: Option<String>,
    /// The contract of a policy, if it is neither next to the file nor in its metadata.
    #[arg(long, value_name = "FILE.toml")]
    contract: Option<String>,
    /// A recording of the rig to train the twin on.
    #[arg(long, value_name = "RIG.CSV")]
    data: Option<String>,
    /// A twin that `tectum train twin` wrote, which mppi plans with.
    #[arg(long, value_name = "TWIN.safetensors", conflicts_with = "data")]
    twin: Option<String>,
    /// Continues from the snapshot in this run folder; of a genome, from a snapshot file.
    ///
    /// The folder's scenario is used unless another is named.
    #[arg(long, value_name = "DIR|FILE")]
    resume: Option<PathBuf>,
    /// The folder in which run folders are created.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Prints the result as one line of JSON; the report for people goes to standard error.
    #[arg(long)]
    json: bool,
    /// Times each launch of one more tick after the run, for the receipt.
    #[arg(long)]
    trace: bool,
    /// Injects a fault at T seconds of the loop; may be repeated.
    ///
    /// device-lost@T, nan@T and slow@T are faults of the brain; sensor-lost@T and sensor-stuck@T
    /// last ten periods, sensor-outlier@T one; stop@T presses the emergency stop; push@T pushes a
    /// MuJoCo body as its [body.push] states.
    #[arg(long, value_name = "FAULT@T")]
    inject: Vec<String>,
    #[command(flatten)]
    frames: frames::FrameArgs,
    #[command(flatten)]
    live: live::LiveArgs,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Draws no plots.
    #[arg(long)]
    no_plots: bool,
}

fn body_help() -> String {
    let [others @ .., last] = BODIES.map(|body| body.name);
    format!(
        "Another body: {}, {last}, FILE.plant, mujoco:SCENE.xml, or ws://HOST:PORT",
        others.join(", ")
    )
}

#[derive(Clone, Copy, ValueEnum)]
enum ClockArg {
    Real,
    Sim,
}

/// Runs the command.
///
/// # Errors
/// Any error of the scenario, the files and the device. Before the first tick nothing is left on
/// disk; after a later fault the run folder is still completed.
pub fn run(args: &RunArgs) -> Result<()> {
    args.threads.apply()?;
    let (path, kind) = match args.scenario.as_deref() {
        Some(path) => {
            let kind = Workload::of(Path::new(path))?;
            Workload::refuse_part_of_model(Path::new(path))?;
            (path, kind)
        }
        None => ("", Workload::Scenario),
    };
    if kind == Workload::Scenario && !path.is_empty() {
        require_scenario(path)?;
    }
    let of_others = |option: Option<&str>, of: &str| match option {
        Some(option) if path.is_empty() => {
            Err(Error::invalid(format!("run: {option} is for {of}")))
        }
        Some(option) => Err(Error::invalid(format!(
            "run {path}: {option} is for {of}, and this is {}",
            kind.name()
        ))),
        None => Ok(()),
    };
    if kind != Workload::Program {
        of_others(args.program.given(), "programs")?;
    }
    if kind != Workload::Genome {
        if kind == Workload::Scenario
            && let Some(option) = args.genome.observed()
            && let Some(genome) = genome_of(path)
        {
            let instead =
                format!("the genome of its brain can run alone: tectum run {genome} {option} …");
            return Err(Error::invalid(format!(
                "run {path}: {option} is for genomes, and this is a scenario; {instead}"
            )));
        }
        of_others(args.genome.given(), "genomes")?;
    }
    match kind {
        Workload::Scenario => run_scenario(args),
        Workload::Program => {
            of_others(
                of_scenarios(args)
                    .or(args.live.given())
                    .or(args.seed.map(|_| "--seed"))
                    .or(args.resume.as_ref().map(|_| "--resume")),
                "scenarios",
            )?;
            program::run(path, args)
        }
        Workload::Genome => of_others(of_scenarios(args), "scenarios")
            .and_then(|()| genome::run(Path::new(path), args)),
        Workload::Model => Err(Error::invalid(format!(
            "run {path}: {}",
            of_model(Path::new(path))?
        ))),
        Workload::Twin => Err(Error::invalid(format!(
            "run {path}: a twin; a scenario's brain plans with it, --twin {path}"
        ))),
        Workload::Recording => Err(Error::invalid(format!(
            "run {path}: a recording; it is the body of a scenario, [body] recording = \"{path}\""
        ))),
        Workload::Plant if args.body.is_some() => Err(Error::invalid(format!(
            "run {path}: --body is for scenarios, and this is {}",
            kind.name()
        ))),
        Workload::Policy if args.body.is_none() => {
            let bodies = BODIES.map(|body| body.name).join(", ");
            Err(Error::invalid(format!(
                "run {path}: a policy runs on a body: --body NAME, --body FILE.plant or --body mujoco:SCENE.xml; there are {bodies}"
            )))
        }
        Workload::Policy if args.brain.is_some() => Err(Error::invalid(format!(
            "run {path}: --brain is for scenarios, and this is a policy"
        ))),
        Workload::Plant | Workload::Policy => run_scenario(args),
    }
}

/// Rejects a name that is neither a file nor a scenario, with the file that is probably meant.
fn require_scenario(name: &str) -> Result<()> {
    let is_path = name.contains(['/', std::path::MAIN_SEPARATOR]) || name.ends_with(".toml");
    let is_known = embedded().any(|(known, _)| known == name)
        || Path::new(&format!("scenarios/{name}.toml")).is_file();
    if is_path || is_known {
        return Ok(());
    }
    let near = ["toml", "json", "atlas"].map(|ending| format!("{name}.{ending}"));
    let is_program = |file: &String| {
        file.strip_suffix(".atlas")
            .is_some_and(|name| library_text(name).is_some())
    };
    match near
        .into_iter()
        .find(|file| Path::new(file).is_file() || is_program(file))
    {
        Some(file) => Err(Error::invalid(format!(
            "run {name}: there is no such file or scenario; perhaps {file}"
        ))),
        None => Scenario::open(name)
            .map(|_| ())
            .map_err(|error| error.at(format_args!("run {name}: there is no such file"))),
    }
}

/// The genome of a scenario's brain, if it is one.
fn genome_of(scenario: &str) -> Option<String> {
    match Scenario::open(scenario).ok()?.brain {
        BrainSpec::Genome(spec) => Some(spec.genome),
        _ => None,
    }
}

/// What else to do with a path that may be a model's.
fn of_model(path: &Path) -> Result<String> {
    let shown = path.display();
    Ok(if path.join(SCENARIO_FILE).exists() {
        format!(
            "it is the folder of a run; --resume {shown} continues it, tectum plot {shown} draws it"
        )
    } else if path.is_dir() && !path.join("config.json").exists() && gguf_file(path)?.is_none() {
        "it is a folder; a scenario, a program or a genome is a file".to_owned()
    } else {
        "it is a model; tectum generate and tectum embed run it".to_owned()
    })
}

fn run_scenario(args: &RunArgs) -> Result<()> {
    let scenario = effective_scenario(args)?;
    let faults = args
        .inject
        .iter()
        .map(|text| text.parse())
        .collect::<Result<Vec<Fault>>>()?;
    let resumed_from = args
        .resume
        .as_deref()
        .map(|folder| InputFile::of(&folder.join(SNAPSHOT_FILE)))
        .transpose()?;
    let resumed = args
        .resume
        .as_deref()
        .map(|folder| Snapshot::load(&folder.join(SNAPSHOT_FILE)))
        .transpose()?;
    let shown = args.live.begin(scenario.run.clock)?;
    let body = build_body(&scenario)?;
    let recipe = brain_recipe(&scenario, body.spec())?;
    let device = if args.device == "auto" {
        open_device(&scenario, &recipe)?.0
    } else {
        Device::open(&args.device)?
    };
    let mut display = Display::new();
    let mut closed_loop = build(&scenario, body, recipe, &device, &mut display)?;
    let resumed_at_tick = match &resumed {
        Some(snapshot) => {
            resumed_from
                .into_iter()
                .for_each(|input| closed_loop.add_input_file(input));
            closed_loop.restore(snapshot)?
        }
        None => 0,
    };
    closed_loop.inject(&faults)?;
    closed_loop.trace_at_end(args.trace);
    let mut folder = RunFolder::create(&args.runs, &scenario, &mut closed_loop)?;
    args.frames.begin(&mut closed_loop, folder.path())?;
    let film = folder.path().join("field.gif");
    if let Some(shown) = &shown {
        show_loop(&scenario, &mut closed_loop, &shown.live)?;
    }
    let interrupt = Interrupt::watch()?;
    let (outcome, granted) = loop_until_done(
        &mut closed_loop,
        &scenario,
        &mut folder,
        (&display, shown.as_ref(), &interrupt),
        (!args.no_plots).then_some(&film),
    )?;
    let summary = RunSummary::new(
        &scenario,
        &outcome,
        granted,
        resumed_at_tick,
        folder.complete_path(),
    );
    args.frames.end(folder.path())?;
    finish_folder(folder, &outcome, &summary, !args.no_plots)?;
    args.receipt.save(&outcome.receipt)?;
    report(&summary::text(&summary, &outcome), args.json)?;
    if args.json {
        print_json(&summary)?;
    }
    shown.map_or(Ok(()), |shown| {
        shown.end(&summary, &outcome.receipt, &interrupt)
    })?;
    match outcome.end {
        End::Completed | End::Interrupted => Ok(()),
        End::Failed(error) => Err(error.at(format_args!(
            "run stopped at tick {}",
            outcome.metrics.ticks
        ))),
    }
}

/// The first given option that does not apply to a program.
fn of_scenarios(args: &RunArgs) -> Option<&'static str> {
    let given = [
        ("--seconds", args.seconds.is_some()),
        ("--clock", args.clock.is_some()),
        ("--priority", args.priority.is_some()),
        ("--lock-memory", args.lock_memory),
        ("--brain", args.brain.is_some()),
        ("--body", args.body.is_some()),
        ("--contract", args.contract.is_some()),
        ("--data", args.data.is_some()),
        ("--twin", args.twin.is_some()),
        ("--trace", args.trace),
        ("--inject", !args.inject.is_empty()),
        ("--no-plots", args.no_plots),
    ];
    given
        .into_iter()
        .find_map(|(name, is_given)| is_given.then_some(name))
        .or(args.frames.given())
}

/// The scenario with the command line's changes.
fn effective_scenario(args: &RunArgs) -> Result<Scenario> {
    let mut scenario = match (&args.scenario, &args.resume) {
        (Some(name), _) if name.ends_with(ENDING) => Scenario::of_plant(name)?,
        (Some(name), _) if name.ends_with(".onnx") => {
            Scenario::of_policy(name, args.body.as_deref().unwrap_or_default())?
        }
        (Some(name), _) => Scenario::open(name)?,
        (None, Some(folder)) => read_scenario(folder)?,
        (None, None) => return Err(Error::invalid("run: a scenario is needed")),
    };
    for warning in &scenario.warnings {
        messages::warning(warning);
    }
    args.body
        .as_deref()
        .map_or(Ok(()), |name| scenario.set_body(name))?;
    let equations = scenario.body.equations();
    equations
        .iter()
        .flat_map(|(system, _)| system.warnings())
        .for_each(messages::warning);
    args.brain
        .as_deref()
        .map_or(Ok(()), |name| scenario.set_brain(name))?;
    args.contract
        .as_deref()
        .map_or(Ok(()), |path| scenario.brain.set_contract(path))?;
    args.data
        .as_deref()
        .map_or(Ok(()), |path| scenario.brain.set_data(path))?;
    args.twin
        .as_deref()
        .map_or(Ok(()), |path| scenario.brain.set_twin(path))?;
    args.seconds
        .map_or(Ok(()), |seconds| scenario.set_seconds(seconds))?;
    scenario.run.seed = args.seed.unwrap_or(scenario.run.seed);
    match args.clock {
        Some(ClockArg::Real) => scenario.set_clock(ClockKind::Real),
        Some(ClockArg::Sim) => scenario.set_clock(ClockKind::Sim),
        None => {}
    }
    let asked = scenario.run.real_time;
    scenario.set_real_time(RealTime {
        priority: args.priority.or(asked.priority),
        lock_memory: args.lock_memory || asked.lock_memory,
    })?;
    args.resume
        .as_deref()
        .map_or(Ok(()), |folder| check_resumed(&scenario, folder))?;
    Ok(scenario)
}

/// A state is only valid for the body and brain that it was taken from.
fn check_resumed(scenario: &Scenario, folder: &Path) -> Result<()> {
    let before = read_scenario(folder)?;
    let (was, is) = (
        (&before.body.name, before.brain.name()),
        (&scenario.body.name, scenario.brain.name()),
    );
    if was != is || before.run.seed != scenario.run.seed {
        return Err(Error::invalid(format!(
            "resume {}: it ran {} on {} with seed {}, not {} on {} with seed {}",
            folder.display(),
            was.1,
            was.0,
            before.run.seed,
            is.1,
            is.0,
            scenario.run.seed
        )));
    } else if before.body.text() != scenario.body.text() {
        let (folder, file) = (folder.display(), is.0);
        return Err(Error::invalid(format!(
            "resume {folder}: {file} has changed since; tectum run --resume {folder} alone continues with the file as it was"
        )));
    }
    Ok(())
}

fn build(
    scenario: &Scenario,
    body: Box<dyn Body>,
    recipe: Recipe,
    device: &Device,
    display: &mut Display,
) -> Result<ClosedLoop> {
    let closed_loop = build_loop(scenario, body, recipe, device, &mut display.watch())?;
    display.set_measure(closed_loop.measure().cloned());
    Ok(closed_loop)
}

fn loop_until_done(
    closed_loop: &mut ClosedLoop,
    scenario: &Scenario,
    folder: &mut RunFolder,
    (display, shown, interrupt): (&Display, Option<&Shown>, &Interrupt),
    film: Option<&Path>,
) -> Result<(Outcome, Option<GrantedRealTime>)> {
    let controls = shown.map(|shown| shown.live.controls());
    let is_stopped = || controls.is_some_and(Controls::is_stopped);
    let body = closed_loop.body_spec().clone();
    let mut work = |sink: &mut ThreadedSink<'_>, show: &(dyn Fn(&Progress) + Sync)| {
        scenario.run.real_time.run(|| {
            let is_over = || interrupt.is_raised();
            let mut clock: Box<dyn Clock + '_> = match (scenario.run.clock, controls) {
                (ClockKind::Sim, Some(controls)) => {
                    Box::new(PacedClock::new(controls.clone(), &is_over))
                }
                (clock, _) => clock.start(),
            };
            closed_loop.run(clock.as_mut(), sink, &mut |progress: &Progress| {
                show(progress);
                match is_stopped() {
                    true => ControlFlow::Break(()),
                    false => interrupt.flow(),
                }
            })
        })
    };
    let mut run = |sink: &mut (dyn Sink + Send)| {
        display.run_with_display(|show| run_with_sink_thread(sink, &body, |sink| work(sink, show))?)
    };
    let Some(path) = film else { return run(folder) };
    let mut film = Film::new(folder, scenario.run.snapshot_every);
    let ran = run(&mut film);
    // A picture that cannot be drawn is reported and has no other effect.
    if let (Ok(_), Err(error)) = (&ran, film.write(path)) {
        messages::warning(format_args!("plots: {error}"));
    }
    ran
}

/// Writes the remaining files. A plot that cannot be drawn is reported and has no other effect.
fn finish_folder(
    mut folder: RunFolder,
    outcome: &Outcome,
    summary: &RunSummary,
    has_plots: bool,
) -> Result<()> {
    folder.write(outcome, summary)?;
    if has_plots && let Err(error) = plots::draw(folder.path(), folder.path()) {
        messages::warning(format_args!("plots: {error}"));
    }
    folder.complete().map(|_| ())
}
