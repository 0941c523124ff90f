//! The stage between actions and motors, compared with the same equations written again here.

use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result, RunStats};
use tectum_control::body::motors::rule::{Gains, HeldRule, SafeRule, StartRule};
use tectum_control::body::motors::{Control, Driven, MotorRule, MotorState};
use tectum_control::body::{ActionChannel, Body, BodySpec, ExactState, ObservationChannel, Step};
use tectum_control::brain::Brain;
use tectum_control::clock::{ClockKind, SimClock};
use tectum_control::closed_loop::{
    ClosedLoop, Discard, Fault, LoopSettings, Outcome, Sink, TickRecord,
};

/// Time between two torques, in seconds.
const DT_S: f64 = 0.001;

/// Joints of unit inertia that torques accelerate.
struct Arm {
    spec: BodySpec,
    position: Vec<f64>,
    velocity: Vec<f64>,
    /// What it received in its last step.
    received: Vec<f32>,
    /// An episode ends after as many steps.
    last_step: u64,
    /// The step before which its sensors read NaN.
    blind_step: u64,
    steps: u64,
}

fn arm(names: &[&str], unit: &str) -> Arm {
    let channels = |kind: &str, unit: &str| {
        names
            .iter()
            .map(|name| ObservationChannel::new(format!("{kind}.{name}"), unit, -10.0..=10.0))
            .collect::<Vec<_>>()
    };
    let mut observation = channels("joint_pos", "rad");
    observation.extend(channels("joint_vel", "rad/s"));
    let action: Vec<ActionChannel> = names
        .iter()
        .map(|name| ActionChannel::new(*name, unit, -1000.0..=1000.0))
        .collect();
    Arm {
        position: (0..names.len()).map(|joint| 0.3 + joint as f64).collect(),
        velocity: vec![0.0; names.len()],
        received: vec![0.0; action.len()],
        spec: BodySpec {
            name: "arm".to_owned(),
            dt_s: DT_S,
            safe_action: vec![0.0; action.len()],
            observation,
            action,
        },
        last_step: u64::MAX,
        blind_step: u64::MAX,
        steps: 0,
    }
}

impl Body for Arm {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _: u64) {
        for (joint, position) in self.position.iter_mut().enumerate() {
            *position = 0.3 + joint as f64;
        }
        self.velocity.fill(0.0);
        self.steps = 0;
    }

    fn observe(&self, observation: &mut [f32]) {
        for (number, value) in observation
            .iter_mut()
            .zip(self.position.iter().chain(&self.velocity))
        {
            *number = *value as f32;
        }
        if self.steps == self.blind_step {
            observation.fill(f32::NAN);
        }
    }

    /// A torque that is not finite is refused: nothing moves the joints in this step.
    fn step(&mut self, action: &[f32]) -> Step {
        self.received.copy_from_slice(action);
        let refused = action.iter().any(|torque| !torque.is_finite());
        let none = vec![0.0; action.len()];
        let action = if refused { &none } else { action };
        for ((position, velocity), torque) in
            self.position.iter_mut().zip(&mut self.velocity).zip(action)
        {
            *velocity += DT_S * f64::from(*torque);
            *position += DT_S * *velocity;
        }
        self.steps += 1;
        Step {
            reward: 1.0,
            refused,
            terminated: self.steps == self.last_step,
            ..Step::default()
        }
    }

    fn exact_state(&self) -> Option<&dyn ExactState> {
        Some(self)
    }

    fn exact_state_mut(&mut self) -> Option<&mut dyn ExactState> {
        Some(self)
    }
}

impl ExactState for Arm {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(self.position.iter().chain(&self.velocity));
        state.push(self.steps as f64);
    }

    fn set_state(&mut self, state: &[f64]) -> tectum::Result<()> {
        let joints = self.position.len();
        self.position.copy_from_slice(&state[..joints]);
        self.velocity.copy_from_slice(&state[joints..2 * joints]);
        self.steps = state[2 * joints] as u64;
        Ok(())
    }
}

fn rule(names: &[&str]) -> MotorRule {
    MotorRule {
        joints: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        stiffness: vec![40.0],
        damping: vec![2.0],
        decimation: Some(20),
        ..MotorRule::default()
    }
}

fn driven(rule: &MotorRule) -> Driven {
    Driven::new(Box::new(arm(&["hip", "knee"], "N m")), rule, None).expect("it fits")
}

fn observed(body: &dyn Body) -> Vec<f64> {
    let mut observation = vec![0.0; body.spec().observation.len()];
    body.observe(&mut observation);
    observation.into_iter().map(f64::from).collect()
}

