//! Decoders: scores of the token that follows, from a context that the device keeps.

use std::path::Path;

use tectum::{Buffer, CacheFormats, CodeObject, DType, Device, Error, Executable, PlanBuilder, Result, RunStats, Session, View};
use tectum_graph::{Graph, Node, RecordedNode};

use super::checkpoint::Checkpoint;
use super::context::{Context, MAX_PREFILL_CHUNK, bucket_of, plans_for};
use super::decoder_graph::DecoderSizes;
use super::device_weights::{DeviceWeights, weight_format};
use tectum::kernel::panel_format::PanelFormat;

/// A decoder with its weights and the keys and values of a context on a device, or of several, each of a text of its own.
///
/// [`Decoder::feed`] adds tokens to the context and gives scores of the one that follows, [`Decoder::feed_each`] to each of several. Parts of like length share a plan, whose
/// attention receives at run time how much is kept: once a plan is there, a run compiles nothing and allocates nothing on the device.
#[derive(Debug)]
pub struct Decoder {
    sizes: DecoderSizes,
    graph: Graph,
    pub(super) device_weights: DeviceWeights,
    /// Keys and values of all layers, one after another; none until the first plan is compiled.
    cache: Option<Buffer<f32>>,
    formats: CacheFormats,
    pub(super) capacity: usize,
    /// What each text was fed.
    contexts: Vec<Context>,
    /// The file's names of the parameters.
    tensors: Vec<String>,
    plans: Vec<DecoderPlan>,
    session: Session,
}

/// The decoder compiled for up to so many tokens of each text, of which so many get scores.
#[derive(Debug)]
struct DecoderPlan {
    time: usize,
    scored: usize,
    run: Executable,
    ids: View,
    positions: View,
    spans: View,
    rows: View,
    logits: View,
}

impl Decoder {
    /// Opens a model's folder, or its GGUF file, for contexts of up to `capacity` tokens, or as many as the model takes if those are
    /// fewer.
    ///
    /// # Errors
    /// `Io`; `Data` for a configuration that cannot be read or a tensor that is missing, or of another shape or type; `Unsupported`
    /// for another family or a setting that is not done, by its key; `Invalid` for sizes that no model has or no capacity.
    pub fn open(path: &Path, device: &Device, capacity: usize) -> Result<Decoder> {
        Decoder::open_with(path, device, capacity, CacheFormats::F32, None)
    }

    /// Opens a model as [`Decoder::open`], keys and values being kept in these formats, and the weights of products in that one; if none is
    /// said, on the CPU as the file has them if that is f16 or bf16, else in f32.
    ///
    /// # Errors
    /// As [`Decoder::open`].
    pub fn open_with(path: &Path, device: &Device, capacity: usize, formats: CacheFormats, weights: Option<PanelFormat>) -> Result<Decoder> {
        Decoder::assemble(path, device, capacity, formats, |model, graph| {
            let format = weight_format(weights, device, |name| model.format(name));
            DeviceWeights::open(graph, device, format, |name, shape, to| model.read(name, shape, to))
        })
    }

    pub(super) fn assemble(
        path: &Path,
        device: &Device,
        capacity: usize,
        formats: CacheFormats,
        resident: impl FnOnce(&Checkpoint, &Graph) -> Result<DeviceWeights>,
    ) -> Result<Decoder> {
        if capacity == 0 {
            return Err(Error::invalid("a context of 0 tokens"));
        }
        let model = Checkpoint::open(path)?;
        let graph = model.graph.with_caches(formats);
        let device_weights = resident(&model, &graph)?;
        let tensors = graph.parameters().map(|(name, ..)| model.tensor(name)).collect();
        let sizes = model.sizes;
        let capacity = capacity.min(sizes.context);
        let session = Session::new(device);
        let contexts = vec![Context::default()];
        Ok(Decoder { sizes, graph, device_weights, cache: None, formats, capacity, contexts, tensors, plans: Vec::new(), session })
    }

    /// The decoder for so many texts that run side by side, each in a context of its own, all empty: weights are read once for all of
    /// them.
    ///
    /// # Errors
    /// `Invalid` for no texts.
    pub fn with_texts(mut self, texts: usize) -> Result<Decoder> {
        if texts == 0 {
            return Err(Error::invalid("a decoder of 0 texts"));
        }
        self.contexts = vec![Context::default(); texts];
        self.cache = None;
        self.plans.clear();
        Ok(self)
    }

    /// What the folder or file says of the model.
    pub fn sizes(&self) -> &DecoderSizes {
        &self.sizes
    }

