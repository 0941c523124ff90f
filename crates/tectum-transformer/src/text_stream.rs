//! Streaming text of tokens, held back until it is final.

use tectum::Result;

use super::Tokens;

/// Replacement for bytes of an incomplete character.
const INCOMPLETE: char = '\u{fffd}';

/// Converts tokens to text piece by piece: a piece is returned once its characters are complete and
/// no stop text can begin in it.
#[derive(Debug)]
pub(super) struct TextStream<'a> {
    tokens: &'a Tokens,
    stops: &'a [String],
    ids: Vec<u32>,
    /// Tokens before `read` are completely decoded; those from `context` to `read` are decoded
    /// again only because a token's text may depend on the preceding tokens.
    context: usize,
    read: usize,
    /// Complete characters that may be the beginning of a stop text.
    held: String,
}

impl<'a> TextStream<'a> {
    pub fn new(tokens: &'a Tokens, stops: &'a [String]) -> Self {
        TextStream {
            tokens,
            stops,
            ids: Vec::new(),
            context: 0,
            read: 0,
            held: String::new(),
        }
    }

    /// Takes one token; returns the text that is now final, and the stop text if it has occurred.
    pub fn push(&mut self, token: u32) -> Result<(String, Option<&'a str>)> {
        self.ids.push(token);
        let known = self.tokens.decode(&self.ids[self.context..self.read])?;
        let text = self.tokens.decode(&self.ids[self.context..])?;
        if text.len() > known.len() && !text.ends_with(INCOMPLETE) {
            self.held
                .push_str(text.get(known.len()..).unwrap_or_default());
            (self.context, self.read) = (self.read, self.ids.len());
        }
        let found = self
            .stops
            .iter()
            .filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)));
        if let Some((at, stop)) = found.min_by_key(|(at, _)| *at) {
            self.held.truncate(at);
            return Ok((std::mem::take(&mut self.held), Some(stop)));
        }
        let certain = self.held.len() - self.partial_stop_len();
        let rest = self.held.split_off(certain);
        Ok((std::mem::replace(&mut self.held, rest), None))
    }

    /// The text that was held back until the end.
    pub fn finish(&mut self) -> Result<String> {
        let known = self.tokens.decode(&self.ids[self.context..self.read])?;
        let text = self.tokens.decode(&self.ids[self.context..])?;
        let held = std::mem::take(&mut self.held);
        Ok(held + text.get(known.len()..).unwrap_or_default())
    }

    /// Bytes at the end of the held text with which a stop text may begin.
    fn partial_stop_len(&self) -> usize {
        let begins = |stop: &String| {
            (1..stop.len())
                .rev()
                .find(|&len| stop.is_char_boundary(len) && self.held.ends_with(&stop[..len]))
        };
        self.stops.iter().filter_map(begins).max().unwrap_or(0)
    }
}
