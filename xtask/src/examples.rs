//! The examples of every crate: each checks its own result.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::tally::{Tally, is_required};
use crate::test_programs::{Program, at_once};

/// Arguments of an example that needs some; what exists in the repository is named from its root.
const ARGUMENTS: &[(&str, &str)] = &[
    ("translate", "crates/naga-ptx/examples/double.wgsl"),
    ("embed", "crates/tectum-transformer/models/sample-encoder"),
    (
        "generate",
        "crates/tectum-transformer/models/sample-decoder",
    ),
];

/// Examples whose last argument is a device.
const ON_DEVICES: &[&str] = &[
    "arrays",
    "custom_op",
    "dense",
    "embed",
    "field",
    "generate",
    "kernel",
    "saxpy",
    "threads",
    "tokio",
    "train_transformer",
];

/// Runs the examples among the programs in an empty folder, on the CPU and, where Vulkan is
/// required, on it; counts each as a test.
///
/// # Errors
/// If one does not start, or a name of the tables is no example.
pub fn run(root: &Path, programs: &[Program], tally: &mut Tally) -> Result<(), String> {
    let examples: Vec<&Program> = programs
        .iter()
        .filter(|program| program.kind == "example")
        .collect();
    let names: HashSet<&str> = examples
        .iter()
        .map(|example| example.target.as_str())
        .collect();
    if let Some(name) = ARGUMENTS
        .iter()
        .map(|(name, _)| name)
        .chain(ON_DEVICES)
        .find(|name| !names.contains(*name))
    {
        return Err(format!("{name} is no example"));
    }
    let folder = std::env::temp_dir().join(format!("tectum-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let has_vulkan = is_required("vulkan");
    let mut runs = Vec::new();
    for example in examples {
        let arguments: Vec<_> = ARGUMENTS
            .iter()
            .filter(|(name, _)| *name == example.target)
            .map(|(_, file)| root.join(file))
            .collect();
        let devices: &[&str] = match (ON_DEVICES.contains(&example.target.as_str()), has_vulkan) {
            (true, true) => &["cpu", "vulkan:0"],
            (true, false) => &["cpu"],
            (false, _) => &[""],
        };
        for device in devices {
            let name = format!("{} example {} {device}", example.package, example.target);
            let mut command = Command::new(&example.executable);
            command
                .current_dir(&folder)
                .args(&arguments)
                .args(device.split_whitespace());
            runs.push((name, Mutex::new(command)));
        }
    }
    let outputs = at_once(&runs, |(_, command)| {
        let mut command = command.lock().unwrap_or_else(PoisonError::into_inner);
        command.output()
    });
    for ((name, _), output) in runs.iter().zip(outputs) {
        let output = output.map_err(|e| format!("{name}: {e}"))?;
        let is_good = output.status.success() && !output.stdout.is_empty();
        println!("{name} ... {}", if is_good { "ok" } else { "FAILED" });
        tally.begin(name);
        if is_good {
            tally.passed += 1;
        } else {
            println!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            tally.failed += 1;
            tally.program_failed();
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))
}
