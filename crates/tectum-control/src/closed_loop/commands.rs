//! Commands of the brain in a loop: what callers set, recorded and repeated.

use std::collections::VecDeque;

use tectum::{Error, Result};

use crate::brain::Brain;
use crate::brain::commands::{CommandChannel, CommandInputs};
use crate::recording::RecordedCommands;

/// The commands of the brain of a loop.
#[derive(Debug)]
pub(super) struct Commands {
    brain: &'static str,
    /// None for a brain without commands.
    inputs: Option<CommandInputs>,
    /// What was used at the last tick, and at the one before.
    used: Vec<f64>,
    before: Vec<f64>,
    /// What a repetition sets, and from which period on.
    script: VecDeque<(u64, Vec<f64>)>,
}

impl Commands {
    pub fn of(brain: &dyn Brain) -> Self {
        let inputs = brain.commands();
        let count = inputs.as_ref().map_or(0, |inputs| inputs.channels().len());
        Self {
            brain: brain.name(),
            inputs,
            used: vec![f64::NAN; count],
            before: vec![f64::NAN; count],
            script: VecDeque::new(),
        }
    }

    /// The commands in order.
    pub fn channels(&self) -> &[CommandChannel] {
        let inputs = self.inputs.as_ref();
        inputs.map_or(&[], |inputs| inputs.channels())
    }

    /// Sets what a recorded run had, period by period.
    ///
    /// # Errors
    /// `Data` for a recording of other commands.
    pub fn repeat(&mut self, recorded: RecordedCommands) -> Result<()> {
        let RecordedCommands { names, values } = recorded;
        if self.inputs.is_none() || values.is_empty() {
            return Ok(());
        }
        let own = self.channels().iter().map(|channel| &channel.name);
        if !own.clone().eq(&names) {
            return Err(Error::data(format!(
                "the recording has the commands {}, the brain {} has {}",
                names.join(", "),
                self.brain,
                own.cloned().collect::<Vec<_>>().join(", ")
            )));
        }
        self.script = values.into();
        Ok(())
    }

    /// Sets a command.
    ///
    /// # Errors
    /// As [`CommandInputs::set`]; `Invalid` for a brain without commands.
    pub fn set(&self, name: &str, value: Option<f64>) -> Result<()> {
        let none = || Error::invalid(format!("brain {}: it has no commands", self.brain));
        self.inputs.as_ref().ok_or_else(none)?.set(name, value)
    }

    /// Sets what the script has for a period.
    pub fn begin(&mut self, tick: u64) {
        while let Some((_, values)) = self.script.pop_front_if(|(at, _)| *at <= tick) {
            self.inputs
                .iter()
                .for_each(|inputs| inputs.set_all(&values));
        }
    }

    /// What the brain used at its last tick, if that is not what it used before.
    pub fn changed(&mut self) -> Option<&[f64]> {
        self.inputs.as_ref()?.copy_used(&mut self.used);
        let bits = |value: &f64| value.to_bits();
        if self.used.iter().map(bits).eq(self.before.iter().map(bits)) {
            return None;
        }
        self.before.copy_from_slice(&self.used);
        Some(&self.before)
    }
}
