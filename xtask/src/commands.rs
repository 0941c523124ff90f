//! The commands that documents show. Those of `tectum` are executed, page by page, each page in a
//! folder of its own, and must print what the page shows; the others must exist.
//!
//! A block of the language `sh` has a command a line. A block without a language whose commands
//! begin with `$ ` shows their output too. A line `...` there represents any number of lines, `...`
//! at the end of a line the rest of it; digits may differ. A command whose output has a line
//! `error: ` fails, all others succeed. A block of TOML, JSON or text after a paragraph that names
//! a file, for example `mine.toml`, is that file. Commands in the tables of some pages are executed
//! too; other commands within sentences and tables must name existing subcommands and options, as
//! `docs/cli.md` lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::markdown::{Block, blocks, code_spans, prose};
use crate::test_programs::Program;

/// Parts of commands that are not executed, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "builds or tests the workspace"),
    ("target/release/", "needs a release build"),
    ("bench/models/minilm", "needs 83 MB from PyPI"),
    (
        "rig.csv",
        "needs the recording of the rig, which is not in the repository",
    ),
    ("tectum bench", "measures for minutes"),
    ("--live 8080", "shows a run for minutes"),
    ("tectum check rig", "simulates for minutes"),
    ("tectum check field --learning", "simulates for minutes"),
    ("tectum check field --compared", "simulates for minutes"),
    (
        "tectum verify",
        "minutes in a test build; the tests run the same cases",
    ),
    ("--priority", "needs CAP_SYS_NICE"),
    ("sudo ", "needs root"),
    ("runs/9.partial", "needs a run that was killed"),
];

/// Parts of commands that need Python with MuJoCo and Gymnasium.
const OF_MUJOCO: [&str; 4] = ["mujoco", "gymnasium", "hopper.toml", "stand.toml"];

/// Pages whose tables have commands that are executed.
const TABLES: &[&str] = &["README.md", "docs/models.md"];

/// First words of other commands that need no check.
const OTHERS: &[&str] = &["cargo", "sudo", "apt-get", "ls", "cat", "git"];

/// Commands that take longer are listed.
const SLOW_S: f64 = 5.0;

/// A command of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    line: usize,
    text: String,
    /// The lines that it prints; none if the page does not show them.
    output: Option<Vec<String>>,
}

/// A part of a page, in its order.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    File(String, String),
    Command(Shown),
}

/// What happened to the commands.
#[derive(Default)]
struct Count {
    run: usize,
    checked: usize,
    not_run: BTreeMap<String, usize>,
    slow: Vec<String>,
    faults: Vec<String>,
}

/// The program of the command among those that were built.
///
/// # Errors
/// If it is not among them.
pub fn tectum(programs: &[Program]) -> Result<PathBuf, String> {
    let found = programs.iter().find(|program| {
        program.package == "tectum-cli" && program.kind == "bin" && !program.is_test
    });
    found
        .map(|program| program.executable.clone())
        .ok_or_else(|| "the command tectum was not built".to_owned())
}

/// Executes and checks the commands of all pages; prints the counts.
///
/// # Errors
/// The number of faults, which are printed.
pub fn run(root: &Path, tectum: &Path) -> Result<(), String> {
    let scratch = std::env::temp_dir().join(format!("tectum-documents-{}", std::process::id()));
    let tectum = tectum
        .canonicalize()
        .map_err(|e| format!("{}: {e}", tectum.display()))?;
    let runner = Runner::new(root, &tectum, scratch.clone())?;
    let mut count = Count::default();
    let known = Known::read(root)?;
    for page in pages(root)? {
        let text = std::fs::read_to_string(root.join(&page)).map_err(|e| format!("{page}: {e}"))?;
        check_spans(&page, &text, &known, &mut count);
        let parts = parts(&page, &text);
        if !parts.is_empty() {
            runner.page(&page, &parts, &known, &mut count)?;
        }
    }
    drop(std::fs::remove_dir_all(&scratch));
    count.slow.iter().for_each(|slow| println!("{slow}"));
    count
        .not_run
        .iter()
        .for_each(|(reason, number)| println!("{number} not executed: {reason}"));
    println!("{} commands executed, {} checked", count.run, count.checked);
    count.faults.iter().for_each(|fault| eprintln!("{fault}"));
    if count.faults.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} commands of documents differ",
            count.faults.len()
        ))
    }
}

