//! Helpers that this crate's kernel definitions share.

use std::sync::Arc;

use tectum::{DType, Kernel, KernelBuilder, NativeCall, PlanBuilder, View};

/// Records launches of this crate's kernels.
pub trait LaunchBuiltIn {
    /// As [`PlanBuilder::launch`]; `params` and `groups` are derived from the views.
    fn launch_built_in(&mut self, kernel: &Arc<Kernel>, views: &[View], params: &[u32], groups: u32) -> tectum::Result<()>;
}

impl LaunchBuiltIn for PlanBuilder {
    fn launch_built_in(&mut self, kernel: &Arc<Kernel>, views: &[View], params: &[u32], groups: u32) -> tectum::Result<()> {
        // SAFETY: as in `built_in`; no other crate reaches this trait.
        unsafe { self.launch_trusted(kernel, views, params, groups) }
    }
}

/// Adds integer parameters.
pub fn words(builder: KernelBuilder, names: &[&'static str]) -> KernelBuilder {
    names.iter().fold(builder, |builder, name| builder.param(name, DType::U32))
}

/// Adds float parameters.
pub fn floats(builder: KernelBuilder, names: &[&'static str]) -> KernelBuilder {
    names.iter().fold(builder, |builder, name| builder.param(name, DType::F32))
}

/// Finishes the definition of one of this crate's kernels.
pub fn built_in(builder: KernelBuilder, native: fn(&NativeCall<'_>)) -> Arc<Kernel> {
    // SAFETY: the kernels of this crate bound every index by their parameters, which recording derives from the views that it binds, or by tables that
    // this crate alone writes; their loops end at these bounds.
    let builder = unsafe { builder.trusted() };
    builder.revision(env!("TECTUM_REVISION")).native(native).expect("invariant: the crate's own kernel tables are well formed")
}
