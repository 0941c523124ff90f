//! A body in a process of its own, which is stopped or killed, and a loop in a process of its own,
//! which is killed. The process is this program again, with the variable `TECTUM_LINK_BODY_PORT` or
//! `TECTUM_LINK_LOOP`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin, Command, Stdio};

use tectum::{Device, Result};
use tectum_control::body::Body as _;
use tectum_control::body::link::LinkState;
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

use crate::peer::{Drift, Order, Peer};

/// The variable with the port of a body, 0 for any free one.
const PORT: &str = "TECTUM_LINK_BODY_PORT";
/// The variable with the body of a loop, by its name in scenarios.
const LOOP: &str = "TECTUM_LINK_LOOP";

/// The body, where this program is the other process: it prints its address and reads the word
/// `arm` from its input, until it is killed. In the tests, what it is made of.
#[test]
fn a_body_drifts_to_the_end_of_its_episode() {
    let mut drift = Drift::new(0.02);
    let Some(port) = std::env::var(PORT).ok().and_then(|port| port.parse().ok()) else {
        let steps = (1..).find(|_| drift.step(&[5.0]).ends_episode());
        assert_eq!(steps, Some(11), "0.1 m in each step, and beyond 1 m");
        return;
    };
    let peer = Peer::listen_at(port, Box::new(drift));
    println!("\n{MARK}{}", peer.address);
    for line in std::io::stdin().lock().lines() {
        if line.is_ok_and(|line| line == "arm") {
            peer.order(Order::Arm);
        }
    }
}

/// What precedes the address in its output.
const MARK: &str = "body at ";
/// What precedes the number of a period in the output of a loop.
const PERIOD: &str = "period ";

/// This program again, for one of its tests and with a variable.
struct Process {
    child: Child,
    input: ChildStdin,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Process {
    fn start(test: &str, variable: &str, value: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([test, "--exact", "--nocapture"])
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program");
        let output = child.stdout.take().expect("piped");
        let lines = BufReader::new(output).lines();
        Self {
            input: child.stdin.take().expect("piped"),
            lines: Box::new(lines.map_while(std::result::Result::ok)),
            child,
        }
    }

    /// A loop with a body that is reached at, or connects to, the address of a name.
    fn start_loop(body: &str) -> Self {
        Self::start("processes::a_loop_runs_for_its_periods", LOOP, body)
    }

    /// The rest of its next line that begins with a word.
    fn next(&mut self, word: &str) -> Option<String> {
        let rest = |line: String| line.strip_prefix(word).map(str::to_owned);
        self.lines.find_map(rest)
    }

    /// Waits until a loop has run some more periods.
    fn run_periods(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.next(PERIOD).is_some(), "the loop ended");
        }
    }

    fn kill(&mut self) {
        self.signal("-KILL");
        let _ = self.child.wait();
    }

    fn arm(&mut self) {
        writeln!(self.input, "arm").expect("it reads");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "kill {name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A body in another process, at an address.
struct BodyProcess {
    process: Process,
    address: String,
}

impl BodyProcess {
    fn start(port: &str) -> Self {
        let test = "processes::a_body_drifts_to_the_end_of_its_episode";
        let mut process = Process::start(test, PORT, port);
        let address = process.next(MARK).expect("it prints its address");
        Self { process, address }
    }

    fn port(&self) -> String {
        self.address.rsplit(':').next().expect("a port").to_owned()
    }
}

#[derive(Default)]
struct States(Vec<LinkState>);

impl Sink for States {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.0
            .push(record.link.expect("a body outside of the process").state);
        Ok(())
    }
}

