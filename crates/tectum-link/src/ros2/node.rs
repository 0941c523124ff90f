//! A node of ROS 2 as the connection of a body: messages of topics become observations, and actions
//! become messages of topics.

use std::collections::VecDeque;
use std::time::Instant;

use tectum::Result;
use tectum_control::message::Message;

use super::Ros2Settings;
use super::graph::{NO_HASH, ros_name};
use super::mapping::{Arrival, Mapping};
use super::session::{Mismatch, Session, now_ns};
use super::steps::Steps;
use crate::Token;
use crate::handshake::Introduction;
use crate::incoming::Incoming;
use crate::mailbox::Mailbox;

/// A node.
pub(crate) struct Ros2Node {
    session: Session,
    settings: Ros2Settings,
    mapping: Mapping,
    /// What was made of messages that arrived, and is not received yet.
    ready: VecDeque<Incoming>,
    /// The number of the last observation.
    sequence: u64,
    /// The number of the last `start` or `reset`: the observations after it belong to its episode.
    /// Which action a robot has applied is unknown.
    answers: u64,
    is_started: bool,
    /// Requests before the start, and the simulated time.
    steps: Steps,
    /// A topic that another node has with another type, for the reason why there is no observation.
    other_type: Option<String>,
    /// That another node publishes the topics of the action, until it is reported.
    conflict: Option<String>,
}

impl Ros2Node {
    /// Connects, and announces the node.
    pub async fn open(
        settings: &Ros2Settings,
        token: Option<&Token>,
    ) -> std::result::Result<Self, String> {
        let mapping = Mapping::new(settings).map_err(|error| error.to_string())?;
        let plan = settings.session_plan(&mapping, token);
        Ok(Self {
            session: Session::open(plan).await?,
            settings: settings.clone(),
            mapping,
            ready: VecDeque::new(),
            sequence: 0,
            answers: 0,
            is_started: false,
            steps: Steps::new(settings.body.dt_s),
            other_type: None,
            conflict: None,
        })
    }

    /// Waits until each channel has a value, and no other node publishes the topics of the action: the
    /// robot works, and has the topics of the scenario.
    pub async fn introduce(&mut self, mailbox: &Mailbox) -> Result<Introduction> {
        loop {
            let other_writer = self.take();
            self.ready.clear();
            let missing = || self.mapping.missing(self.steps.clock_ns().is_some());
            let Some(reason) = other_writer.or_else(missing) else {
                break;
            };
            let other_type = self.other_type.iter().map(|text| format!("; {text}"));
            mailbox.note(&other_type.fold(reason, |reason, text| reason + &text));
            self.session.arrivals.wait().await;
        }
        Ok(Introduction {
            spec: self.settings.body.clone(),
            peer: "ROS 2".to_owned(),
        })
    }

    /// What arrives next. It may be dropped while it waits.
    pub async fn receive(&mut self) -> std::result::Result<Incoming, String> {
        loop {
            if let Some(incoming) = self.ready.pop_front() {
                return Ok(incoming);
            }
            if self.conflict.is_none() {
                self.session.arrivals.wait().await;
                self.conflict = self.take();
            }
            if self.conflict.is_some() {
                // Two writers command one robot: the last action of this node is the safe one.
                self.publish_safe_action().await?;
                return Err(self.conflict.take().unwrap_or_default());
            }
        }
    }

    /// Publishes an action; what a topic does not express is kept or answered here.
    pub async fn send(&mut self, message: &Message) -> std::result::Result<(), String> {
        let number = message.sequence().unwrap_or(0);
        match message.kind() {
            "action" => self.publish(message).await?,
            "start" => (self.is_started, self.answers) = (true, number),
            "reset" => {
                self.answers = number;
                if !self.is_started {
                    self.steps.reset(number);
                }
            }
            "step" => self.step(number, message).await?,
            _ => {}
        }
        Ok(())
    }

    /// Ends the session; without real time the robot gets its safe action before.
    pub async fn close(&mut self) -> std::result::Result<(), String> {
        if !self.is_started {
            self.publish_safe_action().await?;
        }
        self.session.close().await
    }