    /// The graph over letters B (texts), T (tokens of a run), S (tokens that a cache holds) and R (tokens that get scores).
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Numbers of all parameters.
    pub fn parameters(&self) -> usize {
        self.graph.parameters().filter_map(|(_, _, shape)| shape.elements()).sum()
    }

    /// The tensors of the file that are read, by their names there.
    pub fn tensors(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(String::as_str)
    }

    /// Texts that run side by side.
    pub fn texts(&self) -> usize {
        self.contexts.len()
    }

    /// The most tokens of a context.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of the device that keys and values take.
    pub fn cache_bytes(&self) -> usize {
        4 * self.cache_len()
    }

    /// Bytes that keys and values take for each token, windows of full rows left out.
    pub fn cache_bytes_per_token(&self) -> usize {
        let columns = self.sizes.cached_columns();
        self.formats.each().map(|format| 4 * self.sizes.layers * format.row_words(columns)).iter().sum()
    }

    /// Bytes of the device for each value that there is room for: of the formats' rows or blocks, and of all that the caches take.
    pub fn cache_bytes_per_value(&self) -> [f64; 2] {
        let columns = self.sizes.cached_columns();
        let values = 2 * self.texts() * self.sizes.layers * self.capacity * columns;
        [self.formats.bytes_per_value(columns), self.cache_bytes() as f64 / values as f64]
    }

    /// How keys and values are kept.
    pub fn cache_formats(&self) -> CacheFormats {
        self.formats
    }

    /// Tokens of the context; of the longest one if there are several.
    pub fn len(&self) -> usize {
        self.contexts.iter().map(|context| context.token_ids.len()).max().unwrap_or(0)
    }

    /// Tokens of the context of a text.
    ///
    /// # Panics
    /// If there are not so many texts.
    pub fn len_of(&self, text: usize) -> usize {
        self.contexts[text].token_ids.len()
    }

    /// Whether every context is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the tokens of every context from `len` on.
    ///
    /// Of a cache of codes only whole windows can be gone back to, but for the last one: up to 63 tokens before `len` then run again
    /// with those that are fed next, and see what a text does whose part began there.
    pub fn truncate(&mut self, len: usize) {
        self.contexts.iter_mut().for_each(|context| context.truncate(len, self.formats));
    }

    /// A decoder that goes on from the same context on its own: it shares the weights and has a copy of what is kept.
    ///
    /// # Errors
    /// What the device reports.
    pub fn fork(&mut self) -> Result<Decoder> {
        // With the first plan come weights and cache.
        self.plan(1, 1)?;
        let device = self.device_weights.device().clone();
        let copy = |cache: &Buffer<f32>| {
            let copy = device.buffer(cache.len())?;
            cache.copy_to(&copy).map(|_| copy)
        };
        Ok(Decoder {
            sizes: self.sizes.clone(),
            graph: self.graph.clone(),
            device_weights: self.device_weights.share(),
            cache: self.cache.as_ref().map(copy).transpose()?,
            formats: self.formats,
            capacity: self.capacity,
            contexts: self.contexts.clone(),
            tensors: self.tensors.clone(),
            plans: Vec::new(),
            session: Session::new(&device),
        })
    }

    /// Bytes of the weights on the device.
    pub fn weight_bytes(&self) -> usize {
        self.device_weights.bytes()
    }

    /// Plans that were compiled so far: one for each bucket of lengths that came up, however many lengths did.
    pub fn compiled_plans(&self) -> usize {
        self.device_weights.compiled()
    }

    /// What ran so far.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The code objects of the last plan used; none if nothing has run.
    pub fn code(&self) -> Vec<CodeObject> {
        self.plans.last().map_or_else(Vec::new, |plan| plan.run.code().to_vec())
    }

    /// Compiles what contexts of so many tokens, all fed at once, then one token at a time, will need, so that no run waits for it.
    ///
    /// # Errors
    /// What the device reports.
    pub fn prepare(&mut self, texts: &[usize]) -> Result<()> {
        plans_for(texts).try_for_each(|time| self.plan(time, 1))
    }

