//! The files of the workspace's crates.

use std::path::{Path, PathBuf};

/// The crates of the workspace's folder `crates`, by name.
pub fn crates(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Every `.rs` file below a folder except test modules.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(files_with_ending(folder, "rs")?
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"))
        .collect())
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
