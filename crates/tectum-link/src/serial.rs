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
use tectum_control::body::BodySpec;

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

#[cfg(test)]
mod tests {
    use tectum_control::body::{ActionChannel, ObservationChannel};

    use super::*;

    #[test]
    fn a_line_that_takes_longer_than_the_period_is_refused() {
        let spec = BodySpec {
            name: "a".to_owned(),
            dt_s: 0.02,
            observation: vec![ObservationChannel::new("angle", "rad", -1.0..=1.0)],
            action: vec![ActionChannel::new("torque", "N m", -1.0..=1.0)],
            safe_action: vec![0.25],
        };
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
