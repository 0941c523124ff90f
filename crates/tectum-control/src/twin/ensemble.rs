//! Networks trained on the same data from different starts and batches: their mean is the
//! prediction, their spread its uncertainty.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tectum::{ContentHash, DType, Device, Error, Executable, PlanBuilder, Result, Session, View};

use super::fit::{TrainingReport, fit};
use super::quantile::{GAUSSIAN_COVERAGE, quantile};
use super::sequence::{
    CHANNEL_NAMES, CHANNELS, COMMAND, DataSplit, SequenceLayout, changes, energy_balance, samples,
    statistics, test_start,
};
use super::{Network, TwinRecipe};
use crate::body::rig::RigParameters;
use crate::rig_csv::RigRecording;

/// The minimum number of samples to fit to and to hold out.
const MIN_TRAINING_SAMPLES: usize = 200;
const MIN_VALIDATION_SAMPLES: usize = 20;
/// The maximum number of networks.
pub const MAX_MEMBERS: usize = 32;

/// A twin of the recorded rig.
#[derive(Debug, Clone)]
pub struct Ensemble {
    /// What it reads.
    pub layout: SequenceLayout,
    /// The shape of its networks.
    pub network: Network,
    /// The weights of each, packed as [`Network::parameters`] says.
    pub members: Vec<Vec<f32>>,
    /// Mean change of each channel.
    pub mean: Vec<f32>,
    /// Deviation of each channel's change.
    pub deviation: Vec<f32>,
    /// The error of the networks' mean on the held-out samples, by channel: its 68.27 % quantile,
    /// for a Gaussian its deviation.
    pub noise: Vec<f32>,
    /// What it was trained on.
    pub plant: Plant,
    /// Its provenance.
    pub origin: TrainingProvenance,
    /// Hash of the file that it was read from.
    pub file_hash: Option<ContentHash>,
}

/// The plant that an ensemble was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plant {
    /// Name and unit of each predicted channel.
    pub channels: [(String, String); CHANNELS],
    /// Name and unit of the command.
    pub command: (String, String),
    /// The median time between two rows, seconds.
    pub period_s: f64,
}

/// Provenance of an ensemble.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingProvenance {
    /// Name of the recording's file.
    pub data: String,
    /// Rows of the recording.
    pub rows: usize,
    /// Sensor jumps in the recording.
    pub jumps: usize,
    /// The first row of its end, which was not used for any choice.
    #[serde(alias = "tested_from")]
    pub test_start: usize,
    /// Samples fitted to, and held out for early stopping.
    pub samples: [usize; 2],
    /// Seed of the first network; each further network uses the next seed.
    pub seed: u64,
    /// Weight of the energy balance.
    pub physics_weight: f32,
    /// The bound of Huber's loss, in deviations; none for the squared error.
    pub huber: Option<f32>,
}

/// Mean of the networks and their spread, in the channels' units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Mean change of each channel.
    pub mean: [f64; CHANNELS],
    /// Deviation between the networks.
    pub spread: [f64; CHANNELS],
}

impl Plant {
    /// The plant of a recording.
    pub fn of(recording: &RigRecording) -> Self {
        let mut elapsed = recording.elapsed_ms.clone();
        elapsed.sort_unstable_by(f64::total_cmp);
        let named = |(name, unit): (&str, &str)| (name.to_owned(), unit.to_owned());
        Self {
            channels: CHANNEL_NAMES.map(named),
            command: named(COMMAND),
            period_s: elapsed[elapsed.len() / 2] / 1000.0,
        }
    }
}

impl Ensemble {
    /// Trains several networks on a recording, all but its last 15 %: each on the same samples from
    /// its own start and batches, with early stopping on held-out blocks of time, on the session's
    /// device, which counts the runs. With a physics weight the energy balance of `rig` is part of
    /// the loss.
    ///
    /// `progress` receives the network, the steps done and the latest loss, and says whether
    /// training continues; if not, the ensemble has the networks so far, the last with the weights
    /// that it reached.
    ///
    /// # Errors
    /// `Invalid` for invalid settings; `Data` for a recording with too few usable rows; what the
    /// device reports.
    pub fn train(
        recording: &RigRecording,
        rig: Option<&RigParameters>,
        settings: &EnsembleSettings,
        session: &mut Session,
        mut progress: impl FnMut(usize, usize, f32) -> ControlFlow<()>,
    ) -> Result<(Self, Vec<TrainingReport>)> {
        let EnsembleSettings {
            layout,
            members,
            recipe,
            seed,
            data,
        } = settings;
        layout.check()?;
        if !(1..=MAX_MEMBERS).contains(members) {
            return Err(Error::invalid(format!(
                "twin: {members} networks; needs 1 to {MAX_MEMBERS}"
            )));
        }
        let tested = test_start(recording.len());
        let [fitted, held] = [DataSplit::Train, DataSplit::Validation]
            .map(|part| layout.rows_of(recording, part, tested, 1));
        if fitted.len() < MIN_TRAINING_SAMPLES || held.len() < MIN_VALIDATION_SAMPLES {
            let (fitted, held) = (fitted.len(), held.len());
            let needed = format!("needs {MIN_TRAINING_SAMPLES} and {MIN_VALIDATION_SAMPLES}");
            return Err(Error::data(format!(
                "the recording has {fitted} usable rows to fit to and {held} to stop by; {needed}"
            )));
        }
        let (mean, deviation) = statistics(&changes(recording, &fitted));
        let network = Network::new(layout.features(), &recipe.hidden, CHANNELS)?;
        let mut seen = samples(recording, *layout, &fitted, &mean, &deviation);
        seen.physics = rig.map(|rig| energy_balance(recording, rig, &fitted, &mean, &deviation));
        if recipe.physics_weight > 0.0 && seen.physics.is_none() {
            return Err(Error::invalid("twin: a weight of physics without a rig"));
        }
        let unseen = samples(recording, *layout, &held, &mean, &deviation);
        let mut found = Vec::with_capacity(*members);
        for member in 0..*members {
            let (seed, mut end) = (seed + member as u64, ControlFlow::Continue(()));
            let note = |done, loss| {
                end = progress(member, done, loss);
                end
            };
            found.push(fit(
                &network,
                recipe,
                &network.initial_weights(seed),
                [&seen, &unseen],
                session,
                seed,
                note,
            )?);
            if end.is_break() {
                break;
            }
        }
        let (weights, reports): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let origin = TrainingProvenance {
            data: data.clone(),
            rows: recording.len(),
            jumps: recording.jumps,
            test_start: tested,
            samples: [fitted.len(), held.len()],
            seed: *seed,
            physics_weight: recipe.physics_weight,
            huber: recipe.huber,
        };
        let mut ensemble = Self {
            layout: *layout,
            network,
            members: weights,
            mean,
            deviation,
            noise: vec![0.0; CHANNELS],
            plant: Plant::of(recording),
            origin,
            file_hash: None,
        };
        let mut predictor = ensemble.compile_for(session.device(), held.len())?;
        session.uses(&predictor.run);
        predictor
            .run
            .input::<f32>(predictor.x)
            .copy_from_slice(&unseen.features);
        session.run(&mut predictor.run)?;
        let told = predictor.predictions();
        let wanted = changes(recording, &held);
        for channel in 0..CHANNELS {
            let off = told
                .iter()
                .zip(wanted.chunks_exact(CHANNELS))
                .map(|(told, wanted)| (told.mean[channel] - wanted[channel]).abs());
            ensemble.noise[channel] = quantile(off.collect(), GAUSSIAN_COVERAGE[0]) as f32;
        }
        Ok((ensemble, reports))
    }

