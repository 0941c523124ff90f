//! The steps of `cargo xtask test`, and `cargo xtask soak`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::tally::Tally;
use crate::test_programs::{self, Selection, Settings, cargo};
use crate::{
    atomic_writes, commands, documents, environment, examples, gpu_kit, imports, mutations, peers,
    performance, words,
};

/// File in which a whole run stores the time of every test, for [`quick`](crate::quick).
pub const TIMES: &str = "target/test-times.tsv";

/// Runs every step; the last line printed is the count.
pub fn run(root: &Path) -> Result<(), String> {
    structure(root)?;
    step("format", &mut cargo(root, &["fmt", "--all", "--check"]))?;
    step(
        "lints",
        &mut cargo(
            root,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ),
    )?;
    println!("== build");
    let programs = test_programs::build(root)?;
    let settings = Settings {
        environment: first_seed()?.into_iter().collect(),
        ..Settings::default()
    };
    let mut tally = Tally::from_environment();
    for program in programs.iter().filter(|program| program.is_test) {
        if !test_programs::run(program, &settings, &mut tally)? {
            tally.program_failed();
        }
    }
    println!("== examples");
    examples::run(root, &programs, &mut tally)?;
    println!("== examples in the documentation");
    tally.begin("documentation");
    if !test_programs::run_counted(
        &mut cargo(root, &["test", "--workspace", "--doc", "--no-fail-fast"]),
        &mut tally,
    )
    .map_err(|e| format!("cargo: {e}"))?
    {
        tally.program_failed();
    }
    commands::run(root, &commands::tectum(&programs)?)?;
    println!("== gpu kit");
    gpu_kit::run(root, &programs)?;
    let times: String = tally
        .times()
        .iter()
        .map(|(seconds, name)| format!("{seconds:.2}\t{name}\n"))
        .collect();
    std::fs::write(root.join(TIMES), times).map_err(|e| format!("{TIMES}: {e}"))?;
    if tally.report() {
        Ok(())
    } else {
        Err("tests failed".to_owned())
    }
}

/// Compares 20,000 random programs, 10,000 random graphs, 5,000 of each kind, and 10 million calls
/// of the public interface with the references; makes a million calls of the Python package.
pub fn soak(root: &Path) -> Result<(), String> {
    let programs = test_programs::build(root)?;
    let mut environment: HashMap<&'static str, String> = first_seed()?.into_iter().collect();
    environment.extend([
        ("TECTUM_GRAPHS", "5000".to_owned()),
        ("TECTUM_PROGRAMS", "20000".to_owned()),
        ("TECTUM_FUZZ_INPUTS", "2000000".to_owned()),
        ("TECTUM_API_CALLS", "10000000".to_owned()),
        ("TECTUM_PYTHON_CALLS", "1000000".to_owned()),
    ]);
    let mut tally = Tally::default();
    test_programs::run_selected(
        &programs,
        SOAKED,
        &Settings {
            environment,
            ..Settings::default()
        },
        &mut tally,
    )?;
    if tally.report() {
        Ok(())
    } else {
        Err("the soak failed".to_owned())
    }
}

/// Parts of the names of the tests with random cases.
const SOAKED: &Selection = &[
    (
        "tectum-programs",
        &["tests::equivalence", "block::", "generated_programs"],
    ),
    ("tectum-graph", &["tests::"]),
    ("tectum-bench", &["api_fuzz"]),
    ("tectum-spiking", &["api_fuzz"]),
    ("tectum-field", &["api_fuzz"]),
    ("tectum-control", &["parser_fuzz"]),
    ("tectum-py", &["random_calls"]),
];

/// A new seed for the tests of random programs, unless `TECTUM_SEED` gives it.
pub fn first_seed() -> Result<Option<(&'static str, String)>, String> {
    if std::env::var_os("TECTUM_SEED").is_some() {
        return Ok(None);
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(|e| format!("the clock: {e}"))?;
    let seed = now.as_secs() * 1_000;
    println!("== random programs from TECTUM_SEED={seed}");
    Ok(Some(("TECTUM_SEED", seed.to_string())))
}

/// Checks the order of modules, the links and paths in documents, their words, the places of
/// mutation rules, the peers' files and that the pages of figures match the records.
pub fn structure(root: &Path) -> Result<(), String> {
    let mut faults = imports::faults(root)?;
    faults.extend(atomic_writes::faults(root)?);
    faults.extend(documents::faults(root)?);
    faults.extend(environment::faults(root)?);
    faults.extend(words::faults(root)?);
    faults.extend(mutations::faults(root)?);
    faults.extend(imports::heavy(root)?);
    faults.extend(peers::faults(root)?);
    faults.extend(performance::faults(root)?);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("{} faults of structure", faults.len()))
    }
}

/// Runs a step and names it.
pub fn step(name: &str, command: &mut Command) -> Result<(), String> {
    println!("== {name}");
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed"))
    }
}