    /// Adds tokens to the context and gives the scores [V] of the token that follows the last.
    ///
    /// # Errors
    /// `Invalid` for no tokens, a token that the model lacks, more than the context has room for, or a decoder of several texts; what the
    /// device reports.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        self.feed_each(&[tokens])
    }

    /// Adds tokens to the context of each text and gives the scores [texts, V] of the tokens that follow. A text that is given none rests;
    /// its row says nothing.
    ///
    /// # Errors
    /// `Invalid` if there are not as many as the decoder has texts, or no tokens at all; a text's as [`Decoder::feed`], and none has been
    /// added to any; what the device reports.
    pub fn feed_each(&mut self, tokens: &[&[u32]]) -> Result<&[f32]> {
        self.check(tokens)?;
        self.take(tokens)?;
        let plan = self.plans.last().expect("invariant: there were tokens, so something ran");
        Ok(plan.run.output(plan.logits))
    }

    /// Adds tokens to the context and gives the scores [tokens, V] of what follows each of them.
    ///
    /// # Errors
    /// As [`Decoder::feed`].
    pub fn feed_scored(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check(&[tokens])?;
        self.take(&[&[]])?;
        let mut logits = Vec::with_capacity(tokens.len() * self.sizes.vocab_size);
        for now in tokens.chunks(MAX_PREFILL_CHUNK) {
            self.contexts[0].token_ids.extend(now);
            if let Err(error) = self.run(0, bucket_of(now.len())) {
                self.contexts[0].drop_uncached();
                return Err(error);
            }
            let plan = self.plans.last().expect("invariant: it ran");
            logits.extend_from_slice(&plan.run.output::<f32>(plan.logits)[..now.len() * self.sizes.vocab_size]);
        }
        Ok(logits)
    }

    /// Runs the last plan again over what it holds: what a benchmark times.
    ///
    /// # Errors
    /// `Invalid` if nothing has run; what the device reports.
    pub fn run_again(&mut self) -> Result<RunStats> {
        match self.plans.last_mut() {
            Some(plan) => plan.run.run(),
            None => Err(Error::invalid("no token has been fed yet")),
        }
    }

    fn check(&self, tokens: &[&[u32]]) -> Result<()> {
        let texts = self.contexts.len();
        if tokens.len() != texts {
            return Err(Error::invalid(format!("tokens of {} texts for a decoder of {texts}", tokens.len())));
        }
        if tokens.iter().all(|tokens| tokens.is_empty()) {
            return Err(Error::invalid("no tokens; a context begins with one at least"));
        }
        for (text, (tokens, context)) in tokens.iter().zip(&self.contexts).enumerate() {
            let place = if texts > 1 { format!("text {text}: ") } else { String::new() };
            if let Some(token) = tokens.iter().find(|token| **token as usize >= self.sizes.vocab_size) {
                return Err(Error::invalid(format!("{place}token {token}; the model has {}", self.sizes.vocab_size)));
            }
            let (kept, new, room) = (context.token_ids.len(), tokens.len(), self.capacity);
            if kept + new > room {
                return Err(Error::invalid(format!("{place}{new} tokens after {kept}; the context has room for {room}")));
            }
        }
        Ok(())
    }

    /// Adds tokens to the contexts and runs all that the caches do not hold. After a failure a context ends where its cache does, but
    /// not before what it was.
    fn take(&mut self, tokens: &[&[u32]]) -> Result<()> {
        for (context, tokens) in self.contexts.iter_mut().zip(tokens) {
            context.token_ids.extend(*tokens);
        }
        let runs = self.contexts.iter().map(Context::runs).max().unwrap_or(0);
        let run = (0..runs).rev().try_for_each(|after| self.run(after, 1));
        if run.is_err() {
            for (context, tokens) in self.contexts.iter_mut().zip(tokens) {
                let before = context.token_ids.len() - tokens.len();
                context.token_ids.truncate(before.max(context.cached));
            }
        }
        run
    }

    /// One run, after which come so many: a part of each text. Its plan is the last of `plans` then.
    fn run(&mut self, after: usize, scored: usize) -> Result<()> {
        let most = self.contexts.iter().map(|context| context.chunk(after).len()).max().unwrap_or(0);
        self.plan(bucket_of(most), scored)?;
        let plan = self.plans.last_mut().expect("invariant: it was put there");
        plan.fill(&self.contexts, after);
        let start = std::time::Instant::now();
        let stats = plan.run.run()?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        self.session.record(&stats, nanoseconds);
        self.contexts.iter_mut().for_each(|context| context.cached += context.chunk(after).len());
        Ok(())
    }

    /// The plan for some tokens of which some get scores, compiled if there is none; it is the last of `plans` then.
    fn plan(&mut self, time: usize, scored: usize) -> Result<()> {
        let plan = match self.plans.iter().position(|plan| (plan.time, plan.scored) == (time, scored)) {
            Some(index) => self.plans.remove(index),
            None => {
                let plan = self.compile(time, scored)?;
                self.session.uses(&plan.run);
                plan
            }
        };
        self.plans.push(plan);
        Ok(())
    }

    /// Rows of a cache: a whole number of aligned ranges, whatever a row has.
    fn rows(&self) -> usize {
        self.capacity.next_multiple_of(tectum::ALIGNED_ELEMENTS)
    }

    fn cache_len(&self) -> usize {
        let (rows, columns) = (self.rows(), self.sizes.cached_columns());
        self.formats.each().map(|format| self.texts() * self.sizes.layers * format.words(rows, columns)).iter().sum()
    }

    fn compile(&mut self, time: usize, scored: usize) -> Result<DecoderPlan> {
        let (plan, [weights, cache], [ids, positions, spans, rows, logits], _) = self.record(time, scored)?;
        let shared: Vec<(View, &Buffer<f32>)> = self.cache.iter().map(|buffer| (cache, buffer)).collect();
        let (run, _) = self.device_weights.compile(plan, weights, &shared)?;
        if self.cache.is_none() {
            self.cache = Some(run.state_buffer(cache)?);
        }
        Ok(DecoderPlan { time, scored, run, ids, positions, spans, rows, logits })
    }

    /// The plan, the states of weights and cache, its inputs and output, and what became of the graph's nodes.
    #[allow(clippy::type_complexity, reason = "two readers take it apart at once")]
    pub(super) fn record(&self, time: usize, scored: usize) -> Result<(PlanBuilder, [View; 2], [View; 5], Vec<RecordedNode>)> {
        let texts = self.texts();
        let graph = self.device_weights.bind(&[('B', texts), ('T', time), ('S', self.rows()), ('R', texts * scored)])?;
        let name = if texts > 1 { format!("decoder {texts}×{time}") } else { format!("decoder {time}") };
        let mut plan = PlanBuilder::new(name);
        let (weights, mut feeds) = self.device_weights.feeds(&mut plan)?;
        let cache = plan.state("cache", DType::F32, self.cache_len());
        let mut first = 0;
        for (_, node, _) in graph.states() {
            let words = graph.state_words(node)?;
            feeds.push((node, cache.part(first..first + words)));
            first += words;
        }
        let mut input = |name: &str, len: usize| {
            let view = plan.input(name, DType::U32, len);
            let node = graph.inputs().find(|(other, ..)| *other == name).map(|(_, node, _)| node);
            feeds.push((node.expect("invariant: every decoder has it"), view));
            view
        };
        let [ids, positions] = ["ids", "positions"].map(|name| input(name, texts * time));
        let [spans, rows] = [("spans", 2 * texts), ("rows", texts * scored)].map(|(name, len)| input(name, len));
        let logits = plan.output("logits", DType::F32, texts * scored * self.sizes.vocab_size);
        let output: Node = graph.output("logits")?;
        let nodes = graph.record_listed(&mut plan, &feeds, &[(output, logits)])?;
        Ok((plan, [weights, cache], [ids, positions, spans, rows, logits], nodes))
    }
}

