//! The `[brain]` part of a scenario whose brain is a genome.

use std::sync::Arc;

use serde::Serialize;
use tectum::Result;

use super::GenomeRecipe;
use crate::body::BodySpec;
#[cfg(any(test, feature = "bench"))]
use crate::brain::recipe::Conformance;
use crate::brain::recipe::{BrainContext, BrainSettings, Recipe};
use crate::document::{Key, Section, SourceLine};
use tectum_spiking::IdleUpdate;
use tectum_spiking::genome::{UnitPolicy, WeightLossPolicy};

/// A genome as a brain: which file, and how it is wired to the body.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenomeSpec {
    /// The file, relative to the working directory.
    pub genome: String,
    /// The units of its numbers.
    pub units: UnitPolicy,
    /// When plastic synapses lose weight.
    pub weight_loss: WeightLossPolicy,
    /// The effect on a neuron of a burst without arrivals.
    pub idle_update: IdleUpdate,
    /// Whether plastic synapses learn.
    pub weights: WeightMode,
    /// Bursts per tick.
    pub bursts_per_tick: u32,
    /// Wiring of observation channels to the genome.
    pub sensors: Vec<SensorSpec>,
    /// Wiring of action channels from the genome.
    pub motors: Vec<MotorSpec>,
}

/// Whether the weights of plastic synapses change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightMode {
    /// They learn.
    #[default]
    Learn,
    /// They keep their initial values.
    Frozen,
}

/// One channel of the observation, written along z of a column of an input area.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensorSpec {
    /// Its number in the observation.
    pub channel: usize,
    /// The area, by id or name.
    pub area: String,
    /// The column's place.
    pub x: u32,
    /// The column's place.
    pub y: u32,
    /// How the number is written.
    pub coding: Coding,
    /// What each neuron of a voxel that represents the number receives; without it, its threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<f64>,
    /// Where the scenario has it.
    #[serde(skip)]
    pub line: SourceLine,
}

/// One channel of the action, read along z of a column of an output area.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MotorSpec {
    /// Its number in the action.
    pub channel: usize,
    /// The area, by id or name.
    pub area: String,
    /// The column's place.
    pub x: u32,
    /// The column's place.
    pub y: u32,
    /// How the number is read.
    pub coding: Coding,
    /// The action when no neuron of the column fires, in the channel's unit; without it, the body's
    /// safe action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<f64>,
    /// Where the scenario has it.
    #[serde(skip)]
    pub line: SourceLine,
}

/// How the voxels along z represent a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// One voxel, from 1 at z = 0 downwards.
    Linear,
    /// Binary digits: voxel z represents 2⁻ᶻ.
    Fractional,
}

/// The maximum coordinate of a column: areas have sides of at most 2²⁰ voxels.
const MAX_COORDINATE: u64 = (1 << 20) - 1;
/// Maximum number of bursts per tick.
const MAX_BURSTS: u64 = 4096;

impl BrainSettings for GenomeSpec {
    fn standard() -> Option<Self> {
        None
    }

