//! Receipts.

use pyo3::prelude::*;

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

    /// The hash of every period of a loop, without measured times; None for other work. The same seed gives the same hash.
    #[getter]
    pub fn trace(&self) -> Option<String> {
        self.inner.trace.as_ref().map(ToString::to_string)
    }

    /// The receipt as a dict, with the keys of its JSON form.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::json::to_python(py, &self.inner)
    }

    fn _repr_html_(&self) -> String {
        let receipt = &self.inner;
        let code: Vec<String> = receipt.code.iter().map(|object| format!("{} {}", object.kernel, &object.hash.to_string()[..12])).collect();
        let rows = [
            ("device", format!("{} ({}){}", receipt.device.id, receipt.device.name, if receipt.device.software { ", software" } else { "" })),
            ("runs", receipt.runs.to_string()),
            ("trace", self.trace().unwrap_or_default()),
            ("code", code.join(", ")),
        ];
        crate::html::table("receipt", &rows)
    }

    fn __repr__(&self) -> String {
        format!("<tectum receipt: {} runs on {}>", self.inner.runs, self.inner.device.id)
    }
}
