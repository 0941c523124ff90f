//! A key of a scenario, with what the reference of scenarios says about it.

use std::fmt::Display;

/// Values of keys that are tables.
pub(super) const TABLE: &str = "a table";
pub(super) const TABLES: &str = "a list of tables";

/// A key that a reader of a [`Section`](super::Section) asks for. A name alone is one, of which the
/// reference says no more than its values.
#[derive(Debug, Clone)]
pub struct Key<'k> {
    pub(super) name: &'k str,
    about: &'k str,
    unit: &'k str,
    default: String,
    shown: Option<&'k str>,
    values: Option<&'k str>,
}

impl<'k> Key<'k> {
    /// A key and its meaning, in one sentence without a full stop.
    pub fn new(name: &'k str, about: &'k str) -> Self {
        Self {
            name,
            about,
            unit: "",
            default: String::new(),
            shown: None,
            values: None,
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self, unit: &'k str) -> Self {
        Self { unit, ..self }
    }

    /// The value that applies if it is absent, or where that comes from. It is only named here; the
    /// reader applies it.
    #[must_use]
    pub fn or(self, default: impl Display) -> Self {
        Self {
            default: default.to_string(),
            ..self
        }
    }

    /// What its values are, where they depend on the body.
    #[must_use]
    pub fn values(self, values: &'k str) -> Self {
        Self {
            values: Some(values),
            ..self
        }
    }

    /// The name that represents it and its siblings, where it is one of several like names.
    #[must_use]
    pub fn one_of(self, shown: &'k str) -> Self {
        Self {
            shown: Some(shown),
            ..self
        }
    }

    pub(super) fn shown(&self) -> &'k str {
        self.shown.unwrap_or(self.name)
    }

    pub(super) fn row(&self, table: &str, values: String) -> KeyRow {
        let values = self.values.map_or(values, str::to_owned);
        let [table, key, unit, about] =
            [table, self.shown(), self.unit, self.about].map(str::to_owned);
        let is_table = values == TABLE || values == TABLES;
        KeyRow {
            table,
            key,
            values,
            unit,
            default: self.default.clone(),
            about,
            is_table,
        }
    }
}

impl<'k> From<&'k str> for Key<'k> {
    fn from(name: &'k str) -> Self {
        Self::new(name, "")
    }
}

impl<'k> From<&'k String> for Key<'k> {
    fn from(name: &'k String) -> Self {
        Self::new(name, "")
    }
}

/// A key as the reference lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRow {
    /// The table that it is in; a list of tables in brackets.
    pub table: String,
    pub key: String,
    /// Its type and range.
    pub values: String,
    pub unit: String,
    pub default: String,
    pub about: String,
    /// Whether it is a table or a list of tables, with keys of its own.
    pub is_table: bool,
}
