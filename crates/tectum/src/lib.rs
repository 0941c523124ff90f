//! Tectum runs neural workloads in real time from one source on GPUs and CPUs, and proves where
//! each result was computed.
//!
//! Device code is written once, in WGSL, as a [`Kernel`] with a native twin. Launches of kernels
//! over buffers are recorded in a [`PlanBuilder`], compiled for a [`Device`] and run: one upload,
//! one submission, one download.
//!
//! ```
//! use tectum::{DType, Device, PlanBuilder};
//! let mut plan = PlanBuilder::new("example");
//! let x = plan.input("x", DType::F32, 3);
//! let y = plan.output("y", DType::F32, 3);
//! plan.unary("relu", x, y)?;
//! let mut run = plan.finish()?.compile(&Device::open("cpu")?)?;
//! run.input::<f32>(x).copy_from_slice(&[-1.0, 0.5, 2.0]);
//! let stats = run.run()?;
//! assert_eq!(run.output::<f32>(y), [0.0, 0.5, 2.0]);
//! assert_eq!((stats.transfers_up, stats.launches), (0, 1));
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | module or type | what for |
//! |---|---|
//! | [`Device`], [`DeviceInfo`] | what is in this machine: `cpu`, `cuda:N`, `vulkan:N`, `metal:N`, `dx12:N` |
//! | [`PlanBuilder`], [`Plan`], [`Executable`] | recorded launches; a run of them |
//! | [`operation`] | the built-in kernels, by family |
//! | [`Kernel`], [`kernel_arguments!`], [`check_kernel`] | kernels of your own, compared on each device |
//! | [`Stream`], [`Event`] | runs that overlap with the host and with each other |
//! | [`SharedState`], [`snapshot`] | states that plans share; states as files |
//! | [`Receipt`], [`Session`] | where and by which code results were computed |
//! | [`route`] | the device on which a plan is fastest |
//! | [`host_memory`] | sizes that are refused where memory is not available |

// All of wgpu's types determine whether threads may share a type that holds a device.
#![recursion_limit = "256"]
#![cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, reason = "only messages for the log read them")
)]

/// Sends a message to the log, with the feature `tracing`.
macro_rules! log {
    ($level:ident, $($message:tt)+) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!($($message)+);
    }};
}
use log;

mod buffer;
mod content_hash;
mod device;
mod dtype;
mod error;
pub mod file;
pub mod host_memory;
pub mod kernel;
mod kernel_check;
mod latency;
mod launch;
mod lru_cache;
mod measure;
pub mod npy;
pub mod operation;
mod plan;
mod receipt;
pub mod route;
mod sample;
mod shared_state;
pub mod snapshot;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "translations for CUDA are all that is stored")
)]
mod store;
mod stream;
mod view;
mod work_progress;

pub use buffer::Buffer;
pub use content_hash::{ContentHash, ContentHasher};
pub use device::{
    AbsentDevice, Api, CopyPath, CpuBuilder, Device, DeviceInfo, DeviceKind, DeviceLimits,
    LayoutPreferences, Pool, PoolCaps, PoolStats, Readings, ThreadPool,
};
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use kernel::pack::Half;
pub use kernel::{Access, Kernel, KernelBuilder, NativeCall, Prelude, TypedKernel};
pub use kernel_check::{
    Difference, KernelCase, KernelCheck, KernelCheckRow, Number, check_kernel, check_kernel_on,
};
pub use latency::{LATENCY_BINS, Latency, LatencyHistogram};
pub use launch::{BINDING_ALIGNMENT, CodeForm, CodeObject, LaunchTime, RunStats};
pub use measure::Measurement;
pub use operation::attention::AttentionSizes;
pub use operation::attention::cache_format::{CacheFormat, CacheFormats};
pub use operation::convolution::forward::{Convolution, FilterLayout};
pub use operation::convolution::pool::{PoolDivisor, Pooling};
pub use operation::convolution::transposed::TransposedConvolution;
pub use operation::convolution::window::Window;
pub use operation::movement::scatter::ScatterUpdate;
pub use operation::movement::strided::Strided;
pub use operation::product::gemm::{Activation, GemmEpilogue, Matrix};
pub use operation::product::gemm_batched::Matrices;
pub use operation::stencil::{Boundary, Points};
pub use plan::{ALIGNED_ELEMENTS, Executable, LaunchWork, Plan, PlanBuilder, PlanWork};
pub use receipt::{
    Fallback, InjectedFault, InputFile, MAX_LISTED_RECOVERIES, RECEIPT_SCHEMA, Receipt, Recovery,
    Session,
};
pub use sample::Sample;
pub use shared_state::SharedState;
pub use stream::{Event, Stream, Submission, SubmissionFuture, Work};
pub use view::View;
pub use work_progress::{Watch, WorkProgress};

/// What the sister crates of this workspace share with this one; no part of the interface.
#[doc(hidden)]
pub mod internal {
    pub use crate::lru_cache::LruCache;
    pub use crate::measure::Reference;
    pub use crate::stream::TwoPhaseRun;
    pub use crate::view::{Identity, elements};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/devices.md")]
#[doc = include_str!("../../../docs/kernels.md")]
struct PageExamples;
