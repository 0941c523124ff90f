//! Comparison of a kernel's twin with its device code.

use std::collections::HashMap;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::{Access, DType, Difference, Element, Number};

use crate::array;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::interrupt::detached;
use crate::mutex::locked;
use crate::plan::Kernel;
use crate::process;
use crate::sequence::Sequence;

/// How far a float may be from its reference r: one number t for t·(1 + |r|), or an absolute and a
/// relative one for absolute + relative·|r|.
#[derive(FromPyObject, Clone, Copy)]
pub enum Tolerance {
    Same(f64),
    Each(f64, f64),
}

/// The arguments of a launch that `check_kernel` makes.
///
/// `arguments` has an array for each binding of the kernel and a number for each parameter, by name;
/// for a binding with the access "write", which the kernel writes whole, its length is enough.
/// `expected` has the results that are known, by binding; other results are compared with those of
/// the twin. Without `groups` there are as many workgroups as the longest array needs. `tolerance`
/// is how far a float may be from its reference r: one number t for t·(1 + |r|), or a pair for
/// absolute + relative·|r|.
///
/// >>> import tectum as tt
/// >>> tt.KernelCase({"x": [1.0, 2.0], "y": 2, "n": 2}, expected={"y": [2.0, 4.0]}, name="two")
/// <tectum kernel case 'two'>
#[pyclass(frozen, module = "tectum")]
pub struct KernelCase {
    name: Option<String>,
    arguments: HashMap<String, Py<PyAny>>,
    expected: HashMap<String, Py<PyAny>>,
    groups: Option<u32>,
    tolerance: Option<Tolerance>,
}

#[pymethods]
impl KernelCase {
    #[new]
    #[pyo3(signature = (arguments, *, name = None, expected = HashMap::new(), groups = None, tolerance = None))]
    fn new(
        arguments: HashMap<String, Py<PyAny>>,
        name: Option<String>,
        expected: HashMap<String, Py<PyAny>>,
        groups: Option<u32>,
        tolerance: Option<Tolerance>,
    ) -> Self {
        Self {
            name,
            arguments,
            expected,
            groups,
            tolerance,
        }
    }

    fn __repr__(&self) -> String {
        let name = self.name.as_deref().unwrap_or("unnamed");
        format!("<tectum kernel case '{name}'>")
    }
}

impl KernelCase {
    /// The case for a kernel.
    ///
    /// Raises KeyError for an argument that is missing or unknown.
    fn for_kernel(
        &self,
        py: Python<'_>,
        kernel: &Kernel,
        number: usize,
        tolerance: Tolerance,
    ) -> PyResult<tectum::KernelCase> {
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| format!("case {number}"));
        let place = format!("kernel {}, {name}", kernel.inner.name());
        let bindings = kernel.inner.bindings();
        let known = |argument: &str| {
            bindings.iter().any(|binding| binding.name == argument)
                || kernel.param_names().any(|param| param == argument)
        };
        let results = bindings.iter().filter(|binding| binding.access.writes());
        let results: Vec<&str> = results.map(|binding| binding.name).collect();
        let unknown = (self.arguments.keys().find(|argument| !known(argument)))
            .or_else(|| (self.expected.keys()).find(|name| !results.contains(&name.as_str())));
        if let Some(unknown) = unknown {
            return Err(PyKeyError::new_err(format!(
                "{place}: {unknown} is no argument, or no result that could be expected"
            )));
        }
        let mut case = tectum::KernelCase::new(name);
        for binding in bindings {
            let value = self.arguments.get(binding.name).ok_or_else(|| {
                PyKeyError::new_err(format!("{place}: array {} is missing", binding.name))
            })?;
            let (value, what) = (value.bind(py), format!("{place}: {}", binding.name));
            let expected = self.expected.get(binding.name).map(|array| array.bind(py));
            let length = match value.extract::<usize>() {
                Ok(length) if binding.access == Access::Write => Some(length),
                _ => None,
            };
            case = match binding.dtype {
                DType::F32 => with_array::<f32>(case, value, length, expected, &what)?,
                DType::F64 => with_array::<f64>(case, value, length, expected, &what)?,
                DType::I32 => with_array::<i32>(case, value, length, expected, &what)?,
                DType::U32 => with_array::<u32>(case, value, length, expected, &what)?,
            };
        }
        let values = self.arguments.iter();
        let values = values
            .map(|(name, value)| (name.clone(), value.bind(py).clone()))
            .collect();
        for word in kernel.param_words(&values)? {
            case = case.param(word);
        }
        if let Some(groups) = self.groups {
            case = case.groups(groups);
        }
        Ok(match self.tolerance.unwrap_or(tolerance) {
            Tolerance::Same(both) => case.tolerance(both, both),
            Tolerance::Each(absolute, relative) => case.tolerance(absolute, relative),
        })
    }
}

