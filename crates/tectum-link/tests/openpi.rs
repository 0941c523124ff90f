//! The client of openpi from PyPI, unchanged, against a served brain.
//!
//! It needs Python with `openpi-client` and NumPy below 2: the interpreter that the variable
//! `TECTUM_OPENPI_PYTHON` names, or `.venv-openpi` of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tectum::Device;
use tectum_control::body::{ActionChannel, BodySpec, ObservationChannel};
use tectum_control::brain::{Brain, Stateless};
use tectum_control::message::ElementType;
use tectum_link::{Address, ServeSettings, Served, Server, Token};

/// An arm with a camera.
fn arm() -> BodySpec {
    let number = |name: &str| ObservationChannel::new(name, "m", -1.0..=1.0);
    let action = |name: &str| ActionChannel::new(name, "V", -2.0..=2.0);
    BodySpec {
        name: "arm".into(),
        dt_s: 0.02,
        observation: vec![
            number("x"),
            number("y"),
            ObservationChannel::new("image", "", 0.0..=255.0).array([8, 8, 3], ElementType::U8),
        ],
        action: vec![action("u"), action("v")],
        safe_action: vec![0.0, 0.25],
    }
}

/// The sum of the numbers and the first pixel; where x is 1000, after y seconds.
fn brain() -> Box<dyn Brain> {
    Box::new(Stateless::new(
        "sum",
        |observation: &[f32], action: &mut [f32]| {
            if observation[0] == 1000.0 {
                std::thread::sleep(Duration::from_secs_f32(observation[1]));
            }
            action[0] = observation[0] + observation[1];
            action[1] = observation[2] / 256.0;
        },
    ))
}

fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TECTUM_OPENPI_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-openpi/bin/python");
    named.or(Some(own)).filter(|python| python.exists())
}

#[test]
fn an_unchanged_client_is_answered() {
    let Some(python) = python() else {
        println!("skipped: openpi-client is absent: its client against a served brain");
        return;
    };
    let cpu = Device::open("cpu").expect("always");
    let served = Served::new(arm(), cpu, || Ok(brain())).expect("a brain");
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    let settings = ServeSettings {
        token: Some(Token::new("secret").expect("a word")),
        ..ServeSettings::new(address)
    };
    let server = Server::start(served, &settings).expect("a free port");
    let (host, port) = server.address().host_and_port();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openpi/client.py");
    // Longer than 40 s, the client closes by itself if its pings have no answer.
    let slow_s = std::env::var("TECTUM_OPENPI_SLOW_S").unwrap_or_else(|_| "2".into());
    let output = Command::new(python)
        .arg(script)
        .args([host, &port.to_string(), "secret", &slow_s])
        .output()
        .expect("an interpreter");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.ends_with("done\n"),
        "{text}\n{errors}"
    );
    let counts = server.counts();
    assert_eq!(
        (counts.sessions, counts.answers, counts.errors),
        (8, 10_002, 6)
    );
    println!("openpi-client: {} answers", counts.answers);
}
