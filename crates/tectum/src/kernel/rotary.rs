//! Positions as rotations of pairs of elements.

use std::sync::{Arc, LazyLock};

use super::arguments::Slices;
use super::elementwise::repair;
use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, Prelude, TypedKernel, built_in, math};
use crate::kernel_arguments;

kernel_arguments! {
    /// Columns j and j + w/2 of each head, rotated by position · frequency j.
    pub(crate) struct Rotary { read x: f32, read positions: u32, read frequencies: f32, write y: f32; rows: usize, cols: usize, half: usize, count: usize }
}

pub(crate) static ROTARY: LazyLock<TypedKernel<Rotary>> =
    LazyLock::new(|| built_in(Rotary::define("rotary_f32").prelude(Prelude::Math).body(include_str!("../../kernels/rotary_f32.wgsl")), rotary));

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ROTARY.clone()]
}

/// Maximum pairs of a head, whose sines and cosines a row computes once.
pub const MAX_HALF: usize = 256;

fn rotary(call: &NativeCall<'_>, Rotary { x, positions, frequencies, y, rows, cols, half, count }: Rotary<Slices<'_>>) {
    let frequencies = &frequencies[..half];
    for_each_chunk(&mut y[..rows * cols], cols, call.threads_for(8 * rows * cols), |row, y| {
        let position = positions[row % count] as f32;
        let (mut cosines, mut sines) = ([0.0f32; MAX_HALF], [0.0f32; MAX_HALF]);
        turn(position, frequencies, &mut cosines[..half], &mut sines[..half]);
        let heads = x[row * cols..][..cols].chunks_exact(2 * half).zip(y.chunks_exact_mut(2 * half));
        for (x, y) in heads {
            let ((first, second), (y_first, y_second)) = (x.split_at(half), y.split_at_mut(half));
            for j in 0..half {
                y_first[j] = first[j] * cosines[j] - second[j] * sines[j];
                y_second[j] = second[j] * cosines[j] + first[j] * sines[j];
            }
        }
    });
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
                (angles[place], cosines[place], sines[place]) = (angle, math::cos_near(angle), math::sin_near(angle));
            }
        },
    );
    repair(angles, cosines, math::is_near, math::cos);
    repair(angles, sines, math::is_near, math::sin);
}