/// Adds a binding with its contents, or with the length of a result.
fn with_array<T: Element + array::Number>(
    case: tectum::KernelCase,
    value: &Bound<'_, PyAny>,
    length: Option<usize>,
    expected: Option<&Bound<'_, PyAny>>,
    what: &str,
) -> PyResult<tectum::KernelCase> {
    let contents = |value: &Bound<'_, PyAny>| array::array::<T>(value, what)?.into_vec();
    let case = match length {
        Some(length) => case.result::<T>(length),
        None => case.array(&contents(value)?),
    };
    Ok(match expected {
        Some(expected) => case.expected(&contents(expected)?),
        None => case,
    })
}

/// A case of `check_kernel` on a device: `passed`, or the first element that differs from its
/// reference.
///
/// >>> import tectum as tt
/// >>> row = tt.KernelCheckRow
#[pyclass(frozen, module = "tectum")]
pub struct KernelCheckRow {
    inner: tectum::KernelCheckRow,
}

impl KernelCheckRow {
    fn difference(&self) -> Option<&Difference> {
        self.inner.difference.as_ref()
    }
}

fn number(py: Python<'_>, number: Number) -> PyResult<Bound<'_, PyAny>> {
    Ok(match number {
        Number::Float(number) => number.into_pyobject(py)?.into_any(),
        Number::Integer(number) => number.into_pyobject(py)?.into_any(),
    })
}

#[pymethods]
impl KernelCheckRow {
    /// The device's id; on "cpu" the twin ran.
    #[getter]
    fn device(&self) -> &str {
        &self.inner.device
    }

    /// The name of the case.
    #[getter]
    fn case(&self) -> &str {
        &self.inner.case
    }

    /// Whether no element differs.
    #[getter]
    fn passed(&self) -> bool {
        self.inner.difference.is_none()
    }

    /// The binding of the first element that differs; None if none does.
    #[getter]
    fn binding(&self) -> Option<&str> {
        self.difference()
            .map(|difference| difference.binding.as_str())
    }

    /// The index of the first element that differs.
    #[getter]
    fn element(&self) -> Option<usize> {
        self.difference().map(|difference| difference.element)
    }

    /// Its value on the device.
    #[getter]
    fn found<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let difference = self.difference();
        difference
            .map(|difference| number(py, difference.found))
            .transpose()
    }

    /// Its reference: what the case expects, or the result of the twin.
    #[getter]
    fn expected<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let difference = self.difference();
        difference
            .map(|difference| number(py, difference.expected))
            .transpose()
    }

    /// How many elements of the binding differ.
    #[getter]
    fn differing(&self) -> usize {
        self.difference()
            .map_or(0, |difference| difference.differing)
    }

    fn __repr__(&self) -> String {
        let result = self
            .difference()
            .map_or_else(|| "passed".to_owned(), ToString::to_string);
        format!("<{}, {}: {result}>", self.inner.device, self.inner.case)
    }
}

/// What `check_kernel` found: `rows` by device and case, and in `left_out` what did not run, with
/// the reason.
///
/// >>> import tectum as tt
/// >>> check = tt.KernelCheck
#[pyclass(frozen, module = "tectum")]
pub struct KernelCheck {
    inner: tectum::KernelCheck,
}

#[pymethods]
impl KernelCheck {
    /// The kernel's name.
    #[getter]
    fn kernel(&self) -> &str {
        &self.inner.kernel
    }

    /// A row for each device and case.
    #[getter]
    fn rows(&self) -> Vec<KernelCheckRow> {
        let rows = self.inner.rows.iter().cloned();
        rows.map(|inner| KernelCheckRow { inner }).collect()
    }

