//! `tectum replay`: a brain on the observations of a recorded run, and how its actions differ.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tectum::{Device, Error, ErrorKind, Result};
use tectum_control::brain::BrainSpec;
use tectum_control::brain::policy::spec::PolicySpec;
use tectum_control::recorded::{Recorded, RecordedReport};
use tectum_control::recording::Trace;
use tectum_control::replay::{Comparison, Recording, compare};
use tectum_control::run_folder::{SCENARIO_FILE, TRACE_FILE, read_scenario};
use tectum_control::scenario::Scenario;

use crate::receipt::{ReceiptArgs, line};
use crate::run::progress::Display;
use crate::table::{print_json, report, short, table};

/// Gives recorded observations to a brain, and compares its actions with the recorded ones.
///
/// A regression test of a brain on real data: the clock is simulated, and the body is not stepped.
/// Without options it is the brain of the run or the scenario. A recording of another robot needs a
/// scenario with [body] recording = "FILE.mcap", which maps its topics to channels.
#[derive(Args)]
pub struct ReplayArgs {
    /// A run folder, its trace.mcap, or a scenario whose body is a recording.
    #[arg(value_name = "RUN|SCENARIO.toml")]
    run: PathBuf,
    /// Another brain, by its name.
    #[arg(long)]
    brain: Option<String>,
    /// Another policy.
    #[arg(long, value_name = "POLICY.onnx", conflicts_with = "brain")]
    policy: Option<String>,
    /// The contract of a policy, if it is neither next to the file nor in its metadata.
    #[arg(long, value_name = "FILE.toml")]
    contract: Option<String>,
    /// A twin that `tectum train twin` wrote, which mppi plans with.
    #[arg(long, value_name = "TWIN.safetensors")]
    twin: Option<String>,
    /// Exit code 1 if an action differs by more than this share of its channel's range.
    #[arg(long, value_name = "SHARE")]
    within: Option<f64>,
    /// The device: cpu, null, cuda:N, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output<'c> {
    run: String,
    brain: &'static str,
    device: &'c str,
    within: Option<f64>,
    #[serde(flatten)]
    comparison: &'c Comparison,
    /// Of a recording of another robot.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<&'c RecordedReport>,
}

/// Runs the command.
///
/// # Errors
/// A folder without a scenario; errors of the recording, the brain and the device; `Mismatch` for
/// actions that differ by more than `--within`.
pub fn replay(args: &ReplayArgs) -> Result<()> {
    if let Some(within) = args.within.filter(|within| !(0.0..=1.0).contains(within)) {
        return Err(Error::invalid(format!(
            "--within is {within}, needs a share from 0 to 1"
        )));
    }
    let at = |error: Error| error.at(format_args!("replay {}", args.run.display()));
    let (scenario, recording) = if args.run.extension().is_some_and(|ending| ending == "toml") {
        let scenario = with_options(args, Scenario::read(&args.run)?)?;
        let recording = Recording::of_body(&scenario).map_err(at)?;
        (scenario, recording)
    } else {
        let (folder, trace) = files(&args.run);
        let scenario = with_options(args, run_scenario(args, &folder)?)?;
        let recording = Recording::of_run(&scenario, Trace::read(&trace)?).map_err(at)?;
        (scenario, recording)
    };
    let recorded = Recorded::of(&scenario.body).map(|recorded| recorded.report());
    let device = Device::open(&args.device)?;
    let display = Display::new();
    let compared = compare(&scenario, recording, &device, &mut display.watch());
    drop(display);
    let comparison = compared.map_err(at)?;
    args.receipt.save(&comparison.receipt)?;
    let brain = scenario.brain.name();
    let mut shown = recorded.map_or_else(String::new, recording_text);
    shown += &text(brain, &comparison);
    report(&shown, args.json)?;
    if args.json {
        print_json(&Output {
            run: args.run.display().to_string(),
            brain,
            device: &device.info().id,
            within: args.within,
            comparison: &comparison,
            recording: recorded,
        })?;
    }
    match args.within {
        Some(within) if comparison.max_of_range() > within => Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "replay {}: an action differs by {} of its range, --within is {within}",
                args.run.display(),
                short(comparison.max_of_range())
            ),
        )),
        _ => Ok(()),
    }
}

