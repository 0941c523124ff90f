//! What a policy's numbers mean: which channels of the body make up its input, and what its output
//! does.

pub mod action;
pub mod clock;
pub mod command;
pub mod history;
pub mod input;
pub mod network;
pub mod normalizer;
pub mod term;
mod text;
mod write;

use std::cell::RefCell;
use std::path::Path;

use tectum::{Error, Result};
use tectum_onnx::Network;

use self::action::ActionRule;
use self::clock::ClockRule;
use self::command::CommandRule;
use self::input::InputRule;
use self::network::NetworkRule;
use self::term::Term;
use crate::body::motors::MotorRule;
use crate::document::{Key, Section, TomlSource};

/// The key of a file's metadata that holds a contract as text.
pub const METADATA_KEY: &str = "tectum.contract";

/// A contract as it is written, before names meet a body and a network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contract {
    /// Time between two answers, in seconds.
    pub period_s: Option<f64>,
    /// The input that the terms fill; the only one that is no state, without it.
    pub input: Option<String>,
    /// The output that is the action; the first that is no state, without it.
    pub output: Option<String>,
    /// Sizes of axes that the file names.
    pub axes: Vec<(String, usize)>,
    /// Whether an episode begins with an inference on zeros, whose outputs its first observation
    /// has.
    pub is_primed: bool,
    /// The parts of the input in their order.
    pub observation: Vec<Term>,
    /// What holds for whole inputs.
    pub inputs: Vec<InputRule>,
    /// Commands by name.
    pub commands: Vec<CommandRule>,
    /// Clocks by name.
    pub clocks: Vec<ClockRule>,
    /// Networks that run before the policy.
    pub networks: Vec<NetworkRule>,
    /// What the output does.
    pub action: ActionRule,
    /// The stage between the action and the motors.
    pub motors: Option<MotorRule>,
    /// Inputs that are outputs of the tick before, and zeros at the start of an episode.
    pub state: Vec<(String, String)>,
    /// What was not stated and has been assumed.
    pub assumed: Vec<String>,
    /// What a reader of another format found and could not state, for the written contract.
    pub unread: Vec<String>,
    /// Where it comes from, for messages.
    pub origin: String,
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

    /// Reads a file. Files that it names are next to it.
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
            period_s: root.positive(Key::new("period", "time between two answers").unit("s"))?,
            input: text::name(&mut root, "input", "the input that the terms fill")?,
            output: text::name(&mut root, "output", "the output that is the action")?,
            axes: read_axes(root.section(Key::new("axes", "Sizes of axes that the file names."))?)?,
            is_primed: root
                .flag(
                    Key::new(
                        "prime",
                        "whether an episode begins with an inference on zeros",
                    )
                    .or(false),
                )?
                .unwrap_or(false),
            observation: read_terms(&mut root, "")?,
            inputs: read_inputs(&mut root)?,
            commands: text::named_tables(
                &mut root,
                "commands",
                "Numbers that a user gives.",
                CommandRule::read,
            )?,
            clocks: text::named_tables(&mut root, "clocks", "Phases of gaits.", ClockRule::read)?,
            networks: root
                .sections(Key::new("network", "Networks that run before the policy."))?
                .into_iter()
                .enumerate()
                .map(|(index, section)| NetworkRule::read(section, index))
                .collect::<Result<_>>()?,
            action: ActionRule::read(root.section(Key::new("action", "What the output does."))?)?,
            motors: MotorRule::read(&mut root)?,
            state: read_state(root.section(Key::new(
                "state",
                "Inputs that are outputs of the tick before.",
            ))?)?,
            assumed: Vec::new(),
            unread: Vec::new(),
            origin: origin.to_owned(),
        };
        root.finish()?;
        contract.check().map_err(|error| error.at(origin))?;
        Ok(contract)
    }

    /// What does not depend on a body or a network.
    fn check(&self) -> Result<()> {
        for clock in &self.clocks {
            for name in clock.standing.iter().flat_map(|rule| &rule.commands) {
                if self.commands.iter().all(|command| command.name != *name) {
                    return Err(Error::invalid(format!(
                        "clocks.{}: standing names the command {name:?}, which does not exist",
                        clock.name
                    )));
                }
            }
        }
        for (index, network) in self.networks.iter().enumerate() {
            if self.networks[..index]
                .iter()
                .any(|other| other.name == network.name)
            {
                return Err(Error::invalid(format!(
                    "two networks have the name {:?}",
                    network.name
                )));
            }
        }
        Ok(())
    }
}

fn read_terms(section: &mut Section<'_, '_>, place: &str) -> Result<Vec<Term>> {
    section
        .sections(Key::new(
            "observation",
            "The parts of the input in their order.",
        ))?
        .into_iter()
        .enumerate()
        .map(|(index, section)| Term::read(section, format!("{place}observation {}", index + 1)))
        .collect()
}

fn read_inputs(section: &mut Section<'_, '_>) -> Result<Vec<InputRule>> {
    text::named_tables(
        section,
        "inputs",
        "What holds for a whole input.",
        InputRule::read,
    )
}

fn read_axes(mut section: Section<'_, '_>) -> Result<Vec<(String, usize)>> {
    let mut axes = Vec::new();
    for (name, _) in section.names() {
        let size = section
            .whole(Key::new(&name, "its size").one_of("NAME"), 1..=1 << 30)?
            .unwrap_or(1);
        axes.push((name.clone(), size as usize));
    }
    section.finish()?;
    Ok(axes)
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
