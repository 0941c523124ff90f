//! The extension module of the Python package `tectum`: the crates of this workspace with the types of Python and NumPy.

// The types of wgpu are nested deeply.
#![recursion_limit = "256"]

mod control;
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
    use crate::control::{ActionChannel, BodySpec, NativeBody, NativeBrain, ObservationChannel, Run, body, policy, run_loop};
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
