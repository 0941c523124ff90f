//! Fields of messages of ROS 2.

use tectum::{Error, Result};

use super::picture::Picture;
use super::{FieldRequest, Reading, Stamp, stamp_ns, unknown_field};
use crate::message::{Array, ElementType};
use crate::recording::records::Schema;
use crate::ros::{Decoder, Definition, Element, Fields, Number, Primitive, STAMP};

const PICTURE: [&str; 6] = [
    "height",
    "width",
    "step",
    "encoding",
    "is_bigendian",
    "data",
];

/// Characters of the reason why a definition is not read, in the place of its fields.
const MAX_REASON: usize = 1000;
/// Names of joints that are kept, for errors.
const MAX_JOINTS: usize = 1000;

/// Reads messages of one type.
pub(crate) struct RosReader {
    decoder: Decoder,
    sources: Vec<Source>,
    /// The path of the stamp.
    stamp: Option<usize>,
    /// The path of names that joints are found in.
    names: Option<usize>,
    joints: Vec<String>,
}

/// Where a request is found: places of paths.
enum Source {
    Number(usize),
    Array(usize, ElementType),
    /// The first path of [`PICTURE`].
    Picture(usize),
    Joint {
        values: usize,
        names: usize,
        joint: String,
    },
}

/// The definition of a schema; of types that we know it may be left out.
fn definition(schema: &Schema) -> Result<Definition> {
    if schema.text.is_empty() {
        return Definition::known(&schema.name);
    }
    let text = std::str::from_utf8(&schema.text);
    let text = text.map_err(|_| Error::data(format!("schema {}: it is not UTF-8", schema.name)))?;
    Definition::parse(&schema.name, text)
}

/// The fields of messages.
pub(super) fn listed(schema: &Schema) -> Vec<String> {
    let refused = |error: Error| vec![error.to_string().chars().take(MAX_REASON).collect()];
    definition(schema).map_or_else(refused, |own| own.listed_fields())
}

impl RosReader {
    pub fn new(schema: &Schema, requests: &[FieldRequest], stamp: Stamp) -> Result<Self> {
        let definition = definition(schema)?;
        let mut paths = Paths {
            definition: &definition,
            paths: Vec::new(),
        };
        let sources = requests.iter().map(|request| paths.source(request));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let stamp = match stamp {
            Stamp::Record => None,
            Stamp::Header => {
                let first = paths.add(STAMP[0]).and_then(|first| {
                    paths.add(STAMP[1])?;
                    Ok(first)
                });
                Some(first.map_err(|_| {
                    Error::data("it has no header.stamp, which the clock of the body needs")
                })?)
            }
        };
        let names = sources.iter().find_map(|source| match source {
            Source::Joint { names, .. } => Some(*names),
            _ => None,
        });
        Ok(Self {
            decoder: Decoder::new(&definition, &paths.paths)?,
            sources,
            stamp,
            names,
            joints: Vec::new(),
        })
    }

    pub fn read(&mut self, message: &[u8], readings: &mut Vec<Reading>) -> Result<Option<u64>> {
        let Self {
            decoder,
            sources,
            stamp,
            names,
            joints,
        } = self;
        let fields = decoder.decode(message)?;
        for source in sources {
            readings.push(match source {
                Source::Number(path) => Reading::Number(number(&fields, *path)),
                Source::Array(path, element) => Reading::Array(array(&fields, *path, *element)),
                Source::Picture(first) => Reading::Array(picture(&fields, *first)?),
                Source::Joint {
                    values,
                    names,
                    joint,
                } => joint_of(&fields, *values, *names, joint)?,
            });
        }
        if let Some(names) = names {
            // Names change rarely: the list is kept.
            let names = || fields.texts(*names).take(MAX_JOINTS);
            if !names().eq(joints.iter().map(String::as_str)) {
                *joints = names().map(str::to_owned).collect();
            }
        }
        stamp
            .map(|first| stamp_ns(number(&fields, first), number(&fields, first + 1)))
            .transpose()
    }

    pub fn joints(&self) -> &[String] {
        &self.joints
    }
}

