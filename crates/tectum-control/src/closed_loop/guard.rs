//! The guard around a controller: it replaces outliers in readings, and stops the loop beyond a
//! limit or when the switch is pressed.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use serde::Serialize;
use tectum::{Error, Result};

use super::controller::{Answer, Controller, Failure, Passed, Period, Recovering, Source};
use super::journal::Journal;
use super::stand_in::Backed;
use super::stop_switch::StopSwitch;
use crate::body::link::LinkState;
use crate::body::{BodySpec, ChannelKind, ObservationChannel};
use crate::brain::StandIn;
use tectum::snapshot::{Array, Snapshot};

/// Maximum consecutive readings treated as outliers; after that, a value that stays is accepted.
const MAX_CONSECUTIVE_OUTLIERS: u64 = 3;

/// Limits for a channel's readings, in its unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ChannelGuard {
    /// A reading further than this from the extrapolation of the last two is an outlier: the
    /// extrapolation replaces it, at most three in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlier_threshold: Option<f64>,
    /// A reading of greater magnitude than this, except outliers, stops the loop: the body gets its
    /// safe action to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_beyond: Option<f64>,
}

/// A controller behind a guard: the outermost of a loop.
pub(super) struct Guarded {
    inner: Box<dyn Controller>,
    guard: Guard,
    pub switch: StopSwitch,
    /// From this tick on the body gets its safe action.
    pub stopped_at: Option<u64>,
}

impl Guarded {
    pub fn new(inner: impl Controller + 'static, guard: Guard) -> Self {
        Self {
            inner: Box::new(inner),
            guard,
            switch: StopSwitch::default(),
            stopped_at: None,
        }
    }

    /// With a stand-in behind the guard.
    pub fn with_stand_in(self, stand_in: Box<dyn StandIn>) -> Self {
        Self {
            inner: Box::new(Backed::new(self.inner, stand_in)),
            ..self
        }
    }

    /// The first reason to stop in a period.
    fn reason_to_stop(&mut self, period: &mut Period<'_>) -> Option<String> {
        let pressed = self
            .switch
            .is_pressed()
            .then(|| "the switch was pressed".to_owned());
        let is_new = period.link.is_none_or(|link| link == LinkState::Fresh);
        if !is_new || period.reading.iter().any(|number| !number.is_finite()) {
            return pressed;
        }
        let finding = self.guard.filter_reading(period.tick, period.reading);
        for name in finding.outliers {
            period.session.record_fallback(
                &format!("reading of {name}"),
                "an outlier; the extrapolation of the last two readings replaces it",
            );
        }
        pressed.or(finding.stop)
    }
}

impl Controller for Guarded {
    fn answer(&mut self, period: &mut Period<'_>) -> Answer {
        if self.stopped_at.is_none()
            && let Some(reason) = self.reason_to_stop(period)
        {
            period.session.record_fallback("emergency stop", &reason);
            self.stopped_at = Some(period.tick);
        }
        if self.stopped_at.is_some() {
            return Answer::default();
        }
        match (period.link, period.is_starting) {
            (None | Some(LinkState::Fresh), false) => self.inner.answer(period),
            (Some(link), _) if link.stop_reason().is_some() => {
                let reason = link.stop_reason().unwrap_or_default();
                period.session.record_fallback("safe action", reason);
                Answer::default()
            }
            (Some(LinkState::Held), false) => Answer::of(Source::Held),
            _ => Answer::of(Source::Starting),
        }
    }

    fn settle(
        &mut self,
        failure: Failure,
        tick: u64,
        safe_ticks: u64,
        session: &mut Journal,
    ) -> Result<()> {
        self.inner.settle(failure, tick, safe_ticks, session)
    }

    fn follow(&mut self, passed: &Passed<'_>) {
        self.inner.follow(passed);
        if passed.ends_episode {
            self.guard.reset();
        }
    }

