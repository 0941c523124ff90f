//! The accuracy cost of cache formats: the errors of attention over an encoder's keys and values
//! after quantisation.

use std::path::Path;

use rayon::prelude::*;
use tectum::{
    AttentionSizes, CacheFormats, DType, Device, Error, Executable, PlanBuilder, Result, Session,
    View,
};

use super::{Config, SafetensorsWeights};

/// The cost of one pair of formats on a text.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheError {
    /// The formats.
    pub formats: CacheFormats,
    /// Tokens of the text.
    pub tokens: usize,
    /// The error of attention's output in each layer: |actual − expected| / |expected| over all
    /// tokens and columns.
    pub layers: Vec<f64>,
    /// Bytes per value in rows or blocks of the formats.
    pub block_bytes: f64,
    /// Bytes per value of a whole cache with room for this text.
    pub total_bytes: f64,
}

impl CacheError {
    /// The error of the worst layer.
    pub fn worst(&self) -> f64 {
        self.layers.iter().copied().fold(0.0, f64::max)
    }
}

/// Runs an encoder over a text once with attention in float64, and once for each pair of formats
/// with attention on the session's device over caches, whose output feeds the later layers. Every
/// token attends to all others; everything except attention is float64 on the host.
///
/// # Errors
/// Errors of reading the folder; `Invalid` for no tokens, more than the model's maximum, or an
/// unknown token; device errors.
pub fn cache_errors(
    folder: &Path,
    session: &mut Session,
    tokens: &[u32],
) -> Result<Vec<CacheError>> {
    let config = Config::read(folder)?;
    let (max_tokens, known) = (config.max_position_embeddings, config.vocab_size);
    if !(1..=max_tokens).contains(&tokens.len()) {
        return Err(Error::invalid(format!(
            "{} tokens; the model takes 1 to {max_tokens}",
            tokens.len()
        )));
    }
    if let Some(token) = tokens.iter().find(|token| **token as usize >= known) {
        return Err(Error::invalid(format!(
            "token {token}; the model has {known}"
        )));
    }
    let model = Model::read(folder, &config)?;
    let heads = config.num_attention_heads;
    let start = model.embed(tokens);
    let mut wanted = Vec::new();
    model.run(start.clone(), |qkv| {
        let made = attend(qkv, heads, config.hidden_size);
        wanted.push(made.clone());
        Ok(made)
    })?;
    let mut errors_of = |formats: CacheFormats| {
        let mut cached =
            CachedAttention::compile(session.device(), &config, tokens.len(), formats)?;
        let mut layers = Vec::new();
        model.run(start.clone(), |qkv| {
            let made = cached.attend(qkv, session)?;
            layers.push(distance(&made, &wanted[layers.len()]));
            Ok(made)
        })?;
        let columns = config.hidden_size;
        let total: usize = formats
            .each()
            .iter()
            .map(|format| 4 * format.words(tokens.len(), columns))
            .sum();
        let total_bytes = total as f64 / (2 * tokens.len() * columns) as f64;
        Ok(CacheError {
            formats,
            tokens: tokens.len(),
            layers,
            block_bytes: formats.bytes_per_value(columns),
            total_bytes,
        })
    };
    CacheFormats::ALL.into_iter().map(&mut errors_of).collect()
}

fn distance(made: &[f64], wanted: &[f64]) -> f64 {
    let square = |terms: &mut dyn Iterator<Item = f64>| terms.map(|x| x * x).sum::<f64>();
    (square(&mut made.iter().zip(wanted).map(|(made, wanted)| made - wanted))
        / square(&mut wanted.iter().copied()))
    .sqrt()
}

/// Attention of each head of rows q, k, v [T, 3 · D] over all rows.
fn attend(qkv: &[f64], heads: usize, width: usize) -> Vec<f64> {
    let (head_width, tokens) = (width / heads, qkv.len() / (3 * width));
    let at = |token: usize, part: usize, head: usize| {
        &qkv[token * 3 * width + part * width + head * head_width..][..head_width]
    };
    let mut made = vec![0.0; tokens * width];
    for (token, head) in (0..tokens).flat_map(|token| (0..heads).map(move |head| (token, head))) {
        let q = at(token, 0, head);
        let score = |key: usize| {
            q.iter()
                .zip(at(key, 1, head))
                .map(|(q, k)| q * k)
                .sum::<f64>()
                / (head_width as f64).sqrt()
        };
        let scores: Vec<f64> = (0..tokens).map(score).collect();
        let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - greatest).exp()).sum();
        let made = &mut made[token * width + head * head_width..][..head_width];
        for (key, score) in scores.iter().enumerate() {
            let weight = (score - greatest).exp() / total;
            made.iter_mut()
                .zip(at(key, 2, head))
                .for_each(|(made, v)| *made += weight * v);
        }
    }
    made
}

