//! Reading TOML with the line of every key, so that each error is reported with its line.

mod key;
mod renamed;

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use tectum::{Error, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use self::key::Key;
pub(crate) use self::key::KeyRow;
use self::key::{TABLE, TABLES};
pub(crate) use self::renamed::renamings;
use self::renamed::{new_value, old_key};
use crate::nearest::{nearest, suggestion};

/// The text of a scenario and its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct TomlSource<'t> {
    pub origin: &'t str,
    pub text: &'t str,
    /// A run wrote it, perhaps in a process that knew more names.
    pub is_record: bool,
    pub warnings: &'t RefCell<Vec<String>>,
    /// Receives every key that a reader asks for, for the reference of scenarios.
    pub asked: Option<&'t RefCell<Vec<KeyRow>>>,
}

impl<'t> TomlSource<'t> {
    /// Parses the text.
    pub fn parse(self) -> Result<Spanned<DeTable<'t>>> {
        DeTable::parse(self.text).map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            self.error(&place, error.message().lines().next().unwrap_or("not TOML"))
        })
    }

    /// An error at a place in the text.
    pub fn error(&self, place: &Range<usize>, message: impl std::fmt::Display) -> Error {
        Error::data(format!("{}: {message}", self.line(place)))
    }

    /// Adds a warning about a place in the text.
    fn warn(&self, place: &Range<usize>, message: &str) {
        self.warnings
            .borrow_mut()
            .push(format!("{}: {message}", self.line(place)));
    }

    /// Names a place in the text as `origin:line`.
    pub fn line(&self, place: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..place.start.min(self.text.len())];
        format!(
            "{}:{}",
            self.origin,
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        )
    }
}

/// Where something is in a text, as `origin:line`, for messages of later checks. It does not
/// distinguish settings: two places are always equal.
#[derive(Clone, Default)]
pub struct SourceLine(String);

impl std::fmt::Debug for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SourceLine")
    }
}

impl PartialEq for SourceLine {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value and its location.
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its bytes in the text.
    pub place: Range<usize>,
}

/// Reads a table without keys: every setting has its default.
pub(crate) fn read_defaults<T>(read: impl FnOnce(&mut Section<'_, '_>) -> Result<T>) -> Result<T> {
    let warnings = RefCell::default();
    let source = TomlSource {
        origin: "defaults",
        text: "",
        is_record: false,
        warnings: &warnings,
        asked: None,
    };
    read(&mut Section {
        source,
        name: String::new(),
        shown: String::new(),
        table: None,
        known: Vec::new(),
        old: Vec::new(),
    })
}

/// A table of a scenario being read. Every requested key is known; the others are refused when the
/// table is done. Each error names file and line.
///
/// The readers return `None` for a key that is absent.
pub struct Section<'d, 't> {
    source: TomlSource<'t>,
    name: String,
    /// Its name in the reference, where a part of it may be any of some names.
    shown: String,
    table: Option<&'d DeTable<'t>>,
    known: Vec<String>,
    /// Old names of known keys that the table uses.
    old: Vec<&'static str>,
}

#[cfg_attr(
    not(all(feature = "field", feature = "genome")),
    allow(dead_code, reason = "readers of brains that this build leaves out")
)]
impl<'d, 't> Section<'d, 't> {
    /// Begins with the whole document.
    pub(crate) fn root(source: TomlSource<'t>, table: &'d DeTable<'t>) -> Self {
        Self {
            source,
            name: String::new(),
            shown: String::new(),
            table: Some(table),
            known: Vec::new(),
            old: Vec::new(),
        }
    }

