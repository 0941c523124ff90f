//! The order of modules inside `tectum`: imports go one way only.

use std::path::{Path, PathBuf};

/// Lowest first. Modules in one row form one layer: a device hands out pooled memory, so the two know each other.
const LAYERS: &[&[&str]] = &[
    &["error", "dtype", "latency"],
    &["lru_cache", "content_hash", "file", "snapshot"],
    &["kernel"],
    &["store"],
    &["launch"],
    &["device", "memory"],
    &["plan"],
    &["stream"],
    &["measure", "receipt"],
    &["route"],
];

/// Every import of `crate::…` from a lower layer into a higher one, and every module that the order does not name.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let source = root.join("crates/tectum/src");
    let mut found = Vec::new();
    for file in rust_files(&source)? {
        let relative = file.strip_prefix(&source).map_err(|e| e.to_string())?.to_string_lossy().replace('\\', "/");
        let module = relative.split(['/', '.']).next().unwrap_or_default().to_owned();
        if module == "lib" {
            continue;
        }
        let Some(layer) = layer_of(&module) else {
            found.push(format!("{relative}: module {module} has no place in the order of xtask/src/layers.rs"));
            continue;
        };
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if layer_of(&used).is_some_and(|other| other > layer) {
                    found.push(format!("{relative}:{}: {module} imports {used}, a higher layer", number + 1));
                }
            }
        }
    }
    Ok(found)
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The crates of the workspace's folder `crates`, by name.
pub fn crates(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Every `.rs` file below a folder except test modules.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(files_with_ending(folder, "rs")?.into_iter().filter(|path| path.file_name().is_some_and(|name| name != "tests.rs")).collect())
}

/// Every file below a folder whose name has an ending.
pub fn files_with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            files.extend(files_with_ending(&path, ending)?);
        } else if path.extension().is_some_and(|e| e == ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
