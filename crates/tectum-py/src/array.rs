//! Arrays of NumPy, and whatever NumPy converts to one.
//!
//! One rule for all: a value is accepted if the type of the array can represent it. Floats may lose
//! digits, integers become floats; floats never become integers, and nothing else is a number.

use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use tectum::host_memory;

use crate::error::OrRaise;
use crate::sequence::stated_len;

use crate::process;

/// Elements that are converted or copied between two looks at the signals.
const PART: usize = 1 << 22;

/// A type of numbers that arrays of callers are converted to.
pub trait Number: Element + Copy + Send + Sync + std::fmt::Display {
    /// NumPy's name.
    const NAME: &'static str;
    const IS_FLOAT: bool;

    /// The number, if the type represents it: floats may lose digits, but not become infinite.
    fn from_float(number: f64) -> Option<Self>;
    fn from_integer(number: i128) -> Option<Self>;
}

macro_rules! floats {
    ($($ty:ty, $name:literal;)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = $name;
            const IS_FLOAT: bool = true;

            fn from_float(number: f64) -> Option<Self> {
                let found = number as $ty;
                (found.is_finite() || !number.is_finite()).then_some(found)
            }

            fn from_integer(number: i128) -> Option<Self> {
                Some(number as $ty)
            }
        }
    )*};
}

macro_rules! integers {
    ($($ty:ty, $name:literal;)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = $name;
            const IS_FLOAT: bool = false;

            fn from_float(_: f64) -> Option<Self> {
                None
            }

            fn from_integer(number: i128) -> Option<Self> {
                Self::try_from(number).ok()
            }
        }
    )*};
}

floats! { f32, "float32"; f64, "float64"; }
integers! { u32, "uint32"; i32, "int32"; i64, "int64"; u64, "uint64"; }

/// An array from a caller, in row-major order.
pub struct Array<'py, T: Element> {
    elements: Elements<'py, T>,
    shape: Vec<usize>,
    /// Whether the caller gave one number, not an array of one.
    is_scalar: bool,
    what: String,
}

enum Elements<'py, T: Element> {
    /// In the memory of NumPy.
    Shared(PyReadonlyArrayDyn<'py, T>),
    Converted(Vec<T>),
}

impl<T: Number> Array<'_, T> {
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements. No function of Python may run while they are used.
    ///
    /// Raises ValueError if the array was changed in place since it was converted.
    pub fn slice(&self) -> PyResult<&[T]> {
        match &self.elements {
            Elements::Converted(elements) => Ok(elements),
            Elements::Shared(array) => {
                let elements = in_place(array, &self.what)?;
                if elements.len() == self.shape.iter().product::<usize>() {
                    Ok(elements)
                } else {
                    Err(changed(&self.what))
                }
            }
        }
    }

    /// The elements as values of their own.
    ///
    /// Raises MemoryError if there is no room for them.
    pub fn into_vec(self) -> PyResult<Vec<T>> {
        match &self.elements {
            Elements::Shared(array) => {
                let elements = self.slice()?;
                converted(array.py(), elements, &self.what, |element| Some(*element))
            }
            Elements::Converted(_) => match self.elements {
                Elements::Converted(elements) => Ok(elements),
                Elements::Shared(_) => Ok(Vec::new()),
            },
        }
    }
}

/// The elements of an array of NumPy in row-major order. No function of Python may run while they
/// are used.
///
/// Raises ValueError if the array has another type by now, or is not aligned or in this order.
pub fn in_place<'a, T: Element>(
    array: &'a PyReadonlyArrayDyn<'_, T>,
    what: &str,
) -> PyResult<&'a [T]> {
    let is_aligned: bool = array.getattr("flags")?.getattr("aligned")?.extract()?;
    if is_aligned && array.dtype().is_equiv_to(&T::get_dtype(array.py())) {
        Ok(array.as_slice()?)
    } else {
        Err(changed(what))
    }
}

fn changed(what: &str) -> PyErr {
    PyValueError::new_err(format!("{what}: the array was changed during the call"))
}

