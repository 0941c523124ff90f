//! `cargo xtask gpu-kit`: one folder to copy to a machine with an NVIDIA GPU, tested here first.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::test_programs::{self, Program};

/// Maximum size of the whole folder.
const MAX_BYTES: u64 = 60 << 20;

/// Builds the programs of the kit as users run them.
pub fn build(root: &Path) -> Result<Vec<Program>, String> {
    test_programs::build_with(root, &["--release"], &Default::default())
}

/// Packs the kit under `target/gpu-kit` from built programs and runs it: without a GPU, its GPU
/// rows are skipped with a reason.
pub fn run(root: &Path, built: &[Program]) -> Result<(), String> {
    let kit = root.join("target/gpu-kit");
    let cannot = |what: &'static str| move |e: std::io::Error| format!("gpu kit: {what}: {e}");
    if kit.exists() {
        std::fs::remove_dir_all(&kit).map_err(cannot("clearing the folder"))?;
    }
    std::fs::create_dir_all(&kit).map_err(cannot("making the folder"))?;
    for (name, package, kind) in [
        ("tectum", "tectum-cli", "bin"),
        ("conformance", "naga-ptx", "test"),
    ] {
        // The program itself, not its unit tests.
        let is_it = |built: &&Program| {
            built.package == package
                && built.target == name
                && built.kind == kind
                && built.is_test == (kind == "test")
        };
        let built = built
            .iter()
            .find(is_it)
            .ok_or_else(|| format!("gpu kit: cargo built no {name}"))?;
        let to = kit.join(name);
        std::fs::copy(&built.executable, &to).map_err(cannot("copying an executable"))?;
        let stripped = Command::new("strip")
            .arg(&to)
            .status()
            .map_err(cannot("strip"))?;
        if !stripped.success() {
            return Err(format!("gpu kit: strip {name} failed"));
        }
    }
    for name in ["run.sh", "peers.py"] {
        std::fs::copy(root.join("xtask/kit").join(name), kit.join(name))
            .map_err(cannot("copying a script"))?;
    }
    std::fs::write(kit.join("COMMIT"), commit(root)).map_err(cannot("writing the commit"))?;
    let bytes = weight(&kit).map_err(cannot("measuring the folder"))?;
    if bytes > MAX_BYTES {
        return Err(format!("gpu kit: {bytes} bytes, more than {MAX_BYTES}"));
    }
    println!(
        "gpu kit: {} with {:.1} MiB",
        kit.display(),
        bytes as f64 / f64::from(1 << 20)
    );
    try_out(&kit, &stand_in(built, &kit)?)
}

/// A folder with the stand-in for NVIDIA's driver under the driver's name.
fn stand_in(built: &[Program], kit: &Path) -> Result<PathBuf, String> {
    let test = built
        .iter()
        .find(|built| built.package == "driver-double" && built.target == "cuda_device");
    let library = test
        .and_then(|test| test.executable.parent())
        .map(|folder| folder.join("libdriver_double.so"));
    let library = library.ok_or("gpu kit: cargo built no stand-in for the driver")?;
    // Outside the kit, which is copied to machines with the real driver.
    let folder = kit.with_file_name("gpu-kit-stand-in");
    std::fs::create_dir_all(&folder).map_err(|e| format!("gpu kit: {}: {e}", folder.display()))?;
    std::fs::copy(&library, folder.join("libcuda.so.1"))
        .map_err(|e| format!("gpu kit: {}: {e}", library.display()))?;
    Ok(folder)
}

/// The commit that the kit was built from; a trailing `+` means that files differ from it.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain"]).is_none_or(|status| !status.is_empty());
    let hash = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changed { format!("{hash}+") } else { hash }
}

fn weight(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum()
}

/// Runs the script twice and reads its records: on this machine, and in quick mode on the stand-in
/// for NVIDIA's driver, whose device is not a GPU but runs every step.
fn try_out(kit: &Path, stand_in: &Path) -> Result<(), String> {
    let steps = steps(kit)?;
    let (succeeded, record) = run_script(kit, "record.json", &[])?;
    check_steps(&record, &steps)?;
    if !succeeded {
        return Err("gpu kit: a step failed; see its record".to_owned());
    }
    let folder = stand_in.display().to_string();
    let (_, record) = run_script(
        kit,
        "quick.json",
        &[("KIT_QUICK", "1"), ("LD_LIBRARY_PATH", &folder)],
    )?;
    check_steps(&record, &steps)?;
    let is_listed = record["devices"]["exit"] == 0
        && record["devices"]["result"]
            .to_string()
            .contains("test double");
    if !is_listed || record["quick"] != true {
        return Err(format!(
            "gpu kit: the quick run was not on the stand-in, or does not say that it was quick: {}",
            record["devices"]
        ));
    }
    // Models may be absent, and a speed-up needs rows of both.
    let runs = |step: &&String| {
        !["speedup_", "bench_infer_", "bench_policy_"]
            .iter()
            .any(|start| step.starts_with(start))
            && *step != "peers"
    };
    match steps
        .iter()
        .filter(runs)
        .find(|step| record[step.as_str()].get("exit").is_none())
    {
        Some(step) => Err(format!(
            "gpu kit: step {step} did not run on the stand-in: {}",
            record[step.as_str()]
        )),
        None => Ok(()),
    }
}

/// The required steps of a record: three for every suite of the command.
fn steps(kit: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(kit.join("tectum"))
        .args(["bench", "every"])
        .output()
        .map_err(|e| format!("gpu kit: tectum: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, suites) = text
        .trim()
        .rsplit_once("suites: ")
        .ok_or_else(|| format!("gpu kit: tectum bench names no suites: {text}"))?;
    let of_suite = |suite: &str| {
        [
            format!("bench_{suite}_gpu"),
            format!("bench_{suite}_cpu"),
            format!("speedup_{suite}"),
        ]
    };
    let others = ["devices", "conformance", "verify", "pendulum", "peers"].map(str::to_owned);
    Ok(others
        .into_iter()
        .chain(suites.split(", ").flat_map(of_suite))
        .collect())
}

/// Whether the script succeeded, and its record.
fn run_script(
    kit: &Path,
    record: &str,
    environment: &[(&str, &str)],
) -> Result<(bool, Value), String> {
    let path = kit.join(record);
    let script = Command::new("bash")
        .arg(kit.join("run.sh"))
        .arg(&path)
        .envs(environment.iter().copied())
        .status();
    let status = script.map_err(|e| format!("gpu kit: bash: {e}"))?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("gpu kit: no record: {e}"))?;
    let record =
        serde_json::from_str(&text).map_err(|e| format!("gpu kit: the record is not JSON: {e}"))?;
    Ok((status.success(), record))
}

/// Each step reports that it was skipped and why, or how it ended and whether in time.
fn check_steps(record: &Value, steps: &[String]) -> Result<(), String> {
    for step in steps {
        let row = &record[step.as_str()];
        let (seconds, limit) = (row["seconds"].as_f64(), row["limit_s"].as_f64());
        let is_in_time = seconds
            .zip(limit)
            .is_some_and(|(seconds, limit)| seconds < limit + 5.0);
        let is_run = is_in_time
            && row["exit"].is_i64()
            && (row["timed_out"] == true || row.get("result").or(row.get("output")).is_some());
        if !row["skipped"].is_string() && !is_run {
            return Err(format!("gpu kit: step {step} of the record says {row}"));
        }
    }
    Ok(())
}
