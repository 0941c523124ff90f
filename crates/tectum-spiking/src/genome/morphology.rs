//! Morphologies: which target voxels a source voxel reaches, from definitions in the file and
//! built-in ones of the format.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::record::{is_empty, kind};
use super::relation::{Axis, Relation, SourceRule, TargetRule};
use super::warnings::{Warnings, quoted};

/// Which target voxels a source voxel reaches.
#[derive(Debug, Clone, PartialEq)]
pub enum Morphology {
    /// Fixed synapses: the union of the relations.
    Voxels(Arc<[Relation]>),
    /// No fixed synapses: the engine uses the areas' activity.
    Plastic(PlasticMorphology),
    /// A function without a known definition: no synapses.
    Unknown,
}

/// Morphologies without fixed synapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlasticMorphology {
    /// `memory`, `episodic_memory`: the destination stores patterns of the source.
    Memory,
    /// `memory_replay`: the destination replays the patterns stored by the source.
    Replay,
    /// `associative_memory`, `bidirectional_stdp`: synapses grow between neurons that fire
    /// together.
    Associative,
}

/// Maximum patterns or vectors of one morphology.
const MAX_RULES: usize = 1 << 12;
/// Maximum coordinate or offset.
const MAX_OFFSET: f64 = 1e9;

/// Maximum vectors of all mappings together; each scalar makes a new set.
const MAX_OFFSETS: usize = 1 << 18;

/// The built-in names that a message lists; most of the others differ in the axis.
const BUILT_IN: [&str; 17] = [
    "block_to_block",
    "lateral_+x",
    "all_to_0-0-0",
    "0-0-0_to_all",
    "all_to_all",
    "projector",
    "expander",
    "project_from_end_x",
    "bitmask_encoder_x",
    "last_to_first",
    "first_to_last",
    "randomizer",
    "tile",
    "sweeper",
    "rotator_z",
    "memory",
    "associative_memory",
];
/// Names of the file that a message lists.
const MAX_SHOWN: usize = 10;

/// Definitions of a file, by name, and its vectors after scaling.
pub(super) struct Morphologies {
    defined: BTreeMap<String, Definition>,
    scaled: BTreeMap<(String, [u64; 3]), Arc<[Relation]>>,
    offsets: usize,
}

#[derive(Debug, Clone)]
enum Definition {
    /// Offsets before scaling by a mapping's scalar.
    Vectors(Arc<[[f64; 3]]>),
    Relations(Arc<[Relation]>),
    Plastic(PlasticMorphology),
    Unknown,
}

impl Morphologies {
    /// Reads the section `neuron_morphologies`. A definition without content has the meaning of its
    /// built-in name.
    pub fn read(section: Option<&Value>, warnings: &mut Warnings) -> Result<Self> {
        let mut defined = BTreeMap::new();
        let named = match section {
            None | Some(Value::Null) => None,
            Some(Value::Object(named)) => Some(named),
            Some(other) => {
                return Err(Error::data(format!(
                    "neuron_morphologies: {} given; an object needed",
                    kind(other)
                )));
            }
        };
        for (name, value) in named.into_iter().flatten() {
            if is_empty(value) && core(name).is_some() {
                continue;
            }
            let place = || format!("neuron_morphologies: {}", quoted(name));
            let definition = define(name, value).map_err(|error| error.at(place()))?;
            for key in keys_without_effect(value) {
                warnings.add(format!("{}: key {} has no effect", place(), quoted(key)));
            }
            defined.insert(name.clone(), definition);
        }
        Ok(Self {
            defined,
            scaled: BTreeMap::new(),
            offsets: 0,
        })
    }

    /// The morphology of a name, scaled for a mapping: the file's, otherwise the built-in one. None
    /// if neither exists.
    pub fn find(&mut self, name: &str, scalar: [f64; 3]) -> Result<Option<Morphology>> {
        let definition = self.defined.get(name).cloned().or_else(|| core(name));
        Ok(match definition {
            None => None,
            Some(Definition::Vectors(vectors)) => {
                Some(Morphology::Voxels(self.scale(name, &vectors, scalar)?))
            }
            Some(Definition::Relations(relations)) => Some(Morphology::Voxels(relations)),
            Some(Definition::Plastic(kind)) => Some(Morphology::Plastic(kind)),
            Some(Definition::Unknown) => Some(Morphology::Unknown),
        })
    }

