//! Errors as exceptions: one type for each kind.

use std::io::ErrorKind as IoKind;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyMemoryError, PyNotImplementedError, PyOSError,
    PyPermissionError, PyRuntimeError, PyValueError,
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
        ErrorKind::Io => match error
            .cause()
            .and_then(|cause| cause.downcast_ref::<std::io::Error>())
            .map(std::io::Error::kind)
        {
            Some(IoKind::NotFound) => PyFileNotFoundError::new_err(text),
            Some(IoKind::PermissionDenied) => PyPermissionError::new_err(text),
            Some(IoKind::AlreadyExists) => PyFileExistsError::new_err(text),
            _ => PyOSError::new_err(text),
        },
        _ => PyRuntimeError::new_err(text),
    }
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
