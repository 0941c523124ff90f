//! Recording casts, transposes, gathers and scatters.

use super::record_reduce::groups;
use super::{PlanBuilder, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::cast::{self, CastFromFloat, CastHalf, CastToFloat};
use crate::kernel::gather::{self, Gather, ScatterAdd};
use crate::kernel::groups_for;
use crate::kernel::pack::Half;
use crate::kernel::strided::{self, Concat, CopyStrided};
use crate::kernel::transpose::{self, Transpose};

/// One axis of a strided value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strided {
    /// Its size.
    pub size: usize,
    /// Elements from one index to the next.
    pub stride: usize,
}

impl PlanBuilder {
    /// Records `y[i, j, ..] = x[first + i·s + j·t + ..]` for types of one width and up to four axes, three for f64:
    /// slices and permutations.
    ///
    /// # Errors
    /// `Invalid` if there are more axes, their sizes do not fill `y`, an index is outside `x`, or the types differ in width; as
    /// [`PlanBuilder::launch`].
    pub fn copy_strided(&mut self, x: View, first: usize, axes: &[Strided], y: View) -> Result<()> {
        if words_each("copy_strided", &[x, y])? == 2 {
            // An f64 is an axis of two words.
            let axes = axes.iter().map(|axis| Strided { size: axis.size, stride: axis.stride.saturating_mul(2) });
            let axes: Vec<_> = axes.chain([Strided { size: 2, stride: 1 }]).collect();
            return self.copy_strided(x.reinterpret(DType::U32), first.saturating_mul(2), &axes, y.reinterpret(DType::U32));
        }
        // On overflow, sizes and places saturate at the maximum, which no view has.
        let len = axes.iter().fold(1usize, |len, axis| len.saturating_mul(axis.size));
        let reach = |axis: &Strided| axis.size.saturating_sub(1).saturating_mul(axis.stride);
        let last = axes.iter().fold(first, |last, axis| last.saturating_add(reach(axis)));
        if axes.len() > 4 || y.len() != len || (len > 0 && last >= x.len()) {
            let (x, y) = (x.len(), y.len());
            return Err(Error::invalid(format!("copy_strided: {axes:?} from {first} on of {x} elements, y {y}; at most 4 axes inside x that fill y")));
        }
        if len == 0 {
            return Ok(());
        }
        let mut four = [Strided { size: 1, stride: 0 }; 4];
        four[4 - axes.len()..].copy_from_slice(axes);
        let [_, d1, d2, d3] = four.map(|axis| axis.size);
        // The stride of an axis of one element reaches nothing, whatever it is.
        let [s0, s1, s2, s3] = four.map(|axis| if axis.size == 1 { 0 } else { axis.stride });
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        self.launch(&strided::COPY_STRIDED, CopyStrided { x, y, n: len, first, d1, d2, d3, s0, s1, s2, s3 }, groups_for(len))
    }

    /// Records `y[i, ..]`, `a[i, ..]` followed by `b[i, ..]`, for types of one width.
    ///
    /// # Shapes
    /// `a` [rows, m], `b` [rows, n], `y` [rows, m + n].
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn concat(&mut self, a: View, b: View, y: View, rows: usize) -> Result<()> {
        let whole = |view: View| rows > 0 && view.len().is_multiple_of(rows);
        if y.len() != a.len().saturating_add(b.len()) || !whole(a) || !whole(b) {
            return Err(Error::invalid(format!("concat: a has {}, b {} and y {} elements in {rows} rows", a.len(), b.len(), y.len())));
        }
        if a.is_empty() || b.is_empty() {
            return self.copy(if a.is_empty() { b } else { a }, y);
        }
        words_each("concat", &[a, b, y])?;
        let [a, b, y] = [a, b, y].map(|view| view.reinterpret(DType::U32));
        let arguments = Concat { a, b, y, n: y.len(), a_len: a.len() / rows, b_len: b.len() / rows };
        self.launch(&strided::CONCAT, arguments, groups_for(y.len()))
    }

