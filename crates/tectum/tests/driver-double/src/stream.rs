//! Streams, graphs and events: work is queued and executed when a call waits for it.

use std::sync::Arc;
use std::time::Instant;

use ptx_interpreter::{Approximation, Launch, Schedule};

use crate::state::{
    Answer, CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, Function, INVALID_HANDLE, INVALID_VALUE,
    LAUNCH_FAILED, NOT_READY, State,
};

/// A recorded run.
pub type Graph = Arc<Vec<Work>>;

/// Work of a stream.
#[derive(Clone)]
pub enum Work {
    Up {
        to: u64,
        from: usize,
        bytes: usize,
    },
    Down {
        to: usize,
        from: u64,
        bytes: usize,
    },
    Across {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Kernel {
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        parameters: Vec<u64>,
    },
    Record(usize),
    Free(u64),
    Graph(Graph),
}

/// A stream's queue, and work that is captured instead of queued.
#[derive(Default)]
pub struct Stream {
    queue: Vec<Work>,
    capture: Option<Vec<Work>>,
}

impl State {
    pub fn new_stream(&mut self) -> Answer<usize> {
        self.current()?;
        let handle = self.handle();
        self.streams.insert(handle, Stream::default());
        Ok(handle)
    }

    pub fn stream(&mut self, stream: usize) -> Answer<&mut Stream> {
        self.current()?;
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)
    }

    pub fn drop_stream(&mut self, stream: usize) -> Answer {
        if self
            .streams
            .get(&stream)
            .is_some_and(|stream| stream.capture.is_none())
            && self.lost.is_none()
        {
            self.drain(stream)?;
        }
        self.streams
            .remove(&stream)
            .map(|_| ())
            .ok_or(INVALID_HANDLE)
    }

    pub fn synchronize(&mut self, stream: usize) -> Answer {
        if self.stream(stream)?.capture.is_some() {
            return Err(CAPTURE_UNSUPPORTED);
        }
        self.drain(stream)
    }

    pub fn begin_capture(&mut self, stream: usize) -> Answer {
        let stream = self.stream(stream)?;
        if stream.capture.is_some() {
            return Err(CAPTURE_INVALIDATED);
        }
        stream.capture = Some(Vec::new());
        Ok(())
    }

    pub fn end_capture(&mut self, stream: usize) -> Answer<usize> {
        let work = self
            .stream(stream)?
            .capture
            .take()
            .ok_or(CAPTURE_INVALIDATED)?;
        let handle = self.handle();
        self.graphs.insert(handle, Arc::new(work));
        Ok(handle)
    }

