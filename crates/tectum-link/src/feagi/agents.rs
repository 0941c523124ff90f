//! Who is registered, and which connection is whose.
//!
//! An agent opens its connections for sensors and motors right after its registration, and they
//! name no agent: the released client sends sensors without its id. A connection belongs to the agent
//! of the same address that registered last and has none of its kind.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::container::{AgentId, IdSize};
use super::message::{Capabilities, Descriptor, Registration, Reply};
use crate::token::is_same;

/// A registration of the same agent within this time of its last message is a repeated message, as
/// in FEAGI.
const REPEATED: Duration = Duration::from_secs(2);

/// A connection's number.
pub(super) type ConnectionId = u64;

/// What a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Sensors,
    Motors,
}

/// A registered agent.
#[derive(Debug)]
struct Agent {
    id: AgentId,
    descriptor: Descriptor,
    capabilities: Capabilities,
    host: IpAddr,
    heard: Instant,
    /// Its connections; that of control is absent after its end.
    control: Option<ConnectionId>,
    streams: [Option<ConnectionId>; 2],
    /// Its receivers learn of the end of the registration from the end of this sender.
    registered: watch::Sender<()>,
}

/// The registered agents.
#[derive(Debug)]
pub(super) struct Agents {
    agents: Vec<Agent>,
    max: usize,
    stale_after: Duration,
    token: Option<[u8; 32]>,
}

/// The result of a registration.
#[derive(Debug)]
pub(super) enum Outcome {
    Registered {
        id: AgentId,
        capabilities: Capabilities,
        /// It replaces an earlier registration of the same agent.
        is_replaced: bool,
    },
    /// Refused: the reply, and the reason for the log.
    Refused(Reply, String),
}

impl Agents {
    /// No agents. With a token, agents must show it.
    pub fn new(max: usize, stale_after: Duration, token: Option<[u8; 32]>) -> Self {
        Self {
            agents: Vec::new(),
            max,
            stale_after,
            token,
        }
    }

    /// How many are registered.
    pub fn count(&self) -> usize {
        self.agents.len()
    }

    /// Registers an agent whose control connection is this one.
    pub fn register(
        &mut self,
        request: Registration,
        size: IdSize,
        (host, control): (IpAddr, ConnectionId),
        now: Instant,
    ) -> Outcome {
        let shown = |token: [u8; 32]| is_same(request.token(), &token);
        if !self.token.is_none_or(shown) {
            return Outcome::Refused(Reply::InvalidToken, "its token is another".to_owned());
        }
        let capabilities = match request.check() {
            Ok(capabilities) => capabilities,
            Err(error) => return Outcome::Refused(Reply::InvalidRequest, error.to_string()),
        };
        let descriptor = request.agent_descriptor;
        let same = self
            .agents
            .iter()
            .position(|agent| agent.descriptor == descriptor);
        if let Some(place) = same {
            let agent = &self.agents[place];
            let is_alive = agent.control.is_some() && now < agent.heard + REPEATED;
            if is_alive && agent.capabilities == capabilities {
                let reason = "the same agent is registered".to_owned();
                return Outcome::Refused(Reply::AlreadyRegistered, reason);
            }
            self.agents.remove(place);
        } else if self.agents.len() >= self.max {
            let reason = format!("{} agents are registered, the maximum", self.max);
            return Outcome::Refused(Reply::InvalidRequest, reason);
        }
        let id = AgentId::new(size, random());
        self.agents.push(Agent {
            id,
            descriptor,
            capabilities,
            host,
            heard: now,
            control: Some(control),
            streams: [None; 2],
            registered: watch::Sender::new(()),
        });
        Outcome::Registered {
            id,
            capabilities,
            is_replaced: same.is_some(),
        }
    }

    /// Notes a message of an agent; false if there is no such agent at this address.
    pub fn hear(
        &mut self,
        id: &AgentId,
        host: IpAddr,
        control: ConnectionId,
        now: Instant,
    ) -> bool {
        let own = self
            .agents
            .iter_mut()
            .find(|agent| agent.id == *id && agent.host == host);
        let Some(agent) = own else {
            return false;
        };
        agent.heard = now;
        agent.control = Some(control);
        true
    }

