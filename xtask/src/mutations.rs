//! `cargo xtask mutate`: breaks the rules of `crates/naga-ptx/tests/mutations.toml` one at a time, in a copy, and wants the
//! conformance table to notice each.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    mutation: Vec<Mutation>,
}

#[derive(Deserialize)]
struct Mutation {
    rule: String,
    file: String,
    from: String,
    to: String,
}

impl Mutation {
    fn place(&self) -> PathBuf {
        Path::new("crates/naga-ptx/src").join(&self.file)
    }

    /// The file to break, which holds what to break once.
    fn original(&self, root: &Path) -> Result<String, String> {
        let text = read(&root.join(self.place()))?;
        match text.matches(&self.from).count() {
            1 => Ok(text),
            times => Err(format!("mutate: {}: what to break occurs {times} times in {}", self.rule, self.file)),
        }
    }
}

/// What became of a mutation.
enum Outcome {
    /// A case failed: its line.
    Noticed(String),
    /// The broken translator does not compile.
    NotCompiled,
    Missed,
}

/// Tries every mutation whose rule or file contains `filter`.
pub fn run(root: &Path, filter: &str) -> Result<(), String> {
    let text = read(&root.join("crates/naga-ptx/tests/mutations.toml"))?;
    let table: Table = toml::from_str(&text).map_err(|e| format!("mutations.toml: {e}"))?;
    for mutation in &table.mutation {
        mutation.original(root)?;
    }
    let copy = copy_crate(root)?;
    if let Some(line) = first_failure(&copy)? {
        return Err(format!("mutate: the table fails without a mutation: {line}"));
    }
    let chosen = table.mutation.iter().filter(|mutation| mutation.rule.contains(filter) || mutation.file.contains(filter));
    let (mut noticed, mut faults) = (0, Vec::new());
    for mutation in chosen {
        match try_one(root, &copy, mutation)? {
            Outcome::Noticed(case) => {
                noticed += 1;
                println!("noticed   {}: {case}", mutation.rule);
            }
            Outcome::NotCompiled => faults.push(format!("does not compile: {}", mutation.rule)),
            Outcome::Missed => faults.push(format!("MISSED: {}", mutation.rule)),
        }
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    println!("{noticed} mutations noticed, {} not", faults.len());
    if faults.is_empty() { Ok(()) } else { Err("mutate: a broken rule went unnoticed".to_owned()) }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// A workspace of the translator and its tests alone, under `target`.
fn copy_crate(root: &Path) -> Result<PathBuf, String> {
    let copy = root.join("target/mutants/workspace");
    let cannot = |e: std::io::Error| format!("mutate: copying: {e}");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(cannot)?;
    }
    copy_folder(&root.join("crates/naga-ptx"), &copy.join("crates/naga-ptx")).map_err(cannot)?;
    std::fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).map_err(cannot)?;
    let mut manifest: toml::Table = toml::from_str(&read(&root.join("Cargo.toml"))?).map_err(|e| format!("Cargo.toml: {e}"))?;
    let members = ["crates/naga-ptx", "crates/naga-ptx/tests/ptx-interpreter"].map(toml::Value::from).to_vec();
    let Some(workspace) = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut) else {
        return Err("Cargo.toml: no workspace".to_owned());
    };
    workspace.insert("members".to_owned(), members.into());
    workspace.remove("default-members");
    // The translator is compiled for each mutation and runs for a moment; what never changes is compiled well, once.
    let profile = "[dev]\nopt-level = 0\ndebug = false\n[dev.package.\"*\"]\nopt-level = 2\n[dev.package.ptx-interpreter]\nopt-level = 3";
    manifest.insert("profile".to_owned(), toml::from_str::<toml::Table>(profile).map_err(|e| e.to_string())?.into());
    std::fs::write(copy.join("Cargo.toml"), manifest.to_string()).map_err(cannot)?;
    Ok(copy)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn try_one(root: &Path, copy: &Path, mutation: &Mutation) -> Result<Outcome, String> {
    let original = mutation.original(root)?;
    let place = mutation.place();
    let put = |text: &str| std::fs::write(copy.join(&place), text).map_err(|e| format!("mutate: {e}"));
    put(&original.replacen(&mutation.from, &mutation.to, 1))?;
    let compiles = cargo(copy, &["test", "-q", "-p", "naga-ptx", "--test", "conformance", "--no-run"]).status();
    let outcome = match compiles.is_ok_and(|status| status.success()) {
        true => first_failure(copy)?.map_or(Outcome::Missed, Outcome::Noticed),
        false => Outcome::NotCompiled,
    };
    put(&original)?;
    Ok(outcome)
}

/// The first case that fails on the interpreter.
fn first_failure(copy: &Path) -> Result<Option<String>, String> {
    let arguments = ["test", "-q", "-p", "naga-ptx", "--test", "conformance", "--", "--only", "interpreter"];
    let output = cargo(copy, &arguments).output().map_err(|e| format!("mutate: cargo: {e}"))?;
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let failed = text.lines().find(|line| line.contains("FAILED") || line.contains("failed"));
    failed.map(|line| Some(line.trim().to_owned())).ok_or_else(|| format!("mutate: the table did not run: {}", text.trim()))
}

fn cargo(copy: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(copy).args(arguments).env("CARGO_TARGET_DIR", copy.with_file_name("target")).stderr(Stdio::null());
    command
}
