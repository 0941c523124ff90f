//! The nodes and memory of a model's run, and the choice of a device for it.

use serde::Serialize;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::route::{self, Choice};
use tectum::{CacheFormats, Device, Error, Plan, PlanWork, Result};
use tectum_graph::{RecordedNode, ValueStorage};

use super::context::{MAX_PREFILL_CHUNK, bucket, bucket_of};
use super::encoder::{Encoder, RecordedRun};
use super::{Checkpoint, Decoder, Model};

/// Default tokens of an explained run.
const EXPLAINED_TOKENS: usize = 128;

/// The tokens of an explained run, at most `most`.
pub(super) fn explained_tokens(tokens: Option<usize>, taker: &str, most: usize) -> Result<usize> {
    let tokens = tokens.unwrap_or(EXPLAINED_TOKENS.min(most));
    if (1..=most).contains(&tokens) {
        Ok(tokens)
    } else {
        Err(Error::invalid(format!(
            "{tokens} tokens; {taker} 1 to {most}"
        )))
    }
}

impl Model {
    /// Explains a run on a device, of a decoder with these formats of keys and values, f32 by
    /// default.
    ///
    /// # Errors
    /// As [`Checkpoint::explain`] and [`Encoder::explain`]; `Invalid` for formats of an encoder's
    /// keys and values, which are not kept.
    pub fn explain(
        &self,
        device: &Device,
        tokens: Option<usize>,
        weights: Option<PanelFormat>,
        formats: Option<CacheFormats>,
    ) -> Result<RunExplanation> {
        match (self, formats) {
            (Model::Encoder(model), None) => model.explain(device, tokens, weights),
            (Model::Encoder(_), Some(_)) => Err(Error::invalid(
                "an encoder keeps no keys and values: a cache is a decoder's",
            )),
            (Model::Decoder(model), formats) => model.explain(
                device,
                tokens,
                weights,
                formats.unwrap_or(CacheFormats::F32),
            ),
        }
    }

    /// Opens the device of an id for this model. `auto` is the device with the minimum predicted
    /// time (a decoder: one token after others; an encoder: a text of 128), or that of fixed
    /// thresholds. Also returns the choice.
    ///
    /// # Errors
    /// As [`route::open`] and [`Device::open`].
    pub fn open_device(&self, id: &str, routing: Routing) -> Result<(Device, Option<Choice>)> {
        match self {
            Model::Encoder(model) => model.open_device(id, routing),
            Model::Decoder(model) => model.open_device(id, routing),
        }
    }
}

fn open_for_run(
    id: &str,
    routing: Routing,
    explain: impl FnOnce(&Device) -> Result<RunExplanation>,
) -> Result<(Device, Option<Choice>)> {
    if id != "auto" {
        return Ok((Device::open(id)?, None));
    }
    let cpu = Device::open("cpu")?;
    // Faults of the model are reported when it is opened.
    let Ok(run) = explain(&cpu) else {
        return Ok((cpu, None));
    };
    let (device, choice) = match routing {
        Routing::Measured => route::open(&run.work)?,
        Routing::Fixed => route::open_fixed(&run.work)?,
    };
    Ok((device, Some(choice)))
}

/// How `auto` chooses a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// By the minimum predicted time, from measured rates.
    #[default]
    Measured,
    /// By the fixed thresholds of [`route::choose_fixed`].
    Fixed,
}

impl std::str::FromStr for Routing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "measured" => Ok(Routing::Measured),
            "fixed" => Ok(Routing::Fixed),
            other => Err(Error::invalid(format!(
                "route {other:?}; known: measured, fixed"
            ))),
        }
    }
}

/// A run of a model, node by node, and the memory that it takes.
#[derive(Debug, Clone, Serialize)]
pub struct RunExplanation {
    /// The work of the plan on a device, from which its time is predicted.
    pub work: PlanWork,
    /// The nodes of the executed graph, in order.
    pub nodes: Vec<NodeExplanation>,
    /// Bytes of the weights, which stay on the device between runs.
    pub weight_bytes: usize,
    /// Bytes of keys and values, which stay too.
    pub cache_bytes: usize,
    /// Peak bytes of all other values; memory is reused after its last read.
    pub temporary_bytes: usize,
    /// Their bytes if each had separate memory.
    pub temporary_bytes_unshared: usize,
}

