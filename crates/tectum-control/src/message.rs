//! Messages with a body that runs in another process.
//!
//! A **frame** is the length of its content, an unsigned 32-bit number in little-endian order, and
//! the content: one MessagePack map. Frames follow each other without anything between them. A
//! frame is at most [`MAX_FRAME`] bytes, and values are nested at most [`MAX_DEPTH`] deep.
//!
//! Each map has the key `type` and the key `sequence`, a number that its sender counts up; an
//! answer repeats the number of its request. Other keys depend on the type. Unknown keys are
//! ignored.
//!
//! | type | sent by | keys |
//! |---|---|---|
//! | `hello` | loop | `settings`: what the body is made of |
//! | `spec` | body | `name`, `period` in seconds, `observation` and `action`: channels, `safe_action`, `has_exact_state`, `state_size`, `can_push`, `files` that were read, `libraries`, `versions` |
//! | `reset` | loop | `seed` |
//! | `step` | loop | `action` |
//! | `observation` | body | `observation`: a vector of the channels of one number; `arrays`: the others by name, if there are any; after a step also `reward`, `terminated`, `truncated` |
//! | `state` | both | request: nothing; answer: `state` |
//! | `set_state` | loop | `state`; the answer is an `observation` |
//! | `push` | both | nothing |
//! | `frame` | both | request: `width`, `height`; answer: `picture` of shape (height, width, 3) |
//! | `error` | body | `kind`, `message` |
//! | `close` | loop | nothing; it has no answer |
//!
//! A body that is reached over a socket (the crate `tectum-link`) has the same messages, one in each
//! binary frame of a WebSocket, and those of real time:
//!
//! | type | sent by | keys |
//! |---|---|---|
//! | `start` | loop | `period`; from now on the body sends observations without being asked |
//! | `action` | loop | `action`, `answers`: the number of the observation that it answers, `safe`: whether it is the safe action; it has no answer |
//! | `observation` | body | as above, with a `sequence` that the body counts up, and `answers`: the number of the last `action` or `reset` that it has applied |
//! | `arm` | body | nothing: the operator at the machine allows actions again after a stop |
//!
//! A channel is a map with `name`, `unit`, `low`, `high`, `shape` (empty for one number) and
//! `dtype`; a channel of an observation also has `wraps`.
//!
//! An **array** is a map with binary keys, as openpi's `msgpack_numpy` writes it: `__ndarray__` is
//! true, `data` has the bytes in C order, `dtype` is a code of NumPy, `shape` a list of sizes. The
//! codes are those of [`ElementType`]; all others are refused.

use std::io::{Read, Write};

use rmpv::Value;
use tectum::{Error, Result};

/// The maximum length of a frame's content in bytes.
pub const MAX_FRAME: usize = 1 << 28;
/// The maximum depth of nested values.
pub const MAX_DEPTH: usize = 32;

/// The elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// `<f4`
    F32,
    /// `<f8`
    F64,
    /// `|u1`
    U8,
    /// `|i1`
    I8,
    /// `<i4`
    I32,
    /// `<i8`
    I64,
    /// `|b1`
    Bool,
}

impl ElementType {
    const ALL: [(Self, &str, usize); 7] = [
        (Self::F32, "<f4", 4),
        (Self::F64, "<f8", 8),
        (Self::U8, "|u1", 1),
        (Self::I8, "|i1", 1),
        (Self::I32, "<i4", 4),
        (Self::I64, "<i8", 8),
        (Self::Bool, "|b1", 1),
    ];

    /// Its code in NumPy and its size in bytes.
    pub fn code(self) -> (&'static str, usize) {
        Self::ALL
            .iter()
            .find(|(element, ..)| *element == self)
            .map_or(("", 0), |(_, code, size)| (code, *size))
    }

