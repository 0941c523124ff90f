//! Random bits, uniforms and normals: Philox4x32-10 on a counter, the same bits on every device.
//!
//! The `key` binding holds four words, `[seed low, seed high, stream, tick]`: the first two are
//! Philox's key, the others the upper half of its counter; element `i` is word `i mod 4` of block
//! `i / 4`.

use std::sync::{Arc, LazyLock};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, Prelude, TypedKernel, groups_for, random};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

/// Words of the `key` binding.
pub const KEY_WORDS: usize = 4;
const CHUNK: usize = 1 << 14;

kernel_arguments! {
    /// Random elements.
    pub(crate) struct Random { read key: u32, write y: T; n: usize }

    /// Random normals; `normal_table` is [`random::normal_table`]'s.
    pub(crate) struct RandomNormal { read key: u32, write y: f32, read normal_table: i32; n: usize }
}

/// `y[i]` = 32 random bits.
pub(crate) static BITS: LazyLock<TypedKernel<Random>> = LazyLock::new(|| {
    let builder = Random::define("random_bits_u32")
        .prelude(Prelude::Random)
        .body(body("word"));
    built_in(builder, |call, Random { key, y, n }| {
        fill(call, (key, &mut y[..n]), |bits| bits)
    })
});

/// `y[i]` uniform in [0, 1), a multiple of 2⁻²⁴.
pub(crate) static UNIFORM: LazyLock<TypedKernel<Random>> = LazyLock::new(|| {
    let builder = Random::define_on::<f32>("uniform_f32")
        .prelude(Prelude::Random)
        .body(body("tectum_uniform(word)"));
    built_in(builder, |call, Random { key, y, n }| {
        fill(call, (key, &mut y[..n]), random::uniform)
    })
});

/// `y[i]` standard normal, a multiple of 2⁻²⁰.
pub(crate) static NORMAL: LazyLock<TypedKernel<RandomNormal>> = LazyLock::new(|| {
    let builder = RandomNormal::define("normal_f32")
        .prelude(Prelude::Random)
        .body(body("normal(word)") + NORMAL_LOOKUP);
    built_in(
        builder,
        |call,
         RandomNormal {
             key,
             y,
             normal_table,
             n,
         }| {
            let table: &[i32; random::NORMAL_TABLE_LEN] = normal_table
                .first_chunk()
                .expect("invariant: the plan binds the whole table");
            fill(call, (key, &mut y[..n]), |bits| random::normal(bits, table));
        },
    )
});

const NORMAL_LOOKUP: &str = "
fn normal(bits: u32) -> f32 {
    let row = tectum_normal_row(bits);
    return tectum_normal(bits, normal_table[row], normal_table[row + 1u], normal_table[row + 2u]);
}
";

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![BITS.clone(), UNIFORM.clone(), NORMAL.clone()]
}

fn body(value: &str) -> String {
    include_str!("random/random.wgsl").replace("VALUE_OF_WORD", value)
}

fn fill<T: Element>(
    call: &NativeCall<'_>,
    (key, y): (&[u32], &mut [T]),
    value: impl Fn(u32) -> T + Copy + Sync,
) {
    let (stream, tick, key) = (key[2], key[3], [key[0], key[1]]);
    let threads = call.threads_for(4 * y.len());
    for_each_chunk(y, CHUNK, threads, |index, y| {
        let first_block = (index * CHUNK / 4) as u32;
        simd(
            #[inline(always)]
            || {
                let (blocks, rest) = y.as_chunks_mut::<4>();
                for (block, y) in (first_block..).zip(blocks.iter_mut()) {
                    *y = random::philox([block, stream, tick, 0], key).map(value);
                }
                let words =
                    random::philox([first_block + blocks.len() as u32, stream, tick, 0], key);
                for (y, word) in rest.iter_mut().zip(words) {
                    *y = value(word);
                }
            },
        );
    });
}

impl PlanBuilder {
    /// Records 32 random bits for each element; `key` is `[seed low, seed high, stream, tick]`.
    ///
    /// # Shapes
    /// `key` \[4\] u32, `y` \[n\] u32.
    /// # Errors
    /// `Invalid` if `key` does not have four words; as [`PlanBuilder::launch`].
    pub fn random_bits(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            &BITS,
            Random { key, y, n: y.len() },
            groups_for(y.len().div_ceil(4)),
        )
    }

    /// Records uniform numbers in [0, 1), multiples of 2⁻²⁴.
    ///
    /// # Shapes
    /// `key` \[4\] u32, `y` \[n\] f32.
    /// # Errors
    /// As [`PlanBuilder::random_bits`].
    pub fn uniform(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            &UNIFORM,
            Random { key, y, n: y.len() },
            groups_for(y.len().div_ceil(4)),
        )
    }

    /// Records standard normal numbers, multiples of 2⁻²⁰.
    ///
    /// # Shapes
    /// `key` \[4\] u32, `y` \[n\] f32.
    /// # Errors
    /// As [`PlanBuilder::random_bits`].
    pub fn normal(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.whole(|plan| {
            let normal_table = plan.constant("normal_table", random::normal_table());
            plan.launch(
                &NORMAL,
                RandomNormal {
                    key,
                    y,
                    normal_table,
                    n: y.len(),
                },
                groups_for(y.len().div_ceil(4)),
            )
        })
    }
}

fn check_key(key: View) -> Result<()> {
    if key.len() == KEY_WORDS {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "random numbers: a key of {} words, {KEY_WORDS} needed",
            key.len()
        )))
    }
}
