//! Sequences of Python, whose stated length is not trusted.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tectum::host_memory;

use crate::error::OrRaise;

/// Elements that are read between two looks at the interpreter's signals.
const READ_BETWEEN: usize = 1 << 16;

/// The elements of a sequence, as an argument of a function.
///
/// Raises MemoryError for a sequence that states more elements than fit into memory, or has them;
/// a `Vec` as an argument ends the process.
pub struct Sequence<T>(pub Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Sequence<T> {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = <Vec<T> as FromPyObject<'_, 'py>>::INPUT_TYPE;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_sequence = value.hasattr("__getitem__")?
            && !value.is_instance_of::<PyString>()
            && !value.is_instance_of::<PyDict>();
        if !is_sequence {
            return Err(PyTypeError::new_err(format!(
                "a sequence is needed, not {}",
                value.get_type().name()?
            )));
        }
        let mut elements =
            host_memory::with_capacity("a sequence", stated_len(&value)).or_raise()?;
        for element in value.try_iter()? {
            if elements.len() % READ_BETWEEN == READ_BETWEEN - 1 {
                value.py().check_signals()?;
            }
            let element = element?.extract::<T>().map_err(Into::into)?;
            host_memory::push("a sequence", &mut elements, element).or_raise()?;
        }
        Ok(Self(elements))
    }
}

/// The number of elements that a sequence states; 0 if it states none.
pub fn stated_len(value: &Bound<'_, PyAny>) -> usize {
    match value.len() {
        Ok(length) => length,
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => usize::MAX,
        Err(_) => 0,
    }
}

/// One value, or a sequence of others.
#[derive(Clone)]
pub enum OneOrEach<A, T> {
    One(A),
    Each(Vec<T>),
}

impl<'py, A: FromPyObjectOwned<'py>, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py>
    for OneOrEach<A, T>
{
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = pyo3::type_hint_union!(
        <A as FromPyObject<'_, 'py>>::INPUT_TYPE,
        <Vec<T> as FromPyObject<'_, 'py>>::INPUT_TYPE
    );

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<A>() {
            Ok(one) => Ok(Self::One(one)),
            Err(_) => Ok(Self::Each(value.extract::<Sequence<T>>()?.0)),
        }
    }
}
