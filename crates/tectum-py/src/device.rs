//! Devices.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::DeviceInfo;

use crate::interrupt::run_long;
use crate::process;
use crate::whole;

/// A device that results are computed on.
///
/// `Device("cpu")`, `Device("cuda:0")`, `Device("vulkan:0")`, `Device("metal:0")`,
/// `Device("dx12:0")`; `devices()` lists those of this machine. `threads` sets the number of
/// threads of the CPU; without it there are as many as cores.
///
/// Raises ValueError for an id that is none of these, UnsupportedError for a device that this
/// machine or build does not have.
///
/// >>> import tectum as tt
/// >>> tt.Device("cpu", threads=1)
/// Device('cpu')
#[pyclass(frozen, module = "tectum")]
pub struct Device {
    pub inner: tectum::Device,
    /// Threads that were asked for.
    threads: Option<usize>,
}

impl Drop for Device {
    fn drop(&mut self) {
        // Another reference, so that no driver is used where it must not be.
        if process::leaks() {
            std::mem::forget(self.inner.clone());
        }
    }
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (id = "cpu", *, threads: "int | None" = None))]
    fn new(
        py: Python<'_>,
        id: &str,
        #[pyo3(from_py_with = whole::threads)] threads: Option<usize>,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        if id == "auto" {
            return Err(no_work());
        }
        let id = id.to_owned();
        let open = move || match threads {
            Some(_) if id != "cpu" => Err(tectum::Error::invalid(format!(
                "threads: {id} has none; only cpu has"
            ))),
            Some(threads) => tectum::Device::cpu().threads(threads).open(),
            None => tectum::Device::open(&id),
        };
        Ok(Self {
            inner: run_long(py, open)?,
            threads,
        })
    }

    /// The id, such as "cpu" or "cuda:0".
    #[getter]
    fn id(&self) -> &str {
        &self.inner.info().id
    }

    /// The name that the driver or the operating system reports.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.info().name
    }

    /// Whether it is a processor that emulates a GPU; such a device never counts as a GPU.
    #[getter]
    fn software(&self) -> bool {
        self.inner.info().software
    }

    /// All that is known of the device, as in receipts.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        info(py, self.inner.info())
    }

    /// Whether both have the same id and number of threads.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            (self.id(), self.threads) == (other.id(), other.threads)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.id(), self.threads).hash(&mut hasher);
        hasher.finish()
    }

    /// What `copy` and `pickle` make it of again: a device of the same id, where it is read.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((String,), Bound<'py, PyDict>)> {
        let keywords = PyDict::new(py);
        keywords.set_item("threads", self.threads)?;
        Ok(((self.id().to_owned(),), keywords))
    }

    fn __repr__(&self) -> String {
        format!("Device('{}')", self.inner.info().id)
    }
}

/// What is known of a device, as a dict.
fn info<'py>(py: Python<'py>, info: &DeviceInfo) -> PyResult<Bound<'py, PyAny>> {
    crate::json::to_python(py, info)
}

/// Lists the devices of this machine as dicts, the same as in receipts.
///
/// >>> import tectum as tt
/// >>> any(device["id"] == "cpu" for device in tt.devices())
/// True
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let _call = process::enter(py)?;
    run_long(py, || Ok(tectum::Device::list()))?
        .iter()
        .map(|device| info(py, device))
        .collect()
}

/// The refusal of "auto" where no work is known.
fn no_work() -> PyErr {
    PyValueError::new_err(
        "device \"auto\" is chosen for the work that is computed: give it where that is made, such as graph.compile(device=\"auto\")",
    )
}

/// What callers give where a device is wanted: a `Device`, its id, or "auto".
#[derive(FromPyObject)]
pub enum DeviceArgument<'py> {
    Device(PyRef<'py, Device>),
    Id(String),
}

impl DeviceArgument<'_> {
    /// Opens the device; none for "auto".
    pub fn open(&self, py: Python<'_>) -> PyResult<Option<tectum::Device>> {
        match self {
            Self::Device(device) => Ok(Some(device.inner.clone())),
            Self::Id(id) if id == "auto" => Ok(None),
            Self::Id(id) => {
                let id = id.clone();
                run_long(py, move || tectum::Device::open(&id)).map(Some)
            }
        }
    }

    /// Opens the device. Raises ValueError for "auto".
    pub fn open_named(&self, py: Python<'_>) -> PyResult<tectum::Device> {
        self.open(py)?.ok_or_else(no_work)
    }
}
