//! A model in each format of its weights: speed, and accuracy compared with f32.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormats, Device, Receipt, Result, RunStats, Watch, WorkProgress};

use super::{Checkpoint, Decoder, Embedder, Encoder, Model};

/// Tokens of a text, of a prompt.
const TOKENS: usize = 128;
/// Texts, and positions of one text, whose results are compared.
const TEXTS: usize = 8;
const POSITIONS: usize = 64;
/// Runs whose median time is reported, after one that is not counted.
const RUNS: usize = 9;

/// A model in one format.
#[derive(Debug, Clone, Serialize)]
pub struct FormatMeasure {
    /// The format of the products' weights.
    pub weights: &'static str,
    /// Bytes of all weights on the device.
    pub weight_bytes: usize,
    /// Tokens of the text or prompt of one run.
    pub tokens: usize,
    /// Its tokens per second.
    pub tokens_per_s: f64,
    /// For a decoder: tokens per second, one at a time after those.
    pub decoded_per_s: Option<f64>,
    /// The accuracy of the results compared with f32.
    pub accuracy: Accuracy,
    /// Counters of the runs.
    pub receipt: Receipt,
}

/// Results compared with those of f32, over texts of uniformly random tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Accuracy {
    /// Of an encoder.
    Vectors {
        /// The minimum cosine of a text's vector with that of f32.
        min_cosine: f64,
    },
    /// Of a decoder.
    Scores {
        /// The mean Kullback-Leibler divergence of the next token's distribution from that of f32,
        /// in nats.
        mean_divergence: f64,
        /// The fraction of positions whose most likely token is the same.
        top1_agreement: f64,
    },
}

/// Measures a model in every format, f32 first; `watch` sees each format before it is measured.
/// Those so far are the result if it breaks the rest off.
///
/// # Errors
/// As [`Embedder::open`] and [`Decoder::open`]; `Cancelled` if the watch breaks off before the first
/// is measured.
pub fn measure_formats(
    path: &Path,
    device: &Device,
    watch: &mut Watch<'_>,
) -> Result<Vec<FormatMeasure>> {
    let (mut vectors, mut scores) = (Vec::new(), Vec::new());
    let model = Model::open(path)?;
    let mut measured = Vec::new();
    for format in PanelFormat::ALL {
        let progress = WorkProgress {
            stage: format.name(),
            done: measured.len() as u64,
            total: PanelFormat::ALL.len() as u64,
        };
        match progress.report(watch) {
            Err(_) if !measured.is_empty() => break,
            result => result?,
        }
        measured.push(match &model {
            Model::Decoder(model) => decoder(model, device, format, &mut scores)?,
            Model::Encoder(_) => encoder(path, device, format, &mut vectors)?,
        });
    }
    Ok(measured)
}

