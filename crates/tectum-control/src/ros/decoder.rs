//! Fields of CDR messages.

use tectum::{Error, Result};

use super::Number;
use super::definition::{Definition, Element, Extent, FieldType, Primitive, StructType};
use super::selection::{Chosen, Selection, Target, select};

/// Bytes before the fields: the representation and its options.
const HEAD_BYTES: usize = 4;
/// Bytes that may follow the last field: middlewares round the size up to their own alignment.
const MAX_PADDING: usize = 7;

/// Reads fields of the messages of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoder {
    types: Vec<StructType>,
    selection: Selection,
    targets: Vec<Target>,
    /// Where the fields are in the last message.
    spans: Vec<Span>,
}

/// Where a field is in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Span {
    /// Its first byte after the head of the message.
    start: usize,
    /// Its numbers or texts.
    count: usize,
}

impl Decoder {
    /// Compiles paths of fields; a field keeps the place of its path.
    ///
    /// # Errors
    /// `Data` naming a path that the definition does not have, with the fields that it has;
    /// `Unsupported` for a definition with a `wstring`.
    pub fn new(definition: &Definition, paths: &[impl AsRef<str>]) -> Result<Self> {
        let (selection, targets) = select(definition, paths)?;
        Ok(Self {
            types: definition.types().to_vec(),
            selection,
            spans: vec![Span::default(); targets.len()],
            targets,
        })
    }

    /// The type of a path's end: an element of an array is no array.
    pub fn kind(&self, path: usize) -> Option<FieldType> {
        self.targets.get(path).map(|target| target.kind)
    }

    /// Finds the fields in a message. The whole message is checked; nothing is allocated.
    ///
    /// # Errors
    /// `Data` naming the field: a message that ends in it, a size above its bound, a text that is
    /// not UTF-8, an array without the element that a path names; bytes after the last field.
    pub fn decode<'d>(&'d mut self, message: &'d [u8]) -> Result<Fields<'d>> {
        let cursor = self
            .find(message)
            .map_err(|error| error.at(&self.types[0].name))?;
        Ok(Fields {
            decoder: self,
            cursor,
        })
    }

    /// Sets the spans; returns the beginning of the fields.
    fn find<'d>(&mut self, message: &'d [u8]) -> Result<Cursor<'d>> {
        let (&[high, low, _, _], body) = message
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or_else(|| Error::data("a message has at least 4 bytes"))?;
        let is_big = match (high, low) {
            (0, 0) => true,
            (0, 1) => false,
            _ => {
                return Err(Error::unsupported(format!(
                    "the message begins with {high:02x} {low:02x}; only plain CDR is read, \
                     00 00 and 00 01"
                )));
            }
        };
        let cursor = Cursor {
            body,
            place: 0,
            is_big,
        };
        let mut walk = Walk {
            types: &self.types,
            targets: &self.targets,
            spans: &mut self.spans,
            cursor,
        };
        walk.message(0, &self.selection)?;
        let rest = body.len() - walk.cursor.place;
        if rest > MAX_PADDING {
            return Err(Error::data(format!("{rest} bytes follow the last field")));
        }
        Ok(cursor)
    }
}

/// The fields of a message, each by the place of its path.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'d> {
    decoder: &'d Decoder,
    cursor: Cursor<'d>,
}

impl<'d> Fields<'d> {
    /// A field that is one number; none for another one.
    pub fn number(&self, path: usize) -> Option<Number> {
        let kind = self.decoder.kind(path)?;
        (!kind.is_array()).then(|| self.numbers(path).next())?
    }