    /// Its name in NumPy.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::Bool => "bool",
        }
    }

    /// Whether float32 holds every value.
    pub fn is_exact_in_f32(self) -> bool {
        matches!(self, Self::F32 | Self::U8 | Self::I8 | Self::Bool)
    }

    /// The lowest and the highest value of an integer type that float32 holds exactly.
    pub fn whole_range(self) -> Option<[f64; 2]> {
        match self {
            Self::U8 => Some([0.0, 255.0]),
            Self::I8 => Some([-128.0, 127.0]),
            Self::Bool => Some([0.0, 1.0]),
            _ => None,
        }
    }

    /// Whether it has a value.
    pub fn holds(self, value: f32) -> bool {
        match self {
            Self::F32 | Self::F64 => true,
            Self::U8 => f32::from(value as u8) == value,
            Self::I8 => f32::from(value as i8) == value,
            Self::I32 => value as i32 as f32 == value,
            Self::I64 => value as i64 as f32 == value,
            Self::Bool => value == 0.0 || value == 1.0,
        }
    }

    /// The type of a code of NumPy; `None` for all others.
    pub fn from_code(code: &str) -> Option<Self> {
        // The byte order of a single byte may be written in either way.
        let single = code.trim_start_matches(['|', '<', '>', '=']);
        Self::ALL
            .iter()
            .find(|(_, known, size)| {
                *known == code || (*size == 1 && known.trim_start_matches('|') == single)
            })
            .map(|(element, ..)| *element)
    }
}

/// An array of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The type of its elements.
    pub element: ElementType,
    /// Its sizes; empty for one number.
    pub shape: Vec<usize>,
    /// The elements in C order, each little-endian.
    pub data: Vec<u8>,
}

impl Array {
    /// An array of bytes in C order; the reason for bytes that do not fill the shape.
    pub(crate) fn new(
        element: ElementType,
        shape: Vec<usize>,
        data: Vec<u8>,
    ) -> std::result::Result<Self, String> {
        let bytes = shape
            .iter()
            .try_fold(element.code().1, |bytes, size| bytes.checked_mul(*size));
        if bytes != Some(data.len()) {
            return Err(format!("has {} bytes for the shape {shape:?}", data.len()));
        }
        Ok(Self {
            element,
            shape,
            data,
        })
    }

    /// A vector of float32.
    pub fn of_f32(numbers: &[f32]) -> Self {
        Self {
            element: ElementType::F32,
            shape: vec![numbers.len()],
            data: numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect(),
        }
    }

    /// A vector of float64.
    pub fn of_f64(numbers: &[f64]) -> Self {
        Self {
            element: ElementType::F64,
            shape: vec![numbers.len()],
            data: numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect(),
        }
    }

    /// An array of a shape with elements in C order that the type holds, as many as the shape has:
    /// a reader refuses another number of them.
    pub fn of_elements(elements: &[f32], element: ElementType, shape: &[usize]) -> Self {
        let bytes = elements.iter();
        let data = match element {
            ElementType::F32 => {
                return Self {
                    shape: shape.to_vec(),
                    ..Self::of_f32(elements)
                };
            }
            ElementType::F64 => bytes
                .flat_map(|value| f64::from(*value).to_le_bytes())
                .collect(),
            ElementType::U8 => bytes.map(|value| *value as u8).collect(),
            ElementType::I8 => bytes
                .flat_map(|value| (*value as i8).to_le_bytes())
                .collect(),
            ElementType::I32 => bytes
                .flat_map(|value| (*value as i32).to_le_bytes())
                .collect(),
            ElementType::I64 => bytes
                .flat_map(|value| (*value as i64).to_le_bytes())
                .collect(),
            ElementType::Bool => bytes.map(|value| u8::from(*value != 0.0)).collect(),
        };
        Self {
            element,
            shape: shape.to_vec(),
            data,
        }
    }

    /// Appends the elements as float32; those of wider types are rounded.
    pub fn append_to(&self, elements: &mut Vec<f32>) {
        let start = elements.len();
        elements.resize(start + self.data.len() / self.element.code().1, 0.0);
        self.write_to(&mut elements[start..]);
    }

