//! Weighted sums over the neighbours in a 3-D field of channels: diffusion with decay, smoothing.
//!
//! The field is [X, Y, Z, C], channels last. A neighbour's weight depends on its class, and
//! optionally on the channel: seven points have the classes centre, along X, along Y, along Z; 27
//! points centre, face, edge, corner. Weights are in device memory, so that a model may change them
//! from tick to tick.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_block, simd};
use crate::kernel::{Kernel, KernelBuilder, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// Weighted sums over the neighbours of each cell; `boundary` is the code of a [`Boundary`],
    /// `per_channel` 1 if each channel has its weights.
    pub(crate) struct Stencil {
        read x: f32, read weights: f32, write y: f32;
        nx: usize, ny: usize, nz: usize, channels: usize, boundary: u32, per_channel: u32
    }
}

/// The values outside the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Zeros.
    Zero = 0,
    /// The nearest cell inside.
    Closed = 1,
    /// The opposite side.
    Periodic = 2,
}

impl Boundary {
    /// All of them, in the order of their codes.
    pub const ALL: [Boundary; 3] = [Boundary::Zero, Boundary::Closed, Boundary::Periodic];

    /// The cell that represents position `at`, at most one step beyond either end; none for a zero.
    #[inline(always)]
    pub fn place(self, at: isize, size: usize) -> Option<usize> {
        if (0..size as isize).contains(&at) {
            return Some(at as usize);
        }
        match self {
            Boundary::Zero => None,
            Boundary::Closed => Some(at.clamp(0, size as isize - 1) as usize),
            Boundary::Periodic => Some(at.rem_euclid(size as isize) as usize),
        }
    }
}

/// Which neighbours count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The cell and its six faces; classes centre, X, Y, Z.
    Seven,
    /// The whole cube of 27; classes centre, face, edge, corner.
    TwentySeven,
}

const SEVEN_SUMS: &str = "// The sums of the two neighbours along X, Y and Z.
fn neighbour_sums(px: i32, py: i32, pz: i32, channel: u32) -> vec3<f32> {
    return vec3<f32>(
        cell(px - 1, py, pz, channel) + cell(px + 1, py, pz, channel),
        cell(px, py - 1, pz, channel) + cell(px, py + 1, pz, channel),
        cell(px, py, pz - 1, channel) + cell(px, py, pz + 1, channel),
    );
}";

const TWENTY_SEVEN_SUMS: &str = "// The sums of the 6 faces, 12 edges and 8 corners.
fn neighbour_sums(px: i32, py: i32, pz: i32, channel: u32) -> vec3<f32> {
    var sums = vec3<f32>();
    for (var dx = -1; dx <= 1; dx += 1) {
        for (var dy = -1; dy <= 1; dy += 1) {
            for (var dz = -1; dz <= 1; dz += 1) {
                let distance = abs(dx) + abs(dy) + abs(dz);
                let value = cell(px + dx, py + dy, pz + dz, channel);
                sums += vec3<f32>(select(0.0, value, distance == 1), select(0.0, value, distance == 2), select(0.0, value, distance == 3));
            }
        }
    }
    return sums;
}";

fn define(name: &str, sums: &str) -> KernelBuilder<Stencil> {
    let points = name.trim_start_matches("stencil").trim_end_matches("_f32");
    Stencil::define(name).body(
        include_str!("stencil/stencil_f32.wgsl")
            .replace("SUMS", sums)
            .replace("NEIGHBOUR_COUNT", points),
    )
}

