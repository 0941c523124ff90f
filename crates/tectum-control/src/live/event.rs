//! What happens at a moment: faults, recoveries, orders of viewers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::lock;

/// The number of events that are kept for viewers that come later.
pub const MAX_EVENTS: usize = 256;

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A fault that was injected on purpose.
    Injected,
    /// Work that ran elsewhere than requested, or an action that another one replaced.
    Fallback,
    /// A brain that failed and answers again.
    Recovery,
    /// A viewer's order.
    Control,
}

/// Something that happened in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The step in which it happened, or was noticed.
    pub step: u64,
    /// The run's time of it.
    pub time_s: f64,
    /// Its kind.
    pub kind: EventKind,
    /// What happened.
    pub text: String,
}

/// The events of a run.
#[derive(Default)]
pub(super) struct Events {
    fresh: Arc<Mutex<Vec<Event>>>,
    past: Mutex<VecDeque<Event>>,
}

/// Where a workload writes its events.
pub struct EventWriter {
    fresh: Arc<Mutex<Vec<Event>>>,
    /// Those that wait because the list was being read.
    waiting: Vec<Event>,
}

impl EventWriter {
    /// Adds an event. It is seen after the next [`EventWriter::send`].
    pub fn add(&mut self, event: Event) {
        if self.waiting.len() < MAX_EVENTS {
            self.waiting.push(event);
        }
    }

    /// Passes the events on, or keeps them for the next call if the list is being read: it never
    /// waits.
    pub fn send(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if let Ok(mut fresh) = self.fresh.try_lock() {
            let room = MAX_EVENTS.saturating_sub(fresh.len());
            fresh.extend(self.waiting.drain(..).take(room));
        }
    }
}

impl Events {
    /// Adds an event; waits while the list is being read.
    pub(super) fn add(&self, event: Event) {
        let mut fresh = lock(&self.fresh);
        if fresh.len() < MAX_EVENTS {
            fresh.push(event);
        }
    }

    pub(super) fn writer(&self) -> EventWriter {
        EventWriter {
            fresh: self.fresh.clone(),
            waiting: Vec::new(),
        }
    }

    /// The new events, which are past ones from now on.
    pub(super) fn drain(&self) -> Vec<Event> {
        let fresh = std::mem::take(&mut *lock(&self.fresh));
        let mut past = lock(&self.past);
        past.extend(fresh.iter().cloned());
        let surplus = past.len().saturating_sub(MAX_EVENTS);
        past.drain(..surplus);
        fresh
    }

    pub(super) fn past(&self) -> Vec<Event> {
        lock(&self.past).iter().cloned().collect()
    }
}