/// The motion of the joint `hip`.
struct Reference {
    position: f64,
    velocity: f64,
}

impl Reference {
    fn new() -> Self {
        Self {
            position: 0.3,
            velocity: 0.0,
        }
    }

    /// What sensors read: positions and velocities in f32.
    fn seen(&self) -> (f64, f64) {
        (
            f64::from(self.position as f32),
            f64::from(self.velocity as f32),
        )
    }

    fn step(&mut self, torque: f64) {
        self.velocity += DT_S * f64::from(torque as f32);
        self.position += DT_S * self.velocity;
    }

    fn assert_seen(&self, body: &dyn Body, what: &str) {
        let seen = observed(body);
        assert!(
            (seen[0] - self.position).abs() < 1e-6 && (seen[2] - self.velocity).abs() < 1e-5,
            "{what}: {seen:?}, {} and {} expected",
            self.position,
            self.velocity
        );
    }
}

#[test]
fn each_control_is_its_law_in_every_period_of_the_body() {
    type Law = fn(f64, f64, f64) -> f64;
    let laws: [(Control, Law); 3] = [
        (Control::Position, |target, position, velocity| {
            40.0 * (target - position) - 2.0 * velocity
        }),
        (Control::Velocity, |target, _, velocity| {
            2.0 * (target - velocity)
        }),
        (Control::Torque, |target, _, _| target),
    ];
    for (control, law) in laws {
        for limit in [f64::INFINITY, 3.0] {
            let torque_limit = if limit.is_finite() {
                vec![limit]
            } else {
                Vec::new()
            };
            let rule = MotorRule {
                control: vec![control],
                torque_limit,
                ..rule(&["hip"])
            };
            let mut body = driven(&rule);
            let mut reference = Reference::new();
            assert_eq!(body.spec().dt_s, 0.02);
            for period in 0..100 {
                let target = (0.1 * f64::from(period)).sin();
                let step = body.step(&[target as f32]);
                assert_eq!(step.reward, 20.0, "the sum of the steps' rewards");
                let target = f64::from(target as f32);
                for _ in 0..20 {
                    let (position, velocity) = reference.seen();
                    reference.step(law(target, position, velocity).clamp(-limit, limit));
                }
                reference.assert_seen(&body, &format!("{control:?}, {limit}, {period}"));
                assert_eq!(
                    observed(&body)[1],
                    f64::from(1.3f32),
                    "no torque on the other"
                );
            }
        }
    }
}

#[test]
fn filter_lag_and_the_limits_of_targets_have_their_equations() {
    let rule = MotorRule {
        filter_hz: Some(5.0),
        lag_s: Some(0.01),
        velocity_limit: vec![2.0],
        position_limit: vec![[-0.5, 0.5]],
        ..rule(&["hip"])
    };
    let mut body = driven(&rule);
    let (mut target, mut torque) = (f64::from(0.3f32), 0.0);
    let mut reference = Reference::new();
    let filter = 1.0 - (-std::f64::consts::TAU * 5.0 * DT_S).exp();
    let lag = 1.0 - (-DT_S / 0.01f64).exp();
    for period in 0..60 {
        let command = if period % 20 < 10 { 2.0 } else { -2.0 };
        body.step(&[command as f32]);
        for _ in 0..20 {
            let filtered = (target + filter * (command - target)).clamp(-0.5, 0.5);
            target = filtered.clamp(target - 2.0 * DT_S, target + 2.0 * DT_S);
            let (position, velocity) = reference.seen();
            torque += lag * (40.0 * (target - position) - 2.0 * velocity - torque);
            reference.step(torque);
        }
        reference.assert_seen(&body, &format!("period {period}"));
    }
}

/// A reading of NaN has no torque, neither a limit's nor that of a filter which remembers it.
#[test]
fn a_reading_that_is_not_finite_is_refused_and_leaves_no_trace() {
    let rule = MotorRule {
        torque_limit: vec![30.0],
        lag_s: Some(0.002),
        ..rule(&["hip"])
    };
    let mut blind = arm(&["hip"], "N m");
    blind.blind_step = 50;
    let mut body = Driven::new(Box::new(blind), &rule, None).expect("it fits");
    let mut reference = Reference::new();
    let (mut torque, lag) = (0.0, 1.0 - (-DT_S / 0.002f64).exp());
    for period in 0..6 {
        let step = body.step(&[0.5]);
        assert_eq!(step.refused, period == 2, "period {period}");
        for step in 0..20 {
            let (position, velocity) = reference.seen();
            if 20 * period + step == 50 {
                reference.step(0.0);
                continue;
            }
            let demand: f64 = 40.0 * (0.5 - position) - 2.0 * velocity;
            torque += lag * (demand.clamp(-30.0, 30.0) - torque);
            reference.step(torque);
        }
        let seen = observed(&body);
        assert!((seen[0] - reference.position).abs() < 1e-6, "{seen:?}");
    }
}

