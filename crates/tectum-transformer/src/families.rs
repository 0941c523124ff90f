//! The families of decoders.

use super::family::Family;
use super::{gpt2, llama};

/// All of them.
const FAMILIES: [&Family; 4] = [&gpt2::GPT2, &llama::LLAMA, &llama::QWEN2, &llama::QWEN3];

/// The family of a name; otherwise the names of all, for the error.
pub(super) fn named(name: &str) -> Result<&'static Family, String> {
    let known = || FAMILIES.map(|family| family.name).join("\", \"");
    FAMILIES.into_iter().find(|family| family.name == name).ok_or_else(|| format!("{name:?}; \"{}\" are supported", known()))
}