    fn add_state(&self, snapshot: &mut Snapshot) -> Result<()> {
        self.guard.save(snapshot);
        self.inner.add_state(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.inner.restore(snapshot)?;
        self.guard.load(snapshot)
    }

    fn brain(&self) -> &Recovering {
        self.inner.brain()
    }

    fn brain_mut(&mut self) -> &mut Recovering {
        self.inner.brain_mut()
    }
}

/// A watched channel.
#[derive(Debug)]
struct Watch {
    index: usize,
    name: String,
    unit: String,
    /// A full turn of an angle.
    turn: Option<f64>,
    guard: ChannelGuard,
    /// The last two readings after filtering.
    before: f64,
    now: f64,
    /// Consecutive outliers.
    consecutive_outliers: u64,
}

impl Watch {
    fn wrapped(&self, number: f64) -> f64 {
        self.turn
            .map_or(number, |turn| number - turn * (number / turn + 0.5).floor())
    }
}

/// The watched channels of a body.
#[derive(Debug, Default)]
pub(super) struct Guard {
    watched: Vec<Watch>,
    /// The tick after the last reading, and the number of consecutive readings, at most 2.
    next: u64,
    seen: u64,
}

/// The result of a guard's check.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Finding {
    /// The channels whose outliers were replaced.
    pub outliers: Vec<String>,
    /// Why the loop must stop.
    pub stop: Option<String>,
}

impl Guard {
    /// # Errors
    /// The body has no such channel.
    pub(super) fn new(settings: &BTreeMap<String, ChannelGuard>, body: &BodySpec) -> Result<Self> {
        let watch = |(name, guard): (&String, &ChannelGuard)| {
            let is_own =
                |channel: &ObservationChannel| channel.name == *name && !channel.is_array();
            let channel = body.observation.iter().position(is_own).ok_or_else(|| {
                Error::invalid(format!(
                    "guard: the body has no channel {name} of one number"
                ))
            })?;
            let ObservationChannel {
                name, unit, kind, ..
            } = body.observation[channel].clone();
            let turn = match kind {
                ChannelKind::Linear => None,
                ChannelKind::Angle { rad_per_unit } => Some(TAU / rad_per_unit),
            };
            Ok(Watch {
                index: body.range(channel).start,
                name,
                unit,
                turn,
                guard: *guard,
                before: 0.0,
                now: 0.0,
                consecutive_outliers: 0,
            })
        };
        Ok(Self {
            watched: settings.iter().map(watch).collect::<Result<_>>()?,
            ..Self::default()
        })
    }

    /// Checks a reading of finite numbers, and replaces outliers in it.
    pub(super) fn filter_reading(&mut self, tick: u64, reading: &mut [f32]) -> Finding {
        let mut finding = Finding::default();
        let follows = self.seen > 0 && self.next == tick;
        for watch in &mut self.watched {
            let expected = watch.wrapped(2.0 * watch.now - watch.before);
            let deviation = watch.wrapped(f64::from(reading[watch.index]) - expected);
            let is_outlier = follows
                && self.seen == 2
                && watch
                    .guard
                    .outlier_threshold
                    .is_some_and(|threshold| deviation.abs() > threshold);
            watch.consecutive_outliers =
                if is_outlier && watch.consecutive_outliers < MAX_CONSECUTIVE_OUTLIERS {
                    watch.consecutive_outliers + 1
                } else {
                    0
                };
            if watch.consecutive_outliers > 0 {
                reading[watch.index] = expected as f32;
                finding.outliers.push(watch.name.clone());
            }
            let believed = f64::from(reading[watch.index]);
            // A value that stays after a jump has no velocity from the jump.
            watch.before = if follows && (!is_outlier || watch.consecutive_outliers > 0) {
                watch.now
            } else {
                believed
            };
            watch.now = believed;
            if let Some(limit) = watch
                .guard
                .stop_beyond
                .filter(|limit| believed.abs() > *limit)
            {
                finding.stop = Some(format!(
                    "{} is {believed} {}, beyond {limit}",
                    watch.name, watch.unit
                ));
            }
        }
        self.seen = if follows { 2 } else { 1 };
        self.next = tick + 1;
        finding
    }

