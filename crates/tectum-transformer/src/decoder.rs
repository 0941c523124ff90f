//! Decoders: scores of the next token, from a context that is stored on the device.

use std::path::Path;

use tectum::{
    CacheFormats, CodeObject, DType, Device, Error, Executable, PlanBuilder, Result, RunStats,
    Session, SharedState, View, Watch, WorkProgress, host_memory,
};
use tectum_graph::{Graph, Node, RecordedNode};

use super::checkpoint::Checkpoint;
use super::context::{Context, MAX_PREFILL_CHUNK, bucket_of, plans_for};
use super::decoder_graph::DecoderSizes;
use super::device_weights::DeviceWeights;
use super::prepared_graph::PreparedGraph;
use tectum::operation::product::panel_format::PanelFormat;

/// A decoder with its weights and the keys and values of one or several contexts on a device, one
/// for each text.
///
/// [`Decoder::feed`] adds tokens to the context and returns scores of the next one,
/// [`Decoder::feed_each`] for each of several texts. Parts of similar length share a plan.
/// Attention receives the cached length at run time: with an existing plan, a run compiles nothing
/// and allocates nothing on the device.
#[derive(Debug)]
pub struct Decoder {
    sizes: DecoderSizes,
    graph: Graph,
    pub(super) device_weights: DeviceWeights,
    /// Keys of all layers, concatenated, and values; none until the first plan is compiled.
    caches: Option<[SharedState; 2]>,
    formats: CacheFormats,
    pub(super) capacity: usize,
    /// The tokens fed to each text.
    contexts: Vec<Context>,
    /// The names of the parameters in the file.
    tensors: Vec<String>,
    plans: Vec<DecoderPlan>,
    session: Session,
}

