//! A client's own brain.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tectum::{Error, ErrorKind, Result};
use tectum_control::body::BodySpec;
use tectum_control::brain::Brain;
use tectum_control::message::{Array, Message};
use tokio::sync::mpsc::{Receiver, Sender};

use super::{Records, Served, openpi};
use crate::handshake::PROTOCOL;

/// A message of a client, and when it arrived.
pub(super) struct Request {
    pub content: Vec<u8>,
    pub arrived: Instant,
}

/// What a session sends.
pub(super) enum Reply {
    Answer(Vec<u8>),
    /// A text, after which the connection ends with an error.
    Error(String),
    /// The orderly end.
    End,
}

/// Answers the requests of a client that has its socket on another thread, until either ends.
pub(super) fn run(
    served: &Arc<Served>,
    records: &Arc<Mutex<Records>>,
    mut requests: Receiver<Request>,
    replies: &Sender<Reply>,
) {
    let mut session = match Session::new(served, records) {
        Ok(session) => session,
        Err(error) => {
            // A client that is gone needs no reason.
            let _ = replies.blocking_send(Reply::Error(error.to_string()));
            return;
        }
    };
    while let Some(request) = requests.blocking_recv() {
        let Some(reply) = session.reply(&request, &mut || false) else {
            continue;
        };
        let is_end = matches!(reply, Reply::Error(_) | Reply::End);
        if replies.blocking_send(reply).is_err() || is_end {
            return;
        }
    }
}

/// A client's brain, and what it needs to know of the requests before.
pub(super) struct Session {
    served: Arc<Served>,
    records: Arc<Mutex<Records>>,
    brain: Box<dyn Brain>,
    observation: Vec<f32>,
    action: Vec<f32>,
    /// The number of the last observation that had one.
    received: Option<u64>,
    /// The client gets its safe action until it resets.
    is_stopped: bool,
    /// Milliseconds of the last request, from its arrival to its answer.
    total_ms: Option<f64>,
}

/// What an observation is answered with.
struct Answered {
    infer_ms: f64,
    /// The action is the safe one.
    is_safe: bool,
}

impl Session {
    /// A session with a brain of its own.
    ///
    /// # Errors
    /// What the brain reports when it is made.
    pub fn new(served: &Arc<Served>, records: &Arc<Mutex<Records>>) -> Result<Self> {
        let brain = served.brain()?;
        Ok(Self {
            observation: vec![0.0; served.body.observation_len()],
            action: served.body.safe_action.clone(),
            served: served.clone(),
            records: records.clone(),
            brain,
            received: None,
            is_stopped: false,
            total_ms: None,
        })
    }

    fn body(&self) -> &BodySpec {
        &self.served.body
    }

