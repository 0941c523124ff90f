//! Products of byte matrices with 32-bit integer results: the arithmetic of quantised layers
//! without scales. Exact.
//!
//! Both operands are rows along k, four bytes in a word, padded with zeros to whole words; sums
//! wrap modulo 2³², which needs k above 131,071.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, TypedKernel};
use crate::kernel_arguments;
use crate::operation::product::gemm::TILE;
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[m, n] = Σ_k a[m, k]·b[n, k]`; `words` of four bytes along k.
    pub(crate) struct GemmI8 { read a: u32, read b: u32, write y: i32; m: usize, n: usize, words: usize }

    /// `y[m] = Σ_k a[m, k]·x[k]`; `words` of four bytes along k.
    pub(crate) struct MatVecI8 { read a: u32, read x: u32, write y: i32; m: usize, words: usize }
}

pub(crate) static GEMM_I8: LazyLock<TypedKernel<GemmI8>> = LazyLock::new(|| {
    let builder = GemmI8::define("gemm_i8").body(body_with(
        "return b[col * params.words + k];",
        ["slot % 16u", "slot / 16u"],
        "values[part]",
    ));
    built_in(
        builder.loops(|GemmI8 { m, n, words, .. }, groups| {
            crate::operation::product::loops_of_product([1, m, n], groups, words)
        }),
        gemm,
    )
});

pub(crate) static MATVEC_I8: LazyLock<TypedKernel<MatVecI8>> = LazyLock::new(|| {
    let builder = MatVecI8::define("matvec_i8").body(include_str!("matvec_i8.wgsl"));
    built_in(
        builder.loops(|MatVecI8 { m, words, .. }, groups| {
            crate::kernel::loops_over_rows([m, words], groups, 1)
        }),
        matvec,
    )
});

/// The body with the expression that reads a word of `b`, the k and column that a lane reads there,
/// and the result of a sum.
pub(crate) fn body_with(b_word: &str, [b_k, b_col]: [&str; 2], result: &str) -> String {
    let body = include_str!("gemm_i8.wgsl")
        .replace("B_K", b_k)
        .replace("B_COL", b_col)
        .replace("RESULT", result);
    format!("fn b_word(col: u32, k: u32) -> u32 {{\n    {b_word}\n}}\n{body}")
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![GEMM_I8.clone(), MATVEC_I8.clone()]
}

/// Rows of `b` in one pass over a row of `a`.
const PANEL: usize = 4;
/// Words of k processed together: a block of a row of `a` and of a panel stays in L1.
const SLICE: usize = 512;
/// Rows of `y` of one task.
const ROWS: usize = 16;

fn gemm(
    call: &NativeCall<'_>,
    GemmI8 {
        a,
        b,
        y,
        m,
        n,
        words,
    }: GemmI8<Slices<'_>>,
) {
    for_each_chunk(
        &mut y[..m * n],
        ROWS * n,
        call.threads_for(m * n * words / 8),
        |part, y| {
            y.fill(0);
            let a = &a[part * ROWS * words..];
            for first_k in (0..words).step_by(SLICE) {
                let length = SLICE.min(words - first_k);
                for first_col in (0..n).step_by(PANEL) {
                    let count = PANEL.min(n - first_col);
                    let panel: [&[u32]; PANEL] = std::array::from_fn(|col| {
                        &b[(first_col + col.min(count - 1)) * words + first_k..][..length]
                    });
                    for (row, y) in y.chunks_exact_mut(n).enumerate() {
                        let sums = dots(&a[row * words + first_k..][..length], panel);
                        y[first_col..][..count]
                            .iter_mut()
                            .zip(sums)
                            .for_each(|(y, sum)| *y = y.wrapping_add(sum));
                    }
                }
            }
        },
    );
}

fn matvec(call: &NativeCall<'_>, MatVecI8 { a, x, y, m, words }: MatVecI8<Slices<'_>>) {
    let threads = call.threads_for(m * words);
    let chunk = m.div_ceil(threads * 4).max(1);
    for_each_chunk(&mut y[..m], chunk, threads, |part, y| {
        for (offset, y) in y.iter_mut().enumerate() {
            [*y] = dots(
                &x[..words],
                [&a[(part * chunk + offset) * words..][..words]],
            );
        }
    });
}

/// Dot products of one row of bytes with several.
fn dots<const N: usize>(a: &[u32], rows: [&[u32]; N]) -> [i32; N] {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return v3.vectorize(DotsV3 { v3, a, rows });
    }
    simd(
        #[inline(always)]
        || rows.map(|row| dot_bytes(a, row)),
    )
}

#[inline(always)]
fn dot_bytes(a: &[u32], b: &[u32]) -> i32 {
    let (a, b): (&[i8], &[i8]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    a.iter().zip(b).fold(0, |sum, (&a, &b)| {
        sum + i32::from(i16::from(a) * i16::from(b))
    })
}

/// The dot products by AVX2: bytes widened to 16 bits, multiplied and added in pairs to 32.
#[cfg(target_arch = "x86_64")]
struct DotsV3<'a, const N: usize> {
    v3: pulp::x86::V3,
    a: &'a [u32],
    rows: [&'a [u32]; N],
}

#[cfg(target_arch = "x86_64")]
impl<const N: usize> pulp::NullaryFnOnce for DotsV3<'_, N> {
    type Output = [i32; N];

    #[inline(always)]
    fn call(self) -> [i32; N] {
        use std::arch::x86_64::{__m128i, __m256i};
        let Self { v3, a, rows } = self;
        let avx2 = v3.avx2;
        let wide = |words: [u32; 4]| avx2._mm256_cvtepi8_epi16(pulp::cast::<_, __m128i>(words));
        let mut sums: [__m256i; N] = [pulp::cast([0i32; 8]); N];
        let (a_blocks, a_rest) = a.as_chunks::<4>();
        let blocks = rows.map(|row| row[..a.len()].as_chunks::<4>());
        for (i, &words) in a_blocks.iter().enumerate() {
            let a = wide(words);
            for (sum, (blocks, _)) in sums.iter_mut().zip(&blocks) {
                *sum = avx2._mm256_add_epi32(*sum, avx2._mm256_madd_epi16(a, wide(blocks[i])));
            }
        }
        std::array::from_fn(|row| {
            let lanes: [i32; 8] = pulp::cast(sums[row]);
            lanes
                .into_iter()
                .fold(dot_bytes(a_rest, blocks[row].1), i32::wrapping_add)
        })
    }
}

impl PlanBuilder {
    /// Records `y[m, n] = Σ_k a[m, k]·b[n, k]` over signed bytes: rows of `a` with rows of `b`, the
    /// layout of a layer's weights.
    ///
    /// # Shapes
    /// `a` [m, ⌈k / 4⌉] and `b` [n, ⌈k / 4⌉] u32, four bytes in a word, the first in the lowest,
    /// rows padded with zeros; `y` [m, n] i32.
    /// # Numerics
    /// Exact for k of up to 131,071; beyond, modulo 2³².
    /// # Errors
    /// `Invalid` if the lengths do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm_i8(&mut self, a: View, b: View, y: View, [m, n, k]: [usize; 3]) -> Result<()> {
        let words = k.div_ceil(4);
        if !a.fills(&[m, words]) || !b.fills(&[n, words]) || !y.fills(&[m, n]) {
            let (a, b, y) = (a.len(), b.len(), y.len());
            return Err(Error::invalid(format!(
                "gemm_i8: a {a}, b {b}, y {y} elements; [{m}, {words}], [{n}, {words}] and [{m}, {n}] needed for k = {k}"
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        if k == 0 {
            return Err(Error::invalid(format!(
                "gemm_i8: a [{m}, 0] and b [{n}, 0] have no inner size"
            )));
        }
        let tiles = m.div_ceil(TILE) * n.div_ceil(TILE);
        self.launch(
            &GEMM_I8,
            GemmI8 {
                a,
                b,
                y,
                m,
                n,
                words,
            },
            groups(tiles),
        )
    }

    /// Records `y[m] = Σ_k a[m, k]·x[k]` over signed bytes, packed as for [`PlanBuilder::gemm_i8`].
    ///
    /// # Shapes
    /// `a` [m, words], `x` \[words\] u32, `y` \[m\] i32.
    /// # Errors
    /// As [`PlanBuilder::gemm_i8`].
    pub fn matvec_i8(&mut self, a: View, x: View, y: View) -> Result<()> {
        let (m, words) = (y.len(), x.len());
        if !a.fills(&[m, words]) {
            return Err(Error::invalid(format!(
                "matvec_i8: a has {} words, x {words}, y {m}: sizes differ",
                a.len()
            )));
        }
        if m == 0 {
            return Ok(());
        }
        if words == 0 {
            return Err(Error::invalid(format!(
                "matvec_i8: a [{m}, 0] and x [0] have no inner size"
            )));
        }
        self.launch(&MATVEC_I8, MatVecI8 { a, x, y, m, words }, groups(m))
    }
}
