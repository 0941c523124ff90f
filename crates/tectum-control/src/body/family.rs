//! Families of bodies: bodies that are outside of the process, or come from files, and whose names
//! begin alike.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use tectum::{Error, Result};
use toml::Table;

use super::Descriptor;
use crate::document::{Key, Located, Section};

/// Bodies whose names begin alike: the rest of a name says which one it is.
///
/// `[body] KEY = "VALUE"` states the body in a scenario; its name, in scenarios and receipts, is
/// the value with the prefix before it, unless the value begins with the prefix.
pub struct Family {
    /// How the names begin.
    pub prefix: &'static str,
    /// The key of `[body]`.
    pub key: &'static str,
    /// What the key means, for the reference of scenarios.
    pub about: &'static str,
    /// What all of them have in common.
    pub descriptor: &'static Descriptor,
    /// Reads the other keys of `[body]`, for the reference of scenarios; makes no body.
    pub read_keys: fn(&mut Section<'_, '_>) -> Result<Table>,
    /// A scenario's `[body]` with all keys.
    pub example: &'static str,
    /// What introduces the example in the reference.
    pub heading: &'static str,
}

static FAMILIES: RwLock<Vec<&'static Family>> = RwLock::new(Vec::new());

/// Keys of `[body]` that families of other crates have, for the error of a build without them.
const LINK_KEYS: [&str; 4] = ["remote", "listen", "serial", "ros2"];

/// Adds a family. The registration lasts as long as the process, and may be made on any thread; the
/// same family may be registered again.
///
/// # Errors
/// `Invalid` for a key or a prefix that another family has.
pub fn register_family(family: &'static Family) -> Result<()> {
    let mut families = FAMILIES.write().unwrap_or_else(PoisonError::into_inner);
    if families.iter().any(|known| std::ptr::eq(*known, family)) {
        return Ok(());
    }
    if families
        .iter()
        .any(|known| known.key == family.key || known.prefix == family.prefix)
    {
        return Err(Error::invalid(format!(
            "register bodies {:?}: the key or the prefix is already registered",
            family.key
        )));
    }
    families.push(family);
    Ok(())
}

impl Family {
    /// The registered families, in the order of registration.
    pub fn all() -> Vec<&'static Self> {
        FAMILIES
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The family of a body's name.
    pub fn of(name: &str) -> Option<&'static Self> {
        let families = Self::all().into_iter();
        families
            .filter(|family| name.starts_with(family.prefix))
            .max_by_key(|family| family.prefix.len())
    }

    /// The name that a key of a family states; none where there is no such key.
    pub(super) fn read<'d>(section: &mut Section<'d, '_>) -> Result<Option<Located<Cow<'d, str>>>> {
        let families = Self::all();
        let known = |key: &&str| families.iter().any(|family| family.key == *key);
        if let Some(key) = LINK_KEYS.iter().find(|key| section.has(key) && !known(key)) {
            return Err(Error::unsupported(format!(
                "[body] {key}: this build leaves it out: the feature \"link\" is off"
            )));
        }
        let mut found = None;
        for family in families {
            if !section.has(family.key) {
                continue;
            }
            let key = Key::new(family.key, family.about).or("none");
            let Some(Located { value, place }) = section.string(key)? else {
                continue;
            };
            if found.is_some() || section.has("name") {
                return Err(section.fault(format_args!(
                    "one key states the body: {:?} is one too many",
                    family.key
                )));
            }
            let value = match value.starts_with(family.prefix) {
                true => Cow::Borrowed(value),
                false => Cow::Owned(format!("{}{value}", family.prefix)),
            };
            found = Some(Located { value, place });
        }
        Ok(found)
    }
}