    /// Ends the registration of an agent; none if there is no such agent at this address.
    pub fn deregister(&mut self, id: &AgentId, host: IpAddr) -> Option<Descriptor> {
        let own = |agent: &Agent| agent.id == *id && agent.host == host;
        let place = self.agents.iter().position(own)?;
        Some(self.agents.remove(place).descriptor)
    }

    /// Ends the registrations of agents that were silent for too long.
    pub fn prune(&mut self, now: Instant) -> Vec<Descriptor> {
        let limit = self.stale_after;
        let stale = self
            .agents
            .extract_if(.., |agent| now >= agent.heard + limit);
        stale.map(|agent| agent.descriptor).collect()
    }

    /// Gives a connection to an agent: its id, and a receiver that ends with its registration.
    pub fn assign(
        &mut self,
        stream: Stream,
        host: IpAddr,
        connection: ConnectionId,
    ) -> Option<(AgentId, watch::Receiver<()>)> {
        let free = |agent: &&mut Agent| {
            let is_requested = match stream {
                Stream::Sensors => agent.capabilities.sends_sensors,
                Stream::Motors => agent.capabilities.receives_motors,
            };
            is_requested && agent.host == host && agent.streams[stream as usize].is_none()
        };
        let agent = self.agents.iter_mut().rev().find(free)?;
        agent.streams[stream as usize] = Some(connection);
        Some((agent.id, agent.registered.subscribe()))
    }

    /// Notes sensors of a connection; false if its agent's registration has ended.
    pub fn hear_sensors(&mut self, connection: ConnectionId, now: Instant) -> bool {
        let place = Stream::Sensors as usize;
        let own = |agent: &&mut Agent| agent.streams[place] == Some(connection);
        let agent = self.agents.iter_mut().find(own);
        agent.map(|agent| agent.heard = now).is_some()
    }

    /// The end of a connection. Its agent stays registered: it may connect again.
    pub fn disconnect(&mut self, connection: ConnectionId) {
        for agent in &mut self.agents {
            let streams = agent.streams.iter_mut().chain([&mut agent.control]);
            streams
                .filter(|own| **own == Some(connection))
                .for_each(|own| *own = None);
        }
    }
}

