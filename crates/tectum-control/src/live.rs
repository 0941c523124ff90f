//! What others see of a run while it happens, and how they steer it.
//!
//! A workload describes its numbers once, as streams of named series with units and limits, as
//! quantities that it counts and as histograms of durations. While it runs it writes frames: the
//! numbers of one step. A page, a client of Foxglove or a scraper of metrics reads them. Neither
//! side knows the other, and nothing here knows sockets.
//!
//! ```text
//!  workload's thread                              thread that shows
//!  StreamWriter::write ──▶ ring of frames ──────▶ Live::drain: updates, history
//!                          (full: frame dropped and counted)
//!  Quantity, Histogram ──▶ atomic numbers ──────▶ Live::quantities, Live::histograms
//!  events              ──▶ list, under a lock ──▶ Live::drain
//!                          that only tries
//!  Pace, StopSwitch    ◀── Controls ◀──────────── pause, step, speed, stop
//! ```
//!
//! The workload's thread never waits for one that shows, and writing a frame allocates nothing:
//! ring, frame and quantities are made before the run. A frame that finds the ring full is dropped
//! and counted; quantities and histograms are exact nevertheless, because the workload writes them
//! itself.
//!
//! ```
//! use tectum_control::clock::ClockKind;
//! use tectum_control::live::{Group, Live, Marks, Series, StreamSpec};
//! let live = Live::new(ClockKind::Sim);
//! let height = Series::new("height", "m", Group::Observation).within(0.0, 2.0);
//! let mut writer = live.add_stream(StreamSpec::new("loop", "tick", 0.1, vec![height]));
//! writer.write(0, 0, Marks::NONE, [1.5]);
//! let [update] = &live.drain().updates[..] else { panic!("one stream has news") };
//! assert_eq!(update.values(0), [1.5]);
//! ```

mod controls;
mod event;
#[cfg(feature = "genome")]
mod firings;
mod pace;
mod quantity;
mod stream;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use tectum::{Device, Error, Receipt, Result};

pub use controls::Controls;
pub use event::{Event, EventKind, EventWriter, MAX_EVENTS};
#[cfg(feature = "genome")]
pub use firings::FiringsFeed;
pub use pace::{Pace, PacedClock};
pub use quantity::{Histogram, Quantity, QuantityKind};
pub use stream::{
    Draw, FRAME_WORDS, Frame, Group, MAX_UPDATE_FRAMES, Marks, RasterRows, Series, StreamSpec,
    StreamWriter, Update, values_of,
};

use crate::body::schematic::Schematic;
use crate::clock::ClockKind;
use event::Events;
use stream::StreamReader;

/// Frames later than this are no news of a run that is not paused.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// What a run is, for a heading.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct About {
    /// What runs, in a few words.
    pub title: String,
    /// The names and settings of its parts.
    pub workload: Value,
    /// The number of steps that it has in all; none if it is not known.
    pub steps: Option<u64>,
    /// The receipt: as far as it is known before the first step, and the whole one after the last.
    pub receipt: Value,
    /// The summary; none before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
}

/// A run that others watch. Clones are the same one.
#[derive(Clone)]
pub struct Live(Arc<Hub>);

struct Hub {
    began: Instant,
    about: Mutex<About>,
    device: Mutex<Option<Device>>,
    streams: Mutex<Vec<StreamReader>>,
    quantities: Mutex<Vec<Arc<Quantity>>>,
    histograms: Mutex<Vec<Arc<Histogram>>>,
    events: Events,
    controls: Controls,
    /// How often what it shows was described.
    descriptions: AtomicU64,
    /// When [`Live::drain`] last found a frame, nanoseconds since `began`.
    last_frame_ns: AtomicU64,
    /// The step of that frame, and its time in nanoseconds.
    latest: Mutex<(u64, u64)>,
    /// The last drawing, for viewers that come later.
    drawing: Mutex<Option<Schematic>>,
}

/// What is new since the last [`Live::drain`].
#[derive(Default)]
pub struct News {
    /// Frames of the streams that have some.
    pub updates: Vec<Update>,
    /// What happened.
    pub events: Vec<Event>,
    /// The drawing of the latest state.
    pub drawing: Option<Schematic>,
}

/// What a viewer needs that comes later: the past, as far as it is kept.
pub struct Past {
    /// What runs.
    pub about: About,
    /// The streams.
    pub specs: Vec<StreamSpec>,
    /// Their last frames.
    pub updates: Vec<Update>,
    /// The last events.
    pub events: Vec<Event>,
    /// The last drawing.
    pub drawing: Option<Schematic>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// A run without streams.
    pub fn new(clock: ClockKind) -> Self {
        Self(Arc::new(Hub {
            began: Instant::now(),
            about: Mutex::default(),
            device: Mutex::default(),
            streams: Mutex::default(),
            quantities: Mutex::default(),
            histograms: Mutex::default(),
            events: Events::default(),
            controls: Controls::new(clock),
            descriptions: AtomicU64::new(0),
            last_frame_ns: AtomicU64::new(0),
            latest: Mutex::default(),
            drawing: Mutex::default(),
        }))
    }

    /// States what runs.
    pub fn set_about(&self, about: About) {
        *lock(&self.0.about) = about;
        self.0.descriptions.fetch_add(1, Ordering::Release);
    }

    /// A number that grows whenever it is described again: what runs, or another stream.
    pub fn descriptions(&self) -> u64 {
        self.0.descriptions.load(Ordering::Acquire)
    }

    /// What runs.
    pub fn about(&self) -> About {
        lock(&self.0.about).clone()
    }

