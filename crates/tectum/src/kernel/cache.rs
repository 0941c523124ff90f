//! Keys and values of new tokens put where a cache has room for them.

use std::sync::{Arc, LazyLock};

use super::native::NativeCall;
use super::{Kernel, built_in};
use crate::dtype::DType;

/// Rows of keys and values into their caches, after those that `spans` says are there.
pub static CACHE_STORE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("cache_store_f32").read("k", DType::F32).read("v", DType::F32).read("spans", DType::U32);
    let builder = builder.read_write("k_cache", DType::F32).read_write("v_cache", DType::F32);
    let names = ["batch", "queries", "keys", "columns", "k_row", "k_start", "v_row", "v_start"];
    let builder = names.into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    built_in(builder.body(include_str!("../../kernels/cache_store_f32.wgsl")), store)
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![CACHE_STORE.clone()]
}

fn store(call: &NativeCall<'_>) {
    let spans = call.read::<u32>(2);
    let [batch, queries, keys, columns] = [0, 1, 2, 3].map(|index| call.size(index));
    for (from, to, first_param) in [(0, 3, 4), (1, 4, 6)] {
        let (x, cache) = (call.read::<f32>(from), call.write::<f32>(to));
        let [row, start] = [first_param, first_param + 1].map(|index| call.size(index));
        for item in 0..batch {
            let [kept, new] = [0, 1].map(|index| spans[2 * item + index] as usize);
            for t in 0..new.min(queries).min(keys.saturating_sub(kept)) {
                let x = &x[(item * queries + t) * row + start..][..columns];
                cache[(item * keys + kept + t) * columns..][..columns].copy_from_slice(x);
            }
        }
    }
}