/// A start as legged robots have it: no torque, a move to the default pose, then the policy.
fn starting() -> MotorRule {
    let state = |state, seconds, stiffness: &[f64]| StartRule {
        state,
        seconds,
        gains: Gains {
            stiffness: stiffness.to_vec(),
            damping: Vec::new(),
        },
    };
    MotorRule {
        default: vec![-0.2],
        start: vec![
            state(MotorState::ZeroTorque, 0.1, &[]),
            state(MotorState::Move, 0.4, &[90.0]),
        ],
        held: vec![HeldRule {
            joints: vec!["knee".to_owned()],
            target: vec![0.7],
            stiffness: vec![30.0],
            damping: vec![3.0],
        }],
        ..rule(&["hip"])
    }
}

#[test]
fn motors_pass_through_the_states_of_a_start_and_others_are_held() {
    let mut body = driven(&starting());
    let mut hip = Reference::new();
    let mut knee = Reference {
        position: 1.3,
        velocity: 0.0,
    };
    let pd = |[stiffness, damping]: [f64; 2], target: f64, joint: &Reference| {
        let (position, velocity) = joint.seen();
        stiffness * (target - position) - damping * velocity
    };
    for period in 0..60u32 {
        assert_eq!(body.is_ready(), period >= 25, "period {period}");
        body.step(&[0.5]);
        for step in 0..20u32 {
            let moving = f64::from(period.saturating_sub(5) * 20 + step + 1) / 400.0;
            let torque = match period {
                0..5 => 0.0,
                5..25 => pd([90.0, 2.0], 0.3 + moving * (-0.2 - 0.3), &hip),
                _ => pd([40.0, 2.0], 0.5, &hip),
            };
            // The states of the start are those of all motors.
            let held = match period {
                0..5 => 0.0,
                5..25 => pd([30.0, 3.0], 1.3 + moving * (0.7 - 1.3), &knee),
                _ => pd([30.0, 3.0], 0.7, &knee),
            };
            hip.step(torque);
            knee.step(held);
        }
        hip.assert_seen(&body, &format!("period {period}"));
        assert!((observed(&body)[1] - knee.position).abs() < 1e-6);
    }
    body.reset(0);
    assert!(!body.is_ready(), "each episode starts so");
}

#[test]
fn a_state_that_is_restored_continues_exactly() {
    let rule = MotorRule {
        filter_hz: Some(8.0),
        lag_s: Some(0.005),
        ..starting()
    };
    let target = |period: u32| [(0.3 * f64::from(period)).cos() as f32];
    for at in [0, 3, 7, 24, 25, 40] {
        let (mut body, mut other) = (driven(&rule), driven(&rule));
        for period in 0..at {
            body.step(&target(period));
        }
        let body: &mut dyn Body = &mut body;
        let other: &mut dyn Body = &mut other;
        other
            .set_state(&body.state().expect("exact"))
            .expect("finite");
        for period in at..60 {
            body.step(&target(period));
            other.step(&target(period));
            assert_eq!(body.state().expect("exact"), other.state().expect("exact"));
        }
        let mut broken = body.state().expect("exact");
        *broken.last_mut().expect("numbers") = f64::NAN;
        assert!(other.set_state(&broken).is_err());
        assert!(other.set_state(&broken[..3]).is_err());
        // The state of the start, and its periods, after the five numbers of the arm.
        for (place, number) in [(5, 3.0), (5, 0.5), (5, -1.0), (6, 1e18)] {
            let mut broken = body.state().expect("exact");
            broken[place] = number;
            assert!(other.set_state(&broken).is_err(), "{place}: {number}");
        }
    }
}

