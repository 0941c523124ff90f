//! Vectors of texts: tokens, batches of similar length, runs of the encoder.

use std::path::Path;
use std::sync::Arc;

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{
    CodeObject, Device, Error, Executable, LayoutPreferences, Result, RunStats, Session, View,
    Watch, WorkProgress,
};
use tectum_graph::Graph;

use super::context::bucket;
use super::device_weights::DeviceWeights;
use super::encoder::{Encoder, RecordedRun};
use super::head::{Head, HeadStep};
use super::{Config, Pooling, Tokens};

/// Maximum texts of a run; fewer run in powers of two, so that few plans cover all counts.
const MAX_BATCH: usize = 8;
/// Maximum bytes of temporary values of cached plans, or the bytes of the weights if those are
/// more; the least recently used plan is dropped first.
const PLAN_BYTES: usize = 256 << 20;

/// An encoder with its weights on a device.
#[derive(Debug)]
pub struct Embedder {
    config: Config,
    head: Head,
    tokens: Arc<Tokens>,
    max_tokens: usize,
    graph: Graph,
    resident: DeviceWeights,
    plans: Vec<EncoderPlan>,
    session: Session,
    run_ns: u64,
}

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Its token numbers.
    pub tokens: Vec<u32>,
    /// Tokens of the text that were cut off at the model's maximum, which the vector does not
    /// represent.
    pub cut_tokens: usize,
    /// [`Embedder::width`] numbers, of length 1 if the model normalises last.
    pub vector: Vec<f32>,
}

/// The encoder compiled for a number of texts and a maximum number of tokens.
#[derive(Debug)]
struct EncoderPlan {
    batch: usize,
    time: usize,
    bytes: usize,
    run: Executable,
    ids: View,
    mask: View,
    pool: View,
    embedding: View,
}

impl Embedder {
    /// Reads a model's folder and puts its weights on a device.
    ///
    /// # Errors
    /// As [`Encoder::read`] and [`Embedder::new`].
    pub fn open(folder: &Path, device: &Device) -> Result<Embedder> {
        Embedder::new(Encoder::read(folder)?, device, None)
    }

    /// Puts the weights of an encoder on a device, with this format of the products' weights. The
    /// default on the CPU is the file's format if that is f16 or bf16, otherwise f32.
    ///
    /// # Errors
    /// `Data`, naming tensor and file, for weights that do not fit the configuration.
    pub fn new(
        encoder: Encoder,
        device: &Device,
        weights: Option<PanelFormat>,
    ) -> Result<Embedder> {
        Embedder::load(encoder, device, weights, &mut WorkProgress::ignore)
    }

    /// As [`Embedder::new`]; the watch sees the bytes of weights that are read.
    ///
    /// # Errors
    /// As [`Embedder::new`]; `Cancelled` if the watch breaks it off.
    pub fn load(
        encoder: Encoder,
        device: &Device,
        weights: Option<PanelFormat>,
        watch: &mut Watch<'_>,
    ) -> Result<Embedder> {
        Embedder::with_layout(encoder, device, device.info().preferences(), weights, watch)
    }

    /// As [`Embedder::load`], with weights in another layout than the device prefers: the vectors
    /// are the same, only the speed differs.
    pub(super) fn with_layout(
        encoder: Encoder,
        device: &Device,
        preferences: LayoutPreferences,
        weights: Option<PanelFormat>,
        watch: &mut Watch<'_>,
    ) -> Result<Embedder> {
        let (mut resident, session) = (
            DeviceWeights::new(encoder.prepare(preferences, weights), device),
            Session::new(device),
        );
        resident.read(&encoder.graph, watch, |name, shape, to| {
            encoder.weights.read(name, shape, to)
        })?;
        let Encoder {
            config,
            head,
            tokens,
            max_tokens,
            graph,
            ..
        } = encoder;
        Ok(Embedder {
            config,
            head,
            tokens: Arc::new(tokens),
            max_tokens,
            graph,
            resident,
            plans: Vec::new(),
            session,
            run_ns: 0,
        })
    }

