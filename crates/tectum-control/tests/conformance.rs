//! Every case of this crate's kernels on every device of this machine; devices that are absent are
//! named as skipped.

use std::collections::BTreeSet;
use std::path::Path;

use tectum::{Device, Error, ErrorKind, Session};
use tectum_bench::conformance::{CaseContext, Part, Seed, verify};
use tectum_control::conformance::{kernels, suites};

/// Runs the cases on a device; of those on software adapters the part that `TECTUM_PART` names.
fn verify_on(id: &str) -> Result<(), Error> {
    let device = match Device::open(id) {
        Ok(device) => device,
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            println!("skipped: conformance of the models on {id}: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let (mut suites, mut kernels) = (suites(), kernels()?);
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
            "{:>24} {:>4} cases, worst {:.3} of its bound",
            operation.name, operation.cases, operation.worst_of_bound
        );
    }
    for failure in &report.failures {
        println!("FAILED {failure}");
    }
    println!("conformance on {id}: {} cases of the models", report.cases);
    report.into_result().map(|_| ())
}

#[test]
fn every_kernel_of_the_models_agrees_with_its_reference_on_the_cpu() -> Result<(), Error> {
    verify_on("cpu")
}

#[test]
fn every_kernel_of_the_models_agrees_with_its_reference_on_vulkan() -> Result<(), Error> {
    verify_on("vulkan:0")
}

#[test]
fn every_kernel_of_the_models_agrees_with_its_reference_on_cuda() -> Result<(), Error> {
    verify_on("cuda:0")
}

/// A file in the folders of kernels is the body of one or a prefix of several: each must be part of
/// a kernel that a case launches.
#[test]
fn every_file_of_the_folders_of_kernels_has_a_case() -> Result<(), Error> {
    // The first case of each size would be enough; all are run, on the device that executes
    // nothing.
    let device = Device::open("null")?;
    let (mut session, mut launched) = (Session::new(&device), BTreeSet::new());
    for suite in suites() {
        for case in (suite.cases)(&mut Seed::new(1, &suite.name)) {
            let run = case.run(&mut CaseContext {
                device: &device,
                session: &mut session,
                launched: &mut launched,
            });
            // If nothing is executed, no result is correct.
            run.map(|_| ()).or_else(|error| {
                if error.kind() == ErrorKind::Mismatch {
                    Ok(())
                } else {
                    Err(error)
                }
            })?;
        }
    }
    let kernels = kernels()?;
    let mut missed = Vec::new();
    let read = |of: &str| {
        std::fs::read_dir(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("..")
                .join(of)
                .join("kernels"),
        )
    };
    let folders = ["tectum-control", "tectum-field", "tectum-spiking"]
        .map(|of| read(of).map_err(|error| Error::io(of, error)));
    for entry in folders
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
    {
        let path = entry.map_err(|error| Error::io("kernels", error))?.path();
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::io(path.display(), error))?;
        if !kernels
            .iter()
            .any(|kernel| launched.contains(kernel.name()) && kernel.wgsl().contains(&text))
        {
            missed.push(path);
        }
    }
    assert!(missed.is_empty(), "no case for {missed:?}");
    Ok(())
}
