//! Coined and literary words that a reader would not search for: none in public names, file names, texts of the command, documentation or scenarios,
//! except those that `docs/glossary.md` defines.

use std::path::Path;

use crate::sources::files_with_ending;

/// Words that must not occur, with their replacements.
const WORDS: &[(&str, &str)] = &[
    ("abreast", "side by side"),
    ("anew", "again"),
    ("beside", "next to, compared with"),
    ("foretell", "predict"),
    ("foretells", "predicts"),
    ("foretold", "predicted"),
    ("handed", "passed"),
    ("leap", "outlier, jump"),
    ("leaps", "outliers, jumps"),
    ("meanwhile", "until then"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("nobody", "no one"),
    ("refuge", "fallback"),
    ("remedy", "fix"),
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

/// Every place with such a word.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let glossary = glossary(root)?;
    let is_open = |list: &'static [(&'static str, &'static str)]| {
        let kept = list.iter().filter(|(word, _)| !glossary.iter().any(|known| known == word));
        kept.copied().collect::<Vec<_>>()
    };
    let (words, names) = (is_open(WORDS), is_open(NAME_WORDS));
    let mut found = Vec::new();
    let mut documents = vec!["README.md".into(), "ARCHITECTURE.md".into(), "CHANGELOG.md".into(), "CONTRIBUTING.md".into()];
    documents.extend(relative(root, "docs", "md")?);
    documents.extend(relative(root, "crates", "md")?);
    documents.extend(relative(root, "crates/tectum-control/scenarios", "toml")?);
    for document in documents {
        for (number, line) in read(root, &document)?.lines().enumerate() {
            found.extend(in_text(line, &words).map(|fault| format!("{document}:{}: {fault}", number + 1)));
        }
    }
    for folder in ["crates", "xtask"] {
        for file in relative(root, folder, "rs")? {
            if file == "xtask/src/words.rs" {
                continue;
            }
            found.extend(in_name(file.rsplit('/').next().unwrap_or_default(), &words, &names).map(|fault| format!("{file}: {fault}")));
            let is_command = file.starts_with("crates/tectum-cli/src");
            for (number, line) in read(root, &file)?.lines().enumerate() {
                let place = format!("{file}:{}", number + 1);
                let (code, comment) = line.split_once("//").unwrap_or((line, ""));
                let texts = comment.strip_prefix(['/', '!']).into_iter();
                let texts = texts.chain(code.split('"').skip(1).step_by(2).filter(|_| is_command));
                found.extend(texts.flat_map(|text| in_text(text, &words)).map(|fault| format!("{place}: {fault}")));
                found.extend(public_name(code).into_iter().flat_map(|name| in_name(name, &words, &names)).map(|fault| format!("{place}: {fault}")));
            }
        }
    }
    Ok(found)
}

/// The terms of the glossary: the first column of its table.
fn glossary(root: &Path) -> Result<Vec<String>, String> {
    let text = read(root, "docs/glossary.md")?;
    let first = |line: &str| line.strip_prefix("| ").and_then(|line| line.split(" |").next()).map(|term| term.trim().to_lowercase());
    Ok(text.lines().filter_map(first).collect())
}

/// Banned words of a text; names in backticks and links are no text.
fn in_text<'l>(text: &'l str, words: &'l [(&'static str, &'static str)]) -> impl Iterator<Item = String> + 'l {
    let prose = text.split('`').step_by(2);
    let found = prose.flat_map(|prose| prose.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-' && c != '/'));
    found.filter_map(|word| {
        let (banned, instead) = words.iter().find(|(banned, _)| word.eq_ignore_ascii_case(banned))?;
        Some(format!("\"{banned}\": write {instead}"))
    })
}

/// Banned words among the parts of a name.
fn in_name<'l>(name: &'l str, words: &'l [(&'static str, &'static str)], names: &'l [(&'static str, &'static str)]) -> impl Iterator<Item = String> + 'l {
    let snake = name.chars().enumerate().flat_map(|(index, c)| (c.is_uppercase() && index > 0).then_some('_').into_iter().chain([c]));
    let is_upper = name.chars().all(|c| !c.is_lowercase());
    let mut snake: String = if is_upper { name.to_lowercase() } else { snake.collect::<String>().to_lowercase() };
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
    for keyword in ["const ", "unsafe ", "static ", "fn ", "struct ", "enum ", "trait ", "type ", "mod "] {
        rest = rest.strip_prefix(keyword).unwrap_or(rest);
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (!rest.starts_with("use ")).then_some(&rest[..end]).filter(|name| !name.is_empty())
}

fn relative(root: &Path, folder: &str, ending: &str) -> Result<Vec<String>, String> {
    let files = files_with_ending(&root.join(folder), ending)?;
    Ok(files.iter().filter_map(|file| Some(file.strip_prefix(root).ok()?.to_string_lossy().replace('\\', "/"))).collect())
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
        assert_eq!((text("The bench runs beside it."), text("`beside` and Beside"), text("besides, retold")), (1, 1, 0));
        let name = |name: &'static str| in_name(name, WORDS, NAME_WORDS).count();
        assert_eq!((name("MOST_ROWS"), name("foretold_rows"), name("LeastCosine"), name("at_most"), name("least_squares.rs")), (1, 1, 1, 0, 0));
        assert_eq!(
            (public_name("    pub fn tell(&self)"), public_name("pub late: u32,"), public_name("fn tell()"), public_name("pub(crate) fn tell()")),
            (Some("tell"), Some("late"), None, None)
        );
    }
}