/// The folder of a run, and its recording.
fn files(run: &Path) -> (PathBuf, PathBuf) {
    if run.is_dir() {
        (run.to_owned(), run.join(TRACE_FILE))
    } else {
        let folder = run.parent().unwrap_or(Path::new("."));
        (folder.to_owned(), run.to_owned())
    }
}

/// The scenario of the run.
fn run_scenario(args: &ReplayArgs, folder: &Path) -> Result<Scenario> {
    if !folder.join(SCENARIO_FILE).is_file() {
        return Err(Error::invalid(format!(
            "replay {}: there is no {SCENARIO_FILE} next to the recording, which states body and \
             brain; for a recording of another robot name a scenario with [body] recording",
            args.run.display()
        )));
    }
    read_scenario(folder)
}

/// The scenario with the brain that the command line names.
fn with_options(args: &ReplayArgs, mut scenario: Scenario) -> Result<Scenario> {
    if let Some(brain) = &args.brain {
        scenario.set_brain(brain)?;
    }
    if let Some(policy) = &args.policy {
        scenario.brain = BrainSpec::Policy(Box::new(PolicySpec::of(policy)));
    }
    if let Some(contract) = &args.contract {
        scenario.brain.set_contract(contract)?;
    }
    if let Some(twin) = &args.twin {
        scenario.brain.set_twin(twin)?;
    }
    Ok(scenario)
}

/// How a recording of another robot became periods.
fn recording_text(recorded: &RecordedReport) -> String {
    let mut topics = vec![
        ["topic", "type", "messages", "rate (Hz)"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut channels = vec![
        [
            "channel",
            "topic",
            "messages",
            "gaps",
            "limit (s)",
            "longest (s)",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for topic in &recorded.contents.topics {
        topics.push(vec![
            topic.topic.clone(),
            topic.kind.clone(),
            topic.messages.to_string(),
            short(topic.rate_hz),
        ]);
    }
    for own in &recorded.channels {
        channels.push(vec![
            format!("{} {}", own.kind, own.channel),
            own.topic.clone(),
            own.messages.to_string(),
            own.gaps.to_string(),
            short(own.gap_limit_s),
            short(own.longest_s),
        ]);
    }
    format!(
        "{}\n{}\nrecording {}: {} messages in {} s; clock {}\n\
         {} periods of {} s: the latest message at or before the beginning of each, of an action \
         before its end\n\
         {} periods have a value that is older than its limit; {} s before the first period and \
         {} s after the last one are not used\n",
        table(&topics),
        table(&channels),
        recorded.file,
        recorded.contents.messages,
        short(recorded.contents.seconds),
        recorded.clock.name(),
        recorded.periods,
        short(recorded.period_s),
        recorded.stale_periods,
        short(recorded.skipped_before_s),
        short(recorded.skipped_after_s),
    )
}

fn text(brain: &str, comparison: &Comparison) -> String {
    let head = [
        "action",
        "max difference",
        "of the range",
        "at tick",
        "rms",
        "first other action",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for channel in &comparison.channels {
        let first = channel.first_tick;
        rows.push(vec![
            format!("{} ({})", channel.channel, channel.unit),
            short(channel.max),
            short(channel.max_of_range),
            channel.max_tick.to_string(),
            short(channel.rms),
            first.map_or_else(|| "none".to_owned(), |tick| tick.to_string()),
        ]);
    }
    let Comparison {
        compared,
        not_compared,
        gaps,
        ..
    } = comparison;
    let mut text = table(&rows);
    text += &format!(
        "brain {brain}: {compared} periods compared, {not_compared} without an answer of a brain, {gaps} missing in the recording\n"
    );
    text + &format!("{}\n", line(&comparison.receipt))
}