    pub fn drop_graph(&mut self, graph: usize) -> Answer {
        self.graphs.remove(&graph).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    pub fn instantiate(&mut self, graph: usize) -> Answer<usize> {
        self.current()?;
        let graph = self.graphs.get(&graph).ok_or(INVALID_HANDLE)?.clone();
        let handle = self.handle();
        self.executables.insert(handle, graph);
        Ok(handle)
    }

    pub fn upload_graph(&mut self, executable: usize, stream: usize) -> Answer {
        self.stream(stream)?;
        if self.executables.contains_key(&executable) {
            Ok(())
        } else {
            Err(INVALID_HANDLE)
        }
    }

    pub fn launch_graph(&mut self, executable: usize, stream: usize) -> Answer {
        let graph = self
            .executables
            .get(&executable)
            .ok_or(INVALID_HANDLE)?
            .clone();
        self.enqueue(stream, Work::Graph(graph))
    }

    pub fn drop_executable(&mut self, executable: usize) -> Answer {
        self.executables
            .remove(&executable)
            .map(|_| ())
            .ok_or(INVALID_HANDLE)
    }

    pub fn free_later(&mut self, address: u64, stream: usize) -> Answer {
        if !self.is_allocated(address) {
            return Err(INVALID_VALUE);
        }
        self.enqueue(stream, Work::Free(address))
    }

    pub fn copy_up(&mut self, to: u64, from: usize, bytes: usize, stream: usize) -> Answer {
        self.on_device(to, bytes)?;
        self.is_pinned(from, bytes)?;
        self.enqueue(stream, Work::Up { to, from, bytes })
    }

    pub fn copy_down(&mut self, to: usize, from: u64, bytes: usize, stream: usize) -> Answer {
        self.on_device(from, bytes)?;
        self.is_pinned(to, bytes)?;
        self.enqueue(stream, Work::Down { to, from, bytes })
    }

    pub fn copy_across(&mut self, to: u64, from: u64, bytes: usize, stream: usize) -> Answer {
        self.on_device(to, bytes)?;
        self.on_device(from, bytes)?;
        self.enqueue(stream, Work::Across { to, from, bytes })
    }

    pub fn launch(
        &mut self,
        function: usize,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        parameters: Vec<u64>,
        stream: usize,
    ) -> Answer {
        let function = self.launchable(function, block, shared_bytes)?;
        if grid.contains(&0) {
            return Err(INVALID_VALUE);
        }
        self.enqueue(
            stream,
            Work::Kernel {
                function,
                grid,
                block,
                shared_bytes,
                parameters,
            },
        )
    }

    pub fn new_event(&mut self) -> Answer<usize> {
        self.current()?;
        let handle = self.handle();
        self.events.insert(handle, None);
        Ok(handle)
    }

    pub fn drop_event(&mut self, event: usize) -> Answer {
        self.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    pub fn record_event(&mut self, event: usize, stream: usize) -> Answer {
        if !self.events.contains_key(&event) {
            return Err(INVALID_HANDLE);
        }
        self.enqueue(stream, Work::Record(event))
    }

    /// Milliseconds of the host's clock between two events that have happened.
    pub fn elapsed(&mut self, from: usize, to: usize) -> Answer<f32> {
        let at = |event| {
            self.events
                .get(&event)
                .ok_or(INVALID_HANDLE)?
                .ok_or(NOT_READY)
        };
        Ok((at(to)? - at(from)?).as_secs_f32() * 1e3)
    }

    fn enqueue(&mut self, stream: usize, work: Work) -> Answer {
        let stream = self.stream(stream)?;
        stream
            .capture
            .as_mut()
            .unwrap_or(&mut stream.queue)
            .push(work);
        Ok(())
    }

    /// Executes the queued work up to an event, and nothing after it.
    pub fn synchronize_event(&mut self, event: usize) -> Answer {
        self.events.get(&event).ok_or(INVALID_HANDLE)?;
        let place = |stream: &Stream| {
            stream
                .queue
                .iter()
                .position(|work| matches!(work, Work::Record(recorded) if *recorded == event))
        };
        let found = self
            .streams
            .iter()
            .find_map(|(handle, stream)| Some((*handle, place(stream)?)));
        let Some((stream, place)) = found else {
            return Ok(());
        };
        let queue = &mut self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?.queue;
        let later = queue.split_off(place + 1);
        let sooner = std::mem::replace(queue, later);
        self.execute_all(sooner)
    }

    /// Executes the queued work of a stream.
    pub fn drain(&mut self, stream: usize) -> Answer {
        let stream = self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?;
        let queue = std::mem::take(&mut stream.queue);
        self.execute_all(queue)
    }

    fn execute_all(&mut self, queue: Vec<Work>) -> Answer {
        for work in queue {
            if let Err(code) = self.execute(&work) {
                self.lost = Some(code);
                return Err(code);
            }
        }
        Ok(())
    }

    fn execute(&mut self, work: &Work) -> Answer {
        match work {
            Work::Graph(graph) => graph.iter().try_for_each(|work| self.execute(work)),
            &Work::Up { to, from, bytes } => {
                self.is_pinned(from, bytes)?;
                // SAFETY: page-locked memory of this library contains the range.
                let data = unsafe {
                    std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(from), bytes)
                }
                .to_vec();
                self.memory.write(to, &data).map_err(faulted)
            }
            &Work::Down { to, from, bytes } => {
                self.is_pinned(to, bytes)?;
                let data = self.known_words(from, bytes)?;
                // SAFETY: page-locked memory of this library contains the range, and no reference
                // to it exists here.
                let target = unsafe {
                    std::slice::from_raw_parts_mut(
                        std::ptr::with_exposed_provenance_mut::<u8>(to),
                        bytes,
                    )
                };
                for (offset, word) in data {
                    match word {
                        Some(word) => target[offset..offset + word.len()].copy_from_slice(&word),
                        None => target[offset..(offset + 4).min(bytes)].fill(0xcd),
                    }
                }
                Ok(())
            }
            &Work::Across { to, from, bytes } => {
                for (offset, word) in self.known_words(from, bytes)? {
                    if let Some(word) = word {
                        self.memory
                            .write(to + offset as u64, &word)
                            .map_err(faulted)?;
                    }
                }
                Ok(())
            }
            Work::Kernel {
                function,
                grid,
                block,
                shared_bytes,
                parameters,
            } => {
                let launch = Launch {
                    entry: &function.entry,
                    grid: *grid,
                    block: *block,
                    params: parameters,
                    dynamic_shared_bytes: *shared_bytes,
                    schedule: Schedule::Forward,
                    instruction_limit: 1 << 36,
                    race_check: std::env::var_os("CUDA_DOUBLE_RACES").is_some(),
                    approximation: Approximation::Exact,
                };
                function
                    .module
                    .program
                    .run(&mut self.memory, &launch)
                    .map(|_| ())
                    .map_err(faulted)
            }
            Work::Record(event) => {
                self.events.insert(*event, Some(Instant::now()));
                Ok(())
            }
            Work::Free(address) => self.free(*address),
        }
    }

    /// The words of a range with their offsets; none for unwritten ones, which a copy transfers
    /// without reading.
    fn known_words(&self, from: u64, bytes: usize) -> Answer<Vec<(usize, Option<Vec<u8>>)>> {
        if let Ok(whole) = self.memory.read(from, bytes) {
            return Ok(vec![(0, Some(whole))]);
        }
        self.on_device(from, bytes)?;
        let word = |offset: usize| {
            (
                offset,
                self.memory
                    .read(from + offset as u64, 4.min(bytes - offset))
                    .ok(),
            )
        };
        Ok((0..bytes).step_by(4).map(word).collect())
    }
}

/// A fault of the interpreter ends the context, as one on a GPU does; its text goes to standard
/// error.
fn faulted(error: ptx_interpreter::Error) -> u32 {
    eprintln!("driver double: {error}");
    LAUNCH_FAILED
}
