//! Tokenization by the `tokenizer.json` of a model.

#[cfg_attr(not(feature = "tokenizers"), path = "tokens/left_out.rs")]
mod tokenizer;

use std::path::Path;

use tectum::{Error, Result};

use tokenizer::Tokenizer;

/// A model's tokenizer, without the padding and the truncation that its file may define: the model
/// decides about both.
#[derive(Debug)]
pub struct Tokens {
    tokenizer: Tokenizer,
}

impl Tokens {
    /// Reads `tokenizer.json` of a folder; texts are truncated to `max_tokens`, including special
    /// tokens, if that is given.
    ///
    /// # Errors
    /// `Io` if it does not exist, `Data` if it is invalid, `Unsupported` in a build without the
    /// feature `tokenizers`.
    pub fn read(folder: &Path, max_tokens: Option<usize>) -> Result<Tokens> {
        let path = folder.join("tokenizer.json");
        let text = std::fs::read(&path).map_err(|source| Error::io(path.display(), source))?;
        Ok(Tokens {
            tokenizer: Tokenizer::parse(&text, max_tokens)
                .map_err(|error| error.at(path.display()))?,
        })
    }

    /// Token numbers of a text, with the model's special tokens.
    ///
    /// # Errors
    /// `Data` for a text that the tokenizer rejects.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_counted(text).map(|(tokens, _)| tokens)
    }

    /// Token numbers of a text as [`Tokens::encode`] gives them, and the number of its tokens that
    /// were cut off at the maximum.
    ///
    /// # Errors
    /// As [`Tokens::encode`].
    pub fn encode_counted(&self, text: &str) -> Result<(Vec<u32>, usize)> {
        self.tokenizer.encode(text)
    }

    /// Token numbers of a text that continues another: without the special tokens that the model
    /// puts around a text.
    ///
    /// # Errors
    /// As [`Tokens::encode`].
    pub fn encode_continued(&self, text: &str) -> Result<Vec<u32>> {
        self.tokenizer.encode_continued(text)
    }

    /// A token's number, with its name in the tokenizer if it has one, for messages.
    pub fn describe(&self, token: u32) -> String {
        match self.tokenizer.name(token) {
            Some(name) => format!("{token} ({name:?})"),
            None => token.to_string(),
        }
    }

    /// The text of tokens without special ones. Bytes of incomplete characters are shown as `�`.
    ///
    /// # Errors
    /// `Data` for tokens that the tokenizer rejects.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.tokenizer.decode(tokens)
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokenizer.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
