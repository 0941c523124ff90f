//! How long work reports its progress, and how its caller breaks it off.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// The progress of long work, as a [`Watch`] receives it.
///
/// # Example
/// ```
/// use std::ops::ControlFlow;
/// use tectum::{ErrorKind, WorkProgress};
/// let mut seen = Vec::new();
/// let mut watch = |progress: WorkProgress<'_>| {
///     seen.push(progress.done);
///     if progress.done == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
/// };
/// let ended = (1..=3).try_for_each(|done| WorkProgress { stage: "counting", done, total: 3 }.report(&mut watch));
/// let error = ended.expect_err("the watch broke it off");
/// assert_eq!((error.kind(), error.to_string()), (ErrorKind::Cancelled, "counting: broken off after 2 of 3".to_owned()));
/// assert_eq!(seen, [1, 2]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkProgress<'a> {
    /// What is being done, for display.
    pub stage: &'a str,
    /// Steps done.
    pub done: u64,
    /// Steps in all.
    pub total: u64,
}

/// Receives the progress of long work and says whether the work continues.
pub type Watch<'w> = dyn FnMut(WorkProgress<'_>) -> ControlFlow<()> + 'w;

impl WorkProgress<'_> {
    /// A watch that lets work continue.
    pub fn ignore(_: WorkProgress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Reports to a watch, in work that has no result before its end.
    ///
    /// # Errors
    /// `Cancelled` if the watch breaks the work off.
    pub fn report(self, watch: &mut Watch<'_>) -> Result<()> {
        match watch(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::cancelled(format!(
                "{}: broken off after {} of {}",
                self.stage, self.done, self.total
            ))),
        }
    }
}
