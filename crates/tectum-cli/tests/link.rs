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
        let mut child = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(place)
            .arg("serve")
            .args(arguments)
            .args(["--listen", "ws://127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command");
        let errors = child.stderr.take().expect("piped");
        let mut line = String::new();
        BufReader::new(errors).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("serving at ws://");
        Self {
            address: address.unwrap_or_else(|| panic!("{line}")).to_owned(),
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

#[test]
fn what_cannot_be_served_is_refused() {
    let place = tempfile::tempdir().expect("writable");
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
