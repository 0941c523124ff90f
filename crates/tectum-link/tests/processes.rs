//! A body in a process of its own, which is stopped or killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use tectum::{Device, Result};
use tectum_control::body::Body as _;
use tectum_control::body::link::LinkState;
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

/// The program `examples/drift.rs`, which cargo builds with the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let folder = test.parent().and_then(|deps| deps.parent());
    folder.expect("a target folder").join("examples/drift")
}

struct Process {
    child: Child,
    input: ChildStdin,
    address: String,
}

impl Process {
    fn start(port: &str) -> Self {
        let mut child = Command::new(program())
            .arg(port)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo builds examples with tests");
        let output = child.stdout.take().expect("piped");
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address).expect("an address");
        Self {
            input: child.stdin.take().expect("piped"),
            address: address.trim().to_owned(),
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
        self.0.push(record.link.expect("a body outside of the process").state);
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
    let outcome = closed_loop.run(ClockKind::Real.start().as_mut(), &mut states, &mut |progress| {
        at(progress.tick, process);
        ControlFlow::Continue(())
    });
    assert_eq!((outcome.metrics.ticks, states.0.len() as u64), (ticks, ticks));
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
    for state in [LinkState::Stale, LinkState::Disconnected, LinkState::Disarmed] {
        assert!(states.contains(&state), "{state:?}: {states:?}");
    }
    let disarmed = states.iter().rposition(|state| *state == LinkState::Disarmed);
    let after = disarmed.map(|place| &states[place + 1..]);
    assert!(after.is_some_and(|after| after.contains(&LinkState::Fresh)), "{states:?}");
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
    let disarmed = states.iter().rposition(|state| *state == LinkState::Disarmed);
    let after = disarmed.map(|place| &states[place + 1..]);
    assert!(after.is_some_and(|after| after.contains(&LinkState::Fresh)), "{states:?}");
}
