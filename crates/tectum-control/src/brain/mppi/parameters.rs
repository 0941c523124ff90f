//! Parameters of MPPI: their defaults by body, their check, and the arguments of kernels.

use tectum::{Error, Result, View};
use tectum_equations::System;

use super::rollout::{Rollout, RolloutShape, RolloutViews};
use crate::body::control::{MppiParameters, PlantRollout};
use crate::body::equations::ENDING;
use crate::body::{Descriptor, body};
use crate::brain::lqr::Lqr;
use crate::twin::TwinLayout;

impl MppiParameters {
    /// The defaults for a body, found by trial on a few seeds;
    /// `docs/decisions/0003-fused-rollout.md` reports what they achieve on the rig.
    ///
    /// # Errors
    /// `Unsupported` for a body without defaults.
    pub fn for_body(name: &str) -> Result<Self> {
        let parameters = Descriptor::of(name).ok().and_then(|body| body.mppi);
        let missing = || {
            let over_equations = if name.ends_with(ENDING) {
                ", and of an equation file there is no twin: model \"plant\" plans over its equations"
            } else {
                ""
            };
            let missing =
                Descriptor::missing("mppi has no defaults for", name, |body| body.mppi.is_some());
            Error::unsupported(format!("{missing}{over_equations}"))
        };
        parameters
            .map(|parameters| parameters())
            .ok_or_else(missing)
    }

    /// The defaults for rolling out a body's own equations under its own reward.
    ///
    /// A plan whose samples are all drawn in advance can hardly stay upright, so long ones cost too
    /// much and short ones cannot detect a swing that just misses; samples that end under the
    /// regulator of the reward's own weights avoid both.
    ///
    /// # Errors
    /// `Unsupported` for a body without defaults.
    pub fn for_plant(name: &str) -> Result<Self> {
        let over_twin = Self::for_body(name)?;
        let Some(plant) = &Descriptor::of(name)?.plant else {
            return Ok(over_twin);
        };
        let regulator = Lqr::with_weights(body(name, None)?, &(plant.reward_weights)(), None)?;
        let feedback = Some([0, 1].map(|i| regulator.gain()[i] as f32));
        Ok(Self {
            feedback,
            ..(plant.parameters)(over_twin)
        })
    }

    /// The defaults for rolling out an equation file, whose weights are the cost, or else its
    /// reward.
    ///
    /// A rollout of a second, but of 10 to 50 steps, and noise of half the range of the first
    /// action.
    pub fn for_equations(system: &System) -> Self {
        let first = &system.inputs()[0];
        let half_range = 0.5 * (first.range[1] - first.range[0]) as f32;
        let sigma = if first.is_discrete {
            half_range
        } else {
            0.5 * half_range
        };
        Self {
            samples: 1024,
            horizon: ((1.0 / system.period_s()) as usize).clamp(10, 50),
            sigma,
            sigma_min: Some(sigma / 20.0),
            temperature: 0.003,
            terminal_multiplier: 10.0,
            ..Self::default()
        }
    }

