//! Runs the tests of the package in Python, on the library that cargo has just built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
use tectum_control::scenario::{ClockKind, Scenario, embedded};

/// What the tests need.
const MODULES: &str = "import gymnasium, numpy, pytest, sys; assert sys.version_info >= (3, 11)";

/// The environment of the checkout if it has one, else the machine's Python.
fn interpreter(root: &Path) -> PathBuf {
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

/// Runs pytest with the package as cargo has just built it; the variables are computed only then.
fn run_pytest(arguments: &[&str], variables: fn() -> Vec<(&'static str, String)>) {
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
    // The library is next to the test program.
    let program = std::env::current_exe().expect("a path");
    let library = program.with_file_name(format!(
        "{}_tectum{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    let site = tempfile::tempdir().expect("a folder");
    let package = site.path().join("tectum");
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
    let tests = Command::new(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(arguments)
        .current_dir(here)
        .env("PYTHONPATH", site.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables())
        .output()
        .expect("Python");
    let printed = String::from_utf8_lossy(&tests.stdout);
    println!("{printed}{}", String::from_utf8_lossy(&tests.stderr));
    assert!(tests.status.success(), "tests in Python failed");
}

#[test]
fn the_tests_of_the_package_pass() {
    run_pytest(&["tests", "--ignore=tests/test_random_calls.py"], || {
        vec![("TECTUM_TRACES", traces())]
    });
}

#[test]
fn random_calls_of_the_package_end_as_they_should() {
    run_pytest(&["-s", "tests/test_random_calls.py"], Vec::new);
}
