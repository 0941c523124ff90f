//! Graphs: networks as operations on matrices, differentiated, fused and lowered to plans.
//!
//! A [`GraphBuilder`] checks every operation as it is added; the [`Graph`] it finishes is never changed, only passed on by
//! passes that make another: [`Graph::gradients`], [`Graph::simplify`], [`Graph::fuse`], [`Graph::prune`]. Every value is
//! a row-major f32 matrix `[rows, cols]`; a vector is `[1, n]`, a scalar `[1, 1]`. No pass renumbers: a [`Node`] names
//! the same value in every graph made from the one that gave it, so handles stay good throughout.
//!
//! Inputs, parameters, constants and results are nodes of one numbering, told apart by their kind. Nothing here knows a
//! device; lowering writes launches into a [`PlanBuilder`](crate::PlanBuilder) and is the only place that knows of plans.

mod builder;
mod compiled;
mod describe;
mod differentiate;
mod evaluate;
mod fuse;
mod lower;
mod parameter_layout;
mod prune;
mod simplify;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernel::Activation;
pub use builder::GraphBuilder;
pub use compiled::CompiledGraph;
pub use evaluate::Tensor;
pub use parameter_layout::{LayoutEntry, ParameterLayout};

/// The handle of a value in a graph. Only a [`GraphBuilder`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u32);

impl Node {
    /// The value as the transpose of itself, for [`GraphBuilder::matmul`]; nothing is moved.
    #[must_use]
    pub fn transpose(self) -> Factor {
        Factor { node: self, transposed: true }
    }
}

/// An operand of a matrix product: a value, or its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    node: Node,
    transposed: bool,
}

impl From<Node> for Factor {
    fn from(node: Node) -> Self {
        Self { node, transposed: false }
    }
}

impl Factor {
    fn oriented(self, shape: [usize; 2]) -> [usize; 2] {
        if self.transposed { [shape[1], shape[0]] } else { shape }
    }

    fn flipped(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }
}

/// A checked network: operations in order, and which of their values are outputs.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: BTreeMap<Node, Definition>,
    outputs: Vec<(String, Node)>,
    /// The number of the next node; never used again, even if passes remove nodes.
    next: u32,
}

/// What a node is.
#[derive(Debug, Clone)]
struct Definition {
    operation: Operation,
    shape: [usize; 2],
}

/// The operations. What each computes stands in `evaluate.rs`, what it becomes in `lower.rs`.
#[derive(Debug, Clone)]
enum Operation {
    Input { name: String },
    Parameter { name: String },
    Constant { data: Arc<[f32]> },
    MatMul { a: Factor, b: Factor },
    /// A product with its tail, as one launch; only `fuse` makes it.
    Linear { a: Factor, b: Factor, tail: Tail },
    /// `b` is of `a`'s shape, a row that repeats, or a scalar.
    Binary { op: BinaryOp, a: Node, b: Node },
    Scale { x: Node, factor: f32 },
    Activate { activation: Activation, x: Node },
    /// The gradient at an activation's argument, from its result and the gradient there; `dy` repeats as `b` above.
    ActivationGrad { activation: Activation, y: Node, dy: Node },
    Reduce { over: Over, x: Node },
    /// Repeats a scalar, a row or a column.
    Broadcast { x: Node },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinaryOp {
    Add,
    Sub,
    Mul,
}

/// What a sum runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    All,
    Rows,
    Columns,
}

/// What follows a fused product: `activation(a·b + bias) + residual`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tail {
    bias: Option<Node>,
    activation: Activation,
    residual: Option<Node>,
}

impl Operation {
    /// The nodes it reads, one entry for each use.
    fn operands(&self) -> Vec<Node> {
        match self {
            Operation::Input { .. } | Operation::Parameter { .. } | Operation::Constant { .. } => vec![],
            Operation::MatMul { a, b } => vec![a.node, b.node],
            Operation::Linear { a, b, tail } => [a.node, b.node].into_iter().chain(tail.bias).chain(tail.residual).collect(),
            Operation::Binary { a, b, .. } => vec![*a, *b],
            Operation::ActivationGrad { y, dy, .. } => vec![*y, *dy],
            Operation::Scale { x, .. } | Operation::Activate { x, .. } | Operation::Reduce { x, .. } | Operation::Broadcast { x } => vec![*x],
        }
    }

    fn is_fed(&self) -> bool {
        matches!(self, Operation::Input { .. } | Operation::Parameter { .. })
    }
}

impl Graph {
    /// The shape of a value.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph (or a pass has removed it).
    pub fn shape(&self, node: Node) -> Result<[usize; 2]> {
        match self.nodes.get(&node) {
            Some(definition) => Ok(definition.shape),
            None => Err(Error::invalid(format!("node {} is not in this graph", node.0))),
        }
    }

    /// The inputs in the order they were added: name, node and shape.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Node, [usize; 2])> {
        self.nodes.iter().filter_map(|(&node, definition)| match &definition.operation {
            Operation::Input { name } => Some((name.as_str(), node, definition.shape)),
            _ => None,
        })
    }

    /// The parameters in the order they were added: name, node and shape.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Node, [usize; 2])> {
        self.nodes.iter().filter_map(|(&node, definition)| match &definition.operation {
            Operation::Parameter { name } => Some((name.as_str(), node, definition.shape)),
            _ => None,
        })
    }

    /// The outputs in the order they were named: name, node and shape. Two names may stand for one node.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Node, [usize; 2])> {
        self.outputs.iter().map(|(name, node)| (name.as_str(), *node, self.nodes[node].shape))
    }

    /// The node of an output.
    ///
    /// # Errors
    /// `Invalid`, listing the outputs, if none has this name.
    pub fn output(&self, name: &str) -> Result<Node> {
        find(self.outputs(), "output", name).map(|(node, _)| node)
    }

    /// The same network with fewer launches: [`simplify`](Graph::simplify), [`fuse`](Graph::fuse), then
    /// [`prune`](Graph::prune). Outputs, inputs and parameters keep their nodes.
    #[must_use]
    pub fn optimize(&self) -> Graph {
        self.simplify().fuse().prune()
    }

    /// How often each node is read, an output counting as one reading.
    fn uses(&self) -> BTreeMap<Node, usize> {
        let mut uses = BTreeMap::new();
        let read = self.nodes.values().flat_map(|definition| definition.operation.operands());
        for node in read.chain(self.outputs.iter().map(|(_, node)| *node)) {
            *uses.entry(node).or_insert(0) += 1;
        }
        uses
    }
}

/// The entry of a name among inputs, parameters or outputs.
fn find<'a>(mut entries: impl Iterator<Item = (&'a str, Node, [usize; 2])>, kind: &str, name: &str) -> Result<(Node, [usize; 2])> {
    let mut names = Vec::new();
    match entries.find(|(entry, ..)| {
        names.push(*entry);
        *entry == name
    }) {
        Some((_, node, shape)) => Ok((node, shape)),
        None => Err(Error::invalid(format!("no {kind} {name}; there are {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }))),
    }
}

fn elements(shape: [usize; 2]) -> usize {
    shape[0] * shape[1]
}
