//! The number of threads of a command.

use clap::Args;
use tectum::{Result, ThreadPool};

/// The option of every command that runs on a device.
#[derive(Args)]
pub struct ThreadsArgs {
    /// Threads of the CPU; those of TECTUM_THREADS if not given, else one for each of the
    /// processor's.
    ///
    /// Launches on the CPU and work of the host share them; results do not depend on their number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

impl ThreadsArgs {
    /// Applies to the whole command; to be called before it starts any thread.
    ///
    /// # Errors
    /// As [`ThreadPool::start_global`].
    pub fn apply(&self) -> Result<()> {
        ThreadPool::start_global(self.threads.map(|threads| threads as usize))
    }
}
