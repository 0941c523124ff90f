//! Commands of a brain: numbers that a caller gives it while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tectum::{Error, Result};

use crate::nearest::suggestion;

/// A number that a caller may set.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandChannel {
    /// Its name, as in the contract.
    pub name: String,
    /// Its unit; empty where none is stated.
    pub unit: String,
    /// The range that it is clamped to.
    pub range: [f64; 2],
}

/// What a caller sets of a brain's commands while it runs, from any thread.
#[derive(Debug, Clone)]
pub struct CommandInputs {
    channels: Arc<[CommandChannel]>,
    /// The bits of f64 numbers; those of NaN where nothing is set.
    set: Arc<[AtomicU64]>,
    /// What the brain read at its last tick.
    used: Arc<[AtomicU64]>,
}

impl CommandInputs {
    /// Commands that nobody has set.
    pub fn new(channels: Vec<CommandChannel>) -> Self {
        let nothing = || {
            let bits = channels.iter().map(|_| AtomicU64::new(f64::NAN.to_bits()));
            bits.collect()
        };
        Self {
            set: nothing(),
            used: nothing(),
            channels: channels.into(),
        }
    }

    /// The commands in order.
    pub fn channels(&self) -> &[CommandChannel] {
        &self.channels
    }

    /// Sets a command from the next tick on, instead of its schedule; `None` returns to it. The
    /// value is clamped to the command's range.
    ///
    /// # Errors
    /// `Invalid` for a name that is no command, and for a number that is not finite.
    pub fn set(&self, name: &str, value: Option<f64>) -> Result<()> {
        let mut names = self.channels.iter().map(|channel| channel.name.as_str());
        let place = names.clone().position(|known| known == name);
        let place = place.ok_or_else(|| {
            Error::invalid(format!(
                "the brain has no command {name:?}{}; it has {}",
                suggestion(name, names.clone()),
                names.by_ref().collect::<Vec<_>>().join(", ")
            ))
        })?;
        if value.is_some_and(|value| !value.is_finite()) {
            return Err(Error::invalid(format!(
                "command {name}: a finite number is needed"
            )));
        }
        self.set[place].store(value.unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Sets all commands, in order; NaN returns to the schedule.
    pub(crate) fn set_all(&self, values: &[f64]) {
        for (set, value) in self.set.iter().zip(values) {
            let value = if value.is_nan() { f64::NAN } else { *value };
            set.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Copies what the brain used at its last tick: NaN where nothing was set.
    pub(crate) fn copy_used(&self, values: &mut [f64]) {
        for (value, used) in values.iter_mut().zip(&*self.used) {
            *value = f64::from_bits(used.load(Ordering::Relaxed));
        }
    }

    /// The value that is set of the command at a place, for a tick of the brain, which loops record.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn take(&self, place: usize) -> Option<f64> {
        let bits = self.set[place].load(Ordering::Relaxed);
        self.used[place].store(bits, Ordering::Relaxed);
        let value = f64::from_bits(bits);
        (!value.is_nan()).then_some(value)
    }
}
