//! Deadline accounting, faults, snapshots and resumption of the loop.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tectum::snapshot::{Array, Snapshot};
use tectum::{Device, Error, ErrorKind, Result, RunStats};
use tectum_control::body::{Start, body};
use tectum_control::brain::{Brain, Stateless};
use tectum_control::clock::{Clock, SimClock};
use tectum_control::closed_loop::{ClosedLoop, End, Outcome, Sink, TickRecord};
use tectum_control::scenario::build::{build_body, build_brain};
use tectum_control::scenario::{ClockKind, LoopSettings, Overrun, Scenario};

/// A clock that a brain can advance.
#[derive(Clone, Default)]
struct FakeClock(Arc<AtomicU64>);

impl Clock for FakeClock {
    fn now_ns(&mut self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        self.0
            .fetch_max(deadline_ns, Ordering::Relaxed)
            .saturating_sub(deadline_ns)
    }

    fn is_real(&self) -> bool {
        true
    }
}

/// Answers n + 1 to tick n, taking the periods given for it (0.5 if none are) and failing at given
/// ticks.
struct Scripted {
    clock: FakeClock,
    period_ns: u64,
    periods: Vec<(u64, f64)>,
    faults: Vec<(u64, Option<ErrorKind>)>,
    tick: u64,
}

impl Brain for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn tick(&mut self, _observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let tick = self.tick;
        self.tick += 1;
        let periods = self
            .periods
            .iter()
            .find(|(at, _)| *at == tick)
            .map_or(0.5, |(_, periods)| *periods);
        self.clock
            .0
            .fetch_add((periods * self.period_ns as f64) as u64, Ordering::Relaxed);
        action[0] = (tick + 1) as f32 / 100.0;
        // Each fault occurs once, so that a restored script gets past it.
        match self
            .faults
            .iter()
            .position(|(at, _)| *at == tick)
            .map(|index| self.faults.remove(index))
        {
            Some((_, Some(kind))) => return Err(Error::new(kind, "scripted fault")),
            Some((_, None)) => action[0] = f32::NAN,
            None => {}
        }
        Ok(RunStats {
            transfers_up: 1,
            transfers_down: 1,
            ..RunStats::default()
        })
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("tick", Array::U64(vec![self.tick]));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.tick = snapshot.u64("tick", 1)?[0];
        Ok(())
    }
}

/// Keeps (tick, action in hundredths, held, fallback) of each period, every period as text, and the
/// last snapshot.
#[derive(Default)]
struct Memory {
    periods: Vec<(u64, i64, bool, bool)>,
    lines: Vec<String>,
    snapshots: Vec<Snapshot>,
    fails_at: Option<u64>,
}

impl Sink for Memory {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        if self.fails_at == Some(record.tick) {
            return Err(Error::new(ErrorKind::Io, "disk full"));
        }
        self.periods.push((
            record.tick,
            (record.action[0] * 100.0).round() as i64,
            record.held,
            record.fallback,
        ));
        self.lines.push(format!("{record:?}"));
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.snapshots.push(snapshot);
        Ok(())
    }
}

