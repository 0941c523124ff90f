//! The steps of `cargo xtask test`, and `cargo xtask soak`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::budget::timed;
use crate::tally::Tally;
use crate::test_programs::{self, Program, Selection, Settings, cargo};
use crate::{
    atomic_writes, commands, documents, environment, examples, gpu_kit, imports, mutations, peers,
    performance, sample, wheel, words,
};

/// File in which a whole run stores the time of every test, for [`quick`](crate::quick).
pub const TIMES: &str = "target/test-times.tsv";

/// Test programs that take longest, in the order in which they start; the others follow.
const SLOW_PROGRAMS: [(&str, &str); 9] = [
    ("driver-double", "cuda_device"),
    ("tectum-control", "suite"),
    ("tectum-py", "python"),
    ("tectum-cli", "suite"),
    ("tectum-transformer", "suite"),
    ("tectum-transformer", "plans"),
    ("tectum-graph", "tectum_graph"),
    ("tectum-programs", "tectum_programs"),
    ("tectum-bench", "suite"),
];

/// Which steps of the test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All.
    Whole,
    /// Structure, format, lints and the build: what needs Rust alone. CI installs the rest at the
    /// same time.
    Build,
    /// What follows the build, which compiles nothing a second time; of slow tests perhaps a sample.
    Run { is_sample: bool },
}

/// Runs the steps of a part; the last line printed is the count.
pub fn run(root: &Path, part: Part) -> Result<(), String> {
    let is_sample = part == Part::Run { is_sample: true };
    let programs = if matches!(part, Part::Run { .. }) {
        test_programs::build(root)?
    } else {
        timed(root, "structure and format", || {
            structure(root)?;
            succeed("format", &mut cargo(root, &["fmt", "--all", "--check"]))
        })?;
        if !test_programs::lints_while_compiling() {
            timed(root, "lints", || succeed("lints", &mut lints(root)))?;
        }
        timed(root, "build", || test_programs::build(root))?
    };
    if part == Part::Build {
        return Ok(());
    }
    let wheel = timed(root, "wheel", || wheel::install(root, &programs))?;
    let mut tally = Tally::from_environment();
    timed(root, "tests", || {
        let mut environment: HashMap<_, _> = first_seed()?.into_iter().collect();
        let python = wheel.map(|python| python.to_string_lossy().into_owned());
        environment.extend(python.map(|python| (wheel::INTERPRETER, python)));
        let left_out = if is_sample {
            environment.extend([sample::part()?]);
            sample::left_out()?
        } else {
            Vec::new()
        };
        for (package, test) in &left_out {
            println!("left to other runs: {package} {test}");
        }
        let settings = Settings {
            environment,
            left_out,
            ..Settings::default()
        };
        let mut tests: Vec<&Program> = programs.iter().filter(|program| program.is_test).collect();
        let rank = |program: &&Program| {
            SLOW_PROGRAMS
                .iter()
                .position(|name| (program.package.as_str(), program.target.as_str()) == *name)
                .unwrap_or(SLOW_PROGRAMS.len())
        };
        tests.sort_by_key(rank);
        test_programs::run_all(&tests, &settings, &mut tally)?;
        let is_run = |(package, test): &&(&str, &str)| {
            let times = tally.times().iter();
            times
                .map(|(_, name)| name)
                .any(|name| name.starts_with(&format!("{package} ")) && name.ends_with(test))
        };
        let missing = sample::SLOW_TESTS
            .iter()
            .find(|test| !settings.left_out.contains(test) && !is_run(test));
        missing.map_or(Ok(()), |(package, test)| {
            Err(format!("xtask/src/sample.rs: {package} has no test {test}"))
        })
    })?;
    timed(root, "examples", || {
        examples::run(root, &programs, &mut tally)
    })?;
    timed(root, "examples in the documentation", || {
        tally.begin("documentation");
        let mut command = cargo(root, &["test", "--workspace", "--doc", "--no-fail-fast"]);
        if !test_programs::run_counted(&mut command, &mut tally)
            .map_err(|e| format!("cargo: {e}"))?
        {
            tally.program_failed();
        }
        Ok(())
    })?;
    timed(root, "commands of the documents", || {
        commands::run(root, &commands::tectum(&programs)?)
    })?;
    if !is_sample {
        timed(root, "GPU kit", || gpu_kit::run(root, &programs))?;
    }
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

/// The lints of all crates, warnings refused.
pub fn lints(root: &Path) -> Command {
    cargo(
        root,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )
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
        ("TECTUM_ARCHITECTURES", "5".to_owned()),
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
    ("tectum-control", &["parser_fuzz", "translates_to_ptx"]),
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

/// Runs a command that must succeed.
pub fn succeed(name: &str, command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed"))
    }
}
