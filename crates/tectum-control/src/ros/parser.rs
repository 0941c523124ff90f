//! Definitions from the text of `.msg` files.
//!
//! # Source
//! ROS 2 documentation, "Interfaces"; MCAP specification, well-known schema encodings, `ros2msg`.

use tectum::{Error, Result};

use super::Number;
use super::definition::{
    Constant, Definition, EMPTY_FIELD, Element, Extent, Field, FieldType, Literal, Primitive,
    StructType,
};

/// The maximum length of a definition's text.
const MAX_TEXT: usize = 1 << 20;
/// The maximum number of fields of all types together.
const MAX_FIELDS: usize = 10_000;
/// The maximum depth of types in types.
const MAX_DEPTH: usize = 32;

/// A type whose fields name other types by text.
#[derive(PartialEq)]
struct Section<'t> {
    name: String,
    fields: Vec<NamedField<'t>>,
    constants: Vec<Constant>,
}

#[derive(PartialEq)]
struct NamedField<'t> {
    name: &'t str,
    element: Named<'t>,
    extent: Extent,
    default: Option<Literal>,
    line: usize,
}

#[derive(PartialEq, Clone, Copy)]
enum Named<'t> {
    Known(Element),
    Struct(&'t str),
}

impl Definition {
    /// Reads the definition of a type from text of `.msg` files: that of the type, then for each
    /// type that it contains a line of `=`, a line `MSG: package/Type` and its text. `name` is
    /// `package/msg/Type` or `package/Type`.
    ///
    /// # Errors
    /// `Data` naming type and line: syntax, a type that the text does not define, a type that
    /// contains itself, nesting of more than 32 levels, more than 1 MiB or 10,000 fields;
    /// `Unsupported` for definitions in IDL.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let at = |error: Error| error.at(format_args!("definition of {name}"));
        if text.len() > MAX_TEXT {
            return Err(at(Error::data(format!(
                "it has {} bytes, the maximum is {MAX_TEXT}",
                text.len()
            ))));
        }
        let sections = sections(name, text).map_err(at)?;
        Resolver::new(&sections).resolve().map_err(at)
    }
}

/// `package/msg/Type` of a name with or without the part in the middle; none if it is no name of a
/// type.
pub(super) fn full_name(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let are_names = parts.iter().all(|part| is_name(part));
    match (are_names, parts.as_slice()) {
        (true, [package, kind]) => Some(format!("{package}/msg/{kind}")),
        (true, [_, "msg" | "srv" | "action", _]) => Some(name.to_owned()),
        _ => None,
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The types of a text, the requested one first.
fn sections<'t>(name: &str, text: &'t str) -> Result<Vec<Section<'t>>> {
    let full = full_name(name).ok_or_else(|| {
        Error::data(format!(
            "{name:?} is no name of a type, such as package/msg/Type"
        ))
    })?;
    let mut sections = vec![Section::new(full)];
    let (mut is_heading, mut field_count) = (false, 0);
    for (line, content) in (1..).zip(text.lines()) {
        let at = |error: Error| error.at(format_args!("line {line}"));
        let content = without_comment(content).trim();
        if content.is_empty() {
            continue;
        }
        if content.len() >= 3 && content.bytes().all(|byte| byte == b'=') {
            is_heading = true;
        } else if is_heading {
            sections.push(Section::new(heading(content).map_err(at)?));
            is_heading = false;
            field_count += 1;
        } else if let Some(section) = sections.last_mut() {
            section.read_line(content, line).map_err(at)?;
            field_count += 1;
        }
        if field_count > MAX_FIELDS {
            return Err(at(Error::data(format!(
                "more than {MAX_FIELDS} types, fields and constants"
            ))));
        }
    }
    // A text may begin with a heading for the type itself.
    let is_named = sections[1..]
        .iter()
        .any(|named| named.name == sections[0].name);
    if is_named && sections[0].fields.is_empty() && sections[0].constants.is_empty() {
        sections.remove(0);
        let own = sections
            .iter()
            .position(|named| Some(&named.name) == full_name(name).as_ref());
        sections.swap(0, own.unwrap_or(0));
    }
    for place in 1..sections.len() {
        let earlier = sections[..place]
            .iter()
            .find(|earlier| earlier.name == sections[place].name);
        if earlier.is_some_and(|earlier| !earlier.is_same(&sections[place])) {
            return Err(Error::data(format!(
                "{} is defined twice, in two ways",
                sections[place].name
            )));
        }
    }
    Ok(sections)
}

