//! Coined and literary words that a reader would not search for: none in public names, file names,
//! documents, scenarios, comments and strings (help, reports, error texts), except those that
//! `docs/glossary.md` defines.

use std::path::Path;

use crate::markdown;
use crate::sources::files_with_ending;

/// Words and phrases that must not occur, with their replacements.
const WORDS: &[(&str, &str)] = &[
    ("abreast", "side by side"),
    ("anew", "again"),
    ("beside", "next to, compared with"),
    ("begins anew", "restarts"),
    ("for good", "permanently"),
    ("for want of", "without, because … is missing"),
    ("foretell", "predict"),
    ("foretells", "predicts"),
    ("foretold", "predicted"),
    ("goes on", "continues"),
    ("handed", "passed"),
    ("hands over", "passes"),
    ("hangs on", "depends on"),
    ("held against", "compared with"),
    ("in the mean", "on average"),
    ("leap", "outlier, jump"),
    ("leaps", "outliers, jumps"),
    ("meanwhile", "until then"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("nobody", "no one"),
    ("refuge", "fallback"),
    ("remedy", "fix"),
    ("rests on", "depends on"),
    ("seen to hold", "verified"),
    ("stands for", "represents"),
    ("tells", "reports"),
    ("told", "reported"),
    ("undone", "unsupported"),
    ("whoever", "for any"),
];

/// Words that are ordinary in a sentence but have no meaning as part of a public name.
const NAME_WORDS: &[(&str, &str)] = &[
    ("apart", "distance, stride, deviation"),
    ("blind", "sensor_fault"),
    ("felt", "measured"),
    ("late", "delay"),
    ("least", "min"),
    ("mind", "state"),
    ("most", "max"),
    ("seat", "state"),
    ("silence", "idle"),
    ("stirred", "hash_mix"),
    ("struck", "triggered"),
    ("tell", "read, report"),
    ("threes", "sums"),
    ("tied", "tied_embeddings"),
];

/// Names in which such a word is a term of the field.
const TERMS: &[&str] = &["at_least", "at_most", "least_squares", "tied_embeddings"];

/// Texts besides documents and Rust: folder and ending.
const TEXTS: [(&str, &str); 4] = [
    ("crates/tectum-control/scenarios", "toml"),
    ("crates/tectum-programs/programs", "atlas"),
    ("crates/tectum-equations/plants", "plant"),
    ("crates", "wgsl"),
];

/// Every place with such a word.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let glossary = glossary(root)?;
    let is_open = |list: &'static [(&'static str, &'static str)]| {
        let kept = list
            .iter()
            .filter(|(word, _)| !glossary.iter().any(|known| known == word));
        kept.copied().collect::<Vec<_>>()
    };
    let (words, names) = (is_open(WORDS), is_open(NAME_WORDS));
    let mut found = Vec::new();
    let mut documents = markdown::files(root)?;
    for (folder, ending) in TEXTS {
        documents.extend(relative(root, folder, ending)?);
    }
    for document in documents {
        for (number, line) in read(root, &document)?.lines().enumerate() {
            let text = if document.ends_with(".wgsl") {
                code_and_comment(line).1
            } else {
                line
            };
            found.extend(
                in_text(text, &words).map(|fault| format!("{document}:{}: {fault}", number + 1)),
            );
        }
    }
    for folder in ["crates", "xtask"] {
        for file in relative(root, folder, "rs")? {
            if file == "xtask/src/words.rs" {
                continue;
            }
            found.extend(
                in_name(file.rsplit('/').next().unwrap_or_default(), &words, &names)
                    .map(|fault| format!("{file}: {fault}")),
            );
            let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
            for (number, line) in read(root, &file)?.lines().enumerate() {
                let place = format!("{file}:{}", number + 1);
                let (code, comment) = code_and_comment(line);
                // The strings of tests are no texts for users.
                let texts = strings(code)
                    .filter(|_| !is_test)
                    .chain([comment.to_owned()]);
                found.extend(
                    texts
                        .flat_map(|text| in_text(&text, &words).collect::<Vec<_>>())
                        .map(|fault| format!("{place}: {fault}")),
                );
                found.extend(
                    public_name(code)
                        .into_iter()
                        .flat_map(|name| in_name(name, &words, &names))
                        .map(|fault| format!("{place}: {fault}")),
                );
            }
        }
    }
    Ok(found)
}

/// Code and comment of a line.
fn code_and_comment(line: &str) -> (&str, &str) {
    let start = line
        .match_indices("//")
        .map(|(at, _)| at)
        .find(|at| line[..*at].matches('"').count().is_multiple_of(2));
    start.map_or((line, ""), |at| line.split_at(at))
}

