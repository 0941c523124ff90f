//! The units of a file: newer genomes give leak and excitability as fractions, older ones as
//! amounts and percents.
//!
//! Each of three quantities is judged separately, since files mix them. `docs/genomes.md` gives the
//! reasons for each rule.

use std::str::FromStr;

use serde::Serialize;
use tectum::{Error, Result};

use super::area_id::AreaId;
use super::property::Property;
use super::record::Record;
use super::warnings::quoted;

/// The units that are assumed for the numbers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitPolicy {
    /// A quantity is legacy if any of its values is invalid in the newer unit.
    #[default]
    Detect,
    /// Leak and excitability are fractions, the current is an integer up to 255; other values are
    /// rejected.
    Fraction,
    /// Leak is an amount of potential, excitability a percentage, the current any amount.
    Legacy,
}

/// Which units were found, why, and what each converted value became.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitReport {
    /// The caller's choice.
    pub policy: UnitPolicy,
    /// `leak_coefficient` and `leak_variability`.
    pub leak: QuantityReport,
    /// `neuron_excitability`.
    pub excitability: QuantityReport,
    /// `postsynaptic_current`.
    pub current: QuantityReport,
}

/// The unit of one quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantityReport {
    /// Whether values are in the legacy unit.
    pub legacy: bool,
    /// The reason for this unit.
    pub evidence: String,
    /// Values that changed.
    pub converted: Vec<Conversion>,
}

/// A value that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conversion {
    /// The area.
    pub area: AreaId,
    /// The key in the file.
    pub key: String,
    /// The value in the file.
    pub given: f64,
    /// The value that is used.
    pub taken: f64,
}

/// Maximum of all three quantities.
pub(super) const MAX_QUANTITY: f64 = 1e6;

/// Areas that a sentence about converted values names.
const MAX_AREAS: usize = 4;

impl QuantityReport {
    /// Given and used value of each conversion, with the areas that have it, in order of first
    /// occurrence.
    pub fn changes(&self) -> Vec<(f64, f64, Vec<AreaId>)> {
        let mut changes: Vec<(f64, f64, Vec<AreaId>)> = Vec::new();
        for Conversion {
            area, given, taken, ..
        } in &self.converted
        {
            match changes
                .iter_mut()
                .find(|(from, to, _)| (from, to) == (given, taken))
            {
                Some((.., areas)) => areas.push(*area),
                None => changes.push((*given, *taken, vec![*area])),
            }
        }
        changes
    }
}

impl UnitReport {
    /// The three quantities with their names, and the legacy unit of each.
    pub fn quantities(&self) -> [(&'static str, &'static str, &QuantityReport); 3] {
        [
            ("leak", "an amount of potential", &self.leak),
            ("excitability", "percent", &self.excitability),
            ("current", "any amount", &self.current),
        ]
    }

    /// A sentence for each quantity of which values were converted: their number, the reason, and
    /// at most `max_changes` of the changes.
    pub fn notes(&self, max_changes: usize) -> Vec<String> {
        let change = |(given, taken, areas): &(f64, f64, Vec<AreaId>)| {
            let names: Vec<String> = areas
                .iter()
                .take(MAX_AREAS)
                .map(AreaId::to_string)
                .collect();
            let more = if areas.len() > MAX_AREAS {
                format!(" and {} more", areas.len() - MAX_AREAS)
            } else {
                String::new()
            };
            format!("{given} became {taken} ({}{more})", names.join(", "))
        };
        let note = |(name, unit, report): (&str, &str, &QuantityReport)| {
            let changes = report.changes();
            let shown: Vec<String> = changes.iter().take(max_changes).map(change).collect();
            let more = match changes.len().saturating_sub(max_changes) {
                0 => String::new(),
                1 => ", and 1 other change".to_owned(),
                others => format!(", and {others} other changes"),
            };
            let count = match report.converted.len() {
                1 => "1 value was converted".to_owned(),
                count => format!("{count} values were converted"),
            };
            format!(
                "units: {name} is legacy, {unit} ({}); {count}: {}{more}",
                report.evidence,
                shown.join(", ")
            )
        };
        self.quantities()
            .into_iter()
            .filter(|(.., report)| !report.converted.is_empty())
            .map(note)
            .collect()
    }
}

impl FromStr for UnitPolicy {
    type Err = Error;

    /// # Errors
    /// `Invalid` for any word except detect, fraction and legacy.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "detect" => Ok(UnitPolicy::Detect),
            "fraction" => Ok(UnitPolicy::Fraction),
            "legacy" => Ok(UnitPolicy::Legacy),
            _ => Err(Error::invalid(format!(
                "units {text:?}: detect, fraction or legacy needed"
            ))),
        }
    }
}

