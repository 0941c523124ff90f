//! The programs under `programs/` on every device, through plans, beside expectations computed in f64.

use super::devices::devices;
use crate::device::Device;
use crate::program::BufferIndex;
use crate::program::tests::library::{Job, cases};

fn run_on(device: &Device, job: &Job) -> crate::error::Result<Vec<u8>> {
    let sizes: Vec<u64> = job.buffers.iter().map(|bytes| bytes.len() as u64).collect();
    let mut run = job.program.bound(&job.launch, &sizes)?.plan()?.compile(device)?;
    for (index, bytes) in job.buffers.iter().enumerate().take(job.buffers.len() - 1) {
        run.input(BufferIndex(index as u32)).copy_from_slice(bytes);
    }
    run.run()?;
    Ok(run.output(BufferIndex(job.buffers.len() as u32 - 1)).to_vec())
}

#[test]
fn every_device_is_right_at_every_size() {
    let devices = devices("the library of programs");
    for (name, case) in cases() {
        for n in [1, 3, 1_024, 3_073, 65_536, 1_000_007] {
            let job = case(n);
            for device in &devices {
                let id = &device.info().id;
                let result = run_on(device, &job).unwrap_or_else(|error| panic!("{id}: {name}, n = {n}: {error}"));
                let fault = job.fault(&result);
                assert!(fault.is_none(), "{id}: {name}, n = {n}: {}", fault.unwrap_or_default());
            }
        }
    }
}
