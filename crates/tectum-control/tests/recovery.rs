//! The recovery from each fault: the safe action, then the CPU with the host's last state, and the
//! ticks that were lost.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tectum::snapshot::{Array, Snapshot};
use tectum::{Device, Error, Recovery, Result, RunStats};
use tectum_control::body::{Start, body};
use tectum_control::brain::{Brain, Rebuild};
use tectum_control::clock::{Clock, SimClock};
use tectum_control::closed_loop::{ClosedLoop, End, Fault, Outcome, Sink, TickRecord};
use tectum_control::scenario::build::{build_body, build_brain, build_task};
use tectum_control::scenario::{LoopSettings, Scenario};

/// Ticks of a run, the tick at which the faults occur, and the snapshot before it.
const TICKS: u64 = 50;
const STRUCK: u64 = 25;
const SAVED: u64 = 20;
/// Its number: snapshots before it are after 0, 1, 2, 4, 8 and 10 ticks.
const SAVED_NUMBER: usize = 6;
/// Periods that the loop waits for a late answer; the injected one takes one more.
const STALL: u64 = 10;

/// Keeps every period's observation and action, its marks, and the snapshots.
#[derive(Default)]
struct Memory {
    periods: Vec<(Vec<f32>, f32)>,
    held: Vec<bool>,
    fallback: Vec<bool>,
    snapshots: Vec<Snapshot>,
    /// Receives each tick as it passes.
    watch: Option<Box<dyn Fn(u64)>>,
}

impl Sink for Memory {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.periods
            .push((record.observation.to_vec(), record.action[0]));
        self.held.push(record.held);
        self.fallback.push(record.fallback);
        self.watch.iter().for_each(|watch| watch(record.tick));
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.snapshots.push(snapshot);
        Ok(())
    }
}

fn scenario(seconds: f64) -> Scenario {
    // A twin with too little training to balance, but enough to run.
    let text = format!(
        "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\nsamples = 64\n[brain.twin]\ntransitions = 400\nsteps = 20\n\
         [loop]\nseconds = {seconds:?}\nseed = 3\nclock = \"sim\"\nsnapshot_every = 10\nstall_periods = {STALL}\n"
    );
    Scenario::parse(&text, "test", "test").expect("correct")
}

