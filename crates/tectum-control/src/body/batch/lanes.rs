//! What the bodies' steps of many instances share on the CPU: sixteen instances in SIMD lanes, in
//! f32.

use std::f32::consts::TAU;

use rayon::prelude::*;
use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::simd;

use super::StepBodies;

/// Instances per SIMD block.
pub const LANES: usize = 16;
/// One number for each instance of a block.
pub type F32Lanes = [f32; LANES];
/// Minimum number of blocks per thread.
const BLOCKS_PER_THREAD: usize = 64;

/// Steps all instances, each in the time of so many operations.
pub fn step_all<const A: usize, const N: usize, const S: usize>(
    call: &NativeCall<'_>,
    StepBodies {
        actions,
        state,
        shown,
        count,
        ..
    }: StepBodies<Slices<'_>>,
    operations: usize,
    step: impl Fn(&[F32Lanes; A], &mut [F32Lanes; N], &mut [F32Lanes; S], usize) + Sync,
) {
    let actions = actions[..count * A].as_chunks::<A>().0;
    let states = state[..count * N].as_chunks_mut::<N>().0;
    let shown = shown[..count * S].as_chunks_mut::<S>().0;
    let block =
        |index: usize, states: &mut [[f32; N]], shown: &mut [[f32; S]], actions: &[[f32; A]]| {
            simd(
                #[inline(always)]
                || {
                    let mut out = [[0.0; LANES]; S];
                    // The length is known to the compiler, except for the last block.
                    if let (Some(states), Some(shown), Some(actions)) = (
                        states.first_chunk_mut(),
                        shown.first_chunk_mut(),
                        actions.first_chunk(),
                    ) {
                        let mut state = to_lanes::<N>(states);
                        step(&to_lanes(actions), &mut state, &mut out, index * LANES);
                        to_rows(&state, states);
                        to_rows(&out, shown);
                    } else {
                        let (mut rows, mut given, mut seen) =
                            ([[0.0; N]; LANES], [[0.0; A]; LANES], [[0.0; S]; LANES]);
                        rows[..states.len()].copy_from_slice(states);
                        given[..actions.len()].copy_from_slice(actions);
                        let mut state = to_lanes(&rows);
                        step(&to_lanes(&given), &mut state, &mut out, index * LANES);
                        to_rows(&state, &mut rows);
                        to_rows(&out, &mut seen);
                        states.copy_from_slice(&rows[..states.len()]);
                        shown.copy_from_slice(&seen[..shown.len()]);
                    }
                },
            );
        };
    if call.threads_for(operations * count / 16) <= 1 {
        let blocks = states
            .chunks_mut(LANES)
            .zip(shown.chunks_mut(LANES))
            .zip(actions.chunks(LANES))
            .enumerate();
        blocks.for_each(|(index, ((states, shown), actions))| block(index, states, shown, actions));
    } else {
        let blocks = states
            .par_chunks_mut(LANES)
            .zip(shown.par_chunks_mut(LANES))
            .zip(actions.par_chunks(LANES))
            .enumerate();
        blocks
            .with_min_len(BLOCKS_PER_THREAD)
            .for_each(|(index, ((states, shown), actions))| block(index, states, shown, actions));
    }
}

#[inline(always)]
fn to_lanes<const N: usize>(rows: &[[f32; N]; LANES]) -> [F32Lanes; N] {
    std::array::from_fn(|i| std::array::from_fn(|lane| rows[lane][i]))
}

#[inline(always)]
fn to_rows<const N: usize>(lanes: &[F32Lanes; N], rows: &mut [[f32; N]; LANES]) {
    *rows = std::array::from_fn(|lane| std::array::from_fn(|i| lanes[i][lane]));
}

/// The action that is applied, clamped to `-most` and `most`; 0 is safe.
#[inline(always)]
pub fn applied(value: f32, most: f32) -> f32 {
    if value.is_finite() {
        value.clamp(-most, most)
    } else {
        0.0
    }
}

/// An angle in [−π, π).
#[inline(always)]
pub fn wrap_angle(angle: f32) -> f32 {
    angle - TAU * (angle / TAU + 0.5).floor()
}

/// 1 if it is set, else 0.
#[inline(always)]
pub fn flag(is_set: bool) -> f32 {
    if is_set { 1.0 } else { 0.0 }
}

/// Resets the instances whose episode had ended to their starts, with no reward.
#[inline(always)]
pub fn reset_terminated(
    had_ended: &F32Lanes,
    starts: &[[f32; 5]],
    first: usize,
    state: &mut [F32Lanes; 5],
    shown: &mut [F32Lanes; 6],
) {
    if had_ended.iter().all(|ended| *ended == 0.0) {
        return;
    }
    for lane in (0..LANES).filter(|lane| had_ended[*lane] != 0.0) {
        for (number, start) in state.iter_mut().zip(starts[first + lane]) {
            number[lane] = start;
        }
        state[4][lane] = 0.0;
        shown[4][lane] = 0.0;
    }
}

/// One step of the classical Runge-Kutta method of order 4.
#[inline(always)]
pub fn runge_kutta(s: [f32; 4], h: f32, rates: impl Fn([f32; 4]) -> [f32; 4]) -> [f32; 4] {
    let along = |k: [f32; 4], h: f32| -> [f32; 4] { std::array::from_fn(|i| s[i] + h * k[i]) };
    let k1 = rates(s);
    let k2 = rates(along(k1, 0.5 * h));
    let k3 = rates(along(k2, 0.5 * h));
    let k4 = rates(along(k3, h));
    std::array::from_fn(|i| s[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}
