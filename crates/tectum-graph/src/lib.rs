//! Graphs: networks as operations on tensors, differentiated, fused and lowered to plans; `docs/graphs.md` is the guide.
//!
//! A [`GraphBuilder`] checks every operation as it is added; a finished [`Graph`] never changes; passes build
//! new graphs from it: [`Graph::bind`], [`Graph::gradients`], each [`Pass`].
//! Every value is a row-major f32 tensor of up to four dimensions (row numbers are u32); matrix operations take the
//! dimensions before the last as rows. A dimension may be a letter, bound to a size before anything is computed. No pass
//! renumbers: a [`Node`] names the same value in every graph derived from the one that made it, so handles stay valid.
//!
//! Inputs, parameters, constants and results are nodes of one numbering, distinguished by their kind. This module does not depend on
//! a device; lowering writes launches into a [`PlanBuilder`](tectum::PlanBuilder) and is the only part that uses plans.

mod bind;
mod build_cache;
mod build_layout;
mod build_network;
mod builder;
mod common_subexpressions;
mod compiled;
mod describe;
mod differentiate;
mod evaluate;
mod evaluate_network;
mod fold;
mod fuse;
mod fuse_attention;
mod fuse_chains;
mod lower;
mod lower_network;
mod pack;
mod parameter_layout;
mod parse;
mod passes;
mod prune;
mod shape;
mod simplify;
mod tensor;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tectum::internal::Identity;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, CacheFormat, CacheFormats, DType, Error, Result};

pub use build_network::Heads;
pub use builder::GraphBuilder;
pub use compiled::CompiledGraph;
pub use lower::{RecordedNode, ValueStorage};
pub use pack::PackedParameter;
pub use parameter_layout::{LayoutEntry, ParameterLayout};
pub use passes::Pass;
pub use shape::{Dim, MAX_RANK, Shape};
pub use tensor::Tensor;

/// The handle of a value in a graph. Only a [`GraphBuilder`] and passes make one; every graph not derived from theirs refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    number: u32,
    /// 0 for built nodes; passes insert their nodes in between.
    step: u32,
    /// The builder or pass that made it.
    graph: Identity,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            0 => write!(f, "{}", self.number),
            step => write!(f, "{}.{step}", self.number),
        }
    }
}

