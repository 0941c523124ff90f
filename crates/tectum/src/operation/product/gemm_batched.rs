//! Products of many matrices in one launch, over f32 or over f16 and bf16 packed two in a word, f32
//! accumulation.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk};
use crate::kernel::pack::{Half, unpack};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::product::gemm::{TILE, product};
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::{View, elements};

kernel_arguments! {
    /// `y[matrix, m, n] = Σ_k a[matrix, m, k]·b[matrix, k, n]`, operands by their strides.
    pub(crate) struct GemmBatched {
        read a: T, read b: T, write y: f32;
        batch: usize, m: usize, n: usize, k: usize,
        a_matrix: usize, a_row: usize, a_col: usize, b_matrix: usize, b_row: usize, b_col: usize
    }
}

/// The layout of an operand's elements in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One f32 in each word.
    F32,
    /// Two half-width floats in each word, the first in the low half.
    Half(Half),
}

impl Packing {
    /// All of them.
    pub const ALL: [Packing; 3] = [
        Packing::F32,
        Packing::Half(Half::F16),
        Packing::Half(Half::Bf16),
    ];

    /// The element type of the view.
    pub fn dtype(self) -> DType {
        if self == Packing::F32 {
            DType::F32
        } else {
            DType::U32
        }
    }

    /// Words that hold `n` elements.
    pub fn words(self, n: usize) -> usize {
        match self {
            Packing::F32 => n,
            Packing::Half(half) => half.words(n),
        }
    }
}

static KERNELS: LazyLock<[TypedKernel<GemmBatched>; 3]> =
    LazyLock::new(|| Packing::ALL.map(define));

/// The kernel over operands of a packing.
pub(crate) fn kernel(packing: Packing) -> &'static TypedKernel<GemmBatched> {
    match packing {
        Packing::F32 => &KERNELS[0],
        Packing::Half(Half::F16) => &KERNELS[1],
        Packing::Half(Half::Bf16) => &KERNELS[2],
    }
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS.iter().map(|kernel| Arc::clone(kernel)).collect()
}

fn define(packing: Packing) -> TypedKernel<GemmBatched> {
    match packing {
        Packing::F32 => built_in(
            with_body(
                "f32",
                packing,
                GemmBatched::define_on::<f32>("gemm_batched_f32"),
            ),
            products,
        ),
        Packing::Half(Half::F16) => built_in(define_halves(Half::F16), |call, arguments| {
            unpacked(call, arguments, Half::F16)
        }),
        Packing::Half(Half::Bf16) => built_in(define_halves(Half::Bf16), |call, arguments| {
            unpacked(call, arguments, Half::Bf16)
        }),
    }
}

fn define_halves(half: Half) -> KernelBuilder<GemmBatched> {
    with_body(
        half.name(),
        Packing::Half(half),
        GemmBatched::define(format!("gemm_batched_{}", half.name())).prelude(Prelude::Pack),
    )
}

fn with_body<T: Element>(
    name: &str,
    packing: Packing,
    builder: KernelBuilder<GemmBatched, T>,
) -> KernelBuilder<GemmBatched, T> {
    let reader = |operand: &str| match packing {
        Packing::F32 => {
            format!("fn {operand}_at(i: u32) -> f32 {{\n    return {operand}[i];\n}}\n")
        }
        Packing::Half(_) => format!(
            "fn {operand}_at(i: u32) -> f32 {{\n    let word = {operand}[i / 2u];\n    return bitcast<f32>(tectum_{name}_bits(select(word & 0xffffu, word >> 16u, (i & 1u) == 1u)));\n}}\n"
        ),
    };
    let body = format!(
        "{}{}{}",
        reader("a"),
        reader("b"),
        include_str!("gemm_batched.wgsl")
    );
    builder
        .body(body)
        .loops(|GemmBatched { batch, m, n, k, .. }, groups| {
            crate::operation::product::loops_of_product([batch, m, n], groups, k)
        })
}

fn products(call: &NativeCall<'_>, arguments: GemmBatched<Slices<'_, f32>>) {
    let GemmBatched {
        a,
        b,
        y,
        batch,
        m,
        n,
        k,
        a_matrix,
        a_row,
        a_col,
        b_matrix,
        b_row,
        b_col,
    } = arguments;
    let (a_strides, b_strides) = ([a_row, a_col], [b_row, b_col]);
    let one = m * n * k / 16;
    let threads = call.threads_for(batch * one);
    let y = &mut y[..batch * m * n];
    // Small products one on each thread; large ones one after another, each on all threads.
    let within = if batch >= 2 * threads {
        1
    } else {
        call.threads_for(one)
    };
    for_each_chunk(
        y,
        m * n,
        if within > 1 { 1 } else { threads },
        |matrix, y| {
            product(
                [m, n, k],
                &a[matrix * a_matrix..],
                a_strides,
                &b[matrix * b_matrix..],
                b_strides,
                y,
                within,
            );
        },
    );
}