    /// Writes the elements as float32, as far as there is space; those of wider types are rounded.
    pub fn write_to(&self, elements: &mut [f32]) {
        fn each<const N: usize>(data: &[u8], elements: &mut [f32], read: fn([u8; N]) -> f32) {
            let bytes = data.as_chunks().0.iter();
            elements
                .iter_mut()
                .zip(bytes)
                .for_each(|(own, bytes)| *own = read(*bytes));
        }
        let data = &self.data;
        match self.element {
            ElementType::F32 => each(data, elements, f32::from_le_bytes),
            ElementType::F64 => each(data, elements, |bytes| f64::from_le_bytes(bytes) as f32),
            ElementType::U8 => each(data, elements, |[byte]| f32::from(byte)),
            ElementType::I8 => each(data, elements, |bytes| f32::from(i8::from_le_bytes(bytes))),
            ElementType::I32 => each(data, elements, |bytes| i32::from_le_bytes(bytes) as f32),
            ElementType::I64 => each(data, elements, |bytes| i64::from_le_bytes(bytes) as f32),
            ElementType::Bool => each(data, elements, |[byte]| f32::from(u8::from(byte != 0))),
        }
    }

    /// The numbers of an array of float32.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let numbers = self
            .data
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        (self.element == ElementType::F32).then(|| numbers.collect())
    }

    /// The numbers of an array of float64.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        let number = |bytes: &[u8]| {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            f64::from_le_bytes(eight)
        };
        (self.element == ElementType::F64).then(|| self.data.chunks_exact(8).map(number).collect())
    }

    fn to_value(&self) -> Value {
        let key = |name: &str| Value::Binary(name.as_bytes().to_vec());
        Value::Map(vec![
            (key("__ndarray__"), true.into()),
            (key("data"), Value::Binary(self.data.clone())),
            (key("dtype"), self.element.code().0.into()),
            (
                key("shape"),
                self.shape
                    .iter()
                    .map(|size| Value::from(*size as u64))
                    .collect::<Vec<_>>()
                    .into(),
            ),
        ])
    }

    /// The array of a map; the reason for anything else.
    fn of_value(value: &Value) -> std::result::Result<Self, String> {
        let find = |name: &str| {
            value.as_map().and_then(|pairs| {
                pairs
                    .iter()
                    .find(|(key, _)| key.as_slice() == Some(name.as_bytes()))
                    .map(|(_, value)| value)
            })
        };
        if find("__npgeneric__").and_then(Value::as_bool) == Some(true) {
            let number = find("data").and_then(Value::as_f64);
            let number = number.ok_or("is a scalar of NumPy that is no number")?;
            return Ok(Self {
                shape: Vec::new(),
                ..Self::of_f64(&[number])
            });
        }
        if find("__ndarray__").and_then(Value::as_bool) != Some(true) {
            return Err("is no array".into());
        }
        let code = find("dtype")
            .and_then(|code| code.as_slice())
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        let element = ElementType::from_code(&code)
            .ok_or_else(|| format!("has elements of the type {code:?}, which is refused"))?;
        let shape = find("shape").and_then(sizes).ok_or("has no shape")?;
        let data = match find("data") {
            Some(Value::Binary(data)) => data,
            _ => return Err("has no data".into()),
        };
        Self::new(element, shape, data.clone())
    }
}

/// A message: its type, its number and its fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message(Vec<(Value, Value)>);

impl Message {
    /// A message without fields.
    pub fn new(kind: &str, sequence: u64) -> Self {
        Self(vec![
            ("type".into(), kind.into()),
            ("sequence".into(), sequence.into()),
        ])
    }

    /// The message with one more field: a number, a text or a flag.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The message with an array.
    #[must_use]
    pub fn with_array(self, name: &str, array: &Array) -> Self {
        let value = array.to_value();
        self.with(name, value)
    }

    /// The message with a map, the fields of another message.
    #[must_use]
    pub fn with_map(self, name: &str, map: Self) -> Self {
        self.with(name, Value::Map(map.0))
    }

    /// The message with a table of settings.
    #[must_use]
    pub fn with_table(self, name: &str, table: &toml::Table) -> Self {
        let value = of_table(table);
        self.with(name, value)
    }

