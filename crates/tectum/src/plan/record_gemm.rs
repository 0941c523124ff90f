//! Recording matrix products.

use super::record_reduce::groups;
use super::{PlanBuilder, View, elements};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gemm::{Activation, Epilogue, Gemm, MatVec, TILE, gemm_kernel, matvec_kernel};
use crate::kernel::gemm_panels::{self, GemmPanels, GemmPanelsInt8};
use crate::kernel::panel_format::PanelFormat;
use crate::kernel::quantize_rows::{self, MAX_COLS, QuantizeRows, padded};

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
        Self { view, rows, cols, transposed: false }
    }

    /// The transpose, without a copy.
    #[must_use]
    pub fn transpose(self) -> Self {
        Self { rows: self.cols, cols: self.rows, transposed: !self.transposed, ..self }
    }

    fn strides(&self) -> (usize, usize) {
        if self.transposed { (1, self.rows) } else { (self.cols, 1) }
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
    fn epilogue(&self) -> Epilogue {
        Epilogue { bias: self.bias.is_some(), residual: self.residual.is_some() }
    }
}

impl PlanBuilder {
    /// Records `y = activation(a·b + bias) + residual`.
    ///
    /// # Shapes
    /// `a` [m, k], `b` [k, n], bias [n], residual and `y` [m, n], row-major.
    /// # Numerics
    /// Everything is f32, or everything f64, accumulation included; same device, same bits.
    /// # Errors
    /// `Invalid` naming the shapes if they do not fit or k = 0; as [`PlanBuilder::launch`].
    pub fn gemm(&mut self, a: Matrix, b: Matrix, y: View, tail: GemmEpilogue) -> Result<()> {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        let bias_fits = tail.bias.is_none_or(|bias| bias.len() == n);
        let residual_fits = tail.residual.is_none_or(|residual| residual.fills(&[m, n]));
        if k != b.rows || !a.fits() || !b.fits() || !y.fills(&[m, n]) || !bias_fits || !residual_fits {
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
            return Err(Error::invalid(format!("gemm: a [{m}, 0] and b [0, {n}] have no inner size")));
        }
        let ((a_row, a_col), (b_row, b_col)) = (a.strides(), b.strides());
        let (GemmEpilogue { bias, residual, activation }, [a, b]) = (tail, [a.view, b.view]);
        let arguments = Gemm { a, b, y, bias, residual, m, n, k, a_row, a_col, b_row, b_col, activation: activation as u32 };
        self.launch(gemm_kernel(tail.epilogue(), y.dtype()), arguments, groups(m.div_ceil(TILE) * n.div_ceil(TILE)))
    }

    /// Records rows as codes of 8 bits with a scale each, after a rotation: see [`crate::kernel::quantize_rows`].
    ///
    /// # Shapes
    /// `x` [rows, cols]; `codes` [rows, ⌈cols / 128⌉ · 32] u32, four in a word; `scales` [rows].
    /// # Errors
    /// `Invalid` naming the lengths if they do not fit or there are no columns; as [`PlanBuilder::launch`].
    pub fn quantize_rows(&mut self, x: View, codes: View, scales: View, cols: usize) -> Result<()> {
        let rows = scales.len();
        // Row lengths are padded to whole blocks.
        let is_counted = elements(&[rows, cols.saturating_add(1024)]).is_some();
        let codes_fit = || if rows == 0 { codes.is_empty() } else { is_counted && codes.fills(&[rows, padded(cols) / 4]) };
        if cols == 0 || !x.fills(&[rows, cols]) || !codes_fit() {
            let (x, codes) = (x.len(), codes.len());
            return Err(Error::invalid(format!("quantize_rows: x {x}, codes {codes}, scales {rows} elements for rows of {cols}")));
        }
        if rows == 0 {
            return Ok(());
        }
        self.launch(&quantize_rows::QUANTIZE_ROWS, QuantizeRows { x, codes, scales, rows, cols }, groups(rows))
    }

