//! The optimizer's settings and its learning rate.

use std::f64::consts::PI;

use tectum::{Error, Result};

/// AdamW: learning rate, decay of the moments, and decoupled weight decay. ε is 1e-8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// The learning rate of each step. Default: `LearningRate::Constant(1e-3)`.
    pub learning_rate: LearningRate,
    /// Decay of the mean of gradients, in [0, 1). Default: 0.9.
    pub beta1: f32,
    /// Decay of the mean of squared gradients, in [0, 1). Default: 0.999.
    pub beta2: f32,
    /// Share of a parameter, times the learning rate, that each step subtracts. Default: 0.01.
    pub weight_decay: f32,
    /// The maximum norm of all gradients together; larger gradients are scaled down to it. Default:
    /// none.
    pub clip_norm: Option<f32>,
}

impl Default for AdamW {
    /// Learning rate 1e-3, decays 0.9 and 0.999, weight decay 0.01, no clipping.
    fn default() -> Self {
        Self {
            learning_rate: LearningRate::Constant(1e-3),
            beta1: 0.9,
            beta2: 0.999,
            weight_decay: 0.01,
            clip_norm: None,
        }
    }
}

/// The learning rate as a function of the step; it is an input of the plan, so no change of it
/// compiles anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LearningRate {
    /// The same at every step.
    Constant(f32),
    /// Rises linearly to `peak` over `warm_up` steps, then falls as half a cosine to `floor` at
    /// step `total`, and stays there.
    Cosine {
        /// The highest rate.
        peak: f32,
        /// Steps of the rise.
        warm_up: u64,
        /// Steps of rise and fall.
        total: u64,
        /// The last rate.
        floor: f32,
    },
    /// `initial`, multiplied by `factor` every `every` steps.
    StepDecay {
        /// The first rate.
        initial: f32,
        /// The factor.
        factor: f32,
        /// Steps between two multiplications.
        every: u64,
    },
}

impl From<f32> for LearningRate {
    fn from(rate: f32) -> Self {
        LearningRate::Constant(rate)
    }
}

impl LearningRate {
    /// The rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f32 {
        match *self {
            LearningRate::Constant(rate) => rate,
            LearningRate::Cosine { peak, warm_up, .. } if step < warm_up => {
                (f64::from(peak) * (step + 1) as f64 / warm_up as f64) as f32
            }
            LearningRate::Cosine {
                peak,
                warm_up,
                total,
                floor,
            } => {
                let progress = ((step - warm_up) as f64 / (total - warm_up) as f64).min(1.0);
                let (peak, floor) = (f64::from(peak), f64::from(floor));
                (floor + (peak - floor) * 0.5 * (1.0 + (PI * progress).cos())) as f32
            }
            LearningRate::StepDecay {
                initial,
                factor,
                every,
            } => (f64::from(initial) * f64::from(factor).powf((step / every) as f64)) as f32,
        }
    }

    fn is_possible(&self) -> bool {
        let is_rate = |rate: f32| rate.is_finite() && rate >= 0.0;
        match *self {
            LearningRate::Constant(rate) => is_rate(rate),
            LearningRate::Cosine {
                peak,
                warm_up,
                total,
                floor,
            } => is_rate(peak) && is_rate(floor) && warm_up < total,
            LearningRate::StepDecay {
                initial,
                factor,
                every,
            } => is_rate(initial) && is_rate(factor) && every > 0,
        }
    }
}

impl AdamW {
    /// Learning rate, the two corrections of the moments, and weight decay of a step, as
    /// [`PlanBuilder::adamw`](tectum::PlanBuilder::adamw) takes them.
    pub(super) fn schedule(&self, step: u64) -> [f32; 4] {
        let unbias = |beta: f32| (1.0 / (1.0 - f64::from(beta).powf((step + 1) as f64))) as f32;
        [
            self.learning_rate.at(step),
            unbias(self.beta1),
            unbias(self.beta2),
            self.weight_decay,
        ]
    }

    /// Refuses settings that cannot work.
    pub(super) fn check(&self) -> Result<()> {
        let is_possible = self.learning_rate.is_possible()
            && [self.beta1, self.beta2]
                .iter()
                .all(|beta| (0.0..1.0).contains(beta))
            && self.weight_decay.is_finite()
            && self.weight_decay >= 0.0
            && self
                .clip_norm
                .is_none_or(|limit| limit > 0.0 && limit.is_finite());
        let needed = "rates, factors and decay of 0 or more, warm_up < total, every > 0, betas in [0, 1), a positive norm";
        if is_possible {
            Ok(())
        } else {
            Err(Error::invalid(format!("{self:?}: {needed} are needed")))
        }
    }
}
