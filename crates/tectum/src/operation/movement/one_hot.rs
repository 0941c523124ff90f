//! Class numbers as rows of zeros and a one.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk};
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[i, col]` is 1 where `col = indices[i]`, else 0.
    pub(crate) struct OneHot { read indices: u32, write y: f32; cols: usize, count: usize }
}

pub(crate) static ONE_HOT: LazyLock<TypedKernel<OneHot>> = LazyLock::new(|| {
    built_in(
        OneHot::define("one_hot_f32").body(include_str!("one_hot_f32.wgsl")),
        one_hot,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ONE_HOT.clone()]
}

fn one_hot(
    call: &NativeCall<'_>,
    OneHot {
        indices,
        y,
        cols,
        count,
    }: OneHot<Slices<'_>>,
) {
    for_each_chunk(
        &mut y[..count * cols],
        cols,
        call.threads_for(count * cols),
        |row, y| {
            y.fill(0.0);
            y.iter_mut()
                .skip(indices[row] as usize)
                .take(1)
                .for_each(|y| *y = 1.0);
        },
    );
}

impl PlanBuilder {
    /// Records `y[i, ..]`, zeros with a 1 in column `indices[i]`; an index beyond the columns gives
    /// zeros.
    ///
    /// # Shapes
    /// `indices` \[count\] u32, `y` [count, cols] f32.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn one_hot(&mut self, indices: View, y: View, cols: usize) -> Result<()> {
        let count = indices.len();
        if !y.fills(&[count, cols]) {
            return Err(Error::invalid(format!(
                "one_hot: {count} indices, y of {} elements; rows of {cols} needed",
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            &ONE_HOT,
            OneHot {
                indices,
                y,
                cols,
                count,
            },
            groups_for(count * cols),
        )
    }
}
