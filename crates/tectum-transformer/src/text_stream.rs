//! Streaming text of tokens, held back until it is final.

use tectum::Result;

use super::Tokens;

/// Replacement for bytes of an incomplete character.
const INCOMPLETE: char = '\u{fffd}';
/// Tokens before the text that are decoded with it, if they have a text.
const MIN_CONTEXT: usize = 8;

/// Converts tokens to text piece by piece: a piece is returned once its characters are complete and
/// no stop text can begin in it.
#[derive(Debug)]
pub(super) struct TextStream<'a> {
    tokens: &'a Tokens,
    stops: &'a [String],
    /// The last tokens before the text, then those of the text.
    ids: Vec<u32>,
    /// Tokens before `read` are completely decoded; those from `context` to `read` are decoded
    /// again only because a token's text may depend on the preceding tokens.
    context: usize,
    read: usize,
    /// Complete characters that may be the beginning of a stop text.
    held: String,
}

impl<'a> TextStream<'a> {
    /// The text of the tokens that follow those `before`: tokenizers drop the space before the first
    /// word of all, so that the first word is decoded after what precedes it.
    pub fn new(tokens: &'a Tokens, stops: &'a [String], before: &[u32]) -> Result<Self> {
        let ids = tail(tokens, before)?.to_vec();
        Ok(TextStream {
            tokens,
            stops,
            context: 0,
            read: ids.len(),
            ids,
            held: String::new(),
        })
    }

    /// Takes one token; returns the text that is now final, and the stop text if it has occurred.
    pub fn push(&mut self, token: u32) -> Result<(String, Option<&'a str>)> {
        self.ids.push(token);
        let new = self.unread()?;
        if !new.is_empty() && !new.ends_with(INCOMPLETE) {
            self.held.push_str(&new);
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
        let new = self.unread()?;
        Ok(std::mem::take(&mut self.held) + &new)
    }

    /// The text of the tokens that are not decoded yet.
    fn unread(&self) -> Result<String> {
        let known = self.tokens.decode(&self.ids[self.context..self.read])?;
        let text = self.tokens.decode(&self.ids[self.context..])?;
        // The tokens before may end within a character, which the new ones complete.
        let new = text
            .strip_prefix(&known)
            .or_else(|| text.strip_prefix(known.trim_end_matches(INCOMPLETE)))
            .or_else(|| text.get(known.len()..));
        Ok(new.unwrap_or_default().to_owned())
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

/// The last tokens, enough to have a text that begins with a whole character; all of them if there
/// is none.
fn tail<'t>(tokens: &Tokens, before: &'t [u32]) -> Result<&'t [u32]> {
    let mut len = MIN_CONTEXT;
    while len < before.len() {
        let last = &before[before.len() - len..];
        let text = tokens.decode(last)?;
        if !text.is_empty() && !text.starts_with(INCOMPLETE) {
            return Ok(last);
        }
        len *= 2;
    }
    Ok(before)
}

#[cfg(all(test, feature = "tokenizers"))]
mod tests {
    use super::*;

    /// A tokenizer of 256 bytes and some words with a space before them, which drops the first space
    /// of all.
    fn tokens() -> Tokens {
        let mut vocabulary = serde_json::Map::new();
        for byte in 0..256 {
            vocabulary.insert(format!("<0x{byte:02X}>"), byte.into());
        }
        for (index, word) in ["<s>", "▁", "▁one", "▁two", "three"]
            .into_iter()
            .enumerate()
        {
            vocabulary.insert(word.to_owned(), (256 + index).into());
        }
        let file = serde_json::json!({
            "version": "1.0",
            "added_tokens": [{"id": 256, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}
            ]},
            "model": {"type": "BPE", "byte_fallback": true, "vocab": vocabulary, "merges": []}
        });
        let folder = std::env::temp_dir().join(format!("tectum-stream-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        tectum::file::write(&folder.join("tokenizer.json"), file.to_string().as_bytes())
            .expect("writable");
        let tokens = Tokens::read(&folder, None).expect("reads");
        std::fs::remove_dir_all(&folder).expect("writable");
        tokens
    }

    /// Pieces after each token, and what is left at the end.
    fn pieces(tokens: &Tokens, before: &[u32], after: &[u32]) -> Vec<String> {
        let mut stream = TextStream::new(tokens, &[], before).expect("decodes");
        let mut pieces: Vec<String> = after
            .iter()
            .map(|token| stream.push(*token).expect("decodes").0)
            .collect();
        pieces.push(stream.finish().expect("decodes"));
        pieces
    }

    #[test]
    fn pieces_continue_the_tokens_before_them() {
        let tokens = tokens();
        // é and € in bytes.
        let (accent, euro) = ([0xc3u32, 0xa9], [0xe2u32, 0x82, 0xac]);
        let many = [258u32; 40];
        let special = [&[259u32][..], &[256; 40]].concat();
        let broken = [&[258u32][..], &accent[1..], &[256; 8]].concat();
        let cases: &[(&[u32], &[u32], &[&str])] = &[
            (&[], &[258, 259], &["one", " two", ""]),
            (&[256], &[258, 259], &["one", " two", ""]),
            (
                &[256, 258],
                &[259, 260, 258],
                &[" two", "three", " one", ""],
            ),
            (&many, &[258, 260], &[" one", "three", ""]),
            (&special, &[258], &[" one", ""]),
            (&[258], &[256, 259], &["", " two", ""]),
            (&[258], &[257, 257, 260], &[" ", " ", "three", ""]),
            // A character in parts, begun in the prompt or not.
            (&[258], &euro, &["", "", "€", ""]),
            (&[258, 0xc3], &[0xa9, 259], &["é", " two", ""]),
            (&[0xe2], &[0x82, 0xac], &["", "€", ""]),
            (&accent, &accent, &["", "é", ""]),
            (&[258], &euro[..2], &["", "", "��"]),
            (&broken, &[259], &[" two", ""]),
        ];
        for (before, after, expected) in cases {
            assert_eq!(
                pieces(&tokens, before, after),
                *expected,
                "{before:?}, {after:?}"
            );
        }
    }
}
