//! `tectum bench`: speed of kernels compared with rooflines and peers measured in the same run, and
//! whether they became slower.

mod check;
mod model;
mod policy;
mod show;
mod sizes;
mod speedup;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};
use tectum::{Device, Error, Result};
use tectum_bench::bench;
use tectum_bench::bench::{Options, PeerChoice, Suite};

use crate::interrupt::Interrupt;
use crate::progress::{Bar, Unit};
use crate::table::{print, print_json};
use crate::threads::ThreadsArgs;

/// Measures suites compared with the device's own rooflines and with peers, in the same run.
///
/// Ctrl-C ends the run after the present row: the rows that were measured by then are printed, and
/// the record is marked as incomplete.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Subcommand)]
enum Action {
    Check(check::CheckArgs),
    Speedup(speedup::SpeedupArgs),
    Sizes(sizes::SizesArgs),
}

#[derive(Args)]
struct RunArgs {
    /// What to measure: suites, a model's folder or GGUF file, or a policy's ONNX file.
    ///
    /// A model is run in each format of its weights, compared with f32; an inference of a policy
    /// too, next to ONNX Runtime where python3 or the peers' environment has it.
    #[arg(required = true, value_name = "SUITE|MODEL|POLICY.onnx")]
    suite: Vec<String>,
    /// The device: auto (the CPU: there is no one plan to route here), cpu, cuda:N, vulkan:N,
    /// metal:N or dx12:N.
    ///
    /// A policy is timed on several, with commas between them.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// The peers of the rows: all, none, or names with commas between them.
    #[arg(long, default_value = "all")]
    peers: String,
    /// The folder of peers; bench/peers here or in the nearest folder above if not given.
    #[arg(long, value_name = "DIR")]
    peer_dir: Option<PathBuf>,
    /// Only rows whose key contains this; may be given several times.
    #[arg(long, value_name = "TEXT")]
    rows: Vec<String>,
    /// Rounds of each row: roofline, row and peers in turn.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Writes the record as DATE-DEVICE.json into this folder; bench/records if none is named.
    ///
    /// An incomplete record is DATE-DEVICE-incomplete.json.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "bench/records")]
    record: Option<PathBuf>,
    /// A note for readers of the record.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Prints the record as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Every suite, of all crates.
fn suites() -> Vec<Suite> {
    let mut suites = bench::suites();
    suites.push(tectum_spiking::bench_suite());
    suites.push(tectum_field::bench_suite());
    suites.push(tectum_transformer::bench_suite());
    suites.push(tectum_control::bench_suite());
    suites.push(tectum_onnx::bench_suite());
    #[cfg(feature = "link")]
    suites.push(tectum_link::bench_suite());
    suites
}

/// Runs the command.
///
/// # Errors
/// An unknown device, peer or row; what the device reports; `Mismatch` if a check finds a row that
/// became slower.
pub fn bench(args: &BenchArgs) -> Result<()> {
    match &args.action {
        Some(Action::Check(args)) => check::check(args),
        Some(Action::Speedup(args)) => speedup::speedup(args),
        Some(Action::Sizes(args)) => sizes::sizes(args),
        None => run(&args.run),
    }
}

fn run(args: &RunArgs) -> Result<()> {
    args.threads.apply()?;
    let mut chosen = suites();
    // A folder may have a suite's name; `./NAME` is the folder.
    if let [model] = args.suite.as_slice()
        && chosen.iter().all(|suite| suite.name != *model)
        && Path::new(model).exists()
    {
        let path = Path::new(model);
        if path.extension().is_none_or(|ending| ending != "onnx") {
            return model::bench(path, &args.device, args.json);
        }
        let settings = policy::Settings {
            devices: &args.device,
            rounds: args.rounds as usize,
            has_peer: args.peers != "none",
            peers: args.peer_dir.clone().or_else(|| above("bench/peers")),
            json: args.json,
        };
        return policy::bench(path, &settings);
    }
    let device = Device::open(&args.device)?;
    if let Some(unknown) = args
        .suite
        .iter()
        .find(|name| chosen.iter().all(|suite| suite.name != **name))
    {
        let known: Vec<&str> = chosen.iter().map(|suite| suite.name).collect();
        return Err(Error::invalid(format!(
            "{unknown:?} is no suite and no file; suites: {}",
            known.join(", ")
        )));
    }
    chosen.retain(|suite| args.suite.iter().any(|name| name == suite.name));
    let options = Options {
        rounds: args.rounds as usize,
        filters: args.rows.clone(),
        peers: peers(&args.peers),
        peer_folder: args.peer_dir.clone().or_else(|| above("bench/peers")),
        commit: commit(),
        note: args.note.clone(),
    };
    let (bar, interrupt) = (Bar::new(Unit::Steps), Interrupt::watch()?);
    let mut watch = bar.watch_until(&interrupt);
    let record = bench::run(&device, &chosen, &options, &mut watch)?;
    drop(watch);
    bar.clear();
    let path = args
        .record
        .as_deref()
        .map(|folder| record.write(folder))
        .transpose()?;
    if args.json {
        return print_json(&record);
    }
    print(&show::record(&record))?;
    path.map_or(Ok(()), |path| {
        print(&format!("record: {}\n", path.display()))
    })
}

fn peers(text: &str) -> PeerChoice {
    match text {
        "all" => PeerChoice::All,
        "none" => PeerChoice::Named(Vec::new()),
        names => PeerChoice::Named(
            names
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect(),
        ),
    }
}

/// A folder by its path relative to the working directory or to the nearest parent folder that has
/// it.
fn above(path: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .map(|folder: &Path| folder.join(path))
        .find(|folder| folder.is_dir())
}

/// The commit of the working tree; a trailing `+` means that files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_none_or(|status| !status.is_empty());
    if is_changed { format!("{hash}+") } else { hash }
}
