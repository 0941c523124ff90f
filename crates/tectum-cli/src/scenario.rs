//! `tectum scenario`: the scenarios embedded in every build.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tectum::{Error, Result, file};
use tectum_control::scenario::{Scenario, embedded};

use crate::file_ending::FileEnding;
use crate::reference::scenario_page;
use crate::table::{print, print_json, table};

/// Lists, shows and writes the scenarios that are built in.
#[derive(Args)]
pub struct ScenarioArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists the built-in scenarios with body, brain and purpose.
    List {
        /// Prints the list as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the text of a built-in scenario.
    Show {
        /// Its short name.
        name: String,
    },
    /// Writes a built-in scenario to a file, to change it.
    Write {
        /// Its short name.
        name: String,
        /// The file; NAME.toml in the working directory if not given.
        #[arg(long, value_name = "FILE.toml", value_parser = FileEnding(&["toml"]))]
        out: Option<PathBuf>,
    },
    /// Prints the reference of scenarios: every key with its values, unit, default and meaning.
    Reference,
}

/// A row of the list.
#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    body: String,
    brain: String,
    about: String,
}

/// Runs the command.
///
/// # Errors
/// `Invalid` for a name that is not built in or a file that exists; `Io` for a file that cannot be
/// written.
pub fn scenario(args: &ScenarioArgs) -> Result<()> {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Reference => print(&scenario_page()?),
        Action::Show { name } => print(text(name)?),
        Action::Write { name, out } => {
            let path = out
                .clone()
                .unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
            let text = text(name)?;
            if path.exists() {
                return Err(Error::invalid(format!(
                    "scenario write: {} exists; name another file by --out",
                    path.display()
                )));
            }
            file::write(&path, text.as_bytes())?;
            print(&format!("{}\n", path.display()))
        }
    }
}

fn text(name: &str) -> Result<&'static str> {
    let known = || {
        embedded()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = embedded().find(|(known, _)| *known == name);
    found.map(|(_, text)| text).ok_or_else(|| {
        Error::invalid(format!(
            "scenario {name:?} is not built in; built in: {}",
            known()
        ))
    })
}

fn list(json: bool) -> Result<()> {
    let row = |(name, text): (&'static str, &'static str)| {
        let scenario = Scenario::parse(text, name, name)?;
        let about: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix('#'))
            .map(str::trim)
            .collect();
        Ok(Row {
            name,
            body: scenario.body.name,
            brain: scenario.brain.name().to_owned(),
            about: about.join(" "),
        })
    };
    let rows = embedded().map(row).collect::<Result<Vec<_>>>()?;
    if json {
        return print_json(&rows);
    }
    let head = ["scenario", "body", "brain", "purpose"]
        .map(str::to_owned)
        .to_vec();
    let cells = |row: Row| vec![row.name.to_owned(), row.body, row.brain, row.about];
    print(&table(
        &std::iter::once(head)
            .chain(rows.into_iter().map(cells))
            .collect::<Vec<_>>(),
    ))
}
