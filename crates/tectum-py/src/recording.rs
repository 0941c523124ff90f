//! Recordings of runs, and runs that are repeated.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use tectum::WorkProgress;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder;

use crate::closed_loop::{read_only, read_only_rows};
use crate::device::DeviceArgument;
use crate::error::{DataError, OrRaise};
use crate::interrupt::{LongWork, run_long};
use crate::process;
use crate::receipt::Receipt;

/// A recording of a run: one row for each period, as in `Run`.
///
/// `Recording(path)` reads a `trace.mcap`, or that of a run folder. A number that was not recorded,
/// or was not finite, is NaN. Its arrays are read-only.
///
/// Raises FileNotFoundError, DataError naming the message that is malformed.
///
/// >>> import tempfile, tectum as tt
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> run = tt.run("cart_pole", clock="sim", seconds=1, folder=folder.name)
/// >>> recording = tt.Recording(run.folder)
/// >>> recording.observations.shape, bool((recording.observations == run.observations).all())
/// ((50, 4), True)
#[pyclass(frozen, module = "tectum")]
pub struct Recording {
    /// Names of the columns of `observations`.
    #[pyo3(get)]
    observation_names: Vec<String>,
    /// Names of the columns of `actions`.
    #[pyo3(get)]
    action_names: Vec<String>,
    /// Name of what the task measured; None without a task.
    #[pyo3(get)]
    measure_name: Option<String>,
    /// The beginning of each period in the body's time, float64 of shape (periods,), in seconds.
    #[pyo3(get)]
    t: Py<PyArray1<f64>>,
    /// The numbers of observations, float32 of shape (periods, channels of one number).
    #[pyo3(get)]
    observations: Py<PyArray2<f32>>,
    /// The channels of observations that are arrays by name, each of shape (periods, *shape) and of
    /// the channel's type.
    #[pyo3(get)]
    arrays: Py<PyDict>,
    /// Actions that the body received, float32 of shape (periods, channels).
    #[pyo3(get)]
    actions: Py<PyArray2<f32>>,
    /// What the task measured, float64 of shape (periods,).
    #[pyo3(get)]
    measure: Py<PyArray1<f64>>,
    /// Rewards, float64 of shape (periods,).
    #[pyo3(get)]
    rewards: Py<PyArray1<f64>>,
    /// Whether an answer was late, so that the body received the one before.
    #[pyo3(get)]
    held: Py<PyArray1<bool>>,
    /// Whether the brain failed, so that the body received its safe action.
    #[pyo3(get)]
    fallback: Py<PyArray1<bool>>,
    /// Whether the episode ended with the period.
    #[pyo3(get)]
    ended: Py<PyArray1<bool>>,
    /// Host time of each answer in seconds; NaN where it was not measured.
    #[pyo3(get)]
    latency: Py<PyArray1<f64>>,
    /// Number of periods.
    rows: usize,
}

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let path = if path.is_dir() {
            path.join(run_folder::TRACE_FILE)
        } else {
            path
        };
        let from = path.clone();
        let trace = run_long(py, move || Trace::read(&from))?;
        if trace.ticks.is_empty() {
            return Err(DataError::new_err(format!(
                "{}: it has no period of a run; a recording of spikes has none",
                path.display()
            )));
        }
        let ticks = &trace.ticks;
        let table =
            |numbers: fn(&TraceTick) -> &Vec<f64>, columns: usize| -> PyResult<Py<PyArray2<f32>>> {
                // Written with as many digits as float32 needs.
                let numbers = ticks
                    .iter()
                    .flat_map(numbers)
                    .map(|number| *number as f32)
                    .collect();
                read_only_rows(py, numbers, [ticks.len(), columns])
            };
        let floats = |number: fn(&TraceTick) -> f64| {
            read_only(PyArray1::from_iter(py, ticks.iter().map(number)))
        };
        let flags = |flag: fn(&TraceTick) -> bool| {
            read_only(PyArray1::from_iter(py, ticks.iter().map(flag)))
        };
        Ok(Self {
            rows: ticks.len(),
            arrays: arrays(py, &trace)?,
            t: floats(|tick| tick.time_ns as f64 * 1e-9)?,
            observations: table(|tick| &tick.observation, trace.observation_names.len())?,
            actions: table(|tick| &tick.action, trace.action_names.len())?,
            measure: floats(|tick| tick.measure)?,
            rewards: floats(|tick| tick.reward)?,
            held: flags(|tick| tick.held)?,
            fallback: flags(|tick| tick.fallback)?,
            ended: flags(|tick| tick.terminated)?,
            latency: floats(|tick| {
                tick.latency_ms
                    .map_or(f64::NAN, |milliseconds| milliseconds * 1e-3)
            })?,
            observation_names: trace.observation_names,
            action_names: trace.action_names,
            measure_name: trace.measure_name,
        })
    }

    /// Draws each channel over time by matplotlib, and returns the figure, which pyplot keeps until
    /// `matplotlib.pyplot.close(figure)`.
    fn plot<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("tectum.plots")?
            .call_method1("plot_recording", (this,))
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum recording: {} periods, {} -> {}>",
            self.rows,
            self.observation_names.join(", "),
            self.action_names.join(", ")
        )
    }
}

