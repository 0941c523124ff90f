//! MuJoCo models as bodies: `[body] name = "mujoco:SCENE.xml"`.
//!
//! The official `mujoco` package of Python steps the model, in a process of its own that runs
//! [`SOURCE`]. The loop sends it a [message](crate::message) for each period and waits for the
//! answer. The Python package executes the same text in its own process, with the same bits.

mod files;
mod process;
mod remote;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tectum::{Error, InputFile, Result};
use toml::{Table, Value};

use self::files::{Files, Recorded};
use self::process::Process;
use self::remote::{RemoteBody, Specification};
use super::settings::{BodySettings, CustomSettings, PlantSettings};
use super::{Body, Descriptor, Start, task};
use crate::document::{Key, Section};
use crate::registry::Custom;

/// How names of these bodies begin; the path of the model follows.
pub const PREFIX: &str = "mujoco:";
/// The files that the model was read from, in a run folder.
pub const FILES_FILE: &str = "body.files";
/// The program that steps a model.
pub const SOURCE: &str = include_str!("mujoco/mujoco_body.py");

/// The variable with the interpreter, where no key names one.
const PYTHON: &str = "TECTUM_PYTHON";
/// How long an answer may take by default, seconds: the first one loads MuJoCo and the model.
const WAIT_S: f64 = 60.0;

/// What all bodies from MuJoCo have in common.
pub(super) static DESCRIPTOR: Descriptor =
    Descriptor::with_settings::<MujocoSettings>("mujoco", &[Start::Random], || {
        task::keep(0, 0.0, 1.0)
    });

/// A model, and the keys that a scenario states.
#[derive(Clone, Serialize)]
pub struct MujocoSettings {
    #[serde(flatten)]
    keys: Table,
    #[serde(skip)]
    shared: Arc<Shared>,
}

/// What all bodies of the same settings share.
struct Shared {
    specification: Specification,
    files: Files,
    launch: Launch,
    /// A process that no body uses: one that a check of the scenario started, for the loop.
    spare: Mutex<Option<Process>>,
}

/// How a process is started.
struct Launch {
    python: String,
    wait: Duration,
    /// What the program receives.
    settings: Table,
}

impl fmt::Debug for MujocoSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MujocoSettings").field(&self.keys).finish()
    }
}

/// A MuJoCo body with default settings.
///
/// # Errors
/// As [`MujocoSettings::start`].
pub(crate) fn default_settings(name: &str) -> Result<BodySettings> {
    let settings = MujocoSettings::start(name, Table::new(), None)?;
    Ok(BodySettings {
        custom: Some(Custom(Arc::new(settings) as Arc<dyn CustomSettings>)),
        ..BodySettings::named(name)
    })
}

impl MujocoSettings {
    /// Starts a process that reads the model. `recorded` has the files of the run that is continued
    /// or repeated.
    ///
    /// # Errors
    /// `Io` for an interpreter that cannot be started; `Unsupported` for one without `mujoco` or
    /// NumPy, naming the command that installs them; `Invalid` for a model or a setting that the
    /// program refuses; `Data` for files that have changed.
    fn start(name: &str, keys: Table, recorded: Option<&Recorded>) -> Result<Self> {
        let scene = name.strip_prefix(PREFIX).unwrap_or(name);
        let scene =
            recorded.map_or_else(|| PathBuf::from(scene), |recorded| recorded.scene.clone());
        let python = keys.get("python").and_then(Value::as_str);
        let launch = Launch {
            python: python.map_or_else(default_python, str::to_owned),
            wait: Duration::from_secs_f64(
                keys.get("wait").and_then(Value::as_float).unwrap_or(WAIT_S),
            ),
            settings: program_settings(name, &scene, &keys),
        };
        if let Some(recorded) = recorded {
            recorded.check()?;
        }
        let (process, specification) = launch.run(name)?;
        let files = Files::of(&scene, &specification)?;
        if let Some(recorded) = recorded {
            recorded.check_version(&files, &launch.python)?;
        }
        let spare = Mutex::new(Some(process));
        Ok(Self {
            keys,
            shared: Arc::new(Shared {
                specification,
                files,
                launch,
                spare,
            }),
        })
    }
}

