//! JSON without duplicate keys: readers disagree about the meaning of a duplicate.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use tectum::{Error, Result};

/// What some editors write before a text of UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a document, with or without a byte order mark.
///
/// # Errors
/// `Data` with line and column: not JSON, nesting deeper than 127, a duplicate key in one object.
pub(super) fn parse(text: &str) -> Result<Value> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = UniqueKeys
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    value.map_err(
        |error| match no_number(text, error.line(), error.column()) {
            Some(token) => Error::data(format!(
                "not JSON: {token} at line {}; JSON has only finite numbers",
                error.line()
            )),
            None => Error::data(format!("not JSON: {error}")),
        },
    )
}

/// A token that other writers use for a number that is not finite, if an error is in it.
fn no_number(text: &str, line: usize, column: usize) -> Option<&str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let is_inside = |character: char| character.is_ascii_alphabetic() || character == '-';
    let at = column.saturating_sub(1).min(line.len());
    let start = line
        .get(..at)?
        .rfind(|character| !is_inside(character))
        .map_or(0, |before| before + 1);
    let token = line
        .get(start..)?
        .split(|character| !is_inside(character))
        .next()?;
    ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"]
        .contains(&token)
        .then_some(token)
}

/// A value whose objects have no duplicate keys.
#[derive(Clone, Copy)]
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> std::result::Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> std::result::Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = parts.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> std::result::Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = parts.next_key::<String>()? {
            let value = parts.next_value_seed(self)?;
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "key {} occurs twice",
                    super::warnings::quoted(&key)
                )));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn numbers_that_are_not_finite_are_named() {
        for (text, expected) in [
            (
                "{\"a\": NaN}",
                "not JSON: NaN at line 1; JSON has only finite numbers",
            ),
            (
                "{\"a\":\n [1, Infinity]}",
                "not JSON: Infinity at line 2; JSON has only finite numbers",
            ),
            (
                "[-Infinity]",
                "not JSON: -Infinity at line 1; JSON has only finite numbers",
            ),
            ("[none]", "not JSON: expected"),
            ("[1, é NaN]", "not JSON: expected value"),
            ("", "not JSON: EOF"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
