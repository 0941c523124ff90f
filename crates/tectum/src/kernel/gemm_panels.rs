//! Matrix products whose right operand lies in panels: weights that are put in order once, not in every product.
//!
//! A panel is 16 columns, row after row: what a tile of the product reads is one stream. The CPU form holds a tile of as many
//! rows as the registers have room for and 16 columns in registers over slices of k, the slice of the panel in L1 and the rows in
//! L2; with vectors of 16 the columns of two panels. An element is Σ over ascending k with fused multiply-adds, whatever the tile.
//!
//! # Ladder of the CPU form
//!
//! Percent of the rate of multiply-adds in registers alone, one core with AVX-512, 128 rows by 384 by 1,152 (and 1,024 rows):
//!
//! | step | predicted | found |
//! |---|---|---|
//! | 12 rows by one panel, elements of `a` where they lie | 92 %, by loads | 22 % to 41 % (31 %) |
//! | two panels abreast: an element loaded serves two multiply-adds | near 100 % | 36 % to 55 % (51 %) |
//! | rows packed in tiles: no addresses and tests of bounds between a load and its multiply-adds | 85 % | 75 % (60 %) |
//! | the panels ahead asked for; 384 instead of 192 rows of k a slice | 5 % more | 83 % (73 %) |
//! | a tile ended at once, and the lines of its end asked for before | more where the result leaves L2 | 83 % (80 %) |
//!
//! In the first step the tallest tile did not know its height when it was compiled either, and its sums went to memory at each k: that
//! alone is a third of the rate. Of what is left to 100 %, packing takes 2 to 4 % and the ends of tiles as much.
//! Not kept, since nothing came of them: 192 or 1,536 rows of k a slice, 256 rows or twice the elements of `a` a task.
//! For 8 rows the stream of the weights is the bound: 17 GB/s where two cores read memory at 17 to 20.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::gemm::{Activation, Epilogue, activate, body_with};
use super::native::{NativeCall, for_each_chunk, prefetch_line, prefetch_write, simd, with_simd};
use super::strip::{MAX_ABREAST, MAX_TILE, Strip, Tail, Tiles, abreast, pack_tiles};
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

/// Elements of `a` that a task goes through for each panel: what an L2 of 512 KiB holds beside the panel.
const ROWS_ELEMENTS: usize = 96 << 10;
/// The most rows of a task: a strip of them stays in L1 with the slice of its panel.
const MAX_ROWS: usize = 128;

thread_local! {
    /// Packed rows and strips of a product, kept from launch to launch.
    static KEPT: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

fn gemm(call: &NativeCall<'_>, bias: Option<&[f32]>, residual: Option<&[f32]>) {
    let (a, b, y) = (call.read::<f32>(0), call.read::<f32>(1), call.write::<f32>(2));
    let [m, n, k] = [0, 1, 2].map(|index| call.size(index));
    let activation = Activation::from_code(call.u32(3));
    let (y, b) = (&mut y[..m * n], &b[..panels_len(k, n)]);
    // A multiply-add is a sixteenth of a streamed element; of few rows the stream of the weights counts.
    let threads = call.threads_for((m * n * k / 16).max(n * k));
    let most = MAX_ROWS.min((ROWS_ELEMENTS / k).max(MAX_TILE));
    let group = abreast() * PANEL;
    if threads == 1 || m >= threads * most.min(48) {
        // Tasks of equal numbers of rows, each over all panels.
        let height = m.div_ceil(m.div_ceil(most).next_multiple_of(threads));
        return for_each_chunk(y, height * n, threads, |task, y| {
            let rows = y.len() / n;
            let residual = residual.map(|residual| &residual[task * height * n..][..rows * n]);
            let mut kept = KEPT.take();
            kept.resize(kept.len().max(rows * k), 0.0);
            let packed = &mut kept[..rows * k];
            pack_tiles(&a[task * height * k..][..rows * k], k, packed);
            let mut strip = [0.0; MAX_ROWS * MAX_ABREAST * PANEL];
            for first in (0..n).step_by(group) {
                let (b, ahead) = b[first * k..].split_at((group * k).min(b.len() - first * k));
                let finish = Finish { bias, activation, first, width: b.len() / k };
                let strip = &mut strip[..rows * finish.width];
                make_strip(Tiles { data: packed, k }, (b, ahead), strip, Stored { finish, y, n, residual });
            }
            KEPT.set(kept);
        });
    }
    // Few rows: tasks of some panels, each over all rows.
    let panels = n.div_ceil(PANEL);
    // Taken, not borrowed: while this thread waits for others it may be given another product.
    let mut kept = KEPT.take();
    kept.resize(kept.len().max((panels * PANEL + k) * m), 0.0);
    let (packed, strips) = kept[..(panels * PANEL + k) * m].split_at_mut(m * k);
    pack_tiles(&a[..m * k], k, packed);
    let share = (panels * PANEL).div_ceil(2 * threads).next_multiple_of(group);
    for_each_chunk(strips, share * m, threads, |task, strips| {
        for (index, strip) in strips.chunks_mut(group * m).enumerate() {
            let first = task * share + index * group;
            let width = strip.len() / m;
            make_strip(Tiles { data: packed, k }, b[first * k..].split_at(width * k), strip, Finish { bias, activation, first, width });
        }
    });
    simd(
        #[inline(always)]
        || {
            for (index, strip) in strips.chunks(group * m).enumerate() {
                store(strip, [index * group, strip.len() / m], y, n, residual);
            }
        },
    );
    KEPT.set(kept);
}

/// What a product ends with, but for the residual, for a strip of some columns.
#[derive(Clone, Copy)]
struct Finish<'a> {
    bias: Option<&'a [f32]>,
    activation: Activation,
    first: usize,
    width: usize,
}

