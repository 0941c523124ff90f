//! Brain regions: groups of areas for people. They have no effect on a run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::area_id::AreaId;
use super::record::kind;
use super::warnings::{Warnings, quoted};

/// A named group of areas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    /// The id in the file.
    pub id: String,
    /// The display name.
    pub title: String,
    /// The id of the parent region.
    pub parent: Option<String>,
    /// Indices of its areas.
    pub areas: Vec<usize>,
}

/// Reads the section `brain_regions`. Areas that the genome does not have are left out with a
/// warning.
pub(super) fn regions(
    section: Option<&Value>,
    indices: &BTreeMap<AreaId, usize>,
    warnings: &mut Warnings,
) -> Result<Vec<Region>> {
    match section {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(regions)) => regions
            .iter()
            .map(|(id, value)| region(id, value, indices, warnings))
            .collect(),
        Some(other) => Err(Error::data(format!(
            "brain_regions: {} given; an object needed",
            kind(other)
        ))),
    }
}

fn region(
    id: &str,
    value: &Value,
    indices: &BTreeMap<AreaId, usize>,
    warnings: &mut Warnings,
) -> Result<Region> {
    let place = || format!("brain_regions: {}", quoted(id));
    let fields = value.as_object().ok_or_else(|| {
        Error::data(format!(
            "{}: {} given; an object needed",
            place(),
            kind(value)
        ))
    })?;
    let text = |key: &str| text(fields, key).map_err(|error| error.at(place()));
    let title = text("title")?.or(text("name")?).unwrap_or_default();
    let parent = text("parent_region_id")?;
    let mut members = Vec::new();
    for spelling in list(fields).map_err(|error| error.at(place()))? {
        let found = spelling
            .as_str()
            .and_then(|text| text.parse::<AreaId>().ok())
            .and_then(|id| indices.get(&id));
        match found {
            Some(area) => members.push(*area),
            None => warnings.add(format!(
                "{}: {} is no area of the genome",
                place(),
                kind(spelling)
            )),
        }
    }
    Ok(Region {
        id: id.to_owned(),
        title,
        parent,
        areas: members,
    })
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(Error::data(format!(
            "{key}: {} given; a text needed",
            kind(other)
        ))),
    }
}

fn list(fields: &Map<String, Value>) -> Result<&[Value]> {
    match fields.get("areas").or_else(|| fields.get("cortical_areas")) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(areas)) => Ok(areas),
        Some(other) => Err(Error::data(format!(
            "areas: {} given; an array needed",
            kind(other)
        ))),
    }
}
