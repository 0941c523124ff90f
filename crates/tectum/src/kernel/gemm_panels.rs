//! Matrix products whose right operand lies in panels: weights that are put in order once, not in every product.
//!
//! A panel is 16 columns, row after row: what a tile of the product reads is one stream. The CPU form holds a tile of as many
//! rows as the registers have room for and 16 columns in registers over slices of k, the slice of the panel in L1 and the rows in
//! L2. The order of the sums depends on k alone.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use pulp::{Simd, WithSimd};

use super::gemm::{Activation, Epilogue, activate, body_with};
use super::native::{NativeCall, for_each_chunk, simd, with_simd};
use super::{Kernel, Prelude, built_in};
use crate::dtype::DType;

/// Columns of a panel.
pub const PANEL: usize = 16;

static KERNELS: LazyLock<[Arc<Kernel>; 4]> = LazyLock::new(|| Epilogue::ALL.map(define));

/// The product kernel with an epilogue: `y[m, n] = activation(a[m, k]·b[k, n] + bias[n]) + residual[m, n]`, b in panels.
pub fn kernel(epilogue: Epilogue) -> &'static Arc<Kernel> {
    &KERNELS[epilogue.index()]
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS.to_vec()
}

/// Elements of `[k, n]` in panels: whole panels, the last filled up.
pub fn panels_len(k: usize, n: usize) -> usize {
    n.div_ceil(PANEL) * k * PANEL
}

/// Puts `b` [k, n], by its strides (row, column), in panels `[⌈n / 16⌉, k, 16]`; what the last has too much is 0.
pub fn pack_panels(b: &[f32], [k, n]: [usize; 2], [row, col]: [usize; 2], panels: &mut [f32]) {
    for (panel, to) in panels.chunks_exact_mut(k * PANEL).enumerate() {
        let columns = PANEL.min(n - panel * PANEL);
        for (at, to) in to.chunks_exact_mut(PANEL).enumerate() {
            let (to, rest) = to.split_at_mut(columns);
            to.iter_mut().enumerate().for_each(|(i, to)| *to = b[at * row + (panel * PANEL + i) * col]);
            rest.fill(0.0);
        }
    }
}

fn define(epilogue: Epilogue) -> Arc<Kernel> {
    let builder = Kernel::define(format!("gemm_panels_f32{}", epilogue.suffix()))
        .prelude(Prelude::Activation)
        .read("a", DType::F32)
        .read("b", DType::F32)
        .write("y", DType::F32);
    let body = body_with(["false", "false"], [
        "(first_row + a_m) * params.k + first_k + a_k",
        "((first_col + b_n) / 16u * params.k + first_k + b_k) * 16u + (first_col + b_n) % 16u",
    ]);
    let builder = epilogue.apply::<f32>(builder, &body, "col", "out");
    let builder = ["m", "n", "k", "activation"].into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    let builder = builder.flops(|params| 2.0 * params[..3].iter().map(|size| f64::from(*size)).product::<f64>());
    let native: super::NativeFn = match (epilogue.bias, epilogue.residual) {
        (false, false) => |call| gemm(call, None, None),
        (true, false) => |call| gemm(call, Some(call.read(3)), None),
        (false, true) => |call| gemm(call, None, Some(call.read(3))),
        (true, true) => |call| gemm(call, Some(call.read(3)), Some(call.read(4))),
    };
    built_in(builder, native)
}

/// Rows of k that a tile takes at a time: 24 KiB of a panel.
const K_SLICE: usize = 384;
/// Elements of `a` that a task goes through for each panel: what an L2 of 512 KiB holds beside the panel.
const ROWS_ELEMENTS: usize = 96 << 10;
/// The most rows of a task: a strip of them stays in L1 with the slice of its panel.
const MAX_ROWS: usize = 128;
/// The most rows of a tile.
const MAX_TILE: usize = 12;

thread_local! {
    /// The strips of a product of few rows, kept from launch to launch.
    static STRIPS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// What a product ends with, but for the residual.
#[derive(Clone, Copy)]
struct Finish<'a> {
    bias: Option<&'a [f32]>,
    activation: Activation,
}

