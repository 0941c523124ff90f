//! The families of decoders.

use super::family::Family;
use super::{gpt2, llama};

/// All of them.
const FAMILIES: [&Family; 4] = [&gpt2::GPT2, &llama::LLAMA, &llama::QWEN2, &llama::QWEN3];

/// The family of a name.
pub(super) fn named(name: &str) -> Option<&'static Family> {
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// The names of all, for errors of GGUF files.
#[cfg(feature = "gguf")]
pub(super) fn names() -> String {
    format!("\"{}\"", FAMILIES.map(|family| family.name).join("\", \""))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_family_is_among_the_model_types_that_errors_name() {
        assert_eq!(
            super::FAMILIES.map(|family| family.name),
            crate::config::DECODERS
        );
    }
}
