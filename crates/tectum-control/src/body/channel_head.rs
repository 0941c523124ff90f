//! What a scenario states of a channel of a body that it does not define.

use serde::Serialize;
use tectum::{Error, Result};

use crate::document::{Key, Section};

/// What a scenario states of a channel; the rest is the body's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChannelHead {
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
}

impl ChannelHead {
    /// Reads the keys of one channel. `absent` is what applies to a key that is absent, for the
    /// reference of scenarios: to the unit, and to the bounds.
    ///
    /// # Errors
    /// `Data` for a channel without a name, or a lowest value above the highest, naming file and
    /// line.
    pub fn read(channel: &mut Section<'_, '_>, absent: [&str; 2]) -> Result<Self> {
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
        Ok(Self {
            name: name.value.to_owned(),
            unit,
            low,
            high,
        })
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
