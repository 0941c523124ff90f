//! Every kernel as SPIR-V (checked by `spirv-val` where it is installed), MSL and HLSL. No Apple or Windows machine runs
//! these tests; that the translation exists is all they say about Metal and DX12.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tectum::Error;
use tectum_models::brain::mppi;
use tectum_models::twin::Network;

fn spirv_val(words: &[u32]) -> std::io::Result<(bool, String)> {
    let mut child = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.1", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = &mut child.stdin {
        stdin.write_all(bytemuck::cast_slice(words))?;
    }
    let output = child.wait_with_output()?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn every_kernel_translates_for_every_api() -> Result<(), Error> {
    let validator = Command::new("spirv-val").arg("--version").output().is_ok();
    if !validator {
        println!("skipped: spirv-val is not installed: SPIR-V is not validated");
    }
    let mut kernels = tectum::kernel::all();
    assert!(kernels.len() > 35, "the kernel table is whole");
    kernels.extend(mppi::kernels(&Network::new(7, &[64, 64], 4)?)?);
    for kernel in &kernels {
        let translations = kernel.translate()?;
        assert!(translations.msl.contains("kernel void main_"), "{}: an entry point in MSL", kernel.name());
        assert!(translations.hlsl.contains("[numthreads("), "{}: an entry point in HLSL", kernel.name());
        if validator {
            let (valid, report) = spirv_val(&translations.spirv).map_err(|e| Error::io("spirv-val", e))?;
            assert!(valid, "{}: {report}", kernel.name());
        }
    }
    println!("translated {} kernels", kernels.len());
    Ok(())
}
