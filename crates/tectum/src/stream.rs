//! Streams: work that is executed in order, concurrently with the thread that submits it.
//!
//! A [`Stream`] is a queue with its own thread. Submitted work moves into it and is returned by [`Submission::wait`]: no other
//! code can access its inputs and outputs in the meantime, and nothing is borrowed. Streams are ordered among each other only by
//! [`Event`]s, which work on one device and between devices.
//!
//! On the CPU the thread executes the kernels. On a GPU it submits a run and, while that runs, the next one, so that the device
//! does not wait for the host between them; then it waits for the first.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::launch::RunStats;
use crate::plan::Executable;

/// Runs that are submitted to the device before the first of them is waited for.
const MAX_IN_FLIGHT: usize = 2;

/// What a stream can execute: an [`Executable`], or a `ProgramRun` of `tectum-programs`.
pub trait Work: TwoPhaseRun + Send + 'static {}

impl Work for Executable {}

impl TwoPhaseRun for Executable {
    fn begin(&mut self) -> Result<()> {
        Executable::begin(self)
    }

    fn finish(&mut self) -> Result<RunStats> {
        Executable::finish(self)
    }
}

/// A run in two halves; a run that is begun is finished before anything else is done.
pub trait TwoPhaseRun {
    /// Submits a run to the device.
    fn begin(&mut self) -> Result<()>;
    /// Waits for it.
    fn finish(&mut self) -> Result<RunStats>;
}

/// A queue of work, executed one after the other. Dropping it waits until all is done.
///
/// # Example
/// ```
/// use tectum::{DType, Device, PlanBuilder, Stream};
/// let mut plan = PlanBuilder::new("example");
/// let x = plan.input("x", DType::F32, 3);
/// let y = plan.output("y", DType::F32, 3);
/// plan.unary("relu", x, y)?;
/// let mut run = plan.finish()?.compile(&Device::open("cpu")?)?;
/// run.input::<f32>(x).copy_from_slice(&[-1.0, 0.5, 2.0]);
/// let stream = Stream::new()?;
/// let submission = stream.submit(run);
/// // … the host does something else …
/// let (run, stats) = submission.wait();
/// assert_eq!((run.output::<f32>(y), stats?.launches), (&[0.0, 0.5, 2.0][..], 1));
/// # Ok::<(), tectum::Error>(())
/// ```
pub struct Stream {
    /// None only while it is dropped.
    queue: Option<mpsc::Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

/// Submitted work. It is executed whether or not it is waited for.
pub struct Submission<W>(Arc<Outcome<W>>);

/// A point in a stream: it is signaled when everything submitted to the stream before it has ended, with or without an error.
#[derive(Clone)]
pub struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Stream {
    /// Starts an empty stream.
    ///
    /// # Errors
    /// `Unsupported` if the system cannot start a thread.
    pub fn new() -> Result<Stream> {
        let (queue, tasks) = mpsc::channel();
        let thread = std::thread::Builder::new().name("tectum stream".to_owned()).spawn(move || execute(&tasks));
        let thread = thread.map_err(|source| Error::unsupported("a stream's thread cannot be started").with_source(source))?;
        Ok(Stream { queue: Some(queue), thread: Some(thread) })
    }

    /// Adds a run of some work to the end of the queue; returns immediately. The inputs keep their contents.
    pub fn submit<W: Work>(&self, work: W) -> Submission<W> {
        let outcome = Arc::new(Outcome { ended: Mutex::new(None), changed: Condvar::new() });
        self.put(Task::Run(Box::new(Queued { work, begun: Ok(Ok(())), outcome: outcome.clone() })));
        Submission(outcome)
    }

    /// The point after everything that was submitted so far.
    pub fn event(&self) -> Event {
        let event = Event(Arc::default());
        self.put(Task::SignalEvent(event.clone()));
        event
    }

    /// Makes everything submitted from now on wait for an event of this stream or of any other. Returns immediately.
    ///
    /// An event has its place in a queue before anything can wait for it, so streams never wait for each other in a circle.
    pub fn wait_for(&self, event: &Event) {
        self.put(Task::Wait(event.clone()));
    }

    fn put(&self, task: Task) {
        let queue = self.queue.as_ref().expect("invariant: a stream has its queue until it is dropped");
        queue.send(task).expect("invariant: a stream's thread takes tasks until its queue is gone");
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("invariant: panics of the work are caught");
        }
    }
}