    /// Restarts: the next reading does not continue the previous ones.
    pub(super) fn reset(&mut self) {
        self.seen = 0;
    }

    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        if !self.watched.is_empty() {
            snapshot.insert(
                "guard.readings",
                Array::F64(
                    self.watched
                        .iter()
                        .flat_map(|watch| [watch.before, watch.now])
                        .collect(),
                ),
            );
            let counts = [self.next, self.seen]
                .into_iter()
                .chain(self.watched.iter().map(|watch| watch.consecutive_outliers));
            snapshot.insert("guard.counts", Array::U64(counts.collect()));
        }
    }

    /// # Errors
    /// `Data` if the snapshot belongs to another loop.
    pub(super) fn load(&mut self, snapshot: &Snapshot) -> Result<()> {
        if self.watched.is_empty() {
            return Ok(());
        }
        let readings = snapshot.f64("guard.readings", 2 * self.watched.len())?;
        let counts = snapshot.u64("guard.counts", 2 + self.watched.len())?;
        (self.next, self.seen) = (counts[0], counts[1]);
        for ((watch, pair), outliers) in self
            .watched
            .iter_mut()
            .zip(readings.chunks_exact(2))
            .zip(&counts[2..])
        {
            (watch.before, watch.now, watch.consecutive_outliers) = (pair[0], pair[1], *outliers);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BodySpec, ChannelGuard, Finding, Guard, ObservationChannel};

    fn guard(threshold: f64, stop_beyond: Option<f64>) -> Guard {
        let channel = |name, unit| ObservationChannel::new(name, unit, -1.0..=1.0);
        let channels = [
            channel("place", "m"),
            channel("angle", "deg").wrapping(1f64.to_radians()),
        ];
        let settings = [(
            "angle".to_owned(),
            ChannelGuard {
                outlier_threshold: Some(threshold),
                stop_beyond,
            },
        )]
        .into();
        let body = BodySpec {
            name: "cart".into(),
            dt_s: 0.02,
            observation: channels.to_vec(),
            action: Vec::new(),
            safe_action: Vec::new(),
        };
        Guard::new(&settings, &body).expect("channels that there are")
    }

    #[test]
    fn an_outlier_is_replaced_and_a_lasting_change_is_accepted() {
        let mut guard = guard(60.0, None);
        let mut believed = Vec::new();
        // Across the wrap at 180 degrees, an outlier, and a real change of angle.
        for (tick, angle) in [
            170.0, 178.0, -174.0, 20.0, -158.0, -150.0, 0.0, 1.0, 2.0, 3.0, 4.0,
        ]
        .into_iter()
        .enumerate()
        {
            let mut reading = [5.0, angle];
            let finding = guard.filter_reading(tick as u64, &mut reading);
            believed.push((reading[1].round(), !finding.outliers.is_empty()));
            assert_eq!(reading[0], 5.0);
        }
        let outliers: Vec<bool> = believed.iter().map(|(_, is_outlier)| *is_outlier).collect();
        assert_eq!(
            outliers,
            [
                false, false, false, true, false, false, true, true, true, false, false
            ],
            "{believed:?}"
        );
        assert_eq!(believed[3].0, -166.0);
        assert_eq!(
            (believed[8].0, believed[9].0, believed[10].0),
            (-126.0, 3.0, 4.0)
        );
    }

    #[test]
    fn a_limit_stops_but_not_for_an_outlier_nor_across_a_gap() {
        let mut guard = guard(60.0, Some(90.0));
        for (tick, angle, finding) in [
            (0, 10.0, Finding::default()),
            (1, 12.0, Finding::default()),
            (
                2,
                150.0,
                Finding {
                    outliers: vec!["angle".to_owned()],
                    stop: None,
                },
            ),
            // After a gap there is no extrapolation.
            (9, 80.0, Finding::default()),
            (
                10,
                91.0,
                Finding {
                    outliers: Vec::new(),
                    stop: Some("angle is 91 deg, beyond 90".to_owned()),
                },
            ),
        ] {
            assert_eq!(
                guard.filter_reading(tick, &mut [0.0, angle]),
                finding,
                "tick {tick}"
            );
        }
    }
}