/// The pages with commands: README, CONTRIBUTING and the guides.
fn pages(root: &Path) -> Result<Vec<String>, String> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let folder = root.join("docs");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    pages.extend(
        names
            .filter(|name| name.ends_with(".md"))
            .map(|name| format!("docs/{name}")),
    );
    pages.sort();
    Ok(pages)
}

/// Files and commands of a page.
fn parts(page: &str, text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for block in blocks(text) {
        match block.language {
            "sh" => parts.extend(lines_of_commands(&block).map(Part::Command)),
            "" => parts.extend(sessions(&block).into_iter().map(Part::Command)),
            "toml" | "json" | "text" => parts.extend(file(&block)),
            _ => {}
        }
    }
    if TABLES.contains(&page) {
        let rows = prose(text).filter(|(_, line)| line.starts_with('|'));
        let spans =
            rows.flat_map(|(number, line)| code_spans(line).map(move |span| (number, span)));
        let commands =
            spans.filter(|(_, span)| span.starts_with("tectum ") && !has_placeholder(span));
        parts.extend(commands.map(|(line, span)| {
            Part::Command(Shown {
                line,
                text: span.to_owned(),
                output: None,
            })
        }));
    }
    parts
}

/// The commands of a block of shell, without their comments.
fn lines_of_commands<'b>(block: &'b Block<'_>) -> impl Iterator<Item = Shown> + 'b {
    let lines = block
        .lines
        .iter()
        .map(|(number, line)| (*number, line.split("  #").next().unwrap_or_default().trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(line, text)| Shown {
        line,
        text: text.to_owned(),
        output: None,
    })
}

/// The commands of a block with their output.
fn sessions(block: &Block<'_>) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for (number, line) in &block.lines {
        if let Some(text) = line.strip_prefix("$ ") {
            shown.push(Shown {
                line: *number,
                text: text.to_owned(),
                output: Some(Vec::new()),
            });
        } else if let Some(output) = shown.last_mut().and_then(|last| last.output.as_mut()) {
            output.push((*line).to_owned());
        }
    }
    shown
}

/// The file that a block is, if the paragraph before it names one: the last of its names.
fn file(block: &Block<'_>) -> Option<Part> {
    let is_name = |span: &&str| {
        [".toml", ".json", ".atlas"]
            .iter()
            .any(|ending| span.ends_with(ending))
            && !span.contains(['/', ' '])
            && !has_placeholder(span)
    };
    let name = code_spans(&block.before).filter(is_name).last()?;
    let text: String = block
        .lines
        .iter()
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    Some(Part::File(name.to_owned(), text))
}

/// A command without the variables that are set before it.
fn without_variables(command: &str) -> &str {
    let is_variable = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    match command.split_once(' ') {
        Some((word, rest)) if is_variable(word) => without_variables(rest),
        _ => command,
    }
}

/// Whether a command has a word that represents a name: `FILE`, `GENOME.json`, `[--device D]`, `…`.
fn has_placeholder(command: &str) -> bool {
    let is_name = |word: &str| {
        let stem = word
            .split(['.', '='])
            .next_back()
            .filter(|_| word.contains('='))
            .unwrap_or_else(|| word.split('.').next().unwrap_or_default());
        !stem.is_empty() && stem.chars().all(|c| c.is_ascii_uppercase())
    };
    command.contains(['…', '[']) || command.split_whitespace().any(is_name)
}

/// Subcommands and options of `tectum`, subcommands of `cargo xtask`.
struct Known {
    /// Path of a subcommand, with its options.
    options: BTreeMap<String, Vec<String>>,
    root: PathBuf,
}

