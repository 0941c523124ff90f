//! Generation: a prompt, then token by token.

use std::ops::ControlFlow;
use std::time::Instant;

use tectum::{Error, Result};

use super::decoder::place;
use super::text_stream::TextStream;
use super::{Decoder, Sampler, SamplingParams, Tokens};

/// Options of a generation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerateOptions {
    /// Maximum tokens. Default: 0, which only runs the prompt.
    pub max_new_tokens: usize,
    /// How they are sampled. Default: greedily.
    pub sampling: SamplingParams,
    /// Texts to stop at, which are not returned; they need a tokenizer. Default: none.
    pub stop_sequences: Vec<String>,
    /// Tokens to stop at, which are not returned. Default: none.
    pub end: Vec<u32>,
}

/// Why a generation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The maximum number of tokens.
    Length,
    /// No room in the context.
    Context,
    /// A token to stop at.
    Token(u32),
    /// A text to stop at.
    Text(String),
    /// The caller broke it off.
    Cancelled,
}

/// Receives text as it becomes final, and says whether the generation continues.
trait Show: FnMut(&str) -> Result<ControlFlow<()>> {}

impl<F: FnMut(&str) -> Result<ControlFlow<()>>> Show for F {}

/// The result of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// The sampled tokens, without a stop token.
    pub tokens: Vec<u32>,
    /// Their text up to a stop text; none without a tokenizer.
    pub text: Option<String>,
    /// Why it ended.
    pub end: FinishReason,
    /// Seconds that the prompt took, with those of texts of the same batch, to the scores of the
    /// first token.
    pub prefill_s: f64,
    /// Tokens that were run one at a time, each for the scores of the next.
    pub decoded: usize,
    /// Seconds that those took, with those of texts of the same batch; choosing is not counted.
    pub decode_s: f64,
}

/// Feeds a prompt to a decoder and samples tokens until there are enough, the context is full, a
/// stop token or text occurs, or `show` breaks it off; what was generated until then is returned.
/// `show` receives the text as it becomes final, without a tokenizer each token's number and a
/// space.
///
/// The context continues: it ends with the generated tokens, and the prompt of the next call follows
/// them. The last of them has not run yet: it runs with that prompt.
///
/// # Errors
/// `Invalid` for texts to stop at without a tokenizer, an empty text to stop at, or as
/// [`Decoder::feed`] and [`Sampler::new`]; as [`Sampler::sample`]; errors of `show`.
pub fn generate(
    decoder: &mut Decoder,
    tokens: Option<&Tokens>,
    prompt: &[u32],
    options: &GenerateOptions,
    mut show: impl FnMut(&str) -> Result<ControlFlow<()>>,
) -> Result<Generation> {
    let mut made = generate_each(decoder, tokens, &[prompt], options, |_, text| show(text))?;
    made.pop().ok_or_else(|| Error::invalid("no prompt"))
}

/// As [`generate`], with a prompt for each text of the decoder: their tokens run as a batch until
/// each has ended. `show` also receives the text's index, and breaks off that text alone. Text `i`
/// draws from seed + `i`.
///
/// # Errors
/// As [`generate`] and [`Decoder::feed_each`]; `Invalid` for a prompt of no tokens.
pub fn generate_each(
    decoder: &mut Decoder,
    tokens: Option<&Tokens>,
    prompts: &[&[u32]],
    options: &GenerateOptions,
    mut show: impl FnMut(usize, &str) -> Result<ControlFlow<()>>,
) -> Result<Vec<Generation>> {
    if options.stop_sequences.iter().any(String::is_empty) {
        return Err(Error::invalid("a text to stop at is empty"));
    }
    if tokens.is_none() && !options.stop_sequences.is_empty() {
        return Err(Error::invalid(
            "a text to stop at needs the model's tokenizer.json, which is missing",
        ));
    }
    if let Some(text) = prompts.iter().position(|prompt| prompt.is_empty()) {
        return Err(Error::invalid(format!(
            "{}the prompt has no tokens",
            place(text, prompts.len())
        )));
    }
    let known = decoder.sizes().vocab_size;
    let mut texts = Vec::with_capacity(prompts.len());
    for (index, prompt) in prompts.iter().enumerate() {
        let strange = prompt.iter().find(|token| **token as usize >= known);
        if let (Some(token), Some(tokens)) = (strange, tokens) {
            return Err(Error::invalid(format!(
                "{}token {}; the model has {known}",
                place(index, prompts.len()),
                tokens.describe(*token)
            )));
        }
        let before = [decoder.tokens_of(index), prompt].concat();
        texts.push(Text::new(
            tokens,
            (prompt.len(), &before),
            options,
            index,
            known,
        )?);
    }
    let start = Instant::now();
    let mut scores = decoder.feed_each(prompts)?;
    let prefill_s = start.elapsed().as_secs_f64();
    texts
        .iter_mut()
        .for_each(|text| text.made.prefill_s = prefill_s);
    let mut next = vec![[0u32; 1]; texts.len()];
    loop {
        for (index, (text, next)) in texts
            .iter_mut()
            .zip(&mut next)
            .enumerate()
            .filter(|(_, (text, _))| !text.is_done)
        {
            text.choose(
                &scores[index * known..][..known],
                options,
                next,
                &mut |shown| show(index, shown),
            )?;
        }
        for (index, text) in texts
            .iter_mut()
            .enumerate()
            .filter(|(_, text)| !text.is_done)
        {
            if decoder.len_of(index) == decoder.capacity() {
                (text.is_done, text.made.end) = (true, FinishReason::Context);
            }
        }
        if texts.iter().all(|text| text.is_done) {
            break;
        }
        let now: Vec<&[u32]> = texts
            .iter()
            .zip(&next)
            .map(|(text, next)| if text.is_done { &[][..] } else { next })
            .collect();
        let start = Instant::now();
        scores = decoder.feed_each(&now)?;
        let seconds = start.elapsed().as_secs_f64();
        for made in texts
            .iter_mut()
            .filter(|text| !text.is_done)
            .map(|text| &mut text.made)
        {
            made.decode_s += seconds;
            made.decoded += 1;
        }
    }
    for (index, text) in texts.iter().enumerate() {
        if let Some(token) = text.made.tokens.get(text.made.decoded) {
            decoder.defer(index, *token);
        }
    }
    texts
        .into_iter()
        .enumerate()
        .map(|(index, text)| text.finish(&mut |shown| show(index, shown)))
        .collect()
}

