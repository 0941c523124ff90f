//! An encoder on disk.

use std::path::Path;

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{DType, Error, LayoutPreferences, PlanBuilder, Result, View};
use tectum_graph::{Graph, RecordedNode, Shape};

use super::config::{ConfigFile, Head, ModelPath};
use super::prepared_graph::PreparedGraph;
use super::{Bert, Config, SafetensorsWeights, Tokens, gguf_file};

/// An encoder's folder, read once: configuration, tokenizer and graph, and where the weights are.
/// No weight is read until it is put on a device ([`Embedder::new`](super::Embedder::new)).
#[derive(Debug)]
pub struct Encoder {
    pub(super) config: Config,
    pub(super) head: Head,
    pub(super) tokens: Tokens,
    /// Maximum tokens of a text.
    pub(super) max_tokens: usize,
    pub(super) graph: Graph,
    pub(super) weights: SafetensorsWeights,
}

/// A recorded run.
pub(super) struct RecordedRun {
    pub plan: PlanBuilder,
    /// The state of the model's weights.
    pub weights: View,
    pub ids: View,
    pub mask: View,
    pub pool: View,
    pub embedding: View,
    pub nodes: Vec<RecordedNode>,
}

impl Encoder {
    /// Reads a model's folder.
    ///
    /// # Errors
    /// As [`Config::read`], [`Tokens::read`] and [`SafetensorsWeights::open`]; `Data` if the
    /// tokenizer has more tokens than the model; `Unsupported` for a GGUF file.
    pub fn read(folder: &Path) -> Result<Encoder> {
        if let Some(file) = gguf_file(folder)?.filter(|file| file.exists()) {
            let needed = "it holds a decoder, which `tectum generate` runs; an encoder is a folder with config.json";
            return Err(Error::unsupported(format!("{}: {needed}", file.display())));
        }
        Encoder::of_folder(folder, &ConfigFile::read(folder, ModelPath::Folder)?)
    }

    pub(super) fn of_folder(folder: &Path, config: &ConfigFile) -> Result<Encoder> {
        let (config, head) = (Config::of(config)?, Head::read(folder)?);
        let max_tokens = head
            .max_tokens
            .unwrap_or(usize::MAX)
            .min(config.max_position_embeddings);
        let tokens = Tokens::read(folder, Some(max_tokens))?;
        if tokens.len() > config.vocab_size {
            let (tokens, rows) = (tokens.len(), config.vocab_size);
            return Err(Error::data(format!(
                "{}: the tokenizer has {tokens} tokens, the model {rows}",
                folder.display()
            )));
        }
        let graph = Bert::build(&config, head)?.graph;
        let weights = SafetensorsWeights::open(folder)?;
        tracing::info!(path = %folder.display(), layers = config.num_hidden_layers, width = config.hidden_size, tokens = config.vocab_size, "encoder opened");
        Ok(Encoder {
            config,
            head,
            tokens,
            max_tokens,
            graph,
            weights,
        })
    }

    /// The graph as it is executed; `weights` as in [`Embedder::new`](super::Embedder::new).
    pub(super) fn prepare(
        &self,
        preferences: LayoutPreferences,
        weights: Option<PanelFormat>,
    ) -> PreparedGraph {
        PreparedGraph::new(&self.graph, preferences, weights, |name| {
            self.weights.format(name)
        })
    }
}

impl RecordedRun {
    /// Records a run over texts of up to `time` tokens, whose vectors have `width` numbers.
    pub fn record(
        prepared: &PreparedGraph,
        batch: usize,
        time: usize,
        width: usize,
    ) -> Result<RecordedRun> {
        let graph = prepared.bind(&[('B', batch), ('T', time)])?;
        let mut plan = PlanBuilder::new(format!("encoder {batch}×{time}"));
        let (weights, mut feeds) = prepared.feeds(&mut plan)?;
        let mut input = |name: &str, dtype: DType, len: usize| -> Result<View> {
            let view = plan.input(name, dtype, len);
            let node = graph
                .inputs()
                .find(|(other, ..)| *other == name)
                .map(|(_, node, _): (_, _, Shape)| node);
            feeds.push((node.expect("invariant: the encoder has it"), view));
            Ok(view)
        };
        let ids = input("ids", DType::U32, batch * time)?;
        let [mask, pool] = [
            input("mask", DType::F32, batch * time)?,
            input("pool", DType::F32, batch * time)?,
        ];
        let embedding = plan.output("embedding", DType::F32, batch * width);
        let nodes = graph.record_listed(
            &mut plan,
            &feeds,
            &[(graph.output("embedding")?, embedding)],
        )?;
        Ok(RecordedRun {
            plan,
            weights,
            ids,
            mask,
            pool,
            embedding,
            nodes,
        })
    }
}
