//! The operations of plans by family. A file has the declaration of a kernel, its native twin and
//! the method of [`PlanBuilder`](crate::PlanBuilder) that records it; its device code is in the
//! folder of the family.

pub mod attention;
pub mod convolution;
pub mod elementwise;
pub mod movement;
pub mod product;
pub mod random;
pub mod reduce;
pub mod stencil;

use std::sync::Arc;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::KernelArguments;
use crate::kernel::{Kernel, KernelBuilder, MAX_GROUPS, NativeCall, REVISION, TypedKernel};
use crate::view::View;

/// The kernels of all operations.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let families = [
        elementwise::kernels,
        movement::kernels,
        reduce::kernels,
        product::kernels,
        attention::kernels,
        random::kernels,
        stencil::kernels,
    ];
    families
        .into_iter()
        .chain([convolution::kernels as fn() -> _])
        .flat_map(|kernels| kernels())
        .collect()
}

/// Finishes the definition of one of this crate's kernels.
fn built_in<A: KernelArguments, T: Element, N>(
    builder: KernelBuilder<A, T>,
    native: N,
) -> TypedKernel<A>
where
    N: for<'a> Fn(&NativeCall<'a>, A::Slices<'a, T>) + Send + Sync + 'static,
{
    // SAFETY: the kernels of this crate bound every index by `params`, which recording derives from
    // the bound views, and their loops by these; only this crate has them with the type of their
    // arguments. `tectum verify` runs each with guards around its outputs.
    let builder = unsafe { builder.trusted() };
    builder
        .revision(REVISION)
        .parsed_by_tests()
        .native(native)
        .expect("invariant: the crate's own kernel tables are well formed")
}

/// One workgroup for each item, capped so that the kernel strides over the rest.
fn groups(items: usize) -> u32 {
    items.min(MAX_GROUPS as usize) as u32
}

/// The 32-bit words of an element of views whose elements are moved bit by bit; refuses types of
/// different widths.
fn words_each(op: &str, views: &[View]) -> Result<usize> {
    let bytes = views[0].dtype().bytes();
    if views.iter().all(|view| view.dtype().bytes() == bytes) {
        return Ok(bytes / DType::U32.bytes());
    }
    let types: Vec<_> = views.iter().map(|view| view.dtype().wgsl()).collect();
    Err(Error::invalid(format!(
        "{op}: elements of {}; types of one width needed",
        types.join(", ")
    )))
}

fn same_len(op: &str, x: View, y: View) -> Result<()> {
    if x.len() == y.len() {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "{op}: lengths {} and {} differ",
            x.len(),
            y.len()
        )))
    }
}