/// A text in generation.
struct Text<'a> {
    made: Generation,
    sampler: Sampler,
    stream: Option<TextStream<'a>>,
    is_done: bool,
}

impl<'a> Text<'a> {
    /// A text after the tokens `before`, of which the last `prompt` are new.
    fn new(
        tokens: Option<&'a Tokens>,
        (prompt, before): (usize, &[u32]),
        options: &'a GenerateOptions,
        index: usize,
        known: usize,
    ) -> Result<Text<'a>> {
        let seed = options.sampling.seed.wrapping_add(index as u64);
        let mut sampler = Sampler::new(
            SamplingParams {
                seed,
                ..options.sampling
            },
            known,
        )?;
        sampler.accept(before);
        let made = Generation {
            prompt,
            // Grows with the tokens: the requested maximum may be more than fits.
            tokens: Vec::new(),
            text: tokens.map(|_| String::new()),
            end: FinishReason::Length,
            prefill_s: 0.0,
            decoded: 0,
            decode_s: 0.0,
        };
        let stream = tokens
            .map(|tokens| TextStream::new(tokens, &options.stop_sequences, before))
            .transpose()?;
        Ok(Text {
            made,
            sampler,
            stream,
            is_done: options.max_new_tokens == 0,
        })
    }

    /// Samples the next token from its scores and takes it; `next` must run if the text is not
    /// done.
    fn choose(
        &mut self,
        scores: &[f32],
        options: &GenerateOptions,
        next: &mut [u32; 1],
        show: &mut impl Show,
    ) -> Result<()> {
        *next = [self.sampler.sample(scores)?];
        if let Some(end) = self
            .made
            .take(next[0], options, self.stream.as_mut(), show)?
        {
            (self.is_done, self.made.end) = (true, end);
        }
        self.is_done |= self.made.tokens.len() >= options.max_new_tokens;
        Ok(())
    }

    /// Shows the text that was held back.
    fn finish(mut self, show: &mut impl Show) -> Result<Generation> {
        if let (Some(stream), false) = (
            &mut self.stream,
            matches!(
                self.made.end,
                FinishReason::Text(_) | FinishReason::Cancelled
            ),
        ) {
            let rest = stream.finish()?;
            // Nothing is left to break off.
            let _ = self.made.add(&rest, show)?;
        }
        Ok(self.made)
    }
}

impl Generation {
    /// Takes a sampled token; returns the reason if it is the last.
    fn take(
        &mut self,
        token: u32,
        options: &GenerateOptions,
        stream: Option<&mut TextStream<'_>>,
        show: &mut impl Show,
    ) -> Result<Option<FinishReason>> {
        if options.end.contains(&token) {
            return Ok(Some(FinishReason::Token(token)));
        }
        self.tokens.push(token);
        let (shown, stop) = match stream {
            None => (show(&format!("{token} "))?, None),
            Some(stream) => {
                let (text, stop) = stream.push(token)?;
                (
                    self.add(&text, show)?,
                    stop.map(|stop| FinishReason::Text(stop.to_owned())),
                )
            }
        };
        Ok(stop.or_else(|| shown.is_break().then_some(FinishReason::Cancelled)))
    }

    /// Adds text and shows it.
    fn add(&mut self, text: &str, show: &mut impl Show) -> Result<ControlFlow<()>> {
        if text.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(whole) = &mut self.text {
            whole.push_str(text);
        }
        show(text)
    }
}
