//! What the loop's thread and the I/O thread exchange: the latest values, under a lock that is held
//! for a copy.
//!
//! All times are nanoseconds of one clock of the caller, so that tests simulate it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tectum::{Error, Result};
use tectum_control::body::BodySpec;
use tectum_control::body::link::LinkCounts;
use tectum_control::message::{Array, Message};
use tokio::sync::Notify;

use crate::handshake::Introduction;
use crate::supervisor::Seen;

/// Messages besides actions that wait to be sent.
const MAX_CONTROL: usize = 8;
/// How far a number may be above the last one. A connection loses nothing, so that a number further
/// above was changed on its way; those after it would all be late.
const MAX_JUMP: u64 = 10_000;
/// Commands that wait for the loop, by name.
const MAX_COMMANDS: usize = 64;
/// Actions whose time of sending is remembered.
const MAX_SENT: usize = 64;

/// How the loop and the body take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each request of the loop has one answer.
    Lockstep,
    /// Both send when they have something; the watchdog sends the safe action after this time
    /// without one of the loop.
    RealTime { hold_ns: u64 },
}

/// An observation, and what the body reports since the one that the loop used before.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observed {
    pub observation: Vec<f32>,
    pub sequence: u64,
    /// The number of the last message of the loop that the body had applied.
    pub answers: Option<u64>,
    pub arrived_ns: u64,
    pub reward: f64,
    pub terminated: bool,
    pub truncated: bool,
}

/// An action of the loop.
#[derive(Debug, Clone, PartialEq)]
struct Action {
    numbers: Vec<f32>,
    is_safe: bool,
    answers: Option<Answers>,
}

/// The observation that an action answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answers {
    pub sequence: u64,
    /// From its arrival to its use: how much later the body could have sent it.
    pub queue_ns: u64,
}

/// What the I/O thread sends next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outgoing {
    Message(Message),
    /// The connection ends after what was sent before.
    Close,
}

#[derive(Debug)]
struct State {
    /// None before the first handshake.
    spec: Option<BodySpec>,
    /// The body's own name.
    peer: String,
    pace: Pace,
    connection: u64,
    is_connected: bool,
    /// Why there is no connection, for messages.
    reason: Option<String>,
    /// Why the body cannot be used any more.
    failure: Option<String>,
    is_closing: bool,
    is_done: bool,
    /// The number of the last message that was numbered.
    sequence: u64,
    /// The number of the last message that was received in this connection.
    received: Option<u64>,
    /// Observations that answer an earlier message are of the episode before.
    min_answers: u64,
    observed: Option<Observed>,
    /// Where an observation is read before it replaces another.
    scratch: Vec<f32>,
    /// The answer of the body to the request with the number `sequence`.
    reply: Option<Message>,
    control: VecDeque<Message>,
    /// When the first of them is sent, if it must wait.
    start_ns: Option<u64>,
    action: Option<Action>,
    /// When the loop last gave an action that is not the safe one, until the watchdog replaces it.
    driven_ns: Option<u64>,
    sent: VecDeque<(u64, u64)>,
    network_ns: Option<u64>,
    is_armed: bool,
    /// Commands that wait for the loop, by name: the last value of each.
    commands: BTreeMap<String, Option<f64>>,
    counts: LinkCounts,
}

/// The exchange between the loop's thread and the I/O thread.
#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// Wakes the I/O thread: there is something to send.
    pub outgoing: Notify,
}

/// What a period begins with.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub seen: Seen,
    pub observed: Option<Observed>,
    pub network_ns: Option<u64>,
    /// When the action was sent that the observation follows from.
    pub action_sent_ns: Option<u64>,
    pub counts: LinkCounts,
}

