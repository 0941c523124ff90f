//! Streams, events and submissions: executables that run while the caller continues, and are
//! returned.

use std::rc::Rc;

use tectum::{Executable, Stream, Submission};

use super::plans::Running;
use super::world::{Verdict, World, caught};

/// An executable on a stream, with its model.
pub struct Queued {
    submission: Submission<Executable>,
    rest: Box<dyn FnOnce(Executable) -> Running>,
}

impl World {
    /// Fills the inputs of an executable and submits it.
    pub fn submit(&mut self, place: usize) -> Verdict {
        if self.streams.is_empty() || self.chance(20) {
            self.note("Stream::new");
            self.streams
                .push(Stream::new().map_err(|error| error.to_string())?);
            if self.streams.len() > 3 {
                self.streams.swap_remove(0);
            }
        }
        let stream = self.below(self.streams.len());
        self.note(format!(
            "stream{stream}: submit plan{}",
            self.runs[place].model.id
        ));
        let Running {
            run,
            model,
            memories,
            downloads,
            device,
            ..
        } = self.runs.swap_remove(place);
        // Shared buffers would change while others use them.
        let is_shared = memories.iter().any(|memory| Rc::strong_count(memory) > 1);
        let submission = self.streams[stream].submit(run);
        let rest = Box::new(move |run| Running {
            run,
            model,
            memories,
            downloads,
            device,
            ran: true,
            dirty: false,
        });
        self.queued.push(Queued { submission, rest });
        if is_shared || self.queued.len() > 3 {
            self.await_one(self.queued.len() - 1)
        } else {
            Ok(())
        }
    }

    /// One call on a stream, an event or a submission.
    pub fn use_streams(&mut self) -> Verdict {
        let (streams, events) = (self.streams.len(), self.events.len());
        match self.random.below(6) {
            _ if streams == 0 => {
                self.note("Stream::new");
                self.streams
                    .push(Stream::new().map_err(|error| error.to_string())?);
            }
            0 => {
                let stream = self.below(streams);
                self.note(format!("stream{stream}: event"));
                let event = self.streams[stream].event();
                self.events.push(event);
                if self.events.len() > 6 {
                    self.events.swap_remove(0);
                }
            }
            1 if events > 0 => {
                let (stream, event) = (self.below(streams), self.below(events));
                self.note(format!("stream{stream}: wait_for event{event}"));
                self.streams[stream].wait_for(&self.events[event]);
            }
            2 if events > 0 => {
                let event = self.below(events);
                self.note(format!("event{event}: wait"));
                self.events[event].wait();
                if !self.events[event].is_signaled() {
                    return Err("an event is not complete after waiting for it".to_owned());
                }
            }
            3 => {
                let stream = self.below(streams);
                self.note(format!("stream{stream}: drop"));
                self.streams.swap_remove(stream);
            }
            _ if !self.queued.is_empty() => {
                let place = self.below(self.queued.len());
                return self.await_one(place);
            }
            _ => {}
        }
        Ok(())
    }

    fn await_one(&mut self, place: usize) -> Verdict {
        let Queued { submission, rest } = self.queued.swap_remove(place);
        let done = submission.is_done();
        self.note(format!("submission{place}: is_done {done}, wait"));
        let (run, stats) =
            caught(|| submission.wait()).map_err(|panic| format!("panicked: {panic}"))?;
        stats.map_err(|error| format!("a submitted run: {error}"))?;
        let mut run = rest(run);
        run.step(run.device == 0);
        let is_checked = run.device == 0;
        self.runs.push(run);
        if self.runs.len() > 6 {
            self.runs.swap_remove(0);
        }
        if is_checked {
            self.runs[self.runs.len() - 1].check_outputs()
        } else {
            Ok(())
        }
    }

    /// Waits for all submissions.
    pub fn drain(&mut self) -> Verdict {
        while !self.queued.is_empty() {
            self.await_one(0)?;
        }
        Ok(())
    }
}