impl<W> Submission<W> {
    /// Whether the run has ended, so that [`Submission::wait`] returns immediately.
    pub fn is_done(&self) -> bool {
        locked(&self.0.ended).is_some()
    }

    /// Waits for the run; returns the work with its outputs, and the run's statistics or its error, including a lost
    /// device. After an error the stream continues with the next work.
    ///
    /// # Panics
    /// With the panic of the run, if it had one.
    pub fn wait(self) -> (W, Result<RunStats>) {
        let mut ended = locked(&self.0.ended);
        loop {
            match ended.take() {
                Some(Ok(outcome)) => return outcome,
                Some(Err(panic)) => {
                    drop(ended);
                    resume_unwind(panic)
                }
                None => ended = self.0.changed.wait(ended).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Event {
    /// Whether it is signaled.
    pub fn is_signaled(&self) -> bool {
        *locked(&self.0.0)
    }

    /// Blocks the calling thread until it is signaled.
    pub fn wait(&self) {
        let mut come = locked(&self.0.0);
        while !*come {
            come = self.0.1.wait(come).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn signal(&self) {
        *locked(&self.0.0) = true;
        self.0.1.notify_all();
    }
}

/// A task of the thread.
enum Task {
    Run(Box<dyn QueuedRun>),
    SignalEvent(Event),
    Wait(Event),
}

/// A submitted run of any work.
trait QueuedRun: Send {
    fn begin(&mut self);
    fn end(self: Box<Self>);
}

type Ended<W> = std::thread::Result<(W, Result<RunStats>)>;

struct Outcome<W> {
    ended: Mutex<Option<Ended<W>>>,
    changed: Condvar,
}

struct Queued<W> {
    work: W,
    begun: std::thread::Result<Result<()>>,
    outcome: Arc<Outcome<W>>,
}

impl<W: Work> QueuedRun for Queued<W> {
    fn begin(&mut self) {
        self.begun = catch_unwind(AssertUnwindSafe(|| self.work.begin()));
    }

    fn end(self: Box<Self>) {
        let Self { mut work, begun, outcome } = *self;
        let ended = begun.and_then(|begun| {
            catch_unwind(AssertUnwindSafe(move || {
                let stats = begun.and_then(|()| work.finish());
                (work, stats)
            }))
        });
        *locked(&outcome.ended) = Some(ended);
        outcome.changed.notify_all();
    }
}

/// The thread of a stream.
fn execute(tasks: &mpsc::Receiver<Task>) {
    let mut begun: VecDeque<Box<dyn QueuedRun>> = VecDeque::new();
    loop {
        let task = if begun.is_empty() { tasks.recv().map_err(|_| TryRecvError::Disconnected) } else { tasks.try_recv() };
        match task {
            Ok(Task::Run(mut run)) => {
                run.begin();
                begun.push_back(run);
                if begun.len() < MAX_IN_FLIGHT {
                    continue;
                }
            }
            Err(TryRecvError::Empty) => {}
            Ok(Task::SignalEvent(event)) => {
                begun.drain(..).for_each(QueuedRun::end);
                event.signal();
            }
            Ok(Task::Wait(event)) => {
                begun.drain(..).for_each(QueuedRun::end);
                event.wait();
            }
            Err(TryRecvError::Disconnected) => {
                begun.drain(..).for_each(QueuedRun::end);
                return;
            }
        }
        if let Some(first) = begun.pop_front() {
            first.end();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl<W> fmt::Debug for Submission<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({})", if self.is_done() { "done" } else { "not done" })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", if self.is_signaled() { "signaled" } else { "not signaled" })
    }
}

#[cfg(test)]
mod tests;
