//! Recording batched, half-width and byte products, and stencils.

use super::record_reduce::groups;
use super::{PlanBuilder, View, elements};
use crate::error::{Error, Result};
use crate::kernel::gemm::TILE;
use crate::kernel::gemm_batched::{self, GemmBatched, Packing};
use crate::kernel::gemm_i8::{self, GemmI8, MatVecI8};
use crate::kernel::groups_for;
use crate::kernel::pack::Half;
use crate::kernel::stencil::{self, Boundary, Points, Stencil};

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
        Self { view, count, rows, cols, transposed: false, packing: Packing::F32 }
    }

    /// `count` matrices of half-width floats, two in a word without gaps between rows or matrices.
    pub fn half(half: Half, view: View, count: usize, rows: usize, cols: usize) -> Self {
        Self { view, count, rows, cols, transposed: false, packing: Packing::Half(half) }
    }

    /// The transposes, without a copy.
    #[must_use]
    pub fn transpose(self) -> Self {
        Self { rows: self.cols, cols: self.rows, transposed: !self.transposed, ..self }
    }

    fn fits(&self) -> bool {
        let words = elements(&[self.count, self.rows, self.cols]).map(|elements| self.packing.words(elements));
        words == Some(self.view.len()) && self.view.dtype() == self.packing.dtype()
    }

    /// Elements between matrices, rows and columns.
    fn strides(&self) -> [usize; 3] {
        let matrix = if self.count == 1 { 0 } else { self.rows * self.cols };
        if self.transposed { [matrix, 1, self.rows] } else { [matrix, self.cols, 1] }
    }
}

impl PlanBuilder {
    /// Records `y[i] = a[i]·b[i]` for every matrix of a batch.
    ///
    /// # Shapes
    /// `a` batch or 1 × [m, k], `b` batch or 1 × [k, n], both f32, both f16 or both bf16; `y` [batch, m, n] f32.
    /// # Numerics
    /// Half-width operands are widened exactly; f32 accumulation; same device, same bits.
    /// # Errors
    /// `Invalid` naming the shapes if they do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm_batched(&mut self, a: Matrices, b: Matrices, y: View) -> Result<()> {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        let batch = if a.count == 1 { b.count } else { a.count };
        let counts_fit = b.count == batch || b.count == 1;
        if k != b.rows || !a.fits() || !b.fits() || !counts_fit || a.packing != b.packing || !y.fills(&[batch, m, n]) {
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
            return Err(Error::invalid(format!("gemm_batched: a [{m}, 0] and b [0, {n}] have no inner size")));
        }
        let [a_matrix, a_row, a_col] = a.strides();
        let [b_matrix, b_row, b_col] = b.strides();
        let tiles = batch * m.div_ceil(TILE) * n.div_ceil(TILE);
        let (kernel, [a, b]) = (gemm_batched::kernel(a.packing), [a.view, b.view]);
        self.launch(kernel, GemmBatched { a, b, y, batch, m, n, k, a_matrix, a_row, a_col, b_matrix, b_row, b_col }, groups(tiles))
    }

    /// Records `y[m, n] = Σ_k a[m, k]·b[n, k]` over signed bytes: rows of `a` with rows of `b`, the layout of a layer's weights.
    ///
    /// # Shapes
    /// `a` [m, ⌈k / 4⌉] and `b` [n, ⌈k / 4⌉] u32, four bytes in a word, the first in the lowest, rows padded with zeros;
    /// `y` [m, n] i32.
    /// # Numerics
    /// Exact for k of up to 131,071; beyond, modulo 2³².
    /// # Errors
    /// `Invalid` if the lengths do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm_i8(&mut self, a: View, b: View, y: View, [m, n, k]: [usize; 3]) -> Result<()> {
        let words = k.div_ceil(4);
        if !a.fills(&[m, words]) || !b.fills(&[n, words]) || !y.fills(&[m, n]) {
            let (a, b, y) = (a.len(), b.len(), y.len());
            return Err(Error::invalid(format!("gemm_i8: a {a}, b {b}, y {y} elements; [{m}, {words}], [{n}, {words}] and [{m}, {n}] needed for k = {k}")));
        }
        if y.is_empty() {
            return Ok(());
        }
        if k == 0 {
            return Err(Error::invalid(format!("gemm_i8: a [{m}, 0] and b [{n}, 0] have no inner size")));
        }
        let tiles = m.div_ceil(TILE) * n.div_ceil(TILE);
        self.launch(&gemm_i8::GEMM_I8, GemmI8 { a, b, y, m, n, words }, groups(tiles))
    }

    /// Records `y[m] = Σ_k a[m, k]·x[k]` over signed bytes, packed as for [`PlanBuilder::gemm_i8`].
    ///
    /// # Shapes
    /// `a` [m, words], `x` [words] u32, `y` [m] i32.
    /// # Errors
    /// As [`PlanBuilder::gemm_i8`].
    pub fn matvec_i8(&mut self, a: View, x: View, y: View) -> Result<()> {
        let (m, words) = (y.len(), x.len());
        if !a.fills(&[m, words]) {
            return Err(Error::invalid(format!("matvec_i8: a has {} words, x {words}, y {m}: sizes differ", a.len())));
        }
        if m == 0 {
            return Ok(());
        }
        if words == 0 {
            return Err(Error::invalid(format!("matvec_i8: a [{m}, 0] and x [0] have no inner size")));
        }
        self.launch(&gemm_i8::MATVEC_I8, MatVecI8 { a, x, y, m, words }, groups(m))
    }

    /// Records the weighted sum over each cell's neighbours: `y[p, c] = Σ w[class(q), c]·x[p + q, c]`.
    ///
    /// # Shapes
    /// `x` and `y` [X, Y, Z, C] as `sizes`, channels last; `weights` [4], or [4, C] for weights per channel. Classes
    /// are centre, X, Y, Z for seven points and centre, face, edge, corner for 27. Diffusion with decay by one explicit step is
    /// seven points with weights 1 − λ·dt − 2(a + b + c), a, b, c for diffusion numbers a, b, c = D·dt/h² along the axes, stable
    /// for a + b + c ≤ ½.
    /// # Numerics
    /// f32, the sums of a class before its weight; same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch; reads and writes each element once where planes of X stay in cache.
    pub fn stencil(&mut self, points: Points, x: View, weights: View, y: View, sizes: [usize; 4], boundary: Boundary) -> Result<()> {
        let channels = sizes[3];
        let per_channel = weights.len() != 4;
        if !x.fills(&sizes) || !y.fills(&sizes) || (per_channel && !weights.fills(&[4, channels])) {
            return Err(Error::invalid(format!(
                "stencil: x has {}, y {} and weights {} elements; {sizes:?} twice and 4 or 4 × {channels} needed",
                x.len(),
                y.len(),
                weights.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        let kernel = match points {
            Points::Seven => &stencil::STENCIL7,
            Points::TwentySeven => &stencil::STENCIL27,
        };
        let [nx, ny, nz, channels] = sizes;
        let arguments = Stencil { x, weights, y, nx, ny, nz, channels, boundary: boundary as u32, per_channel: u32::from(per_channel) };
        self.launch(kernel, arguments, groups_for(y.len()))
    }
}
