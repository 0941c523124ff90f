//! The speed of a transformer.

use serde::Serialize;
use tectum::DeviceInfo;

use crate::count::counted;

/// Tokens that were run, and their time; without a rate if nothing was executed.
#[derive(Serialize)]
pub struct Rate {
    tokens: usize,
    seconds: f64,
    tokens_per_s: Option<f64>,
}

impl Rate {
    /// The rate of tokens that a device ran.
    pub fn new(tokens: usize, seconds: f64, device: &DeviceInfo) -> Self {
        Self {
            tokens,
            seconds,
            tokens_per_s: (device.executes() && tokens > 0 && seconds > 0.0)
                .then(|| tokens as f64 / seconds),
        }
    }

    /// In a few words.
    pub fn text(&self) -> String {
        format!("{} {}", counted(self.tokens, "token"), self.time())
    }

    /// The time and the rate.
    pub fn time(&self) -> String {
        let rate = self
            .tokens_per_s
            .map_or(String::new(), |rate| format!(" ({rate:.1} tokens/s)"));
        format!("in {:.1} ms{rate}", self.seconds * 1e3)
    }
}
