//! `cargo xtask gpu-kit`: one folder to carry to a machine with an NVIDIA GPU, tried out here first.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What the whole folder may weigh.
const MOST_BYTES: u64 = 60 << 20;

/// Packs the kit under `target/gpu-kit` and runs it: where there is no GPU, its GPU rows are skipped with their reason.
pub fn run(root: &Path) -> Result<(), String> {
    let kit = root.join("target/gpu-kit");
    let cannot = |what: &'static str| move |e: std::io::Error| format!("gpu kit: {what}: {e}");
    if kit.exists() {
        std::fs::remove_dir_all(&kit).map_err(cannot("clearing the folder"))?;
    }
    std::fs::create_dir_all(&kit).map_err(cannot("making the folder"))?;
    let built = built(root)?;
    for (name, package, kind) in [("tectum", "tectum-cli", "bin"), ("conformance", "naga-ptx", "test")] {
        let built = executable(&built, package, name, kind).ok_or_else(|| format!("gpu kit: cargo built no {name}"))?;
        let to = kit.join(name);
        std::fs::copy(&built, &to).map_err(cannot("copying an executable"))?;
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

/// Builds in release what the tests build, so that nothing is built twice, and gives what cargo says of each product.
fn built(root: &Path) -> Result<Vec<Value>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["test", "--release", "--workspace", "--no-run", "--message-format=json"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("gpu kit: cargo: {e}"))?;
    if !output.status.success() {
        return Err("gpu kit: cargo failed".to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The executable of one target of a package; of a program itself, not of its unit tests.
fn executable(built: &[Value], package: &str, target: &str, kind: &str) -> Option<PathBuf> {
    let wanted = |message: &&Value| {
        message["target"]["name"] == target
            && message["target"]["kind"][0] == kind
            && message["profile"]["test"] == (kind == "test")
            && message["package_id"].as_str().is_some_and(|id| id.contains(package))
    };
    built.iter().find(wanted)?["executable"].as_str().map(PathBuf::from)
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
