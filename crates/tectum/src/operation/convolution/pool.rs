//! Pooling: the maximum, with its place, and the mean over windows.

use std::sync::{Arc, LazyLock};

use pulp::{Simd, WithSimd};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, by_vectors, for_each_chunk_pair, with_simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel, groups_for, loops_over};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::convolution::chunks::{Chunk, LANES, chunks, load, store_chunk};
use crate::operation::convolution::depthwise::{channels_per_task, for_each_padded};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::pool_rows::{Maximum, PoolRows, Sum, exceeds};
use crate::operation::convolution::window::{Geometry, Window};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[c, o] = max x[c, o·stride − pad + q·dilation]` over the `q` for which it is inside.
    pub(crate) struct MaxPool {
        read x: f32, write y: f32;
        channels: usize, size_in: [usize; 3], size_out: [usize; 3], kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3]
    }

    /// The same with the index of the first maximum in its channel.
    pub(crate) struct MaxPoolIndices {
        read x: f32, write y: f32, write indices: u32;
        channels: usize, size_in: [usize; 3], size_out: [usize; 3], kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3]
    }

    /// The mean; positions from `count_before` before the input to `count_after` after it are
    /// counted.
    pub(crate) struct AveragePool {
        read x: f32, write y: f32;
        channels: usize, size_in: [usize; 3], size_out: [usize; 3], kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3],
        count_before: [usize; 3], count_after: [usize; 3]
    }
}

/// The sizes of a pooling.
#[derive(Debug, Clone, Copy)]
pub struct Pooling {
    /// Images times channels.
    pub channels: usize,
    /// Depth, height and width of the input.
    pub size_in: [usize; 3],
    /// The window.
    pub window: Window,
}

/// By what number a sum is divided for a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolDivisor {
    /// The elements of the window that are inside the input.
    Inside,
    /// Those inside the input or its padding: that before it, and this much after it, which may be
    /// less than that of the window.
    Padded {
        /// Elements after the input that count.
        pad_after: [usize; 3],
    },
}

static MAX_POOL: LazyLock<TypedKernel<MaxPool>> = LazyLock::new(|| {
    let body = include_str!("max_pool_f32.wgsl").replace("STORE_INDEX", "");
    let builder = MaxPool::define("max_pool_f32")
        .prelude(Prelude::Math)
        .body(body);
    built_in(
        builder.loops(
            |MaxPool {
                 channels,
                 size_out,
                 kernel,
                 ..
             },
             groups| loops_of(channels, size_out, kernel, groups),
        ),
        max_pool,
    )
});

static MAX_POOL_INDICES: LazyLock<TypedKernel<MaxPoolIndices>> = LazyLock::new(|| {
    let body = include_str!("max_pool_f32.wgsl").replace("STORE_INDEX", "indices[i] = place;");
    let builder = MaxPoolIndices::define("max_pool_indices_f32")
        .prelude(Prelude::Math)
        .body(body);
    built_in(
        builder.loops(
            |MaxPoolIndices {
                 channels,
                 size_out,
                 kernel,
                 ..
             },
             groups| loops_of(channels, size_out, kernel, groups),
        ),
        max_pool_indices,
    )
});

static AVERAGE_POOL: LazyLock<TypedKernel<AveragePool>> = LazyLock::new(|| {
    let builder: KernelBuilder<AveragePool> =
        AveragePool::define("average_pool_f32").body(include_str!("average_pool_f32.wgsl"));
    built_in(
        builder.loops(
            |AveragePool {
                 channels,
                 size_out,
                 kernel,
                 ..
             },
             groups| loops_of(channels, size_out, kernel, groups),
        ),
        average_pool,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![
        MAX_POOL.clone(),
        MAX_POOL_INDICES.clone(),
        AVERAGE_POOL.clone(),
    ]
}

fn loops_of(channels: usize, size_out: [usize; 3], kernel: [usize; 3], groups: u32) -> u64 {
    let items = size_out.into_iter().fold(channels as u64, |items, size| {
        items.saturating_mul(size as u64)
    });
    let turns = kernel
        .into_iter()
        .fold(2u64, |turns, size| turns.saturating_mul(size as u64 + 2));
    loops_over(items, groups.saturating_mul(256), turns)
}

/// What all channels share.
struct Windows {
    geometry: Geometry,
    padded: Padded,
    chunks: Vec<Chunk>,
    /// Of each element of the window in a padded channel, and in a channel of the input from the
    /// first element.
    offsets: Vec<(usize, u32)>,
}

impl Windows {
    fn new(geometry: Geometry) -> Self {
        let padded = Padded::new(geometry);
        let ([_, rows, columns], dilation) = (geometry.size_in, geometry.dilation);
        let index = |tap: [usize; 3]| {
            ((tap[0] * dilation[0] * rows + tap[1] * dilation[1]) * columns + tap[2] * dilation[2])
                as u32
        };
        let offsets = geometry
            .each_tap()
            .map(|tap| (padded.offset(tap), index(tap)))
            .collect();
        Self {
            geometry,
            chunks: chunks(geometry, &padded),
            padded,
            offsets,
        }
    }

    /// Threads, and channels of a task.
    fn tasks(&self, call: &NativeCall<'_>, channels: usize) -> (usize, usize) {
        let threads = call.threads_for(
            (channels * self.geometry.pixels()).saturating_mul(self.offsets.len()) / 4,
        );
        (threads, channels_per_task(channels, threads))
    }

    fn channel<'a>(&self, x: &'a [f32], channel: usize) -> &'a [f32] {
        &x[channel * self.geometry.volume()..][..self.geometry.volume()]
    }

    /// For each window the index of its first element, which may be outside the input, and of its
    /// first element inside, or else of the last of the input.
    fn indices(&self) -> [Vec<u32>; 2] {
        let Geometry {
            size_in,
            kernel,
            dilation,
            ..
        } = self.geometry;
        let index = |at: [isize; 3]| {
            ((at[0] * size_in[1] as isize + at[1]) * size_in[2] as isize + at[2]) as u32
        };
        let first_inside = |start: [isize; 3]| {
            let inside = |axis: usize| {
                let mut taps =
                    (0..kernel[axis]).map(|tap| start[axis] + (tap * dilation[axis]) as isize);
                taps.find(|at| (0..size_in[axis] as isize).contains(at))
            };
            Some(index([inside(0)?, inside(1)?, inside(2)?]))
        };
        let mut first: Vec<u32> = starts(self.geometry).map(index).collect();
        let mut inside: Vec<u32> = starts(self.geometry)
            .map(|start| first_inside(start).unwrap_or(u32::MAX))
            .collect();
        // Chunks read whole vectors.
        [&mut first, &mut inside]
            .into_iter()
            .for_each(|indices| indices.resize(indices.len() + LANES, 0));
        [first, inside]
    }
}

/// The positions of the first element of each window, which may be outside: along each axis from
/// the input's first element.
fn starts(geometry: Geometry) -> impl Iterator<Item = [isize; 3]> {
    let Geometry {
        size_out: [_, rows, columns],
        stride,
        pad,
        ..
    } = geometry;
    let start = move |out: [usize; 3]| {
        std::array::from_fn(|axis| (out[axis] * stride[axis]) as isize - pad[axis] as isize)
    };
    (0..geometry.pixels()).map(move |pixel| {
        start([
            pixel / columns / rows,
            pixel / columns % rows,
            pixel % columns,
        ])
    })
}

fn max_pool(call: &NativeCall<'_>, arguments: MaxPool<Slices<'_>>) {
    let MaxPool {
        x,
        y,
        channels,
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    } = arguments;
    let geometry = Geometry {
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    };
    PoolRows::new(geometry).run::<Maximum>(call, x, None, &mut y[..channels * geometry.pixels()]);
}

fn max_pool_indices(call: &NativeCall<'_>, arguments: MaxPoolIndices<Slices<'_>>) {
    let MaxPoolIndices {
        x,
        y,
        indices,
        channels,
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    } = arguments;
    let windows = Windows::new(Geometry {
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    });
    let pixels = windows.geometry.pixels();
    let [first, inside] = windows.indices();
    let results = (
        &mut y[..channels * pixels],
        &mut indices[..channels * pixels],
    );
    let (threads, each) = windows.tasks(call, channels);
    for_each_chunk_pair(results, [each * pixels; 2], threads, |task, y, indices| {
        let inputs = (task * each..channels)
            .take(each)
            .map(|channel| windows.channel(x, channel));
        for_each_padded(&windows.padded, f32::NEG_INFINITY, inputs, |at, source| {
            let (y, indices) = (
                &mut y[at * pixels..][..pixels],
                &mut indices[at * pixels..][..pixels],
            );
            with_simd(Maxima {
                windows: &windows,
                source,
                y,
                first: &first,
                inside: &inside,
                indices,
            });
        });
    });
}

fn average_pool(call: &NativeCall<'_>, arguments: AveragePool<Slices<'_>>) {
    let AveragePool {
        x,
        y,
        channels,
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
        count_before,
        count_after,
    } = arguments;
    let geometry = Geometry {
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    };
    let counted = |start: [isize; 3]| {
        let along = |axis: usize| {
            let positions =
                -(count_before[axis] as isize)..(size_in[axis] + count_after[axis]) as isize;
            (0..kernel[axis])
                .filter(|tap| positions.contains(&(start[axis] + (tap * dilation[axis]) as isize)))
                .count()
        };
        ((along(0) * along(1) * along(2)) as f32).max(1.0)
    };
    let counts: Vec<f32> = starts(geometry).map(counted).chain([1.0; LANES]).collect();
    PoolRows::new(geometry).run::<Sum>(
        call,
        x,
        Some(&counts),
        &mut y[..channels * geometry.pixels()],
    );
}

#[inline(always)]
fn load_words<S: Simd, const VECTORS: usize>(x: &[u32], at: usize) -> [S::u32s; VECTORS] {
    let x: &[u32; LANES] = x[at..]
        .first_chunk()
        .expect("invariant: there is slack after the last element");
    bytemuck::pod_read_unaligned(bytemuck::bytes_of(x))
}

/// The maxima of a channel's windows and their places.
struct Maxima<'a> {
    windows: &'a Windows,
    source: &'a [f32],
    y: &'a mut [f32],
    /// The index of each window's first element, and of the first inside.
    first: &'a [u32],
    inside: &'a [u32],
    indices: &'a mut [u32],
}

impl WithSimd for Maxima<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(S, self.make(simd))
    }
}

impl Maxima<'_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(self, simd: S) {
        for chunk in &self.windows.chunks {
            let mut best = [simd.splat_f32s(f32::NEG_INFINITY); VECTORS];
            let [first, mut place] = [self.first, self.inside].map(
                #[inline(always)]
                |indices| load_words::<S, VECTORS>(indices, chunk.at),
            );
            for (offset, index) in &self.windows.offsets {
                let (x, index) = (
                    load::<S, VECTORS>(self.source, chunk.place + offset),
                    simd.splat_u32s(*index),
                );
                for vector in 0..VECTORS {
                    let replaces = exceeds(simd, x[vector], best[vector]);
                    best[vector] = simd.select_f32s(replaces, x[vector], best[vector]);
                    place[vector] = simd.select_u32s(
                        replaces,
                        simd.add_u32s(first[vector], index),
                        place[vector],
                    );
                }
            }
            store_chunk::<f32>(bytemuck::cast_slice(&best), chunk.at, chunk.count, self.y);
            store_chunk::<u32>(
                bytemuck::cast_slice(&place),
                chunk.at,
                chunk.count,
                self.indices,
            );
        }
    }
}

impl PlanBuilder {
    /// Records the maximum over windows: `y[c, o] = max x[c, o·stride − pad_before + q·dilation]`;
    /// what is outside the input does not count. `indices` receives the position of the first
    /// maximum in its channel, counted row-major.
    ///
    /// # Shapes
    /// `x` [channels, D, H, W], `y` and `indices` (u32 or i32) [channels, oD, oH, oW] with the
    /// sizes of [`Window::size_out`].
    /// # Numerics
    /// Exact. A NaN is greater than all numbers; of several the last counts. A window without an
    /// element inside gives −∞ and the index 2³² − 1.
    /// # Errors
    /// `Invalid` if the lengths do not fit or a channel has 2³² elements; as [`Window::size_out`]
    /// and [`PlanBuilder::launch`].
    /// # Cost
    /// One launch.
    pub fn max_pool(
        &mut self,
        x: View,
        y: View,
        indices: Option<View>,
        pooling: &Pooling,
    ) -> Result<()> {
        let &Pooling {
            channels,
            size_in,
            window,
        } = pooling;
        let size_out = pool_sizes("max_pool", x, y, pooling)?;
        if let Some(indices) = indices.filter(|indices| {
            indices.len() != y.len() || !matches!(indices.dtype(), DType::U32 | DType::I32)
        }) {
            return Err(Error::invalid(format!(
                "max_pool: {} indices of {} for {} elements",
                indices.len(),
                indices.dtype().wgsl(),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        let Window {
            kernel,
            stride,
            dilation,
            pad_before: pad,
            ..
        } = window;
        let Some(indices) = indices else {
            return self.launch(
                &MAX_POOL,
                MaxPool {
                    x,
                    y,
                    channels,
                    size_in,
                    size_out,
                    kernel,
                    stride,
                    dilation,
                    pad,
                },
                groups_for(y.len()),
            );
        };
        let indices = indices.reinterpret(DType::U32);
        let arguments = MaxPoolIndices {
            x,
            y,
            indices,
            channels,
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
        };
        self.launch(&MAX_POOL_INDICES, arguments, groups_for(y.len()))
    }

    /// Records the mean over windows:
    /// `y[c, o] = Σ_q x[c, o·stride − pad_before + q·dilation] / count`, where elements outside the
    /// input are 0 and `divisor` says which of them count. The ceiling mode of other libraries is a
    /// window with more padding after the input than counts.
    ///
    /// # Shapes
    /// `x` [channels, D, H, W], `y` [channels, oD, oH, oW] with the sizes of [`Window::size_out`].
    /// # Numerics
    /// f32; 0 where nothing counts.
    /// # Errors
    /// `Invalid` if the lengths do not fit or more padding counts than the window has; as
    /// [`Window::size_out`] and [`PlanBuilder::launch`].
    /// # Cost
    /// One launch.
    pub fn average_pool(
        &mut self,
        x: View,
        y: View,
        pooling: &Pooling,
        divisor: PoolDivisor,
    ) -> Result<()> {
        let &Pooling {
            channels,
            size_in,
            window,
        } = pooling;
        let size_out = pool_sizes("average_pool", x, y, pooling)?;
        let (count_before, count_after) = match divisor {
            PoolDivisor::Inside => ([0; 3], [0; 3]),
            PoolDivisor::Padded { pad_after } => (window.pad_before, pad_after),
        };
        if (0..3).any(|axis| count_after[axis] > window.pad_after[axis]) {
            return Err(Error::invalid(format!(
                "average_pool: padding of {count_after:?} counts, the window has {:?}",
                window.pad_after
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        let Window {
            kernel,
            stride,
            dilation,
            pad_before: pad,
            ..
        } = window;
        let arguments = AveragePool {
            x,
            y,
            channels,
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
            count_before,
            count_after,
        };
        self.launch(&AVERAGE_POOL, arguments, groups_for(y.len()))
    }
}

fn pool_sizes(
    op: &str,
    x: View,
    y: View,
    &Pooling {
        channels,
        size_in,
        window,
    }: &Pooling,
) -> Result<[usize; 3]> {
    let size_out = window.size_out(size_in).map_err(|error| error.at(op))?;
    let volume = |size: [usize; 3]| [channels, size[0], size[1], size[2]];
    if x.fills(&volume(size_in)) && y.fills(&volume(size_out)) {
        return Ok(size_out);
    }
    Err(Error::invalid(format!(
        "{op}: {channels} channels of {size_in:?} to {size_out:?}: x has {} and y {} elements",
        x.len(),
        y.len()
    )))
}
