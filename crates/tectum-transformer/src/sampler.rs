//! Sampling of the next token from the scores of all tokens.

use tectum::kernel::random::philox;
use tectum::{Error, Result};

/// How tokens are sampled; the default always takes the highest score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingParams {
    /// Divisor of scores; 0 takes the highest score. Default: 0.0.
    pub temperature: f32,
    /// Number of highest scores to draw from; 0 for all. Default: 0.
    pub top_k: usize,
    /// Draws from the smallest set of highest scores whose probabilities sum to it; 1 for all.
    /// Default: 1.0.
    pub top_p: f32,
    /// Positive scores of tokens in the context are divided by it, other scores multiplied by it; 1
    /// for no penalty. Default: 1.0.
    pub repetition_penalty: f32,
    /// The same seed and scores give the same tokens. Default: 0.
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        SamplingParams {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            repetition_penalty: 1.0,
            seed: 0,
        }
    }
}

/// Samples the tokens of one context in sequence.
///
/// # Numerics
/// The order is penalty, temperature, `top_k`, `top_p`, draw; probabilities are float64. Among
/// equal scores the token with the lower number counts as higher. The n-th draw is 53 bits of
/// Philox at counter n under the seed.
/// # Source
/// Penalty: Keskar et al., *CTRL*, <https://arxiv.org/abs/1909.05858>, section 4.1; top-k: Fan et
/// al.,
/// <https://arxiv.org/abs/1805.04833>; top-p: Holtzman et al., <https://arxiv.org/abs/1904.09751>; in the order of Hugging Face
/// transformers' `generate`.
#[derive(Debug)]
pub struct Sampler {
    sampling: SamplingParams,
    draws: u32,
    /// Whether the context has each token.
    seen: Vec<bool>,
    /// In float64: a penalty near 0 makes scores that overflow f32.
    scores: Vec<f64>,
    /// Tokens; those to draw from come first.
    order: Vec<u32>,
}

impl Sampler {
    /// Creates a sampler with an empty context and `tokens` tokens.
    ///
    /// # Errors
    /// `Invalid` for a temperature below 0, `top_p` outside of (0, 1], a penalty that is not
    /// positive, or a NaN.
    pub fn new(sampling: SamplingParams, tokens: usize) -> Result<Sampler> {
        let SamplingParams {
            temperature,
            top_p,
            repetition_penalty,
            ..
        } = sampling;
        if !temperature.is_finite() || temperature < 0.0 {
            return Err(Error::invalid(format!(
                "temperature {temperature}; 0 or more is needed"
            )));
        }
        if top_p.is_nan() || top_p <= 0.0 || top_p > 1.0 {
            return Err(Error::invalid(format!(
                "top-p {top_p}; more than 0 and at most 1 is needed"
            )));
        }
        if !repetition_penalty.is_finite() || repetition_penalty <= 0.0 {
            return Err(Error::invalid(format!(
                "repetition penalty {repetition_penalty}; more than 0 is needed"
            )));
        }
        let order = (0..tokens as u32).collect();
        Ok(Sampler {
            sampling,
            draws: 0,
            seen: vec![false; tokens],
            scores: vec![0.0; tokens],
            order,
        })
    }

    /// Takes note of tokens that the context has.
    pub fn accept(&mut self, tokens: &[u32]) {
        for &token in tokens {
            if let Some(seen) = self.seen.get_mut(token as usize) {
                *seen = true;
            }
        }
    }

