//! MPPI before it has a device: its tick is recorded once, and compiled from the same plan on every device.

use std::path::Path;
use std::sync::Arc;

use tectum::{Device, Error, InputFile, Plan, Result};

use super::spec::{MppiModel, MppiSpec};
use super::{Model, Mppi, MppiConfig};
use crate::body::{Descriptor, Start, body};
use crate::brain::Brain;
use crate::brain::recipe::{BrainContext, BuildProgress, DeviceRecipe};
use crate::rig_csv::RigRecording;
use crate::twin::{RecordedTwin, Transitions, Twin, TwinLayout, TwinRecipe, step_plan, train};

/// The recorded tick, and how its twin is trained.
pub(super) struct MppiRecipe {
    /// With an untrained twin if one is trained.
    config: MppiConfig,
    seed: u64,
    /// None for a model that has nothing to learn before the first tick.
    training: Option<Training>,
}

/// The training of a twin before the first tick, and online.
struct Training {
    recipe: TwinRecipe,
    /// The twin stays untrained: it warms up online.
    is_online_only: bool,
    data: Option<String>,
    body: String,
    start: Option<Start>,
}

impl MppiRecipe {
    /// Checks settings against a body, and records the tick.
    ///
    /// # Errors
    /// As [`Mppi::new`] and [`RecordedTwin::load`].
    pub fn new(spec: &MppiSpec, context: &BrainContext<'_>) -> Result<Self> {
        let BrainContext { body, seed, start, clock } = *context;
        let parameters = spec.parameters(body)?;
        if spec.model == MppiModel::Plant {
            let layout = TwinLayout::of(body, parameters.previous_action)?;
            let config = MppiConfig::new(Model::Plant { body: body.name.to_owned(), layout }, parameters, None)?;
            return Ok(Self { config, seed, training: None });
        }
        if let Some(file) = &spec.twin.file {
            let twin = RecordedTwin::load(file, body)?;
            return Ok(Self { config: MppiConfig::new(Model::Recorded(Box::new(twin)), parameters, None)?, seed, training: None });
        }
        let layout = TwinLayout::of(body, parameters.previous_action)?;
        let (recipe, online) = (spec.twin.recipe(), spec.twin.online(clock));
        // Checked before anything is trained.
        online.iter().try_for_each(|online| online.settings.check())?;
        let is_online_only = online.as_ref().is_some_and(|online| online.settings.warm_up > 0);
        let config = MppiConfig::new(Model::Twin(Twin::untrained(&layout, &recipe.hidden)?), parameters, online)?;
        let training = Training { recipe, is_online_only, data: spec.twin.data.clone(), body: body.name.to_owned(), start };
        Ok(Self { config, seed, training: Some(training) })
    }
}

impl DeviceRecipe for MppiRecipe {
    fn tick_plan(&self) -> Option<&Plan> {
        Some(&self.config.tick.plan)
    }

    fn training_plan(&self) -> Result<Option<Plan>> {
        match (&self.training, &self.config.model) {
            (Some(training), Model::Twin(twin)) => step_plan(&twin.network, &training.recipe).map(Some),
            _ => Ok(None),
        }
    }

    fn build(&self, device: &Device, progress: &mut dyn FnMut(BuildProgress)) -> Result<Box<dyn Brain>> {
        let (mut config, mut inputs) = (self.config.clone(), None);
        if let (Some(training), Model::Twin(twin)) = (&self.training, &mut config.model) {
            inputs = training.data.as_deref().map(|path| InputFile::of(Path::new(path))).transpose()?;
            if !training.is_online_only {
                *twin = training.learn(&twin.layout, self.seed, progress)?;
            }
        }
        Ok(Box::new(Mppi::from_config(Arc::new(config), device, self.seed)?.with_input_files(inputs)))
    }
}

impl Training {
    /// Trains the twin, always on the CPU: a step of a 64-64 network takes a quarter of a millisecond there, less than the launch
    /// overhead of a GPU, and the weights are then the same for any device of the controller.
    fn learn(&self, layout: &TwinLayout, seed: u64, progress: &mut dyn FnMut(BuildProgress)) -> Result<Twin> {
        let recording = self.data.as_deref().map(|path| RigRecording::read(Path::new(path))).transpose()?;
        let transitions = match recording {
            Some(_) if !Descriptor::of(&self.body)?.learns_from_rig_recordings => {
                return Err(Error::invalid(format!("a recording of the rig cannot teach body {}", self.body)));
            }
            Some(recording) => Transitions::from_recording(&recording, layout)?,
            None => Transitions::simulate(body(&self.body, self.start)?.require_randomized()?, layout, self.recipe.transitions, seed),
        };
        let total = self.recipe.steps as u64;
        let cpu = Device::open("cpu")?;
        let (twin, _) = train(layout, &transitions, &self.recipe, &cpu, seed, |done, _| {
            progress(BuildProgress { stage: "training", done: done as u64, total });
        })?;
        Ok(twin)
    }
}
