//! An area's properties as given in a file, for both forms of files.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::area_id::AreaId;
use super::property::{self, Property};
use super::warnings::{Warnings, quoted};

/// Prefix of keys in flat files.
const FLAT_PREFIX: &str = "_____10c-";
/// The suffix letters of codes; files differ in which one a code has, so any is accepted.
const TYPE_SUFFIXES: [&str; 5] = ["-i", "-f", "-t", "-b", "-d"];
/// Maximum areas of a genome.
const MAX_AREAS: usize = 1 << 16;

/// One area as given in a file.
pub(super) struct Record<'a> {
    pub id: AreaId,
    entries: BTreeMap<Property, Entry<'a>>,
}

/// A value and its key in the file.
#[derive(Clone)]
struct Entry<'a> {
    key: String,
    value: &'a Value,
}

/// The areas of a blueprint in order of first occurrence in the file.
pub(super) fn records<'a>(
    blueprint: &'a Map<String, Value>,
    warnings: &mut Warnings,
) -> Result<Vec<Record<'a>>> {
    let is_flat = blueprint.keys().any(|key| key.starts_with(FLAT_PREFIX));
    let records = if is_flat {
        flat(blueprint, warnings)?
    } else {
        hierarchical(blueprint, warnings)?
    };
    match records.len() {
        0 => Err(Error::data("blueprint: it has no areas")),
        count if count > MAX_AREAS => Err(Error::data(format!(
            "blueprint: {count} areas; at most {MAX_AREAS}"
        ))),
        _ => Ok(records),
    }
}

fn flat<'a>(blueprint: &'a Map<String, Value>, warnings: &mut Warnings) -> Result<Vec<Record<'a>>> {
    let mut spelled = RecordIndex::default();
    for (key, value) in blueprint {
        let Some((area, code)) = key.strip_prefix(FLAT_PREFIX).and_then(split_flat) else {
            if value.is_object() {
                return Err(Error::data(format!(
                    "blueprint: key {}: an area of the hierarchical form among flat keys",
                    quoted(key)
                )));
            }
            warnings.add(format!("blueprint: key {} is unknown", quoted(key)));
            continue;
        };
        let record = spelled.record(area)?;
        match property::from_code(code) {
            Some(Property::Unsupported) => warn_unsupported(key, value, warnings),
            Some(property) => record.insert(property, key.clone(), value)?,
            None => warnings.add(format!(
                "area {}: key {} is unknown",
                record.id,
                quoted(key)
            )),
        }
    }
    Ok(spelled.into_records(warnings))
}

/// Records by the spelling that the file uses; another spelling of the same id is rejected.
#[derive(Default)]
struct RecordIndex<'a> {
    records: Vec<Record<'a>>,
    by_spelling: BTreeMap<&'a str, usize>,
    by_id: BTreeMap<AreaId, &'a str>,
}

impl<'a> RecordIndex<'a> {
    fn record(&mut self, spelling: &'a str) -> Result<&mut Record<'a>> {
        let index = match self.by_spelling.get(spelling) {
            Some(index) => *index,
            None => {
                let id = spelling
                    .parse::<AreaId>()
                    .map_err(|error| error.at("blueprint"))?;
                if let Some(other) = self.by_id.insert(id, spelling) {
                    return Err(Error::data(format!(
                        "blueprint: {other:?} and {spelling:?} are both area {id}"
                    )));
                }
                self.records.push(Record {
                    id,
                    entries: BTreeMap::new(),
                });
                self.by_spelling.insert(spelling, self.records.len() - 1);
                self.records.len() - 1
            }
        };
        Ok(&mut self.records[index])
    }
}

impl<'a> RecordIndex<'a> {
    /// The records, with a warning for each id of seven characters: the format has none, and the
    /// newer loader leaves such an area out.
    fn into_records(self, warnings: &mut Warnings) -> Vec<Record<'a>> {
        for (spelling, index) in &self.by_spelling {
            if spelling.len() == 7 {
                warnings.add(format!(
                    "area {}: the id {} has seven characters, not six or eight; one _ is added",
                    self.records[*index].id,
                    quoted(spelling)
                ));
            }
        }
        self.records
    }
}

/// `{area}-{cx|nx}-{code}-{ending}` as area and code.
fn split_flat(rest: &str) -> Option<(&str, &str)> {
    let at = rest.rfind("-cx-").or_else(|| rest.rfind("-nx-"))?;
    let code = TYPE_SUFFIXES
        .iter()
        .find_map(|ending| rest[at + 4..].strip_suffix(ending))?;
    Some((&rest[..at], code))
}

fn hierarchical<'a>(
    blueprint: &'a Map<String, Value>,
    warnings: &mut Warnings,
) -> Result<Vec<Record<'a>>> {
    let mut spelled = RecordIndex::default();
    for (area, value) in blueprint {
        let properties = value.as_object().ok_or_else(|| {
            Error::data(format!(
                "blueprint: area {}: an object needed",
                quoted(area)
            ))
        })?;
        let record = spelled.record(area)?;
        for (key, value) in properties {
            record.insert_key(key, value, warnings)?;
        }
    }
    Ok(spelled.into_records(warnings))
}

