//! The steps of `cargo xtask test`, and the count of what passed, failed and was skipped.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{gpu_kit, layers, paths, peers, performance};

/// What the test runs printed.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
    /// Lines such as `conformance on cpu: 417 cases`.
    cases: Vec<String>,
    /// What cargo said it runs last.
    running: String,
    /// Tests and targets that failed.
    failures: Vec<String>,
    /// What panics said, of which an expected one is seldom a line.
    panics: Vec<String>,
    /// The line before told of a panic.
    is_told: bool,
}

/// Runs every step; the last line printed is the count.
pub fn run(root: &Path) -> Result<(), String> {
    structure(root)?;
    step("lints", &mut cargo(root, &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    let mut tally = Tally::default();
    let tests = tally.run(programs(None)?.current_dir(root).args(["test", "--release", "--workspace", "--no-fail-fast", "--", "--nocapture"]))?;
    println!("== gpu kit");
    gpu_kit::run(root)?;
    println!();
    tally.cases.iter().chain(&tally.skipped).for_each(|line| println!("{line}"));
    if tally.failed > 0 || !tests {
        tally.panics.iter().for_each(|panic| println!("{panic}"));
    }
    tally.failures.iter().for_each(|failure| println!("failed: {failure}"));
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped.len());
    if tests && tally.failed == 0 { Ok(()) } else { Err("tests failed".to_owned()) }
}

/// Holds 20,000 random programs and 10,000 random graphs, 5,000 of each kind, against the references, on every device.
pub fn soak(root: &Path) -> Result<(), String> {
    let graphs = ["test", "--release", "--workspace", "--lib", "--", "--nocapture", "graph::tests"];
    step("soak of graphs", programs(None)?.env("TECTUM_GRAPHS", "5000").current_dir(root).args(graphs))?;
    let arguments = ["test", "--release", "--workspace", "--lib", "--", "--nocapture", "program::tests::equivalence", "program::block", "generated_programs"];
    step("soak", programs(Some(20_000))?.current_dir(root).args(arguments))
}

/// Cargo with seeds for the tests of random programs that no run had before, unless `TECTUM_SEED` gives the first.
fn programs(count: Option<u64>) -> Result<Command, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if std::env::var_os("TECTUM_SEED").is_none() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_err(|e| format!("the clock: {e}"))?;
        let seed = now.as_secs() * 1_000;
        println!("== random programs from TECTUM_SEED={seed}");
        command.env("TECTUM_SEED", seed.to_string());
    }
    if let Some(count) = count {
        command.env("TECTUM_PROGRAMS", count.to_string());
    }
    Ok(command)
}

/// Checks the order of modules, the names in documents, the peers' files and that the page of figures is the records'.
pub fn structure(root: &Path) -> Result<(), String> {
    let mut faults = layers::violations(root)?;
    for document in ["ARCHITECTURE.md", "README.md"] {
        faults.extend(paths::missing(root, document)?);
    }
    faults.extend(peers::faults(root)?);
    faults.extend(performance::faults(root)?);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults of structure", faults.len())) }
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(arguments);
    command
}

fn step(name: &str, command: &mut Command) -> Result<(), String> {
    println!("== {name}");
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}

impl Tally {
    /// Runs a test command, passes its output on and counts; says whether it succeeded.
    fn run(&mut self, command: &mut Command) -> Result<bool, String> {
        println!("== tests");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|e| format!("tests: {e}"))?;
        let streams: [Option<Box<dyn Read + Send>>; 2] =
            [child.stdout.take().map(|stream| Box::new(stream) as _), child.stderr.take().map(|stream| Box::new(stream) as _)];
        // One thread a stream, so that neither fills up while the other is read.
        let (send, receive) = std::sync::mpsc::channel();
        for stream in streams.into_iter().flatten() {
            let send = send.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
                lines.map(|line| String::from_utf8_lossy(&line).into_owned()).try_for_each(|line| send.send(line))
            });
        }
        drop(send);
        for line in receive {
            println!("{line}");
            self.count(&line);
        }
        Ok(child.wait().map_err(|e| format!("tests: {e}"))?.success())
    }

    fn count(&mut self, line: &str) {
        // With captured output off, the harness prints a test's name on the line that the test continues.
        let said = line.find("skipped: ").map(|at| &line[at..]);
        self.skipped.extend(said.map(str::to_owned));
        if line.starts_with("conformance on ") {
            self.cases.push(line.to_owned());
        }
        if let Some(running) = line.trim_start().strip_prefix("Running ") {
            self.running = running.to_owned();
        }
        let panics = line.starts_with("thread '") && line.contains(" panicked at ");
        if panics || self.is_told {
            self.panics.push(line.to_owned());
        }
        self.is_told = panics;
        if line.starts_with("test ") && line.ends_with("FAILED") {
            self.failures.push(line.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        if result.starts_with("FAILED") {
            self.failures.push(format!("a test of {}", self.running));
        }
        let number = |what: &str| {
            let before = result.split(what).next().unwrap_or_default().trim();
            before.rsplit([' ', ';']).next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        self.passed += number(" passed");
        self.failed += number(" failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named_with_their_target() {
        let mut tally = Tally::default();
        let lines = [
            "     Running tests/a.rs (target/release/deps/a-1)",
            "test fine ... ok",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
            "     Running tests/b.rs (target/release/deps/b-2)",
            "thread 'broken' (7) panicked at src/b.rs:3:5:",
            "1 is not 2",
            "test broken ... FAILED",
            "skipped: no cuda:0",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        ];
        lines.iter().for_each(|line| tally.count(line));
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (4, 1, 1));
        assert_eq!(tally.panics, ["thread 'broken' (7) panicked at src/b.rs:3:5:", "1 is not 2"]);
        assert_eq!(tally.failures, ["test broken ... FAILED", "a test of tests/b.rs (target/release/deps/b-2)"]);
    }
}