    /// Records `y[i] = x[i]` from one element type to another, given by the views: f32 from or to i32 or u32, or a copy where
    /// the types are one. Between i32 and u32 no copy is needed: [`View::reinterpret`].
    ///
    /// # Numerics
    /// Float to integer drops the fraction and saturates to −2147483648..=2147483520 or 0..=4294967040, the floats next to the
    /// ends; NaN gives 0. Integer to float rounds to nearest, ties to even.
    /// # Errors
    /// `Invalid` if the lengths differ or the types are i32 and u32; as [`PlanBuilder::launch`].
    pub fn cast(&mut self, x: View, y: View) -> Result<()> {
        if x.len() != y.len() {
            return Err(Error::invalid(format!("cast: lengths {} and {} differ", x.len(), y.len())));
        }
        if x.dtype() == y.dtype() {
            return self.copy(x, y);
        }
        let (n, groups) = (y.len(), groups_for(y.len()));
        match (x.dtype(), y.dtype(), cast::from_float(y.dtype()), cast::to_float(x.dtype())) {
            (DType::F32, _, Some(_), _) | (_, DType::F32, _, Some(_)) if y.is_empty() => Ok(()),
            (DType::F32, _, Some(kernel), _) => self.launch(kernel, CastFromFloat { x, y, n }, groups),
            (_, DType::F32, _, Some(kernel)) => self.launch(kernel, CastToFloat { x, y, n }, groups),
            (from, to, ..) => Err(Error::invalid(format!("cast: {} to {}: reinterpret the view", from.wgsl(), to.wgsl()))),
        }
    }