fn number(fields: &Fields<'_>, path: usize) -> f64 {
    fields.number(path).map_or(f64::NAN, Number::to_f64)
}

/// The element of an array at the place of a joint's name.
fn joint_of(fields: &Fields<'_>, values: usize, names: usize, joint: &str) -> Result<Reading> {
    let Some((place, value)) = fields.joint(values, names, joint) else {
        return Ok(Reading::Absent);
    };
    let count = fields.count(values);
    if count == 0 {
        // A part of a robot without, say, an effort.
        return Ok(Reading::Absent);
    }
    let value = value.ok_or_else(|| {
        Error::data(format!(
            "joint {joint}: it is at place {place}, the array has {count} elements"
        ))
    })?;
    Ok(Reading::Number(value.to_f64()))
}

/// The type of an array's elements in an observation.
fn element_type(primitive: Primitive) -> ElementType {
    match primitive {
        Primitive::Uint8 | Primitive::Byte | Primitive::Char => ElementType::U8,
        Primitive::Int8 => ElementType::I8,
        Primitive::Bool => ElementType::Bool,
        _ => ElementType::F32,
    }
}

fn array(fields: &Fields<'_>, path: usize, element: ElementType) -> Array {
    let shape = vec![fields.count(path)];
    match fields.bytes(path) {
        Some(bytes) => Array {
            element,
            shape,
            data: bytes.to_vec(),
        },
        None => Array {
            element: ElementType::F32,
            shape,
            data: fields
                .numbers(path)
                .flat_map(|number| (number.to_f64() as f32).to_le_bytes())
                .collect(),
        },
    }
}

fn picture(fields: &Fields<'_>, first: usize) -> Result<Array> {
    let size = |offset: usize| number(fields, first + offset) as usize;
    Picture {
        height: size(0),
        width: size(1),
        step: size(2),
        encoding: fields.text(first + 3).unwrap_or_default(),
        is_big: number(fields, first + 4) != 0.0,
        data: fields.bytes(first + 5).unwrap_or_default(),
    }
    .to_array()
}

/// The paths of a reader.
struct Paths<'d> {
    definition: &'d Definition,
    paths: Vec<String>,
}

impl Paths<'_> {
    /// Adds a path and returns its place.
    fn add(&mut self, path: &str) -> Result<usize> {
        Decoder::new(self.definition, &[path])?;
        self.paths.push(path.to_owned());
        Ok(self.paths.len() - 1)
    }

    fn source(&mut self, request: &FieldRequest) -> Result<Source> {
        let Some(field) = &request.field else {
            return self.picture();
        };
        let own = Decoder::new(self.definition, &[field]);
        let own = own.map_err(|error| {
            // Whatever is wrong with the path, the list shows what it may be.
            unknown_field(field, &self.definition.listed_fields()).with_source(error)
        })?;
        let kind = own.kind(0);
        let Some(Element::Number(primitive)) = kind.map(|kind| kind.element) else {
            return Err(Error::data(format!(
                "field {field:?} is text, not a number"
            )));
        };
        let is_array = kind.is_some_and(|kind| kind.is_array());
        let Some(joint) = &request.joint else {
            let place = self.add(field)?;
            return Ok(match is_array {
                true => Source::Array(place, element_type(primitive)),
                false => Source::Number(place),
            });
        };
        match (is_array, self.definition.joint_names(field)) {
            (true, Some(names)) => Ok(Source::Joint {
                values: self.add(field)?,
                names: self.add(&names)?,
                joint: joint.clone(),
            }),
            _ => Err(Error::data(format!(
                "joint {joint:?}: field {field:?} is no array with names of joints next to it, \
                 name[] or joint_names[]"
            ))),
        }
    }

    /// The source of a message that is a picture.
    fn picture(&mut self) -> Result<Source> {
        let first = self.paths.len();
        let is_picture = PICTURE.iter().all(|path| self.add(path).is_ok());
        match is_picture {
            true => Ok(Source::Picture(first)),
            false => Err(Error::data(format!(
                "it is no picture, so that a channel needs a field; it has {}",
                self.definition.listed_fields().join(", ")
            ))),
        }
    }
}
