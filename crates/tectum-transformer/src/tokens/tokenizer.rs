//! The tokenizer of the `tokenizers` crate.

use std::sync::OnceLock;

use tectum::{Error, Result};
use tokenizers::TruncationParams;

#[derive(Debug)]
pub struct Tokenizer {
    tokenizer: tokenizers::Tokenizer,
    /// The same without truncation, to count what was cut; made for the first text that is.
    whole: OnceLock<tokenizers::Tokenizer>,
}

impl Tokenizer {
    pub fn parse(text: &[u8], max_tokens: Option<usize>) -> Result<Self> {
        let refused = |source: tokenizers::Error| Error::data(source.to_string());
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(text).map_err(refused)?;
        tokenizer.with_padding(None);
        let truncation = max_tokens.map(|max_length| TruncationParams {
            max_length,
            ..TruncationParams::default()
        });
        tokenizer.with_truncation(truncation).map_err(refused)?;
        Ok(Self {
            tokenizer,
            whole: OnceLock::new(),
        })
    }

    /// The tokens of a text, and the number of those that were cut off.
    pub fn encode(&self, text: &str) -> Result<(Vec<u32>, usize)> {
        let refused = |source| Error::data(format!("a text that the tokenizer refuses: {source}"));
        let tokens = self.tokenizer.encode(text, true).map_err(refused)?;
        if tokens.get_overflowing().is_empty() {
            return Ok((tokens.get_ids().to_vec(), 0));
        }
        let whole = self.whole.get_or_init(|| {
            let mut whole = self.tokenizer.clone();
            // Only a maximum can be refused.
            let _ = whole.with_truncation(None);
            whole
        });
        let all = whole.encode(text, true).map_err(refused)?.len();
        Ok((tokens.get_ids().to_vec(), all - tokens.len()))
    }

    /// The tokens of a text without special ones around it.
    pub fn encode_continued(&self, text: &str) -> Result<Vec<u32>> {
        let refused = |source| Error::data(format!("a text that the tokenizer refuses: {source}"));
        let tokens = self.tokenizer.encode(text, false).map_err(refused)?;
        Ok(tokens.get_ids().to_vec())
    }

    /// The name of a token.
    pub fn name(&self, token: u32) -> Option<String> {
        self.tokenizer.id_to_token(token)
    }

    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.tokenizer
            .decode(tokens, true)
            .map_err(|source| Error::data(format!("tokens that the tokenizer refuses: {source}")))
    }

    pub fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }
}
