//! `cargo xtask sanitize`: the test programs of the crates with `unsafe` under AddressSanitizer,
//! and those of code shared by threads under ThreadSanitizer. Instrumentation is an unstable option
//! of a stable compiler, so it is requested by `RUSTC_BOOTSTRAP`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::tally::Tally;
use crate::test_programs::{self, Selection, Settings};

/// The target triple that the sanitizers are built for: with one, build scripts and macros are not
/// instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A sanitizer with the programs that run under it.
struct Sanitizer {
    name: &'static str,
    /// Packages and parts of the names of their tests; all if none is given.
    programs: &'static Selection,
    /// Parts of the names of tests that are left out.
    skipped: &'static [&'static str],
    flags: &'static str,
    /// Whether the standard library is instrumented too, which requires its source.
    rebuilds_std: bool,
    /// The variable with its options, and these.
    options: (&'static str, &'static str),
    /// Reports that are not errors.
    known: &'static [Known],
}

/// A report that is not an error: the standard library is compiled without instrumentation, and its
/// generic functions with code optimised before.
struct Known {
    /// All occur in the report.
    parts: &'static [&'static str],
    reason: &'static str,
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "address",
        programs: &[
            ("tectum", &[]),
            ("tectum-programs", &[]),
            ("tectum-graph", &[]),
            ("tectum-bench", &[]),
            ("tectum-spiking", &[]),
            ("tectum-field", &[]),
            ("tectum-transformer", &[]),
            ("tectum-control", &["learn", "defect", "snapshot"]),
        ],
        // Freed memory is kept for a while, which looks like growth; a search for hash collisions
        // and an optimum by enumeration only take time.
        skipped: &[
            "memory_does_not_grow",
            "endings_give_two_texts_one_hash",
            "regret",
        ],
        flags: "-Zsanitizer=address -Zsanitizer-recover=address",
        rebuilds_std: false,
        // Drivers keep their allocations until the process ends.
        options: ("ASAN_OPTIONS", "detect_leaks=0:halt_on_error=0"),
        known: &[Known {
            parts: &[
                "stack-use-after-scope",
                "#0 ",
                " in <core::iter::adapters::",
            ],
            reason: "an iterator of the standard library, inlined before instrumentation, with the scopes of its temporaries moved (rust-lang/rust#98454)",
        }],
    },
    Sanitizer {
        name: "thread",
        programs: &[
            (
                "tectum",
                &["thread_pool", "stream", "memory", "devices", "defect_17"],
            ),
            ("tectum-programs", &["stream", "devices"]),
            (
                "tectum-bench",
                &["defect_02", "defect_03", "defect_10", "api_fuzz"],
            ),
            ("tectum-spiking", &["learning"]),
            (
                "tectum-control",
                &[
                    "learner",
                    "learning",
                    "run_folder",
                    "defect_13",
                    "defect_18",
                ],
            ),
        ],
        skipped: &["memory_does_not_grow"],
        flags: "-Zsanitizer=thread",
        // Without it, synchronisation by a mutex, a condition variable or a channel looks like a
        // race: 993 reports in a trial, above all of the memory pool, whose state a mutex protects.
        rebuilds_std: true,
        options: ("TSAN_OPTIONS", "halt_on_error=0:exitcode=0:history_size=7"),
        known: &[],
    },
];

