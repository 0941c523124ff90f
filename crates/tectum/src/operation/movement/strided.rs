//! Copies of strided words, from strided places or to them, and of two rows into one.

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

    /// As `CopyStrided`, for eight axes.
    pub(crate) struct CopyStrided8 { read x: u32, write y: u32; n: usize, first: usize, d: [usize; 8], s: [usize; 8] }

    /// `y[first + i0·s0 + i1·s1 + i2·s2 + i3·s3] = x[i0, i1, i2, i3]`.
    pub(crate) struct StoreStrided { read x: u32, read_write y: u32; n: usize, first: usize, d: [usize; 4], s: [usize; 4] }

    /// As `StoreStrided`, for eight axes.
    pub(crate) struct StoreStrided8 { read x: u32, read_write y: u32; n: usize, first: usize, d: [usize; 8], s: [usize; 8] }

    /// `y[i, ..]` is `a[i, ..]` followed by `b[i, ..]`.
    pub(crate) struct Concat { read a: u32, read b: u32, write y: u32; n: usize, a_len: usize, b_len: usize }
}

pub(crate) static COPY_STRIDED: LazyLock<TypedKernel<CopyStrided>> = LazyLock::new(|| {
    built_in(
        CopyStrided::define("copy_strided_u32").body(include_str!("copy_strided_u32.wgsl")),
        copy_strided,
    )
});

static COPY_STRIDED_8: LazyLock<TypedKernel<CopyStrided8>> = LazyLock::new(|| {
    built_in(
        CopyStrided8::define("copy_strided_8_u32").body(body(8, "y[i] = x[place];")),
        |call,
         CopyStrided8 {
             x,
             y,
             n,
             first,
             d,
             s,
         }| {
            // Places of the rows of the last axis.
            for_each_chunk(&mut y[..n], d[7], call.threads_for(n), |row, y| {
                let start = first + place(row, &d[..7], &s[..7]);
                y.iter_mut()
                    .enumerate()
                    .for_each(|(i, y)| *y = x[start + i * s[7]]);
            });
        },
    )
});

static STORE_STRIDED: LazyLock<TypedKernel<StoreStrided>> = LazyLock::new(|| {
    built_in(
        StoreStrided::define("store_strided_u32").body(body(4, "y[place] = x[i];")),
        |call,
         StoreStrided {
             x,
             y,
             n,
             first,
             d,
             s,
         }| {
            store(call, (&x[..n], &mut y[first..]), &d, &s);
        },
    )
});

static STORE_STRIDED_8: LazyLock<TypedKernel<StoreStrided8>> = LazyLock::new(|| {
    built_in(
        StoreStrided8::define("store_strided_8_u32").body(body(8, "y[place] = x[i];")),
        |call,
         StoreStrided8 {
             x,
             y,
             n,
             first,
             d,
             s,
         }| {
            store(call, (&x[..n], &mut y[first..]), &d, &s);
        },
    )
});

/// A body that moves the word of each index `i` of a contiguous array and the `place` of a strided
/// one. One invocation moves every stride-th word.
fn body(axes: usize, step: &str) -> String {
    let axis = |axis: usize| {
        format!(
            "        place += (rest % params.d{axis}) * params.s{axis};\n        rest /= params.d{axis};\n"
        )
    };
    format!(
        "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {{
        var rest = i;
        var place = params.first;
{}        place += rest * params.s0;
        {step}
    }}
}}
",
        (1..axes).rev().map(axis).collect::<String>()
    )
}

/// The place of an index of a contiguous array in a strided one.
fn place(index: usize, sizes: &[usize], strides: &[usize]) -> usize {
    let axes = sizes.iter().zip(strides).rev();
    axes.fold((index, 0), |(rest, place), (size, stride)| {
        (rest / size, place + rest % size * stride)
    })
    .1
}

