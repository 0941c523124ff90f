//! Element types by NumPy's names.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tectum::DType;

const DTYPES: [(DType, &str); 4] = [
    (DType::F32, "float32"),
    (DType::F64, "float64"),
    (DType::I32, "int32"),
    (DType::U32, "uint32"),
];

/// The type of a name, NumPy's or WGSL's.
pub fn parse(name: &str) -> PyResult<DType> {
    let known = DTYPES
        .iter()
        .find(|(dtype, known)| *known == name || dtype.wgsl() == name);
    known.map(|(dtype, _)| *dtype).ok_or_else(|| {
        PyValueError::new_err(format!(
            "dtype is {name:?}, needs float32, float64, int32 or uint32"
        ))
    })
}

/// NumPy's name of a type.
pub fn name(dtype: DType) -> &'static str {
    DTYPES
        .iter()
        .find(|(known, _)| *known == dtype)
        .map_or("float32", |(_, name)| name)
}
