//! The `[body]` part of a scenario, and the settings of bodies that this crate does not know.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tectum::{Error, InputFile, Result};
use tectum_equations::{LIBRARY, System};
use toml::Table;

use super::control::{MppiParameters, Regulator};
use super::disturbances::{Disturbances, MAX_DELAY_SAMPLES};
use super::family::Family;
use super::task::Task;
use super::{Body, Descriptor, NAMES, Start};
use crate::document::{Key, Located, Section, TomlSource, read_defaults};
use crate::registry::{AsTable, Custom, Described};

/// The copy of an equation file in a run folder.
pub const PLANT_FILE: &str = "body.plant";

/// The settings of a body in a scenario, and the body made from them; for
/// [`Descriptor::with_settings`].
pub trait PlantSettings: Send + Sync {
    /// Reads the keys of `[body]` besides `name` and `start`. Every key that it asks for is known;
    /// the others are refused with file and line.
    ///
    /// # Errors
    /// `Data` naming file and line, as [`Section`] reports it.
    fn read(section: &mut Section<'_, '_>) -> Result<Self>
    where
        Self: Sized;

    /// Makes the body, at its start for seed 0.
    ///
    /// # Errors
    /// Settings or a start that the body does not support.
    fn make(&self, start: Start) -> Result<Box<dyn Body>>;

    /// Makes the body that runs, if it differs from the one that its controllers know.
    ///
    /// # Errors
    /// As [`PlantSettings::make`].
    fn plant(&self, start: Start) -> Result<Box<dyn Body>> {
        self.make(start)
    }

    /// Makes the body with disturbances, if those depend on the settings; otherwise it is made as
    /// the descriptor says.
    fn disturbed(
        &self,
        _disturbances: Disturbances,
        _start: Start,
    ) -> Option<Result<Box<dyn Body>>> {
        None
    }

    /// Whether the body that runs is outside of the process: trials, which step a body before the
    /// run, then use the one of [`PlantSettings::make`].
    fn is_remote(&self) -> bool {
        false
    }

    /// The settings themselves, for a module that knows their type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Parameters of MPPI over a twin, if they depend on the settings; otherwise they are the
    /// descriptor's.
    fn mppi(&self) -> Option<Result<MppiParameters>> {
        None
    }

    /// Whether the settings change the body from the one that kernels step many of.
    fn changes_batches(&self) -> bool {
        false
    }

    /// The task, if it depends on the settings; otherwise it is the descriptor's, or none for a
    /// body of equations.
    fn task(&self) -> Option<Box<dyn Task>> {
        None
    }

    /// Whether the descriptor's task applies where the settings have none.
    fn has_default_task(&self) -> bool {
        true
    }

    /// Settings of the regulator, if they depend on the settings, or why there are none; otherwise
    /// they are the descriptor's.
    fn regulator(&self) -> Option<Result<Regulator>> {
        None
    }

    /// The files that the body comes from, with the hashes of what was read, for receipts.
    fn input_files(&self) -> Vec<InputFile> {
        Vec::new()
    }

    /// The text of the file that the body comes from, or a list of its files: a run folder has a
    /// copy, which a continued or repeated run reads.
    fn text(&self) -> Option<&str> {
        None
    }

    /// The name of that copy.
    fn text_file(&self) -> &'static str {
        PLANT_FILE
    }

    /// Versions of the programs that step the body, by name, for receipts.
    fn versions(&self) -> Table {
        Table::new()
    }

    /// The equations that the body steps by, with the values of their parameters in base units.
    fn equations(&self) -> Option<(&Arc<System>, &[f64])> {
        None
    }
}

/// Settings of a body that can be written.
pub trait CustomSettings: PlantSettings + AsTable {}

impl<S: PlantSettings + AsTable> CustomSettings for S {}

/// Reads the settings of a body that has some.
pub type ReadSettings = fn(&mut Section<'_, '_>) -> Result<Custom<dyn CustomSettings>>;

/// Reads settings of one type.
pub(super) fn read_settings<S: PlantSettings + Serialize + Debug + 'static>(
    section: &mut Section<'_, '_>,
) -> Result<Custom<dyn CustomSettings>> {
    Ok(Custom(Arc::new(S::read(section)?)))
}

/// Makes a body with default settings of one type.
pub(super) fn make_default<S: PlantSettings>(start: Start) -> Result<Box<dyn Body>> {
    read_defaults(|section| S::read(section))?.make(start)
}

/// The `[body]` part of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BodySettings {
    /// One of [`BODIES`](super::BODIES), or a registered name.
    pub name: String,
    /// Where it starts; the body's default if absent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "start_name")]
    pub start: Option<Start>,
    /// How the rig differs from the identified one; its controllers do not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbances: Option<Disturbances>,
    /// Settings of a body that is not built in.
    #[serde(flatten)]
    pub custom: Option<Custom<dyn CustomSettings>>,
}

