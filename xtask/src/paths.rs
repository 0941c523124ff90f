//! Names in `ARCHITECTURE.md` and `README.md`: every path in backticks exists.

use std::path::Path;

/// Paths that a document names and the repository lacks.
pub fn missing(root: &Path, document: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(document)).map_err(|e| format!("{document}: {e}"))?;
    let mut missing = Vec::new();
    let mut in_code_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_code_block = !in_code_block;
        }
        if in_code_block {
            continue;
        }
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_path(name)) {
            if !root.join(name.trim_end_matches('/')).exists() {
                missing.push(format!("{document}:{}: `{name}` does not exist", number + 1));
            }
        }
    }
    Ok(missing)
}

/// A relative path of this repository: it has a slash or a file extension used here, and no blanks or placeholders.
fn is_path(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
    let ending = [".rs", ".md", ".toml", ".wgsl", ".json"].iter().any(|ending| name.ends_with(ending));
    let folder = ["crates/", "docs/", "bench/", "xtask/", ".ci/"].iter().any(|start| name.starts_with(start));
    plain && (folder || (ending && name.contains('/')))
}
