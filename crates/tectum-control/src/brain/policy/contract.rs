//! What a policy's numbers mean: which channels of the body make up its input, and what its output
//! does.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::Path;

use tectum::{Error, Result};
use tectum_onnx::Network;

use crate::document::{Key, Section, TomlSource};

/// The key of a file's metadata that holds a contract as text.
pub const METADATA_KEY: &str = "tectum.contract";

/// How many rows a chunk can have.
const ROWS: RangeInclusive<u64> = 1..=10_000;

/// A contract as it is written, before names meet a body and a network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contract {
    /// Time between two answers, in seconds.
    pub period_s: Option<f64>,
    /// The input that the terms fill; the only one that is no state, without it.
    pub input: Option<String>,
    /// The output that is the action; the first that is no state, without it.
    pub output: Option<String>,
    /// The parts of the input in their order.
    pub observation: Vec<Term>,
    /// What the output does.
    pub action: ActionRule,
    /// Inputs that are outputs of the tick before, and zeros at the start of an episode.
    pub state: Vec<(String, String)>,
    /// What was not stated and has been assumed.
    pub assumed: Vec<String>,
    /// Where it comes from, for messages.
    pub origin: String,
}

/// A part of an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The input that it belongs to, if that is not the contract's.
    pub input: Option<String>,
    /// Where its numbers come from.
    pub source: TermSource,
    /// Applied to each number in its unit.
    pub function: TermFunction,
    /// The unit that the policy expects; the body's own without it.
    pub unit: Option<String>,
    /// Subtracted, one for all numbers or one for each.
    pub offset: Vec<f64>,
    /// Bounds after that.
    pub clip: Option<[f64; 2]>,
    /// Multiplied after that, one for all numbers or one for each.
    pub scale: Vec<f64>,
    /// How many of the last values it holds, the oldest first.
    pub history: usize,
    /// Its place in the contract.
    pub place: String,
}

/// Where the numbers of a term come from.
#[derive(Debug, Clone, PartialEq)]
pub enum TermSource {
    /// Channels of the body's observation, by name.
    Channels(Vec<String>),
    /// The output of the tick before, as the network gave it.
    PreviousAction,
    /// Fixed numbers, such as a command.
    Constant(Vec<f64>),
    /// The number of the tick in its episode.
    Step,
}

/// A function of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TermFunction {
    /// The number itself.
    #[default]
    Identity,
    /// The sine of an angle.
    Sin,
    /// The cosine of an angle.
    Cos,
}

/// What an output does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionRule {
    /// The channels of the body in the order of the output; all in the body's order without it.
    pub channels: Option<Vec<String>>,
    /// Channels of the body that the policy does not drive: they keep the body's safe action.
    pub passive: Vec<String>,
    /// The unit of the action; the body's own without it.
    pub unit: Option<String>,
    /// Bounds of the network's numbers.
    pub clip: Option<[f64; 2]>,
    /// Multiplied, one for all numbers or one for each.
    pub scale: Vec<f64>,
    /// Added after that: default positions, for example.
    pub offset: Vec<f64>,
    /// The action for each number of the output, of which the greatest counts; none for outputs
    /// that are actions themselves.
    pub choices: Vec<Vec<f64>>,
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
    /// Gains of the joints' controllers, which are only recorded.
    pub stiffness: Vec<f64>,
    /// As above.
    pub damping: Vec<f64>,
}

impl Contract {
    /// The inputs and outputs that it names outside of `[state]`: they are no states.
    pub(super) fn named_ports(&self) -> Vec<&str> {
        let inputs = self
            .observation
            .iter()
            .filter_map(|term| term.input.as_deref());
        [self.input.as_deref(), self.output.as_deref()]
            .into_iter()
            .flatten()
            .chain(inputs)
            .collect()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `Io` or `Data` naming file and line.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a text; `origin` precedes the line in messages.
    ///
    /// # Errors
    /// `Data` naming origin and line.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let warnings = RefCell::default();
        let source = TomlSource {
            origin,
            text,
            is_record: false,
            warnings: &warnings,
            asked: None,
        };
        let table = source.parse()?;
        let mut root = Section::root(source, table.get_ref());
        let contract = Self {
            period_s: root.positive(
                Key::new("period", "time between two answers; it must be the body's").unit("s"),
            )?,
            input: root
                .string(Key::new("input", "the input that the terms fill"))?
                .map(|text| text.value.to_owned()),
            output: root
                .string(Key::new("output", "the output that is the action"))?
                .map(|text| text.value.to_owned()),
            observation: root
                .sections(Key::new(
                    "observation",
                    "The parts of the input in their order.",
                ))?
                .into_iter()
                .enumerate()
                .map(|(index, section)| Term::read(section, index))
                .collect::<Result<_>>()?,
            action: ActionRule::read(root.section(Key::new("action", "What the output does."))?)?,
            state: read_state(root.section(Key::new(
                "state",
                "Inputs that are outputs of the tick before.",
            ))?)?,
            assumed: Vec::new(),
            origin: origin.to_owned(),
        };
        root.finish()?;
        Ok(contract)
    }
}

fn pair(section: &mut Section<'_, '_>, key: Key<'_>, name: &str) -> Result<Option<[f64; 2]>> {
    match section.numbers(key)?.as_deref() {
        None => Ok(None),
        Some(&[low, high]) if low <= high => Ok(Some([low, high])),
        Some(other) => Err(section.fault(format_args!(
            "{name} is {other:?}: a lower and an upper bound are needed"
        ))),
    }
}

