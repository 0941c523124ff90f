//! Matrix products with bias, activation and residual fused at the end.
//!
//! `y = activation(A·B + bias) + residual`. Strides are free, so transposed operands need no copy.
//! The CPU form is the `gemm` crate (blocked, AVX-512), without the feature of its name our own;
//! its epilogue runs while the result is still in cache for the small products of a control tick.

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{KernelArguments, Slices};
use crate::kernel::math::Real;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, KernelBuilder, MatrixProduct, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::reduce::{self, CacheAligned};
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[m, n] = activation(a[m, k]·b[k, n] + bias[n]) + residual[m, n]`, operands by their
    /// strides.
    pub(crate) struct Gemm {
        read a: T, read b: T, write y: T, optional bias: T, optional residual: T;
        m: usize, n: usize, k: usize, a_row: usize, a_col: usize, b_row: usize, b_col: usize, activation: u32
    }

    /// `y[m] = activation(a[m, k]·x[k] + bias[m]) + residual[m]`.
    pub(crate) struct MatVec { read a: T, read x: T, write y: T, optional bias: T, optional residual: T; m: usize, k: usize, activation: u32 }
}

/// Rows and columns of the tile that one workgroup computes.
pub const TILE: usize = 64;

/// The function that is applied to each element of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// The identity.
    #[default]
    None = 0,
    /// max(x, 0)
    Relu = 1,
    /// tanh(x)
    Tanh = 2,
    /// 1 / (1 + exp(−x))
    Sigmoid = 3,
    /// The tanh form of GELU.
    Gelu = 4,
    /// x·Φ(x): GELU by the error function.
    GeluErf = 5,
    /// x / (1 + exp(−x))
    Silu = 6,
    /// eˣ − 1 below 0, else x.
    Elu = 7,
    /// min(max(x + 3, 0), 6) / 6
    HardSigmoid = 8,
    /// x·min(max(x + 3, 0), 6) / 6
    HardSwish = 9,
    /// min(max(x, 0), 6)
    Relu6 = 10,
}

impl Activation {
    /// All of them, in the order of their codes.
    pub const ALL: [Activation; 11] = [
        Activation::None,
        Activation::Relu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Gelu,
        Activation::GeluErf,
        Activation::Silu,
        Activation::Elu,
        Activation::HardSigmoid,
        Activation::HardSwish,
        Activation::Relu6,
    ];

    pub(crate) fn from_code(code: u32) -> Self {
        Self::ALL[code as usize]
    }

    /// The float64 reference.
    pub fn reference(self, x: f64) -> f64 {
        match self {
            Activation::None => x,
            Activation::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Gelu => crate::kernel::reference::gelu(x),
            Activation::GeluErf => crate::kernel::reference::gelu_erf(x),
            Activation::Silu => crate::kernel::reference::silu(x),
            Activation::Elu => crate::kernel::reference::elu(x),
            Activation::HardSigmoid => crate::kernel::reference::hard_sigmoid(x),
            Activation::HardSwish => crate::kernel::reference::hard_swish(x),
            Activation::Relu6 => crate::kernel::reference::relu6(x),
        }
    }
}

/// Which of bias and residual a product has; each pair has its own kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epilogue {
    /// A vector is added to each row before the activation.
    pub bias: bool,
    /// A matrix is added after the activation.
    pub residual: bool,
}

impl Epilogue {
    pub(crate) const ALL: [Epilogue; 4] = [
        Epilogue {
            bias: false,
            residual: false,
        },
        Epilogue {
            bias: true,
            residual: false,
        },
        Epilogue {
            bias: false,
            residual: true,
        },
        Epilogue {
            bias: true,
            residual: true,
        },
    ];

    pub(crate) fn index(self) -> usize {
        usize::from(self.bias) + 2 * usize::from(self.residual)
    }

    pub(crate) fn suffix(self) -> &'static str {
        ["", "_bias", "_residual", "_bias_residual"][self.index()]
    }

    /// Adds the bindings and fills the two placeholders of a body.
    pub(crate) fn apply<A: KernelArguments, T: Element>(
        self,
        mut builder: KernelBuilder<A, T>,
        body: &str,
        bias_index: &str,
        out_index: &str,
    ) -> KernelBuilder<A, T> {
        if self.bias {
            builder = builder.with("bias");
        }
        if self.residual {
            builder = builder.with("residual");
        }
        let bias = if self.bias {
            format!(" + bias[{bias_index}]")
        } else {
            String::new()
        };
        let residual = if self.residual {
            format!(" + residual[{out_index}]")
        } else {
            String::new()
        };
        builder.body(
            body.replace("PLUS_BIAS", &bias)
                .replace("PLUS_RESIDUAL", &residual),
        )
    }
}

/// Kernels on f32, then on f64, each with every epilogue.
type Family<A> = LazyLock<[[TypedKernel<A>; 4]; 2]>;

static GEMM: Family<Gemm> = LazyLock::new(|| {
    [
        Epilogue::ALL.map(define_gemm::<f32>),
        Epilogue::ALL.map(define_gemm::<f64>),
    ]
});
static MATVEC: Family<MatVec> = LazyLock::new(|| {
    [
        Epilogue::ALL.map(define_matvec::<f32>),
        Epilogue::ALL.map(define_matvec::<f64>),
    ]
});

/// The product kernel with an epilogue; on f64, or on f32 for every other type.
pub(crate) fn gemm_kernel(epilogue: Epilogue, dtype: DType) -> &'static TypedKernel<Gemm> {
    &GEMM[usize::from(dtype == DType::F64)][epilogue.index()]
}

/// The matrix-vector kernel with an epilogue; on f64, or on f32 for every other type.
pub(crate) fn matvec_kernel(epilogue: Epilogue, dtype: DType) -> &'static TypedKernel<MatVec> {
    &MATVEC[usize::from(dtype == DType::F64)][epilogue.index()]
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    (0..2)
        .flat_map(|width| {
            GEMM[width]
                .iter()
                .map(|kernel| &**kernel)
                .chain(MATVEC[width].iter().map(|kernel| &**kernel))
        })
        .cloned()
        .collect()
}

fn define_gemm<T: Real>(epilogue: Epilogue) -> TypedKernel<Gemm> {
    let builder = Gemm::define_on::<T>(format!("gemm_{}{}", T::DTYPE.wgsl(), epilogue.suffix()))
        .prelude(Prelude::Activation);
    let body = body_with(
        ["params.a_row < params.a_col", "params.b_row < params.b_col"],
        [
            "a[(first_row + a_m) * params.a_row + (first_k + a_k) * params.a_col]",
            "b[(first_k + b_k) * params.b_row + (first_col + b_n) * params.b_col]",
        ],
    );
    let builder = epilogue
        .apply(builder, &body, "col", "out")
        .flops(|Gemm { m, n, k, .. }| 2.0 * m as f64 * n as f64 * k as f64)
        .loops(|Gemm { m, n, k, .. }, groups| {
            crate::operation::product::loops_of_product([1, m, n], groups, k)
        });
    // The library's activations are other functions than ours: what its relu makes of NaN and how
    // exact its gelu is are not documented. It computes no f64.
    let builder = builder.matrix_product(
        |Gemm {
             m,
             n,
             k,
             a_row,
             a_col,
             b_row,
             b_col,
             activation,
             ..
         }| {
            let product = MatrixProduct {
                sizes: [m, n, k],
                a_strides: [a_row, a_col],
                b_strides: [b_row, b_col],
            };
            (T::DTYPE == DType::F32 && activation == Activation::None as u32).then_some(product)
        },
    );
    built_in(builder, gemm)
}

/// The body for a layout of its operands: whether adjacent elements are in a column, and the
/// element type.
pub(crate) fn body_with(is_columns: [&str; 2], values: [&str; 2]) -> String {
    let body = include_str!("gemm.wgsl");
    let body = body
        .replace("A_IS_COLUMNS", is_columns[0])
        .replace("B_IS_COLUMNS", is_columns[1]);
    body.replace("A_VALUE", values[0])
        .replace("B_VALUE", values[1])
}

fn define_matvec<T: Real>(epilogue: Epilogue) -> TypedKernel<MatVec> {
    let builder =
        MatVec::define_on::<T>(format!("matvec_{}{}", T::DTYPE.wgsl(), epilogue.suffix()))
            .prelude(Prelude::Activation)
            .prelude(Prelude::Tree);
    let builder = epilogue
        .apply(builder, include_str!("matvec.wgsl"), "row", "row")
        .flops(|MatVec { m, k, .. }| 2.0 * m as f64 * k as f64)
        .loops(|MatVec { m, k, .. }, groups| crate::kernel::loops_over_rows([m, k], groups, 1));
    built_in(builder, matvec)
}

fn gemm<T: Real>(call: &NativeCall<'_>, arguments: Gemm<Slices<'_, T>>) {
    let Gemm {
        a,
        b,
        y,
        bias,
        residual,
        m,
        n,
        k,
        a_row,
        a_col,
        b_row,
        b_col,
        activation,
    } = arguments;
    // A multiply-add is a sixteenth of a streamed element.
    let threads = call.threads_for(m * n * k / 16);
    let y = &mut y[..m * n];
    product([m, n, k], a, [a_row, a_col], b, [b_row, b_col], y, threads);
    let activation = Activation::from_code(activation);
    if bias.is_none() && residual.is_none() && activation == Activation::None {
        return;
    }
    for_each_chunk(y, n, call.threads_for(m * n * 8), |row, y| {
        if let Some(bias) = bias {
            simd(
                #[inline(always)]
                || y.iter_mut().zip(bias).for_each(|(y, &b)| *y += b),
            );
        }
        activate(y, activation);
        if let Some(residual) = residual {
            simd(
                #[inline(always)]
                || {
                    y.iter_mut()
                        .zip(&residual[row * n..])
                        .for_each(|(y, &r)| *y += r)
                },
            );
        }
    });
}

/// `y = a·b` for [m, k] and [k, n] by strides (row, column).
pub(crate) fn product<T: Real>(
    [m, n, k]: [usize; 3],
    a: &[T],
    a_strides: [usize; 2],
    b: &[T],
    b_strides: [usize; 2],
    y: &mut [T],
    threads: usize,
) {
    let last =
        |rows: usize, cols: usize, [row, col]: [usize; 2]| (rows - 1) * row + (cols - 1) * col;
    assert!(
        k == 0 || (last(m, k, a_strides) < a.len() && last(k, n, b_strides) < b.len()),
        "operand bounds"
    );
    assert_eq!(y.len(), m * n, "result bounds");
    #[cfg(not(feature = "gemm"))]
    super::strided::product([m, n, k], a, a_strides, b, b_strides, y, threads);
    #[cfg(feature = "gemm")]
    // SAFETY: the assertions above bound every element that the strides reach in `a` and `b`, `y`
    // holds m·n elements with row stride n, and a mutable slice overlaps no other.
    unsafe {
        // The function wants columns of the result next to each other: yᵀ = bᵀ·aᵀ.
        T::strided_product()(
            n,
            m,
            k,
            y.as_mut_ptr(),
            n as isize,
            1,
            false,
            b.as_ptr(),
            b_strides[0] as isize,
            b_strides[1] as isize,
            a.as_ptr(),
            a_strides[0] as isize,
            a_strides[1] as isize,
            T::ZERO,
            T::from_count(1),
            false,
            false,
            false,
            if threads > 1 {
                gemm_common::Parallelism::Rayon(threads)
            } else {
                gemm_common::Parallelism::None
            },
        );
    }
}

/// Calls a macro with the function of an activation, or with nothing where there is none. Such
/// macros write out the loops: a function passed to a loop may stay a call for each element,
/// without its instructions.
macro_rules! by_activation {
    ($activation:expr, $each:ident) => {
        match $activation {
            Activation::None => {
                $each!();
            }
            Activation::Relu => $each!(relu),
            Activation::Tanh => $each!(hyperbolic_tangent),
            Activation::Sigmoid => $each!(sigmoid),
            Activation::Gelu => $each!(gelu),
            Activation::GeluErf => $each!(gelu_erf_of_sum),
            Activation::Silu => $each!(silu),
            Activation::Elu => $each!(elu),
            Activation::HardSigmoid => $each!(hard_sigmoid),
            Activation::HardSwish => $each!(hard_swish),
            Activation::Relu6 => $each!(relu6),
        }
    };
}
pub(crate) use by_activation;

/// Applies an activation in place.
fn activate<T: Real>(y: &mut [T], activation: Activation) {
    macro_rules! each {
        () => {};
        ($function:ident) => {
            simd(
                #[inline(always)]
                || {
                    for y in y {
                        *y = y.$function();
                    }
                },
            )
        };
    }
    by_activation!(activation, each)
}

/// Accumulators of a dot product.
pub(crate) const LANES: usize = 64;

fn matvec<T: Real>(
    call: &NativeCall<'_>,
    MatVec {
        a,
        x,
        y,
        bias,
        residual,
        m,
        k,
        activation,
    }: MatVec<Slices<'_, T>>,
) {
    let activation = Activation::from_code(activation);
    let threads = call.threads_for(m * k);
    let chunk = m.div_ceil(threads * 4).max(1);
    for_each_chunk(&mut y[..m], chunk, threads, |index, y| {
        let first = index * chunk;
        for (offset, y) in y.iter_mut().enumerate() {
            *y = dot(&a[(first + offset) * k..][..k], &x[..k])
                + bias.map_or(T::ZERO, |bias| bias[first + offset]);
        }
        activate(y, activation);
        if let Some(residual) = residual {
            y.iter_mut()
                .zip(&residual[first..])
                .for_each(|(y, &r)| *y += r);
        }
    });
}

fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    simd(
        #[inline(always)]
        || dot_by_lanes(a, b),
    )
}

/// Σ a·b by lanes with fused multiply-adds, then a tree, for a loop that is compiled for the widest
/// SIMD already.
#[inline(always)]
pub(crate) fn dot_by_lanes<T: Real>(a: &[T], b: &[T]) -> T {
    let mut lanes = CacheAligned([T::ZERO; LANES]);
    let ((a_blocks, a_rest), (b_blocks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((lane, &a), &b) in lanes.0.iter_mut().zip(a).zip(b) {
            *lane = a.mul_add(b, *lane);
        }
    }
    for ((lane, &a), &b) in lanes.0.iter_mut().zip(a_rest).zip(b_rest) {
        *lane = a.mul_add(b, *lane);
    }
    reduce::fold_tree(lanes.0, |a, b| a + b)
}

/// A view read as a matrix, row-major, or as the transpose of one.
#[derive(Debug, Clone, Copy)]
pub struct Matrix {
    view: View,
    rows: usize,
    cols: usize,
    transposed: bool,
}

impl Matrix {
    /// A row-major matrix.
    pub fn new(view: View, rows: usize, cols: usize) -> Self {
        Self {
            view,
            rows,
            cols,
            transposed: false,
        }
    }

    /// The transpose, without a copy.
    #[must_use]
    pub fn transpose(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            transposed: !self.transposed,
            ..self
        }
    }

    fn strides(&self) -> (usize, usize) {
        if self.transposed {
            (1, self.rows)
        } else {
            (self.cols, 1)
        }
    }

    fn fits(&self) -> bool {
        self.view.fills(&[self.rows, self.cols])
    }
}

/// The epilogue of a product: `y = activation(a·b + bias) + residual`.
#[derive(Debug, Clone, Copy, Default)]
pub struct GemmEpilogue {
    /// Added to every row of a product, or to the vector.
    pub bias: Option<View>,
    /// Applied to each element.
    pub activation: Activation,
    /// Added after the activation.
    pub residual: Option<View>,
}

impl GemmEpilogue {
    pub(crate) fn epilogue(&self) -> Epilogue {
        Epilogue {
            bias: self.bias.is_some(),
            residual: self.residual.is_some(),
        }
    }
}

impl PlanBuilder {
    /// Records `y = activation(a·b + bias) + residual`.
    ///
    /// # Shapes
    /// `a` [m, k], `b` [k, n], bias \[n\], residual and `y` [m, n], row-major.
    /// # Numerics
    /// Everything is f32, or everything f64, accumulation included; same device, same bits.
    /// # Errors
    /// `Invalid` naming the shapes if they do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm(&mut self, a: Matrix, b: Matrix, y: View, tail: GemmEpilogue) -> Result<()> {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        let bias_fits = tail.bias.is_none_or(|bias| bias.len() == n);
        let residual_fits = tail.residual.is_none_or(|residual| residual.fills(&[m, n]));
        if k != b.rows
            || !a.fits()
            || !b.fits()
            || !y.fills(&[m, n])
            || !bias_fits
            || !residual_fits
        {
            return Err(Error::invalid(format!(
                "gemm: a [{m}, {k}] of {} elements, b [{}, {n}] of {}, bias {:?}, residual {:?}, y {}: sizes differ",
                a.view.len(),
                b.rows,
                b.view.len(),
                tail.bias.map(|view| view.len()),
                tail.residual.map(|view| view.len()),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        if k == 0 {
            return Err(Error::invalid(format!(
                "gemm: a [{m}, 0] and b [0, {n}] have no inner size"
            )));
        }
        let ((a_row, a_col), (b_row, b_col)) = (a.strides(), b.strides());
        let (
            GemmEpilogue {
                bias,
                residual,
                activation,
            },
            [a, b],
        ) = (tail, [a.view, b.view]);
        let arguments = Gemm {
            a,
            b,
            y,
            bias,
            residual,
            m,
            n,
            k,
            a_row,
            a_col,
            b_row,
            b_col,
            activation: activation as u32,
        };
        self.launch(
            gemm_kernel(tail.epilogue(), y.dtype()),
            arguments,
            groups(m.div_ceil(TILE) * n.div_ceil(TILE)),
        )
    }

    /// Records `y = activation(a·x + bias) + residual` for a vector `x`.
    ///
    /// # Shapes
    /// `a` [m, k] row-major, `x` \[k\], bias, residual and `y` \[m\].
    /// # Errors
    /// As [`PlanBuilder::gemm`].
    pub fn matvec(&mut self, a: View, x: View, y: View, tail: GemmEpilogue) -> Result<()> {
        let (m, k) = (y.len(), x.len());
        let tail_fits = [tail.bias, tail.residual]
            .iter()
            .flatten()
            .all(|view| view.len() == m);
        if !a.fills(&[m, k]) || !tail_fits {
            return Err(Error::invalid(format!(
                "matvec: a has {} elements, x {k}, y {m}, bias {:?}, residual {:?}: sizes differ",
                a.len(),
                tail.bias.map(|view| view.len()),
                tail.residual.map(|view| view.len())
            )));
        }
        if m == 0 {
            return Ok(());
        }
        if k == 0 {
            return Err(Error::invalid(format!(
                "matvec: a [{m}, 0] and x [0] have no inner size"
            )));
        }
        let GemmEpilogue {
            bias,
            residual,
            activation,
        } = tail;
        let arguments = MatVec {
            a,
            x,
            y,
            bias,
            residual,
            m,
            k,
            activation: activation as u32,
        };
        self.launch(
            matvec_kernel(tail.epilogue(), y.dtype()),
            arguments,
            groups(m),
        )
    }
}