impl Node {
    /// The value as the transpose of itself, for [`GraphBuilder::matmul`]; no data is moved.
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
    /// Rows and columns as the product reads them.
    fn oriented(self, shape: Shape) -> [Dim; 2] {
        let dims = shape.dims();
        let (rows, cols) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        if self.transposed { [cols, rows] } else { [rows, cols] }
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
    /// The builders and passes that made its nodes; the last makes the next one.
    makers: Vec<Identity>,
}

/// The kind of a node.
#[derive(Debug, Clone)]
struct Definition {
    operation: Operation,
    shape: Shape,
}

/// The operations. `evaluate.rs` defines what each computes, `lower.rs` what it is lowered to.
#[derive(Debug, Clone)]
enum Operation {
    Input {
        name: String,
    },
    /// An input of u32: rows of a table.
    Indices {
        name: String,
    },
    /// Of f32, or words of weights in panels of another format.
    Parameter {
        name: String,
        format: PanelFormat,
    },
    /// A value that stays on the device between runs, in a format.
    State {
        name: String,
        format: CacheFormat,
    },
    Constant {
        data: Arc<[f32]>,
    },
    MatMul {
        a: Factor,
        b: Factor,
    },
    /// A product with its tail, as one launch; only `fuse` makes it.
    Linear {
        a: Factor,
        b: Factor,
        tail: LinearEpilogue,
    },
    /// The same with `b` in panels of a format, [⌈n / 16⌉, words / 16, 16]; only `pack_weights` makes it.
    LinearPanels {
        a: Node,
        b: Node,
        format: PanelFormat,
        tail: LinearEpilogue,
    },
    /// `b` is of `a`'s shape, a row that repeats, or a scalar.
    Binary {
        op: BinaryOp,
        a: Node,
        b: Node,
    },
    Scale {
        x: Node,
        factor: f32,
    },
    Activate {
        activation: Activation,
        x: Node,
    },
    /// The gradient at an activation's argument, from its result and the gradient there; `dy` repeats as `b` above.
    ActivationGrad {
        activation: Activation,
        y: Node,
        dy: Node,
    },
    /// Elementwise operations that `fuse_chains` has combined: each has its shape; the value of the last is its value.
    Chain {
        before: Vec<(Node, Operation)>,
        last: Box<Operation>,
    },
    Reduce {
        axes: ReduceAxes,
        x: Node,
    },
    /// Repeats a scalar, a row or a column.
    Broadcast {
        x: Node,
    },
    /// `y[.., j] = table[indices[..], j]`
    Gather {
        table: Node,
        indices: Node,
    },
    /// The same elements in another shape.
    Reshape {
        x: Node,
    },
    /// Axis `i` of the result is axis `order[i]` of `x`.
    Permute {
        x: Node,
        order: Vec<usize>,
    },
    /// As many elements of an axis as the result has, from `start` on.
    Slice {
        x: Node,
        axis: usize,
        start: usize,
    },
    /// One after another along an axis.
    Concat {
        parts: Vec<Node>,
        axis: usize,
    },
    /// Over the last axis.
    Softmax {
        x: Node,
    },
    /// Over the last axis, each row minus its mean, divided by its deviation.
    LayerNorm {
        x: Node,
        gain: Node,
        bias: Node,
        epsilon: f32,
    },
    /// Over the last axis, each row divided by its root mean square.
    RmsNorm {
        x: Node,
        gain: Node,
        epsilon: f32,
    },
    /// Scaled dot-product attention of each head.
    Attention {
        q: ColumnSlice,
        k: ColumnSlice,
        v: ColumnSlice,
        mask: Option<Node>,
        heads: Heads,
    },
    /// Causal attention to the contents of caches, after keys and values are written there.
    AttentionCached {
        q: ColumnSlice,
        k: ColumnSlice,
        v: ColumnSlice,
        caches: [Node; 2],
        formats: CacheFormats,
        spans: Node,
        heads: Heads,
    },
    /// Rotary positions: rotations of pairs of elements.
    Rotary {
        x: Node,
        positions: Node,
        heads: usize,
        base: f32,
    },
}

/// Some neighbouring columns of the last axis of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ColumnSlice {
    node: Node,
    start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinaryOp {
    Add,
    Sub,
    Mul,
}

/// What a sum runs over: everything, all axes but the last, the last, or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReduceAxes {
    All,
    Rows,
    Columns,
    Axis(usize),
}

/// The tail of a fused product: `activation(a·b + bias) + residual`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LinearEpilogue {
    bias: Option<Node>,
    activation: Activation,
    residual: Option<Node>,
}

impl LinearEpilogue {
    fn operands_mut(&mut self) -> [Option<&mut Node>; 2] {
        [self.bias.as_mut(), self.residual.as_mut()]
    }
}

impl Operation {
    /// The nodes it reads, one entry for each use.
    fn operands(&self) -> Vec<Node> {
        self.clone().operands_mut().into_iter().map(|operand| *operand).collect()
    }