/// A robot with a controller of its own, which receives targets and gains.
#[test]
fn a_body_with_its_own_controller_receives_targets_and_gains() {
    let channels = ["position", "velocity", "stiffness", "damping", "torque"];
    let robot = || {
        let mut robot = arm(&["hip"], "N m");
        robot.spec.action = channels
            .iter()
            .map(|part| ActionChannel::new(format!("hip.{part}"), "", -1e4..=1e4))
            .collect();
        robot.spec.safe_action = vec![0.0; 5];
        robot.received = vec![0.0; 5];
        robot
    };
    let received = |rule: &MotorRule, target: f32| {
        let mut body = Driven::new(Box::new(robot()), rule, None).expect("it fits");
        body.step(&[target]);
        let inner = Box::new(body).into_inner().expect("driven");
        let mut observation = [0.0; 2];
        inner.observe(&mut observation);
        observation
    };
    // The robot accelerates by its first channel, the target.
    for (control, expected) in [
        (Control::Position, 0.5),
        (Control::Velocity, 0.0),
        (Control::Torque, 0.0),
    ] {
        let rule = MotorRule {
            control: vec![control],
            ..rule(&["hip"])
        };
        let velocity = received(&rule, 0.5)[1];
        assert!(
            (velocity - 20.0 * 0.001 * expected).abs() < 1e-6,
            "{control:?}"
        );
    }
    // An actuator with the unit of a position receives the target alone.
    let mut servo = arm(&["hip"], "deg");
    servo.velocity[0] = 0.0;
    let rule = MotorRule {
        stiffness: Vec::new(),
        damping: Vec::new(),
        ..rule(&["hip"])
    };
    let mut body = Driven::new(Box::new(servo), &rule, None).expect("it needs no gains");
    body.step(&[0.01]);
    let velocity = observed(&body)[1];
    assert!((velocity - 20.0 * DT_S * 0.01f64.to_degrees()).abs() < 1e-6);
}

#[test]
fn rules_that_do_not_fit_are_refused_each_with_its_reason() {
    let own = |change: fn(&mut MotorRule)| {
        let mut rule = rule(&["hip", "knee"]);
        change(&mut rule);
        rule
    };
    let cases: [(MotorRule, Option<f64>, &str); 12] = [
        (
            own(|rule| rule.joints = Some(vec!["hipp".to_owned()])),
            None,
            "motors: joint hipp: the body arm has no observation \"joint_pos.hipp\", perhaps \"joint_pos.hip\"",
        ),
        (
            own(|rule| rule.joints = None),
            None,
            "motors: no joints; `joints` lists them, or `channels` of [action]",
        ),
        (
            own(|rule| rule.joints = Some(vec!["hip".to_owned(), "hip".to_owned()])),
            None,
            "motors: the joint hip is named twice",
        ),
        (
            own(|rule| rule.stiffness = vec![1.0, 2.0, 3.0]),
            None,
            "motors: stiffness has 3 values for 2 joints",
        ),
        (
            own(|rule| rule.damping = vec![-1.0]),
            None,
            "motors: damping -1: finite numbers, 0 or above, are needed",
        ),
        (
            own(|rule| rule.stiffness.clear()),
            None,
            "motors: position control needs `stiffness` and `damping`",
        ),
        (
            own(|rule| rule.actuators = Some(vec!["hip".to_owned(), "kne".to_owned()])),
            None,
            "motors: joint knee: the body arm has no action \"kne\", perhaps \"knee\"; it has hip, knee",
        ),
        (
            own(|rule| rule.decimation = Some(10)),
            Some(0.02),
            "motors: decimation 10 of the body's period 0.001 s is 0.01 s; the contract states 0.02 s",
        ),
        (
            own(|rule| rule.decimation = Some(0)),
            None,
            "motors: decimation is 0",
        ),
        (
            own(|rule| rule.position_limit = vec![[1.0, -1.0]]),
            None,
            "motors: position_limit 1 to -1 is no range",
        ),
        (
            own(|rule| rule.default = vec![f64::INFINITY]),
            None,
            "motors: a pose has the number inf: finite ones are needed",
        ),
        (
            own(|rule| rule.decimation = None),
            Some(0.0205),
            "motors: a period of 0.0205 s is no whole number of periods of the body arm, 0.001 s",
        ),
    ];
    for (rule, period_s, message) in cases {
        let error = rule.spec(arm(&["hip", "knee"], "N m").spec(), period_s);
        assert_eq!(error.expect_err(message).to_string(), message);
    }
}

/// A brain that gives a target, after a time in which it must not be asked.
struct Targets {
    ticks: u64,
    fails_at: Option<u64>,
}

impl Brain for Targets {
    fn name(&self) -> &'static str {
        "targets"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        assert!(observation.iter().all(|number| number.is_finite()));
        let tick = self.ticks;
        self.ticks += 1;
        if self.fails_at == Some(tick) {
            return Err(tectum::Error::invalid("the brain fails in this tick"));
        }
        action.fill(0.5);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }

    fn episode_ended(&mut self) {
        self.ticks = 0;
    }
}

/// Actions and fallbacks of each period.
#[derive(Default)]
struct Periods(Vec<(f32, bool, f32)>);

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let speed = record.observation[2];
        self.0.push((record.action[0], record.fallback, speed));
        Ok(())
    }
}

