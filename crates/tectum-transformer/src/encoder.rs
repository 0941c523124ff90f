//! An encoder on disk.

use std::path::Path;

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{DType, Error, LayoutPreferences, PlanBuilder, Result, View};
use tectum_graph::{Graph, RecordedNode, Shape};

use super::config::{ConfigFile, ModelPath};
use super::encoder_weights::EncoderWeights;
use super::head::Head;
use super::prepared_graph::PreparedGraph;
use super::{Bert, Config, Tokens, gguf_file};

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
    pub(super) weights: EncoderWeights,
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
    /// As [`Config::read`], [`Tokens::read`] and
    /// [`SafetensorsWeights::open`](super::SafetensorsWeights::open); `Data`, naming tensor and
    /// file, for weights that do not fit the configuration; `Unsupported` for a GGUF file, or a
    /// step after the encoder that is not applied here.
    pub fn read(folder: &Path) -> Result<Encoder> {
        if let Some(file) = gguf_file(folder)?.filter(|file| file.exists()) {
            let holds = contents_of_gguf(&file)?;
            return Err(Error::unsupported(format!(
                "{}: {holds}; an encoder is a folder with config.json",
                file.display()
            )));
        }
        Encoder::of_folder(folder, &ConfigFile::read(folder, ModelPath::Folder)?)
    }

    pub(super) fn of_folder(folder: &Path, config: &ConfigFile) -> Result<Encoder> {
        let config = Config::of(config)?;
        let head = Head::read(folder, config.hidden_size)?;
        let max_tokens = head
            .max_tokens
            .unwrap_or(usize::MAX)
            .min(config.max_position_embeddings);
        let tokens = Tokens::read(folder, Some(max_tokens))?;
        let weights = EncoderWeights::open(folder, &head)?;
        // Up to the first layer that the files lack, which the check then names.
        let layers = (0..config.num_hidden_layers)
            .take_while(|layer| weights.has_prefix(&format!("encoder.layer.{layer}.")))
            .count();
        let read = Config {
            num_hidden_layers: config.num_hidden_layers.min(layers + 1),
            ..config.clone()
        };
        let graph = Bert::build(&read, &head)?.graph;
        weights.check(&graph)?;
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

/// What a GGUF file holds.
#[cfg(feature = "gguf")]
fn contents_of_gguf(file: &Path) -> Result<String> {
    super::gguf::contents(file)
}

#[cfg(not(feature = "gguf"))]
fn contents_of_gguf(_: &Path) -> Result<String> {
    Ok("GGUF files are read as decoders alone".to_owned())
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
        let pool_len = graph
            .inputs()
            .find(|(name, ..)| *name == "pool")
            .and_then(|(.., shape)| shape.elements())
            .expect("invariant: the encoder has it, of sizes");
        let [mask, pool] = [("mask", batch * time), ("pool", pool_len)]
            .map(|(name, len)| input(name, DType::F32, len));
        let (mask, pool) = (mask?, pool?);
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
