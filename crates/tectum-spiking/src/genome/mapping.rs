//! Mappings: which areas have synapses to which, and by which rules.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::area::Area;
use super::area_id::AreaId;
use super::morphology::{Morphologies, Morphology, PlasticMorphology};
use super::property::Property;
use super::record::{Record, is_empty, kind};
use super::warnings::{Warnings, quoted};

/// One rule by which the neurons of one area reach those of another (or their own).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mapping {
    /// Index of the source area.
    pub source: usize,
    /// Index of the destination area.
    pub destination: usize,
    /// The name of the morphology in the file.
    pub morphology_name: String,
    /// Which target voxels a source voxel reaches, after scaling.
    #[serde(skip)]
    pub morphology: Morphology,
    /// The factor of vectors along each axis.
    pub scalar: [f64; 3],
    /// Magnitude is the weight, sign the type: −255 to 255.
    pub multiplier: i32,
    /// Probability in percent that a possible synapse exists, 0 to 100: the mapping's, otherwise
    /// its destination's.
    pub attractivity: f32,
    /// Whether its synapses learn.
    pub plastic: bool,
    /// How they learn.
    pub plasticity: Plasticity,
    /// Bursts from firing to arrival, 1 by default.
    pub delay_bursts: u8,
}

/// How the synapses of a mapping learn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plasticity {
    /// Step of the weight, before the multipliers.
    pub constant: f32,
    /// Multiplier of a gain.
    pub ltp: f32,
    /// Multiplier of a loss.
    pub ltd: f32,
    /// The window of coincidence in bursts; 0 for the physiology's `plasticity_queue_depth`.
    pub window: u16,
}

impl Mapping {
    /// The magnitude of the multiplier.
    pub fn weight(&self) -> u8 {
        u8::try_from(self.multiplier.unsigned_abs()).unwrap_or(u8::MAX)
    }

    /// Whether its synapses lower the target's potential.
    pub fn is_inhibitory(&self) -> bool {
        self.multiplier < 0
    }

    /// Whether it has no synapses at first, and they grow between neurons that fire together.
    pub fn grows(&self) -> bool {
        matches!(
            self.morphology,
            Morphology::Plastic(PlasticMorphology::Associative)
        )
    }
}

impl Plasticity {
    /// The gain and the loss as the file states them, before they become whole numbers from 0 to 255.
    pub fn steps(&self) -> [f32; 2] {
        [self.constant * self.ltp, self.constant * self.ltd]
    }
}

/// Maximum mappings of a genome.
const MAX_MAPPINGS: usize = 1 << 16;
/// Maximum scalar.
const MAX_SCALAR: f64 = 1e6;

/// Context for reading mappings.
pub(super) struct Reader<'a> {
    pub areas: &'a [Area],
    pub indices: &'a BTreeMap<AreaId, usize>,
    pub morphologies: Morphologies,
    /// Whether a function without a definition is an error.
    pub strict: bool,
}

