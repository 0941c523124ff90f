//! Brains that this crate does not know: registered by name, or only described.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use tectum::{Error, Result};
use toml::Table;

use super::BRAIN_NAMES;
use super::recipe::{BrainContext, BrainSettings, Recipe};
use crate::body::BodySpec;
use crate::document::Section;
use crate::registry::{AsTable, Custom, Described, Registry};

/// The names of brains.
pub(super) static NAMES: Registry<Entry> = Registry::new("brain", || BRAIN_NAMES.to_vec());

/// What is registered of a brain: its settings by default, and those of a scenario.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    standard: fn() -> Option<Custom<dyn CustomSettings>>,
    read: fn(&mut Section<'_, '_>, &BodySpec) -> Result<Custom<dyn CustomSettings>>,
    reference: fn() -> Option<[&'static str; 2]>,
}

/// The registered brains that the reference of scenarios describes: name, meaning and example.
pub(crate) fn described() -> Vec<(&'static str, [&'static str; 2])> {
    let added = NAMES.added().into_iter();
    added
        .filter_map(|(name, entry)| Some((name, (entry.reference)()?)))
        .collect()
}

/// Settings of a brain that can be written.
pub trait CustomSettings: BrainSettings + AsTable {}

impl<S: BrainSettings + AsTable> CustomSettings for S {}

/// The settings of a brain that is not built in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CustomBrain {
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) settings: Custom<dyn CustomSettings>,
}

/// Makes a brain a word of scenarios: `[brain] name = "NAME"` is then read, written, built, resumed
/// and repeated as the built-in brains are.
///
/// `S` are its settings: they read the keys of `[brain]`, are written as the same keys, and make
/// the brain. A type without keys is a struct without fields. The registration lasts as long as the
/// process, and may be made on any thread.
///
/// # Errors
/// `Invalid` for a name that is built in, already registered, or not made of letters, digits and
/// `_`.
///
/// # Example
/// ```
/// use serde::Serialize;
/// use tectum::Result;
/// use tectum_control::body::BodySpec;
/// use tectum_control::brain::{BrainContext, BrainSettings, Recipe, Stateless, register_brain};
/// use tectum_control::scenario::{Scenario, Section};
///
/// /// Always the same action.
/// #[derive(Debug, Serialize)]
/// struct Constant { action: f64 }
///
/// impl BrainSettings for Constant {
///     fn standard() -> Option<Self> { Some(Self { action: 0.0 }) }
///     fn read(section: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
///         Ok(Self { action: section.within("action", -2.0..=2.0)?.unwrap_or(0.0) })
///     }
///     fn recipe(&self, _: &BrainContext<'_>) -> Result<Recipe> {
///         let value = self.action as f32;
///         Ok(Recipe::Host(Box::new(Stateless::new("constant", move |_, action| action.fill(value)))))
///     }
/// }
///
/// register_brain::<Constant>("constant")?;
/// let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"constant\"\naction = 1.5\n";
/// assert_eq!(Scenario::parse(text, "a.toml", "a")?.brain.name(), "constant");
/// let error = Scenario::parse(&text.replace("1.5", "3"), "a.toml", "a").unwrap_err();
/// assert_eq!(error.to_string(), "a.toml:5: action is 3, needs a number from -2 to 2");
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn register_brain<S: BrainSettings + Serialize + Debug + Send + Sync + 'static>(
    name: &'static str,
) -> Result<()> {
    fn custom<S: CustomSettings + 'static>(settings: S) -> Custom<dyn CustomSettings> {
        Custom(Arc::new(settings))
    }
    NAMES.add(
        name,
        Entry {
            standard: || S::standard().map(custom),
            read: |section, body| S::read(section, body).map(custom),
            reference: S::reference,
        },
    )
}

impl CustomBrain {
    /// A registered brain with default settings.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (name, entry) = NAMES.get(name)?;
        (entry.standard)().map(|settings| Self { name, settings })
    }

    /// Reads the settings of a registered brain; none for an unknown one.
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_, '_>,
        body: &BodySpec,
    ) -> Result<Option<Self>> {
        let Some((name, entry)) = NAMES.get(name) else {
            return Ok(None);
        };
        Ok(Some(Self {
            name,
            settings: (entry.read)(section, body)?,
        }))
    }

    /// A brain that is known by name and settings, and cannot be built from them.
    pub(super) fn described(name: &'static str, table: Table) -> Self {
        Self {
            name,
            settings: Custom(Arc::new(Described {
                name: name.to_owned(),
                table,
            })),
        }
    }
}

impl BrainSettings for Described {
    fn standard() -> Option<Self> {
        None
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Err(Error::unsupported(
            "a description is not read from a scenario",
        ))
    }

    fn recipe(&self, _: &BrainContext<'_>) -> Result<Recipe> {
        Err(NAMES.unregistered(&self.name))
    }
}
