//! A field as a brain: the observation is its sensors, its motors the action.
//!
//! A linear channel is one sensor, value divided by scale; an angle is two, its sine and cosine. A
//! motor of −1 to 1 is mapped to its channel's range. The reward is the linear channel that the
//! settings name, divided by its scale, and then not a sensor; without one it is 0.

pub mod learning;
pub mod spec;

use std::sync::Arc;

use tectum::{CodeObject, Device, Error, LaunchTime, Result, RunStats, Watch};

use self::spec::FieldSpec;
use super::{Brain, DeviceRecipe, Rebuild};
use crate::body::{BodySpec, ChannelKind, ObservationChannel};
use tectum::snapshot::Snapshot;
use tectum_field::{Options, Simulation, State};

/// A field that runs on a body.
///
/// # Numerics
/// As the field's: the same device, with any number of threads, gives the same actions.
///
/// # Cost
/// A tick is one cycle: one upload, one submission, one download on a single device; see
/// [`Simulation::tick`].
pub struct FieldBrain {
    recipe: Arc<FieldRecipe>,
    simulation: Simulation,
    device: Device,
    sensors: Vec<f32>,
}

/// What it is built from, kept on the host to rebuild it on another device.
pub(super) struct FieldRecipe {
    spec: FieldSpec,
    options: Options,
    body: BodySpec,
    /// The observation channel that is the reward.
    reward: Option<usize>,
}

impl FieldBrain {
    /// Builds a field for a body on a device, and on the extra devices of the settings, in the
    /// initial state of the seed.
    ///
    /// # Errors
    /// `Invalid` for an invalid shape or coefficients, a body with more channels than a field
    /// supports, or a reward that is not one of its linear channels; what the device reports.
    pub fn new(spec: &FieldSpec, body: &BodySpec, device: &Device, seed: u64) -> Result<Self> {
        Arc::new(FieldRecipe::new(spec, body, seed)?).on(device)
    }
}

impl FieldRecipe {
    fn new(spec: &FieldSpec, body: &BodySpec, seed: u64) -> Result<Self> {
        let reward = spec
            .reward
            .as_deref()
            .map(|name| reward_channel(name, body))
            .transpose()?;
        let others = body
            .observation
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != reward);
        let sensors = others
            .map(|(_, channel)| {
                if channel.kind == ChannelKind::Linear {
                    1
                } else {
                    2
                }
            })
            .sum();
        let options = Options {
            sensors,
            motors: body.action.len(),
            boundary: spec.boundary,
            seed,
            patterns: spec.patterns,
            storage: spec.storage,
        };
        Ok(Self {
            spec: spec.clone(),
            options,
            body: body.clone(),
            reward,
        })
    }

    /// On a device and the extra devices of the settings.
    fn on(self: &Arc<Self>, device: &Device) -> Result<FieldBrain> {
        let others = self
            .spec
            .extra_devices
            .iter()
            .map(|id| Device::open(id))
            .collect::<Result<Vec<_>>>()?;
        self.on_each(
            &std::iter::once(device.clone())
                .chain(others)
                .collect::<Vec<_>>(),
        )
    }

    /// The field alone, split among devices.
    fn simulation(&self, devices: &[Device]) -> Result<Simulation> {
        let mut simulation = Simulation::split(self.spec.shape()?, self.options, devices)?;
        simulation.set_coefficients(self.spec.coefficients.to_coefficients())?;
        Ok(simulation)
    }

    /// Split among devices.
    fn on_each(self: &Arc<Self>, devices: &[Device]) -> Result<FieldBrain> {
        let mut simulation = self.simulation(devices)?;
        // Drivers compile at the first launch of each plan: launch here, not in the first ticks.
        let first = simulation.state()?;
        for _ in 0..2 {
            simulation.tick(&vec![0.0; self.options.sensors], 0.0)?;
        }
        simulation.set_state(&first)?;
        let sensors = Vec::with_capacity(self.options.sensors);
        Ok(FieldBrain {
            recipe: self.clone(),
            simulation,
            device: devices[0].clone(),
            sensors,
        })
    }
}

impl DeviceRecipe for Arc<FieldRecipe> {
    fn build(&self, device: &Device, _: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        Ok(Box::new(self.on(device)?))
    }
}

/// Index of the reward among the observation's channels.
fn reward_channel(name: &str, body: &BodySpec) -> Result<usize> {
    let is_it =
        |channel: &ObservationChannel| channel.name == name && channel.kind == ChannelKind::Linear;
    body.observation.iter().position(is_it).ok_or_else(|| {
        let known: Vec<&str> = body
            .observation
            .iter()
            .filter(|channel| channel.kind == ChannelKind::Linear)
            .map(|channel| channel.name.as_str())
            .collect();
        Error::invalid(format!(
            "field: reward {name:?} is no linear channel of body {}; known: {}",
            body.name,
            known.join(", ")
        ))
    })
}

impl Brain for FieldBrain {
    fn name(&self) -> &'static str {
        "field"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.sensors.clear();
        let mut reward = 0.0;
        for (index, (channel, value)) in self
            .recipe
            .body
            .observation
            .iter()
            .zip(observation)
            .enumerate()
        {
            match channel.kind {
                _ if self.recipe.reward == Some(index) => reward = value / channel.scale,
                ChannelKind::Linear => self.sensors.push(value / channel.scale),
                ChannelKind::Angle { rad_per_unit } => {
                    let (sine, cosine) = (f64::from(*value) * rad_per_unit).sin_cos();
                    self.sensors.extend([sine as f32, cosine as f32]);
                }
            }
        }
        let report = self.simulation.tick(&self.sensors, reward)?;
        for ((action, motor), channel) in action
            .iter_mut()
            .zip(&report.motors)
            .zip(&self.recipe.body.action)
        {
            *action = channel.low + (channel.high - channel.low) * (0.5 + 0.5 * motor);
        }
        Ok(self.simulation.stats())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(self
            .simulation
            .state()?
            .to_snapshot(self.simulation.shape()))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let state = State::from_snapshot(
            self.simulation.shape(),
            self.recipe.options.patterns,
            snapshot,
        )?;
        self.simulation.set_state(&state)
    }

    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.simulation.trace()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let recipe = self.recipe.clone();
        // Unsplit, on one device: a device of the split may be the one that failed.
        Some(Box::new(move |device| {
            Ok(Box::new(recipe.on_each(std::slice::from_ref(device))?))
        }))
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.device)
    }

    fn code(&self) -> Vec<CodeObject> {
        self.simulation.code().to_vec()
    }
}
