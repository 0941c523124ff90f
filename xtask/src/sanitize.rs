//! `cargo xtask sanitize`: the test programs of the crates with `unsafe` under AddressSanitizer, and those of what several threads share under
//! ThreadSanitizer. Instrumentation is an unstable option of a stable compiler, so it is asked for by `RUSTC_BOOTSTRAP`.

use std::collections::HashMap;
use std::path::Path;

use crate::tally::Tally;
use crate::test_programs::{self, Settings};

/// The target triple that the sanitizers are built for: with one, build scripts and macros are not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const KNOWN_RACES_FILE: &str = "known-races.txt";
/// The standard library is not instrumented, so that what it orders by its own means looks like a race. Each is listed with the reason.
const KNOWN_RACES: &str = "\
# Channels and thread starts order by code of the standard library, which is not instrumented: a value handed over that way seems unordered.
race:std::sync::mpsc
race:std::thread
race:alloc::sync::Arc
# Queues of work of rayon order by fences, which ThreadSanitizer does not model.
race:crossbeam_deque
race:crossbeam_epoch
race:rayon_core
";

/// A sanitizer with what runs under it.
struct Sanitizer {
    name: &'static str,
    /// Packages and parts of the names of their tests; all where none is given.
    programs: &'static [(&'static str, &'static [&'static str])],
    /// A variable, and what it is set to.
    options: (&'static str, &'static str),
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "address",
        programs: &[("tectum", &[]), ("tectum-models", &["spiking", "field", "body", "snapshot", "gguf", "mppi"])],
        // Drivers keep what they allocated until the process ends.
        options: ("ASAN_OPTIONS", "detect_leaks=0"),
    },
    Sanitizer {
        name: "thread",
        programs: &[
            ("tectum", &["thread_pool", "stream", "memory", "devices", "defect_03", "defect_10", "defect_17"]),
            ("tectum-models", &["learner", "learning", "run_folder"]),
        ],
        options: ("TSAN_OPTIONS", "suppressions=known-races.txt"),
    },
];

/// Builds and runs what the sanitizers watch; all of them, or the one that is named.
///
/// # Errors
/// If a program does not compile, a test fails or a sanitizer reports something.
pub fn run(root: &Path, only: Option<&str>) -> Result<(), String> {
    let folder = root.join("target/sanitize");
    std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(KNOWN_RACES_FILE), KNOWN_RACES)).map_err(|e| format!("sanitize: {e}"))?;
    let mut failed = Vec::new();
    for sanitizer in SANITIZERS.iter().filter(|sanitizer| only.is_none_or(|only| only == sanitizer.name)) {
        println!("== {} sanitizer", sanitizer.name);
        let build = HashMap::from([
            ("RUSTC_BOOTSTRAP", "1".to_owned()),
            ("CARGO_TARGET_DIR", folder.join(sanitizer.name).display().to_string()),
            ("RUSTFLAGS", format!("-Zsanitizer={} -Cunsafe-allow-abi-mismatch=sanitizer", sanitizer.name)),
        ]);
        let programs = test_programs::build_with(root, &["--target", TARGET], &build)?;
        let mut tally = Tally::default();
        for (package, only) in sanitizer.programs {
            let (variable, options) = sanitizer.options;
            let options = options.replace(KNOWN_RACES_FILE, &folder.join(KNOWN_RACES_FILE).display().to_string());
            let environment = HashMap::from([(variable, options), ("TECTUM_PROGRAMS", "20".to_owned()), ("TECTUM_GRAPHS", "20".to_owned())]);
            let settings = Settings { environment, only: only.iter().map(|part| (*part).to_owned()).collect(), ..Settings::default() };
            for program in programs.iter().filter(|program| program.is_test && program.has_harness && program.package == *package) {
                if !test_programs::run(program, &settings, &mut tally)? {
                    tally.program_failed();
                }
            }
        }
        if !tally.report() {
            failed.push(sanitizer.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("sanitizers with reports: {failed:?}")) }
}