impl Known {
    /// Reads the generated reference of the command.
    fn read(root: &Path) -> Result<Self, String> {
        let page = root.join("docs/cli.md");
        let text =
            std::fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
        let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut path = String::new();
        for (_, line) in prose(&text) {
            if let Some(title) = line
                .strip_prefix("## ")
                .or_else(|| line.strip_prefix("### "))
            {
                path = title.trim_matches('`').to_owned();
                options.entry(path.clone()).or_default();
            } else if let Some(first) = line
                .strip_prefix("| ")
                .and_then(|row| row.split(" | ").next())
            {
                let names = code_spans(first)
                    .flat_map(|span| span.split([' ', ',']))
                    .filter(|word| word.starts_with('-'));
                options
                    .entry(path.clone())
                    .or_default()
                    .extend(names.map(str::to_owned));
            }
        }
        Ok(Self {
            options,
            root: root.to_owned(),
        })
    }

    /// Whether a command exists: its subcommand and its options, a step of `cargo xtask`, an
    /// example, a script.
    fn check(&self, command: &str) -> Result<(), String> {
        let first = without_variables(command)
            .split(" | ")
            .next()
            .unwrap_or_default();
        let words: Vec<&str> = first
            .split_whitespace()
            .map(|word| word.trim_matches(['[', ']', '(', ')']))
            .collect();
        match words[..] {
            ["tectum" | "target/release/tectum", ref rest @ ..] => self.check_tectum(rest),
            ["cargo", "run", "--release", "--", ref rest @ ..] => self.check_tectum(rest),
            ["cargo", "xtask", name, ..] => {
                let steps = crate::USAGE
                    .split(" | ")
                    .map(|step| step.split(' ').next().unwrap_or_default());
                if steps.into_iter().any(|step| step == name) {
                    Ok(())
                } else {
                    Err(format!("cargo xtask has no {name}"))
                }
            }
            ["cargo", "run", ref rest @ ..] => {
                let after = |option: &str| {
                    rest.iter()
                        .position(|word| *word == option)
                        .and_then(|place| rest.get(place + 1))
                };
                let (Some(package), Some(example)) = (after("-p"), after("--example")) else {
                    return Ok(());
                };
                let example = format!("crates/{package}/examples/{example}");
                self.exists(&format!("{example}.rs"))
                    .or_else(|_| self.exists(&format!("{example}/main.rs")))
            }
            ["pip", "install", folder, ..] => self.exists(&format!("{folder}/pyproject.toml")),
            ["python3", script, ..] if script != "-c" => self.exists(script),
            ["python3", ..] => Ok(()),
            [first, ..] if OTHERS.contains(&first) => Ok(()),
            _ => Err("an unknown command".to_owned()),
        }
    }

    fn exists(&self, path: &str) -> Result<(), String> {
        if self.root.join(path).is_file() {
            Ok(())
        } else {
            Err(format!("{path} does not exist"))
        }
    }

    fn check_tectum(&self, words: &[&str]) -> Result<(), String> {
        let mut path = "tectum".to_owned();
        for word in words.iter().take_while(|word| !word.starts_with('-')) {
            let longer = format!("{path} {word}");
            if !self.options.contains_key(&longer) {
                break;
            }
            path = longer;
        }
        if path == "tectum"
            && words
                .first()
                .is_some_and(|word| !word.starts_with('-') && !has_placeholder(word))
        {
            return Err(format!("tectum has no subcommand {}", words[0]));
        }
        let known = |path: &str| self.options.get(path).into_iter().flatten();
        let is_known = |option: &str| {
            known(&path)
                .chain(known("tectum"))
                .any(|name| name == option)
        };
        let options = words.iter().filter(|word| {
            word.starts_with('-')
                && word.len() > 1
                && !word.starts_with(|c: char| c.is_ascii_digit())
        });
        let options = options.map(|word| {
            if *word == "-vv" {
                "-v"
            } else {
                word.split('=').next().unwrap_or_default()
            }
        });
        match options.into_iter().find(|option| !is_known(option)) {
            Some(option) => Err(format!("{path} has no option {option}")),
            None => Ok(()),
        }
    }
}

