//! Normalisers that are outside of the network: statistics of its training data.

use std::path::Path;

use serde_json::Value;
use tectum::{Error, Result};

use super::text;
use crate::document::{Key, Section};

/// A normaliser: (x - center) / divisor of each number, or its inverse for an action.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Normalizer {
    /// How the statistics are used.
    pub formula: Formula,
    /// Mean, or minimum.
    pub low: Vec<f64>,
    /// Standard deviation, variance, or maximum.
    pub high: Vec<f64>,
    /// Added to the standard deviation, or to the variance before its root is taken.
    pub epsilon: f64,
    /// Bounds after it.
    pub clip: Option<f64>,
}

/// How statistics are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Formula {
    /// (x - mean) / (std + epsilon)
    #[default]
    Std,
    /// (x - mean) / sqrt(var + epsilon)
    Var,
    /// 2 (x - min) / (max - min + epsilon) - 1
    Range,
}

impl Formula {
    pub(super) const NAMES: [(&'static str, Self); 3] = [
        ("std", Self::Std),
        ("var", Self::Var),
        ("range", Self::Range),
    ];

    /// The keys of the two statistics.
    pub(super) fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Std => ["mean", "std"],
            Self::Var => ["mean", "var"],
            Self::Range => ["min", "max"],
        }
    }

    /// The name in contracts.
    pub fn name(self) -> &'static str {
        text::name_of(&Self::NAMES, self)
    }
}

impl Normalizer {
    pub(super) fn read(section: &mut Section<'_, '_>, key: &'static str) -> Result<Option<Self>> {
        let is_stated = section.has(key);
        let mut table = section.section(Key::new(key, "A normaliser outside of the network."))?;
        let formula = table.choice_or(
            Key::new("formula", "how the statistics are used"),
            &Formula::NAMES,
            Formula::Std,
        )?;
        let file = text::name(
            &mut table,
            "file",
            "a JSON or NPZ file with the statistics, next to the contract",
        )?;
        let mut statistics = Vec::new();
        for (key, about) in [
            ("mean", "means"),
            ("std", "standard deviations"),
            ("var", "variances"),
            ("min", "minima"),
            ("max", "maxima"),
        ] {
            let is_needed = formula.keys().contains(&key);
            if !is_needed && table.has(key) {
                return Err(table.fault(format_args!(
                    "{key} is not used by the formula {:?}",
                    formula.name()
                )));
            }
            let values = match &file {
                None => table.numbers(Key::new(key, about))?,
                Some(file) if is_needed => {
                    let place = text::name(&mut table, key, "the name of the array in the file")?
                        .unwrap_or_else(|| key.to_owned());
                    let folder = table.folder();
                    let path = folder.map_or_else(|| file.into(), |folder| folder.join(file));
                    Some(array_of(&path, &place).map_err(|error| table.fault(error))?)
                }
                Some(_) => None,
            };
            if is_needed && is_stated {
                statistics.push(values.ok_or_else(|| table.missing(key))?);
            }
        }
        let epsilon = table
            .non_negative(
                Key::new(
                    "epsilon",
                    "added to the divisor, or to the variance before its root is taken",
                )
                .or(0),
            )?
            .unwrap_or(0.0);
        let clip = table.positive(Key::new("clip", "bounds ±clip after it"))?;
        if !is_stated {
            table.finish()?;
            return Ok(None);
        }
        let (high, low) = (
            statistics.pop().unwrap_or_default(),
            statistics.pop().unwrap_or_default(),
        );
        let normalizer = Self {
            formula,
            low,
            high,
            epsilon,
            clip,
        };
        normalizer.parts().map_err(|error| table.fault(error))?;
        table.finish()?;
        Ok(Some(normalizer))
    }

    /// Center and divisor of each number: the normalised number is (x - center) / divisor.
    ///
    /// # Errors
    /// `Invalid` for lists of different lengths, and for a divisor that is not above 0.
    pub fn parts(&self) -> Result<Vec<(f64, f64)>> {
        let [low_key, high_key] = self.formula.keys();
        if self.low.len() != self.high.len() {
            return Err(Error::invalid(format!(
                "{low_key} has {} numbers and {high_key} {}",
                self.low.len(),
                self.high.len()
            )));
        }
        let part = |(index, (low, high)): (usize, (&f64, &f64))| {
            let (center, divisor) = match self.formula {
                Formula::Std => (*low, high + self.epsilon),
                Formula::Var => (*low, (high + self.epsilon).sqrt()),
                Formula::Range => {
                    let half = 0.5 * (high - low + self.epsilon);
                    (low + half, half)
                }
            };
            if divisor > 0.0 && divisor.is_finite() && center.is_finite() {
                return Ok((center, divisor));
            }
            Err(Error::invalid(format!(
                "number {index} has {low_key} {low} and {high_key} {high}: its divisor is {divisor}"
            )))
        };
        self.low
            .iter()
            .zip(&self.high)
            .enumerate()
            .map(part)
            .collect()
    }
}

/// The numbers of an array of a file: of NPZ by its name, of JSON by its path of keys, with dots.
fn array_of(path: &Path, place: &str) -> Result<Vec<f64>> {
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("npz") => array_of_npz(path, place),
        _ => array_of_json(path, place),
    }
}

fn array_of_npz(path: &Path, name: &str) -> Result<Vec<f64>> {
    let arrays = tectum_onnx::read_npz(path)?;
    let Some((_, array)) = arrays.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Error::data(format!(
            "{} has no array {name:?}; it has {}",
            path.display(),
            known.join(", ")
        )));
    };
    let numbers = array.to_f64();
    if numbers.is_empty() {
        return Err(Error::data(format!("{}: {name} is empty", path.display())));
    }
    Ok(numbers)
}

fn array_of_json(path: &Path, place: &str) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
    let root: Value = serde_json::from_str(&text).map_err(|error| {
        Error::data(format!("{} is no JSON: {error}", path.display())).with_source(error)
    })?;
    let mut value = &root;
    for key in place.split('.') {
        value = value.get(key).ok_or_else(|| {
            let known: Vec<&str> = value
                .as_object()
                .map(|keys| keys.keys().map(String::as_str).collect())
                .unwrap_or_default();
            Error::data(format!(
                "{} has no {place}: no key {key:?} among {}",
                path.display(),
                known.join(", ")
            ))
        })?;
    }
    let mut numbers = Vec::new();
    if flatten(value, &mut numbers) && !numbers.is_empty() {
        return Ok(numbers);
    }
    Err(Error::data(format!(
        "{}: {place} is no list of numbers",
        path.display()
    )))
}

/// Appends the numbers of nested lists; false for anything else.
fn flatten(value: &Value, numbers: &mut Vec<f64>) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| flatten(item, numbers)),
        Value::Number(number) => {
            numbers.extend(number.as_f64());
            true
        }
        _ => false,
    }
}
