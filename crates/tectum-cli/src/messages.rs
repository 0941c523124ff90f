//! Messages on standard error: warnings always, notes unless `--quiet`, details with `--verbose`;
//! the log of the libraries with `--verbose` or `RUST_LOG`.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgAction, Args};
use tectum::{Error, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::uptime;

static IS_QUIET: AtomicBool = AtomicBool::new(false);
/// Whether `--verbose` is given.
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);
/// Whether a log is printed, between whose lines no progress line can stay.
static HAS_LOG: AtomicBool = AtomicBool::new(false);

/// Options of every subcommand.
#[derive(Args)]
pub struct MessageArgs {
    /// Prints results alone: no progress, no summary, no notes.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Prints a log on standard error: what was opened, chosen and replaced; -vv also compiled
    /// plans and kernels.
    ///
    /// RUST_LOG selects messages by crate and level instead, for example tectum=debug.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl MessageArgs {
    /// Applies to all later messages.
    ///
    /// # Errors
    /// `Invalid` for a `RUST_LOG` that is not a list of filters.
    pub fn apply(&self) -> Result<()> {
        IS_QUIET.store(self.quiet, Ordering::Relaxed);
        IS_VERBOSE.store(self.verbose > 0, Ordering::Relaxed);
        let by_options = match self.verbose {
            0 => None,
            1 => Some("tectum=info".to_owned()),
            _ => Some("tectum=debug".to_owned()),
        };
        let variable = std::env::var("RUST_LOG")
            .ok()
            .filter(|text| !text.is_empty());
        let Some(text) = variable.or(by_options) else {
            return Ok(());
        };
        let filter = EnvFilter::try_new(&text).map_err(|source| {
            Error::invalid(format!("RUST_LOG: {text:?} is not a list of filters"))
                .with_source(source)
        })?;
        let has_colors = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_timer(uptime())
            .with_ansi(has_colors)
            .with_writer(std::io::stderr)
            .init();
        HAS_LOG.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether only results are printed.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Whether notes list everything.
pub fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// Whether progress is shown while something runs.
pub fn has_progress() -> bool {
    !is_quiet() && !HAS_LOG.load(Ordering::Relaxed)
}

/// Prints a warning: the result differs from what the user may expect.
pub fn warning(text: impl std::fmt::Display) {
    eprintln!("warning: {text}");
}

/// Prints a detail, with `--verbose`.
pub fn detail(text: impl std::fmt::Display) {
    if IS_VERBOSE.load(Ordering::Relaxed) {
        eprintln!("{text}");
    }
}

/// Prints a note.
pub fn note(text: impl std::fmt::Display) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}
