//! Positions as rotations of pairs of elements.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, Prelude, TypedKernel, groups_for, math};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::elementwise::repair;
use crate::plan::PlanBuilder;
use crate::view::{View, elements};

kernel_arguments! {
    /// Columns j and j + w/2 of each head, rotated by position · frequency j.
    pub(crate) struct Rotary { read x: f32, read positions: u32, read frequencies: f32, write y: f32; rows: usize, cols: usize, half: usize, count: usize }
}

pub(crate) static ROTARY: LazyLock<TypedKernel<Rotary>> = LazyLock::new(|| {
    built_in(
        Rotary::define("rotary_f32")
            .prelude(Prelude::Math)
            .body(include_str!("rotary_f32.wgsl")),
        rotary,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ROTARY.clone()]
}

/// Maximum pairs of a head, whose sines and cosines a row computes once.
pub const MAX_HALF: usize = 256;

fn rotary(
    call: &NativeCall<'_>,
    Rotary {
        x,
        positions,
        frequencies,
        y,
        rows,
        cols,
        half,
        count,
    }: Rotary<Slices<'_>>,
) {
    let frequencies = &frequencies[..half];
    for_each_chunk(
        &mut y[..rows * cols],
        cols,
        call.threads_for(8 * rows * cols),
        |row, y| {
            let position = positions[row % count] as f32;
            let (mut cosines, mut sines) = ([0.0f32; MAX_HALF], [0.0f32; MAX_HALF]);
            turn(
                position,
                frequencies,
                &mut cosines[..half],
                &mut sines[..half],
            );
            let heads = x[row * cols..][..cols]
                .chunks_exact(2 * half)
                .zip(y.chunks_exact_mut(2 * half));
            for (x, y) in heads {
                let ((first, second), (y_first, y_second)) =
                    (x.split_at(half), y.split_at_mut(half));
                for j in 0..half {
                    y_first[j] = first[j] * cosines[j] - second[j] * sines[j];
                    y_second[j] = second[j] * cosines[j] + first[j] * sines[j];
                }
            }
        },
    );
}

/// Cosines and sines of a position's angles.
fn turn(position: f32, frequencies: &[f32], cosines: &mut [f32], sines: &mut [f32]) {
    let mut angles = [0.0f32; MAX_HALF];
    let angles = &mut angles[..frequencies.len()];
    simd(
        #[inline(always)]
        || {
            for (place, frequency) in frequencies.iter().enumerate() {
                let angle = position * frequency;
                (angles[place], cosines[place], sines[place]) =
                    (angle, math::cos_near(angle), math::sin_near(angle));
            }
        },
    );
    repair(angles, cosines, math::is_near, math::cos);
    repair(angles, sines, math::is_near, math::sin);
}

impl PlanBuilder {
    /// Records rotary positions: in each head, columns j and j + width/2 are rotated by
    /// positions\[row\] · base^(−2j / width).
    ///
    /// # Shapes
    /// `x` and `y` [rows, heads · width], `positions` \[count\] u32, row `r` having position
    /// `r mod count`.
    /// # Numerics
    /// Frequencies are rounded to f32 once; the angle is one f32 product, its sine and cosine
    /// within 2 ulp up to 20,000.
    /// # Errors
    /// `Invalid` if the lengths do not fit or the width is odd, 0 or above 512; as
    /// [`PlanBuilder::launch`].
    pub fn rotary(
        &mut self,
        x: View,
        positions: View,
        y: View,
        width: usize,
        heads: usize,
        base: f32,
    ) -> Result<()> {
        let (cols, half) = (elements(&[heads, width]).unwrap_or(0), width / 2);
        let rows = x.len().checked_div(cols).unwrap_or(0);
        let fits = rows * cols == x.len()
            && x.len() == y.len()
            && !positions.is_empty()
            && rows.is_multiple_of(positions.len());
        if !fits || !width.is_multiple_of(2) || !(1..=MAX_HALF).contains(&half) {
            return Err(Error::invalid(format!(
                "rotary: x {}, y {}, positions {} for {heads} heads of {width}",
                x.len(),
                y.len(),
                positions.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        let frequency = |j: usize| f64::from(base).powf(-(j as f64) / half as f64) as f32;
        self.whole(|plan| {
            let frequencies = plan.constant(
                "frequencies",
                &(0..half).map(frequency).collect::<Vec<f32>>(),
            );
            let arguments = Rotary {
                x,
                positions,
                frequencies,
                y,
                rows,
                cols,
                half,
                count: positions.len(),
            };
            plan.launch(&ROTARY, arguments, groups_for(rows * cols / 2))
        })
    }
}