/// A pseudo-random token of a model with `known` tokens.
fn token(index: usize, known: usize) -> u32 {
    ((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % known.max(1) as u32
}

fn encoder(
    path: &Path,
    device: &Device,
    format: PanelFormat,
    exact: &mut Vec<Vec<f32>>,
) -> Result<FormatMeasure> {
    let mut embedder = Embedder::new(Encoder::read(path)?, device, Some(format))?;
    let (tokens, known) = (
        TOKENS.min(embedder.max_tokens()),
        embedder.config().vocab_size,
    );
    let text = |text: usize, len: usize| {
        (0..len)
            .map(|place| token(text * TOKENS + place, known))
            .collect::<Vec<u32>>()
    };
    // Short and long texts.
    let texts = (0..TEXTS)
        .map(|index| text(index, (tokens * (index + 1) / TEXTS).max(1)))
        .collect();
    let vectors: Vec<Vec<f32>> = embedder
        .embed_tokens(texts)?
        .into_iter()
        .map(|made| made.vector)
        .collect();
    if exact.is_empty() {
        exact.clone_from(&vectors);
    }
    let min_cosine = exact
        .iter()
        .zip(&vectors)
        .map(|(exact, made)| cosine(exact, made))
        .fold(f64::INFINITY, f64::min);
    embedder.embed_tokens(vec![text(0, tokens)])?;
    let seconds = median(|| embedder.run_again())?;
    Ok(FormatMeasure {
        weights: format.name(),
        weight_bytes: embedder.weight_bytes(),
        tokens,
        tokens_per_s: tokens as f64 / seconds,
        decoded_per_s: None,
        accuracy: Accuracy::Vectors { min_cosine },
        receipt: embedder.session().receipt(),
    })
}

fn decoder(
    model: &Checkpoint,
    device: &Device,
    format: PanelFormat,
    exact: &mut Vec<f32>,
) -> Result<FormatMeasure> {
    let mut decoder = Decoder::new(model, device, TOKENS + 1, CacheFormats::F32, Some(format))?;
    let known = decoder.sizes().vocab_size;
    let tokens = TOKENS.min(decoder.capacity() - 1).max(1);
    let text: Vec<u32> = (0..tokens).map(|place| token(place, known)).collect();
    let scores = decoder.feed_scored(&text[..POSITIONS.min(tokens)])?;
    if exact.is_empty() {
        exact.clone_from(&scores);
    }
    let accuracy = compare_scores(exact, &scores, known);
    decoder.truncate(0);
    decoder.feed(&text)?;
    let prompt = median(|| decoder.run_again())?;
    let next = if decoder.len() < decoder.capacity() {
        decoder.feed(&[token(tokens, known)])?;
        Some(median(|| decoder.run_again())?)
    } else {
        None
    };
    Ok(FormatMeasure {
        weights: format.name(),
        weight_bytes: decoder.weight_bytes(),
        tokens,
        tokens_per_s: tokens as f64 / prompt,
        decoded_per_s: next.map(|seconds| 1.0 / seconds),
        accuracy,
        receipt: decoder.session().receipt(),
    })
}

/// The median time of a run.
fn median(mut run: impl FnMut() -> Result<RunStats>) -> Result<f64> {
    run()?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

/// The cosine of the angle between two vectors of the same length; NaN if one is zero.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Rows of scores compared with those that are exact.
fn compare_scores(exact: &[f32], scores: &[f32], known: usize) -> Accuracy {
    let rows = exact.chunks_exact(known).zip(scores.chunks_exact(known));
    let (mut count, mut divergence, mut same) = (0.0, 0.0, 0.0);
    for (exact, scores) in rows {
        let (p, q) = (log_softmax(exact), log_softmax(scores));
        divergence += p
            .iter()
            .zip(&q)
            .map(|(p, q)| p.exp() * (p - q))
            .sum::<f64>();
        same += f64::from(u8::from(argmax(exact) == argmax(scores)));
        count += 1.0;
    }
    Accuracy::Scores {
        mean_divergence: divergence / count,
        top1_agreement: same / count,
    }
}

/// Log-probabilities of scores.
fn log_softmax(scores: &[f32]) -> Vec<f64> {
    let greatest = scores.iter().fold(f64::NEG_INFINITY, |greatest, score| {
        greatest.max(f64::from(*score))
    });
    let sum: f64 = scores
        .iter()
        .map(|score| (f64::from(*score) - greatest).exp())
        .sum();
    scores
        .iter()
        .map(|score| f64::from(*score) - greatest - sum.ln())
        .collect()
}

fn argmax(scores: &[f32]) -> Option<usize> {
    scores
        .iter()
        .enumerate()
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use tectum::ErrorKind;

    use super::*;

    fn sample(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("models")
            .join(name)
    }

    #[test]
    fn what_is_measured_when_the_watch_breaks_off_is_kept() {
        let device = Device::open("cpu").expect("cpu");
        let measure = |formats: u64| {
            measure_formats(&sample("sample-encoder"), &device, &mut |progress| {
                assert_eq!(progress.total, PanelFormat::ALL.len() as u64);
                if progress.done < formats {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
        };
        let two = measure(2).expect("two are measured");
        assert_eq!(two.len(), 2);
        assert_eq!(two[0].weights, "f32");
        let error = measure(0).expect_err("nothing is measured");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    /// The samples in every format: f32 is exact compared with itself, and each other format is as
    /// accurate as its bits allow.
    #[test]
    fn every_format_is_compared_with_f32() {
        let device = Device::open("cpu").expect("cpu");
        let encoder = measure_formats(
            &sample("sample-encoder"),
            &device,
            &mut WorkProgress::ignore,
        )
        .expect("measures");
        let decoder = measure_formats(
            &sample("sample-decoder"),
            &device,
            &mut WorkProgress::ignore,
        )
        .expect("measures");
        for (made, bound) in encoder.iter().zip([1e-12, 1e-5, 1e-3, 1e-2]) {
            let Accuracy::Vectors { min_cosine } = made.accuracy else {
                panic!("an encoder gives vectors")
            };
            assert!(1.0 - min_cosine <= bound, "{}: {min_cosine}", made.weights);
            assert!(
                made.tokens_per_s > 0.0 && made.decoded_per_s.is_none() && made.receipt.runs > 0
            );
        }
        for (made, bound) in decoder.iter().zip([0.0, 1e-6, 5e-3, 0.1]) {
            let Accuracy::Scores {
                mean_divergence,
                top1_agreement,
            } = made.accuracy
            else {
                panic!("a decoder gives scores")
            };
            assert!(
                (0.0..=bound).contains(&mean_divergence.max(0.0)) && top1_agreement > 0.8,
                "{}: {mean_divergence}, {top1_agreement}",
                made.weights
            );
            assert!(made.decoded_per_s.is_some_and(|rate| rate > 0.0));
        }
        assert_eq!(
            decoder.iter().map(|made| made.weights).collect::<Vec<_>>(),
            ["f32", "f16", "bf16", "int8"]
        );
        // The products' weights take half; tables and norms are unchanged.
        assert!(
            decoder[0].weight_bytes > decoder[1].weight_bytes
                && decoder[1].weight_bytes == decoder[2].weight_bytes
        );
    }
}
