//! A stand-in around a brain: it follows every period, and answers where the brain cannot.

use tectum::Result;
use tectum::snapshot::Snapshot;

use super::controller::{Answer, Controller, Failure, Passed, Period, Recovering, Source};
use super::journal::Journal;
use crate::brain::StandIn;

/// A controller with a stand-in.
pub(super) struct Backed {
    inner: Box<dyn Controller>,
    stand_in: Box<dyn StandIn>,
    /// It was queried in this period, so it has seen it.
    was_queried: bool,
}

impl Backed {
    pub fn new(mut inner: Box<dyn Controller>, stand_in: Box<dyn StandIn>) -> Self {
        inner
            .brain_mut()
            .set_fallback_label(format!("stand-in {}", stand_in.name()));
        Self {
            inner,
            stand_in,
            was_queried: false,
        }
    }

    /// Whether the stand-in has an answer.
    fn query(&mut self, period: &mut Period<'_>) -> bool {
        self.was_queried = true;
        self.stand_in.tick(period.reading, period.action).is_ok()
            && period.action.iter().all(|number| number.is_finite())
    }
}

impl Controller for Backed {
    fn answer(&mut self, period: &mut Period<'_>) -> Answer {
        let mut answer = self.inner.answer(period);
        if matches!(answer.source, Source::None | Source::Late)
            && answer.missed == 0
            && self.query(period)
        {
            answer.source = Source::StandIn;
        }
        answer
    }

    fn settle(
        &mut self,
        failure: Failure,
        tick: u64,
        safe_ticks: u64,
        session: &mut Journal,
    ) -> Result<()> {
        self.inner
            .settle(failure, tick, safe_ticks, session)
            .or_else(|error| {
                session.record_fallback(
                    &format!("stand-in {} to the end", self.stand_in.name()),
                    &error.to_string(),
                );
                self.inner.brain_mut().retire();
                Ok(())
            })
    }

    fn follow(&mut self, passed: &Passed<'_>) {
        if !std::mem::take(&mut self.was_queried) {
            self.stand_in.follow(passed.reading, passed.action);
        }
        self.inner.follow(passed);
    }

    fn add_state(&self, snapshot: &mut Snapshot) -> Result<()> {
        snapshot.insert_all("stand_in", self.stand_in.snapshot()?);
        self.inner.add_state(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.inner.restore(snapshot)?;
        self.stand_in.restore(&snapshot.part("stand_in"))
    }

    fn brain(&self) -> &Recovering {
        self.inner.brain()
    }

    fn brain_mut(&mut self) -> &mut Recovering {
        self.inner.brain_mut()
    }
}