    /// Records `y = activation(a·b + bias) + residual` for a `b` packed by [`PanelFormat::pack`].
    ///
    /// # Shapes
    /// `a` [m, k] row-major, `b` [k, n] in panels, of f32 or of u32 where these are of words, bias [n], residual and `y` [m, n].
    /// # Numerics
    /// f32, accumulation included, with weights of fewer bits widened; for [`PanelFormat::Int8`] exact sums of products of codes, with the rows
    /// of `a` quantised first ([`quantize_rows`]). Same device, same bits.
    /// # Errors
    /// As [`PlanBuilder::gemm`]; `Invalid` if codes are multiplied over more than 2¹⁷ elements, whose sums may overflow 32 bits.
    /// # Cost
    /// One launch, two with codes.
    pub fn gemm_panels(&mut self, a: View, (b, format): (View, PanelFormat), y: View, [m, k, n]: [usize; 3], tail: GemmEpilogue) -> Result<()> {
        let tail_fits = tail.bias.is_none_or(|bias| bias.len() == n) && tail.residual.is_none_or(|residual| residual.fills(&[m, n]));
        // The last panel is padded to a whole one.
        let is_counted = [m, n.saturating_add(1024)].iter().all(|&size| elements(&[k.saturating_add(1024), size]).is_some());
        if !is_counted || !a.fills(&[m, k]) || b.len() != format.words(k, n) || !y.fills(&[m, n]) || !tail_fits || k == 0 {
            return Err(Error::invalid(format!(
                "gemm_panels: a {}, b {}, bias {:?}, residual {:?}, y {} elements for [{m}, {k}] and [{k}, {n}] in panels of {format}",
                a.len(),
                b.len(),
                tail.bias.map(|view| view.len()),
                tail.residual.map(|view| view.len()),
                y.len()
            )));
        }
        if format == PanelFormat::Int8 && k > MAX_COLS {
            return Err(Error::invalid(format!("gemm_panels: k = {k}; sums of products of codes are exact up to k = {MAX_COLS}")));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.whole(|plan| plan.panels(a, (b, format), y, [m, k, n], tail))
    }

    /// The launches of a product with panels; the caller has checked all arguments.
    fn panels(&mut self, a: View, (b, format): (View, PanelFormat), y: View, [m, k, n]: [usize; 3], tail: GemmEpilogue) -> Result<()> {
        let (GemmEpilogue { bias, residual, activation }, groups) = (tail, groups(m.div_ceil(TILE) * n.div_ceil(TILE)));
        let activation = activation as u32;
        if let Some(kernel) = gemm_panels::kernel(format, tail.epilogue()) {
            return self.launch(kernel, GemmPanels { a, b, y, bias, residual, m, n, k, activation }, groups);
        }
        let words = padded(k) / 4;
        let (codes, scales) = (self.temp(DType::U32, m * words), self.temp(DType::F32, m));
        self.quantize_rows(a, codes, scales, k)?;
        let arguments = GemmPanelsInt8 { a: codes, b, scales, y, bias, residual, m, n, words, activation };
        self.launch(gemm_panels::int8_kernel(tail.epilogue()), arguments, groups)
    }

    /// Records `y = activation(a·x + bias) + residual` for a vector `x`.
    ///
    /// # Shapes
    /// `a` [m, k] row-major, `x` [k], bias, residual and `y` [m].
    /// # Errors
    /// As [`PlanBuilder::gemm`].
    pub fn matvec(&mut self, a: View, x: View, y: View, tail: GemmEpilogue) -> Result<()> {
        let (m, k) = (y.len(), x.len());
        let tail_fits = [tail.bias, tail.residual].iter().flatten().all(|view| view.len() == m);
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
            return Err(Error::invalid(format!("matvec: a [{m}, 0] and x [0] have no inner size")));
        }
        let GemmEpilogue { bias, residual, activation } = tail;
        let arguments = MatVec { a, x, y, bias, residual, m, k, activation: activation as u32 };
        self.launch(matvec_kernel(tail.epilogue(), y.dtype()), arguments, groups(m))
    }
}
