//! The reference of the command line, `docs/cli.md`, from its definition; and what the reference of
//! scenarios shares with it.

mod wrap;

use std::fmt::Write as _;

use clap::{Arg, Command};
use tectum::Result;
use tectum_control::scenario_reference;

use self::wrap::wrapped;

/// The part that is written by hand.
const HEAD: &str = include_str!("reference.md");

/// Exit codes; those of errors are [`tectum::ErrorKind::exit_code`].
const EXIT_CODES: [(u8, &str); 9] = [
    (
        0,
        "done, also if Ctrl-C ended a run, a training or a benchmark early; the results so far are kept",
    ),
    (
        1,
        "a verdict is negative: a result differs from its reference, a requirement is not met, or a row became slower",
    ),
    (2, "a mistake in the command line or in a program"),
    (
        3,
        "a file with a mistake (a scenario), damaged, or of another kind",
    ),
    (4, "a device or feature that this machine or build lacks"),
    (5, "out of memory"),
    (6, "the device was lost, and the command could not continue"),
    (7, "a file cannot be read or written"),
    (
        130,
        "broken off before there was a result, or ended by a second Ctrl-C",
    ),
];

/// Variables of the environment.
const VARIABLES: [(&str, &str); 8] = [
    (
        "TECTUM_THREADS",
        "threads of the CPU device and of host work, 1 to 1024; `--threads` of a command comes first",
    ),
    (
        "TECTUM_PYTHON",
        "interpreter of Python that steps MuJoCo bodies, `python3` without it; the key `python` of `[body]` comes first",
    ),
    (
        "TECTUM_TOKEN",
        "the token of `tectum serve` and of bodies and policies in other processes, where no file is named",
    ),
    (
        "RUST_LOG",
        "which log messages are printed, for example `tectum=debug` or `tectum_control=info,warn`; replaces what `-v` selects",
    ),
    (
        "NO_COLOR",
        "log messages have no colours if it is set and not empty; they have none either where standard error is no terminal",
    ),
    (
        "XDG_CACHE_HOME",
        "the folder in which `tectum/` keeps compiled device code and measured rates of devices; without it `LOCALAPPDATA`, or `.cache` in `HOME`",
    ),
    (
        "XDG_RUNTIME_DIR",
        "on Linux without it, the command starts again with `NODEVICE_SELECT=1`, so that the Vulkan driver does not report a missing desktop",
    ),
    ("NODEVICE_SELECT", "set by the command itself, see above"),
];

/// The exit codes as `tectum --help` shows them.
pub fn exit_codes() -> String {
    let line = |(code, meaning): (u8, &str)| format!("\n  {code:<4} {meaning}");
    format!("Exit codes:{}", EXIT_CODES.map(line).concat())
}

/// The page of the command line.
pub fn command_page(mut command: Command) -> String {
    command.build();
    let mut page = HEAD.to_owned();
    page += "\n## Subcommands\n\n| Subcommand | What it does |\n|---|---|\n";
    for subcommand in shown_subcommands(&command) {
        let name = format!("tectum {}", subcommand.get_name());
        let about = subcommand
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        writeln!(
            page,
            "| [`{name}`](#{}) | {about}. |",
            name.replace(' ', "-")
        )
        .ok();
    }
    page += "\n## `tectum`\n\nOptions of every subcommand:\n\n";
    write_arguments(
        &mut page,
        command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set()),
    );
    write_subcommands(&mut page, &command, "tectum");
    page += "\n## Exit codes\n\n";
    page += &exit_code_table();
    page += "\n## Environment\n\n| Variable | Meaning |\n|---|---|\n";
    for (name, meaning) in VARIABLES {
        writeln!(page, "| `{name}` | {meaning} |").ok();
    }
    wrapped(&page)
}

/// The page of scenarios.
///
/// # Errors
/// As [`scenario_reference`].
pub fn scenario_page() -> Result<String> {
    Ok(wrapped(&format!(
        "{}\n## Exit codes\n\n{}",
        scenario_reference()?,
        exit_code_table()
    )))
}

