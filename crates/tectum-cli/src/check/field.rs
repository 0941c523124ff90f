//! `tectum check field`.

use clap::Args;
use tectum::{Device, Error, ErrorKind, Result, Session};
use tectum_control::body::BodySpec;
use tectum_control::brain::field::learning::{MeanEstimate, Score, compare};
use tectum_control::brain::field::spec::FieldSpec;
use tectum_control::scenario::build::build_body;
use tectum_control::scenario::{BrainSpec, Scenario};
use tectum_field::{CheckReport, Finding, Latency, Options, Shape, Simulation, Storage, check};

use crate::count::counted;
use crate::progress::{Bar, Unit};
use crate::receipt::{ReceiptArgs, line};
use crate::table::{bytes, print, table};
use crate::threads::ThreadsArgs;

/// Settings of the check.
#[derive(Args)]
pub struct FieldArgs {
    /// The device of the field; several with commas between them split it along X.
    ///
    /// auto (the CPU), cpu, cuda:N, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    pub(super) device: String,
    #[command(flatten)]
    pub(super) threads: ThreadsArgs,
    /// The brain of a scenario (file or short name) instead: its sensors, motors and settings.
    ///
    /// The verdict then also compares the time of a cycle with the period of the scenario's body.
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["learning", "cells", "channels", "patterns", "bf16", "sensors", "motors"])]
    brain: Option<String>,
    /// Sensors of the field.
    #[arg(long, default_value_t = 16, conflicts_with = "learning")]
    sensors: usize,
    /// Motors of the field.
    #[arg(long, default_value_t = 4, conflicts_with = "learning")]
    motors: usize,
    /// Cells of the field along each axis.
    #[arg(long, default_value_t = 32)]
    cells: usize,
    /// Channels of the field.
    #[arg(long, default_value_t = 64)]
    channels: usize,
    /// Places of the field's library of patterns; 0 for none.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4096))]
    patterns: u32,
    /// Keeps the field as bf16: half the memory; on the CPU a cycle is slower than in f32.
    #[arg(long)]
    bf16: bool,
    /// Compares controllers of the light seeker instead.
    ///
    /// The field with and without learning, random actions, and a hand-written controller.
    #[arg(long)]
    learning: bool,
    /// Seeds of that comparison, 20 if not given; after the word rig, rigs of each kind, 100 if not
    /// given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) seeds: Option<u64>,
    /// Steps of each of its runs, ten a second.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    steps: u32,
    /// Cycles of the field that are compared.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    compared: u32,
    /// One of how many cycles is compared; all are timed.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    every: u32,
    #[command(flatten)]
    pub(super) receipt: ReceiptArgs,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl FieldArgs {
    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(20)
    }
}

/// Runs the command.
///
/// # Errors
/// An invalid field size; what the device reports; `Mismatch` for a field that differs from its
/// reference or does not meet a requirement of the verdict.
pub fn check_field(args: &FieldArgs) -> Result<()> {
    let mut devices = args
        .device
        .split(',')
        .map(Device::open)
        .collect::<Result<Vec<_>>>()?;
    if args.learning {
        let [device] = &devices[..] else {
            return Err(Error::invalid("--learning runs on one device"));
        };
        return check_learning(args, device);
    }
    let brain = args.brain.as_deref().map(Given::open).transpose()?;
    if let Some(Given { spec, .. }) = &brain {
        devices.extend(
            spec.extra_devices
                .iter()
                .map(|id| Device::open(id))
                .collect::<Result<Vec<_>>>()?,
        );
    }
    let field = match &brain {
        Some(Given {
            spec, body, seed, ..
        }) => spec.simulation(body, &devices, *seed)?,
        None => {
            let storage = if args.bf16 {
                Storage::Bf16
            } else {
                Storage::F32
            };
            let options = Options {
                patterns: args.patterns as usize,
                storage,
                ..Options::new(args.sensors, args.motors)
            };
            Simulation::split(
                Shape::new([args.cells; 3], args.channels)?,
                options,
                &devices,
            )?
        }
    };
    let (shape, options) = (*field.shape(), *field.options());
    let bar = Bar::new(Unit::Steps);
    let report = check(
        field,
        &devices,
        args.compared as usize,
        args.every as usize,
        &mut bar.watch(),
    )?;
    bar.clear();
    args.receipt.save(&report.receipt)?;
    let verdict = report
        .findings()
        .into_iter()
        .chain(brain.as_ref().map(|brain| brain.in_time(&report)))
        .collect::<Vec<_>>();
    if args.json {
        let [x, y, z] = shape.cells();
        // A number if all axes are alike, as it is given.
        let cells = if x == y && y == z {
            serde_json::json!(x)
        } else {
            serde_json::json!([x, y, z])
        };
        let found = serde_json::json!({
            "device": ids(&devices), "name": names(&devices), "scenario": args.brain, "cells": cells, "channels": shape.channels(),
            "sensors": options.sensors, "motors": options.motors, "patterns": options.patterns, "storage": options.storage,
            "check": report, "verdict": verdict,
        });
        print(&format!("{found}\n"))?;
        return result_of(&verdict);
    }
    let of = brain.map_or_else(String::new, |brain| {
        format!(", the brain of {}", brain.name)
    });
    let [x, y, z] = shape.cells();
    let title = format!(
        "field of {x} x {y} x {z} cells of {} channels, {} sensors, {} motors{of}",
        shape.channels(),
        options.sensors,
        options.motors
    );
    print(&(text(&title, &devices, &report) + &verdict_text(&verdict)))?;
    result_of(&verdict)
}

