//! `tectum check`: a program checked and shown, or the field brain held against its reference.

mod field;

use std::path::PathBuf;

use clap::Args;
use tectum::program::Program;
use tectum::{Error, Result};

use crate::table::print;

/// Checks a lane-level program and shows it as it is understood; mistakes come with their lines. Or holds the field brain against
/// float64, and lists what each of its passes moves and takes.
#[derive(Args)]
pub struct CheckArgs {
    /// A program in its text form, or the word field.
    #[arg(value_name = "FILE.atlas|field")]
    thing: PathBuf,
    #[command(flatten)]
    field: field::FieldArgs,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read; a program that is not well formed or that the check refuses; `Mismatch` for a field that differs from
/// its reference.
pub fn check(args: &CheckArgs) -> Result<()> {
    if args.thing.as_os_str() == "field" { field::check_field(&args.field) } else { check_program(args) }
}

fn check_program(args: &CheckArgs) -> Result<()> {
    let path = args.thing.display();
    let text = std::fs::read_to_string(&args.thing).map_err(|error| Error::io(&path, error))?;
    let program = Program::parse(&text).and_then(|program| program.check()).map_err(|error| error.at(&path))?;
    let program = program.program();
    let count = program.instructions().len();
    print(&format!("{program}\n{path}: {count} instructions, {} buffers, valid\n", program.buffers().len()))
}
