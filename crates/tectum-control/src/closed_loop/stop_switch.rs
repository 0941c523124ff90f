//! The emergency stop of a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a loop from any thread: the body gets its safe action from the next period to the end of
/// the run.
#[derive(Debug, Clone, Default)]
pub struct StopSwitch(Arc<AtomicBool>);

impl StopSwitch {
    /// Presses the switch. This cannot be reversed.
    pub fn press(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