/// Whether a value states nothing: null, or a text, array or object without content.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Warns about a key that has an effect in the newest reference and none here, unless its value
/// disables it.
pub(super) fn warn_unsupported(key: &str, value: &Value, warnings: &mut Warnings) {
    let is_off = is_empty(value) || *value == Value::Bool(false) || value.as_f64() == Some(0.0);
    if !is_off {
        warnings.add(format!(
            "key {} is known, but has no effect here",
            quoted(key)
        ));
    }
}

impl<'a> Record<'a> {
    fn insert_key(&mut self, key: &str, value: &'a Value, warnings: &mut Warnings) -> Result<()> {
        if let Some(properties) = property::from_triple(key) {
            // A single number for a threshold's increment has no meaning along three axes, unless
            // it is 0.
            if properties[0] == Property::ThresholdIncrementX && value.as_f64() == Some(0.0) {
                return Ok(());
            }
            if value.is_null() && properties[0] == Property::PositionX {
                return Ok(());
            }
            let values =
                triple(value).ok_or_else(|| self.wrong(key, "three numbers needed", value))?;
            for (axis, (property, value)) in properties.into_iter().zip(values).enumerate() {
                self.insert(property, format!("{key}[{axis}]"), value)?;
            }
            return Ok(());
        }
        match property::from_key(key) {
            Some(Property::Unsupported) => warn_unsupported(key, value, warnings),
            Some(property) => self.insert(property, key.to_owned(), value)?,
            None => warnings.add(format!("area {}: key {} is unknown", self.id, quoted(key))),
        }
        Ok(())
    }

    fn insert(&mut self, property: Property, key: String, value: &'a Value) -> Result<()> {
        if property == Property::Shown || value.is_null() && property.may_be_null() {
            return Ok(());
        }
        match self.entries.get(&property) {
            Some(other) if !is_same(other.value, value) => Err(Error::data(format!(
                "area {}: {} and {} differ",
                self.id,
                quoted(&other.key),
                quoted(&key)
            ))),
            Some(_) => Ok(()),
            None => {
                self.entries.insert(property, Entry { key, value });
                Ok(())
            }
        }
    }

    /// The key of a property in the file.
    pub fn key(&self, property: Property) -> Option<&str> {
        self.entries.get(&property).map(|entry| entry.key.as_str())
    }

    /// The value of a property as given in the file.
    pub fn value(&self, property: Property) -> Option<&'a Value> {
        self.entries.get(&property).map(|entry| entry.value)
    }

    /// An error that names area and key.
    pub fn error(&self, property: Property, what: &str) -> Error {
        Error::data(format!(
            "area {}: {}: {what}",
            self.id,
            self.key(property).unwrap_or("a key")
        ))
    }

    fn wrong(&self, key: &str, needed: &str, value: &Value) -> Error {
        Error::data(format!(
            "area {}: {key}: {} given; {needed}",
            self.id,
            kind(value)
        ))
    }

    /// A number within a range.
    pub fn number(&self, property: Property, least: f64, most: f64) -> Result<Option<f64>> {
        let Some(entry) = self.entries.get(&property) else {
            return Ok(None);
        };
        let number = entry.value.as_f64().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| self.wrong(&entry.key, "a number needed", entry.value))?;
        match (least..=most).contains(&number) {
            true => Ok(Some(number)),
            false => Err(self.error(property, &format!("{number} is not from {least} to {most}"))),
        }
    }

    /// An integer within a range; `1.0` is one too.
    pub fn whole(&self, property: Property, least: i64, most: i64) -> Result<Option<i64>> {
        let number = self.number(property, least as f64, most as f64)?;
        match number {
            Some(number) if number.fract() != 0.0 => {
                Err(self.error(property, &format!("{number} is not a whole number")))
            }
            number => Ok(number.map(|number| number as i64)),
        }
    }

    /// A text.
    pub fn text(&self, property: Property) -> Result<Option<&'a str>> {
        let Some(entry) = self.entries.get(&property) else {
            return Ok(None);
        };
        entry
            .value
            .as_str()
            .map(Some)
            .ok_or_else(|| self.wrong(&entry.key, "a text needed", entry.value))
    }

    /// `true` or `false`.
    pub fn flag(&self, property: Property) -> Result<Option<bool>> {
        let Some(entry) = self.entries.get(&property) else {
            return Ok(None);
        };
        entry
            .value
            .as_bool()
            .map(Some)
            .ok_or_else(|| self.wrong(&entry.key, "true or false needed", entry.value))
    }
}

/// Whether two values are equal; 1 and 1.0 are.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    left == right
        || matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right)) if left == right)
}

/// The components of a triple.
fn triple(value: &Value) -> Option<[&Value; 3]> {
    match value {
        Value::Array(values) => values.iter().collect::<Vec<_>>().try_into().ok(),
        Value::Object(values) if values.len() == 3 => {
            let named = |names: [&str; 3]| {
                Some([
                    values.get(names[0])?,
                    values.get(names[1])?,
                    values.get(names[2])?,
                ])
            };
            named(["x", "y", "z"]).or_else(|| named(["width", "height", "depth"]))
        }
        _ => None,
    }
}

/// The name of a value's type for messages.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("an array of {}", values.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
