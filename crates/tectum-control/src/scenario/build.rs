//! Builds the body and the brain of a scenario.

use std::path::Path;
use std::time::{Duration, Instant};

use tectum::route::{self, Choice};
use tectum::{Device, Error, InputFile, Plan, Result};

use super::{BrainSpec, ClockKind, MppiModel, MppiSpec, OnlineSpec, Scenario, StandInKind};
use crate::body::control::MppiParameters;
use crate::body::task::Task;
use crate::body::{Body, BodySpec, Descriptor, body};
#[cfg(feature = "field")]
use crate::brain::field::FieldBrain;
#[cfg(feature = "spiking")]
use crate::brain::genome::GenomeBrain;
use crate::brain::lqr::Lqr;
use crate::brain::lqr::adaptive::Adaptive;
use crate::brain::mppi::{Model, Mppi, OnlineLearning, model_plan, tick_plan};
use crate::brain::zero::Zero;
use crate::brain::{Brain, StandIn};
use crate::rig_csv::RigRecording;
use crate::twin::{Network, OnlineSettings, RecordedTwin, Transitions, Twin, TwinLayout, TwinRecipe, step_plan, train};

/// Progress of the work before the first tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    /// The current stage, for display: `training`.
    pub stage: &'static str,
    /// Steps done.
    pub done: u64,
    /// Total number of steps.
    pub total: u64,
}

/// Makes the plant of a scenario, at the start of its seed.
///
/// # Errors
/// As [`body`].
pub fn build_body(scenario: &Scenario) -> Result<Box<dyn Body>> {
    let descriptor = Descriptor::of(&scenario.body.name)?;
    let start = scenario.body.start.unwrap_or(descriptor.starts[0]);
    let mut plant = match scenario.body.disturbances {
        Some(disturbances) => descriptor.require_disturbed()?(disturbances, start)?,
        None => (descriptor.make)(start)?,
    };
    plant.reset(scenario.run.seed);
    Ok(plant)
}

/// Makes the task that a scenario's run is judged by: the default of its body.
///
/// # Errors
/// An unknown body.
pub fn build_task(scenario: &Scenario) -> Result<Box<dyn Task>> {
    Descriptor::of(&scenario.body.name).map(|body| (body.task)())
}

/// Makes the controller of a scenario for its plant, ready to tick on `device`; training happens here.
///
/// # Errors
/// A recording or a genome that cannot be read or does not fit the body; what the device reports.
pub fn build_brain(scenario: &Scenario, plant: &dyn Body, device: &Device, progress: &mut dyn FnMut(BuildProgress)) -> Result<Box<dyn Brain>> {
    match &scenario.brain {
        BrainSpec::Zero => Ok(Box::new(Zero::new(&plant.spec().safe_action))),
        BrainSpec::Lqr => Ok(Box::new(Lqr::new(body(&scenario.body.name, scenario.body.start)?)?)),
        BrainSpec::Mpc => Ok(Box::new(Lqr::with_mpc(body(&scenario.body.name, scenario.body.start)?)?)),
        BrainSpec::Adaptive => Ok(Box::new(Adaptive::new(plant.spec())?)),
        #[cfg(feature = "field")]
        BrainSpec::Field(spec) => Ok(Box::new(FieldBrain::new(spec, plant.spec(), device, scenario.run.seed)?)),
        #[cfg(feature = "spiking")]
        BrainSpec::Genome(spec) => Ok(Box::new(GenomeBrain::new(spec, plant.spec(), device, scenario.run.seed)?)),
        BrainSpec::Mppi(spec) => {
            if spec.model == MppiModel::Plant {
                let (model, parameters) = plant_model(scenario, spec, plant.spec())?;
                return Ok(Box::new(Mppi::new(model, &parameters, device, scenario.run.seed)?));
            }
            if let Some(file) = &spec.twin.file {
                let (model, parameters) = recorded_model(scenario, spec, file, plant.spec())?;
                return Ok(Box::new(Mppi::new(model, &parameters, device, scenario.run.seed)?));
            }
            let inputs = spec.twin.data.as_deref().map(|path| InputFile::of(Path::new(path))).transpose()?;
            let recording = spec.twin.data.as_deref().map(|path| RigRecording::read(Path::new(path))).transpose()?;
            let parameters = mppi_parameters(scenario, spec, plant.spec())?;
            let layout = TwinLayout::of(plant.spec(), parameters.previous_action)?;
            parameters.check(&layout)?;
            let seed = scenario.run.seed;
            let Some(online) = spec.twin.online else {
                let twin = learn(scenario, spec, &layout, recording, progress)?;
                return Ok(Box::new(Mppi::new(Model::Twin(twin), &parameters, device, seed)?.with_input_files(inputs)));
            };
            let (settings, recipe) = online_settings(spec, online, scenario.run.clock);
            // Checked before anything is trained.
            settings.check()?;
            let twin = if online.starts_untrained() { Twin::untrained(&layout, &recipe.hidden)? } else { learn(scenario, spec, &layout, recording, progress)? };
            Ok(Box::new(Mppi::online(twin, OnlineLearning { settings, recipe }, &parameters, device, seed)?.with_input_files(inputs)))
        }
    }
}