/// Seven points.
pub(crate) static STENCIL7: LazyLock<TypedKernel<Stencil>> = LazyLock::new(|| {
    built_in(define("stencil7_f32", SEVEN_SUMS), |call, arguments| {
        rows(call, arguments, Points::Seven)
    })
});
/// Twenty-seven points.
pub(crate) static STENCIL27: LazyLock<TypedKernel<Stencil>> = LazyLock::new(|| {
    built_in(
        define("stencil27_f32", TWENTY_SEVEN_SUMS),
        |call, arguments| rows(call, arguments, Points::TwentySeven),
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![STENCIL7.clone(), STENCIL27.clone()]
}

/// The nine columns of cells around a row along Z: X steps slowest, Y steps fastest, the row itself
/// in the middle.
type NeighbourColumns<'a> = [&'a [f32]; 9];

fn rows(call: &NativeCall<'_>, arguments: Stencil<Slices<'_>>, points: Points) {
    let Stencil {
        x,
        weights,
        y,
        nx,
        ny,
        nz,
        channels,
        boundary,
        per_channel,
    } = arguments;
    let boundary = Boundary::ALL[boundary as usize];
    let per_channel = per_channel != 0;
    let length = nz * channels;
    let zeros = vec![
        0.0;
        if boundary == Boundary::Zero {
            length
        } else {
            0
        }
    ];
    let cost = if points == Points::Seven { 2 } else { 6 };
    for_each_block(
        &mut y[..nx * ny * length],
        length,
        call.threads_for(cost * nx * ny * length),
        |row, y| {
            let (row_x, row_y) = ((row / ny) as isize, (row % ny) as isize);
            let mut columns: NeighbourColumns<'_> = [&zeros; 9];
            for (index, column) in columns.iter_mut().enumerate() {
                let (step_x, step_y) = (index as isize / 3 - 1, index as isize % 3 - 1);
                if let Some((at_x, at_y)) = boundary
                    .place(row_x + step_x, nx)
                    .zip(boundary.place(row_y + step_y, ny))
                {
                    *column = &x[(at_x * ny + at_y) * length..][..length];
                }
            }
            let line = StencilRow {
                columns,
                zeros: &zeros,
                boundary,
                nz,
                channels,
            };
            simd(
                #[inline(always)]
                || {
                    if per_channel {
                        let weights: [&[f32]; 4] =
                            std::array::from_fn(|class| &weights[class * channels..][..channels]);
                        for z in 0..nz {
                            line.piece(points, z, z + 1, &mut y[z * channels..][..channels], |i| {
                                weights.map(|w| w[i])
                            });
                        }
                    } else {
                        let weights = [weights[0], weights[1], weights[2], weights[3]];
                        line.piece(points, 0, 1, &mut y[..channels], |_| weights);
                        // Pieces small enough to stay in L1 between the passes of 27 points.
                        let step = if points == Points::Seven {
                            nz.max(1)
                        } else {
                            (1024 / channels).max(1)
                        };
                        let last = nz.max(1) - 1;
                        for z in (1..last).step_by(step) {
                            let end = (z + step).min(last);
                            line.piece(
                                points,
                                z,
                                end,
                                &mut y[z * channels..end * channels],
                                |_| weights,
                            );
                        }
                        if nz > 1 {
                            line.piece(points, last, nz, &mut y[last * channels..], |_| weights);
                        }
                    }
                },
            );
        },
    );
}

/// A row along Z with the columns around it.
struct StencilRow<'a> {
    columns: NeighbourColumns<'a>,
    zeros: &'a [f32],
    boundary: Boundary,
    nz: usize,
    channels: usize,
}