impl Tail for Finish<'_> {
    #[inline(always)]
    fn ask(&self, _: usize, _: Range<usize>) {}

    #[inline(always)]
    fn end(&mut self, _: usize, tile: &mut [f32]) {
        if let Some(bias) = self.bias {
            let bias = &bias[self.first..];
            let (bias, rest) = bias[..bias.len().min(self.width)].as_chunks::<PANEL>();
            for row in tile.chunks_exact_mut(self.width) {
                let row = row.as_chunks_mut::<PANEL>().0;
                row.iter_mut().zip(bias).for_each(|(y, bias)| *y = std::array::from_fn(|lane| y[lane] + bias[lane]));
                row.iter_mut().skip(bias.len()).for_each(|y| y.iter_mut().zip(rest).for_each(|(y, bias)| *y += bias));
            }
        }
        activate(tile, self.activation);
    }
}

/// The same, written to the result with the residual.
struct Stored<'a, 'y> {
    finish: Finish<'a>,
    y: &'y mut [f32],
    n: usize,
    residual: Option<&'a [f32]>,
}

impl Tail for Stored<'_, '_> {
    #[inline(always)]
    fn ask(&self, first: usize, rows: Range<usize>) {
        for row in rows {
            let at = (first + row) * self.n + self.finish.first;
            prefetch_write(&self.y[at..self.y.len().min(at + self.finish.width)]);
            if let Some(residual) = self.residual {
                prefetch_line(residual, at);
                prefetch_line(residual, at + PANEL);
            }
        }
    }

    #[inline(always)]
    fn end(&mut self, first: usize, tile: &mut [f32]) {
        self.finish.end(first, tile);
        let Finish { first: column, width, .. } = self.finish;
        let rows = first * self.n..(first + tile.len() / width) * self.n;
        store(tile, [column, width], &mut self.y[rows.clone()], self.n, self.residual.map(|residual| &residual[rows]));
    }
}

/// Writes rows of a strip to its columns of the result, from a first one on, and adds the residual.
#[inline(always)]
fn store(strip: &[f32], [first, width]: [usize; 2], y: &mut [f32], n: usize, residual: Option<&[f32]>) {
    let columns = width.min(n - first);
    for (row, strip) in strip.chunks_exact(width).enumerate() {
        let (strips, strip_rest) = strip[..columns].as_chunks::<PANEL>();
        let (ys, y_rest) = y[row * n + first..][..columns].as_chunks_mut::<PANEL>();
        match residual {
            Some(residual) => {
                let (residuals, residual_rest) = residual[row * n + first..][..columns].as_chunks::<PANEL>();
                ys.iter_mut().zip(strips).zip(residuals).for_each(|((y, s), r)| *y = std::array::from_fn(|lane| s[lane] + r[lane]));
                y_rest.iter_mut().zip(strip_rest).zip(residual_rest).for_each(|((y, s), r)| *y = s + r);
            }
            None => {
                ys.copy_from_slice(strips);
                y_rest.copy_from_slice(strip_rest);
            }
        }
    }
}

/// A strip of one panel or of two: the panels, and those that come after them.
fn make_strip<T: Tail>(a: Tiles<'_>, (b, ahead): (&[f32], &[f32]), strip: &mut [f32], tail: T) {
    let panel = a.k * PANEL;
    if b.len() == panel {
        with_simd(Strip { a, b: [b], ahead: [ahead], strip, onto: false, tail });
    } else {
        let [(b, second), (ahead, ahead_second)] = [b, ahead].map(|panels| panels.split_at(panel.min(panels.len())));
        with_simd(Strip { a, b: [b, second], ahead: [ahead, ahead_second], strip, onto: false, tail });
    }
}