/// The name after a line of `=`.
fn heading(content: &str) -> Result<String> {
    if content.starts_with("IDL:") {
        return Err(Error::unsupported(
            "it is a definition in IDL; only the text of .msg files is read",
        ));
    }
    let name = content
        .strip_prefix("MSG:")
        .and_then(|name| full_name(name.trim()));
    name.ok_or_else(|| {
        Error::data(format!(
            "{content:?} follows a line of =, needs MSG: package/Type"
        ))
    })
}

impl<'t> Section<'t> {
    fn new(name: String) -> Self {
        Self {
            name,
            fields: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// Whether it has the same fields and constants, on any lines.
    fn is_same(&self, other: &Self) -> bool {
        let fields = |section: &Self| {
            let fields = section.fields.iter();
            fields
                .map(|field| (field.name.to_owned(), field.extent, field.default.clone()))
                .collect::<Vec<_>>()
        };
        let elements = self.fields.iter().map(|field| field.element);
        fields(self) == fields(other)
            && elements.eq(other.fields.iter().map(|field| field.element))
            && self.constants == other.constants
    }

    fn read_line(&mut self, content: &'t str, line: usize) -> Result<()> {
        let (kind, rest) = split_word(content);
        let (element, extent) = read_type(kind)?;
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(rest.len());
        let (name, value) = (&rest[..end], rest[end..].trim());
        if !is_name(name) {
            return Err(Error::data(format!(
                "{content:?} has no name of a field after its type"
            )));
        }
        let is_known = self.fields.iter().any(|field| field.name == name)
            || self.constants.iter().any(|constant| constant.name == name);
        if is_known {
            return Err(Error::data(format!(
                "{} has two fields {name:?}",
                self.name
            )));
        }
        if let Some(value) = value.strip_prefix('=') {
            let Named::Known(element) = element else {
                return Err(Error::data(format!(
                    "constant {name}: {kind} has no constants"
                )));
            };
            if extent != Extent::One {
                return Err(Error::data(format!(
                    "constant {name}: an array has no constants"
                )));
            }
            let value = read_literal(value.trim(), element)
                .map_err(|error| error.at(format_args!("constant {name}")))?;
            self.constants.push(Constant {
                name: name.to_owned(),
                element,
                value,
            });
            return Ok(());
        }
        let default = (!value.is_empty()).then(|| {
            read_default(value, element, extent)
                .map_err(|error| error.at(format_args!("field {name}")))
        });
        self.fields.push(NamedField {
            name,
            element,
            extent,
            default: default.transpose()?,
            line,
        });
        Ok(())
    }
}

/// The first word and the rest after the spaces.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A line up to `#`, unless that is in quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut is_escaped) = (None, false);
    for (place, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '#') => return &line[..place],
            _ => {}
        }
    }
    // A quote that nothing closes is an apostrophe of a comment or a mistake that is found later.
    match quote {
        Some(_) => line.split('#').next().unwrap_or(line),
        None => line,
    }
}

/// A type as a field names it.
fn read_type(kind: &str) -> Result<(Named<'_>, Extent)> {
    let refused = || Error::data(format!("{kind:?} is no type of a field"));
    let (element, extent) = match kind.split_once('[') {
        None => (kind, Extent::One),
        Some((element, extent)) => {
            let extent = extent.strip_suffix(']').ok_or_else(refused)?;
            let extent = match extent.strip_prefix("<=") {
                _ if extent.is_empty() => Extent::Unbounded,
                Some(maximum) => Extent::Bounded(read_size(maximum).ok_or_else(refused)?),
                None => Extent::Fixed(read_size(extent).ok_or_else(refused)?),
            };
            (element, extent)
        }
    };
    let (base, bound) = match element.split_once("<=") {
        None => (element, None),
        Some((base, bound)) => (base, Some(read_size(bound).ok_or_else(refused)?)),
    };
    let element = match (base, bound) {
        ("string", bound) => Named::Known(Element::Text(bound)),
        ("wstring", bound) => Named::Known(Element::WideText(bound)),
        (_, Some(_)) => return Err(refused()),
        (base, None) => match Primitive::from_name(base) {
            Some(primitive) => Named::Known(Element::Number(primitive)),
            None if is_name(base) || full_name(base).is_some() => Named::Struct(base),
            None => return Err(refused()),
        },
    };
    Ok((element, extent))
}