fn gemm(call: &NativeCall<'_>, bias: Option<&[f32]>, residual: Option<&[f32]>) {
    let (a, b, y) = (call.read::<f32>(0), call.read::<f32>(1), call.write::<f32>(2));
    let [m, n, k] = [0, 1, 2].map(|index| call.size(index));
    let finish = Finish { bias, activation: Activation::from_code(call.u32(3)) };
    let y = &mut y[..m * n];
    // A multiply-add is a sixteenth of a streamed element; of few rows the stream of the weights counts.
    let threads = call.threads_for((m * n * k / 16).max(n * k));
    let most = MAX_ROWS.min((ROWS_ELEMENTS / k).max(MAX_TILE));
    if threads == 1 || m >= threads * most.min(48) {
        // Tasks of equal numbers of rows, each over all panels.
        let height = m.div_ceil(m.div_ceil(most).next_multiple_of(threads));
        return for_each_chunk(y, height * n, threads, |task, y| {
            let rows = y.len() / n;
            let a = &a[task * height * k..][..rows * k];
            let residual = residual.map(|residual| &residual[task * height * n..]);
            let mut strip = [0.0; MAX_ROWS * PANEL];
            for (panel, b) in b.chunks_exact(k * PANEL).take(n.div_ceil(PANEL)).enumerate() {
                let strip = &mut strip[..rows * PANEL];
                make_strip(a, b, strip, panel, finish);
                store(strip, panel, y, n, residual);
            }
        });
    }
    // Few rows: tasks of some panels, each over all rows.
    let panels = n.div_ceil(PANEL);
    // Taken, not borrowed: while this thread waits for others it may be given another product.
    let mut kept = STRIPS.take();
    kept.resize(kept.len().max(panels * m * PANEL), 0.0);
    let strips = &mut kept[..panels * m * PANEL];
    let share = panels.div_ceil(2 * threads);
    for_each_chunk(strips, share * m * PANEL, threads, |task, strips| {
        for (index, strip) in strips.chunks_exact_mut(m * PANEL).enumerate() {
            let panel = task * share + index;
            make_strip(&a[..m * k], &b[panel * k * PANEL..][..k * PANEL], strip, panel, finish);
        }
    });
    strips.chunks_exact(m * PANEL).enumerate().for_each(|(panel, strip)| store(strip, panel, y, n, residual));
    STRIPS.set(kept);
}

/// Rows of a tile: as many as there are registers for, beside the panel's row and one element.
fn tile_rows() -> usize {
    struct Rows;
    impl WithSimd for Rows {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            match (S::F32_LANES, S::REGISTER_COUNT) {
                (16, _) => MAX_TILE,
                (8, _) => 6,
                (4, 32..) => 6,
                _ => 2,
            }
        }
    }
    static ROWS: LazyLock<usize> = LazyLock::new(|| with_simd(Rows));
    *ROWS
}

/// Tiles of equal heights, as far as that goes: first row and height of each.
fn tiles(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(tile_rows());
    (0..count).map(move |tile| (tile * rows / count, (tile + 1) * rows / count - tile * rows / count))
}

/// One panel's columns of all rows: product, bias, activation.
fn make_strip(a: &[f32], b: &[f32], strip: &mut [f32], panel: usize, finish: Finish<'_>) {
    with_simd(Strip { a: Rows { data: a, apart: b.len() / PANEL }, b, strip, onto: false });
    if let Some(bias) = finish.bias {
        let bias = &bias[panel * PANEL..];
        let bias = &bias[..bias.len().min(PANEL)];
        simd(
            #[inline(always)]
            || strip.chunks_exact_mut(PANEL).for_each(|strip| strip.iter_mut().zip(bias).for_each(|(y, &b)| *y += b)),
        );
    }
    activate(strip, finish.activation);
}

/// Writes a strip to its columns of the result, and adds the residual.
fn store(strip: &[f32], panel: usize, y: &mut [f32], n: usize, residual: Option<&[f32]>) {
    let first = panel * PANEL;
    let columns = PANEL.min(n - first);
    for (row, strip) in strip.chunks_exact(PANEL).enumerate() {
        let y = &mut y[row * n + first..][..columns];
        match residual {
            Some(residual) => y.iter_mut().zip(strip).zip(&residual[row * n + first..]).for_each(|((y, &s), &r)| *y = s + r),
            None => y.copy_from_slice(&strip[..columns]),
        }
    }
}

/// The left operand of a strip: element (row, k).
pub(super) trait Left: Copy {
    /// A tile's part of it: its first row, and rows of k from a first one on.
    fn tile<const HEIGHT: usize>(&self, row: usize, first: usize, depth: usize) -> impl Fn(usize) -> [f32; HEIGHT];
}

