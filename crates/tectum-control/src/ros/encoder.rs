//! CDR messages from the values of some fields.

use tectum::{Error, Result};

use super::Number;
use super::definition::{Definition, Element, Extent, FieldType, Literal, Primitive, StructType};
use super::selection::{Chosen, Selection, Target, select};

/// The representation: plain CDR, little-endian.
const HEAD: [u8; 4] = [0, 1, 0, 0];
/// The maximum size of a message without values.
const MAX_EMPTY_BYTES: u64 = 1 << 24;
/// The maximum size of what precedes a part of a message.
const MAX_BYTES: usize = 1 << 28;

/// Writes the messages of one type. Fields that no path names have their default value, which is 0
/// or empty unless the definition states another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoder {
    types: Vec<StructType>,
    selection: Selection,
    targets: Vec<Target>,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'v> {
    /// One number.
    Number(Number),
    /// An array of numbers.
    Numbers(Numbers<'v>),
    /// One text.
    Text(&'v str),
    /// An array of texts.
    Texts(&'v [&'v str]),
}

/// The numbers of an array. They need not be of the type that the field has: each must have a value
/// of this type, and floating point is rounded to it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Numbers<'v> {
    F32(&'v [f32]),
    F64(&'v [f64]),
    U8(&'v [u8]),
    Any(&'v [Number]),
}

impl Numbers<'_> {
    fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::F64(numbers) => numbers.len(),
            Self::U8(numbers) => numbers.len(),
            Self::Any(numbers) => numbers.len(),
        }
    }

    fn for_each(&self, mut write: impl FnMut(Number) -> Result<()>) -> Result<()> {
        match self {
            Self::F32(numbers) => numbers
                .iter()
                .try_for_each(|number| write(Number::Float(f64::from(*number)))),
            Self::F64(numbers) => numbers
                .iter()
                .try_for_each(|number| write(Number::Float(*number))),
            Self::U8(numbers) => numbers
                .iter()
                .try_for_each(|number| write(Number::Unsigned(u64::from(*number)))),
            Self::Any(numbers) => numbers.iter().try_for_each(|number| write(*number)),
        }
    }
}

impl Encoder {
    /// Compiles paths of fields; a value has the place of its path. An array of which a path names
    /// an element has as many elements as the highest index needs.
    ///
    /// # Errors
    /// `Data` naming a path that the definition does not have, or a field that two paths set;
    /// `Unsupported` for a definition with a `wstring`, or whose messages have more than 16 MiB.
    pub fn new(definition: &Definition, paths: &[impl AsRef<str>]) -> Result<Self> {
        let (selection, targets) = select(definition, paths)?;
        check_once(&selection, &targets)?;
        let mut sizes = vec![None; definition.types().len()];
        if empty_size(definition.types(), 0, &mut sizes) > MAX_EMPTY_BYTES {
            return Err(Error::unsupported(format!(
                "{}: its messages have more than {MAX_EMPTY_BYTES} bytes",
                definition.name()
            )));
        }
        Ok(Self {
            types: definition.types().to_vec(),
            selection,
            targets,
        })
    }

    /// Writes a message with a value for each path, in place of what `bytes` contains.
    ///
    /// # Errors
    /// `Invalid` naming the path whose value is missing or of another kind, or does not fit.
    pub fn encode(&self, values: &[Value<'_>], bytes: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.targets.len() {
            return Err(Error::invalid(format!(
                "{} values for {} paths of {}",
                values.len(),
                self.targets.len(),
                self.types[0].name
            )));
        }
        bytes.clear();
        bytes.extend(HEAD);
        let mut writer = Writer {
            encoder: self,
            values,
            bytes,
        };
        writer.message(0, Some(&self.selection))
    }
}

/// Refuses a field that two paths set.
fn check_once(selection: &Selection, targets: &[Target]) -> Result<()> {
    for chosen in &selection.fields {
        let elements = &chosen.elements;
        let is_twice = chosen.whole.len() > 1
            || !chosen.whole.is_empty() && !elements.is_empty()
            || elements.iter().enumerate().any(|(place, (index, _))| {
                elements[..place]
                    .iter()
                    .any(|(earlier, _)| earlier == index)
            });
        if is_twice {
            let paths = chosen.whole.iter().copied();
            let paths = paths.chain(elements.iter().map(|(_, path)| *path));
            let paths: Vec<&str> = paths.map(|path| &*targets[path].path).collect();
            return Err(Error::data(format!(
                "two paths set the same field: {}",
                paths.join(", ")
            )));
        }
        for inner in chosen.inner.values() {
            check_once(inner, targets)?;
        }
    }
    Ok(())
}

