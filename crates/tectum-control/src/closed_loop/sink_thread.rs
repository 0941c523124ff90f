//! Recording concurrently with the loop: it passes periods and snapshots to a thread that writes
//! them, so that it never waits for a disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use tectum::{Error, Result};

use super::report::{Sink, TickRecord, Timing};
use crate::body::BodySpec;
use crate::body::link::LinkStatus;
use tectum::snapshot::Snapshot;

/// Capacity of the queue of periods and snapshots. If it is full the loop waits: no record is
/// dropped.
const MAX_QUEUED_PERIODS: usize = 4096;
/// The memory of the queue, for observations with pictures.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// The smallest capacity.
const MIN_QUEUED_PERIODS: usize = 8;
const MAX_QUEUED_SNAPSHOTS: usize = 2;

/// A period that owns its numbers.
struct OwnedTickRecord {
    tick: u64,
    time_ns: u64,
    observation: Vec<f32>,
    action: Vec<f32>,
    measure: f64,
    reward: f64,
    /// Held, fallback, terminated.
    marks: [bool; 3],
    timing: Option<Timing>,
    link: Option<LinkStatus>,
    has_commands: bool,
    commands: Vec<f64>,
}

impl OwnedTickRecord {
    fn empty(body: &BodySpec) -> Self {
        let (observation, action) = (
            Vec::with_capacity(body.observation_len()),
            Vec::with_capacity(body.action.len()),
        );
        Self {
            tick: 0,
            time_ns: 0,
            observation,
            action,
            measure: 0.0,
            reward: 0.0,
            marks: [false; 3],
            timing: None,
            link: None,
            has_commands: false,
            commands: Vec::new(),
        }
    }

    /// Copies a record; does not allocate.
    fn take(&mut self, record: &TickRecord<'_>) {
        self.observation.clear();
        self.observation.extend_from_slice(record.observation);
        self.action.clear();
        self.action.extend_from_slice(record.action);
        (self.tick, self.time_ns, self.measure, self.reward) =
            (record.tick, record.time_ns, record.measure, record.reward);
        (self.marks, self.timing) = (
            [record.held, record.fallback, record.terminated],
            record.timing,
        );
        self.link = record.link;
        self.has_commands = record.commands.is_some();
        self.commands.clear();
        self.commands
            .extend_from_slice(record.commands.unwrap_or_default());
    }

    fn record(&self) -> TickRecord<'_> {
        let [held, fallback, terminated] = self.marks;
        TickRecord {
            tick: self.tick,
            time_ns: self.time_ns,
            observation: &self.observation,
            action: &self.action,
            measure: self.measure,
            reward: self.reward,
            held,
            fallback,
            terminated,
            timing: self.timing,
            link: self.link,
            commands: self.has_commands.then_some(&*self.commands),
        }
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are periods, and the queue owns their memory"
)]
enum Message {
    Tick(OwnedTickRecord),
    Snapshot(Snapshot),
    Flush,
}

/// The first error of the sink.
#[derive(Default)]
struct FirstError {
    has_failed: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl FirstError {
    fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.has_failed.store(true, Ordering::Release);
        }
    }

    fn check(&self) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let first_error = self
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Err(first_error.unwrap_or_else(|| Error::data("the recording had failed before")))
    }
}

/// The loop's end: a sink that only forwards. An error of the other sink is returned by a later
/// call, at the latest by [`Sink::flush`].
pub struct ThreadedSink<'a> {
    send: SyncSender<Message>,
    free: Receiver<OwnedTickRecord>,
    room: Receiver<()>,
    flushed: Receiver<()>,
    fault: &'a FirstError,
}

impl ThreadedSink<'_> {
    fn send(&self, message: Message) -> Result<()> {
        self.send
            .send(message)
            .map_err(|_| Error::data("the recording's thread is gone"))
    }
}

impl Sink for ThreadedSink<'_> {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.fault.check()?;
        let mut period = self
            .free
            .recv()
            .map_err(|_| Error::data("the recording's thread is gone"))?;
        period.take(record);
        self.send(Message::Tick(period))
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.fault.check()?;
        self.room
            .recv()
            .map_err(|_| Error::data("the recording's thread is gone"))?;
        self.send(Message::Snapshot(snapshot))
    }

    fn flush(&mut self) -> Result<()> {
        self.send(Message::Flush)?;
        self.flushed
            .recv()
            .map_err(|_| Error::data("the recording's thread is gone"))?;
        self.fault.check()
    }
}

