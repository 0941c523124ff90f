//! Streams: frames of numbers through a ring that its writer never waits for.
//!
//! A frame is a row of words of 32 bits: number of the step and its time in nanoseconds (two words
//! each, the lower first), marks, a float32 for each series, the bits of the raster, and what is
//! hidden from viewers. A page gets the words as they are.

use std::collections::VecDeque;
use std::ops::BitOr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use serde::Serialize;

use crate::body::schematic::Schematic;

/// The words of a frame before its series.
pub const FRAME_WORDS: usize = 5;
/// The frames of an update; of more, some are left out at regular distances.
pub const MAX_UPDATE_FRAMES: usize = 256;
/// The frames of a ring.
const RING_FRAMES: usize = 8_192;
/// The frames of the history.
const HISTORY_FRAMES: usize = 4_096;
/// The memory of a ring and of a history, for streams with many numbers.
const MAX_WORDS: usize = 4 << 20;
/// The smallest number of frames of each.
const MIN_FRAMES: usize = 64;

/// What a series shows, which decides where it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// What a body measured.
    Observation,
    /// What it got.
    Action,
    /// What the task measures, and rewards.
    Task,
    /// Times of answers.
    Timing,
    /// Firings of areas.
    Rate,
}

/// A number of each frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// What it shows.
    pub group: Group,
    /// The lowest value expected, if one is known.
    pub low: Option<f32>,
    /// The highest value expected, if one is known.
    pub high: Option<f32>,
}

impl Series {
    /// A series without limits.
    pub fn new(name: impl Into<String>, unit: impl Into<String>, group: Group) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            group,
            low: None,
            high: None,
        }
    }

    /// With limits; those that are not finite are left out.
    #[must_use]
    pub fn within(self, low: f32, high: f32) -> Self {
        let finite = |value: f32| value.is_finite().then_some(value);
        Self {
            low: finite(low),
            high: finite(high),
            ..self
        }
    }
}

/// Consecutive rows of a raster that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RasterRows {
    /// Their name.
    pub name: String,
    /// Their number.
    pub rows: u32,
}

/// What the frames of a stream have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSpec {
    /// Its name.
    pub name: &'static str,
    /// What a step is: a tick, a burst.
    pub step: &'static str,
    /// Seconds of the run from one step to the next.
    pub period_s: f64,
    /// The numbers of a frame.
    pub series: Vec<Series>,
    /// The rows of its raster, a bit each; empty without a raster.
    pub raster: Vec<RasterRows>,
}

impl StreamSpec {
    /// A stream without a raster.
    pub fn new(name: &'static str, step: &'static str, period_s: f64, series: Vec<Series>) -> Self {
        Self {
            name,
            step,
            period_s,
            series,
            raster: Vec::new(),
        }
    }

    /// The words of the raster.
    pub fn raster_words(&self) -> usize {
        let rows: u32 = self.raster.iter().map(|area| area.rows).sum();
        (rows as usize).div_ceil(32)
    }

    /// The words of a frame as viewers get it.
    pub fn words(&self) -> usize {
        FRAME_WORDS + self.series.len() + self.raster_words()
    }
}

/// What happened in a step, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(pub u32);

impl Marks {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The answer was late.
    pub const MISSED: Self = Self(1);
    /// The last action was held.
    pub const HELD: Self = Self(2);
    /// The safe action or a stand-in's took the place of the brain's.
    pub const FALLBACK: Self = Self(4);
    /// The episode ended.
    pub const EPISODE_END: Self = Self(8);

    /// These marks if a condition is true.
    #[must_use]
    pub fn when(self, is_so: bool) -> Self {
        if is_so { self } else { Self::NONE }
    }
}

impl BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A frame of a stream that is drawn.
pub struct Frame<'a> {
    /// Its series.
    pub values: &'a [f32],
    /// What is hidden from viewers, such as the exact state of a body.
    pub hidden: &'a [f64],
}