/// The size of a message without values, at least; each type is counted once.
fn empty_size(types: &[StructType], place: usize, sizes: &mut [Option<u64>]) -> u64 {
    if let Some(size) = sizes[place] {
        return size;
    }
    let sizes_of_fields = types[place].fields.iter().map(|field| {
        let element = match field.kind.element {
            Element::Number(primitive) => primitive.size() as u64,
            Element::Text(_) | Element::WideText(_) => 5,
            Element::Struct(inner) => empty_size(types, inner, sizes),
        };
        match field.kind.extent {
            Extent::One => element,
            Extent::Fixed(count) => element.saturating_mul(u64::from(count)),
            Extent::Bounded(_) | Extent::Unbounded => 4,
        }
    });
    let size = sizes_of_fields.fold(0, u64::saturating_add);
    sizes[place] = Some(size);
    size
}

struct Writer<'w> {
    encoder: &'w Encoder,
    values: &'w [Value<'w>],
    bytes: &'w mut Vec<u8>,
}

impl<'w> Writer<'w> {
    fn message(&mut self, place: usize, selection: Option<&Selection>) -> Result<()> {
        let encoder = self.encoder;
        // An index of a path fills all elements before it.
        if self.bytes.len() > MAX_BYTES {
            return Err(Error::unsupported(format!(
                "its message has more than {MAX_BYTES} bytes"
            )));
        }
        for (number, field) in encoder.types[place].fields.iter().enumerate() {
            let chosen = selection.and_then(|selection| selection.fields.get(number));
            match chosen.filter(|chosen| !chosen.is_empty()) {
                Some(chosen) => self.chosen(field.kind, field.default.as_ref(), chosen)?,
                None => self.unset(field.kind, field.default.as_ref())?,
            }
        }
        Ok(())
    }

    fn chosen(
        &mut self,
        kind: FieldType,
        default: Option<&Literal>,
        chosen: &Chosen,
    ) -> Result<()> {
        if let Some(path) = chosen.whole.first() {
            return self
                .value(kind, self.values[*path])
                .map_err(|error| self.at(error, *path));
        }
        if let Element::Struct(inner) = kind.element {
            let last = chosen.inner.keys().next_back();
            let count = self.count(kind.extent, last.map_or(0, |last| *last as usize + 1));
            for index in 0..count {
                self.message(inner, chosen.inner.get(&(index as u32)))?;
            }
            return Ok(());
        }
        let last = chosen.elements.iter().map(|(index, _)| *index).max();
        let count = self.count(kind.extent, last.map_or(0, |last| last as usize + 1));
        let element = FieldType {
            extent: Extent::One,
            ..kind
        };
        for index in 0..count {
            let mut elements = chosen.elements.iter();
            let own = elements.rfind(|(own, _)| *own as usize == index);
            match (own, default) {
                (Some((_, path)), _) => self
                    .value(element, self.values[*path])
                    .map_err(|error| self.at(error, *path))?,
                (None, Some(Literal::List(items))) => self.unset(element, items.get(index))?,
                (None, _) => self.unset(element, None)?,
            }
        }
        Ok(())
    }

    fn at(&self, error: Error, path: usize) -> Error {
        error.at(format_args!("field {:?}", self.encoder.targets[path].path))
    }

    /// Writes the number of elements, where messages state it.
    fn count(&mut self, extent: Extent, count: usize) -> usize {
        match extent {
            Extent::One => 1,
            Extent::Fixed(count) => count as usize,
            Extent::Bounded(_) | Extent::Unbounded => {
                self.length(count);
                count
            }
        }
    }