impl Reader<'_> {
    /// Reads the mappings of all areas, in the order of areas and then of the file.
    pub fn mappings(
        mut self,
        records: &[Record<'_>],
        warnings: &mut Warnings,
    ) -> Result<Vec<Mapping>> {
        let mut mappings = Vec::new();
        for (source, record) in records.iter().enumerate() {
            let Some(value) = record.value(Property::Destinations) else {
                continue;
            };
            let destinations = match value {
                Value::Object(destinations) => destinations,
                Value::Null => continue,
                other => {
                    return Err(record.error(
                        Property::Destinations,
                        &format!("{} given; an object needed", kind(other)),
                    ));
                }
            };
            for (destination, rules) in destinations {
                self.rules(source, destination, rules, &mut mappings, warnings)
                    .map_err(|error| {
                        error.at(format!(
                            "area {}: {}",
                            record.id,
                            record.key(Property::Destinations).unwrap_or_default()
                        ))
                    })?;
            }
        }
        Ok(mappings)
    }

    /// The mappings of one destination.
    fn rules(
        &mut self,
        source: usize,
        spelling: &str,
        rules: &Value,
        mappings: &mut Vec<Mapping>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let id = spelling.parse::<AreaId>()?;
        let destination = *self.indices.get(&id).ok_or_else(|| {
            Error::data(format!(
                "destination {} is no area of the genome",
                quoted(spelling)
            ))
        })?;
        let list = match rules {
            Value::Array(rules) => rules,
            Value::Null => return Ok(()),
            other => {
                return Err(Error::data(format!(
                    "destination {}: {} given; an array of rules needed",
                    quoted(spelling),
                    kind(other)
                )));
            }
        };
        for (index, rule) in list.iter().enumerate() {
            let place = || format!("destination {}: rule {index}", quoted(spelling));
            let rule = Rule::new(rule).map_err(|error| error.at(place()))?;
            let mapping = self
                .mapping(source, destination, &rule)
                .map_err(|error| error.at(place()))?;
            for key in rule.unknown() {
                warnings.add(format!(
                    "area {}: {}: key {} is unknown",
                    self.areas[source].id,
                    place(),
                    quoted(key)
                ));
            }
            // Of a mapping that learns they are refused.
            if rule.is_stated(Field::Modulators) {
                warnings.add(format!(
                    "area {}: {}: key {} is known, but has no effect here",
                    self.areas[source].id,
                    place(),
                    quoted(FIELDS[Field::Modulators as usize])
                ));
            }
            if mapping.scalar != [1.0; 3] && !self.morphologies.scales(&mapping.morphology_name) {
                warnings.add(format!(
                    "area {}: {}: morphology_scalar has no effect: {} has no vectors",
                    self.areas[source].id,
                    place(),
                    quoted(&mapping.morphology_name)
                ));
            }
            if mapping.morphology == Morphology::Unknown {
                let what = format!(
                    "morphology {}: a function without a known definition",
                    quoted(&mapping.morphology_name)
                );
                match self.strict {
                    true => return Err(Error::unsupported(what).at(place())),
                    false => warnings.add(format!(
                        "area {}: {}: {what}; no synapses",
                        self.areas[source].id,
                        place()
                    )),
                }
            }
            mappings.push(mapping);
            if mappings.len() > MAX_MAPPINGS {
                return Err(Error::data(format!("more than {MAX_MAPPINGS} mappings")));
            }
        }
        Ok(())
    }

    fn mapping(&mut self, source: usize, destination: usize, rule: &Rule<'_>) -> Result<Mapping> {
        let morphology_name = rule.text(Field::Morphology)?.to_owned();
        let scalar = rule.scalar()?;
        let morphology = self.morphologies.find(&morphology_name, scalar)?;
        let morphology = morphology.ok_or_else(|| self.morphologies.unknown(&morphology_name))?;
        let attractivity = rule.number(Field::Attractivity, 0.0, 100.0)?;
        let plastic = rule.flag(Field::Plastic)?;
        let grows = matches!(
            morphology,
            Morphology::Plastic(PlasticMorphology::Associative)
        );
        if plastic || grows {
            rule.check_mode(&self.areas[source].id, &self.areas[destination].id)?;
        }
        // Where nothing reads a field, its null is the same as its absence.
        let is_inert = |field: Field| !(plastic || grows) && rule.is_absent(field);
        let step = |field: Field| match is_inert(field) {
            true => Ok(0.0),
            false => rule
                .number(field, -MAX_SCALAR, MAX_SCALAR)
                .map(|step| step.unwrap_or(0.0) as f32),
        };
        let window = match is_inert(Field::Window) {
            true => None,
            false => rule.whole(Field::Window, 0, i64::from(u16::MAX))?,
        };
        let delay = match rule.is_absent(Field::Delay) {
            true => None,
            false => rule.whole(Field::Delay, 0, i64::from(u8::MAX))?,
        };
        Ok(Mapping {
            source,
            destination,
            morphology_name,
            morphology,
            scalar,
            multiplier: rule
                .whole(Field::Multiplier, -255, 255)?
                .ok_or_else(|| rule.missing(Field::Multiplier))? as i32,
            attractivity: attractivity.unwrap_or(f64::from(
                self.areas[destination].properties.synapse_attractivity,
            )) as f32,
            plastic,
            plasticity: Plasticity {
                constant: step(Field::Constant)?,
                ltp: step(Field::Ltp)?,
                ltd: step(Field::Ltd)?,
                window: window.unwrap_or(0) as u16,
            },
            delay_bursts: delay.unwrap_or(1) as u8,
        })
    }
}

/// The fields of a rule: their indices in an array, their keys in an object.
#[derive(Clone, Copy)]
enum Field {
    Morphology,
    Scalar,
    Multiplier,
    Plastic,
    Constant,
    Ltp,
    Ltd,
    Window,
    Delay,
    Attractivity,
    Mode,
    Reward,
    Punishment,
    Modulators,
}

const FIELDS: [&str; 14] = [
    "morphology_id",
    "morphology_scalar",
    "postSynapticCurrent_multiplier",
    "plasticity_flag",
    "plasticity_constant",
    "ltp_multiplier",
    "ltd_multiplier",
    "plasticity_window",
    "synaptic_delay_bursts",
    "synapse_attractivity",
    "plasticity_mode",
    "reward_source_area",
    "punishment_source_area",
    "modulators",
];
/// Maximum elements of an array; later fields occur only in objects.
const MAX_RULE_ELEMENTS: usize = 9;
/// The only mode of learning that is known: by coincidence within a window.
const KNOWN_MODE: &str = "stdp";

