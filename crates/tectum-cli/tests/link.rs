//! `tectum serve`, and runs on bodies in other processes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server, until it is dropped.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(place: &Path, arguments: &[&str]) -> Self {
        let listen = ["--listen", "ws://127.0.0.1:0"];
        Self::announced(place, &[arguments, &listen].concat(), "serving at ws://")
    }

    /// A server whose address follows a text in a line of its messages.
    fn announced(place: &Path, arguments: &[&str], text: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(place)
            .arg("serve")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command");
        let errors = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(errors)
            .lines()
            .map(|line| line.expect("text"));
        let line = lines.find(|line| line.starts_with(text));
        let line = line.unwrap_or_else(|| panic!("{text:?} is missing"));
        let address = line[text.len()..].split(';').next().unwrap_or_default();
        Self {
            address: address.trim().to_owned(),
            child,
        }
    }

    /// What it prints when it is interrupted.
    fn end(mut self) -> String {
        let number = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &number]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let mut text = String::new();
        let mut output = self.child.stdout.take().expect("piped");
        output.read_to_string(&mut text).expect("text");
        assert!(
            self.child.wait().is_ok_and(|status| status.success()),
            "{text}"
        );
        text
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_server_answers_until_it_is_interrupted_and_prints_its_receipt() {
    let place = tempfile::tempdir().expect("writable");
    let serving = Serving::start(
        place.path(),
        &["pendulum", "--brain", "zero", "--receipt", "r.json"],
    );
    let mut stream = TcpStream::connect(&serving.address).expect("it listens");
    write!(
        stream,
        "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("OK\n"), "{answer}");
    let text = serving.end();
    assert!(
        text.contains("answers") && text.contains("0 clients"),
        "{text}"
    );
    let receipt = std::fs::read_to_string(place.path().join("r.json")).expect("written");
    assert!(
        receipt.contains("\"served\"") && receipt.contains("\"zero\""),
        "{receipt}"
    );
}

/// A genome with an eye that moves an arm.
const GENOME: &str = r#"{
    "version": "2.1",
    "blueprint": {
        "iseen_": {"cortical_name": "eye", "group_id": "IPU", "block_boundaries": [4, 1, 1], "mp_charge_accumulation": false,
                   "cortical_mapping_dst": {"omove_": [["block_to_block", [1, 1, 1], 3, false]]}},
        "omove_": {"cortical_name": "arm", "group_id": "OPU", "block_boundaries": [4, 1, 1], "mp_charge_accumulation": false}
    },
    "neuron_morphologies": {"block_to_block": {"type": "vectors", "parameters": {"vectors": [[0, 0, 0]]}}},
    "physiology": {"simulation_timestep": 0.01}
}"#;

#[cfg(unix)]
#[test]
fn a_genome_is_served_to_agents_until_it_is_interrupted() {
    let place = tempfile::tempdir().expect("writable");
    std::fs::write(place.path().join("brain.json"), GENOME).expect("writable");
    let any = "tcp://127.0.0.1:0";
    let mut arguments = vec!["brain.json", "--device", "cpu", "--receipt", "r.json"];
    for socket in ["--control", "--sensors", "--motors"] {
        arguments.extend([socket, any]);
    }
    let serving = Serving::announced(place.path(), &arguments, "agents register at tcp://");
    let mut stream = TcpStream::connect(&serving.address).expect("it listens");
    let mut greeting = [0; 12];
    stream.read_exact(&mut greeting).expect("it speaks first");
    assert_eq!(greeting, *b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0");
    let text = serving.end();
    for row in ["bursts", "0 registered", "0 frames used", "0 frames sent"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let receipt = std::fs::read_to_string(place.path().join("r.json")).expect("written");
    let has = |text: &str| receipt.contains(text);
    assert!(
        has("\"feagi\"") && has("\"bursts_per_s\": 100.0"),
        "{receipt}"
    );
    assert!(
        has("brain.json") && has("\"missed_deadlines\""),
        "{receipt}"
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let place = tempfile::tempdir().expect("writable");
    std::fs::write(place.path().join("brain.json"), GENOME).expect("writable");
    for (arguments, reason) in [
        (&["policy.onnx"][..], "policy.onnx"),
        (&["pendulum", "--listen", "ws://0.0.0.0:0"], "needs a token"),
        (
            &["pendulum", "--listen", "127.0.0.1:0"],
            "ws://HOST:PORT is needed",
        ),
        (&["pendulum", "--token-file", "absent"], "absent"),
        (&["pendulum", "--em-brain", "0.0.0.0:0"], "has no token"),
        (
            &["pendulum", "--brain", "none"],
            "brain \"none\" is unknown",
        ),
        (
            &["pendulum.plant", "--body", "rig"],
            "a plant is the body itself",
        ),
        (
            &["brain.json", "--control", "tcp://0.0.0.0:0"],
            "needs a token",
        ),
        (
            &["brain.json", "--motors", "ipc:///tmp/motors"],
            "tcp://HOST:PORT is needed",
        ),
        (
            &["brain.json", "--body", "rig"],
            "--body is an option of scenarios",
        ),
        (
            &["brain.json", "--bursts-per-second", "0"],
            "0 bursts per second",
        ),
        (
            &["pendulum", "--bursts-per-second", "30"],
            "--bursts-per-second is an option of genomes; it is a scenario",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(place.path())
            .arg("serve")
            .args(arguments)
            .output()
            .expect("the command");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(reason),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
fn a_body_that_is_not_there_is_named() {
    let place = tempfile::tempdir().expect("writable");
    let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .current_dir(place.path())
        .args([
            "run",
            "pendulum",
            "--brain",
            "zero",
            "--body",
            "ws://192.0.2.1:9",
        ])
        .output()
        .expect("the command");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success()
            && errors.contains("ws://192.0.2.1:9: it is not on this machine, and needs a token"),
        "{errors}"
    );
}
