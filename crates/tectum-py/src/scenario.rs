//! Scenarios: runs by name or file, and brains with their settings.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::WorkProgress;
use tectum::snapshot::Snapshot;
use tectum_control::closed_loop::{Sink, TickRecord};
use tectum_control::run_folder::{RunFolder, RunSummary};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop, open_device};

use crate::body::NativeBody;
use crate::brain::NativeBrain;
use crate::closed_loop::{Periods, Run, clock_kind, running};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::interrupt::{LongWork, interruptible};

/// Periods for the caller, and a run folder if there is one.
struct Recording {
    periods: Periods,
    folder: Option<RunFolder>,
}

impl Sink for Recording {
    fn tick(&mut self, record: &TickRecord<'_>) -> tectum::Result<()> {
        self.periods.tick(record)?;
        self.folder
            .as_mut()
            .map_or(Ok(()), |folder| folder.tick(record))
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> tectum::Result<()> {
        self.folder
            .as_mut()
            .map_or(Ok(()), |folder| folder.snapshot(snapshot))
    }
}

/// Runs a scenario: a built-in name, or the path of a `.toml` file.
///
/// `device` is "auto" or a device; the other settings replace those of the scenario. `folder` is a
/// directory in which the run gets a folder with receipt, summary, recording and snapshot, as from
/// the command `tectum run`. With `progress`, tqdm shows training and the run.
///
/// Raises ValueError for an unknown name, DataError naming file and line, KeyboardInterrupt on
/// Ctrl-C.
///
/// >>> import tectum as tt
/// >>> run = tt.run("cart_pole", clock="sim", seconds=1)
/// >>> len(run), run.observations.shape
/// (50, (50, 4))
#[pyfunction]
#[pyo3(signature = (scenario, *, device = DeviceArgument::Id("auto".to_owned()), clock = None, seconds = None, seed = None, brain = None, folder = None, progress = false))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn run(
    py: Python<'_>,
    scenario: &str,
    device: DeviceArgument<'_>,
    clock: Option<&str>,
    seconds: Option<f64>,
    seed: Option<u64>,
    brain: Option<&str>,
    folder: Option<PathBuf>,
    progress: bool,
) -> PyResult<Run> {
    let mut scenario = Scenario::open(scenario).or_raise()?;
    brain
        .map_or(Ok(()), |brain| scenario.set_brain(brain))
        .or_raise()?;
    clock
        .map(clock_kind)
        .transpose()?
        .into_iter()
        .for_each(|clock| scenario.set_clock(clock));
    seconds
        .map_or(Ok(()), |seconds| scenario.set_seconds(seconds))
        .or_raise()?;
    scenario.run.seed = seed.unwrap_or(scenario.run.seed);
    let device = device.open(py)?;
    // The loop runs on threads of its own.
    let (periods, outcome, spec, path) =
        LongWork::new(py, progress)?.run_elsewhere(py, |interrupt| {
            let body = build_body(&scenario).or_raise()?;
            let recipe = brain_recipe(&scenario, body.spec()).or_raise()?;
            let device = device
                .map_or_else(
                    || open_device(&scenario, &recipe).map(|(device, _)| device),
                    Ok,
                )
                .or_raise()?;
            let spec = body.spec().clone();
            let mut closed_loop = build_loop(
                &scenario,
                body,
                recipe,
                &device,
                &mut |done: WorkProgress<'_>| interrupt.watch(done),
            )
            .or_raise()?;
            let folder = folder
                .map(|runs| RunFolder::create(&runs, &scenario, &mut closed_loop))
                .transpose()
                .or_raise()?;
            let mut recording = Recording {
                periods: Periods::default(),
                folder,
            };
            let (outcome, granted) = scenario
                .run
                .real_time
                .run(|| {
                    closed_loop.run(
                        scenario.run.clock.start().as_mut(),
                        &mut recording,
                        &mut |done| interrupt.watch(running(done)),
                    )
                })
                .or_raise()?;
            let path = match recording.folder {
                None => None,
                Some(mut folder) => {
                    let summary =
                        RunSummary::new(&scenario, &outcome, granted, 0, folder.complete_path());
                    folder.write(&outcome, &summary).or_raise()?;
                    Some(folder.complete().or_raise()?)
                }
            };
            Ok((
                recording.periods,
                outcome.into_result().or_raise()?,
                spec,
                path,
            ))
        })?;
    Run::new(py, periods, outcome, &spec, path)
}

/// The exception of an error in a text that was made from keywords, without the line in that text.
fn without_line(error: &tectum::Error, origin: &str) -> PyErr {
    let text = error.to_string();
    let after = text
        .strip_prefix(origin)
        .and_then(|rest| rest.strip_prefix(':'))
        .and_then(|rest| rest.split_once(": "));
    match after {
        Some((line, rest)) if line.bytes().all(|digit| digit.is_ascii_digit()) => {
            crate::error::DataError::new_err(format!("{origin}: {rest}"))
        }
        _ => crate::error::DataError::new_err(text),
    }
}

/// Makes a built-in brain for a built-in body, with the keys of `[brain]` in scenarios as settings;
/// training happens here.
///
/// `body` is the name of a body or of an equation file, or a body. With `progress`, tqdm shows the
/// training. Raises DataError for a setting that is unknown or out of range.
///
/// >>> import tectum as tt
/// >>> lqr = tt.brain("lqr", "pendulum")
/// >>> lqr.tick([0.0, 0.0]).shape
/// (1,)
#[pyfunction]
#[pyo3(signature = (name, body, *, device = DeviceArgument::Id("cpu".to_owned()), seed = 1, clock = "real", progress = false, **settings))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn brain(
    py: Python<'_>,
    name: &str,
    body: &Bound<'_, PyAny>,
    device: DeviceArgument<'_>,
    seed: u64,
    clock: &str,
    progress: bool,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<NativeBrain> {
    let body_name = match body.cast::<NativeBody>() {
        Ok(native) => native.get().source().to_owned(),
        Err(_) => body.extract::<String>()?,
    };
    let mut table: toml::Table = match settings {
        None => toml::Table::new(),
        Some(settings) => {
            let text: String = py
                .import("json")?
                .call_method1("dumps", (settings,))?
                .extract()?;
            serde_json::from_str(&text).map_err(|error| {
                PyValueError::new_err(format!("settings of brain {name}: {error}"))
            })?
        }
    };
    table.insert("name".to_owned(), name.into());
    let named = |text: &str| toml::Table::from_iter([("name".to_owned(), toml::Value::from(text))]);
    let all = toml::Table::from_iter([
        ("body".to_owned(), named(&body_name).into()),
        ("brain".to_owned(), table.into()),
    ]);
    let origin = format!("tectum.brain({name:?})");
    let mut scenario = Scenario::parse(&all.to_string(), &origin, name)
        .map_err(|error| without_line(&error, &origin))?;
    scenario.run.seed = seed;
    scenario.set_clock(clock_kind(clock)?);
    let device = device.open(py)?;
    let (brain, spec) = interruptible(py, progress, |interrupt| {
        let plant = build_body(&scenario).or_raise()?;
        let recipe = brain_recipe(&scenario, plant.spec()).or_raise()?;
        let device = device
            .map_or_else(
                || open_device(&scenario, &recipe).map(|(device, _)| device),
                Ok,
            )
            .or_raise()?;
        let brain = recipe
            .build(&device, &mut |done: WorkProgress<'_>| interrupt.watch(done))
            .or_raise()?;
        Ok((brain, plant.spec().clone()))
    })?;
    NativeBrain::new(brain, spec).or_raise()
}
