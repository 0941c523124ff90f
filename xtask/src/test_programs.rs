//! The test programs of the workspace: built by cargo, run one after another, each test with its
//! time.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::tally::Tally;

/// A program that cargo built.
#[derive(Debug, Clone)]
pub struct Program {
    /// The package that it belongs to.
    pub package: String,
    /// Its target: the library, a program or an integration test.
    pub target: String,
    /// `lib`, `bin`, `test`.
    pub kind: String,
    /// Whether it runs tests.
    pub is_test: bool,
    /// Whether it is run by Rust's test harness; one with its own `main` counts its cases itself.
    pub has_harness: bool,
    pub executable: PathBuf,
    /// The folder of its package, where it runs.
    pub folder: PathBuf,
}

impl Program {
    /// How it is called in reports.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.package, self.kind, self.target)
    }
}

/// Cargo at the root of the workspace.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(arguments);
    command
}

/// The same for some packages of the workspace, with the features of dependencies that all packages
/// together select: with fewer of them cargo would compile the dependencies again, for minutes. This
/// is an unstable option of a stable cargo, enabled as the compiler's own build enables such.
pub fn cargo_with_all_features(root: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo(root, arguments);
    command.envs([
        ("__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS", "nightly"),
        ("CARGO_UNSTABLE_FEATURE_UNIFICATION", "true"),
        ("CARGO_RESOLVER_FEATURE_UNIFICATION", "workspace"),
    ]);
    command
}

/// Whether the compiler of the workspace is that of clippy, which lints what it compiles: a separate
/// run of clippy takes a quarter as long as the build. Cargo keeps what the two compile apart, so only
/// CI, which compiles everything anyway, uses it (`.ci/run`).
pub fn lints_while_compiling() -> bool {
    std::env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|wrapper| wrapper == "clippy-driver")
}

/// Builds every test and program of the workspace; warnings are refused where the build lints, by
/// another unstable option of a stable cargo.
///
/// # Errors
/// What cargo reports.
pub fn build(root: &Path) -> Result<Vec<Program>, String> {
    build_with(root, &[], &lints())
}

/// The variables with which a build refuses warnings, where it lints.
fn lints() -> HashMap<&'static str, String> {
    let variables = [
        ("__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS", "nightly"),
        ("CARGO_UNSTABLE_WARNINGS", "true"),
        ("CARGO_BUILD_WARNINGS", "deny"),
    ];
    let variables = variables.into_iter().filter(|_| lints_while_compiling());
    variables
        .map(|(name, value)| (name, value.to_owned()))
        .collect()
}

/// The same with further arguments and variables of cargo.
///
/// # Errors
/// As [`build`].
pub fn build_with(
    root: &Path,
    arguments: &[&str],
    environment: &HashMap<&'static str, String>,
) -> Result<Vec<Program>, String> {
    let mut command = cargo(root, &["test", "--workspace"]);
    programs_of(command.args(arguments).envs(environment))
}

/// The test programs of some packages.
///
/// # Errors
/// As [`build`].
pub fn build_packages<'p>(
    root: &Path,
    packages: impl IntoIterator<Item = &'p String>,
) -> Result<Vec<Program>, String> {
    let mut command = cargo_with_all_features(root, &["test"]);
    for package in packages {
        command.args(["-p", package]);
    }
    programs_of(&mut command)
}

/// The test programs of what arguments of cargo select, with the features of that alone.
///
/// # Errors
/// As [`build`].
pub fn build_alone(root: &Path, arguments: &[String]) -> Result<Vec<Program>, String> {
    let mut command = cargo(root, &["test"]);
    programs_of(command.args(arguments).envs(lints()))
}

/// What a command of cargo that tests builds.
fn programs_of(command: &mut Command) -> Result<Vec<Program>, String> {
    let output = command
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let programs = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| program(&message));
    programs.collect()
}

fn program(message: &Value) -> Option<Result<Program, String>> {
    let executable = PathBuf::from(message["executable"].as_str()?);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let target = text(&message["target"]["name"]);
    let kind = text(&message["target"]["kind"][0]);
    let table = std::fs::read_to_string(&manifest)
        .map_err(|e| e.to_string())
        .and_then(|text| text.parse::<toml::Table>().map_err(|e| e.to_string()));
    let table = match table {
        Ok(table) => table,
        Err(error) => return Some(Err(format!("{}: {error}", manifest.display()))),
    };
    let tests = table
        .get("test")
        .and_then(|tests| tests.as_array())
        .into_iter()
        .flatten();
    let is_own = |test: &toml::Value| {
        test.get("name").and_then(|name| name.as_str()) == Some(&target)
            && test.get("harness").and_then(|h| h.as_bool()) == Some(false)
    };
    let has_harness = kind != "test" || !tests.into_iter().any(is_own);
    let package = table
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(|name| name.as_str())
        .unwrap_or_default()
        .to_owned();
    Some(Ok(Program {
        package,
        target,
        kind,
        is_test: message["profile"]["test"] == true,
        has_harness,
        executable,
        folder,
    }))
}