impl StencilRow<'_> {
    /// Column `index` of cells `z..end`, shifted by one step along Z. Only a single cell may reach
    /// beyond an end.
    #[inline(always)]
    fn at(&self, index: usize, z: usize, end: usize, step: isize) -> &[f32] {
        let length = (end - z) * self.channels;
        match self.boundary.place(z as isize + step, self.nz) {
            Some(z) => &self.columns[index][z * self.channels..][..length],
            None => &self.zeros[..length],
        }
    }

    #[inline(always)]
    fn piece(
        &self,
        points: Points,
        z: usize,
        end: usize,
        y: &mut [f32],
        weights: impl Fn(usize) -> [f32; 4],
    ) {
        match points {
            Points::Seven => self.seven(z, end, y, weights),
            Points::TwentySeven => self.twenty_seven(z, end, y, weights),
        }
    }

    #[inline(always)]
    fn seven(&self, z: usize, end: usize, y: &mut [f32], weights: impl Fn(usize) -> [f32; 4]) {
        let n = y.len();
        let (centre, below, above) = (
            self.at(4, z, end, 0),
            self.at(4, z, end, -1),
            self.at(4, z, end, 1),
        );
        let (west, east, south, north) = (
            self.at(1, z, end, 0),
            self.at(7, z, end, 0),
            self.at(3, z, end, 0),
            self.at(5, z, end, 0),
        );
        // Slices of one length, so that the loop holds no bounds checks.
        let (centre, below, above) = (&centre[..n], &below[..n], &above[..n]);
        let (west, east, south, north) = (&west[..n], &east[..n], &south[..n], &north[..n]);
        for i in 0..n {
            let w = weights(i);
            y[i] = w[0] * centre[i]
                + w[1] * (west[i] + east[i])
                + w[2] * (south[i] + north[i])
                + w[3] * (below[i] + above[i]);
        }
    }

    /// Faces, edges and corners in turn: 27 streams at once would not fit the registers.
    #[inline(always)]
    fn twenty_seven(
        &self,
        z: usize,
        end: usize,
        y: &mut [f32],
        weights: impl Fn(usize) -> [f32; 4],
    ) {
        let n = y.len();
        let at = |index: usize, step: isize| &self.at(index, z, end, step)[..n];
        let centre = at(4, 0);
        let faces = [at(1, 0), at(7, 0), at(3, 0), at(5, 0), at(4, -1), at(4, 1)];
        for i in 0..n {
            let w = weights(i);
            y[i] = w[0] * centre[i]
                + w[1]
                    * (((faces[0][i] + faces[1][i]) + (faces[2][i] + faces[3][i]))
                        + (faces[4][i] + faces[5][i]));
        }
        let edges = [
            at(0, 0),
            at(2, 0),
            at(6, 0),
            at(8, 0),
            at(1, -1),
            at(7, -1),
            at(3, -1),
            at(5, -1),
            at(1, 1),
            at(7, 1),
            at(3, 1),
            at(5, 1),
        ];
        for i in 0..n {
            let sum = |from: usize| {
                (edges[from][i] + edges[from + 1][i]) + (edges[from + 2][i] + edges[from + 3][i])
            };
            y[i] += weights(i)[2] * ((sum(0) + sum(4)) + sum(8));
        }
        let corners = [
            at(0, -1),
            at(2, -1),
            at(6, -1),
            at(8, -1),
            at(0, 1),
            at(2, 1),
            at(6, 1),
            at(8, 1),
        ];
        for i in 0..n {
            let sum = |from: usize| {
                (corners[from][i] + corners[from + 1][i])
                    + (corners[from + 2][i] + corners[from + 3][i])
            };
            y[i] += weights(i)[3] * (sum(0) + sum(4));
        }
    }
}

impl PlanBuilder {
    /// Records the weighted sum over each cell's neighbours:
    /// `y[p, c] = Σ w[class(q), c]·x[p + q, c]`.
    ///
    /// # Shapes
    /// `x` and `y` [X, Y, Z, C] as `sizes`, channels last; `weights` \[4\], or [4, C] for weights
    /// per channel. Classes are centre, X, Y, Z for seven points and centre, face, edge, corner for 27.
    /// Diffusion with decay by one explicit step is seven points with weights 1 − λ·dt − 2(a + b +
    /// c), a, b, c for diffusion numbers a, b, c = D·dt/h² along the axes, stable for a + b + c ≤
    /// ½.
    /// # Numerics
    /// f32, the sums of a class before its weight; same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch; reads and writes each element once where planes of X stay in cache.
    pub fn stencil(
        &mut self,
        points: Points,
        x: View,
        weights: View,
        y: View,
        sizes: [usize; 4],
        boundary: Boundary,
    ) -> Result<()> {
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
            Points::Seven => &STENCIL7,
            Points::TwentySeven => &STENCIL27,
        };
        let [nx, ny, nz, channels] = sizes;
        let arguments = Stencil {
            x,
            weights,
            y,
            nx,
            ny,
            nz,
            channels,
            boundary: boundary as u32,
            per_channel: u32::from(per_channel),
        };
        self.launch(kernel, arguments, groups_for(y.len()))
    }
}