/// What the program receives: the keys of the scenario that are not about its process.
fn program_settings(name: &str, scene: &Path, keys: &Table) -> Table {
    let mut settings = keys.clone();
    settings.retain(|key, _| key != "python" && key != "wait");
    settings.insert("name".into(), name.into());
    settings.insert("scene".into(), scene.display().to_string().into());
    settings
}

fn default_python() -> String {
    let standard = if cfg!(windows) { "python" } else { "python3" };
    std::env::var(PYTHON).unwrap_or_else(|_| standard.to_owned())
}

impl Launch {
    /// Starts a process, which reads the model.
    fn run(&self, name: &str) -> Result<(Process, Specification)> {
        let mut process = Process::start(name, &self.python, SOURCE, self.wait)?;
        let answer = process.request("hello", "spec", |message| {
            message.with_table("settings", &self.settings)
        })?;
        let specification = Specification::read(name, &answer)?;
        Ok((process, specification))
    }
}

impl Shared {
    /// A process that has read the model: the spare one, or a new one.
    fn process(&self) -> Result<Process> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match spare {
            Some(process) => Ok(process),
            None => {
                let (process, found) = self.launch.run(&self.specification.spec.name)?;
                if found == self.specification {
                    return Ok(process);
                }
                Err(Error::data(format!(
                    "{}: the model has changed since it was read",
                    self.specification.spec.name
                )))
            }
        }
    }
}

impl PlantSettings for MujocoSettings {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        let name = section.required("name")?.value;
        let keys = read_keys(section)?;
        let recorded = section
            .run_folder()
            .map(|folder| folder.join(FILES_FILE))
            .filter(|path| path.exists())
            .map(|path| Recorded::read(&path))
            .transpose()?;
        Self::start(name, keys, recorded.as_ref())
    }

    fn make(&self, start: Start) -> Result<Box<dyn Body>> {
        if start != Start::Random {
            return Err(Error::invalid(format!(
                "{}: start \"hanging\" is not known; the model, `keyframe` and [body.noise] state where it starts",
                self.shared.specification.spec.name
            )));
        }
        RemoteBody::at_start(self.shared.clone()).map(|body| Box::new(body) as Box<dyn Body>)
    }

    fn has_default_task(&self) -> bool {
        false
    }

    fn input_files(&self) -> Vec<InputFile> {
        self.shared.files.inputs()
    }

    fn text(&self) -> Option<&str> {
        Some(&self.shared.files.text)
    }

    fn text_file(&self) -> &'static str {
        FILES_FILE
    }

    fn versions(&self) -> Table {
        self.shared.specification.versions.clone()
    }
}

/// Reads the keys of `[body]`, as the scenario is written again with them.
pub(crate) fn read_keys(section: &mut Section<'_, '_>) -> Result<Table> {
    let mut keys = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| {
            keys.insert(key.to_owned(), value);
        });
    };
    let period = Key::new(
        "period",
        "time between two actions, a whole multiple of the model's timestep",
    )
    .unit("s");
    put(
        "period",
        section
            .positive(period.or("the timestep"))?
            .map(Value::from),
    );
    let keyframe = Key::new(
        "keyframe",
        "keyframe of the model that episodes start from, by name or number",
    );
    put(
        "keyframe",
        section.text_or_whole(keyframe.or("the model's reference pose"))?,
    );
    let channels = Key::new(
        "channels",
        "observed channels, in this order: names, groups (`base_quat`) or patterns (`joint_pos.*`)",
    );
    let channels = section.texts(channels.or("all but those of bodies and sites"))?;
    put("channels", channels.map(Value::from));
    let base = Key::new("base", "body that the channels of the base describe");
    put(
        "base",
        text(
            section,
            base.or("that of the first free joint, else the first body below the world"),
        )?,
    );
    let camera = Key::new("camera", "camera of pictures");
    put("camera", text(section, camera.or("a free camera"))?);
    let limit = Key::new("time_limit", "periods after which an episode is truncated");
    put(
        "time_limit",
        whole(section, limit.or("none"), u64::from(u32::MAX))?,
    );
    let python = Key::new(
        "python",
        "interpreter of Python that has the packages mujoco and NumPy",
    );
    put(
        "python",
        text(
            section,
            python.or("that of the variable TECTUM_PYTHON, else python3"),
        )?,
    );
    let wait = Key::new("wait", "how long an answer of the process may take")
        .unit("s")
        .or(WAIT_S);
    put(
        "wait",
        section.positive_up_to(wait, 86_400.0)?.map(Value::from),
    );
    for (name, table) in [
        ("cameras", read_cameras(section)?),
        ("noise", read_noise(section)?),
        ("terminate", read_terminate(section)?),
        ("reward", read_reward(section)?),
        ("push", read_push(section)?),
    ] {
        if !table.is_empty() {
            keys.insert(name.to_owned(), table.into());
        }
    }
    Ok(keys)
}

