//! Graphs: networks as operations on tensors, differentiated, fused and lowered to plans;
//! `docs/graphs.md` is the guide.
//!
//! ```
//! use tectum::{Activation, Device};
//! use tectum_graph::GraphBuilder;
//! let mut g = GraphBuilder::new();
//! let x = g.input("x", [1, 2])?;
//! let y = g.dense("layer", x, 1, Activation::Relu)?;
//! g.output("y", y)?;
//! let mut network = g.finish()?.compile(&Device::open("cpu")?)?;
//! network.set_parameter("layer.weight", &[2.0, -1.0])?;
//! network.set_parameter("layer.bias", &[0.5])?;
//! network.set_input("x", &[3.0, 1.0])?;
//! network.run()?;
//! assert_eq!(network.output("y")?, [5.5]);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | type | what for |
//! |---|---|
//! | [`GraphBuilder`], [`Graph`], [`Node`], [`Shape`] | networks, checked as they are built; text form, float64 evaluation, gradients |
//! | [`CompiledGraph`] | runs on a device |
//! | [`Trainer`], [`AdamW`], [`Init`], [`Batches`] | training |
//! | [`Pass`] | fusion and simplification, one at a time |
//! | [`Graph::parse`] | graphs from text |
//!
//! A [`GraphBuilder`] checks every operation as it is added; a finished [`Graph`] never changes;
//! passes build new graphs from it: [`Graph::bind`], [`Graph::gradients`], each [`Pass`]. Every
//! value is a row-major tensor of up to eight dimensions: f32, i32 for integers and truth values,
//! u32 for row numbers and packed words; matrix operations take the dimensions before the last as
//! rows. A dimension may be a letter, bound to a size before anything is computed. No pass
//! renumbers: a [`Node`] names the same value in every graph derived from the one that made it, so
//! handles stay valid.
//!
//! A [`Trainer`] fits the parameters of a graph to data: gradients, AdamW and checkpoints, on every
//! device.
//!
//! Inputs, parameters, constants and results are nodes of one numbering, distinguished by their
//! kind. This module does not depend on a device; lowering writes launches into a
//! [`PlanBuilder`](tectum::PlanBuilder) and is the only part that uses plans.

mod bind;
mod builder;
mod common_subexpressions;
mod compiled;
mod describe;
mod differentiate;
mod evaluate;
mod fold;
mod fuse;
mod fuse_attention;
mod fuse_chains;
mod inputs;
mod lower;
mod operation;
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
mod training;

use std::collections::BTreeMap;
use std::fmt;

use tectum::internal::Identity;
use tectum::{DType, Error, Result};

use operation::{AnyCustomOp, Operation};

pub use builder::GraphBuilder;
pub use compiled::CompiledGraph;
pub use lower::{RecordedNode, ValueStorage};
pub use operation::activate::{activation_name, activation_named};
pub use operation::{
    BinaryOp, Comparison, CustomOp, Distribution, Factor, Function, Heads, IntegerOp, PoolKind,
    Reduction,
};
pub use pack::PackedParameter;
pub use parameter_layout::{LayoutEntry, ParameterLayout};
pub use passes::Pass;
pub use shape::{Dim, MAX_RANK, Shape};
pub use tensor::Tensor;
pub use training::{AdamW, Batches, Init, LearningRate, Trainer, rows};

/// The handle of a value in a graph. Only a [`GraphBuilder`] and passes make one; every graph not
/// derived from theirs refuses it.
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

impl Graph {
    /// The shape of a value.
    ///
    /// # Errors
    /// `Invalid` if the node belongs to another graph or a pass has removed it.
    pub fn shape(&self, node: Node) -> Result<Shape> {
        match self.nodes.get(&node) {
            Some(definition) => Ok(definition.shape),
            None if self.makers.contains(&node.graph) => {
                Err(Error::invalid(format!("node {node} is not in this graph")))
            }
            None => Err(Error::invalid(format!("node {node} is of another graph"))),
        }
    }

    /// The builder or pass that makes the next node.
    fn maker(&self) -> Identity {
        *self
            .makers
            .last()
            .expect("invariant: only a builder or pass makes nodes")
    }

    /// The element type of the view that feeds or receives a value: u32 for row numbers and for
    /// words that hold values of another format.
    ///
    /// # Errors
    /// As [`Graph::shape`].
    pub fn dtype(&self, node: Node) -> Result<DType> {
        self.shape(node)
            .map(|_| self.nodes[&node].operation.dtype(self))
    }

    /// How many rows the row numbers of a node select from, at least: of the tables of `gather` and
    /// the classes of `cross_entropy`. None if nothing selects by them, or a size is open.
    pub fn rows(&self, indices: Node) -> Option<usize> {
        let rows = self
            .nodes
            .values()
            .filter_map(|definition| definition.operation.rows(self, indices, definition.shape));
        rows.min()
    }

    /// The outputs in the order they were named: name, node and shape. Two names may refer to one
    /// node.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.outputs
            .iter()
            .map(|(name, node)| (name.as_str(), *node, self.nodes[node].shape))
    }

    /// The node of an output.
    ///
    /// # Errors
    /// `Invalid`, listing the outputs, if none has this name.
    pub fn output(&self, name: &str) -> Result<Node> {
        find(
            self.outputs().map(|(name, node, _)| (name, node)),
            "output",
            name,
        )
    }

    /// Whether a pass can make handles between a node and all before it; not possible for node 0
    /// and for nodes that a pass made.
    fn has_room_before(&self, node: Node) -> bool {
        node.number > 0 && node.step == 0
    }

    /// A new handle after everything before `node`, where handles are free.
    fn before(&self, node: Node) -> Node {
        let number = node.number - 1;
        let there = self.nodes.keys().copied().chain(self.inside_chains());
        let last = there.filter(|other| other.number == number).max();
        Node {
            number,
            step: last.map_or(1, |last| last.step + 1),
            graph: self.maker(),
        }
    }

    /// How often each node is read, an output counting as one reading.
    fn uses(&self) -> BTreeMap<Node, usize> {
        let mut uses = BTreeMap::new();
        let read = self
            .nodes
            .values()
            .flat_map(|definition| definition.operation.operands());
        for node in read.chain(self.outputs.iter().map(|(_, node)| *node)) {
            *uses.entry(node).or_insert(0) += 1;
        }
        uses
    }
}

/// The entry of a name among inputs, parameters or outputs.
fn find<'a, T>(
    mut entries: impl Iterator<Item = (&'a str, T)>,
    kind: &str,
    name: &str,
) -> Result<T> {
    let mut names = Vec::new();
    match entries.find(|(entry, _)| {
        names.push(*entry);
        *entry == name
    }) {
        Some((_, found)) => Ok(found),
        None => Err(Error::invalid(format!(
            "no {kind} {name}; there are {}",
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        ))),
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
