//! Fields of a definition by path.

use std::collections::BTreeMap;

use tectum::{Error, Result};

use super::definition::{Definition, Element, Extent, FieldType};

/// The highest index in an array that grows with the message.
const MAX_INDEX: u32 = 65_535;

/// What paths select in one type, field by field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Selection {
    /// One for each field of the type; shorter if the last fields are not selected.
    pub fields: Vec<Chosen>,
}

/// What paths select of one field. A path is its place in the list of paths.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Chosen {
    /// Paths of the whole field.
    pub whole: Vec<usize>,
    /// Paths of one number or text of an array, with its index.
    pub elements: Vec<(u32, usize)>,
    /// Paths that continue in a message, by its index: 0 where the field is no array.
    pub inner: BTreeMap<u32, Selection>,
}

impl Chosen {
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.elements.is_empty() && self.inner.is_empty()
    }
}

/// The end of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    pub path: String,
    /// Its type; an element of an array is no array.
    pub kind: FieldType,
}

/// Compiles paths.
pub(super) fn select(
    definition: &Definition,
    paths: &[impl AsRef<str>],
) -> Result<(Selection, Vec<Target>)> {
    // Whether a field that is not selected can be skipped depends on its layout, too.
    let wide = definition.types().iter().find_map(|own| {
        let mut fields = own.fields.iter();
        let field = fields.find(|field| matches!(field.kind.element, Element::WideText(_)))?;
        Some((own, field))
    });
    if let Some((own, field)) = wide {
        return Err(Error::unsupported(format!(
            "{}: field {} of {} is a wstring, whose layout depends on the middleware",
            definition.name(),
            field.name,
            own.name
        )));
    }
    let mut selection = Selection::default();
    let mut targets = Vec::with_capacity(paths.len());
    for (place, path) in paths.iter().enumerate() {
        let path = path.as_ref();
        let kind = add(definition, &mut selection, path, place)
            .map_err(|error| error.at(format_args!("field {path:?}")))?;
        targets.push(Target {
            path: path.to_owned(),
            kind,
        });
    }
    Ok((selection, targets))
}

fn add(
    definition: &Definition,
    selection: &mut Selection,
    path: &str,
    place: usize,
) -> Result<FieldType> {
    let (mut selection, mut own) = (selection, 0);
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let (name, index) = read_segment(segment)?;
        let number = definition.field(own, name)?;
        let field = &definition.types()[own].fields[number];
        check_index(name, field.kind.extent, index)?;
        if selection.fields.len() <= number {
            selection.fields.resize_with(number + 1, Chosen::default);
        }
        let chosen = &mut selection.fields[number];
        let is_last = segments.peek().is_none();
        match (field.kind.element, is_last) {
            (Element::Struct(inner), false) => {
                if field.kind.is_array() && index.is_none() {
                    return Err(Error::data(format!(
                        "{name} is an array of messages, which needs an index: {name}[0]"
                    )));
                }
                selection = chosen.inner.entry(index.unwrap_or(0)).or_default();
                own = inner;
            }
            (Element::Struct(inner), true) => {
                let inner = &definition.types()[inner];
                let names: Vec<&str> = inner.fields.iter().map(|field| &*field.name).collect();
                return Err(Error::data(format!(
                    "{name} is a message with the fields {}",
                    names.join(", ")
                )));
            }
            (_, false) => {
                return Err(Error::data(format!(
                    "{name} is no message and has no fields"
                )));
            }
            (element, true) => {
                let Some(index) = index else {
                    chosen.whole.push(place);
                    return Ok(field.kind);
                };
                chosen.elements.push((index, place));
                return Ok(FieldType {
                    element,
                    extent: Extent::One,
                });
            }
        }
    }
    Err(Error::data("it names no field"))
}

/// `name` or `name[3]`.
fn read_segment(segment: &str) -> Result<(&str, Option<u32>)> {
    let Some((name, index)) = segment.split_once('[') else {
        return Ok((segment, None));
    };
    let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
    let index = index.filter(|index| *index <= MAX_INDEX).ok_or_else(|| {
        Error::data(format!(
            "{segment:?} has no index from 0 to {MAX_INDEX} between the brackets"
        ))
    })?;
    Ok((name, Some(index)))
}

fn check_index(name: &str, extent: Extent, index: Option<u32>) -> Result<()> {
    let Some(index) = index else { return Ok(()) };
    match extent {
        Extent::One => Err(Error::data(format!("{name} is no array"))),
        Extent::Fixed(size) | Extent::Bounded(size) if index >= size => Err(Error::data(format!(
            "{name} has at most {size} elements, from {name}[0] on"
        ))),
        _ => Ok(()),
    }
}
