//! The first messages: what a body is, and what a scenario says that it is.

use std::time::Duration;

use tectum::{Error, Result};
use tectum_control::body::{BodySpec, ChannelKind, StatedChannel};
use tectum_control::message::Message;

use crate::socket::{Frame, Socket};

/// The version of the messages; a body that states another is refused.
pub(crate) const PROTOCOL: u64 = 1;
/// How long a body that is connected may take to state its constants.
const LIMIT: Duration = Duration::from_secs(5);

/// What a scenario states of a body; what is absent is not compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stated {
    pub period_s: Option<f64>,
    pub observation: Option<Vec<StatedChannel>>,
    pub action: Option<Vec<StatedChannel>>,
    pub safe_action: Option<Vec<f64>>,
}

/// What a body states of a channel.
struct OwnChannel<'s> {
    name: &'s str,
    unit: &'s str,
    range: [f32; 2],
    /// Name and value of what it is besides a number in a range.
    kind: (&'static str, bool),
}

/// What a body states of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Introduction {
    pub spec: BodySpec,
    /// Its own name.
    pub peer: String,
}

/// Asks for the constants of a body.
pub(crate) async fn ask(socket: &mut Socket, hello: &Message, name: &str) -> Result<Introduction> {
    let exchange = async {
        let content = hello.to_bytes()?;
        socket
            .send(Frame::Binary(content.into()))
            .await
            .map_err(Error::data)?;
        loop {
            match socket.receive().await.map_err(Error::data)? {
                Frame::Binary(content) => return Message::parse(&content),
                Frame::Text(text) => return Err(Error::data(format!("it answered: {text}"))),
                Frame::Close(reason) => {
                    return Err(Error::data(format!("it closed the connection: {reason}")));
                }
                Frame::Ping(_) | Frame::Pong(_) => {}
            }
        }
    };
    let answer = tokio::time::timeout(LIMIT, exchange)
        .await
        .map_err(|_| Error::data(format!("no constants within {} s", LIMIT.as_secs())))??;
    read(&answer, name)
}

/// Reads the constants of a body.
///
/// # Errors
/// `Data` for a refusal, another type or version, or constants that are not valid.
pub(crate) fn read(answer: &Message, name: &str) -> Result<Introduction> {
    match answer.kind() {
        "spec" => {}
        "error" => {
            let text = answer.text("message").unwrap_or("an error without a text");
            return Err(Error::data(format!("it refused: {text}")));
        }
        kind => {
            return Err(Error::data(format!(
                "its first message is {kind:?}, needs \"spec\""
            )));
        }
    }
    let version = answer.number("protocol").unwrap_or(PROTOCOL as f64);
    if version != PROTOCOL as f64 {
        return Err(Error::data(format!(
            "it has version {version} of the protocol, this build has {PROTOCOL}"
        )));
    }
    Ok(Introduction {
        spec: BodySpec::from_message(name, answer)?,
        peer: answer.text("name").unwrap_or("").to_owned(),
    })
}

impl Stated {
    /// All that a body states.
    pub fn of(spec: &BodySpec) -> Self {
        let observation = spec.observation.iter().map(|channel| StatedChannel {
            name: channel.name.clone(),
            unit: Some(channel.unit.clone()),
            low: Some(f64::from(channel.low)),
            high: Some(f64::from(channel.high)),
            wraps: Some(channel.kind != ChannelKind::Linear),
            discrete: None,
        });
        let action = spec.action.iter().map(|channel| StatedChannel {
            name: channel.name.clone(),
            unit: Some(channel.unit.clone()),
            low: Some(f64::from(channel.low)),
            high: Some(f64::from(channel.high)),
            wraps: None,
            discrete: Some(channel.discrete),
        });
        let safe = spec.safe_action.iter().map(|number| f64::from(*number));
        Self {
            period_s: Some(spec.dt_s),
            observation: Some(observation.collect()),
            action: Some(action.collect()),
            safe_action: Some(safe.collect()),
        }
    }

