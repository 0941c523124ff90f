//! Arrays of NumPy, and whatever NumPy converts to one.
//!
//! One rule for all: a value is accepted if the type of the array can represent it. Floats may lose
//! digits, integers become floats; floats never become integers, and nothing else is a number.

use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use tectum::host_memory;

use crate::error::OrRaise;
use crate::process;
use crate::sequence::stated_len;

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
pub struct Array<'py, T: Number> {
    elements: Elements<'py, T>,
    shape: Vec<usize>,
    /// Whether the caller gave one number, not an array of one.
    is_scalar: bool,
}

enum Elements<'py, T: Number> {
    Shared(Shared<'py, T>),
    Converted(Vec<T>),
}

/// Elements in the memory of NumPy. Functions of Python may change type and shape of the array in
/// place, so that both are checked whenever it is read.
struct Shared<'py, T: Number> {
    array: Bound<'py, PyArrayDyn<T>>,
    len: usize,
    what: String,
}

impl<'py, T: Number> Shared<'py, T> {
    /// The elements of an array of this type, which is in row-major order.
    fn new(array: Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        let array = array.cast_into::<PyArrayDyn<T>>()?;
        Ok(Self {
            len: array.len(),
            array,
            what: what.to_owned(),
        })
    }

    /// Raises ValueError if the array was changed in place.
    fn with<R>(&self, work: impl FnOnce(&[T]) -> R) -> PyResult<R> {
        let array = &self.array;
        let is_same = array.dtype().is_equiv_to(&T::get_dtype(array.py()))
            && array.is_c_contiguous()
            && array.len() == self.len;
        if !is_same {
            return Err(changed(&self.what));
        }
        Ok(work(array.try_readonly()?.as_slice()?))
    }

    /// Converts each element; between the parts of a large array other threads run, and signals are
    /// looked at.
    ///
    /// Raises ValueError naming the first element that the type cannot represent, MemoryError if
    /// there is no room.
    fn converted<N: Number>(&self, convert: impl Fn(T) -> Option<N>) -> PyResult<Vec<N>> {
        let (py, mut made) = (self.array.py(), Vec::new());
        made.try_reserve_exact(self.len).map_err(|_| {
            PyMemoryError::new_err(format!(
                "{}: no memory for {} elements of {}",
                self.what,
                self.len,
                N::NAME
            ))
        })?;
        while made.len() < self.len {
            let end = self.len.min(made.len() + PART);
            let refused = self.with(|elements| {
                for element in &elements[made.len()..end] {
                    match convert(*element) {
                        Some(element) => made.push(element),
                        None => return Some(*element),
                    }
                }
                None
            })?;
            if let Some(element) = refused {
                return Err(PyValueError::new_err(format!(
                    "{} has {element} at place {}, which is out of range of {}",
                    self.what,
                    made.len(),
                    N::NAME
                )));
            }
            if end < self.len {
                process::detach(py, std::thread::yield_now);
                py.check_signals()?;
            }
        }
        Ok(made)
    }
}

impl<T: Number> Array<'_, T> {
    /// Whether the caller gave one number, not an array of one.
    pub fn is_scalar(&self) -> bool {
        self.is_scalar
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Reads the elements; `work` runs no function of Python.
    ///
    /// Raises ValueError if the array was changed in place since it was converted.
    pub fn with<R>(&self, work: impl FnOnce(&[T]) -> R) -> PyResult<R> {
        match &self.elements {
            Elements::Converted(elements) => Ok(work(elements)),
            Elements::Shared(shared) => shared.with(work),
        }
    }

    /// The elements as values of their own.
    ///
    /// Raises MemoryError if there is no room for them.
    pub fn into_vec(self) -> PyResult<Vec<T>> {
        match self.elements {
            Elements::Converted(elements) => Ok(elements),
            Elements::Shared(shared) => shared.converted(Some),
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
    let source = to_numpy(value, what)?;
    let is_scalar = source.ndim() == 0;
    let shape = match source.shape() {
        [] => vec![1],
        shape => shape.to_vec(),
    };
    let (dtype, is_empty) = (source.dtype(), source.len() == 0);
    let (kind, is_unsigned) = (dtype.kind(), dtype.kind() == b'u' && dtype.itemsize() == 8);
    let is_same = dtype.is_equiv_to(&T::get_dtype(value.py()));
    let elements = match kind {
        _ if is_empty => Elements::Converted(Vec::new()),
        _ if is_same => Elements::Shared(Shared::new(contiguous(&source, T::NAME)?, what)?),
        b'f' if T::IS_FLOAT => {
            let floats = Shared::<f64>::new(contiguous(&source, "float64")?, what)?;
            Elements::Converted(floats.converted(T::from_float)?)
        }
        b'b' | b'i' | b'u' if T::IS_FLOAT => {
            Elements::Shared(Shared::new(contiguous(&source, T::NAME)?, what)?)
        }
        _ if is_unsigned => {
            let numbers = Shared::<u64>::new(contiguous(&source, "uint64")?, what)?;
            Elements::Converted(numbers.converted(|number| T::from_integer(number.into()))?)
        }
        b'b' | b'i' | b'u' => {
            let numbers = Shared::<i64>::new(contiguous(&source, "int64")?, what)?;
            Elements::Converted(numbers.converted(|number| T::from_integer(number.into()))?)
        }
        _ => {
            let needed = if T::IS_FLOAT {
                "it is no array of numbers"
            } else {
                "it needs whole numbers"
            };
            return Err(PyTypeError::new_err(format!(
                "{what} has the type {dtype}: {needed}"
            )));
        }
    };
    Ok(Array {
        elements,
        shape,
        is_scalar,
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
    let needed = numpy::PyArrayDescr::new(py, dtype)?;
    let is_aligned =
        || -> PyResult<bool> { source.getattr("flags")?.getattr("aligned")?.extract() };
    if source.dtype().is_equiv_to(&needed) && source.is_c_contiguous() && is_aligned()? {
        return Ok(source.clone().into_any());
    }
    let made = numpy.call_method1("empty", (PyTuple::new(py, source.shape())?, &needed))?;
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
    floats(array, "array")?.with(|elements| elements.as_ptr().addr())
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
    let is_scalar = column.is_scalar;
    match column.into_vec()?.as_slice() {
        [number] if is_scalar => host_memory::filled(what, *number, count).or_raise(),
        numbers if numbers.len() == count => Ok(numbers.to_vec()),
        numbers => Err(PyValueError::new_err(format!(
            "{what} has {} numbers, needs {count}",
            numbers.len()
        ))),
    }
}
