//! Brains for the robots of em-brain, over their own protocol.
//!
//! A robot connects, sends a handshake, and then sends sensors and receives an action for them, one
//! request at a time. Requests have no numbers, so that an answer after the robot's own timeout
//! would be read as that of its next request, and so would all after it. The server therefore never
//! answers late: a request that arrives before the answer to the one before, and an answer that
//! takes longer than the timeout, end the connection. The robot connects again and is in step.
//!
//! A connection has a session like every other client of the server: a brain of its own on a thread of
//! its own, the same counts and the same limits. The observation is a message for it.
//!
//! What is refused is an error frame, `[code, needed, found]`, and a line in the log; then the
//! connection ends:
//!
//! | code | reason |
//! |---|---|
//! | 1 | the bytes are no frame, or not the one that is due |
//! | 2 | the version differs |
//! | 3 | the count of sensors differs |
//! | 4 | the count of actions differs |
//! | 5 | too many clients, or too many frames per second |
//! | 6 | the brain has no answer |

pub(crate) mod frame;
mod telemetry;

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use tectum::{Error, Result};
use tectum_control::body::BodySpec;
use tectum_control::message::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::broadcast;

use self::frame::{Frame, Kind};
use self::telemetry::{Cycle, Telemetry};
use super::rate::Rate;
use super::session::{Reply, Request};
use super::{Desk, SessionEnds};
use crate::io_thread::IoThread;
use crate::server::{BoundedListener, Counted};

/// The version of the protocol.
const VERSION: f32 = 1.0;
/// What the server states that it can do: all four bits of the protocol.
const CAPABILITIES: f32 = 15.0;
/// How long a client may take for its handshake, and to read an answer.
const LIMIT: Duration = Duration::from_secs(5);
/// A robot that sends nothing for this long is gone: the protocol has no pings.
const IDLE: Duration = Duration::from_secs(60);

/// Where and how the robots of em-brain are served.
#[derive(Debug, Clone)]
pub struct EmBrainSettings {
    /// The address; the robots use port 9999, port 0 is any free one.
    pub address: SocketAddr,
    /// Where each answer is sent as a line of JSON to anybody who connects; em-brain uses port
    /// 9998.
    pub telemetry: Option<SocketAddr>,
    /// The timeout of the robots: an answer that takes longer ends the connection.
    pub timeout: Duration,
    /// Whether the addresses may be reached by other machines, which the protocol cannot ask for a
    /// token: each of them can use the brain.
    pub is_open_without_token: bool,
}

impl EmBrainSettings {
    /// No telemetry, and the 50 ms after which the robots give up by default.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            telemetry: None,
            timeout: Duration::from_millis(50),
            is_open_without_token: false,
        }
    }

    /// # Errors
    /// `Invalid` for an address that other machines reach, unless that is stated, and for a body
    /// with channels that are arrays.
    fn check(&self, body: &BodySpec) -> Result<()> {
        let addresses = [Some(self.address), self.telemetry];
        let mut others = addresses
            .into_iter()
            .flatten()
            .filter(|address| !address.ip().is_loopback());
        if let Some(address) = others.next().filter(|_| !self.is_open_without_token) {
            return Err(Error::invalid(format!(
                "address {address}: it is not on this machine, and the protocol of em-brain has no token; --em-brain-without-token lets every machine that reaches it use the brain"
            )));
        }
        let mut channels = body.observation.iter();
        if let Some(channel) = channels.find(|channel| channel.is_array()) {
            return Err(Error::invalid(format!(
                "body {}: channel {} is an array; a frame of em-brain has single numbers",
                body.name, channel.name
            )));
        }
        let count = body.observation.len().max(body.action.len());
        if count > frame::MAX_NUMBERS as usize {
            return Err(Error::invalid(format!(
                "body {}: it has {count} channels, a frame of em-brain has up to {} numbers",
                body.name,
                frame::MAX_NUMBERS
            )));
        }
        Ok(())
    }
}

/// Where a server of em-brain's protocol listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmBrainAddresses {
    /// Where robots connect.
    pub address: SocketAddr,
    /// Where telemetry is sent, if it is.
    pub telemetry: Option<SocketAddr>,
}