    /// Devices, or cases on them, that did not run, with the reason.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.inner.left_out.clone()
    }

    /// Whether something was compared and nothing differs.
    #[getter]
    fn passed(&self) -> bool {
        self.inner.passed()
    }

    fn __repr__(&self) -> String {
        let differ = self.inner.rows.iter();
        let differ = differ.filter(|row| row.difference.is_some()).count();
        format!(
            "<tectum kernel check of '{}': {} rows, {differ} differ>",
            self.inner.kernel,
            self.inner.rows.len()
        )
    }
}

/// What callers give as a case: a `KernelCase`, or its arguments.
#[derive(FromPyObject)]
pub enum CaseArgument<'py> {
    Case(PyRef<'py, KernelCase>),
    Arguments(Bound<'py, PyDict>),
}

/// Runs the twin of a kernel and its device code on every device of this machine, or on `devices`,
/// and compares their results (docs/kernels.md).
///
/// A case has the arguments of a launch: a `KernelCase`, or a dict of its arrays and numbers by
/// name. Results are compared with those of the twin, or with what the case expects. `tolerance` is
/// that of cases that have none: 0 for equal results, one number t for t·(1 + |r|) around a
/// reference r, or a pair for absolute + relative·|r|. Integers are compared exactly.
///
/// Raises MismatchError with the first element that differs of each device and case; its attribute
/// `check` has all rows. Raises UnsupportedError if nothing could be compared, because no device
/// that runs device code is present (software Vulkan is one) and no result was expected.
///
/// >>> import numpy as np, tectum as tt
/// >>> def twin(x, y, n):
/// ...     y[:n] = 2 * x[:n]
/// >>> double = tt.Kernel(
/// ...     "double",
/// ...     '''
/// ...     @compute @workgroup_size(64)
/// ...     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
/// ...         if id.x < params.n { y[id.x] = 2.0 * x[id.x]; }
/// ...     }
/// ...     ''',
/// ...     [("x", "read", "float32"), ("y", "write", "float32")],
/// ...     [("n", "uint32")],
/// ...     twin,
/// ... )
/// >>> x = np.linspace(-1, 1, 1000)
/// >>> case = tt.KernelCase({"x": x, "y": 1000, "n": 1000}, expected={"y": 2 * x}, tolerance=1e-6)
/// >>> tt.check_kernel(double, [case]).passed
/// True
#[pyfunction]
#[pyo3(signature = (kernel, cases, *, tolerance = Tolerance::Same(0.0), devices = None))]
pub fn check_kernel<'py>(
    py: Python<'py>,
    kernel: &Kernel,
    cases: Sequence<CaseArgument<'py>>,
    tolerance: Tolerance,
    devices: Option<Sequence<DeviceArgument<'py>>>,
) -> PyResult<KernelCheck> {
    let _call = process::enter(py)?;
    let Sequence(cases) = cases;
    if cases.is_empty() {
        return Err(PyValueError::new_err(format!(
            "kernel {}: no cases; one at least is needed",
            kernel.inner.name()
        )));
    }
    let mut native = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter().enumerate() {
        native.push(match case {
            CaseArgument::Case(case) => case.for_kernel(py, kernel, number, tolerance)?,
            CaseArgument::Arguments(arguments) => {
                let case = KernelCase::new(arguments.extract()?, None, HashMap::new(), None, None);
                case.for_kernel(py, kernel, number, tolerance)?
            }
        });
    }
    let devices: Option<Vec<tectum::Device>> = devices
        .map(|Sequence(devices)| devices.iter().map(|device| device.open_named(py)).collect())
        .transpose()?;
    let checked = {
        let _turn = kernel.twin.turn.lock(py)?;
        kernel.twin.begin_waited_run();
        let checked = detached(py, || match devices {
            Some(devices) => tectum::check_kernel_on(&kernel.inner, &native, &devices),
            None => tectum::check_kernel(&kernel.inner, &native),
        });
        if let Some(error) = locked(&kernel.twin.raised).take() {
            return Err(error);
        }
        checked?
    };
    let check = KernelCheck {
        inner: checked.clone(),
    };
    match checked.into_result().or_raise() {
        Ok(_) => Ok(check),
        Err(error) => {
            error.value(py).setattr("check", Py::new(py, check)?)?;
            Err(error)
        }
    }
}