    /// The numbers of an array, or one number; none of texts.
    pub fn numbers(&self, path: usize) -> impl ExactSizeIterator<Item = Number> + 'd {
        let (bytes, primitive) = self.number_bytes(path).unwrap_or((&[], Primitive::Uint8));
        let is_big = self.cursor.is_big;
        bytes
            .chunks_exact(primitive.size())
            .map(move |bytes| read_number(bytes, primitive, is_big))
    }

    /// The elements of an array whose numbers have one byte each; none for another field.
    pub fn bytes(&self, path: usize) -> Option<&'d [u8]> {
        let (bytes, primitive) = self.number_bytes(path)?;
        (primitive.size() == 1).then_some(bytes)
    }

    /// A field that is one text; none for another one.
    pub fn text(&self, path: usize) -> Option<&'d str> {
        let kind = self.decoder.kind(path)?;
        (!kind.is_array()).then(|| self.texts(path).next())?
    }

    /// The texts of an array, or one text; none of numbers.
    pub fn texts(&self, path: usize) -> impl Iterator<Item = &'d str> + 'd {
        let is_text = self
            .decoder
            .kind(path)
            .is_some_and(|kind| matches!(kind.element, Element::Text(_)));
        let span = self.decoder.spans.get(path).filter(|_| is_text);
        let Span { start, count } = span.copied().unwrap_or_default();
        let mut cursor = Cursor {
            place: start,
            ..self.cursor
        };
        // All of it was checked by `Decoder::decode`.
        std::iter::repeat_with(move || cursor.text(None).and_then(utf8).unwrap_or_default())
            .take(count)
    }

    /// The number of elements of an array; 1 for another field.
    pub fn count(&self, path: usize) -> usize {
        self.decoder.spans.get(path).map_or(0, |span| span.count)
    }

    fn number_bytes(&self, path: usize) -> Option<(&'d [u8], Primitive)> {
        let Element::Number(primitive) = self.decoder.kind(path)?.element else {
            return None;
        };
        let Span { start, count } = *self.decoder.spans.get(path)?;
        let bytes = self
            .cursor
            .body
            .get(start..start + count * primitive.size())?;
        Some((bytes, primitive))
    }
}

/// A pass over a message.
struct Walk<'w> {
    types: &'w [StructType],
    targets: &'w [Target],
    spans: &'w mut [Span],
    cursor: Cursor<'w>,
}

impl Walk<'_> {
    /// Passes a message of a type. The depth of definitions is bounded.
    fn message(&mut self, place: usize, selection: &Selection) -> Result<()> {
        let types = self.types;
        let none = Chosen::default();
        for (number, field) in types[place].fields.iter().enumerate() {
            let chosen = selection.fields.get(number).unwrap_or(&none);
            self.field(field.kind, chosen)
                .map_err(|error| error.at(&field.name))?;
        }
        Ok(())
    }

    fn field(&mut self, kind: FieldType, chosen: &Chosen) -> Result<()> {
        let count = self.cursor.count(kind.extent)?;
        match kind.element {
            Element::Struct(inner) => {
                let none = Selection::default();
                // Each message has at least a byte, so that a count ends with the bytes.
                for index in 0..count {
                    let own = u32::try_from(index).ok();
                    let own = own.and_then(|index| chosen.inner.get(&index));
                    self.message(inner, own.unwrap_or(&none))?;
                }
                match chosen.inner.keys().next_back() {
                    Some(last) if *last as usize >= count => Err(too_short(*last, count)),
                    _ => Ok(()),
                }
            }
            Element::Number(primitive) => {
                let start = self.cursor.numbers(primitive, count)?;
                self.choose(chosen, Span { start, count }, |index| {
                    start + index * primitive.size()
                })
            }
            Element::Text(bound) => self.texts(bound, count, chosen),
            Element::WideText(_) => Err(Error::unsupported("a wstring")),
        }
    }

    fn texts(&mut self, bound: Option<u32>, count: usize, chosen: &Chosen) -> Result<()> {
        let start = self.cursor.place;
        for index in 0..count {
            let place = self.cursor.place;
            let text = self.cursor.text(bound)?;
            let elements = chosen.elements.iter();
            let mut elements = elements
                .filter(|(own, _)| *own as usize == index)
                .peekable();
            if !chosen.whole.is_empty() || elements.peek().is_some() {
                utf8(text)?;
            }
            for (_, path) in elements {
                self.spans[*path] = Span {
                    start: place,
                    count: 1,
                };
            }
        }
        let last = chosen.elements.iter().map(|(index, _)| *index).max();
        if let Some(last) = last.filter(|last| *last as usize >= count) {
            return Err(too_short(last, count));
        }
        for path in &chosen.whole {
            self.spans[*path] = Span { start, count };
        }
        Ok(())
    }

    /// Remembers where numbers are.
    fn choose(
        &mut self,
        chosen: &Chosen,
        span: Span,
        start_of: impl Fn(usize) -> usize,
    ) -> Result<()> {
        for path in &chosen.whole {
            self.spans[*path] = span;
        }
        for (index, path) in &chosen.elements {
            let place = *index as usize;
            if place >= span.count {
                let path = &self.targets[*path].path;
                return Err(too_short(*index, span.count).at(path));
            }
            self.spans[*path] = Span {
                start: start_of(place),
                count: 1,
            };
        }
        Ok(())
    }
}

