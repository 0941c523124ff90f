//! A policy whose body is stepped faster than it answers, in real time: how many periods of the
//! motors are lost, and how late they begin. `cargo run --release -p tectum-control --example
//! decimated_loop -- POLICY.onnx JOINTS SECONDS [PRIORITY]`, with the policy's contract next to it;
//! `-- nothing RATE_HZ SECONDS [PRIORITY]` is a loop that computes nothing. Without arguments it
//! drives twelve joints for half a second. `bench/policy_loop/decimated_loop.py` compares both.

use std::ops::ControlFlow;
use std::path::Path;

use tectum::snapshot::Snapshot;
use tectum::{Device, Error, LatencyHistogram, Result, RunStats};
use tectum_control::body::motors::{Driven, MotorRule};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::Brain;
use tectum_control::brain::policy::{self, PolicyBrain, spec::PolicySpec};
use tectum_control::clock::{Clock, ClockKind, RealClock};
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};
use tectum_control::real_time::RealTime;

/// Time between two torques, in seconds.
const DT_S: f64 = 0.001;

/// Joints of unit inertia that torques accelerate.
struct Joints {
    spec: BodySpec,
    position: Vec<f64>,
    velocity: Vec<f64>,
}

impl Joints {
    fn new(count: usize) -> Self {
        let channels = |kind: &str, unit: &str| {
            (0..count)
                .map(|joint| {
                    ObservationChannel::new(format!("{kind}.j{joint}"), unit, -10.0..=10.0)
                })
                .collect::<Vec<_>>()
        };
        let mut observation = channels("joint_pos", "rad");
        observation.extend(channels("joint_vel", "rad/s"));
        let torque = |joint| ActionChannel::new(format!("j{joint}"), "N m", -100.0..=100.0);
        Self {
            spec: BodySpec {
                name: "joints".to_owned(),
                dt_s: DT_S,
                observation,
                action: (0..count).map(torque).collect(),
                safe_action: vec![0.0; count],
            },
            position: vec![0.0; count],
            velocity: vec![0.0; count],
        }
    }
}

impl Body for Joints {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _seed: u64) {
        self.position.fill(0.0);
        self.velocity.fill(0.0);
    }

    fn observe(&self, observation: &mut [f32]) {
        let numbers = self.position.iter().chain(&self.velocity);
        for (number, value) in observation.iter_mut().zip(numbers) {
            *number = *value as f32;
        }
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let joints = self.position.iter_mut().zip(&mut self.velocity);
        for ((position, velocity), torque) in joints.zip(action) {
            *velocity += DT_S * f64::from(*torque);
            *position += DT_S * *velocity;
        }
        Step::default()
    }
}

/// Targets that do not change, for a run without arguments.
struct Still;

impl Brain for Still {
    fn name(&self) -> &'static str {
        "still"
    }

    fn tick(&mut self, _: &[f32], action: &mut [f32]) -> Result<RunStats> {
        action.fill(0.5);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }
}

/// Prints periods, those that were lost, and how late they began.
fn report(count: u64, missed: u64, lateness: &LatencyHistogram) {
    let late = lateness.percentiles();
    println!(
        "{{\"periods\": {count}, \"lost\": {missed}, \"late_ms\": {}}}",
        serde_json::to_value(late).unwrap_or_default()
    );
}

/// A loop that waits for each period and computes nothing.
fn nothing(rate_hz: f64, seconds: f64) {
    let (period_ns, periods) = ((1e9 / rate_hz) as u64, (seconds * rate_hz) as u64);
    let (mut clock, mut lateness, mut missed) = (RealClock::new(), LatencyHistogram::default(), 0);
    for period in 0..periods {
        let late_ns = clock.wait_until(period * period_ns);
        lateness.record(late_ns);
        missed += u64::from(late_ns >= period_ns);
    }
    report(periods, missed, &lateness);
}

fn driven(model: Option<&Path>, joints: usize, seconds: f64) -> Result<()> {
    let body = Joints::new(joints);
    let device = Device::open("cpu")?;
    let (rule, period_s) = match model {
        Some(model) => policy::motors(model, None, body.spec())?
            .ok_or_else(|| Error::invalid("the contract has no [motors]"))?,
        None => {
            let names = body
                .spec()
                .action
                .iter()
                .map(|channel| channel.name.clone());
            let rule = MotorRule {
                joints: Some(names.collect()),
                stiffness: vec![40.0],
                damping: vec![4.0],
                decimation: Some(20),
                ..MotorRule::default()
            };
            (rule, None)
        }
    };
    let body = Driven::new(Box::new(body), &rule, period_s)?;
    let brain: Box<dyn Brain> = match model {
        Some(model) => {
            let spec = PolicySpec::of(model.to_string_lossy());
            Box::new(PolicyBrain::new(&spec, body.spec(), &device)?)
        }
        None => Box::new(Still),
    };
    let settings = LoopSettings {
        seconds,
        clock: ClockKind::Real,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let mut closed_loop = ClosedLoop::new(Box::new(body), brain, &settings, &device)?;
    let outcome = closed_loop
        .run(ClockKind::Real.start().as_mut(), &mut Discard, &mut |_| {
            ControlFlow::Continue(())
        })
        .into_result()?;
    if let Some((_, inner)) = &outcome.inner {
        // A period of the policy that passes as a whole is stepped late, and counted so.
        report(inner.count, inner.missed, &inner.lateness);
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| {
        text.parse::<f64>()
            .map_err(|_| Error::invalid(format!("{text:?} is no number")))
    };
    let priority = arguments.get(3).map(number).transpose()?;
    let real_time = RealTime {
        priority: priority.map(|priority| priority as u8),
        lock_memory: false,
    };
    let (result, _granted) = real_time.run(|| match &arguments[..] {
        [] => driven(None, 12, 0.5),
        [first, rate_hz, seconds, ..] if first == "nothing" => {
            nothing(number(rate_hz)?, number(seconds)?);
            Ok(())
        }
        [model, joints, seconds, ..] => driven(
            Some(Path::new(model)),
            number(joints)? as usize,
            number(seconds)?,
        ),
        _ => Err(Error::invalid(
            "POLICY.onnx JOINTS SECONDS [PRIORITY], or nothing RATE_HZ SECONDS [PRIORITY]",
        )),
    })?;
    result
}
