//! Readings under guard in the closed loop: outliers do no harm, limits and the switch stop it to
//! the end.

use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result};
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Outcome, Sink, TickRecord};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{build_body, build_brain, build_stand_in, build_task};

/// Every period's action and angle, whether it was a fallback, and the snapshots.
#[derive(Default)]
struct Memory {
    periods: Vec<(f32, f64, bool)>,
    snapshots: Vec<Snapshot>,
}

impl Sink for Memory {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.periods
            .push((record.action[0], record.measure, record.fallback));
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.snapshots.push(snapshot);
        Ok(())
    }
}

fn scenario(more: &str) -> Scenario {
    let text = format!(
        "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 30\nseed = 2\nclock = \"sim\"\nsnapshot_every = 100\nstand_in = \"lqr\"\n{more}"
    );
    Scenario::parse(&text, "test", "test").expect("correct")
}

fn closed_loop(scenario: &Scenario) -> ClosedLoop {
    let cpu = Device::open("cpu").expect("always there");
    let body = build_body(scenario).expect("known");
    let brain = build_brain(
        scenario,
        body.as_ref(),
        &cpu,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("builds");
    let stand_in = build_stand_in(scenario, body.as_ref())
        .expect("known")
        .expect("there is one");
    let mut closed_loop = ClosedLoop::new(body, brain, &scenario.run, &cpu)
        .expect("opens")
        .with_stand_in(stand_in);
    closed_loop.set_task(build_task(scenario).expect("known"));
    closed_loop
}

fn run(scenario: &Scenario, faults: &[&str]) -> (Outcome, Memory) {
    let (mut closed_loop, mut memory) = (closed_loop(scenario), Memory::default());
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| fault.parse().expect("known"))
        .collect();
    closed_loop.inject(&faults).expect("within the run");
    let outcome = closed_loop.run(&mut SimClock::new(), &mut memory, &mut |_| {
        ControlFlow::Continue(())
    });
    (outcome, memory)
}

const OUTLIERS: &str = "[loop.guard.pend_position]\noutlier_threshold = 60.0\n[loop.guard.pend_velocity]\noutlier_threshold = 400.0\n[loop.guard.la_position]\noutlier_threshold = 3.0\n";

#[test]
fn a_replaced_outlier_moves_nothing() {
    let worst = |memory: &Memory| {
        memory.periods[500..]
            .iter()
            .fold(0.0f64, |worst, (_, angle, _)| worst.max(angle.abs()))
    };
    let (outcome, guarded) = run(&scenario(OUTLIERS), &["sensor-outlier@20"]);
    let (_, unguarded) = run(&scenario(""), &["sensor-outlier@20"]);
    let (_, undisturbed) = run(&scenario(""), &[]);
    println!(
        "at most {:.3} rad guarded, {:.3} unguarded, {:.3} undisturbed",
        worst(&guarded),
        worst(&unguarded),
        worst(&undisturbed)
    );
    assert!(
        worst(&guarded) < worst(&undisturbed) + 0.01
            && worst(&unguarded) > worst(&undisturbed) + 0.05
    );
    assert_eq!(
        guarded.periods[..500],
        undisturbed.periods[..500],
        "without an outlier nothing is taken out"
    );
    let told = outcome
        .receipt
        .fallbacks
        .iter()
        .filter(|fallback| fallback.what.starts_with("reading of "))
        .count();
    assert_eq!((told, outcome.stopped_at_tick), (3, None));
}

#[test]
fn beyond_a_limit_and_at_the_switch_the_body_gets_its_safe_action_to_the_end() {
    let limit = scenario("[loop.guard.pend_velocity]\nstop_beyond = 500.0\n");
    for (scenario, faults, reason) in [
        (limit, &[][..], "deg/s, beyond 500"),
        (scenario(""), &["stop@4"], "the switch was pressed"),
    ] {
        let (outcome, memory) = run(&scenario, faults);
        let stopped = outcome.stopped_at_tick.expect(reason) as usize;
        println!("stopped at tick {stopped}");
        assert!(
            memory.periods[..stopped]
                .iter()
                .all(|(_, _, fallback)| !fallback)
        );
        assert!(
            memory.periods[stopped..]
                .iter()
                .all(|(action, _, fallback)| *action == 0.0 && *fallback),
            "the stand-in does not answer either"
        );
        assert_eq!(
            (memory.periods.len(), outcome.metrics.fallbacks as usize),
            (750, 750 - stopped)
        );
        let told = outcome
            .receipt
            .fallbacks
            .iter()
            .find(|fallback| fallback.what == "emergency stop")
            .expect("it is reported");
        assert!(told.reason.ends_with(reason) && told.count == 1, "{told:?}");
        assert!(faults.is_empty() || outcome.receipt.injected[0].tick == Some(100));
    }
}

