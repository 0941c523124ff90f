//! Bodies on serial ports: microcontrollers that send and receive one line of numbers per period.
//!
//! ```text
//!  0.0125,-0.5\r\n         one number for each channel of the observation, from the machine
//!  0.75\n                  one number for each channel of the action, to the machine
//!  0.75*1C\n               the same with a checksum: the XOR of the bytes before the asterisk
//!  arm\n                   from the machine: the operator allows actions again after a stop
//! ```
//!
//! A microcontroller states nothing, so that the scenario states its channels, period and safe
//! action. Everything else is as for a body behind a socket: [`port`] makes messages of lines and
//! lines of messages, and the keeper of the connection, the mailbox and the supervisor are the same.

#[cfg(unix)]
pub(crate) mod line;
#[cfg(unix)]
pub(crate) mod port;

use std::path::PathBuf;

use tectum::{Error, Result};
use tectum_control::body::{ActionChannel, BodySpec, ObservationChannel, StatedChannel};

use crate::handshake::Stated;

/// Bits on the wire for a byte: a start bit, eight bits of data, no parity, one stop bit.
const BITS_PER_BYTE: usize = 10;
/// The maximum number of characters of a number that is sent, with the comma after it.
const MAX_NUMBER: usize = 16;
/// The maximum number of characters after the numbers: `*HH` and the ends of a line.
const MAX_END: usize = 5;

/// A machine on a serial port, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SerialSettings {
    /// The device, `/dev/ttyUSB0`.
    pub path: PathBuf,
    /// Bits per second.
    pub baud: u32,
    /// Whether each line ends with the XOR of its bytes.
    pub checksum: bool,
    /// Channels of one number, period and safe action.
    pub body: BodySpec,
}

impl SerialSettings {
    /// 115,200 bits per second, without checksums.
    pub fn new(path: impl Into<PathBuf>, body: BodySpec) -> Self {
        Self {
            path: path.into(),
            baud: 115_200,
            checksum: false,
            body,
        }
    }

    /// Refuses what the port cannot carry: an action line must have left before the next, so that
    /// none waits behind older ones.
    ///
    /// # Errors
    /// `Invalid` naming the channel that is an array, or the time of a line that is above the
    /// period.
    pub fn check(&self) -> Result<()> {
        let arrays = &mut self.body.observation.iter();
        if let Some(channel) = arrays.find(|channel| channel.is_array()) {
            return Err(Error::invalid(format!(
                "channel {} is an array; a line has single numbers",
                channel.name
            )));
        }
        let count = self.body.observation.len().max(self.body.action.len());
        let bytes = MAX_NUMBER * count + MAX_END;
        let time_s = (BITS_PER_BYTE * bytes) as f64 / f64::from(self.baud);
        if time_s > self.body.dt_s {
            return Err(Error::invalid(format!(
                "a line of {count} numbers has up to {bytes} bytes, {:.2} ms at {} baud; the period is {} ms: use a higher baud or a longer period",
                1e3 * time_s,
                self.baud,
                1e3 * self.body.dt_s
            )));
        }
        Ok(())
    }
}

/// The constants of a machine that states nothing.
///
/// # Errors
/// `Invalid` naming each key that the scenario lacks.
pub(crate) fn body(name: &str, stated: &Stated) -> Result<BodySpec> {
    let mut missing = Vec::new();
    let (observation, action) = (
        stated.observation.as_deref().unwrap_or_default(),
        stated.action.as_deref().unwrap_or_default(),
    );
    let lists = [("observation", observation), ("action", action)];
    for (kind, channels) in lists {
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
    if stated.period_s.is_none() {
        missing.push("period".to_owned());
    }
    let safe = stated.safe_action.as_deref().unwrap_or_default();
    if safe.len() != action.len() {
        missing.push(format!("safe_action with {} numbers", action.len()));
    }
    if !missing.is_empty() {
        return Err(Error::invalid(format!(
            "a machine on a serial port states nothing of itself: [body] needs {}",
            missing.join(", ")
        )));
    }
    let head = |channel: &StatedChannel| {
        let unit = channel.unit.clone().unwrap_or_default();
        let bound = |bound: Option<f64>| bound.unwrap_or(0.0) as f32;
        let range = bound(channel.low)..=bound(channel.high);
        (channel.name.clone(), unit, range)
    };
    let spec = BodySpec {
        name: name.to_owned(),
        dt_s: stated.period_s.unwrap_or(0.0),
        observation: observation
            .iter()
            .map(|channel| {
                let (name, unit, range) = head(channel);
                let own = ObservationChannel::new(name, unit, range);
                let scale = if own.scale > 0.0 { own.scale } else { 1.0 };
                own.scaled(scale)
            })
            .collect(),
        action: action
            .iter()
            .map(|channel| {
                let (name, unit, range) = head(channel);
                ActionChannel::new(name, unit, range)
            })
            .collect(),
        safe_action: safe.iter().map(|number| *number as f32).collect(),
    };
    spec.check()?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(name: &str) -> StatedChannel {
        StatedChannel {
            name: name.to_owned(),
            unit: Some("rad".to_owned()),
            low: Some(-1.0),
            high: Some(1.0),
        }
    }

    fn whole() -> Stated {
        Stated {
            period_s: Some(0.02),
            observation: Some(vec![channel("angle")]),
            action: Some(vec![channel("torque")]),
            safe_action: Some(vec![0.25]),
        }
    }

    #[test]
    fn each_key_that_a_scenario_lacks_is_named() {
        let spec = body("a", &whole()).expect("whole");
        assert_eq!((spec.dt_s, &spec.safe_action[..]), (0.02, &[0.25][..]));
        let mut stated = whole();
        stated.period_s = None;
        stated.safe_action = Some(vec![0.0, 0.0]);
        stated.observation = None;
        stated.action = Some(vec![StatedChannel {
            unit: None,
            high: None,
            ..channel("torque")
        }]);
        let error = body("a", &stated).expect_err("four keys").to_string();
        assert_eq!(
            error,
            "a machine on a serial port states nothing of itself: [body] needs [[body.observation]], unit of action torque, high of action torque, period, safe_action with 1 numbers"
        );
    }

    #[test]
    fn a_line_that_takes_longer_than_the_period_is_refused() {
        let spec = body("a", &whole()).expect("whole");
        let mut settings = SerialSettings::new("/dev/ttyUSB0", spec);
        assert!(settings.check().is_ok());
        settings.baud = 9600;
        // 21 bytes of 10 bits are 21.9 ms.
        let error = settings.check().expect_err("too slow").to_string();
        assert_eq!(
            error,
            "a line of 1 numbers has up to 21 bytes, 21.88 ms at 9600 baud; the period is 20 ms: use a higher baud or a longer period"
        );
    }
}