/// Attention over caches on a device: one run stores all tokens, then one attends from all of them
/// to the cache.
struct CachedAttention {
    run: Executable,
    operands: [View; 3],
    spans: View,
    made: View,
    width: usize,
}

impl CachedAttention {
    fn compile(
        device: &Device,
        config: &Config,
        tokens: usize,
        formats: CacheFormats,
    ) -> Result<CachedAttention> {
        let (width, heads) = (config.hidden_size, config.num_attention_heads);
        let mut plan = PlanBuilder::new(format!("cache of {formats}"));
        let operands = ["q", "k", "v"].map(|name| plan.input(name, DType::F32, tokens * width));
        let spans = plan.input("spans", DType::U32, 2);
        let caches = ["keys", "values"].into_iter().zip(formats.each());
        let caches: Vec<_> = caches
            .map(|(name, format)| {
                (
                    plan.state(name, format.dtype(), format.words(tokens, width)),
                    format,
                )
            })
            .collect();
        let made = plan.output("made", DType::F32, tokens * width);
        let sizes = AttentionSizes {
            batch: 1,
            queries: tokens,
            keys: tokens,
            heads,
            kv_heads: heads,
            width: width / heads,
        };
        let scale = (1.0 / ((width / heads) as f64).sqrt()) as f32;
        plan.attention_cached(
            operands.map(|view| (view, width, 0)),
            [caches[0], caches[1]],
            spans,
            made,
            sizes,
            scale,
        )?;
        Ok(CachedAttention {
            run: plan.finish()?.compile(device)?,
            operands,
            spans,
            made,
            width,
        })
    }

    fn attend(&mut self, qkv: &[f64], session: &mut Session) -> Result<Vec<f64>> {
        for (part, view) in self.operands.into_iter().enumerate() {
            let rows = qkv
                .chunks_exact(3 * self.width)
                .flat_map(|row| &row[part * self.width..][..self.width]);
            self.run
                .input::<f32>(view)
                .iter_mut()
                .zip(rows)
                .for_each(|(to, &x)| *to = x as f32);
        }
        let tokens = (qkv.len() / (3 * self.width)) as u32;
        for spans in [[0, tokens], [tokens, 0]] {
            self.run.input::<u32>(self.spans).copy_from_slice(&spans);
            session.run(&mut self.run)?;
        }
        Ok(self
            .run
            .output::<f32>(self.made)
            .iter()
            .map(|&x| f64::from(x))
            .collect())
    }
}

/// Rows that use a row of weights while it is in the cache.
const ROWS: usize = 16;

/// A matrix [out, in] with a bias [out].
struct Dense {
    weight: Vec<f64>,
    bias: Vec<f64>,
}

impl Dense {
    /// x·Wᵀ + b for each row.
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let (inner, columns) = (self.weight.len() / self.bias.len(), self.bias.len());
        let product = |row: &[f64], weight: &[f64]| {
            let mut lanes = [0.0; 8];
            for (x, w) in row.as_chunks::<8>().0.iter().zip(weight.as_chunks::<8>().0) {
                (0..8).for_each(|lane| lanes[lane] += x[lane] * w[lane]);
            }
            let whole = inner / 8 * 8;
            lanes.iter().sum::<f64>()
                + row[whole..]
                    .iter()
                    .zip(&weight[whole..])
                    .map(|(x, w)| x * w)
                    .sum::<f64>()
        };
        let mut made = vec![0.0; x.len() / inner * columns];
        made.par_chunks_mut(ROWS * columns)
            .zip(x.par_chunks(ROWS * inner))
            .for_each(|(made, x)| {
                let weights = self.weight.chunks_exact(inner).zip(&self.bias);
                for (column, (weight, bias)) in weights.enumerate() {
                    for (made, row) in made.chunks_exact_mut(columns).zip(x.chunks_exact(inner)) {
                        made[column] = product(row, weight) + bias;
                    }
                }
            });
        made
    }
}

/// A gain and a bias, both [D].
struct Norm([Vec<f64>; 2]);

struct Layer {
    qkv: Dense,
    output: Dense,
    output_norm: Norm,
    middle: Dense,
    last: Dense,
    last_norm: Norm,
}

