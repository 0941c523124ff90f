//! A step of many rigs in SIMD lanes on the CPU, in f32.

use std::f32::consts::PI;

use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{cos_near, sin_near};
use tectum::{NativeCall, TypedKernel, kernel_arguments};

use super::{M_PER_IN, RigParameters};
use crate::body::batch::lanes::{
    F32Lanes, LANES, applied, flag, runge_kutta, step_all, wrap_angle,
};
use crate::body::batch::{StepBodies, with_body};
use crate::kernel::built_in;

kernel_arguments! {
    /// One step of many rigs: steps of a length under the last command, then under the new one.
    pub struct StepRigs {
        read actions: f32, read_write state: f32, write shown: f32;
        count: usize, length: f32, gravity: f32, damping: f32, lag: f32, travel: f32, gain: f32, dead_band: f32, limit: f32, max_volts: f32,
        inches_per_step: f32, h_before: f32, h_after: f32, steps_before: u32, steps_after: u32
    }
}

/// The kernel for the name of the body.
pub fn define(name: &str) -> TypedKernel<StepRigs> {
    built_in(
        with_body(
            StepRigs::define(format!("body_{name}")),
            &[include_str!("../../../kernels/body_rig.wgsl")],
        ),
        step,
    )
}

/// The arguments of a step of rigs with these constants.
pub fn arguments(
    rig: &RigParameters,
    StepBodies {
        actions,
        state,
        shown,
        count,
        ..
    }: StepBodies,
) -> StepRigs {
    let (before_s, after_s) = (rig.delay_s, rig.dt_s - rig.delay_s);
    let [before, after] = [before_s, after_s].map(RigParameters::substeps);
    let h = |time_s: f64, steps: u64| {
        if steps == 0 {
            0.0
        } else {
            (time_s / steps as f64) as f32
        }
    };
    StepRigs {
        actions,
        state,
        shown,
        count,
        length: rig.dynamics.length_m as f32,
        gravity: rig.dynamics.gravity as f32,
        damping: rig.dynamics.pole_damping_per_s as f32,
        lag: rig.servo_lag_s as f32,
        travel: rig.travel_m() as f32,
        gain: (rig.servo_gain_in_per_s_per_v * M_PER_IN) as f32,
        dead_band: rig.servo_dead_band_v as f32,
        limit: (rig.servo_limit_in_per_s * M_PER_IN) as f32,
        max_volts: rig.command_limit_v,
        inches_per_step: (1.0 / (M_PER_IN * rig.dt_s)) as f32,
        h_before: h(before_s, before),
        h_after: h(after_s, after),
        steps_before: before as u32,
        steps_after: after as u32,
    }
}

/// The numbers that a step needs.
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
        [
            v,
            push,
            speed,
            (self.gravity * sin_near(angle) - push * cos_near(angle)) / self.length
                - self.damping * speed,
        ]
    }

    /// Runge-Kutta steps under one command; the cart halts at its stops, and the pole continues.
    #[inline(always)]
    fn advance(&self, s: &mut [F32Lanes; 6], volts: &F32Lanes, steps: u32, h: f32) {
        for _ in 0..steps {
            for lane in 0..LANES {
                let beyond = (volts[lane].abs() - self.dead_band)
                    .max(0.0)
                    .copysign(volts[lane]);
                let wanted = (self.gain * beyond).clamp(-self.limit, self.limit);
                let [x, v, angle, speed] = runge_kutta(
                    [s[0][lane], s[1][lane], s[2][lane], s[3][lane]],
                    h,
                    #[inline(always)]
                    |s| self.rates(s, wanted),
                );
                let is_stopped = x.abs() > self.travel;
                s[0][lane] = if is_stopped {
                    self.travel.copysign(x)
                } else {
                    x
                };
                s[1][lane] = if is_stopped { 0.0 } else { v };
                s[2][lane] = angle;
                s[3][lane] = if is_stopped {
                    speed + v * cos_near(angle) / self.length
                } else {
                    speed
                };
            }
        }
    }
}

/// One step of many rigs.
fn step(call: &NativeCall<'_>, arguments: StepRigs<Slices<'_>>) {
    let StepRigs {
        actions,
        state,
        shown,
        count,
        length,
        gravity,
        damping,
        lag,
        travel,
        gain,
        dead_band,
        limit,
        ..
    } = arguments;
    let StepRigs {
        max_volts,
        inches_per_step,
        h_before,
        h_after,
        steps_before,
        steps_after,
        ..
    } = arguments;
    let constants = RigConstants {
        length,
        gravity,
        damping,
        lag,
        travel,
        gain,
        dead_band,
        limit,
    };
    step_all::<1, 6, 6>(
        call,
        StepBodies {
            actions,
            starts: None,
            noise: None,
            state,
            shown,
            count,
        },
        4000,
        #[inline(always)]
        |actions, state, shown, _| {
            let (from, last) = (state[0], state[4]);
            let volts = actions[0].map(|volts| applied(volts, max_volts));
            constants.advance(state, &last, steps_before, h_before);
            constants.advance(state, &volts, steps_after, h_after);
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
