//! What a loop shows of itself while it runs.

use std::sync::Arc;

use super::journal::Journal;
use super::metrics::Metrics;
use super::report::TickRecord;
use crate::body::schematic::Schematic;
use crate::body::task::Measure;
use crate::body::{Body, BodySpec};
use crate::clock::ClockKind;
use crate::live::{
    Draw, Event, EventWriter, Frame, Group, Histogram, Live, Marks, Quantity, QuantityKind, Series,
    StreamSpec, StreamWriter,
};

/// The name of the stream of a loop.
const LOOP_STREAM: &str = "loop";
/// What the lateness is.
const LATENESS: &str = "From the beginning of a period until the loop woke up for it.";

/// What a loop writes in each period.
pub(super) struct Telemetry {
    stream: StreamWriter,
    events: EventWriter,
    counts: Counts,
    latency: Arc<Histogram>,
    /// Only under a real clock.
    lateness: Option<Arc<Histogram>>,
    has_measure: bool,
    /// Where each number of an observation is that is no part of an array.
    places: Vec<usize>,
    /// The exact state, if the body has one that fits its drawing.
    state: Vec<f64>,
    dt_ns: u64,
    /// Deadline misses that were shown.
    misses: u64,
    /// How late the loop woke up for the next period, under a real clock.
    lateness_ns: Option<u64>,
}

/// The numbers of the summary.
struct Counts {
    ticks: Arc<Quantity>,
    deadline_misses: Arc<Quantity>,
    fallbacks: Arc<Quantity>,
    recoveries: Arc<Quantity>,
    episodes: Arc<Quantity>,
    terminated: Arc<Quantity>,
    seconds: Arc<Quantity>,
    total_reward: Arc<Quantity>,
    success: Arc<Quantity>,
}

impl Counts {
    fn new(live: &Live) -> Self {
        let counter = |name, meaning| live.add_quantity(QuantityKind::Counter, name, meaning);
        let gauge = |name, meaning| live.add_quantity(QuantityKind::Gauge, name, meaning);
        Self {
            ticks: counter("ticks", "Periods that were stepped."),
            deadline_misses: counter("deadline_misses", "Periods whose answer was late."),
            fallbacks: counter("fallbacks", "Answers that the safe action replaced."),
            recoveries: counter(
                "recoveries",
                "Failures of the brain that it recovered from.",
            ),
            episodes: counter("episodes", "Episodes that were begun."),
            terminated: counter("terminated_episodes", "Episodes that the body terminated."),
            seconds: gauge("seconds", "Time of the body since tick 0, in seconds."),
            total_reward: gauge("return", "Sum of the rewards."),
            success: gauge(
                "success_fraction",
                "Share of the periods that began in success.",
            ),
        }
    }

    fn set(&self, metrics: &Metrics, dt_ns: u64) {
        self.ticks.set(metrics.ticks as f64);
        self.deadline_misses.set(metrics.deadline_misses as f64);
        self.fallbacks.set(metrics.fallbacks as f64);
        self.episodes.set(metrics.episodes as f64);
        self.terminated.set(metrics.ended.terminated as f64);
        self.seconds.set(metrics.ticks as f64 * dt_ns as f64 / 1e9);
        self.total_reward.set(metrics.total_reward);
        self.success.set(metrics.success_fraction());
    }
}

impl Telemetry {
    /// Describes a loop to those who watch. `drawn` is another instance of the body, which draws
    /// exact states on the thread that shows them.
    pub fn new(
        live: &Live,
        body: &dyn Body,
        measure: Option<&Measure>,
        drawn: Option<Box<dyn Body>>,
    ) -> Self {
        let spec = body.spec();
        let numbers = spec.observation.iter().zip(spec.ranges());
        let numbers = numbers.filter(|(channel, _)| !channel.is_array());
        let places = numbers.map(|(_, range)| range.start).collect();
        let has_state = |body: &dyn Body| body.exact_state().map(|body| body.state().len());
        let drawn = drawn.filter(|drawn| has_state(&**drawn) == has_state(body));
        let hidden = drawn.as_deref().and_then(has_state).unwrap_or(0);
        let is_real = live.controls().clock() == ClockKind::Real;
        let series = series(spec, measure, is_real);
        let stream = StreamSpec::new(LOOP_STREAM, "tick", spec.dt_s, series);
        let draw = draw(spec.clone(), drawn);
        Self {
            stream: live.add_drawn_stream(stream, hidden, Some(draw)),
            events: live.event_writer(),
            counts: Counts::new(live),
            latency: live.add_histogram("tick_duration", "Host time of an answer."),
            lateness: is_real.then(|| live.add_histogram("lateness", LATENESS)),
            has_measure: measure.is_some(),
            places,
            state: Vec::with_capacity(hidden),
            dt_ns: (spec.dt_s * 1e9).round() as u64,
            misses: 0,
            lateness_ns: None,
        }
    }

