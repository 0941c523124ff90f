//! The tokenizer of the `tokenizers` crate.

use tectum::{Error, Result};
use tokenizers::{PostProcessor as _, TruncationParams};

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

    /// The tokens of a text, and the number of those that were cut off.
    pub fn encode(&self, text: &str) -> Result<(Vec<u32>, usize)> {
        let encode = |special: bool| self.0.encode(text, special).map_err(|source| Error::data(format!("a text that the tokenizer refuses: {source}")));
        let tokens = encode(true)?;
        if tokens.get_overflowing().is_empty() {
            return Ok((tokens.get_ids().to_vec(), 0));
        }
        // Without special tokens the parts are the text's tokens, each once.
        let plain = encode(false)?;
        let all = plain.len() + plain.get_overflowing().iter().map(tokenizers::Encoding::len).sum::<usize>();
        let special = self.0.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        Ok((tokens.get_ids().to_vec(), (all + special).saturating_sub(tokens.len())))
    }

    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.0.decode(tokens, true).map_err(|source| Error::data(format!("tokens that the tokenizer refuses: {source}")))
    }

    pub fn len(&self) -> usize {
        self.0.get_vocab_size(true)
    }
}