    /// Compiles the networks for a batch of rows.
    ///
    /// # Errors
    /// What the device reports.
    pub fn compile_for(&self, device: &Device, rows: usize) -> Result<Predictor<'_>> {
        let mut plan = PlanBuilder::new("twin.ensemble");
        let x = plan.input("features", DType::F32, rows * self.layout.features());
        let mut weights = Vec::new();
        let mut outputs = Vec::new();
        for member in 0..self.members.len() {
            let packed = plan.state(
                format!("weights {member}"),
                DType::F32,
                self.network.parameters().len(),
            );
            let y = plan.output(format!("change {member}"), DType::F32, rows * CHANNELS);
            self.network.record(&mut plan, rows, x, packed, y)?;
            weights.push(packed);
            outputs.push(y);
        }
        let mut run = plan.finish()?.compile(device)?;
        for (view, member) in weights.into_iter().zip(&self.members) {
            run.write_state(view, member)?;
        }
        Ok(Predictor {
            ensemble: self,
            run,
            x,
            outputs,
        })
    }
}

/// Training settings of an ensemble.
#[derive(Debug, Clone, PartialEq)]
pub struct EnsembleSettings {
    /// What it reads. Default: 4 lags.
    pub layout: SequenceLayout,
    /// Networks. Default: 5.
    pub members: usize,
    /// How each is built and trained.
    pub recipe: TwinRecipe,
    /// Seed of the first network; each further network uses the next seed. Default: 1.
    pub seed: u64,
    /// Name of the recording, for the record. Default: empty.
    pub data: String,
}

impl Default for EnsembleSettings {
    fn default() -> Self {
        let recipe = TwinRecipe {
            steps: 4000,
            learning_rate: 4e-3,
            weight_decay: 1e-3,
            huber: Some(0.1),
            patience: Some(1500),
            ..TwinRecipe::default()
        };
        Self {
            layout: SequenceLayout { lags: 4 },
            members: 5,
            recipe,
            seed: 1,
            data: String::new(),
        }
    }
}

/// The networks on a device.
pub struct Predictor<'a> {
    ensemble: &'a Ensemble,
    run: Executable,
    x: View,
    outputs: Vec<View>,
}

impl Predictor<'_> {
    /// Predicts the change of every row of a batch.
    ///
    /// # Shapes
    /// `features` \[rows, features\].
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Panics
    /// If the batch has a different size: a mistake in the calling code.
    pub fn predict(&mut self, features: &[f32]) -> Result<Vec<Prediction>> {
        self.run.input::<f32>(self.x).copy_from_slice(features);
        self.run.run()?;
        Ok(self.predictions())
    }

    /// The last run's prediction for each row.
    fn predictions(&self) -> Vec<Prediction> {
        let outputs: Vec<&[f32]> = self
            .outputs
            .iter()
            .map(|view| self.run.output::<f32>(*view))
            .collect();
        let count = outputs.len() as f64;
        let rows = outputs[0].len() / CHANNELS;
        let row = |row: usize| {
            let mut prediction = Prediction {
                mean: [0.0; CHANNELS],
                spread: [0.0; CHANNELS],
            };
            for channel in 0..CHANNELS {
                let each = || {
                    outputs
                        .iter()
                        .map(|output| f64::from(output[row * CHANNELS + channel]))
                };
                let mean = each().sum::<f64>() / count;
                let variance = each().map(|y| (y - mean).powi(2)).sum::<f64>() / count;
                let (scale, shift) = (
                    f64::from(self.ensemble.deviation[channel]),
                    f64::from(self.ensemble.mean[channel]),
                );
                (prediction.mean[channel], prediction.spread[channel]) =
                    (shift + scale * mean, scale * variance.sqrt());
            }
            prediction
        };
        (0..rows).map(row).collect()
    }
}
