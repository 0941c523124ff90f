//! `tectum verify`: every kernel of `tectum` and of the models against its reference, and with
//! `--functions` every elementary function over all exponents.

use clap::Args;
use tectum::{Device, Error, Result};
use tectum_bench::conformance;
use tectum_bench::conformance::{FunctionReport, Sweep};

use crate::count::counted;
use crate::progress::{Bar, Unit};
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, print_json, table};
use crate::threads::ThreadsArgs;

/// Runs every kernel, those of the models too, over random shapes against a reference in float64 or
/// whole numbers.
#[derive(Args)]
pub struct VerifyArgs {
    /// The device: auto (the CPU: there is no one plan to route here), cpu, null, cuda:N, vulkan:N,
    /// metal:N or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Seed of shapes and data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measures the elementary functions over all exponents instead, in units in the last place.
    #[arg(long)]
    functions: bool,
    /// With --functions: takes all 2^32 arguments rather than 2^16 for each exponent and sign; on
    /// the CPU only.
    #[arg(long, requires = "functions")]
    exhaustive: bool,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments for each exponent and sign with `--functions`, as a power of two.
const SAMPLES: u32 = 16;

/// Runs the command.
///
/// # Errors
/// An unknown device; what the device reports; a receipt's file that cannot be written; `Mismatch`
/// naming the first failing case.
pub fn verify(args: &VerifyArgs) -> Result<()> {
    args.threads.apply()?;
    let device = Device::open(&args.device)?;
    if args.functions {
        return functions(args, &device);
    }
    let suites = conformance::suites()
        .into_iter()
        .chain(tectum_control::conformance::suites())
        .collect();
    let kernels = [
        tectum::operation::kernels(),
        tectum_control::conformance::kernels()?,
    ]
    .concat();
    let bar = Bar::new(Unit::Steps);
    let report = conformance::verify(&device, args.seed, suites, &kernels, &mut bar.watch())?;
    bar.clear();
    args.receipt.save(&report.receipt)?;
    if args.json {
        print_json(&report)?;
    } else {
        let head = ["operation", "cases", "worst of bound", ""]
            .map(str::to_owned)
            .to_vec();
        let row = |operation: &conformance::OperationReport| {
            let verdict = if operation.passed { "ok" } else { "FAILED" };
            vec![
                operation.name.clone(),
                operation.cases.to_string(),
                format!("{:.3}", operation.worst_of_bound),
                verdict.to_owned(),
            ]
        };
        print(&table(
            &[vec![head], report.operations.iter().map(row).collect()].concat(),
        ))?;
        print(&format!(
            "\n{}, seed {}\n{}\n",
            counted(report.cases, "case"),
            report.seed,
            line(&report.receipt)
        ))?;
        for left_out in &report.left_out {
            print(&format!("left out: {left_out}\n"))?;
        }
        for failure in &report.failures {
            print(&format!("failed: {failure}\n"))?;
        }
    }
    report.into_result().map(|_| ())
}

fn functions(args: &VerifyArgs, device: &Device) -> Result<()> {
    if args.exhaustive && device.info().id != "cpu" {
        return Err(Error::invalid(format!(
            "--exhaustive: {} given, cpu needed",
            device.info().id
        )));
    }
    let sweep = if args.exhaustive {
        Sweep::Exhaustive
    } else {
        Sweep::Exponents(SAMPLES)
    };
    let bar = Bar::new(Unit::Steps);
    let report = conformance::functions(device, sweep, &mut bar.watch())?;
    bar.clear();
    args.receipt.save(&report.receipt)?;
    if args.json {
        print_json(&report)?;
    } else {
        let head = [
            "function",
            "type",
            "arguments",
            "worst ulp",
            "stated",
            "at",
            "",
        ]
        .map(str::to_owned)
        .to_vec();
        print(&table(
            &[
                vec![head],
                report.functions.iter().map(function_row).collect(),
            ]
            .concat(),
        ))?;
        print(&format!("\n{}\n", line(&report.receipt)))?;
    }
    report.into_result().map(|_| ())
}

fn function_row(row: &FunctionReport) -> Vec<String> {
    let verdict = if row.passed { "ok" } else { "FAILED" };
    vec![
        row.name.to_owned(),
        row.dtype.wgsl().to_owned(),
        row.arguments.to_string(),
        format!("{:.3}", row.worst_ulp),
        row.stated_ulp.to_string(),
        row.at.clone(),
        verdict.to_owned(),
    ]
}