fn go_on(_: &tectum_control::closed_loop::Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn settings(ticks: u64, dt_s: f64) -> LoopSettings {
    LoopSettings {
        seconds: ticks as f64 * dt_s,
        clock: ClockKind::Sim,
        snapshot_every: 0,
        ..LoopSettings::default()
    }
}

type Periods = [(u64, f64)];
type Faults = [(u64, Option<ErrorKind>)];

fn run_scripted(
    ticks: u64,
    overrun: Overrun,
    periods: &Periods,
    faults: &Faults,
) -> (Outcome, Memory) {
    let plant = body("pendulum", Some(Start::Hanging)).expect("known");
    let dt_s = plant.spec().dt_s;
    let mut clock = FakeClock::default();
    let brain = Scripted {
        clock: clock.clone(),
        period_ns: (dt_s * 1e9) as u64,
        periods: periods.to_vec(),
        faults: faults.to_vec(),
        tick: 0,
    };
    let settings = LoopSettings {
        overrun,
        ..settings(ticks, dt_s)
    };
    let cpu = Device::open("cpu").expect("always there");
    let mut closed_loop = ClosedLoop::new(plant, Box::new(brain), &settings, &cpu).expect("cpu");
    let mut memory = Memory::default();
    let outcome = closed_loop.run(&mut clock, &mut memory, &mut go_on);
    (outcome, memory)
}

#[test]
fn a_late_answer_leaves_the_action_before_in_force_and_is_then_held_itself() {
    // Answer 1 (the second) takes 2.5 periods: ticks 1 and 2 get answer 0 again; tick 3 begins half
    // a period late and meets its deadline.
    let (outcome, memory) = run_scripted(6, Overrun::Hold, &[(1, 2.5), (2, 0.25)], &[]);
    let expected = [
        (0, 1, false),
        (1, 1, true),
        (2, 1, true),
        (3, 3, false),
        (4, 4, false),
        (5, 5, false),
    ];
    assert_eq!(
        memory.periods,
        expected.map(|(tick, action, held)| (tick, action, held, false))
    );
    assert_eq!(
        (
            outcome.metrics.deadline_misses,
            outcome.metrics.ticks,
            outcome.receipt.runs
        ),
        (2, 6, 5)
    );
    assert!(matches!(outcome.end, End::Completed));
    assert_eq!(outcome.transfers.constant_counts(), Some((1, 1)));
}

#[test]
fn the_late_answer_is_what_the_next_late_tick_holds() {
    let (outcome, memory) = run_scripted(5, Overrun::Hold, &[(1, 1.0), (2, 1.0)], &[]);
    let actions = memory
        .periods
        .iter()
        .map(|period| period.1)
        .collect::<Vec<_>>();
    assert_eq!(
        (actions, outcome.metrics.deadline_misses),
        (vec![1, 1, 2, 4, 5], 2)
    );
}

#[test]
fn an_overrun_may_ask_for_the_safe_action_and_never_outlasts_the_run() {
    let (outcome, memory) = run_scripted(4, Overrun::Safe, &[(1, 9.0)], &[]);
    let actions = memory
        .periods
        .iter()
        .map(|period| period.1)
        .collect::<Vec<_>>();
    assert_eq!(
        (actions, outcome.metrics.deadline_misses),
        (vec![1, 0, 0, 0], 3)
    );
}

/// Answers n + 1 to tick n, except to every third from the first on, whose answers it still
/// computes.
#[derive(Default)]
struct Slow {
    tick: u64,
}

impl Brain for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn tick(&mut self, _observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.tick += 1;
        if self.unanswered_ticks() == 0 {
            action[0] = self.tick as f32 / 100.0;
        }
        Ok(RunStats::default())
    }

    fn unanswered_ticks(&self) -> u64 {
        u64::from(self.tick % 3 == 1)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _snapshot: &Snapshot) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_tick_whose_answer_is_still_computed_is_a_deadline_miss_as_a_late_one() {
    let cpu = Device::open("cpu").expect("always there");
    for (overrun, actions) in [
        (Overrun::Hold, [0, 2, 3, 3, 5, 6, 6]),
        (Overrun::Safe, [0, 2, 3, 0, 5, 6, 0]),
    ] {
        let plant = body("pendulum", Some(Start::Hanging)).expect("known");
        let settings = LoopSettings {
            overrun,
            ..settings(7, plant.spec().dt_s)
        };
        let mut closed_loop =
            ClosedLoop::new(plant, Box::new(Slow::default()), &settings, &cpu).expect("cpu");
        let mut memory = Memory::default();
        let outcome = closed_loop.run(&mut SimClock::new(), &mut memory, &mut go_on);
        let expected = actions
            .into_iter()
            .enumerate()
            .map(|(tick, action)| (tick as u64, action, tick % 3 == 0, false));
        assert_eq!(memory.periods, expected.collect::<Vec<_>>(), "{overrun:?}");
        assert_eq!(
            (outcome.metrics.deadline_misses, outcome.metrics.fallbacks),
            (3, 0)
        );
    }
}

#[test]
fn faults_get_the_safe_action_and_a_place_in_the_receipt() {
    // Answers 1 and 3 are NaN and reset the script to its beginning; the error between them does
    // not.
    let (outcome, memory) = run_scripted(
        7,
        Overrun::Hold,
        &[],
        &[(1, None), (2, Some(ErrorKind::Invalid)), (3, None)],
    );
    let expected = [
        (1, false),
        (0, true),
        (1, false),
        (2, false),
        (0, true),
        (0, true),
        (1, false),
    ];
    assert_eq!(
        memory
            .periods
            .iter()
            .map(|period| (period.1, period.3))
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(outcome.metrics.fallbacks, 3);
    let reasons = outcome
        .receipt
        .fallbacks
        .iter()
        .map(|fallback| (fallback.reason.as_str(), fallback.count))
        .collect::<Vec<_>>();
    assert_eq!(
        reasons,
        [
            ("the brain's action is not finite", 2),
            ("scripted fault", 1)
        ]
    );
    let recoveries = outcome
        .receipt
        .recoveries
        .iter()
        .map(|recovery| (recovery.tick, recovery.resumed_at_tick, recovery.ticks_lost));
    assert_eq!(
        recoveries.collect::<Vec<_>>(),
        [(1, Some(2), 2), (5, Some(6), 6)]
    );
    assert!(matches!(outcome.end, End::Completed));
}

#[test]
fn a_lost_device_that_cannot_be_replaced_ends_the_run_after_the_safe_action_and_the_receipt_says_where()
 {
    let (outcome, memory) =
        run_scripted(5, Overrun::Hold, &[], &[(2, Some(ErrorKind::DeviceLost))]);
    assert_eq!(memory.periods.last(), Some(&(2, 0, false, true)));
    assert!(matches!(&outcome.end, End::Failed(error) if error.kind() == ErrorKind::DeviceLost));
    let last = outcome.receipt.fallbacks.last().expect("noted");
    assert_eq!(
        (last.what.as_str(), last.reason.as_str()),
        ("run stopped at tick 3", "scripted fault")
    );
    assert_eq!(
        (memory.snapshots.len(), outcome.receipt.recovery_count),
        (1, 0)
    );
}

#[test]
fn a_sink_that_fails_ends_the_run_and_a_watcher_may_interrupt_it() {
    let plant = || body("pendulum", None).expect("known");
    let cpu = Device::open("cpu").expect("always there");
    let make = || {
        let zero = tectum_control::brain::zero::Zero::new(plant().spec());
        ClosedLoop::new(plant(), Box::new(zero), &settings(9, 0.05), &cpu).expect("cpu")
    };
    let mut full = Memory {
        fails_at: Some(4),
        ..Memory::default()
    };
    let outcome = make().run(&mut SimClock::new(), &mut full, &mut go_on);
    assert!(matches!(&outcome.end, End::Failed(error) if error.to_string() == "disk full"));
    assert_eq!(outcome.metrics.ticks, 4);
    let mut stop = |progress: &tectum_control::closed_loop::Progress| match progress.tick {
        3 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let outcome = make().run(&mut SimClock::new(), &mut Memory::default(), &mut stop);
    assert!(matches!(outcome.end, End::Interrupted) && outcome.metrics.ticks == 3);
}

#[test]
fn a_fallen_cart_pole_begins_again_from_the_next_seed() {
    let plant = body("cart_pole", None).expect("known");
    let mut start = body("cart_pole", None).expect("known");
    let push = Stateless::new("push", |_, action| action.fill(10.0));
    let cpu = Device::open("cpu").expect("always there");
    let mut closed_loop =
        ClosedLoop::new(plant, Box::new(push), &settings(60, 0.02), &cpu).expect("cpu");
    let mut memory = Memory::default();
    let outcome = closed_loop.run(&mut SimClock::new(), &mut memory, &mut go_on);
    // A constant push topples the pole in about ten steps, each worth 1 up to and with the last.
    assert!(
        (5..=9).contains(&outcome.metrics.episodes),
        "{}",
        outcome.metrics.episodes
    );
    assert_eq!(outcome.metrics.total_reward, 60.0);
    let ends = memory
        .lines
        .iter()
        .position(|line| line.contains("terminated: true"))
        .expect("it falls");
    start.reset(2);
    let mut observation = [0.0f32; 4];
    start.observe(&mut observation);
    assert!(
        memory.lines[ends + 1].contains(&format!("observation: {observation:?}")),
        "{}",
        memory.lines[ends + 1]
    );
}

/// Every brain that needs no training; one row for each.
const PAIRS: [(&str, &str); 9] = [
    ("rig", "mppi"),
    ("pendulum", "mppi"),
    ("cart_pole", "mppi"),
    ("rig", "zero"),
    ("rig", "lqr"),
    ("pendulum", "zero"),
    ("pendulum", "lqr"),
    ("cart_pole", "zero"),
    ("cart_pole", "lqr"),
];

fn built(body: &str, brain: &str, seconds: f64, snapshot_every: u64) -> ClosedLoop {
    // A twin with too little training to balance, but enough to run.
    let settings = if brain == "mppi" {
        "samples = 64\n[brain.twin]\ntransitions = 400\nsteps = 20\n"
    } else {
        ""
    };
    let text = format!(
        "[body]\nname = {body:?}\n[brain]\nname = {brain:?}\n{settings}\
         [loop]\nseconds = {seconds:?}\nseed = 3\nclock = \"sim\"\nsnapshot_every = {snapshot_every}\n"
    );
    let scenario = Scenario::parse(&text, "test", "test").expect("correct");
    let cpu = Device::open("cpu").expect("always there");
    let plant = build_body(&scenario).expect("known");
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        &cpu,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("known");
    ClosedLoop::new(plant, brain, &scenario.run, &cpu).expect("cpu")
}

#[test]
fn same_seed_same_periods() {
    for (body, brain) in PAIRS {
        let mut runs = [Memory::default(), Memory::default()];
        for memory in &mut runs {
            built(body, brain, 5.0, 0)
                .run(&mut SimClock::new(), memory, &mut go_on)
                .into_result()
                .expect("runs");
        }
        assert_eq!(runs[0].lines, runs[1].lines, "{body} {brain}");
        assert_eq!(runs[0].snapshots, runs[1].snapshots, "{body} {brain}");
    }
}

#[test]
fn a_resumed_run_goes_on_as_if_it_had_never_stopped() {
    for (body, brain) in PAIRS {
        let mut whole = Memory::default();
        let outcome = built(body, brain, 5.0, 40).run(&mut SimClock::new(), &mut whole, &mut go_on);
        let mut closed_loop = built(body, brain, 5.0, 40);
        // Seven come before that of tick 40: after 0, 1, 2, 4, 8, 16 and 32 ticks, in the resumed
        // run from tick 40 on.
        closed_loop
            .restore(&whole.snapshots[7])
            .expect("its own snapshot");
        let mut rest = Memory::default();
        let resumed = closed_loop.run(&mut SimClock::new(), &mut rest, &mut go_on);
        assert_eq!(rest.lines, whole.lines[40..], "{body} {brain}");
        assert_eq!(rest.snapshots[0], whole.snapshots[7], "{body} {brain}");
        assert_eq!(rest.snapshots[7..], whole.snapshots[8..], "{body} {brain}");
        assert_eq!(resumed.metrics, outcome.metrics, "{body} {brain}");
        let done =
            built(body, brain, 5.0, 40).restore(whole.snapshots.last().expect("one at the end"));
        assert!(
            done.expect_err("nothing left")
                .to_string()
                .contains("a larger --seconds continues it")
        );
    }
}

#[test]
fn a_snapshot_of_another_pair_is_refused() {
    let snapshot = built("rig", "lqr", 1.0, 0).snapshot().expect("host arrays");
    for (body, brain) in [("pendulum", "lqr"), ("cart_pole", "zero")] {
        let error = built(body, brain, 1.0, 0)
            .restore(&snapshot)
            .expect_err("another body");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    }
}

#[test]
fn a_brain_whose_training_is_broken_off_is_not_made() {
    let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"mppi\"\nsamples = 64\n[brain.twin]\ntransitions = 400\nsteps = 20\n[loop]\nseconds = 1\n";
    let scenario = Scenario::parse(text, "test", "test").expect("correct");
    let plant = build_body(&scenario).expect("known");
    let mut seen = 0;
    let mut watch = |progress: tectum::WorkProgress<'_>| {
        seen += 1;
        if progress.done == 7 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let error = build_brain(
        &scenario,
        plant.as_ref(),
        &Device::open("cpu").expect("always there"),
        &mut watch,
    )
    .err()
    .expect("broken off");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            tectum::ErrorKind::Cancelled,
            "training: broken off after 7 of 20".to_owned()
        )
    );
    assert_eq!(seen, 7);
}
