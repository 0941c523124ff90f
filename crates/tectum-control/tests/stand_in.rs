//! The fallback between a brain and the safe action: a regulator that follows every period and
//! answers where the brain cannot.

use std::ops::ControlFlow;
use std::time::Duration;

use tectum::snapshot::Snapshot;
use tectum::{Device, Error, Result, RunStats};
use tectum_control::body::body;
use tectum_control::brain::lqr::Lqr;
use tectum_control::brain::{Brain, Rebuild};
use tectum_control::clock::{Clock, RealClock, SimClock};
use tectum_control::closed_loop::{ClosedLoop, End, Outcome, Sink, TickRecord};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{build_body, build_brain, build_stand_in, build_task};

/// Actions and marks of every period, and the snapshots.
#[derive(Default)]
struct Memory {
    actions: Vec<f32>,
    fallback: Vec<bool>,
    upright: Vec<bool>,
    snapshots: Vec<Snapshot>,
}

impl Sink for Memory {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.actions.push(record.action[0]);
        self.fallback.push(record.fallback);
        self.upright.push(record.measure.abs() < 10f64.to_radians());
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.snapshots.push(snapshot);
        Ok(())
    }
}

/// A regulator whose device is lost at a tick; rebuilt, if it can be, only after a while.
struct Doomed {
    inner: Lqr,
    left: u32,
    pause: Option<Duration>,
}

fn doomed(left: u32, pause: Option<Duration>) -> Doomed {
    Doomed {
        inner: Lqr::new(body("rig", None).expect("known")).expect("the rig"),
        left,
        pause,
    }
}

impl Brain for Doomed {
    fn name(&self) -> &'static str {
        "doomed"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| Error::device_lost("gone"))?;
        Brain::tick(&mut self.inner, observation, action)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.inner.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.inner.restore(snapshot)
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let pause = self.pause?;
        Some(Box::new(move |_| {
            std::thread::sleep(pause);
            Ok(Box::new(doomed(u32::MAX, None)))
        }))
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test", "test").expect("correct")
}

fn rig(seconds: f64, stand_in: &str) -> Scenario {
    scenario(&format!(
        "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = {seconds:?}\nseed = 1\nclock = \"sim\"\nsnapshot_every = 50\n{stand_in}"
    ))
}

fn run(scenario: &Scenario, brain: Box<dyn Brain>, clock: &mut dyn Clock) -> (Outcome, Memory) {
    let plant = build_body(scenario).expect("known");
    let stand_in = build_stand_in(scenario, plant.as_ref()).expect("of the rig");
    let mut closed_loop = ClosedLoop::new(
        plant,
        brain,
        &scenario.run,
        &Device::open("cpu").expect("always there"),
    )
    .expect("opens");
    closed_loop.set_task(build_task(scenario).expect("known"));
    let mut closed_loop = stand_in
        .into_iter()
        .fold(closed_loop, ClosedLoop::with_stand_in);
    let mut memory = Memory::default();
    let outcome = closed_loop.run(clock, &mut memory, &mut |_| ControlFlow::Continue(()));
    (outcome, memory)
}

#[test]
fn a_brain_that_is_lost_for_good_leaves_the_pole_to_the_stand_in() {
    let lost = 300;
    for name in ["lqr", "adaptive"] {
        let (outcome, memory) = run(
            &rig(30.0, &format!("stand_in = \"{name}\"\n")),
            Box::new(doomed(lost, None)),
            &mut SimClock::new(),
        );
        assert!(
            matches!(outcome.end, End::Completed),
            "{name}: {:?}",
            outcome.end
        );
        assert_eq!(outcome.metrics.fallbacks, 750 - u64::from(lost), "{name}");
        let (before, after) = memory.upright.split_at(lost as usize);
        assert!(
            before[200..].iter().all(|upright| *upright),
            "{name}: balanced by the brain"
        );
        assert!(
            after.iter().all(|upright| *upright),
            "{name}: and by the stand-in, from the tick that failed on"
        );
        assert!(
            memory.fallback[lost as usize..]
                .iter()
                .all(|fallback| *fallback)
        );
        let said: Vec<&str> = outcome
            .receipt
            .fallbacks
            .iter()
            .map(|fallback| fallback.what.as_str())
            .collect();
        assert!(
            said.contains(&format!("stand-in {name}").as_str())
                && said.contains(&format!("stand-in {name} to the end").as_str()),
            "{said:?}"
        );
    }
    let (outcome, memory) = run(
        &rig(30.0, ""),
        Box::new(doomed(lost, None)),
        &mut SimClock::new(),
    );
    assert!(matches!(outcome.end, End::Failed(_)) && memory.actions.len() == lost as usize + 1);
}

