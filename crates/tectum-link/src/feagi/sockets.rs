//! The three sockets: control, sensors and motors, each connection in a task of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::serve::Listener as _;
use tectum::{Error, ErrorKind, Result};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Counts;
use super::agents::{Agents, ConnectionId, Outcome, Stream};
use super::areas::{Areas, Injections};
use super::container::{self, AgentId, Container, write_json};
use super::message::{RegistrationRequest, Reply, Request};
use super::zmtp::{Reader, Received, SocketKind, encode, introduction, send};
use crate::Address;
use crate::serve::rate::Rate;
use crate::server::{BoundedListener, Counted};

/// The time from a connection's begin to its socket's kind.
const MAX_HANDSHAKE: Duration = Duration::from_secs(5);
/// Bytes of a message on the control socket.
const MAX_REQUEST: usize = 1 << 20;
/// Bytes of a subscription, and subscriptions of a connection.
const MAX_SUBSCRIPTION: usize = 256;
const MAX_SUBSCRIPTIONS: usize = 16;

/// What the loop of bursts and the tasks of sockets exchange, under a lock that is held for a copy.
pub(super) struct State {
    pub agents: Agents,
    pub counts: Counts,
    /// The latest sensor frame of each connection that no burst has used.
    pub frames: BTreeMap<ConnectionId, Injections>,
    pub subscribers: BTreeMap<ConnectionId, Subscriber>,
    connections: ConnectionId,
}

/// A state that several threads use.
#[derive(Clone)]
pub(super) struct SharedState(Arc<Mutex<State>>);