    /// The constants of a body that states nothing of itself; `what` it is, for the error.
    ///
    /// # Errors
    /// `Invalid` naming each key that the scenario lacks.
    pub fn body(&self, name: &str, what: &str) -> Result<BodySpec> {
        let (observation, action) = (
            self.observation.as_deref().unwrap_or_default(),
            self.action.as_deref().unwrap_or_default(),
        );
        let safe = self.safe_action.as_deref().unwrap_or_default();
        let mut missing = Vec::new();
        for (kind, channels) in [("observation", observation), ("action", action)] {
            if channels.is_empty() {
                missing.push(format!("[[body.{kind}]]"));
            }
            for channel in channels {
                let keys = [
                    ("unit", channel.unit.is_none()),
                    ("low", channel.low.is_none()),
                    ("high", channel.high.is_none()),
                ];
                let absent = keys.iter().filter(|(_, is_missing)| *is_missing);
                missing.extend(absent.map(|(key, _)| format!("{key} of {kind} {}", channel.name)));
            }
        }
        if self.period_s.is_none() {
            missing.push("period".to_owned());
        }
        if safe.len() != action.len() {
            missing.push(format!("safe_action with {} numbers", action.len()));
        }
        if !missing.is_empty() {
            return Err(Error::invalid(format!(
                "body {name}: {what} states nothing of itself: [body] needs {}",
                missing.join(", ")
            )));
        }
        let spec = BodySpec {
            name: name.to_owned(),
            dt_s: self.period_s.unwrap_or(0.0),
            observation: observation.iter().map(StatedChannel::observation).collect(),
            action: action.iter().map(StatedChannel::action).collect(),
            safe_action: safe.iter().map(|number| *number as f32).collect(),
        };
        spec.check()?;
        Ok(spec)
    }

    /// The differences between what a scenario states and what a body states.
    pub fn differences(&self, spec: &BodySpec) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(period_s) = self.period_s
            && (period_s - spec.dt_s).abs() > 1e-9 * period_s
        {
            found.push(format!(
                "its period is {} s, the scenario states {period_s} s",
                spec.dt_s
            ));
        }
        if let Some(stated) = &self.observation {
            let own = spec.observation.iter().map(|channel| OwnChannel {
                name: &channel.name,
                unit: &channel.unit,
                range: [channel.low, channel.high],
                kind: ("wraps", channel.kind != ChannelKind::Linear),
            });
            compare("observation", stated, &own.collect::<Vec<_>>(), &mut found);
        }
        if let Some(stated) = &self.action {
            let own = spec.action.iter().map(|channel| OwnChannel {
                name: &channel.name,
                unit: &channel.unit,
                range: [channel.low, channel.high],
                kind: ("discrete", channel.discrete),
            });
            compare("action", stated, &own.collect::<Vec<_>>(), &mut found);
        }
        if let Some(stated) = &self.safe_action {
            let stated: Vec<f32> = stated.iter().map(|number| *number as f32).collect();
            if stated != spec.safe_action {
                found.push(format!(
                    "its safe action is {:?}, the scenario states {stated:?}",
                    spec.safe_action
                ));
            }
        }
        found
    }

    /// Refuses a body that differs.
    ///
    /// # Errors
    /// `Invalid` naming each difference.
    pub fn check(&self, spec: &BodySpec) -> Result<()> {
        match &self.differences(spec)[..] {
            [] => Ok(()),
            found => Err(Error::invalid(format!(
                "it is another body than the scenario states: {}",
                found.join("; ")
            ))),
        }
    }
}

