//! Which version of the format a file has.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::record::kind;
use super::warnings::quoted;

/// The key of the number that the newer loader goes by.
pub(super) const SCHEMA_KEY: &str = "genome_schema_version";
/// Numbers that are read: the format has no schema 1.
const SCHEMAS: RangeInclusive<u64> = 2..=4;
/// Texts that are read if there is no number: the newer loader takes them as schemas 2, 2 and 3.
const VERSIONS: [&str; 5] = ["2", "2.0", "2.1", "3", "3.0"];

/// The version that counts: the number of the schema, whatever the text of `version`, or the text
/// if there is no number.
///
/// # Errors
/// `Data` if both are missing or one is of the wrong type, `Unsupported` for another version.
pub(super) fn version(sections: &Map<String, Value>) -> Result<String> {
    if let Some(schema) = schema(sections) {
        let number = schema.as_f64().filter(|number| number.fract() == 0.0);
        let number = number.ok_or_else(|| {
            Error::data(format!(
                "{SCHEMA_KEY}: {} given; a whole number needed",
                kind(schema)
            ))
        })?;
        return match SCHEMAS.contains(&(number as u64)) {
            true => Ok(number.to_string()),
            false => Err(Error::unsupported(format!(
                "{SCHEMA_KEY} {} of the format; {} to {} are read",
                kind(schema),
                SCHEMAS.start(),
                SCHEMAS.end()
            ))),
        };
    }
    let version = match sections.get("version") {
        Some(Value::String(version)) => version.clone(),
        Some(Value::Number(version)) => version.to_string(),
        Some(Value::Null) | None => return Err(Error::data("not a genome: version is missing")),
        Some(other) => {
            return Err(Error::data(format!(
                "version: {} given; a text needed",
                kind(other)
            )));
        }
    };
    match VERSIONS.contains(&version.as_str()) {
        true => Ok(version),
        false => Err(Error::unsupported(format!(
            "version {} of the format; 2.0, 2.1 and 3.0 are read, or a {SCHEMA_KEY} from {} to {}",
            quoted(&version),
            SCHEMAS.start(),
            SCHEMAS.end()
        ))),
    }
}

/// The number of the schema, if the file has one.
pub(super) fn schema(sections: &Map<String, Value>) -> Option<&Value> {
    sections.get(SCHEMA_KEY).filter(|schema| !schema.is_null())
}

/// Refuses the examples that are shipped with the newer loader: a list of areas by name, under
/// `cortical_areas`, with other keys, which that loader does not read as areas either.
///
/// # Errors
/// `Unsupported` for such a file.
pub(super) fn refuse_example(sections: &Map<String, Value>) -> Result<()> {
    const KEY: &str = "cortical_areas";
    let blueprint = sections.get("blueprint").and_then(Value::as_object);
    let is_example = |fields: &Map<String, Value>| fields.get(KEY).is_some_and(Value::is_object);
    let place = match blueprint {
        Some(areas) if is_example(areas) => "blueprint: ",
        None if is_example(sections) => "",
        _ => return Ok(()),
    };
    Err(Error::unsupported(format!(
        "{place}{KEY}: a list of areas by name, as in FEAGI's example_fp32_genome.json, is not a blueprint; the areas of a genome are the keys of blueprint, by id"
    )))
}
