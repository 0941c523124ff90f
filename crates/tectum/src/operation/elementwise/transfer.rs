//! Fill and copy, on 32-bit words of any type.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::native::for_each_block;
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::movement::strided::Strided;
use crate::operation::{built_in, same_len, words_each};
use crate::plan::PlanBuilder;
use crate::view::View;

const CHUNK: usize = crate::kernel::native::BLOCK;

kernel_arguments! {
    /// `y[i] = word` for `i < n`.
    pub(crate) struct Fill { write y: u32; n: usize, word: u32 }

    /// `y[i] = x[i]` for `i < n`.
    pub(crate) struct Copy { read x: u32, write y: u32; n: usize }
}

pub(crate) static FILL: LazyLock<TypedKernel<Fill>> = LazyLock::new(|| {
    built_in(
        Fill::define("fill_u32").body(include_str!("fill_u32.wgsl")),
        |call, Fill { y, n, word }| {
            for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |_, y| y.fill(word));
        },
    )
});

pub(crate) static COPY: LazyLock<TypedKernel<Copy>> = LazyLock::new(|| {
    built_in(
        Copy::define("copy_u32").body(include_str!("copy_u32.wgsl")),
        |call, Copy { x, y, n }| {
            for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |index, y| {
                y.copy_from_slice(&x[index * CHUNK..][..y.len()])
            });
        },
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![FILL.clone(), COPY.clone()]
}

impl PlanBuilder {
    /// Records `y[i] = value` for 32-bit words of any type, given by their bits; an f64 is two
    /// words.
    ///
    /// # Errors
    /// As [`PlanBuilder::launch`].
    pub fn fill(&mut self, y: View, bits: u32) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        let words = y.reinterpret(DType::U32);
        self.launch(
            &FILL,
            Fill {
                y: words,
                n: words.len(),
                word: bits,
            },
            groups_for(words.len()),
        )
    }

    /// Records `y[i] = value` for f32 or f64.
    pub(crate) fn fill_number(&mut self, y: View, value: f64) -> Result<()> {
        match y.dtype() {
            DType::F32 => self.fill(y, (value as f32).to_bits()),
            DType::F64 => self.whole(|plan| {
                let one = plan.constant("value", &[value]);
                plan.copy_strided(
                    one,
                    0,
                    &[Strided {
                        size: y.len(),
                        stride: 0,
                    }],
                    y,
                )
            }),
            other => Err(Error::invalid(format!(
                "{} elements of {} are not numbers of f32 or f64",
                y.len(),
                other.wgsl()
            ))),
        }
    }

    /// Records `y[i] = x[i]`, bit by bit, for types of one width.
    ///
    /// # Errors
    /// `Invalid` if the lengths or the widths of the types differ; as [`PlanBuilder::launch`].
    pub fn copy(&mut self, x: View, y: View) -> Result<()> {
        words_each("copy", &[x, y])?;
        same_len("copy", x, y)?;
        if y.is_empty() {
            return Ok(());
        }
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        self.launch(&COPY, Copy { x, y, n: y.len() }, groups_for(y.len()))
    }
}
