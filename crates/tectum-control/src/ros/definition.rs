//! What a message type consists of.

use std::fmt::Write;

use tectum::{Error, Result};

use crate::nearest::suggestion;

/// Fields that an error or an inspection lists at most.
const MAX_LISTED: usize = 200;
/// The longest path below which fields are listed.
const MAX_LISTED_PATH: usize = 1000;

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of ROS")]
pub enum Primitive {
    Bool,
    Byte,
    Char,
    Float32,
    Float64,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
}

impl Primitive {
    /// All of them: name, size in bytes, identifier in type hashes.
    const ALL: [(Self, &str, usize, u32); 13] = [
        (Self::Bool, "bool", 1, 15),
        (Self::Byte, "byte", 1, 16),
        (Self::Char, "char", 1, 3),
        (Self::Float32, "float32", 4, 10),
        (Self::Float64, "float64", 8, 11),
        (Self::Int8, "int8", 1, 2),
        (Self::Uint8, "uint8", 1, 3),
        (Self::Int16, "int16", 2, 4),
        (Self::Uint16, "uint16", 2, 5),
        (Self::Int32, "int32", 4, 6),
        (Self::Uint32, "uint32", 4, 7),
        (Self::Int64, "int64", 8, 8),
        (Self::Uint64, "uint64", 8, 9),
    ];

    fn row(self) -> (Self, &'static str, usize, u32) {
        // The variants are in the order of the table.
        Self::ALL[self as usize]
    }

    /// Its name in definitions.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, known, ..)| *known == name);
        row.map(|(primitive, ..)| *primitive)
    }

    /// Bytes of a number; it is also their alignment.
    pub fn size(self) -> usize {
        self.row().2
    }

    pub(super) fn hash_id(self) -> u32 {
        self.row().3
    }

    /// The lowest and the highest whole number; `None` for floating point.
    pub fn whole_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Float32 | Self::Float64 => return None,
            Self::Bool => (0, 1),
            Self::Byte | Self::Char | Self::Uint8 => (0, i128::from(u8::MAX)),
            Self::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
            Self::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
            Self::Uint16 => (0, i128::from(u16::MAX)),
            Self::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
            Self::Uint32 => (0, i128::from(u32::MAX)),
            Self::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Self::Uint64 => (0, i128::from(u64::MAX)),
        })
    }
}

/// What a field, or an element of it, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// A number.
    Number(Primitive),
    /// `string`, with the maximum of its bytes if it has one.
    Text(Option<u32>),
    /// `wstring`, with the maximum of its characters if it has one.
    WideText(Option<u32>),
    /// A message of another type: its place in [`Definition::types`].
    Struct(usize),
}

/// How many elements a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One: it is no array.
    One,
    /// `[N]`
    Fixed(u32),
    /// `[<=N]`
    Bounded(u32),
    /// `[]`
    Unbounded,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldType {
    /// Of each element.
    pub element: Element,
    /// How many there are.
    pub extent: Extent,
}

impl FieldType {
    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.extent != Extent::One
    }
}

/// A value that a definition states.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// Of a number, as it is written.
    Number(super::Number),
    /// Of a `string` or `wstring`.
    Text(String),
    /// Of an array.
    List(Vec<Literal>),
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
    /// The value of a new message, if it is not 0 or empty.
    pub default: Option<Literal>,
}

/// A name for a number or a text; messages do not contain it.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
    /// Its value.
    pub value: Literal,
}

/// A message type without the types of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct StructType {
    /// `package/msg/Name`
    pub name: String,
    /// Its fields in order. A type without fields has one of a byte, as ROS 2 sends it.
    pub fields: Vec<Field>,
    /// Its constants.
    pub constants: Vec<Constant>,
}

/// The field of a type that has none.
pub(super) const EMPTY_FIELD: &str = "structure_needs_at_least_one_member";

/// A message type with all types that it contains.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    types: Vec<StructType>,
}

impl Definition {
    pub(super) fn new(types: Vec<StructType>) -> Self {
        Self { types }
    }

    /// Its name: `package/msg/Type`.
    pub fn name(&self) -> &str {
        &self.types[0].name
    }