/// The decoder compiled for a maximum number of tokens of each text and a number of tokens that get
/// scores.
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
    /// Opens a model's folder, or its GGUF file, for contexts of up to `capacity` tokens, or the
    /// model's maximum if that is less.
    ///
    /// # Errors
    /// `Io`; `Data` for a configuration that cannot be read or a tensor that is missing, or of
    /// another shape or type; `Unsupported` for another family or an unsupported setting, by its
    /// key; `Invalid` for sizes that no model has or a capacity of 0.
    pub fn open(path: &Path, device: &Device, capacity: usize) -> Result<Decoder> {
        Decoder::new(
            &Checkpoint::open(path)?,
            device,
            capacity,
            CacheFormats::F32,
            None,
        )
    }

    /// Puts an opened model on a device, with these formats of keys and values, and this format of
    /// the products' weights. The default on the CPU is the file's format if that is f16 or bf16,
    /// otherwise f32.
    ///
    /// # Errors
    /// As [`Decoder::open`].
    pub fn new(
        model: &Checkpoint,
        device: &Device,
        capacity: usize,
        formats: CacheFormats,
        weights: Option<PanelFormat>,
    ) -> Result<Decoder> {
        Decoder::load(
            model,
            device,
            capacity,
            formats,
            weights,
            &mut WorkProgress::ignore,
        )
    }

    /// As [`Decoder::new`]; the watch sees the bytes of weights that are read.
    ///
    /// # Errors
    /// As [`Decoder::new`]; `Cancelled` if the watch breaks it off.
    pub fn load(
        model: &Checkpoint,
        device: &Device,
        capacity: usize,
        formats: CacheFormats,
        weights: Option<PanelFormat>,
        watch: &mut Watch<'_>,
    ) -> Result<Decoder> {
        let mut decoder = Decoder::without_weights(model, device, capacity, formats, weights)?;
        decoder
            .device_weights
            .read(&decoder.graph, watch, |name, shape, to| {
                model.read(name, shape, to)
            })?;
        Ok(decoder)
    }

    /// The decoder without its weights, which can be recorded.
    pub(super) fn without_weights(
        model: &Checkpoint,
        device: &Device,
        capacity: usize,
        formats: CacheFormats,
        weights: Option<PanelFormat>,
    ) -> Result<Decoder> {
        if capacity == 0 {
            return Err(Error::invalid("a context of 0 tokens"));
        }
        let graph = model.graph.with_caches(formats);
        let prepared = PreparedGraph::new(&graph, device.info().preferences(), weights, |name| {
            model.format(name)
        });
        let device_weights = DeviceWeights::new(prepared, device);
        let tensors = graph
            .parameters()
            .map(|(name, ..)| model.tensor(name))
            .collect();
        let sizes = model.sizes.clone();
        let capacity = capacity.min(sizes.context);
        let session = Session::new(device);
        let contexts = vec![Context::default()];
        Ok(Decoder {
            sizes,
            graph,
            device_weights,
            caches: None,
            formats,
            capacity,
            contexts,
            tensors,
            plans: Vec::new(),
            session,
        })
    }

    /// The decoder for a number of texts that run as a batch, each in its own context, all empty:
    /// weights are read once for all of them.
    ///
    /// # Errors
    /// `Invalid` for no texts.
    pub fn with_texts(mut self, texts: usize) -> Result<Decoder> {
        if texts == 0 {
            return Err(Error::invalid("a decoder of 0 texts"));
        }
        self.contexts = vec![Context::default(); texts];
        self.caches = None;
        self.plans.clear();
        Ok(self)
    }

    /// The model's sizes from the folder or file.
    pub fn sizes(&self) -> &DecoderSizes {
        &self.sizes
    }

    /// The graph over letters B (texts), T (tokens of a run), S (tokens that a cache holds) and R
    /// (tokens that get scores).
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The number of all parameters.
    pub fn parameters(&self) -> usize {
        self.graph
            .parameters()
            .filter_map(|(_, _, shape)| shape.elements())
            .sum()
    }

    /// The tensors of the file that are read, by their names in the file.
    pub fn tensors(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(String::as_str)
    }

    /// Texts of a batch.
    pub fn texts(&self) -> usize {
        self.contexts.len()
    }

    /// Maximum tokens of a context.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Device bytes of keys and values.
    pub fn cache_bytes(&self) -> usize {
        4 * self.cache_words().iter().sum::<usize>()
    }

    /// Bytes of keys and values for each token, without windows of full rows.
    pub fn cache_bytes_per_token(&self) -> usize {
        let columns = self.sizes.cached_columns();
        self.formats
            .each()
            .map(|format| 4 * self.sizes.layers * format.row_words(columns))
            .iter()
            .sum()
    }

    /// Device bytes for each value of the capacity: of the formats' rows or blocks, and of the
    /// whole caches.
    pub fn cache_bytes_per_value(&self) -> [f64; 2] {
        let columns = self.sizes.cached_columns();
        let values = 2 * self.texts() * self.sizes.layers * self.capacity * columns;
        [
            self.formats.bytes_per_value(columns),
            self.cache_bytes() as f64 / values as f64,
        ]
    }

    /// The formats of keys and values.
    pub fn cache_formats(&self) -> CacheFormats {
        self.formats
    }

    /// Tokens of the context; of the longest one if there are several.
    pub fn len(&self) -> usize {
        self.contexts
            .iter()
            .map(|context| context.token_ids.len())
            .max()
            .unwrap_or(0)
    }

    /// Tokens of the context of a text.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn len_of(&self, text: usize) -> usize {
        self.contexts[text].token_ids.len()
    }

    /// The tokens of the context of a text; none if there is no such text.
    pub(super) fn tokens_of(&self, text: usize) -> &[u32] {
        self.contexts
            .get(text)
            .map_or(&[], |context| &context.token_ids)
    }

    /// Adds a token to the context of a text without running it: it runs with the next ones. A full
    /// context stays as it is, since nothing can follow.
    pub(super) fn defer(&mut self, text: usize, token: u32) {
        let context = &mut self.contexts[text];
        if context.token_ids.len() < self.capacity {
            context.token_ids.push(token);
        }
    }

    /// Whether every context is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the tokens of every context from `len` on.
    ///
    /// A quantised cache can be truncated only to whole windows, except the last one: up to 63
    /// tokens before `len` then run again with those that are fed next, as in a text whose part
    /// began there.
    pub fn truncate(&mut self, len: usize) {
        self.contexts
            .iter_mut()
            .for_each(|context| context.truncate(len, self.formats));
    }

    /// A decoder that continues independently from the same context: it shares the weights and
    /// copies the caches.
    ///
    /// # Errors
    /// Device errors.
    pub fn fork(&mut self) -> Result<Decoder> {
        // The first plan creates weights and caches.
        self.plan(1, 1)?;
        let copy = |[keys, values]: &[SharedState; 2]| Ok([keys.duplicate()?, values.duplicate()?]);
        Ok(Decoder {
            sizes: self.sizes.clone(),
            graph: self.graph.clone(),
            device_weights: self.device_weights.share(),
            caches: self.caches.as_ref().map(copy).transpose()?,
            formats: self.formats,
            capacity: self.capacity,
            contexts: self.contexts.clone(),
            tensors: self.tensors.clone(),
            plans: Vec::new(),
            session: Session::new(self.device_weights.device()),
        })
    }

    /// Bytes of the weights on the device.
    pub fn weight_bytes(&self) -> usize {
        self.device_weights.prepared.weight_bytes()
    }

    /// Plans compiled so far: one for each bucket of lengths, not for each length.
    pub fn compiled_plans(&self) -> usize {
        self.device_weights.compiled()
    }

    /// Counters of all runs so far.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The code objects of the last plan used; none if nothing has run.
    pub fn code(&self) -> Vec<CodeObject> {
        self.plans
            .last()
            .map_or_else(Vec::new, |plan| plan.run.code().to_vec())
    }

    /// Compiles the plans that contexts of this many tokens need, first fed in one call, then token
    /// by token, so that no run waits for it.
    ///
    /// # Errors
    /// Device errors.
    pub fn prepare(&mut self, texts: &[usize]) -> Result<()> {
        plans_for(texts).try_for_each(|time| self.plan(time, 1))
    }

    /// Adds tokens to the context and returns the scores \[V\] of the token after the last.
    ///
    /// # Errors
    /// `Invalid` for no tokens, an unknown token, more than the context has room for, or a decoder
    /// of several texts; device errors.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        self.feed_each(&[tokens])
    }

    /// Adds tokens to the context of each text and returns the scores [texts, V] of the next
    /// tokens. A text without tokens does not advance; its row has no meaning.
    ///
    /// # Errors
    /// `Invalid` if the number of texts differs from the decoder's, or there are no tokens; for a
    /// text as [`Decoder::feed`], and nothing is added to any; device errors.
    pub fn feed_each(&mut self, tokens: &[&[u32]]) -> Result<&[f32]> {
        self.check(tokens)?;
        self.take(tokens)?;
        let plan = self
            .plans
            .last()
            .expect("invariant: there were tokens, so something ran");
        Ok(plan.run.output(plan.logits))
    }

    /// Adds tokens to the context and returns the scores [tokens, V] of the token after each of
    /// them.
    ///
    /// # Errors
    /// As [`Decoder::feed`].
    pub fn feed_scored(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check(&[tokens])?;
        self.take(&[&[]])?;
        let count = tokens.len().saturating_mul(self.sizes.vocab_size);
        let mut logits = host_memory::with_capacity("the scores of tokens", count)?;
        for now in tokens.chunks(MAX_PREFILL_CHUNK) {
            self.contexts[0].token_ids.extend(now);
            if let Err(error) = self.run(0, bucket_of(now.len())) {
                self.contexts[0].drop_uncached();
                return Err(error);
            }
            let plan = self.plans.last().expect("invariant: it ran");
            logits.extend_from_slice(
                &plan.run.output::<f32>(plan.logits)[..now.len() * self.sizes.vocab_size],
            );
        }
        Ok(logits)
    }

    /// Runs the last plan again on its current inputs, for benchmarks.
    ///
    /// # Errors
    /// `Invalid` if nothing has run; device errors.
    pub fn run_again(&mut self) -> Result<RunStats> {
        match self.plans.last_mut() {
            Some(plan) => plan.run.run(),
            None => Err(Error::invalid("no token has been fed yet")),
        }
    }

    fn check(&self, tokens: &[&[u32]]) -> Result<()> {
        let texts = self.contexts.len();
        if tokens.len() != texts {
            return Err(Error::invalid(format!(
                "texts: {} given, the decoder has {texts}",
                tokens.len()
            )));
        }
        if tokens.iter().all(|tokens| tokens.is_empty()) {
            return Err(Error::invalid("no tokens to run; one at least is needed"));
        }
        for (text, (tokens, context)) in tokens.iter().zip(&self.contexts).enumerate() {
            let place = place(text, texts);
            if let Some(token) = tokens
                .iter()
                .find(|token| **token as usize >= self.sizes.vocab_size)
            {
                return Err(Error::invalid(format!(
                    "{place}token {token}; the model has {}",
                    self.sizes.vocab_size
                )));
            }
            let (kept, new, room) = (context.token_ids.len(), tokens.len(), self.capacity);
            if kept + new > room {
                let given = if kept == 0 {
                    format!("the prompt has {new} tokens")
                } else {
                    format!("{kept} + {new} tokens")
                };
                let taker = if room == self.sizes.context {
                    "the model takes"
                } else {
                    "the context has room for"
                };
                return Err(Error::invalid(format!("{place}{given}; {taker} {room}")));
            }
        }
        Ok(())
    }

    /// Adds tokens to the contexts and runs all tokens that are not cached. After a failure a
    /// context ends where its cache ends, but not before its previous end.
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

    /// Runs a part of each text; `after` runs follow. Its plan is then the last of `plans`.
    fn run(&mut self, after: usize, scored: usize) -> Result<()> {
        let most = self
            .contexts
            .iter()
            .map(|context| context.chunk(after).len())
            .max()
            .unwrap_or(0);
        self.plan(bucket_of(most), scored)?;
        let plan = self.plans.last_mut().expect("invariant: it was put there");
        plan.fill(&self.contexts, after);
        let start = std::time::Instant::now();
        let stats = plan.run.run()?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        self.session.record(&stats, nanoseconds);
        self.contexts
            .iter_mut()
            .for_each(|context| context.cached += context.chunk(after).len());
        Ok(())
    }

    /// The plan for numbers of tokens and of tokens that get scores, compiled if there is none; it
    /// is then the last of `plans`.
    fn plan(&mut self, time: usize, scored: usize) -> Result<()> {
        let plan = match self
            .plans
            .iter()
            .position(|plan| (plan.time, plan.scored) == (time, scored))
        {
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

    /// Rows of a cache: a whole number of aligned ranges for any row size.
    fn rows(&self) -> usize {
        self.capacity.next_multiple_of(tectum::ALIGNED_ELEMENTS)
    }

    /// Words of the keys of all layers, and of the values.
    fn cache_words(&self) -> [usize; 2] {
        let (rows, columns) = (self.rows(), self.sizes.cached_columns());
        self.formats
            .each()
            .map(|format| self.texts() * self.sizes.layers * format.words(rows, columns))
    }

    fn compile(&mut self, time: usize, scored: usize) -> Result<DecoderPlan> {
        let (plan, [weights, keys, values], [ids, positions, spans, rows, logits], _) =
            self.record(time, scored)?;
        let shared: Vec<(View, &SharedState)> = self
            .caches
            .iter()
            .flat_map(|caches| [keys, values].into_iter().zip(caches))
            .collect();
        let (run, _) = self.device_weights.compile(plan, weights, &shared)?;
        if self.caches.is_none() {
            self.caches = Some([run.state_buffer(keys)?, run.state_buffer(values)?]);
        }
        Ok(DecoderPlan {
            time,
            scored,
            run,
            ids,
            positions,
            spans,
            rows,
            logits,
        })
    }

    /// The plan, the states of weights, keys and values, its inputs and output, and the recorded
    /// nodes of the graph.
    #[allow(clippy::type_complexity, reason = "two readers take it apart at once")]
    pub(super) fn record(
        &self,
        time: usize,
        scored: usize,
    ) -> Result<(PlanBuilder, [View; 3], [View; 5], Vec<RecordedNode>)> {
        let texts = self.texts();
        let graph = self.device_weights.prepared.bind(&[
            ('B', texts),
            ('T', time),
            ('S', self.rows()),
            ('R', texts * scored),
        ])?;
        let name = if texts > 1 {
            format!("decoder {texts}×{time}")
        } else {
            format!("decoder {time}")
        };
        let mut plan = PlanBuilder::new(name);
        let (weights, mut feeds) = self.device_weights.prepared.feeds(&mut plan)?;
        let ([key_words, value_words], [key_format, value_format]) =
            (self.cache_words(), self.formats.each());
        let caches = [
            plan.state("keys", key_format.dtype(), key_words),
            plan.state("values", value_format.dtype(), value_words),
        ];
        // Each layer has keys, then values.
        for (index, (_, node, _)) in graph.states().enumerate() {
            let (layer, words) = (index / 2, graph.state_words(node)?);
            feeds.push((
                node,
                caches[index % 2].part(layer * words..(layer + 1) * words),
            ));
        }
        let mut input = |name: &str, len: usize| {
            let view = plan.input(name, DType::U32, len);
            let node = graph
                .inputs()
                .find(|(other, ..)| *other == name)
                .map(|(_, node, _)| node);
            feeds.push((node.expect("invariant: every decoder has it"), view));
            view
        };
        let [ids, positions] = ["ids", "positions"].map(|name| input(name, texts * time));
        let [spans, rows] =
            [("spans", 2 * texts), ("rows", texts * scored)].map(|(name, len)| input(name, len));
        let logits = plan.output("logits", DType::F32, texts * scored * self.sizes.vocab_size);
        let output: Node = graph.output("logits")?;
        let nodes = graph.record_listed(&mut plan, &feeds, &[(output, logits)])?;
        Ok((
            plan,
            [weights, caches[0], caches[1]],
            [ids, positions, spans, rows, logits],
            nodes,
        ))
    }
}

/// Which text a message is about, counted from 1; nothing if there is only one.
pub(super) fn place(text: usize, texts: usize) -> String {
    if texts > 1 {
        format!("text {}: ", text + 1)
    } else {
        String::new()
    }
}

impl DecoderPlan {
    /// Writes a part of each text, the positions of its tokens, and which of them get scores: the
    /// last, or all.
    fn fill(&mut self, contexts: &[Context], after: usize) {
        let (time, parts) = (
            self.time,
            contexts
                .iter()
                .map(|context| (context.cached, context.chunk(after))),
        );
        for (ids, (_, part)) in self
            .run
            .input::<u32>(self.ids)
            .chunks_exact_mut(time)
            .zip(parts.clone())
        {
            ids[..part.len()].copy_from_slice(part);
            // Padding is any valid token at any valid position.
            ids[part.len()..].fill(0);
        }
        for (positions, (kept, part)) in self
            .run
            .input::<u32>(self.positions)
            .chunks_exact_mut(time)
            .zip(parts.clone())
        {
            let last = (kept + part.len()).saturating_sub(1);
            positions
                .iter_mut()
                .enumerate()
                .for_each(|(index, position)| *position = (kept + index).min(last) as u32);
        }
        for (span, (kept, part)) in self
            .run
            .input::<u32>(self.spans)
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(parts.clone())
        {
            *span = [kept as u32, part.len() as u32];
        }
        let rows = self.run.input::<u32>(self.rows);
        for (text, (rows, (_, part))) in rows.chunks_exact_mut(self.scored).zip(parts).enumerate() {
            let first = if self.scored == 1 {
                part.len().saturating_sub(1)
            } else {
                0
            };
            rows.iter_mut()
                .enumerate()
                .for_each(|(index, row)| *row = (text * time + first + index) as u32);
        }
    }
}
