//! `tectum verify`: every kernel against its reference.

use clap::Args;
use tectum::{Device, Result, conformance};

use crate::table::{print, print_json, table};

/// Runs every kernel of a device over random shapes against a float64 reference.
#[derive(Args)]
pub struct VerifyArgs {
    /// The device: auto (the CPU: there is no one plan to route here), cpu, null, vulkan:N, metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Seed of shapes and data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// An unknown device; what the device reports; `Mismatch` naming the first offending case.
pub fn verify(args: &VerifyArgs) -> Result<()> {
    let device = Device::open(&args.device)?;
    let report = conformance::verify(&device, args.seed, |_| {})?;
    if args.json {
        print_json(&report)?;
    } else {
        let head = ["operation", "cases", "worst of bound", ""].map(str::to_owned).to_vec();
        let row = |operation: &conformance::OperationReport| {
            let verdict = if operation.passed { "ok" } else { "FAILED" };
            vec![operation.name.clone(), operation.cases.to_string(), format!("{:.3}", operation.worst_of_bound), verdict.to_owned()]
        };
        print(&table(&[vec![head], report.operations.iter().map(row).collect()].concat()))?;
        print(&format!("{} cases on {}, seed {}\n", report.cases, report.receipt.device.id, report.seed))?;
        for failure in &report.failures {
            print(&format!("failed: {failure}\n"))?;
        }
    }
    report.into_result().map(|_| ())
}
