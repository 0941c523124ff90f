//! `tectum bench`: how fast kernels are beside what was measured in the same run.

use clap::{Args, ValueEnum};
use tectum::{Device, Result, bench};

use crate::table::{bytes, print, print_json, table};

/// Measures a suite as percents of the device's own rooflines.
#[derive(Args)]
pub struct BenchArgs {
    /// What to measure.
    suite: Suite,
    /// The device: auto (the CPU: there is no one plan to route here), cpu, cuda:N, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    /// Every kernel of the core.
    Core,
}

/// Runs the command.
///
/// # Errors
/// An unknown device; what the device reports.
pub fn bench(args: &BenchArgs) -> Result<()> {
    let device = Device::open(&args.device)?;
    let report = match args.suite {
        Suite::Core => bench::core(&device, |_| {})?,
    };
    if args.json {
        return print_json(&report);
    }
    let head = ["row", "median", "spread", "rate", "of roofline"].map(str::to_owned).to_vec();
    let rows = report.rows.iter().map(row).collect();
    print(&table(&[vec![head], rows].concat()))?;
    let measured = &report.measured;
    let gemm = measured.gemm_flop_per_s / 1e9;
    print(&format!("measured here: copy {}/s, matrix product {gemm:.1} GFLOP/s\n", bytes(measured.copy_bytes_per_s)))
}

fn row(row: &bench::Row) -> Vec<String> {
    let rate = match row.roofline {
        bench::Roofline::Gemm => format!("{:.1} GFLOP/s", row.rate / 1e9),
        _ => format!("{}/s", bytes(row.rate)),
    };
    vec![
        row.key.clone(),
        format!("{:.1} us", row.median_s * 1e6),
        format!("{:.0} %", row.spread * 100.0),
        rate,
        format!("{:.0} %", row.percent_of_roofline),
    ]
}
