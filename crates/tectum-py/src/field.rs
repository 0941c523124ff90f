//! The neural field.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::Boundary;
use tectum::snapshot::Snapshot;
use tectum_field::{
    Coefficients, ImprintSiteKind, Options, Report, Shape, Simulation, State, Storage,
};

use crate::array::{numbers, shaped};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::Receipt;
use crate::spiking::check_shards;
use crate::whole;

/// What a cycle of a field did; numbers have no unit.
#[pyclass(frozen, get_all, module = "tectum")]
pub struct FieldReport {
    /// The action: float32 of shape (motors,), -1 to 1.
    action: Py<PyArray1<f32>>,
    /// Internal drive, 0 to 1.
    drive: f32,
    /// Exploration, 0 to 1.
    explore: f32,
    /// Intensity of the imprint.
    intensity: f32,
    /// The cell of the imprint.
    place: (usize, usize, usize),
    /// Why this cell: "existing", "resonant", "correlated" or "emptiest".
    place_kind: &'static str,
    /// Novelty, 0 to 1.
    novelty: f32,
    /// Weighted mean error of the prediction.
    error: f32,
    /// Information.
    information: f32,
    /// Confidence, 0 to 1.
    confidence: f32,
    /// Mean content after the cycle.
    mean: f32,
    /// Variance of the content.
    variance: f32,
    /// Index of the pattern in the library that is most similar; None without a library.
    nearest: Option<usize>,
    /// Index at which the present pattern was stored; None if it was familiar.
    stored: Option<usize>,
}

impl FieldReport {
    fn new(py: Python<'_>, report: Report) -> Self {
        let place_kind = match report.place_kind {
            ImprintSiteKind::Existing => "existing",
            ImprintSiteKind::Resonant => "resonant",
            ImprintSiteKind::Correlated => "correlated",
            ImprintSiteKind::Emptiest => "emptiest",
        };
        Self {
            action: PyArray1::from_vec(py, report.motors).unbind(),
            drive: report.drive,
            explore: report.explore,
            intensity: report.intensity,
            place: report.place.into(),
            place_kind,
            novelty: report.novelty,
            error: report.error,
            information: report.information,
            confidence: report.confidence,
            mean: report.mean,
            variance: report.variance,
            nearest: report.recall.nearest,
            stored: report.recall.stored,
        }
    }
}

#[pymethods]
impl FieldReport {
    fn __repr__(&self) -> String {
        format!(
            "<tectum field report: novelty {:.3}, error {:.3}, confidence {:.3}>",
            self.novelty, self.error, self.confidence
        )
    }
}

/// A 4-D neural field that senses, moves and changes its own rules (docs/field.md).
///
/// `shape` is cells along X, Y and Z, then channels: axes are multiples of 4 from 4 to 64, channels
/// a multiple of 32 from 32 to 256. `boundary` is "closed", "periodic" or "zero"; `storage` "f32"
/// or "bf16" (half the memory); `patterns` the capacity of the library of patterns, 0 for none.
/// `shards` splits the field along X into so many parts of the device, which exchange planes in
/// each cycle; it changes no element.
///
/// Raises ValueError naming the size that is not possible.
///
/// >>> import tectum as tt
/// >>> field = tt.Field(sensors=2, motors=1, shape=(8, 8, 8, 32))
/// >>> report = field.tick([0.5, -0.5], reward=0.0)
/// >>> report.action.shape, field.cycle, field.elements.shape
/// ((1,), 1, (8, 8, 8, 32))
#[pyclass(frozen, module = "tectum")]
pub struct Field {
    inner: Exclusive<Simulation>,
    sensors: usize,
}

/// The names and places of the coefficients that are one number.
fn coefficient<'c>(coefficients: &'c mut Coefficients, name: &str) -> Option<&'c mut f32> {
    Some(match name {
        "retention" => &mut coefficients.retention,
        "decay_depth" => &mut coefficients.decay_depth,
        "coupling" => &mut coefficients.coupling,
        "noise" => &mut coefficients.noise,
        "wave" => &mut coefficients.wave,
        "error_drive" => &mut coefficients.error_drive,
        "imprint" => &mut coefficients.imprint,
        "dynamics_rate" => &mut coefficients.dynamics_rate,
        "echo" => &mut coefficients.echo,
        "exploration" => &mut coefficients.exploration,
        "saturation" => &mut coefficients.saturation,
        "recall" => &mut coefficients.recall,
        "familiar" => &mut coefficients.familiar,
        "attraction" => &mut coefficients.attraction,
        "strategy" => &mut coefficients.strategy,
        _ => return None,
    })
}

/// The coefficients that are one number.
const COEFFICIENTS: [&str; 15] = [
    "retention",
    "decay_depth",
    "coupling",
    "noise",
    "wave",
    "error_drive",
    "imprint",
    "dynamics_rate",
    "echo",
    "exploration",
    "saturation",
    "recall",
    "familiar",
    "attraction",
    "strategy",
];

