//! A loop and a body over a faulty network: nothing is applied late or twice, and every period is
//! counted.
//!
//! `TECTUM_LINK_FRAMES` is the number of frames of each test, 10,000 unless given.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use tectum::{Device, Result};
use tectum_control::body::link::{LinkState, LinkSummary};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

use crate::peer::{Order, Peer, Received};
use crate::proxy::{self, Faults};

const DT_S: f64 = 0.000_5;

/// A body whose observation is the number of its step, from 1.
struct Counter {
    spec: BodySpec,
    steps: u32,
}

impl Counter {
    fn new() -> Self {
        Self {
            spec: BodySpec {
                name: "counter".into(),
                dt_s: DT_S,
                observation: vec![ObservationChannel::new("step", "", 0.0..=1e7)],
                action: vec![ActionChannel::new("echo", "", -1.0..=1e7)],
                safe_action: vec![-1.0],
            },
            steps: 0,
        }
    }
}

impl Body for Counter {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _: u64) {}

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.steps as f32;
    }

    fn step(&mut self, _: &[f32]) -> Step {
        self.steps += 1;
        Step::default()
    }
}

/// The observations that the brain answered.
#[derive(Default)]
struct Answered(Vec<f32>, u64);

impl Sink for Answered {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.1 += 1;
        let is_fresh = record
            .link
            .is_some_and(|link| link.state == LinkState::Fresh);
        if is_fresh && !record.held {
            self.0.push(record.observation[0]);
        }
        Ok(())
    }
}

/// A run whose brain repeats the observation as its action.
fn run(faults: Faults) -> (Answered, LinkSummary, Vec<Received>, u64) {
    let frames: u64 = std::env::var("TECTUM_LINK_FRAMES")
        .ok()
        .and_then(|frames| frames.parse().ok())
        .unwrap_or(10_000);
    let ticks = frames / 2;
    let peer = Peer::listen(Box::new(Counter::new()));
    let (address, done) = proxy::start(peer.address, faults, 57);
    let address = Address::parse(&format!("ws://{address}")).expect("an address");
    let mut settings = LinkSettings::new(Reach::Connect(address));
    settings.hold_s = Some(0.1);
    // The handshake is over the same network.
    let mut body = (0..100)
        .find_map(|_| RemoteBody::open("counter", settings.clone()).ok())
        .expect("a handshake");
    let cpu = Device::open("cpu").expect("always");
    let brain = Stateless::new("echo", |reading: &[f32], action: &mut [f32]| {
        action[0] = reading[0];
    });
    body.link(ClockKind::Real);
    let loop_settings = LoopSettings {
        seconds: ticks as f64 * DT_S,
        clock: ClockKind::Real,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let mut closed_loop =
        ClosedLoop::new(Box::new(body), Box::new(brain), &loop_settings, &cpu).expect("they fit");
    let mut answered = Answered::default();
    let outcome = closed_loop.run(
        ClockKind::Real.start().as_mut(),
        &mut answered,
        &mut |progress| {
            // A stop of a slow machine ends at once.
            if progress.tick % 100 == 0 {
                peer.order(Order::Arm);
            }
            ControlFlow::Continue(())
        },
    );
    drop(closed_loop);
    let outcome = outcome.into_result().expect("no failure");
    let link = outcome
        .workload
        .link
        .expect("a body outside of the process");
    let counted = link.fresh_periods
        + link.held_periods
        + link.waiting_periods
        + link.stale_periods
        + link.disconnected_periods
        + link.disarmed_periods;
    assert_eq!(
        (outcome.metrics.ticks, counted, answered.1),
        (ticks, ticks, ticks)
    );
    let (frames, faulty) = (&done.frames, &done.faults);
    let (frames, faulty) = (
        frames.load(Ordering::Relaxed),
        faulty.load(Ordering::Relaxed),
    );
    println!("faulty network: {frames} frames, {faulty} of them with a fault: {link:?}");
    assert!(faulty > frames / 50, "{faulty} of {frames}");
    (answered, link, peer.received(), frames)
}

#[test]
fn what_a_network_drops_delays_repeats_or_exchanges_is_not_applied_late_or_twice() {
    let (answered, link, received, _) = run(Faults {
        dropped: 50,
        delayed: 5,
        repeated: 50,
        exchanged: 50,
        corrupted: 0,
    });
    let is_rising = |numbers: &[f32]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(!answered.0.is_empty() && is_rising(&answered.0));
    assert!(link.counts.repeated_messages > 0 && link.counts.unreadable_messages == 0);
    // The same of the actions: what the body applied is an echo of ever later observations.
    let applied: Vec<&Received> = received
        .iter()
        .filter(|received| received.kind == "action" && received.is_applied)
        .collect();
    assert!(
        applied
            .windows(2)
            .all(|pair| pair[0].sequence < pair[1].sequence)
    );
    let echoes: Vec<f32> = applied
        .iter()
        .filter(|action| !action.is_safe)
        .map(|action| action.numbers[0])
        .collect();
    assert!(!echoes.is_empty() && echoes.windows(2).all(|pair| pair[0] <= pair[1]));
    let repeated = received.iter().filter(|received| !received.is_applied);
    assert!(repeated.count() > 0);
}

#[test]
fn frames_that_are_corrupted_neither_end_the_loop_nor_stop_it_forever() {
    let (answered, link, received, _) = run(Faults {
        dropped: 5,
        repeated: 5,
        corrupted: 100,
        ..Faults::default()
    });
    assert!(!answered.0.is_empty());
    assert!(link.counts.unreadable_messages > 0, "{:?}", link.counts);
    assert!(!received.is_empty());
}