/// A size of at least 1.
fn read_size(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let size = text.parse().ok().filter(|size| *size > 0);
    size.filter(|_| is_number)
}

fn read_default(value: &str, element: Named<'_>, extent: Extent) -> Result<Literal> {
    let Named::Known(element) = element else {
        return Err(Error::data(
            "a message of another type has no default value",
        ));
    };
    if extent == Extent::One {
        return read_literal(value, element);
    }
    let list = value
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let list = list.ok_or_else(|| {
        Error::data(format!(
            "the default value {value} is no list such as [1, 2]"
        ))
    })?;
    let items = split_list(list);
    let items = items.into_iter().map(|item| read_literal(item, element));
    let items = items.collect::<Result<Vec<_>>>()?;
    let count = items.len() as u64;
    let fits = match extent {
        Extent::One | Extent::Unbounded => true,
        Extent::Fixed(size) => count == u64::from(size),
        Extent::Bounded(maximum) => count <= u64::from(maximum),
    };
    fits.then_some(Literal::List(items)).ok_or_else(|| {
        Error::data(format!(
            "the default value has {count} elements, which is not its size"
        ))
    })
}

/// The items of a list, separated by commas that are not in quotes.
fn split_list(list: &str) -> Vec<&str> {
    let (mut items, mut begin, mut quote, mut is_escaped) = (Vec::new(), 0, None, false);
    for (place, letter) in list.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ',') => {
                items.push(list[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    let last = list[begin..].trim();
    if !(items.is_empty() && last.is_empty()) {
        items.push(last);
    }
    items
}

fn read_literal(text: &str, element: Element) -> Result<Literal> {
    match element {
        Element::Text(bound) | Element::WideText(bound) => {
            let text = read_text(text)?;
            let length = if matches!(element, Element::Text(_)) {
                text.len()
            } else {
                text.chars().count()
            };
            match bound {
                Some(bound) if length > bound as usize => Err(Error::data(format!(
                    "{text:?} has a length of {length}, the maximum is {bound}"
                ))),
                _ => Ok(Literal::Text(text)),
            }
        }
        Element::Number(primitive) => read_number(text, primitive)
            .map(Literal::Number)
            .ok_or_else(|| Error::data(format!("{text:?} is no {}", primitive.name()))),
        Element::Struct(_) => Err(Error::data(format!("{text:?} is no message"))),
    }
}

fn read_number(text: &str, primitive: Primitive) -> Option<Number> {
    if primitive == Primitive::Bool {
        return match text {
            "true" | "True" | "1" => Some(Number::Unsigned(1)),
            "false" | "False" | "0" => Some(Number::Unsigned(0)),
            _ => None,
        };
    }
    let Some((low, high)) = primitive.whole_range() else {
        return text.parse().ok().map(Number::Float);
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        _ => (10, digits),
    };
    // A second sign would be read as part of the number.
    let magnitude = u64::from_str_radix(digits, radix).ok();
    let magnitude = magnitude.filter(|_| digits.starts_with(|first: char| first.is_alphanumeric()));
    let number = sign * i128::from(magnitude?);
    let number = (low..=high).contains(&number).then_some(number)?;
    match low {
        0 => u64::try_from(number).ok().map(Number::Unsigned),
        _ => i64::try_from(number).ok().map(Number::Signed),
    }
}

/// A text in quotes, in which a backslash precedes quotes and backslashes, or without quotes.
fn read_text(text: &str) -> Result<String> {
    let Some(quote) = text
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''))
    else {
        return Ok(text.to_owned());
    };
    let mut own = String::with_capacity(text.len());
    let mut letters = text[1..].chars();
    while let Some(letter) = letters.next() {
        if letter == quote {
            return match letters.as_str() {
                "" => Ok(own),
                rest => Err(Error::data(format!("{rest:?} follows the text"))),
            };
        }
        let next = letters.clone().next();
        match (letter, next) {
            ('\\', Some(escaped @ ('"' | '\'' | '\\'))) => {
                letters.next();
                own.push(escaped);
            }
            _ => own.push(letter),
        }
    }
    Err(Error::data(format!("no quote ends {text}")))
}

