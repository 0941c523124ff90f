//! `cargo xtask mutate`: breaks the rules of each crate's `tests/mutations.toml` one at a time, in
//! a copy of the workspace, and requires a test of the crate to fail for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::test_programs::cargo_with_all_features;
use crate::{rotation, sources};

/// Timeout after which a program is killed: many times the duration of the slowest.
const PROGRAM_TIMEOUT_S: u32 = 1200;

/// The file of rules in the folder of a crate.
const TABLE: &str = "tests/mutations.toml";

#[derive(Deserialize)]
struct Table {
    mutation: Vec<Mutation>,
}

#[derive(Deserialize)]
struct Mutation {
    rule: String,
    /// Relative to the crate's folder.
    file: String,
    /// Occurs once in the file.
    from: String,
    to: String,
    /// `lib` for the crate's unit tests, else the name of an integration test.
    program: String,
    /// Arguments of the program: usually parts of the names of the tests that check the rule.
    arguments: Vec<String>,
    /// The package of the program if it is not the crate itself.
    #[serde(default)]
    tested_by: Option<String>,
    /// Not in the table: the crate.
    #[serde(skip)]
    package: String,
}

impl Mutation {
    fn place(&self) -> PathBuf {
        Path::new("crates").join(&self.package).join(&self.file)
    }

    /// The file to break, in which `from` occurs once.
    fn original(&self, root: &Path) -> Result<String, String> {
        let text = read(&root.join(self.place())).map_err(|error| {
            format!(
                "crates/{}/{TABLE}: rule \"{}\": {error}",
                self.package, self.rule
            )
        })?;
        match text.matches(&self.from).count() {
            1 => Ok(text),
            times => Err(format!(
                "crates/{}/{TABLE}: rule \"{}\": `from` occurs {times} times in {}, expected once",
                self.package,
                self.rule,
                self.place().display()
            )),
        }
    }

    /// The arguments of cargo that build the program.
    fn program(&self) -> Vec<&str> {
        let target: &[&str] = if self.program == "lib" {
            &["--lib"]
        } else {
            &["--test", &self.program]
        };
        [
            &[
                "test",
                "-q",
                "-p",
                self.tested_by.as_ref().unwrap_or(&self.package),
            ],
            target,
        ]
        .concat()
    }
}

/// The outcome of a mutation.
enum Outcome {
    /// A test failed: its line.
    Detected(String),
    NotCompiled,
    Missed,
}

/// Tries every mutation whose rule or file contains `filter`; or, of all, the number given by
/// `--sample`, different ones each hour.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let chosen = match arguments {
        [flag, count] if flag == "--sample" => {
            let parsed = count.parse();
            let count = parsed.map_err(|e| format!("mutate: --sample {count}: {e}"))?;
            rotation::of_this_hour(all(root)?, count)?
        }
        [] => all(root)?,
        [filter] => all(root)?
            .into_iter()
            .filter(|mutation| {
                mutation.rule.contains(filter)
                    || mutation.place().to_string_lossy().contains(filter)
            })
            .collect(),
        _ => return Err("usage: cargo xtask mutate [RULE | --sample COUNT]".to_owned()),
    };
    let copy = copy_workspace(root)?;
    // A sample is tried where the tests were built and passed: the dependencies are compiled
    // already. All of them take long and use a separate folder, so that other builds need not wait
    // for them.
    let is_sample = arguments.first().is_some_and(|flag| flag == "--sample");
    let target = if is_sample {
        root.join("target")
    } else {
        copy.with_file_name("target")
    };
    let place = MutationWorkspace {
        copy,
        target,
        packages: sources::crates(root)?,
    };
    let mut programs: BTreeMap<Vec<&str>, Vec<&Mutation>> = BTreeMap::new();
    chosen.iter().for_each(|mutation| {
        programs
            .entry(mutation.program())
            .or_default()
            .push(mutation)
    });
    let (mut detected, mut faults) = (0, 0);
    for (program, mutations) in programs {
        let mut whole: Vec<&[String]> = mutations
            .iter()
            .map(|mutation| mutation.arguments.as_slice())
            .collect();
        whole.sort_unstable();
        whole.dedup();
        if is_sample {
            whole.clear();
        }
        for arguments in whole {
            if let Some(line) = first_failure(&place, &program, arguments)? {
                return Err(format!(
                    "mutate: {program:?} {arguments:?} fails without a mutation: {line}"
                ));
            }
        }
        for mutation in mutations {
            match try_one(&place, &program, mutation)? {
                Outcome::Detected(test) => {
                    detected += 1;
                    println!("detected  {}: {test}", mutation.rule);
                }
                Outcome::NotCompiled => {
                    faults += 1;
                    println!("DOES NOT COMPILE  {}", mutation.rule);
                }
                Outcome::Missed => {
                    faults += 1;
                    println!("MISSED  {}", mutation.rule);
                }
            }
        }
    }
    println!("{detected} mutations detected, {faults} not");
    if faults == 0 {
        Ok(())
    } else {
        Err("mutate: a broken rule was not detected".to_owned())
    }
}

/// The rules whose place is not found, each with the reason.
///
/// # Errors
/// A table that cannot be read.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let mutations = tables(root)?;
    Ok(mutations
        .iter()
        .filter_map(|mutation| mutation.original(root).err())
        .collect())
}

/// The mutations of every table; for each, the text to break was found.
fn all(root: &Path) -> Result<Vec<Mutation>, String> {
    let mutations = tables(root)?;
    mutations
        .iter()
        .try_for_each(|mutation| mutation.original(root).map(|_| ()))?;
    Ok(mutations)
}