fn brain(scenario: &Scenario, device: &Device) -> Box<dyn Brain> {
    let plant = build_body(scenario).expect("known");
    build_brain(
        scenario,
        plant.as_ref(),
        device,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("builds")
}

fn run(scenario: &Scenario, device: &Device, faults: &[&str]) -> (Outcome, Memory) {
    let plant = build_body(scenario).expect("known");
    let mut closed_loop =
        ClosedLoop::new(plant, brain(scenario, device), &scenario.run, device).expect("opens");
    let faults = faults
        .iter()
        .map(|fault| fault.parse().expect("known"))
        .collect::<Vec<Fault>>();
    closed_loop.inject(&faults).expect("within the run");
    let mut memory = Memory::default();
    let outcome = closed_loop.run(&mut SimClock::new(), &mut memory, &mut |_| {
        ControlFlow::Continue(())
    });
    (outcome, memory)
}

/// A fault, whether the CPU's brain keeps its state, and the first tick that is answered again.
const FAULTS: [(&str, &str, bool, u64); 3] = [
    (
        "device-lost@1.0",
        "the device is reported lost",
        false,
        STRUCK + 1,
    ),
    ("nan@1.0", "not finite", false, STRUCK + 1),
    (
        "slow@1.0",
        "10 or more periods late",
        true,
        STRUCK + STALL + 1,
    ),
];

#[test]
fn every_injected_fault_ends_with_the_safe_action_and_the_cpu_on_every_device() {
    let scenario = scenario(2.0);
    let cpu = Device::open("cpu").expect("always there");
    for id in ["cpu", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: recovery from it");
            continue;
        };
        for (fault, reason, keeps_state, resumed) in FAULTS {
            let (outcome, memory) = run(&scenario, &device, &[fault]);
            assert!(
                matches!(outcome.end, End::Completed) && outcome.metrics.ticks == TICKS,
                "{id} {fault}"
            );
            let receipt = &outcome.receipt;
            let snapshot_tick = if keeps_state && id == "cpu" {
                STRUCK + 1
            } else {
                SAVED
            };
            let expected = Recovery {
                tick: STRUCK,
                reason: receipt
                    .recoveries
                    .first()
                    .map(|recovery| recovery.reason.clone())
                    .unwrap_or_default(),
                injected: true,
                from: Some(id.to_owned()),
                to: Some("cpu".to_owned()),
                snapshot_tick,
                resumed_at_tick: Some(resumed),
                ticks_lost: resumed - snapshot_tick,
                safe_ticks: 1,
            };
            assert_eq!(receipt.recoveries, [expected], "{id} {fault}");
            assert!(
                receipt.recoveries[0].reason.contains(reason),
                "{id} {fault}: {}",
                receipt.recoveries[0].reason
            );
            assert_eq!(
                (receipt.injected[0].tick, receipt.injected.len()),
                (Some(STRUCK), 1),
                "{id} {fault}"
            );
            assert!(
                receipt
                    .fallbacks
                    .iter()
                    .any(|fallback| fallback.reason.contains(reason)),
                "{id} {fault}"
            );
            assert_eq!(
                outcome.device_at_end.as_deref(),
                Some("cpu"),
                "{id} {fault}"
            );

            // The safe action of the rig is 0 volts; only the last period without an answer is
            // certain to have it.
            let last_unanswered = resumed as usize - 1;
            assert_eq!(memory.periods[last_unanswered].1, 0.0, "{id} {fault}");
            assert_eq!(
                memory.held.iter().filter(|held| **held).count() as u64,
                resumed - STRUCK - u64::from(!keeps_state),
                "{id} {fault}"
            );
            // Launches after the move are counted as run on another device.
            let elsewhere = receipt.totals.fallbacks > 0;
            assert_eq!(elsewhere, id != "cpu", "{id} {fault}");

            // The first answer is the CPU brain's answer from the snapshot, bit for bit.
            if snapshot_tick == SAVED {
                let mut again = brain(&scenario, &cpu);
                again
                    .restore(&memory.snapshots[SAVED_NUMBER].part("brain"))
                    .expect("its own");
                let mut action = [0.0f32];
                again
                    .tick(&memory.periods[resumed as usize].0, &mut action)
                    .expect("runs");
                let given = memory.periods[resumed as usize].1;
                assert_eq!(
                    action[0].clamp(-5.0, 5.0).to_bits(),
                    given.to_bits(),
                    "{id} {fault}"
                );
            }
        }
    }
}

/// Blind periods get the safe action; a repeated reading is answered, for nothing shows that it is
/// one.
#[test]
fn faults_of_the_sensors_last_ten_periods() {
    let scenario = scenario(2.0);
    let cpu = Device::open("cpu").expect("always there");
    let (outcome, memory) = run(&scenario, &cpu, &["sensor-lost@1"]);
    let blind = STRUCK..STRUCK + 10;
    let recovery = outcome.receipt.recoveries.first().expect("one");
    assert_eq!(
        (
            recovery.tick,
            recovery.resumed_at_tick,
            recovery.ticks_lost,
            recovery.safe_ticks
        ),
        (STRUCK, Some(STRUCK + 10), 10, 10)
    );
    assert_eq!(
        (recovery.reason.as_str(), recovery.injected),
        ("the reading of la_position is not finite", true)
    );
    assert_eq!(
        (
            outcome.metrics.fallbacks,
            outcome.receipt.recoveries.len(),
            outcome.receipt.injected[0].tick
        ),
        (10, 1, Some(STRUCK))
    );
    for (tick, fallback) in (0..).zip(&memory.fallback) {
        assert_eq!(*fallback, blind.contains(&tick), "{tick}");
        assert!(
            !fallback || memory.periods[tick as usize].1 == 0.0,
            "{tick}"
        );
    }
    let (stuck, told) = run(&scenario, &cpu, &["sensor-stuck@1"]);
    assert_eq!(
        (
            stuck.metrics.fallbacks,
            stuck.receipt.recoveries.len(),
            stuck.receipt.injected[0].tick
        ),
        (0, 0, Some(STRUCK))
    );
    // The recording has the body's true motion, and until the second stuck period nothing differs.
    let (_, undisturbed) = run(&scenario, &cpu, &[]);
    let same = told
        .periods
        .iter()
        .zip(&undisturbed.periods)
        .take_while(|(a, b)| a == b)
        .count() as u64;
    assert_eq!(same, STRUCK + 1);
}

