//! Files are written whole, and by one module: `tectum::file`.

use std::path::Path;

use super::sources::{crates, rust_files};

/// What creates or renames a file.
const CALLS: &[&str] = &[
    "fs::write(",
    "fs::rename(",
    "File::create",
    "OpenOptions",
    "File::options().write",
];
/// The module itself, and the recording of a run, which grows and is recovered where it ends.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/tectum/src/file.rs", "fs::rename("),
    ("crates/tectum/src/file.rs", "File::create_new("),
    ("crates/tectum/src/file.rs", "File::options().write"),
    (
        "crates/tectum-control/src/run_folder.rs",
        "File::create_new(",
    ),
];

/// Every call outside tests that writes a file in another way.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for package in crates(root)?
        .iter()
        .filter(|package| *package != "naga-ptx")
    {
        for file in rust_files(&root.join("crates").join(package).join("src"))? {
            let relative = file
                .strip_prefix(root)
                .map_err(|e| e.to_string())?
                .to_string_lossy()
                .replace('\\', "/");
            if relative.contains("/tests/") {
                continue;
            }
            let text =
                std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let code = text
                .split("#[cfg(test)]")
                .next()
                .unwrap_or_default()
                .replace("PartialFile::create", "");
            for (number, line) in code
                .lines()
                .enumerate()
                .filter(|(_, line)| CALLS.iter().any(|call| line.contains(call)))
            {
                if !ALLOWED
                    .iter()
                    .any(|(path, call)| *path == relative && line.contains(call))
                {
                    found.push(format!(
                        "{relative}:{}: files are written by tectum::file, whole",
                        number + 1
                    ));
                }
            }
        }
    }
    Ok(found)
}
