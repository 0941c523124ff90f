//! A step of sixteen instances in SIMD lanes on the CPU, in f32.

use std::f32::consts::{FRAC_PI_4, PI, TAU};

use rayon::prelude::*;
use tectum::NativeCall;
use tectum::kernel::math::{cos_near, sin_near};
use tectum::kernel::native::simd;

/// Instances per SIMD block.
const LANES: usize = 16;
/// One number for each instance of a block.
type F32Lanes = [f32; LANES];
/// Minimum number of blocks per thread.
const BLOCKS_PER_THREAD: usize = 64;

/// Steps all instances, each in the time of so many operations; actions are the first view, states and observations the two views from `from`.
fn step_all<const A: usize, const N: usize, const S: usize>(
    call: &NativeCall<'_>,
    operations: usize,
    from: usize,
    step: impl Fn(&[F32Lanes; A], &mut [F32Lanes; N], &mut [F32Lanes; S], usize) + Sync,
) {
    let count = call.size(0);
    let actions = call.read::<f32>(0)[..count * A].as_chunks::<A>().0;
    let states = call.write::<f32>(from)[..count * N].as_chunks_mut::<N>().0;
    let shown = call.write::<f32>(from + 1)[..count * S].as_chunks_mut::<S>().0;
    let block = |index: usize, states: &mut [[f32; N]], shown: &mut [[f32; S]], actions: &[[f32; A]]| {
        simd(
            #[inline(always)]
            || {
                let mut out = [[0.0; LANES]; S];
                // The length is known to the compiler, except for the last block.
                if let (Some(states), Some(shown), Some(actions)) = (states.first_chunk_mut(), shown.first_chunk_mut(), actions.first_chunk()) {
                    let mut state = to_lanes::<N>(states);
                    step(&to_lanes(actions), &mut state, &mut out, index * LANES);
                    to_rows(&state, states);
                    to_rows(&out, shown);
                } else {
                    let (mut rows, mut given, mut seen) = ([[0.0; N]; LANES], [[0.0; A]; LANES], [[0.0; S]; LANES]);
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
        let blocks = states.chunks_mut(LANES).zip(shown.chunks_mut(LANES)).zip(actions.chunks(LANES)).enumerate();
        blocks.for_each(|(index, ((states, shown), actions))| block(index, states, shown, actions));
    } else {
        let blocks = states.par_chunks_mut(LANES).zip(shown.par_chunks_mut(LANES)).zip(actions.par_chunks(LANES)).enumerate();
        blocks.with_min_len(BLOCKS_PER_THREAD).for_each(|(index, ((states, shown), actions))| block(index, states, shown, actions));
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
fn applied(value: f32, most: f32) -> f32 {
    if value.is_finite() { value.clamp(-most, most) } else { 0.0 }
}

/// An angle in [−π, π).
#[inline(always)]
pub fn wrap_angle(angle: f32) -> f32 {
    angle - TAU * (angle / TAU + 0.5).floor()
}

#[inline(always)]
fn flag(is_set: bool) -> f32 {
    if is_set { 1.0 } else { 0.0 }
}

/// One step of Pendulum-v1's angle and speed.
#[inline(always)]
pub fn pendulum_step(angle: f32, speed: f32, torque: f32) -> [f32; 2] {
    let speed = (speed + (15.0 * sin_near(angle) + 3.0 * torque) * 0.05).clamp(-8.0, 8.0);
    [angle + speed * 0.05, speed]
}

/// The cost of a step of Pendulum-v1.
#[inline(always)]
pub fn pendulum_cost(angle: f32, speed: f32, torque: f32) -> f32 {
    let angle = wrap_angle(angle);
    angle * angle + 0.1 * speed * speed + 0.001 * torque * torque
}

pub fn pendulum(call: &NativeCall<'_>) {
    step_all::<1, 2, 4>(
        call,
        100,
        1,
        #[inline(always)]
        |actions, [angles, speeds], shown, _| {
            for lane in 0..LANES {
                let torque = applied(actions[0][lane], 2.0);
                let reward = -pendulum_cost(angles[lane], speeds[lane], torque);
                let [angle, speed] = pendulum_step(angles[lane], speeds[lane], torque);
                (angles[lane], speeds[lane]) = (wrap_angle(angle), speed);
                (shown[0][lane], shown[1][lane], shown[2][lane], shown[3][lane]) = (angles[lane], speed, reward, 0.0);
            }
        },
    );
}

pub fn cart_pole(call: &NativeCall<'_>) {
    let starts = call.read::<f32>(1).as_chunks::<5>().0;
    step_all::<1, 5, 6>(
        call,
        160,
        2,
        #[inline(always)]
        |actions, state, shown, first| {
            let had_ended = state[4];
            for lane in 0..LANES {
                let (x, v, angle, speed) = (state[0][lane], state[1][lane], state[2][lane], state[3][lane]);
                let force = if actions[0][lane] < 0.0 && actions[0][lane].is_finite() { -10.0 } else { 10.0 };
                let (sine, cosine) = (sin_near(angle), cos_near(angle));
                let push = (force + 0.05 * speed * speed * sine) / 1.1;
                let turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
                state[0][lane] = x + 0.02 * v;
                state[1][lane] = v + 0.02 * (push - 0.05 * turning * cosine / 1.1);
                state[2][lane] = angle + 0.02 * speed;
                state[3][lane] = speed + 0.02 * turning;
                state[4][lane] = flag((state[0][lane].abs() > 2.4) | (state[2][lane].abs() > 0.209_439_51));
                shown[4][lane] = 1.0;
            }
            reset_terminated(&had_ended, starts, first, state, shown);
            for lane in 0..LANES {
                shown[0][lane] = state[0][lane];
                shown[1][lane] = state[1][lane];
                shown[2][lane] = wrap_angle(state[2][lane]);
                shown[3][lane] = state[3][lane];
                shown[5][lane] = state[4][lane];
            }
        },
    );
}

/// Resets the instances whose episode had ended to their starts, with no reward.
#[inline(always)]
fn reset_terminated(had_ended: &F32Lanes, starts: &[[f32; 5]], first: usize, state: &mut [F32Lanes; 5], shown: &mut [F32Lanes; 6]) {
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

/// Rates of the acrobot's angles and speeds.
#[inline(always)]
fn acrobot_rates([first, second, first_speed, second_speed]: [f32; 4], torque: f32) -> [f32; 4] {
    let (sine, cosine) = (sin_near(second), cos_near(second));
    let (d1, d2) = (3.5 + cosine, 1.25 + 0.5 * cosine);
    let phi2 = 4.9 * sin_near(first + second);
    let phi1 = 14.7 * sin_near(first) + phi2 - (0.5 * second_speed + first_speed) * second_speed * sine;
    let rate = (torque + d2 / d1 * phi1 - 0.5 * first_speed * first_speed * sine - phi2) / (1.25 - d2 * d2 / d1);
    [first_speed, second_speed, -(d2 * rate + phi1) / d1, rate]
}

/// One step of the classical Runge-Kutta method of order 4.
#[inline(always)]
fn runge_kutta(s: [f32; 4], h: f32, rates: impl Fn([f32; 4]) -> [f32; 4]) -> [f32; 4] {
    let along = |k: [f32; 4], h: f32| -> [f32; 4] { std::array::from_fn(|i| s[i] + h * k[i]) };
    let k1 = rates(s);
    let k2 = rates(along(k1, 0.5 * h));
    let k3 = rates(along(k2, 0.5 * h));
    let k4 = rates(along(k3, h));
    std::array::from_fn(|i| s[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

pub fn acrobot(call: &NativeCall<'_>) {
    let starts = call.read::<f32>(1).as_chunks::<5>().0;
    step_all::<1, 5, 6>(
        call,
        1000,
        2,
        #[inline(always)]
        |actions, state, shown, first| {
            let had_ended = state[4];
            for lane in 0..LANES {
                let torque = applied(actions[0][lane], 1.0);
                let before = [state[0][lane], state[1][lane], state[2][lane], state[3][lane]];
                let [first, second, first_speed, second_speed] = runge_kutta(
                    before,
                    0.2,
                    #[inline(always)]
                    |s| acrobot_rates(s, torque),
                );
                state[0][lane] = wrap_angle(first);
                state[1][lane] = wrap_angle(second);
                state[2][lane] = first_speed.clamp(-4.0 * PI, 4.0 * PI);
                state[3][lane] = second_speed.clamp(-9.0 * PI, 9.0 * PI);
                state[4][lane] = flag(-cos_near(state[0][lane]) - cos_near(state[1][lane] + state[0][lane]) > 1.0);
                shown[4][lane] = state[4][lane] - 1.0;
            }
            reset_terminated(&had_ended, starts, first, state, shown);
            for lane in 0..LANES {
                shown[0][lane] = wrap_angle(state[0][lane] + PI);
                shown[1][lane] = wrap_angle(state[1][lane]);
                shown[2][lane] = state[2][lane];
                shown[3][lane] = state[3][lane];
                shown[5][lane] = state[4][lane];
            }
        },
    );
}

/// The rig's constants, in the order of its kernel.
struct RigConstants {
    length: f32,
    gravity: f32,
    damping: f32,
    lag: f32,
    travel: f32,
    gain: f32,
    dead_band: f32,
    limit: f32,
}

impl RigConstants {
    #[inline(always)]
    fn rates(&self, [x, v, angle, speed]: [f32; 4], wanted: f32) -> [f32; 4] {
        let demanded = (wanted - v) / self.lag;
        let is_held = v == 0.0 && x.abs() >= self.travel && demanded * x > 0.0;
        let push = if is_held { 0.0 } else { demanded };
        [v, push, speed, (self.gravity * sin_near(angle) - push * cos_near(angle)) / self.length - self.damping * speed]
    }

    /// Runge-Kutta steps under one command; the cart halts at its stops, and the pole continues.
    #[inline(always)]
    fn advance(&self, s: &mut [F32Lanes; 6], volts: &F32Lanes, steps: u32, h: f32) {
        for _ in 0..steps {
            for lane in 0..LANES {
                let beyond = (volts[lane].abs() - self.dead_band).max(0.0).copysign(volts[lane]);
                let wanted = (self.gain * beyond).clamp(-self.limit, self.limit);
                let [x, v, angle, speed] = runge_kutta(
                    [s[0][lane], s[1][lane], s[2][lane], s[3][lane]],
                    h,
                    #[inline(always)]
                    |s| self.rates(s, wanted),
                );
                let is_stopped = x.abs() > self.travel;
                s[0][lane] = if is_stopped { self.travel.copysign(x) } else { x };
                s[1][lane] = if is_stopped { 0.0 } else { v };
                s[2][lane] = angle;
                s[3][lane] = if is_stopped { speed + v * cos_near(angle) / self.length } else { speed };
            }
        }
    }
}

pub fn rig(call: &NativeCall<'_>) {
    let [length, gravity, damping, lag, travel, gain, dead_band, limit, most_volts, inches_per_step, h_before, h_after] =
        std::array::from_fn(|i| call.f32(1 + i));
    let constants = RigConstants { length, gravity, damping, lag, travel, gain, dead_band, limit };
    let (before, after) = (call.u32(13), call.u32(14));
    step_all::<1, 6, 6>(
        call,
        4000,
        1,
        #[inline(always)]
        |actions, state, shown, _| {
            let (from, last) = (state[0], state[4]);
            let volts = actions[0].map(|volts| applied(volts, most_volts));
            constants.advance(state, &last, before, h_before);
            constants.advance(state, &volts, after, h_after);
            for lane in 0..LANES {
                state[2][lane] = wrap_angle(state[2][lane]);
                state[4][lane] = volts[lane];
                state[5][lane] = (state[0][lane] - from[lane]) * inches_per_step;
                shown[0][lane] = state[0][lane] * 39.370_08;
                shown[1][lane] = state[5][lane];
                shown[2][lane] = state[3][lane].to_degrees();
                shown[3][lane] = state[2][lane].to_degrees();
                shown[4][lane] = flag(state[2][lane].abs() < PI / 18.0);
                shown[5][lane] = 0.0;
            }
        },
    );
}

/// Numbers of the seeker's state: six of its own, eight lights, four obstacles.
const SEEKER: usize = 30;
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
    if step.abs() > 1e-7 { (wall - at) / step } else { 1e9 }
}

/// The signal of an eye that looks in a direction: the cosine of the light's bearing relative to it, computed without the bearing.
#[inline(always)]
fn seen_light(light: (f32, f32), direction: f32) -> f32 {
    let distance = norm(light).max(1e-9);
    let along = (light.0 * cos_near(direction) + light.1 * sin_near(direction)) / distance;
    along.max(0.0) / (1.0 + distance * distance)
}

/// 1 minus the distance to the first wall or obstacle divided by the whisker's length.
#[inline(always)]
fn whisker_reading(state: &[F32Lanes; SEEKER], lane: usize, direction: f32) -> f32 {
    let (x, y) = (state[0][lane], state[1][lane]);
    let (across_x, across_y) = (cos_near(direction), sin_near(direction));
    let mut free = to_wall(x, across_x).min(to_wall(y, across_y)).min(1e9);
    for obstacle in 0..4 {
        let (dx, dy) = (state[OBSTACLES + 2 * obstacle][lane] - x, state[OBSTACLES + 1 + 2 * obstacle][lane] - y);
        let (along, across) = (dx * across_x + dy * across_y, dy * across_x - dx * across_y);
        let until = along - (0.0625 - across * across).max(0.0).sqrt();
        free = if (along > 0.0) & (across.abs() < 0.25) { free.min(until) } else { free };
    }
    (1.0 - free / 0.6).max(0.0)
}

/// Vector from the disc to the light that is on. Each lane has a different light, so the lookup is not vectorised.
#[inline(always)]
fn seeker_light(state: &[F32Lanes; SEEKER], lane: usize) -> (f32, f32) {
    let found = state[3][lane];
    let on = found - 8.0 * (found * 0.125).floor();
    let (mut x, mut y) = (0.0, 0.0);
    for light in 0..8 {
        let is_on = on == light as f32;
        x = if is_on { state[LIGHTS + 2 * light][lane] } else { x };
        y = if is_on { state[LIGHTS + 1 + 2 * light][lane] } else { y };
    }
    (x - state[0][lane], y - state[1][lane])
}

pub fn seeker(call: &NativeCall<'_>) {
    step_all::<2, SEEKER, 9>(
        call,
        1500,
        1,
        #[inline(always)]
        |actions, state, shown, _| {
            for lane in 0..LANES {
                let is_given = actions[0][lane].is_finite() & actions[1][lane].is_finite();
                let speed = if is_given { actions[0][lane].clamp(0.0, 0.5) } else { 0.0 };
                let turn = if is_given { actions[1][lane].clamp(-2.0, 2.0) } else { 0.0 };
                let before = norm(seeker_light(state, lane));
                let heading = wrap_angle(state[2][lane] + turn * 0.1);
                let (x, y) = (state[0][lane] + speed * 0.1 * cos_near(heading), state[1][lane] + speed * 0.1 * sin_near(heading));
                let mut is_blocked = (x.min(y) < 0.1) | (x.max(y) > 3.9);
                for i in 0..4 {
                    is_blocked |= norm((x - state[OBSTACLES + 2 * i][lane], y - state[OBSTACLES + 1 + 2 * i][lane])) < 0.35;
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
