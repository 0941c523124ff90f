//! Physical parameters of a built-in body in a scenario: `[body.parameters]`.

use serde::Serialize;
use tectum::Result;
use toml::Table;

use crate::document::{Key, Section};

/// A parameter of a body.
pub(super) struct Parameter<P> {
    pub name: &'static str,
    pub unit: &'static str,
    /// What it is, in one sentence without a full stop.
    pub about: &'static str,
    pub range: [f64; 2],
    pub get: fn(&P) -> f64,
    pub set: fn(&mut P, f64),
}

/// The parameters of a body, and which of them a scenario changes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BodyParameters<P> {
    #[serde(skip)]
    pub values: P,
    #[serde(rename = "parameters", skip_serializing_if = "Table::is_empty")]
    pub changed: Table,
}

impl<P: Default> BodyParameters<P> {
    /// Reads the table of a section, if there is one.
    pub fn read(
        section: &mut Section<'_, '_>,
        about: &str,
        known: &[Parameter<P>],
    ) -> Result<Self> {
        let mut given = section.section(Key::new("parameters", about))?;
        let (mut values, mut changed) = (P::default(), Table::new());
        for Parameter {
            name,
            unit,
            about,
            range: [low, high],
            get,
            set,
        } in known
        {
            let key = Key::new(name, about).unit(unit).or(get(&values));
            let own = get(&values);
            if let Some(value) = given
                .within(key, *low..=*high)?
                .filter(|value| *value != own)
            {
                set(&mut values, value);
                changed.insert((*name).to_owned(), value.into());
            }
        }
        given.finish()?;
        Ok(Self { values, changed })
    }
}