/// Rows of k side by side, so many elements apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub data: &'a [f32],
    pub apart: usize,
}

impl Left for Rows<'_> {
    #[inline(always)]
    fn tile<const HEIGHT: usize>(&self, row: usize, first: usize, depth: usize) -> impl Fn(usize) -> [f32; HEIGHT] {
        let rows: [&[f32]; HEIGHT] = std::array::from_fn(|index| &self.data[(row + index) * self.apart + first..][..depth]);
        move |k| std::array::from_fn(|index| rows[index][k])
    }
}

/// Columns: the elements of one k side by side, so many elements from one k to the next.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub data: &'a [f32],
    pub apart: usize,
}

impl Left for Columns<'_> {
    #[inline(always)]
    fn tile<const HEIGHT: usize>(&self, row: usize, first: usize, _: usize) -> impl Fn(usize) -> [f32; HEIGHT] {
        let data = &self.data[first * self.apart + row..];
        let apart = self.apart;
        move |k| *data[k * apart..].first_chunk().expect("invariant: the operand holds its last tile")
    }
}

/// One panel's product, `[rows, k]·[k, 16]`, written or added to what is there.
pub(super) struct Strip<'a, L: Left> {
    pub a: L,
    pub b: &'a [f32],
    pub strip: &'a mut [f32],
    pub onto: bool,
}

impl<L: Left> WithSimd for Strip<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.make::<S, 1>(simd),
            8 => self.make::<S, 2>(simd),
            4 => self.make::<S, 4>(simd),
            _ => self.make::<S, 16>(simd),
        }
    }
}

impl<L: Left> Strip<'_, L> {
    /// Slices of k one after another, all tiles over each.
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(self, simd: S) {
        for (slice, b) in self.b.chunks(K_SLICE * PANEL).enumerate() {
            let onto = self.onto || slice > 0;
            for (first, height) in tiles(self.strip.len() / PANEL) {
                let y = &mut self.strip[first * PANEL..][..height * PANEL];
                let place = (self.a, first, slice * K_SLICE);
                match height {
                    1 => tile::<S, L, VECTORS, 1>(simd, place, b, y, onto),
                    2 => tile::<S, L, VECTORS, 2>(simd, place, b, y, onto),
                    3 => tile::<S, L, VECTORS, 3>(simd, place, b, y, onto),
                    4 => tile::<S, L, VECTORS, 4>(simd, place, b, y, onto),
                    5 => tile::<S, L, VECTORS, 5>(simd, place, b, y, onto),
                    6 => tile::<S, L, VECTORS, 6>(simd, place, b, y, onto),
                    7 => tile::<S, L, VECTORS, 7>(simd, place, b, y, onto),
                    8 => tile::<S, L, VECTORS, 8>(simd, place, b, y, onto),
                    9 => tile::<S, L, VECTORS, 9>(simd, place, b, y, onto),
                    10 => tile::<S, L, VECTORS, 10>(simd, place, b, y, onto),
                    11 => tile::<S, L, VECTORS, 11>(simd, place, b, y, onto),
                    _ => tile::<S, L, VECTORS, 12>(simd, place, b, y, onto),
                }
            }
        }
    }
}

/// `HEIGHT` rows of 16 columns in registers; `b` [depth, 16].
#[inline(always)]
fn tile<S: Simd, L: Left, const VECTORS: usize, const HEIGHT: usize>(
    simd: S,
    (a, row, first): (L, usize, usize),
    b: &[f32],
    y: &mut [f32],
    onto: bool,
) {
    let b: &[S::f32s] = bytemuck::cast_slice(b);
    let b = b.as_chunks::<VECTORS>().0;
    let y: &mut [S::f32s] = bytemuck::cast_slice_mut(y);
    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; HEIGHT];
    if onto {
        for (sums, y) in sums.iter_mut().zip(y.as_chunks::<VECTORS>().0) {
            *sums = *y;
        }
    }
    let at = a.tile::<HEIGHT>(row, first, b.len());
    for (k, b) in b.iter().enumerate() {
        let a = at(k);
        for row in 0..HEIGHT {
            let a = simd.splat_f32s(a[row]);
            for vector in 0..VECTORS {
                sums[row][vector] = simd.mul_add_f32s(a, b[vector], sums[row][vector]);
            }
        }
    }
    for (sums, y) in sums.iter().zip(y.as_chunks_mut::<VECTORS>().0) {
        *y = *sums;
    }
}
