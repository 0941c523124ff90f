//! Simulates a rig under a law in its model, before the law is applied.

use super::hypothesis::Hypothesis;
use crate::body::rig::dynamics::Motion;
use crate::body::swing_up::SwingUp;
use crate::body::wrapped_rad;

/// Maximum angle at which the regulator may catch the pole.
const CAPTURE_LIMIT_RAD: f64 = 1.0;
/// Periods within which a caught pole must settle: within the angle and speed of [`is_settled`],
/// for a while.
const CAPTURE_PERIODS: usize = 40;
const SETTLED_PERIODS: usize = 6;
/// The share of the travel that a catch may take.
const TRAVEL_FRACTION: f64 = 0.975;
/// Periods for which a swing-up law is simulated.
const SWING_UP_PERIODS: usize = 75;
/// Penalty in periods for a missing energy of m g l at the end.
const PERIODS_PER_ENERGY: f64 = 10.0;

/// Whether the regulator, starting now, would balance the pole.
pub(super) fn can_stabilize(
    model: &Hypothesis,
    mut motion: Motion,
    mut last_command_v: f64,
) -> bool {
    let limit_v = f64::from(model.rig.command_limit_v);
    let mut quiet = 0;
    for _ in 0..CAPTURE_PERIODS {
        if wrapped_rad(motion[2]).abs() > CAPTURE_LIMIT_RAD
            || motion[0].abs() > TRAVEL_FRACTION * model.rig.travel_m()
        {
            return false;
        }
        let command_v = model
            .state_feedback(motion, last_command_v)
            .clamp(-limit_v, limit_v);
        motion = model.rig.step(motion, last_command_v, command_v);
        last_command_v = command_v;
        quiet = if is_settled(motion) { quiet + 1 } else { 0 };
        if quiet == SETTLED_PERIODS {
            return true;
        }
    }
    false
}

fn is_settled(motion: Motion) -> bool {
    wrapped_rad(motion[2]).abs() < 0.1 && motion[3].abs() < 0.6
}

/// The command of the law after which the pole can be caught soonest; of several, the first.
pub(super) fn best_swing_up_command(
    model: &Hypothesis,
    motion: Motion,
    last_command_v: f64,
) -> f64 {
    let mut least = (f64::INFINITY, 0.0);
    for law in &model.laws {
        let periods = periods_until_capture(model, law, motion, last_command_v, least.0);
        if periods < least.0 {
            least = (periods, command(model, law, motion));
        }
    }
    least.1
}

/// Periods of a law until the regulator can catch the pole, simulated up to `most`; if it cannot in
/// that time, all of them plus a penalty for the energy that is missing then.
fn periods_until_capture(
    model: &Hypothesis,
    law: &SwingUp,
    mut motion: Motion,
    mut last_command_v: f64,
    most: f64,
) -> f64 {
    for period in 0..SWING_UP_PERIODS {
        if period as f64 >= most {
            return f64::INFINITY;
        }
        if period > 0 && can_stabilize(model, motion, last_command_v) {
            return period as f64;
        }
        let command_v = command(model, law, motion);
        motion = model.rig.step(motion, last_command_v, command_v);
        last_command_v = command_v;
    }
    SWING_UP_PERIODS as f64 + PERIODS_PER_ENERGY * law.energy(&motion).abs()
}

fn command(model: &Hypothesis, law: &SwingUp, motion: Motion) -> f64 {
    f64::from(model.rig.command_limit_v) * law.action_fraction(&motion)
}
