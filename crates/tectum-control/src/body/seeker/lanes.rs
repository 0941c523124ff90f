//! A step of many seekers in SIMD lanes on the CPU, in f32.

use std::f32::consts::FRAC_PI_4;

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{cos_near, sin_near};

use super::NUMBERS;
use crate::body::batch::StepBodies;
use crate::body::batch::lanes::{F32Lanes, LANES, flag, step_all, wrap_angle};

/// Where lights and obstacles begin in the state.
const LIGHTS: usize = 6;
const OBSTACLES: usize = 22;

#[inline(always)]
fn norm((dx, dy): (f32, f32)) -> f32 {
    (dx * dx + dy * dy).sqrt()
}

/// The distance along one axis to the wall in the direction of a step.
#[inline(always)]
fn to_wall(at: f32, step: f32) -> f32 {
    let wall = if step > 0.0 { 4.0 } else { 0.0 };
    if step.abs() > 1e-7 {
        (wall - at) / step
    } else {
        1e9
    }
}

/// The signal of an eye that looks in a direction: the cosine of the light's bearing relative to
/// it, computed without the bearing.
#[inline(always)]
fn seen_light(light: (f32, f32), direction: f32) -> f32 {
    let distance = norm(light).max(1e-9);
    let along = (light.0 * cos_near(direction) + light.1 * sin_near(direction)) / distance;
    along.max(0.0) / (1.0 + distance * distance)
}

/// 1 minus the distance to the first wall or obstacle divided by the whisker's length.
#[inline(always)]
fn whisker_reading(state: &[F32Lanes; NUMBERS], lane: usize, direction: f32) -> f32 {
    let (x, y) = (state[0][lane], state[1][lane]);
    let (across_x, across_y) = (cos_near(direction), sin_near(direction));
    let mut free = to_wall(x, across_x).min(to_wall(y, across_y)).min(1e9);
    for obstacle in 0..4 {
        let (dx, dy) = (
            state[OBSTACLES + 2 * obstacle][lane] - x,
            state[OBSTACLES + 1 + 2 * obstacle][lane] - y,
        );
        let (along, across) = (dx * across_x + dy * across_y, dy * across_x - dx * across_y);
        let until = along - (0.0625 - across * across).max(0.0).sqrt();
        free = if (along > 0.0) & (across.abs() < 0.25) {
            free.min(until)
        } else {
            free
        };
    }
    (1.0 - free / 0.6).max(0.0)
}

/// Vector from the disc to the light that is on. Each lane has a different light, so the lookup is
/// not vectorised.
#[inline(always)]
fn seeker_light(state: &[F32Lanes; NUMBERS], lane: usize) -> (f32, f32) {
    let found = state[3][lane];
    let on = found - 8.0 * (found * 0.125).floor();
    let (mut x, mut y) = (0.0, 0.0);
    for light in 0..8 {
        let is_on = on == light as f32;
        x = if is_on {
            state[LIGHTS + 2 * light][lane]
        } else {
            x
        };
        y = if is_on {
            state[LIGHTS + 1 + 2 * light][lane]
        } else {
            y
        };
    }
    (x - state[0][lane], y - state[1][lane])
}

/// One step of many seekers.
pub fn step(call: &NativeCall<'_>, arguments: StepBodies<Slices<'_>>) {
    step_all::<2, NUMBERS, 9>(
        call,
        arguments,
        1500,
        #[inline(always)]
        |actions, state, shown, _| {
            for lane in 0..LANES {
                let is_given = actions[0][lane].is_finite() & actions[1][lane].is_finite();
                let speed = if is_given {
                    actions[0][lane].clamp(0.0, 0.5)
                } else {
                    0.0
                };
                let turn = if is_given {
                    actions[1][lane].clamp(-2.0, 2.0)
                } else {
                    0.0
                };
                let before = norm(seeker_light(state, lane));
                let heading = wrap_angle(state[2][lane] + turn * 0.1);
                let (x, y) = (
                    state[0][lane] + speed * 0.1 * cos_near(heading),
                    state[1][lane] + speed * 0.1 * sin_near(heading),
                );
                let mut is_blocked = (x.min(y) < 0.1) | (x.max(y) > 3.9);
                for i in 0..4 {
                    is_blocked |= norm((
                        x - state[OBSTACLES + 2 * i][lane],
                        y - state[OBSTACLES + 1 + 2 * i][lane],
                    )) < 0.35;
                }
                state[0][lane] = if is_blocked { state[0][lane] } else { x };
                state[1][lane] = if is_blocked { state[1][lane] } else { y };
                let after = norm(seeker_light(state, lane));
                let reward = ((before - after) / 0.05 - 0.5 * flag(is_blocked)).clamp(-1.0, 1.0);
                state[2][lane] = heading;
                state[3][lane] += flag(after < 0.3);
                (state[4][lane], state[5][lane]) = (flag(is_blocked), reward);
                shown[5][lane] = flag(is_blocked);
                shown[6][lane] = reward;
                shown[7][lane] = reward;
            }
            for (eye, turn) in [FRAC_PI_4, -FRAC_PI_4].into_iter().enumerate() {
                for lane in 0..LANES {
                    shown[eye][lane] = seen_light(seeker_light(state, lane), state[2][lane] + turn);
                }
            }
            for (whisker, turn) in [FRAC_PI_4, 0.0, -FRAC_PI_4].into_iter().enumerate() {
                for lane in 0..LANES {
                    shown[2 + whisker][lane] = whisker_reading(state, lane, state[2][lane] + turn);
                }
            }
        },
    );
}
