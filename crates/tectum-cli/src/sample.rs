//! `tectum sample`: small models embedded in every build, to try the commands with.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tectum::{Error, Result, file};

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

/// A sample: its name, its purpose, and the names and contents of its files.
struct Sample {
    name: &'static str,
    about: &'static str,
    files: [(&'static str, &'static [u8]); 3],
}

const SAMPLES: [Sample; 2] = [
    Sample {
        name: "sample-encoder",
        about: "a BERT encoder of two layers with random weights, for embed",
        files: [
            ("config.json", include_bytes!("../../../models/sample-encoder/config.json")),
            ("tokenizer.json", include_bytes!("../../../models/sample-encoder/tokenizer.json")),
            ("model.safetensors", include_bytes!("../../../models/sample-encoder/model.safetensors")),
        ],
    },
    Sample {
        name: "sample-decoder",
        about: "a Llama decoder of two layers with random weights, for generate",
        files: [
            ("config.json", include_bytes!("../../../models/sample-decoder/config.json")),
            ("tokenizer.json", include_bytes!("../../../models/sample-decoder/tokenizer.json")),
            ("model.safetensors", include_bytes!("../../../models/sample-decoder/model.safetensors")),
        ],
    },
];

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
            write(named(name)?, &folder)?;
            print(&format!("{}\n", folder.display()))
        }
    }
}

fn named(name: &str) -> Result<&'static Sample> {
    let known = || SAMPLES.iter().map(|sample| sample.name).collect::<Vec<_>>().join(", ");
    SAMPLES.iter().find(|sample| sample.name == name).ok_or_else(|| Error::invalid(format!("sample {name:?} is not built in; built in: {}", known())))
}

/// Writes all files or none: they become visible together.
fn write(sample: &Sample, folder: &Path) -> Result<()> {
    if folder.exists() {
        return Err(Error::invalid(format!("sample write: {} exists; name another folder by --out", folder.display())));
    }
    let mut partial = folder.as_os_str().to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let written = || {
        std::fs::create_dir_all(&partial).map_err(|source| Error::io(partial.display(), source))?;
        sample.files.iter().try_for_each(|(name, bytes)| file::write(&partial.join(name), bytes))?;
        file::rename_folder(&partial, folder)
    };
    written().inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&partial);
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_written_whole_and_never_over_another() {
        let folder = std::env::temp_dir().join(format!("tectum-sample-{}", std::process::id()));
        write(named("sample-encoder").expect("built in"), &folder).expect("writable");
        let names: std::collections::BTreeSet<_> =
            std::fs::read_dir(&folder).expect("there").filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["config.json", "model.safetensors", "tokenizer.json"]);
        assert!(write(&SAMPLES[1], &folder).expect_err("it exists").to_string().contains("exists"));
        std::fs::remove_dir_all(&folder).expect("ours");
        assert!(write(&SAMPLES[1], Path::new("/proc/no/such")).is_err());
        assert!(named("sample").is_err_and(|error| error.to_string().contains("sample-decoder")));
    }
}
