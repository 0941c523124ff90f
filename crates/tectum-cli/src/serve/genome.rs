//! `tectum serve GENOME.json`: a spiking network that agents of FEAGI write and read.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tectum::{Error, Result};
use tectum_link::feagi::{
    DEFAULT_BURSTS_PER_S, Report, ServedGenome, Server, ServerSettings, simulation_options,
};
use tectum_link::{Address, Token};
use tectum_spiking::genome::Genome;
use tectum_spiking::{ConnectedNetwork, Stimulus};

use super::{ServeArgs, row, wait};
use crate::interrupt::Interrupt;
use crate::messages;
use crate::network_args::NetworkArgs;
use crate::receipt::line;
use crate::table::{print_json, report, table};

/// What only genomes take.
#[derive(Args)]
pub struct GenomeArgs {
    /// Of a genome: where agents of FEAGI register; tcp://127.0.0.1:30001 if not given.
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,
    /// Of a genome: where agents send sensors to; tcp://127.0.0.1:5558 if not given.
    #[arg(long, value_name = "ADDRESS")]
    sensors: Option<String>,
    /// Of a genome: where agents receive motors from; tcp://127.0.0.1:5564 if not given.
    #[arg(long, value_name = "ADDRESS")]
    motors: Option<String>,
    /// Of a genome: bursts per second; if not given, those of its own timestep, or 30.
    #[arg(long, value_name = "NUMBER")]
    bursts_per_second: Option<f64>,
    /// Of a genome: maximum size of a sensor frame, in bytes; 16 MiB if not given.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..))]
    frame_bytes: Option<u32>,
    /// Of a genome: the seed of its draws; 0 if not given.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    network: NetworkArgs,
}

impl GenomeArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--control", self.control.is_some()),
            ("--sensors", self.sensors.is_some()),
            ("--motors", self.motors.is_some()),
            ("--bursts-per-second", self.bursts_per_second.is_some()),
            ("--frame-bytes", self.frame_bytes.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
            .or(self.network.first_given_option())
    }

    /// Where, for whom and how fast it is served.
    fn settings(&self, args: &ServeArgs, genome: &Genome) -> Result<ServerSettings> {
        let own = genome.physiology();
        let bursts_per_s = match own.states_timestep {
            true => 1.0 / own.timestep_s,
            false => DEFAULT_BURSTS_PER_S,
        };
        let mut settings = ServerSettings::new(self.bursts_per_second.unwrap_or(bursts_per_s))?;
        settings.token = Token::find(args.token_file.as_deref())?;
        settings.max_agents = usize::from(args.clients);
        settings.max_rate = args.rate;
        for (address, given) in [
            (&mut settings.control, &self.control),
            (&mut settings.sensors, &self.sensors),
            (&mut settings.motors, &self.motors),
        ] {
            if let Some(given) = given {
                *address = Address::parse_tcp(given)?;
            }
        }
        if let Some(bytes) = self.frame_bytes {
            settings.max_frame_bytes = bytes as usize;
        }
        Ok(settings)
    }
}

/// Runs the command for a genome.
///
/// # Errors
/// An invalid genome or network, errors of the device; options of scenarios; an address that is in
/// use, or that other machines reach without a token.
pub fn serve(path: &Path, args: &ServeArgs) -> Result<()> {
    if let Some(option) = args.scenario_option() {
        return Err(Error::invalid(format!(
            "serve {}: {option} is an option of scenarios; a genome is served to agents of FEAGI",
            path.display()
        )));
    }
    let inputs = args
        .receipt
        .inputs(args.json, || Ok(vec![path.to_owned()]))?;
    let seed = args.genome.seed.unwrap_or(0);
    let (genome, connected) = args.genome.network.connect(path, seed)?;
    let ConnectedNetwork {
        network,
        constant_inputs,
        notes,
        ..
    } = connected;
    genome
        .warnings()
        .iter()
        .chain(&notes)
        .for_each(messages::warning);
    let settings = args.genome.settings(args, &genome)?;
    let network = Arc::new(network);
    let options = simulation_options(&genome, constant_inputs.clone());
    let (devices, _) = args.genome.network.devices(
        &args.device,
        &network,
        &options,
        &Stimulus::new(&genome, 0.0, seed)?,
    )?;
    let served = ServedGenome::new(&genome, network, constant_inputs, &devices)?;
    let interrupt = Interrupt::watch()?;
    let server = Server::start(served.with_inputs(inputs), &settings)?;
    messages::note(format_args!(
        "agents register at {}; sensors at {}, motors at {}, {} bursts per second",
        server.control(),
        server.sensors(),
        server.motors(),
        settings.bursts_per_s
    ));
    wait(&interrupt, || server.is_running());
    let ended = server.stop()?;
    args.receipt.save(&ended.receipt)?;
    report(&text(&ended), args.json)?;
    if args.json {
        print_json(&json!({ "served": ended.counts, "receipt": ended.receipt }))?;
    }
    Ok(())
}

fn text(ended: &Report) -> String {
    let (counts, latency) = (&ended.counts, &ended.burst_latency_ms);
    table(&[
        row(
            "bursts",
            format!(
                "{}, {} deadlines missed",
                counts.bursts, counts.missed_deadlines
            ),
        ),
        row(
            "latency",
            format!(
                "p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
                latency.p50, latency.p99, latency.max
            ),
        ),
        row(
            "agents",
            format!(
                "{} registered, {} ended, {} silent, {} refused",
                counts.registrations,
                counts.deregistrations,
                counts.stale_agents,
                counts.refused_agents
            ),
        ),
        row(
            "sensors",
            format!(
                "{} frames used, {} replaced, {} late, {} refused",
                counts.used_frames,
                counts.replaced_frames,
                counts.stale_frames,
                counts.refused_frames
            ),
        ),
        row(
            "motors",
            format!(
                "{} frames sent, {} dropped",
                counts.motor_frames, counts.dropped_motor_frames
            ),
        ),
        row("receipt", line(&ended.receipt)),
    ])
}
