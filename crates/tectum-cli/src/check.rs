//! `tectum check`: a program checked and shown.

use std::path::PathBuf;

use clap::Args;
use tectum::program::Program;
use tectum::{Error, Result};

use crate::table::print;

/// Checks a lane-level program and shows it as it is understood; mistakes come with their lines.
#[derive(Args)]
pub struct CheckArgs {
    /// A program in its text form.
    #[arg(value_name = "FILE.atlas")]
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read; a program that is not well formed or that the check refuses.
pub fn check(args: &CheckArgs) -> Result<()> {
    let path = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| Error::io(&path, error))?;
    let program = Program::parse(&text).and_then(|program| program.check()).map_err(|error| error.at(&path))?;
    let program = program.program();
    let count = program.instructions().len();
    print(&format!("{program}\n{path}: {count} instructions, {} buffers, valid\n", program.buffers().len()))
}