    fn record(&self, change: impl FnOnce(&mut Records)) {
        change(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The answer to a request; none where a later observation replaces it, which `is_replaced` finds
    /// out.
    pub fn reply(
        &mut self,
        request: &Request,
        is_replaced: &mut dyn FnMut() -> bool,
    ) -> Option<Reply> {
        let map = match Message::parse_map(&request.content) {
            Ok(map) => map,
            Err(error) => return Some(self.refuse(&error)),
        };
        let answer = if map.kind().is_empty() {
            self.answer_openpi(&map).map(Some)
        } else {
            self.answer_message(&map, request, is_replaced)
        };
        let answer = match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => return None,
            Err(error) => return Some(self.refuse(&error)),
        };
        self.total_ms = Some(request.arrived.elapsed().as_secs_f64() * 1e3);
        if answer.kind() == "close" {
            return Some(Reply::End);
        }
        Some(match answer.to_bytes() {
            Ok(content) => Reply::Answer(content),
            Err(error) => self.refuse(&error),
        })
    }

    fn refuse(&self, error: &Error) -> Reply {
        self.record(|records| records.counts.errors += 1);
        Reply::Error(error.to_string())
    }

    fn answer_openpi(&mut self, map: &Message) -> Result<Message> {
        openpi::read(map, &self.served.body, &mut self.observation)?;
        let total_ms = self.total_ms;
        let answered = self.tick()?;
        Ok(openpi::answer(&self.action, answered.infer_ms, total_ms))
    }

    /// Answers a message with a type. What it refuses is an answer too, and the session continues.
    fn answer_message(
        &mut self,
        message: &Message,
        request: &Request,
        is_replaced: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Message>> {
        let number = message.sequence().ok_or_else(|| {
            Error::data(format!("message {:?}: it has no number", message.kind()))
        })?;
        let answer = match message.kind() {
            "hello" => Ok(Some(self.served.introduction(Message::new("spec", number)))),
            "observation" => self.answer_observation(message, number, request, is_replaced),
            "reset" => {
                self.brain.interrupted();
                self.brain.episode_ended();
                (self.is_stopped, self.received) = (false, None);
                self.action.clone_from(&self.served.body.safe_action);
                self.record(|records| records.counts.resets += 1);
                Ok(Some(Message::new("reset", number)))
            }
            "stop" => {
                self.is_stopped = true;
                self.record(|records| records.counts.stops += 1);
                Ok(Some(Message::new("stop", number)))
            }
            "commands" => self
                .command(message)
                .map(|()| Some(Message::new("commands", number))),
            "close" => Ok(Some(Message::new("close", number))),
            kind => Err(Error::data(format!(
                "message {kind:?} is unknown; known: hello, observation, commands, reset, stop, close"
            ))),
        };
        Ok(answer.unwrap_or_else(|error| {
            self.record(|records| records.counts.errors += 1);
            Some(error_message(number, &error))
        }))
    }

    fn answer_observation(
        &mut self,
        message: &Message,
        number: u64,
        request: &Request,
        is_replaced: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Message>> {
        let is_repeated = self.received.is_some_and(|received| number <= received);
        if is_repeated || is_replaced() {
            self.record(|records| records.counts.dropped_observations += 1);
            return Ok(None);
        }
        self.received = Some(number);
        let queue_ms = request.arrived.elapsed().as_secs_f64() * 1e3;
        self.served
            .body
            .read_observation(message, &mut self.observation)?;
        let reward = message.number("reward").filter(|reward| reward.is_finite());
        self.record(|records| records.counts.total_reward += reward.unwrap_or(0.0));
        let answered = match openpi::require_finite(self.body(), &self.observation) {
            Ok(()) if !self.is_stopped => self.tick()?,
            _ => {
                self.action.clone_from(&self.served.body.safe_action);
                self.record(|records| records.counts.safe_answers += 1);
                Answered {
                    infer_ms: 0.0,
                    is_safe: true,
                }
            }
        };
        Ok(Some(
            Message::new("action", number)
                .with_array("action", &Array::of_f32(&self.action))
                .with("safe", answered.is_safe)
                .with("queue_ms", queue_ms)
                .with("infer_ms", answered.infer_ms),
        ))
    }

    /// Sets commands of the brain: a number, or nothing for the command's own schedule.
    fn command(&self, message: &Message) -> Result<()> {
        let inputs = self.brain.commands().ok_or_else(|| {
            Error::invalid(format!("brain {}: it has no commands", self.brain.name()))
        })?;
        let all = message
            .map("commands")
            .ok_or_else(|| Error::data("it has no map \"commands\""))?;
        all.names().try_for_each(|name| match all.number(name) {
            None if !all.is_nil(name) => Err(Error::data(format!("command {name}: no number"))),
            value => inputs.set(name, value),
        })
    }

    /// Queries the brain, and limits its action to the ranges.
    fn tick(&mut self) -> Result<Answered> {
        let begin = Instant::now();
        let stats = self.brain.tick(&self.observation, &mut self.action)?;
        let latency = begin.elapsed();
        let channels = self.served.body.action.iter();
        for (number, channel) in self.action.iter_mut().zip(channels) {
            let applied = channel.applied(*number);
            *number = applied.ok_or_else(|| {
                Error::data(format!("the brain's action {} is not finite", channel.name))
            })?;
        }
        self.record(|records| {
            records.counts.answers += 1;
            records.session.record(&stats, latency.as_nanos() as u64);
        });
        Ok(Answered {
            infer_ms: latency.as_secs_f64() * 1e3,
            is_safe: false,
        })
    }
}

/// Whether a request is an observation with a number, of which only the latest is answered.
pub(super) fn is_observation(request: &Request) -> bool {
    Message::parse(&request.content).is_ok_and(|message| message.kind() == "observation")
}

fn error_message(number: u64, error: &Error) -> Message {
    let kind = match error.kind() {
        ErrorKind::Invalid => "invalid",
        ErrorKind::Unsupported => "unsupported",
        _ => "data",
    };
    Message::new("error", number)
        .with("kind", kind)
        .with("message", error.to_string())
}

impl Served {
    /// Adds what a client needs to know to a message.
    pub(super) fn introduction(&self, message: Message) -> Message {
        self.body
            .to_message(message)
            .with("protocol", PROTOCOL)
            .with("server", "tectum")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("brain", self.brain_name)
    }
}