/// An array of numbers. One of this type in row-major order is used in place; others are converted.
///
/// Raises TypeError for what has no numbers and for floats where integers are needed, ValueError for
/// a number that the type cannot represent.
pub fn array<'py, T: Number>(value: &Bound<'py, PyAny>, what: &str) -> PyResult<Array<'py, T>> {
    let py = value.py();
    let source = to_numpy(value, what)?;
    let is_scalar = source.ndim() == 0;
    let shared = |array: PyReadonlyArrayDyn<'py, T>| {
        let shape = match array.shape() {
            [] => vec![1],
            shape => shape.to_vec(),
        };
        Array {
            elements: Elements::Shared(array),
            shape,
            is_scalar,
            what: what.to_owned(),
        }
    };
    if source.dtype().is_equiv_to(&T::get_dtype(py)) {
        return Ok(shared(contiguous(&source, T::NAME)?.extract()?));
    }
    let shape = match source.shape() {
        [] => vec![1],
        shape => shape.to_vec(),
    };
    let kind = source.dtype().kind();
    let elements = match kind {
        _ if source.len() == 0 => Vec::new(),
        b'f' if T::IS_FLOAT => {
            let floats: PyReadonlyArrayDyn<'_, f64> = contiguous(&source, "float64")?.extract()?;
            converted(py, floats.as_slice()?, what, |number| {
                T::from_float(*number)
            })?
        }
        b'b' | b'i' | b'u' if T::IS_FLOAT => {
            return Ok(shared(contiguous(&source, T::NAME)?.extract()?));
        }
        b'u' if source.dtype().itemsize() == 8 => {
            let numbers: PyReadonlyArrayDyn<'_, u64> = contiguous(&source, "uint64")?.extract()?;
            converted(py, numbers.as_slice()?, what, |number| {
                T::from_integer((*number).into())
            })?
        }
        b'b' | b'i' | b'u' => {
            let numbers: PyReadonlyArrayDyn<'_, i64> = contiguous(&source, "int64")?.extract()?;
            converted(py, numbers.as_slice()?, what, |number| {
                T::from_integer((*number).into())
            })?
        }
        _ => {
            let needed = if T::IS_FLOAT {
                "numbers"
            } else {
                "whole numbers"
            };
            return Err(PyTypeError::new_err(format!(
                "{what} has the type {}, needs {needed}",
                source.dtype()
            )));
        }
    };
    Ok(Array {
        elements: Elements::Converted(elements),
        shape,
        is_scalar,
        what: what.to_owned(),
    })
}

/// An array of floats.
pub fn floats<'py>(value: &Bound<'py, PyAny>, what: &str) -> PyResult<Array<'py, f32>> {
    array(value, what)
}

/// A vector of floats, as many as expected.
///
/// Raises ValueError for another number of them.
pub fn numbers(value: &Bound<'_, PyAny>, what: &str, expected: usize) -> PyResult<Vec<f32>> {
    let array = floats(value, what)?;
    let found = array.shape().iter().product::<usize>();
    if found != expected {
        return Err(PyValueError::new_err(format!(
            "{what} has {found} numbers, needs {expected}"
        )));
    }
    array.into_vec()
}

