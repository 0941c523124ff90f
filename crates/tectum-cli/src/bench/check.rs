//! `tectum bench check OLD NEW`: which rows became slower.

use std::path::PathBuf;

use clap::Args;
use tectum::{Error, ErrorKind, Result};
use tectum_bench::bench;
use tectum_bench::bench::{Basis, BenchRecord, Comparison, Slowdown};

use super::show::{incomplete, interval};
use crate::messages;
use crate::table::{print, print_json};

/// Compares two records row by row, by their ratios to peers or rooflines; silent unless a row
/// became slower.
#[derive(Args)]
pub struct CheckArgs {
    /// The record to compare with.
    old: PathBuf,
    /// The record to judge.
    new: PathBuf,
    /// Prints the comparison as one line of JSON, slower rows or not.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Files that are not records; records that cannot be compared; `Mismatch` if a row became slower.
pub fn check(args: &CheckArgs) -> Result<()> {
    let [old, new] = [&args.old, &args.new].map(|path| -> Result<BenchRecord> {
        let record = BenchRecord::read(path)?;
        if let Some(what) = incomplete(&record) {
            messages::warning(format!("{}: incomplete: {what}", path.display()));
        }
        Ok(record)
    });
    let comparison = bench::compare(&old?, &new?)?;
    if args.json {
        print_json(&comparison)?;
    } else {
        comparison
            .slower
            .iter()
            .try_for_each(|row| print(&line(row)))?;
    }
    verdict(&comparison)
}

fn line(row: &Slowdown) -> String {
    let (reference, unit) = match &row.basis {
        Basis::Peer(name) => (name.as_str(), "its time over ours"),
        Basis::Roofline => ("the roofline", "share of it"),
    };
    let (factor, old, new) = (
        interval(&row.factor),
        interval(&row.old),
        interval(&row.new),
    );
    format!(
        "{}: {factor} times slower relative to {reference}: {unit} was {old}, is {new}\n",
        row.key
    )
}

fn verdict(comparison: &Comparison) -> Result<()> {
    match comparison.slower.len() {
        0 => Ok(()),
        slower => Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "check: {slower} of {} rows became slower",
                comparison.compared
            ),
        )),
    }
}
