//! Names that a process adds to those of the crate, which scenarios may then use.
//!
//! A list is global to the process and only grows. A name in a file must mean the same wherever the
//! process reads it: when a scenario is parsed, when a run is resumed or repeated, and on the
//! thread that rebuilds a brain after a fault. A list that is passed as an argument would have to
//! reach each of these places.

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use tectum::{Error, Result};
use toml::Table;

use crate::nearest::suggestion;

/// The names of one kind, and what is registered under those that are not built in.
pub(crate) struct Registry<T: 'static> {
    kind: &'static str,
    built_in: fn() -> Vec<&'static str>,
    added: RwLock<Vec<(&'static str, T)>>,
}

impl<T: Copy> Registry<T> {
    /// Begins with the names that are built in.
    pub const fn new(kind: &'static str, built_in: fn() -> Vec<&'static str>) -> Self {
        Self {
            kind,
            built_in,
            added: RwLock::new(Vec::new()),
        }
    }

    /// Adds a name.
    ///
    /// # Errors
    /// `Invalid` for a name that is built in, already registered, or not made of letters, digits
    /// and `_`.
    pub fn add(&self, name: &'static str, entry: T) -> Result<()> {
        let refused = |reason: &str| {
            Err(Error::invalid(format!(
                "register {} {name:?}: {reason}",
                self.kind
            )))
        };
        // The check and the addition are under one lock. A panic of another thread leaves a whole
        // list, so a poisoned lock is used.
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return refused("a name is made of letters, digits and _");
        } else if (self.built_in)().contains(&name) {
            return refused("the name is built in");
        } else if added.iter().any(|(known, _)| *known == name) {
            return refused("the name is already registered");
        }
        added.push((name, entry));
        Ok(())
    }

    /// What is registered, in the order of registration.
    pub fn added(&self) -> Vec<(&'static str, T)> {
        self.added
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Finds a registered name.
    pub fn get(&self, name: &str) -> Option<(&'static str, T)> {
        self.added().into_iter().find(|(known, _)| *known == name)
    }

    /// All names: the built-in ones, then the registered ones.
    pub fn names(&self) -> Vec<&'static str> {
        (self.built_in)()
            .into_iter()
            .chain(self.added().into_iter().map(|(name, _)| name))
            .collect()
    }

    /// The error for a name that a user gives.
    pub fn unknown(&self, name: &str) -> Error {
        let names = self.names();
        Error::invalid(format!(
            "{} {name:?} is unknown{}; known: {}",
            self.kind,
            suggestion(name, names.iter().copied()),
            names.join(", ")
        ))
    }

    /// The error for a name that a run recorded: the process that ran it knew more names.
    pub fn unregistered(&self, name: &str) -> Error {
        let built_in = (self.built_in)().join(", ");
        let added: Vec<&str> = self.added().into_iter().map(|(name, _)| name).collect();
        let added = if added.is_empty() {
            String::new()
        } else {
            format!("; registered: {}", added.join(", "))
        };
        Error::invalid(format!(
            "{} {name:?} is not built in and not registered in this process; built in: {built_in}{added}",
            self.kind
        ))
    }
}

/// A value that is written as a table.
pub trait AsTable: Debug + Send + Sync {
    /// Its keys and values.
    ///
    /// # Errors
    /// `Data` for a value that TOML cannot represent.
    fn to_table(&self) -> Result<Table>;
}

impl<T: Serialize + Debug + Send + Sync> AsTable for T {
    fn to_table(&self) -> Result<Table> {
        // A type without fields has no keys.
        if serde_json::to_value(self).is_ok_and(|value| value.is_null()) {
            return Ok(Table::new());
        }
        Table::try_from(self).map_err(|source| {
            Error::data("settings cannot be written as a table").with_source(source)
        })
    }
}

/// Settings of a type that the crate does not know, written and compared by their table.
pub struct Custom<D: ?Sized>(pub(crate) Arc<D>);

impl<D: ?Sized> Clone for Custom<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D: ?Sized> Deref for Custom<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

impl<D: AsTable + ?Sized> Debug for Custom<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl<D: AsTable + ?Sized> PartialEq for Custom<D> {
    fn eq(&self, other: &Self) -> bool {
        matches!((D::to_table(&self.0), D::to_table(&other.0)), (Ok(a), Ok(b)) if a == b)
    }
}

impl<D: AsTable + ?Sized> Serialize for Custom<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        // Of the settings themselves: this type has the method too, which would call itself.
        D::to_table(&self.0)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

/// Settings that are known by name and value, while what they configure cannot be built from them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Described {
    #[serde(skip)]
    pub name: String,
    #[serde(flatten)]
    pub table: Table,
}

#[cfg(test)]
mod tests {
    use super::Registry;

    #[test]
    fn a_name_is_added_once_and_never_in_place_of_a_built_in_one() {
        let names = Registry::new("brain", || vec!["zero"]);
        names.add("pid", 1).expect("new");
        for (name, reason) in [
            ("pid", "the name is already registered"),
            ("zero", "the name is built in"),
            ("", "a name is made of letters, digits and _"),
            ("a.b", "a name is made of letters, digits and _"),
        ] {
            let error = names.add(name, 2).expect_err(reason);
            assert_eq!(
                error.to_string(),
                format!("register brain {name:?}: {reason}")
            );
        }
        assert_eq!(
            (names.get("pid"), names.get("zero"), names.names()),
            (Some(("pid", 1)), None, vec!["zero", "pid"])
        );
        assert_eq!(
            names.unknown("p").to_string(),
            "brain \"p\" is unknown; known: zero, pid"
        );
        let unregistered = "brain \"p\" is not built in and not registered in this process; built in: zero; registered: pid";
        assert_eq!(names.unregistered("p").to_string(), unregistered);
        let added = std::thread::scope(|scope| {
            let threads = [0; 8].map(|_| scope.spawn(|| names.add("other", 3).is_ok()));
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .filter(|added| *added)
                .count()
        });
        assert_eq!((added, names.names().len()), (1, 3));
    }
}