/// The arrays of all periods by name.
fn arrays(py: Python<'_>, trace: &Trace) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (place, name) in trace.array_names.iter().enumerate() {
        let (mut bytes, first) = (Vec::new(), &trace.ticks[0].arrays[place]);
        for tick in &trace.ticks {
            bytes.extend_from_slice(&tick.arrays[place].data);
        }
        let shape: Vec<usize> = [trace.ticks.len()]
            .into_iter()
            .chain(first.shape.iter().copied())
            .collect();
        let array = py.import("numpy")?.call_method1(
            "frombuffer",
            (PyBytes::new(py, &bytes), first.element.code().0),
        )?;
        // The buffer of bytes is read-only.
        dict.set_item(
            name,
            array.call_method1("reshape", (PyTuple::new(py, shape)?,))?,
        )?;
    }
    Ok(dict.unbind())
}

/// The repetition of a run; `repeat` makes one.
#[pyclass(frozen, get_all, module = "tectum")]
pub struct Repetition {
    /// The id of the device that it was repeated on.
    device: String,
    /// Number of periods.
    periods: u64,
    /// The hash of every period of the run, from the receipt in its folder.
    expected: String,
    /// The hash of every period of the repetition.
    found: String,
    /// On which device and by which code the repetition was computed.
    receipt: Py<Receipt>,
}

#[pymethods]
impl Repetition {
    /// Whether every period is the same, bit for bit.
    #[getter]
    fn same(&self) -> bool {
        self.expected == self.found
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum repetition: {} periods on {}, {}>",
            self.periods,
            self.device,
            if self.same() { "the same" } else { "different" }
        )
    }
}

/// Replays the run of a folder: computes its scenario again under a simulated clock, and compares
/// every period.
///
/// Without `device`, on the device of the run's receipt. With `progress`, tqdm shows it. Raises
/// ValueError for a run that cannot be repeated (faults, late answers, or a continuation of an
/// earlier run), FileNotFoundError or DataError naming the file, KeyboardInterrupt on Ctrl-C.
///
/// >>> import tempfile, tectum as tt
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> run = tt.run("cart_pole", clock="sim", seconds=1, folder=folder.name)
/// >>> tt.repeat(run.folder).same
/// True
#[pyfunction]
#[pyo3(signature = (folder, *, device = None, progress = false))]
pub fn repeat(
    py: Python<'_>,
    folder: PathBuf,
    device: Option<DeviceArgument<'_>>,
    progress: bool,
) -> PyResult<Repetition> {
    let _call = process::enter(py)?;
    let device = device.map(|device| device.open_named(py)).transpose()?;
    let made = LongWork::new(py, progress)?.run(py, move |interrupt| {
        run_folder::repeat(&folder, device.as_ref(), &mut |done: WorkProgress<'_>| {
            interrupt.watch(done)
        })
        .or_raise()
    })?;
    Ok(Repetition {
        device: made.device,
        periods: made.ticks,
        expected: made.expected,
        found: made.found,
        receipt: Py::new(py, Receipt::new(made.receipt))?,
    })
}
