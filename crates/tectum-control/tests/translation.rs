//! Every kernel as SPIR-V (checked by `spirv-val` where it is installed), PTX (assembled by `ptxas`
//! where it is installed), MSL and HLSL. No Apple or Windows machine runs these tests; they only
//! verify that the translation exists for Metal and DX12.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use tectum::kernel::VULKAN_ONLY;
use tectum::{Error, Kernel};

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
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

/// The kernels of the runtime, of bodies, of a twin as large as the rig's, of spiking networks, and
/// of the field brain.
fn every_kernel() -> Result<Vec<Arc<Kernel>>, Error> {
    let mut kernels = tectum::operation::kernels();
    assert!(kernels.len() > 35, "the kernel table is whole");
    kernels.extend(tectum_control::conformance::kernels()?);
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
        let contains = |text: &Option<String>, what| {
            text.as_ref()
                .map_or(exempt, |text| !exempt && text.contains(what))
        };
        assert!(
            contains(&translations.msl, "kernel void main_"),
            "{}: an entry point in MSL",
            kernel.name()
        );
        assert!(
            contains(&translations.hlsl, "[numthreads("),
            "{}: an entry point in HLSL",
            kernel.name()
        );
        if validator {
            let (valid, report) =
                spirv_val(&translations.spirv).map_err(|e| Error::io("spirv-val", e))?;
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
    Command::new(&candidate)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
        .then_some(candidate)
}

/// Texts that one process assembles: starting the assembler takes longer than a kernel.
const BATCH: usize = 32;

const ARCHITECTURES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// Architectures for which each batch is assembled: another one each day, or as many as
/// `TECTUM_ARCHITECTURES` says.
fn architectures(batch: usize) -> impl Iterator<Item = &'static str> {
    let number = std::env::var("TECTUM_ARCHITECTURES");
    let count = number.map_or(1, |text| text.parse().expect("a number"));
    let day = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = batch + (day.expect("after 1970").as_secs() / 86_400) as usize;
    ARCHITECTURES
        .into_iter()
        .cycle()
        .skip(first % ARCHITECTURES.len())
        .take(count)
}

/// Assembles texts, by batches and architectures on all threads; a failed batch again one at a
/// time, so that the error names the kernel.
fn assemble(ptxas: &Path, texts: &[PathBuf]) -> Result<(), Error> {
    let batches = texts.chunks(BATCH).enumerate();
    let jobs: Vec<_> = batches
        .flat_map(|(index, batch)| architectures(index).map(move |name| (batch, name)))
        .collect();
    jobs.into_par_iter().try_for_each(|(batch, architecture)| {
        let failed = |texts: &[PathBuf]| {
            let to = texts[0].with_extension(format!("{architecture}.cubin"));
            let output = Command::new(ptxas)
                .arg("-arch")
                .arg(architecture)
                .arg("-o")
                .arg(&to)
                .args(texts)
                .output()
                .map_err(|e| Error::io("ptxas", e))?;
            Ok::<_, Error>(
                (!output.status.success())
                    .then(|| String::from_utf8_lossy(&output.stderr).into_owned()),
            )
        };
        if failed(batch)?.is_some() {
            for text in batch {
                assert_eq!(
                    failed(std::slice::from_ref(text))?,
                    None,
                    "{} for {architecture}",
                    text.display()
                );
            }
            panic!(
                "{architecture}: a batch from {} on fails, each text of it alone does not",
                batch[0].display()
            );
        }
        Ok(())
    })
}

/// Every kernel's PTX in a separate file, trusted and clamped; the entries are numbered, so that
/// names in a batch are unique.
#[test]
fn every_kernel_translates_to_ptx_that_assembles() -> Result<(), Error> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("ptx", e))?;
    let kernels = every_kernel()?;
    let mut texts = Vec::new();
    for kernel in &kernels {
        let (module, info) = kernel.module()?;
        for (index, way) in [
            (naga_ptx::IndexPolicy::Trust, "trusted"),
            (naga_ptx::IndexPolicy::Clamp, "clamped"),
        ] {
            let options = naga_ptx::Options {
                index,
                read_only_cache: true,
                ..naga_ptx::Options::default()
            };
            let translated = naga_ptx::translate(&module, &info, "main", &options);
            let translated =
                translated.map_err(|e| Error::invalid(format!("{}: {e}", kernel.name())))?;
            let declared = format!(".entry {}(", translated.entry);
            assert_eq!(
                translated.ptx.matches(&declared).count(),
                1,
                "{}: one entry",
                kernel.name()
            );
            let path = folder.join(format!("{}.{way}.ptx", kernel.name()));
            std::fs::write(
                &path,
                translated
                    .ptx
                    .replacen(&declared, &format!(".entry kernel_{}(", texts.len()), 1),
            )
            .map_err(|e| Error::io("ptx", e))?;
            texts.push(path);
        }
    }
    match ptxas() {
        Some(ptxas) => assemble(&ptxas, &texts)?,
        None => println!("skipped: ptxas is not installed: the kernels' PTX is not assembled"),
    }
    println!("{} kernels as PTX", kernels.len());
    Ok(())
}
