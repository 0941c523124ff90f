//! Texts of a contract.

use tectum::Result;

use crate::document::{Key, Section};

/// Reads a text.
pub(super) fn name(
    section: &mut Section<'_, '_>,
    key: &str,
    about: &str,
) -> Result<Option<String>> {
    Ok(section
        .string(Key::new(key, about))?
        .map(|text| text.value.to_owned()))
}

/// The name of a value in a list of names.
pub(super) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names
        .iter()
        .find(|(_, known)| *known == value)
        .map_or("", |(name, _)| name)
}

/// Reads a table of named tables, in the order of their names.
pub(super) fn named_tables<T>(
    section: &mut Section<'_, '_>,
    key: &'static str,
    about: &'static str,
    read: impl Fn(String, Section<'_, '_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut table = section.section(Key::new(key, about))?;
    let mut names = table.names();
    names.sort_by_key(|(_, place)| place.start);
    let mut rules = Vec::new();
    for (name, _) in names {
        let part = table.section(Key::new(&name, about).one_of("NAME"))?;
        rules.push(read(name.clone(), part)?);
    }
    table.finish()?;
    Ok(rules)
}
