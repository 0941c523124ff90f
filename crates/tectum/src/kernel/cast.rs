//! Casts between element types, and between f32 and half-width floats packed two in a word.
//!
//! Float to integer drops the fraction and saturates as WGSL does: to −2147483648..=2147483520 and 0..=4294967040, the
//! floats next to the ends; NaN gives 0. Integer to float and f32 to half round to nearest, ties to even.

use std::sync::{Arc, LazyLock};

use super::native::{BLOCK, NativeCall, for_each_block, simd};
use super::pack::{self, Half};
use super::{Kernel, Prelude, built_in};
use crate::dtype::{DType, Element};

fn numbers<X: Element, Y: Element>(name: &str, wgsl: &str, native: super::NativeFn) -> Arc<Kernel> {
    let body = format!(
        "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {{
        let a = x[i];
        y[i] = {wgsl};
    }}
}}
"
    );
    let builder = Kernel::define(name).prelude(Prelude::Math).read("x", X::DTYPE).write("y", Y::DTYPE);
    built_in(builder.param("n", DType::U32).body(body), native)
}

fn each<X: Element, Y: Element>(call: &NativeCall<'_>, f: impl Fn(X) -> Y + Copy + Sync) {
    let (x, y, n) = (call.read::<X>(0), call.write::<Y>(1), call.size(0));
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        let x = &x[index * BLOCK..][..y.len()];
        simd(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x)),
        );
    });
}

static NUMBERS: LazyLock<[Arc<Kernel>; 4]> = LazyLock::new(|| {
    [
        numbers::<f32, i32>("cast_f32_i32", "select(i32(clamp(a, -2147483648.0, 2147483520.0)), 0, tectum_is_nan(a))", |call| {
            each(call, |x: f32| x.clamp(-2_147_483_648.0, 2_147_483_520.0) as i32);
        }),
        numbers::<f32, u32>("cast_f32_u32", "select(u32(clamp(a, 0.0, 4294967040.0)), 0u, tectum_is_nan(a))", |call| {
            each(call, |x: f32| x.clamp(0.0, 4_294_967_040.0) as u32);
        }),
        numbers::<i32, f32>("cast_i32_f32", "f32(a)", |call| each(call, |x: i32| x as f32)),
        numbers::<u32, f32>("cast_u32_f32", "f32(a)", |call| each(call, |x: u32| x as f32)),
    ]
});

/// The cast from one element type to another, where one side is f32 and the other an integer.
pub fn number_kernel(from: DType, to: DType) -> Option<&'static Arc<Kernel>> {
    NUMBERS.iter().find(|kernel| (kernel.bindings()[0].dtype, kernel.bindings()[1].dtype) == (from, to))
}

fn to_half(kind: Half) -> Arc<Kernel> {
    let name = kind.name();
    let body = include_str!("../../kernels/cast_to_half.wgsl").replace("TO_HALF", &format!("tectum_to_{name}"));
    let builder = Kernel::define(format!("cast_f32_{name}")).prelude(Prelude::Pack).read("x", DType::U32).write("y", DType::U32);
    let native: super::NativeFn = match kind {
        Half::F16 => |call| pack_all(call, pack::to_f16),
        Half::Bf16 => |call| pack_all(call, pack::to_bf16),
    };
    built_in(builder.param("n", DType::U32).body(body), native)
}

fn pack_all(call: &NativeCall<'_>, half: impl Fn(u32) -> u32 + Copy + Sync) {
    let (x, y, n) = (call.read::<u32>(0), call.write::<u32>(1), call.size(0));
    for_each_block(&mut y[..n.div_ceil(2)], BLOCK, call.threads_for(n), |index, y| {
        let first = 2 * index * BLOCK;
        let x = &x[first..n.min(first + 2 * y.len())];
        simd(
            #[inline(always)]
            || {
                let (pairs, rest) = x.as_chunks::<2>();
                for (y, &[low, high]) in y.iter_mut().zip(pairs) {
                    *y = half(low) | (half(high) << 16);
                }
                if let [last] = rest {
                    y[pairs.len()] = half(*last);
                }
            },
        );
    });
}

fn from_half(kind: Half) -> Arc<Kernel> {
    let name = kind.name();
    let body = include_str!("../../kernels/cast_from_half.wgsl").replace("HALF_BITS", &format!("tectum_{name}_bits"));
    let builder = Kernel::define(format!("cast_{name}_f32")).prelude(Prelude::Pack).read("x", DType::U32).write("y", DType::U32);
    let native: super::NativeFn = match kind {
        Half::F16 => |call| unpack_all(call, Half::F16),
        Half::Bf16 => |call| unpack_all(call, Half::Bf16),
    };
    built_in(builder.param("n", DType::U32).body(body), native)
}

fn unpack_all(call: &NativeCall<'_>, kind: Half) {
    let (x, y, n) = (call.read::<u32>(0), call.write::<u32>(1), call.size(0));
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        pack::unpack(kind, x, index * BLOCK, bytemuck::cast_slice_mut(y));
    });
}

static TO_HALF: LazyLock<[Arc<Kernel>; 2]> = LazyLock::new(|| [to_half(Half::F16), to_half(Half::Bf16)]);
static FROM_HALF: LazyLock<[Arc<Kernel>; 2]> = LazyLock::new(|| [from_half(Half::F16), from_half(Half::Bf16)]);

/// Packs f32 words (as bits) two in a word.
pub fn to_half_kernel(kind: Half) -> &'static Arc<Kernel> {
    &TO_HALF[kind as usize]
}

/// Unpacks to f32 words (as bits).
pub fn from_half_kernel(kind: Half) -> &'static Arc<Kernel> {
    &FROM_HALF[kind as usize]
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    NUMBERS.iter().chain(TO_HALF.iter()).chain(FROM_HALF.iter()).cloned().collect()
}