/// A node of an executed graph.
#[derive(Debug, Clone, Serialize)]
pub struct NodeExplanation {
    /// Its number.
    pub node: String,
    /// The operation with its operands.
    pub operation: String,
    /// The value's shape.
    pub shape: String,
    /// Origin of the value: `fed`, `constant`, `view` of existing memory, `launched`.
    pub made: &'static str,
    /// The kernels that compute it, one for each launch.
    pub kernels: Vec<String>,
    /// Bytes that they bind.
    pub bytes: f64,
    /// Their operations.
    pub flops: f64,
}

impl RunExplanation {
    /// Explains a plan from the nodes that it was recorded from and the bytes of weights and of a
    /// cache.
    pub(super) fn new(
        plan: &Plan,
        nodes: &[RecordedNode],
        weight_bytes: usize,
        cache_bytes: usize,
    ) -> Self {
        let work = plan.work();
        let explain = |node: &RecordedNode| {
            let launches = &work.launches[node.launches.clone()];
            NodeExplanation {
                node: node.node.to_string(),
                operation: node.operation.clone(),
                shape: format!("{:?}", node.shape),
                made: match node.storage {
                    ValueStorage::Fed => "fed",
                    ValueStorage::Constant => "constant",
                    ValueStorage::View => "view",
                    ValueStorage::Launched => "launched",
                },
                kernels: launches
                    .iter()
                    .map(|launch| launch.kernel.clone())
                    .collect(),
                bytes: launches.iter().map(|launch| launch.bytes).sum(),
                flops: launches.iter().map(|launch| launch.flops).sum(),
            }
        };
        let nodes = nodes.iter().map(explain).collect();
        let (temporary_bytes, temporary_bytes_unshared) = plan.temp_bytes();
        Self {
            work,
            nodes,
            weight_bytes,
            cache_bytes,
            temporary_bytes,
            temporary_bytes_unshared,
        }
    }
}

impl Encoder {
    /// Opens the device of an id for this encoder, as [`Model::open_device`].
    ///
    /// # Errors
    /// As [`Model::open_device`].
    pub fn open_device(&self, id: &str, routing: Routing) -> Result<(Device, Option<Choice>)> {
        open_for_run(id, routing, |cpu| self.explain(cpu, None, None))
    }

    /// The nodes and memory of a run on a device over one text of a number of tokens, padded as
    /// [`Embedder::embed`](super::Embedder::embed) does; the default is 128, or the maximum of a
    /// text. `weights` as in [`Embedder::new`](super::Embedder::new). No weight is read.
    ///
    /// # Errors
    /// `Invalid` for no tokens, or more than a text may have.
    pub fn explain(
        &self,
        device: &Device,
        tokens: Option<usize>,
        weights: Option<PanelFormat>,
    ) -> Result<RunExplanation> {
        let tokens = explained_tokens(tokens, "a text has", self.max_tokens)?;
        let prepared = self.prepare(device.info().preferences(), weights);
        let run = RecordedRun::record(
            &prepared,
            1,
            bucket(tokens).min(self.max_tokens),
            self.head.width,
        )?;
        Ok(RunExplanation::new(
            &run.plan.finish()?,
            &run.nodes,
            prepared.weight_bytes(),
            0,
        ))
    }
}

impl Checkpoint {
    /// Opens the device of an id for this decoder, as [`Model::open_device`].
    ///
    /// # Errors
    /// As [`Model::open_device`].
    pub fn open_device(&self, id: &str, routing: Routing) -> Result<(Device, Option<Choice>)> {
        open_for_run(id, routing, |cpu| {
            self.explain(cpu, Some(1), None, CacheFormats::F32)
        })
    }

    /// The nodes and memory of a run on a device over a number of tokens, of which the last gets
    /// scores; the default is 128, or the context's maximum. `weights` and `formats` as in
    /// [`Decoder::new`]. No weight is read.
    ///
    /// # Errors
    /// As [`Decoder::new`]; `Invalid` for no tokens, or more than the maximum of a run or the
    /// context.
    pub fn explain(
        &self,
        device: &Device,
        tokens: Option<usize>,
        weights: Option<PanelFormat>,
        formats: CacheFormats,
    ) -> Result<RunExplanation> {
        let decoder = Decoder::without_weights(self, device, usize::MAX, formats, weights)?;
        let tokens = explained_tokens(
            tokens,
            "a run takes",
            MAX_PREFILL_CHUNK.min(decoder.capacity),
        )?;
        let (plan, _, _, nodes) = decoder.record(bucket_of(tokens), 1)?;
        Ok(RunExplanation::new(
            &plan.finish()?,
            &nodes,
            decoder.weight_bytes(),
            decoder.cache_bytes(),
        ))
    }
}