impl SharedState {
    pub fn new(agents: Agents) -> Self {
        Self(Arc::new(Mutex::new(State {
            agents,
            counts: Counts::default(),
            frames: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            connections: 0,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that receives motor frames.
pub(super) struct Subscriber {
    agent: AgentId,
    /// A frame that begins with one of them is sent.
    prefixes: Vec<Vec<u8>>,
    /// The latest frame that was not sent yet.
    waiting: Option<Arc<Vec<u8>>>,
    wake: Arc<Notify>,
}

impl Subscriber {
    /// The id with the size that the agent reads.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Replaces the frame that waits; true if one did.
    pub fn offer(&mut self, frame: &Arc<Vec<u8>>) -> bool {
        if !self.prefixes.iter().any(|prefix| frame.starts_with(prefix)) {
            return false;
        }
        self.wake.notify_one();
        self.waiting.replace(frame.clone()).is_some()
    }

    fn change(&mut self, is_added: bool, prefix: &[u8]) -> Result<()> {
        let place = self.prefixes.iter().position(|own| own == prefix);
        match (is_added, place) {
            (true, _) if self.prefixes.len() >= MAX_SUBSCRIPTIONS => {
                return Err(Error::data(format!(
                    "more than {MAX_SUBSCRIPTIONS} subscriptions"
                )));
            }
            (true, _) => self.prefixes.push(prefix.to_vec()),
            (false, Some(place)) => drop(self.prefixes.remove(place)),
            (false, None) => {}
        }
        Ok(())
    }
}

/// What every connection knows.
#[derive(Clone)]
pub(super) struct Desk {
    pub state: SharedState,
    pub areas: Arc<Areas>,
    pub sensors: Address,
    pub motors: Address,
    pub max_frame: usize,
    pub max_rate: u32,
    pub stale_after: Duration,
}

/// Accepts the connections of a socket.
pub(super) async fn listen(kind: SocketKind, listener: std::net::TcpListener, desk: Desk) {
    let mut listener = match BoundedListener::new(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the listener for agents failed");
            return;
        }
    };
    loop {
        let (stream, peer) = listener.accept().await;
        tokio::spawn(connection(kind, stream, peer, desk.clone()));
    }
}

/// Ends the registrations of silent agents.
pub(super) async fn watch(state: SharedState, stale_after: Duration) {
    loop {
        tokio::time::sleep((stale_after / 8).min(Duration::from_secs(1))).await;
        let mut state = state.lock();
        for agent in state.agents.prune(Instant::now()) {
            state.counts.stale_agents += 1;
            tracing::warn!(
                agent = agent.agent_name,
                ?stale_after,
                "an agent is silent: it is deregistered"
            );
        }
    }
}

/// One connection until its end.
async fn connection(kind: SocketKind, stream: Counted, peer: SocketAddr, desk: Desk) {
    let number = {
        let mut state = desk.state.lock();
        state.connections += 1;
        state.connections
    };
    let local = stream.local_addr().map(|address| address.ip());
    let max_message = match kind {
        SocketKind::Router => MAX_REQUEST,
        SocketKind::Pull => desk.max_frame,
        SocketKind::Publisher => MAX_SUBSCRIPTION,
    };
    let (reader, writer) = tokio::io::split(stream);
    let mut connection = Connection {
        desk,
        number,
        host: peer.ip().to_canonical(),
        local: local.unwrap_or(peer.ip()),
        reader: Reader::new(reader, max_message),
        writer,
        begin: Instant::now(),
    };
    let result = match timeout(MAX_HANDSHAKE, connection.open(kind)).await {
        Ok(Ok(())) => match kind {
            SocketKind::Router => connection.control().await,
            SocketKind::Pull => connection.sensors().await,
            SocketKind::Publisher => connection.motors().await,
        },
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::data(format!(
            "no handshake within {MAX_HANDSHAKE:?}"
        ))),
    };
    let mut state = connection.desk.state.lock();
    state.agents.disconnect(number);
    state.subscribers.remove(&number);
    // A connection that was lost is no error of its peer.
    if let Err(error) = result.or_else(|error| match error.kind() {
        ErrorKind::Io => Ok(()),
        _ => Err(error),
    }) {
        state.counts.refused_connections += 1;
        tracing::warn!(%peer, socket = ?kind, %error, "a connection is ended");
    }
}

struct Connection {
    desk: Desk,
    number: ConnectionId,
    host: IpAddr,
    /// The address of this machine that it has connected to.
    local: IpAddr,
    reader: Reader<ReadHalf<Counted>>,
    writer: WriteHalf<Counted>,
    begin: Instant,
}

impl Connection {
    /// The handshake.
    async fn open(&mut self, kind: SocketKind) -> Result<()> {
        send(&mut self.writer, &introduction(kind)).await?;
        self.reader.greet(kind).await
    }

    fn count(&self, rate: &mut Rate) -> Result<()> {
        match rate.count(self.begin.elapsed().as_nanos() as u64) {
            true => Ok(()),
            false => {
                let max = self.desk.max_rate;
                Err(Error::data(format!("more than {max} messages per second")))
            }
        }
    }

    /// Answers requests.
    async fn control(&mut self) -> Result<()> {
        let mut rate = Rate::new(self.desk.max_rate);
        // An agent that is silent for so long has no registration any more; it connects again.
        let silence = 2 * self.desk.stale_after;
        loop {
            let Ok(received) = timeout(silence, self.reader.receive()).await else {
                return Ok(());
            };
            let Some(received) = received? else {
                return Ok(());
            };
            self.count(&mut rate)?;
            let Received::Message(frames) = received else {
                continue;
            };
            // With the empty frame that stands before a request, or without it.
            let (envelope, content) = match &frames[..] {
                [empty, content] if empty.is_empty() => (&frames[..1], content),
                [content] => (&frames[..0], content),
                _ => {
                    return Err(Error::data(format!(
                        "control: {} frames; an empty one and a container are needed",
                        frames.len()
                    )));
                }
            };
            let container = Container::parse(content)?;
            let Some((agent, reply)) = self.answer(&container) else {
                continue;
            };
            let structure = write_json(&reply.to_json(agent.size()));
            let content = container::write(0, &agent, &structure);
            let envelope = envelope.iter().map(Vec::as_slice);
            let frames: Vec<&[u8]> = envelope.chain([&content[..]]).collect();
            send(&mut self.writer, &encode(&frames)).await?;
        }
    }

    /// The answer to a request, and the agent that it names; none for a message of an unknown agent
    /// that is no registration.
    fn answer(&self, container: &Container<'_>) -> Option<(AgentId, Reply)> {
        let mut state = self.desk.state.lock();
        let (id, now) = (container.agent, Instant::now());
        let request = match Request::of(container) {
            Ok(request) => request,
            Err(error) => {
                state.counts.refused_requests += 1;
                tracing::warn!(peer = %self.host, error = %causes(&error), "a request is refused");
                // An agent that registers would wait for an answer.
                return id.is_blank().then_some((id, Reply::InvalidRequest));
            }
        };
        match request {
            Request::HeartBeat | Request::AgentConfiguration(_) => state
                .agents
                .hear(&id, self.host, self.number, now)
                .then_some((id, Reply::HeartBeat)),
            Request::HealthCheck(_) => {
                state.agents.hear(&id, self.host, self.number, now);
                None
            }
            Request::AgentRegistration(RegistrationRequest::ClientRequestDeregistration(end)) => {
                let Some(agent) = state.agents.deregister(&id, self.host) else {
                    return Some((id, Reply::NotRegistered));
                };
                state.counts.deregistrations += 1;
                let reason = end.reason.unwrap_or_default();
                tracing::info!(agent = agent.agent_name, reason, "an agent is deregistered");
                Some((id, Reply::Deregistered))
            }
            Request::AgentRegistration(RegistrationRequest::ClientRequestRegistration(request)) => {
                let name = request.agent_descriptor.agent_name.clone();
                let own = (self.host, self.number);
                match state.agents.register(request, id.size(), own, now) {
                    Outcome::Registered {
                        id,
                        capabilities,
                        is_replaced,
                    } => {
                        state.counts.registrations += 1;
                        state.counts.replaced_agents += u64::from(is_replaced);
                        tracing::info!(agent = name, peer = %self.host, "an agent is registered");
                        let url = |address: &Address, is_requested: bool| {
                            is_requested.then(|| reached(address, self.local))
                        };
                        let reply = Reply::Registered {
                            agent: id,
                            sensors: url(&self.desk.sensors, capabilities.sends_sensors),
                            motors: url(&self.desk.motors, capabilities.receives_motors),
                        };
                        Some((id, reply))
                    }
                    Outcome::Refused(reply, reason) => {
                        state.counts.refused_agents += 1;
                        tracing::warn!(agent = name, peer = %self.host, reason, "an agent is refused");
                        Some((AgentId::blank(id.size()), reply))
                    }
                }
            }
        }
    }

    /// Stores the latest sensor frame.
    async fn sensors(&mut self) -> Result<()> {
        let assigned =
            self.desk
                .state
                .lock()
                .agents
                .assign(Stream::Sensors, self.host, self.number);
        let Some((agent, mut registered)) = assigned else {
            return Err(unknown());
        };
        let mut rate = Rate::new(self.desk.max_rate);
        let (mut counter, mut last_error) = (0, String::new());
        loop {
            let received = tokio::select! {
                _ = registered.changed() => return Ok(()),
                received = self.reader.receive() => received?,
            };
            let Some(received) = received else {
                return Ok(());
            };
            self.count(&mut rate)?;
            let Received::Message(frames) = received else {
                continue;
            };
            match self.injections(&frames, &agent, &mut counter) {
                Ok(Some(injections)) => {
                    let mut state = self.desk.state.lock();
                    state.agents.hear_sensors(self.number, Instant::now());
                    state.counts.sensor_frames += 1;
                    let replaced = state.frames.insert(self.number, injections);
                    state.counts.replaced_frames += u64::from(replaced.is_some());
                }
                Ok(None) => self.desk.state.lock().counts.stale_frames += 1,
                Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
                Err(error) => {
                    self.desk.state.lock().counts.refused_frames += 1;
                    // A reason that repeats with every frame is logged once.
                    let error = error.to_string();
                    if error != last_error {
                        tracing::warn!(peer = %self.host, error, "a sensor frame is refused");
                        last_error = error;
                    }
                }
            }
        }
    }

    /// The injections of a frame; none for one whose counter is not above the last one.
    fn injections(
        &self,
        frames: &[Vec<u8>],
        agent: &AgentId,
        counter: &mut u16,
    ) -> Result<Option<Injections>> {
        let [content] = frames else {
            return Err(Error::data(format!(
                "sensors: {} frames; one container is needed",
                frames.len()
            )));
        };
        let container = Container::parse(content)?;
        if !container.agent.is_blank() && container.agent != *agent {
            return Err(Error::data(
                "sensors: the agent id is not that of the connection's agent",
            ));
        }
        if is_stale(container.counter, *counter) {
            return Ok(None);
        }
        let injections = self.desk.areas.injections(&container)?;
        if container.counter != 0 {
            *counter = container.counter;
        }
        Ok(Some(injections))
    }

    /// Sends the latest motor frame.
    async fn motors(&mut self) -> Result<()> {
        let wake = Arc::new(Notify::new());
        let mut registered = {
            let mut state = self.desk.state.lock();
            let assigned = state.agents.assign(Stream::Motors, self.host, self.number);
            let (agent, registered) = assigned.ok_or_else(unknown)?;
            let subscriber = Subscriber {
                agent,
                prefixes: Vec::new(),
                waiting: None,
                wake: wake.clone(),
            };
            state.subscribers.insert(self.number, subscriber);
            registered
        };
        let (state, number) = (&self.desk.state, self.number);
        tokio::select! {
            _ = registered.changed() => Ok(()),
            result = subscriptions(&mut self.reader, state, number) => result,
            result = publish(&mut self.writer, state, number, &wake) => result,
        }
    }
}

/// Whether a counter is not above the last one, on a circle; 0 is not counted.
fn is_stale(counter: u16, last: u16) -> bool {
    let ahead = counter.wrapping_sub(last).cast_signed();
    counter != 0 && last != 0 && ahead <= 0
}

fn unknown() -> Error {
    Error::data("no agent of this address is registered for it without a connection")
}

/// An error with its causes, in one line.
fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

/// The address of a socket for an agent that has reached this address of the machine.
fn reached(address: &Address, local: IpAddr) -> String {
    let (host, port) = address.host_and_port();
    let is_any = host.parse().is_ok_and(|host: IpAddr| host.is_unspecified());
    match is_any {
        true => format!("tcp://{}", SocketAddr::new(local.to_canonical(), port)),
        false => address.to_string(),
    }
}

/// Reads what a subscriber subscribes to.
async fn subscriptions(
    reader: &mut Reader<ReadHalf<Counted>>,
    state: &SharedState,
    number: ConnectionId,
) -> Result<()> {
    while let Some(received) = reader.receive().await? {
        // Messages in ZMTP 3.0, commands in 3.1.
        let (is_added, prefix) = match &received {
            Received::Message(frames) => match &frames[0][..] {
                [1, prefix @ ..] => (true, prefix),
                [0, prefix @ ..] => (false, prefix),
                _ => return Err(Error::data("motors: a message that is no subscription")),
            },
            Received::Command(name, prefix) => match &name[..] {
                b"SUBSCRIBE" => (true, &prefix[..]),
                b"CANCEL" => (false, &prefix[..]),
                _ => continue,
            },
        };
        if let Some(subscriber) = state.lock().subscribers.get_mut(&number) {
            subscriber.change(is_added, prefix)?;
        }
    }
    Ok(())
}

/// Sends frames as they come.
async fn publish(
    writer: &mut WriteHalf<Counted>,
    state: &SharedState,
    number: ConnectionId,
    wake: &Notify,
) -> Result<()> {
    loop {
        wake.notified().await;
        let own = |state: &mut State| state.subscribers.get_mut(&number)?.waiting.take();
        let Some(frame) = own(&mut state.lock()) else {
            continue;
        };
        send(writer, &encode(&[&frame[..]])).await?;
        state.lock().counts.motor_frames += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_run_in_a_circle_and_zero_is_none() {
        for (counter, last, expected) in [
            (0, 0, false),
            (0, 7, false),
            (7, 0, false),
            (7, 7, true),
            (6, 7, true),
            (8, 7, false),
            (1, u16::MAX, false),
            (u16::MAX, 1, true),
            (30_000, 1, false),
            (40_000, 1, true),
        ] {
            assert_eq!(is_stale(counter, last), expected, "{counter} after {last}");
        }
    }

    #[test]
    fn an_agent_gets_an_address_that_it_reaches() {
        let local = IpAddr::from([192, 0, 2, 1]);
        for (address, expected) in [
            ("tcp://127.0.0.1:5558", "tcp://127.0.0.1:5558"),
            ("tcp://robot.local:5558", "tcp://robot.local:5558"),
            ("tcp://0.0.0.0:5558", "tcp://192.0.2.1:5558"),
            ("tcp://[::]:5558", "tcp://192.0.2.1:5558"),
        ] {
            let address = Address::parse_tcp(address).expect(address);
            assert_eq!(reached(&address, local), expected);
        }
    }

    #[test]
    fn a_frame_that_waits_is_replaced() {
        let mut subscriber = Subscriber {
            agent: AgentId::blank(super::container::IdSize::Long),
            prefixes: Vec::new(),
            waiting: None,
            wake: Arc::new(Notify::new()),
        };
        let frames = [1, 2].map(|byte| Arc::new(vec![4, byte]));
        assert!(!subscriber.offer(&frames[0]) && subscriber.waiting.is_none());
        subscriber.change(true, &[4]).expect("one");
        assert!(!subscriber.offer(&frames[0]));
        assert!(subscriber.offer(&frames[1]));
        assert_eq!(subscriber.waiting.take(), Some(frames[1].clone()));
        subscriber.change(false, &[4]).expect("none");
        subscriber.change(true, &[5]).expect("one");
        assert!(!subscriber.offer(&frames[0]) && subscriber.waiting.is_none());
        (1..MAX_SUBSCRIPTIONS).for_each(|_| subscriber.change(true, &[5]).expect("below"));
        assert!(subscriber.change(true, &[5]).is_err());
    }
}
