//! The extension module of the Python package `tectum`: the crates of this workspace with the types of Python and NumPy.

// The types of wgpu are nested deeply.
#![recursion_limit = "256"]

mod body;
mod brain;
mod closed_loop;
mod device;
mod error;
mod interrupt;
mod json;
mod network;
mod receipt;
mod scenario;

/// Neural workloads in real time, on GPUs and CPUs, with receipts.
#[pyo3::pymodule]
mod _tectum {
    #[pymodule_export]
    use crate::body::{ActionChannel, BodySpec, NativeBody, ObservationChannel, body};
    #[pymodule_export]
    use crate::brain::{NativeBrain, policy};
    #[pymodule_export]
    use crate::closed_loop::{Run, run_loop};
    #[pymodule_export]
    use crate::device::{Device, devices};
    #[pymodule_export]
    use crate::error::{Cancelled, DataError, DeviceLost, MismatchError, UnsupportedError};
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::receipt::Receipt;
    #[pymodule_export]
    use crate::scenario::{brain, run};
}