/// The requirements that are not met, with commas between them; none if all are met.
fn missed(findings: &[Finding]) -> Option<String> {
    let missed: Vec<&str> = findings
        .iter()
        .filter(|finding| !finding.is_met)
        .map(|finding| finding.what)
        .collect();
    (!missed.is_empty()).then(|| missed.join(", "))
}

/// The result of the command: a negative verdict is an error.
fn result_of(findings: &[Finding]) -> Result<()> {
    missed(findings).map_or(Ok(()), |missed| {
        Err(Error::new(
            ErrorKind::Mismatch,
            format!("check field: not met: {missed}"),
        ))
    })
}

/// The field of a scenario.
struct Given {
    name: String,
    spec: FieldSpec,
    body: BodySpec,
    seed: u64,
}

impl Given {
    fn open(name: &str) -> Result<Self> {
        let scenario = Scenario::open(name)?;
        let body = build_body(&scenario)?.spec().clone();
        match scenario.brain {
            BrainSpec::Field(spec) => Ok(Self {
                name: scenario.name,
                spec: *spec,
                body,
                seed: scenario.run.seed,
            }),
            other => Err(Error::invalid(format!(
                "check field --brain {name}: its brain is {}; a field is needed",
                other.name()
            ))),
        }
    }

    /// Whether cycles end within the period of the body.
    fn in_time(&self, report: &CheckReport) -> Finding {
        let (p99_s, dt_s) = (report.latency.p99_s, self.body.dt_s);
        let [found, needed] = [("", p99_s), ("at most the period, ", dt_s)]
            .map(|(text, seconds)| format!("{text}{:.3} ms", 1e3 * seconds));
        Finding {
            what: "time of a cycle, p99",
            found,
            needed,
            is_met: p99_s <= dt_s,
        }
    }
}

