//! One hypothesis of the rig's parameters, tracked in parallel with the others.

use tectum::Result;

use super::regulation::linearise;
use crate::body::rig::dynamics::Motion;
use crate::body::rig::{M_PER_IN, Rig, RigParameters, regulator_weights};
use crate::body::swing_up::{SwingUp, SwingUpSettings};
use crate::body::{ControlModel, Start, wrapped_rad};

/// Filter gains: shares of a forecast error by which position, angle and speed (over a period) are
/// corrected.
const POSITION_GAIN: f64 = 0.5;
const ANGLE_GAIN: f64 = 0.5;
const SPEED_GAIN: f64 = 0.15;
/// An angle this far from the forecast is rejected.
const GATE_RAD: f64 = 0.1;
/// After this many consecutive rejections the next angle is accepted: then the forecast is wrong.
const MAX_OUTLIERS: u32 = 3;
/// Errors that count as 1 in the misfit, and the maximum that one reading counts: a jump must not
/// outweigh a second of readings.
const POSITION_UNIT_M: f64 = 0.01 * M_PER_IN;
const ANGLE_UNIT_RAD: f64 = 0.01;
const MAX_MISFIT: f64 = 25.0;
/// The share of the misfit that remains after a period: it forgets in four seconds.
const FORGETTING_FACTOR: f64 = 0.99;
/// Numbers of [`Hypothesis::state`].
pub(super) const STATE_LEN: usize = 7;

/// A rig with a given pole length and reading lag: its regulator, its swing-up laws, and a filter
/// that follows the readings.
pub(super) struct Hypothesis {
    pub rig: RigParameters,
    /// Age of a reading on arrival, in periods.
    pub delay_samples: usize,
    /// The regulator's gain, one for each number of the rig's state.
    pub gain: Vec<f64>,
    pub laws: Vec<SwingUp>,
    /// The motion at the time of the latest reading.
    pub motion: Motion,
    /// Misfit of its forecasts.
    pub misfit: f64,
    outliers: u32,
    last_angle_rad: f64,
}

impl Hypothesis {
    /// Hypotheses of all the lags from 0 to `max_delay_samples` for one length.
    ///
    /// # Errors
    /// A Riccati equation that does not converge.
    pub fn for_length(length_ratio: f64, max_delay_samples: usize) -> Result<Vec<Self>> {
        let mut rig = RigParameters::default();
        rig.dynamics.length_m *= length_ratio;
        let mut body = Rig::new(rig, Start::Hanging)?;
        let (equilibrium, weights) = (body.equilibrium(), regulator_weights());
        let linear = linearise(&mut body, &equilibrium)?;
        let gain = linear.regulation(&weights, &[])?.gain;
        let mut pumpings = Vec::new();
        for taper in [0.05, 0.3] {
            for excess in [0.0, 0.1, 0.25] {
                pumpings.extend([0.75, 0.5].map(|travel_fraction| SwingUpSettings {
                    taper,
                    excess,
                    travel_fraction,
                }));
            }
        }
        let laws: Vec<SwingUp> = pumpings
            .into_iter()
            .map(|pumping| rig.swing_up(pumping))
            .collect();
        let hypothesis = |delay_samples| Self {
            rig,
            delay_samples,
            gain: gain.clone(),
            laws: laws.clone(),
            motion: [0.0; 4],
            misfit: 0.0,
            outliers: 0,
            last_angle_rad: 0.0,
        };
        Ok((0..=max_delay_samples).map(hypothesis).collect())
    }

    /// The length of the pole relative to the identified rig's.
    pub fn length_ratio(&self) -> f64 {
        self.rig.dynamics.length_m / RigParameters::default().dynamics.length_m
    }

    /// Starts at rest at a reading.
    pub fn begin(&mut self, position_m: f64, angle_rad: f64) {
        self.motion = [position_m, 0.0, angle_rad, 0.0];
        (self.misfit, self.outliers, self.last_angle_rad) = (0.0, 0, angle_rad);
    }

    /// Advances by a period to the next reading, which may be missing; `commands` were given before
    /// it, the latest first.
    pub fn follow(&mut self, reading: Option<[f64; 2]>, commands: &[f64]) {
        self.motion = self.rig.step(
            self.motion,
            commands[self.delay_samples + 1],
            commands[self.delay_samples],
        );
        let Some([position_m, angle_rad]) = reading else {
            return;
        };
        let innovation_m = position_m - self.motion[0];
        let innovation_rad = wrapped_rad(angle_rad - self.motion[2]);
        let squared = |error: f64, unit: f64| (error / unit).powi(2).min(MAX_MISFIT);
        self.misfit = FORGETTING_FACTOR * self.misfit
            + squared(innovation_m, POSITION_UNIT_M)
            + squared(innovation_rad, ANGLE_UNIT_RAD);
        self.motion[0] += POSITION_GAIN * innovation_m;
        if innovation_rad.abs() <= GATE_RAD {
            self.outliers = 0;
            self.motion[2] += ANGLE_GAIN * innovation_rad;
            self.motion[3] += SPEED_GAIN * innovation_rad / self.rig.dt_s;
        } else if self.outliers < MAX_OUTLIERS {
            self.outliers += 1;
        } else {
            self.outliers = 0;
            self.motion[2] = angle_rad;
            self.motion[3] = wrapped_rad(angle_rad - self.last_angle_rad) / self.rig.dt_s;
        }
        self.last_angle_rad = angle_rad;
    }

    /// The motion now, after the commands since the latest reading was taken.
    pub fn now(&self, commands: &[f64]) -> Motion {
        (0..self.delay_samples)
            .rev()
            .fold(self.motion, |motion, age| {
                self.rig.step(motion, commands[age + 1], commands[age])
            })
    }

    /// The regulator's demand, without limits.
    pub fn state_feedback(&self, motion: Motion, last_command_v: f64) -> f64 {
        let [x, v, angle, speed] = motion;
        let state = [x, v, wrapped_rad(angle), speed, last_command_v];
        -state
            .iter()
            .zip(&self.gain)
            .map(|(number, gain)| number * gain)
            .sum::<f64>()
    }

    /// The hypothesis's state, for snapshots.
    pub fn state(&self) -> [f64; STATE_LEN] {
        let [x, v, angle, speed] = self.motion;
        [
            x,
            v,
            angle,
            speed,
            self.misfit,
            f64::from(self.outliers),
            self.last_angle_rad,
        ]
    }

    /// Restores what [`Hypothesis::state`] returned.
    pub fn set_state(&mut self, state: &[f64; STATE_LEN]) {
        let [x, v, angle, speed, misfit, outliers, last_angle_rad] = *state;
        self.motion = [x, v, angle, speed];
        (self.misfit, self.outliers, self.last_angle_rad) =
            (misfit, outliers as u32, last_angle_rad);
    }
}