/// Stores `x` to strided places of `y`. The axis of the greatest stride divides `y` into parts, one
/// for each of its indices, that no other index reaches; each part is the work of one thread.
fn store(call: &NativeCall<'_>, (x, y): (&[u32], &mut [u32]), sizes: &[usize], strides: &[usize]) {
    let outer = (0..sizes.len())
        .max_by_key(|axis| strides[*axis])
        .unwrap_or(0);
    let mut inner = (sizes.to_vec(), strides.to_vec());
    let (size, stride) = (inner.0.remove(outer), inner.1.remove(outer));
    // In x the outer axis is before the elements of the later ones.
    let after: usize = sizes[outer + 1..].iter().product();
    let is_row = outer + 1 < sizes.len() && inner.1.last() == Some(&1);
    let row = if is_row {
        inner.0.pop().unwrap_or(1)
    } else {
        1
    };
    if is_row {
        inner.1.pop();
    }
    let reach = inner
        .0
        .iter()
        .zip(&inner.1)
        .map(|(size, stride)| (size - 1) * stride)
        .sum::<usize>()
        + row;
    let rows = x.len() / size / row;
    for_each_chunk(
        &mut y[..(size - 1) * stride + reach],
        stride.max(1),
        call.threads_for(x.len()),
        |index, y| {
            for number in 0..rows {
                // The row's start in x: its index among the axes before and after the outer one.
                let start = number * row;
                let from = start / after * after * size + index * after + start % after;
                let to = place(number, &inner.0, &inner.1);
                y[to..][..row].copy_from_slice(&x[from..][..row]);
            }
        },
    );
}

