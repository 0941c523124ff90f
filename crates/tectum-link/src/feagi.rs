//! FEAGI's agent protocol: a genome's spiking network with agents that write its input areas and
//! read its output areas.
//!
//! An agent registers on the control socket, sends frames of neuron voxels, and receives the voxels
//! of the output areas that fired, after each burst in which one did. Any program with a client of
//! FEAGI's protocol over ZeroMQ is such an agent, unchanged.
//!
//! ```text
//!  agents             I/O thread (tokio)                    thread of bursts
//!  DEALER ──request──▶ control: registration, heart beat
//!         ◀──reply───┘
//!  PUSH ──voxels────▶ sensors: decode, check ─▶ latest frame ─▶ inject ─┐
//!                                               of each agent      run(1), every period
//!  SUB ◀──voxels───── motors: send ◀─────────── latest frame ◀─ encode ─┘
//! ```
//!
//! The thread of bursts never waits for a socket. Each sensor frame is used in one burst, the next
//! one, and then it is gone, as in FEAGI; a later frame of the same agent replaces it before that,
//! and frames of several agents add up. A subscriber that does not read loses frames. Without
//! agents, bursts continue without input.
//!
//! # Differences from FEAGI
//!
//! The released client, `feagi-rust-py-libs` 0.0.120, is what is measured against; where public
//! source of February 2026 (`feagi-core` 44cc7a7) differs, both work.
//!
//! - FEAGI drops voxels of unknown areas and coordinates silently, and here the frame is
//!   refused whole, counted, and its area is named in the log. Sensors write to input areas only.
//! - All motor areas go to every agent that receives motors. FEAGI selects them by the devices that
//!   an agent registers (`agent_configuration`, answered with `heart_beat` and not used here), and
//!   creates missing areas from them.
//! - The activation of a motor voxel is 1, in FEAGI the potential before the firing.
//! - The counter of motor frames is the burst, in 16 bits; it is 0 in FEAGI. The client sends
//!   sensors with the counter 0 and a blank agent id: they are not ordered, and belong to the agent
//!   of their connection. A counter above 0 that is not above the last one is late, and dropped.
//! - The client pads the names of areas with spaces, genomes with underscores; both are one id.
//! - All agents share one address for sensors and one for motors; FEAGI has one for each agent.
//! - An agent is silent, and deregistered, 30 s after its last request or sensor frame; in FEAGI
//!   also sending motors to it keeps it alive. The client beats every time it is polled for motors
//!   after its interval.
//! - Visualizations, health checks and the HTTP interface are not served. The pickles of
//!   `feagi_connector` (2025) are refused, never read.

mod agents;
mod areas;
mod base64;
mod bursts;
mod container;
mod message;
mod sockets;
mod voxels;
mod zmtp;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tectum::{Device, Error, InputFile, Latency, Receipt, Result};
use tectum_spiking::genome::{AreaRole, Genome};
use tectum_spiking::{Network, Simulation, SimulationOptions};

use self::agents::Agents;
use self::areas::Areas;
use self::bursts::{Bursts, Outcome};
use self::sockets::{Desk, SharedState, listen, watch};
use self::zmtp::SocketKind;
use crate::io_thread::IoThread;
use crate::server::bind;
use crate::socket::MAX_MESSAGE;
use crate::{Address, Token};

#[cfg(test)]
pub(crate) use self::{
    areas::tests::areas as test_areas,
    container::{AgentId, Container, IdSize, write as write_container, write_json},
    message::Request,
    message::tests::{REGISTRATION, is_supported},
    voxels::write as write_voxels,
    zmtp::{encode as encode_frames, tests::received as received_frames},
};

/// The bursts per second of a genome that states no duration of a burst.
pub const DEFAULT_BURSTS_PER_S: f64 = 30.0;
/// Bytes of the token that an agent shows.
const TOKEN: usize = 32;

/// Where, for whom and how fast a genome is served.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The address of requests, `tcp://HOST:PORT`; port 0 is any free one, here and below.
    pub control: Address,
    /// The address that agents send sensors to.
    pub sensors: Address,
    /// The address that agents receive motors from.
    pub motors: Address,
    /// What agents must show, as base64 of 32 bytes; required for addresses that other machines
    /// reach. Without it any token is accepted.
    pub token: Option<Token>,
    /// Bursts per second.
    pub bursts_per_s: f64,
    /// Agents that are registered at the same time.
    pub max_agents: usize,
    /// Bytes of a sensor frame.
    pub max_frame_bytes: usize,
    /// Messages of a connection per second.
    pub max_rate: u32,
    /// The time without a request or a sensor frame after which an agent is deregistered.
    pub stale_after: Duration,
}

