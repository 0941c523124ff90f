//! Which file of a path is a GGUF file.

use std::path::{Path, PathBuf};

use tectum::{Error, Result};

/// The file name extension.
const EXTENSION: &str = "gguf";

/// The GGUF file of a path: the path itself if it has the extension, or the only GGUF file of a
/// folder without safetensors.
///
/// # Errors
/// `Io` for a folder that cannot be read, `Invalid` if there are several.
pub fn gguf_file(path: &Path) -> Result<Option<PathBuf>> {
    let is_gguf = |path: &Path| {
        path.extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
    };
    if !path.is_dir() {
        return Ok(is_gguf(path).then(|| path.to_owned()));
    }
    let failed = |source| Error::io(path.display(), source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name == "model.safetensors" || name == "model.safetensors.index.json" {
            return Ok(None);
        }
        if is_gguf(&file) {
            files.push(file);
        }
    }
    if files.len() > 1 {
        files.sort();
        let names: Vec<_> = files
            .iter()
            .filter_map(|file| file.file_name())
            .map(|name| name.to_string_lossy())
            .collect();
        return Err(Error::invalid(format!(
            "{}: {} GGUF files are in this folder; name one of them: {}",
            path.display(),
            files.len(),
            names.join(", ")
        )));
    }
    Ok(files.pop())
}
