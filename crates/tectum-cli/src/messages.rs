//! Messages on standard error: warnings always, notes unless `--quiet`, details with `--verbose`.

use std::sync::atomic::{AtomicU8, Ordering};

use clap::Args;

/// Verbosity; 1 is the default.
static LEVEL: AtomicU8 = AtomicU8::new(1);

/// Options of every subcommand.
#[derive(Args)]
pub struct MessageArgs {
    /// Prints results alone: no progress, no summary, no notes.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Prints how the device was chosen, on standard error.
    #[arg(short, long, global = true)]
    verbose: bool,
}

impl MessageArgs {
    /// Applies to all later messages.
    pub fn apply(&self) {
        LEVEL.store(if self.quiet { 0 } else { 1 + u8::from(self.verbose) }, Ordering::Relaxed);
    }
}

/// Whether only results are printed.
pub fn is_quiet() -> bool {
    LEVEL.load(Ordering::Relaxed) == 0
}

/// Prints a warning: the result differs from what the user may expect.
pub fn warning(text: impl std::fmt::Display) {
    eprintln!("warning: {text}");
}

/// Prints a note.
pub fn note(text: impl std::fmt::Display) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}

/// Prints a detail.
pub fn detail(text: impl std::fmt::Display) {
    if LEVEL.load(Ordering::Relaxed) > 1 {
        eprintln!("{text}");
    }
}