    /// The names of its fields, in order; those that are no text are left out.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(key, _)| key.as_str())
    }

    fn find(&self, name: &str) -> Option<&Value> {
        field(&self.0, name)
    }

    /// Its type; empty if it has none.
    pub fn kind(&self) -> &str {
        self.text("type").unwrap_or("")
    }

    /// Its number.
    pub fn sequence(&self) -> Option<u64> {
        self.find("sequence").and_then(Value::as_u64)
    }

    /// A field that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(Value::as_str)
    }

    /// A field that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.find(name).and_then(Value::as_f64)
    }

    /// Whether a field is there and has no value.
    pub fn is_nil(&self, name: &str) -> bool {
        self.find(name).is_some_and(Value::is_nil)
    }

    /// A field that is true or false.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.find(name).and_then(Value::as_bool)
    }

    /// A field that is an array.
    ///
    /// # Errors
    /// `Data` naming the type of the message and the field.
    pub fn array(&self, name: &str) -> Result<Array> {
        let refused =
            |reason: &str| Error::data(format!("message {:?}: {name} {reason}", self.kind()));
        let value = self.find(name).ok_or_else(|| refused("is missing"))?;
        Array::of_value(value).map_err(|reason| refused(&reason))
    }

    /// A field as elements: an array, a number, or a list of numbers, with its type, shape and
    /// elements in C order. What is no array has the type float64.
    ///
    /// # Errors
    /// `Data` naming the field.
    pub fn elements(&self, name: &str) -> Result<Array> {
        let refused = |reason: &str| Error::data(format!("{name} {reason}"));
        let value = self.find(name).ok_or_else(|| refused("is missing"))?;
        if let Some(number) = value.as_f64() {
            return Ok(Array {
                shape: Vec::new(),
                ..Array::of_f64(&[number])
            });
        }
        if let Some(items) = value.as_array() {
            let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
            let numbers = numbers.ok_or_else(|| refused("is a list of other than numbers"))?;
            return Ok(Array::of_f64(&numbers));
        }
        Array::of_value(value).map_err(|reason| refused(&reason))
    }

    /// A field that is a map, as a message of its own; `None` for anything else.
    pub fn map(&self, name: &str) -> Option<Self> {
        self.find(name)?.as_map().map(|pairs| Self(pairs.clone()))
    }

    /// A field that is a list of maps.
    pub fn maps(&self, name: &str) -> Option<Vec<Self>> {
        let items = self.find(name)?.as_array()?;
        let map = |item: &Value| item.as_map().map(|pairs| Self(pairs.clone()));
        items.iter().map(map).collect()
    }

    /// A field that is a list of sizes.
    pub fn sizes(&self, name: &str) -> Option<Vec<usize>> {
        sizes(self.find(name)?)
    }

    /// A field that is a list of texts.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let items = self.find(name)?.as_array()?;
        let text = |item: &Value| item.as_str().map(str::to_owned);
        items.iter().map(text).collect()
    }

    /// Its content without the length of a frame, for transports that have frames of their own.
    ///
    /// # Errors
    /// `Invalid` for content that is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        self.append(&mut content)?;
        Ok(content)
    }

    /// Appends its content; returns the number of bytes.
    fn append(&self, frame: &mut Vec<u8>) -> Result<usize> {
        let before = frame.len();
        write_map(frame, &self.0).map_err(|source| Error::io("message", source))?;
        let size = frame.len() - before;
        if size > MAX_FRAME {
            return Err(Error::invalid(format!(
                "message {:?}: it has {size} bytes, at most {MAX_FRAME} can be sent",
                self.kind()
            )));
        }
        Ok(size)
    }

    /// Writes it as a frame, with one write.
    ///
    /// # Errors
    /// `Invalid` for a frame that is too long; `Io` with what the operating system reports.
    pub fn write(&self, sink: &mut dyn Write) -> Result<()> {
        let failed = |source| Error::io("message", source);
        let mut frame = vec![0; 4];
        let size = self.append(&mut frame)?;
        frame[..4].copy_from_slice(&(size as u32).to_le_bytes());
        sink.write_all(&frame)
            .and_then(|()| sink.flush())
            .map_err(failed)
    }

    /// Reads a frame; `None` at the end of the source.
    ///
    /// # Errors
    /// `Io` with what the operating system reports, also for a frame that is cut off; `Data` for a
    /// frame that is too long or no message.
    pub fn read(source: &mut dyn Read) -> Result<Option<Self>> {
        let failed = |source| Error::io("message", source);
        let mut size = [0; 4];
        let mut filled = 0;
        while filled < size.len() {
            match source.read(&mut size[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let size = u32::from_le_bytes(size) as usize;
        if size > MAX_FRAME {
            return Err(Error::data(format!(
                "message: a frame of {size} bytes is refused, the maximum is {MAX_FRAME}"
            )));
        }
        // The memory grows with what arrives, not with what the length claims.
        let mut content = Vec::new();
        source
            .take(size as u64)
            .read_to_end(&mut content)
            .map_err(failed)?;
        if content.len() < size {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Self::parse(&content).map(Some)
    }

    /// The message of a frame's content.
    ///
    /// # Errors
    /// `Data` for content that is not one map with a type and a number.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let message = Self::parse_map(content)?;
        let is_whole = message.find("type").is_some_and(Value::is_str)
            && message.find("sequence").is_some_and(Value::is_u64);
        is_whole.then_some(message).ok_or_else(|| {
            Error::data("message: it is not one map with a type and a sequence number")
        })
    }

    /// The map of a frame's content, which may be without a type and a number.
    ///
    /// # Errors
    /// `Data` for content that is not one map.
    pub fn parse_map(content: &[u8]) -> Result<Self> {
        let mut rest = content;
        let value = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH)
            .map_err(|source| Error::data("message: it is not MessagePack").with_source(source))?;
        match value {
            Value::Map(pairs) if rest.is_empty() => Ok(Self(pairs)),
            _ => Err(Error::data("message: it is not one map")),
        }
    }
}

fn write_map(frame: &mut Vec<u8>, pairs: &[(Value, Value)]) -> std::io::Result<()> {
    // The values are borrowed: a picture is not copied to be written.
    let pairs = pairs
        .iter()
        .map(|(key, value)| (key.as_ref(), value.as_ref()))
        .collect();
    rmpv::encode::write_value_ref(frame, &rmpv::ValueRef::Map(pairs)).map_err(std::io::Error::from)
}

fn sizes(value: &Value) -> Option<Vec<usize>> {
    let size = |size: &Value| size.as_u64().and_then(|size| usize::try_from(size).ok());
    value.as_array()?.iter().map(size).collect()
}

fn field<'v>(pairs: &'v [(Value, Value)], name: &str) -> Option<&'v Value> {
    pairs
        .iter()
        .find(|(key, _)| key.as_str() == Some(name))
        .map(|(_, value)| value)
}

