//! `tectum recover`: makes the recording of a killed run readable.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tectum::{Error, Result, file};
use tectum_control::recording::{RecoveredRecording, recover_recording};

use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::table::{print, print_json};

/// Makes the recording of a killed run readable: its complete chunks, with an end.
#[derive(Args)]
pub struct RecoverArgs {
    /// The recording: trace.mcap of a run folder that ends in .partial, or a genome's
    /// FILE.mcap.RANDOM.partial.
    broken: PathBuf,
    /// The file for the recovered recording.
    #[arg(value_name = "OUTPUT.mcap", value_parser = FileEnding(&["mcap"]))]
    output: PathBuf,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    file: String,
    messages: u64,
    lost_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// A file that is not a recording, or cannot be read or written.
pub fn recover(args: &RecoverArgs) -> Result<()> {
    let bytes =
        std::fs::read(&args.broken).map_err(|source| Error::io(args.broken.display(), source))?;
    let RecoveredRecording {
        bytes,
        messages,
        lost_bytes,
    } = recover_recording(&bytes).map_err(|error| error.at(args.broken.display()))?;
    file::write(&args.output, &bytes)?;
    if lost_bytes > 0 {
        crate::messages::warning(format_args!(
            "{}: left out at the end: {}, of no whole chunk",
            args.broken.display(),
            counted(lost_bytes, "byte")
        ));
    }
    let report = Report {
        file: args.output.display().to_string(),
        messages,
        lost_bytes,
    };
    if args.json {
        print_json(&report)
    } else {
        print(&format!(
            "{}: {}\n",
            report.file,
            counted(messages, "message")
        ))
    }
}