fn text(section: &mut Section<'_, '_>, key: Key<'_>) -> Result<Option<Value>> {
    Ok(section.string(key)?.map(|text| text.value.into()))
}

fn whole(section: &mut Section<'_, '_>, key: Key<'_>, max: u64) -> Result<Option<Value>> {
    let number = section.whole(key, 1..=max)?;
    Ok(number
        .and_then(|number| i64::try_from(number).ok())
        .map(Value::from))
}

/// Collects the keys of a table that have a value.
fn table<const N: usize>(keys: [(&str, Option<Value>); N]) -> Table {
    keys.into_iter()
        .filter_map(|(key, value)| value.map(|value| (key.to_owned(), value)))
        .collect()
}

/// The largest side of a picture in an observation, in pixels.
const MAX_SIDE: u64 = 2048;

fn read_cameras(section: &mut Section<'_, '_>) -> Result<Table> {
    let mut cameras = section.section(Key::new(
        "cameras",
        "Pictures of a MuJoCo body's observation, after its other channels: uint8 of shape (rows, columns, 3). Drawn by OpenGL, so their bits depend on its driver.",
    ))?;
    let mut sizes = Table::new();
    for (name, _) in cameras.names() {
        let key = Key::new(
            &name,
            "rows and columns of the channel `camera.CAMERA`, of a camera of the model",
        );
        let size = cameras.whole_list(key.one_of("CAMERA"), 1..=MAX_SIDE)?;
        let sides: Vec<i64> = size.into_iter().flatten().map(|side| side as i64).collect();
        if sides.len() != 2 {
            return Err(cameras.fault(format_args!("{name} needs two numbers, rows and columns")));
        }
        sizes.insert(name, sides.into());
    }
    cameras.finish()?;
    Ok(sizes)
}

fn read_noise(section: &mut Section<'_, '_>) -> Result<Table> {
    let mut noise = section.section(Key::new(
        "noise",
        "Random starts of a MuJoCo body, drawn by NumPy's default_rng of the episode's seed: first the positions, then the velocities.",
    ))?;
    let position = Key::new(
        "position",
        "each number of the positions is moved by at most this",
    )
    .unit("m, rad");
    let position = noise.non_negative(position.or(0))?.map(Value::from);
    let velocity = Key::new(
        "velocity",
        "the same for velocities; the standard deviation if they are normal",
    )
    .unit("m/s, rad/s");
    let velocity = noise.non_negative(velocity.or(0))?.map(Value::from);
    let key = Key::new("velocity_distribution", "how velocities are drawn").or("\"uniform\"");
    let kinds = [("uniform", "uniform"), ("normal", "normal")];
    let distribution = noise.choice(key, &kinds)?.map(Value::from);
    noise.finish()?;
    Ok(table([
        ("position", position),
        ("velocity", velocity),
        ("velocity_distribution", distribution),
    ]))
}