    /// The folder of the run that wrote the document.
    pub fn run_folder(&self) -> Option<&'t Path> {
        Path::new(self.source.origin)
            .parent()
            .filter(|_| self.source.is_record)
    }

    /// The folder of the file that the document was read from.
    pub(crate) fn folder(&self) -> Option<&'t Path> {
        Path::new(self.source.origin)
            .parent()
            .filter(|_| Path::new(self.source.origin).is_file())
    }

    /// Names the keys of an open table.
    pub fn names(&self) -> Vec<(String, Range<usize>)> {
        self.table
            .into_iter()
            .flatten()
            .map(|(key, _)| (key.get_ref().to_string(), key.span()))
            .collect()
    }

    /// Reads a table; one that is absent has no keys.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn section<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Section<'d, 't>> {
        let key = key.into();
        let (name, shown) = (self.path(key.name), self.path_shown(&key));
        let table = match self.take(&key, || TABLE.to_owned()) {
            None => None,
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => return Err(self.wrong(key.name, value, TABLE)),
            },
        };
        Ok(Section {
            source: self.source,
            name,
            shown,
            table,
            known: Vec::new(),
            old: Vec::new(),
        })
    }

    /// Reads a list of tables; an absent one is empty.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn sections<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Vec<Section<'d, 't>>> {
        let key = key.into();
        let Some(value) = self.take(&key, || TABLES.to_owned()) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key.name, value, TABLES));
        };
        let section = |(index, item): (usize, &'d Spanned<DeValue<'t>>)| match item.get_ref() {
            DeValue::Table(table) => {
                let (name, shown) = (
                    format!("{}[{index}]", self.path(key.name)),
                    format!("[{}]", self.path_shown(&key)),
                );
                Ok(Section {
                    source: self.source,
                    name,
                    shown,
                    table: Some(table),
                    known: Vec::new(),
                    old: Vec::new(),
                })
            }
            _ => Err(self.wrong(key.name, item, TABLES)),
        };
        items.iter().enumerate().map(section).collect()
    }

    /// The line of a place in the text.
    pub fn line(&self, place: &Range<usize>) -> SourceLine {
        SourceLine(self.source.line(place))
    }

    /// Whether a key was given.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Rejects keys that have no effect here, with the reason.
    ///
    /// # Errors
    /// `Data` for the first such key, naming file and line.
    pub fn refuse(&self, keys: &[&str], why: &str) -> Result<()> {
        match self
            .names()
            .into_iter()
            .filter(|(name, _)| keys.contains(&name.as_str()))
            .min_by_key(|(_, place)| place.start)
        {
            None => Ok(()),
            Some((name, place)) => Err(self
                .source
                .error(&place, format!("\"{name}\" has no effect: {why}"))),
        }
    }

    /// Reads a string.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn string<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Located<&'d str>>> {
        self.text(&key.into(), || "a string".to_owned())
    }

    /// Reads a required string.
    ///
    /// # Errors
    /// `Data` for another type, and if it is absent, naming file and line.
    pub fn required<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Located<&'d str>> {
        let key = key.into().or("required");
        let missing = self.missing(key.name);
        self.text(&key, || "a string".to_owned())?.ok_or(missing)
    }

    /// An error about the table as a whole.
    pub fn fault(&self, message: impl std::fmt::Display) -> Error {
        Error::data(format!("{}: [{}] {message}", self.source.origin, self.name))
    }

    /// The error for a missing required key.
    pub fn missing(&self, key: &str) -> Error {
        Error::data(format!(
            "{}: [{}] needs the key \"{key}\"",
            self.source.origin, self.name
        ))
    }

    /// Reads one of a few names.
    ///
    /// # Errors
    /// `Data` for another type or another name, naming file and line.
    pub fn choice<'k, T: Copy>(
        &mut self,
        key: impl Into<Key<'k>>,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let key = key.into();
        let known = || {
            choices
                .iter()
                .map(|(name, _)| format!("\"{name}\""))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some(Located { mut value, place }) = self.text(&key, known)? else {
            return Ok(None);
        };
        let key = key.name;
        if let Some(new) = new_value(key, value) {
            self.source
                .warn(&place, &format!("{key} = {value:?} is now {new:?}"));
            value = new;
        }
        match choices.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let known = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>();
                Err(self.source.error(
                    &place,
                    format!(
                        "{key} {value:?} is unknown{}; known: {}",
                        suggestion(value, known.iter().copied()),
                        known.join(", ")
                    ),
                ))
            }
        }
    }

    /// Reads one of a few names; `default` if it is absent.
    ///
    /// # Errors
    /// As [`Section::choice`].
    pub fn choice_or<'k, T: Copy + PartialEq>(
        &mut self,
        key: impl Into<Key<'k>>,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T> {
        let name = choices
            .iter()
            .find(|(_, choice)| *choice == default)
            .map_or("", |(name, _)| *name);
        Ok(self
            .choice(key.into().or(format_args!("{name:?}")), choices)?
            .unwrap_or(default))
    }

    /// Reads a whole number of a range.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn whole<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let key = key.into();
        let Some(value) = self.take(&key, || whole_text(&range)) else {
            return Ok(None);
        };
        self.whole_number(key.name, value, &range).map(Some)
    }

    /// Reads a whole number of a range; `default` if it is absent.
    ///
    /// # Errors
    /// As [`Section::whole`].
    pub fn whole_or<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64> {
        Ok(self
            .whole(key.into().or(default), range)?
            .unwrap_or(default))
    }

    /// Reads the index of one of some names, given as the name or as the index; it is required.
    ///
    /// # Errors
    /// `Data` for another type or another name, and if it is absent, naming file and line.
    pub fn index_in<'k>(&mut self, key: impl Into<Key<'k>>, names: &[&str]) -> Result<usize> {
        let key = key.into().or("required");
        let value = self
            .take(&key, || "a name or its index".to_owned())
            .ok_or_else(|| self.missing(key.name))?;
        let key = key.name;
        let place = match value.get_ref() {
            DeValue::String(name) => names.iter().position(|known| known == name),
            DeValue::Integer(integer) => integer
                .as_str()
                .parse()
                .ok()
                .filter(|place| *place < names.len()),
            _ => None,
        };
        let known = || {
            names
                .iter()
                .enumerate()
                .map(|(place, name)| format!("{place} {name}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        place.ok_or_else(|| self.wrong(key, value, &format!("one of {}", known())))
    }

    /// Reads true or false.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn flag<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<bool>> {
        let key = key.into();
        let Some(value) = self.take(&key, || "true or false".to_owned()) else {
            return Ok(None);
        };
        value
            .get_ref()
            .as_bool()
            .map(Some)
            .ok_or_else(|| self.wrong(key.name, value, "true or false"))
    }

    /// Reads a list of whole numbers of a range, at least one.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn whole_list<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Vec<u64>>> {
        let key = key.into();
        let Some(value) = self.take(&key, || {
            format!(
                "a list of whole numbers from {} to {}",
                range.start(),
                range.end()
            )
        }) else {
            return Ok(None);
        };
        let key = key.name;
        match value.get_ref() {
            DeValue::Array(items) if !items.is_empty() => items
                .iter()
                .map(|item| self.whole_number(key, item, &range))
                .collect::<Result<_>>()
                .map(Some),
            _ => Err(self.wrong(key, value, "a list of whole numbers")),
        }
    }

    /// Reads a string or a whole number, 0 or above.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub(crate) fn text_or_whole<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
    ) -> Result<Option<toml::Value>> {
        let key = key.into();
        const NEEDED: &str = "a string or a whole number";
        let Some(value) = self.take(&key, || NEEDED.to_owned()) else {
            return Ok(None);
        };
        let read = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string().into()),
            DeValue::Integer(number) => number.as_str().parse::<u32>().ok().map(toml::Value::from),
            _ => None,
        };
        read.map(Some)
            .ok_or_else(|| self.wrong(key.name, value, NEEDED))
    }

    /// Reads a number, or a list of numbers; infinite ones are possible.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn numbers<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Vec<f64>>> {
        let key = key.into();
        const NEEDED: &str = "a number or a list of numbers";
        let Some(value) = self.take(&key, || NEEDED.to_owned()) else {
            return Ok(None);
        };
        let numbers = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(number_of).collect::<Option<Vec<_>>>(),
            _ => number_of(value).map(|number| vec![number]),
        };
        let numbers = numbers
            .filter(|numbers| !numbers.is_empty() && numbers.iter().all(|number| !number.is_nan()));
        numbers
            .map(Some)
            .ok_or_else(|| self.wrong(key.name, value, NEEDED))
    }

    /// Reads a list of lists of numbers.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn rows<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Vec<Vec<f64>>>> {
        let key = key.into();
        const NEEDED: &str = "a list of lists of numbers";
        let Some(value) = self.take(&key, || NEEDED.to_owned()) else {
            return Ok(None);
        };
        let rows = match value.get_ref() {
            DeValue::Array(rows) => rows
                .iter()
                .map(|row| match row.get_ref() {
                    DeValue::Array(items) => {
                        items.iter().map(number_of).collect::<Option<Vec<_>>>()
                    }
                    _ => None,
                })
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        rows.map(Some)
            .ok_or_else(|| self.wrong(key.name, value, NEEDED))
    }

    /// Reads a lower and an upper bound, or a list of such pairs; infinite bounds are possible.
    ///
    /// # Errors
    /// `Data` for another type, or a pair whose first bound is above the second, naming file and
    /// line.
    pub fn bounds<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Vec<[f64; 2]>>> {
        let key = key.into();
        const NEEDED: &str = "a lower and an upper bound, or a list of such pairs";
        let Some(value) = self.take(&key, || NEEDED.to_owned()) else {
            return Ok(None);
        };
        let pair = |value: &Spanned<DeValue<'t>>| match value.get_ref() {
            DeValue::Array(items) => match &items[..] {
                [low, high] => Some([number_of(low)?, number_of(high)?]),
                _ => None,
            },
            _ => None,
        };
        let pairs = match (pair(value), value.get_ref()) {
            (Some(pair), _) => Some(vec![pair]),
            (None, DeValue::Array(items)) if !items.is_empty() => {
                items.iter().map(pair).collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        let pairs = pairs.filter(|pairs| pairs.iter().all(|[low, high]| low <= high));
        pairs
            .map(Some)
            .ok_or_else(|| self.wrong(key.name, value, NEEDED))
    }

    /// Whether a key has a list.
    pub(crate) fn is_list(&self, key: &str) -> bool {
        self.table
            .and_then(|table| table.get(key))
            .is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// Reads a list of texts.
    ///
    /// # Errors
    /// `Data` for another type, naming file and line.
    pub fn texts<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Vec<String>>> {
        let key = key.into();
        let Some(value) = self.take(&key, || "a list of strings".to_owned()) else {
            return Ok(None);
        };
        let texts = match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        texts
            .map(Some)
            .ok_or_else(|| self.wrong(key.name, value, "a list of strings"))
    }

    /// Reads a number of a range.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn within<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>> {
        let needed = format!("a number from {} to {}", range.start(), range.end());
        self.number(key.into(), &needed, |number| range.contains(&number))
    }

    /// Reads a number of a range; `default` if it is absent.
    ///
    /// # Errors
    /// As [`Section::within`].
    pub fn within_or<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: RangeInclusive<f64>,
        default: f64,
    ) -> Result<f64> {
        Ok(self
            .within(key.into().or(default), range)?
            .unwrap_or(default))
    }

    /// Reads a finite number above 0.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn positive<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<f64>> {
        self.number(key.into(), "a number above 0", |number| number > 0.0)
    }

    /// Reads a number above 0, at most `high`.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn positive_up_to<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        high: f64,
    ) -> Result<Option<f64>> {
        self.number(
            key.into(),
            &format!("a number above 0, at most {high}"),
            |number| number > 0.0 && number <= high,
        )
    }

    /// Reads a finite number, 0 or above.
    ///
    /// # Errors
    /// `Data` for another type or a number out of range, naming file and line.
    pub fn non_negative<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<f64>> {
        self.number(key.into(), "a number, 0 or above", |number| number >= 0.0)
    }

    /// Rejects keys that were not requested; of several, the first in the text. Sub-tables that a
    /// reader opens are finished by it, the table of a body or brain by the crate.
    ///
    /// # Errors
    /// `Data` for such a key, naming file and line.
    pub fn finish(self) -> Result<()> {
        self.check_known()
    }

    /// The same before the reader is done: for one that waits for something next.
    ///
    /// # Errors
    /// As [`Section::finish`].
    pub fn check_known(&self) -> Result<()> {
        let unknown = self
            .names()
            .into_iter()
            .filter(|(name, _)| !self.known.contains(name) && !self.old.contains(&name.as_str()));
        match unknown.min_by_key(|(_, place)| place.start) {
            None => Ok(()),
            Some((name, place)) => {
                let is_table = self
                    .table
                    .and_then(|table| table.get(name.as_str()))
                    .is_some_and(|value| matches!(value.get_ref(), DeValue::Table(_)));
                let known = self.known.iter().map(String::as_str);
                let unknown = match (is_table, nearest(&name, known.clone())) {
                    (true, Some(near)) => format!(
                        "table [{}], perhaps [{}]",
                        self.path(&name),
                        self.path(near)
                    ),
                    (true, None) => format!("table [{}]", self.path(&name)),
                    (false, _) => format!("key {name:?}{}", suggestion(&name, known)),
                };
                Err(self.source.error(
                    &place,
                    format!("unknown {unknown}; known: {}", self.known.join(", ")),
                ))
            }
        }
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    fn path_shown(&self, key: &Key<'_>) -> String {
        if self.shown.is_empty() {
            key.shown().to_owned()
        } else {
            format!("{}.{}", self.shown, key.shown())
        }
    }

    fn text(
        &mut self,
        key: &Key<'_>,
        needed: impl FnOnce() -> String,
    ) -> Result<Option<Located<&'d str>>> {
        let Some(value) = self.take(key, needed) else {
            return Ok(None);
        };
        let string = value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.wrong(key.name, value, "a string"))?;
        Ok(Some(Located {
            value: string,
            place: value.span(),
        }))
    }

    fn take(
        &mut self,
        key: &Key<'_>,
        needed: impl FnOnce() -> String,
    ) -> Option<&'d Spanned<DeValue<'t>>> {
        if let Some(asked) = self.source.asked {
            asked.borrow_mut().push(key.row(&self.shown, needed()));
        }
        let key = key.name;
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.to_owned());
        }
        let table = self.table?;
        let given = table.get(key);
        let old =
            old_key(&self.name, key).filter(|old| given.is_none() && table.contains_key(*old));
        let Some(old) = old else { return given };
        let value = table.get(old)?;
        self.source
            .warn(&value.span(), &format!("key \"{old}\" is now \"{key}\""));
        self.old.push(old);
        Some(value)
    }

    fn number(
        &mut self,
        key: Key<'_>,
        needed: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>> {
        let Some(value) = self.take(&key, || needed.to_owned()) else {
            return Ok(None);
        };
        match number_of(value) {
            Some(number) if number.is_finite() && fits(number) => Ok(Some(number)),
            _ => Err(self.wrong(key.name, value, needed)),
        }
    }

    fn whole_number(
        &self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        range: &RangeInclusive<u64>,
    ) -> Result<u64> {
        let whole = match value.get_ref() {
            DeValue::Integer(integer) => {
                u64::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        whole
            .filter(|whole| range.contains(whole))
            .ok_or_else(|| self.wrong(key, value, &whole_text(range)))
    }

    fn wrong(&self, key: &str, value: &Spanned<DeValue<'t>>, needed: &str) -> Error {
        let given = self
            .source
            .text
            .get(value.span())
            .unwrap_or("something else")
            .lines()
            .next()
            .unwrap_or("");
        self.source
            .error(&value.span(), format!("{key} is {given}, needs {needed}"))
    }
}

/// A number in base 10.
fn number_of(value: &Spanned<DeValue<'_>>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

fn whole_text(range: &RangeInclusive<u64>) -> String {
    format!("a whole number from {} to {}", range.start(), range.end())
}
