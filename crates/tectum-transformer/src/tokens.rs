//! Tokenization by the `tokenizer.json` of a model.

use std::path::Path;

use tectum::{Error, Result};
use tokenizers::{Tokenizer, TruncationParams};

/// A model's tokenizer, without the padding and the truncation that its file may define: the model decides about
/// both.
#[derive(Debug)]
pub struct Tokens {
    tokenizer: Tokenizer,
}

impl Tokens {
    /// Reads `tokenizer.json` of a folder; texts are truncated to `max_tokens`, including special tokens, if that is given.
    ///
    /// # Errors
    /// `Io` if it does not exist, `Data` if it is invalid.
    pub fn read(folder: &Path, max_tokens: Option<usize>) -> Result<Tokens> {
        let path = folder.join("tokenizer.json");
        let text = std::fs::read(&path).map_err(|source| Error::io(path.display(), source))?;
        let refused = |source: tokenizers::Error| Error::data(format!("{}: {source}", path.display()));
        let mut tokenizer = Tokenizer::from_bytes(text).map_err(refused)?;
        tokenizer.with_padding(None);
        let truncation = max_tokens.map(|max_length| TruncationParams { max_length, ..TruncationParams::default() });
        tokenizer.with_truncation(truncation).map_err(refused)?;
        Ok(Tokens { tokenizer })
    }

    /// Token numbers of a text, with the model's special tokens.
    ///
    /// # Errors
    /// `Data` for a text that the tokenizer rejects.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.tokenizer.encode(text, true).map_err(|source| Error::data(format!("a text that the tokenizer refuses: {source}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of tokens without special ones. Bytes of incomplete characters are shown as `�`.
    ///
    /// # Errors
    /// `Data` for tokens that the tokenizer rejects.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.tokenizer.decode(tokens, true).map_err(|source| Error::data(format!("tokens that the tokenizer refuses: {source}")))
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