#[pymethods]
impl Field {
    #[new]
    #[pyo3(signature = (sensors: "int", motors: "int", *, shape: "tuple[int, int, int, int]" = (32, 32, 32, 64), boundary = "closed", seed: "int" = 1, patterns: "int" = 0, storage = "f32", device = DeviceArgument::Id("cpu".to_owned()), shards: "int" = 1))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = whole::sensors)] sensors: usize,
        #[pyo3(from_py_with = whole::motors)] motors: usize,
        #[pyo3(from_py_with = whole::shape)] shape: (usize, usize, usize, usize),
        boundary: &str,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        #[pyo3(from_py_with = whole::patterns)] patterns: usize,
        storage: &str,
        device: DeviceArgument<'_>,
        #[pyo3(from_py_with = whole::shards)] shards: usize,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        check_shards(shards)?;
        let boundary = match boundary {
            "closed" => Boundary::Closed,
            "periodic" => Boundary::Periodic,
            "zero" => Boundary::Zero,
            other => {
                return Err(PyValueError::new_err(format!(
                    "boundary is {other:?}, needs \"closed\", \"periodic\" or \"zero\""
                )));
            }
        };
        let storage = match storage {
            "f32" => Storage::F32,
            "bf16" => Storage::Bf16,
            other => {
                return Err(PyValueError::new_err(format!(
                    "storage is {other:?}, needs \"f32\" or \"bf16\""
                )));
            }
        };
        let (device, options) = (
            device.open(py)?,
            Options {
                sensors,
                motors,
                boundary,
                seed,
                patterns,
                storage,
            },
        );
        let (x, y, z, channels) = shape;
        let field = run_long(py, move || {
            let shape = Shape::new([x, y, z], channels)?;
            let device =
                device.map_or_else(|| Ok(Simulation::choose_device(shape, options)?.0), Ok)?;
            Simulation::split(shape, options, &vec![device; shards])
        })?;
        Ok(Self {
            inner: Exclusive::new(field),
            sensors,
        })
    }

    /// Runs a cycle. `sensors` is of shape (sensors,), clamped to -1 to 1; `reward` too.
    ///
    /// Raises ValueError for another number of sensors, and what the device reports.
    #[pyo3(signature = (sensors, reward = 0.0))]
    fn tick(
        &self,
        py: Python<'_>,
        sensors: &Bound<'_, PyAny>,
        reward: f32,
    ) -> PyResult<FieldReport> {
        let _call = process::enter(py)?;
        let sensors = numbers(sensors, "sensors", self.sensors)?;
        let (_, report) = self.inner.run(py, self.inner.lock(py)?, move |field| {
            field.tick(&sensors, reward)
        })?;
        Ok(FieldReport::new(py, report))
    }

    /// Cycles done.
    #[getter]
    fn cycle(&self, py: Python<'_>) -> PyResult<u64> {
        let _call = process::enter(py)?;
        Ok(self.inner.lock(py)?.cycle())
    }

    /// The elements: float32 of shape (X, Y, Z, channels).
    #[getter]
    fn elements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let field = self.inner.lock(py)?;
        let ([x, y, z], channels) = (field.shape().cells(), field.shape().channels());
        let (_, elements) = self
            .inner
            .run(py, field, |field| Ok(field.state()?.field))?;
        shaped(py, elements, &[x, y, z, channels])
    }

    /// The coefficients of the next cycle by name.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let mut coefficients = *self.inner.lock(py)?.coefficients();
        let values = PyDict::new(py);
        for name in COEFFICIENTS {
            values.set_item(name, coefficient(&mut coefficients, name).copied())?;
        }
        values.set_item("diffusion", coefficients.diffusion)?;
        values.set_item("diffusion_depth", coefficients.diffusion_depth)?;
        Ok(values)
    }

    /// Changes coefficients from the next cycle on, by name.
    ///
    /// Raises ValueError for an unknown name or a value out of range; nothing changes then.
    #[pyo3(signature = (**values))]
    fn set_coefficients(&self, py: Python<'_>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let _call = process::enter(py)?;
        // Functions of the values run before the lock is taken.
        let (mut found, mut unused) = (Vec::new(), *self.inner.lock(py)?.coefficients());
        for (name, value) in values.into_iter().flatten() {
            let name: String = name.extract()?;
            match (name.as_str(), coefficient(&mut unused, &name)) {
                (_, Some(_)) => found.push((name.clone(), numbers(&value, &name, 1)?)),
                ("diffusion" | "diffusion_depth", None) => {
                    found.push((name.clone(), numbers(&value, &name, 3)?));
                }
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "no coefficient {name:?}; there are {}, diffusion, diffusion_depth",
                        COEFFICIENTS.join(", ")
                    )));
                }
            }
        }
        let mut field = self.inner.lock(py)?;
        let mut coefficients = *field.coefficients();
        for (name, numbers) in found {
            match (name.as_str(), numbers.as_slice()) {
                ("diffusion", [x, y, z]) => coefficients.diffusion = [*x, *y, *z],
                ("diffusion_depth", [x, y, z]) => coefficients.diffusion_depth = [*x, *y, *z],
                (name, numbers) => coefficient(&mut coefficients, name)
                    .into_iter()
                    .zip(numbers)
                    .for_each(|(place, number)| *place = *number),
            }
        }
        field.set_coefficients(coefficients).or_raise()
    }

    /// Writes the state to a safetensors file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let field = self.inner.lock(py)?;
        self.inner.run(py, field, move |field| {
            field.state()?.to_snapshot(field.shape()).save(&path)
        })?;
        Ok(())
    }

    /// Continues from the state of a field of the same shape.
    ///
    /// Raises DataError naming what does not fit; nothing changes then.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let field = self.inner.lock(py)?;
        self.inner.run(py, field, move |field| {
            let state = Snapshot::load(&path).and_then(|snapshot| {
                State::from_snapshot(field.shape(), field.options().patterns, &snapshot)
            });
            field.set_state(&state.map_err(|error| error.at(path.display()))?)
        })?;
        Ok(())
    }

    /// On which device and by which code the cycles were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = process::enter(py)?;
        Ok(Receipt::new(self.inner.lock(py)?.session().receipt()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let field = self.inner.lock(py)?;
        let ([x, y, z], channels) = (field.shape().cells(), field.shape().channels());
        Ok(format!(
            "<tectum field: {x} x {y} x {z} cells of {channels} channels, {} cycles>",
            field.cycle()
        ))
    }
}