/// On the rig, after swing-up: after any temporary fault, the pole is upright again at the end.
#[test]
fn the_pole_is_upright_again_after_every_injected_fault() {
    let text = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\n[loop]\nseconds = 45\nseed = 1\nclock = \"sim\"\nsnapshot_every = 250\n";
    let scenario = Scenario::parse(text, "test", "test").expect("correct");
    let cpu = Device::open("cpu").expect("always there");
    let spare = brain(&scenario, &cpu);
    for fault in [
        "device-lost@20",
        "nan@20",
        "slow@20",
        "sensor-lost@20",
        "sensor-stuck@20",
        "sensor-outlier@20",
    ] {
        let brain = spare.rebuild().expect("it can be made again")(&cpu).expect("compiles");
        let mut closed_loop = ClosedLoop::new(
            build_body(&scenario).expect("known"),
            brain,
            &scenario.run,
            &cpu,
        )
        .expect("opens");
        closed_loop.set_task(build_task(&scenario).expect("known"));
        closed_loop
            .inject(&[fault.parse().expect("known")])
            .expect("within the run");
        let (mut upright, mut last) = (Vec::new(), 0.0);
        let outcome = closed_loop.run(
            &mut SimClock::new(),
            &mut Memory::default(),
            &mut |progress| {
                last = progress.measure;
                upright.push(progress.measure.abs() < 10f64.to_radians());
                ControlFlow::Continue(())
            },
        );
        let struck = outcome.receipt.injected[0].tick.expect("it strikes") as usize;
        let since = upright.iter().rev().take_while(|upright| **upright).count();
        println!(
            "{fault}: upright again for the last {since} of {} periods",
            upright.len() - struck
        );
        assert!(
            upright[struck - 25..struck].iter().all(|upright| *upright),
            "{fault}: not upright before it"
        );
        assert!(
            since >= 50,
            "{fault}: upright for {since} periods at the end, at {last} rad"
        );
        let recoveries = &outcome.receipt.recoveries;
        assert!(
            recoveries
                .iter()
                .all(|recovery| recovery.resumed_at_tick.is_some()),
            "{fault}: {recoveries:?}"
        );
    }
}

#[test]
fn faults_follow_each_other_and_those_past_the_end_are_refused() {
    let scenario = scenario(2.0);
    let cpu = Device::open("cpu").expect("always there");
    let (outcome, _) = run(&scenario, &cpu, &["nan@0", "device-lost@0", "nan@1.96"]);
    let ticks = outcome
        .receipt
        .recoveries
        .iter()
        .map(|recovery| (recovery.tick, recovery.resumed_at_tick))
        .collect::<Vec<_>>();
    assert_eq!(ticks, [(0, Some(1)), (1, Some(2)), (49, None)]);
    assert_eq!(outcome.receipt.recoveries[2].ticks_lost, 10);
    let plant = build_body(&scenario).expect("known");
    let mut closed_loop =
        ClosedLoop::new(plant, brain(&scenario, &cpu), &scenario.run, &cpu).expect("opens");
    let late = closed_loop
        .inject(&["nan@2".parse().expect("known")])
        .expect_err("the run ends then")
        .to_string();
    assert_eq!(late, "inject nan@2: the run ends at 2 s");
}

#[test]
fn faults_are_read_as_they_are_written() {
    for text in [
        "device-lost@0",
        "nan@2.5",
        "slow@0.04",
        "sensor-lost@0.4",
        "sensor-stuck@1",
        "sensor-outlier@1",
        "stop@2",
    ] {
        assert_eq!(text.parse::<Fault>().expect("known").to_string(), text);
    }
    for text in [
        "",
        "@",
        "nan",
        "nan@",
        "nan@x",
        "nan@-1",
        "nan@inf",
        "nan@nan",
        "lost@1",
        "device-lost @1",
    ] {
        let error = text.parse::<Fault>().expect_err(text).to_string();
        assert!(
            error.contains(&format!("{text:?}: expected one of device-lost@T, nan@T, slow@T, sensor-lost@T, sensor-stuck@T, sensor-outlier@T, stop@T")),
            "{error}"
        );
    }
}

/// Answers 1; its state or its device fails where requested. Rebuilt, it waits until it is let go.
#[derive(Clone, Default)]
struct Frail {
    state_fails: bool,
    lost_at: Option<u64>,
    tick: u64,
    may_build: Arc<AtomicBool>,
    is_built: Arc<AtomicBool>,
    building_fails: bool,
}

