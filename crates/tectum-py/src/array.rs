//! Arrays of NumPy, and whatever NumPy converts to one.

use numpy::{Element, PyArray1, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tectum::host_memory;

use crate::error::OrRaise;
use crate::sequence::stated_len;

/// An array of floats in row-major order. One of float32 in that order is used in place; others are
/// converted.
///
/// Raises TypeError for what has no numbers.
pub fn floats<'py>(
    value: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, f32>> {
    converted(value, what, "float32")
}

/// A vector of floats, as many as expected.
///
/// Raises ValueError for another number of them.
pub fn numbers(value: &Bound<'_, PyAny>, what: &str, expected: usize) -> PyResult<Vec<f32>> {
    let array = floats(value, what)?;
    let numbers = array.as_slice()?;
    if numbers.len() != expected {
        return Err(PyValueError::new_err(format!(
            "{what} has {} numbers, needs {expected}",
            numbers.len()
        )));
    }
    Ok(numbers.to_vec())
}

/// A vector of whole numbers, each of which the type can represent.
///
/// Raises TypeError for floats, ValueError naming the first number that is out of range.
pub fn integers<T: TryFrom<i64>>(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<T>> {
    if let Ok(range) = value.cast::<pyo3::types::PyRange>() {
        let mut numbers = host_memory::with_capacity(what, stated_len(range)).or_raise()?;
        for number in range.try_iter()? {
            numbers.push(fitting(number?.extract()?, what)?);
        }
        return Ok(numbers);
    }
    let array = value
        .py()
        .import("numpy")?
        .call_method1("atleast_1d", (value,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let is_empty = array.len()? == 0;
    if !is_empty && !matches!(kind.as_str(), "i" | "u" | "b") {
        return Err(PyTypeError::new_err(format!(
            "{what} has the type {}, needs whole numbers",
            array.getattr("dtype")?
        )));
    }
    converted::<i64>(&array, what, "int64")?
        .as_slice()?
        .iter()
        .map(|number| fitting(*number, what))
        .collect()
}

fn fitting<T: TryFrom<i64>>(number: i64, what: &str) -> PyResult<T> {
    T::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{what} has {number}, which is out of range")))
}

fn converted<'py, T: Element>(
    value: &Bound<'py, PyAny>,
    what: &str,
    dtype: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let numpy = value.py().import("numpy")?;
    // Tensors of other libraries are read in place where they are in the memory of the host.
    let shared = if value.cast::<PyUntypedArray>().is_err() && value.hasattr("__dlpack__")? {
        Some(
            numpy
                .call_method1("from_dlpack", (value,))
                .map_err(|error| {
                    PyTypeError::new_err(format!("{what}: its memory cannot be read: {error}"))
                })?,
        )
    } else {
        None
    };
    let value = shared.as_ref().unwrap_or(value);
    if let Some(array) = value
        .extract::<PyReadonlyArrayDyn<'py, T>>()
        .ok()
        .filter(|array| array.is_c_contiguous())
    {
        return Ok(array);
    }
    let made = numpy.call_method1("ascontiguousarray", (value, dtype));
    let made = made.map_err(|error| {
        if error.is_instance_of::<PyMemoryError>(numpy.py()) {
            return error;
        }
        PyTypeError::new_err(format!(
            "{what}: {} is no array of numbers: {error}",
            value.get_type()
        ))
    })?;
    made.extract::<PyReadonlyArrayDyn<'py, T>>()
}

/// The address from which functions of this package read an array of float32: that of the array
/// itself, unless its type or layout needs a copy.
///
/// Arrays of NumPy and of anything that exports DLPack, such as tensors of PyTorch and arrays of
/// JAX, are read in place where they are in the memory of the host. Raises TypeError for others.
///
/// >>> import numpy as np, tectum as tt
/// >>> values = np.zeros(1000, np.float32)
/// >>> tt.array_address(values) == values.ctypes.data
/// True
#[pyfunction]
pub fn array_address(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(floats(array, "array")?.as_slice()?.as_ptr().addr())
}

/// Numbers as an array of a shape, which takes over their memory.
pub fn shaped<'py, T: Element>(
    py: Python<'py>,
    numbers: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    PyArray1::from_vec(py, numbers)
        .into_any()
        .call_method1("reshape", (PyTuple::new(py, shape)?,))
}

/// A column of an array of numbers that callers may also give as one number for all.
pub fn broadcast(value: &Bound<'_, PyAny>, what: &str, count: usize) -> PyResult<Vec<f32>> {
    match value.extract::<f32>() {
        Ok(number) => host_memory::filled(what, number, count).or_raise(),
        Err(_) => numbers(value, what, count),
    }
}
