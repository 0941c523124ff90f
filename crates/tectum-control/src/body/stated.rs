//! What a scenario states of a channel of a body that it does not define.

use std::ops::RangeInclusive;

use serde::Serialize;
use tectum::{Error, Result};

use super::{ActionChannel, ObservationChannel};
use crate::document::{Key, Section};

/// What a scenario states of a channel; the rest is the body's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StatedChannel {
    /// Its name.
    pub name: String,
    /// Its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its lowest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its highest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether it is an angle that wraps; of an observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wraps: Option<bool>,
    /// Whether it has two values; of an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discrete: Option<bool>,
}

impl StatedChannel {
    /// Reads the keys of one channel of the `kind` "observation" or "action". `absent` is what applies to a key that is absent, for the
    /// reference of scenarios: to the unit, to the bounds and
    /// to the flag.
    ///
    /// # Errors
    /// `Data` for a channel without a name, or a lowest value above the highest, naming file and
    /// line.
    pub fn read(channel: &mut Section<'_, '_>, kind: &str, absent: [&str; 3]) -> Result<Self> {
        let name = channel.required(Key::new("name", "name of the channel"))?;
        let unit = Key::new("unit", "unit of the channel").or(absent[0]);
        let unit = channel.string(unit)?.map(|unit| unit.value.to_owned());
        let mut bound = |name, about| {
            let key = Key::new(name, about).unit("the channel's").or(absent[1]);
            channel.within(key.values("a number"), f64::MIN..=f64::MAX)
        };
        let (low, high) = (
            bound("low", "lowest value")?,
            bound("high", "highest value")?,
        );
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            return Err(channel.fault(format_args!("low is {low}, above high, {high}")));
        }
        let is_observation = kind == "observation";
        let flag = match is_observation {
            true => Key::new(
                "wraps",
                "whether it is an angle that wraps after a full turn",
            ),
            false => Key::new("discrete", "whether `low` and `high` are its only values"),
        };
        let flag = channel.flag(flag.or(absent[2]))?;
        Ok(Self {
            name: name.value.to_owned(),
            unit,
            low,
            high,
            wraps: flag.filter(|_| is_observation),
            discrete: flag.filter(|_| !is_observation),
        })
    }

    /// The channel of an observation, once all of it is stated.
    pub fn observation(&self) -> ObservationChannel {
        let (name, unit, range) = self.head();
        let own = ObservationChannel::new(name, unit, range);
        let scale = if own.scale > 0.0 { own.scale } else { 1.0 };
        match self.wraps {
            Some(true) => own.scaled(scale).wrapping(1.0),
            _ => own.scaled(scale),
        }
    }

    /// The channel of an action, once all of it is stated.
    pub fn action(&self) -> ActionChannel {
        let (name, unit, range) = self.head();
        ActionChannel {
            discrete: self.discrete == Some(true),
            ..ActionChannel::new(name, unit, range)
        }
    }

    fn head(&self) -> (String, String, RangeInclusive<f32>) {
        let bound = |bound: Option<f64>| bound.unwrap_or(0.0) as f32;
        let unit = self.unit.clone().unwrap_or_default();
        (self.name.clone(), unit, bound(self.low)..=bound(self.high))
    }

    /// Refuses two channels of one name.
    ///
    /// # Errors
    /// `Data` naming it.
    pub fn check_names<'n>(kind: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        let twice = names
            .clone()
            .enumerate()
            .find(|(place, name)| names.clone().take(*place).any(|earlier| earlier == *name));
        twice.map_or(Ok(()), |(_, name)| {
            Err(Error::data(format!(
                "two channels of the {kind} have the name {name:?}"
            )))
        })
    }
}
