//! Variables of the environment: those that the crates read are documented, in `docs/cli.md` for
//! users or in `CONTRIBUTING.md` for tests.

use std::path::Path;

use crate::sources::rust_files;

/// Beginnings of names that are variables wherever they are quoted.
const PREFIXES: [&str; 2] = ["TECTUM_", "XDG_"];
/// Whole names.
const NAMES: [&str; 3] = ["HOME", "LOCALAPPDATA", "NO_COLOR"];
/// Set while the workspace is built.
const OF_BUILDS: &str = "TECTUM_REVISION";

/// Variables that no document names.
///
/// # Errors
/// A file that cannot be read.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let documents = [
        read(&root.join("docs/cli.md"))?,
        read(&root.join("CONTRIBUTING.md"))?,
    ];
    let mut found = Vec::new();
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str() == "tests");
    for file in rust_files(&root.join("crates"))?
        .iter()
        .filter(|file| !is_test(file))
    {
        for name in read(file)?
            .split('"')
            .filter(|name| is_variable(name) && *name != OF_BUILDS)
        {
            if !documents
                .iter()
                .any(|document| document.contains(&format!("`{name}`")))
            {
                found.push(format!(
                    "{}: {name} is in neither docs/cli.md nor CONTRIBUTING.md",
                    file.strip_prefix(root).unwrap_or(file).display()
                ));
            }
        }
    }
    Ok(found)
}

fn is_variable(text: &str) -> bool {
    let is_name = text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_name
        && (NAMES.contains(&text)
            || PREFIXES
                .iter()
                .any(|prefix| text.len() > prefix.len() && text.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::is_variable;

    #[test]
    fn variables_are_names_of_capitals_with_a_known_beginning() {
        assert!(
            is_variable("TECTUM_SEED")
                && is_variable("HOME")
                && !is_variable("TECTUM_")
                && !is_variable("TECTUM_x")
                && !is_variable("MPPI")
        );
    }
}