impl BodySettings {
    /// A built-in or registered body with default settings.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start: None,
            disturbances: None,
            custom: None,
        }
    }

    /// The body that a loop runs, known by its name and the settings that its user states.
    pub(crate) fn described(name: &str, settings: Table) -> Self {
        let described = |table| {
            Custom(Arc::new(Described {
                name: name.to_owned(),
                table,
            }) as Arc<dyn CustomSettings>)
        };
        Self {
            custom: Some(settings)
                .filter(|settings| !settings.is_empty())
                .map(described),
            ..Self::named(name)
        }
    }

    /// Reads the section `[body]`, and makes the body as controllers know it.
    pub(crate) fn read(
        mut section: Section<'_, '_>,
        source: TomlSource<'_>,
    ) -> Result<(Self, Box<dyn Body>)> {
        let Located { value, place } = match Family::read(&mut section)? {
            Some(name) => name,
            None => {
                let about = "one of the bodies below, or a registered name";
                let Located { value, place } = section.required(Key::new("name", about))?;
                Located {
                    value: Cow::Borrowed(value),
                    place,
                }
            }
        };
        let name = &*value;
        let unknown = || {
            if source.is_record {
                NAMES.unregistered(name)
            } else {
                NAMES.unknown(name)
            }
        };
        let descriptor = Descriptor::find(name).ok_or_else(|| source.error(&place, unknown()))?;
        let start = section.string(
            Key::new(
                "start",
                "where it starts: `\"hanging\"`, or `\"random\"` as the body itself resets",
            )
            .or("the body's first start"),
        )?;
        let place = start.as_ref().map_or(place, |start| start.place.clone());
        let located = |error: Error| source.error(&place, error);
        let start = start
            .map(|start| Start::from_name(start.value))
            .transpose()
            .map_err(located)?;
        let file = format!("{name}.plant");
        if section.has("parameters")
            && descriptor.settings.is_none()
            && LIBRARY.iter().any(|(shipped, _)| *shipped == file)
        {
            return Err(located(Error::invalid(format!(
                "body {name} has no parameters here; body \"{file}\", the same equations, has"
            ))));
        }
        let is_disturbed = section.has("disturbances");
        let disturbances = section.section(Key::new(
            "disturbances",
            "How a rig differs from the model that its controllers have.",
        ))?;
        let custom = descriptor
            .settings
            .map(|read| read(&mut section))
            .transpose()?;
        let mut settings = Self {
            name: name.to_owned(),
            start,
            disturbances: None,
            custom,
        };
        let body = settings.model().map_err(located)?;
        section.finish()?;
        if is_disturbed {
            if settings.equations().is_some() {
                return Err(located(Error::invalid(
                    "an equation file has no disturbances: its noise is in the file, and [body.actual] changes its parameters",
                )));
            }
            descriptor.require_disturbed().map_err(located)?;
            settings.disturbances = Some(read_disturbances(disturbances)?);
        }
        Ok((settings, body))
    }

    /// A body of a family by name, without other keys, which is reached now; none for another name.
    pub(super) fn of_family(name: &str) -> Option<Result<Self>> {
        Family::of(name).map(|_| Self::read_named(name))
    }

    fn read_named(name: &str) -> Result<Self> {
        let text = Table::from_iter([("name".to_owned(), name.into())]).to_string();
        let warnings = RefCell::default();
        let source = TomlSource {
            origin: name,
            text: &text,
            is_record: false,
            warnings: &warnings,
            asked: None,
        };
        let document = source.parse()?;
        Self::read(Section::root(source, document.get_ref()), source).map(|(settings, _)| settings)
    }

    /// Whether the body that runs is outside of the process, and must not be stepped except by the
    /// loop of a run.
    pub(crate) fn is_remote(&self) -> bool {
        self.custom
            .as_ref()
            .is_some_and(|settings| settings.is_remote())
    }

    /// Makes the body as controllers know it, at its start for seed 0: without disturbances.
    ///
    /// # Errors
    /// A name that is neither built in nor registered; a start or settings that the body does not
    /// support.
    pub fn model(&self) -> Result<Box<dyn Body>> {
        self.make(None, |settings, start| settings.make(start))
    }

    /// Makes the task that a run is judged by; none for an equation file without a goal.
    ///
    /// # Errors
    /// A name that is neither built in nor registered.
    pub fn task(&self) -> Result<Option<Box<dyn Task>>> {
        let settings = self.custom.as_ref();
        let own = settings.and_then(|settings| settings.task());
        let has_default = settings.is_none_or(|settings| settings.has_default_task());
        if own.is_some() || !has_default {
            Ok(own)
        } else {
            Descriptor::of(&self.name).map(|body| Some((body.task)()))
        }
    }

    /// Settings of the regulator and of the planner.
    ///
    /// # Errors
    /// `Invalid` for a body without weights.
    pub fn regulator(&self) -> Result<Regulator> {
        let own = self
            .custom
            .as_ref()
            .and_then(|settings| settings.regulator());
        own.unwrap_or_else(|| Regulator::of(&self.name))
    }

    /// Parameters of MPPI over a twin.
    ///
    /// # Errors
    /// `Unsupported` for a body without defaults.
    pub(crate) fn mppi(&self) -> Result<MppiParameters> {
        let own = self.custom.as_ref().and_then(|settings| settings.mppi());
        own.unwrap_or_else(|| MppiParameters::for_body(&self.name))
    }

    /// Whether kernels that step many instances do not know its settings.
    pub(crate) fn changes_batches(&self) -> bool {
        self.custom
            .as_ref()
            .is_some_and(|settings| settings.changes_batches())
    }

    /// The files that the body comes from, with the hashes of what was read.
    pub fn input_files(&self) -> Vec<InputFile> {
        let settings = self.custom.as_ref();
        settings.map_or_else(Vec::new, |settings| settings.input_files())
    }

    /// The text of the equation file that the body comes from, also of one that ships; of a MuJoCo
    /// model, the list of its files.
    pub fn text(&self) -> Option<&str> {
        self.custom.as_ref().and_then(|settings| settings.text())
    }

    /// The name of the file of a run folder that has this text.
    pub fn text_file(&self) -> &'static str {
        let settings = self.custom.as_ref();
        settings.map_or(PLANT_FILE, |settings| settings.text_file())
    }

    /// Versions of the programs that step the body, by name.
    pub(crate) fn versions(&self) -> Table {
        let settings = self.custom.as_ref();
        settings.map_or_else(Table::new, |settings| settings.versions())
    }

    /// The equations that the body steps by, with the values of their parameters in base units, if
    /// it comes from an equation file.
    pub fn equations(&self) -> Option<(&Arc<System>, &[f64])> {
        self.custom
            .as_ref()
            .and_then(|settings| settings.equations())
    }

    /// Makes the body with its disturbances, at its start for seed 0.
    ///
    /// # Errors
    /// As [`BodySettings::model`].
    pub fn plant(&self) -> Result<Box<dyn Body>> {
        self.make(self.disturbances, |settings, start| settings.plant(start))
    }

    fn make(
        &self,
        disturbances: Option<Disturbances>,
        own: fn(&dyn CustomSettings, Start) -> Result<Box<dyn Body>>,
    ) -> Result<Box<dyn Body>> {
        let descriptor =
            Descriptor::find(&self.name).ok_or_else(|| NAMES.unregistered(&self.name))?;
        let start = self.start.unwrap_or(descriptor.starts[0]);
        let body = match (disturbances, &self.custom) {
            (Some(disturbances), custom) => match custom
                .as_ref()
                .and_then(|settings| settings.disturbed(disturbances, start))
            {
                Some(body) => body,
                None => descriptor.require_disturbed()?(disturbances, start),
            },
            (None, Some(settings)) => own(&**settings, start),
            (None, None) => (descriptor.make)(start),
        }?;
        // Controllers find what is known of a body by this name.
        match body.spec().name == self.name {
            true => Ok(body),
            false => Err(Error::invalid(format!(
                "body {:?}: its specification has the name {:?}",
                self.name,
                body.spec().name
            ))),
        }
    }

    /// The keys of `[body]` besides the name.
    pub(crate) fn table(&self) -> Result<Table> {
        let mut table = self.to_table()?;
        table.remove("name");
        Ok(table)
    }
}

