//! Documents: every relative link and every anchor resolves, every path in backticks exists, and
//! lines of prose are no wider than code unless they cannot be broken.

use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use crate::markdown::{anchors, code_spans, files, links, prose};
use crate::test_programs::cargo;
use crate::wrap::{WIDTH, wrapped};

/// Documents that describe an earlier state: paths that they name in backticks may be gone.
const HISTORY: [&str; 3] = ["CHANGELOG.md", "docs/decisions/", "docs/migration.md"];

/// Links and paths of all documents that lead nowhere, and lines that are too wide.
///
/// # Errors
/// A document that cannot be read.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for document in files(root)? {
        let text = read(root, &document)?;
        for (number, line) in prose(&text) {
            for target in links(line)
                .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
            {
                if let Err(fault) = resolve(root, &document, target) {
                    found.push(format!("{document}:{number}: {fault}"));
                }
            }
            if is_too_wide(line) {
                found.push(format!("{document}:{number}: more than {WIDTH} characters"));
            }
            if HISTORY.iter().any(|start| document.starts_with(start)) {
                continue;
            }
            for name in code_spans(line)
                .filter(|name| is_path(name) && !root.join(name.trim_end_matches('/')).exists())
            {
                found.push(format!("{document}:{number}: `{name}` does not exist"));
            }
        }
    }
    Ok(found)
}

/// The pages that the command prints: file and arguments.
const PRINTED: [(&str, &[&str]); 2] = [
    ("docs/cli.md", &["man", "--markdown"]),
    ("docs/scenarios.md", &["scenario", "reference"]),
];

/// Writes the pages that the command prints.
///
/// # Errors
/// A command that fails, a page that cannot be written.
pub fn print(root: &Path) -> Result<(), String> {
    for (page, arguments) in PRINTED {
        let output = cargo(root, &[&["run", "--quiet", "--"][..], arguments].concat())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo: {e}"))?;
        if !output.status.success() {
            return Err(format!("{page}: tectum {} failed", arguments.join(" ")));
        }
        std::fs::write(root.join(page), output.stdout).map_err(|e| format!("{page}: {e}"))?;
    }
    Ok(())
}

/// Whether a line is wider than prose may be and can be broken; a row of a table cannot.
fn is_too_wide(line: &str) -> bool {
    line.chars().count() > WIDTH && wrapped(line).lines().count() > 1
}

fn resolve(root: &Path, document: &str, target: &str) -> Result<(), String> {
    let (path, anchor) = target
        .split_once('#')
        .map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let path = if path.is_empty() {
        PathBuf::from(document)
    } else {
        normal(&folder.join(path))
    };
    if !root.join(&path).exists() {
        return Err(format!("link {target}: {} does not exist", path.display()));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    if anchors(&read(root, &path.to_string_lossy())?)
        .iter()
        .any(|known| known == anchor)
    {
        Ok(())
    } else {
        Err(format!(
            "link {target}: {} has no heading with the anchor #{anchor}",
            path.display()
        ))
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// A relative path of this repository: it is in a folder of it or has a slash and a file extension
/// used here, and is no pattern: no blanks, no words of capitals. Models and environments of peers
/// are fetched, `src/` and `tests/` are in the crate of which the text speaks.
fn is_path(name: &str) -> bool {
    let is_plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || "._-/".contains(c));
    let has_ending = [".rs", ".md", ".toml", ".wgsl", ".json", ".py"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let is_in_folder = ["crates/", "docs/", "bench/", "xtask/", ".ci/"]
        .iter()
        .any(|start| name.starts_with(start));
    let is_pattern = name
        .split(|c: char| !c.is_uppercase())
        .any(|word| word.len() > 1);
    let is_elsewhere = [
        "bench/models",
        "bench/peers/.venv",
        "runs/",
        "src/",
        "tests/",
        "1_Pooling/",
    ]
    .iter()
    .any(|start| name.starts_with(start));
    is_plain && (is_in_folder || (has_ending && name.contains('/'))) && !is_pattern && !is_elsewhere
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_resolve_relative_to_their_document_and_patterns_are_no_paths() {
        let root = crate::root();
        assert_eq!(resolve(&root, "docs/field.md", "../README.md"), Ok(()));
        assert!(
            resolve(&root, "README.md", "docs/absent.md")
                .is_err_and(|fault| fault.contains("docs/absent.md does not exist"))
        );
        assert!(
            resolve(&root, "docs/field.md", "../README.md#absent")
                .is_err_and(|fault| fault.contains("no heading"))
        );
        assert!(
            is_path("crates/tectum/src/plan.rs")
                && is_path("docs/")
                && !is_path("crates/NAME.rs")
                && !is_path("a b/c.rs")
                && !is_path("bench/models/minilm")
        );
    }

    #[test]
    fn wide_lines_are_faults_unless_they_are_tables_headings_or_one_token() {
        let wide = vec!["wide"; 21].join(" ");
        assert!(is_too_wide(&wide) && is_too_wide(&format!("- `code` {wide}")));
        for line in [
            &wide[..WIDTH],
            &format!("| {wide} | {wide} |"),
            &format!("# {wide}"),
            &format!("`{wide}`"),
            &format!("- ![{wide}](picture.png)"),
            &"é".repeat(WIDTH + 1),
        ] {
            assert!(!is_too_wide(line), "{line}");
        }
    }
}