/// Draws a frame; none if there is nothing to draw.
pub type Draw = Box<dyn FnMut(Frame<'_>) -> Option<Schematic> + Send>;

/// The writing end of a stream.
pub struct StreamWriter {
    ring: Producer<u32>,
    frame: Vec<u32>,
    series: usize,
    raster: usize,
    dropped: Arc<AtomicU64>,
}

impl StreamWriter {
    /// Writes a frame without a raster. Series without a number are not numbers (NaN), surplus
    /// numbers are left out. Neither waits nor allocates; a frame for which there is no room is
    /// dropped and counted.
    pub fn write(
        &mut self,
        step: u64,
        time_ns: u64,
        marks: Marks,
        values: impl IntoIterator<Item = f32>,
    ) {
        self.write_all(step, time_ns, marks, values, &[], &[]);
    }

    /// Writes a frame with the rows of its raster that are set, and its hidden numbers.
    pub fn write_all(
        &mut self,
        step: u64,
        time_ns: u64,
        marks: Marks,
        values: impl IntoIterator<Item = f32>,
        set_rows: &[u32],
        hidden: &[f64],
    ) {
        let head = [step as u32, (step >> 32) as u32, time_ns as u32];
        self.frame[..3].copy_from_slice(&head);
        self.frame[3] = (time_ns >> 32) as u32;
        self.frame[4] = marks.0;
        let (series, rest) = self.frame[FRAME_WORDS..].split_at_mut(self.series);
        series.fill(f32::NAN.to_bits());
        for (word, value) in series.iter_mut().zip(values) {
            *word = value.to_bits();
        }
        let (raster, hidden_words) = rest.split_at_mut(self.raster);
        raster.fill(0);
        for row in set_rows {
            if let Some(word) = raster.get_mut(*row as usize / 32) {
                *word |= 1 << (row % 32);
            }
        }
        for (words, number) in hidden_words.chunks_exact_mut(2).zip(hidden) {
            let bits = number.to_bits();
            words.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
        }
        if self.ring.push_entire_slice(&self.frame).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// New frames of a stream, as viewers get them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The number of the stream.
    pub stream: usize,
    /// The words of a frame.
    pub width: usize,
    /// How many of them are series.
    pub series: usize,
    /// The frames, one after the other.
    pub words: Vec<u32>,
    /// Frames since the update before that are not part of this one.
    pub left_out: u64,
}

impl Update {
    /// The frames.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator {
        self.words.chunks_exact(self.width)
    }

    /// The series of a frame; empty if there is no such frame.
    pub fn values(&self, frame: usize) -> Vec<f32> {
        let frame = self.frames().nth(frame);
        frame.map_or_else(Vec::new, |frame| values_of(frame, self.series).collect())
    }

    /// The number of a frame's step and its time in nanoseconds.
    pub fn step_and_time(frame: &[u32]) -> (u64, u64) {
        let number = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        (number(frame[0], frame[1]), number(frame[2], frame[3]))
    }
}

/// The series of a frame.
pub fn values_of(frame: &[u32], series: usize) -> impl Iterator<Item = f32> {
    let words = frame.iter().skip(FRAME_WORDS).take(series);
    words.map(|word| f32::from_bits(*word))
}

/// The reading end of a stream, with its history.
pub(super) struct StreamReader {
    spec: StreamSpec,
    ring: Consumer<u32>,
    /// A frame with what is hidden.
    frame: Vec<u32>,
    hidden: Vec<f64>,
    history: VecDeque<u32>,
    max_history: usize,
    dropped: Arc<AtomicU64>,
    /// Those of `dropped` that an update has reported.
    reported: u64,
    draw: Option<Draw>,
}

/// Frames that fit into the memory of a ring or a history.
fn fitting(frames: usize, width: usize) -> usize {
    frames.min(MAX_WORDS / width).max(MIN_FRAMES)
}

pub(super) fn pair(
    spec: StreamSpec,
    hidden: usize,
    draw: Option<Draw>,
) -> (StreamWriter, StreamReader) {
    let width = spec.words() + 2 * hidden;
    let (producer, consumer) = RingBuffer::new(width * fitting(RING_FRAMES, width));
    let dropped = Arc::new(AtomicU64::new(0));
    let writer = StreamWriter {
        ring: producer,
        frame: vec![0; width],
        series: spec.series.len(),
        raster: spec.raster_words(),
        dropped: dropped.clone(),
    };
    let max_history = spec.words() * fitting(HISTORY_FRAMES, spec.words());
    let reader = StreamReader {
        ring: consumer,
        frame: vec![0; width],
        hidden: vec![0.0; hidden],
        history: VecDeque::new(),
        max_history,
        dropped,
        reported: 0,
        draw,
        spec,
    };
    (writer, reader)
}

impl StreamReader {
    pub fn spec(&self) -> &StreamSpec {
        &self.spec
    }

    pub fn dropped_frames(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The frames in the ring, thinned out where there are many; none if there is no frame. The
    /// marks of a frame that is left out are those of the next one.
    pub fn drain(&mut self, stream: usize) -> Option<Update> {
        let (width, shown) = (self.frame.len(), self.spec.words());
        let waiting = self.ring.slots() / width;
        if waiting == 0 {
            return None;
        }
        let kept = waiting.min(MAX_UPDATE_FRAMES);
        let mut words = Vec::with_capacity(kept * shown);
        let mut marks = 0;
        for place in 0..waiting {
            if self.ring.pop_entire_slice(&mut self.frame).is_err() {
                break;
            }
            marks |= self.frame[4];
            // The last one of each group; of all, the latest.
            let is_kept = (place + 1) * kept / waiting > place * kept / waiting;
            if is_kept {
                self.frame[4] = std::mem::take(&mut marks);
                words.extend_from_slice(&self.frame[..shown]);
            }
        }
        self.history.extend(&words);
        let surplus = self.history.len().saturating_sub(self.max_history);
        self.history.drain(..surplus);
        let dropped = self.dropped_frames();
        let lost = dropped - std::mem::replace(&mut self.reported, dropped);
        Some(Update {
            stream,
            width: shown,
            series: self.spec.series.len(),
            words,
            left_out: lost + (waiting - kept) as u64,
        })
    }

    /// All that is kept.
    pub fn history(&self, stream: usize) -> Update {
        Update {
            stream,
            width: self.spec.words(),
            series: self.spec.series.len(),
            words: self.history.iter().copied().collect(),
            left_out: 0,
        }
    }

    /// Draws the last frame of an update that [`StreamReader::drain`] has returned.
    pub fn draw(&mut self, update: &Update) -> Option<Schematic> {
        let draw = self.draw.as_mut()?;
        let values: Vec<f32> = values_of(update.frames().next_back()?, update.series).collect();
        let words = self.frame[self.spec.words()..].chunks_exact(2);
        for (number, words) in self.hidden.iter_mut().zip(words) {
            let bits = u64::from(words[0]) | u64::from(words[1]) << 32;
            *number = f64::from_bits(bits);
        }
        draw(Frame {
            values: &values,
            hidden: &self.hidden,
        })
    }
}
