//! Scenarios: which body, which brain and how the loop runs, read from TOML. `docs/scenarios.md`
//! lists every key.
//!
//! ```toml
//! [body]
//! name = "rig"
//!
//! [brain]
//! name = "mppi"
//! samples = 256
//!
//! [loop]
//! seconds = 60
//! clock = "real"
//! ```

pub mod build;

use std::cell::RefCell;
use std::fmt::Debug;
use std::path::Path;

use serde::Serialize;
use tectum::{Error, Result};

pub use crate::body::BodySettings;
use crate::body::{Descriptor, equations};
pub use crate::brain::{BRAIN_NAMES, BrainSpec};
pub use crate::clock::ClockKind;
use crate::closed_loop::settings::MAX_SECONDS;
use crate::closed_loop::{ClosedLoop, Workload};
pub use crate::closed_loop::{LoopSettings, Overrun};
pub use crate::document::{Key, Located, Section};
use crate::document::{KeyRow, TomlSource};
use crate::nearest::suggestion;
use crate::real_time::{MAX_PRIORITY, RealTime};
use crate::recorded;
use crate::registry::AsTable;

/// A checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// The name in runs and receipts: the file's name, unless the file gives one.
    pub name: String,
    /// The plant.
    pub body: BodySettings,
    /// The controller.
    pub brain: BrainSpec,
    /// Settings of the run.
    #[serde(rename = "loop")]
    pub run: LoopSettings,
    /// What reading it found that a user should know: names of an earlier version, with their
    /// places.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Scenarios embedded in every build, so that the short names work in any directory.
const EMBEDDED: [(&str, &str); 6] = [
    ("pendulum", include_str!("../scenarios/pendulum.toml")),
    (
        "gym_pendulum",
        include_str!("../scenarios/gym_pendulum.toml"),
    ),
    ("learner", include_str!("../scenarios/learner.toml")),
    ("other_rig", include_str!("../scenarios/other_rig.toml")),
    ("cart_pole", include_str!("../scenarios/cart_pole.toml")),
    ("seeker", include_str!("../scenarios/seeker.toml")),
];

/// The scenarios that every build carries: short name and text.
pub fn embedded() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.into_iter()
}

impl Scenario {
    /// Finds and reads a scenario.
    ///
    /// A name with a slash or the ending `.toml` is a path. Any other is `scenarios/NAME.toml` in
    /// the working directory or else the embedded copy.
    ///
    /// # Errors
    /// `Invalid` for an unknown name; `Io` for a file that cannot be read; `Data` as
    /// [`Scenario::parse`].
    pub fn open(name: &str) -> Result<Self> {
        let scenario = Self::find(name)?;
        tracing::info!(
            name,
            body = scenario.body.name,
            brain = scenario.brain.name(),
            seconds = scenario.run.seconds,
            "scenario read"
        );
        Ok(scenario)
    }