/// How tests are run.
#[derive(Debug, Default)]
pub struct Settings {
    pub environment: HashMap<&'static str, String>,
    /// Parts of the names of the tests that are run; all if none is given.
    pub only: Vec<String>,
    /// Parts of the names of tests that are left out.
    pub skipped: Vec<String>,
    /// Tests of single packages that are left out, by package and name.
    pub left_out: Vec<(&'static str, &'static str)>,
}

/// Runs a test program and counts; returns whether it succeeded.
///
/// # Errors
/// If it does not start.
pub fn run(program: &Program, settings: &Settings, tally: &mut Tally) -> Result<bool, String> {
    let name = program.name();
    tally.print(format!("== {name}"));
    tally.begin(&name);
    let mut command = Command::new(&program.executable);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .envs(&settings.environment);
    if program.has_harness {
        // The harness gives times and output of tests as JSON only: an unstable option of a stable
        // harness.
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .args([
                "-Z",
                "unstable-options",
                "--format",
                "json",
                "--report-time",
                "--show-output",
            ])
            .args(&settings.only);
        let of_package = |(package, _): &&(&str, &str)| *package == program.package;
        let left_out = settings.left_out.iter().filter(of_package);
        let skipped = settings.skipped.iter().map(String::as_str);
        for test in skipped.chain(left_out.map(|(_, test)| *test)) {
            command.args(["--skip", test]);
        }
    } else {
        command.arg("--nocapture");
    }
    run_counted(&mut command, tally).map_err(|e| format!("{name}: {e}"))
}

/// Programs that run at the same time. Each runs two tests at a time on two processors, so that
/// neither waits where the tests of one program have a long last one, start processes or compile
/// kernels on one thread.
const AT_ONCE: usize = 2;

/// Runs test programs, [`AT_ONCE`] at a time in the order of the slice, and counts. The output of
/// each is printed when it ends.
///
/// # Errors
/// If one does not start.
pub fn run_all(
    programs: &[&Program],
    settings: &Settings,
    tally: &mut Tally,
) -> Result<(), String> {
    let total = Mutex::new(tally);
    let lock = || total.lock().unwrap_or_else(PoisonError::into_inner);
    let results = at_once(programs, |program| -> Result<(), String> {
        let mut part = lock().part();
        if !run(program, settings, &mut part)? {
            part.program_failed();
        }
        lock().add(part);
        Ok(())
    });
    results.into_iter().collect()
}

/// What a function gives for each element, for [`AT_ONCE`] of them at a time, in their order.
pub fn at_once<T: Sync, R: Send>(elements: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match elements.get(index) {
                Some(element) => results.push((index, work(element))),
                None => return results,
            }
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .flat_map(|results| results.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Packages and parts of the names of their tests; all tests where none is given.
pub type Selection = [(&'static str, &'static [&'static str])];

/// Runs the selected tests and counts.
///
/// # Errors
/// If a program does not start, or a package or part of a name selects no test: it was moved or
/// renamed.
pub fn run_selected(
    programs: &[Program],
    selection: &Selection,
    settings: &Settings,
    tally: &mut Tally,
) -> Result<(), String> {
    for (package, parts) in selection {
        let only = parts.iter().map(|part| (*part).to_owned()).collect();
        let settings = Settings {
            environment: settings.environment.clone(),
            only,
            skipped: settings.skipped.clone(),
            ..Settings::default()
        };
        for program in programs
            .iter()
            .filter(|program| program.is_test && program.has_harness && program.package == *package)
        {
            if !run(program, &settings, tally)? {
                tally.program_failed();
            }
        }
    }
    let is_run = |package: &str, part: &str| {
        tally
            .times()
            .iter()
            .any(|(_, test)| test.starts_with(&format!("{package} ")) && test.contains(part))
    };
    for (package, parts) in selection {
        let parts: &[&str] = if parts.is_empty() { &[""] } else { parts };
        if let Some(part) = parts.iter().find(|part| !is_run(package, part)) {
            return Err(format!("no test of {package} has {part:?} in its name"));
        }
    }
    Ok(())
}

/// Runs a command that prints test results, passes on what is not JSON, and counts.
///
/// # Errors
/// If it does not start.
pub fn run_counted(command: &mut Command, tally: &mut Tally) -> std::io::Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as _),
        child.stderr.take().map(|stream| Box::new(stream) as _),
    ];
    // One thread for each stream, so that neither fills up while the other is read.
    let (send, receive) = std::sync::mpsc::channel();
    for stream in streams.into_iter().flatten() {
        let send = send.clone();
        std::thread::spawn(move || {
            let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
            lines
                .map(|line| String::from_utf8_lossy(&line).into_owned())
                .try_for_each(|line| send.send(line))
        });
    }
    drop(send);
    receive.into_iter().for_each(|line| tally.count(&line));
    Ok(child.wait()?.success())
}
