//! `tectum serve`: a brain that answers the observations of other programs.

mod genome;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tectum::{Device, Error, Receipt, Result};
use tectum_control::scenario::Scenario;
use tectum_link::{Address, EmBrainSettings, ServeCounts, ServeSettings, Served, Server, Token};

use self::genome::GenomeArgs;
use crate::count::counted;
use crate::interrupt::Interrupt;
use crate::messages;
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print_json, report, table};
use crate::threads::ThreadsArgs;
use crate::workload::Workload;

/// The address of scenarios.
const LISTEN: &str = "ws://127.0.0.1:8000";
/// How often the command looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(20);

/// Serves a brain: other programs send observations over WebSocket and receive actions.
///
/// An unchanged openpi-client works; docs/robots.md has the protocol. Each client has a brain of
/// its own. A genome runs once, in real time, and unchanged agents of FEAGI write its input areas and
/// read its output areas. Ctrl-C ends the server and prints its receipt.
#[derive(Args)]
pub struct ServeArgs {
    /// A scenario, or a file: a policy (.onnx), a plant (.plant) with its regulator, a genome (.json).
    scenario: String,
    /// The body that the brain is made for, by its name; no body is stepped.
    #[arg(long)]
    body: Option<String>,
    /// Another brain of the scenario's body.
    #[arg(long)]
    brain: Option<String>,
    /// The contract of a policy, if it is neither next to the file nor in its metadata.
    #[arg(long, value_name = "FILE.toml")]
    contract: Option<String>,
    /// Where to listen; ws://127.0.0.1:8000 if not given. One of other machines needs a token.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The file with the token that clients must show; else the variable TECTUM_TOKEN, if it is set.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Clients at the same time; more are refused.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Frames per second of a client; the connection of one that sends more ends.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Also serves the robots of em-brain over their own protocol; they use port 9999.
    #[arg(long, value_name = "IP:PORT")]
    em_brain: Option<SocketAddr>,
    /// Sends each answer to a robot as a line of JSON to all who connect here; em-brain uses port 9998.
    #[arg(long, value_name = "IP:PORT", requires = "em_brain")]
    em_brain_telemetry: Option<SocketAddr>,
    /// The robots' timeout: a later answer would shift all answers after it, so the connection ends.
    #[arg(long, value_name = "MS", default_value_t = 50, requires = "em_brain", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    em_brain_timeout: u64,
    /// Allows addresses of other machines: no token, every machine that reaches them uses the brain.
    #[arg(long, requires = "em_brain")]
    em_brain_without_token: bool,
    /// The device: auto, cpu, null, cuda:N, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    genome: GenomeArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON at the end.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Errors of the scenario, its files and the device; an address that is in use, or that other
/// machines reach without a token.
pub fn serve(args: &ServeArgs) -> Result<()> {
    args.threads.apply()?;
    let path = Path::new(&args.scenario);
    let kind = Workload::of(path)?;
    if kind == Workload::Genome {
        return genome::serve(path, args);
    }
    if let Some(option) = args.genome.given() {
        return Err(Error::invalid(format!(
            "serve {}: {option} is an option of genomes; it is {}",
            args.scenario,
            kind.name()
        )));
    }
    let settings = ServeSettings {
        token: Token::find(args.token_file.as_deref())?,
        max_sessions: usize::from(args.clients),
        max_rate: args.rate,
        em_brain: em_brain(args),
        ..ServeSettings::new(Address::parse(args.listen.as_deref().unwrap_or(LISTEN))?)
    };
    let scenario = scenario(args, kind)?;
    let device = match args.device.as_str() {
        "auto" => None,
        id => Some(Device::open(id)?),
    };
    let served = Served::of_scenario(scenario, device)?;
    let interrupt = Interrupt::watch()?;
    let server = Server::start(served, &settings)?;
    messages::note(format_args!("serving at {}", server.address()));
    if let Some(own) = server.em_brain() {
        messages::note(format_args!("robots of em-brain at {}", own.address));
        own.telemetry
            .iter()
            .for_each(|address| messages::note(format_args!("telemetry at {address}")));
    }
    wait(&interrupt, || true);
    let (counts, receipt) = (server.counts(), server.receipt());
    drop(server);
    args.receipt.save(&receipt)?;
    report(&text(&counts, &receipt), args.json)?;
    if args.json {
        print_json(&json!({ "served": counts, "receipt": receipt }))?;
    }
    Ok(())
}

/// How the robots of em-brain are served, if they are.
fn em_brain(args: &ServeArgs) -> Option<EmBrainSettings> {
    args.em_brain.map(|address| EmBrainSettings {
        telemetry: args.em_brain_telemetry,
        timeout: Duration::from_millis(args.em_brain_timeout),
        is_open_without_token: args.em_brain_without_token,
        ..EmBrainSettings::new(address)
    })
}

impl ServeArgs {
    /// The first option that was given of those that genomes do not take.
    fn scenario_option(&self) -> Option<&'static str> {
        let given = [
            ("--body", self.body.is_some()),
            ("--brain", self.brain.is_some()),
            ("--contract", self.contract.is_some()),
            ("--listen", self.listen.is_some()),
            ("--em-brain", self.em_brain.is_some()),
        ];
        let mut given = given.into_iter();
        given.find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// Waits for Ctrl-C, or until what is served has ended.
fn wait(interrupt: &Interrupt, is_running: impl Fn() -> bool) {
    while is_running() && !interrupt.is_raised() {
        std::thread::sleep(POLL);
    }
}

/// A row of the summary.
fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// The scenario with the command line's changes.
fn scenario(args: &ServeArgs, kind: Workload) -> Result<Scenario> {
    let refused = |what: &str| Err(Error::invalid(format!("serve {}: {what}", args.scenario)));
    let mut scenario = match (kind, &args.body) {
        (Workload::Scenario, _) => Scenario::open(&args.scenario)?,
        (Workload::Plant, None) => Scenario::of_plant(&args.scenario)?,
        (Workload::Policy, Some(body)) => Scenario::of_policy(&args.scenario, body)?,
        (Workload::Policy, None) => {
            return refused(
                "a policy is served for a body: --body NAME, FILE.plant or mujoco:SCENE.xml",
            );
        }
        (Workload::Plant, Some(_)) => return refused("a plant is the body itself, without --body"),
        (kind, _) => {
            return refused(&format!(
                "it is {}, which answers no observations",
                kind.name()
            ));
        }
    };
    scenario.warnings.iter().for_each(messages::warning);
    if let Some(body) = &args.body {
        scenario.set_body(body)?;
    }
    if let Some(brain) = &args.brain {
        scenario.set_brain(brain)?;
    }
    if let Some(contract) = &args.contract {
        scenario.brain.set_contract(contract)?;
    }
    Ok(scenario)
}

fn text(counts: &ServeCounts, receipt: &Receipt) -> String {
    let latency = &receipt.latency_ms;
    let rows = [
        row("clients", counted(counts.sessions, "client")),
        row("answers", counts.answers.to_string()),
        row(
            "latency",
            format!(
                "p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
                latency.p50, latency.p99, latency.max
            ),
        ),
        row(
            "refused",
            format!("{} clients, {} requests", counts.refused, counts.errors),
        ),
        row("receipt", line(receipt)),
    ];
    table(&rows)
}
