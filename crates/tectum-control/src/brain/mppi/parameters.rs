//! Sampling and cost of MPPI, with a default for each body.

use tectum::{Error, Result};

use crate::body::body;
use crate::brain::lqr::{Lqr, LqrWeights};
use crate::twin::TwinLayout;

/// The cost of one channel of the state in each step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChannelCost {
    /// Weight of (value / scale)², or of 1 − cos for an angle.
    pub weight: f32,
    /// The cost of an angle is the square of its radians instead of 1 − cos.
    pub squared_angle: bool,
    /// Weight of the square of the excess of the magnitude over the limit (divided by the channel's scale; an angle's own unit).
    pub barrier_weight: f32,
    /// The limit, in the channel's unit.
    pub barrier_limit: f32,
}

/// All tuning parameters of MPPI.
#[derive(Debug, Clone, PartialEq)]
pub struct MppiParameters {
    /// Sampled action sequences, a multiple of 64.
    pub samples: usize,
    /// Steps of a sample's rollout.
    pub horizon: usize,
    /// Steps for which a draw of noise is held.
    pub hold: usize,
    /// Sampling iterations per tick, each around the mean of the previous one.
    pub iterations: usize,
    /// Maximum deviation of the noise, in the action's unit.
    pub sigma: f32,
    /// Minimum deviation: samples are graded geometrically between the two; `None` gives all samples the maximum.
    pub sigma_min: Option<f32>,
    /// Softmax temperature as a share of the costs' spread (mean − minimum).
    pub temperature: f32,
    /// One for each channel.
    pub channels: Vec<ChannelCost>,
    /// Weight of (action / half range)².
    pub action_weight: f32,
    /// Weight of (change of action / half range)².
    pub rate_weight: f32,
    /// Weight of the square of the pole's energy error, ½·ratio·ω² + cos θ − 1.
    pub energy_weight: f32,
    /// The energy error is charged only at the end, not in every step: for a swing-up that takes longer than the horizon.
    pub energy_at_end: bool,
    /// Ratio of that energy, with ω in the velocity channel's unit.
    pub energy_ratio: f32,
    /// The channel of θ.
    pub angle_channel: Option<usize>,
    /// The channel of ω.
    pub velocity_channel: Option<usize>,
    /// Weight of the last step's state.
    pub terminal_multiplier: f32,
    /// Whether the twin reads the action before the last.
    pub previous_action: bool,
    /// Gains of a regulator to upright rest, for position and speed, to which each sample except the first switches at a random step; only with
    /// the plant's own equations, not with a twin.
    pub feedback: Option<[f32; 2]>,
}

impl MppiParameters {
    /// The defaults for a body, found by trial on a few seeds; `docs/decisions/0003-fused-rollout.md` reports what they achieve on
    /// the rig.
    ///
    /// # Errors
    /// `Unsupported` for a body without defaults.
    pub fn for_body(name: &str) -> Result<Self> {
        let cost = |weight, barrier_weight, barrier_limit| ChannelCost { weight, barrier_weight, barrier_limit, squared_angle: false };
        let shared = MppiParameters {
            samples: 256,
            horizon: 16,
            hold: 2,
            iterations: 1,
            sigma: 3.0,
            sigma_min: Some(0.15),
            temperature: 0.1,
            channels: Vec::new(),
            action_weight: 0.01,
            rate_weight: 0.02,
            energy_weight: 1.0,
            energy_at_end: false,
            energy_ratio: 0.0,
            angle_channel: None,
            velocity_channel: None,
            terminal_multiplier: 1.0,
            previous_action: false,
            feedback: None,
        };
        match name {
            "rig" => Ok(MppiParameters {
                samples: 128,
                channels: vec![cost(0.1, 50.0, 2.8), cost(0.0, 0.0, 0.0), cost(0.05, 0.0, 0.0), cost(1.0, 0.0, 0.0)],
                energy_ratio: (0.17 / 9.81) * 1f32.to_radians().powi(2),
                angle_channel: Some(3),
                velocity_channel: Some(2),
                terminal_multiplier: 5.0,
                previous_action: true,
                ..shared
            }),
            // Its own reward, with the speed and the torque divided by their ranges.
            "pendulum" => Ok(MppiParameters {
                samples: 1024,
                horizon: 45,
                hold: 5,
                sigma: 8.0,
                sigma_min: Some(0.1),
                temperature: 0.005,
                channels: vec![ChannelCost { squared_angle: true, ..cost(1.0, 0.0, 0.0) }, cost(6.4, 0.0, 0.0)],
                action_weight: 0.004,
                rate_weight: 0.0,
                energy_weight: 100.0,
                energy_at_end: true,
                energy_ratio: 1.0 / 15.0,
                angle_channel: Some(0),
                velocity_channel: Some(1),
                ..shared
            }),
            "cart_pole" => Ok(MppiParameters {
                horizon: 30,
                sigma: 10.0,
                sigma_min: None,
                temperature: 0.05,
                channels: vec![cost(1.0, 50.0, 1.8), cost(0.05, 0.0, 0.0), cost(10.0, 50.0, 0.15), cost(0.05, 0.0, 0.0)],
                action_weight: 0.0,
                rate_weight: 0.0,
                energy_weight: 0.0,
                terminal_multiplier: 5.0,
                ..shared
            }),
            _ => Err(Error::unsupported(format!("mppi has no defaults for body {name}; known: rig, pendulum, cart_pole"))),
        }
    }