thread_local! {
    /// The operands of a product as f32, kept from launch to launch.
    static UNPACKED: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Unpacks both operands, which costs m·k + n·k of m·n·k, and multiplies as f32.
fn unpacked(call: &NativeCall<'_>, arguments: GemmBatched<Slices<'_>>, half: Half) {
    let GemmBatched {
        a,
        b,
        y,
        batch,
        m,
        n,
        k,
        a_matrix,
        a_row,
        a_col,
        b_matrix,
        b_row,
        b_col,
    } = arguments;
    let matrices = |stride: usize| if stride == 0 { 1 } else { batch };
    let lengths = [matrices(a_matrix) * m * k, matrices(b_matrix) * k * n];
    // Moved out, not borrowed: while this thread waits for others it may run another product.
    let mut buffers = UNPACKED.take();
    for ((buffer, words), length) in buffers.iter_mut().zip([a, b]).zip(lengths) {
        if buffer.len() < length {
            buffer.resize(length, 0.0);
        }
        const CHUNK: usize = 1 << 15;
        for_each_chunk(
            &mut buffer[..length],
            CHUNK,
            call.threads_for(length),
            |index, part| {
                unpack(half, words, index * CHUNK, part);
            },
        );
    }
    let [a, b] = [&buffers[0][..], &buffers[1]];
    products(
        call,
        GemmBatched {
            a,
            b,
            y,
            batch,
            m,
            n,
            k,
            a_matrix,
            a_row,
            a_col,
            b_matrix,
            b_row,
            b_col,
        },
    );
    UNPACKED.set(buffers);
}

/// A view read as matrices of one shape, one after the other, row-major, or as their transposes.
#[derive(Debug, Clone, Copy)]
pub struct Matrices {
    view: View,
    count: usize,
    rows: usize,
    cols: usize,
    transposed: bool,
    packing: Packing,
}

impl Matrices {
    /// `count` matrices of f32; one is shared by every product.
    pub fn new(view: View, count: usize, rows: usize, cols: usize) -> Self {
        Self {
            view,
            count,
            rows,
            cols,
            transposed: false,
            packing: Packing::F32,
        }
    }

    /// `count` matrices of half-width floats, two in a word without gaps between rows or matrices.
    pub fn half(half: Half, view: View, count: usize, rows: usize, cols: usize) -> Self {
        Self {
            view,
            count,
            rows,
            cols,
            transposed: false,
            packing: Packing::Half(half),
        }
    }

    /// The transposes, without a copy.
    #[must_use]
    pub fn transpose(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            transposed: !self.transposed,
            ..self
        }
    }

    fn fits(&self) -> bool {
        let words = elements(&[self.count, self.rows, self.cols])
            .map(|elements| self.packing.words(elements));
        words == Some(self.view.len()) && self.view.dtype() == self.packing.dtype()
    }

    /// Elements between matrices, rows and columns.
    fn strides(&self) -> [usize; 3] {
        let matrix = if self.count == 1 {
            0
        } else {
            self.rows * self.cols
        };
        if self.transposed {
            [matrix, 1, self.rows]
        } else {
            [matrix, self.cols, 1]
        }
    }
}

impl PlanBuilder {
    /// Records `y[i] = a[i]·b[i]` for every matrix of a batch.
    ///
    /// # Shapes
    /// `a` batch or 1 × [m, k], `b` batch or 1 × [k, n], both f32, both f16 or both bf16; `y`
    /// [batch, m, n] f32.
    /// # Numerics
    /// Half-width operands are widened exactly; f32 accumulation; same device, same bits.
    /// # Errors
    /// `Invalid` naming the shapes if they do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm_batched(&mut self, a: Matrices, b: Matrices, y: View) -> Result<()> {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        let batch = if a.count == 1 { b.count } else { a.count };
        let counts_fit = b.count == batch || b.count == 1;
        if k != b.rows
            || !a.fits()
            || !b.fits()
            || !counts_fit
            || a.packing != b.packing
            || !y.fills(&[batch, m, n])
        {
            return Err(Error::invalid(format!(
                "gemm_batched: a {} × [{m}, {k}] {:?} of {} words, b {} × [{}, {n}] {:?} of {}, y {}: sizes or types differ",
                a.count,
                a.packing,
                a.view.len(),
                b.count,
                b.rows,
                b.packing,
                b.view.len(),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        if k == 0 {
            return Err(Error::invalid(format!(
                "gemm_batched: a [{m}, 0] and b [0, {n}] have no inner size"
            )));
        }
        let [a_matrix, a_row, a_col] = a.strides();
        let [b_matrix, b_row, b_col] = b.strides();
        let tiles = batch * m.div_ceil(TILE) * n.div_ceil(TILE);
        let (kernel, [a, b]) = (kernel(a.packing), [a.view, b.view]);
        self.launch(
            kernel,
            GemmBatched {
                a,
                b,
                y,
                batch,
                m,
                n,
                k,
                a_matrix,
                a_row,
                a_col,
                b_matrix,
                b_row,
                b_col,
            },
            groups(tiles),
        )
    }
}
