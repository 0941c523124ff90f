//! Values of a GGUF file's metadata, and the cursor that reads its header.

use std::fmt;

use tectum::{Error, Result};

/// Maximum nesting of arrays.
const MAX_DEPTH: usize = 4;

/// Values of an array that are displayed.
const MAX_SHOWN: usize = 4;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// An unsigned integer of 8 bits.
    U8,
    /// A signed integer of 8 bits.
    I8,
    /// An unsigned integer of 16 bits.
    U16,
    /// A signed integer of 16 bits.
    I16,
    /// An unsigned integer of 32 bits.
    U32,
    /// A signed integer of 32 bits.
    I32,
    /// A float of 32 bits.
    F32,
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// Values of one type.
    Array,
    /// An unsigned integer of 64 bits.
    U64,
    /// A signed integer of 64 bits.
    I64,
    /// A float of 64 bits.
    F64,
}

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// A text; invalid UTF-8 is shown as `�`.
    Text(String),
    /// Values of one type.
    Array(Array<'a>),
}

/// An array of the metadata, which stays in its file until it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    /// The type of its values.
    pub element: ValueType,
    /// The number of values.
    pub len: u64,
    bytes: &'a [u8],
}

/// A position in the bytes of a header; every read is bounds-checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl ValueType {
    /// In the order of their numbers in a file.
    const ALL: [ValueType; 13] = {
        use ValueType::{Array, Bool, F32, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64};
        [
            U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64,
        ]
    };

    /// The displayed name.
    pub fn name(self) -> &'static str {
        [
            "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "array", "u64", "i64",
            "f64",
        ][self as usize]
    }

    /// Bytes of a value, if all values of the type have the same size.
    fn width(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::Text | ValueType::Array => None,
        }
    }
}

impl<'a> Array<'a> {
    /// The values in order.
    pub fn values(self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = Cursor {
            bytes: self.bytes,
            at: 0,
        };
        // The header was checked when it was opened: every value exists.
        (0..self.len).map_while(move |_| cursor.value(self.element, 0).ok())
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("element", &self.element)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// On one line; the first values of an array.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(number) => write!(f, "{number}"),
            Value::Signed(number) => write!(f, "{number}"),
            Value::F32(number) => write!(f, "{number:?}"),
            Value::F64(number) => write!(f, "{number:?}"),
            Value::Bool(is) => write!(f, "{is}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Array(array) => {
                write!(f, "{} of {}: ", array.len, array.element.name())?;
                for (index, value) in array.values().take(MAX_SHOWN).enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(if array.len > MAX_SHOWN as u64 {
                    ", …"
                } else {
                    ""
                })
            }
        }
    }
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// Remaining bytes.
    pub fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// The next bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        if count > self.left() {
            return Err(Error::data(format!(
                "cut short: {count} bytes are needed from byte {} on, {} are left",
                self.at,
                self.left()
            )));
        }
        let start = self.at;
        self.at += count as usize;
        Ok(&self.bytes[start..self.at])
    }

    /// The next bytes of a number.
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The bytes of a text.
    pub fn text(&mut self) -> Result<&'a [u8]> {
        let len = self.u64()?;
        self.take(len)
    }

    pub fn value_type(&mut self) -> Result<ValueType> {
        let number = self.u32()?;
        let known = ValueType::ALL.get(number as usize).copied();
        known.ok_or_else(|| {
            Error::data(format!(
                "is of type {number}; there are types 0 to {}",
                ValueType::ALL.len() - 1
            ))
        })
    }

    /// A value of a type at a nesting depth of arrays.
    pub fn value(&mut self, kind: ValueType, depth: usize) -> Result<Value<'a>> {
        Ok(match kind {
            ValueType::U8 => Value::Unsigned(self.array().map(u8::from_le_bytes)?.into()),
            ValueType::I8 => Value::Signed(self.array().map(i8::from_le_bytes)?.into()),
            ValueType::U16 => Value::Unsigned(self.array().map(u16::from_le_bytes)?.into()),
            ValueType::I16 => Value::Signed(self.array().map(i16::from_le_bytes)?.into()),
            ValueType::U32 => Value::Unsigned(self.u32()?.into()),
            ValueType::I32 => Value::Signed(self.array().map(i32::from_le_bytes)?.into()),
            ValueType::F32 => Value::F32(self.array().map(f32::from_le_bytes)?),
            ValueType::Bool => match self.array()? {
                [byte @ (0 | 1)] => Value::Bool(byte == 1),
                [byte] => return Err(Error::data(format!("is {byte}, neither 0 nor 1"))),
            },
            // Copied before it is checked: another process may write to the file.
            ValueType::Text => {
                let text = self.text()?.to_vec();
                Value::Text(
                    String::from_utf8(text).unwrap_or_else(|error| {
                        String::from_utf8_lossy(error.as_bytes()).into_owned()
                    }),
                )
            }
            ValueType::Array => Value::Array(self.values(depth)?),
            ValueType::U64 => Value::Unsigned(self.u64()?),
            ValueType::I64 => Value::Signed(self.array().map(i64::from_le_bytes)?),
            ValueType::F64 => Value::F64(self.array().map(f64::from_le_bytes)?),
        })
    }

    /// Checks and skips a value.
    pub fn skip(&mut self, kind: ValueType) -> Result<()> {
        if kind == ValueType::Text {
            self.text().map(drop)
        } else {
            self.value(kind, 0).map(drop)
        }
    }

    /// An array; its values are checked and skipped.
    fn values(&mut self, depth: usize) -> Result<Array<'a>> {
        if depth == MAX_DEPTH {
            return Err(Error::data(format!(
                "arrays within more than {MAX_DEPTH} arrays"
            )));
        }
        let element = self.value_type()?;
        let len = self.u64()?;
        let start = self.at;
        match element.width() {
            Some(width) => {
                let bytes = self.take(len.saturating_mul(width))?;
                if let Some(byte) = bytes
                    .iter()
                    .find(|byte| element == ValueType::Bool && **byte > 1)
                {
                    return Err(Error::data(format!("holds {byte}, neither 0 nor 1")));
                }
            }
            // Each value takes bytes, so the end of the file ends this loop.
            None if element == ValueType::Text => {
                (0..len).try_for_each(|_| self.text().map(drop))?
            }
            None => (0..len).try_for_each(|_| self.values(depth + 1).map(drop))?,
        }
        Ok(Array {
            element,
            len,
            bytes: &self.bytes[start..self.at],
        })
    }
}