/// Builds and runs the programs under all sanitizers, or the named one.
///
/// # Errors
/// If a program does not compile, a test fails or a sanitizer reports something.
pub fn run(root: &Path, only: Option<&str>) -> Result<(), String> {
    let folder = root.join("target/sanitize");
    let mut failed = Vec::new();
    for sanitizer in SANITIZERS
        .iter()
        .filter(|sanitizer| only.is_none_or(|only| only == sanitizer.name))
    {
        println!("== {} sanitizer", sanitizer.name);
        let build = HashMap::from([
            ("RUSTC_BOOTSTRAP", "1".to_owned()),
            (
                "CARGO_TARGET_DIR",
                folder.join(sanitizer.name).display().to_string(),
            ),
            (
                "RUSTFLAGS",
                format!("{} -Cunsafe-allow-abi-mismatch=sanitizer", sanitizer.flags),
            ),
        ]);
        let mut arguments = vec!["--target", TARGET];
        if sanitizer.rebuilds_std {
            check_std_source(sanitizer.name)?;
            arguments.push("-Zbuild-std");
        }
        let programs = test_programs::build_with(root, &arguments, &build)?;
        let logs = folder.join(format!("{}-reports", sanitizer.name));
        let cannot = |e: std::io::Error| format!("sanitize: {}: {e}", logs.display());
        if logs.exists() {
            std::fs::remove_dir_all(&logs).map_err(cannot)?;
        }
        std::fs::create_dir_all(&logs).map_err(cannot)?;
        let (variable, options) = sanitizer.options;
        let options = format!("{options}:log_path={}", logs.join("report").display());
        let mut tally = Tally::default();
        let environment = HashMap::from([
            (variable, options.clone()),
            ("TECTUM_PROGRAMS", "20".to_owned()),
            ("TECTUM_GRAPHS", "200".to_owned()),
        ]);
        let skipped = sanitizer
            .skipped
            .iter()
            .map(|part| (*part).to_owned())
            .collect();
        test_programs::run_selected(
            &programs,
            sanitizer.programs,
            &Settings {
                environment,
                skipped,
                ..Settings::default()
            },
            &mut tally,
        )?;
        let is_clean = judge(&logs, sanitizer.known)?;
        if !tally.report() || !is_clean {
            failed.push(sanitizer.name);
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("sanitizers with reports: {failed:?}"))
    }
}

/// Rejects a sanitizer that needs a rebuilt standard library if its source is absent.
fn check_std_source(name: &str) -> Result<(), String> {
    let output = std::process::Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let source = Path::new(String::from_utf8_lossy(&output.stdout).trim())
        .join("lib/rustlib/src/rust/library");
    if source.is_dir() {
        return Ok(());
    }
    Err(format!(
        "sanitize {name}: the standard library is rebuilt for it, and its source is absent ({}); rustup component add rust-src",
        source.display()
    ))
}

/// Prints every unknown report, and how often each known one occurred; returns whether all are
/// known.
fn judge(logs: &Path, known: &[Known]) -> Result<bool, String> {
    let cannot = |e: std::io::Error| format!("sanitize: {}: {e}", logs.display());
    let (mut unknown, mut counts) = (0, BTreeMap::new());
    for file in std::fs::read_dir(logs).map_err(cannot)? {
        let text =
            String::from_utf8_lossy(&std::fs::read(file.map_err(cannot)?.path()).map_err(cannot)?)
                .into_owned();
        for report in text
            .split("==================\n")
            .filter(|report| report.contains("SUMMARY: "))
        {
            match known.iter().find(|known| is_of(report, known)) {
                Some(known) => *counts.entry(known.reason).or_insert(0) += 1,
                None => {
                    unknown += 1;
                    println!("{report}");
                }
            }
        }
    }
    counts
        .iter()
        .for_each(|(reason, count)| println!("{count} reports that are no errors: {reason}"));
    println!("{unknown} reports");
    Ok(unknown == 0)
}

/// Whether the parts of a known report occur in this one, in order.
fn is_of(report: &str, known: &Known) -> bool {
    let mut rest = report;
    known.parts.iter().all(|part| {
        rest.split_once(part)
            .map(|(_, after)| rest = after)
            .is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_known_by_its_parts_in_their_order() {
        let known = Known {
            parts: &["use-after-scope", "#0 ", " in <core::"],
            reason: "",
        };
        assert!(is_of(
            "ERROR: stack-use-after-scope\n  #0 0x1 in <core::iter>",
            &known
        ));
        assert!(!is_of(
            "#0 0x1 in <core::iter> stack-use-after-scope",
            &known
        ));
        assert!(!is_of(
            "ERROR: heap-buffer-overflow\n  #0 0x1 in <core::iter>",
            &known
        ));
    }
}