    /// Checks sizes and ranges, against a twin if it is one that is rolled out.
    ///
    /// # Errors
    /// `Invalid` naming the parameter.
    pub fn check(&self, twin: Option<&TwinLayout>) -> Result<()> {
        let positive = |value: f32| value.is_finite() && value > 0.0;
        let weights = self
            .channels
            .iter()
            .flat_map(|cost| [cost.weight, cost.barrier_weight, cost.barrier_limit]);
        let others = [
            self.action_weight,
            self.rate_weight,
            self.energy_weight,
            self.energy_ratio,
            self.terminal_multiplier,
        ];
        let gains = self.feedback.unwrap_or_default();
        let fault = if self.samples == 0
            || !self.samples.is_multiple_of(tectum::ALIGNED_ELEMENTS)
            || self.samples > 1 << 20
        {
            format!(
                "samples is {}; a multiple of {} up to 1048576 is needed",
                self.samples,
                tectum::ALIGNED_ELEMENTS
            )
        } else if self.horizon == 0 || self.horizon > 1000 {
            format!("horizon is {}; 1 to 1000 is needed", self.horizon)
        } else if self.hold == 0 || self.hold > self.horizon {
            format!(
                "hold is {}; 1 to the horizon ({}) is needed",
                self.hold, self.horizon
            )
        } else if self.iterations == 0 || self.iterations > 8 {
            format!("iterations is {}; 1 to 8 is needed", self.iterations)
        } else if !positive(self.sigma) || !self.sigma_min.is_none_or(positive) {
            format!(
                "sigma is {} and sigma_min {:?}; numbers above 0 are needed",
                self.sigma, self.sigma_min
            )
        } else if !positive(self.temperature) {
            format!(
                "temperature is {}; a number above 0 is needed",
                self.temperature
            )
        } else if let Some(layout) =
            twin.filter(|layout| self.channels.len() != layout.channels.len())
        {
            format!(
                "costs are given for {} channels; the body has {}",
                self.channels.len(),
                layout.channels.len()
            )
        } else if weights
            .chain(others)
            .any(|weight| !weight.is_finite() || weight < 0.0)
        {
            "a cost weight is negative or not finite".to_owned()
        } else if gains.iter().any(|gain| !gain.is_finite()) {
            format!("feedback is {gains:?}; finite gains are needed")
        } else if twin.is_some_and(|layout| self.previous_action != layout.previous_action) {
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
        let graded = |k: usize| {
            self.sigma_min.map_or(self.sigma, |least| {
                self.sigma * (least / self.sigma).powf(share(k))
            })
        };
        (0..self.samples).map(|k| narrowed * graded(k)).collect()
    }

    /// The arguments of a plant's rollout kernel over an observation; `u` is regulated from the
    /// shares in `handover` on.
    pub(super) fn plant_rollout(
        &self,
        layout: &TwinLayout,
        observation: View,
        handover: View,
        [u, costs]: [View; 2],
    ) -> PlantRollout {
        let [gain_position, gain_speed] = self.feedback.unwrap_or_default();
        PlantRollout {
            observation,
            handover,
            u,
            costs,
            samples: self.samples,
            horizon: self.horizon,
            terminal_multiplier: self.terminal_multiplier,
            energy_weight: self.energy_weight,
            gain_position,
            gain_speed,
            low: layout.low,
            high: layout.high,
        }
    }

    /// The arguments of the rollout kernel of a network.
    pub(super) fn rollout(
        &self,
        layout: &TwinLayout,
        shape: RolloutShape,
        views: RolloutViews,
    ) -> Rollout {
        let RolloutViews {
            observation,
            u,
            table,
            weights,
            costs,
            scratch,
        } = views;
        let RolloutShape {
            lags,
            members,
            member_weights,
            layer_count,
            layers,
        } = shape;
        let half_range = 0.5 * (layout.high - layout.low);
        let per_unit = 1.0 / (half_range * half_range);
        let [angle_channel, velocity_channel] = [self.angle_channel, self.velocity_channel]
            .map(|index| index.map_or(u32::MAX, |index| index as u32));
        Rollout {
            observation,
            u,
            table,
            weights,
            costs,
            scratch,
            samples: self.samples,
            horizon: self.horizon,
            channels: layout.channels.len(),
            previous: u32::from(layout.previous_action),
            discrete: u32::from(layout.discrete),
            angle_channel,
            velocity_channel,
            energy_from: if self.energy_at_end {
                self.horizon - 1
            } else {
                0
            },
            low: layout.low,
            high: layout.high,
            terminal_multiplier: self.terminal_multiplier,
            energy_weight: self.energy_weight,
            energy_ratio: self.energy_ratio,
            action_weight: self.action_weight * per_unit,
            rate_weight: self.rate_weight * per_unit,
            lags,
            members,
            member_weights,
            layer_count,
            layers,
        }
    }
}
