//! Casts between element types, and between f32 and half-width floats packed two in a word.
//!
//! Float to integer drops the fraction and saturates as WGSL does: to −2147483648..=2147483520 and
//! 0..=4294967040, the floats next to the ends; NaN gives 0. Integer to float and f32 to half round
//! to nearest, ties to even.

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{BLOCK, NativeCall, for_each_block, simd};
use crate::kernel::pack::{self, Half};
use crate::kernel::{Kernel, Prelude, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[i] = x[i]`, from f32.
    pub(crate) struct CastFromFloat { read x: f32, write y: T; n: usize }

    /// `y[i] = x[i]`, to f32.
    pub(crate) struct CastToFloat { read x: T, write y: f32; n: usize }

    /// f32 from or to half-width floats, both as bits; `n` counts the floats.
    pub(crate) struct CastHalf { read x: u32, write y: u32; n: usize }
}

/// The body of a cast with an expression of `a`.
fn body(wgsl: &str) -> String {
    format!(
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
    )
}

pub(super) fn each<X: Element, Y: Element>(
    call: &NativeCall<'_>,
    (x, y, n): (&[X], &mut [Y], usize),
    f: impl Fn(X) -> Y + Copy + Sync,
) {
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        let x = &x[index * BLOCK..][..y.len()];
        simd(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x)),
        );
    });
}

static FROM_FLOAT: LazyLock<[TypedKernel<CastFromFloat>; 2]> = LazyLock::new(|| {
    let to_i32 = "select(i32(clamp(a, -2147483648.0, 2147483520.0)), 0, tectum_is_nan(a))";
    let to_u32 = "select(u32(clamp(a, 0.0, 4294967040.0)), 0u, tectum_is_nan(a))";
    [
        built_in(
            CastFromFloat::define_on::<i32>("cast_f32_i32")
                .prelude(Prelude::Math)
                .body(body(to_i32)),
            |call, CastFromFloat { x, y, n }| {
                each(call, (x, y, n), |x| {
                    x.clamp(-2_147_483_648.0, 2_147_483_520.0) as i32
                });
            },
        ),
        built_in(
            CastFromFloat::define_on::<u32>("cast_f32_u32")
                .prelude(Prelude::Math)
                .body(body(to_u32)),
            |call, CastFromFloat { x, y, n }| {
                each(call, (x, y, n), |x| x.clamp(0.0, 4_294_967_040.0) as u32);
            },
        ),
    ]
});

static TO_FLOAT: LazyLock<[TypedKernel<CastToFloat>; 2]> = LazyLock::new(|| {
    [
        built_in(
            CastToFloat::define_on::<i32>("cast_i32_f32")
                .prelude(Prelude::Math)
                .body(body("f32(a)")),
            |call, CastToFloat { x, y, n }| {
                each(call, (x, y, n), |x| x as f32);
            },
        ),
        built_in(
            CastToFloat::define_on::<u32>("cast_u32_f32")
                .prelude(Prelude::Math)
                .body(body("f32(a)")),
            |call, CastToFloat { x, y, n }| {
                each(call, (x, y, n), |x| x as f32);
            },
        ),
    ]
});

/// The cast of f32 to an integer type.
pub(crate) fn from_float(to: DType) -> Option<&'static TypedKernel<CastFromFloat>> {
    FROM_FLOAT
        .iter()
        .find(|kernel| kernel.bindings()[1].dtype == to)
}

/// The cast of an integer type to f32.
pub(crate) fn to_float(from: DType) -> Option<&'static TypedKernel<CastToFloat>> {
    TO_FLOAT
        .iter()
        .find(|kernel| kernel.bindings()[0].dtype == from)
}

fn to_half(kind: Half) -> TypedKernel<CastHalf> {
    let name = kind.name();
    let body = include_str!("cast_to_half.wgsl").replace("TO_HALF", &format!("tectum_to_{name}"));
    let builder = CastHalf::define(format!("cast_f32_{name}"))
        .prelude(Prelude::Pack)
        .body(body);
    match kind {
        Half::F16 => built_in(builder, |call, arguments| {
            pack_all(call, arguments, pack::to_f16)
        }),
        Half::Bf16 => built_in(builder, |call, arguments| {
            pack_all(call, arguments, pack::to_bf16)
        }),
    }
}

fn pack_all(
    call: &NativeCall<'_>,
    CastHalf { x, y, n }: CastHalf<Slices<'_>>,
    half: impl Fn(u32) -> u32 + Copy + Sync,
) {
    for_each_block(
        &mut y[..n.div_ceil(2)],
        BLOCK,
        call.threads_for(n),
        |index, y| {
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
        },
    );
}

fn from_half(kind: Half) -> TypedKernel<CastHalf> {
    let name = kind.name();
    let body =
        include_str!("cast_from_half.wgsl").replace("HALF_BITS", &format!("tectum_{name}_bits"));
    let builder = CastHalf::define(format!("cast_{name}_f32"))
        .prelude(Prelude::Pack)
        .body(body);
    match kind {
        Half::F16 => built_in(builder, |call, arguments| {
            unpack_all(call, arguments, Half::F16)
        }),
        Half::Bf16 => built_in(builder, |call, arguments| {
            unpack_all(call, arguments, Half::Bf16)
        }),
    }
}

fn unpack_all(call: &NativeCall<'_>, CastHalf { x, y, n }: CastHalf<Slices<'_>>, kind: Half) {
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        pack::unpack(kind, x, index * BLOCK, bytemuck::cast_slice_mut(y));
    });
}

static TO_HALF: LazyLock<[TypedKernel<CastHalf>; 2]> =
    LazyLock::new(|| [to_half(Half::F16), to_half(Half::Bf16)]);
static FROM_HALF: LazyLock<[TypedKernel<CastHalf>; 2]> =
    LazyLock::new(|| [from_half(Half::F16), from_half(Half::Bf16)]);

/// Packs f32 words (as bits) two in a word.
pub(crate) fn to_half_kernel(kind: Half) -> &'static TypedKernel<CastHalf> {
    &TO_HALF[kind as usize]
}

/// Unpacks to f32 words (as bits).
pub(crate) fn from_half_kernel(kind: Half) -> &'static TypedKernel<CastHalf> {
    &FROM_HALF[kind as usize]
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let numbers = FROM_FLOAT
        .iter()
        .map(|kernel| &**kernel)
        .chain(TO_FLOAT.iter().map(|kernel| &**kernel));
    numbers
        .chain(
            TO_HALF
                .iter()
                .chain(FROM_HALF.iter())
                .map(|kernel| &**kernel),
        )
        .cloned()
        .collect()
}

impl PlanBuilder {
    /// Records `y[i] = x[i]` from one element type to another, given by the views: f32 from or to
    /// i32 or u32, or a copy where the types are one. Between i32 and u32 no copy is needed:
    /// [`View::reinterpret`].
    ///
    /// # Numerics
    /// Float to integer drops the fraction and saturates to −2147483648..=2147483520 or
    /// 0..=4294967040, the floats next to the ends; NaN gives 0. Integer to float rounds to
    /// nearest, ties to even.
    /// # Errors
    /// `Invalid` if the lengths differ or the types are i32 and u32; as [`PlanBuilder::launch`].
    pub fn cast(&mut self, x: View, y: View) -> Result<()> {
        if x.len() != y.len() {
            return Err(Error::invalid(format!(
                "cast: lengths {} and {} differ",
                x.len(),
                y.len()
            )));
        }
        if x.dtype() == y.dtype() {
            return self.copy(x, y);
        }
        let (n, groups) = (y.len(), groups_for(y.len()));
        match (
            x.dtype(),
            y.dtype(),
            from_float(y.dtype()),
            to_float(x.dtype()),
        ) {
            (DType::F32, _, Some(_), _) | (_, DType::F32, _, Some(_)) if y.is_empty() => Ok(()),
            (DType::F32, _, Some(kernel), _) => {
                self.launch(kernel, CastFromFloat { x, y, n }, groups)
            }
            (_, DType::F32, _, Some(kernel)) => {
                self.launch(kernel, CastToFloat { x, y, n }, groups)
            }
            (from, to, ..) => Err(Error::invalid(format!(
                "cast: {} to {}: reinterpret the view",
                from.wgsl(),
                to.wgsl()
            ))),
        }
    }

    /// Records `y[i] = x[i]` among f32, i32 and u32, given by the views: as [`PlanBuilder::cast`],
    /// and between i32 and u32 the same word.
    ///
    /// # Numerics
    /// As [`PlanBuilder::cast`].
    /// # Errors
    /// `Invalid` if the lengths differ or one type is f64 and the other is not; as
    /// [`PlanBuilder::launch`].
    pub fn convert(&mut self, x: View, y: View) -> Result<()> {
        match (x.dtype(), y.dtype()) {
            (DType::I32, DType::U32) | (DType::U32, DType::I32) => self.copy(x, y),
            _ => self.cast(x, y),
        }
    }

    /// Records the rounding of f32 to half-width floats, two in a word, the first in the low half;
    /// an odd last word's high half is 0.
    ///
    /// # Shapes
    /// `x` \[n\] f32, `y` [⌈n / 2⌉] u32.
    /// # Numerics
    /// To nearest, ties to even; beyond the range ±∞, NaN stays NaN; subnormals kept. The same bits
    /// on every device.
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`].
    pub fn cast_to_half(&mut self, half: Half, x: View, y: View) -> Result<()> {
        check_half("cast_to_half", half, x, y)?;
        if x.is_empty() {
            return Ok(());
        }
        self.launch(
            to_half_kernel(half),
            CastHalf {
                x: x.reinterpret(DType::U32),
                y,
                n: x.len(),
            },
            groups_for(y.len()),
        )
    }

    /// Records half-width floats, two in a word, as f32. Exact.
    ///
    /// # Shapes
    /// `x` [⌈n / 2⌉] u32, `y` \[n\] f32.
    /// # Errors
    /// As [`PlanBuilder::cast_to_half`].
    pub fn cast_from_half(&mut self, half: Half, x: View, y: View) -> Result<()> {
        check_half("cast_from_half", half, y, x)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            from_half_kernel(half),
            CastHalf {
                x,
                y: y.reinterpret(DType::U32),
                n: y.len(),
            },
            groups_for(y.len()),
        )
    }
}

fn check_half(op: &str, half: Half, floats: View, words: View) -> Result<()> {
    if words.len() == half.words(floats.len())
        && floats.dtype() == DType::F32
        && words.dtype() == DType::U32
    {
        return Ok(());
    }
    let (n, given) = (floats.len(), words.len());
    Err(Error::invalid(format!(
        "{op}: {n} {} and {given} {}; n f32 and {} u32 for them needed",
        floats.dtype().wgsl(),
        words.dtype().wgsl(),
        half.words(n)
    )))
}
