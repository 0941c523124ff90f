//! MPPI over a twin that learns online: what a tick passes to the learner and takes from it.

use tectum::Result;

use super::MppiParameters;
use super::rollout::{CHANNEL_NUMBERS, DEVIATION, MEAN};
use crate::body::ChannelKind;
use crate::twin::{Learner, LearningCounts, OnlineSettings, Twin, TwinLayout, TwinRecipe};
use tectum::snapshot::{Array, Snapshot};

/// Settings of a controller's online learning.
#[derive(Debug, Clone)]
pub struct OnlineLearning {
    /// When rounds run.
    pub settings: OnlineSettings,
    /// How each round fits; the shape of the network is the twin's.
    pub recipe: TwinRecipe,
}

/// A twin that learns online, with the observation and action of the last tick.
pub(super) struct Learning {
    learner: Learner,
    twin: Twin,
    /// As [`channel_table`] says.
    table: Vec<f32>,
    /// False before the first round of an untrained twin.
    has_learned: bool,
    before: Vec<f32>,
    /// The actions that led to `before`, and the answer to it; none while they are not what the
    /// body received.
    actions: Option<[f32; 2]>,
}

impl Learning {
    pub(super) fn new(
        twin: &Twin,
        online: &OnlineLearning,
        parameters: &MppiParameters,
        seed: u64,
    ) -> Result<Self> {
        let has_learned = online.settings.warm_up == 0;
        let learner = Learner::new(twin, has_learned, &online.recipe, online.settings, seed)?;
        let before = vec![0.0; twin.layout.channels.len()];
        Ok(Self {
            learner,
            twin: twin.clone(),
            table: channel_table(
                &twin.layout,
                [&twin.change_mean, &twin.change_deviation],
                parameters,
            ),
            has_learned,
            before,
            actions: None,
        })
    }

    /// Passes the transition of the last tick to the learner; returns better weights and their
    /// table, if there are any.
    pub(super) fn advance(&mut self, observation: &[f32]) -> Option<[&[f32]; 2]> {
        if let Some(actions) = self.actions {
            self.learner
                .push_transition(&self.before, actions, observation);
        }
        if !self.learner.take_update(&mut self.twin) {
            return None;
        }
        let changes = self
            .twin
            .change_mean
            .iter()
            .zip(&self.twin.change_deviation);
        for (numbers, (mean, deviation)) in
            self.table.chunks_exact_mut(CHANNEL_NUMBERS).zip(changes)
        {
            (numbers[MEAN], numbers[DEVIATION]) = (*mean, *deviation);
        }
        self.has_learned = true;
        Some([&self.twin.weights, &self.table])
    }

    /// Whether there is a trained twin to plan with.
    pub(super) fn has_learned(&self) -> bool {
        self.has_learned
    }

    pub(super) fn counts(&self) -> LearningCounts {
        self.learner.counts()
    }

    /// The body did not receive the last answer, or was reset.
    pub(super) fn interrupted(&mut self) {
        self.actions = None;
    }

    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        snapshot.insert_all("learner", self.learner.snapshot());
        snapshot.insert("before", Array::F32(self.before.clone()));
        snapshot.insert(
            "actions",
            Array::F32(self.actions.map_or(Vec::new(), |actions| actions.to_vec())),
        );
        snapshot.insert("has_learned", Array::U64(vec![u64::from(self.has_learned)]));
    }

    /// Restores what [`Learning::save`] saved, with the weights and the table at that time.
    pub(super) fn load(
        &mut self,
        snapshot: &Snapshot,
        weights: Vec<f32>,
        table: Vec<f32>,
    ) -> Result<()> {
        let before = snapshot.f32("before", self.before.len())?;
        let actions = match snapshot.len_of("actions") {
            Some(0) => None,
            _ => snapshot.f32("actions", 2)?.first_chunk().copied(),
        };
        let has_learned = snapshot.u64("has_learned", 1)?[0] != 0;
        let numbers = |number: usize| {
            table
                .iter()
                .skip(number)
                .step_by(CHANNEL_NUMBERS)
                .copied()
                .collect::<Vec<f32>>()
        };
        let twin = Twin {
            weights,
            change_mean: numbers(MEAN),
            change_deviation: numbers(DEVIATION),
            ..self.twin.clone()
        };
        self.learner
            .restore(&snapshot.part("learner"), has_learned.then(|| twin.clone()))?;
        self.before.copy_from_slice(before);
        (self.twin, self.table, self.has_learned, self.actions) =
            (twin, table, has_learned, actions);
        Ok(())
    }

    /// Stores a tick; `last` is the previous action, `action` the present one, both as the body
    /// applies them.
    pub(super) fn record_tick(&mut self, observation: &[f32], last: f32, action: f32) {
        self.before.copy_from_slice(observation);
        self.actions = Some([last, action]);
    }
}

/// The device's table of each channel; see `kernels/mppi_rollout.wgsl`.
pub(super) fn channel_table(
    layout: &TwinLayout,
    [mean, deviation]: [&[f32]; 2],
    parameters: &MppiParameters,
) -> Vec<f32> {
    let mut table = Vec::with_capacity(layout.channels.len() * CHANNEL_NUMBERS);
    for (index, (channel, cost)) in layout.channels.iter().zip(&parameters.channels).enumerate() {
        let rad_per_unit = match channel.kind {
            ChannelKind::Linear => 0.0,
            ChannelKind::Angle { rad_per_unit } => rad_per_unit,
        };
        let (half_turn, barrier_scale) = if rad_per_unit == 0.0 {
            (0.0, channel.scale)
        } else {
            ((std::f64::consts::PI / rad_per_unit) as f32, 1.0)
        };
        table.extend([
            rad_per_unit as f32,
            channel.scale,
            mean[index],
            deviation[index],
            cost.weight,
            cost.barrier_weight,
            cost.barrier_limit,
            barrier_scale,
            half_turn,
            f32::from(cost.squared_angle),
        ]);
    }
    table
}