/// Begins to serve.
///
/// # Errors
/// As [`EmBrainSettings::check`]; `Io` for an address that is in use.
pub(super) fn start(
    settings: &EmBrainSettings,
    desk: Desk,
    io: &IoThread,
) -> Result<EmBrainAddresses> {
    settings.check(&desk.served.body)?;
    let (listener, address) = bind(settings.address)?;
    let bound = settings.telemetry.map(bind).transpose()?;
    let lines = bound.as_ref().map(|_| {
        let (lines, _) = broadcast::channel(telemetry::MAX_WAITING);
        lines
    });
    let server = EmBrain {
        desk,
        timeout: settings.timeout,
        telemetry: Telemetry(lines.clone()),
    };
    io.spawn(async move {
        match BoundedListener::new(listener) {
            Ok(listener) => server.run(listener).await,
            Err(error) => tracing::error!(%error, "the listener failed"),
        }
    });
    let telemetry = bound.as_ref().map(|(_, address)| *address);
    if let (Some((listener, _)), Some(lines)) = (bound, lines) {
        io.spawn(async move {
            match BoundedListener::new(listener) {
                Ok(listener) => telemetry::serve(listener, lines).await,
                Err(error) => tracing::error!(%error, "the listener failed"),
            }
        });
    }
    Ok(EmBrainAddresses { address, telemetry })
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let failed = |source| Error::io(format!("address {address}"), source);
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// The server.
#[derive(Clone)]
struct EmBrain {
    desk: Desk,
    timeout: Duration,
    telemetry: Telemetry,
}

/// Why a connection ends.
enum End {
    /// The client is gone, or must not be sent anything that it could read as an answer.
    Silent(Option<String>),
    /// Each is an error frame.
    Refused(Vec<Refusal>),
}

/// A reason with its error frame.
struct Refusal {
    numbers: [f32; 3],
    reason: String,
}

impl End {
    fn refused(code: u8, reason: impl Into<String>) -> Self {
        Self::Refused(vec![Refusal::new(code, [0.0; 2], reason)])
    }
}

impl Refusal {
    fn new(code: u8, [needed, found]: [f32; 2], reason: impl Into<String>) -> Self {
        Self {
            numbers: [f32::from(code), needed, found],
            reason: reason.into(),
        }
    }
}

impl EmBrain {
    async fn run(self, mut listener: BoundedListener) {
        for client in 1_u64.. {
            let (stream, address) = axum::serve::Listener::accept(&mut listener).await;
            let own = self.clone();
            tokio::spawn(async move {
                let mut robot = Robot {
                    stream,
                    bytes: Vec::new(),
                };
                let Err(end) = own.talk(client, &mut robot).await else {
                    return;
                };
                let (refusals, silent) = match end {
                    End::Silent(reason) => (Vec::new(), reason),
                    End::Refused(refusals) => (refusals, None),
                };
                let reasons = refusals.iter().map(|refusal| refusal.reason.as_str());
                for reason in reasons.chain(silent.as_deref()) {
                    tracing::warn!(%address, reason, "a robot is refused");
                    own.desk.count(|counts| counts.errors += 1);
                }
                for refusal in refusals {
                    // A client that is gone reads no reason.
                    let _ = robot.send(Kind::Error, refusal.numbers.to_vec()).await;
                }
            });
        }
    }

    /// One connection, from the handshake to its end.
    async fn talk(&self, client: u64, robot: &mut Robot) -> std::result::Result<(), End> {
        let desk = &self.desk;
        let Ok(permit) = desk.free.clone().try_acquire_owned() else {
            desk.count(|counts| counts.refused += 1);
            let reason = format!("{} clients are connected, the maximum", desk.max_sessions);
            return Err(End::refused(5, reason));
        };
        let handshake = tokio::time::timeout(LIMIT, robot.receive()).await;
        let handshake = handshake.map_err(|_| End::refused(1, "no handshake within 5 s"))??;
        let Some(handshake) = handshake else {
            return Ok(());
        };
        let body = &desk.served.body;
        check_handshake(&handshake, body)?;
        let counts = [body.observation.len(), body.action.len()].map(|count| count as f32);
        let is_accelerated = f32::from(u8::from(desk.served.device.info().id != "cpu"));
        let own = vec![VERSION, counts[0], counts[1], is_accelerated, CAPABILITIES];
        robot.send(Kind::Handshake, own).await?;
        desk.count(|counts| counts.sessions += 1);
        let session = desk.start_session(permit);
        let mut session = session.map_err(|error| End::refused(6, error.to_string()))?;
        let (mut rate, begin) = (Rate::new(desk.max_rate), Instant::now());
        for cycle in 1_u64.. {
            let frame = tokio::time::timeout(IDLE, robot.receive()).await;
            let frame = frame.map_err(|_| End::Silent(Some("no frame within 60 s".to_owned())))?;
            let Some(frame) = frame? else {
                return Ok(());
            };
            let arrived = Instant::now();
            if !rate.count(begin.elapsed().as_nanos() as u64) {
                let reason = format!("more than {} frames per second", desk.max_rate);
                return Err(End::refused(5, reason));
            }
            check_sensors(&frame, body)?;
            let sensors = frame.numbers;
            let observation = body.write_observation(Message::new("observation", cycle), &sensors);
            let (action, is_safe) = self.ask(robot, &mut session, &observation, arrived).await?;
            robot.send(Kind::Action, action.clone()).await?;
            self.telemetry.send(&Cycle {
                client,
                cycle,
                sensors: &sensors,
                action: &action,
                is_safe,
                elapsed: arrived.elapsed(),
            });
        }
        Ok(())
    }

    /// The action for an observation, unless the robot does not wait for it any more.
    async fn ask(
        &self,
        robot: &mut Robot,
        session: &mut SessionEnds,
        observation: &Message,
        arrived: Instant,
    ) -> std::result::Result<(Vec<f32>, bool), End> {
        let refused = |reason: String| End::refused(6, reason);
        let content = observation
            .to_bytes()
            .map_err(|error| refused(error.to_string()))?;
        let request = Request { content, arrived };
        // With one request at a time the queue is never full; a session that ended has replied why.
        let _ = session.requests.try_send(request);
        let deadline = arrived + self.timeout;
        let reply = tokio::select! {
            biased;
            end = robot.interruption() => return Err(end),
            () = tokio::time::sleep_until(deadline.into()) => None,
            reply = session.replies.recv() => Some(reply),
        };
        // The answer may be ready in the instant in which it is late.
        let reply = reply.filter(|_| Instant::now() < deadline).ok_or_else(|| {
            let reason = format!(
                "the answer takes longer than the timeout of {} ms",
                self.timeout.as_millis()
            );
            End::Silent(Some(reason))
        })?;
        let content = match reply {
            Some(Reply::Answer(content)) => content,
            Some(Reply::Error(reason)) => return Err(refused(reason)),
            Some(Reply::End) | None => return Err(refused("the session ended".to_owned())),
        };
        let answer = Message::parse(&content).map_err(|error| refused(error.to_string()))?;
        let reason = answer
            .text("message")
            .unwrap_or("an answer without an action");
        let action = answer.array("action").ok().and_then(|array| array.to_f32());
        let action = action.ok_or_else(|| refused(reason.to_owned()))?;
        Ok((action, answer.flag("safe").unwrap_or(false)))
    }
}

/// Compares what a robot states with what is served; each difference has its own error.
fn check_handshake(handshake: &Frame, body: &BodySpec) -> std::result::Result<(), End> {
    let (3.., Kind::Handshake) = (handshake.numbers.len(), handshake.kind) else {
        let reason = format!(
            "the first frame has the type {} and {} numbers, needs 2 and [version, sensors, actions, …]",
            handshake.kind.code(),
            handshake.numbers.len()
        );
        return Err(End::refused(1, reason));
    };
    let needed = [
        (2, "version of the protocol", VERSION),
        (3, "count of sensors", body.observation.len() as f32),
        (4, "count of actions", body.action.len() as f32),
    ];
    let pairs = needed.into_iter().zip(&handshake.numbers);
    let differences = pairs.filter(|((.., needed), found)| needed != *found);
    let refusals: Vec<Refusal> = differences
        .map(|((code, what, needed), found)| {
            let reason = format!(
                "the {what} of the robot is {found}, that of {} is {needed}",
                body.name
            );
            Refusal::new(code, [needed, *found], reason)
        })
        .collect();
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(End::Refused(refusals)),
    }
}

