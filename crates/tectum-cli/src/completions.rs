//! `tectum completions` and `tectum man`: shell completions and manual pages, generated from the
//! command line's definition.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use tectum::{Error, Result};

use crate::Cli;
use crate::reference::command_page;
use crate::table::print;

/// Prints the completions of a shell.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page, in roff.
///
/// `tectum man | man -l -` shows it; `tectum man run` is the page of a subcommand.
#[derive(Args)]
pub struct ManArgs {
    /// A subcommand; the whole command if not given.
    command: Option<String>,
    /// Prints the reference of all subcommands as Markdown instead.
    #[arg(long, conflicts_with = "command")]
    markdown: bool,
}

/// Prints the completions.
///
/// # Errors
/// As [`print()`].
pub fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tectum", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Prints the manual page.
///
/// # Errors
/// `Invalid` for an unknown subcommand; as [`print()`].
pub fn man(args: &ManArgs) -> Result<()> {
    let whole = Cli::command();
    if args.markdown {
        return print(&command_page(whole));
    }
    let command = match &args.command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            found
                .ok_or_else(|| Error::invalid(format!("man: no subcommand {name}")))?
                .name("tectum-".to_owned() + name)
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|source| Error::io("manual page", source))?;
    print(&String::from_utf8_lossy(&text))
}