impl Term {
    fn read(mut section: Section<'_, '_>, index: usize) -> Result<Self> {
        let channels = section.texts(Key::new(
            "channels",
            "channels of the body's observation, in the order of the policy",
        ))?;
        let sources = [
            ("previous action", TermSource::PreviousAction),
            ("step", TermSource::Step),
        ];
        let named = section
            .string(
                Key::new("source", "a source that is no channel")
                    .one_of("\"previous action\" or \"step\""),
            )?
            .map(|text| text.value.to_owned());
        let constant = section.numbers(Key::new("value", "fixed numbers, such as a command"))?;
        let place = format!("observation {}", index + 1);
        let given = usize::from(channels.is_some())
            + usize::from(named.is_some())
            + usize::from(constant.is_some());
        if given != 1 {
            return Err(section.fault("needs one of the keys channels, source and value"));
        }
        let source = match (channels, named, constant) {
            (Some(channels), ..) => TermSource::Channels(channels),
            (_, Some(name), _) => match sources.into_iter().find(|(known, _)| *known == name) {
                Some((_, source)) => source,
                None => {
                    return Err(section.fault(format_args!(
                        "source {name:?} is unknown; known: previous action, step"
                    )));
                }
            },
            (.., constant) => TermSource::Constant(constant.unwrap_or_default()),
        };
        let functions = [
            ("identity", TermFunction::Identity),
            ("sin", TermFunction::Sin),
            ("cos", TermFunction::Cos),
        ];
        let clip = pair(
            &mut section,
            Key::new("clip", "bounds after the offset is subtracted"),
            "clip",
        )?;
        let term = Self {
            input: section
                .string(Key::new("input", "the input, if it is another one"))?
                .map(|text| text.value.to_owned()),
            source,
            function: section.choice_or(
                Key::new("function", "applied to each number"),
                &functions,
                TermFunction::Identity,
            )?,
            unit: section
                .string(Key::new(
                    "unit",
                    "the unit that the policy expects; the body's own without it",
                ))?
                .map(|text| text.value.to_owned()),
            offset: section
                .numbers(Key::new("offset", "subtracted first").or(0))?
                .unwrap_or_else(|| vec![0.0]),
            clip,
            scale: section
                .numbers(Key::new("scale", "multiplied last").or(1))?
                .unwrap_or_else(|| vec![1.0]),
            history: section.whole_or(
                Key::new("history", "how many of the last values, the oldest first"),
                1..=1000,
                1,
            )? as usize,
            place,
        };
        section.finish()?;
        Ok(term)
    }
}

impl ActionRule {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let clip = pair(
            &mut section,
            Key::new("clip", "bounds of the network's numbers"),
            "clip",
        )?;
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
            clip,
            scale: section
                .numbers(Key::new("scale", "multiplied first").or(1))?
                .unwrap_or_else(|| vec![1.0]),
            offset: section
                .numbers(Key::new("offset", "added after that, such as default positions").or(0))?
                .unwrap_or_else(|| vec![0.0]),
            choices: section
                .rows(Key::new(
                    "choices",
                    "the action for each number of the output, of which the greatest counts",
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
            stiffness: section
                .numbers(Key::new(
                    "stiffness",
                    "gains of the joints' controllers; recorded",
                ))?
                .unwrap_or_default(),
            damping: section
                .numbers(Key::new(
                    "damping",
                    "gains of the joints' controllers; recorded",
                ))?
                .unwrap_or_default(),
        };
        section.finish()?;
        Ok(rule)
    }
}

fn read_state(mut section: Section<'_, '_>) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (input, _) in section.names() {
        let output = section.required(Key::new(&input, "the output that becomes this input"))?;
        pairs.push((input.clone(), output.value.to_owned()));
    }
    section.finish()?;
    Ok(pairs)
}

/// The names that the output of a state may have, by the name of its input.
fn state_outputs(input: &str) -> impl Iterator<Item = String> {
    [
        input.strip_suffix("_in").map(|stem| format!("{stem}_out")),
        input.strip_suffix("0").map(|stem| format!("{stem}n")),
        input
            .strip_prefix("state_in")
            .map(|rest| format!("state_out{rest}")),
    ]
    .into_iter()
    .flatten()
}

/// Inputs that may be states by their names alone, each with its output.
pub(super) fn state_names<'m>(
    inputs: impl Iterator<Item = &'m str>,
    outputs: &[&str],
) -> Vec<(&'m str, String)> {
    inputs
        .filter_map(|input| {
            let output = state_outputs(input).find(|name| outputs.contains(&name.as_str()))?;
            Some((input, output))
        })
        .collect()
}

/// Inputs that are states by their names: `h_in` and `h_out`, or the like, of equal shapes.
///
/// An input or output in `named`, which the contract gives another meaning, is no state. If no
/// output would remain for the action, there are no states: `model_in` and `model_out` alone are an
/// observation and an action.
pub fn state_by_name(network: &Network, named: &[&str]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for input in network.inputs() {
        let is_pair = |name: &String| {
            network.outputs().any(|output| {
                output.name == *name && output.dims == input.dims && output.element == input.element
            })
        };
        pairs.extend(
            state_outputs(&input.name)
                .find(is_pair)
                .map(|output| (input.name.clone(), output)),
        );
    }
    let is_named = |name: &String| named.contains(&name.as_str());
    pairs.retain(|(input, output)| !is_named(input) && !is_named(output));
    if pairs.len() == network.outputs().count() {
        pairs.clear();
    }
    pairs
}