fn verdict_text(findings: &[Finding]) -> String {
    let mut rows = vec![
        ["verdict", "found", "needed", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for Finding {
        what,
        found,
        needed,
        is_met,
    } in findings
    {
        rows.push(vec![
            (*what).to_owned(),
            found.clone(),
            needed.clone(),
            if *is_met { "ok" } else { "NOT MET" }.to_owned(),
        ]);
    }
    let whole = missed(findings).map_or_else(
        || "every requirement is met".to_owned(),
        |missed| format!("not met: {missed}"),
    );
    format!("\n{}{whole}\n", table(&rows))
}

fn ids(devices: &[Device]) -> String {
    devices
        .iter()
        .map(|device| device.info().id.clone())
        .collect::<Vec<_>>()
        .join(",")
}

fn names(devices: &[Device]) -> String {
    devices
        .iter()
        .map(|device| device.info().to_string())
        .collect::<Vec<_>>()
        .join(" and ")
}

fn text(title: &str, devices: &[Device], report: &CheckReport) -> String {
    let floor_s = report.min_bytes / report.copy_bytes_per_s;
    let mut rows = vec![
        ["pass", "launches", "binds", "time", "of floor"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let time = |seconds: f64| format!("{:.1} us", 1e6 * seconds);
    let percent = |seconds: f64| format!("{:.1} %", 100.0 * floor_s / seconds);
    for pass in &report.passes {
        let (taken, part) = pass
            .median_s
            .map_or(("-".to_owned(), "-".to_owned()), |seconds| {
                (time(seconds), percent(seconds))
            });
        rows.push(vec![
            pass.kernel.clone(),
            "1".to_owned(),
            bytes(pass.bytes),
            taken,
            part,
        ]);
    }
    let whole = report
        .passes
        .iter()
        .map(|pass| pass.median_s)
        .sum::<Option<f64>>();
    let all: f64 = report.passes.iter().map(|pass| pass.bytes).sum();
    rows.push(vec![
        "cycle".to_owned(),
        report.passes.len().to_string(),
        bytes(all),
        whole.map_or("-".to_owned(), time),
        whole.map_or("-".to_owned(), percent),
    ]);
    let [up, down] = report.transfers;
    let [up_bytes, down_bytes] = report.transfer_bytes;
    let mut text = format!("{title}, on {}\n\n{}", names(devices), table(&rows));
    text += &format!(
        "\nfloor: {} read and written at {}/s, {}\n",
        bytes(report.min_bytes),
        bytes(report.copy_bytes_per_s),
        time(floor_s)
    );
    text += &format!("transfers a cycle: {up} up ({up_bytes} B), {down} down ({down_bytes} B)\n\n");
    let mut rows = vec![
        ["against float64", "worst", "allowed", "at"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for found in &report.agreement {
        rows.push(vec![
            found.what.to_owned(),
            format!("{:.1e}", found.worst),
            format!("{:.0e}", found.tolerance),
            found.at.to_string(),
        ]);
    }
    text += &table(&rows);
    text += &format!(
        "\n{} cycles compared, {} near-ties in placement, {} in the library\n",
        report.compared,
        report.ties.len(),
        report.recall_ties
    );
    let Latency {
        cycles,
        p50_s,
        p99_s,
        p999_s,
        max_s,
    } = report.latency;
    text += &format!("{}\n", line(&report.receipt));
    text += &format!(
        "{cycles} cycles took {} at p50, {} at p99, {} at p99.9, {} at most\n",
        time(p50_s),
        time(p99_s),
        time(p999_s),
        time(max_s)
    );
    for (found, expected, short) in &report.ties {
        text += &format!(
            "near-tie: {:?} at {:?} for {:?} at {:?}, {short:.1e} apart\n",
            found.kind, found.cell, expected.kind, expected.cell
        );
    }
    text
}

fn check_learning(args: &FieldArgs, device: &Device) -> Result<()> {
    let spec = FieldSpec {
        cells: vec![args.cells as u64; 3],
        channels: args.channels,
        patterns: args.patterns as usize,
        ..FieldSpec::default()
    };
    let mut session = Session::new(device);
    let bar = Bar::new(Unit::Steps);
    let scores = compare(
        &spec,
        &mut session,
        args.seeds(),
        args.steps as usize,
        &mut bar.watch(),
    )?;
    bar.clear();
    let receipt = session.receipt();
    args.receipt.save(&receipt)?;
    if args.json {
        let found = serde_json::json!({ "device": device.info().id, "seeds": args.seeds(), "steps": args.steps, "scores": scores, "receipt": receipt });
        return print(&format!("{found}\n"));
    }
    print(&(learning_text(args, device, &scores) + &line(&receipt) + "\n"))
}

fn learning_text(args: &FieldArgs, device: &Device, scores: &[Score]) -> String {
    let (
        FieldArgs {
            cells,
            channels,
            patterns,
            steps,
            ..
        },
        seeds,
    ) = (args, args.seeds());
    let estimate =
        |estimate: &MeanEstimate| format!("{:.3} ± {:.3}", estimate.mean, estimate.error);
    let mut rows = vec![
        [
            "controller",
            "reward a step",
            "lights found",
            "last tenth - first",
            "over not learning",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut curves = vec![
        std::iter::once("reward a step by tenth".to_owned())
            .chain((1..=10).map(|tenth| tenth.to_string()))
            .collect::<Vec<_>>(),
    ];
    for score in scores {
        let name = || score.controller.name().to_owned();
        rows.push(vec![
            name(),
            estimate(&score.reward),
            estimate(&score.found),
            estimate(&score.gain),
            estimate(&score.over_fixed),
        ]);
        curves.push(
            std::iter::once(name())
                .chain(score.curve.iter().map(estimate))
                .collect(),
        );
    }
    let head = format!(
        "light seeker, field of {cells}³ × {channels}, {}, on {}; {} of {}; mean ± standard error",
        counted(patterns, "pattern"),
        device.info(),
        counted(seeds, "seed"),
        counted(steps, "step")
    );
    format!("{head}\n\n{}\n{}", table(&rows), table(&curves))
}
