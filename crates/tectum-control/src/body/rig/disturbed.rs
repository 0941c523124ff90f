//! A rig that differs from the identified one, with inexact readings.

use tectum::{Error, Result};

use super::{Rig, RigParameters};
pub use crate::body::disturbances::{Disturbances, MAX_DELAY_SAMPLES};
use crate::body::schematic::Schematic;
use crate::body::uniform::Uniform;
use crate::body::{Body, BodySpec, ExactState, RandomizeState, Start, Step};

/// Deviation of the recording's angles: second differences of the rows in which the pole hardly
/// moves, divided by √6. A test measures it.
pub const RECORDED_ANGLE_DEG: f64 = 0.18;
/// Minimum difference between two recorded angles.
pub const RECORDED_ANGLE_STEP_DEG: f64 = 0.18;
/// Deviation of the recording's positions, computed in the same way.
pub const RECORDED_POSITION_IN: f64 = 5e-5;
/// Numbers of an observation.
const CHANNELS: usize = 4;
type Reading = [f32; CHANNELS];

/// A [`Rig`] whose readings are late, noisy and occasionally outliers.
///
/// An angle is the pole's angle plus noise, rounded to the sensor's step; speeds are, as in the
/// recording, the change of the noisy readings since the previous period. State: that of the rig,
/// then the delayed readings, oldest first, then the index of the next draw and the seed's halves.
pub struct DisturbedRig {
    rig: Rig,
    disturbances: Disturbances,
    /// Oldest first: from the reading that is observed now to the reading of the sensors now.
    readings: Vec<Reading>,
    seed: u64,
    draw: u64,
}

impl DisturbedRig {
    /// Makes a rig from the one that its controllers know, at its start for seed 0.
    ///
    /// # Errors
    /// Invalid parameters or disturbances.
    pub fn new(
        mut parameters: RigParameters,
        disturbances: Disturbances,
        start: Start,
    ) -> Result<Self> {
        disturbances.check()?;
        parameters.dynamics.length_m *= disturbances.pole_length;
        let rig = Rig::new(parameters, start)?;
        let mut disturbed = Self {
            rig,
            disturbances,
            readings: vec![[0.0; CHANNELS]; disturbances.delay_samples + 1],
            seed: 0,
            draw: 0,
        };
        disturbed.reset(0);
        Ok(disturbed)
    }

    /// What the sensors read now, with the period's own noise.
    fn read(&mut self) -> Reading {
        let mut exact = [0.0; CHANNELS];
        self.rig.observe(&mut exact);
        let mut uniform = Uniform::new(
            self.seed
                ^ self
                    .draw
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(17),
        );
        self.draw += 1;
        let mut normal = || {
            let (radius, turn) = (
                (-2.0 * (1.0 - uniform.between(0.0, 1.0)).ln()).sqrt(),
                uniform.between(0.0, std::f64::consts::TAU),
            );
            radius * turn.cos()
        };
        let [of_position, of_angle] = [normal(), normal()];
        let is_outlier = uniform.between(0.0, 1.0) < self.disturbances.outlier_fraction;
        let [position, _, _, angle] = exact.map(f64::from);
        let noise = self.disturbances.noise;
        if noise == 0.0 && !is_outlier {
            return exact;
        }
        let position = position + noise * RECORDED_POSITION_IN * of_position;
        let noisy = angle + noise * RECORDED_ANGLE_DEG * of_angle;
        let angle = match (is_outlier, noise > 0.0) {
            (true, _) => uniform.within(180.0),
            (false, true) => (noisy / RECORDED_ANGLE_STEP_DEG).round() * RECORDED_ANGLE_STEP_DEG,
            (false, false) => angle,
        };
        let before = self
            .readings
            .last()
            .map_or([0.0; CHANNELS], |last| last.map(f64::from));
        let dt_s = self.rig.parameters().dt_s;
        let turned = (angle - before[3] + 180.0).rem_euclid(360.0) - 180.0;
        [
            position,
            (position - before[0]) / dt_s,
            turned / dt_s,
            angle,
        ]
        .map(|number| number as f32)
    }
}

impl Body for DisturbedRig {
    capabilities!(ExactState, RandomizeState);

    fn spec(&self) -> &BodySpec {
        self.rig.spec()
    }

    /// Until the first delayed reading arrives, the first reading is observed.
    fn reset(&mut self, seed: u64) {
        self.rig.reset(seed);
        (self.seed, self.draw) = (seed, 0);
        let mut exact = [0.0; CHANNELS];
        self.rig.observe(&mut exact);
        self.readings.fill(exact);
        let first = self.read();
        self.readings.fill([first[0], exact[1], exact[2], first[3]]);
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&self.readings[0]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let step = self.rig.step(action);
        let reading = self.read();
        self.readings.rotate_left(1);
        if let Some(latest) = self.readings.last_mut() {
            *latest = reading;
        }
        step
    }

    /// The rig itself, not its readings.
    fn schematic(&self) -> Schematic {
        self.rig.schematic()
    }
}

impl ExactState for DisturbedRig {
    fn append_state(&self, state: &mut Vec<f64>) {
        self.rig.append_state(state);
        state.extend(
            self.readings
                .iter()
                .flatten()
                .map(|number| f64::from(*number)),
        );
        state.extend([
            self.draw as f64,
            f64::from(self.seed as u32),
            f64::from((self.seed >> 32) as u32),
        ]);
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let of_rig = self.rig.state().len();
        let needed = of_rig + CHANNELS * self.readings.len() + 3;
        if state.len() != needed {
            return Err(Error::invalid(format!(
                "rig: a state has {needed} numbers with these disturbances, given {}",
                state.len()
            )));
        }
        if let Some(place) = state.iter().position(|number| !number.is_finite()) {
            return Err(Error::invalid(format!(
                "rig: state number {place} is {}",
                state[place]
            )));
        }
        let (rig, rest) = state.split_at(of_rig);
        let (readings, draws) = rest.split_at(CHANNELS * self.readings.len());
        self.rig.set_state(rig)?;
        self.readings
            .iter_mut()
            .flatten()
            .zip(readings)
            .for_each(|(to, from)| *to = *from as f32);
        self.draw = draws[0] as u64;
        self.seed = u64::from(draws[1] as u32) | u64::from(draws[2] as u32) << 32;
        Ok(())
    }
}

impl RandomizeState for DisturbedRig {
    fn randomize_state(&mut self, seed: u64) {
        self.rig.randomize_state(seed);
        (self.seed, self.draw) = (seed, 0);
        let mut exact = [0.0; CHANNELS];
        self.rig.observe(&mut exact);
        self.readings.fill(exact);
    }
}
