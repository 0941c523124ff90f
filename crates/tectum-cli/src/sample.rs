//! `tectum sample`: small models embedded in every build, to try the commands with.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tectum::Result;
use tectum_transformer::{SAMPLES, Sample};

use crate::table::{print, print_json, table};

/// Lists and writes the sample models that are built in.
#[derive(Args)]
pub struct SampleArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists the built-in samples with size and purpose.
    List {
        /// Prints the list as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Writes a sample to a folder, for commands that read one.
    Write {
        /// Its name.
        name: String,
        /// The folder; NAME in the working directory if not given.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

/// A row of the list.
#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    bytes: usize,
    about: &'static str,
}

/// Runs the command.
///
/// # Errors
/// `Invalid` for a name that is not built in or a folder that exists; `Io` for a folder that cannot be written.
pub fn sample(args: &SampleArgs) -> Result<()> {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Write { name, out } => {
            let folder = out.clone().unwrap_or_else(|| PathBuf::from(name));
            Sample::named(name)?.write(&folder)?;
            print(&format!("{}\n", folder.display()))
        }
    }
}

fn list(json: bool) -> Result<()> {
    let row = |sample: &Sample| Row { name: sample.name, bytes: sample.files.iter().map(|(_, bytes)| bytes.len()).sum(), about: sample.about };
    let rows: Vec<Row> = SAMPLES.iter().map(row).collect();
    if json {
        return print_json(&rows);
    }
    let head = ["sample", "bytes", "purpose"].map(str::to_owned).to_vec();
    let cells = |row: Row| vec![row.name.to_owned(), row.bytes.to_string(), row.about.to_owned()];
    print(&table(&std::iter::once(head).chain(rows.into_iter().map(cells)).collect::<Vec<_>>()))
}