fn check_sensors(frame: &Frame, body: &BodySpec) -> std::result::Result<(), End> {
    if frame.kind != Kind::Sensors {
        let code = frame.kind.code();
        let reason = format!("a frame has the type {code}, needs 0, the sensors");
        return Err(End::refused(1, reason));
    }
    let (needed, found) = (body.observation.len(), frame.numbers.len());
    if needed == found {
        return Ok(());
    }
    let reason = format!("a frame has {found} sensors, {} has {needed}", body.name);
    let refusal = Refusal::new(3, [needed as f32, found as f32], reason);
    Err(End::Refused(vec![refusal]))
}

/// A connection and what has arrived of its next frame.
struct Robot {
    stream: Counted,
    bytes: Vec<u8>,
}

impl Robot {
    /// The next frame; none at the end.
    async fn receive(&mut self) -> std::result::Result<Option<Frame>, End> {
        loop {
            let decoded = Frame::decode(&self.bytes);
            if let Some((frame, size)) = decoded.map_err(|reason| End::refused(1, reason))? {
                self.bytes.drain(..size);
                return Ok(Some(frame));
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read(&mut self) -> std::result::Result<usize, End> {
        let mut bytes = [0; 4096];
        let read = self.stream.read(&mut bytes).await;
        let count = read.map_err(|_| End::Silent(None))?;
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// Waits until the robot ends the connection, or sends a request before its answer.
    async fn interruption(&mut self) -> End {
        if self.bytes.is_empty() {
            match self.read().await {
                Ok(0) => return End::Silent(None),
                Err(end) => return end,
                Ok(_) => {}
            }
        }
        let reason = "a request arrived before the answer to the one before it";
        End::Silent(Some(reason.to_owned()))
    }

    async fn send(&mut self, kind: Kind, numbers: Vec<f32>) -> std::result::Result<(), End> {
        let bytes = Frame { kind, numbers }.to_bytes();
        let sent = tokio::time::timeout(LIMIT, self.stream.write_all(&bytes)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(End::Silent(None)),
        }
    }
}