    /// As [`Operation::operands`], to replace them.
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Operation::MatMul { a, b } => vec![&mut a.node, &mut b.node],
            Operation::Linear { a, b, tail } => [Some(&mut a.node), Some(&mut b.node)].into_iter().chain(tail.operands_mut()).flatten().collect(),
            Operation::LinearPanels { a, b, tail, .. } => [Some(a), Some(b)].into_iter().chain(tail.operands_mut()).flatten().collect(),
            Operation::Binary { a, b, .. } => vec![a, b],
            Operation::ActivationGrad { y, dy, .. } => vec![y, dy],
            Operation::Scale { x, .. } | Operation::Activate { x, .. } | Operation::Reduce { x, .. } | Operation::Broadcast { x } => vec![x],
            Operation::Chain { before, last } => {
                let inner: Vec<Node> = before.iter().map(|(node, _)| *node).collect();
                let steps = before.iter_mut().map(|(_, step)| step).chain([&mut **last]);
                steps.flat_map(Operation::operands_mut).filter(|operand| !inner.contains(operand)).collect()
            }
            Operation::Reshape { x } | Operation::Permute { x, .. } | Operation::Slice { x, .. } | Operation::Softmax { x } => vec![x],
            Operation::Gather { table, indices } => vec![table, indices],
            Operation::Concat { parts, .. } => parts.iter_mut().collect(),
            Operation::LayerNorm { x, gain, bias, .. } => vec![x, gain, bias],
            Operation::RmsNorm { x, gain, .. } => vec![x, gain],
            Operation::Attention { q, k, v, mask, .. } => [&mut q.node, &mut k.node, &mut v.node].into_iter().chain(mask.as_mut()).collect(),
            Operation::AttentionCached { q, k, v, caches: [k_cache, v_cache], spans, .. } => {
                vec![&mut q.node, &mut k.node, &mut v.node, k_cache, v_cache, spans]
            }
            Operation::Rotary { x, positions, .. } => vec![x, positions],
            Operation::Input { .. } | Operation::Indices { .. } | Operation::Parameter { .. } | Operation::State { .. } | Operation::Constant { .. } => vec![],
        }
    }

    fn is_fed(&self) -> bool {
        matches!(self, Operation::Input { .. } | Operation::Indices { .. } | Operation::Parameter { .. } | Operation::State { .. })
    }

    fn dtype(&self) -> DType {
        match self {
            Operation::Indices { .. } => DType::U32,
            Operation::Parameter { format, .. } => format.dtype(),
            _ => DType::F32,
        }
    }
}

impl Graph {
    /// The shape of a value.
    ///
    /// # Errors
    /// `Invalid` if the node belongs to another graph or a pass has removed it.
    pub fn shape(&self, node: Node) -> Result<Shape> {
        match self.nodes.get(&node) {
            Some(definition) => Ok(definition.shape),
            None if self.makers.contains(&node.graph) => Err(Error::invalid(format!("node {node} is not in this graph"))),
            None => Err(Error::invalid(format!("node {node} is of another graph"))),
        }
    }

    /// The builder or pass that makes the next node.
    fn maker(&self) -> Identity {
        *self.makers.last().expect("invariant: only a builder or pass makes nodes")
    }

    /// The inputs in the order they were added: name, node and shape.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.nodes.iter().filter_map(|(&node, definition)| match &definition.operation {
            Operation::Input { name } | Operation::Indices { name } => Some((name.as_str(), node, definition.shape)),
            _ => None,
        })
    }

    /// The parameters in the order they were added: name, node and shape.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.nodes.iter().filter_map(|(&node, definition)| match &definition.operation {
            Operation::Parameter { name, .. } => Some((name.as_str(), node, definition.shape)),
            _ => None,
        })
    }

    /// The outputs in the order they were named: name, node and shape. Two names may refer to one node.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.outputs.iter().map(|(name, node)| (name.as_str(), *node, self.nodes[node].shape))
    }

    /// The node of an output.
    ///
    /// # Errors
    /// `Invalid`, listing the outputs, if none has this name.
    pub fn output(&self, name: &str) -> Result<Node> {
        find(self.outputs().map(|(name, node, _)| (name, node)), "output", name)
    }

    /// Whether a pass can make handles between a node and all before it; not possible for node 0 and for nodes that a pass made.
    fn has_room_before(&self, node: Node) -> bool {
        node.number > 0 && node.step == 0
    }

    /// A new handle after everything before `node`, where handles are free.
    fn before(&self, node: Node) -> Node {
        let number = node.number - 1;
        let there = self.nodes.keys().copied().chain(self.inside_chains());
        let last = there.filter(|other| other.number == number).max();
        Node { number, step: last.map_or(1, |last| last.step + 1), graph: self.maker() }
    }

    /// The handles of values inside chains.
    fn inside_chains(&self) -> impl Iterator<Item = Node> {
        self.nodes
            .values()
            .flat_map(|definition| match &definition.operation {
                Operation::Chain { before, .. } => &before[..],
                _ => &[],
            })
            .map(|(node, _)| *node)
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
fn find<'a, T>(mut entries: impl Iterator<Item = (&'a str, T)>, kind: &str, name: &str) -> Result<T> {
    let mut names = Vec::new();
    match entries.find(|(entry, _)| {
        names.push(*entry);
        *entry == name
    }) {
        Some((_, found)) => Ok(found),
        None => Err(Error::invalid(format!("no {kind} {name}; there are {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }))),
    }
}
