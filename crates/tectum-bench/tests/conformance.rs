//! Every case on every device of this machine; absent devices are reported as skipped.

use tectum::{Device, Error};
use tectum_bench::conformance::{Part, Sweep, functions, suites, verify};

/// Runs the cases on a device; of those on software adapters the part that `TECTUM_PART` names.
fn verify_on(id: &str) -> Result<(), Error> {
    let device = match Device::open(id) {
        Ok(device) => device,
        Err(error) if error.kind() == tectum::ErrorKind::Unsupported => {
            println!("skipped: conformance on {id}: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let (mut suites, mut kernels) = (suites(), tectum::operation::kernels());
    let part = Part::from_environment()?;
    if device.info().software && !part.is_whole() {
        (suites, kernels) = (part.of(suites), Vec::new());
    }
    let report = verify(
        &device,
        1,
        suites,
        &kernels,
        &mut tectum::WorkProgress::ignore,
    )?;
    for operation in &report.operations {
        println!(
            "{:>16} {:>4} cases, worst {:.3} of its bound",
            operation.name, operation.cases, operation.worst_of_bound
        );
    }
    for failure in &report.failures {
        println!("FAILED {failure}");
    }
    println!("conformance on {id}: {} cases", report.cases);
    report.into_result().map(|_| ())
}

#[test]
fn every_kernel_agrees_with_its_reference_on_the_cpu() -> Result<(), Error> {
    verify_on("cpu")
}

#[test]
fn every_kernel_agrees_with_its_reference_on_vulkan() -> Result<(), Error> {
    verify_on("vulkan:0")
}

#[test]
fn every_kernel_agrees_with_its_reference_on_cuda() -> Result<(), Error> {
    verify_on("cuda:0")
}

/// Arguments for each exponent and sign, as a power of two; the command uses more.
const SAMPLES: u32 = 10;

fn functions_on(id: &str) -> Result<(), Error> {
    let device = match Device::open(id) {
        Ok(device) => device,
        Err(error) if error.kind() == tectum::ErrorKind::Unsupported => {
            println!("skipped: functions on {id}: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let report = functions(
        &device,
        Sweep::Exponents(SAMPLES),
        &mut tectum::WorkProgress::ignore,
    )?;
    for row in &report.functions {
        println!(
            "{:>16} {} {:.3} of {} ulp at {}",
            row.name,
            row.dtype.wgsl(),
            row.worst_ulp,
            row.stated_ulp,
            row.at
        );
    }
    report.into_result().map(|_| ())
}

#[test]
fn functions_stay_within_their_stated_errors_on_the_cpu() -> Result<(), Error> {
    functions_on("cpu")
}

#[test]
fn functions_stay_within_their_stated_errors_on_vulkan() -> Result<(), Error> {
    functions_on("vulkan:0")
}
