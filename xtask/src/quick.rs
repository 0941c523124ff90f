//! `cargo xtask quick`: the checks between two edits. Format, structure, lints, and the tests of
//! the crates that changed, with small random budgets; it prints what it left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ros2;
use crate::suite::{self, TIMES};
use crate::tally::Tally;
use crate::test_programs::{self, Program, Settings, cargo, cargo_with_all_features};

/// Variables for the number of random cases, and how many are drawn here.
const BUDGETS: [(&str, &str); 5] = [
    ("TECTUM_PROGRAMS", "20"),
    ("TECTUM_GRAPHS", "50"),
    ("TECTUM_FUZZ_INPUTS", "2000"),
    ("TECTUM_API_CALLS", "5000"),
    ("TECTUM_PYTHON_CALLS", "500"),
];
/// Tests with random budgets: their time in a whole run does not predict their time here.
const RANDOM: [&str; 6] = [
    "generated_programs",
    "equivalence",
    "random",
    "parser_fuzz",
    "api_fuzz",
    "mutat",
];
/// Seconds of a test in the last whole run from which it is left out.
const SLOW_S: f64 = 10.0;

/// Checks what changed since a commit; since the last landed commit if none is given.
pub fn run(root: &Path, base: Option<&str>) -> Result<(), String> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => landed(root)?,
    };
    let files = changed(root, &base)?;
    println!("== {} files changed since {base}", files.len());
    suite::structure(root)?;
    suite::succeed("format", &mut cargo(root, &["fmt", "--all", "--check"]))?;
    if files.is_empty() {
        return Ok(());
    }
    let packages = packages(root)?;
    let chosen = chosen(root, &base, &files, &packages)?;
    println!("== lints of {chosen:?}");
    let mut lints = cargo_with_all_features(root, &["clippy", "--all-targets"]);
    chosen.iter().for_each(|package| {
        lints.args(["-p", package]);
    });
    suite::succeed("lints", lints.args(["--", "-D", "warnings"]))?;
    println!("== build");
    let programs = test_programs::build_packages(root, &chosen)?;
    let mut environment: std::collections::HashMap<_, _> =
        BUDGETS.map(|(name, count)| (name, count.to_owned())).into();
    environment.extend(suite::first_seed()?);
    let skipped = slow(root, &files);
    let settings = Settings {
        environment,
        skipped: skipped.iter().map(|(_, name)| name.clone()).collect(),
        ..Settings::default()
    };
    let mut tally = Tally::from_environment();
    // A program with its own `main` runs completely or not at all: completely if its own package
    // changed.
    let is_whole = |program: &Program| {
        let is_own = |file: &String| root.join(file).starts_with(&program.folder);
        program.has_harness || files.iter().any(is_own)
    };
    let tests = programs.iter().filter(|program| program.is_test);
    let tests: Vec<&Program> = tests.filter(|program| is_whole(program)).collect();
    test_programs::run_all(&tests, &settings, &mut tally)?;
    let is_right = tally.report();
    if ros2::is_touched(&files) {
        println!("== ROS 2");
        ros2::run(root)?;
    }
    println!(
        "left out: examples and commands in the documentation, the GPU kit, random cases beyond {BUDGETS:?}"
    );
    let names = packages.iter().map(|package| package.name.as_str());
    let left: BTreeSet<&str> = names.filter(|name| !chosen.contains(*name)).collect();
    println!(
        "left out: the tests of {left:?}, which did not change and use no interface that changed"
    );
    skipped.iter().for_each(|(seconds, name)| {
        println!("left out: {name}, {seconds:.0} s in the last whole run")
    });
    if is_right {
        Ok(())
    } else {
        Err("tests failed".to_owned())
    }
}

/// The last landed commit: the main branch of the remote if there is one, else the last commit.
fn landed(root: &Path) -> Result<String, String> {
    let remote = git(root, &["merge-base", "HEAD", "origin/main"]);
    remote
        .or_else(|_| git(root, &["rev-parse", "HEAD"]))
        .map(|commit| commit.trim().to_owned())
}

/// Files that differ from the last landed commit.
///
/// # Errors
/// What git reports.
pub fn changed_since_landed(root: &Path) -> Result<Vec<String>, String> {
    changed(root, &landed(root)?)
}

/// Files that differ from a commit, including untracked ones.
fn changed(root: &Path, base: &str) -> Result<Vec<String>, String> {
    let tracked = git(root, &["diff", "--name-only", base])?;
    let others = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    Ok(tracked
        .lines()
        .chain(others.lines())
        .map(str::to_owned)
        .collect())
}