    fn find(name: &str) -> Result<Self> {
        let is_path = name.contains(['/', std::path::MAIN_SEPARATOR]) || name.ends_with(".toml");
        let local = format!("scenarios/{name}.toml");
        if is_path {
            return Self::read(Path::new(name));
        } else if Path::new(&local).is_file() {
            return Self::read(Path::new(&local));
        }
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(text, name, name),
            None => {
                let known = EMBEDDED.map(|(known, _)| known);
                let perhaps = suggestion(name, known);
                Err(Error::invalid(format!(
                    "scenario {name:?} is unknown{perhaps}: there is no {local}; built in: {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// The scenario of an equation file: its body under LQR if the file weighs its states, else
    /// without control.
    ///
    /// # Errors
    /// `Io` or `Data` naming the file.
    pub fn of_plant(file: &str) -> Result<Self> {
        let name = Path::new(file)
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let body = equations::default_settings(file)?;
        let (brain, warnings) = match body.regulator() {
            Ok(_) => ("lqr", Vec::new()),
            Err(error) => ("zero", vec![format!("it runs without control: {error}")]),
        };
        Ok(Self {
            name,
            body,
            brain: BrainSpec::require(brain)?,
            run: LoopSettings::default(),
            warnings,
        })
    }

    /// The scenario of a policy's file: the policy on a body by name or equation file.
    ///
    /// # Errors
    /// `Invalid` for an unknown body; `Io` or `Data` for an equation file.
    #[cfg(feature = "onnx")]
    pub fn of_policy(file: &str, body: &str) -> Result<Self> {
        let name = Path::new(file)
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Descriptor::of(body)?;
        let brain = BrainSpec::Policy(Box::new(crate::brain::policy::spec::PolicySpec::of(file)));
        Ok(Self {
            name,
            body: equations::default_settings(body)?,
            brain,
            run: LoopSettings::default(),
            warnings: Vec::new(),
        })
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// `Io` or `Data`, naming the path and the line.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_as(path, false)
    }

    /// Reads a scenario from its text; `origin` precedes the line in messages, `name` is used if
    /// the scenario gives none.
    ///
    /// # Errors
    /// `Data` with origin and line: text that is not TOML, a key that is unknown, a value of the
    /// wrong type or out of range, a body, brain or start that is unknown.
    ///
    /// # Example
    /// ```
    /// use tectum_control::scenario::Scenario;
    /// let text = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\nhorizn = 3\n";
    /// let error = Scenario::parse(text, "a.toml", "a").unwrap_err();
    /// assert!(error.to_string().starts_with("a.toml:5: unknown key \"horizn\", perhaps \"horizon\"; known: name, model, samples"));
    /// ```
    pub fn parse(text: &str, origin: &str, name: &str) -> Result<Self> {
        Self::parse_as(text, origin, name, false, None)
    }

    /// Reads the scenario that a run wrote.
    ///
    /// # Errors
    /// As [`Scenario::read`]; a name of a body or a brain that only the process of the run knew.
    pub(crate) fn read_record(path: &Path) -> Result<Self> {
        Self::read_as(path, true)
    }

    fn read_as(path: &Path, is_record: bool) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source))?;
        let name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::parse_as(&text, &path.display().to_string(), &name, is_record, None)
    }

    /// The same for both; every key that a reader asks for is also added to `asked`.
    pub(crate) fn parse_as(
        text: &str,
        origin: &str,
        name: &str,
        is_record: bool,
        asked: Option<&RefCell<Vec<KeyRow>>>,
    ) -> Result<Self> {
        recorded::register()?;
        let warnings = RefCell::new(Vec::new());
        let source = TomlSource {
            origin,
            text,
            is_record,
            warnings: &warnings,
            asked,
        };
        let document = source.parse()?;
        let mut root = Section::root(source, document.get_ref());
        let name = root
            .string(
                Key::new("name", "name of the scenario in runs and receipts").or("the file's name"),
            )?
            .map_or(name, |name| name.value)
            .to_owned();
        let [body, brain, run] = [
            ("body", "The plant."),
            ("brain", "The controller."),
            ("loop", "How the loop runs."),
        ]
        .map(|(name, about)| Key::new(name, about));
        let (body, brain, run) = (
            root.section(body)?,
            root.section(brain)?,
            root.section(run)?,
        );
        // A misspelt table is reported before what is missing without it.
        root.finish()?;
        let (settings, body) = BodySettings::read(body, source)?;
        let brain = BrainSpec::read(brain, source, body.spec())?;
        let run = LoopSettings::read(run, &body.spec().observation)?;
        let warnings = warnings.take();
        Ok(Self {
            name,
            body: settings,
            brain,
            run,
            warnings,
        })
    }

    /// Describes a loop that was not built from a scenario, for its run folder: body and brain
    /// under their own names, with the settings that you state.
    ///
    /// Settings are values that are written as a table, `()` for none. A loop of registered or
    /// built-in parts is better built from a scenario: what is described can be read by people, but
    /// not resumed or repeated by [`run_folder`](crate::run_folder) unless its names are
    /// registered.
    ///
    /// # Errors
    /// `Invalid` for a built-in brain with settings, whose own scenario states them; `Data` for
    /// settings that TOML cannot represent.
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_control::body::pendulum::Pendulum;
    /// use tectum_control::body::{Body, Start};
    /// use tectum_control::brain::zero::Zero;
    /// use tectum_control::closed_loop::{ClosedLoop, LoopSettings};
    /// use tectum_control::scenario::Scenario;
    /// let body = Pendulum::new(Start::Hanging);
    /// let brain = Zero::new(body.spec());
    /// let closed_loop = ClosedLoop::new(Box::new(body), Box::new(brain), &LoopSettings::default(), &Device::open("cpu")?)?;
    /// let scenario = Scenario::describe("trial", &closed_loop, &(), &())?;
    /// assert_eq!((scenario.body.name.as_str(), scenario.brain.name()), ("pendulum", "zero"));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn describe<S, T>(
        name: &str,
        closed_loop: &ClosedLoop,
        body_settings: &S,
        brain_settings: &T,
    ) -> Result<Self>
    where
        S: Serialize + Debug + Send + Sync,
        T: Serialize + Debug + Send + Sync,
    {
        let (brain, runs_on_device) = closed_loop.brain();
        Ok(Self {
            name: name.to_owned(),
            body: BodySettings::described(&closed_loop.body_spec().name, body_settings.to_table()?),
            brain: BrainSpec::described(brain, runs_on_device, brain_settings.to_table()?)?,
            run: closed_loop.settings().clone(),
            warnings: Vec::new(),
        })
    }

    /// Names and settings of body and brain, for records.
    pub(crate) fn workload(&self) -> Result<Workload> {
        Ok(Workload {
            body: self.body.name.clone(),
            brain: self.brain.name().to_owned(),
            body_settings: self.body.table()?,
            body_versions: self.body.versions(),
            brain_settings: self.brain.table()?,
            link: None,
        })
    }

    /// The scenario as TOML, with all overrides applied; [`Scenario::parse`] reads it back.
    ///
    /// # Errors
    /// `Data` if a number has no form in TOML (a seed beyond 2⁶³ − 1).
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|source| {
            Error::data(format!("scenario {}: cannot be written", self.name)).with_source(source)
        })
    }

    /// Replaces the body. Start, brain settings, stand-in and guards were chosen for the previous
    /// body, so they return to their defaults; with the same body nothing changes.
    ///
    /// # Errors
    /// An unknown name; a genome, which is wired to its present body.
    pub fn set_body(&mut self, name: &str) -> Result<()> {
        if name != self.body.name {
            Descriptor::of(name)?;
            let body = equations::default_settings(name)?;
            let wired = || {
                Error::invalid(format!(
                    "body {name}: the genome's sensors and motors are those of body {}",
                    self.body.name
                ))
            };
            self.brain = BrainSpec::named(self.brain.name()).ok_or_else(wired)?;
            self.body = body;
            self.run.stand_in = None;
            self.run.guard.clear();
        }
        Ok(())
    }

    /// Replaces the brain by one with default settings; the same brain keeps its settings.
    ///
    /// # Errors
    /// An unknown name; a genome, whose file, sensors and motors only a scenario can give.
    pub fn set_brain(&mut self, name: &str) -> Result<()> {
        if name != self.brain.name() {
            self.brain = BrainSpec::require(name)?;
        }
        Ok(())
    }

    /// Changes the clock. Under a clock that is not real nothing is requested from the operating
    /// system.
    pub fn set_clock(&mut self, clock: ClockKind) {
        self.run.clock = clock;
        if clock == ClockKind::Sim {
            self.run.real_time = RealTime::default();
        }
    }

    /// Changes what is requested from the operating system.
    ///
    /// # Errors
    /// An invalid priority; a clock that is not real.
    pub fn set_real_time(&mut self, real_time: RealTime) -> Result<()> {
        if real_time
            .priority
            .is_some_and(|priority| !(1..=MAX_PRIORITY).contains(&priority))
        {
            return Err(Error::invalid(format!(
                "priority is {}, needs a whole number from 1 to {MAX_PRIORITY}",
                real_time.priority.unwrap_or(0)
            )));
        }
        if real_time != RealTime::default() && self.run.clock == ClockKind::Sim {
            return Err(Error::invalid(
                "priority and memory lock have no effect: under clock \"sim\" nothing is late",
            ));
        }
        self.run.real_time = real_time;
        Ok(())
    }

    /// Changes the length of the run.
    ///
    /// # Errors
    /// Not above 0, or longer than a million seconds.
    pub fn set_seconds(&mut self, seconds: f64) -> Result<()> {
        if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
            return Err(Error::invalid(format!(
                "seconds is {seconds}, needs a number above 0, at most {MAX_SECONDS}"
            )));
        }
        self.run.seconds = seconds;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