fn of_table(table: &toml::Table) -> Value {
    let pairs = table
        .iter()
        .map(|(key, value)| (key.as_str().into(), of_toml(value)));
    Value::Map(pairs.collect())
}

fn of_toml(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => Value::Array(items.iter().map(of_toml).collect()),
        toml::Value::Table(table) => of_table(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.write(&mut bytes).expect("memory");
        bytes
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let settings = "period = 0.008\nname = \"a\"\nn = -3\n[noise]\nlist = [1, 2.5]\n";
        let message = Message::new("hello", 7)
            .with_array("action", &Array::of_f32(&[1.0, f32::NAN, -0.0]))
            .with_array("state", &Array::of_f64(&[]))
            .with_table("settings", &settings.parse().expect("TOML"));
        let bytes = frame(&message);
        let read = Message::read(&mut bytes.as_slice())
            .expect("a frame")
            .expect("one");
        assert_eq!((read.kind(), read.sequence()), ("hello", Some(7)));
        let numbers = read
            .array("action")
            .expect("an array")
            .to_f32()
            .expect("f32");
        assert!(numbers[0] == 1.0 && numbers[1].is_nan() && numbers[2].is_sign_negative());
        assert_eq!(
            read.array("state").expect("an array").to_f64(),
            Some(Vec::new())
        );
        let settings = read.map("settings").expect("a map");
        assert_eq!(
            (settings.number("period"), settings.number("n")),
            (Some(0.008), Some(-3.0))
        );
        assert_eq!(settings.text("name"), Some("a"));
        let mut rest = bytes.as_slice();
        let (mut end, mut cut) = ([].as_slice(), &rest[..rest.len() - 1]);
        assert!(Message::read(&mut end).expect("the end").is_none());
        assert!(Message::read(&mut cut).is_err());
        Message::read(&mut rest).expect("one");
        assert!(rest.is_empty());
    }

    #[test]
    fn arrays_that_are_not_whole_are_refused() {
        let message = |dtype: &str, shape: Vec<Value>, data: usize| {
            let key = |name: &str| Value::Binary(name.as_bytes().to_vec());
            Message::new("observation", 1).with(
                "observation",
                Value::Map(vec![
                    (key("__ndarray__"), true.into()),
                    (key("data"), Value::Binary(vec![0; data])),
                    (key("dtype"), dtype.into()),
                    (key("shape"), Value::Array(shape)),
                ]),
            )
        };
        let reason = |message: Message| match message.array("observation") {
            Ok(array) => format!("{:?} {:?}", array.element, array.shape),
            Err(error) => error.to_string(),
        };
        let start = "message \"observation\": observation ";
        for (message, expected) in [
            (
                message("<f4", vec![2.into(), 1.into()], 8),
                "F32 [2, 1]".to_owned(),
            ),
            (message("|u1", vec![], 1), "U8 []".into()),
            (message("u1", vec![2.into()], 2), "U8 [2]".into()),
            (
                message(">f4", vec![2.into()], 8),
                format!("{start}has elements of the type \">f4\", which is refused"),
            ),
            (
                message("|O", vec![1.into()], 8),
                format!("{start}has elements of the type \"|O\", which is refused"),
            ),
            (
                message("<f4", vec![3.into()], 8),
                format!("{start}has 8 bytes for the shape [3]"),
            ),
            (
                message("<f8", vec![u64::MAX.into(), 2.into()], 8),
                format!("{start}has 8 bytes for the shape [{}, 2]", u64::MAX),
            ),
            (
                message("<f4", vec![(-1).into()], 8),
                format!("{start}has no shape"),
            ),
            (Message::new("observation", 1), format!("{start}is missing")),
            (
                Message::new("observation", 1).with("observation", 3),
                format!("{start}is no array"),
            ),
        ] {
            assert_eq!(reason(message), expected);
        }
    }

    #[test]
    fn random_bytes_are_messages_or_errors_and_never_a_panic() {
        let mut random = crate::body::uniform::Uniform::new(56);
        let mut byte = || random.between(0.0, 256.0) as u8;
        let whole = frame(
            &Message::new("step", 3)
                .with_array("action", &Array::of_f32(&[0.5; 4]))
                .with("list", Value::Array(vec![1.into(), "two".into()])),
        );
        let mut messages = 0;
        for round in 0..20_000 {
            let mut bytes = whole.clone();
            if round % 2 == 0 {
                // A few bytes of a message are changed.
                for _ in 0..1 + round % 5 {
                    let place =
                        4 + (usize::from(byte()) * 256 + usize::from(byte())) % (bytes.len() - 4);
                    bytes[place] = byte();
                }
            } else {
                bytes = (0..usize::from(byte())).map(|_| byte()).collect();
            }
            if let Ok(Some(message)) = Message::read(&mut bytes.as_slice()) {
                messages += 1;
                let _ = (
                    message.array("action"),
                    message.maps("list"),
                    message.texts("list"),
                );
            }
        }
        assert!(messages > 100, "{messages}");
        let nested: Vec<u8> = std::iter::repeat_n(0x91, 100_000).collect();
        assert!(Message::parse(&nested).is_err());
        // A length that nothing follows allocates nothing of that size.
        assert!(Message::read(&mut [0xff, 0xff, 0xff, 0x0f, 0x80].as_slice()).is_err());
        assert!(Message::read(&mut [0xff; 8].as_slice()).is_err());
    }
}