/// Bytes that cannot be guessed: the standard library's keys are from the operating system.
fn random() -> [u8; 48] {
    let mut bytes = [0; 48];
    for (number, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&RandomState::new().hash_one(number).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::{REGISTRATION, registration};
    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn second(number: u64) -> impl Fn(Instant) -> Instant {
        move |begin| begin + Duration::from_secs(number)
    }

    fn named(name: &str) -> Registration {
        registration(&REGISTRATION.replace("robot", name))
    }

    fn registered(outcome: Outcome) -> AgentId {
        match outcome {
            Outcome::Registered { id, .. } => id,
            Outcome::Refused(_, reason) => panic!("{reason}"),
        }
    }

    fn refused(outcome: Outcome) -> Reply {
        match outcome {
            Outcome::Refused(reply, _) => reply,
            Outcome::Registered { .. } => panic!("registered"),
        }
    }

    #[test]
    fn only_the_token_registers_and_only_so_many_agents() {
        let now = Instant::now();
        let mut token = [0; 32];
        (0..32).for_each(|place| token[place as usize] = place);
        let mut agents = Agents::new(2, Duration::from_secs(30), Some(token));
        let other = registration(&REGISTRATION.replace(",31]", ",30]"));
        let reply = refused(agents.register(other, IdSize::Long, (HOST, 1), now));
        assert_eq!((reply, agents.count()), (Reply::InvalidToken, 0));
        let first = registered(agents.register(named("a"), IdSize::Long, (HOST, 1), now));
        let second = registered(agents.register(named("b"), IdSize::Short, (HOST, 2), now));
        assert_ne!(first, second);
        assert_eq!((first.bytes().len(), second.bytes().len()), (48, 8));
        assert!(!first.is_blank() && !second.is_blank());
        let reply = refused(agents.register(named("c"), IdSize::Long, (HOST, 3), now));
        assert_eq!((reply, agents.count()), (Reply::InvalidRequest, 2));
    }

    #[test]
    fn an_agent_is_stale_after_its_last_message() {
        let begin = Instant::now();
        let mut agents = Agents::new(8, Duration::from_secs(30), None);
        let id = registered(agents.register(named("a"), IdSize::Long, (HOST, 1), begin));
        let other = registered(agents.register(named("b"), IdSize::Long, (HOST, 2), begin));
        let (own, end) = agents.assign(Stream::Sensors, HOST, 5).expect("free");
        assert_eq!(own, other, "the one that registered last");
        assert!(agents.hear(&id, HOST, 1, second(10)(begin)));
        assert!(
            !agents.hear(&id, OTHER, 1, second(20)(begin)),
            "of another machine"
        );
        assert!(agents.hear_sensors(5, second(15)(begin)));
        assert_eq!(agents.prune(second(39)(begin)), vec![]);
        let stale = agents.prune(second(40)(begin));
        assert_eq!(stale.len(), 1);
        assert_eq!(stale[0].agent_name, "a");
        assert!(end.has_changed().is_ok());
        assert_eq!(agents.prune(second(45)(begin)).len(), 1);
        assert!(end.has_changed().is_err(), "its connections end");
        assert!(!agents.hear_sensors(5, second(45)(begin)));
        assert!(!agents.hear(&id, HOST, 1, second(45)(begin)));
    }

    #[test]
    fn connections_belong_to_agents_of_their_address() {
        let now = Instant::now();
        let mut agents = Agents::new(8, Duration::from_secs(30), None);
        assert!(agents.assign(Stream::Motors, HOST, 1).is_none());
        let sensors = REGISTRATION.replace(",\"receive_motor_data\"", "");
        let id = registered(agents.register(registration(&sensors), IdSize::Long, (HOST, 1), now));
        assert!(
            agents.assign(Stream::Motors, HOST, 2).is_none(),
            "not requested"
        );
        assert!(agents.assign(Stream::Sensors, OTHER, 2).is_none());
        assert!(agents.assign(Stream::Sensors, HOST, 2).is_some());
        assert!(
            agents.assign(Stream::Sensors, HOST, 3).is_none(),
            "it has one"
        );
        agents.disconnect(2);
        assert!(
            agents.assign(Stream::Sensors, HOST, 3).is_some(),
            "it connects again"
        );
        assert!(agents.deregister(&id, OTHER).is_none());
        assert!(agents.deregister(&id, HOST).is_some());
        assert!(agents.deregister(&id, HOST).is_none());
        assert!(!agents.hear_sensors(3, now));
    }

    #[test]
    fn the_same_agent_replaces_itself_unless_it_is_alive() {
        let begin = Instant::now();
        let mut agents = Agents::new(1, Duration::from_secs(30), None);
        let register = |agents: &mut Agents, control: ConnectionId, now: Instant| {
            agents.register(named("a"), IdSize::Long, (HOST, control), now)
        };
        let first = registered(register(&mut agents, 1, begin));
        let reply = refused(register(&mut agents, 2, second(1)(begin)));
        assert_eq!(reply, Reply::AlreadyRegistered);
        // Silent for two seconds.
        let next = registered(register(&mut agents, 2, second(2)(begin)));
        assert!(next != first && agents.count() == 1);
        // Its connection has ended.
        agents.disconnect(2);
        registered(register(&mut agents, 3, second(2)(begin)));
        // With other capabilities.
        let sensors = REGISTRATION.replace(",\"receive_motor_data\"", "");
        let other = registration(&sensors.replace("robot", "a"));
        registered(agents.register(other, IdSize::Long, (HOST, 4), second(2)(begin)));
        assert_eq!(agents.count(), 1);
    }
}