impl Mailbox {
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                spec: None,
                peer: String::new(),
                pace: Pace::Lockstep,
                connection: 0,
                is_connected: false,
                reason: None,
                failure: None,
                is_closing: false,
                is_done: false,
                sequence: 0,
                received: None,
                min_answers: 0,
                observed: None,
                scratch: Vec::new(),
                reply: None,
                control: VecDeque::new(),
                start_ns: None,
                action: None,
                driven_ns: None,
                sent: VecDeque::new(),
                network_ns: None,
                is_armed: false,
                commands: BTreeMap::new(),
                counts: LinkCounts::default(),
            }),
            arrived: Condvar::new(),
            outgoing: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition has a value, the body cannot be used, or the time is over.
    fn wait<T>(
        &self,
        limit: Duration,
        mut find: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            if let Some(found) = find(&mut state) {
                return Ok(Some(found));
            }
            if let Some(failure) = &state.failure {
                return Err(Error::data(failure.clone()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            state = self
                .arrived
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// The side of the loop.
impl Mailbox {
    /// Waits for the handshake.
    ///
    /// # Errors
    /// `Data` without one in time, with the last reason that is known; what the body refuses.
    pub fn wait_for_body(&self, limit: Duration) -> Result<Introduction> {
        let found = self.wait(limit, |state| {
            let spec = state.spec.clone().filter(|_| state.is_connected)?;
            let peer = state.peer.clone();
            Some(Introduction { spec, peer })
        })?;
        found.ok_or_else(|| {
            let reason = self.lock().reason.clone();
            let reason = reason.unwrap_or_else(|| "no connection".to_owned());
            Error::data(format!("{reason}, within {} s", limit.as_secs_f64()))
        })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// `Data` without an answer in time, after which the body cannot be used; what the body
    /// refuses; a connection that is lost.
    pub fn request(
        &self,
        kind: &str,
        limit: Duration,
        fill: impl FnOnce(Message) -> Message,
    ) -> Result<Message> {
        let number = {
            let mut state = self.lock();
            state.sequence += 1;
            state.reply = None;
            let message = fill(Message::new(kind, state.sequence));
            state.control.push_back(message);
            state.sequence
        };
        self.outgoing.notify_one();
        let reply = self.wait(limit, |state| {
            state
                .reply
                .take_if(|reply| reply.sequence() == Some(number))
        })?;
        reply.ok_or_else(|| {
            let limit_s = limit.as_secs_f64();
            let failure = format!("no answer to {kind:?} within {limit_s} s");
            self.lock().failure = Some(failure.clone());
            Error::data(failure)
        })
    }

    /// Changes to real time: from `at_ns` on the body sends observations without being asked.
    pub fn start(&self, hold_ns: u64, at_ns: u64) {
        {
            let mut state = self.lock();
            state.pace = Pace::RealTime { hold_ns };
            state.observed = None;
            // The body's own numbers begin.
            state.received = None;
            state.sequence += 1;
            state.min_answers = 0;
            state.start_ns = Some(at_ns);
            state.add_start(hold_ns);
        }
        self.outgoing.notify_one();
    }

    /// Sends a reset; observations that do not answer it are not used.
    pub fn post_reset(&self, seed: u64) {
        {
            let mut state = self.lock();
            state.sequence += 1;
            state.min_answers = state.sequence;
            state.observed = None;
            state.action = None;
            let message = Message::new("reset", state.sequence).with("seed", seed);
            state.add_control(message);
        }
        self.outgoing.notify_one();
    }

    /// Puts an action in place of one that is not sent yet. An action for an earlier connection is
    /// not sent.
    pub fn post_action(
        &self,
        now_ns: u64,
        connection: u64,
        numbers: &[f32],
        is_safe: bool,
        answers: Option<Answers>,
    ) {
        {
            let mut state = self.lock();
            if !state.is_connected || state.connection != connection {
                state.counts.replaced_actions += 1;
                return;
            }
            // The memory of an action that was not sent is used again.
            let replaced = state.action.take();
            state.counts.replaced_actions += u64::from(replaced.is_some());
            let mut own = replaced.map_or_else(Vec::new, |action| action.numbers);
            own.clear();
            own.extend_from_slice(numbers);
            state.action = Some(Action {
                numbers: own,
                is_safe,
                answers,
            });
            state.driven_ns = (!is_safe).then_some(now_ns);
        }
        self.outgoing.notify_one();
    }

    /// Counts an action whose period had passed.
    pub fn skip_action(&self) {
        self.lock().counts.replaced_actions += 1;
    }

    /// What has arrived since the last call.
    pub fn take(&self, observation: &mut Vec<f32>) -> Taken {
        let mut state = self.lock();
        let observed = state.observed.take().map(|mut observed| {
            std::mem::swap(observation, &mut observed.observation);
            observed
        });
        let answers = observed.as_ref().and_then(|observed| observed.answers);
        let sent = state.sent.iter();
        let sent = sent.copied().find(|(sent, _)| Some(*sent) == answers);
        Taken {
            seen: Seen {
                connection: state.connection,
                is_connected: state.is_connected,
                arrived_ns: observed.as_ref().map(|observed| observed.arrived_ns),
                is_armed: std::mem::take(&mut state.is_armed),
            },
            action_sent_ns: sent.map(|(_, sent_ns)| sent_ns),
            observed,
            network_ns: state.network_ns.take(),
            counts: state.counts,
        }
    }

    /// The commands that have arrived since the last call, by name.
    pub fn take_commands(&self) -> BTreeMap<String, Option<f64>> {
        std::mem::take(&mut self.lock().commands)
    }

    /// Counts a command that the brain does not have; whether it is the first.
    pub fn refuse_command(&self) -> bool {
        let mut state = self.lock();
        state.counts.refused_commands += 1;
        state.counts.refused_commands == 1
    }

    /// Whether the body was armed since the last call of [`Mailbox::take`].
    pub fn is_being_armed(&self) -> bool {
        self.lock().is_armed
    }

    /// Arms the body again, as if it had sent `arm`.
    pub fn arm(&self) {
        let mut state = self.lock();
        state.is_armed |= state.is_connected;
    }

    /// The number of the present connection.
    pub fn connection(&self) -> u64 {
        self.lock().connection
    }

    /// What happened so far.
    pub fn counts(&self) -> LinkCounts {
        self.lock().counts
    }

    /// Why the body cannot be used any more.
    pub fn failure(&self) -> Option<String> {
        let state = self.lock();
        match (state.pace, &state.failure) {
            (_, Some(failure)) => Some(failure.clone()),
            (Pace::Lockstep, None) if !state.is_connected => state.reason.clone(),
            _ => None,
        }
    }

    /// Ends the connection: the body gets its safe action. Returns when that is sent, or after a
    /// limit.
    pub fn close(&self, limit: Duration) {
        self.lock().is_closing = true;
        self.outgoing.notify_one();
        // A failure ends the wait, and is the end as well.
        let _ = self.wait(limit, |state| state.is_done.then_some(()));
    }
}

impl State {
    /// Takes the commands of a message: a number, or nothing for the command's own schedule.
    fn command(&mut self, message: &Message) {
        let Some(all) = message.map("commands") else {
            return;
        };
        for name in all.names() {
            let value = all.number(name);
            let is_readable = value.is_some_and(f64::is_finite) || all.is_nil(name);
            let has_room = self.commands.len() < MAX_COMMANDS || self.commands.contains_key(name);
            if is_readable && has_room {
                self.commands.insert(name.to_owned(), value);
                self.counts.commands += 1;
            } else {
                self.counts.unreadable_messages += 1;
            }
        }
    }

    fn add_start(&mut self, hold_ns: u64) {
        let period_s = self.spec.as_ref().map_or(0.0, |spec| spec.dt_s);
        let message = Message::new("start", self.sequence)
            .with("period", period_s)
            .with("hold", hold_ns as f64 / 1e9);
        self.add_control(message);
    }

    fn add_control(&mut self, message: Message) {
        if self.control.len() == MAX_CONTROL {
            self.control.pop_front();
        }
        self.control.push_back(message);
    }

    /// Takes the observation of a message in real time.
    fn observe(&mut self, message: &Message, arrived_ns: u64) {
        let answers = message.number("answers").map(|number| number as u64);
        if answers.unwrap_or(0) < self.min_answers {
            self.counts.replaced_observations += 1;
            return;
        }
        let Some(spec) = &self.spec else { return };
        if spec.read_observation(message, &mut self.scratch).is_err() {
            self.counts.unreadable_messages += 1;
            return;
        }
        self.counts.observations += 1;
        self.counts.replaced_observations += u64::from(self.observed.is_some());
        let mut next = self.observed.take().unwrap_or_default();
        std::mem::swap(&mut next.observation, &mut self.scratch);
        next.reward += message.number("reward").unwrap_or(0.0);
        next.terminated |= message.flag("terminated").unwrap_or(false);
        next.truncated |= message.flag("truncated").unwrap_or(false);
        next.sequence = message.sequence().unwrap_or(0);
        next.answers = answers;
        next.arrived_ns = arrived_ns;
        self.observed = Some(next);
    }
}

/// The side of the I/O thread.
impl Mailbox {
    /// Begins a connection with the constants that the body stated.
    ///
    /// # Errors
    /// `Data` for a body that has changed since the first connection.
    pub fn open(&self, body: Introduction) -> Result<()> {
        let Introduction { spec, peer } = body;
        let mut state = self.lock();
        if let Some(known) = &state.spec
            && *known != spec
        {
            let reason = "the body that connected again states other constants".to_owned();
            state.reason = Some(reason.clone());
            return Err(Error::data(reason));
        }
        state.spec = Some(spec);
        state.peer = peer;
        state.connection += 1;
        state.counts.connections += 1;
        state.is_connected = true;
        state.reason = None;
        state.received = None;
        state.is_armed = false;
        state.control.clear();
        if let Pace::RealTime { hold_ns } = state.pace {
            state.start_ns = None;
            state.sequence += 1;
            state.min_answers = 0;
            state.add_start(hold_ns);
        }
        drop(state);
        self.arrived.notify_all();
        Ok(())
    }

    /// Ends a connection. Nothing that it delivered, or that was meant for it, is used after that.
    pub fn lose(&self, reason: &str) {
        let mut state = self.lock();
        state.is_connected = false;
        state.reason = Some(reason.to_owned());
        if state.pace == Pace::Lockstep && state.connection > 0 && !state.is_closing {
            state.failure = Some(reason.to_owned());
        }
        state.observed = None;
        state.reply = None;
        state.action = None;
        state.driven_ns = None;
        state.is_armed = false;
        state.control.clear();
        state.sent.clear();
        drop(state);
        self.arrived.notify_all();
    }

    /// States that the body cannot be used.
    pub fn fail(&self, reason: &str) {
        let mut state = self.lock();
        state.failure = Some(reason.to_owned());
        state.is_connected = false;
        drop(state);
        self.arrived.notify_all();
    }

    /// Why there is no connection, while it is tried again; whether it is another reason than before.
    pub fn note(&self, reason: &str) -> bool {
        let mut state = self.lock();
        let before = state.reason.replace(reason.to_owned());
        before.as_deref() != Some(reason)
    }

    /// Takes the bytes of a message of the body.
    pub fn receive(&self, content: &[u8], now_ns: u64) {
        match Message::parse(content) {
            Ok(message) => self.accept(message, now_ns),
            Err(_) => self.count_unreadable(),
        }
    }

    /// Counts what arrived and cannot be read.
    pub fn count_unreadable(&self) {
        self.lock().counts.unreadable_messages += 1;
    }

    /// Takes a message of the body that was read.
    pub fn accept(&self, message: Message, now_ns: u64) {
        let mut state = self.lock();
        let number = message.sequence();
        match (state.pace, message.kind()) {
            (_, "arm") => state.is_armed = true,
            (_, "error") => {
                let text = message.text("message").unwrap_or("an error without a text");
                state.failure = Some(text.to_owned());
            }
            (Pace::Lockstep, "commands") => state.command(&message),
            (Pace::Lockstep, _) if number == Some(state.sequence) && state.received != number => {
                state.received = number;
                state.command(&message);
                state.reply = Some(message);
            }
            (Pace::RealTime { .. }, kind @ ("observation" | "commands"))
                if number > state.received =>
            {
                let jump = number.unwrap_or(0) - state.received.unwrap_or(0);
                if jump > MAX_JUMP {
                    state.counts.unreadable_messages += 1;
                } else {
                    state.received = number;
                    state.command(&message);
                    if kind == "observation" {
                        state.observe(&message, now_ns);
                    }
                }
            }
            _ => state.counts.repeated_messages += 1,
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// The round trip of a ping.
    pub fn measured(&self, network_ns: u64) {
        self.lock().network_ns = Some(network_ns);
    }

    /// Whether the heartbeat is required: a body in lockstep may compute for long.
    pub fn is_real_time(&self) -> bool {
        matches!(self.lock().pace, Pace::RealTime { .. })
    }

    /// Whether the loop has ended the connection.
    pub fn is_closing(&self) -> bool {
        self.lock().is_closing
    }

    /// States that the last message was sent.
    pub fn done(&self) {
        self.lock().is_done = true;
        self.arrived.notify_all();
    }

    /// What is sent next; nothing until [`Mailbox::outgoing`] or the watchdog's time.
    pub fn next(&self, now_ns: u64) -> Option<Outgoing> {
        let mut state = self.lock();
        if state.is_closing {
            return Some(Outgoing::Close);
        }
        if state.start_ns.is_some_and(|start_ns| now_ns < start_ns) {
            return None;
        }
        state.start_ns = None;
        if let Some(message) = state.control.pop_front() {
            return Some(Outgoing::Message(message));
        }
        if let Some(action) = state.action.take() {
            return Some(Outgoing::Message(state.send(&action, now_ns)));
        }
        let limit_ns = state.watchdog_ns()?;
        if now_ns < limit_ns {
            return None;
        }
        state.driven_ns = None;
        state.counts.watchdog_stops += 1;
        let action = state.safe_action()?;
        Some(Outgoing::Message(state.send(&action, now_ns)))
    }

    /// When something is to be sent that no change announces: the start, or the watchdog's action.
    pub fn wake_ns(&self) -> Option<u64> {
        let state = self.lock();
        state.start_ns.or(state.watchdog_ns())
    }

    /// The messages of an orderly end: the safe action, and the end.
    pub fn last_messages(&self, now_ns: u64) -> Vec<Message> {
        let mut state = self.lock();
        let safe = match state.pace {
            Pace::RealTime { .. } => state.safe_action(),
            Pace::Lockstep => None,
        };
        let safe = safe.map(|action| state.send(&action, now_ns));
        state.sequence += 1;
        let close = Message::new("close", state.sequence);
        safe.into_iter().chain([close]).collect()
    }
}

impl State {
    fn watchdog_ns(&self) -> Option<u64> {
        match self.pace {
            Pace::RealTime { hold_ns } => self.driven_ns.map(|driven_ns| driven_ns + hold_ns),
            Pace::Lockstep => None,
        }
    }

    fn safe_action(&self) -> Option<Action> {
        let spec = self.spec.as_ref()?;
        Some(Action {
            numbers: spec.safe_action.clone(),
            is_safe: true,
            answers: None,
        })
    }

    /// The message of an action, whose number and time are remembered.
    fn send(&mut self, action: &Action, now_ns: u64) -> Message {
        self.sequence += 1;
        self.counts.actions += 1;
        if self.sent.len() == MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((self.sequence, now_ns));
        let message = Message::new("action", self.sequence)
            .with_array("action", &Array::of_f32(&action.numbers))
            .with("safe", action.is_safe);
        match action.answers {
            Some(Answers { sequence, queue_ns }) => message
                .with("answers", sequence)
                .with("age", queue_ns as f64 / 1e9),
            None => message,
        }
    }
}

#[cfg(test)]
mod tests {
    use tectum_control::body::body;

    use super::*;

    const HOLD_NS: u64 = 100;

    fn spec() -> BodySpec {
        body("pendulum", None).expect("built in").spec().clone()
    }

    fn introduction() -> Introduction {
        Introduction {
            spec: spec(),
            peer: "test".into(),
        }
    }

    /// A mailbox with a body in real time.
    fn running() -> Mailbox {
        let mailbox = Mailbox::new();
        mailbox.open(introduction()).expect("the first");
        mailbox.start(HOLD_NS, 0);
        assert_eq!(sent(&mailbox, 0).as_deref(), Some("start"));
        mailbox
    }

    fn observation(sequence: u64, answers: u64, first: f32) -> Vec<u8> {
        let message = Message::new("observation", sequence).with("answers", answers);
        spec()
            .write_observation(message, &[first, 0.0])
            .with("reward", 1.0)
            .to_bytes()
            .expect("short")
    }

    /// The type of what is sent next.
    fn sent(mailbox: &Mailbox, now_ns: u64) -> Option<String> {
        mailbox.next(now_ns).map(|outgoing| match outgoing {
            Outgoing::Message(message) => message.kind().to_owned(),
            Outgoing::Close => "end".to_owned(),
        })
    }

    fn command(sequence: u64, speed: f64) -> Vec<u8> {
        let all = Message::default().with("speed", speed);
        let message = Message::new("commands", sequence).with_map("commands", all);
        message.to_bytes().expect("short")
    }

    #[test]
    fn repeated_and_late_commands_are_not_used() {
        let mailbox = running();
        for (sequence, speed) in [(1, 0.1), (3, 0.3), (3, 0.35), (2, 0.2), (20_000, 0.9)] {
            mailbox.receive(&command(sequence, speed), 10);
        }
        let expected = BTreeMap::from([("speed".to_owned(), Some(0.3))]);
        assert_eq!(mailbox.take_commands(), expected);
        // Observations are counted with them.
        mailbox.receive(&observation(3, 0, 0.5), 20);
        mailbox.receive(&observation(4, 0, 0.25), 30);
        let taken = mailbox.take(&mut Vec::new());
        assert_eq!(taken.observed.map(|observed| observed.sequence), Some(4));
        let counts = taken.counts;
        assert_eq!(
            (
                counts.commands,
                counts.repeated_messages,
                counts.unreadable_messages
            ),
            (2, 3, 1)
        );
        assert!(mailbox.take_commands().is_empty());
    }

    #[test]
    fn the_latest_observation_is_used_and_repeated_or_late_ones_are_not() {
        let mailbox = running();
        let mut latest = Vec::new();
        for (sequence, first) in [(1, 0.1), (2, 0.2), (2, 0.25), (1, 0.15), (4, 0.4), (3, 0.3)] {
            mailbox.receive(&observation(sequence, 0, first), 10 * sequence);
        }
        let taken = mailbox.take(&mut latest);
        let observed = taken.observed.expect("one");
        assert_eq!(
            (latest[0], observed.sequence, observed.arrived_ns),
            (0.4, 4, 40)
        );
        // The rewards of those that were replaced are part of the period.
        assert_eq!(observed.reward, 3.0);
        let counts = taken.counts;
        assert_eq!(
            (
                counts.observations,
                counts.replaced_observations,
                counts.repeated_messages
            ),
            (3, 2, 3)
        );
        assert!(mailbox.take(&mut latest).observed.is_none());
        mailbox.receive(&observation(4, 0, 0.5), 50);
        assert!(
            mailbox.take(&mut latest).observed.is_none(),
            "a repeated one after its use"
        );
    }

    #[test]
    fn the_first_observation_in_real_time_is_used_whatever_was_answered_before() {
        let mailbox = Mailbox::new();
        mailbox.open(introduction()).expect("the first");
        let answer = mailbox.request("reset", Duration::ZERO, |message| message);
        assert!(answer.is_err(), "no answer in no time");
        mailbox.receive(&observation(1, 0, 0.1), 1);
        mailbox.start(HOLD_NS, 0);
        mailbox.receive(&observation(1, 0, 0.2), 2);
        let mut latest = Vec::new();
        assert!(mailbox.take(&mut latest).observed.is_some());
        assert_eq!((latest[0], mailbox.counts().repeated_messages), (0.2, 0));
    }

    #[test]
    fn the_start_is_sent_at_its_time() {
        let mailbox = Mailbox::new();
        mailbox.open(introduction()).expect("the first");
        mailbox.start(HOLD_NS, 700);
        mailbox.post_action(10, 1, &[0.0], true, None);
        assert_eq!((sent(&mailbox, 699), mailbox.wake_ns()), (None, Some(700)));
        assert_eq!(sent(&mailbox, 700).as_deref(), Some("start"));
        assert_eq!(sent(&mailbox, 700).as_deref(), Some("action"));
    }

    #[test]
    fn the_latest_action_is_sent_once() {
        let mailbox = running();
        for value in [0.1, 0.2, 0.3] {
            let answers = Answers {
                sequence: 1,
                queue_ns: 2_000_000,
            };
            mailbox.post_action(0, 1, &[value], false, Some(answers));
        }
        let Some(Outgoing::Message(message)) = mailbox.next(5) else {
            panic!("an action")
        };
        let numbers = message.array("action").expect("an array").to_f32();
        assert_eq!((message.kind(), numbers), ("action", Some(vec![0.3])));
        assert_eq!(
            (message.number("answers"), message.number("age")),
            (Some(1.0), Some(0.002))
        );
        assert_eq!(sent(&mailbox, 6), None);
        // Its time is found again when an observation answers it.
        let number = message.sequence().expect("a number");
        mailbox.receive(&observation(1, number, 0.0), 20);
        let taken = mailbox.take(&mut Vec::new());
        assert_eq!(
            (taken.action_sent_ns, taken.counts.replaced_actions),
            (Some(5), 2)
        );
    }

    #[test]
    fn the_watchdog_sends_the_safe_action_once_when_the_loop_is_late() {
        let mailbox = running();
        mailbox.post_action(1000, 1, &[0.3], false, None);
        assert_eq!(sent(&mailbox, 1000).as_deref(), Some("action"));
        assert_eq!(mailbox.wake_ns(), Some(1000 + HOLD_NS));
        assert_eq!(sent(&mailbox, 1000 + HOLD_NS - 1), None);
        let Some(Outgoing::Message(safe)) = mailbox.next(1000 + HOLD_NS) else {
            panic!("the safe action")
        };
        assert_eq!(safe.flag("safe"), Some(true));
        assert_eq!((sent(&mailbox, 5000), mailbox.wake_ns()), (None, None));
        // The safe action of the loop needs no watchdog.
        mailbox.post_action(6000, 1, &[0.0], true, None);
        assert_eq!(sent(&mailbox, 6000).as_deref(), Some("action"));
        assert_eq!(mailbox.wake_ns(), None);
    }

    #[test]
    fn nothing_of_a_lost_connection_reaches_the_next() {
        let mailbox = running();
        mailbox.receive(&observation(7, 0, 0.7), 10);
        mailbox.post_action(10, 1, &[0.7], false, None);
        mailbox.arm();
        mailbox.lose("the test");
        mailbox.post_action(11, 1, &[0.8], false, None);
        mailbox.open(introduction()).expect("the same body");
        mailbox.post_action(12, 1, &[0.9], false, None);
        assert_eq!(sent(&mailbox, 20).as_deref(), Some("start"));
        assert_eq!(sent(&mailbox, 20), None);
        let taken = mailbox.take(&mut Vec::new());
        assert!(taken.observed.is_none() && !taken.seen.is_armed);
        assert_eq!((taken.seen.connection, taken.counts.connections), (2, 2));
        // The numbers of a new connection begin again.
        mailbox.receive(&observation(1, 0, 0.1), 30);
        assert!(mailbox.take(&mut Vec::new()).observed.is_some());
        let mut other = introduction();
        other.spec.dt_s = 0.1;
        mailbox.lose("the test");
        assert!(mailbox.open(other).is_err());
    }

    #[test]
    fn observations_before_a_reset_are_not_of_the_new_episode() {
        let mailbox = running();
        mailbox.receive(&observation(1, 0, 0.1), 10);
        mailbox.post_reset(5);
        let Some(Outgoing::Message(reset)) = mailbox.next(11) else {
            panic!("a reset")
        };
        let number = reset.sequence().expect("a number");
        mailbox.receive(&observation(2, number - 1, 0.2), 12);
        assert!(mailbox.take(&mut Vec::new()).observed.is_none());
        mailbox.receive(&observation(3, number, 0.3), 13);
        assert!(mailbox.take(&mut Vec::new()).observed.is_some());
    }

    #[test]
    fn messages_that_cannot_be_read_are_counted_and_not_used() {
        let mailbox = running();
        let short =
            Message::new("observation", 1).with_array("observation", &Array::of_f32(&[1.0]));
        let far = observation(MAX_JUMP + 2, 0, 0.5);
        for content in [vec![], vec![0xc1], short.to_bytes().expect("short"), far] {
            mailbox.receive(&content, 1);
        }
        let taken = mailbox.take(&mut Vec::new());
        assert!(taken.observed.is_none());
        assert_eq!(taken.counts.unreadable_messages, 4);
        mailbox.receive(&observation(2, 0, 0.5), 2);
        assert!(mailbox.take(&mut Vec::new()).observed.is_some());
    }
}
