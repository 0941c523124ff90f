//! Streams: work that is executed in order, concurrently with the thread that submits it.
//!
//! A [`Stream`] is a queue with its own thread. Submitted work moves into it and is returned by
//! [`Submission::wait`]: no other code can access its inputs and outputs in the meantime, and
//! nothing is borrowed. Streams are ordered among each other only by [`Event`]s, which work on one
//! device and between devices.
//!
//! On the CPU the thread executes the kernels. On a GPU it submits a run and, while that runs, the
//! next one, so that the device does not wait for the host between them; then it waits for the
//! first.
//!
//! A submission is also awaited, from any executor: the stream's thread wakes the task when the run
//! has ended.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::launch::RunStats;
use crate::plan::Executable;

/// Runs that are submitted to the device before the first of them is waited for.
const MAX_IN_FLIGHT: usize = 2;

/// What a stream can execute: an [`Executable`], a `CompiledGraph` of `tectum-graph`, or a
/// `ProgramRun` of `tectum-programs`.
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

/// Submitted work. It is executed whether or not it is waited for, by [`Submission::wait`] or by
/// `.await`.
pub struct Submission<W>(Arc<Outcome<W>>);

/// A [`Submission`] that is awaited. Dropping it changes nothing for the run, which ends in its
/// turn.
pub struct SubmissionFuture<W>(Arc<Outcome<W>>);

/// A point in a stream: it is signaled when everything submitted to the stream before it has ended,
/// with or without an error.
#[derive(Clone)]
pub struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Stream {
    /// Starts an empty stream.
    ///
    /// # Errors
    /// `Unsupported` if the system cannot start a thread.
    pub fn new() -> Result<Stream> {
        let (queue, tasks) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("tectum stream".to_owned())
            .spawn(move || execute(&tasks));
        let thread = thread.map_err(|source| {
            Error::unsupported("a stream's thread cannot be started").with_source(source)
        })?;
        Ok(Stream {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Adds a run of some work to the end of the queue; returns immediately. The inputs keep their
    /// contents.
    pub fn submit<W: Work>(&self, work: W) -> Submission<W> {
        let outcome = Arc::new(Outcome {
            state: Mutex::new(State {
                ended: None,
                waker: None,
            }),
            changed: Condvar::new(),
        });
        self.put(Task::Run(Box::new(Queued {
            work,
            begun: Ok(Ok(())),
            outcome: outcome.clone(),
        })));
        Submission(outcome)
    }

    /// The point after everything that was submitted so far.
    pub fn event(&self) -> Event {
        let event = Event(Arc::default());
        self.put(Task::SignalEvent(event.clone()));
        event
    }

    /// Makes everything submitted from now on wait for an event of this stream or of any other.
    /// Returns immediately.
    ///
    /// An event has its place in a queue before anything can wait for it, so streams never wait for
    /// each other in a circle.
    pub fn wait_for(&self, event: &Event) {
        self.put(Task::Wait(event.clone()));
    }

    fn put(&self, task: Task) {
        let queue = self
            .queue
            .as_ref()
            .expect("invariant: a stream has its queue until it is dropped");
        queue
            .send(task)
            .expect("invariant: a stream's thread takes tasks until its queue is gone");
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            thread
                .join()
                .expect("invariant: panics of the work are caught");
        }
    }
}

impl<W> Submission<W> {
    /// Whether the run has ended, so that [`Submission::wait`] returns immediately.
    pub fn is_done(&self) -> bool {
        locked(&self.0.state).ended.is_some()
    }

    /// Waits for the run; returns the work with its outputs, and the run's statistics or its error,
    /// including a lost device. After an error the stream continues with the next work.
    ///
    /// # Panics
    /// With the panic of the run, if it had one.
    pub fn wait(self) -> (W, Result<RunStats>) {
        let mut state = locked(&self.0.state);
        loop {
            match state.ended.take() {
                Some(ended) => {
                    drop(state);
                    return ended.unwrap_or_else(|panic| resume_unwind(panic));
                }
                None => {
                    state = self
                        .0
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }
}

/// Awaits the run as [`Submission::wait`] waits for it, without blocking a thread.
///
/// # Example
/// ```
/// # use tectum::{Error, Executable, Stream};
/// async fn in_turn(stream: &Stream, run: Executable) -> Result<Executable, Error> {
///     let (run, stats) = stream.submit(run).await;
///     stats?;
///     let (run, stats) = stream.submit(run).await;
///     stats.map(|_| run)
/// }
/// ```
impl<W> IntoFuture for Submission<W> {
    type Output = (W, Result<RunStats>);
    type IntoFuture = SubmissionFuture<W>;

    fn into_future(self) -> SubmissionFuture<W> {
        SubmissionFuture(self.0)
    }
}

/// # Panics
/// With the panic of the run, if it had one.
impl<W> Future for SubmissionFuture<W> {
    type Output = (W, Result<RunStats>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.0.state);
        match state.ended.take() {
            Some(ended) => {
                drop(state);
                Poll::Ready(ended.unwrap_or_else(|panic| resume_unwind(panic)))
            }
            None => {
                // A future may be polled by one task after another; the last is woken.
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<W> Drop for SubmissionFuture<W> {
    fn drop(&mut self) {
        let waker = locked(&self.0.state).waker.take();
        drop(waker);
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
    state: Mutex<State<W>>,
    changed: Condvar,
}

struct State<W> {
    ended: Option<Ended<W>>,
    /// Of the task that awaits the run.
    waker: Option<Waker>,
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
        let Self {
            mut work,
            begun,
            outcome,
        } = *self;
        let ended = begun.and_then(|begun| {
            catch_unwind(AssertUnwindSafe(move || {
                let stats = begun.and_then(|()| work.finish());
                (work, stats)
            }))
        });
        let mut state = locked(&outcome.state);
        state.ended = Some(ended);
        let waker = state.waker.take();
        drop(state);
        outcome.changed.notify_all();
        // The stream continues whatever an executor does.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.into_iter().for_each(Waker::wake)));
    }
}

/// The thread of a stream.
fn execute(tasks: &mpsc::Receiver<Task>) {
    let mut begun: VecDeque<Box<dyn QueuedRun>> = VecDeque::new();
    loop {
        let task = if begun.is_empty() {
            tasks.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            tasks.try_recv()
        };
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
        write!(
            f,
            "Submission({})",
            if self.is_done() { "done" } else { "not done" }
        )
    }
}

impl<W> fmt::Debug for SubmissionFuture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubmissionFuture")
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Event({})",
            if self.is_signaled() {
                "signaled"
            } else {
                "not signaled"
            }
        )
    }
}

#[cfg(test)]
mod tests;
