//! Clocks: phases of gaits.

use tectum::Result;

use crate::document::{Key, Section};

/// A phase that advances by period after period, for each leg.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockRule {
    /// The name, as in `clock.NAME`.
    pub name: String,
    /// The time of a turn, in seconds.
    pub period_s: f64,
    /// Added for each leg, in turns.
    pub offsets: Vec<f64>,
    /// The phase at the first tick of an episode, in turns.
    pub start: f64,
    /// The phases of all legs at the first tick, in turns, where they are others.
    pub first: Vec<f64>,
    /// Whether a phase above 1 becomes 0 instead of losing a turn.
    pub is_reset: bool,
    /// Whether phases are angles in [-π, π) instead of [0, 2π).
    pub is_signed: bool,
    /// What it does while commands are small.
    pub standing: Option<Standing>,
}

/// The rule for small commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Names of commands.
    pub commands: Vec<String>,
    /// Their Euclidean norm below which the body stands.
    pub below: f64,
    /// The phase of every leg then, in turns. After it, phases restart.
    pub phase: f64,
}

impl ClockRule {
    pub(super) fn read(name: String, mut section: Section<'_, '_>) -> Result<Self> {
        let period = section.positive(Key::new("period", "the time of a turn").unit("s"))?;
        let frequency =
            section.positive(Key::new("frequency", "turns per second, instead").unit("Hz"))?;
        let period_s = match (period, frequency) {
            (Some(period_s), None) => period_s,
            (None, Some(frequency)) => 1.0 / frequency,
            _ => return Err(section.fault("needs one of the keys period and frequency")),
        };
        let offsets = section
            .numbers(Key::new("offsets", "added for each leg, in turns").or("one leg at 0"))?
            .unwrap_or_else(|| vec![0.0]);
        let first = section
            .numbers(Key::new(
                "first",
                "phases at the first tick of an episode, in turns, where they are others",
            ))?
            .unwrap_or_default();
        if !first.is_empty() && first.len() != offsets.len() {
            return Err(section.fault(format_args!(
                "first has {} numbers for {} offsets",
                first.len(),
                offsets.len()
            )));
        }
        let start = section
            .within(
                Key::new(
                    "start",
                    "the phase at the first tick of an episode, in turns",
                )
                .or(0),
                -1000.0..=1000.0,
            )?
            .unwrap_or(0.0);
        let is_reset = section
            .choice(
                Key::new("at_end", "what a phase above 1 becomes").or("\"wrap\""),
                &[("wrap", false), ("reset", true)],
            )?
            .unwrap_or(false);
        let is_signed = section
            .choice(
                Key::new("range", "the range of the angle").or("\"positive\""),
                &[("positive", false), ("signed", true)],
            )?
            .unwrap_or(false);
        let is_standing = section.has("standing");
        let mut table = section.section(Key::new("standing", "The rule for small commands."))?;
        let commands = table
            .texts(Key::new("commands", "names of commands"))?
            .unwrap_or_default();
        let below = table.positive(Key::new("below", "their norm below which the body stands"))?;
        let phase = table
            .within(
                Key::new("phase", "the phase of every leg then, in turns").or(0),
                -1.0..=1.0,
            )?
            .unwrap_or(0.0);
        let standing = match (is_standing, commands.is_empty(), below) {
            (false, ..) => None,
            (true, false, Some(below)) => Some(Standing {
                commands,
                below,
                phase,
            }),
            _ => return Err(table.fault("needs the keys commands and below")),
        };
        table.finish()?;
        section.finish()?;
        Ok(Self {
            name,
            period_s,
            offsets,
            start,
            first,
            is_reset,
            is_signed,
            standing,
        })
    }
}

/// A clock as it is in an episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClockState {
    /// The phase, in turns, without the offsets of legs.
    pub phase: f64,
    /// Whether the body stands.
    pub stands: bool,
}

impl ClockState {
    /// The state at the first tick of an episode.
    pub fn of(rule: &ClockRule) -> Self {
        Self {
            phase: rule.start,
            stands: false,
        }
    }

    /// The state of the next tick: `norm` is that of the standing rule's commands.
    pub fn advance(&mut self, rule: &ClockRule, period_s: f64, is_first: bool, norm: Option<f64>) {
        let stood = self.stands;
        self.stands = match (&rule.standing, norm) {
            (Some(standing), Some(norm)) => norm < standing.below,
            _ => false,
        };
        if stood && !self.stands {
            self.phase = rule.start;
        } else if !is_first && !self.stands {
            self.phase += period_s / rule.period_s;
            if self.phase > 1.0 {
                self.phase = if rule.is_reset { 0.0 } else { self.phase - 1.0 };
            }
        }
    }

    /// The angle of a leg, in rad.
    pub fn angle(&self, rule: &ClockRule, leg: usize, is_first: bool) -> f64 {
        let turns = match (&rule.standing, rule.first.get(leg)) {
            (Some(standing), _) if self.stands => standing.phase,
            (_, Some(first)) if is_first => *first,
            _ => self.phase + rule.offsets[leg],
        };
        let positive = turns.rem_euclid(1.0);
        let turns = if rule.is_signed && positive >= 0.5 {
            positive - 1.0
        } else {
            positive
        };
        std::f64::consts::TAU * turns
    }
}