    /// Begins with the counts of a run that may continue an earlier one.
    pub fn begin(&mut self, metrics: &Metrics) {
        self.misses = metrics.deadline_misses;
        self.counts.set(metrics, self.dt_ns);
    }

    /// Counts how late the loop woke up for a period, which is shown with it.
    pub fn woke(&mut self, lateness_ns: u64) {
        if let Some(lateness) = &self.lateness {
            lateness.record(lateness_ns);
            self.lateness_ns = Some(lateness_ns);
        }
    }

    /// Copies the exact state of the body before a step, if it is drawn.
    pub fn before_step(&mut self, body: &dyn Body) {
        self.state.clear();
        if self.state.capacity() > 0
            && let Some(body) = body.exact_state()
        {
            body.append_state(&mut self.state);
        }
    }

    /// Writes a period, with the host time of its answer if it has one. `metrics` are those before
    /// it, except for the deadline misses.
    pub fn write(&mut self, record: &TickRecord<'_>, latency_ns: Option<u64>, metrics: &Metrics) {
        let missed = metrics.deadline_misses > self.misses;
        self.misses = metrics.deadline_misses;
        let marks = Marks::MISSED.when(missed)
            | Marks::HELD.when(record.held)
            | Marks::FALLBACK.when(record.fallback)
            | Marks::EPISODE_END.when(record.terminated);
        let ms = |ns: Option<u64>| ns.map_or(f32::NAN, |ns| ns as f32 / 1e6);
        let lateness_ns = self.lateness_ns.take();
        let measure = self.has_measure.then_some(record.measure as f32);
        let numbers = self.places.iter().map(|place| record.observation[*place]);
        let values = numbers.chain(record.action.iter().copied()).chain(measure);
        let values = values.chain([record.reward as f32, ms(latency_ns), ms(lateness_ns)]);
        let (tick, time_ns) = (record.tick, record.time_ns);
        self.stream
            .write_all(tick, time_ns, marks, values, &[], &self.state);
        if let Some(ns) = latency_ns {
            self.latency.record(ns);
        }
    }

    /// Writes the counts after a period, and what happened in it.
    pub fn count(&mut self, metrics: &Metrics, journal: &mut Journal) {
        self.counts.set(metrics, self.dt_ns);
        self.counts.recoveries.set(journal.recoveries() as f64);
        let tick = metrics.ticks.saturating_sub(1);
        for note in journal.take_notes() {
            let step = note.tick.unwrap_or(tick);
            self.events.add(Event {
                step,
                time_s: step as f64 * self.dt_ns as f64 / 1e9,
                kind: note.kind,
                text: note.text,
            });
        }
        self.events.send();
    }
}

/// The series of a loop, in the order of its numbers.
fn series(spec: &BodySpec, measure: Option<&Measure>, is_real: bool) -> Vec<Series> {
    let observation = spec.observation.iter();
    let observation = observation.filter(|channel| !channel.is_array());
    let observation = observation.map(|channel| {
        let series = Series::new(&*channel.name, &*channel.unit, Group::Observation);
        series.within(channel.low, channel.high)
    });
    let action = spec.action.iter().map(|channel| {
        let series = Series::new(&*channel.name, &*channel.unit, Group::Action);
        series.within(channel.low, channel.high)
    });
    let measure = measure.map(|measure| Series::new(&*measure.name, &*measure.unit, Group::Task));
    let period_ms = (spec.dt_s * 1e3) as f32;
    let latency = Series::new("latency", "ms", Group::Timing).within(0.0, period_ms);
    let lateness = is_real.then(|| Series::new("lateness", "ms", Group::Timing));
    let reward = Series::new("reward", "", Group::Task);
    let numbers = observation.chain(action).chain(measure);
    numbers.chain([reward, latency]).chain(lateness).collect()
}

/// Draws the exact state on another instance of the body, or gauges of the observation.
fn draw(spec: BodySpec, mut drawn: Option<Box<dyn Body>>) -> Draw {
    let mut observation = vec![0.0; spec.observation_len()];
    let ranges: Vec<_> = spec.ranges().collect();
    Box::new(move |Frame { values, hidden }| {
        if let Some(body) = &mut drawn {
            body.exact_state_mut()?.set_state(hidden).ok()?;
            return Some(body.schematic());
        }
        let numbers = spec.observation.iter().zip(&ranges);
        let numbers = numbers.filter(|(channel, _)| !channel.is_array());
        for ((_, range), value) in numbers.zip(values) {
            observation[range.start] = *value;
        }
        Some(Schematic::gauges(&spec, &observation))
    })
}
