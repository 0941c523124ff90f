//! The threads that read and write sockets.

use std::future::Future;

use tectum::{Error, Result};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread that runs tasks until it is dropped.
#[derive(Debug)]
pub(crate) struct IoThread {
    handle: Handle,
    /// Its end is the end of the thread. No one waits for that: a line of the log that the thread
    /// writes may need what the thread that drops this has, such as the lock of an interpreter.
    _stop: oneshot::Sender<()>,
}

impl IoThread {
    /// Starts a thread without tasks.
    ///
    /// # Errors
    /// `Io` with what the operating system reports.
    pub fn start() -> Result<Self> {
        let failed = |source| Error::io("a thread for sockets", source);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("tectum-link".to_owned())
            .spawn(move || {
                // Both a message and its sender's end are the end.
                let _ = runtime.block_on(stopped);
            })
            .map_err(failed)?;
        Ok(Self {
            handle,
            _stop: stop,
        })
    }

    /// Starts a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task));
    }
}