/// A package of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
}

/// The packages of the workspace.
fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let output = cargo(root, &["metadata", "--no-deps", "--format-version=1"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let package = |package: &serde_json::Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            folder: manifest.parent()?.to_owned(),
        })
    };
    let listed = metadata["packages"].as_array().into_iter().flatten();
    Ok(listed.filter_map(package).collect())
}

/// The packages whose tests run: those with changed files and, where a public interface changed,
/// those that use them.
fn chosen(
    root: &Path,
    base: &str,
    files: &[String],
    packages: &[Package],
) -> Result<BTreeSet<String>, String> {
    // The innermost: some packages are inside others.
    let owner = |file: &str| {
        let owners = packages
            .iter()
            .filter(|package| root.join(file).starts_with(&package.folder));
        owners.max_by_key(|package| package.folder.as_os_str().len())
    };
    let every = || packages.iter().map(|package| package.name.clone());
    let mut chosen = BTreeSet::new();
    for file in files {
        let Some(Package { name, folder }) = owner(file) else {
            if file.starts_with("Cargo") {
                chosen.extend(every());
            }
            continue;
        };
        chosen.insert(name.clone());
        // Programs, scenarios and models are read by tests of every crate.
        let is_read = |part: &&str| root.join(file).starts_with(folder.join(part));
        if ["programs", "scenarios", "models"].iter().any(is_read) {
            chosen.extend(every());
        }
        let before = git(root, &["show", &format!("{base}:{file}")]).unwrap_or_default();
        let now = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let is_source = file.ends_with(".rs") && root.join(file).starts_with(folder.join("src"));
        if is_source && interface(&before) != interface(&now) {
            println!("== {file} changes what {name} offers: crates that use it are tested too");
            chosen.extend(dependents(packages, name)?);
        }
    }
    Ok(chosen)
}

/// The packages that name a package in their manifests, and those that name these.
fn dependents(packages: &[Package], package: &str) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::from([package.to_owned()]);
    loop {
        let before = found.len();
        for package in packages {
            let manifest = package.folder.join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest)
                .map_err(|e| format!("{}: {e}", manifest.display()))?;
            let names = |line: &str| {
                found.iter().any(|name| {
                    line.strip_prefix(name.as_str())
                        .is_some_and(|rest| rest.starts_with([' ', '.', '=']))
                })
            };
            if text.lines().any(names) {
                found.insert(package.name.clone());
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// The public declarations of a file, each up to its body: a comparison of text, so a comment
/// within one counts as a change and declarations in macros do not.
fn interface(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let starts = code.match_indices("pub ").filter(|(at, _)| {
        code[..*at]
            .rsplit('\n')
            .next()
            .is_some_and(|before| before.trim().is_empty())
    });
    starts
        .map(|(at, _)| {
            code[at..]
                .split(['{', ';'])
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

/// Tests that were slow in the last whole run, except those with random budgets and those of the
/// modules that changed.
fn slow(root: &Path, files: &[String]) -> Vec<(f64, String)> {
    let times = std::fs::read_to_string(root.join(TIMES)).unwrap_or_default();
    let rows = times.lines().filter_map(|line| {
        let (seconds, name) = line.split_once('\t')?;
        let (_, test) = name.split_once(": ")?;
        Some((seconds.parse::<f64>().ok()?, test.to_owned()))
    });
    let is_random = |test: &str| RANDOM.iter().any(|part| test.contains(part));
    let is_changed = |test: &str| {
        let module = test
            .rsplit_once("::")
            .map_or("", |(module, _)| module.trim_end_matches("::tests"))
            .replace("::", "/");
        !module.is_empty()
            && files
                .iter()
                .any(|file| file.trim_end_matches(".rs").ends_with(&module))
    };
    rows.filter(|(seconds, test)| *seconds > SLOW_S && !is_random(test) && !is_changed(test))
        .collect()
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .map_err(|e| format!("git: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_what_is_declared_public_whatever_the_bodies_do() {
        let before = "/// A.\npub fn a(x: u32) -> u32 { x + 1 }\nfn b() {}\npub(crate) fn c() {}\n    pub x: f32;\n#[cfg(test)]\nmod tests { pub fn d() {} }";
        assert_eq!(interface(before), ["pub fn a(x: u32) -> u32", "pub x: f32"]);
        assert_eq!(
            interface(before),
            interface(
                &before
                    .replace("x + 1", "x + 2")
                    .replace("fn b() {}", "fn b() { a(1); }")
            )
        );
        assert_ne!(
            interface(before),
            interface(&before.replace("x: u32", "x: u64"))
        );
    }
}
