//! A body whose observation comes from several processes.

use std::ops::ControlFlow;

use tectum::{Device, Result};
use tectum_control::body::link::LinkState::{Disarmed, Disconnected, Fresh, Held, Stale};
use tectum_control::body::{Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::Stateless;
use tectum_control::closed_loop::{ClosedLoop, End, Sink, TickRecord};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::build_body;

use crate::peer::{Drift, Order, Peer};
use crate::real_time::SAFE;

/// A sensor that counts its periods.
struct Counter {
    spec: BodySpec,
    count: u32,
}

impl Counter {
    fn new() -> Self {
        Self {
            spec: BodySpec {
                name: "counter".into(),
                dt_s: 0.02,
                observation: vec![ObservationChannel::new("count", "", 0.0..=1e6)],
                action: vec![],
                safe_action: vec![],
            },
            count: 0,
        }
    }
}

impl Body for Counter {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _: u64) {
        self.count = 0;
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.count as f32;
    }

    fn step(&mut self, _: &[f32]) -> Step {
        self.count += 1;
        Step::default()
    }
}

fn scenario(body: &Peer, sources: &[&Peer], clock: &str) -> Result<Scenario> {
    tectum_link::register(|_| {}).expect("once or again");
    let sources = sources.iter().map(|source| {
        let url = source.url();
        format!("[[body.source]]\nremote = \"{url}\"\n")
    });
    let text = format!(
        "[body]\nremote = \"{}\"\n{}[brain]\nname = \"zero\"\n[loop]\nseconds = 4\nclock = \"{clock}\"\nsnapshot_every = 0\n",
        body.url(),
        sources.collect::<String>()
    );
    Scenario::parse(&text, "a.toml", "a")
}

/// Periods: state, observation, action.
#[derive(Default)]
struct Periods(Vec<(tectum_control::body::link::LinkState, [f32; 2], f32)>);

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let state = record.link.expect("a body outside of the process").state;
        let observation = [record.observation[0], record.observation[1]];
        self.0.push((state, observation, record.action[0]));
        Ok(())
    }
}

fn run(scenario: &Scenario, at: &mut dyn FnMut(u64)) -> Periods {
    let mut body = build_body(scenario).expect("connected");
    body.reset(scenario.run.seed);
    let brain = Stateless::new("half", |_: &[f32], action: &mut [f32]| action.fill(0.5));
    let cpu = Device::open("cpu").expect("always");
    let closed_loop = ClosedLoop::new(body, Box::new(brain), &scenario.run, &cpu);
    let mut closed_loop = closed_loop.expect("they fit");
    let mut periods = Periods::default();
    let clock = scenario.run.clock;
    let outcome = closed_loop.run(clock.start().as_mut(), &mut periods, &mut |progress| {
        at(progress.tick);
        ControlFlow::Continue(())
    });
    assert!(matches!(outcome.end, End::Completed), "{:?}", outcome.end);
    periods
}

#[test]
fn sources_are_in_lockstep_with_the_body() {
    let body = Peer::listen(Box::new(Drift::new(0.02)));
    let source = Peer::listen(Box::new(Counter::new()));
    let scenario = scenario(&body, &[&source], "sim").expect("valid");
    let spec = scenario.body.model().expect("its constants").spec().clone();
    let names = spec.observation.iter().map(|own| own.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["position", "count"]);
    let periods = run(&scenario, &mut |_| {});
    let (mut drift, mut counter) = (Drift::new(0.02), Counter::new());
    drift.reset(scenario.run.seed);
    let mut seed = scenario.run.seed;
    for (tick, (_, found, _)) in periods.0.iter().enumerate() {
        let mut expected = [0.0; 2];
        drift.observe(&mut expected[..1]);
        counter.observe(&mut expected[1..]);
        assert_eq!(*found, expected, "tick {tick}");
        counter.step(&[]);
        if drift.step(&[0.5]).ends_episode() {
            seed += 1;
            drift.reset(seed);
            counter.reset(seed);
        }
    }
    assert_eq!(periods.0.len(), 200);
}

#[test]
fn a_source_that_is_silent_or_gone_stops_the_body_until_it_is_armed() {
    let body = Peer::listen(Box::new(Drift::new(0.02)));
    let source = Peer::listen(Box::new(Counter::new()));
    let scenario = scenario(&body, &[&source], "real").expect("valid");
    let periods = run(&scenario, &mut |tick| match tick {
        30 => source.order(Order::Mute(std::time::Duration::from_millis(300))),
        // The body arms itself and its source.
        80 => body.order(Order::Arm),
        110 => source.order(Order::Hang),
        170 => body.order(Order::Arm),
        _ => {}
    });
    let mut states: Vec<_> = periods.0.iter().map(|period| period.0).collect();
    for (state, _, action) in &periods.0 {
        let is_stopped = !matches!(state, Fresh | Held);
        assert!(!is_stopped || *action == SAFE, "{state:?}: {action}");
    }
    states.retain(|state| *state != Held);
    states.dedup();
    let place = |from: usize, state| states[from..].iter().position(|own| *own == state);
    let mut from = 0;
    for state in [Fresh, Stale, Disarmed, Fresh, Disconnected, Disarmed, Fresh] {
        let found = place(from, state);
        assert!(found.is_some(), "{state:?} after {from} in {states:?}");
        from += found.unwrap_or(0);
    }
    let actions = periods.0.iter().filter(|period| period.2 == 0.5);
    assert!(actions.count() > 20, "{states:?}");
}

#[test]
fn two_channels_of_one_name_are_refused() {
    let [body, source] = [(); 2].map(|()| Peer::listen(Box::new(Drift::new(0.02))));
    let error = scenario(&body, &[&source], "sim").expect_err("an action");
    let expected = format!(
        "a.toml:2: body {}: source {}: it has the action speed, a source has none",
        body.url(),
        source.url()
    );
    assert!(error.to_string().ends_with(&expected[10..]), "{error}");
}
