//! Translates naga modules to PTX: a compute shader runs on an NVIDIA GPU with only its driver.
//!
//! ```text
//! WGSL ── naga: parse, validate ──▶ Module + ModuleInfo ── translate ──▶ Kernel: PTX text, launch facts, binding table
//! ```
//!
//! # Calling a kernel
//!
//! For each entry of [`Kernel::bindings`], in order, the kernel takes two 64-bit parameters: the
//! device address of the buffer (a multiple of 16) and its size in bytes. Uniform buffers are
//! passed the same way. A launch has [`Kernel::workgroup_size`] threads per block and
//! [`Kernel::dynamic_shared_bytes`] of dynamic shared memory.

#![forbid(unsafe_code)]

mod arithmetic;
mod atomic;
mod cast;
mod error;
mod expression;
mod math;
mod matrix;
mod place;
mod placement;
mod pointer_target;
mod scalar;
mod shape;
mod statement;
mod subgroup;
mod translator;
mod uniformity;
mod writer;

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use naga::valid::ModuleInfo;
use naga::{Module, ShaderStage};

use translator::Translator;

pub use error::{Error, ErrorKind, Result};

/// Handling of an index out of its array's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexPolicy {
    /// The index is clamped to the last element: no access leaves its object. Costs one or two
    /// instructions per access.
    Clamp,
    /// No check: the caller guarantees that the module is in range.
    Trust,
}

/// A hash of this crate's sources: translations of one revision are the same on every machine, and
/// may be cached by it.
pub const REVISION: &str = env!("NAGA_PTX_REVISION");

/// Options of a translation.
#[derive(Debug, Clone)]
pub struct Options {
    /// Handling of a run-time index out of range. Default: `IndexPolicy::Clamp`.
    pub index: IndexPolicy,
    /// Whether read-only storage buffers and uniforms are read through the non-coherent cache
    /// (`ld.global.nc`). Only valid if no launch also binds the same memory writable. Default: no.
    pub read_only_cache: bool,
    /// Whether workgroup variables are zeroed before the entry point begins, as WGSL requires.
    /// Default: yes.
    pub zero_workgroup_memory: bool,
    /// Values of pipeline-overridable constants, by name or by `@id`.
    pub constants: PipelineConstants,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            index: IndexPolicy::Clamp,
            read_only_cache: false,
            zero_workgroup_memory: true,
            constants: PipelineConstants::default(),
        }
    }
}

/// How a buffer is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// `var<uniform>`
    Uniform,
    /// `var<storage, read>`
    StorageRead,
    /// `var<storage, read_write>`
    StorageReadWrite,
}

/// A buffer parameter of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// `@group`
    pub group: u32,
    /// `@binding`
    pub binding: u32,
    /// The variable's name, if the module has names.
    pub name: Option<String>,
    /// How it is bound.
    pub kind: BindingKind,
    /// The minimum size in bytes: with one element if the type ends in a run-time array.
    pub min_bytes: u32,
}

/// A translated entry point.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The module's text, for `cuModuleLoadData` or `ptxas`. It ends in a newline and contains no
    /// NUL.
    pub ptx: String,
    /// The name of the `.entry`.
    pub entry: String,
    /// Threads per block, x, y, z.
    pub workgroup_size: [u32; 3],
    /// Shared memory in the module itself, in bytes.
    pub static_shared_bytes: u32,
    /// Shared memory that the launch must request, in bytes; 0 unless the kernel needs over 48 KiB.
    /// Then the function's attribute for the maximum dynamic shared memory must be raised too.
    pub dynamic_shared_bytes: u32,
    /// The buffers that the entry point uses, in the order of the kernel's parameters.
    pub bindings: Vec<Binding>,
}

/// Translates one compute entry point.
///
/// # Errors
/// [`ErrorKind::EntryPoint`] if the module has no compute entry point of that name;
/// [`ErrorKind::Override`] for an override without a value; [`ErrorKind::Unsupported`] and
/// [`ErrorKind::Uniformity`] name the construct and its position.
pub fn translate(
    module: &Module,
    info: &ModuleInfo,
    entry_point: &str,
    options: &Options,
) -> Result<Kernel> {
    let compute = ShaderStage::Compute;
    if !module
        .entry_points
        .iter()
        .any(|entry| entry.name == entry_point && entry.stage == compute)
    {
        return Err(Error::new(
            ErrorKind::EntryPoint,
            entry_point,
            naga::Span::UNDEFINED,
        ));
    }
    let (module, info) = process_overrides(
        module,
        info,
        Some((compute, entry_point)),
        &options.constants,
    )
    .map_err(|error| {
        Error::new(
            ErrorKind::Override,
            error.to_string(),
            naga::Span::UNDEFINED,
        )
    })?;
    let is_chosen = |entry: &naga::EntryPoint| entry.name == entry_point && entry.stage == compute;
    let index = module
        .entry_points
        .iter()
        .position(is_chosen)
        .expect("invariant: processing overrides keeps the entry point");
    uniformity::check(&module, index)?;
    Translator::new(&module, &info, index, options).translate()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
