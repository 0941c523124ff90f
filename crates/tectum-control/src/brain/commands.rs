//! Commands of a brain: numbers that a caller gives it while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tectum::{Error, Result};

use crate::nearest::suggestion;

/// What a caller sets of a brain's commands while it runs, from any thread.
#[derive(Debug, Clone)]
pub struct CommandInputs {
    names: Arc<[String]>,
    /// The bits of f64 numbers; those of NaN where nothing is set.
    values: Arc<[AtomicU64]>,
}

impl CommandInputs {
    #[cfg(feature = "onnx")]
    pub(super) fn new(names: Vec<String>) -> Self {
        Self {
            values: names
                .iter()
                .map(|_| AtomicU64::new(f64::NAN.to_bits()))
                .collect(),
            names: names.into(),
        }
    }

    /// The names of the commands.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Sets a command from the next tick on, instead of its schedule; `None` returns to it. The
    /// value is clamped to the command's range.
    ///
    /// # Errors
    /// `Invalid` for a name that is no command, and for a number that is not finite.
    pub fn set(&self, name: &str, value: Option<f64>) -> Result<()> {
        let place = self.names.iter().position(|known| known == name);
        let place = place.ok_or_else(|| {
            Error::invalid(format!(
                "the brain has no command {name:?}{}; it has {}",
                suggestion(name, self.names.iter().map(String::as_str)),
                self.names.join(", ")
            ))
        })?;
        if value.is_some_and(|value| !value.is_finite()) {
            return Err(Error::invalid(format!(
                "command {name}: a finite number is needed"
            )));
        }
        self.values[place].store(value.unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// The value that is set.
    #[cfg(feature = "onnx")]
    pub(super) fn get(&self, place: usize) -> Option<f64> {
        let value = f64::from_bits(self.values[place].load(Ordering::Relaxed));
        (!value.is_nan()).then_some(value)
    }
}