impl ServerSettings {
    /// FEAGI's ports on this machine, at most 8 agents with 16 MiB in a frame and 20,000 messages
    /// per second each, which are deregistered after 30 s of silence.
    ///
    /// # Errors
    /// None; the default addresses are valid.
    pub fn new(bursts_per_s: f64) -> Result<Self> {
        Ok(Self {
            control: Address::parse_tcp("tcp://127.0.0.1:30001")?,
            sensors: Address::parse_tcp("tcp://127.0.0.1:5558")?,
            motors: Address::parse_tcp("tcp://127.0.0.1:5564")?,
            token: None,
            bursts_per_s,
            max_agents: 8,
            max_frame_bytes: MAX_MESSAGE,
            max_rate: 20_000,
            stale_after: Duration::from_secs(30),
        })
    }

    /// The period of bursts.
    fn period(&self) -> Result<Duration> {
        let period = Duration::try_from_secs_f64(1.0 / self.bursts_per_s);
        period
            .ok()
            .filter(|period| !period.is_zero() && period.as_secs() <= 3600)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{} bursts per second; a positive number with a period from 1 ns to 1 h is needed",
                    self.bursts_per_s
                ))
            })
    }

    /// The bytes that agents must show.
    fn token(&self) -> Result<Option<[u8; TOKEN]>> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        let bytes = base64::decode(token.secret()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Some).ok_or_else(|| {
            Error::invalid("token: agents of FEAGI show 32 bytes; base64 of 32 bytes is needed")
        })
    }
}

/// A genome's network on its devices, ready for agents.
pub struct ServedGenome {
    title: String,
    areas: Areas,
    simulation: Simulation,
    inputs: Vec<InputFile>,
}

impl ServedGenome {
    /// Puts the network of a genome on devices; `constant_inputs` are those of
    /// [`ConnectedNetwork`](tectum_spiking::ConnectedNetwork).
    ///
    /// # Errors
    /// `Invalid` for a genome that has neither input nor output areas; as [`Simulation::sharded`].
    pub fn new(
        genome: &Genome,
        network: Arc<Network>,
        constant_inputs: Vec<(u32, f32)>,
        devices: &[Device],
    ) -> Result<Self> {
        let areas = Areas::new(genome, network.max_injected());
        let is_reached = |role| areas.of_role(role).next().is_some();
        if !is_reached(AreaRole::Input) && !is_reached(AreaRole::Output) {
            return Err(Error::invalid(
                "the genome has neither input nor output areas, which agents write and read",
            ));
        }
        let options = simulation_options(genome, constant_inputs);
        let mut simulation = Simulation::sharded(network, devices, &options)?;
        // Drivers compile at the first launch: launch here, not in the first burst.
        if simulation.session().device().info().executes() {
            let first = simulation.snapshot()?;
            simulation.run(1)?;
            simulation.restore(&first)?;
        }
        Ok(Self {
            title: genome.title().to_owned(),
            areas,
            simulation,
            inputs: Vec::new(),
        })
    }

    /// Names the files that the network was made from, for the receipt.
    #[must_use]
    pub fn with_inputs(self, inputs: Vec<InputFile>) -> Self {
        Self { inputs, ..self }
    }
}

/// The options of the simulation of a served genome: injections into every input neuron, firings of
/// every output neuron.
pub fn simulation_options(genome: &Genome, constant_inputs: Vec<(u32, f32)>) -> SimulationOptions {
    let of_role = |role| genome.areas().iter().filter(move |area| area.role == role);
    let inputs = of_role(AreaRole::Input).map(|area| area.neurons.len());
    let outputs = of_role(AreaRole::Output).map(|area| area.neurons.clone());
    SimulationOptions {
        constant_inputs,
        max_inputs: inputs.sum::<usize>().max(1),
        recorded_neurons: outputs.collect(),
        ..SimulationOptions::default()
    }
}

/// What a server counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Bursts that ran.
    pub bursts: u64,
    /// Deadlines that passed while a burst ran: bursts that did not take place.
    pub missed_deadlines: u64,
    /// Registrations.
    pub registrations: u64,
    /// Registrations that replaced an earlier one of the same agent.
    pub replaced_agents: u64,
    /// Registrations that were refused: a token, a key, or too many agents.
    pub refused_agents: u64,
    /// Agents that ended their registration.
    pub deregistrations: u64,
    /// Agents whose registration ended because they were silent.
    pub stale_agents: u64,
    /// Sensor frames that were accepted.
    pub sensor_frames: u64,
    /// Sensor frames that a burst used.
    pub used_frames: u64,
    /// Sensor frames that a later one of the same connection replaced before a burst used them.
    pub replaced_frames: u64,
    /// Sensor frames whose counter was not above the last one.
    pub stale_frames: u64,
    /// Sensor frames that were refused: an area, a coordinate, an activation or their form.
    pub refused_frames: u64,
    /// Requests that were refused for their form.
    pub refused_requests: u64,
    /// Connections that were ended: no agent is registered for them, or their bytes are wrong.
    pub refused_connections: u64,
    /// Motor frames that were sent, over all agents.
    pub motor_frames: u64,
    /// Motor frames that a later one replaced before they were sent.
    pub dropped_motor_frames: u64,
}

