//! A body in another process, in lockstep, compared with the same body in this one.

use tectum::{Device, WorkProgress};
use tectum_control::body::{Body, body};
use tectum_control::brain::{Brain, Stateless};
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Outcome};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::build_brain;
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

use crate::peer::{Drift, Peer};

fn settings(seconds: f64) -> LoopSettings {
    LoopSettings {
        seconds,
        seed: 3,
        clock: ClockKind::Sim,
        ..LoopSettings::default()
    }
}

fn run(body: Box<dyn Body>, brain: Box<dyn Brain>, seconds: f64) -> Outcome {
    let cpu = Device::open("cpu").expect("always");
    let mut body = body;
    body.reset(3);
    let mut closed_loop = ClosedLoop::new(body, brain, &settings(seconds), &cpu).expect("they fit");
    closed_loop.simulate()
}

fn connect(peer: &Peer, name: &str) -> RemoteBody {
    let address = Address::parse(&peer.url()).expect("an address");
    RemoteBody::open(name, LinkSettings::new(Reach::Connect(address))).expect("it listens")
}

fn lqr() -> Box<dyn Brain> {
    let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"lqr\"\n";
    let scenario = Scenario::parse(text, "a.toml", "a").expect("valid");
    let plant = body("pendulum", None).expect("built in");
    let cpu = Device::open("cpu").expect("always");
    build_brain(&scenario, plant.as_ref(), &cpu, &mut WorkProgress::ignore).expect("it fits")
}

#[test]
fn a_run_over_a_socket_has_the_bits_of_a_run_in_the_process() {
    let pendulum = || body("pendulum", None).expect("built in");
    let local = run(pendulum(), lqr(), 100.0);
    let peer = Peer::listen(pendulum());
    let remote = run(Box::new(connect(&peer, "pendulum")), lqr(), 100.0);
    let remote = remote.into_result().expect("no failure");
    assert_eq!(remote.metrics.ticks, 2000);
    assert_eq!(remote.receipt.trace, local.receipt.trace);
    assert_eq!(remote.metrics, local.metrics);
    let link = remote.workload.link.expect("a body outside of the process");
    assert_eq!((link.fresh_periods, link.counts.connections), (2000, 1));
    // A step for each period, after the first reset, and the orderly end.
    let kinds: Vec<String> = peer.received().into_iter().map(|one| one.kind).collect();
    let steps = kinds.iter().filter(|kind| *kind == "step").count();
    assert_eq!(
        (steps, kinds[0].as_str(), kinds[1].as_str()),
        (2000, "hello", "reset")
    );
}

#[test]
fn episodes_end_and_begin_as_in_the_process() {
    let brain = || {
        let push = |reading: &[f32], action: &mut [f32]| action.fill(1.0 - reading[0]);
        Box::new(Stateless::new("push", push))
    };
    let local = run(Box::new(Drift::new(0.1)), brain(), 60.0);
    let peer = Peer::listen(Box::new(Drift::new(0.1)));
    let remote = run(Box::new(connect(&peer, "drift")), brain(), 60.0);
    assert!(local.metrics.episodes > 10, "{:?}", local.metrics);
    assert_eq!(remote.metrics, local.metrics);
    assert_eq!(remote.receipt.trace, local.receipt.trace);
}

#[test]
fn the_body_may_connect_to_the_loop() {
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    let settings = LinkSettings::new(Reach::Listen(address));
    let mut peer = None;
    let body = RemoteBody::open_with("drift", settings, &mut |bound| {
        let (host, port) = bound.host_and_port();
        let address = format!("{host}:{port}").parse().expect("an address");
        peer = Some(Peer::connect(address, Box::new(Drift::new(0.1))));
    });
    let body = body.expect("it connects");
    assert_eq!((body.peer(), body.spec().dt_s), ("drift", 0.1));
    // A second body is refused while the first one is connected.
    let (host, port) = body.address().expect("a socket").host_and_port();
    let stream = std::net::TcpStream::connect((host, port)).expect("it listens");
    let second = tokio_tungstenite::tungstenite::client(format!("ws://{host}:{port}/"), stream);
    let refusal = second
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(refusal.contains("409"), "{refusal}");
    let zero = Box::new(Stateless::new("zero", |_, action| action.fill(0.0)));
    let outcome = run(Box::new(body), zero, 5.0)
        .into_result()
        .expect("no failure");
    assert_eq!(outcome.metrics.ticks, 50);
    let peer = peer.expect("it was bound");
    assert_eq!(
        peer.received()
            .last()
            .map(|last| last.kind.clone())
            .as_deref(),
        Some("close")
    );
}

#[test]
fn a_body_that_gives_no_answer_ends_the_run_with_its_reason() {
    struct Stuck(Drift);
    impl Body for Stuck {
        fn spec(&self) -> &tectum_control::body::BodySpec {
            self.0.spec()
        }
        fn reset(&mut self, seed: u64) {
            self.0.reset(seed);
        }
        fn observe(&self, observation: &mut [f32]) {
            self.0.observe(observation);
        }
        fn step(&mut self, action: &[f32]) -> tectum_control::body::Step {
            if self.0.step(action).reward < -0.2 {
                loop {
                    std::thread::park();
                }
            }
            tectum_control::body::Step::default()
        }
    }
    let peer = Peer::listen(Box::new(Stuck(Drift::new(0.1))));
    let address = Address::parse(&peer.url()).expect("an address");
    let mut settings = LinkSettings::new(Reach::Connect(address));
    settings.wait = std::time::Duration::from_millis(300);
    let body = RemoteBody::open("stuck", settings).expect("it listens");
    let push = Box::new(Stateless::new("push", |_, action| action.fill(1.0)));
    let outcome = run(Box::new(body), push, 60.0);
    let ticks = outcome.metrics.ticks;
    let error = outcome
        .into_result()
        .expect_err("it gives no answer")
        .to_string();
    assert_eq!(error, "body stuck: no answer to \"step\" within 0.3 s");
    assert!(ticks > 0 && ticks < 100, "{ticks}");
}

#[test]
fn nothing_at_the_address_is_an_error_that_names_it() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let address = Address::parse(&format!("ws://127.0.0.1:{port}")).expect("an address");
    let mut settings = LinkSettings::new(Reach::Connect(address));
    settings.wait = std::time::Duration::from_millis(100);
    let error = RemoteBody::open("ws://a", settings).expect_err("nothing listens");
    let error = error.to_string();
    assert!(
        error.starts_with("body ws://a: ")
            && error.contains("refused")
            && error.ends_with("within 0.1 s"),
        "{error}"
    );
}