fn too_short(index: u32, count: usize) -> Error {
    Error::data(format!(
        "the element {index} is needed, the array has {count}"
    ))
}

/// A place in the fields of a message.
#[derive(Debug, Clone, Copy)]
struct Cursor<'b> {
    /// The message without its head: alignment counts from here.
    body: &'b [u8],
    place: usize,
    is_big: bool,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, bytes: usize) -> Result<&'b [u8]> {
        let rest = self.body.get(self.place..).unwrap_or_default();
        let taken = rest.get(..bytes).ok_or_else(|| {
            Error::data(format!(
                "{bytes} bytes are needed at byte {} of the message, {} are left",
                self.place + HEAD_BYTES,
                rest.len()
            ))
        })?;
        self.place += bytes;
        Ok(taken)
    }

    /// Passes the padding before a number.
    fn align(&mut self, size: usize) -> Result<()> {
        let padding = self.place.next_multiple_of(size) - self.place;
        self.take(padding).map(|_| ())
    }

    fn length(&mut self) -> Result<u32> {
        self.align(4)?;
        let bytes = self.take(4)?;
        match read_number(bytes, Primitive::Uint32, self.is_big) {
            Number::Unsigned(length) => Ok(length as u32),
            _ => Ok(0),
        }
    }

    /// The number of elements of a field.
    fn count(&mut self, extent: Extent) -> Result<usize> {
        let count = match extent {
            Extent::One => 1,
            Extent::Fixed(count) => count,
            Extent::Unbounded => self.length()?,
            Extent::Bounded(maximum) => {
                let count = self.length()?;
                if count > maximum {
                    return Err(Error::data(format!(
                        "it has {count} elements, the maximum is {maximum}"
                    )));
                }
                count
            }
        };
        Ok(count as usize)
    }

    /// Passes numbers and returns where they begin.
    fn numbers(&mut self, primitive: Primitive, count: usize) -> Result<usize> {
        // An array without elements has no padding.
        if count > 0 {
            self.align(primitive.size())?;
        }
        let start = self.place;
        self.take(count.saturating_mul(primitive.size()))?;
        Ok(start)
    }

    /// The bytes of a text, without the zero at its end.
    fn text(&mut self, bound: Option<u32>) -> Result<&'b [u8]> {
        let length = self.length()?;
        let text = match self.take(length as usize)?.split_last() {
            // Some writers have no zero after an empty text.
            None => &[],
            Some((0, text)) => text,
            Some(_) => return Err(Error::data("the text does not end with a zero")),
        };
        match bound {
            Some(bound) if text.len() > bound as usize => Err(Error::data(format!(
                "the text has {} bytes, the maximum is {bound}",
                text.len()
            ))),
            _ => Ok(text),
        }
    }
}

fn utf8(text: &[u8]) -> Result<&str> {
    std::str::from_utf8(text).map_err(|_| Error::data("the text is not UTF-8"))
}

/// A number of as many bytes as its type has.
fn read_number(bytes: &[u8], primitive: Primitive, is_big: bool) -> Number {
    let mut word = [0; 8];
    // Little-endian, zeros after the number.
    for (place, byte) in word.iter_mut().zip(bytes) {
        *place = *byte;
    }
    if is_big {
        word[..bytes.len().min(8)].reverse();
    }
    let whole = u64::from_le_bytes(word);
    match primitive {
        Primitive::Float32 => Number::Float(f64::from(f32::from_bits(whole as u32))),
        Primitive::Float64 => Number::Float(f64::from_bits(whole)),
        Primitive::Int8 => Number::Signed(i64::from(whole as i8)),
        Primitive::Int16 => Number::Signed(i64::from(whole as i16)),
        Primitive::Int32 => Number::Signed(i64::from(whole as i32)),
        Primitive::Int64 => Number::Signed(whole as i64),
        Primitive::Bool => Number::Unsigned(u64::from(whole != 0)),
        Primitive::Byte
        | Primitive::Char
        | Primitive::Uint8
        | Primitive::Uint16
        | Primitive::Uint32
        | Primitive::Uint64 => Number::Unsigned(whole),
    }
}
