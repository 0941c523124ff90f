//! The operators of ONNX: one function each, in a file for each family, which adds what it computes
//! to a graph.

mod arithmetic;
mod attention;
mod constants;
mod control;
mod layout;
mod losses;
mod matrix;
mod products;
mod quantize;
mod recurrent;
mod reductions;
mod resize;
mod sampling;
mod selection;
mod sequences;
mod signal;
mod window;
mod windows;

use tectum::Result;

use crate::emit::{Call, Emit, Unroll, Value};

/// Adds a node: its values in the order of the outputs.
pub(crate) type AddPlain = fn(&mut Emit<'_>, &Call<'_>) -> Result<Vec<Value>>;

/// Adds a node with graphs within it, or of sequences: its values, or none if a fault in such a
/// graph has been recorded.
pub(crate) type AddControl =
    for<'m> fn(&mut dyn Unroll<'m>, &Call<'m>) -> Result<Option<Vec<Value>>>;

/// How a node is added.
#[derive(Clone, Copy)]
pub(crate) enum Add {
    /// By operations of a graph; of known tensors it is computed when the model is loaded.
    Plain(AddPlain),
    /// By the nodes of graphs within it, or by values of sequences.
    Control(AddControl),
}

/// The operators of a family: domain, name, and how a node is added.
type Family = &'static [(&'static str, AddPlain)];

/// All operators of the default domain.
const FAMILIES: &[Family] = &[
    arithmetic::FAMILY,
    attention::FAMILY,
    constants::FAMILY,
    layout::FAMILY,
    losses::FAMILY,
    products::FAMILY,
    quantize::FAMILY,
    recurrent::FAMILY,
    reductions::FAMILY,
    resize::FAMILY,
    sampling::FAMILY,
    selection::FAMILY,
    signal::FAMILY,
    windows::FAMILY,
];

/// How nodes of an operator are added; none if it is not supported.
pub(crate) fn find(domain: &str, operator: &str) -> Option<Add> {
    if !domain.is_empty() {
        return None;
    }
    let mut within = control::FAMILY.iter().chain(sequences::FAMILY);
    if let Some((_, add)) = within.find(|(name, _)| *name == operator) {
        return Some(Add::Control(*add));
    }
    let entry = FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .find(|(name, _)| *name == operator);
    entry.map(|(_, add)| Add::Plain(*add))
}

/// The names of the operators that are supported.
pub fn supported() -> Vec<&'static str> {
    let mut names: Vec<&str> = FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|(name, _)| *name)
        .collect();
    names.extend(control::FAMILY.iter().map(|(name, _)| *name));
    names.extend(sequences::FAMILY.iter().map(|(name, _)| *name));
    names.sort_unstable();
    names
}