    /// Whether a mapping's scalar has an effect on a morphology.
    pub fn scales(&self, name: &str) -> bool {
        let definition = self.defined.get(name).cloned().or_else(|| core(name));
        matches!(definition, Some(Definition::Vectors(_)))
    }

    /// The error for a name that neither the file defines nor the format has.
    pub fn unknown(&self, name: &str) -> Error {
        let mut names: Vec<&str> = self
            .defined
            .keys()
            .map(String::as_str)
            .take(MAX_SHOWN)
            .chain(BUILT_IN)
            .collect();
        names.dedup();
        Error::data(format!(
            "morphology {} is unknown; known: {}, and more in docs/genomes.md",
            quoted(name),
            names.join(", ")
        ))
    }

    fn scale(
        &mut self,
        name: &str,
        vectors: &[[f64; 3]],
        scalar: [f64; 3],
    ) -> Result<Arc<[Relation]>> {
        let key = (name.to_owned(), scalar.map(f64::to_bits));
        if let Some(relations) = self.scaled.get(&key) {
            return Ok(Arc::clone(relations));
        }
        self.offsets += vectors.len();
        if self.offsets > MAX_OFFSETS {
            return Err(Error::data(format!(
                "morphology {}: more than {MAX_OFFSETS} vectors in all mappings",
                quoted(name)
            )));
        }
        let relations = offsets(vectors, scalar);
        self.scaled.insert(key, Arc::clone(&relations));
        Ok(relations)
    }
}

/// The types with the keys of their parameters.
const TYPES: [(&str, &[&str]); 6] = [
    ("vectors", &["vectors"]),
    ("patterns", &["patterns"]),
    ("functions", &[]),
    ("function", &[]),
    (
        "composite",
        &["src_seed", "src_pattern", "mapper_morphology"],
    ),
    ("placeholder", &[]),
];
/// Keys of a definition for editors.
const SHOWN_KEYS: [&str; 4] = [
    "class",
    "description",
    "dimension_sensitive",
    "morphology_name",
];

/// The type of a definition: as stated, or in the oldest files the key under which its vectors or
/// patterns are.
fn type_of(fields: &Map<String, Value>) -> Option<(&str, bool)> {
    match fields.get("type") {
        None => ["vectors", "patterns", "functions"]
            .into_iter()
            .find(|key| fields.contains_key(*key))
            .map(|name| (name, true)),
        Some(name) => Some((name.as_str()?, false)),
    }
}

/// Keys of a valid definition that its type does not have.
fn keys_without_effect(value: &Value) -> Vec<&str> {
    let Some(fields) = value.as_object() else {
        return Vec::new();
    };
    let (name, is_oldest) = type_of(fields).unwrap_or_default();
    let known = TYPES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(&[][..], |(_, keys)| keys);
    let outer = fields.iter().filter(|(key, value)| {
        let is_read = ["type", "parameters"].contains(&key.as_str()) || is_oldest && *key == name;
        !is_read && !SHOWN_KEYS.contains(&key.as_str()) && !is_empty(value)
    });
    let parameters = fields.get("parameters").and_then(Value::as_object);
    let inner = parameters
        .into_iter()
        .flatten()
        .filter(|(key, value)| !known.contains(&key.as_str()) && !is_empty(value));
    outer.chain(inner).map(|(key, _)| key.as_str()).collect()
}

