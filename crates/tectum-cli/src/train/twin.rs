//! `tectum train twin`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tectum::{Device, Error, InputFile, Receipt, Result, Session};
use tectum_control::body::rig::identification::identify;
use tectum_control::rig_csv::RigRecording;
use tectum_control::twin::{
    Ensemble, EnsembleSettings, SequenceLayout, TrainingReport, TwinRecipe, part_of, test_start,
};

use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::interrupt::Interrupt;
use crate::plots::chart::{Axis, Chart};
use crate::plots::line_color;
use crate::progress::{Bar, Unit};
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, table};
use crate::threads::ThreadsArgs;

/// Trains an ensemble of networks that predict the rig's next reading, on all but the last 15 % of
/// a recording.
///
/// Ctrl-C ends the training; the networks so far are written.
#[derive(Args)]
pub struct TwinArgs {
    /// The recording: columns la_position, pend_velocity, pend_position, cmd_volts, elapsed.
    #[arg(value_name = "DATA.csv")]
    data: PathBuf,
    /// The output file.
    #[arg(short, long, value_name = "TWIN.safetensors", value_parser = FileEnding(&["safetensors"]))]
    output: PathBuf,
    /// The device: auto (the CPU), cpu, cuda:N, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Networks.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=32))]
    members: u32,
    /// Widths of the hidden layers.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 64], value_parser = clap::value_parser!(u32).range(1..=1024))]
    hidden: Vec<u32>,
    /// Rows that are read.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    lags: u32,
    /// Maximum number of steps for each network.
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    steps: u32,
    /// Threshold of Huber's loss, in deviations of the changes; 0 for the squared error.
    #[arg(long, default_value_t = 0.1)]
    huber: f32,
    /// Weight of the energy balance in the loss, with the constants identified from the recording.
    #[arg(long, default_value_t = 0.0, value_name = "WEIGHT")]
    energy: f32,
    /// Seed of the first network; each further network uses the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draws the learning curves into a file: SVG if its name ends in .svg, else PNG.
    #[arg(long, value_name = "CURVE.png|CURVE.svg", value_parser = FileEnding(&["png", "svg"]))]
    plot: Option<PathBuf>,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A recording that is invalid or has too few usable rows; what the device and the file system
/// report.
pub fn train_twin(args: &TwinArgs) -> Result<()> {
    args.threads.apply()?;
    for (name, value) in [("--huber", args.huber), ("--energy", args.energy)] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(Error::invalid(format!(
                "{name} is {value}, needs a number, 0 or above"
            )));
        }
    }
    let input = InputFile::of(&args.data)?;
    let recording = RigRecording::read(&args.data)?;
    let mut session = Session::new(&Device::open(&args.device)?);
    session.reads(input);
    if !session.device().info().executes() {
        return Err(Error::invalid(
            "train twin: the device null executes nothing; training needs another device",
        ));
    }
    let at_fault = |error: Error| error.at(args.data.display());
    let known = part_of(&recording, 0..test_start(recording.len()));
    let bar = Bar::new(Unit::Steps);
    let rig = (args.energy > 0.0)
        .then(|| identify(&known, &mut bar.watch()))
        .transpose()
        .map_err(at_fault)?
        .map(|found| found.parameters);
    let defaults = EnsembleSettings::default();
    let settings = EnsembleSettings {
        layout: SequenceLayout {
            lags: args.lags as usize,
        },
        members: args.members as usize,
        recipe: TwinRecipe {
            hidden: args.hidden.iter().map(|width| *width as usize).collect(),
            steps: args.steps as usize,
            huber: (args.huber > 0.0).then_some(args.huber),
            physics_weight: args.energy,
            ..defaults.recipe
        },
        seed: args.seed,
        data: args
            .data
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
    };
    let interrupt = Interrupt::watch()?;
    let (steps, total) = (
        u64::from(args.steps),
        u64::from(args.members) * u64::from(args.steps),
    );
    let (ensemble, reports) = Ensemble::train(
        &recording,
        rig.as_ref(),
        &settings,
        &mut session,
        |member, done, loss| {
            bar.show(
                member as u64 * steps + done as u64,
                total,
                format!("network {} of {}, loss {loss:.5}", member + 1, args.members),
            );
            interrupt.flow()
        },
    )
    .map_err(at_fault)?;
    bar.clear();
    let end = if interrupt.is_raised() {
        "interrupted"
    } else {
        "completed"
    };
    ensemble.save(&args.output)?;
    let receipt = session.receipt();
    args.receipt.save(&receipt)?;
    if let Some(path) = &args.plot {
        draw(path, &reports)?;
    }
    if args.json {
        let line = json!({ "twin": args.output, "device": receipt.device.id, "origin": ensemble.origin, "noise": ensemble.noise, "networks": reports, "end": end, "receipt": receipt });
        return print(&format!("{line}\n"));
    }
    print(&text(args, &receipt, &ensemble, &reports))?;
    let cut = format!(
        "interrupted: {} of {}, the last with the weights that it had reached\n",
        reports.len(),
        counted(args.members, "network")
    );
    if interrupt.is_raised() {
        print(&cut)
    } else {
        Ok(())
    }
}

fn text(
    args: &TwinArgs,
    receipt: &Receipt,
    ensemble: &Ensemble,
    reports: &[TrainingReport],
) -> String {
    let mut rows = vec![
        [
            "network",
            "steps",
            "kept",
            "first loss",
            "last loss",
            "held out",
            "seconds",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for (member, report) in reports.iter().enumerate() {
        let losses = [report.first_loss, report.last_loss, report.held_out_loss]
            .map(|loss| format!("{loss:.5}"));
        let counts = [member + 1, report.steps, report.best_step].map(|count| count.to_string());
        rows.push(
            counts
                .into_iter()
                .chain(losses)
                .chain([format!("{:.1}", report.seconds)])
                .collect(),
        );
    }
    let origin = &ensemble.origin;
    let [fitted, held] = origin.samples;
    format!(
        "{}: {}, {}; {} fitted to, {held} held out to stop by, rows from {} on untouched\n\n{}\n{} written, trained {}\n",
        args.data.display(),
        counted(origin.rows, "row"),
        counted(origin.jumps, "sensor jump"),
        counted(fitted, "sample"),
        origin.test_start,
        table(&rows),
        args.output.display(),
        line(receipt)
    )
}

/// Losses on the held-out samples, one line for each network.
fn draw(path: &Path, reports: &[TrainingReport]) -> Result<()> {
    let points = |report: &TrainingReport| {
        report
            .curve
            .iter()
            .map(|(step, _, held)| (*step as f64, f64::from(*held).log10()))
            .collect::<Vec<_>>()
    };
    let all: Vec<(f64, f64)> = reports.iter().flat_map(points).collect();
    let (low, high) = all.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), (_, loss)| (low.min(*loss), high.max(*loss)),
    );
    let last = all.iter().map(|(step, _)| *step).fold(1.0, f64::max);
    let (steps, losses) = (
        Axis::new("training step", 0.0, last),
        Axis::decades("loss on the held-out samples", low.floor(), high.ceil()),
    );
    let mut chart = Chart::new("Training of the twin", steps, losses);
    chart.axes();
    (1..=reports.len())
        .for_each(|member| chart.legend(&format!("network {member}"), line_color(member - 1)));
    // The first on top.
    reports
        .iter()
        .enumerate()
        .rev()
        .for_each(|(member, report)| chart.line(&points(report), line_color(member)));
    chart.save(path)
}
