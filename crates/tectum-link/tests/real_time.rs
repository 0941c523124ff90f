//! A body in another process, in real time: what it gets when something is late, lost or stopped.
//!
//! The tests order events at periods of the loop and compare what both sides saw; none compares a
//! time with a fixed limit.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tectum::{Device, Result};
use tectum_control::body::link::{LinkState, LinkStatus, LinkSummary};
use tectum_control::body::{Body, BodySpec, Command, Step};
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Outcome, Sink, TickRecord};
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

use crate::peer::{Drift, Order, Peer, Received};

pub const DT_S: f64 = 0.02;
/// The action of the brain; the safe action of the body is 0.25.
pub const ACTION: f32 = 0.5;
pub const SAFE: f32 = 0.25;

/// What the loop recorded of each period: state, action, whether it was held, whether it was the
/// safe one without an answer.
#[derive(Default)]
pub struct Periods(pub Vec<(LinkState, f32, bool, bool)>);

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let state = record.link.expect("a body outside of the process").state;
        self.0
            .push((state, record.action[0], record.held, record.fallback));
        Ok(())
    }
}

impl Periods {
    /// The states, each once per streak.
    pub fn streaks(&self) -> Vec<LinkState> {
        let mut states: Vec<LinkState> = self.0.iter().map(|period| period.0).collect();
        states.dedup();
        states
    }

    /// The action fits the state in each period.
    fn check(&self) {
        for (tick, (state, action, held, fallback)) in self.0.iter().enumerate() {
            let expected = match state {
                LinkState::Fresh => (ACTION, false, false),
                LinkState::Held => (*action, true, false),
                _ => (SAFE, false, true),
            };
            let missed = (*action, true, false);
            let found = (*action, *held, *fallback);
            assert!(
                found == expected || found == missed,
                "tick {tick}: {state:?} {found:?}"
            );
        }
    }
}

struct Ran {
    outcome: Outcome,
    periods: Periods,
    link: LinkSummary,
    received: Vec<Received>,
}

/// Runs a body for some periods; `at` is called with the number of each.
fn run(peer: &Peer, ticks: u64, at: &mut dyn FnMut(u64, &Peer)) -> Ran {
    run_with(peer, ticks, at, |_| ACTION)
}

fn run_with(
    peer: &Peer,
    ticks: u64,
    at: &mut dyn FnMut(u64, &Peer),
    work: impl Fn(&[f32]) -> f32 + Send + 'static,
) -> Ran {
    let address = Address::parse(&peer.url()).expect("an address");
    let body =
        RemoteBody::open("drift", LinkSettings::new(Reach::Connect(address))).expect("it listens");
    let (outcome, periods) = run_loop(body, ticks, &mut |tick| at(tick, peer), work);
    let received = peer.received();
    let link = check_counts(&outcome, &periods, &received, ticks);
    Ran {
        outcome,
        periods,
        link,
        received,
    }
}