/// The rules of every crate.
fn tables(root: &Path) -> Result<Vec<Mutation>, String> {
    let mut mutations = Vec::new();
    for package in sources::crates(root)? {
        let path = format!("crates/{package}/{TABLE}");
        if !root.join(&path).exists() {
            continue;
        }
        let table: Table =
            toml::from_str(&read(&root.join(&path))?).map_err(|e| format!("{path}: {e}"))?;
        mutations.extend(table.mutation.into_iter().map(|mutation| Mutation {
            package: package.clone(),
            ..mutation
        }));
    }
    Ok(mutations)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The workspace's files under `target`; those that did not change keep their time, so that they
/// are not compiled again.
fn copy_workspace(root: &Path) -> Result<PathBuf, String> {
    let copy = root.join("target/mutants/workspace");
    let cannot = |e: std::io::Error| format!("mutate: copying: {e}");
    let listed = std::process::Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .output()
        .map_err(cannot)?;
    for file in String::from_utf8_lossy(&listed.stdout)
        .split('\0')
        .filter(|file| !file.is_empty() && root.join(file).is_file())
    {
        let (from, to) = (
            std::fs::read(root.join(file)).map_err(cannot)?,
            copy.join(file),
        );
        if std::fs::read(&to).is_ok_and(|old| old == from) {
            continue;
        }
        to.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .map_err(cannot)?;
        std::fs::write(&to, from).map_err(cannot)?;
    }
    Ok(copy)
}

fn try_one(
    place: &MutationWorkspace,
    program: &[&str],
    mutation: &Mutation,
) -> Result<Outcome, String> {
    let original = mutation.original(&place.copy)?;
    let put = |text: &str| {
        std::fs::write(place.copy.join(mutation.place()), text).map_err(|e| format!("mutate: {e}"))
    };
    put(&original.replacen(&mutation.from, &mutation.to, 1))?;
    let compiles = place.cargo(program).arg("--no-run").status();
    let outcome = match compiles.is_ok_and(|status| status.success()) {
        true => first_failure(place, program, &mutation.arguments)?
            .map_or(Outcome::Missed, Outcome::Detected),
        false => Outcome::NotCompiled,
    };
    put(&original)?;
    Ok(outcome)
}

/// The first test that fails, or how a compiled program ended. A program that does not end because
/// of the broken rule is killed.
fn first_failure(
    place: &MutationWorkspace,
    program: &[&str],
    arguments: &[String],
) -> Result<Option<String>, String> {
    let cargo = place.cargo(program);
    let mut command = std::process::Command::new("timeout");
    command
        .arg(PROGRAM_TIMEOUT_S.to_string())
        .arg(cargo.get_program())
        .args(cargo.get_args())
        .arg("--")
        .args(arguments);
    command
        .envs(
            cargo
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stderr(Stdio::null());
    if let Some(folder) = cargo.get_current_dir() {
        command.current_dir(folder);
    }
    let output = command
        .output()
        .map_err(|e| format!("mutate: timeout: {e}"))?;
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = text.lines().find(|line| {
        line.contains("FAILED") || line.contains("failed") || line.contains("panicked")
    });
    Ok(Some(failed.map_or_else(
        || format!("no test ended: {}", output.status),
        |line| line.trim().to_owned(),
    )))
}

/// The workspace in which mutations are tried.
struct MutationWorkspace {
    /// The copy of the workspace.
    copy: PathBuf,
    /// Cargo's target folder.
    target: PathBuf,
    /// Its packages.
    packages: Vec<String>,
}

impl MutationWorkspace {
    /// Cargo with little optimisation of the packages: each is compiled for a few tests.
    fn cargo(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = cargo_with_all_features(&self.copy, arguments);
        for package in &self.packages {
            command.arg(format!(
                "--config=profile.dev.package.{package}.opt-level=1"
            ));
        }
        command
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::null());
        command
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_mutation_finds_what_it_breaks() {
        let root = crate::root();
        assert_eq!(super::faults(&root).expect("whole tables"), [""; 0]);
        assert!(super::all(&root).expect("whole tables").len() >= 100);
    }

    #[test]
    fn every_rule_whose_place_is_not_found_is_a_fault() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| {
            let path = root.path().join("crates/a").join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("src/lib.rs", "one two two");
        let rule = |name: &str, file: &str, from: &str| {
            format!(
                "[[mutation]]\nrule = \"{name}\"\nfile = \"{file}\"\nfrom = \"{from}\"\nto = \"\"\nprogram = \"lib\"\narguments = []\n"
            )
        };
        let rules = [
            rule("found", "src/lib.rs", "one"),
            rule("gone", "src/lib.rs", "three"),
            rule("twice", "src/lib.rs", "two"),
            rule("moved", "src/other.rs", "one"),
        ];
        write(super::TABLE, &rules.concat());
        let faults = super::faults(root.path()).expect("a whole table");
        let place = "crates/a/tests/mutations.toml: rule";
        assert_eq!(
            faults[..2],
            [
                format!(
                    "{place} \"gone\": `from` occurs 0 times in crates/a/src/lib.rs, expected once"
                ),
                format!(
                    "{place} \"twice\": `from` occurs 2 times in crates/a/src/lib.rs, expected once"
                ),
            ]
        );
        assert!(
            faults.len() == 3 && faults[2].starts_with(&format!("{place} \"moved\": ")),
            "{faults:?}"
        );
        assert!(super::all(root.path()).is_err());
    }
}
