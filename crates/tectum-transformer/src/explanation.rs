//! What a run of a model is made of, and the device that suits it.

use std::path::Path;

use serde::Serialize;
use tectum::kernel::panel_format::PanelFormat;
use tectum::route::{self, Choice};
use tectum::{CacheFormats, Device, Error, Plan, PlanWork, Result};
use tectum_graph::{RecordedNode, ValueStorage};

use super::context::{MAX_PREFILL_CHUNK, bucket, bucket_of};
use super::device_weights::{DeviceWeights, weight_format};
use super::{Decoder, Embedder, SafetensorsWeights, is_decoder};

/// Tokens of a run that is explained, where nothing is said.
const EXPLAINED_TOKENS: usize = 128;

/// The tokens of a run that is explained, of which something takes so many at most.
pub(super) fn explained_tokens(tokens: Option<usize>, taker: &str, most: usize) -> Result<usize> {
    let tokens = tokens.unwrap_or(EXPLAINED_TOKENS.min(most));
    if (1..=most).contains(&tokens) { Ok(tokens) } else { Err(Error::invalid(format!("{tokens} tokens; {taker} 1 to {most}"))) }
}

/// What a run of a model on a device is made of: of a decoder or an encoder, whichever is there.
///
/// # Errors
/// As [`Decoder::explain`] and [`Embedder::explain`].
pub fn explain_run(path: &Path, device: &Device, tokens: Option<usize>, weights: Option<PanelFormat>) -> Result<RunExplanation> {
    if is_decoder(path)? { Decoder::explain(path, device, tokens, weights) } else { Embedder::explain(path, device, tokens, weights) }
}

/// Opens the device of an id for a model. `auto` is the one that is predicted to take least time: of a decoder for one token after
/// others, of an encoder for a text of 128; or that of fixed thresholds. The choice comes with it. No weight is read.
///
/// # Errors
/// As [`route::open`] and [`Device::open`].
pub fn open_device(path: &Path, id: &str, routing: Routing) -> Result<(Device, Option<Choice>)> {
    if id != "auto" {
        return Ok((Device::open(id)?, None));
    }
    let cpu = Device::open("cpu")?;
    // What is wrong with the model is told when it is opened.
    let Ok(run) = is_decoder(path).and_then(|is_decoder| explain_run(path, &cpu, is_decoder.then_some(1), None)) else { return Ok((cpu, None)) };
    let (device, choice) = match routing {
        Routing::Measured => route::open(&run.work)?,
        Routing::Fixed => route::open_fixed(&run.work)?,
    };
    Ok((device, Some(choice)))
}

/// How a device is chosen where `auto` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// By the least predicted time, from rates that were measured.
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
            other => Err(Error::invalid(format!("route {other:?}; known: measured, fixed"))),
        }
    }
}

/// A run of a model, node by node, and the memory that it takes.
#[derive(Debug, Clone, Serialize)]
pub struct RunExplanation {
    /// What the plan asks of a device, from which its time is predicted.
    pub work: PlanWork,
    /// The nodes of the graph as it runs, in order.
    pub nodes: Vec<NodeExplanation>,
    /// Bytes of the weights, which stay on the device from run to run.
    pub weight_bytes: usize,
    /// Bytes of keys and values, which stay too.
    pub cache_bytes: usize,
    /// Bytes of all other values at their peak, memory being used again once nothing reads it any more.
    pub temporary_bytes: usize,
    /// What they would take if each had memory of its own.
    pub temporary_bytes_unshared: usize,
}

/// A node of a graph as it runs.
#[derive(Debug, Clone, Serialize)]
pub struct NodeExplanation {
    /// Its number.
    pub node: String,
    /// The operation with its operands.
    pub operation: String,
    /// The value's shape.
    pub shape: String,
    /// Where the value comes from: `fed`, `constant`, `view` of memory that is there, `launched`.
    pub made: &'static str,
    /// The kernels that compute it, one a launch.
    pub kernels: Vec<String>,
    /// Bytes that these bind.
    pub bytes: f64,
    /// Operations of these.
    pub flops: f64,
}

impl RunExplanation {
    /// Of a plan, the nodes that it was recorded from, and the bytes of weights and of a cache.
    pub(super) fn new(plan: &Plan, nodes: &[RecordedNode], weight_bytes: usize, cache_bytes: usize) -> Self {
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
                kernels: launches.iter().map(|launch| launch.kernel.clone()).collect(),
                bytes: launches.iter().map(|launch| launch.bytes).sum(),
                flops: launches.iter().map(|launch| launch.flops).sum(),
            }
        };
        let nodes = nodes.iter().map(explain).collect();
        let (temporary_bytes, temporary_bytes_unshared) = plan.temp_bytes();
        Self { work, nodes, weight_bytes, cache_bytes, temporary_bytes, temporary_bytes_unshared }
    }
}

impl Embedder {
    /// What a run on a device over one text of so many tokens, padded to the next [`bucket`], is made of; 128 if it is not said, or
    /// as many as a text may have. `weights` as [`Embedder::open_with`] has it. No weight is read.
    ///
    /// # Errors
    /// As [`Embedder::open`]; `Invalid` for no tokens, or more than a text may have.
    pub fn explain(folder: &Path, device: &Device, tokens: Option<usize>, weights: Option<PanelFormat>) -> Result<RunExplanation> {
        let embedder = Embedder::assemble(folder, device, |graph| {
            let file = SafetensorsWeights::open(folder)?;
            Ok(DeviceWeights::prepare_graph(graph, device, weight_format(weights, device, |name| file.format(name))).0)
        })?;
        let most = embedder.max_tokens;
        let tokens = explained_tokens(tokens, "a text has", most)?;
        let (plan, _, _, nodes) = embedder.record(1, bucket(tokens).min(most))?;
        Ok(RunExplanation::new(&plan.finish()?, &nodes, embedder.resident.bytes(), 0))
    }
}

impl Decoder {
    /// What a run on a device over so many tokens, of which the last gets scores, is made of; 128 if it is not said, or as many as the
    /// context takes. `weights` as [`Decoder::open_with`] has it. No weight is read.
    ///
    /// # Errors
    /// As [`Decoder::open`]; `Invalid` for no tokens, or more than a run or the context takes.
    pub fn explain(path: &Path, device: &Device, tokens: Option<usize>, weights: Option<PanelFormat>) -> Result<RunExplanation> {
        let decoder = Decoder::assemble(path, device, usize::MAX, CacheFormats::F32, |model, graph| {
            Ok(DeviceWeights::prepare_graph(graph, device, weight_format(weights, device, |name| model.format(name))).0)
        })?;
        let tokens = explained_tokens(tokens, "a run takes", MAX_PREFILL_CHUNK.min(decoder.capacity))?;
        let (plan, _, _, nodes) = decoder.record(bucket_of(tokens), 1)?;
        Ok(RunExplanation::new(&plan.finish()?, &nodes, decoder.device_weights.bytes(), decoder.cache_bytes()))
    }
}