    fn read(section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let genome = section
            .required(Key::new(
                "genome",
                "the genome's file, relative to the working directory",
            ))?
            .value
            .to_owned();
        let units = [
            ("detect", UnitPolicy::Detect),
            ("fraction", UnitPolicy::Fraction),
            ("legacy", UnitPolicy::Legacy),
        ];
        let weight_loss = [
            ("detect", WeightLossPolicy::Detect),
            ("any_firing", WeightLossPolicy::AnyFiring),
            ("steady_source", WeightLossPolicy::SteadySource),
        ];
        let idle_update = [
            ("catch_up", IdleUpdate::CatchUp),
            ("freeze", IdleUpdate::Freeze),
        ];
        let weights = [("learn", WeightMode::Learn), ("frozen", WeightMode::Frozen)];
        let spec = Self {
            genome,
            units: section.choice_or(Key::new("units", "units of the genome's numbers, see [genomes.md](genomes.md)"), &units, UnitPolicy::default())?,
            weight_loss: section.choice_or(Key::new("weight_loss", "when plastic synapses lose weight, see [spiking.md](spiking.md#a-burst)"), &weight_loss, WeightLossPolicy::default())?,
            idle_update: section.choice_or(Key::new("idle_update", "effect on a neuron of a burst without arrivals"), &idle_update, IdleUpdate::default())?,
            weights: section.choice_or(Key::new("weights", "whether plastic synapses learn"), &weights, WeightMode::default())?,
            bursts_per_tick: section.whole_or(Key::new("bursts_per_tick", "bursts of the network per tick of the loop"), 1..=MAX_BURSTS, 1)? as u32,
            sensors: section
                .sections(Key::new("sensors", "Observation channels, each written along z of a column of an input area."))?
                .into_iter()
                .map(|section| SensorSpec::read(section, body))
                .collect::<Result<_>>()?,
            motors: section
                .sections(Key::new("motors", "Action channels, each read along z of a column of an output area; at least one."))?
                .into_iter()
                .map(|section| MotorSpec::read(section, body))
                .collect::<Result<_>>()?,
        };
        if spec.motors.is_empty() {
            Err(section.missing("motors"))
        } else {
            Ok(spec)
        }
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Device(Box::new(Arc::new(GenomeRecipe::new(
            self,
            context.body,
            context.seed,
        )?))))
    }

    #[cfg(any(test, feature = "bench"))]
    fn conformance() -> Option<Conformance> {
        Some(Conformance {
            suites: tectum_spiking::conformance_suites,
            kernels: || Ok(tectum_spiking::kernels()),
        })
    }
}

impl SensorSpec {
    fn read(mut section: Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let names = body
            .observation
            .iter()
            .map(|channel| channel.name.as_str())
            .collect::<Vec<_>>();
        let channel =
            section.index_in(Key::new("channel", "the channel, by name or index"), &names)?;
        let area = section.required(Key::new("area", "the area, by id or name"))?;
        let spec = Self {
            channel,
            line: section.line(&area.place),
            area: area.value.to_owned(),
            x: place(&mut section, "x")?,
            y: place(&mut section, "y")?,
            coding: coding(&mut section)?,
            amount: section.positive(
                Key::new(
                    "amount",
                    "what each neuron of a voxel that represents the number receives",
                )
                .or("its threshold"),
            )?,
        };
        section.finish()?;
        Ok(spec)
    }
}

impl MotorSpec {
    fn read(mut section: Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let names = body
            .action
            .iter()
            .map(|channel| channel.name.as_str())
            .collect::<Vec<_>>();
        let channel =
            section.index_in(Key::new("channel", "the channel, by name or index"), &names)?;
        let (low, high) = (body.action[channel].low, body.action[channel].high);
        let area = section.required(Key::new("area", "the area, by id or name"))?;
        let spec = Self {
            channel,
            line: section.line(&area.place),
            area: area.value.to_owned(),
            x: place(&mut section, "x")?,
            y: place(&mut section, "y")?,
            coding: coding(&mut section)?,
            rest: section.within(
                Key::new("rest", "action when no neuron of the column fires")
                    .values("a number in the channel's range")
                    .unit("the channel's")
                    .or("the safe action"),
                f64::from(low)..=f64::from(high),
            )?,
        };
        section.finish()?;
        Ok(spec)
    }
}

fn place(section: &mut Section<'_, '_>, key: &str) -> Result<u32> {
    Ok(section.whole_or(
        Key::new(key, "place of the column").unit("voxels"),
        0..=MAX_COORDINATE,
        0,
    )? as u32)
}

fn coding(section: &mut Section<'_, '_>) -> Result<Coding> {
    section.choice_or(
        Key::new(
            "coding",
            "one voxel from 1 at z = 0 downwards, or binary digits 2⁻ᶻ",
        ),
        &[
            ("linear", Coding::Linear),
            ("fractional", Coding::Fractional),
        ],
        Coding::Linear,
    )
}
