//! A body in a process of its own, which is stopped or killed. The process is this program again,
//! with the variable `TECTUM_LINK_BODY_PORT`.

use std::io::{BufRead as _, BufReader, Write as _};
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

struct Process {
    child: Child,
    input: ChildStdin,
    address: String,
}

impl Process {
    fn start(port: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([
                "processes::a_body_drifts_to_the_end_of_its_episode",
                "--exact",
                "--nocapture",
            ])
            .env(PORT, port)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program");
        let output = child.stdout.take().expect("piped");
        let mut lines = BufReader::new(output)
            .lines()
            .map_while(std::result::Result::ok);
        let address = lines.find_map(|line| line.strip_prefix(MARK).map(str::to_owned));
        Self {
            input: child.stdin.take().expect("piped"),
            address: address.expect("it prints its address"),
            child,
        }
    }

    fn port(&self) -> String {
        self.address.rsplit(':').next().expect("a port").to_owned()
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

#[derive(Default)]
struct States(Vec<LinkState>);

impl Sink for States {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.0
            .push(record.link.expect("a body outside of the process").state);
        Ok(())
    }
}

/// Runs a loop of 50 Hz; returns its states, each once per streak.
fn run(process: &mut Process, ticks: u64, at: &mut dyn FnMut(u64, &mut Process)) -> Vec<LinkState> {
    let address = Address::parse(&format!("ws://{}", process.address)).expect("an address");
    let mut body =
        RemoteBody::open("drift", LinkSettings::new(Reach::Connect(address))).expect("it listens");
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
            at(progress.tick, process);
            ControlFlow::Continue(())
        },
    );
    assert_eq!(
        (outcome.metrics.ticks, states.0.len() as u64),
        (ticks, ticks)
    );
    states.0.dedup();
    states.0
}

#[test]
fn a_stopped_process_is_lost_and_found_again() {
    let mut process = Process::start("0");
    let states = run(&mut process, 250, &mut |tick, process| match tick {
        25 => process.signal("-STOP"),
        125 => process.signal("-CONT"),
        200 => process.arm(),
        _ => {}
    });
    for state in [
        LinkState::Stale,
        LinkState::Disconnected,
        LinkState::Disarmed,
    ] {
        assert!(states.contains(&state), "{state:?}: {states:?}");
    }
    let disarmed = states
        .iter()
        .rposition(|state| *state == LinkState::Disarmed);
    let after = disarmed.map(|place| &states[place + 1..]);
    assert!(
        after.is_some_and(|after| after.contains(&LinkState::Fresh)),
        "{states:?}"
    );
}

#[test]
fn a_killed_process_may_be_started_again() {
    let mut process = Process::start("0");
    let states = run(&mut process, 250, &mut |tick, process| match tick {
        25 => {
            process.signal("-KILL");
            let _ = process.child.wait();
        }
        75 => {
            let port = process.port();
            *process = Process::start(&port);
        }
        200 => process.arm(),
        _ => {}
    });
    assert!(states.contains(&LinkState::Disconnected), "{states:?}");
    let disarmed = states
        .iter()
        .rposition(|state| *state == LinkState::Disarmed);
    let after = disarmed.map(|place| &states[place + 1..]);
    assert!(
        after.is_some_and(|after| after.contains(&LinkState::Fresh)),
        "{states:?}"
    );
}
