//! Runs the tests of the package in Python, on the library that cargo has just built: as an
//! installed wheel, if `TECTUM_WHEEL_PYTHON` names an interpreter that has it, without a compiler on
//! the path; else from a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
use tectum_control::scenario::{ClockKind, Scenario, embedded};

/// What the tests need.
const MODULES: &str = "import gymnasium, numpy, pytest, sys; assert sys.version_info >= (3, 11)";

/// Variable with the interpreter in which the wheel is installed.
const WHEEL: &str = "TECTUM_WHEEL_PYTHON";

/// That with the wheel, the environment of the checkout if it has one, else the machine's Python.
fn interpreter(root: &Path) -> PathBuf {
    if let Some(python) = std::env::var_os(WHEEL) {
        return python.into();
    }
    let own = root.join(".venv/bin/python3");
    if own.is_file() {
        own
    } else {
        PathBuf::from("python3")
    }
}

/// Seconds of the body's time that each scenario runs.
const SECONDS: f64 = 1.0;

/// The trace of each built-in scenario, in simulated time: the tests compare theirs with them.
fn traces() -> String {
    let run = |(name, _): (&str, &str)| {
        let mut scenario = Scenario::open(name)?;
        scenario.set_clock(ClockKind::Sim);
        scenario.set_seconds(SECONDS)?;
        let body = build_body(&scenario)?;
        let recipe = brain_recipe(&scenario, body.spec())?;
        let mut closed_loop = build_loop(
            &scenario,
            body,
            recipe,
            &tectum::Device::open("cpu")?,
            &mut tectum::WorkProgress::ignore,
        )?;
        let trace = closed_loop
            .simulate()
            .into_result()?
            .receipt
            .trace
            .map(|trace| trace.to_string());
        Ok((name.to_owned(), trace.unwrap_or_default()))
    };
    let traces: tectum::Result<BTreeMap<String, String>> = embedded().map(run).collect();
    serde_json::to_string(&traces.expect("every scenario runs")).expect("JSON")
}

/// Runs pytest with the package as cargo has just built it.
fn run_pytest(arguments: &[&str], needs_traces: bool) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = interpreter(&here.join("../.."));
    let has_modules = Command::new(&python)
        .args(["-c", MODULES])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_modules {
        println!(
            "skipped: python 3.11 with NumPy, pytest and gymnasium: the tests of the package tectum"
        );
        return;
    }
    let site = tempfile::tempdir().expect("a folder");
    let mut tests = Command::new(&python);
    tests
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(arguments)
        .current_dir(here)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if needs_traces {
        tests.env("TECTUM_TRACES", traces());
    }
    if std::env::var_os(WHEEL).is_some() {
        tests.env("PATH", "/usr/bin:/bin").env_remove("PYTHONPATH");
    } else {
        package(here, site.path());
        tests.env("PYTHONPATH", site.path());
    }
    let tests = tests.output().expect("Python");
    let printed = String::from_utf8_lossy(&tests.stdout);
    println!("{printed}{}", String::from_utf8_lossy(&tests.stderr));
    assert!(tests.status.success(), "tests in Python failed");
}

/// Makes the package in a folder, from its files and the library next to this program.
fn package(here: &Path, site: &Path) {
    let program = std::env::current_exe().expect("a path");
    let library = program.with_file_name(format!(
        "{}_tectum{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    let package = site.join("tectum");
    std::fs::create_dir(&package).expect("a folder");
    for entry in std::fs::read_dir(here.join("python/tectum"))
        .expect("the package")
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        std::fs::copy(entry.path(), package.join(entry.file_name())).expect("a copy");
    }
    std::fs::copy(&library, package.join("_tectum.abi3.so"))
        .unwrap_or_else(|error| panic!("{}: {error}", library.display()));
}

#[test]
fn the_tests_of_the_package_pass() {
    run_pytest(&["tests", "--ignore=tests/test_random_calls.py"], true);
}

#[test]
fn random_calls_of_the_package_end_as_they_should() {
    run_pytest(&["-s", "tests/test_random_calls.py"], false);
}