struct Model<'a> {
    config: &'a Config,
    /// The tables of tokens, positions and types, [rows, D].
    tables: [Vec<f64>; 3],
    norm: Norm,
    layers: Vec<Layer>,
}

impl Model<'_> {
    fn read<'a>(folder: &Path, config: &'a Config) -> Result<Model<'a>> {
        let file = SafetensorsWeights::open(folder)?;
        let read = |name: String, shape: &[usize]| -> Result<Vec<f64>> {
            let mut data = vec![0.0f32; shape.iter().product()];
            file.read(&name, shape, &mut data)?;
            Ok(data.into_iter().map(f64::from).collect())
        };
        let (width, middle) = (config.hidden_size, config.intermediate_size);
        let table = |kind: &str, rows: usize| {
            read(
                format!("embeddings.{kind}_embeddings.weight"),
                &[rows, width],
            )
        };
        let dense = |name: &str, [out, inner]: [usize; 2]| -> Result<Dense> {
            Ok(Dense {
                weight: read(format!("{name}.weight"), &[out, inner])?,
                bias: read(format!("{name}.bias"), &[out])?,
            })
        };
        let norm = |name: &str| -> Result<Norm> {
            Ok(Norm([
                read(format!("{name}.weight"), &[width])?,
                read(format!("{name}.bias"), &[width])?,
            ]))
        };
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let name = format!("encoder.layer.{layer}");
            let mut qkv = Dense {
                weight: Vec::new(),
                bias: Vec::new(),
            };
            for part in ["query", "key", "value"] {
                let part = dense(&format!("{name}.attention.self.{part}"), [width, width])?;
                qkv.weight.extend(part.weight);
                qkv.bias.extend(part.bias);
            }
            layers.push(Layer {
                qkv,
                output: dense(&format!("{name}.attention.output.dense"), [width, width])?,
                output_norm: norm(&format!("{name}.attention.output.LayerNorm"))?,
                middle: dense(&format!("{name}.intermediate.dense"), [middle, width])?,
                last: dense(&format!("{name}.output.dense"), [width, middle])?,
                last_norm: norm(&format!("{name}.output.LayerNorm"))?,
            });
        }
        let places = table("position", config.max_position_embeddings)?;
        let tables = [
            table("word", config.vocab_size)?,
            places,
            table("token_type", config.type_vocab_size)?,
        ];
        config.activation()?;
        Ok(Model {
            config,
            tables,
            norm: norm("embeddings.LayerNorm")?,
            layers,
        })
    }

    fn embed(&self, tokens: &[u32]) -> Vec<f64> {
        let width = self.config.hidden_size;
        let [words, places, kinds] = &self.tables;
        let at = |place: usize, column: usize| {
            words[tokens[place] as usize * width + column]
                + places[place * width + column]
                + kinds[column]
        };
        let sum: Vec<f64> = (0..tokens.len() * width)
            .map(|index| at(index / width, index % width))
            .collect();
        self.normed(&self.norm, sum)
    }

    fn normed(&self, Norm([gain, bias]): &Norm, mut x: Vec<f64>) -> Vec<f64> {
        let width = self.config.hidden_size;
        for row in x.chunks_exact_mut(width) {
            let mean = row.iter().sum::<f64>() / width as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / width as f64;
            let inverse = 1.0 / (variance + f64::from(self.config.layer_norm_eps)).sqrt();
            row.iter_mut()
                .zip(gain.iter().zip(bias))
                .for_each(|(x, (gain, bias))| *x = (*x - mean) * inverse * gain + bias);
        }
        x
    }

    /// All layers; the caller provides attention from queries, keys and values [T, 3 · D].
    fn run(
        &self,
        mut x: Vec<f64>,
        mut attend: impl FnMut(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let activation = self.config.activation()?;
        let sum = |a: Vec<f64>, b: &[f64]| {
            a.into_iter()
                .zip(b)
                .map(|(a, b)| a + b)
                .collect::<Vec<f64>>()
        };
        for layer in &self.layers {
            let attended = attend(&layer.qkv.apply(&x))?;
            x = self.normed(&layer.output_norm, sum(layer.output.apply(&attended), &x));
            let middle: Vec<f64> = layer
                .middle
                .apply(&x)
                .into_par_iter()
                .map(|x| activation.reference(x))
                .collect();
            x = self.normed(&layer.last_norm, sum(layer.last.apply(&middle), &x));
        }
        Ok(x)
    }
}
