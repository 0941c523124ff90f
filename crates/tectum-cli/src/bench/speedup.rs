//! `tectum bench speedup RECORD BASELINE`: the speed-up of a device over another.

use std::path::PathBuf;

use clap::Args;
use tectum::Result;
use tectum_bench::bench;
use tectum_bench::bench::BenchRecord;

use super::show::interval;
use crate::count::counted;
use crate::table::{print, print_json, table};

/// Compares the times of two devices row by row: the baseline's time over the device's.
#[derive(Args)]
pub struct SpeedupArgs {
    /// The record of the device.
    record: PathBuf,
    /// The record of the device that it is compared with.
    baseline: PathBuf,
    /// Prints the comparison as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Files that are not records; records without a common row.
pub fn speedup(args: &SpeedupArgs) -> Result<()> {
    let found = bench::speedups(
        &BenchRecord::read(&args.record)?,
        &BenchRecord::read(&args.baseline)?,
    )?;
    if args.json {
        return print_json(&found);
    }
    let head = [
        "row".to_owned(),
        found.device.id.clone(),
        found.baseline.id.clone(),
        "times as fast [low, high]".to_owned(),
    ];
    let time = |seconds: f64| format!("{:.1} us", seconds * 1e6);
    let row = |row: &bench::Speedup| {
        vec![
            row.key.clone(),
            time(row.median_s),
            time(row.baseline_median_s),
            interval(&row.ratio),
        ]
    };
    print(&table(
        &[vec![head.to_vec()], found.rows.iter().map(row).collect()].concat(),
    ))?;
    print(&format!(
        "{} compared with {} on {}\n",
        found.device.name,
        found.baseline.name,
        counted(found.baseline_threads, "thread")
    ))
}
