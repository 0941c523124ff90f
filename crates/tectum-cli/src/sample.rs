//! `tectum sample`: small files embedded in every build, to try the commands with.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tectum::{Result, Sample};

use crate::table::{print, print_json, table};

/// Lists and writes the samples that are built in: models, a genome, a recording, plants, arrays.
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
    /// Writes a sample, a file or a folder of files, for commands that read one.
    Write {
        /// Its name.
        name: String,
        /// Where to write it; in the working directory, under the path that the list shows, if not
        /// given.
        path: Option<PathBuf>,
    },
}

/// A row of the list.
#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    /// The path that it is written to without another one.
    path: PathBuf,
    bytes: usize,
    about: &'static str,
}

/// The samples of all crates.
fn samples() -> impl Iterator<Item = &'static Sample> + Clone {
    let plants = tectum_equations::SAMPLES.iter();
    tectum_spiking::SAMPLES
        .iter()
        .chain(&tectum_control::SAMPLES)
        .chain(plants)
        .chain(&tectum_transformer::SAMPLES)
        .chain(&tectum_programs::SAMPLES)
}

/// Runs the command.
///
/// # Errors
/// `Invalid` for a name that is not built in or a path that exists; `Io` for one that cannot be
/// written.
pub fn sample(args: &SampleArgs) -> Result<()> {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Write { name, path } => {
            let sample = Sample::find(samples(), name)?;
            let path = path.clone().unwrap_or_else(|| sample.default_path());
            sample.write(&path)?;
            print(&format!("{}\n", path.display()))
        }
    }
}

fn list(json: bool) -> Result<()> {
    let rows = samples().map(|sample| Row {
        name: sample.name,
        path: sample.default_path(),
        bytes: sample.bytes(),
        about: sample.about,
    });
    let rows: Vec<Row> = rows.collect();
    if json {
        return print_json(&rows);
    }
    let head = ["sample", "written to", "bytes", "purpose"]
        .map(str::to_owned)
        .to_vec();
    let cells = |row: Row| {
        vec![
            row.name.to_owned(),
            row.path.display().to_string(),
            row.bytes.to_string(),
            row.about.to_owned(),
        ]
    };
    print(&table(
        &std::iter::once(head)
            .chain(rows.into_iter().map(cells))
            .collect::<Vec<_>>(),
    ))
}
