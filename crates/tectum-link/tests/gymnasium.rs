//! Environments of Gymnasium as bodies in a process of Python (`examples/gymnasium_body.py`),
//! compared with the same environments stepped without a loop.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tectum::{Device, Result};
use tectum_control::body::Body as _;
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_link::{Address, LinkSettings, Reach, RemoteBody};

/// An interpreter with the packages of the example.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TECTUM_PYTHON").map(PathBuf::from);
    let own = root().join(".venv/bin/python3");
    let found = named.or(Some(own)).filter(|python| python.exists())?;
    let needed = "import gymnasium, msgpack, numpy, pygame, websockets";
    let output = Command::new(&found).args(["-c", needed]).output().ok()?;
    output.status.success().then_some(found)
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A body of the example, until it is dropped.
struct Example {
    child: Child,
    address: Address,
}

impl Example {
    fn start(python: &Path, name: &str) -> Self {
        let mut child = Command::new(python)
            .arg(root().join("examples/gymnasium_body.py"))
            .args([name, "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("an interpreter");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("an address");
        let address = line.trim().rsplit(' ').next().expect("an address");
        Self {
            address: Address::parse(address).expect("an address"),
            child,
        }
    }

    fn body(&self, name: &str) -> RemoteBody {
        let settings = LinkSettings::new(Reach::Connect(self.address.clone()));
        RemoteBody::open(name, settings).expect("it listens")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Actions as text, and what a reference prints for them.
#[derive(Default)]
struct Periods {
    actions: String,
    lines: Vec<String>,
}

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let hex =
            |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        let action: Vec<String> = record.action.iter().map(f32::to_string).collect();
        self.actions += &(action.join(" ") + "\n");
        let observation = record
            .observation
            .iter()
            .map(|number| hex(&number.to_le_bytes()));
        self.lines.push(format!(
            "{} {} {}",
            observation.collect::<String>(),
            hex(&record.reward.to_le_bytes()),
            u8::from(record.terminated)
        ));
        Ok(())
    }
}

fn run(body: RemoteBody, seconds: f64, clock: ClockKind, law: fn(&[f32]) -> f32) -> (Periods, u64) {
    let mut body = body;
    body.reset(3);
    let settings = LoopSettings {
        seconds,
        seed: 3,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always");
    let brain = Stateless::new("law", move |reading: &[f32], action: &mut [f32]| {
        action[0] = law(reading);
    });
    let mut closed_loop =
        ClosedLoop::new(Box::new(body), Box::new(brain), &settings, &cpu).expect("they fit");
    let mut periods = Periods::default();
    let outcome = closed_loop.run(clock.start().as_mut(), &mut periods, &mut |_| {
        ControlFlow::Continue(())
    });
    let outcome = outcome.into_result().expect("no failure");
    (periods, outcome.metrics.episodes)
}

/// What the environment gives for the same actions.
fn reference(python: &Path, name: &str, actions: &str) -> Vec<String> {
    let mut child = Command::new(python)
        .arg(root().join("crates/tectum-link/tests/gymnasium/reference.py"))
        .args([name, "3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("an interpreter");
    let mut input = child.stdin.take().expect("piped");
    let actions = actions.to_owned();
    std::thread::spawn(move || input.write_all(actions.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("hexadecimal digits");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn environments_over_a_socket_have_the_bits_of_environments_in_python() {
    let Some(python) = python() else {
        println!("skipped: python with gymnasium, msgpack and websockets is absent: remote bodies");
        return;
    };
    type Law = fn(&[f32]) -> f32;
    let cases: [(&str, f64, Law); 2] = [
        ("Pendulum-v1", 30.0, |seen| -8.0 * seen[1] - seen[2]),
        ("CartPole-v1", 20.0, |seen| seen[2] + 0.5 * seen[3]),
    ];
    for (name, seconds, law) in cases {
        let example = Example::start(&python, name);
        let (periods, episodes) = run(example.body(name), seconds, ClockKind::Sim, law);
        assert!(episodes > 1, "{name}: {episodes}");
        let expected = reference(&python, name, &periods.actions);
        assert_eq!(periods.lines.len(), expected.len(), "{name}");
        let differing = periods
            .lines
            .iter()
            .zip(&expected)
            .position(|(own, other)| own != other);
        assert_eq!(differing, None, "{name}: the first period that differs");
        println!(
            "{name}: {} periods, {episodes} episodes, equal bits",
            expected.len()
        );
    }
}

#[test]
fn an_environment_in_real_time_is_stepped_by_its_own_process() {
    let Some(python) = python() else {
        println!("skipped: python with gymnasium, msgpack and websockets is absent: real time");
        return;
    };
    let example = Example::start(&python, "CartPole-v1");
    let law: fn(&[f32]) -> f32 = |seen| {
        if seen[2] + 0.5 * seen[3] < 0.0 {
            -10.0
        } else {
            10.0
        }
    };
    let (periods, _) = run(example.body("CartPole-v1"), 4.0, ClockKind::Real, law);
    assert_eq!(periods.lines.len(), 200);
    let mut seen: Vec<&str> = periods
        .lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    seen.dedup();
    assert!(seen.len() > 10, "it moves: {}", seen.len());
    for force in ["10\n", "-10\n"] {
        assert!(periods.actions.contains(force), "{force}");
    }
}
