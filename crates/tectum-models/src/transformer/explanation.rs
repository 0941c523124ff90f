//! What a run of a model is made of.

use serde::Serialize;
use tectum::{Made, Plan, PlanWork, RecordedNode};

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
    pub temporary_bytes_apart: usize,
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
                made: match node.made {
                    Made::Fed => "fed",
                    Made::Constant => "constant",
                    Made::View => "view",
                    Made::Launched => "launched",
                },
                kernels: launches.iter().map(|launch| launch.kernel.clone()).collect(),
                bytes: launches.iter().map(|launch| launch.bytes).sum(),
                flops: launches.iter().map(|launch| launch.flops).sum(),
            }
        };
        let nodes = nodes.iter().map(explain).collect();
        let (temporary_bytes, temporary_bytes_apart) = plan.temp_bytes();
        Self { work, nodes, weight_bytes, cache_bytes, temporary_bytes, temporary_bytes_apart }
    }
}
