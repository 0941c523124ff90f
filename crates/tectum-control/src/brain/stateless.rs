//! A control law as a brain: the action depends on the observation alone.

use tectum::snapshot::Snapshot;
use tectum::{Result, RunStats};

use super::Brain;

/// A brain without state, made of one function from the observation to the action, both in the
/// body's units and order.
///
/// # Example
/// ```
/// use tectum_control::brain::{Brain, Stateless};
///
/// let mut damper = Stateless::new("damper", |observation, action| action[0] = -0.5 * observation[1]);
/// let mut action = [0.0];
/// damper.tick(&[0.1, 2.0], &mut action)?;
/// assert_eq!(action, [-1.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
pub struct Stateless<Law> {
    name: &'static str,
    law: Law,
}

impl<Law: Fn(&[f32], &mut [f32]) + Send> Stateless<Law> {
    /// Makes the brain; the name appears in receipts and logs.
    pub fn new(name: &'static str, law: Law) -> Self {
        Self { name, law }
    }
}

impl<Law: Fn(&[f32], &mut [f32]) + Send> Brain for Stateless<Law> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        (self.law)(observation, action);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _snapshot: &Snapshot) -> Result<()> {
        Ok(())
    }
}