/// Checks the commands within sentences and tables.
fn check_spans(page: &str, text: &str, known: &Known, count: &mut Count) {
    for (number, line) in prose(text) {
        let commands = code_spans(line).filter(|span| {
            ["tectum ", "cargo ", "python3 "]
                .iter()
                .any(|start| span.starts_with(start))
        });
        for command in commands.filter(|command| !command.contains('…')) {
            count.checked += 1;
            count.faults.extend(
                known
                    .check(command)
                    .err()
                    .map(|fault| format!("{page}:{number}: `{command}`: {fault}")),
            );
        }
    }
}

/// Runs commands in a folder that has links to everything in the repository.
struct Runner {
    scratch: PathBuf,
    /// Names of the repository's files and folders, with their paths.
    linked: Vec<(String, PathBuf)>,
    path: String,
    has_numpy: bool,
    has_mujoco: bool,
    devices: String,
}

impl Runner {
    fn new(root: &Path, tectum: &Path, scratch: PathBuf) -> Result<Self, String> {
        let bin = scratch.join("bin");
        std::fs::create_dir_all(&bin).map_err(|e| format!("{}: {e}", bin.display()))?;
        link(tectum, &bin.join("tectum"))?;
        let own_python = root.join(".venv/bin/python3");
        if own_python.is_file() {
            let script = format!("#!/bin/sh\nexec {} \"$@\"\n", own_python.display());
            write_executable(&bin.join("python3"), &script)?;
        }
        let is_left_out =
            |name: &str| name.starts_with('.') || ["target", "runs", "Cargo.toml"].contains(&name);
        let entries = std::fs::read_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
        let linked = entries.filter_map(|entry| {
            Some((
                entry.as_ref().ok()?.file_name().into_string().ok()?,
                entry.ok()?.path(),
            ))
        });
        let linked = linked.filter(|(name, _)| !is_left_out(name)).collect();
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut runner = Self {
            scratch,
            linked,
            path,
            has_numpy: false,
            has_mujoco: false,
            devices: String::new(),
        };
        let folder = runner.scratch.clone();
        runner.has_numpy = runner.execute(&folder, "python3 -c 'import numpy'")?.0;
        let mujoco = "python3 -c 'import mujoco, gymnasium'";
        runner.has_mujoco = runner.execute(&folder, mujoco)?.0;
        // Those that are absent follow.
        let listed = runner.execute(&folder, "tectum devices")?.1;
        runner.devices = listed
            .split("\nabsent")
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok(runner)
    }

    /// The result of a command: whether it succeeded, and all that it printed.
    fn execute(&self, folder: &Path, command: &str) -> Result<(bool, String), String> {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .current_dir(folder)
            .stdin(Stdio::null());
        // As on a machine without a desktop and without earlier measurements.
        shell
            .env("PATH", &self.path)
            .env("XDG_CACHE_HOME", self.scratch.join("cache"))
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("RUST_LOG");
        let output = shell.output().map_err(|e| format!("sh: {e}"))?;
        Ok((
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        ))
    }

    /// Why a command is not executed here.
    fn reason(&self, command: &str) -> Option<String> {
        let command = without_variables(command);
        let listed = NOT_RUN
            .iter()
            .find(|(part, _)| command.contains(part))
            .map(|(_, reason)| (*reason).to_owned());
        let device = || {
            let named = command
                .split(|c: char| !c.is_alphanumeric() && c != ':')
                .find(|word| ["vulkan:", "cuda:"].iter().any(|api| word.starts_with(api)))?;
            (!self.devices.contains(named)).then(|| format!("needs the device {named}"))
        };
        let python = || {
            (command.starts_with("python3") && !self.has_numpy).then(|| "needs NumPy".to_owned())
        };
        let mujoco = || {
            let is_of_mujoco = OF_MUJOCO.iter().any(|part| command.contains(part));
            (is_of_mujoco && !self.has_mujoco).then(|| "needs MuJoCo and Gymnasium".to_owned())
        };
        let placeholder = || {
            (command.starts_with("tectum ") && has_placeholder(command))
                .then(|| "has a name to replace".to_owned())
        };
        let other = || {
            (!["tectum ", "python3 -c"]
                .iter()
                .any(|start| command.starts_with(start)))
            .then(|| "not a command of tectum".to_owned())
        };
        listed
            .or_else(device)
            .or_else(python)
            .or_else(mujoco)
            .or_else(placeholder)
            .or_else(other)
    }

