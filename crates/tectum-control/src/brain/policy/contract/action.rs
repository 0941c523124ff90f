//! What an output does.

use std::ops::RangeInclusive;

use tectum::Result;

use super::normalizer::Normalizer;
use crate::document::{Key, Section};

/// How many rows a chunk can have.
const ROWS: RangeInclusive<u64> = 1..=10_000;

/// What an output does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionRule {
    /// The channels of the body in the order of the output; all in the body's order without it.
    pub channels: Option<Vec<String>>,
    /// Channels of the body that the policy does not drive: they keep the body's safe action.
    pub passive: Vec<String>,
    /// The unit of the action; the body's own without it.
    pub unit: Option<String>,
    /// The number of inferences over which the action is faded in: the k-th is multiplied by
    /// min(1, k / fade_in).
    pub fade_in: u64,
    /// Bounds of the network's numbers, one pair for all or one for each.
    pub clip: Vec<[f64; 2]>,
    /// Whether the numbers are also bounded so that the motors' torque stays within its limits.
    pub is_torque_clipped: bool,
    /// The inverse of a normaliser outside of the network, after the bounds.
    pub unnormalize: Option<Normalizer>,
    /// Multiplied, one for all numbers or one for each.
    pub scale: Vec<f64>,
    /// Added after that: default positions, for example.
    pub offset: Vec<f64>,
    /// Names of present values that are added too, one for each channel, as the names of terms.
    pub add: Vec<String>,
    /// Bounds of the result in its unit, one pair for all or one for each.
    pub clip_target: Vec<[f64; 2]>,
    /// The action for each number of the output, of which the greatest counts; none for outputs
    /// that are actions themselves.
    pub choices: Vec<Vec<f64>>,
    /// Names of numbers, one for each choice: those of at most 0.5 are not chosen.
    pub mask: Vec<String>,
    /// How many rows of a chunk [rows, channels] are used, one for each tick from that of its
    /// observation on.
    pub chunk: usize,
    /// How many of them are used before the next inference starts. Without it 1 with an ensemble,
    /// half of the chunk for asynchronous inferences, all rows else.
    pub replan_steps: Option<usize>,
    /// The coefficient m of temporal ensembling; without it only the last chunk counts.
    pub temporal_ensemble_coeff: Option<f64>,
    /// Whether inferences run concurrently with the loop.
    pub is_asynchronous: bool,
    /// Ticks from the start of an inference to the use of its answer, under a simulated clock.
    pub inference_delay: Option<usize>,
}

impl ActionRule {
    pub(super) fn read(mut section: Section<'_, '_>) -> Result<Self> {
        for key in ["stiffness", "damping"] {
            section.refuse(
                &[key],
                "gains belong to [motors], next to `joints` or in the order of the action's channels",
            )?;
        }
        let rule = Self {
            channels: section.texts(Key::new(
                "channels",
                "channels of the body's action, in the order of the output",
            ))?,
            passive: section
                .texts(Key::new(
                    "passive",
                    "channels of the body that the policy does not drive; they keep its safe action",
                ))?
                .unwrap_or_default(),
            unit: section
                .string(Key::new(
                    "unit",
                    "the unit of the action; the body's own without it",
                ))?
                .map(|text| text.value.to_owned()),
            fade_in: section.whole_or(
                Key::new("fade_in", "inferences over which the action is faded in"),
                0..=1_000_000,
                0,
            )?,
            clip: section
                .bounds(Key::new("clip", "bounds of the network's numbers"))?
                .unwrap_or_default(),
            is_torque_clipped: section
                .flag(
                    Key::new(
                        "clip_torque",
                        "whether the numbers are bounded by the motors' torque",
                    )
                    .or(false),
                )?
                .unwrap_or(false),
            unnormalize: Normalizer::read(&mut section, "unnormalize")?,
            scale: section
                .numbers(Key::new("scale", "multiplied").or(1))?
                .unwrap_or_default(),
            offset: section
                .numbers(Key::new("offset", "added after that, such as default positions").or(0))?
                .unwrap_or_default(),
            add: section
                .texts(Key::new(
                    "add",
                    "present values that are added too, one for each channel",
                ))?
                .unwrap_or_default(),
            clip_target: section
                .bounds(Key::new("clip_target", "bounds of the result in its unit"))?
                .unwrap_or_default(),
            choices: section
                .rows(Key::new(
                    "choices",
                    "the action for each number of the output, of which the greatest counts",
                ))?
                .unwrap_or_default(),
            mask: section
                .texts(Key::new(
                    "mask",
                    "a name for each choice: those of at most 0.5 are not chosen",
                ))?
                .unwrap_or_default(),
            chunk: section.whole_or(
                Key::new(
                    "chunk",
                    "rows of the output that are used, one for each tick",
                ),
                ROWS,
                1,
            )? as usize,
            replan_steps: section
                .whole(
                    Key::new(
                        "replan_steps",
                        "rows that are used before the next inference starts",
                    ),
                    ROWS,
                )?
                .map(|steps| steps as usize),
            temporal_ensemble_coeff: section.within(
                Key::new(
                    "temporal_ensemble_coeff",
                    "m of the weights exp(-m i) of predictions",
                ),
                -100.0..=100.0,
            )?,
            is_asynchronous: section
                .flag(
                    Key::new("asynchronous", "inferences run concurrently with the loop").or(false),
                )?
                .unwrap_or(false),
            inference_delay: section
                .whole(
                    Key::new(
                        "inference_delay",
                        "ticks until an answer is used, under clock \"sim\"",
                    )
                    .or(0),
                    0..=10_000,
                )?
                .map(|ticks| ticks as usize),
        };
        section.finish()?;
        Ok(rule)
    }
}
