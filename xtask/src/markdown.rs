//! Markdown as the checks of documents need it: prose, fenced blocks, headings with their anchors,
//! links.

use std::path::Path;

use crate::sources::files_with_ending;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'t> {
    /// What follows the opening fence.
    pub language: &'t str,
    /// The last paragraph before it.
    pub before: String,
    /// Its lines with their numbers.
    pub lines: Vec<(usize, &'t str)>,
}

/// Every Markdown file that is part of the repository, relative to its root.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(root: &Path) -> Result<Vec<String>, String> {
    let mut files: Vec<String> = Vec::new();
    let entries = std::fs::read_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|ending| ending == "md") {
            files.extend(relative(root, &path));
        }
    }
    for folder in ["docs", "bench/records", "crates"] {
        files.extend(
            files_with_ending(&root.join(folder), "md")?
                .iter()
                .filter_map(|path| relative(root, path)),
        );
    }
    files.push("bench/peers/README.md".to_owned());
    // Parts of pages that are printed to `docs/`.
    files.retain(|file| !file.contains("/src/"));
    files.sort();
    Ok(files)
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(
        path.strip_prefix(root)
            .ok()?
            .to_string_lossy()
            .replace('\\', "/"),
    )
}

/// The fenced blocks of a text.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let (mut paragraph, mut is_ended) = (String::new(), false);
    for (line, number) in text.lines().zip(1..) {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                open = Some(Block {
                    language: language.trim(),
                    before: std::mem::take(&mut paragraph),
                    lines: Vec::new(),
                })
            }
            (None, Some(mut block)) => {
                block.lines.push((number, line));
                open = Some(block);
            }
            (None, None) if line.trim().is_empty() => is_ended = true,
            (None, None) => {
                if std::mem::take(&mut is_ended) {
                    paragraph.clear();
                }
                paragraph += line;
                paragraph.push('\n');
            }
        }
    }
    blocks
}

/// The lines outside of fenced blocks, with their numbers.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let lines = text.lines().zip(1..).map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (number, line, is_fenced || is_fence)
    });
    lines.filter_map(|(number, line, is_code)| (!is_code).then_some((number, line)))
}

/// The anchors of a text: those that GitHub makes of its headings.
pub fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let plain: String = kept
            .map(|c| if c == ' ' { '-' } else { c })
            .flat_map(char::to_lowercase)
            .collect();
        let same = anchors.iter().filter(|known| {
            **known == plain
                || known
                    .strip_prefix(&format!("{plain}-"))
                    .is_some_and(|rest| rest.parse::<u32>().is_ok())
        });
        let count = same.count();
        anchors.push(if count == 0 {
            plain
        } else {
            format!("{plain}-{count}")
        });
    }
    anchors
}

/// The targets of the links and images of a line.
pub fn links(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.match_indices("](").map(|(at, _)| at);
    let is_code = move |at: usize| line[..at].matches('`').count() % 2 == 1;
    ends.filter(move |at| !is_code(*at))
        .filter_map(|at| line[at + 2..].split(')').next()?.split_whitespace().next())
}

/// The spans of code of a line.
pub fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A `b` C, d\n\nThis one, `x.toml`,\nis short:\n\n```toml\na = 1\n```\n\nAnd [a](b.md#c), `[not](this)` ![x](y.png \"z\").\n\n## A `b` C, d\n";

    #[test]
    fn blocks_have_the_paragraph_before_them_and_prose_has_no_blocks() {
        let blocks = blocks(PAGE);
        assert_eq!(
            blocks,
            [Block {
                language: "toml",
                before: "This one, `x.toml`,\nis short:\n".to_owned(),
                lines: vec![(7, "a = 1")]
            }]
        );
        assert!(prose(PAGE).all(|(_, line)| line != "a = 1" && !line.starts_with("```")));
    }

    #[test]
    fn anchors_are_those_of_github_and_links_outside_of_code_are_found() {
        assert_eq!(anchors(PAGE), ["a-b-c-d", "a-b-c-d-1"]);
        assert_eq!(
            prose(PAGE)
                .flat_map(|(_, line)| links(line))
                .collect::<Vec<_>>(),
            ["b.md#c", "y.png"]
        );
    }
}