/// What a server did, at its end.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// All counts.
    pub counts: Counts,
    /// From the deadline of a burst until its motor frame is ready for the sockets.
    pub burst_latency_ms: Latency,
    /// Device, code, time of bursts on the device, and the two above.
    pub receipt: Receipt,
}

/// A server, until it is stopped or dropped.
pub struct Server {
    control: Address,
    sensors: Address,
    motors: Address,
    title: String,
    inputs: Vec<InputFile>,
    bursts_per_s: f64,
    state: SharedState,
    stop: Arc<AtomicBool>,
    bursts: Option<JoinHandle<Result<Outcome>>>,
    _io: IoThread,
}

impl Server {
    /// Begins to serve, and to run bursts.
    ///
    /// # Errors
    /// `Invalid` for an address that other machines reach without a token, a token that is not
    /// base64 of 32 bytes, and a rate that is not positive; `Io` for an address that is in use.
    pub fn start(served: ServedGenome, settings: &ServerSettings) -> Result<Self> {
        let (period, token) = (settings.period()?, settings.token()?);
        let open = |address: &Address| bind(address, settings.token.as_ref());
        let (control_listener, control) = open(&settings.control)?;
        let (sensors_listener, sensors) = open(&settings.sensors)?;
        let (motors_listener, motors) = open(&settings.motors)?;
        let agents = Agents::new(settings.max_agents, settings.stale_after, token);
        let state = SharedState::new(agents);
        let areas = Arc::new(served.areas);
        let desk = Desk {
            state: state.clone(),
            areas: areas.clone(),
            sensors: sensors.clone(),
            motors: motors.clone(),
            max_frame: settings.max_frame_bytes,
            max_rate: settings.max_rate,
            stale_after: settings.stale_after,
        };
        let io = IoThread::start()?;
        io.spawn(listen(SocketKind::Router, control_listener, desk.clone()));
        io.spawn(listen(SocketKind::Pull, sensors_listener, desk.clone()));
        io.spawn(listen(SocketKind::Publisher, motors_listener, desk));
        io.spawn(watch(state.clone(), settings.stale_after));
        let stop = Arc::new(AtomicBool::new(false));
        let bursts = Bursts {
            simulation: served.simulation,
            areas,
            state: state.clone(),
            period,
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new().name("tectum-bursts".to_owned());
        let bursts = thread
            .spawn(move || bursts.run())
            .map_err(|source| Error::io("a thread for bursts", source))?;
        Ok(Self {
            control,
            sensors,
            motors,
            title: served.title,
            inputs: served.inputs,
            bursts_per_s: settings.bursts_per_s,
            state,
            stop,
            bursts: Some(bursts),
            _io: io,
        })
    }

    /// Where agents register.
    pub fn control(&self) -> &Address {
        &self.control
    }

    /// Where agents send sensors to.
    pub fn sensors(&self) -> &Address {
        &self.sensors
    }

    /// Where agents receive motors from.
    pub fn motors(&self) -> &Address {
        &self.motors
    }

    /// What it has counted so far.
    pub fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    /// The agents that are registered now.
    pub fn agents(&self) -> usize {
        self.state.lock().agents.count()
    }

    /// Whether bursts run; false after an error, which [`Server::stop`] returns.
    pub fn is_running(&self) -> bool {
        self.bursts
            .as_ref()
            .is_some_and(|bursts| !bursts.is_finished())
    }

    /// Ends the bursts and the connections.
    ///
    /// # Errors
    /// The error that ended the bursts.
    pub fn stop(mut self) -> Result<Report> {
        let Outcome {
            receipt,
            latency_ms,
        } = self.end()?;
        let counts = self.counts();
        let workload = json!({
            "genome": self.title,
            "protocol": "feagi",
            "bursts_per_s": self.bursts_per_s,
            "served": counts,
            "burst_latency_ms": latency_ms,
        });
        let receipt = Receipt {
            inputs: std::mem::take(&mut self.inputs),
            workload: Some(workload),
            ..receipt
        };
        Ok(Report {
            counts,
            burst_latency_ms: latency_ms,
            receipt,
        })
    }

    fn end(&mut self) -> Result<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = || Error::invalid("the bursts have ended");
        let bursts = self.bursts.take().ok_or_else(ended)?;
        match bursts.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error is reported where it is stopped.
        if self.bursts.is_some() && !std::thread::panicking() {
            let _ = self.end();
        }
    }
}