impl DecoderPlan {
    /// Writes a part of each text, the places of its tokens, and which of them get scores: the last, or each.
    fn fill(&mut self, contexts: &[Context], after: usize) {
        let (time, parts) = (self.time, contexts.iter().map(|context| (context.cached, context.chunk(after))));
        for (ids, (_, part)) in self.run.input::<u32>(self.ids).chunks_exact_mut(time).zip(parts.clone()) {
            ids[..part.len()].copy_from_slice(part);
            // Padding is any token that there is, at any place that there is.
            ids[part.len()..].fill(0);
        }
        for (positions, (kept, part)) in self.run.input::<u32>(self.positions).chunks_exact_mut(time).zip(parts.clone()) {
            let last = (kept + part.len()).saturating_sub(1);
            positions.iter_mut().enumerate().for_each(|(index, position)| *position = (kept + index).min(last) as u32);
        }
        for (span, (kept, part)) in self.run.input::<u32>(self.spans).as_chunks_mut().0.iter_mut().zip(parts.clone()) {
            *span = [kept as u32, part.len() as u32];
        }
        let rows = self.run.input::<u32>(self.rows);
        for (text, (rows, (_, part))) in rows.chunks_exact_mut(self.scored).zip(parts).enumerate() {
            let first = if self.scored == 1 { part.len().saturating_sub(1) } else { 0 };
            rows.iter_mut().enumerate().for_each(|(index, row)| *row = (text * time + first + index) as u32);
        }
    }
}
