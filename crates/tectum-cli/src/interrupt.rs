//! Ctrl-C and SIGTERM as an orderly end of work that keeps what it has.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tectum::{Error, Result};

/// Whether the work is to end.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Turns Ctrl-C and SIGTERM into an orderly end. To be called when there is something to keep:
    /// before that either signal just ends the process. A second one also ends it, in case the
    /// orderly end hangs.
    ///
    /// The `ctrlc` crate (its own maintainers, since 2015) is a justified dependency: signals on
    /// Unix and console events on Windows without our own `unsafe`.
    ///
    /// # Errors
    /// `Unsupported` if the system cannot catch the signals.
    pub fn watch() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let raised = flag.clone();
        let handler = move || {
            if raised.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        };
        ctrlc::set_handler(handler)
            .map_err(|source| Error::unsupported("Ctrl-C cannot be caught").with_source(source))?;
        Ok(Self(flag))
    }

    /// Whether a signal came.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Break` after a signal.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_raised() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