#[test]
fn the_switch_stops_from_anywhere() {
    let scenario = scenario("");
    let (mut closed_loop, mut memory) = (closed_loop(&scenario), Memory::default());
    let switch = closed_loop.stop_switch();
    let outcome = closed_loop.run(&mut SimClock::new(), &mut memory, &mut |progress| {
        if progress.tick == 40 {
            std::thread::spawn({
                let switch = switch.clone();
                move || switch.press()
            })
            .join()
            .expect("it presses");
        }
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.stopped_at_tick, Some(40));
}

#[test]
fn a_guarded_run_resumes_bit_for_bit_between_two_outliers() {
    let noisy = format!("{OUTLIERS}[body.disturbances]\noutlier_fraction = 0.1\n");
    let scenario = scenario(&noisy);
    let (outcome, whole) = run(&scenario, &[]);
    let outliers: u64 = outcome
        .receipt
        .fallbacks
        .iter()
        .map(|fallback| fallback.count)
        .sum();
    assert!(outliers > 20, "{outliers} outliers of 750 readings");
    // Eight early snapshots come before that of tick 100.
    for (index, snapshot) in whole.snapshots[8..].iter().enumerate().take(7) {
        let (mut resumed, mut memory) = (closed_loop(&scenario), Memory::default());
        assert_eq!(
            resumed.restore(snapshot).expect("its own"),
            100 * (index as u64 + 1)
        );
        resumed
            .run(&mut SimClock::new(), &mut memory, &mut |_| {
                ControlFlow::Continue(())
            })
            .into_result()
            .expect("runs");
        assert_eq!(
            memory.periods,
            whole.periods[100 * (index + 1)..],
            "from snapshot {index}"
        );
    }
}

#[test]
fn a_channel_that_the_body_has_not_is_refused_where_it_stands() {
    let refused = |more: &str| {
        Scenario::parse(
            &format!("[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n{more}"),
            "a",
            "a",
        )
        .expect_err("refused")
        .to_string()
    };
    assert!(
        refused("[loop.guard.pole]\noutlier_threshold = 1.0\n")
            .starts_with("a:5: unknown table [loop.guard.pole]; known: la_position")
    );
    assert!(
        refused("[loop.guard.pend_position]\noutlier_threshold = -1.0\n")
            .starts_with("a:6: outlier_threshold is -1.0, needs a number above 0")
    );
    assert!(
        refused("[loop]\nclock = \"sim\"\npriority = 5\n")
            .starts_with("a:7: \"priority\" has no effect: under clock \"sim\"")
    );
    assert!(
        refused("[loop]\npriority = 100\n")
            .starts_with("a:6: priority is 100, needs a whole number from 1 to 99")
    );
    assert!(
        refused("[loop]\nlock_memory = 1\n")
            .starts_with("a:6: lock_memory is 1, needs true or false")
    );
    // A written scenario is read back.
    let scenario = scenario(OUTLIERS);
    let text = scenario.to_toml().expect("it has a form");
    assert_eq!(Scenario::parse(&text, "b", "test").expect(&text), scenario);
    let real = Scenario::parse("[body]\nname = \"rig\"\n[brain]\nname = \"mpc\"\n[loop]\npriority = 5\nlock_memory = true\n", "c", "c").expect("correct");
    assert_eq!(
        Scenario::parse(&real.to_toml().expect("it has a form"), "c", "c").expect("its own"),
        real
    );
}

#[test]
fn defect_08_every_fault_of_a_tick_is_in_the_receipt() {
    let (outcome, _) = run(
        &scenario(""),
        &[
            "sensor-outlier@4",
            "sensor-stuck@4",
            "sensor-lost@4",
            "sensor-outlier@4",
        ],
    );
    let faults: Vec<_> = outcome
        .receipt
        .injected
        .iter()
        .map(|injected| (injected.fault.as_str(), injected.tick))
        .collect();
    assert_eq!(
        faults,
        [
            "sensor-outlier@4",
            "sensor-stuck@4",
            "sensor-lost@4",
            "sensor-outlier@4"
        ]
        .map(|fault| (fault, Some(100)))
    );
}
