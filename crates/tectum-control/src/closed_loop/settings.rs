//! Settings of a loop: the `[loop]` part of a scenario.

use std::collections::BTreeMap;

use serde::Serialize;
use tectum::Result;

use super::guard::ChannelGuard;
use crate::body::ObservationChannel;
use crate::brain::stand_in_names;
use crate::clock::ClockKind;
use crate::document::Section;
use crate::real_time::{MAX_PRIORITY, RealTime};

/// The `[loop]` part of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopSettings {
    /// Length of the run in the body's time, from tick 0, also when a run is resumed.
    pub seconds: f64,
    /// Seed of starts, noise and training.
    pub seed: u64,
    /// The clock.
    pub clock: ClockKind,
    /// Ticks between two snapshots; 0: only at the end.
    pub snapshot_every: u64,
    /// What the body does while an answer is late.
    pub overrun: Overrun,
    /// Periods after which a late answer is a fault of its device; 0: never.
    pub stall_periods: u64,
    /// The name of the brain that answers while the main brain cannot; without one the body gets its safe action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<&'static str>,
    /// What is requested from the operating system, under a real clock.
    #[serde(flatten)]
    pub real_time: RealTime,
    /// Guards of readings, by channel.
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
    pub(crate) fn read(mut section: Section<'_, '_>, channels: &[ObservationChannel]) -> Result<Self> {
        let default = Self::default();
        let settings = Self {
            seconds: section.positive_up_to("seconds", MAX_SECONDS)?.unwrap_or(default.seconds),
            seed: section.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(default.seed),
            clock: section.choice("clock", &[("real", ClockKind::Real), ("sim", ClockKind::Sim)])?.unwrap_or(default.clock),
            snapshot_every: section.whole("snapshot_every", 0..=1 << 32)?.unwrap_or(default.snapshot_every),
            overrun: section.choice("overrun", &[("hold", Overrun::Hold), ("safe", Overrun::Safe)])?.unwrap_or(default.overrun),
            stall_periods: section.whole("stall_periods", 0..=1 << 32)?.unwrap_or(default.stall_periods),
            stand_in: section.choice("stand_in", &stand_in_names().map(|name| (name, name)).collect::<Vec<_>>())?,
            real_time: RealTime {
                priority: section.whole("priority", 1..=u64::from(MAX_PRIORITY))?.map(|priority| priority as u8),
                lock_memory: section.flag("lock_memory")?.unwrap_or(false),
            },
            guard: read_guard(section.section("guard")?, channels)?,
        };
        if settings.clock == ClockKind::Sim {
            section.refuse(&["priority", "lock_memory"], "under clock \"sim\" nothing is late")?;
        }
        section.finish()?;
        Ok(settings)
    }
}

fn read_guard(mut section: Section<'_, '_>, channels: &[ObservationChannel]) -> Result<BTreeMap<String, ChannelGuard>> {
    let mut guard = BTreeMap::new();
    for channel in channels {
        let is_given = section.has(&channel.name);
        let mut watched = section.section(&channel.name)?;
        let settings = ChannelGuard { outlier_threshold: watched.positive("outlier_threshold")?, stop_beyond: watched.positive("stop_beyond")? };
        watched.finish()?;
        if is_given {
            guard.insert(channel.name.clone(), settings);
        }
    }
    section.finish()?;
    Ok(guard)
}
