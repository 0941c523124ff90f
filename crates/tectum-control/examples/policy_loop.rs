//! A policy at a fixed rate in real time, and how long after the beginning of their periods its
//! actions were ready: `cargo run --release -p tectum-control --example policy_loop -- POLICY.onnx
//! OBSERVATIONS ACTIONS SECONDS RATE_HZ [PRIORITY]`. Without arguments it runs a sample for half a
//! second. `bench/policy_loop` compares it with loops around other libraries.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tectum::snapshot::Snapshot;
use tectum::{Device, Error, Result, RunStats, Sample, WorkProgress};
use tectum_control::SAMPLES;
use tectum_control::body::{
    ActionChannel, Body, BodySettings, BodySpec, ObservationChannel, Step, body,
};
use tectum_control::brain::policy::spec::PolicySpec;
use tectum_control::brain::{Brain, BrainContext, BrainSettings};
use tectum_control::clock::{Clock, ClockKind};
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};
use tectum_control::real_time::RealTime;

/// Ticks before the first one that counts.
const WARM_UP: usize = 100;

/// Sensors that read other numbers at every tick; nothing moves.
struct Sensors {
    spec: BodySpec,
    tick: usize,
}

impl Sensors {
    fn new(observations: usize, actions: usize, rate_hz: f64) -> Self {
        let observation = (0..observations)
            .map(|index| ObservationChannel::new(format!("x{index}"), "1", -1.0..=1.0))
            .collect();
        let action = (0..actions)
            .map(|index| ActionChannel::new(format!("u{index}"), "1", -1e3..=1e3))
            .collect();
        Self {
            spec: BodySpec {
                name: "sensors".into(),
                dt_s: 1.0 / rate_hz,
                observation,
                action,
                safe_action: vec![0.0; actions],
            },
            tick: 0,
        }
    }
}

impl Body for Sensors {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _seed: u64) {
        self.tick = 0;
    }

    fn observe(&self, observation: &mut [f32]) {
        for (index, number) in observation.iter_mut().enumerate() {
            *number = ((self.tick * 7 + index * 13) % 101) as f32 / 50.0 - 1.0;
        }
    }

    fn step(&mut self, _action: &[f32]) -> Step {
        self.tick += 1;
        Step::default()
    }
}

/// From the beginnings of periods to their actions, in nanoseconds, and the CPU time when the first
/// that counts began.
#[derive(Default)]
struct Times {
    taken_ns: Vec<u64>,
    cpu_ns: u64,
}

/// A policy and a clock that measure when actions are ready.
struct Timed<T> {
    inner: T,
    start: Instant,
    period: Duration,
    times: Arc<Mutex<Times>>,
}

impl<T> Timed<T> {
    fn add(&self, ns: u128) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.taken_ns.push(ns as u64);
        if times.taken_ns.len() == WARM_UP {
            times.cpu_ns = cpu_ns();
        }
    }
}

impl Brain for Timed<Box<dyn Brain>> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let (period_ns, asked_ns) = (self.period.as_nanos(), self.start.elapsed().as_nanos());
        let stats = self.inner.tick(observation, action)?;
        self.add(self.start.elapsed().as_nanos() - asked_ns / period_ns * period_ns);
        Ok(stats)
    }

    fn unanswered_ticks(&self) -> u64 {
        self.inner.unanswered_ticks()
    }

    fn run_notes(&self) -> Vec<String> {
        self.inner.run_notes()
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.inner.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.inner.restore(snapshot)
    }

    fn device(&self) -> Option<&Device> {
        self.inner.device()
    }
}

impl Clock for Timed<()> {
    fn now_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        std::thread::sleep(Duration::from_nanos(
            deadline_ns.saturating_sub(self.now_ns()),
        ));
        let late_ns = self.now_ns() - deadline_ns;
        // Such a period passes without a tick.
        if u128::from(late_ns) >= self.period.as_nanos() {
            self.add(u128::from(late_ns));
        }
        late_ns
    }

    fn is_real(&self) -> bool {
        true
    }
}