impl PlantSettings for Described {
    fn read(_: &mut Section<'_, '_>) -> Result<Self> {
        Err(Error::unsupported(
            "a description is not read from a scenario",
        ))
    }

    fn make(&self, _: Start) -> Result<Box<dyn Body>> {
        Err(NAMES.unregistered(&self.name))
    }
}

fn read_disturbances(mut section: Section<'_, '_>) -> Result<Disturbances> {
    let exact = Disturbances::default();
    let disturbances = Disturbances {
        pole_length: section.within_or(
            Key::new("pole_length", "length of the pole").unit("× the identified one"),
            0.1..=10.0,
            exact.pole_length,
        )?,
        delay_samples: section.whole_or(
            Key::new(
                "delay_samples",
                "delay of the readings beyond the identified one",
            )
            .unit("periods"),
            0..=MAX_DELAY_SAMPLES as u64,
            exact.delay_samples as u64,
        )? as usize,
        noise: section.within_or(
            Key::new("noise", "noise of the readings; 0: exact readings").unit("× the recording's"),
            0.0..=100.0,
            exact.noise,
        )?,
        outlier_fraction: section.within_or(
            Key::new(
                "outlier_fraction",
                "share of angles replaced by random ones",
            ),
            0.0..=1.0,
            exact.outlier_fraction,
        )?,
    };
    section.finish()?;
    Ok(disturbances)
}

fn start_name<S: Serializer>(
    start: &Option<Start>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(match start {
        Some(Start::Random) => "random",
        Some(Start::Hanging) | None => "hanging",
    })
}