/// A vector of whole numbers, each of which the type can represent.
///
/// Raises TypeError for floats, ValueError naming the first number that is out of range.
pub fn integers<T: Number>(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<T>> {
    if value.is_instance_of::<pyo3::types::PyRange>() {
        let bytes = (stated_len(value) as u64).saturating_mul(8);
        host_memory::check(what, bytes).or_raise()?;
        let ends = ["start", "stop", "step"].map(|end| value.getattr(end));
        let [start, stop, step] = ends;
        let numbers = value
            .py()
            .import("numpy")?
            .call_method1("arange", (start?, stop?, step?))?;
        return array(&numbers, what)?.into_vec();
    }
    array(value, what)?.into_vec()
}

/// The array of NumPy that a value is, exports or converts to, of any type.
fn to_numpy<'py>(value: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = value.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let numpy = value.py().import("numpy")?;
    // Tensors of other libraries are read in place where they are in the memory of the host.
    let made = if value.hasattr("__dlpack__")? {
        numpy
            .call_method1("from_dlpack", (value,))
            .map_err(|error| {
                no_array(value.py(), error, || {
                    format!("{what}: its memory cannot be read")
                })
            })?
    } else {
        numpy.call_method1("asarray", (value,)).map_err(|error| {
            no_array(value.py(), error, || {
                format!("{what}: {} is no array of numbers", value.get_type())
            })
        })?
    };
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// The refusal of a value that NumPy cannot convert; what functions of the value raised otherwise,
/// or a handler of signals, is raised as it is.
fn no_array(py: Python<'_>, error: PyErr, text: impl FnOnce() -> String) -> PyErr {
    let is_refusal = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<pyo3::exceptions::PyBufferError>(py);
    if is_refusal {
        PyTypeError::new_err(format!("{}: {error}", text()))
    } else {
        error
    }
}

/// The array with a type of the same kind or a wider one, in row-major order and aligned: itself if
/// it is that already.
fn contiguous<'py>(
    source: &Bound<'py, PyUntypedArray>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let numpy = py.import("numpy")?;
    let wanted = numpy::PyArrayDescr::new(py, dtype)?;
    let is_aligned =
        || -> PyResult<bool> { source.getattr("flags")?.getattr("aligned")?.extract() };
    if source.dtype().is_equiv_to(&wanted) && source.is_c_contiguous() && is_aligned()? {
        return Ok(source.clone().into_any());
    }
    let made = numpy.call_method1("empty", (PyTuple::new(py, source.shape())?, &wanted))?;
    let unsafe_casts = PyDict::new(py);
    unsafe_casts.set_item("casting", "unsafe")?;
    if source.len() <= PART {
        numpy.call_method("copyto", (&made, source), Some(&unsafe_casts))?;
        return Ok(made);
    }
    let flat = made.call_method1("reshape", (-1,))?;
    let elements = if source.is_c_contiguous() {
        source.call_method1("reshape", (-1,))?
    } else {
        source.getattr("flat")?
    };
    for start in (0..source.len()).step_by(PART) {
        py.check_signals()?;
        let part = PySlice::new(py, start as isize, (start + PART) as isize, 1);
        let (to, from) = (flat.get_item(&part)?, elements.get_item(&part)?);
        numpy.call_method("copyto", (to, from), Some(&unsafe_casts))?;
    }
    Ok(made)
}

/// Converts each element; large arrays in parts, without the interpreter's lock, with a look at the
/// signals after each.
///
/// Raises ValueError naming the first element that the type cannot represent, MemoryError if there
/// is no room.
fn converted<S: std::fmt::Display + Send + Sync, T: Number>(
    py: Python<'_>,
    elements: &[S],
    what: &str,
    convert: impl Fn(&S) -> Option<T> + Send + Sync,
) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    made.try_reserve_exact(elements.len()).map_err(|_| {
        PyMemoryError::new_err(format!(
            "{what}: no memory for {} elements of {}",
            elements.len(),
            T::NAME
        ))
    })?;
    let mut refused = None;
    for part in elements.chunks(PART) {
        let mut convert_part = || {
            for element in part {
                match convert(element) {
                    Some(element) => made.push(element),
                    None => return Some(made.len()),
                }
            }
            None
        };
        refused = if elements.len() <= PART {
            convert_part()
        } else {
            py.check_signals()?;
            process::detach(py, convert_part)
        };
        if refused.is_some() {
            break;
        }
    }
    match refused {
        None => Ok(made),
        Some(place) => Err(PyValueError::new_err(format!(
            "{what} has {} at place {place}, which is out of range of {}",
            elements[place],
            T::NAME
        ))),
    }
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
    let _call = process::enter(array.py())?;
    Ok(floats(array, "array")?.slice()?.as_ptr().addr())
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
    let column = floats(value, what)?;
    match column.slice()? {
        [number] if column.is_scalar => host_memory::filled(what, *number, count).or_raise(),
        numbers if numbers.len() == count => Ok(numbers.to_vec()),
        numbers => Err(PyValueError::new_err(format!(
            "{what} has {} numbers, needs {count}",
            numbers.len()
        ))),
    }
}
