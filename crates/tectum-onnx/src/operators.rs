//! The operators of ONNX: one function each, in a file for each family, which adds what it computes
//! to a graph.

mod arithmetic;
mod attention;
mod constants;
mod control;
mod layout;
mod linear_models;
mod losses;
mod matrix;
mod microsoft;
mod products;
mod quantize;
mod random;
mod recurrent;
mod reductions;
mod resize;
mod sampling;
mod scores;
mod selection;
mod sequences;
mod signal;
mod tree_ensemble;
mod trees;
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
    /// As plain ones, never when the model is loaded: each run draws its own numbers.
    Random(AddPlain),
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

/// Operators of other domains.
const DOMAINS: &[(&str, Family)] = &[
    ("ai.onnx.ml", linear_models::FAMILY),
    ("ai.onnx.ml", trees::FAMILY),
    ("com.microsoft", microsoft::FAMILY),
];

/// How nodes of an operator are added; none if it is not supported.
pub(crate) fn find(domain: &str, operator: &str) -> Option<Add> {
    if !domain.is_empty() {
        let mut entries = DOMAINS
            .iter()
            .filter(|(name, _)| *name == domain)
            .flat_map(|(_, family)| family.iter());
        let entry = entries.find(|(name, _)| *name == operator);
        return entry.map(|(_, add)| Add::Plain(*add));
    }
    let mut within = control::FAMILY.iter().chain(sequences::FAMILY);
    if let Some((_, add)) = within.find(|(name, _)| *name == operator) {
        return Some(Add::Control(*add));
    }
    if let Some((_, add)) = random::FAMILY.iter().find(|(name, _)| *name == operator) {
        return Some(Add::Random(*add));
    }
    let entry = FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .find(|(name, _)| *name == operator);
    entry.map(|(_, add)| Add::Plain(*add))
}

/// The operators that are supported, each with its domain; that of the default one is empty.
pub fn supported() -> Vec<(&'static str, &'static str)> {
    let control = control::FAMILY.iter().chain(sequences::FAMILY);
    let plain = FAMILIES.iter().chain(&[random::FAMILY]);
    let mut names: Vec<(&str, &str)> = plain
        .flat_map(|family| family.iter())
        .map(|(name, _)| ("", *name))
        .chain(control.map(|(name, _)| ("", *name)))
        .collect();
    for (domain, family) in DOMAINS {
        names.extend(family.iter().map(|(name, _)| (*domain, *name)));
    }
    names.sort_unstable();
    names
}