    fn page(
        &self,
        page: &str,
        parts: &[Part],
        known: &Known,
        count: &mut Count,
    ) -> Result<(), String> {
        let folder = self.scratch.join(page.replace('/', "-"));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for (name, target) in &self.linked {
            link(target, &folder.join(name))?;
        }
        // The reason why an earlier command did not run: what it would have written is missing.
        let mut without: Option<String> = None;
        for part in parts {
            let Shown { line, text, output } = match part {
                Part::File(name, text) => {
                    std::fs::write(folder.join(name), text)
                        .map_err(|e| format!("{page}: {name}: {e}"))?;
                    continue;
                }
                Part::Command(shown) => shown,
            };
            count.faults.extend(
                known
                    .check(text.split(" 2>").next().unwrap_or_default())
                    .err()
                    .map(|fault| format!("{page}:{line}: {text}: {fault}")),
            );
            if let Some(reason) = self.reason(text) {
                without =
                    without.or_else(|| text.starts_with("python3 -c").then(|| reason.clone()));
                *count.not_run.entry(reason).or_default() += 1;
                continue;
            }
            let start = Instant::now();
            let (is_success, printed) = self.execute(&folder, text)?;
            let seconds = start.elapsed().as_secs_f64();
            count.run += 1;
            if seconds > SLOW_S {
                count
                    .slow
                    .push(format!("{page}:{line}: {text}: {seconds:.1} s"));
            }
            if let Err(fault) = compare(output.as_deref(), is_success, &printed) {
                match &without {
                    Some(reason) => {
                        *count
                            .not_run
                            .entry(format!("after one that {reason}"))
                            .or_default() += 1
                    }
                    None => count.faults.push(format!("{page}:{line}: {text}: {fault}")),
                }
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn link(target: &Path, place: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(target, place).map_err(|e| format!("{}: {e}", place.display()))
}

#[cfg(not(unix))]
fn link(_: &Path, place: &Path) -> Result<(), String> {
    Err(format!(
        "{}: commands of documents are executed on Unix only",
        place.display()
    ))
}

/// Compares what a command printed with what its page shows.
fn compare(shown: Option<&[String]>, is_success: bool, printed: &str) -> Result<(), String> {
    let shown = shown.unwrap_or(&["...".to_owned()]).to_vec();
    let is_failure_shown = shown.iter().any(|line| line.starts_with("error: "));
    if is_success == is_failure_shown {
        return Err(format!(
            "{}; it prints\n{printed}",
            if is_success {
                "it succeeds"
            } else {
                "it fails"
            }
        ));
    }
    let printed: Vec<&str> = printed.trim_end().lines().collect();
    let shown: Vec<&str> = shown.iter().map(|line| line.as_str()).collect();
    let end = shown
        .iter()
        .rposition(|line| !line.is_empty())
        .map_or(0, |last| last + 1);
    let (mut place, mut is_open) = (0, false);
    for line in &shown[..end] {
        if *line == "..." {
            is_open = true;
            continue;
        }
        let rest = &printed[place..];
        let found = if is_open {
            rest.iter().position(|other| is_same(line, other))
        } else {
            rest.first().filter(|other| is_same(line, other)).map(|_| 0)
        };
        match found {
            Some(skipped) => place += skipped + 1,
            None if is_open => {
                return Err(format!(
                    "no line is\n  {line}\nof what it prints:\n{}",
                    rest.join("\n")
                ));
            }
            None => {
                return Err(format!(
                    "the page shows\n  {line}\nit prints\n  {}",
                    rest.first().unwrap_or(&"nothing more")
                ));
            }
        }
        is_open = false;
    }
    match printed.get(place) {
        Some(more) if !is_open => Err(format!("it prints more than the page shows:\n  {more}")),
        _ => Ok(()),
    }
}

/// Whether two lines are the same but for numbers, hashes, widths of columns and the name of the
/// CPU.
fn is_same(shown: &str, printed: &str) -> bool {
    let start = ["...", "…"]
        .iter()
        .find_map(|dots| shown.strip_suffix(dots));
    match start {
        Some(start) => masked(printed).starts_with(masked(start).trim_end()),
        None => masked(shown) == masked(printed),
    }
}

/// A line in which every number and every hash is `#`, with one blank between words.
fn masked(line: &str) -> String {
    let of_cpu = line
        .find("cpu (")
        .map(|at| at + 5)
        .and_then(|at| Some((at, at + line[at..].rfind(')')?)));
    let line = of_cpu.map_or_else(
        || line.to_owned(),
        |(from, to)| format!("{}#{}", &line[..from], &line[to..]),
    );
    let word = |word: &str| {
        let is_hash = word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit());
        if is_hash {
            return "#".to_owned();
        }
        let mut masked = String::new();
        for c in word.chars() {
            let is_number = c.is_ascii_digit() || (c == '.' && masked.ends_with('#'));
            match (is_number, masked.ends_with('#')) {
                (true, true) => {}
                (true, false) => {
                    if masked.ends_with(['-', '−']) {
                        masked.pop();
                    }
                    masked.push('#');
                }
                (false, _) => masked.push(c),
            }
        }
        masked
    };
    line.split_whitespace()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

fn write_executable(path: &Path, text: &str) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::write(path, text).map_err(fault)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(fault)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_page_has_files_and_commands_in_order() {
        let page = "This one, `a.toml`:\n\n```toml\n[body]\n```\n\n```sh\ntectum run a.toml   # runs it\n```\n\n```\n$ tectum devices\ncpu\n...\n$ ls\n```\n\n| a | `tectum run x` |\n| b | `tectum run NAME` |\n";
        let command = |line, text: &str, output: Option<&str>| {
            Part::Command(Shown {
                line,
                text: text.to_owned(),
                output: output.map(lines),
            })
        };
        let expected = [
            Part::File("a.toml".to_owned(), "[body]\n".to_owned()),
            command(8, "tectum run a.toml", None),
            command(12, "tectum devices", Some("cpu\n...")),
            command(15, "ls", Some("")),
        ];
        assert_eq!(parts("docs/a.md", page), expected);
        assert_eq!(
            parts("README.md", page)[4..],
            [command(18, "tectum run x", None)]
        );
    }

    #[test]
    fn output_is_compared_but_for_numbers_and_left_out_lines() {
        let same = |shown: &str, printed: &str| {
            compare(Some(&lines(shown)), !shown.contains("error: "), printed).is_ok()
        };
        assert!(
            same("took 3.5 s\n...\nend", "took  12 s\na\nb\nend\n")
                && same("cpu (AMD EPYC)", "cpu (Xeon(R) 9)")
        );
        assert!(
            same("on cpu (AMD EPYC): 1 runs", "on cpu (Intel 9): 22 runs")
                && same("sum -1.5", "sum 2")
                && same("200 bursts in ...", "200 bursts in 1 s")
        );
        assert!(
            !same("one", "two")
                && !same("one", "one\ntwo")
                && !same("one\ntwo", "one")
                && !same("...\nthree", "one\ntwo")
        );
        // What is shown as an error must fail, all else succeed.
        assert!(
            compare(Some(&lines("error: no")), true, "error: no").is_err()
                && compare(None, false, "").is_err()
                && compare(None, true, "a\n").is_ok()
        );
    }

    #[test]
    fn placeholders_are_words_of_capitals() {
        assert!(
            [
                "tectum inspect GENOME.json",
                "tectum run X --in a=FILE",
                "tectum run a [--device D]"
            ]
            .iter()
            .all(|command| has_placeholder(command))
        );
        assert_eq!(
            without_variables("RUST_LOG=a=b X_Y=1 tectum run a=b"),
            "tectum run a=b"
        );
        assert!(
            !has_placeholder("tectum check cache models/a --text LICENSE-APACHE")
                && !has_placeholder("tectum embed a \"The end\"")
        );
    }
}