/// Timed ticks of a trial; the same number of untimed ticks precedes them.
const TRIAL_TICKS: usize = 32;

/// The device that `auto` selects: the one with the minimum predicted time of a control tick; for a genome and a field, whose work
/// depends on their data, the one with the minimum time of a trial of some ticks; the CPU for a brain of plain host arithmetic.
///
/// # Errors
/// As [`build_plans`], [`build_brain`], [`route::open`] and [`route::open_by_trial`].
pub fn open_device(scenario: &Scenario) -> Result<(Device, Option<Choice>)> {
    let (device, choice) = match (&scenario.brain, build_plans(scenario)?.first()) {
        (_, Some(tick)) => route::open(&tick.work())?,
        (brain, None) if brain.is_tried() => route::open_by_trial(scenario.brain.name(), &mut |device| trial(scenario, device))?,
        _ => return Ok((Device::open("cpu")?, None)),
    };
    Ok((device, Some(choice)))
}

/// Runs the scenario's brain on its body, and returns the time of some ticks.
fn trial(scenario: &Scenario, device: &Device) -> Result<Duration> {
    let mut plant = build_body(scenario)?;
    let mut brain = build_brain(scenario, &*plant, device, &mut |_| {})?;
    let (mut observation, mut action) = (vec![0.0; plant.spec().observation.len()], plant.spec().safe_action.clone());
    let mut start = Instant::now();
    for tick in 0..2 * TRIAL_TICKS {
        if tick == TRIAL_TICKS {
            start = Instant::now();
        }
        plant.observe(&mut observation);
        brain.tick(&observation, &mut action)?;
        plant.step(&action);
    }
    Ok(start.elapsed())
}

/// The plans that a scenario runs, for routing: that of a control tick first, then that of a training step if its twin learns.
/// Nothing is trained or compiled, and only a twin's file is read. A brain of plain host arithmetic has no plans; neither do a genome and a field.
///
/// # Errors
/// Settings or a twin's file that do not fit the body.
pub fn build_plans(scenario: &Scenario) -> Result<Vec<Plan>> {
    let BrainSpec::Mppi(spec) = &scenario.brain else { return Ok(Vec::new()) };
    let plant = body(&scenario.body.name, scenario.body.start)?;
    if spec.model == MppiModel::Plant {
        let (model, parameters) = plant_model(scenario, spec, plant.spec())?;
        return Ok(vec![model_plan(&model, &parameters)?]);
    }
    if let Some(file) = &spec.twin.file {
        let (model, parameters) = recorded_model(scenario, spec, file, plant.spec())?;
        return Ok(vec![model_plan(&model, &parameters)?]);
    }
    let parameters = mppi_parameters(scenario, spec, plant.spec())?;
    let layout = TwinLayout::of(plant.spec(), parameters.previous_action)?;
    let recipe = twin_recipe(spec);
    let network = Network::new(layout.features(), &recipe.hidden, layout.channels.len())?;
    Ok(vec![tick_plan(&layout, &network, &parameters)?, step_plan(&network, &recipe)?])
}

/// A body's own equations with the parameters for them.
fn plant_model(scenario: &Scenario, spec: &MppiSpec, body: &BodySpec) -> Result<(Model, MppiParameters)> {
    let parameters = mppi_parameters(scenario, spec, body)?;
    let layout = TwinLayout::of(body, parameters.previous_action)?;
    Ok((Model::Plant { body: scenario.body.name.clone(), layout }, parameters))
}

/// The twin in a file with the parameters for it.
fn recorded_model(scenario: &Scenario, spec: &MppiSpec, file: &str, body: &BodySpec) -> Result<(Model, MppiParameters)> {
    let twin = RecordedTwin::load(file, body)?;
    Ok((Model::Recorded(Box::new(twin)), mppi_parameters(scenario, spec, body)?))
}

/// The body's defaults, overridden by the scenario's settings.
fn mppi_parameters(scenario: &Scenario, spec: &MppiSpec, body: &BodySpec) -> Result<MppiParameters> {
    let mut parameters = match spec.model {
        MppiModel::Twin => MppiParameters::for_body(&scenario.body.name)?,
        MppiModel::Plant => MppiParameters::for_plant(&scenario.body.name)?,
    };
    let set = |target: &mut f32, given: Option<f64>| given.into_iter().for_each(|value| *target = value as f32);
    parameters.samples = spec.samples.unwrap_or(parameters.samples);
    parameters.horizon = spec.horizon.unwrap_or(parameters.horizon);
    parameters.hold = spec.hold.unwrap_or(parameters.hold);
    parameters.iterations = spec.iterations.unwrap_or(parameters.iterations);
    parameters.sigma_min = spec.sigma_min.map(|value| value as f32).or(parameters.sigma_min);
    set(&mut parameters.sigma, spec.sigma);
    set(&mut parameters.temperature, spec.temperature);
    set(&mut parameters.rate_weight, spec.rate_weight);
    set(&mut parameters.energy_weight, spec.energy_weight);
    set(&mut parameters.terminal_multiplier, spec.terminal_multiplier);
    for (name, &weight) in &spec.cost {
        match body.observation.iter().position(|channel| channel.name == *name) {
            Some(index) => parameters.channels[index].weight = weight as f32,
            None => parameters.action_weight = weight as f32,
        }
    }
    Ok(parameters)
}