fn compare(part: &str, stated: &[StatedChannel], own: &[OwnChannel<'_>], found: &mut Vec<String>) {
    let names: Vec<&str> = stated.iter().map(|channel| channel.name.as_str()).collect();
    let own_names: Vec<&str> = own.iter().map(|channel| channel.name).collect();
    if names != own_names {
        found.push(format!(
            "its {part} has the channels {}, the scenario states {}",
            own_names.join(", "),
            names.join(", ")
        ));
        return;
    }
    for (channel, own) in stated.iter().zip(own) {
        let OwnChannel {
            name,
            unit,
            range: [low, high],
            kind: (kind, own_kind),
        } = own;
        if let Some(stated) = channel.unit.as_ref().filter(|stated| stated != unit) {
            found.push(format!(
                "{part} {name} is in {unit:?}, the scenario states {stated:?}"
            ));
        }
        let bounds = [("low", channel.low, low), ("high", channel.high, high)];
        for (bound, stated, own) in bounds {
            if let Some(stated) = stated.filter(|stated| *stated as f32 != *own) {
                found.push(format!(
                    "{bound} of {part} {name} is {own}, the scenario states {stated}"
                ));
            }
        }
        let stated = channel.wraps.or(channel.discrete);
        if let Some(stated) = stated.filter(|stated| stated != own_kind) {
            found.push(format!(
                "{kind} of {part} {name} is {own_kind}, the scenario states {stated}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use tectum_control::body::body;

    use super::*;

    fn channel(name: &str) -> StatedChannel {
        StatedChannel {
            name: name.into(),
            ..StatedChannel::default()
        }
    }

    #[test]
    fn each_difference_is_named_and_what_is_not_stated_is_none() {
        let body = body("pendulum", None).expect("built in");
        let spec = body.spec();
        assert!(Stated::default().differences(spec).is_empty());
        let mut stated = Stated {
            period_s: Some(spec.dt_s),
            observation: Some(vec![channel("angle"), channel("speed")]),
            action: Some(vec![channel("torque")]),
            safe_action: Some(vec![0.0]),
        };
        assert!(stated.check(spec).is_ok());
        stated.period_s = Some(0.02);
        stated.safe_action = Some(vec![1.0]);
        stated.action = Some(vec![StatedChannel {
            unit: Some("V".into()),
            high: Some(3.0),
            discrete: Some(true),
            ..channel("torque")
        }]);
        stated.observation = Some(vec![channel("speed"), channel("angle")]);
        let unit = &spec.action[0].unit;
        assert_eq!(
            stated.differences(spec),
            [
                "its period is 0.05 s, the scenario states 0.02 s".to_owned(),
                "its observation has the channels angle, speed, the scenario states speed, angle"
                    .into(),
                format!("action torque is in {unit:?}, the scenario states \"V\""),
                "high of action torque is 2, the scenario states 3".into(),
                "discrete of action torque is false, the scenario states true".into(),
                "its safe action is [0.0], the scenario states [1.0]".into(),
            ]
        );
    }

    #[test]
    fn an_answer_that_states_no_body_is_refused() {
        let spec = body("pendulum", None).expect("built in").spec().clone();
        let whole = spec.to_message(Message::new("spec", 1));
        // A scale is not stated.
        let spec = BodySpec::from_message("pendulum", &whole).expect("valid");
        assert_eq!(
            read(&whole, "pendulum").expect("a body"),
            Introduction {
                spec,
                peer: "pendulum".into()
            }
        );
        for (message, reason) in [
            (
                Message::new("error", 1).with("message", "it is taken"),
                "it refused: it is taken",
            ),
            (
                Message::new("observation", 1),
                "its first message is \"observation\", needs \"spec\"",
            ),
            (
                Message::new("spec", 1).with("protocol", 2),
                "it has version 2 of the protocol, this build has 1",
            ),
        ] {
            let error = read(&message, "a").expect_err(reason).to_string();
            assert_eq!(error, reason);
        }
    }

    fn whole_channel(name: &str) -> StatedChannel {
        StatedChannel {
            unit: Some("rad".to_owned()),
            low: Some(-1.0),
            high: Some(1.0),
            ..channel(name)
        }
    }

    fn whole() -> Stated {
        Stated {
            period_s: Some(0.02),
            observation: Some(vec![whole_channel("angle")]),
            action: Some(vec![whole_channel("torque")]),
            safe_action: Some(vec![0.25]),
        }
    }

    #[test]
    fn each_key_that_a_scenario_lacks_is_named() {
        let spec = whole()
            .body("a", "a machine on a serial port")
            .expect("whole");
        assert_eq!((spec.dt_s, &spec.safe_action[..]), (0.02, &[0.25][..]));
        let mut stated = whole();
        stated.period_s = None;
        stated.safe_action = Some(vec![0.0, 0.0]);
        stated.observation = None;
        stated.action = Some(vec![StatedChannel {
            unit: None,
            high: None,
            ..whole_channel("torque")
        }]);
        let error = stated
            .body("a", "a machine on a serial port")
            .expect_err("four keys")
            .to_string();
        assert_eq!(
            error,
            "body a: a machine on a serial port states nothing of itself: [body] needs [[body.observation]], unit of action torque, high of action torque, period, safe_action with 1 numbers"
        );
    }
}
