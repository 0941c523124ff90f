//! The text of tokens as they come, held back where it is not certain yet.

use tectum::Result;

use super::Tokens;

/// What stands for bytes that are no whole character.
const INCOMPLETE: char = '\u{fffd}';

/// Turns tokens into text piece by piece: a piece is given once its characters are whole and no text to stop at can begin in it.
#[derive(Debug)]
pub(super) struct TextStream<'a> {
    tokens: &'a Tokens,
    stops: &'a [String],
    ids: Vec<u32>,
    /// Tokens before it are given whole; the text of those from `context` to it is known and only there because a token's text may
    /// depend on what stands before.
    context: usize,
    read: usize,
    /// Whole characters that may be the beginning of a text to stop at.
    held: String,
}

impl<'a> TextStream<'a> {
    pub fn new(tokens: &'a Tokens, stops: &'a [String]) -> Self {
        TextStream { tokens, stops, ids: Vec::new(), context: 0, read: 0, held: String::new() }
    }

    /// Takes one token; gives the text that is certain now, and the text to stop at if it has come.
    pub fn push(&mut self, token: u32) -> Result<(String, Option<&'a str>)> {
        self.ids.push(token);
        let known = self.tokens.decode(&self.ids[self.context..self.read])?;
        let text = self.tokens.decode(&self.ids[self.context..])?;
        if text.len() > known.len() && !text.ends_with(INCOMPLETE) {
            self.held.push_str(text.get(known.len()..).unwrap_or_default());
            (self.context, self.read) = (self.read, self.ids.len());
        }
        let found = self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)));
        if let Some((at, stop)) = found.min_by_key(|(at, _)| *at) {
            self.held.truncate(at);
            return Ok((std::mem::take(&mut self.held), Some(stop)));
        }
        let certain = self.held.len() - self.partial_stop_len();
        let rest = self.held.split_off(certain);
        Ok((std::mem::replace(&mut self.held, rest), None))
    }

    /// What was held back until the end.
    pub fn finish(&mut self) -> Result<String> {
        let known = self.tokens.decode(&self.ids[self.context..self.read])?;
        let text = self.tokens.decode(&self.ids[self.context..])?;
        let held = std::mem::take(&mut self.held);
        Ok(held + text.get(known.len()..).unwrap_or_default())
    }

    /// Bytes at the end of what is held that a text to stop at may begin with.
    fn partial_stop_len(&self) -> usize {
        let begins = |stop: &String| (1..stop.len()).rev().find(|&len| stop.is_char_boundary(len) && self.held.ends_with(&stop[..len]));
        self.stops.iter().filter_map(begins).max().unwrap_or(0)
    }
}