fn exit_code_table() -> String {
    EXIT_CODES.iter().fold(
        "| Code | Meaning |\n|---|---|\n".to_owned(),
        |table, (code, meaning)| table + &format!("| {code} | {meaning} |\n"),
    )
}

fn shown_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
}

fn write_subcommands(page: &mut String, command: &Command, path: &str) {
    for subcommand in shown_subcommands(command) {
        let path = format!("{path} {}", subcommand.get_name());
        let about = subcommand
            .get_long_about()
            .or(subcommand.get_about())
            .map(ToString::to_string)
            .unwrap_or_default();
        write!(
            page,
            "\n## `{path}`\n\n{}.\n\n",
            about.trim_end().trim_end_matches('.')
        )
        .ok();
        let usage = subcommand.clone().render_usage().to_string();
        let usage = usage
            .trim_start_matches("Usage:")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        write!(page, "```text\n{usage}\n```\n\n").ok();
        // Global options are listed once; help is everywhere.
        let own = |argument: &&Arg| {
            !argument.is_global_set() && !argument.is_hide_set() && argument.get_id() != "help"
        };
        write_arguments(page, subcommand.get_arguments().filter(own));
        write_subcommands(page, subcommand, &path);
    }
}

/// Writes a table of arguments, if there are any.
fn write_arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let mut head = Some("| Argument | Default | Meaning |\n|---|---|---|\n");
    for argument in arguments {
        page.push_str(head.take().unwrap_or_default());
        let cells = [name(argument), default(argument), meaning(argument)]
            .map(|cell| cell.replace('|', "\\|"));
        writeln!(page, "| {} |", cells.join(" | ")).ok();
    }
    if head.is_some() {
        page.push_str("It has no arguments of its own.\n");
    }
}

/// An argument as it is typed, with its short form.
fn name(argument: &Arg) -> String {
    let short = argument
        .get_short()
        .map(|short| format!("`-{short}`, "))
        .unwrap_or_default();
    let long = argument
        .get_long()
        .filter(|_| !argument.get_action().takes_values());
    format!(
        "{short}`{}`",
        long.map_or_else(|| argument.to_string(), |long| format!("--{long}"))
    )
}

/// What applies if it is not given.
fn default(argument: &Arg) -> String {
    let values: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    match (
        argument.get_action().takes_values(),
        argument.is_required_set(),
    ) {
        (_, true) => "required".to_owned(),
        (true, _) => values.join(" "),
        (false, _) => "off".to_owned(),
    }
}

/// Its help as one paragraph, with the values that it may have.
fn meaning(argument: &Arg) -> String {
    let help = argument
        .get_long_help()
        .or(argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut words = words.trim_end_matches('.').to_owned() + ".";
    if argument.get_action().takes_values() {
        let values = argument.get_possible_values();
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            write!(words, " One of {}.", values.join(", ")).ok();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use tectum::ErrorKind::{Data, DeviceLost, Invalid, Io, Mismatch, OutOfMemory, Unsupported};

    use super::*;

    /// The place of the first difference.
    fn assert_same(page: &str, file: &str) {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let committed = std::fs::read_to_string(&path).expect(file);
        let differs = page
            .lines()
            .zip(committed.lines())
            .zip(1..)
            .find(|((printed, written), _)| printed != written);
        assert!(
            page == committed,
            "docs/{file} differs: {differs:?}; write it again: cargo xtask pages"
        );
    }

    #[test]
    fn the_pages_of_the_repository_are_those_that_are_printed() {
        crate::register().expect("for the first time");
        assert_same(&command_page(crate::Cli::command()), "cli.md");
        assert_same(
            &scenario_page().expect("the examples are correct"),
            "scenarios.md",
        );
    }

    #[test]
    fn every_kind_of_error_has_its_exit_code_in_the_table() {
        let kinds = [
            Mismatch,
            Invalid,
            Data,
            Unsupported,
            OutOfMemory,
            DeviceLost,
            Io,
        ];
        let codes = EXIT_CODES.map(|(code, _)| code);
        assert!(
            kinds.iter().all(|kind| codes.contains(&kind.exit_code()))
                && codes.len() == kinds.len() + 2
        );
    }
}
