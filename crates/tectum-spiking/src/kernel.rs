//! The definition of this crate's kernels.

use tectum::kernel::arguments::KernelArguments;
use tectum::{Element, KernelBuilder, NativeCall, TypedKernel};

/// Finishes the definition of one of this crate's kernels.
pub fn built_in<A: KernelArguments, T: Element, N>(
    builder: KernelBuilder<A, T>,
    native: N,
) -> TypedKernel<A>
where
    N: for<'a> Fn(&NativeCall<'a>, A::Slices<'a, T>) + Send + Sync + 'static,
{
    // SAFETY: the kernels of this crate bound every index by their parameters, which recording
    // derives from the views that it binds, or by tables that this crate alone writes; their loops
    // end at these bounds. No other crate has them with the type of their arguments.
    let builder = unsafe { builder.trusted() };
    builder
        .revision(env!("TECTUM_REVISION"))
        .parsed_by_tests()
        .native(native)
        .expect("invariant: the crate's own kernel tables are well formed")
}