    /// A second encoder for another thread or task: it shares the weights and the tokenizer and has
    /// separate plans.
    ///
    /// # Errors
    /// Device errors.
    pub fn fork(&mut self) -> Result<Embedder> {
        if self.compiled_plans() == 0 {
            // The first plan creates the weights.
            self.encoding(1, bucket(1).min(self.max_tokens))?;
        }
        let (resident, session) = (self.resident.share(), Session::new(self.resident.device()));
        let (config, tokens, graph) =
            (self.config.clone(), self.tokens.clone(), self.graph.clone());
        Ok(Embedder {
            config,
            head: self.head.clone(),
            tokens,
            max_tokens: self.max_tokens,
            graph,
            resident,
            plans: Vec::new(),
            session,
            run_ns: 0,
        })
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How the vectors of tokens are pooled; the results of several are concatenated.
    pub fn poolings(&self) -> &[Pooling] {
        &self.head.poolings
    }

    /// The steps on the pooled vector, in order, in words: dense layers, norms, truncation.
    pub fn steps(&self) -> impl Iterator<Item = String> + '_ {
        self.head.steps.iter().map(HeadStep::to_string)
    }

    /// Whether vectors have length 1: normalisation is the last step.
    pub fn normalized(&self) -> bool {
        self.head.steps.last() == Some(&HeadStep::Normalize)
    }

    /// Numbers of a vector.
    pub fn width(&self) -> usize {
        self.head.width
    }

    /// The model's default prompt, which precedes every text; usually empty.
    pub fn prompt(&self) -> &str {
        &self.head.prompt
    }

    /// Maximum tokens of a text; longer ones are truncated.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The number of all parameters.
    pub fn parameters(&self) -> usize {
        self.graph
            .parameters()
            .filter_map(|(_, _, shape)| shape.elements())
            .sum()
    }

    /// The graph over letters B and T.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Bytes of the weights on the device.
    pub fn weight_bytes(&self) -> usize {
        self.resident.prepared.weight_bytes()
    }

    /// Plans compiled so far: one for each batch size and bucket of lengths, not for each length.
    pub fn compiled_plans(&self) -> usize {
        self.resident.compiled()
    }

    /// Counters of all runs so far.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Host time of all runs so far, in seconds: without tokenization and compilation.
    pub fn run_s(&self) -> f64 {
        self.run_ns as f64 / 1e9
    }

    /// The vectors of texts, in their order. The model's default prompt precedes each text, and
    /// texts of more than [`Embedder::max_tokens`] are cut.
    ///
    /// Texts of similar length run together, padded to the next multiple of 8 up to 64 tokens, of
    /// 16 up to 128, then of 32; no token attends to padding.
    ///
    /// # Errors
    /// `Invalid` for a text with a token that the model lacks; device errors.
    pub fn embed(&mut self, texts: &[&str]) -> Result<Vec<Embedding>> {
        let encoded: Result<Vec<(Vec<u32>, usize)>> = texts
            .iter()
            .map(|text| self.tokens.encode_counted(&self.head.prompted(text)))
            .collect();
        let (tokens, cut): (Vec<_>, Vec<_>) = encoded?.into_iter().unzip();
        let embeddings = self.embed_tokens(tokens)?;
        Ok(embeddings
            .into_iter()
            .zip(cut)
            .map(|(made, cut_tokens)| Embedding { cut_tokens, ..made })
            .collect())
    }

