//! Further networks of a policy, whose outputs are parts of its input: encoders.

use tectum::Result;

use super::input::InputRule;
use super::term::Term;
use super::{read_inputs, read_terms, text};
use crate::document::{Key, Section};

/// A network that runs before the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRule {
    /// The name under which terms use its output.
    pub name: String,
    /// Its ONNX file, next to the contract.
    pub model: String,
    /// The input that its terms fill; the only one, without it.
    pub input: Option<String>,
    /// The output that is used; the first, without it.
    pub output: Option<String>,
    /// The parts of its input in their order.
    pub observation: Vec<Term>,
    /// What holds for whole inputs.
    pub inputs: Vec<InputRule>,
}

impl NetworkRule {
    pub(super) fn read(mut section: Section<'_, '_>, index: usize) -> Result<Self> {
        let name = section
            .required(Key::new("name", "the name that terms use"))?
            .value
            .to_owned();
        let model = section
            .required(Key::new("model", "its ONNX file, next to the contract"))?
            .value
            .to_owned();
        let rule = Self {
            model,
            input: text::name(&mut section, "input", "the input that its terms fill")?,
            output: text::name(&mut section, "output", "the output that is used")?,
            observation: read_terms(&mut section, &format!("network {}, ", index + 1))?,
            inputs: read_inputs(&mut section)?,
            name,
        };
        section.finish()?;
        Ok(rule)
    }
}
