//! Commands: numbers that a user gives a policy, such as a velocity.

use tectum::Result;

use super::text;
use crate::document::{Key, Section};

/// A command by name.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRule {
    /// The name, as in `command.NAME`.
    pub name: String,
    /// Its value unless a schedule or a caller gives another.
    pub value: f64,
    /// The unit of its numbers; the terms' without it.
    pub unit: Option<String>,
    /// The range that every value is clamped to.
    pub range: [f64; 2],
    /// Times in seconds since the start of the episode, and the values from then on.
    pub schedule: Vec<[f64; 2]>,
    /// Whether values between the times of the schedule are interpolated.
    pub is_linear: bool,
}

impl CommandRule {
    pub(super) fn read(name: String, mut section: Section<'_, '_>) -> Result<Self> {
        let value = section.within(
            Key::new("value", "its value where nothing else gives one").or(0),
            f64::MIN..=f64::MAX,
        )?;
        let range = section.bounds(Key::new("range", "the range that values are clamped to"))?;
        let range = match range.as_deref() {
            None => [f64::NEG_INFINITY, f64::INFINITY],
            Some([range]) => *range,
            Some(_) => return Err(section.fault("range needs a lower and an upper bound")),
        };
        let rows = section
            .rows(Key::new(
                "schedule",
                "times since the start of the episode (s), and the values from then on",
            ))?
            .unwrap_or_default();
        let mut schedule = Vec::new();
        for row in &rows {
            let &[time_s, value] = &row[..] else {
                return Err(section.fault(format_args!(
                    "schedule: {row:?} is no pair of a time and a value"
                )));
            };
            let last = schedule.last().map_or(-1.0, |row: &[f64; 2]| row[0]);
            if !(time_s.is_finite() && time_s >= 0.0 && time_s > last && value.is_finite()) {
                return Err(section.fault(format_args!(
                    "schedule: {row:?}: times are finite, not negative and in order"
                )));
            }
            schedule.push([time_s, value]);
        }
        let is_linear = section
            .choice(
                Key::new("interpolation", "values between the times of the schedule")
                    .or("\"hold\""),
                &[("hold", false), ("linear", true)],
            )?
            .unwrap_or(false);
        let unit = text::name(&mut section, "unit", "the unit of its numbers")?;
        section.finish()?;
        Ok(Self {
            name,
            value: value.unwrap_or(0.0),
            unit,
            range,
            schedule,
            is_linear,
        })
    }

    /// The value at a time of the episode, clamped to the range.
    pub fn at(&self, time_s: f64) -> f64 {
        // The time of a tick is a product: a schedule's time means that tick, rounded or not.
        let next = self
            .schedule
            .partition_point(|[from_s, _]| *from_s <= time_s + 1e-9);
        let value = match (next.checked_sub(1), self.schedule.get(next)) {
            (None, _) => self.value,
            (Some(last), Some([next_s, next])) if self.is_linear => {
                let [last_s, last] = self.schedule[last];
                last + (next - last) * (time_s - last_s) / (next_s - last_s)
            }
            (Some(last), _) => self.schedule[last][1],
        };
        self.clamped(value)
    }

    /// A value within the range.
    pub fn clamped(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        value.max(low).min(high)
    }
}
