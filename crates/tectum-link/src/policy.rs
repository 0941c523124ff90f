//! A policy server as the brain of a body in this process: `[brain] remote = "ws://HOST:PORT"`.
//!
//! The server speaks openpi's protocol: an observation is answered with a chunk of actions, a row
//! for each period from that of the observation on. Rows are counted by the actions that were used,
//! so that those of periods which passed until a chunk arrived are skipped. In real time a tick
//! never waits: the next chunk is requested ahead, and a tick without a row is an unanswered one.
//! Under a simulated clock the tick that needs a chunk waits for it.

mod exchange;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tectum::snapshot::Snapshot;
use tectum::{Error, Result, RunStats};
use tectum_control::body::BodySpec;
use tectum_control::brain::{Brain, BrainContext, BrainSettings, Recipe};
use tectum_control::clock::ClockKind;
use tectum_control::message::{Array, Message};
use tectum_control::scenario::{Key, Section};

use self::exchange::Exchange;
use self::rows::Rows;
use crate::{Address, Token, token};

/// How long the first connection and an answer may take by default, in seconds.
const WAIT_S: f64 = 60.0;
/// A scenario's `[brain]` with all keys.
const EXAMPLE: &str = r#"[brain]
name = "remote"
remote = "ws://127.0.0.1:8000"
rows = 10
prompt = "pick up the cup"
wait = 60.0
token_file = "server.token"
"#;
/// The key of the channels of one number.
const STATE: &str = "observation/state";

/// A policy server in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemotePolicySpec {
    /// Its address.
    pub remote: String,
    /// Rows of a chunk after which the next is requested; half of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The text that observations have as `prompt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// How long the first connection may take, and an answer under a simulated clock, in seconds.
    pub wait: f64,
    /// The file with the token that is shown to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// Keys of channels that are arrays, where they are not `observation/NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

impl BrainSettings for RemotePolicySpec {
    fn standard() -> Option<Self> {
        None
    }

    fn reference() -> Option<[&'static str; 2]> {
        Some([
            "A policy server in another process, which speaks openpi's protocol; [robots.md](robots.md) explains it",
            EXAMPLE,
        ])
    }

    fn read(section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let remote = Key::new("remote", "address of the policy server, `ws://HOST:PORT`");
        let remote = section.required(remote)?.value.to_owned();
        let rows = Key::new(
            "rows",
            "rows of a chunk that are used before the next is requested",
        )
        .unit("periods")
        .or("half of them");
        let rows = section.whole(rows, 1..=1 << 16)?;
        let prompt = Key::new("prompt", "text that observations have as `prompt`").or("none");
        let prompt = section
            .string(prompt)?
            .map(|prompt| prompt.value.to_owned());
        let wait = Key::new(
            "wait",
            "how long the first connection may take, and an answer under clock `\"sim\"`",
        );
        let wait = section.positive_up_to(wait.unit("s").or(WAIT_S), 86_400.0)?;
        let token_file = Key::new("token_file", "file with the token for the server")
            .or("the variable TECTUM_TOKEN, if it is set");
        let token_file = section
            .string(token_file)?
            .map(|path| path.value.to_owned());
        let about = "Keys of the observation for channels that are arrays, by the channel.";
        let mut table = section.section(Key::new("keys", about))?;
        let mut keys = BTreeMap::new();
        for channel in body.observation.iter().filter(|channel| channel.is_array()) {
            let key = Key::new(&channel.name, "key of the channel")
                .one_of("CHANNEL")
                .or("`observation/NAME`");
            if let Some(key) = table.string(key)? {
                keys.insert(channel.name.clone(), key.value.to_owned());
            }
        }
        table.finish()?;
        Ok(Self {
            remote,
            rows,
            prompt,
            wait: wait.unwrap_or(WAIT_S),
            token_file,
            keys,
        })
    }

