//! The keys of `[body]` for a recording.

use serde::Serialize;
use tectum::Result;

use crate::body::StatedChannel;
use crate::document::{Key, Section};
use crate::recording::fields::{FieldRequest, Stamp};

/// Which time of a message is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingClock {
    /// When it was recorded.
    #[default]
    LogTime,
    /// When it was sent.
    PublishTime,
    /// What its header states.
    #[serde(rename = "header.stamp")]
    HeaderStamp,
}

impl RecordingClock {
    const ALL: [(&str, Self); 3] = [
        ("log_time", Self::LogTime),
        ("publish_time", Self::PublishTime),
        ("header.stamp", Self::HeaderStamp),
    ];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(_, clock)| *clock == self);
        row.map_or("", |(name, _)| name)
    }

    pub(super) fn stamp(self) -> Stamp {
        match self {
            Self::HeaderStamp => Stamp::Header,
            Self::LogTime | Self::PublishTime => Stamp::Record,
        }
    }
}

/// The keys besides the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Keys {
    pub period: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<RecordingClock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe_action: Option<Vec<f64>>,
    pub observation: Vec<ChannelKeys>,
    pub action: Vec<ChannelKeys>,
}

/// The keys of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChannelKeys {
    #[serde(flatten)]
    pub stated: StatedChannel,
    pub topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
}

impl ChannelKeys {
    pub fn request(&self) -> FieldRequest {
        FieldRequest {
            field: self.field.clone(),
            joint: self.joint.clone(),
        }
    }

    fn read(channel: &mut Section<'_, '_>, kind: &str) -> Result<Self> {
        let absent = ["`1`", "that of the recording", "false"];
        let stated = StatedChannel::read(channel, kind, absent)?;
        let topic = Key::new("topic", "topic of the messages");
        let topic = channel.required(topic)?.value.to_owned();
        let field = Key::new(
            "field",
            "path of the field: `position`, `pose.position.x`, `data[2]`; an array as a whole is a channel that is an array",
        )
        .or("none: the message is a picture");
        let field = channel.string(field)?;
        let joint = Key::new(
            "joint",
            "joint whose element of the field it is, by the array `name` or `joint_names` of the message",
        )
        .or("none");
        let joint = channel.string(joint)?;
        if joint.is_some() && field.is_none() {
            return Err(channel.fault("has the key \"joint\" without \"field\""));
        }
        let text = |value: crate::document::Located<&str>| value.value.to_owned();
        Ok(Self {
            stated,
            topic,
            field: field.map(text),
            joint: joint.map(text),
        })
    }
}

impl Keys {
    pub fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        let period = Key::new("period", "time between two actions")
            .unit("s")
            .or("required");
        let missing = section.missing("period");
        let period = section.positive_up_to(period, 1e4)?.ok_or(missing)?;
        let clock = Key::new("clock", "which time of a message is used").or("\"log_time\"");
        let clock = section.choice(clock, &RecordingClock::ALL)?;
        let gap = Key::new(
            "gap",
            "how long the value of a message is used; periods with an older one are not compared",
        )
        .unit("s")
        .or("min(3 periods, 0.1 s), at least 1.5 periods and 1.5 median intervals of the messages");
        let gap = section.positive_up_to(gap, 1e6)?;
        let safe = Key::new("safe_action", "safe action")
            .values("a list of numbers")
            .or("0 for each channel, or the bound that is nearest to it");
        let safe_action = section.numbers(safe)?;
        let mut channels = |kind: &str| {
            let about = format!("Channels of the {kind} in order, with the fields that have them.");
            let found = section.sections(Key::new(kind, &about))?;
            if found.is_empty() {
                return Err(section.missing(kind));
            }
            let mut channels = Vec::with_capacity(found.len());
            for mut channel in found {
                channels.push(ChannelKeys::read(&mut channel, kind)?);
                channel.finish()?;
            }
            let names = channels.iter().map(|channel| channel.stated.name.as_str());
            StatedChannel::check_names(kind, names).map_err(|error| section.fault(error))?;
            Ok(channels)
        };
        let (observation, action) = (channels("observation")?, channels("action")?);
        if let Some(safe) = &safe_action
            && safe.len() != action.len()
        {
            return Err(section.fault(format_args!(
                "safe_action has {} numbers for {} channels of the action",
                safe.len(),
                action.len()
            )));
        }
        Ok(Self {
            period,
            clock,
            gap,
            safe_action,
            observation,
            action,
        })
    }
}