fn read_terminate(section: &mut Section<'_, '_>) -> Result<Table> {
    let mut terminate = section.section(Key::new(
        "terminate",
        "When an episode of a MuJoCo body ends: a number reaches a bound of its range. Bounds may be `inf`.",
    ))?;
    let mut bounds = Table::new();
    let tilt = Key::new(
        "tilt",
        "largest angle between the base's z axis and the world's",
    )
    .unit("rad");
    if let Some(tilt) = terminate.positive(tilt.or("none"))? {
        bounds.insert("tilt".into(), tilt.into());
    }
    let height = Key::new("height", "lowest and highest height of the base").unit("m");
    let channels = terminate.names().into_iter().map(|(name, _)| name);
    let channels: Vec<String> = channels
        .filter(|name| name != "tilt" && name != "height")
        .collect();
    let other = |name| {
        Key::new(name, "lowest and highest value of a channel, whether observed or not; names, groups or patterns")
            .one_of("CHANNEL")
    };
    let mut read = |key: Key<'_>, name: &str| -> Result<()> {
        let range = terminate.numbers(key.values("a list of two numbers").or("none"))?;
        match range {
            Some(range) if range.len() != 2 || range[0] >= range[1] => Err(terminate.fault(
                format_args!("{name} needs two numbers, the lower one first"),
            )),
            Some(range) => {
                bounds.insert(name.to_owned(), range.into());
                Ok(())
            }
            None => Ok(()),
        }
    };
    read(height, "height")?;
    for name in &channels {
        read(other(name), name)?;
    }
    terminate.finish()?;
    Ok(bounds)
}

fn read_reward(section: &mut Section<'_, '_>) -> Result<Table> {
    let mut reward = section.section(Key::new(
        "reward",
        "Reward of a period of a MuJoCo body, the sum of these; 0 without keys.",
    ))?;
    let alive = Key::new(
        "alive",
        "for a period that does not end the episode by [body.terminate]",
    );
    let alive = number(&mut reward, alive.or(0))?;
    let progress = Key::new(
        "progress",
        "channel whose rate of change per second is rewarded, observed or not",
    );
    let progress = text(&mut reward, progress.or("none"))?;
    let weight = number(
        &mut reward,
        Key::new("progress_weight", "factor of that rate").or(1),
    )?;
    let control = Key::new(
        "control",
        "cost of the sum of the squared numbers of the action",
    );
    let control = number(&mut reward, control.or(0))?;
    reward.finish()?;
    Ok(table([
        ("alive", alive),
        ("progress", progress),
        ("progress_weight", weight),
        ("control", control),
    ]))
}

fn number(section: &mut Section<'_, '_>, key: Key<'_>) -> Result<Option<Value>> {
    Ok(section
        .within(key.values("a number"), f64::MIN..=f64::MAX)?
        .map(Value::from))
}

fn read_push(section: &mut Section<'_, '_>) -> Result<Table> {
    let is_stated = section.has("push");
    let mut push = section.section(Key::new(
        "push",
        "The push of a MuJoCo body that `tectum run --inject push@T` begins.",
    ))?;
    if !is_stated {
        return Ok(Table::new());
    }
    let body = push.required(Key::new("body", "name of the pushed body of the model"))?;
    let key = Key::new("force", "force at its centre of mass, in the world's frame");
    let key = key.unit("N").or("required");
    let forces = push.numbers(key.values("a list of three numbers"))?;
    let forces = forces
        .filter(|forces| forces.len() == 3 && forces.iter().all(|force| force.is_finite()))
        .ok_or_else(|| push.fault("force needs three numbers: x, y and z in N"))?;
    let key = Key::new("seconds", "how long it lasts").unit("s");
    let seconds = push.positive(key.or("required"))?;
    let seconds = seconds.ok_or_else(|| push.missing("seconds"))?;
    push.finish()?;
    Ok(table([
        ("body", Some(body.value.into())),
        ("force", Some(forces.into())),
        ("seconds", Some(seconds.into())),
    ]))
}
