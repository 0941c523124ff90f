//! The tokenizer of the `tokenizers` crate.

use tectum::{Error, Result};
use tokenizers::TruncationParams;

#[derive(Debug)]
pub struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    pub fn parse(text: &[u8], max_tokens: Option<usize>) -> Result<Self> {
        let refused = |source: tokenizers::Error| Error::data(source.to_string());
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(text).map_err(refused)?;
        tokenizer.with_padding(None);
        let truncation = max_tokens.map(|max_length| TruncationParams { max_length, ..TruncationParams::default() });
        tokenizer.with_truncation(truncation).map_err(refused)?;
        Ok(Self(tokenizer))
    }

    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.0.encode(text, true).map_err(|source| Error::data(format!("a text that the tokenizer refuses: {source}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.0.decode(tokens, true).map_err(|source| Error::data(format!("tokens that the tokenizer refuses: {source}")))
    }

    pub fn len(&self) -> usize {
        self.0.get_vocab_size(true)
    }
}
