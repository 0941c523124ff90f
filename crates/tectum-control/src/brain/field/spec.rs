//! The `[brain]` part of a scenario whose brain is a field.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use tectum::{Boundary, Device, Result};

use super::FieldRecipe;
use crate::body::{BodySpec, ChannelKind};
#[cfg(any(test, feature = "bench"))]
use crate::brain::recipe::Conformance;
use crate::brain::recipe::{BrainContext, BrainSettings, Recipe};
use crate::document::{Key, Section};
use tectum_field::{Coefficients, Shape, Simulation, Storage};

/// Names of a field's boundary conditions.
const BOUNDARIES: [(&str, Boundary); 3] = [
    ("zero", Boundary::Zero),
    ("closed", Boundary::Closed),
    ("periodic", Boundary::Periodic),
];

/// Names of a field's storage formats.
const STORAGES: [(&str, Storage); 2] = [("f32", Storage::F32), ("bf16", Storage::Bf16)];

/// A field as a brain; omitted settings have the field's default.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldSpec {
    /// Cells along X, Y and Z. Default: `[32; 3]`.
    pub cells: Vec<u64>,
    /// Channels of a cell. Default: 64.
    pub channels: usize,
    /// The boundary condition. Default: `Boundary::Closed`.
    #[serde(serialize_with = "boundary_name")]
    pub boundary: Boundary,
    /// Capacity of its library of patterns, 0 for none. Default: 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub patterns: usize,
    /// Its storage format in device memory. Default: `Storage::F32`.
    #[serde(skip_serializing_if = "is_f32")]
    pub storage: Storage,
    /// Ids of devices that share the field along X with the run's device. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_devices: Vec<String>,
    /// The observation channel that is the reward, in its scale; it is then not a sensor. Without
    /// one the reward is 0. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<String>,
    /// Coefficients that differ from their defaults, by name.
    #[serde(skip_serializing_if = "CoefficientsSpec::is_default")]
    pub coefficients: CoefficientsSpec,
}

/// The coefficients that a scenario may give; for letters and ranges see [`Coefficients`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CoefficientsSpec {
    /// R.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<f64>,
    /// k.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coupling: Option<f64>,
    /// S.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// w.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<f64>,
    /// Factor of the error's drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_drive: Option<f64>,
    /// `G_imprint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imprint: Option<f64>,
    /// η.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics_rate: Option<f64>,
    /// Factor of the motors' noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploration: Option<f64>,
    /// γ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// θ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub familiar: Option<f64>,
    /// β.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attraction: Option<f64>,
    /// Maximum number of strategic patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<f64>,
}

impl Default for FieldSpec {
    fn default() -> Self {
        Self {
            cells: vec![32; 3],
            channels: 64,
            boundary: Boundary::Closed,
            patterns: 0,
            storage: Storage::F32,
            extra_devices: Vec::new(),
            reward: None,
            coefficients: CoefficientsSpec::default(),
        }
    }
}

impl BrainSettings for FieldSpec {
    fn standard() -> Option<Self> {
        Some(Self::default())
    }

    fn read(section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let default = Self::default();
        let linear = body
            .observation
            .iter()
            .filter(|channel| channel.kind == ChannelKind::Linear);
        let linear: Vec<_> = linear
            .map(|channel| (channel.name.as_str(), channel.name.as_str()))
            .collect();
        Ok(Self {
            cells: section
                .whole_list(
                    Key::new("cells", "cells along X, Y and Z, multiples of 4")
                        .or(format_args!("{:?}", default.cells)),
                    4..=64,
                )?
                .unwrap_or(default.cells),
            channels: section.whole_or(
                Key::new("channels", "channels of a cell, a multiple of 32"),
                32..=256,
                default.channels as u64,
            )? as usize,
            boundary: section.choice_or(
                Key::new("boundary", "the boundary condition"),
                &BOUNDARIES,
                default.boundary,
            )?,
            patterns: section.whole_or(
                Key::new("patterns", "capacity of its library of patterns; 0: none"),
                0..=4096,
                default.patterns as u64,
            )? as usize,
            storage: section.choice_or(
                Key::new("storage", "storage format in device memory"),
                &STORAGES,
                default.storage,
            )?,
            extra_devices: section
                .texts(
                    Key::new(
                        "extra_devices",
                        "ids of devices that share the field along X with the run's device",
                    )
                    .or("none"),
                )?
                .unwrap_or_default(),
            reward: section
                .choice(
                    Key::new(
                        "reward",
                        "observation channel that is the reward, and then not a sensor",
                    )
                    .values("a linear channel of the body")
                    .or("reward 0"),
                    &linear,
                )?
                .map(str::to_owned),
            coefficients: CoefficientsSpec::read(section.section(Key::new(
                "coefficients",
                "Coefficients of the field's equations, see [field.md](field.md).",
            ))?)?,
        })
    }

