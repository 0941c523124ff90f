//! The receipt of a loop under construction, which also notes what happens for those who watch.

use std::ops::{Deref, DerefMut};

use tectum::{InjectedFault, Recovery, Session};

use crate::live::{EventKind, MAX_EVENTS};

/// Something that happened, for those who watch.
pub(super) struct Note {
    /// The tick in which it happened; none for the present one.
    pub tick: Option<u64>,
    pub kind: EventKind,
    pub text: String,
}

/// A session whose faults, fallbacks and recoveries are noted too, if someone watches.
pub(super) struct Journal {
    session: Session,
    /// None if no one watches.
    notes: Option<Vec<Note>>,
    /// The fallbacks that were noted: what fell back, and why.
    noted: Vec<(String, String)>,
    recoveries: u64,
}

impl Journal {
    pub fn new(session: Session) -> Self {
        Self {
            session,
            notes: None,
            noted: Vec::new(),
            recoveries: 0,
        }
    }

    /// Notes what happens from now on.
    pub fn begin_notes(&mut self) {
        self.notes.get_or_insert_default();
    }

    /// Takes the notes since the call before.
    pub fn take_notes(&mut self) -> impl Iterator<Item = Note> {
        self.notes.iter_mut().flat_map(|notes| notes.drain(..))
    }

    /// Recoveries so far.
    pub fn recoveries(&self) -> u64 {
        self.recoveries
    }

    /// As [`Session::record_fallback`]; the first of equal ones is noted.
    pub fn record_fallback(&mut self, what: &str, reason: &str) {
        self.session.record_fallback(what, reason);
        let is_known = |(known, why): &(String, String)| known == what && why == reason;
        if self.notes.is_some() && !self.noted.iter().any(is_known) {
            self.noted.push((what.to_owned(), reason.to_owned()));
            self.note(None, EventKind::Fallback, || format!("{what}: {reason}"));
        }
    }

    /// As [`Session::record_injected_fault`].
    pub fn record_injected_fault(&mut self, fault: InjectedFault) {
        let text = || format!("injected: {}", fault.fault);
        self.note(fault.tick, EventKind::Injected, text);
        self.session.record_injected_fault(fault);
    }

    /// As [`Session::recovered`].
    pub fn recovered(&mut self, recovery: Recovery) {
        self.recoveries += 1;
        let text = || {
            let device = recovery.to.as_deref().unwrap_or("host arithmetic");
            let (lost, reason) = (recovery.ticks_lost, &recovery.reason);
            format!("recovered on {device}, {lost} ticks lost: {reason}")
        };
        self.note(recovery.resumed_at_tick, EventKind::Recovery, text);
        self.session.recovered(recovery);
    }

    fn note(&mut self, tick: Option<u64>, kind: EventKind, text: impl FnOnce() -> String) {
        let notes = self.notes.as_mut().filter(|notes| notes.len() < MAX_EVENTS);
        if let Some(notes) = notes {
            let text = text();
            notes.push(Note { tick, kind, text });
        }
    }
}

/// The rest of a session is unchanged.
impl Deref for Journal {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Journal {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}
