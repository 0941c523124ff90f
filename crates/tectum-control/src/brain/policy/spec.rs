//! The `[brain]` part of a scenario whose brain is a policy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tectum::Result;
use tectum::operation::product::panel_format::PanelFormat;

use super::PolicyRecipe;
use crate::body::BodySpec;
use crate::body::motors::MotorRule;
use crate::brain::recipe::{BrainContext, BrainSettings, Recipe};
use crate::document::{Key, Section};

/// The formats that weights can have.
const FORMATS: [(&str, PanelFormat); 4] = [
    ("f32", PanelFormat::F32),
    ("f16", PanelFormat::F16),
    ("bf16", PanelFormat::Bf16),
    ("int8", PanelFormat::Int8),
];

/// A policy as a brain: its file, its contract, and the format of its weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicySpec {
    /// The file, relative to the working directory.
    pub model: String,
    /// The file of its contract, if that is neither next to the model nor in its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The format of its weights. Default: `PanelFormat::F32`.
    #[serde(serialize_with = "format_name")]
    pub weights: PanelFormat,
}

fn format_name<S: Serializer>(
    format: &PanelFormat,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

impl PolicySpec {
    /// The policy of a file, with the contract that belongs to it and weights in f32.
    pub fn of(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            contract: None,
            weights: PanelFormat::F32,
        }
    }

    pub(super) fn contract_path(&self) -> Option<PathBuf> {
        self.contract.as_ref().map(PathBuf::from)
    }

    pub(super) fn model_path(&self) -> &Path {
        Path::new(&self.model)
    }
}

impl BrainSettings for PolicySpec {
    fn standard() -> Option<Self> {
        None
    }

    fn read(section: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        let model = section
            .required(Key::new(
                "model",
                "the policy's ONNX file, relative to the working directory",
            ))?
            .value
            .to_owned();
        let contract = Key::new(
            "contract",
            "the file of its contract, see [policies.md](policies.md)",
        )
        .or("the file next to it, or its metadata");
        Ok(Self {
            model,
            contract: section.string(contract)?.map(|text| text.value.to_owned()),
            weights: section.choice_or(
                Key::new("weights", "format of the weights of products"),
                &FORMATS,
                PanelFormat::F32,
            )?,
        })
    }

    fn motors(&self, body: &BodySpec) -> Result<Option<(MotorRule, Option<f64>)>> {
        super::motors(self.model_path(), self.contract_path().as_deref(), body)
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        let recipe = PolicyRecipe::new(self, context.body, context.clock)?;
        Ok(Recipe::Device(Box::new(Arc::new(PolicyRecipe {
            seed: context.seed,
            ..recipe
        }))))
    }
}