fn run(
    rule: &MotorRule,
    clock: ClockKind,
    seconds: f64,
    fails_at: Option<u64>,
    faults: &[Fault],
) -> (Outcome, Vec<(f32, bool, f32)>) {
    let settings = LoopSettings {
        seconds,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let brain = Box::new(Targets { ticks: 0, fails_at });
    let device = Device::open("cpu").expect("there");
    let mut looped =
        ClosedLoop::new(Box::new(driven(rule)), brain, &settings, &device).expect("it fits");
    looped.inject(faults).expect("within the run");
    let mut periods = Periods::default();
    let outcome = looped.run(clock.start().as_mut(), &mut periods, &mut |_| {
        ControlFlow::Continue(())
    });
    (outcome, periods.0)
}

#[test]
fn a_loop_queries_no_brain_before_the_body_has_started() {
    let (outcome, periods) = run(&starting(), ClockKind::Sim, 1.0, None, &[]);
    for (tick, (action, is_fallback, _)) in periods.iter().enumerate() {
        let expected = if tick < 25 {
            (-0.2, true)
        } else {
            (0.5, false)
        };
        assert_eq!((*action, *is_fallback), expected, "tick {tick}");
    }
    assert_eq!(
        (outcome.metrics.fallbacks, outcome.metrics.deadline_misses),
        (0, 0)
    );
}

/// In each safe state, what the motors do after the brain has failed or the stop was pressed.
#[test]
fn without_an_answer_motors_are_in_their_safe_state() {
    for state in [
        MotorState::Hold,
        MotorState::Damping,
        MotorState::ZeroTorque,
    ] {
        let rule = MotorRule {
            default: vec![-0.2],
            safe: SafeRule {
                state,
                gains: Gains {
                    stiffness: Vec::new(),
                    damping: vec![8.0],
                },
            },
            ..rule(&["hip"])
        };
        let stop: Fault = "stop@0.2".parse().expect("a fault");
        for (fails_at, faults) in [(Some(10), &[][..]), (None, &[stop][..])] {
            let (_, periods) = run(&rule, ClockKind::Sim, 0.24, fails_at, faults);
            assert_eq!((periods[9].1, periods[10].1), (false, true));
            let mut hip = Reference::new();
            for period in 0..11 {
                for _ in 0..20 {
                    let (position, velocity) = hip.seen();
                    let pd =
                        |damping: f64, target: f64| 40.0 * (target - position) - damping * velocity;
                    hip.step(match (period, state) {
                        (0..10, _) => pd(2.0, 0.5),
                        (_, MotorState::Hold) => pd(8.0, f64::from(-0.2f32)),
                        (_, MotorState::Damping) => -8.0 * velocity,
                        _ => 0.0,
                    });
                }
            }
            let speed = f64::from(periods[11].2);
            assert!((speed - hip.velocity).abs() < 1e-4, "{state:?}: {speed}");
        }
    }
}

/// Under a real clock every period of the body is counted, at its own time.
#[test]
fn in_real_time_the_periods_of_the_motors_are_counted() {
    let (outcome, periods) = run(&rule(&["hip"]), ClockKind::Real, 0.4, None, &[]);
    let (period_s, inner) = outcome.inner.expect("it has periods of its own");
    assert_eq!((period_s, periods.len()), (DT_S, 20));
    assert_eq!(inner.count, 400);
    let (outcome, _) = run(&rule(&["hip"]), ClockKind::Sim, 0.4, None, &[]);
    assert_eq!(outcome.inner.map(|(_, inner)| inner.count), Some(0));
}

#[test]
fn an_episode_that_ends_within_a_period_ends_it() {
    let mut short = arm(&["hip", "knee"], "N m");
    short.last_step = 50;
    let mut body = Driven::new(Box::new(short), &rule(&["hip"]), None).expect("it fits");
    let steps: Vec<Step> = (0..3).map(|_| body.step(&[0.5])).collect();
    let ends: Vec<(f64, bool)> = steps
        .iter()
        .map(|step| (step.reward, step.terminated))
        .collect();
    assert_eq!(ends, [(20.0, false), (20.0, false), (10.0, true)]);
    let device = Device::open("cpu").expect("there");
    let settings = LoopSettings {
        seconds: 0.4,
        clock: ClockKind::Sim,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    body.reset(0);
    let brain = Box::new(Targets {
        ticks: 0,
        fails_at: None,
    });
    let mut looped = ClosedLoop::new(Box::new(body), brain, &settings, &device).expect("it fits");
    let outcome = looped.run(&mut SimClock::new(), &mut Discard, &mut |_| {
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.metrics.ended.terminated, 6);
}