/// Gives types their places, those of a type after it.
struct Resolver<'s, 't> {
    sections: &'s [Section<'t>],
    /// The place of each section that was reached.
    places: Vec<Option<usize>>,
    types: Vec<StructType>,
    /// How deep the types of each section that was resolved are nested.
    heights: Vec<usize>,
    /// The sections whose fields are being resolved.
    open: Vec<usize>,
}

impl<'s, 't> Resolver<'s, 't> {
    fn new(sections: &'s [Section<'t>]) -> Self {
        Self {
            sections,
            places: vec![None; sections.len()],
            types: Vec::new(),
            heights: vec![0; sections.len()],
            open: Vec::new(),
        }
    }

    fn resolve(mut self) -> Result<Definition> {
        self.visit(0)?;
        Ok(Definition::new(self.types))
    }

    /// The place of a type.
    fn visit(&mut self, section: usize) -> Result<usize> {
        let Section {
            name,
            fields,
            constants,
        } = &self.sections[section];
        if self.open.contains(&section) {
            return Err(Error::data(format!("{name} contains itself")));
        }
        // Of a type that was resolved before, all that it contains is as deep as it was.
        if self.open.len() + self.heights[section].max(1) > MAX_DEPTH {
            return Err(Error::data(format!(
                "types are nested more than {MAX_DEPTH} deep"
            )));
        }
        if let Some(place) = self.places[section] {
            return Ok(place);
        }
        let place = self.types.len();
        self.places[section] = Some(place);
        self.types.push(StructType {
            name: name.clone(),
            fields: Vec::new(),
            constants: constants.clone(),
        });
        self.open.push(section);
        let mut own = Vec::with_capacity(fields.len());
        let mut height = 1;
        for field in fields {
            let element = match field.element {
                Named::Known(element) => element,
                Named::Struct(kind) => {
                    let at = |error: Error| error.at(format_args!("line {}", field.line));
                    let inner = self.find(name, kind).map_err(at)?;
                    let inner_place = self.visit(inner).map_err(at)?;
                    height = height.max(1 + self.heights[inner]);
                    Element::Struct(inner_place)
                }
            };
            own.push(Field {
                name: field.name.to_owned(),
                kind: FieldType {
                    element,
                    extent: field.extent,
                },
                default: field.default.clone(),
            });
        }
        self.open.pop();
        self.heights[section] = height;
        if own.is_empty() {
            own.push(Field {
                name: EMPTY_FIELD.to_owned(),
                kind: FieldType {
                    element: Element::Number(Primitive::Uint8),
                    extent: Extent::One,
                },
                default: None,
            });
        }
        self.types[place].fields = own;
        Ok(place)
    }

    /// The section of a type that a field of `owner` names: one of the same package, or the only
    /// one of this name.
    fn find(&self, owner: &str, kind: &str) -> Result<usize> {
        let package = owner.split('/').next().unwrap_or(owner);
        let full = full_name(kind).unwrap_or_else(|| format!("{package}/msg/{kind}"));
        let mut names = self.sections.iter().map(|section| section.name.as_str());
        if let Some(place) = names.position(|name| name == full) {
            return Ok(place);
        }
        let is_same = |section: &&Section<'_>| section.name.rsplit('/').next() == Some(kind);
        let mut same = self.sections.iter().filter(is_same);
        match (same.next(), same.next()) {
            (Some(only), None) => {
                let place = self
                    .sections
                    .iter()
                    .position(|section| section.name == only.name);
                Ok(place.unwrap_or(0))
            }
            _ => Err(Error::data(format!(
                "type {kind} is no number or string, and the text does not define it"
            ))),
        }
    }
}