/// Runs the loop of a body with a brain of a law, and drops both: the end of the body.
pub fn run_loop(
    mut body: impl Body + 'static,
    ticks: u64,
    at: &mut dyn FnMut(u64),
    work: impl Fn(&[f32]) -> f32 + Send + 'static,
) -> (Outcome, Periods) {
    body.reset(0);
    let settings = LoopSettings {
        seconds: ticks as f64 * DT_S,
        clock: ClockKind::Real,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let brain = Stateless::new("law", move |reading: &[f32], action: &mut [f32]| {
        action.fill(work(reading));
    });
    let cpu = Device::open("cpu").expect("always");
    let mut closed_loop =
        ClosedLoop::new(Box::new(body), Box::new(brain), &settings, &cpu).expect("they fit");
    let mut periods = Periods::default();
    let outcome = closed_loop.run(
        ClockKind::Real.start().as_mut(),
        &mut periods,
        &mut |progress| {
            at(progress.tick);
            ControlFlow::Continue(())
        },
    );
    drop(closed_loop);
    (outcome, periods)
}

/// What holds whatever happens: every period is counted and recorded, and messages arrive in order.
pub fn check_counts(
    outcome: &Outcome,
    periods: &Periods,
    received: &[Received],
    ticks: u64,
) -> LinkSummary {
    let link = outcome.workload.link.clone();
    let link = link.expect("a body outside of the process");
    let counted = link.fresh_periods
        + link.held_periods
        + link.waiting_periods
        + link.stale_periods
        + link.disconnected_periods
        + link.disarmed_periods;
    assert_eq!(
        (outcome.metrics.ticks, counted, periods.0.len() as u64),
        (ticks, ticks, ticks)
    );
    periods.check();
    let order = received
        .windows(2)
        .all(|pair| pair[0].connection < pair[1].connection || pair[0].sequence < pair[1].sequence);
    assert!(order, "{received:?}");
    link
}

/// A body that does not end its episodes soon.
fn peer() -> Peer {
    Peer::listen(Box::new(Still(Drift::new(DT_S))))
}

pub struct Still(pub Drift);

impl Body for Still {
    fn spec(&self) -> &tectum_control::body::BodySpec {
        self.0.spec()
    }

    fn reset(&mut self, seed: u64) {
        self.0.reset(seed);
    }

    fn observe(&self, observation: &mut [f32]) {
        self.0.observe(observation);
    }

    fn step(&mut self, _: &[f32]) -> tectum_control::body::Step {
        tectum_control::body::Step::default()
    }
}

#[test]
fn a_body_gets_the_latest_action_and_its_safe_one_at_the_end() {
    let peer = peer();
    let ran = run(&peer, 100, &mut |_, _| {});
    assert!(ran.link.fresh_periods > 0 && ran.outcome.metrics.deadline_misses < 100);
    let actions: Vec<&Received> = ran
        .received
        .iter()
        .filter(|received| received.kind == "action")
        .collect();
    assert!(
        actions
            .iter()
            .any(|action| action.numbers == [ACTION] && !action.is_safe)
    );
    assert!(
        actions
            .iter()
            .all(|action| action.is_safe == (action.numbers == [SAFE])),
        "{actions:?}"
    );
    let [.., last, close] = &ran.received[..] else {
        panic!("{:?}", ran.received)
    };
    assert!(last.is_safe && close.kind == "close", "{last:?} {close:?}");
    // At most one action for each period, and the last one.
    let counts = ran.link.counts;
    assert!(
        counts.actions <= 101 && counts.repeated_messages == 0,
        "{counts:?}"
    );
    assert!(ran.link.network_ms.max > 0.0 && ran.link.action_age_ms.max > 0.0);
}

#[test]
fn a_body_without_observations_is_stopped_until_it_is_armed() {
    let peer = peer();
    let ran = run(&peer, 150, &mut |tick, peer| match tick {
        25 => peer.order(Order::Mute(Duration::from_millis(400))),
        100 => peer.order(Order::Arm),
        _ => {}
    });
    use LinkState::{Disarmed, Fresh, Stale};
    let streaks: Vec<LinkState> = ran.periods.streaks();
    let stops: Vec<LinkState> = streaks
        .iter()
        .copied()
        .filter(|state| [Fresh, Stale, Disarmed].contains(state))
        .collect();
    let stale = stops
        .iter()
        .position(|state| *state == Stale)
        .expect("a stop");
    assert!(
        stops[stale..].starts_with(&[Stale, Disarmed, Fresh]),
        "{streaks:?}"
    );
    assert!(
        streaks[..streaks.len() - 1].contains(&LinkState::Held),
        "{streaks:?}"
    );
    assert_eq!(
        (ran.link.counts.rearmed, ran.link.counts.connections),
        (1, 1)
    );
    // Disarmed until the order.
    let armed = ran
        .periods
        .0
        .iter()
        .rposition(|period| period.0 == Disarmed);
    assert!(armed.is_some_and(|tick| tick >= 99), "{armed:?}");
    let reasons: Vec<&str> = ran
        .outcome
        .receipt
        .fallbacks
        .iter()
        .map(|fallback| fallback.reason.as_str())
        .collect();
    for reason in [
        "the body sent no observation within the hold limit",
        "the body is not armed again after a stop",
    ] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
}

#[test]
fn a_body_that_stops_for_two_seconds_is_lost_and_every_period_is_counted() {
    let peer = peer();
    let ran = run(&peer, 200, &mut |tick, peer| match tick {
        25 => peer.order(Order::Sleep(Duration::from_secs(2))),
        160 => peer.order(Order::Arm),
        _ => {}
    });
    use LinkState::{Disarmed, Disconnected, Fresh, Stale};
    let streaks = ran.periods.streaks();
    for state in [Fresh, Stale, Disconnected, Disarmed] {
        assert!(streaks.contains(&state), "{state:?}: {streaks:?}");
    }
    assert!(ran.link.counts.connections >= 2);
    // What was meant for the stopped body does not reach it later: in its next connection it gets
    // its safe action until it is armed.
    let first = ran
        .received
        .iter()
        .find(|received| received.connection > 1 && received.kind == "action");
    assert!(first.is_some_and(|action| action.is_safe), "{first:?}");
}

#[test]
fn a_lost_connection_is_a_stop_at_once_and_is_made_again() {
    let peer = peer();
    let ran = run(&peer, 150, &mut |tick, peer| match tick {
        25 => peer.order(Order::Hang),
        100 => peer.order(Order::Arm),
        _ => {}
    });
    use LinkState::{Disarmed, Fresh};
    let streaks = ran.periods.streaks();
    let is_stop = |state: &LinkState| matches!(state, Disarmed | LinkState::Disconnected);
    assert!(
        streaks.iter().any(is_stop) && streaks.last() != Some(&Disarmed),
        "{streaks:?}"
    );
    let last_stop = streaks
        .iter()
        .rposition(|state| *state == Disarmed)
        .expect("a stop");
    assert_eq!(streaks[last_stop + 1], Fresh);
    assert_eq!(
        (ran.link.counts.connections, ran.link.counts.rearmed),
        (2, 1)
    );
    let second: Vec<&Received> = ran
        .received
        .iter()
        .filter(|received| received.connection == 2)
        .collect();
    let kinds: Vec<&str> = second
        .iter()
        .map(|received| received.kind.as_str())
        .collect();
    assert_eq!(kinds[..2], ["hello", "start"]);
    assert!(second.iter().any(|received| received.numbers == [ACTION]));
}

#[test]
fn an_observation_that_arrives_twice_is_used_once() {
    let peer = peer();
    let ran = run(&peer, 100, &mut |tick, peer| {
        if (20..60).contains(&tick) {
            peer.order(Order::Repeat);
        }
    });
    let counts = ran.link.counts;
    assert!(counts.repeated_messages > 20, "{counts:?}");
    assert!(ran.link.fresh_periods <= counts.observations, "{counts:?}");
}

#[test]
fn a_loop_that_computes_for_long_stops_the_body_and_sends_no_burst() {
    let peer = peer();
    let ticks = Cell::new(0);
    let ran = run_with(&peer, 150, &mut |_, _| {}, move |_| {
        ticks.set(ticks.get() + 1);
        if ticks.get() == 40 {
            std::thread::sleep(Duration::from_millis(500));
        }
        ACTION
    });
    let counts = ran.link.counts;
    assert!(counts.watchdog_stops >= 1, "{counts:?}");
    // The 25 periods of the computation were stepped, and sent nothing.
    assert!(ran.outcome.metrics.deadline_misses >= 20);
    assert!(counts.replaced_actions >= 20, "{counts:?}");
    let actions = ran
        .received
        .iter()
        .filter(|received| received.kind == "action");
    assert!(actions.count() as u64 <= 150 - 20 + counts.watchdog_stops + 1);
}

/// A body whose periods that have passed are stepped so slowly that the thread of the socket could
/// send an action for each.
struct Slow(RemoteBody);

impl Body for Slow {
    fn spec(&self) -> &BodySpec {
        self.0.spec()
    }

    fn reset(&mut self, seed: u64) {
        self.0.reset(seed);
    }

    fn observe(&self, observation: &mut [f32]) {
        self.0.observe(observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        self.0.step(action)
    }

    fn advance(&mut self, command: &mut Command<'_>) -> Step {
        let has_passed = command.has_passed((DT_S * 1e9) as u64);
        let step = self.0.advance(command);
        if has_passed {
            std::thread::sleep(Duration::from_millis(5));
        }
        step
    }

    fn link(&mut self, clock: ClockKind) -> Option<LinkStatus> {
        self.0.link(clock)
    }
}

/// The brain computes for seven periods at its 40th answer. The 39th is held for them in the record,
/// and must not be sent a second time when they have passed.
#[test]
fn an_answer_for_periods_that_have_passed_is_not_sent() {
    let value = |call: u32| call as f32 / 1024.0;
    for _ in 0..10 {
        let peer = peer();
        let address = Address::parse(&peer.url()).expect("an address");
        let body = RemoteBody::open("drift", LinkSettings::new(Reach::Connect(address)));
        let [present, computing] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let (calls, tick, begun) = (Cell::new(0), present.clone(), computing.clone());
        let at = &mut |tick| present.store(tick, Ordering::Relaxed);
        let (_, periods) = run_loop(Slow(body.expect("it listens")), 100, at, move |_| {
            calls.set(calls.get() + 1);
            if calls.get() == 40 {
                begun.store(tick.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(150));
            }
            value(calls.get())
        });
        // A period without an observation before that would have sent the 39th answer again.
        let before = periods.0[computing.load(Ordering::Relaxed) as usize - 1];
        if before != (LinkState::Fresh, value(39), false, false) {
            continue;
        }
        let received = peer.received();
        let held = received
            .iter()
            .filter(|action| action.numbers == [value(39)]);
        assert_eq!(held.count(), 1, "the 39th answer");
        return;
    }
    panic!("no run in which the 39th period had an answer");
}