pub(crate) static CONCAT: LazyLock<TypedKernel<Concat>> = LazyLock::new(|| {
    built_in(
        Concat::define("concat_u32").body(include_str!("concat_u32.wgsl")),
        concat,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![
        COPY_STRIDED.clone(),
        COPY_STRIDED_8.clone(),
        STORE_STRIDED.clone(),
        STORE_STRIDED_8.clone(),
        CONCAT.clone(),
    ]
}

/// Rows of the last axis, contiguous or strided.
fn copy_strided(call: &NativeCall<'_>, arguments: CopyStrided<Slices<'_>>) {
    let CopyStrided {
        x,
        y,
        n,
        first,
        d1,
        d2,
        d3,
        s0,
        s1,
        s2,
        s3,
    } = arguments;
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

fn concat(
    call: &NativeCall<'_>,
    Concat {
        a,
        b,
        y,
        n,
        a_len,
        b_len,
    }: Concat<Slices<'_>>,
) {
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

/// Maximum axes of a launch.
const MAX_AXES: usize = 8;

/// The axes of a strided array with those that are contiguous with respect to each other as one,
/// without those of one element.
fn merged(axes: &[Strided]) -> Vec<Strided> {
    let mut merged: Vec<Strided> = Vec::new();
    for axis in axes.iter().filter(|axis| axis.size != 1) {
        match merged.last_mut() {
            Some(last) if last.stride == axis.size.saturating_mul(axis.stride) => {
                *last = Strided {
                    size: last.size.saturating_mul(axis.size),
                    stride: axis.stride,
                };
            }
            _ => merged.push(*axis),
        }
    }
    merged
}

/// The axes after axes of one element.
fn padded<const N: usize>(axes: &[Strided]) -> [Strided; N] {
    let mut padded = [Strided { size: 1, stride: 0 }; N];
    padded[N - axes.len()..].copy_from_slice(axes);
    padded
}

/// Each f64 as an axis of two words.
fn words(axes: &[Strided]) -> Vec<Strided> {
    let axes = axes.iter().map(|axis| Strided {
        size: axis.size,
        stride: axis.stride.saturating_mul(2),
    });
    axes.chain([Strided { size: 2, stride: 1 }]).collect()
}

/// Number of elements, and the last place from `first` on. On overflow they saturate at the
/// maximum, which no view has.
fn extent(first: usize, axes: &[Strided]) -> (usize, usize) {
    let len = axes
        .iter()
        .fold(1usize, |len, axis| len.saturating_mul(axis.size));
    let reach = |axis: &Strided| axis.size.saturating_sub(1).saturating_mul(axis.stride);
    (
        len,
        axes.iter()
            .fold(first, |last, axis| last.saturating_add(reach(axis))),
    )
}

/// Whether no two indices have one place: by stride, each axis steps over all that those of smaller
/// strides reach.
fn are_places_distinct(axes: &[Strided]) -> bool {
    let mut axes: Vec<Strided> = axes.iter().copied().filter(|axis| axis.size > 1).collect();
    axes.sort_unstable_by_key(|axis| axis.stride);
    (0..axes.len()).all(|count| axes[count].stride > extent(0, &axes[..count]).1)
}

impl PlanBuilder {
    /// Records `y[i, j, ..] = x[first + i·s + j·t + ..]` for types of one width: slices,
    /// permutations and, with strides of 0, repetitions.
    ///
    /// Axes of one element do not count, and adjacent axes that are contiguous with respect to each
    /// other count as one; up to eight are left, seven of an f64 whose last axis is not contiguous.
    ///
    /// # Errors
    /// `Invalid` if there are more axes, their sizes do not fill `y`, an index is outside `x`, or
    /// the types differ in width; as [`PlanBuilder::launch`].
    pub fn copy_strided(&mut self, x: View, first: usize, axes: &[Strided], y: View) -> Result<()> {
        if words_each("copy_strided", &[x, y])? == 2 {
            return self.copy_strided(
                x.reinterpret(DType::U32),
                first.saturating_mul(2),
                &words(axes),
                y.reinterpret(DType::U32),
            );
        }
        let ((len, last), merged) = (extent(first, axes), merged(axes));
        if y.len() != len || (len > 0 && (merged.len() > MAX_AXES || last >= x.len())) {
            let (x, y) = (x.len(), y.len());
            return Err(Error::invalid(format!(
                "copy_strided: {axes:?} from {first} on of {x} elements, y {y}; at most 8 axes inside x that fill y"
            )));
        }
        if len == 0 {
            return Ok(());
        }
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        if merged.len() > 4 {
            let axes: [Strided; 8] = padded(&merged);
            let arguments = CopyStrided8 {
                x,
                y,
                n: len,
                first,
                d: axes.map(|axis| axis.size),
                s: axes.map(|axis| axis.stride),
            };
            return self.launch(&COPY_STRIDED_8, arguments, groups_for(len));
        }
        let axes: [Strided; 4] = padded(&merged);
        let ([_, d1, d2, d3], [s0, s1, s2, s3]) =
            (axes.map(|axis| axis.size), axes.map(|axis| axis.stride));
        self.launch(
            &COPY_STRIDED,
            CopyStrided {
                x,
                y,
                n: len,
                first,
                d1,
                d2,
                d3,
                s0,
                s1,
                s2,
                s3,
            },
            groups_for(len),
        )
    }

    /// Records `y[first + i·s + j·t + ..] = x[i, j, ..]` for types of one width: the inverse of
    /// [`PlanBuilder::copy_strided`], with its rule for axes. Other elements of `y` keep their
    /// values, so `y` has to be written before: a part of a concatenation or of a padded array,
    /// after [`PlanBuilder::fill`] for instance.
    ///
    /// # Errors
    /// `Invalid` if there are more axes, their sizes do not fill `x`, an index is outside `y`, two
    /// indices may have one place (sorted by stride, each stride has to exceed what the axes before
    /// it reach), or the types differ in width; as [`PlanBuilder::launch`], thus also if nothing
    /// wrote `y`.
    pub fn store_strided(
        &mut self,
        x: View,
        first: usize,
        axes: &[Strided],
        y: View,
    ) -> Result<()> {
        if words_each("store_strided", &[x, y])? == 2 {
            return self.store_strided(
                x.reinterpret(DType::U32),
                first.saturating_mul(2),
                &words(axes),
                y.reinterpret(DType::U32),
            );
        }
        let ((len, last), merged) = (extent(first, axes), merged(axes));
        if x.len() != len || (len > 0 && (merged.len() > MAX_AXES || last >= y.len())) {
            let (x, y) = (x.len(), y.len());
            return Err(Error::invalid(format!(
                "store_strided: {axes:?} from {first} on of {y} elements, x {x}; at most 8 axes inside y that fill x"
            )));
        }
        if len == 0 {
            return Ok(());
        }
        if !are_places_distinct(&merged) {
            return Err(Error::invalid(format!(
                "store_strided: {axes:?}: two elements of x may have one place in y"
            )));
        }
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        if merged.len() > 4 {
            let axes: [Strided; 8] = padded(&merged);
            let arguments = StoreStrided8 {
                x,
                y,
                n: len,
                first,
                d: axes.map(|axis| axis.size),
                s: axes.map(|axis| axis.stride),
            };
            return self.launch(&STORE_STRIDED_8, arguments, groups_for(len));
        }
        let axes: [Strided; 4] = padded(&merged);
        let arguments = StoreStrided {
            x,
            y,
            n: len,
            first,
            d: axes.map(|axis| axis.size),
            s: axes.map(|axis| axis.stride),
        };
        self.launch(&STORE_STRIDED, arguments, groups_for(len))
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
            return Err(Error::invalid(format!(
                "concat: a has {}, b {} and y {} elements in {rows} rows",
                a.len(),
                b.len(),
                y.len()
            )));
        }
        if a.is_empty() || b.is_empty() {
            return self.copy(if a.is_empty() { b } else { a }, y);
        }
        words_each("concat", &[a, b, y])?;
        let [a, b, y] = [a, b, y].map(|view| view.reinterpret(DType::U32));
        let arguments = Concat {
            a,
            b,
            y,
            n: y.len(),
            a_len: a.len() / rows,
            b_len: b.len() / rows,
        };
        self.launch(&CONCAT, arguments, groups_for(y.len()))
    }
}
