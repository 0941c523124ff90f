//! Copies of strided words, and of two rows into one.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk};
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::{built_in, words_each};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[i0, i1, i2, i3] = x[first + i0·s0 + i1·s1 + i2·s2 + i3·s3]`.
    pub(crate) struct CopyStrided {
        read x: u32, write y: u32;
        n: usize, first: usize, d1: usize, d2: usize, d3: usize, s0: usize, s1: usize, s2: usize, s3: usize
    }

    /// `y[i, ..]` is `a[i, ..]` followed by `b[i, ..]`.
    pub(crate) struct Concat { read a: u32, read b: u32, write y: u32; n: usize, a_len: usize, b_len: usize }
}

pub(crate) static COPY_STRIDED: LazyLock<TypedKernel<CopyStrided>> =
    LazyLock::new(|| built_in(CopyStrided::define("copy_strided_u32").body(include_str!("copy_strided_u32.wgsl")), copy_strided));

pub(crate) static CONCAT: LazyLock<TypedKernel<Concat>> =
    LazyLock::new(|| built_in(Concat::define("concat_u32").body(include_str!("concat_u32.wgsl")), concat));

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![COPY_STRIDED.clone(), CONCAT.clone()]
}

/// Rows of the last axis, contiguous or strided.
fn copy_strided(call: &NativeCall<'_>, arguments: CopyStrided<Slices<'_>>) {
    let CopyStrided { x, y, n, first, d1, d2, d3, s0, s1, s2, s3 } = arguments;
    for_each_chunk(&mut y[..n], d3, call.threads_for(n), |row, y| {
        let (i2, i1, i0) = (row % d2, row / d2 % d1, row / d2 / d1);
        let x = &x[first + i0 * s0 + i1 * s1 + i2 * s2..];
        if s3 == 1 {
            y.copy_from_slice(&x[..y.len()]);
        } else {
            y.iter_mut().enumerate().for_each(|(i, y)| *y = x[i * s3]);
        }
    });
}

fn concat(call: &NativeCall<'_>, Concat { a, b, y, n, a_len, b_len }: Concat<Slices<'_>>) {
    for_each_chunk(&mut y[..n], a_len + b_len, call.threads_for(n), |row, y| {
        let (from_a, from_b) = y.split_at_mut(a_len);
        from_a.copy_from_slice(&a[row * a_len..][..a_len]);
        from_b.copy_from_slice(&b[row * b_len..][..b_len]);
    });
}

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
        self.launch(&COPY_STRIDED, CopyStrided { x, y, n: len, first, d1, d2, d3, s0, s1, s2, s3 }, groups_for(len))
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
        self.launch(&CONCAT, arguments, groups_for(y.len()))
    }
}
