//! Scenarios: runs by name or file, and brains with their settings.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::snapshot::Snapshot;
use tectum::{ErrorKind, WorkProgress};
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{Sink, TickRecord};
use tectum_control::live::{Controls, Live};
use tectum_control::run_folder::{RunFolder, RunSummary};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{
    brain_recipe, build_body, build_loop, driven_spec, open_device, show_loop,
};
use tectum_link::{Address, LiveServer, LiveSettings, Token};

use crate::body::NativeBody;
use crate::brain::NativeBrain;
use crate::closed_loop::{
    Ended, Periods, PolledClock, Run, StopSignal, clock_kind, run_of, running, stop_flag,
};
use crate::device::DeviceArgument;
use crate::error::{OrRaise, exception};
use crate::interrupt::{LongWork, run_long};
use crate::process;
use crate::whole;

/// How long viewers may take to receive the end of a run.
const END: Duration = Duration::from_secs(1);

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
/// the command `tectum run`. With `progress`, tqdm shows training and the run. `stop` ends the run
/// from another thread. An exception that ends it early has the periods so far as its attribute
/// `run`. `live` is the address of a page that shows the run while it happens, "HOST:PORT" or a port
/// of this machine (docs/watch.md); other machines need the token in the variable TECTUM_TOKEN.
///
/// Raises ValueError for an unknown name, DataError naming file and line, KeyboardInterrupt on
/// Ctrl-C.
///
/// >>> import tectum as tt
/// >>> run = tt.run("cart_pole", clock="sim", seconds=1)
/// >>> len(run), run.observations.shape
/// (50, (50, 4))
#[pyfunction]
#[pyo3(signature = (scenario, *, device = DeviceArgument::Id("auto".to_owned()), clock = None, seconds = None, seed: "int | None" = None, brain = None, folder = None, progress = false, stop = None, live = None))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn run(
    py: Python<'_>,
    scenario: PathBuf,
    device: DeviceArgument<'_>,
    clock: Option<&str>,
    seconds: Option<f64>,
    #[pyo3(from_py_with = whole::seed)] seed: Option<u64>,
    brain: Option<&str>,
    folder: Option<PathBuf>,
    progress: bool,
    stop: Option<&StopSignal>,
    live: Option<String>,
) -> PyResult<Run> {
    let _call = process::enter(py)?;
    let name = scenario.to_string_lossy().into_owned();
    let mut scenario = run_long(py, move || Scenario::open(&name))?;
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
    let (device, stop) = (device.open(py)?, stop_flag(stop));
    // The loop runs on threads of its own.
    let finished = LongWork::new(py, progress)?.finish(py, move |interrupt| {
        let shown = live.map(|address| show(&address, scenario.run.clock));
        let shown = shown.transpose().or_raise()?;
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
        let controls = shown.as_ref().map(|(live, _)| live.controls());
        if let Some((live, _)) = &shown {
            show_loop(&scenario, &mut closed_loop, live).or_raise()?;
        }
        let mut recording = Recording {
            periods: Periods::default(),
            folder,
        };
        // A signal of the caller is the caller's: a viewer does not set it.
        let is_stopped =
            || stop.load(Ordering::Relaxed) || controls.is_some_and(Controls::is_stopped);
        let (outcome, granted) = scenario
            .run
            .real_time
            .run(|| {
                let interrupt = RefCell::new(&mut *interrupt);
                let clock = PolledClock::start(scenario.run.clock, &interrupt);
                let mut clock = clock.at_pace(controls, &stop);
                closed_loop.run(&mut clock, &mut recording, &mut |done| {
                    if is_stopped() {
                        return ControlFlow::Break(());
                    }
                    interrupt.borrow_mut().watch(running(done))
                })
            })
            .or_raise()?;
        let was_stopped = is_stopped();
        let folder = recording.folder.as_ref().map(RunFolder::complete_path);
        let folder = folder.unwrap_or(Path::new("")).to_owned();
        let summary = RunSummary::new(&scenario, &outcome, granted, 0, &folder);
        if let Some((live, server)) = shown {
            live.end(&summary, &outcome.receipt).or_raise()?;
            server.close(END);
        }
        let path = match recording.folder {
            None => None,
            Some(mut folder) => {
                folder.write(&outcome, &summary).or_raise()?;
                Some(folder.complete().or_raise()?)
            }
        };
        Ok(Ended {
            periods: recording.periods,
            outcome,
            spec,
            folder: path,
            is_stopped: was_stopped,
        })
    })?;
    run_of(py, finished)
}

/// Begins to show a run at an address.
fn show(address: &str, clock: ClockKind) -> tectum::Result<(Live, LiveServer)> {
    let live = Live::new(clock);
    let settings = LiveSettings {
        token: Token::find(None)?,
        ..LiveSettings::new(Address::parse_http(address)?)
    };
    let server = LiveServer::start(&live, &settings)?;
    Ok((live, server))
}

/// The exception of an error in a text that was made from keywords, without the line in that text.
fn without_line(error: tectum::Error, origin: &str) -> PyErr {
    if error.kind() != ErrorKind::Data && error.kind() != ErrorKind::Invalid {
        return exception(error);
    }
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
#[pyo3(signature = (name, body, *, device = DeviceArgument::Id("cpu".to_owned()), seed: "int" = 1, clock = "real", progress = false, **settings))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn brain(
    py: Python<'_>,
    name: &str,
    body: &Bound<'_, PyAny>,
    device: DeviceArgument<'_>,
    #[pyo3(from_py_with = whole::seed)] seed: u64,
    clock: &str,
    progress: bool,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<NativeBrain> {
    let _call = process::enter(py)?;
    let body_name = match body.cast::<NativeBody>() {
        Ok(native) => native.get().source().to_owned(),
        Err(_) => body
            .extract::<PathBuf>()
            .map_err(|_| {
                PyTypeError::new_err(format!(
                    "body: {} is no built-in body, and no name of one or of an equation file",
                    body.get_type()
                ))
            })?
            .to_string_lossy()
            .into_owned(),
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
        .map_err(|error| without_line(error, &origin))?;
    scenario.run.seed = seed;
    scenario.set_clock(clock_kind(clock)?);
    let device = device.open(py)?;
    LongWork::new(py, progress)?.run(py, move |interrupt| {
        let spec = driven_spec(&scenario).or_raise()?;
        let recipe = brain_recipe(&scenario, &spec).or_raise()?;
        let device = device
            .map_or_else(
                || open_device(&scenario, &recipe).map(|(device, _)| device),
                Ok,
            )
            .or_raise()?;
        let brain = recipe
            .build(&device, &mut |done: WorkProgress<'_>| interrupt.watch(done))
            .or_raise()?;
        NativeBrain::new(brain, spec).or_raise()
    })
}
