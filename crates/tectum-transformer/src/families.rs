//! The families of decoders.

use super::family::Family;
use super::{gpt2, llama};

/// All of them.
const FAMILIES: [&Family; 4] = [&gpt2::GPT2, &llama::LLAMA, &llama::QWEN2, &llama::QWEN3];

/// The family of a name.
pub(super) fn named(name: &str) -> Option<&'static Family> {
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// The names of all, for errors.
pub(super) fn names() -> String {
    format!("\"{}\"", FAMILIES.map(|family| family.name).join("\", \""))
}
