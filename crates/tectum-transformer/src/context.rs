//! The context of one text of a decoder: its tokens, how many of them are cached, and the parts in
//! which the rest runs.

use tectum::CacheFormats;
use tectum::operation::attention::cache_format::quantized_tokens;

/// Maximum tokens of a run; longer texts run in parts, so that few plans cover all lengths.
pub const MAX_PREFILL_CHUNK: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    /// Tokens of the text.
    pub token_ids: Vec<u32>,
    /// How many of them are cached; the others run with the next ones.
    pub cached: usize,
}

impl Context {
    /// Runs that the uncached tokens need.
    pub fn runs(&self) -> usize {
        (self.token_ids.len() - self.cached).div_ceil(MAX_PREFILL_CHUNK)
    }

    /// The part to run now if `after` runs follow: the next part, or nothing if the rest needs no
    /// more than `after` runs. So every text ends in the last run.
    pub fn chunk(&self, after: usize) -> &[u32] {
        let rest = &self.token_ids[self.cached..];
        if self.runs() > after {
            &rest[..rest.len().min(MAX_PREFILL_CHUNK)]
        } else {
            &[]
        }
    }

    /// Removes the uncached tokens.
    pub fn drop_uncached(&mut self) {
        self.token_ids.truncate(self.cached);
    }

    /// Removes the tokens from `len` on; a quantised cache can be truncated only to whole windows,
    /// except the last one.
    pub fn truncate(&mut self, len: usize, formats: CacheFormats) {
        self.token_ids.truncate(len);
        let len = self.token_ids.len();
        if len < self.cached {
            let whole = if formats.each().iter().any(|format| format.is_quantized()) {
                quantized_tokens(self.cached)
            } else {
                0
            };
            self.cached = if len >= whole {
                len
            } else {
                quantized_tokens(len)
            };
        }
    }
}

/// The tokens of each plan that texts of these lengths need, including one token at a time.
pub(super) fn plans_for(texts: &[usize]) -> impl Iterator<Item = usize> {
    let has_whole = texts.iter().any(|tokens| *tokens > MAX_PREFILL_CHUNK);
    let last = texts
        .iter()
        .filter_map(|tokens| tokens.checked_sub(1))
        .map(|before| before % MAX_PREFILL_CHUNK + 1)
        .max();
    has_whole
        .then_some(MAX_PREFILL_CHUNK)
        .into_iter()
        .chain(last.map(bucket_of))
        .chain([1])
}

/// The tokens of the plan that runs `tokens` tokens: a single token is not padded.
pub(super) fn bucket_of(tokens: usize) -> usize {
    if tokens == 1 { 1 } else { bucket(tokens) }
}

/// The length that a text is padded to: multiples of 8 up to 64, of 16 up to 128, then of 32.
pub(super) fn bucket(tokens: usize) -> usize {
    tokens.next_multiple_of(match tokens {
        0..=64 => 8,
        65..=128 => 16,
        _ => 32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts run as in the decoder: all end in the last run, in the same parts as alone, with the
    /// predicted plans.
    #[test]
    fn texts_end_together_in_plans_that_are_known() {
        for lens in [
            vec![1],
            vec![256],
            vec![257, 3],
            vec![600, 100, 256, 1, 0],
            vec![9, 512, 513],
        ] {
            let mut contexts: Vec<Context> = lens
                .iter()
                .map(|&len| Context {
                    token_ids: (0..len as u32).collect(),
                    cached: 0,
                })
                .collect();
            let plans: Vec<usize> = plans_for(&lens).collect();
            let runs = contexts.iter().map(Context::runs).max().expect("texts");
            for after in (0..runs).rev() {
                let parts: Vec<usize> = contexts
                    .iter()
                    .map(|context| context.chunk(after).len())
                    .collect();
                let most = *parts.iter().max().expect("texts");
                assert!(
                    plans.contains(&bucket_of(most)),
                    "{lens:?}: {most} of {plans:?}"
                );
                for (context, part) in contexts.iter_mut().zip(&parts) {
                    assert!(
                        *part == MAX_PREFILL_CHUNK
                            || context.cached + part == context.token_ids.len()
                            || *part == 0
                    );
                    assert_eq!(
                        after == 0 && !context.token_ids.is_empty(),
                        after == 0 && *part > 0,
                        "{lens:?}"
                    );
                    context.cached += part;
                }
            }
            assert!(contexts.iter().all(|context| context.cached == context.token_ids.len() && context.runs() == 0));
        }
    }
}