    /// The vectors of tokenized texts, without a prompt.
    ///
    /// # Errors
    /// `Invalid` for a text of no or too many tokens, or an unknown token; device errors.
    pub fn embed_tokens(&mut self, tokens: Vec<Vec<u32>>) -> Result<Vec<Embedding>> {
        for (index, tokens) in tokens.iter().enumerate() {
            let strange = tokens
                .iter()
                .find(|token| **token as usize >= self.config.vocab_size);
            if tokens.is_empty() || tokens.len() > self.max_tokens || strange.is_some() {
                let (text, most, rows) = (index + 1, self.max_tokens, self.config.vocab_size);
                return Err(Error::invalid(match strange {
                    Some(token) => format!(
                        "text {text}: token {}; the model has {rows}",
                        self.tokens.describe(*token)
                    ),
                    None => format!(
                        "text {text}: {} tokens; 1 to {most} are needed",
                        tokens.len()
                    ),
                }));
            }
        }
        let mut vectors = vec![Vec::new(); tokens.len()];
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|&index| bucket(tokens[index].len()).min(self.max_tokens));
        let mut rest = order.as_slice();
        while let Some(&first) = rest.first() {
            let time = bucket(tokens[first].len()).min(self.max_tokens);
            let alike = rest
                .iter()
                .take_while(|&&index| bucket(tokens[index].len()).min(self.max_tokens) == time)
                .count();
            let batch = 1 << alike.min(MAX_BATCH).ilog2();
            let (now, later) = rest.split_at(batch);
            let texts: Vec<&[u32]> = now.iter().map(|&index| tokens[index].as_slice()).collect();
            let made = self.run(&texts, time)?;
            for (&index, vector) in now.iter().zip(made.chunks_exact(self.head.width)) {
                vectors[index] = vector.to_vec();
            }
            rest = later;
        }
        Ok(tokens
            .into_iter()
            .zip(vectors)
            .map(|(tokens, vector)| Embedding {
                tokens,
                cut_tokens: 0,
                vector,
            })
            .collect())
    }

    /// One run: the vectors, concatenated.
    fn run(&mut self, texts: &[&[u32]], time: usize) -> Result<Vec<f32>> {
        let poolings: Vec<Pooling> = self.head.weighted().collect();
        let encoding = self.encoding(texts.len(), time)?;
        encoding.fill(texts, &poolings);
        let start = std::time::Instant::now();
        let stats = encoding.run.run()?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        let vectors = encoding.run.output::<f32>(encoding.embedding).to_vec();
        self.session.record(&stats, nanoseconds);
        self.run_ns += nanoseconds;
        Ok(vectors)
    }

    /// The plan for numbers of texts and tokens, compiled if there is none; it is then the last of
    /// `plans`.
    fn encoding(&mut self, batch: usize, time: usize) -> Result<&mut EncoderPlan> {
        match self
            .plans
            .iter()
            .position(|plan| (plan.batch, plan.time) == (batch, time))
        {
            Some(index) => {
                let plan = self.plans.remove(index);
                self.plans.push(plan);
            }
            None => {
                let plan = self.compile(batch, time)?;
                self.session.uses(&plan.run);
                let most = PLAN_BYTES.max(self.weight_bytes());
                let mut kept: usize = self.plans.iter().map(|kept| kept.bytes).sum();
                while kept + plan.bytes > most && !self.plans.is_empty() {
                    kept -= self.plans.remove(0).bytes;
                }
                self.plans.push(plan);
            }
        }
        Ok(self.plans.last_mut().expect("invariant: it was put there"))
    }

    fn compile(&mut self, batch: usize, time: usize) -> Result<EncoderPlan> {
        let RecordedRun {
            plan,
            weights,
            ids,
            mask,
            pool,
            embedding,
            ..
        } = RecordedRun::record(&self.resident.prepared, batch, time, self.head.width)?;
        let (run, bytes) = self.resident.compile(plan, weights, &[])?;
        Ok(EncoderPlan {
            batch,
            time,
            bytes,
            run,
            ids,
            mask,
            pool,
            embedding,
        })
    }

    /// Runs the last plan again on its current inputs, for benchmarks.
    ///
    /// # Errors
    /// `Invalid` if nothing has run; device errors.
    pub fn run_again(&mut self) -> Result<RunStats> {
        match self.plans.last_mut() {
            Some(plan) => plan.run.run(),
            None => Err(Error::invalid("no text has been embedded yet")),
        }
    }

    /// The code objects of the last plan; none if nothing has run.
    pub fn code(&self) -> Vec<CodeObject> {
        self.plans
            .last()
            .map_or_else(Vec::new, |plan| plan.run.code().to_vec())
    }

    /// The time of each launch of the last plan.
    ///
    /// # Errors
    /// As [`Embedder::run_again`].
    pub fn trace(&mut self) -> Result<Vec<tectum::LaunchTime>> {
        match self.plans.last_mut() {
            Some(plan) => plan.run.trace(),
            None => Err(Error::invalid("no text has been embedded yet")),
        }
    }
}

impl EncoderPlan {
    /// Writes tokens, the padding mask, and the weight of each token in each pooling of its text.
    fn fill(&mut self, texts: &[&[u32]], poolings: &[Pooling]) {
        let time = self.time;
        let ids = self.run.input::<u32>(self.ids);
        ids.fill(0);
        ids.chunks_exact_mut(time)
            .zip(texts)
            .for_each(|(ids, text)| ids[..text.len()].copy_from_slice(text));
        let mask = self.run.input::<f32>(self.mask);
        mask.fill(f32::NEG_INFINITY);
        mask.chunks_exact_mut(time)
            .zip(texts)
            .for_each(|(mask, text)| mask[..text.len()].fill(0.0));
        let pool = self.run.input::<f32>(self.pool);
        pool.fill(0.0);
        for (rows, text) in pool
            .chunks_exact_mut(time * poolings.len().max(1))
            .zip(texts)
        {
            for (row, pooling) in rows.chunks_exact_mut(time).zip(poolings) {
                pooling.weights(&mut row[..text.len()]);
            }
        }
    }
}
