//! `tectum run --live`: the command's page, in a browser and for programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A run that is shown, until it ends.
struct Shown {
    child: Child,
    /// Its messages, which the process must be able to write.
    _errors: std::thread::JoinHandle<()>,
    address: String,
}

impl Shown {
    fn start(place: &Path, arguments: &[&str]) -> Self {
        Self::with_token(place, arguments, None)
    }

    fn with_token(place: &Path, arguments: &[&str], token: Option<&str>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(place)
            .envs(token.map(|token| ("TECTUM_TOKEN", token)))
            .arg("run")
            .args(arguments)
            .args(["--live", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command");
        let errors = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        let address = lines.find_map(|line| {
            let address = line.split_once("live at ").map(|(_, rest)| rest.to_owned());
            seen.push(line);
            address
        });
        Self {
            address: address.unwrap_or_else(|| panic!("no address: {seen:?}")),
            _errors: std::thread::spawn(move || lines.for_each(drop)),
            child,
        }
    }

    /// The summary that it prints.
    fn end(mut self) -> Value {
        let mut text = String::new();
        let mut output = self.child.stdout.take().expect("piped");
        output.read_to_string(&mut text).expect("text");
        assert!(
            self.child.wait().is_ok_and(|status| status.success()),
            "{text}"
        );
        serde_json::from_str(text.trim()).expect("JSON")
    }

    fn get(&self, path: &str) -> String {
        let host = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .expect("sent");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("text");
        let (_, content) = response.split_once("\r\n\r\n").expect("a head");
        content.to_owned()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An interpreter with packages.
fn python(packages: &str) -> Option<PathBuf> {
    let named = std::env::var_os("TECTUM_PYTHON").map(PathBuf::from);
    let own = root().join(".venv/bin/python3");
    let found = named.or(Some(own)).filter(|python| python.exists())?;
    let needed = format!("import {packages}");
    let output = Command::new(&found).args(["-c", &needed]).output().ok()?;
    output.status.success().then_some(found)
}

/// The first program of these names that can be started.
fn chromium() -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let named = std::env::var("TECTUM_CHROMIUM").ok();
    let is_there = |name: &String| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let names = names.map(str::to_owned);
    named.into_iter().chain(names).find(is_there)
}

/// What the check of the page prints for a run; none without a browser.
fn checked(shown: &Shown, folder: &Path) -> Option<Value> {
    let Some(browser) = chromium() else {
        println!("skipped: chromium is absent: the page of a run");
        return None;
    };
    let Some(python) = python("websockets") else {
        println!("skipped: python with websockets is absent: the page of a run");
        return None;
    };
    let axe = root().join("target/npm/node_modules/axe-core/axe.min.js");
    let mut command = Command::new(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/check.py"))
        .args([&browser, &shown.address])
        .arg(folder);
    if axe.exists() {
        command.arg(axe);
    } else {
        println!("skipped: axe is absent: accessibility of the page");
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("an interpreter");
    let text = String::from_utf8_lossy(&stdout);
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{text}{errors}");
    let line = text.lines().last().expect("a line");
    Some(serde_json::from_str(line).expect("JSON"))
}

/// A number as the page writes it.
fn read(text: &Value) -> f64 {
    let text = text.as_str().expect("a text");
    let text = text.replace('−', "-").replace(',', "");
    text.parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// Whether a number of the page, with about four digits, is one of the summary.
fn is_shown(text: &Value, number: &Value) -> bool {
    let number = number.as_f64().expect("a number");
    (read(text) - number).abs() <= 1e-3 * number.abs().max(1e-3)
}

fn folder(name: &str) -> PathBuf {
    let folder = root().join("target/page").join(name);
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

#[test]
fn the_page_of_a_pendulum_shows_the_numbers_of_its_summary() {
    let place = tempfile::tempdir().expect("a folder");
    let arguments = "pendulum --brain lqr --clock sim --seconds 1000000";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = Shown::start(place.path(), &[&arguments[..], &["--live-paused"]].concat());
    let Some(page) = checked(&shown, &folder("pendulum")) else {
        return drop(shown);
    };
    let summary = shown.end();
    assert_eq!(summary["end"], "interrupted");
    for (name, key) in [
        ("ticks", "ticks"),
        ("deadline misses", "deadline_misses"),
        ("fallbacks", "fallbacks"),
        ("episodes", "episodes"),
        ("return", "return"),
        ("seconds", "seconds"),
    ] {
        let (number, shown) = (&summary[key], &page["numbers"][name]);
        assert!(is_shown(shown, number), "{name}: {shown}, not {number}");
        let shown = &page["summary"][name];
        assert!(is_shown(shown, number), "{name}: {shown}, not {number}");
    }
    assert!(page["moving"].as_u64() >= Some(6), "{page}");
    assert_eq!(
        (&page["faults"], &page["cookies"]),
        (&Value::Array(Vec::new()), &"".into())
    );
    println!("first picture after {} s", page["first_picture_s"]);
}

#[test]
fn the_page_of_a_genome_shows_its_firings() {
    let place = tempfile::tempdir().expect("a folder");
    let genome = include_str!("../../tectum-spiking/samples/sample-genome.json");
    std::fs::write(place.path().join("genome.json"), genome).expect("writable");
    let arguments = "genome.json --bursts 100000000 --stimulus 0.1 --device cpu --live-paused";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = Shown::start(place.path(), &arguments);
    let Some(page) = checked(&shown, &folder("genome")) else {
        return drop(shown);
    };
    let report = shown.end();
    assert_eq!(report["end"], "interrupted");
    for name in ["bursts", "spikes", "events"] {
        let (number, shown) = (&report[name], &page["numbers"][name]);
        assert!(is_shown(shown, number), "{name}: {shown}, not {number}");
    }
    assert!(page["moving"].as_u64() >= Some(3), "{page}");
    assert_eq!(page["faults"], Value::Array(Vec::new()));
}

#[test]
fn programs_read_the_metrics_and_the_summary_of_a_run() {
    let place = tempfile::tempdir().expect("a folder");
    let arguments = "pendulum --brain lqr --clock sim --seconds 5";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = Shown::start(place.path(), &[&arguments[..], &["--live-paused"]].concat());
    assert_eq!(shown.get("/healthz"), "OK\n");
    assert_eq!(shown.get("/readyz"), "ticking\n", "paused is ready");
    // The page is there before the brain is trained.
    let json = |path| -> Value { serde_json::from_str(&shown.get(path)).expect("JSON") };
    while json("/summary")["ticks"].is_null() {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(json("/summary")["ticks"], 0);
    let receipt = json("/receipt");
    assert!(receipt["device"]["id"].is_string(), "{receipt}");
    let text = shown.get("/metrics");
    let Some(python) = python("prometheus_client") else {
        println!("skipped: python with prometheus_client is absent: metrics of a run");
        return drop(shown);
    };
    let parse = "import sys; from prometheus_client.parser import text_string_to_metric_families\n\
                 for family in text_string_to_metric_families(sys.stdin.read()):\n\
                 \x20   print(family.name, family.type, len(family.samples))";
    let mut child = Command::new(python)
        .args(["-c", parse])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("an interpreter");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("an interpreter");
    let families = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for family in [
        "tectum_ticks counter 1",
        "tectum_return gauge 1",
        "tectum_tick_duration_seconds histogram 19",
    ] {
        assert!(families.lines().any(|line| line == family), "{families}");
    }
}

#[test]
fn the_page_asks_for_the_token_of_a_run() {
    let (Some(browser), Some(python)) = (chromium(), python("websockets")) else {
        println!("skipped: chromium or python with websockets is absent: tokens of the page");
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let arguments = "pendulum --brain lqr --clock sim --seconds 5 --live-paused";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = Shown::with_token(place.path(), &arguments, Some("secret"));
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/unlock.py"))
        .args([&browser, &shown.address, "secret"])
        .output()
        .expect("an interpreter");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn frames_of_foxglove_are_decoded_by_websockets() {
    let place = tempfile::tempdir().expect("a folder");
    let arguments = "pendulum --brain lqr --clock sim --seconds 1000 --inject nan@1 --live-paused";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = Shown::start(place.path(), &arguments);
    let Some(python) = python("websockets") else {
        println!("skipped: python with websockets is absent: Foxglove's protocol");
        return drop(shown);
    };
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/foxglove.py"))
        .arg(shown.address.trim_start_matches("http://"))
        .output()
        .expect("an interpreter");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let topics: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let summary = shown.end();
    for topic in ["/observation", "/action", "/task", "/timing"] {
        assert_eq!(topics[topic]["count"], summary["ticks"], "{topic}");
    }
    let (total, shown) = (&summary["return"], &topics["/task"]["sums"]["reward"]);
    assert_eq!(total, shown);
    let events = topics["/events"]["sums"].as_object().expect("by text");
    for text in ["injected: nan@1", "a viewer: continued"] {
        assert!(events.contains_key(text), "{events:?}");
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
