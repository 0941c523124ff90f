//! Sockets are served while brains compute.
//!
//! A worker that computes does not wait for sockets, and the others, which sleep, do not know that
//! none of them does. A thread that wakes one of them now and then, while a brain computes, is
//! cheaper than to wake one before each answer (on one core 25 us for an answer of a zero brain, 51 us
//! with it).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tectum::{Error, Result};
use tokio::runtime::Handle;

/// How long a ping may wait while a brain computes.
const INTERVAL: Duration = Duration::from_millis(20);

/// The number of brains that compute.
#[derive(Debug, Clone, Default)]
pub(super) struct Computing(Arc<AtomicUsize>);

impl Computing {
    /// Computes.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Counted<'c>(&'c AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(&self.0);
        work()
    }
}

/// Wakes a worker now and then while a brain computes, until it is dropped.
#[derive(Debug)]
pub(super) struct Waker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waker {
    /// Starts its thread.
    ///
    /// # Errors
    /// `Io` with what the operating system reports.
    pub fn start(workers: Handle, computing: Computing) -> Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("tectum-serve-waker".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if computing.0.load(Ordering::Relaxed) > 0 {
                        // A worker that has done it waits for sockets.
                        drop(workers.spawn(async {}));
                    }
                }
            })
            .map_err(|source| Error::io("a thread for sockets", source))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has nothing left to end.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
