//! A built-in brain that a server owns for a time.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use tectum::snapshot::Snapshot;
use tectum::{CodeObject, Device, InputFile, Result, RunStats};
use tectum_control::body::BodySpec;
use tectum_control::brain::Brain;

use crate::body::Lent;
use crate::brain::NativeBrain;
use crate::mutex::locked;

/// A brain that serves one client at a time; it goes back to its object when the last reference is
/// dropped.
pub struct LentBrain {
    name: &'static str,
    spec: BodySpec,
    device: Option<Device>,
    notes: Vec<String>,
    brain: Mutex<Lent<Box<dyn Brain>>>,
}

impl LentBrain {
    /// Takes the brain of an object, for a body, or for the one that it was made for.
    ///
    /// Raises ValueError if a loop or a server owns it, and for a body with other numbers of channels.
    pub fn of(object: &Bound<'_, NativeBrain>, body: Option<&BodySpec>) -> PyResult<Arc<Self>> {
        let native = object.get();
        let spec = body.unwrap_or(native.spec()).clone();
        let lent = native.lend(object.py(), &spec)?;
        let brain = lent.value.as_deref();
        Ok(Arc::new(Self {
            name: brain.map_or("", Brain::name),
            device: brain.and_then(Brain::device).cloned(),
            notes: brain.map_or_else(Vec::new, |brain| brain.notes().to_vec()),
            spec,
            brain: Mutex::new(lent),
        }))
    }

    /// The constants of the body that it drives.
    pub fn spec(&self) -> &BodySpec {
        &self.spec
    }

    /// The brain, for a client; its episode ends with the client.
    pub fn for_client(self: &Arc<Self>) -> Box<dyn Brain> {
        Box::new(ServedBrain(self.clone()))
    }
}

/// The brain of a client.
struct ServedBrain(Arc<LentBrain>);

impl Drop for ServedBrain {
    fn drop(&mut self) {
        self.episode_ended();
    }
}

impl ServedBrain {
    fn with<T>(&self, work: impl FnOnce(&mut dyn Brain) -> T) -> T {
        let mut lent = locked(&self.0.brain);
        let brain = lent.value.as_deref_mut();
        work(brain.expect("invariant: it is there until it is dropped"))
    }
}

impl Brain for ServedBrain {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.with(|brain| brain.tick(observation, action))
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.with(|brain| brain.snapshot())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.with(|brain| brain.restore(snapshot))
    }

    fn unanswered_ticks(&self) -> u64 {
        self.with(|brain| brain.unanswered_ticks())
    }

    fn interrupted(&mut self) {
        self.with(|brain| brain.interrupted());
    }

    fn episode_ended(&mut self) {
        self.with(|brain| brain.episode_ended());
    }

    fn device(&self) -> Option<&Device> {
        self.0.device.as_ref()
    }

    fn notes(&self) -> &[String] {
        &self.0.notes
    }

    fn inputs(&self) -> Vec<InputFile> {
        self.with(|brain| brain.inputs())
    }

    fn code(&self) -> Vec<CodeObject> {
        self.with(|brain| brain.code())
    }
}
