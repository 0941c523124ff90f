//! Every kernel as SPIR-V (checked by `spirv-val` where it is installed), PTX (assembled by `ptxas` where it is installed),
//! MSL and HLSL. No Apple or Windows machine runs these tests; that the translation exists is all they say about Metal and
//! DX12.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tectum::kernel::VULKAN_ONLY;
use tectum::{Error, Kernel};
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

/// The runtime's kernels, those of bodies, those of a twin as large as the rig's, those of spiking networks, and those of the field brain.
fn every_kernel() -> Result<Vec<Arc<Kernel>>, Error> {
    let mut kernels = tectum::kernel::all();
    assert!(kernels.len() > 35, "the kernel table is whole");
    kernels.extend(mppi::kernels(&Network::new(7, &[64, 64], 4)?)?);
    kernels.extend(tectum_models::body::batch::kernels());
    kernels.extend(tectum_models::spiking::kernels()?);
    kernels.extend(tectum_models::field::kernels());
    Ok(kernels)
}

#[test]
fn every_kernel_translates_for_every_api() -> Result<(), Error> {
    let validator = Command::new("spirv-val").arg("--version").output().is_ok();
    if !validator {
        println!("skipped: spirv-val is not installed: SPIR-V is not validated");
    }
    let kernels = every_kernel()?;
    for kernel in &kernels {
        let translations = kernel.translate()?;
        let exempt = VULKAN_ONLY.iter().any(|(dtype, _)| kernel.uses(*dtype));
        let contains = |text: &Option<String>, what| text.as_ref().map_or(exempt, |text| !exempt && text.contains(what));
        assert!(contains(&translations.msl, "kernel void main_"), "{}: an entry point in MSL", kernel.name());
        assert!(contains(&translations.hlsl, "[numthreads("), "{}: an entry point in HLSL", kernel.name());
        if validator {
            let (valid, report) = spirv_val(&translations.spirv).map_err(|e| Error::io("spirv-val", e))?;
            assert!(valid, "{}: {report}", kernel.name());
        }
    }
    println!("translated {} kernels", kernels.len());
    Ok(())
}

/// `ptxas`, from `NAGA_PTX_PTXAS` or the path.
fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("NAGA_PTX_PTXAS").map(PathBuf::from);
    let candidate = named.unwrap_or_else(|| PathBuf::from("ptxas"));
    Command::new(&candidate).arg("--version").output().is_ok_and(|output| output.status.success()).then_some(candidate)
}

fn assemble(ptxas: &Path, name: &str, ptx: &str) -> Result<(), Error> {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.ptx"));
    let cannot = |e| Error::io("ptxas", e);
    std::fs::write(&source, ptx).map_err(cannot)?;
    for architecture in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
        let output = Command::new(ptxas).arg(format!("-arch={architecture}")).arg(&source).arg("-o").arg("/dev/null").output().map_err(cannot)?;
        assert!(output.status.success(), "{name} for {architecture}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[test]
fn every_kernel_translates_to_ptx_that_assembles() -> Result<(), Error> {
    let ptxas = ptxas();
    if ptxas.is_none() {
        println!("skipped: ptxas is not installed: the kernels' PTX is not assembled");
    }
    let kernels = every_kernel()?;
    for kernel in &kernels {
        let (module, info) = kernel.module()?;
        for (index, way) in [(naga_ptx::IndexPolicy::Trust, "trusted"), (naga_ptx::IndexPolicy::Clamp, "clamped")] {
            let options = naga_ptx::Options { index, read_only_cache: true, ..naga_ptx::Options::default() };
            let translated = naga_ptx::translate(&module, &info, "main", &options);
            let translated = translated.map_err(|e| Error::invalid(format!("{}: {e}", kernel.name())))?;
            if let Some(ptxas) = &ptxas {
                assemble(ptxas, &format!("{}.{way}", kernel.name()), &translated.ptx)?;
            }
        }
    }
    println!("{} kernels as PTX", kernels.len());
    Ok(())
}
