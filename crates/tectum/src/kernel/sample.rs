//! Random bits, uniforms and normals: Philox4x32-10 on a counter, the same bits on every device.
//!
//! The `key` binding holds four words, `[seed low, seed high, stream, tick]`: the first two are Philox's key, the others
//! the upper half of its counter; element `i` is word `i mod 4` of block `i / 4`.

use std::sync::{Arc, LazyLock};

use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, Prelude, built_in, random};
use crate::dtype::{DType, Element};

/// Words of the `key` binding.
pub const KEY_WORDS: usize = 4;
const CHUNK: usize = 1 << 14;

/// `y[i]` = 32 random bits.
pub static BITS: LazyLock<Arc<Kernel>> = LazyLock::new(|| define::<u32>("random_bits_u32", "word", |call| fill(call, |bits| bits)));

/// `y[i]` uniform in [0, 1), a multiple of 2⁻²⁴.
pub static UNIFORM: LazyLock<Arc<Kernel>> = LazyLock::new(|| define::<f32>("uniform_f32", "tectum_uniform(word)", |call| fill(call, random::uniform)));

/// `y[i]` standard normal, a multiple of 2⁻²⁰; `normal_table` is [`random::normal_table`]'s.
pub static NORMAL: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("normal_f32").prelude(Prelude::Random).read("key", DType::U32).write("y", DType::F32);
    let builder = builder.read("normal_table", DType::I32).param("n", DType::U32);
    built_in(builder.body(body("normal(word)") + NORMAL_LOOKUP), |call| {
        let table: &[i32; random::NORMAL_TABLE_LEN] = call.read::<i32>(2).first_chunk().expect("invariant: the plan binds the whole table");
        fill(call, |bits| random::normal(bits, table));
    })
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

fn define<T: Element>(name: &'static str, value: &str, native: super::NativeFn) -> Arc<Kernel> {
    let builder = Kernel::define(name).prelude(Prelude::Random).read("key", DType::U32).write("y", T::DTYPE);
    built_in(builder.param("n", DType::U32).body(body(value)), native)
}

fn body(value: &str) -> String {
    include_str!("../../kernels/random.wgsl").replace("VALUE_OF_WORD", value)
}

fn fill<T: Element>(call: &NativeCall<'_>, value: impl Fn(u32) -> T + Copy + Sync) {
    let (key, y, n) = (call.read::<u32>(0), call.write::<T>(1), call.size(0));
    let (stream, tick, key) = (key[2], key[3], [key[0], key[1]]);
    for_each_chunk(&mut y[..n], CHUNK, call.threads_for(n * 4), |index, y| {
        let first_block = (index * CHUNK / 4) as u32;
        simd(
            #[inline(always)]
            || {
                let (blocks, rest) = y.as_chunks_mut::<4>();
                for (block, y) in (first_block..).zip(blocks.iter_mut()) {
                    *y = random::philox([block, stream, tick, 0], key).map(value);
                }
                let words = random::philox([first_block + blocks.len() as u32, stream, tick, 0], key);
                for (y, word) in rest.iter_mut().zip(words) {
                    *y = value(word);
                }
            },
        );
    });
}
