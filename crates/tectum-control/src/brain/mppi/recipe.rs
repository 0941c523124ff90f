//! MPPI before it has a device: its tick is recorded once, and compiled from the same plan on every
//! device.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use tectum::{Device, Error, InputFile, Plan, Result, Watch, WorkProgress};

use super::{Model, Mppi, MppiConfig};
use crate::body::{BodySettings, Descriptor};
use crate::brain::Brain;
use crate::brain::recipe::DeviceRecipe;
use crate::rig_csv::RigRecording;
use crate::twin::{Transitions, Twin, TwinLayout, TwinRecipe, step_plan, train};

/// The recorded tick, and how its twin is trained.
pub(super) struct MppiRecipe {
    /// With an untrained twin if one is trained.
    pub config: MppiConfig,
    pub seed: u64,
    /// None for a model that does not learn.
    pub training: Option<Training>,
}

/// The training of a twin before the first tick.
pub(super) struct Training {
    pub recipe: TwinRecipe,
    /// The twin stays untrained: it warms up online.
    pub is_online_only: bool,
    /// The recording to train on; simulated transitions without it.
    pub data: Option<String>,
    pub body: BodySettings,
}

impl DeviceRecipe for MppiRecipe {
    fn tick_plan(&self) -> Option<&Plan> {
        Some(&self.config.tick.plan)
    }

    fn training_plan(&self) -> Result<Option<Plan>> {
        match (&self.training, &self.config.model) {
            (Some(training), Model::Twin(twin)) => {
                step_plan(&twin.network, &training.recipe).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn build(&self, device: &Device, watch: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        let (mut config, mut inputs) = (self.config.clone(), None);
        if let (Some(training), Model::Twin(twin)) = (&self.training, &mut config.model) {
            inputs = training
                .data
                .as_deref()
                .map(|path| InputFile::of(Path::new(path)))
                .transpose()?;
            if !training.is_online_only {
                *twin = training.learn(&twin.layout, self.seed, watch)?;
            }
        }
        Ok(Box::new(
            Mppi::from_config(Arc::new(config), device, self.seed)?.with_input_files(inputs),
        ))
    }
}

impl Training {
    /// Trains the twin, always on the CPU: a step of a 64-64 network takes a quarter of a
    /// millisecond there, less than the launch overhead of a GPU, and the weights are then the same
    /// for any device of the controller.
    fn learn(&self, layout: &TwinLayout, seed: u64, watch: &mut Watch<'_>) -> Result<Twin> {
        let recording = self
            .data
            .as_deref()
            .map(|path| RigRecording::read(Path::new(path)))
            .transpose()?;
        let transitions = match recording {
            Some(_) if !Descriptor::of(&self.body.name)?.learns_from_rig_recordings => {
                return Err(Error::invalid(format!(
                    "a recording of the rig cannot teach body {}",
                    self.body.name
                )));
            }
            Some(recording) => Transitions::from_recording(&recording, layout)?,
            None => Transitions::simulate(
                self.body.model()?.require_randomized()?,
                layout,
                self.recipe.transitions,
                seed,
            ),
        };
        let total = self.recipe.steps as u64;
        let cpu = Device::open("cpu")?;
        // A brain of a twin that is trained in part would be another one than the scenario says.
        let mut broken_off = Ok(());
        let (twin, report) = train(layout, &transitions, &self.recipe, &cpu, seed, |done, _| {
            broken_off = WorkProgress {
                stage: "training",
                done: done as u64,
                total,
            }
            .report(watch);
            if broken_off.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        broken_off?;
        let (steps, seconds, held_out_loss) = (report.steps, report.seconds, report.held_out_loss);
        tracing::info!(
            transitions = report.transitions,
            steps,
            seconds,
            held_out_loss,
            "twin trained"
        );
        Ok(twin)
    }
}
