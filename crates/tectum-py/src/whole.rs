//! Whole numbers of arguments, whose refusals name the argument.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A whole number, some of them, or None.
///
/// Raises ValueError for a number that is out of range, TypeError for anything else; both name the
/// argument.
fn whole<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    value.extract::<T>().map_err(|error| {
        let (py, error): (_, PyErr) = (value.py(), error.into());
        if error.is_instance_of::<PyOverflowError>(py) {
            // Python refuses to write a number of thousands of digits.
            let text = value.str().map_or_else(
                |_| "a very large number".to_owned(),
                |text| text.to_string_lossy().into_owned(),
            );
            PyValueError::new_err(format!("{name} is {text}, which is out of range"))
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(format!("{name}: {}", error.value(py)))
        } else {
            error
        }
    })
}

macro_rules! arguments {
    ($($name:ident)*) => {$(
        /// The argument of this name.
        pub fn $name<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> PyResult<T> {
            whole(value, stringify!($name))
        }
    )*};
}

arguments! {
    axis block bursts consecutive_fire_limit context count epochs every grid groups heads
    instances kv_heads length max_loop_iterations max_new_tokens memory_neurons motors order
    patterns psp refractory seed seeds sensors shape shards shared_bytes snooze start threads top_k
    width
}