    /// The type itself, then those that it contains.
    pub fn types(&self) -> &[StructType] {
        &self.types
    }

    /// Its text, which [`Definition::parse`] reads and recordings contain as `ros2msg`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (place, own) in self.types.iter().enumerate() {
            if place > 0 {
                text.push_str(&"=".repeat(80));
                text += &format!("\nMSG: {}\n", short_name(&own.name));
            }
            own.append_text(&self.types, &mut text);
        }
        text
    }

    /// The paths of its fields with their types, such as `header.stamp.sec: int32` and
    /// `position[]: float64`; at most 200.
    pub fn listed_fields(&self) -> Vec<String> {
        let mut listed = Vec::new();
        self.list(0, "", &mut listed);
        listed
    }

    fn list(&self, place: usize, before: &str, listed: &mut Vec<String>) {
        for field in &self.types[place].fields {
            if listed.len() >= MAX_LISTED || before.len() > MAX_LISTED_PATH {
                return;
            }
            let index = match field.kind.extent {
                Extent::One => String::new(),
                Extent::Fixed(count) => format!("[{count}]"),
                Extent::Bounded(_) | Extent::Unbounded => "[]".into(),
            };
            let path = format!("{before}{}{index}", field.name);
            match field.kind.element {
                Element::Struct(inner) => self.list(inner, &format!("{path}."), listed),
                element => listed.push(format!("{path}: {}", element_name(&self.types, element))),
            }
        }
    }

    /// The field of a name in one of the types.
    pub(super) fn field(&self, place: usize, name: &str) -> Result<usize> {
        let own = &self.types[place];
        let found = own.fields.iter().position(|field| field.name == name);
        found.ok_or_else(|| {
            let names = || own.fields.iter().map(|field| field.name.as_str());
            Error::data(format!(
                "{} has no field {name:?}{}; it has {}",
                own.name,
                suggestion(name, names()),
                names().collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

impl StructType {
    fn append_text(&self, types: &[Self], text: &mut String) {
        for constant in &self.constants {
            let kind = element_name(types, constant.element);
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{kind} {}={}",
                constant.name,
                literal_text(&constant.value)
            );
        }
        let is_empty = self.fields.len() == 1 && self.fields[0].name == EMPTY_FIELD;
        for field in self.fields.iter().filter(|_| !is_empty) {
            let kind = type_name(types, field.kind);
            let default = field.default.as_ref().map(literal_text);
            let space = if default.is_some() { " " } else { "" };
            let _ = writeln!(
                text,
                "{kind} {}{space}{}",
                field.name,
                default.unwrap_or_default()
            );
        }
    }
}

/// `package/Type`, as fields name it.
pub(super) fn short_name(name: &str) -> String {
    name.replacen("/msg/", "/", 1)
}

/// The type of an element as definitions write it.
pub(super) fn element_name(types: &[StructType], element: Element) -> String {
    let bound = |bound: Option<u32>| bound.map_or_else(String::new, |bound| format!("<={bound}"));
    match element {
        Element::Number(primitive) => primitive.name().to_owned(),
        Element::Text(maximum) => format!("string{}", bound(maximum)),
        Element::WideText(maximum) => format!("wstring{}", bound(maximum)),
        Element::Struct(place) => short_name(&types[place].name),
    }
}

/// The type of a field as definitions write it.
pub(super) fn type_name(types: &[StructType], kind: FieldType) -> String {
    let element = element_name(types, kind.element);
    match kind.extent {
        Extent::One => element,
        Extent::Fixed(count) => format!("{element}[{count}]"),
        Extent::Bounded(maximum) => format!("{element}[<={maximum}]"),
        Extent::Unbounded => format!("{element}[]"),
    }
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Number(super::Number::Float(number)) => format!("{number:?}"),
        Literal::Number(super::Number::Signed(number)) => number.to_string(),
        Literal::Number(super::Number::Unsigned(number)) => number.to_string(),
        Literal::Text(text) => quoted(text),
        Literal::List(items) => {
            let items: Vec<String> = items.iter().map(literal_text).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