impl UnitReport {
    /// Determines the units of a file.
    pub(super) fn new(policy: UnitPolicy, records: &[Record<'_>]) -> Result<Self> {
        Ok(Self {
            policy,
            leak: QuantityReport::new(
                policy,
                records,
                &[Property::Leak, Property::LeakVariability],
                |leak| leak > 1.0,
                "exceeds 1",
            )?,
            excitability: QuantityReport::new(
                policy,
                records,
                &[Property::Excitability],
                |value| value > 1.0,
                "exceeds 1",
            )?,
            current: QuantityReport::new(
                policy,
                records,
                &[Property::Current],
                |current| current > 255.0 || current.fract() != 0.0,
                "exceeds 255 or has a fraction",
            )?,
        })
    }

    /// Leak (or its variability) as a fraction. The legacy amount `k` is subtracted from a
    /// potential in a burst, down to 0. At the threshold `t` that is the fraction `k / t`; for
    /// `k ≥ t` no potential below the threshold remains, which is the fraction 1.
    pub(super) fn leak(
        &mut self,
        record: &Record<'_>,
        property: Property,
        threshold: f64,
    ) -> Result<f32> {
        let convert = |amount: f64| {
            if amount >= threshold {
                f64::from(amount > 0.0)
            } else {
                amount / threshold
            }
        };
        let leak = self
            .leak
            .take(record, property, [1.0, MAX_QUANTITY], convert)?;
        Ok(leak.unwrap_or(0.0) as f32)
    }

    /// Excitability as a fraction; if it is missing, a neuron always fires.
    pub(super) fn excitability(&mut self, record: &Record<'_>) -> Result<f32> {
        let excitability =
            self.excitability
                .take(record, Property::Excitability, [1.0, 100.0], |percent| {
                    percent / 100.0
                })?;
        Ok(excitability.unwrap_or(1.0) as f32)
    }

    /// The current as an integer up to 255. Legacy values are truncated and clamped to 255, as in
    /// the reference.
    pub(super) fn current(&mut self, record: &Record<'_>) -> Result<u8> {
        let current = self.current.take(
            record,
            Property::Current,
            [255.0, MAX_QUANTITY],
            |current| current.trunc().min(255.0),
        )?;
        match current.unwrap_or(1.0) {
            current if current.fract() == 0.0 => Ok(current as u8),
            current => Err(record.error(
                Property::Current,
                &format!("{current} is not a whole number{HINT}"),
            )),
        }
    }
}

/// Hint for a value that only the legacy unit allows.
const HINT: &str = "; if the file is of the legacy unit, say so (units legacy)";

impl QuantityReport {
    fn new(
        policy: UnitPolicy,
        records: &[Record<'_>],
        properties: &[Property],
        is_legacy: fn(f64) -> bool,
        how: &str,
    ) -> Result<Self> {
        let (legacy, evidence) = match policy {
            UnitPolicy::Fraction => (false, "as requested".to_owned()),
            UnitPolicy::Legacy => (true, "as requested".to_owned()),
            UnitPolicy::Detect => match witness(records, properties, is_legacy)? {
                Some((record, property, value)) => (
                    true,
                    format!(
                        "area {}: {}: {value} {how}",
                        record.id,
                        record.key(property).map(quoted).unwrap_or_default()
                    ),
                ),
                None => (false, format!("no value {how}")),
            },
        };
        Ok(Self {
            legacy,
            evidence,
            converted: Vec::new(),
        })
    }

    /// The value of a property in the engine's unit; `most` is the maximum in the newer and in the
    /// legacy unit.
    fn take(
        &mut self,
        record: &Record<'_>,
        property: Property,
        most: [f64; 2],
        convert: impl Fn(f64) -> f64,
    ) -> Result<Option<f64>> {
        let Some(given) = record.number(property, 0.0, most[1])? else {
            return Ok(None);
        };
        if !self.legacy {
            return match given <= most[0] {
                true => Ok(Some(given)),
                false => Err(record.error(
                    property,
                    &format!("{given} is not from 0 to {}{HINT}", most[0]),
                )),
            };
        }
        let taken = convert(given);
        if taken != given {
            let key = record.key(property).unwrap_or_default().to_owned();
            self.converted.push(Conversion {
                area: record.id,
                key,
                given,
                taken,
            });
        }
        Ok(Some(taken))
    }
}

/// The first value that only the legacy unit allows.
fn witness<'r, 'a>(
    records: &'r [Record<'a>],
    properties: &[Property],
    is_legacy: fn(f64) -> bool,
) -> Result<Option<(&'r Record<'a>, Property, f64)>> {
    for record in records {
        for property in properties {
            if let Some(value) = record
                .number(*property, 0.0, MAX_QUANTITY)?
                .filter(|value| is_legacy(*value))
            {
                return Ok(Some((record, *property, value)));
            }
        }
    }
    Ok(None)
}