#[test]
fn the_stand_in_answers_while_the_brain_is_rebuilt() {
    let (outcome, memory) = run(
        &rig(2.0, "stand_in = \"lqr\"\n"),
        Box::new(doomed(10, Some(Duration::from_millis(400)))),
        &mut RealClock::new(),
    );
    assert!(matches!(outcome.end, End::Completed));
    let stood_in: Vec<f32> = memory
        .actions
        .iter()
        .zip(&memory.fallback)
        .filter(|(_, fallback)| **fallback)
        .map(|(action, _)| *action)
        .collect();
    // 0.4 s are ten periods; some may have been missed on a busy machine.
    assert!(stood_in.len() > 1, "{stood_in:?}");
    assert!(
        stood_in.iter().any(|action| action.abs() > 0.5),
        "it pumps: {stood_in:?}"
    );
    assert!(
        !memory.fallback[memory.fallback.len() - 1],
        "the brain answers again"
    );
    assert_eq!(outcome.receipt.recoveries.len(), 1);
}

#[test]
fn the_tick_that_fails_has_the_regulators_answer() {
    let text = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\nsamples = 64\n[brain.twin]\ntransitions = 400\nsteps = 20\n\
                [loop]\nseconds = 2\nseed = 3\nclock = \"sim\"\nstand_in = \"lqr\"\n";
    let scenario = scenario(text);
    let plant = build_body(&scenario).expect("known");
    let cpu = Device::open("cpu").expect("always there");
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        &cpu,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("builds");
    let stand_in = build_stand_in(&scenario, plant.as_ref())
        .expect("known")
        .expect("there is one");
    let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu)
        .expect("opens")
        .with_stand_in(stand_in);
    let faults = ["nan@1", "sensor-lost@1.4"].map(|fault| fault.parse().expect("known"));
    closed_loop.inject(&faults).expect("within the run");
    let mut memory = Memory::default();
    closed_loop
        .run(&mut SimClock::new(), &mut memory, &mut |_| {
            ControlFlow::Continue(())
        })
        .into_result()
        .expect("runs");
    let failed: Vec<usize> = (0..50).filter(|tick| memory.fallback[*tick]).collect();
    assert_eq!(
        failed,
        std::iter::once(25).chain(35..45).collect::<Vec<_>>()
    );
    assert!(memory.actions[25] != 0.0, "the stand-in's");
    assert!(
        memory.actions[35..45].iter().all(|action| *action == 0.0),
        "nobody knows anything then"
    );
}

#[test]
fn a_run_with_a_stand_in_resumes_exactly() {
    let scenario = rig(8.0, "stand_in = \"adaptive\"\n");
    let (_, whole) = run(&scenario, Box::new(doomed(120, None)), &mut SimClock::new());
    let plant = build_body(&scenario).expect("known");
    let stand_in = build_stand_in(&scenario, plant.as_ref())
        .expect("known")
        .expect("there is one");
    let closed_loop = ClosedLoop::new(
        plant,
        Box::new(doomed(20, None)),
        &scenario.run,
        &Device::open("cpu").expect("always there"),
    )
    .expect("opens");
    let mut closed_loop = closed_loop.with_stand_in(stand_in);
    // The snapshot before tick 100; 20 ticks later the brain is lost as before.
    assert_eq!(
        closed_loop.restore(&whole.snapshots[8]).expect("its own"),
        100
    );
    let mut rest = Memory::default();
    closed_loop
        .run(&mut SimClock::new(), &mut rest, &mut |_| {
            ControlFlow::Continue(())
        })
        .into_result()
        .expect("runs");
    assert_eq!(
        (&whole.actions[100..], &whole.fallback[100..]),
        (&rest.actions[..], &rest.fallback[..])
    );
    assert!(
        rest.fallback[20..].iter().all(|fallback| *fallback)
            && rest.actions[20..].iter().any(|action| *action != 0.0)
    );
}

/// The CPU must meet the period that the device was chosen for.
#[test]
fn a_rebuilt_controller_takes_fewer_samples_and_reports_it() {
    let text = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\nsamples = 2048\nhorizon = 4\n[brain.twin]\nhidden = [8]\ntransitions = 400\nsteps = 20\n\
                [loop]\nseconds = 0.4\nclock = \"sim\"\n";
    let scenario = scenario(text);
    let plant = build_body(&scenario).expect("known");
    let cpu = Device::open("cpu").expect("always there");
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        &cpu,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("builds");
    let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu).expect("opens");
    closed_loop
        .inject(&["device-lost@0.2".parse().expect("known")])
        .expect("within the run");
    let outcome = closed_loop.run(&mut SimClock::new(), &mut Memory::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(outcome.end, End::Completed));
    let said: Vec<(&str, &str)> = outcome
        .receipt
        .fallbacks
        .iter()
        .map(|fallback| (fallback.what.as_str(), fallback.reason.as_str()))
        .collect();
    assert!(
        said.contains(&("brain mppi on cpu", "1024 of 2048 samples")),
        "{said:?}"
    );
}
