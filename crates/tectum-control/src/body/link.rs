//! The connection of a body that is outside of the process, as the loop sees it.

use serde::Serialize;
use tectum::{Latency, LatencyHistogram};

/// What a body outside of the process stated of itself, in a run folder.
pub const LINK_FILE: &str = "body.link";

/// How the connection is in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// An observation has arrived since the period before: the brain answers it.
    Fresh,
    /// No observation has arrived, and the last one is not too old: the last action is held.
    Held,
    /// No observation has arrived since the start or the reset: the body gets its safe action.
    Waiting,
    /// The last observation is older than the hold limit: the body gets its safe action.
    Stale,
    /// There is no connection: the body gets its safe action, if anything reaches it.
    Disconnected,
    /// The connection works again after a stop, and the body is not armed again: it gets its safe
    /// action.
    Disarmed,
}

impl LinkState {
    const ALL: [(Self, &str); 6] = [
        (Self::Fresh, "fresh"),
        (Self::Held, "held"),
        (Self::Waiting, "waiting"),
        (Self::Stale, "stale"),
        (Self::Disconnected, "disconnected"),
        (Self::Disarmed, "disarmed"),
    ];

    /// Its name in recordings.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(state, _)| *state == self)
            .map_or("", |(_, name)| name)
    }

    /// The state of a name in recordings.
    pub fn from_name(name: &str) -> Option<Self> {
        let state = Self::ALL.iter().find(|(_, known)| *known == name);
        state.map(|(state, _)| *state)
    }

    /// Why the body gets its safe action instead of an answer; none where it does not.
    pub(crate) fn stop_reason(self) -> Option<&'static str> {
        match self {
            Self::Fresh | Self::Held => None,
            Self::Waiting => Some("the body has sent no observation since it began"),
            Self::Stale => Some("the body sent no observation within the hold limit"),
            Self::Disconnected => Some("the connection to the body is lost"),
            Self::Disarmed => Some("the body is not armed again after a stop"),
        }
    }
}

/// The connection of a body in a period. Times are of this machine's monotonic clock alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkStatus {
    /// How it is.
    pub state: LinkState,
    /// From the arrival of the last observation to the period, nanoseconds; none before the first.
    pub observation_age_ns: Option<u64>,
    /// From the sending of the action that the body had applied when it sent that observation to
    /// the period, nanoseconds; none where it names no action.
    pub action_age_ns: Option<u64>,
    /// From the arrival of an observation to its use, nanoseconds; none in a period without one.
    pub queue_ns: Option<u64>,
    /// The last round trip that was measured, nanoseconds.
    pub network_ns: Option<u64>,
    /// Counts since the connection was first made.
    pub counts: LinkCounts,
}

impl LinkStatus {
    /// A connection without measured times.
    pub fn new(state: LinkState) -> Self {
        Self {
            state,
            observation_age_ns: None,
            action_age_ns: None,
            queue_ns: None,
            network_ns: None,
            counts: LinkCounts::default(),
        }
    }
}

/// What happened on a connection, since it was first made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Connections that were made.
    pub connections: u64,
    /// Observations that arrived and were read.
    pub observations: u64,
    /// Those that a later one replaced before the loop used them.
    pub replaced_observations: u64,
    /// Messages with a sequence number that is not above the last one: not used.
    pub repeated_messages: u64,
    /// Messages that cannot be read: not used.
    pub unreadable_messages: u64,
    /// Actions that were sent.
    pub actions: u64,
    /// Actions that were not sent: a later one replaced them, or their period had passed.
    pub replaced_actions: u64,
    /// Safe actions that were sent without the loop, because it computed for longer than the hold
    /// limit.
    pub watchdog_stops: u64,
    /// Times that the body was armed again.
    pub rearmed: u64,
    /// Commands of the brain that arrived.
    pub commands: u64,
    /// Those that the brain does not have.
    pub refused_commands: u64,
}

/// The connection of a body over a run.
#[derive(Debug, Clone, Default)]
pub struct LinkMetrics {
    periods: [u64; LinkState::ALL.len()],
    observation_age: LatencyHistogram,
    action_age: LatencyHistogram,
    queue: LatencyHistogram,
    network: LatencyHistogram,
    counts: LinkCounts,
}

impl LinkMetrics {
    /// Counts a period.
    pub(crate) fn record(&mut self, status: &LinkStatus) {
        let states = LinkState::ALL.iter().zip(&mut self.periods);
        for ((state, _), count) in states {
            *count += u64::from(*state == status.state);
        }
        for (histogram, ns) in [
            (&mut self.observation_age, status.observation_age_ns),
            (&mut self.action_age, status.action_age_ns),
            (&mut self.queue, status.queue_ns),
            (&mut self.network, status.network_ns),
        ] {
            ns.into_iter().for_each(|ns| histogram.record(ns));
        }
        self.counts = status.counts;
    }

    /// The summary.
    pub fn summary(&self) -> LinkSummary {
        let [fresh, held, waiting, stale, disconnected, disarmed] = self.periods;
        LinkSummary {
            fresh_periods: fresh,
            held_periods: held,
            waiting_periods: waiting,
            stale_periods: stale,
            disconnected_periods: disconnected,
            disarmed_periods: disarmed,
            observation_age_ms: self.observation_age.percentiles(),
            action_age_ms: self.action_age.percentiles(),
            queue_ms: self.queue.percentiles(),
            network_ms: self.network.percentiles(),
            counts: self.counts,
        }
    }
}

/// The connection of a body over a run, in summary and receipt. The six numbers of periods add up
/// to the periods of the run since it began or was resumed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Periods with a new observation.
    pub fresh_periods: u64,
    /// Periods without one, for which the last action was held.
    pub held_periods: u64,
    /// Periods before the first observation of an episode.
    pub waiting_periods: u64,
    /// Periods whose observation was too old.
    pub stale_periods: u64,
    /// Periods without a connection.
    pub disconnected_periods: u64,
    /// Periods with a connection that was not armed again.
    pub disarmed_periods: u64,
    /// From the arrival of an observation to the period.
    pub observation_age_ms: Latency,
    /// From the sending of an action to the period whose observation follows from it.
    pub action_age_ms: Latency,
    /// From the arrival of an observation to its use.
    pub queue_ms: Latency,
    /// Round trips.
    pub network_ms: Latency,
    /// What happened on the connection.
    #[serde(flatten)]
    pub counts: LinkCounts,
}
