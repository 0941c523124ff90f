//! The extension module of the Python package `tectum`: the crates of this workspace with the types
//! of Python and NumPy.

// The types of wgpu are nested deeply.
#![recursion_limit = "256"]

mod array;
mod batch;
mod body;
mod brain;
mod buffer;
mod closed_loop;
mod device;
mod dtype;
mod error;
mod exclusive;
mod field;
mod graph;
mod html;
mod interned;
mod interrupt;
mod job;
mod json;
mod kernel_check;
mod link;
mod logging;
mod mutex;
mod network;
mod picture;
mod plan;
mod process;
mod program;
mod receipt;
mod recording;
mod sample;
mod scenario;
mod sequence;
mod spiking;
mod stream;
mod transformer;
mod whole;

/// Neural workloads in real time, on GPUs and CPUs, with receipts.
#[pyo3::pymodule(gil_used = false)]
mod _tectum {
    /// Connects the log when the module is imported.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::process::install();
        crate::logging::install();
        crate::error::OrRaise::or_raise(tectum_link::register(|address| {
            tracing::warn!(%address, "waiting for the body to connect");
        }))?;
        pyo3::types::PyModuleMethods::add(module, "__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::array::array_address;
    #[pymodule_export]
    use crate::batch::BodyBatch;
    #[pymodule_export]
    use crate::body::{
        ActionChannel, BodySpec, NativeBody, ObservationChannel, body, mujoco_program,
        restored_body,
    };
    #[pymodule_export]
    use crate::brain::{NativeBrain, policy};
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::closed_loop::{Run, StopSignal, run_loop};
    #[pymodule_export]
    use crate::device::{Device, devices};
    #[pymodule_export]
    use crate::error::{Cancelled, DataError, DeviceLost, MismatchError, UnsupportedError};
    #[pymodule_export]
    use crate::field::{Field, FieldReport};
    #[pymodule_export]
    use crate::graph::{CompiledGraph, Graph, Node, Trainer};
    #[pymodule_export]
    use crate::kernel_check::{KernelCase, KernelCheck, KernelCheckRow, check_kernel};
    #[pymodule_export]
    use crate::link::{RemoteBody, Server, remote_policy, serve};
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::plan::{Executable, Kernel, Plan, View};
    #[pymodule_export]
    use crate::process::end;
    #[pymodule_export]
    use crate::program::{Program, program};
    #[pymodule_export]
    use crate::receipt::Receipt;
    #[pymodule_export]
    use crate::recording::{Recording, Repetition, repeat};
    #[pymodule_export]
    use crate::sample::{sample, samples};
    #[pymodule_export]
    use crate::scenario::{brain, run};
    #[pymodule_export]
    use crate::spiking::{
        Area, Genome, Neurons, PotentialMonitor, SpikeCounts, SpikeMonitor, SpikingNetwork,
    };
    #[pymodule_export]
    use crate::stream::{Event, Stream, Submission};
    #[pymodule_export]
    use crate::transformer::{Decoder, Encoder, Generation, TextStream};
}