/// Trains the twin, always on the CPU: a step of a 64-64 network takes a quarter of a millisecond there, less than the launch
/// overhead of a GPU, and the weights are then the same for any device of the controller.
fn learn(scenario: &Scenario, spec: &MppiSpec, layout: &TwinLayout, recording: Option<RigRecording>, progress: &mut dyn FnMut(BuildProgress)) -> Result<Twin> {
    let recipe = twin_recipe(spec);
    let transitions = match recording {
        Some(_) if !Descriptor::of(&scenario.body.name)?.learns_from_rig_recordings => {
            return Err(Error::invalid(format!("a recording of the rig cannot teach body {}", scenario.body.name)));
        }
        Some(recording) => Transitions::from_recording(&recording, layout)?,
        None => {
            let mut plant = body(&scenario.body.name, scenario.body.start)?;
            Transitions::simulate(plant.require_randomized()?, layout, recipe.transitions, scenario.run.seed)
        }
    };
    let total = recipe.steps as u64;
    let cpu = Device::open("cpu")?;
    let (twin, _) = train(layout, &transitions, &recipe, &cpu, scenario.run.seed, |done, _| {
        progress(BuildProgress { stage: "training", done: done as u64, total });
    })?;
    Ok(twin)
}

/// Settings of online learning: small batches and few steps, so that a round ends before the next begins, and a lower rate if the twin is
/// already trained.
fn online_settings(spec: &MppiSpec, online: OnlineSpec, clock: ClockKind) -> (OnlineSettings, TwinRecipe) {
    let settings = OnlineSettings {
        warm_up: online.warm_up.unwrap_or(0),
        every: online.every.unwrap_or(25),
        replay_capacity: online.replay_capacity.unwrap_or(10_000),
        is_threaded: clock == ClockKind::Real,
    };
    let mut recipe = TwinRecipe { steps: online.steps.unwrap_or(500), batch: spec.twin.batch.unwrap_or(128), ..twin_recipe(spec) };
    if !online.starts_untrained() && spec.twin.learning_rate.is_none() {
        recipe.learning_rate *= 0.25;
    }
    (settings, recipe)
}

fn twin_recipe(spec: &MppiSpec) -> TwinRecipe {
    let defaults = TwinRecipe::default();
    TwinRecipe {
        hidden: spec.twin.hidden.clone().unwrap_or(defaults.hidden),
        transitions: spec.twin.transitions.unwrap_or(defaults.transitions),
        steps: spec.twin.steps.unwrap_or(defaults.steps),
        batch: spec.twin.batch.unwrap_or(defaults.batch),
        learning_rate: spec.twin.learning_rate.map_or(defaults.learning_rate, |value| value as f32),
        weight_decay: spec.twin.weight_decay.map_or(defaults.weight_decay, |value| value as f32),
        ..defaults
    }
}

/// Makes the stand-in of a scenario's loop, if it has one.
///
/// # Errors
/// A body that the stand-in does not support.
pub fn build_stand_in(scenario: &Scenario, plant: &dyn Body) -> Result<Option<Box<dyn StandIn>>> {
    match scenario.run.stand_in {
        None => Ok(None),
        Some(StandInKind::Lqr) => Ok(Some(Box::new(Lqr::new(body(&scenario.body.name, scenario.body.start)?)?))),
        Some(StandInKind::Adaptive) => Ok(Some(Box::new(Adaptive::new(plant.spec())?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Software adapters are never chosen, so the trial on a device is tested separately.
    #[test]
    fn a_trial_of_a_field_runs_on_the_cpu_and_on_software_vulkan() {
        let mut scenario = Scenario::open("seeker").expect("built in");
        scenario.set_brain("field").expect("a brain");
        for id in ["cpu", "vulkan:0"] {
            match Device::open(id) {
                Ok(device) => assert!(!trial(&scenario, &device).expect("a trial").is_zero(), "{id}"),
                Err(error) => println!("skipped: {error}"),
            }
        }
        let (device, choice) = open_device(&scenario).expect("the CPU at least");
        assert!(!device.info().software && choice.is_some_and(|choice| choice.device == device.info().id));
        scenario.set_brain("zero").expect("a brain");
        assert!(open_device(&scenario).is_ok_and(|(device, choice)| device.info().id == "cpu" && choice.is_none()));
    }
}