/// Runs a loop of 50 Hz with a zero brain; returns the states of its periods.
fn run_loop(reach: Reach, ticks: u64, at: &mut dyn FnMut(u64)) -> Vec<LinkState> {
    let mut body = RemoteBody::open("drift", LinkSettings::new(reach)).expect("a body");
    body.reset(0);
    let settings = LoopSettings {
        seconds: ticks as f64 * 0.02,
        clock: ClockKind::Real,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always");
    let brain = Stateless::new("zero", |_: &[f32], action: &mut [f32]| action.fill(0.0));
    let mut closed_loop =
        ClosedLoop::new(Box::new(body), Box::new(brain), &settings, &cpu).expect("they fit");
    let mut states = States::default();
    let outcome = closed_loop.run(
        ClockKind::Real.start().as_mut(),
        &mut states,
        &mut |progress| {
            at(progress.tick);
            ControlFlow::Continue(())
        },
    );
    assert_eq!(
        (outcome.metrics.ticks, states.0.len() as u64),
        (ticks, ticks)
    );
    states.0
}

/// How a body of the drift's is reached, by a name of scenarios.
fn reach(name: &str) -> Reach {
    let parse = |address| Address::parse(address).expect("an address");
    match name.strip_prefix("listen:") {
        Some(address) => Reach::Listen(parse(address)),
        None => Reach::Connect(parse(name)),
    }
}

/// Runs a loop with a body in another process; returns its states, each once per streak.
fn run(
    body: &mut BodyProcess,
    ticks: u64,
    at: &mut dyn FnMut(u64, &mut BodyProcess),
) -> Vec<LinkState> {
    let reach = reach(&format!("ws://{}", body.address));
    let mut states = run_loop(reach, ticks, &mut |tick| at(tick, body));
    states.dedup();
    states
}

/// Whether a state of the connection is followed by another one.
fn is_followed(states: &[LinkState], first: LinkState, then: LinkState) -> bool {
    let place = states.iter().rposition(|state| *state == first);
    place.is_some_and(|place| states[place + 1..].contains(&then))
}

#[test]
fn a_stopped_process_is_lost_and_found_again() {
    let mut body = BodyProcess::start("0");
    let states = run(&mut body, 250, &mut |tick, body| match tick {
        25 => body.process.signal("-STOP"),
        125 => body.process.signal("-CONT"),
        200 => body.process.arm(),
        _ => {}
    });
    for state in [LinkState::Stale, LinkState::Disconnected] {
        assert!(states.contains(&state), "{state:?}: {states:?}");
    }
    let is_armed = is_followed(&states, LinkState::Disarmed, LinkState::Fresh);
    assert!(is_armed, "{states:?}");
}

#[test]
fn a_killed_process_may_be_started_again() {
    let mut body = BodyProcess::start("0");
    let states = run(&mut body, 250, &mut |tick, body| match tick {
        25 => body.process.kill(),
        75 => *body = BodyProcess::start(&body.port()),
        200 => body.process.arm(),
        _ => {}
    });
    assert!(states.contains(&LinkState::Disconnected), "{states:?}");
    let is_armed = is_followed(&states, LinkState::Disarmed, LinkState::Fresh);
    assert!(is_armed, "{states:?}");
}

/// The loop, where this program is the other process: it prints its periods until it is killed. In
/// the tests, a loop of some periods.
#[test]
fn a_loop_runs_for_its_periods() {
    if let Ok(body) = std::env::var(LOOP) {
        run_loop(reach(&body), 1 << 20, &mut |tick| {
            println!("\n{PERIOD}{tick}")
        });
        return;
    }
    let peer = Peer::listen(Box::new(Drift::new(0.02)));
    let states = run_loop(reach(&peer.url()), 20, &mut |_| {});
    assert!(states.contains(&LinkState::Fresh), "{states:?}");
    let received = peer.received();
    let last = received.iter().rfind(|message| message.kind == "action");
    assert!(last.is_some_and(|last| last.is_safe), "its end: {last:?}");
}

/// What a body received of a loop that was killed, and of another one after it.
fn killed_and_started_again(peer: &Peer, body: &str) {
    let mut first = Process::start_loop(body);
    first.run_periods(30);
    first.kill();
    let received = peer.received();
    let last = received.last().expect("its messages");
    assert_eq!(last.kind, "action", "nothing announces the end");
    let mut second = Process::start_loop(body);
    second.run_periods(30);
    second.kill();
    let received = peer.received();
    let begin = received
        .iter()
        .position(|message| message.connection > last.connection);
    let (first, second) = received.split_at(begin.expect("another connection"));
    for received in [first, second] {
        let actions = received.iter().filter(|message| message.kind == "action");
        let actions: Vec<_> = actions.collect();
        let is_in_order = actions.is_sorted_by(|one, other| one.sequence < other.sequence);
        assert!(is_in_order && actions.len() > 10, "{actions:?}");
        assert!(
            actions.iter().all(|action| action.is_applied),
            "{actions:?}"
        );
    }
}

#[test]
fn a_killed_loop_may_be_started_again() {
    let peer = Peer::listen(Box::new(Drift::new(0.02)));
    killed_and_started_again(&peer, &peer.url());
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("bound");
    drop(free);
    let peer = Peer::connect(address, Box::new(Drift::new(0.02)));
    killed_and_started_again(&peer, &format!("listen:{}", peer.url()));
}
