//! Peers: other libraries' timings of the same operations, by scripts that run as child processes
//! of the benchmark.
//!
//! A script lives in the folder of peers as `NAME_rows.py` with its requirements in `NAME.txt` and
//! runs in the environment `.venv-NAME`. It reads requests, one JSON object a line, and answers
//! each with one line:
//!
//! | request | answer |
//! |---|---|
//! | `{"do": "hello", "device": "cpu", "threads": 2, "keys": [...]}` | `{"versions": {...}, "threads": 2, "rows": {key: call}}` |
//! | `{"do": "prepare", "key": key}` | `{}`, or `{"call": text}` where the peer chose between settings; operands are filled and the call has run once |
//! | `{"do": "time", "seconds": s, "least": n}` | `{"times_s": [...]}`, after one run that is not timed |
//!
//! or with `{"error": why}`. At the end of its input it exits.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::PeerBrief;

/// Maximum time for a peer's answer, including import and compilation of libraries.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(180);

/// Every OpenMP and thread pool that the peers use; all get the number of threads that the CPU
/// device uses.
const THREAD_VARIABLES: [&str; 7] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NUMBA_NUM_THREADS",
    "HL_NUM_THREADS",
];

/// Makes glibc's allocator keep what a peer frees: a call that allocates its result must not pay
/// page faults in every run while ours writes into memory that has already been touched.
const WARM_MEMORY: [(&str, &str); 2] = [
    ("MALLOC_MMAP_MAX_", "0"),
    ("MALLOC_TRIM_THRESHOLD_", "17179869184"),
];

/// A running script.
pub(super) struct Peer {
    pub(super) brief: PeerBrief,
    /// The rows it can do, with the call it times.
    pub(super) calls: BTreeMap<String, String>,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
}

#[derive(Deserialize)]
struct Hello {
    versions: BTreeMap<String, String>,
    threads: u32,
    rows: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct PrepareResponse {
    call: Option<String>,
}

#[derive(Deserialize)]
struct Times {
    times_s: Vec<f64>,
}

/// The peers that a folder has, in order.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name());
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.to_str()?.strip_suffix("_rows.py")?.to_owned()))
        .collect();
    names.sort();
    names
}

impl Peer {
    /// Starts a script and requests its rows; the error is the reason why it cannot run.
    pub(super) fn start(
        folder: &Path,
        name: &str,
        device: &str,
        threads: u32,
        keys: &[&str],
    ) -> Result<Self, String> {
        let python = interpreter(folder, name);
        if !python.exists() {
            return Err(format!(
                "not installed; `cargo xtask peers {name}` makes its environment"
            ));
        }
        let mut command = Command::new(&python);
        command
            .arg(folder.join(format!("{name}_rows.py")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
            .envs(THREAD_VARIABLES.map(|variable| (variable, threads.to_string())))
            .envs(WARM_MEMORY);
        // Ctrl-C is for the benchmark, which ends its peers: what they timed so far is kept.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let requests = child.stdin.take();
        let (send, answers) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                BufReader::new(output)
                    .lines()
                    .map_while(Result::ok)
                    .try_for_each(|line| send.send(line))
            });
        }
        let brief = PeerBrief {
            name: name.to_owned(),
            versions: BTreeMap::new(),
            threads: None,
            skipped: None,
        };
        let mut peer = Self {
            brief,
            calls: BTreeMap::new(),
            child,
            requests,
            answers,
        };
        let hello: Hello = peer
            .request(&json!({"do": "hello", "device": device, "threads": threads, "keys": keys}))?;
        peer.brief.versions = hello.versions;
        peer.brief.threads = Some(hello.threads);
        peer.calls = hello.rows;
        Ok(peer)
    }

    /// Fills the operands of a row and runs it once; the call that is timed, where the peer chose
    /// between several.
    pub(super) fn prepare(&mut self, key: &str) -> Result<Option<String>, String> {
        self.request::<PrepareResponse>(&json!({"do": "prepare", "key": key}))
            .map(|prepared| prepared.call)
    }

    /// Times the prepared row: at least `least` runs (one where a run is slow) and `seconds`, after
    /// one untimed run.
    pub(super) fn time(&mut self, seconds: f64, least: usize) -> Result<Vec<f64>, String> {
        let times: Times =
            self.request(&json!({"do": "time", "seconds": seconds, "least": least}))?;
        let are_times = !times.times_s.is_empty()
            && times
                .times_s
                .iter()
                .all(|time| time.is_finite() && *time > 0.0);
        if are_times {
            Ok(times.times_s)
        } else {
            Err("answered with no times".to_owned())
        }
    }

    fn request<A: DeserializeOwned>(&mut self, request: &Value) -> Result<A, String> {
        let requests = self.requests.as_mut().ok_or("its input is closed")?;
        writeln!(requests, "{request}")
            .and_then(|()| requests.flush())
            .map_err(|error| self.ended(&error.to_string()))?;
        let line = self
            .answers
            .recv_timeout(RESPONSE_TIMEOUT)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs())
                }
                RecvTimeoutError::Disconnected => self.ended("it closed its output"),
            })?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|error| format!("answered {line:?}: {error}"))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => serde_json::from_value(answer)
                .map_err(|error| format!("answered {line:?}: {error}")),
        }
    }

    fn ended(&mut self, otherwise: &str) -> String {
        match self.child.wait() {
            Ok(status) => format!("ended with {status}"),
            Err(_) => otherwise.to_owned(),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Closing its input ends it; a script that hangs is killed.
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interpreter(folder: &Path, name: &str) -> PathBuf {
    let environment = folder.join(format!(".venv-{name}"));
    if cfg!(windows) {
        environment.join("Scripts/python.exe")
    } else {
        environment.join("bin/python")
    }
}