    /// Publishes the action of a period of simulated time.
    async fn step(&mut self, number: u64, message: &Message) -> std::result::Result<(), String> {
        if self.steps.step(number) {
            return self.publish(message).await;
        }
        let reason = "it follows the time of this machine: clock = \"real\" is needed, or the key clock of [body], which is the topic of simulated time";
        let refusal = Message::new("error", number).with("message", reason);
        self.ready.push_back(Incoming::Message(refusal));
        Ok(())
    }

    async fn publish(&mut self, message: &Message) -> std::result::Result<(), String> {
        let action = message.array("action").map_err(|error| error.to_string())?;
        let numbers = action.to_f32().unwrap_or_default();
        self.publish_numbers(&numbers).await
    }

    async fn publish_safe_action(&mut self) -> std::result::Result<(), String> {
        let safe = self.settings.body.safe_action.clone();
        self.publish_numbers(&safe).await
    }

    async fn publish_numbers(&mut self, action: &[f32]) -> std::result::Result<(), String> {
        let stamp_ns = self.steps.clock_ns().unwrap_or_else(now_ns);
        let messages = self.mapping.messages(action, stamp_ns);
        let messages = messages.map_err(|error| error.to_string())?;
        self.session.publish(messages).await
    }

    /// Makes observations of what has arrived; the reason if another node publishes the topics of the
    /// action.
    fn take(&mut self) -> Option<String> {
        let taken = self.session.arrivals.take();
        taken.mismatches.iter().for_each(warn_of);
        self.other_type = taken
            .mismatches
            .first()
            .map(text_of)
            .or(self.other_type.take());
        if let Some((node, topic)) = taken.other_writer {
            return Some(format!(
                "another node publishes on {topic}: {node}; a robot has one writer"
            ));
        }
        let (now, mut leading, mut has_time) = (Instant::now(), None, false);
        for (index, payload) in taken.messages.iter().enumerate() {
            let Some(payload) = payload else { continue };
            match self.mapping.read(index, &payload.to_bytes(), now) {
                Ok(Arrival::Channels { led }) => leading = led.or(leading),
                Ok(Arrival::Arm(true)) => {
                    let arm = Message::new("arm", 0);
                    self.ready.push_back(Incoming::Message(arm));
                }
                Ok(Arrival::Arm(false)) => {}
                Ok(Arrival::Clock(clock_ns)) => {
                    has_time = true;
                    self.steps.follow(clock_ns);
                }
                Err(reason) => {
                    tracing::debug!(reason, "a message is not used");
                    self.ready.push_back(Incoming::Unreadable);
                }
            }
        }
        if leading.is_some() || (has_time && !self.is_started) {
            self.observe(leading, now);
        }
        None
    }

    /// Adds an observation, if one is due and all channels have recent values.
    fn observe(&mut self, leading: Option<Option<i64>>, now: Instant) {
        let numbers = match self.mapping.observation(now) {
            Ok(numbers) => numbers,
            Err(reason) => {
                tracing::debug!(reason, "no observation");
                return;
            }
        };
        let number = match self.is_started {
            true => {
                self.sequence += 1;
                self.sequence
            }
            false => match self.steps.answered(leading) {
                Some(number) => number,
                None => return,
            },
        };
        let message = Message::new("observation", number).with("answers", self.answers);
        let message = self.settings.body.write_observation(message, numbers);
        self.ready.push_back(Incoming::Message(message));
    }
}

fn warn_of(mismatch: &Mismatch) {
    tracing::warn!("{}", text_of(mismatch));
}

/// What is wrong between a topic of the scenario and that of another node.
fn text_of(mismatch: &Mismatch) -> String {
    let Mismatch {
        own,
        type_name,
        hash,
        is_subscriber,
    } = mismatch;
    let topic = &own.name;
    let (who, effect) = match is_subscriber {
        true => ("a subscriber", "it receives no action"),
        false => ("a publisher", "its messages are not used"),
    };
    let fix = match (hash == NO_HASH, own.hash == NO_HASH) {
        (true, false) => "; nodes of ROS 2 Humble need type_hashes = false in [body]",
        (false, true) => "; only nodes of ROS 2 Humble need type_hashes = false in [body]",
        _ => "",
    };
    format!(
        "topic {topic}: {who} has the type {} with the hash {hash}, the scenario has {} with {}: {effect}{fix}",
        ros_name(type_name),
        own.kind,
        own.hash
    )
}