    /// Writes a field that no path names.
    fn unset(&mut self, kind: FieldType, default: Option<&Literal>) -> Result<()> {
        let stated = match default {
            Some(Literal::List(items)) => items.as_slice(),
            _ => &[],
        };
        let count = self.count(kind.extent, stated.len());
        for index in 0..count {
            let default = if kind.is_array() {
                stated.get(index)
            } else {
                default
            };
            match (kind.element, default) {
                (Element::Struct(inner), _) => self.message(inner, None)?,
                (Element::Number(primitive), Some(Literal::Number(number))) => {
                    self.number(primitive, *number)?;
                }
                (Element::Number(primitive), _) => self.number(primitive, Number::Unsigned(0))?,
                (_, Some(Literal::Text(text))) => self.text(text),
                _ => self.text(""),
            }
        }
        Ok(())
    }

    fn value(&mut self, kind: FieldType, value: Value<'_>) -> Result<()> {
        match (kind.element, value) {
            (Element::Number(primitive), Value::Number(number)) if !kind.is_array() => {
                self.number(primitive, number)
            }
            (Element::Text(bound), Value::Text(text)) if !kind.is_array() => {
                self.bounded_text(text, bound)
            }
            (Element::Number(primitive), Value::Numbers(numbers)) if kind.is_array() => {
                self.sized(kind.extent, numbers.len())?;
                if let (1, Numbers::U8(bytes)) = (primitive.size(), numbers)
                    && primitive.whole_range() == Some((0, 255))
                {
                    self.bytes.extend(bytes);
                    return Ok(());
                }
                numbers.for_each(|number| self.number(primitive, number))
            }
            (Element::Text(bound), Value::Texts(texts)) if kind.is_array() => {
                self.sized(kind.extent, texts.len())?;
                texts
                    .iter()
                    .try_for_each(|text| self.bounded_text(text, bound))
            }
            (element, _) => {
                let array = if kind.is_array() { "an array of " } else { "" };
                let element = super::definition::element_name(&self.encoder.types, element);
                Err(Error::invalid(format!(
                    "it is {array}{element}, the value is of another kind"
                )))
            }
        }
    }

    /// Checks and writes the number of values of an array.
    fn sized(&mut self, extent: Extent, count: usize) -> Result<()> {
        let maximum = match extent {
            Extent::Fixed(size) if count != size as usize => {
                return Err(Error::invalid(format!(
                    "it has {size} elements, the value has {count}"
                )));
            }
            Extent::Bounded(maximum) => maximum,
            Extent::One | Extent::Fixed(_) | Extent::Unbounded => u32::MAX,
        };
        if count > maximum as usize {
            return Err(Error::invalid(format!(
                "it has at most {maximum} elements, the value has {count}"
            )));
        }
        self.count(extent, count);
        Ok(())
    }

    fn align(&mut self, size: usize) {
        let place = self.bytes.len() - HEAD.len();
        self.bytes
            .resize(HEAD.len() + place.next_multiple_of(size), 0);
    }

    fn length(&mut self, length: usize) {
        self.align(4);
        self.bytes.extend((length as u32).to_le_bytes());
    }

    fn bounded_text(&mut self, text: &str, bound: Option<u32>) -> Result<()> {
        let maximum = bound.unwrap_or(u32::MAX - 1);
        if text.len() > maximum as usize {
            return Err(Error::invalid(format!(
                "it has at most {maximum} bytes, the value has {}",
                text.len()
            )));
        }
        if text.contains('\0') {
            return Err(Error::invalid("the text contains a zero"));
        }
        self.text(text);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.length(text.len() + 1);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    fn number(&mut self, primitive: Primitive, number: Number) -> Result<()> {
        self.align(primitive.size());
        let Some((low, high)) = primitive.whole_range() else {
            match primitive {
                Primitive::Float32 => self.bytes.extend((number.to_f64() as f32).to_le_bytes()),
                _ => self.bytes.extend(number.to_f64().to_le_bytes()),
            }
            return Ok(());
        };
        let whole = match number {
            Number::Signed(number) => Some(i128::from(number)),
            Number::Unsigned(number) => Some(i128::from(number)),
            // Beyond the range of i64 and u64 the conversion gives a number that is out of range.
            Number::Float(number) => (number.trunc() == number).then_some(number as i128),
        };
        let whole = whole.filter(|whole| (low..=high).contains(whole));
        let whole = whole.ok_or_else(|| {
            Error::invalid(format!("{} is no {}", number.to_f64(), primitive.name()))
        })?;
        // Two's complement: the low bytes of a number are those of the shorter type.
        self.bytes.extend(&whole.to_le_bytes()[..primitive.size()]);
        Ok(())
    }
}
