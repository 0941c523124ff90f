//! `cargo xtask gpu-kit`: one folder to carry to a machine with an NVIDIA GPU, tried out here first.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::test_programs::{self, Program};

/// What the whole folder may weigh.
const MOST_BYTES: u64 = 60 << 20;

/// Builds the programs of the kit as users run them.
pub fn build(root: &Path) -> Result<Vec<Program>, String> {
    test_programs::build_with(root, &["--release"], &Default::default())
}

/// Packs the kit under `target/gpu-kit` from built programs and runs it: where there is no GPU, its GPU rows are skipped with their reason.
pub fn run(root: &Path, built: &[Program]) -> Result<(), String> {
    let kit = root.join("target/gpu-kit");
    let cannot = |what: &'static str| move |e: std::io::Error| format!("gpu kit: {what}: {e}");
    if kit.exists() {
        std::fs::remove_dir_all(&kit).map_err(cannot("clearing the folder"))?;
    }
    std::fs::create_dir_all(&kit).map_err(cannot("making the folder"))?;
    for (name, package, kind) in [("tectum", "tectum-cli", "bin"), ("conformance", "naga-ptx", "test")] {
        // Of a program itself, not of its unit tests.
        let is_it = |built: &&Program| built.package == package && built.target == name && built.kind == kind && built.is_test == (kind == "test");
        let built = built.iter().find(is_it).ok_or_else(|| format!("gpu kit: cargo built no {name}"))?;
        let to = kit.join(name);
        std::fs::copy(&built.executable, &to).map_err(cannot("copying an executable"))?;
        let stripped = Command::new("strip").arg(&to).status().map_err(cannot("strip"))?;
        if !stripped.success() {
            return Err(format!("gpu kit: strip {name} failed"));
        }
    }
    for name in ["run.sh", "peers.py"] {
        std::fs::copy(root.join("xtask/kit").join(name), kit.join(name)).map_err(cannot("copying a script"))?;
    }
    std::fs::write(kit.join("COMMIT"), commit(root)).map_err(cannot("writing the commit"))?;
    let bytes = weight(&kit).map_err(cannot("measuring the folder"))?;
    if bytes > MOST_BYTES {
        return Err(format!("gpu kit: {bytes} bytes, more than {MOST_BYTES}"));
    }
    println!("gpu kit: {} with {:.1} MiB", kit.display(), bytes as f64 / f64::from(1 << 20));
    try_out(&kit)
}

/// The commit that the kit was built from; `+` after it says that files differ from it.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain"]).is_none_or(|status| !status.is_empty());
    let hash = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changed { format!("{hash}+") } else { hash }
}

fn weight(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

/// Runs the script and reads its record.
fn try_out(kit: &Path) -> Result<(), String> {
    let record = kit.join("record.json");
    let status = Command::new("bash").arg(kit.join("run.sh")).arg(&record).status().map_err(|e| format!("gpu kit: bash: {e}"))?;
    let text = std::fs::read_to_string(&record).map_err(|e| format!("gpu kit: no record: {e}"))?;
    let record: Value = serde_json::from_str(&text).map_err(|e| format!("gpu kit: the record is not JSON: {e}"))?;
    for row in ["conformance", "verify", "pendulum", "bench_core"] {
        match &record[row] {
            Value::Object(row) if row.contains_key("skipped") || row.contains_key("exit") => {}
            other => return Err(format!("gpu kit: row {row} of the record says {other}")),
        }
    }
    if status.success() { Ok(()) } else { Err("gpu kit: a step failed; see its record".to_owned()) }
}