fn define(name: &str, value: &Value) -> Result<Definition> {
    let fields = value
        .as_object()
        .ok_or_else(|| Error::data(format!("{} given; an object needed", kind(value))))?;
    let (type_name, is_oldest) = type_of(fields).unzip();
    let parameters = match fields.get("parameters") {
        _ if is_oldest == Some(true) => Some(fields),
        None | Some(Value::Null) => None,
        Some(Value::Object(parameters)) => Some(parameters),
        Some(other) => {
            return Err(Error::data(format!(
                "parameters: {} given; an object needed",
                kind(other)
            )));
        }
    };
    let rows = |key: &str| {
        let value = parameters.and_then(|parameters| parameters.get(key));
        let rows = value
            .and_then(Value::as_array)
            .ok_or_else(|| Error::data(format!("parameters: {key}: an array needed")))?;
        match rows.len() {
            count if count > MAX_RULES => Err(Error::data(format!(
                "parameters: {key}: {count} given; at most {MAX_RULES}"
            ))),
            _ => Ok(rows),
        }
    };
    match type_name {
        Some("vectors") => Ok(Definition::Vectors(
            rows("vectors")?.iter().map(vector).collect::<Result<_>>()?,
        )),
        Some("patterns") => {
            let patterns = rows("patterns")?;
            // The oldest files have a single pattern without an array around it.
            if is_oldest == Some(true) && is_single(patterns) {
                let pattern = pattern(&Value::Array(patterns.clone()))?;
                return Ok(Definition::Relations(Arc::new([pattern])));
            }
            let patterns = patterns.iter().map(pattern);
            Ok(Definition::Relations(patterns.collect::<Result<_>>()?))
        }
        Some("functions" | "function") => Ok(function(name).unwrap_or(Definition::Unknown)),
        Some("composite") => composite(name, parameters),
        // The format's name for a morphology without rules: it makes no synapses.
        Some("placeholder") => Ok(Definition::Relations(Arc::new([]))),
        _ => {
            let given = fields
                .get("type")
                .map_or_else(|| "nothing".to_owned(), kind);
            Err(Error::data(format!(
                "type: {given} given; vectors, patterns, functions or composite needed"
            )))
        }
    }
}

/// Whether these are the two triples of one pattern.
fn is_single(patterns: &[Value]) -> bool {
    let is_triple = |side: &Value| {
        side.as_array()
            .is_some_and(|elements| elements.len() == 3 && !elements.iter().any(Value::is_array))
    };
    patterns.len() == 2 && patterns.iter().all(is_triple)
}

/// Three numbers.
fn numbers(value: &Value) -> Option<[f64; 3]> {
    let numbers = value
        .as_array()?
        .iter()
        .map(Value::as_f64)
        .collect::<Option<Vec<_>>>()?;
    numbers.try_into().ok()
}

fn vector(value: &Value) -> Result<[f64; 3]> {
    let vector = numbers(value).filter(|vector| {
        vector
            .iter()
            .all(|part| part.fract() == 0.0 && part.abs() <= MAX_OFFSET)
    });
    vector.ok_or_else(|| {
        Error::data(format!(
            "parameters: vectors: {}: three whole numbers needed",
            quoted(&value.to_string())
        ))
    })
}

fn pattern(value: &Value) -> Result<Relation> {
    let wrong = || {
        Error::data(format!(
            "parameters: patterns: {}: two triples of \"*\", \"?\", \"!\" or whole numbers needed",
            quoted(&value.to_string())
        ))
    };
    let sides = value
        .as_array()
        .filter(|sides| sides.len() == 2)
        .ok_or_else(wrong)?;
    let side = |index: usize| {
        let elements = sides[index]
            .as_array()
            .filter(|elements| elements.len() == 3)?;
        let elements = elements.iter().map(element).collect::<Option<Vec<_>>>()?;
        <[TargetRule; 3]>::try_from(elements).ok()
    };
    let (from, to) = (side(0).ok_or_else(wrong)?, side(1).ok_or_else(wrong)?);
    // Only absolute elements select sources; the others match any coordinate there.
    let sources = from.map(|element| match element {
        TargetRule::Between(least, most) => SourceRule::Between(least, most),
        _ => SourceRule::All,
    });
    Ok(Relation::Axes([0, 1, 2].map(|axis| Axis {
        from: axis,
        sources: sources[axis],
        to: to[axis],
    })))
}

/// One element of a pattern, as interpreted on the target side.
fn element(value: &Value) -> Option<TargetRule> {
    if let Some(number) = value.as_f64() {
        let whole =
            (number.fract() == 0.0 && number.abs() <= MAX_OFFSET).then_some(number as i64)?;
        return Some(TargetRule::Between(whole, whole));
    }
    let text = value.as_str()?;
    match text {
        "*" => return Some(TargetRule::All),
        "?" => return Some(TargetRule::Near(0, 0)),
        "!" => return Some(TargetRule::Others),
        "?+" => return Some(TargetRule::Near(1, i64::MAX)),
        "?-" => return Some(TargetRule::Near(i64::MIN, -1)),
        "?+=" => return Some(TargetRule::Near(0, i64::MAX)),
        "?-=" => return Some(TargetRule::Near(i64::MIN, 0)),
        _ => {}
    }
    let relative = |text: &str| {
        text.strip_prefix('?')
            .filter(|rest| rest.starts_with(['+', '-']))
            .and_then(whole)
    };
    if let Some((least, most)) = text.split_once(':') {
        return Some(TargetRule::Near(relative(least)?, relative(most)?));
    } else if let Some((least, most)) = text.split_once("..") {
        return Some(TargetRule::Between(whole(least)?, whole(most)?));
    } else if let Some(offset) = relative(text) {
        return Some(TargetRule::Near(offset, offset));
    }
    whole(text).map(|number| TargetRule::Between(number, number))
}