    /// States the device, whose sensors are read for metrics.
    pub fn set_device(&self, device: &Device) {
        *lock(&self.0.device) = Some(device.clone());
    }

    /// The device, if it was stated.
    pub fn device(&self) -> Option<Device> {
        lock(&self.0.device).clone()
    }

    /// States how the run ended: there are no steps after it.
    ///
    /// # Errors
    /// `Data` for a summary that cannot be encoded.
    pub fn end(&self, summary: &impl Serialize, receipt: &Receipt) -> Result<()> {
        let failed = |source| Error::data("summary: cannot be encoded").with_source(source);
        let summary = serde_json::to_value(summary).map_err(failed)?;
        let receipt = serde_json::to_value(receipt).map_err(failed)?;
        let mut about = lock(&self.0.about);
        about.summary = Some(summary);
        about.receipt = receipt;
        Ok(())
    }

    /// Adds a stream and returns its writing end. All memory is allocated here.
    pub fn add_stream(&self, spec: StreamSpec) -> StreamWriter {
        self.add_drawn_stream(spec, 0, None)
    }

    /// Adds a stream whose frames have `hidden` more numbers of float64 behind the series; `draw`
    /// makes a drawing of a frame, on the thread that shows.
    pub fn add_drawn_stream(
        &self,
        spec: StreamSpec,
        hidden: usize,
        draw: Option<Draw>,
    ) -> StreamWriter {
        let (writer, reader) = stream::pair(spec, hidden, draw);
        lock(&self.0.streams).push(reader);
        self.0.descriptions.fetch_add(1, Ordering::Release);
        writer
    }

    /// Adds a number that the workload keeps.
    pub fn add_quantity(
        &self,
        kind: QuantityKind,
        name: &'static str,
        meaning: &'static str,
    ) -> Arc<Quantity> {
        let quantity = Arc::new(Quantity::new(kind, name, meaning));
        lock(&self.0.quantities).push(quantity.clone());
        quantity
    }

    /// Adds a histogram of durations.
    pub fn add_histogram(&self, name: &'static str, meaning: &'static str) -> Arc<Histogram> {
        let histogram = Arc::new(Histogram::new(name, meaning));
        lock(&self.0.histograms).push(histogram.clone());
        histogram
    }

    /// The writing end of the list of events.
    pub fn event_writer(&self) -> EventWriter {
        self.0.events.writer()
    }

    /// Adds an event from a thread that may wait, unlike that of the run.
    pub fn add_event(&self, event: Event) {
        self.0.events.add(event);
    }

    /// The numbers that the workload keeps.
    pub fn quantities(&self) -> Vec<Arc<Quantity>> {
        lock(&self.0.quantities).clone()
    }

    /// The histograms of durations.
    pub fn histograms(&self) -> Vec<Arc<Histogram>> {
        lock(&self.0.histograms).clone()
    }

    /// How others steer it.
    pub fn controls(&self) -> &Controls {
        &self.0.controls
    }

    /// Frames that found their ring full, over all streams.
    pub fn dropped_frames(&self) -> u64 {
        let streams = lock(&self.0.streams);
        streams.iter().map(StreamReader::dropped_frames).sum()
    }

    /// Whether its steps arrive, or it waits because someone paused it.
    pub fn is_ticking(&self) -> bool {
        let last = Duration::from_nanos(self.0.last_frame_ns.load(Ordering::Relaxed));
        let is_recent =
            !last.is_zero() && self.0.began.elapsed().saturating_sub(last) < READY_WITHIN;
        let has_ended = lock(&self.0.about).summary.is_some();
        !has_ended && (is_recent || self.0.controls.is_paused())
    }

    /// The step of the last frame that [`Live::drain`] has found, and its time in seconds.
    pub fn latest(&self) -> (u64, f64) {
        let (step, time_ns) = *lock(&self.0.latest);
        (step, time_ns as f64 / 1e9)
    }

    /// Moves what is new out of the rings into the history, and returns it. To be called by one
    /// thread, some 30 times in a second.
    pub fn drain(&self) -> News {
        let mut news = News {
            events: self.0.events.drain(),
            ..News::default()
        };
        let mut streams = lock(&self.0.streams);
        for (place, stream) in streams.iter_mut().enumerate() {
            if let Some(update) = stream.drain(place) {
                news.drawing = stream.draw(&update).or(news.drawing);
                news.updates.push(update);
            }
        }
        if let Some(drawing) = &news.drawing {
            *lock(&self.0.drawing) = Some(drawing.clone());
        }
        let last = |update: &Update| update.frames().next_back().map(Update::step_and_time);
        if let Some(latest) = news.updates.first().and_then(last) {
            *lock(&self.0.latest) = latest;
            let now = self.0.began.elapsed().as_nanos() as u64;
            self.0.last_frame_ns.store(now, Ordering::Relaxed);
        }
        news
    }

    /// What the frames of each stream have.
    pub fn specs(&self) -> Vec<StreamSpec> {
        let streams = lock(&self.0.streams);
        streams.iter().map(|stream| stream.spec().clone()).collect()
    }

    /// What [`Live::drain`] has returned until now, as far as it is kept.
    pub fn past(&self) -> Past {
        let streams = lock(&self.0.streams);
        Past {
            about: self.about(),
            specs: streams.iter().map(|stream| stream.spec().clone()).collect(),
            updates: streams
                .iter()
                .enumerate()
                .map(|(place, stream)| stream.history(place))
                .collect(),
            events: self.0.events.past(),
            drawing: lock(&self.0.drawing).clone(),
        }
    }
}

#[cfg(test)]
mod tests;
