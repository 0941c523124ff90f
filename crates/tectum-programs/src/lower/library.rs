//! The part of the function library that a kernel needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use tectum::Prelude;

/// A function, constant, alias or structure, with its text and the comment before it.
struct Item {
    text: String,
    uses: Vec<String>,
}

/// Items by name, with their order in the files.
static ITEMS: LazyLock<(Vec<String>, BTreeMap<String, Item>)> = LazyLock::new(|| {
    let [math_f32, math] = Prelude::Math.wgsl(false);
    let files = [
        math_f32,
        math,
        Prelude::Pack.wgsl(false)[0],
        include_str!("program.wgsl"),
    ];
    let mut order = Vec::new();
    let mut items = BTreeMap::new();
    for file in files {
        for (name, text) in split(file) {
            let uses = words(&text)
                .filter(|word| *word != name)
                .map(str::to_owned)
                .collect();
            order.push(name.clone());
            items.insert(name, Item { text, uses });
        }
    }
    (order, items)
});

/// The items that a text uses, directly or indirectly, in the order of the library.
pub fn used_by(text: &str) -> String {
    let (order, items) = &*ITEMS;
    let mut open: Vec<&str> = words(text)
        .filter(|word| items.contains_key(*word))
        .collect();
    let mut used = BTreeSet::new();
    while let Some(name) = open.pop() {
        if used.insert(name) {
            let uses = items[name].uses.iter().map(String::as_str);
            open.extend(uses.filter(|word| items.contains_key(*word)));
        }
    }
    let texts: Vec<&str> = order
        .iter()
        .filter(|name| used.contains(name.as_str()))
        .map(|name| items[name].text.as_str())
        .collect();
    texts.concat()
}

/// Items of a file: each begins in the first column and ends with `}` there, or in its one line.
fn split(file: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = file.lines();
    let mut comment = String::new();
    while let Some(line) = lines.next() {
        let Some(name) = defined(line) else {
            // Only a comment directly before an item belongs to it.
            comment = if line.starts_with("//") {
                format!("{comment}{line}\n")
            } else {
                String::new()
            };
            continue;
        };
        let mut text = format!("{}{line}\n", std::mem::take(&mut comment));
        if line.ends_with('{') {
            for line in lines.by_ref() {
                text.push_str(line);
                text.push('\n');
                if line == "}" {
                    break;
                }
            }
        }
        found.push((name.to_owned(), text));
    }
    found
}

/// The name of the item that a line begins.
fn defined(line: &str) -> Option<&str> {
    let rest = ["fn ", "const ", "alias ", "struct "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    words(rest).next()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_text_brings_what_it_uses_and_nothing_else() {
        let text = super::used_by("x = tan_f32(y);");
        for needed in [
            "fn tan_f32",
            "fn tectum_reduce_far",
            "const TECTUM_SIGN",
            "struct TectumReduced",
            "fn hold",
        ] {
            assert_eq!(text.matches(needed).count(), 1, "{needed}");
        }
        assert!(!text.contains("tectum_exp") && !text.contains("neighbor"));
        assert_eq!(super::used_by("x + y"), "");
    }
}