    fn check(&self) -> Result<()> {
        Address::parse(&self.remote).map(|_| ())
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        let brain = RemotePolicy::connect(self, context.body, context.clock)?;
        Ok(Recipe::Host(Box::new(brain)))
    }
}

/// A policy server as a brain.
#[derive(Debug)]
pub struct RemotePolicy {
    spec: RemotePolicySpec,
    body: BodySpec,
    clock: ClockKind,
    exchange: Exchange,
    rows: Rows,
    /// Ticks up to the last one that had no row.
    unanswered: u64,
}

impl RemotePolicy {
    /// Connects to a server.
    ///
    /// # Errors
    /// `Invalid` for an address of another machine without a token; `Data` without a connection in
    /// time.
    pub fn connect(spec: &RemotePolicySpec, body: &BodySpec, clock: ClockKind) -> Result<Self> {
        let address = Address::parse(&spec.remote)?;
        let token = Token::find(spec.token_file.as_deref().map(Path::new))?;
        token::require_for(&address, token.as_ref())?;
        let wait = Duration::from_secs_f64(spec.wait);
        let exchange = Exchange::open(address, token, wait)
            .map_err(|error| error.at(format_args!("brain remote {}", spec.remote)))?;
        Ok(Self {
            rows: Rows::new(body.action.len(), spec.rows),
            spec: spec.clone(),
            body: body.clone(),
            clock,
            exchange,
            unanswered: 0,
        })
    }

    /// An observation as the server reads it.
    fn request(&self, observation: &[f32]) -> Result<Vec<u8>> {
        let mut message = Message::default();
        let mut numbers = Vec::new();
        for (channel, range) in self.body.observation.iter().zip(self.body.ranges()) {
            let elements = &observation[range];
            if channel.is_array() {
                let array = Array::of_elements(elements, channel.element, &channel.shape);
                let own = self.spec.keys.get(&channel.name);
                let key = own.map_or_else(|| format!("observation/{}", channel.name), Clone::clone);
                message = message.with_array(&key, &array);
            } else {
                numbers.extend_from_slice(elements);
            }
        }
        if !numbers.is_empty() {
            message = message.with_array(STATE, &Array::of_f32(&numbers));
        }
        if let Some(prompt) = &self.spec.prompt {
            message = message.with("prompt", prompt.as_str());
        }
        message.to_bytes()
    }

    fn failed(&self, reason: impl std::fmt::Display) -> Error {
        Error::data(format!("policy {}: {reason}", self.spec.remote))
    }

    /// Takes a chunk that has arrived.
    fn take(&mut self) -> Result<()> {
        let Some((start, content)) = self.exchange.take() else {
            return Ok(());
        };
        let actions = Message::parse_map(&content).and_then(|answer| answer.elements("actions"));
        let actions = actions.map_err(|error| self.failed(error))?;
        let pushed = self.rows.push(start, &actions);
        pushed.map_err(|reason| self.failed(reason))
    }
}

impl Brain for RemotePolicy {
    fn name(&self) -> &'static str {
        "remote"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.take()?;
        if self.rows.is_request_due() && !self.exchange.is_waiting() {
            let request = self.request(observation)?;
            self.exchange.request(self.rows.used(), request);
        }
        if self.clock == ClockKind::Sim && self.rows.is_request_due() {
            let arrived = self.exchange.wait(Duration::from_secs_f64(self.spec.wait));
            arrived.map_err(|reason| self.failed(reason))?;
            self.take()?;
        }
        if self.rows.next(action) {
            self.unanswered = 0;
            return Ok(RunStats::default());
        }
        self.unanswered += 1;
        match self.exchange.failure() {
            Some(reason) => Err(self.failed(reason)),
            None => Ok(RunStats::default()),
        }
    }

    fn unanswered_ticks(&self) -> u64 {
        self.unanswered
    }

    fn episode_ended(&mut self) {
        self.rows.clear();
        self.exchange.clear();
        self.unanswered = 0;
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.rows.snapshot())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.exchange.clear();
        self.rows.restore(snapshot)
    }
}