    /// The defaults for rolling out a body's own equations under its own reward, found by trial against the optimum of a dynamic program.
    ///
    /// A plan whose samples are all drawn in advance can hardly stay upright, so long ones cost too much and short ones cannot detect a swing that
    /// just misses; samples that end under the regulator of the reward's own weights avoid both.
    ///
    /// # Errors
    /// `Unsupported` for a body without defaults.
    pub fn for_plant(name: &str) -> Result<Self> {
        let shared = Self::for_body(name)?;
        match name {
            "pendulum" => {
                let weights = LqrWeights { state: vec![1.0, 0.1], action: 0.001 };
                let regulator = Lqr::with_weights(body(name, None)?, &weights, None)?;
                let feedback = Some([0, 1].map(|i| regulator.gain()[i] as f32));
                Ok(Self { samples: 4096, horizon: 60, temperature: 5e-4, energy_weight: 0.0, feedback, ..shared })
            }
            _ => Ok(shared),
        }
    }

    /// Checks sizes and ranges against a twin.
    ///
    /// # Errors
    /// `Invalid` naming the parameter.
    pub fn check(&self, layout: &TwinLayout) -> Result<()> {
        let positive = |value: f32| value.is_finite() && value > 0.0;
        let weights = self.channels.iter().flat_map(|cost| [cost.weight, cost.barrier_weight, cost.barrier_limit]);
        let others = [self.action_weight, self.rate_weight, self.energy_weight, self.energy_ratio, self.terminal_multiplier];
        let gains = self.feedback.unwrap_or_default();
        let fault = if self.samples == 0 || !self.samples.is_multiple_of(tectum::ALIGNED_ELEMENTS) || self.samples > 1 << 20 {
            format!("samples is {}; a multiple of {} up to 1048576 is needed", self.samples, tectum::ALIGNED_ELEMENTS)
        } else if self.horizon == 0 || self.horizon > 1000 {
            format!("horizon is {}; 1 to 1000 is needed", self.horizon)
        } else if self.hold == 0 || self.hold > self.horizon {
            format!("hold is {}; 1 to the horizon ({}) is needed", self.hold, self.horizon)
        } else if self.iterations == 0 || self.iterations > 8 {
            format!("iterations is {}; 1 to 8 is needed", self.iterations)
        } else if !positive(self.sigma) || !self.sigma_min.is_none_or(positive) {
            format!("sigma is {} and sigma_min {:?}; numbers above 0 are needed", self.sigma, self.sigma_min)
        } else if !positive(self.temperature) {
            format!("temperature is {}; a number above 0 is needed", self.temperature)
        } else if self.channels.len() != layout.channels.len() {
            format!("costs are given for {} channels; the body has {}", self.channels.len(), layout.channels.len())
        } else if weights.chain(others).any(|weight| !weight.is_finite() || weight < 0.0) {
            "a cost weight is negative or not finite".to_owned()
        } else if gains.iter().any(|gain| !gain.is_finite()) {
            format!("feedback is {gains:?}; finite gains are needed")
        } else if self.previous_action != layout.previous_action {
            "the twin and the controller disagree on the previous action".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("mppi: {fault}")))
    }

    /// The deviation of each sample's noise in an iteration: half of that in the previous one.
    pub fn deviations(&self, iteration: usize) -> Vec<f32> {
        let narrowed = 0.5f32.powi(iteration as i32);
        let share = |k: usize| k as f32 / (self.samples - 1).max(1) as f32;
        let graded = |k: usize| self.sigma_min.map_or(self.sigma, |least| self.sigma * (least / self.sigma).powf(share(k)));
        (0..self.samples).map(|k| narrowed * graded(k)).collect()
    }

    /// The words of a plant's rollout kernel.
    pub(super) fn plant_words(&self, layout: &TwinLayout) -> Vec<u32> {
        let [position, speed] = self.feedback.unwrap_or_default();
        let floats = [self.terminal_multiplier, self.energy_weight, position, speed, layout.low, layout.high];
        [self.samples, self.horizon].map(|word| word as u32).into_iter().chain(floats.map(f32::to_bits)).collect()
    }

    /// The words of the rollout kernel before those of the layers.
    pub(super) fn rollout_words(&self, layout: &TwinLayout) -> Vec<u32> {
        let half_range = 0.5 * (layout.high - layout.low);
        let per_unit = 1.0 / (half_range * half_range);
        let named = [self.angle_channel, self.velocity_channel].map(|index| index.map_or(u32::MAX, |index| index as u32));
        let energy_from = if self.energy_at_end { self.horizon as u32 - 1 } else { 0 };
        let sizes = [self.samples, self.horizon, layout.channels.len()].map(|word| word as u32);
        let flags = [u32::from(layout.previous_action), u32::from(layout.discrete)];
        let costs = [self.terminal_multiplier, self.energy_weight, self.energy_ratio, self.action_weight * per_unit, self.rate_weight * per_unit];
        let floats = [&[layout.low, layout.high][..], &costs].concat();
        sizes.into_iter().chain(flags).chain(named).chain([energy_from]).chain(floats.into_iter().map(f32::to_bits)).collect()
    }
}