    /// Records the rounding of f32 to half-width floats, two in a word, the first in the low half; an odd last word's high half
    /// is 0.
    ///
    /// # Shapes
    /// `x` [n] f32, `y` [⌈n / 2⌉] u32.
    /// # Numerics
    /// To nearest, ties to even; beyond the range ±∞, NaN stays NaN; subnormals kept. The same bits on every device.
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`].
    pub fn cast_to_half(&mut self, half: Half, x: View, y: View) -> Result<()> {
        check_half("cast_to_half", half, x, y)?;
        if x.is_empty() {
            return Ok(());
        }
        self.launch(cast::to_half_kernel(half), CastHalf { x: x.reinterpret(DType::U32), y, n: x.len() }, groups_for(y.len()))
    }

    /// Records half-width floats, two in a word, as f32. Exact.
    ///
    /// # Shapes
    /// `x` [⌈n / 2⌉] u32, `y` [n] f32.
    /// # Errors
    /// As [`PlanBuilder::cast_to_half`].
    pub fn cast_from_half(&mut self, half: Half, x: View, y: View) -> Result<()> {
        check_half("cast_from_half", half, y, x)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(cast::from_half_kernel(half), CastHalf { x, y: y.reinterpret(DType::U32), n: y.len() }, groups_for(y.len()))
    }

    /// Records `y[b, col, row] = x[b, row, col]` for types of one width.
    ///
    /// # Shapes
    /// `x` [batch, rows, cols], `y` [batch, cols, rows].
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn transpose(&mut self, x: View, y: View, [batch, rows, cols]: [usize; 3]) -> Result<()> {
        if ![x, y].iter().all(|view| view.fills(&[batch, rows, cols])) {
            return Err(Error::invalid(format!("transpose: x has {} and y {} elements, [{batch}, {rows}, {cols}] needed", x.len(), y.len())));
        }
        if y.is_empty() {
            return Ok(());
        }
        if words_each("transpose", &[x, y])? == 2 {
            let axes = [(batch, rows * cols), (cols, 1), (rows, cols)].map(|(size, stride)| Strided { size, stride });
            return self.copy_strided(x, 0, &axes, y);
        }
        let tiles = batch * rows.div_ceil(transpose::TILE) * cols.div_ceil(transpose::TILE);
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        self.launch(&transpose::TRANSPOSE, Transpose { x, y, batch, rows, cols }, groups(tiles))
    }

    /// Records `y[i, ..] = table[indices[i], ..]` for types of one width. An index beyond the table gives a row of zeros, and
    /// `faults` is set to the number of such indices.
    ///
    /// # Shapes
    /// `table` [rows, cols], `indices` [count] u32, `y` [count, cols], `faults` [1] u32.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// Two launches: one clears `faults`.
    pub fn gather(&mut self, table: View, indices: View, y: View, faults: View, cols: usize) -> Result<()> {
        let (rows, count) = (rows_of("gather: table", table, cols)?, indices.len());
        check_rows("gather", y, faults, count, cols)?;
        let words = words_each("gather", &[table, y])?;
        faults.check_no_overlap(y, "gather")?;
        self.whole(|plan| {
            plan.fill(faults, 0)?;
            if y.is_empty() {
                return Ok(());
            }
            if rows == 0 {
                plan.fill(y, 0)?;
                return plan.fill(faults, count as u32);
            }
            let ([table, y], cols) = ([table, y].map(|view| view.reinterpret(DType::U32)), cols * words);
            plan.launch(&gather::GATHER, Gather { table, indices, y, faults, rows, cols, count }, groups_for(count * cols))
        })
    }

    /// Records `y[indices[i], ..] += x[i, ..]` for integers, modulo 2³². An index beyond `y` adds nothing, and `faults` is set
    /// to the number of such indices. Rows may repeat; the order of the additions does not matter.
    ///
    /// # Shapes
    /// `x` [count, cols] i32 or u32, `indices` [count] u32, `y` [rows, cols] of x's type, `faults` [1] u32.
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// Two launches: one clears `faults`.
    pub fn scatter_add(&mut self, x: View, indices: View, y: View, faults: View, cols: usize) -> Result<()> {
        let (rows, count) = (rows_of("scatter_add: y", y, cols)?, indices.len());
        check_rows("scatter_add", x, faults, count, cols)?;
        if x.dtype() != y.dtype() || !matches!(x.dtype(), DType::I32 | DType::U32) {
            return Err(Error::invalid(format!("scatter_add: x is {} and y {}; one integer type needed", x.dtype().wgsl(), y.dtype().wgsl())));
        }
        self.whole(|plan| {
            plan.fill(faults, 0)?;
            if x.is_empty() {
                return Ok(());
            }
            if rows == 0 {
                return plan.fill(faults, count as u32);
            }
            let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
            plan.launch(&gather::SCATTER_ADD, ScatterAdd { x, indices, y, faults, rows, cols, count }, groups_for(count * cols))
        })
    }
}

fn check_half(op: &str, half: Half, floats: View, words: View) -> Result<()> {
    if words.len() == half.words(floats.len()) && floats.dtype() == DType::F32 && words.dtype() == DType::U32 {
        return Ok(());
    }
    let (n, given) = (floats.len(), words.len());
    Err(Error::invalid(format!("{op}: {n} {} and {given} {}; n f32 and {} u32 for them needed", floats.dtype().wgsl(), words.dtype().wgsl(), half.words(n))))
}

fn rows_of(what: &str, view: View, cols: usize) -> Result<usize> {
    let rows = view.len().checked_div(cols).unwrap_or(0);
    if view.fills(&[rows, cols]) { Ok(rows) } else { Err(Error::invalid(format!("{what} has {} elements, rows of {cols} needed", view.len()))) }
}

fn check_rows(op: &str, rows: View, faults: View, count: usize, cols: usize) -> Result<()> {
    if rows.fills(&[count, cols]) && faults.len() == 1 {
        return Ok(());
    }
    Err(Error::invalid(format!("{op}: {} elements for {count} indices of rows of {cols}, faults {}; 1 needed", rows.len(), faults.len())))
}

/// The 32-bit words of an element of views whose elements are moved bit by bit; refuses types of different widths.
pub(super) fn words_each(op: &str, views: &[View]) -> Result<usize> {
    let bytes = views[0].dtype().bytes();
    if views.iter().all(|view| view.dtype().bytes() == bytes) {
        return Ok(bytes / DType::U32.bytes());
    }
    let types: Vec<_> = views.iter().map(|view| view.dtype().wgsl()).collect();
    Err(Error::invalid(format!("{op}: elements of {}; types of one width needed", types.join(", "))))
}