    /// Samples a token and adds it to the context. Allocates nothing.
    ///
    /// # Errors
    /// `Invalid` if the numbers of scores and tokens differ; `Mismatch` for a score of NaN or +∞,
    /// or if all are −∞: the model or its weights are faulty.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        if logits.len() != self.scores.len() {
            return Err(Error::invalid(format!(
                "{} scores for {} tokens",
                logits.len(),
                self.scores.len()
            )));
        }
        self.scores
            .iter_mut()
            .zip(logits)
            .for_each(|(score, &logit)| *score = f64::from(logit));
        if let Some(token) = self
            .scores
            .iter()
            .position(|score| score.is_nan() || *score == f64::INFINITY)
        {
            return Err(fault(format!(
                "token {token} has the score {}",
                self.scores[token]
            )));
        }
        if self.scores.iter().all(|score| *score == f64::NEG_INFINITY) {
            return Err(fault("no token has a score above −∞".to_owned()));
        }
        let penalty = f64::from(self.sampling.repetition_penalty);
        if penalty != 1.0 {
            for (score, _) in self
                .scores
                .iter_mut()
                .zip(&self.seen)
                .filter(|(_, seen)| **seen)
            {
                *score = if *score < 0.0 {
                    *score * penalty
                } else {
                    *score / penalty
                };
            }
        }
        let token = if self.sampling.temperature == 0.0 {
            self.greatest()
        } else {
            self.draw()
        };
        self.accept(&[token]);
        Ok(token)
    }

    fn greatest(&self) -> u32 {
        let mut greatest = 0;
        for (token, score) in self.scores.iter().enumerate() {
            if *score > self.scores[greatest] {
                greatest = token;
            }
        }
        greatest as u32
    }

    fn draw(&mut self) -> u32 {
        let SamplingParams {
            temperature,
            top_k,
            top_p,
            seed,
            ..
        } = self.sampling;
        let (scores, order) = (&self.scores, &mut self.order);
        let by_score = |a: &u32, b: &u32| {
            scores[*b as usize]
                .total_cmp(&scores[*a as usize])
                .then(a.cmp(b))
        };
        let mut count = order.len();
        if top_k > 0 && top_k < count {
            order.select_nth_unstable_by(top_k - 1, by_score);
            count = top_k;
        }
        order[..count].sort_unstable_by(by_score);
        let best = scores[order[0] as usize];
        let weight = |token: u32| ((scores[token as usize] - best) / f64::from(temperature)).exp();
        let mut total: f64 = order[..count].iter().map(|&token| weight(token)).sum();
        if top_p < 1.0 {
            let (wanted, mut sum) = (f64::from(top_p) * total, 0.0);
            let mut taken = 0;
            while taken < count && (taken == 0 || sum < wanted) {
                sum += weight(order[taken]);
                taken += 1;
            }
            (count, total) = (taken, sum);
        }
        let [low, high, ..] = philox([self.draws, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
        self.draws += 1;
        let uniform = ((u64::from(high) << 32 | u64::from(low)) >> 11) as f64 / (1u64 << 53) as f64;
        let (wanted, mut sum) = (uniform * total, 0.0);
        for &token in &order[..count] {
            sum += weight(token);
            if sum > wanted {
                return token;
            }
        }
        // Rounding may leave the last sum slightly below the total.
        order[count - 1]
    }
}

fn fault(message: String) -> Error {
    Error::new(tectum::ErrorKind::Mismatch, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tectum::ErrorKind;

    #[test]
    fn defect_19_scores_for_another_number_of_tokens_are_refused() {
        let mut none = Sampler::new(SamplingParams::default(), 0).expect("well formed");
        assert_eq!(
            none.sample(&[]).expect_err("nothing to choose").kind(),
            ErrorKind::Mismatch
        );
        let mut two = Sampler::new(SamplingParams::default(), 2).expect("well formed");
        assert_eq!(
            two.sample(&[1.0]).expect_err("one score is missing").kind(),
            ErrorKind::Invalid
        );
        assert_eq!(two.sample(&[1.0, 2.0]).expect("fits"), 1);
    }

    /// Divided by a penalty near 0, a score exceeds f32; two such scores must keep their order.
    #[test]
    fn defect_19_a_penalty_near_zero_keeps_the_order_of_scores() {
        for (temperature, repetition_penalty) in
            [(0.0, 1e-38), (1.0, 1e-38), (0.5, f32::MIN_POSITIVE)]
        {
            let mut sampler = Sampler::new(
                SamplingParams {
                    temperature,
                    repetition_penalty,
                    ..SamplingParams::default()
                },
                4,
            )
            .expect("well formed");
            sampler.accept(&[0, 1, 2]);
            assert_eq!(
                sampler.sample(&[1.0, -5.0, 3.0, 2.0]).expect("chooses"),
                2,
                "temperature {temperature}"
            );
        }
    }
}