fn whole(text: &str) -> Option<i64> {
    text.parse::<i64>()
        .ok()
        .filter(|number| number.unsigned_abs() <= MAX_OFFSET as u64)
}

/// Offsets of a mapping: vectors times its scalar, truncated towards zero, without duplicates.
fn offsets(vectors: &[[f64; 3]], scalar: [f64; 3]) -> Arc<[Relation]> {
    let mut offsets: Vec<[i64; 3]> = Vec::with_capacity(vectors.len());
    let scaled = vectors
        .iter()
        .map(|vector| [0, 1, 2].map(|axis| (vector[axis] * scalar[axis]).trunc() as i64));
    offsets.extend(scaled);
    offsets.sort_unstable();
    offsets.dedup();
    offsets
        .into_iter()
        .map(|offset| {
            Relation::Axes(
                [0, 1, 2].map(|axis| Axis::own(axis, TargetRule::Near(offset[axis], offset[axis]))),
            )
        })
        .collect()
}

/// The built-in morphologies.
fn core(name: &str) -> Option<Definition> {
    let lateral = |axis: usize, step: f64| {
        let mut vector = [0.0; 3];
        vector[axis] = step;
        Some(Definition::Vectors(Arc::new([vector])))
    };
    let at_origin = SourceRule::Between(0, 0);
    let each = |sources: SourceRule, to: TargetRule| {
        Some(Definition::Relations(Arc::new([Relation::Axes(
            [0, 1, 2].map(|axis| Axis {
                from: axis,
                sources,
                to,
            }),
        )])))
    };
    match name {
        "block_to_block" => Some(Definition::Vectors(Arc::new([[0.0; 3]]))),
        "lateral_+x" => lateral(0, 1.0),
        "lateral_-x" => lateral(0, -1.0),
        "lateral_+y" => lateral(1, 1.0),
        "lateral_-y" => lateral(1, -1.0),
        "lateral_+z" => lateral(2, 1.0),
        "lateral_-z" => lateral(2, -1.0),
        "all_to_0-0-0" => each(SourceRule::All, TargetRule::Between(0, 0)),
        "0-0-0_to_all" => each(at_origin, TargetRule::All),
        "all_to_all" => each(SourceRule::All, TargetRule::All),
        // The format's name for a morphology without rules.
        "placeholder" => Some(Definition::Relations(Arc::new([]))),
        _ => function(name),
    }
}