impl Brain for Frail {
    fn name(&self) -> &'static str {
        "frail"
    }

    fn tick(&mut self, _: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.tick += 1;
        if self.lost_at == Some(self.tick - 1) {
            return Err(Error::device_lost("gone"));
        }
        action[0] = 1.0;
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        let fails = self.state_fails && self.tick == 4;
        snapshot.insert("x", Array::F32(vec![if fails { f32::NAN } else { 0.5 }]));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.tick = 0;
        assert_eq!(snapshot.f32("x", 1)?, [0.5]);
        Ok(())
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let next = Frail {
            lost_at: None,
            ..self.clone()
        };
        Some(Box::new(move |_| {
            while !next.may_build.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            next.is_built.store(true, Ordering::Release);
            if next.building_fails {
                Err(Error::unsupported("no room"))
            } else {
                Ok(Box::new(next))
            }
        }))
    }
}

/// A clock that waits no time but calls itself real.
#[derive(Default)]
struct SwiftClock(AtomicU64);

impl Clock for SwiftClock {
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

fn run_frail(frail: &Frail, clock: &mut dyn Clock, memory: &mut Memory) -> Outcome {
    let plant = body("pendulum", Some(Start::Hanging)).expect("known");
    let settings = LoopSettings {
        seconds: 100.0 * plant.spec().dt_s,
        snapshot_every: 2,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always there");
    let mut closed_loop =
        ClosedLoop::new(plant, Box::new(frail.clone()), &settings, &cpu).expect("cpu");
    closed_loop.run(clock, memory, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn under_a_real_clock_the_loop_goes_on_with_safe_actions_while_the_brain_is_built() {
    let frail = Frail {
        lost_at: Some(5),
        ..Frail::default()
    };
    let (may_build, is_built) = (frail.may_build.clone(), frail.is_built.clone());
    let watch = move |tick| {
        // Ticks 5 to 9 pass before the rebuild even starts.
        if tick == 9 {
            may_build.store(true, Ordering::Release);
            while !is_built.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        } else if tick > 9 {
            // Gives the rebuilt brain time to arrive before the run is over.
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    };
    let mut memory = Memory {
        watch: Some(Box::new(watch)),
        ..Memory::default()
    };
    let outcome = run_frail(&frail, &mut SwiftClock::default(), &mut memory);
    assert!(
        memory.fallback[5..=9].iter().all(|fallback| *fallback)
            && memory.periods[5..=9]
                .iter()
                .all(|(_, action)| *action == 0.0)
    );
    let recovery = &outcome.receipt.recoveries[0];
    let resumed = recovery.resumed_at_tick.expect("it arrives");
    assert!(
        resumed >= 10 && recovery.safe_ticks == resumed - 5 && recovery.ticks_lost == resumed - 4,
        "{recovery:?}"
    );
    assert_eq!(memory.periods.last().expect("100 of them").1, 1.0);
}

#[test]
fn a_state_with_nan_is_not_saved_and_the_one_before_comes_back() {
    let frail = Frail {
        state_fails: true,
        ..Frail::default()
    };
    let mut memory = Memory::default();
    let outcome = run_frail(&frail, &mut SimClock::new(), &mut memory);
    let recovery = &outcome.receipt.recoveries[0];
    assert_eq!(
        (
            recovery.tick,
            recovery.snapshot_tick,
            recovery.resumed_at_tick,
            recovery.safe_ticks
        ),
        (4, 2, Some(4), 0)
    );
    assert!(
        recovery.reason.contains("not a number in x"),
        "{}",
        recovery.reason
    );
    assert!(
        memory
            .snapshots
            .iter()
            .rev()
            .skip(1)
            .all(|snapshot| snapshot.nan_in().is_none())
    );
}

#[test]
fn a_brain_that_cannot_be_built_again_ends_the_run_with_the_reason() {
    let frail = Frail {
        lost_at: Some(5),
        building_fails: true,
        ..Frail::default()
    };
    frail.may_build.store(true, Ordering::Release);
    let mut memory = Memory::default();
    let outcome = run_frail(&frail, &mut SimClock::new(), &mut memory);
    assert!(
        matches!(&outcome.end, End::Failed(error) if error.to_string() == "brain frail on cpu: no room"),
        "{:?}",
        outcome.end
    );
    assert_eq!(
        (outcome.metrics.ticks, memory.fallback[5..].to_vec()),
        (7, vec![true, true])
    );
    assert_eq!(outcome.receipt.recoveries[0].resumed_at_tick, None);
}
