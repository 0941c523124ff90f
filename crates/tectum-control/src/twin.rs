//! The twin: a network that has learned how a body's observation changes under an action.
//!
//! Two kinds: a [`Twin`] of a simulated body, trained at start-up for a controller to roll out; and
//! an [`Ensemble`] of the recorded rig, trained from its recording, saved in a file and inspected.
//! The rest of this page is about the first; `docs/twin.md` is about the second.
//!
//! Input: the linear channels divided by their scales, sine and cosine of the angles, the previous
//! action where the body has a delay, and the action. Output: the change of each channel, minus its
//! mean, divided by its deviation. The network is a dense tanh graph, trained with AdamW at
//! start-up on simulated or recorded transitions, and then trained further by a [`Learner`] if
//! requested.

mod ensemble;
mod file;
mod fit;
mod inspection;
mod network;
mod online;
mod quantile;
mod recorded;
mod sequence;
#[cfg(test)]
mod tests;
mod training;
mod transitions;

use tectum::{Error, Result};

use crate::body::uniform::Uniform;
use crate::body::{BodySpec, ChannelKind, ObservationChannel};
pub use ensemble::{Ensemble, EnsembleSettings, Plant, Prediction, Predictor, TrainingProvenance};
pub use fit::{TrainingReport, step_plan};
pub use inspection::{Coverage, ErrorStats, Horizon, Inspection, Method, inspect};
pub use network::Network;
pub use online::{Learner, LearningCounts, MIN_TRANSITIONS, OnlineSettings};
pub use quantile::GAUSSIAN_COVERAGE;
pub use recorded::{RecordedTwin, RowBuffer};
pub use sequence::{CHANNEL_NAMES, DataSplit, RowHistory, SequenceLayout, part_of, test_start};
pub(crate) use sequence::{CHANNEL_SCALES, MAX_LAGS};
pub use training::train;
pub use transitions::Transitions;

/// What the network reads and writes for a body.
#[derive(Debug, Clone, PartialEq)]
pub struct TwinLayout {
    /// The body's observation channels.
    pub channels: Vec<ObservationChannel>,
    /// Whether the action before the last is an input.
    pub previous_action: bool,
    /// Lowest action.
    pub low: f32,
    /// Highest action.
    pub high: f32,
    /// Whether only the lowest and the highest action exist.
    pub discrete: bool,
}

impl TwinLayout {
    /// The layout for a body.
    ///
    /// # Errors
    /// `Unsupported` for a body with more than one action channel.
    pub fn of(body: &BodySpec, previous_action: bool) -> Result<Self> {
        let [action] = body.action.as_slice() else {
            return Err(Error::unsupported(format!(
                "twin: body {} has {} action channels; one is supported",
                body.name,
                body.action.len()
            )));
        };
        Ok(Self {
            channels: body.observation.clone(),
            previous_action,
            low: action.low,
            high: action.high,
            discrete: action.discrete,
        })
    }

    /// Numbers that the network reads.
    pub fn features(&self) -> usize {
        let angles = self
            .channels
            .iter()
            .filter(|channel| channel.kind != ChannelKind::Linear)
            .count();
        self.channels.len() + angles + usize::from(self.previous_action) + 1
    }

    /// Appends the network's input for an observation and `[previous action, action]`.
    pub fn encode(&self, observation: &[f32], actions: [f32; 2], features: &mut Vec<f32>) {
        for (channel, &value) in self.channels.iter().zip(observation) {
            match channel.kind {
                ChannelKind::Linear => features.push(value / channel.scale),
                ChannelKind::Angle { rad_per_unit } => {
                    let (sine, cosine) = (f64::from(value) * rad_per_unit).sin_cos();
                    features.extend([sine as f32, cosine as f32]);
                }
            }
        }
        let half_range = 0.5 * (self.high - self.low);
        let [previous, action] = actions.map(|action| action / half_range);
        features.extend(self.previous_action.then_some(previous));
        features.push(action);
    }

    fn random_action(&self, random: &mut Uniform, amplitude: f64) -> f32 {
        if self.discrete {
            return if random.between(0.0, 1.0) < 0.5 {
                self.low
            } else {
                self.high
            };
        }
        (random.between(f64::from(self.low), f64::from(self.high)) * amplitude) as f32
    }
}

/// How a twin is built and trained.
#[derive(Debug, Clone, PartialEq)]
pub struct TwinRecipe {
    /// Widths of the hidden layers. Default: `[64, 64]`.
    pub hidden: Vec<usize>,
    /// Transitions simulated where no recording is given. Default: 30,000.
    pub transitions: usize,
    /// Steps of AdamW. Default: 3000.
    pub steps: usize,
    /// Transitions in a step. Default: 256.
    pub batch: usize,
    /// Maximum learning rate: reached after 50 steps, then decaying as a cosine to a hundredth.
    /// Default: 8e-3.
    pub learning_rate: f32,
    /// Decoupled weight decay. Default: 1e-4.
    pub weight_decay: f32,
    /// Threshold, in deviations, above which the loss grows linearly with the error; the squared
    /// error without it. Default: none.
    pub huber: Option<f32>,
    /// Weight of the energy balance in the loss; no effect at 0. Default: 0.0.
    pub physics_weight: f32,
    /// Steps without improvement on the held-out samples after which training stops and keeps the
    /// best weights; without it, training runs to the end. Default: none.
    pub patience: Option<usize>,
}

impl Default for TwinRecipe {
    fn default() -> Self {
        Self {
            hidden: vec![64, 64],
            transitions: 30_000,
            steps: 3000,
            batch: 256,
            learning_rate: 8e-3,
            weight_decay: 1e-4,
            huber: None,
            physics_weight: 0.0,
            patience: None,
        }
    }
}

/// A trained network with what is needed to use it.
#[derive(Debug, Clone)]
pub struct Twin {
    /// What it reads and writes.
    pub layout: TwinLayout,
    /// Its shape.
    pub network: Network,
    /// All weights, packed as [`Network::parameters`] says.
    pub weights: Vec<f32>,
    /// Mean change of each channel.
    pub change_mean: Vec<f32>,
    /// Deviation of each channel's change.
    pub change_deviation: Vec<f32>,
}

impl Twin {
    /// An untrained twin: it predicts no change.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn untrained(layout: &TwinLayout, hidden: &[usize]) -> Result<Self> {
        let channels = layout.channels.len();
        let network = Network::new(layout.features(), hidden, channels)?;
        let weights = vec![0.0; network.parameters().len()];
        Ok(Self {
            layout: layout.clone(),
            network,
            weights,
            change_mean: vec![0.0; channels],
            change_deviation: vec![1.0; channels],
        })
    }

    /// The weights with which its network predicts the same under another mean and deviation of the
    /// changes.
    fn rescaled_weights(&self, mean: &[f32], deviation: &[f32]) -> Vec<f32> {
        let mut weights = self.weights.clone();
        let Some([weight, bias]) = self.network.parameters().entries().last_chunk() else {
            return weights;
        };
        let channels = self.layout.channels.len();
        for row in weights[weight.range()].chunks_exact_mut(channels) {
            row.iter_mut()
                .enumerate()
                .for_each(|(c, w)| *w *= self.change_deviation[c] / deviation[c]);
        }
        for (c, bias) in weights[bias.range()].iter_mut().enumerate() {
            *bias =
                (*bias * self.change_deviation[c] + self.change_mean[c] - mean[c]) / deviation[c];
        }
        weights
    }
}
