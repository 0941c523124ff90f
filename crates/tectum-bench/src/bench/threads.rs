//! Work on a thread pool of a given size.

use tectum::{CodeObject, Result, RunStats, ThreadPool};

use super::Workload;

/// Work that sees a pool of this many threads, when it is made and when it runs.
pub struct OnThreads<W> {
    pool: ThreadPool,
    work: W,
}

impl<W: Workload + Send> OnThreads<W> {
    /// Makes the work on a pool of this many threads.
    ///
    /// # Errors
    /// `Unsupported` if there can be no such pool; what `make` reports.
    pub fn new(threads: usize, make: impl FnOnce() -> Result<W> + Send) -> Result<Self> {
        let pool = ThreadPool::new(threads, "tectum-bench")?;
        let work = pool.install(make)?;
        Ok(Self { pool, work })
    }
}

impl<W: Workload + Send> Workload for OnThreads<W> {
    fn run(&mut self) -> Result<RunStats> {
        let work = &mut self.work;
        self.pool.install(|| work.run())
    }

    fn code(&self) -> &[CodeObject] {
        self.work.code()
    }
}