    fn check(&self) -> Result<()> {
        let sites = self.shape()?.sites()[0];
        if self.extra_devices.len() >= sites {
            return Err(tectum::Error::invalid(format!(
                "field: {} devices for {sites} sites along X",
                self.extra_devices.len() + 1
            )));
        }
        self.coefficients.to_coefficients().check()
    }

    fn reads_arrays(&self) -> bool {
        false
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Device(Box::new(Arc::new(FieldRecipe::new(
            self,
            context.body,
            context.seed,
        )?))))
    }

    #[cfg(any(test, feature = "bench"))]
    fn conformance() -> Option<Conformance> {
        Some(Conformance {
            suites: tectum_field::conformance_suites,
            kernels: || Ok(tectum_field::kernels()),
        })
    }
}

impl FieldSpec {
    /// The field of these settings for a body, split over devices, in the initial state of a seed:
    /// what a brain runs in its loop.
    ///
    /// # Errors
    /// As [`FieldBrain::new`](super::FieldBrain::new).
    pub fn simulation(&self, body: &BodySpec, devices: &[Device], seed: u64) -> Result<Simulation> {
        FieldRecipe::new(self, body, seed)?.simulation(devices)
    }

    /// The field's size.
    ///
    /// # Errors
    /// As [`Shape::new`]; `Invalid` unless there are three axes.
    pub fn shape(&self) -> Result<Shape> {
        match self.cells[..] {
            [x, y, z] => Shape::new([x, y, z].map(|size| size as usize), self.channels),
            _ => Err(tectum::Error::invalid(format!(
                "cells: {} axes given, 3 needed",
                self.cells.len()
            ))),
        }
    }
}

impl CoefficientsSpec {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let default = Coefficients::default();
        let coefficients = Self {
            retention: section.non_negative(
                Key::new("retention", "R: the retained fraction of the field, 0 to 1")
                    .or(default.retention),
            )?,
            coupling: section.non_negative(
                Key::new(
                    "coupling",
                    "k: the maximum that the mean of the neighbours adds, 0 to 1",
                )
                .or(default.coupling),
            )?,
            noise: section.non_negative(
                Key::new("noise", "S: standard deviation of the noise, 0 to 1").or(default.noise),
            )?,
            wave: section.non_negative(
                Key::new("wave", "w: amplitude of each of the four waves, 0 to 1").or(default.wave),
            )?,
            error_drive: section.non_negative(
                Key::new(
                    "error_drive",
                    "factor of the effect of the error on the field, 0 to 10",
                )
                .or(default.error_drive),
            )?,
            imprint: section.non_negative(
                Key::new("imprint", "`G_imprint`: factor of the imprint, 0 to 10")
                    .or(default.imprint),
            )?,
            dynamics_rate: section.non_negative(
                Key::new("dynamics_rate", "η: the rate of the dynamics, 0 to 1")
                    .or(default.dynamics_rate),
            )?,
            exploration: section.non_negative(
                Key::new("exploration", "factor of the noise of the motors, 0 to 1")
                    .or(default.exploration),
            )?,
            recall: section.non_negative(
                Key::new(
                    "recall",
                    "γ: how strongly the field is pulled to the library's recall, 0 to ½",
                )
                .or(default.recall),
            )?,
            familiar: section.non_negative(
                Key::new(
                    "familiar",
                    "θ: the minimum cosine of a familiar pattern, which is not stored, 0 to 1",
                )
                .or(default.familiar),
            )?,
            attraction: section.non_negative(
                Key::new(
                    "attraction",
                    "β: how strongly each attractor pulls, 0 to 0.02",
                )
                .or(default.attraction),
            )?,
            strategy: section.non_negative(
                Key::new(
                    "strategy",
                    "maximum share of a strategic pattern in the temporal channels, 0 to 1",
                )
                .or(default.strategy),
            )?,
        };
        section.finish()?;
        Ok(coefficients)
    }

    /// All coefficients, with defaults for those that are not given.
    pub fn to_coefficients(&self) -> Coefficients {
        let mut whole = Coefficients::default();
        let given = [
            (&mut whole.retention, self.retention),
            (&mut whole.coupling, self.coupling),
            (&mut whole.noise, self.noise),
            (&mut whole.wave, self.wave),
            (&mut whole.error_drive, self.error_drive),
            (&mut whole.imprint, self.imprint),
            (&mut whole.dynamics_rate, self.dynamics_rate),
            (&mut whole.exploration, self.exploration),
            (&mut whole.recall, self.recall),
            (&mut whole.familiar, self.familiar),
            (&mut whole.attraction, self.attraction),
            (&mut whole.strategy, self.strategy),
        ];
        for (target, value) in given {
            *target = value.map_or(*target, |value| value as f32);
        }
        whole
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_f32(storage: &Storage) -> bool {
    *storage == Storage::F32
}

fn boundary_name<S: Serializer>(
    boundary: &Boundary,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let name = BOUNDARIES
        .into_iter()
        .find(|(_, named)| named == boundary)
        .map_or("closed", |(name, _)| name);
    serializer.serialize_str(name)
}