/// CPU time of all threads of this process, in nanoseconds; 0 where there is no `/proc`.
fn cpu_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let times = tasks.filter_map(|task| {
        std::fs::read_to_string(task.path().join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse::<u64>()
            .ok()
    });
    times.sum()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| {
        text.parse::<f64>()
            .map_err(|_| Error::invalid(format!("{text:?} is no number")))
    };
    let folder = std::env::temp_dir().join(format!("tectum-policy-loop-{}", std::process::id()));
    let (plant, model, seconds, priority): (Box<dyn Body>, String, f64, Option<u8>) =
        match &arguments[..] {
            [] => {
                let sample = Sample::find(&SAMPLES, "cart-pole-policy")?;
                sample.write(&folder)?;
                (
                    body("cart_pole", None)?,
                    folder
                        .join(sample.files[0].0)
                        .to_string_lossy()
                        .into_owned(),
                    0.5,
                    None,
                )
            }
            [
                model,
                observations,
                actions,
                seconds,
                rate_hz,
                priority @ ..,
            ] => {
                let plant = Sensors::new(
                    number(observations)? as usize,
                    number(actions)? as usize,
                    number(rate_hz)?,
                );
                (
                    Box::new(plant),
                    model.clone(),
                    number(seconds)?,
                    priority
                        .first()
                        .map(number)
                        .transpose()?
                        .map(|priority| priority as u8),
                )
            }
            _ => {
                return Err(Error::invalid(
                    "POLICY.onnx OBSERVATIONS ACTIONS SECONDS RATE_HZ [PRIORITY], or nothing",
                ));
            }
        };
    let device = Device::open("cpu")?;
    let period = Duration::from_secs_f64(plant.spec().dt_s);
    let settings = LoopSettings {
        seconds: seconds + WARM_UP as f64 * plant.spec().dt_s,
        ..LoopSettings::default()
    };
    let context = BrainContext {
        body: plant.spec(),
        settings: &BodySettings::named("cart_pole"),
        seed: 1,
        clock: ClockKind::Real,
    };
    let policy = PolicySpec::of(model)
        .recipe(&context)?
        .build(&device, &mut WorkProgress::ignore)?;
    let (start, times) = (
        Instant::now(),
        Arc::new(Mutex::new(Times {
            taken_ns: Vec::with_capacity(1 << 20),
            cpu_ns: 0,
        })),
    );
    let brain = Timed {
        inner: policy,
        start,
        period,
        times: times.clone(),
    };
    let mut closed_loop = ClosedLoop::new(plant, Box::new(brain), &settings, &device)?;
    let shared = times.clone();
    let ((outcome, misses_before, cpu_at_end_ns), _granted) = RealTime {
        priority,
        lock_memory: false,
    }
    .run(move || {
        let (mut clock, mut before) = (
            Timed {
                inner: (),
                start,
                period,
                times: shared,
            },
            0,
        );
        let outcome = closed_loop.run(&mut clock, &mut Discard, &mut |progress| {
            if progress.tick <= WARM_UP as u64 {
                before = progress.deadline_misses;
            }
            ControlFlow::Continue(())
        });
        // Here, where the loop's threads still exist.
        (outcome, before, cpu_ns())
    })?;
    let outcome = outcome.into_result()?;
    outcome.notes.iter().for_each(|note| eprintln!("{note}"));
    let metrics = outcome.metrics;
    let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
    let ticks = metrics.ticks - WARM_UP as u64;
    let cpu_us = cpu_at_end_ns.saturating_sub(times.cpu_ns) as f64 / 1e3 / ticks as f64;
    let taken = &mut times.taken_ns[WARM_UP..];
    taken.sort_unstable();
    let at =
        |part: f64| taken[((taken.len() as f64 * part) as usize).min(taken.len() - 1)] as f64 / 1e3;
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(at);
    let misses = metrics.deadline_misses - misses_before;
    println!(
        "{{\"ticks\": {ticks}, \"misses\": {misses}, \"p50_us\": {p50}, \"p99_us\": {p99}, \"p999_us\": {p999}, \"max_us\": {max}, \"cpu_us\": {cpu_us}}}"
    );
    if arguments.is_empty() {
        std::fs::remove_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;
    }
    Ok(())
}