/// Runs `work` with a sink that forwards everything, in the same order, to another sink on a
/// separate thread.
///
/// # Errors
/// A thread that cannot be started; errors of the sink go to `work`.
pub fn run_with_sink_thread<R>(
    sink: &mut (dyn Sink + Send),
    body: &BodySpec,
    work: impl FnOnce(&mut ThreadedSink<'_>) -> R,
) -> Result<R> {
    let fault = FirstError::default();
    let fitting = MAX_QUEUED_BYTES / (size_of::<f32>() * body.observation_len().max(1));
    let periods = fitting.clamp(MIN_QUEUED_PERIODS, MAX_QUEUED_PERIODS);
    let (send, messages) = sync_channel(periods);
    let (make_room, room) = sync_channel(MAX_QUEUED_SNAPSHOTS);
    let (give_back, free) = sync_channel(periods);
    let (flush, flushed) = sync_channel(1);
    for _ in 0..periods {
        // The channel has room for all of them.
        let _ = give_back.send(OwnedTickRecord::empty(body));
    }
    for _ in 0..MAX_QUEUED_SNAPSHOTS {
        let _ = make_room.send(());
    }
    std::thread::scope(|scope| {
        let write = || {
            for message in messages {
                // After the first fault the rest is only discarded. If the receiver is gone, no
                // report is needed.
                let has_failed = fault.has_failed.load(Ordering::Acquire);
                match message {
                    Message::Tick(period) => {
                        fault.note(if has_failed {
                            Ok(())
                        } else {
                            sink.tick(&period.record())
                        });
                        let _ = give_back.send(period);
                    }
                    Message::Snapshot(snapshot) => {
                        fault.note(if has_failed {
                            Ok(())
                        } else {
                            sink.snapshot(snapshot)
                        });
                        let _ = make_room.send(());
                    }
                    Message::Flush => {
                        fault.note(if has_failed { Ok(()) } else { sink.flush() });
                        let _ = flush.send(());
                    }
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("tectum-recording".to_owned())
            .spawn_scoped(scope, write);
        thread.map_err(|source| Error::io("a thread for the recording", source))?;
        Ok(work(&mut ThreadedSink {
            send,
            free,
            room,
            flushed,
            fault: &fault,
        }))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::body::body;

    /// A slow sink that fails at a tick.
    #[derive(Default)]
    struct Slow {
        ticks: Vec<(u64, Vec<f32>)>,
        snapshots: usize,
        fails_at: Option<u64>,
    }

    impl Sink for Slow {
        fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
            std::thread::sleep(Duration::from_micros(200));
            if self.fails_at == Some(record.tick) {
                return Err(Error::data("the disk is full"));
            }
            self.ticks.push((record.tick, record.observation.to_vec()));
            Ok(())
        }

        fn snapshot(&mut self, _: Snapshot) -> Result<()> {
            self.snapshots = self.ticks.len();
            Ok(())
        }
    }

    /// Sends this many periods, a snapshot in the middle, until an error is returned.
    fn hand(sink: &mut Slow, ticks: u64) -> Result<()> {
        let spec = body("pendulum", None).expect("known").spec().clone();
        run_with_sink_thread(sink, &spec, |threaded| {
            for tick in 0..ticks {
                let observation = [tick as f32, -1.0];
                let (time_ns, measure, reward, action) = (tick, 0.0, 0.0, &[0.5][..]);
                let marks = TickRecord {
                    tick,
                    time_ns,
                    observation: &observation,
                    action,
                    measure,
                    reward,
                    held: false,
                    fallback: false,
                    terminated: false,
                    timing: None,
                    link: None,
                    commands: None,
                };
                threaded.tick(&marks)?;
                // More of them than the queue holds.
                if tick >= ticks / 2 && tick < ticks / 2 + 5 {
                    threaded.snapshot(Snapshot::default())?;
                }
            }
            threaded.flush()
        })
        .expect("a thread")
    }

    #[test]
    fn everything_arrives_in_order_before_the_flush_returns() {
        let mut sink = Slow::default();
        hand(&mut sink, 300).expect("nothing fails");
        assert!(
            sink.ticks
                .iter()
                .enumerate()
                .all(|(index, (tick, shown))| *tick == index as u64
                    && *shown == [index as f32, -1.0])
        );
        assert_eq!((sink.ticks.len(), sink.snapshots), (300, 155));
    }

    #[test]
    fn the_flush_reports_an_error_at_the_latest_and_nothing_is_written_after_it() {
        // More than the queue holds, so that the error is returned before the end; and the very
        // last.
        for (ticks, fails_at) in [(MAX_QUEUED_PERIODS as u64 + 100, 3), (50, 49)] {
            let mut sink = Slow {
                fails_at: Some(fails_at),
                ..Slow::default()
            };
            assert_eq!(
                hand(&mut sink, ticks).expect_err("it fails").to_string(),
                "the disk is full"
            );
            assert_eq!(sink.ticks.len() as u64, fails_at);
        }
    }
}
