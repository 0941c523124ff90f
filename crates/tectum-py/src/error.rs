//! Errors as exceptions: one type for each kind.

use std::io::ErrorKind as IoKind;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use tectum::{Error, ErrorKind};

create_exception!(
    tectum,
    DataError,
    PyValueError,
    "A file is malformed or does not hold what its format requires."
);
create_exception!(
    tectum,
    UnsupportedError,
    PyNotImplementedError,
    "The device, kernel or feature does not exist in this build or on this machine."
);
create_exception!(
    tectum,
    DeviceLost,
    PyRuntimeError,
    "The device stopped answering or reported a fault; its state is lost."
);
create_exception!(
    tectum,
    MismatchError,
    PyRuntimeError,
    "A check ran and its result is wrong."
);
create_exception!(
    tectum,
    Cancelled,
    PyRuntimeError,
    "Work that has no result before its end was stopped."
);

/// The exception of an error, with the same text.
pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Invalid => PyValueError::new_err(text),
        ErrorKind::Data => DataError::new_err(text),
        ErrorKind::Unsupported => UnsupportedError::new_err(text),
        ErrorKind::OutOfMemory => PyMemoryError::new_err(text),
        ErrorKind::DeviceLost => DeviceLost::new_err(text),
        ErrorKind::Mismatch => MismatchError::new_err(text),
        ErrorKind::Cancelled => Cancelled::new_err(text),
        ErrorKind::Io => os_error(&error, text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// The exception of the operating system's error, with its number and the file. `str` of it is the
/// text.
fn os_error(error: &Error, text: String) -> PyErr {
    let cause = error
        .cause()
        .and_then(|cause| cause.downcast_ref::<std::io::Error>());
    // What a library reports without a number has the number of its kind.
    let number = cause.and_then(|cause| {
        cause.raw_os_error().or(match cause.kind() {
            IoKind::NotFound => Some(2),
            IoKind::PermissionDenied => Some(13),
            IoKind::AlreadyExists => Some(17),
            _ => None,
        })
    });
    let Some(number) = number else {
        return PyOSError::new_err(text);
    };
    // The class of the number, such as FileNotFoundError, is chosen by OSError itself.
    let messages = error.messages();
    let file = messages
        .len()
        .checked_sub(2)
        .map(|place| messages[place].clone());
    PyOSError::new_err((number, messages.last().cloned().unwrap_or(text), file))
}

/// Turns results of the libraries into those of Python functions.
pub trait OrRaise<T> {
    /// The value, or the exception of the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for tectum::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}