enum Rule<'a> {
    Array(&'a [Value]),
    Object(&'a Map<String, Value>),
}

impl<'a> Rule<'a> {
    fn new(value: &'a Value) -> Result<Self> {
        match value {
            Value::Array(parts) if (4..=MAX_RULE_ELEMENTS).contains(&parts.len()) => {
                Ok(Rule::Array(parts))
            }
            Value::Array(parts) => Err(Error::data(format!(
                "{} parts given; 4 to {MAX_RULE_ELEMENTS} needed",
                parts.len()
            ))),
            Value::Object(fields) => Ok(Rule::Object(fields)),
            other => Err(Error::data(format!(
                "{} given; an array or an object needed",
                kind(other)
            ))),
        }
    }

    fn get(&self, field: Field) -> Option<&'a Value> {
        match self {
            Rule::Array(parts) if (field as usize) < MAX_RULE_ELEMENTS => parts.get(field as usize),
            Rule::Array(_) => None,
            Rule::Object(fields) => fields.get(FIELDS[field as usize]),
        }
    }

    /// Whether a field has a value with content.
    fn is_stated(&self, field: Field) -> bool {
        self.get(field).is_some_and(|value| !is_empty(value))
    }

    /// Whether a field is missing or null.
    fn is_absent(&self, field: Field) -> bool {
        self.get(field).is_none_or(Value::is_null)
    }

    /// Keys of an object that have no effect.
    fn unknown(&self) -> impl Iterator<Item = &'a str> {
        let fields = match self {
            Rule::Array(_) => None,
            Rule::Object(fields) => Some(*fields),
        };
        fields
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .filter(|key| !FIELDS.contains(key))
    }

    fn missing(&self, field: Field) -> Error {
        Error::data(format!("{} is missing", FIELDS[field as usize]))
    }

    fn wrong(field: Field, needed: &str, value: &Value) -> Error {
        Error::data(format!(
            "{}: {} given; {needed}",
            FIELDS[field as usize],
            kind(value)
        ))
    }

    fn text(&self, field: Field) -> Result<&'a str> {
        let value = self.get(field).ok_or_else(|| self.missing(field))?;
        value
            .as_str()
            .ok_or_else(|| Self::wrong(field, "a text needed", value))
    }

    /// A flag; false if it is missing or null.
    fn flag(&self, field: Field) -> Result<bool> {
        match self.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| Self::wrong(field, "true or false needed", value)),
        }
    }

    /// Refuses synapses that should learn by another mode than the known one.
    fn check_mode(&self, source: &AreaId, destination: &AreaId) -> Result<()> {
        let field = |field: Field| self.get(field).filter(|value| !value.is_null());
        let refused = |field: Field, value: &Value| {
            Error::unsupported(format!(
                "mapping {source} to {destination}: {}: {} given; the only known mode of learning is {KNOWN_MODE:?}, by coincidence, which uses no reward",
                FIELDS[field as usize],
                kind(value)
            ))
        };
        if let Some(mode) = field(Field::Mode)
            && mode.as_str() != Some(KNOWN_MODE)
        {
            return Err(refused(Field::Mode, mode));
        }
        let rewards = [Field::Reward, Field::Punishment, Field::Modulators];
        match rewards.into_iter().find(|reward| self.is_stated(*reward)) {
            Some(reward) => Err(refused(reward, self.get(reward).unwrap_or(&Value::Null))),
            None => Ok(()),
        }
    }

    fn number(&self, field: Field, least: f64, most: f64) -> Result<Option<f64>> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let number = value
            .as_f64()
            .ok_or_else(|| Self::wrong(field, "a number needed", value))?;
        match (least..=most).contains(&number) {
            true => Ok(Some(number)),
            false => Err(Self::wrong(
                field,
                &format!("{least} to {most} needed"),
                value,
            )),
        }
    }

    fn whole(&self, field: Field, least: i64, most: i64) -> Result<Option<i64>> {
        match self.number(field, least as f64, most as f64)? {
            Some(number) if number.fract() != 0.0 => Err(Error::data(format!(
                "{}: {number} is not a whole number",
                FIELDS[field as usize]
            ))),
            number => Ok(number.map(|number| number as i64)),
        }
    }

    /// One number for all axes, plain or in an array, or one for each axis.
    fn scalar(&self) -> Result<[f64; 3]> {
        let Some(value) = self.get(Field::Scalar) else {
            return Ok([1.0; 3]);
        };
        let numbers = match value {
            Value::Array(values) => values
                .iter()
                .map(Value::as_f64)
                .collect::<Option<Vec<_>>>()
                .unwrap_or_default(),
            other => other.as_f64().into_iter().collect(),
        };
        let scalar = match numbers[..] {
            [all] => Some([all; 3]),
            [x, y, z] => Some([x, y, z]),
            _ => None,
        };
        let scalar = scalar.filter(|scalar| scalar.iter().all(|part| part.abs() <= MAX_SCALAR));
        scalar.ok_or_else(|| {
            Self::wrong(
                Field::Scalar,
                &format!("one number or three, of at most {MAX_SCALAR}, needed"),
                value,
            )
        })
    }
}
