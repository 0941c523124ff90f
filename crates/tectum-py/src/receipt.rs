//! Receipts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tectum::{CodeObject, Device, Fallback, Result, RunStats, Session};

use crate::mutex::locked;

/// The runs of an object so far, for its receipt.
#[derive(Clone)]
pub struct Runs(Arc<Mutex<Session>>);

impl Drop for Runs {
    fn drop(&mut self) {
        // The session has the device: see `Device`.
        if crate::process::leaks() {
            std::mem::forget(self.0.clone());
        }
    }
}

impl Runs {
    pub fn new(device: &Device, code: &[CodeObject]) -> Self {
        let mut session = Session::new(device);
        session.uses_code(code);
        Self(Arc::new(Mutex::new(session)))
    }

    /// Records work that ran elsewhere than requested.
    pub fn record_fallback(&self, fallback: &Fallback) {
        locked(&self.0).record_fallback(&fallback.what, &fallback.reason);
    }

    /// Runs once, and counts the run with its host time.
    pub fn timed(&self, run: impl FnOnce() -> Result<RunStats>) -> Result<()> {
        let start = Instant::now();
        let stats = run()?;
        self.record(&stats, start.elapsed());
        Ok(())
    }

    /// Counts a run that took some host time.
    pub fn record(&self, stats: &RunStats, duration: Duration) {
        locked(&self.0).record(stats, duration.as_nanos() as u64);
    }

    /// Raises RuntimeError in a fork.
    pub fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = crate::process::enter(py)?;
        Ok(Receipt::new(locked(&self.0).receipt()))
    }
}

/// On which device and by which code results were computed.
#[pyclass(frozen, module = "tectum")]
pub struct Receipt {
    inner: tectum::Receipt,
}

impl Receipt {
    pub fn new(inner: tectum::Receipt) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Receipt {
    /// The id of the device.
    #[getter]
    pub fn device(&self) -> &str {
        &self.inner.device.id
    }

    /// Whether the device is a processor that emulates a GPU.
    #[getter]
    fn software(&self) -> bool {
        self.inner.device.software
    }

    /// Number of runs that it covers.
    #[getter]
    fn runs(&self) -> u64 {
        self.inner.runs
    }

    /// The hash of every period of a loop, without measured times; None for other work. The same
    /// seed gives the same hash.
    #[getter]
    pub fn trace(&self) -> Option<String> {
        self.inner.trace.as_ref().map(ToString::to_string)
    }

    /// The receipt as a dict, with the keys of its JSON form.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = crate::process::enter(py)?;
        crate::json::to_python(py, &self.inner)
    }

    fn _repr_html_(&self) -> String {
        let receipt = &self.inner;
        let code: Vec<String> = receipt
            .code
            .iter()
            .map(|object| format!("{} {}", object.kernel, &object.hash.to_string()[..12]))
            .collect();
        let rows = [
            (
                "device",
                format!(
                    "{} ({}){}",
                    receipt.device.id,
                    receipt.device.name,
                    if receipt.device.software {
                        ", software"
                    } else {
                        ""
                    }
                ),
            ),
            ("runs", receipt.runs.to_string()),
            ("trace", self.trace().unwrap_or_default()),
            ("code", code.join(", ")),
        ];
        crate::html::table("receipt", &rows)
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum receipt: {} runs on {}>",
            self.inner.runs, self.inner.device.id
        )
    }
}
