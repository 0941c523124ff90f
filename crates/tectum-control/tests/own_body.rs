//! A body that no other crate knows: what the loop needs of it, and what is refused where it lacks
//! a capability.

use std::io::Cursor;
use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, ErrorKind, Result};
use tectum_control::body::control::LqrWeights;
use tectum_control::body::task::{Measure, Task};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::lqr::Lqr;
use tectum_control::brain::zero::Zero;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Outcome, Sink, TickRecord};
use tectum_control::recording::{Recorder, Trace};

/// A leaking tank, with only the core of a body: h' = h − 0.1 h, an episode of 30 steps.
struct Tank {
    spec: BodySpec,
    level_m: f64,
    steps: u32,
}

fn tank() -> Tank {
    // The name is made at run time.
    let name = ["leaking", "tank"].join("_");
    let level = ObservationChannel::new("level", "m", 0.0..=2.0).scaled(1.0);
    let pump = ActionChannel::new("pump", "m/s", 0.0..=1.0);
    let spec = BodySpec {
        name,
        dt_s: 0.1,
        observation: vec![level],
        action: vec![pump],
        safe_action: vec![0.0],
    };
    Tank {
        spec,
        level_m: 1.0,
        steps: 0,
    }
}

impl Body for Tank {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        (self.level_m, self.steps) = (1.0 + 0.001 * seed as f64, 0);
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.level_m as f32;
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let pumped = self.spec.action[0].applied(action[0]);
        self.level_m += 0.1 * (f64::from(pumped.unwrap_or(0.0)) - self.level_m);
        self.steps += 1;
        Step {
            reward: -1.0,
            terminated: false,
            truncated: self.steps == 30,
            refused: pumped.is_none(),
        }
    }
}

/// To stay within 0.5 m of 1 m; it scores twice what the body does.
struct KeepLevel(Measure);

impl Task for KeepLevel {
    fn measure(&self) -> &Measure {
        &self.0
    }

    fn value(&mut self, body: &dyn Body) -> f64 {
        let mut observation = [0.0];
        body.observe(&mut observation);
        f64::from(observation[0]) - 1.0
    }

    fn reward(&mut self, step: &Step) -> f64 {
        2.0 * step.reward
    }
}

fn keep_level() -> Box<dyn Task> {
    let (name, description, success) = (
        "level_error_m".into(),
        "level from 1 m".into(),
        "filled".into(),
    );
    Box::new(KeepLevel(Measure {
        name,
        description,
        unit: "m".into(),
        success,
        bound: 0.5,
        hold_s: 0.3,
        loss: None,
    }))
}

struct Recording {
    recorder: Recorder<Cursor<Vec<u8>>>,
    snapshots: Vec<Snapshot>,
}

impl Sink for Recording {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.recorder.push(record)
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.snapshots.push(snapshot);
        Ok(())
    }
}

fn closed_loop() -> ClosedLoop {
    let cpu = Device::open("cpu").expect("always there");
    let settings = LoopSettings {
        seconds: 6.0,
        ..LoopSettings::default()
    };
    let zero = Zero::new(tank().spec());
    ClosedLoop::new(Box::new(tank()), Box::new(zero), &settings, &cpu).expect("opens")
}

/// Runs to the end and returns the outcome, the trace and the last snapshot.
fn run(task: Option<Box<dyn Task>>) -> (Outcome, Trace, Snapshot) {
    let mut closed_loop = closed_loop();
    let recorder = Recorder::new(
        Cursor::new(Vec::new()),
        closed_loop.body_spec(),
        task.as_ref().map(|task| task.measure()),
    )
    .expect("in memory");
    let mut recording = Recording {
        recorder,
        snapshots: Vec::new(),
    };
    task.into_iter().for_each(|task| closed_loop.set_task(task));
    let outcome = closed_loop.run(&mut SimClock::new(), &mut recording, &mut |_| {
        ControlFlow::Continue(())
    });
    let trace = Trace::parse(&recording.recorder.finish().expect("in memory").into_inner())
        .expect("a recording");
    (
        outcome,
        trace,
        recording.snapshots.pop().expect("one at the end"),
    )
}

#[test]
fn the_core_of_a_body_runs_in_the_loop_under_its_own_task() {
    let (outcome, trace, _) = run(Some(keep_level()));
    assert_eq!(
        (
            trace.ticks.len(),
            trace.observation_names.as_slice(),
            trace.measure_name.as_deref()
        ),
        (60, &["level".into()][..], Some("level_error_m"))
    );
    // 0.9⁶ > 0.5 > 0.9⁷: of an episode of 30 periods, the first seven are a success.
    assert!(
        (trace.ticks[6].measure - (0.9f64.powi(6) - 1.0)).abs() < 1e-6,
        "{:?}",
        trace.ticks[6]
    );
    let truncated: Vec<u64> = trace
        .ticks
        .iter()
        .filter(|tick| tick.terminated)
        .map(|tick| tick.tick)
        .collect();
    assert_eq!(
        (
            truncated,
            outcome.metrics.episodes,
            trace.ticks[30].observation[0]
        ),
        (vec![29, 59], 3, 1.002)
    );
    assert_eq!(outcome.metrics.total_reward, -120.0);
    let summary = serde_json::to_value(outcome.task.expect("there is a task")).expect("plain");
    assert_eq!(
        summary,
        serde_json::json!({ "filled_fraction": 14.0 / 60.0, "time_to_filled_s": 0.0 })
    );
}

#[test]
fn without_a_task_only_the_reward_counts() {
    let (outcome, trace, _) = run(None);
    assert_eq!(
        (
            outcome.metrics.total_reward,
            outcome.task,
            trace.measure_name
        ),
        (-60.0, None, None)
    );
    assert!(
        trace
            .ticks
            .iter()
            .all(|tick| tick.measure.is_nan() && tick.reward == -1.0)
    );
}

#[test]
fn a_missing_capability_is_refused_with_the_names_of_body_and_capability() {
    let (_, _, mut snapshot) = run(None);
    snapshot.insert(
        "loop.counts",
        tectum::snapshot::Array::U64(vec![9, 0, u64::MAX, 0, 0, 1, 1, u64::MAX]),
    );
    let weights = LqrWeights {
        state: vec![1.0],
        action: vec![1.0],
    };
    let mut tank: Box<dyn Body> = Box::new(tank());
    let cases = [
        (
            closed_loop().restore(&snapshot).err(),
            "body leaking_tank: it has no exact state",
        ),
        (
            tank.state().err(),
            "body leaking_tank: it has no exact state",
        ),
        (
            tank.set_state(&[1.0]).err(),
            "body leaking_tank: it has no exact state",
        ),
        (
            tank.require_randomized().err(),
            "body leaking_tank: it has no random states",
        ),
        (
            Lqr::with_weights(tank, &weights, None).err(),
            "body leaking_tank: it has no equilibrium with an observer, which a controller's model needs",
        ),
    ];
    for (error, expected) in cases {
        let error = error.expect(expected);
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Unsupported, expected.to_owned())
        );
    }
}
