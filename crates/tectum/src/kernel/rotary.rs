//! Positions as rotations of pairs of elements.

use std::sync::{Arc, LazyLock};

use super::elementwise::repair;
use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, Prelude, built_in, math};
use crate::dtype::DType;

/// Columns j and j + w/2 of each head, rotated by position · frequency j.
pub static ROTARY: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("rotary_f32")
        .prelude(Prelude::Math)
        .read("x", DType::F32)
        .read("positions", DType::U32)
        .read("frequencies", DType::F32)
        .write("y", DType::F32);
    let builder = ["rows", "cols", "half", "count"].into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    built_in(builder.body(include_str!("../../kernels/rotary_f32.wgsl")), rotary)
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ROTARY.clone()]
}

/// Maximum pairs of a head, whose sines and cosines a row computes once.
pub const MAX_HALF: usize = 256;

fn rotary(call: &NativeCall<'_>) {
    let (x, positions, y) = (call.read::<f32>(0), call.read::<u32>(1), call.write::<f32>(3));
    let [rows, cols, half, count] = [0, 1, 2, 3].map(|index| call.size(index));
    let frequencies = &call.read::<f32>(2)[..half];
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