/// The strings of a line that are text: with a blank, and without the names of values.
fn strings(code: &str) -> impl Iterator<Item = String> {
    let texts = code
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| text.contains(' '));
    texts.map(|text| {
        text.split('{')
            .enumerate()
            .map(|(place, part)| {
                if place == 0 {
                    part
                } else {
                    part.split_once('}').map_or(part, |(_, rest)| rest)
                }
            })
            .collect()
    })
}

/// The terms of the glossary: the first column of its table.
fn glossary(root: &Path) -> Result<Vec<String>, String> {
    let text = read(root, "docs/glossary.md")?;
    let first = |line: &str| {
        line.strip_prefix("| ")
            .and_then(|line| line.split(" |").next())
            .map(|term| term.trim().to_lowercase())
    };
    Ok(text.lines().filter_map(first).collect())
}

/// Banned words and phrases of a text; names in backticks and links are no text.
fn in_text<'l>(
    text: &'l str,
    words: &'l [(&'static str, &'static str)],
) -> impl Iterator<Item = String> + 'l {
    let prose = text.split('`').step_by(2).map(str::to_lowercase);
    prose.flat_map(move |prose| {
        let is_part = |c: char| c.is_alphanumeric() || "_-/".contains(c);
        let has = |banned: &str| {
            let mut places = prose
                .match_indices(banned)
                .map(|(at, _)| (at, at + banned.len()));
            places.any(|(from, to)| {
                !prose[..from].ends_with(is_part) && !prose[to..].starts_with(is_part)
            })
        };
        let found: Vec<String> = words
            .iter()
            .filter(|(banned, _)| has(banned))
            .map(|(banned, instead)| format!("\"{banned}\": write {instead}"))
            .collect();
        found
    })
}

/// Banned words among the parts of a name.
fn in_name<'l>(
    name: &'l str,
    words: &'l [(&'static str, &'static str)],
    names: &'l [(&'static str, &'static str)],
) -> impl Iterator<Item = String> + 'l {
    let snake = name.chars().enumerate().flat_map(|(index, c)| {
        (c.is_uppercase() && index > 0)
            .then_some('_')
            .into_iter()
            .chain([c])
    });
    let is_upper = name.chars().all(|c| !c.is_lowercase());
    let mut snake: String = if is_upper {
        name.to_lowercase()
    } else {
        snake.collect::<String>().to_lowercase()
    };
    for term in TERMS {
        snake = snake.replace(term, "");
    }
    let parts: Vec<String> = snake.split(['_', '.']).map(str::to_owned).collect();
    words
        .iter()
        .chain(names)
        .filter(move |(banned, _)| parts.iter().any(|part| part == banned))
        .map(move |(banned, instead)| format!("name {name} has \"{banned}\": {instead}"))
}

/// The name that a line of code makes public.
fn public_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("pub ")?;
    for keyword in [
        "const ", "unsafe ", "static ", "fn ", "struct ", "enum ", "trait ", "type ", "mod ",
    ] {
        rest = rest.strip_prefix(keyword).unwrap_or(rest);
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (!rest.starts_with("use "))
        .then_some(&rest[..end])
        .filter(|name| !name.is_empty())
}

fn relative(root: &Path, folder: &str, ending: &str) -> Result<Vec<String>, String> {
    let files = files_with_ending(&root.join(folder), ending)?;
    Ok(files
        .iter()
        .filter_map(|file| {
            Some(
                file.strip_prefix(root)
                    .ok()?
                    .to_string_lossy()
                    .replace('\\', "/"),
            )
        })
        .collect())
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_text_and_in_parts_of_names() {
        let text = |text: &'static str| in_text(text, WORDS).count();
        assert_eq!(
            (
                text("The bench runs beside it."),
                text("`beside` and Beside"),
                text("besides, retold")
            ),
            (1, 1, 0)
        );
        let name = |name: &'static str| in_name(name, WORDS, NAME_WORDS).count();
        assert_eq!(
            (
                name("MOST_ROWS"),
                name("foretold_rows"),
                name("LeastCosine"),
                name("at_most"),
                name("least_squares.rs")
            ),
            (1, 1, 1, 0, 0)
        );
        assert_eq!(
            (
                public_name("    pub fn tell(&self)"),
                public_name("pub late: u32,"),
                public_name("fn tell()"),
                public_name("pub(crate) fn tell()")
            ),
            (Some("tell"), Some("late"), None, None)
        );
    }
}