/// Morphologies that are defined by their name alone.
fn function(name: &str) -> Option<Definition> {
    let product = |axes: [Axis; 3]| Some(Definition::Relations(Arc::new([Relation::Axes(axes)])));
    let projector =
        |from: [usize; 3]| product([0, 1, 2].map(|axis| Axis::own(from[axis], TargetRule::Scaled)));
    // From the last layer of an axis to the first.
    let from_end = |end: usize| {
        let last = Axis {
            from: end,
            sources: SourceRule::Last,
            to: TargetRule::Between(0, 0),
        };
        product([0, 1, 2].map(|axis| {
            if axis == end {
                last
            } else {
                Axis::own(axis, TargetRule::Scaled)
            }
        }))
    };
    let bits = |by: usize, to: TargetRule, others: TargetRule| {
        product([0, 1, 2].map(|axis| Axis::own(axis, if axis == by { to } else { others })))
    };
    let corner = |sources: SourceRule, to: TargetRule| {
        product([0, 1, 2].map(|axis| Axis {
            from: axis,
            sources,
            to,
        }))
    };
    match name {
        "block_to_block" => Some(Definition::Vectors(Arc::new([[0.0; 3]]))),
        "projector" => projector([0, 1, 2]),
        "projector_xy" | "transpose_xy" => projector([1, 0, 2]),
        "projector_yz" | "transpose_yz" => projector([0, 2, 1]),
        "projector_xz" | "transpose_xz" => projector([2, 1, 0]),
        "project_from_end_x" => from_end(0),
        "project_from_end_y" => from_end(1),
        "project_from_end_z" => from_end(2),
        "expander" => product([0, 1, 2].map(|axis| Axis::own(axis, TargetRule::ScaledToOne))),
        "expander_x" => bits(0, TargetRule::ExpandedBits, TargetRule::Between(0, 0)),
        "reducer_x" => bits(0, TargetRule::ReducedBits, TargetRule::Between(0, 0)),
        "bitmask_encoder_x" => bits(0, TargetRule::EncodedBits, TargetRule::Clamped),
        "bitmask_encoder_y" => bits(1, TargetRule::EncodedBits, TargetRule::Clamped),
        "bitmask_encoder_z" => bits(2, TargetRule::EncodedBits, TargetRule::Clamped),
        "bitmask_decoder_x" => bits(0, TargetRule::DecodedBits, TargetRule::Clamped),
        "bitmask_decoder_y" => bits(1, TargetRule::DecodedBits, TargetRule::Clamped),
        "bitmask_decoder_z" => bits(2, TargetRule::DecodedBits, TargetRule::Clamped),
        "lateral_pairs_x" => bits(0, TargetRule::Paired, TargetRule::Near(0, 0)),
        "block_connection" => bits(0, TargetRule::Divided(10), TargetRule::Near(0, 0)),
        "last_to_first" => corner(SourceRule::Last, TargetRule::Between(0, 0)),
        "first_to_last" => corner(SourceRule::Between(0, 0), TargetRule::Last),
        "randomizer" => Some(Definition::Relations(Arc::new([Relation::Random]))),
        "tile" => Some(Definition::Relations(Arc::new([Relation::Tile]))),
        "sweeper" => Some(Definition::Relations(Arc::new([Relation::Sweep]))),
        "rotator_z" => Some(Definition::Relations(Arc::new([Relation::RotateZ]))),
        "memory" | "episodic_memory" => Some(Definition::Plastic(PlasticMorphology::Memory)),
        "memory_replay" => Some(Definition::Plastic(PlasticMorphology::Replay)),
        "associative_memory" | "bidirectional_stdp" => {
            Some(Definition::Plastic(PlasticMorphology::Associative))
        }
        _ => None,
    }
}

/// Blocks of the source, each mapped onto the whole target by another morphology; only the
/// projector is defined there.
fn composite(name: &str, parameters: Option<&Map<String, Value>>) -> Result<Definition> {
    let parameter = |key: &str| parameters.and_then(|parameters| parameters.get(key));
    if parameter("mapper_morphology").and_then(Value::as_str) != Some("projector") {
        return Ok(function(name).unwrap_or(Definition::Unknown));
    }
    let counts = |value: &Value, least: f64| {
        let count = value
            .as_f64()
            .filter(|count| count.fract() == 0.0 && (least..=1e6).contains(count))?;
        Some(count as u32)
    };
    let seed = parameter("src_seed")
        .and_then(Value::as_array)
        .filter(|seed| seed.len() == 3);
    let turns = parameter("src_pattern")
        .and_then(Value::as_array)
        .filter(|turns| turns.len() == 3);
    let axis = |axis: usize| {
        let side = counts(seed?.get(axis)?, 1.0)?;
        let turn = turns?
            .get(axis)?
            .as_array()
            .filter(|turn| turn.len() == 2)?;
        let (choose, skip) = (counts(&turn[0], 1.0)?, counts(&turn[1], 0.0)?);
        Some(Axis::own(axis, TargetRule::Tiled { side, choose, skip }))
    };
    match (axis(0), axis(1), axis(2)) {
        (Some(x), Some(y), Some(z)) => {
            Ok(Definition::Relations(Arc::new([Relation::Axes([x, y, z])])))
        }
        _ => Err(Error::data(
            "parameters: src_seed of three whole numbers from 1 and src_pattern of three pairs [from 1, from 0] needed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_a_message_lists_is_defined() {
        for name in BUILT_IN {
            assert!(core(name).is_some(), "{name}");
        }
        let section = serde_json::json!({"mine": {"type": "placeholder"}});
        let read = Morphologies::read(Some(&section), &mut Warnings::default()).expect("valid");
        let error = read.unknown("random").to_string();
        assert!(
            error.starts_with("morphology \"random\" is unknown; known: mine, block_to_block, ")
                && error.contains("all_to_all, projector, "),
            "{error}"
        );
    }
}
