//! Settings of a loop: the `[loop]` part of a scenario.

use std::collections::BTreeMap;

use serde::Serialize;
use tectum::Result;

use super::guard::ChannelGuard;
use crate::body::ObservationChannel;
use crate::brain::stand_in_names;
use crate::clock::ClockKind;
use crate::document::{Key, Section};
use crate::real_time::{MAX_PRIORITY, RealTime};

/// The `[loop]` part of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopSettings {
    /// Length of the run in the body's time, from tick 0, also when a run is resumed. Default:
    /// 60.0.
    pub seconds: f64,
    /// Seed of starts, noise and training. Default: 1.
    pub seed: u64,
    /// The clock. Default: `ClockKind::Real`.
    pub clock: ClockKind,
    /// Ticks between two snapshots; 0: only at the end. Default: 250.
    pub snapshot_every: u64,
    /// What the body does while an answer is late. Default: `Overrun::Hold`.
    pub overrun: Overrun,
    /// Periods after which a late answer is a fault of its device; 0: never. Default: 10.
    pub stall_periods: u64,
    /// The name of the brain that answers while the main brain cannot; without one the body gets
    /// its safe action. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<&'static str>,
    /// What is requested from the operating system, under a real clock.
    #[serde(flatten)]
    pub real_time: RealTime,
    /// Guards of readings, by channel. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub guard: BTreeMap<String, ChannelGuard>,
}

/// What the body receives for a period whose answer is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// The action before.
    Hold,
    /// The body's safe action.
    Safe,
}

/// Meanings of keys, for the reference.
const CLOCK: &str = "`\"real\"`: the machine's; `\"sim\"`: simulated time, as fast as possible, in which no answer is late";
const SNAPSHOTS: &str = "time between two snapshots, the first ones sooner; 0: only at the end";
const OVERRUN: &str =
    "what the body gets while an answer is late: the action before, or its safe action";
const STALL: &str = "an answer this late is a fault of its device; 0: never";
const OUTLIER: &str = "a reading further than this from the extrapolation of the last two is replaced by it, at most three in a row";
const STOP: &str = "a reading of greater magnitude, except outliers, stops the loop: the body gets its safe action to the end";

/// Maximum length of a run: about eleven days.
pub(crate) const MAX_SECONDS: f64 = 1e6;

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            seconds: 60.0,
            seed: 1,
            clock: ClockKind::Real,
            snapshot_every: 250,
            overrun: Overrun::Hold,
            stall_periods: 10,
            stand_in: None,
            real_time: RealTime::default(),
            guard: BTreeMap::new(),
        }
    }
}

impl LoopSettings {
    pub(crate) fn read(
        mut section: Section<'_, '_>,
        channels: &[ObservationChannel],
    ) -> Result<Self> {
        let default = Self::default();
        let settings = Self {
            seconds: section
                .positive_up_to(
                    Key::new("seconds", "length of the run in the body's time, from tick 0 also when it is resumed").unit("s").or(default.seconds),
                    MAX_SECONDS,
                )?
                .unwrap_or(default.seconds),
            seed: section.whole_or(Key::new("seed", "seed of starts, noise and training"), 0..=i64::MAX as u64, default.seed)?,
            clock: section.choice_or(Key::new("clock", CLOCK), &ClockKind::ALL, default.clock)?,
            snapshot_every: section.whole_or(Key::new("snapshot_every", SNAPSHOTS).unit("ticks"), 0..=1 << 32, default.snapshot_every)?,
            overrun: section.choice_or(Key::new("overrun", OVERRUN), &[("hold", Overrun::Hold), ("safe", Overrun::Safe)], default.overrun)?,
            stall_periods: section.whole_or(Key::new("stall_periods", STALL).unit("periods"), 0..=1 << 32, default.stall_periods)?,
            stand_in: section.choice(
                Key::new("stand_in", "brain that answers while the main brain cannot").or("the body's safe action"),
                &stand_in_names().map(|name| (name, name)).collect::<Vec<_>>(),
            )?,
            real_time: RealTime {
                priority: section
                    .whole(
                        Key::new("priority", "priority of the loop's threads under SCHED_FIFO, with clock `\"real\"`").or("ordinary threads"),
                        1..=u64::from(MAX_PRIORITY),
                    )?
                    .map(|priority| priority as u8),
                lock_memory: section
                    .flag(Key::new("lock_memory", "memory mapped when the loop begins stays resident, with clock `\"real\"`").or(false))?
                    .unwrap_or(false),
            },
            guard: read_guard(section.section(Key::new("guard", "Limits of readings, a table for each channel."))?, channels)?,
        };
        if settings.clock == ClockKind::Sim {
            section.refuse(
                &["priority", "lock_memory"],
                "under clock \"sim\" nothing is late",
            )?;
        }
        section.finish()?;
        Ok(settings)
    }
}

fn read_guard(
    mut section: Section<'_, '_>,
    channels: &[ObservationChannel],
) -> Result<BTreeMap<String, ChannelGuard>> {
    let mut guard = BTreeMap::new();
    let outlier = Key::new("outlier_threshold", OUTLIER)
        .unit("the channel's")
        .or("off");
    let stop = Key::new("stop_beyond", STOP)
        .unit("the channel's")
        .or("off");
    for channel in channels {
        let is_given = section.has(&channel.name);
        let mut watched = section.section(
            Key::new(
                &channel.name,
                "Limits for the readings of an observation channel.",
            )
            .one_of("CHANNEL"),
        )?;
        let settings = ChannelGuard {
            outlier_threshold: watched.positive(outlier.clone())?,
            stop_beyond: watched.positive(stop.clone())?,
        };
        watched.finish()?;
        if is_given {
            guard.insert(channel.name.clone(), settings);
        }
    }
    section.finish()?;
    Ok(guard)
}
