//! Fusion of elementwise operations into one launch: intermediate values stay in registers.

use std::collections::{BTreeMap, BTreeSet};

use tectum::Result;
use tectum_programs::MAX_INPUTS;

use super::builder::GraphBuilder;
use super::describe::activation_name;
use super::{Definition, Graph, Node, Operation, Shape};

/// Maximum operations of a chain: a kernel that every device compiles quickly.
const MAX_STEPS: usize = 64;

/// Operand of an elementwise operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Read {
    Value(Node),
    Factor(f32),
}

impl Operation {
    /// The name in the op table and the operands of an operation that works element by element.
    pub(super) fn elementwise(&self) -> Option<(String, Vec<Read>)> {
        use Read::{Factor, Value};
        match self {
            Operation::Binary { op, a, b } => Some((op.name().to_owned(), vec![Value(*a), Value(*b)])),
            Operation::Scale { x, factor } => Some(("mul".to_owned(), vec![Value(*x), Factor(*factor)])),
            Operation::Activate { activation, x } => Some((activation_name(*activation).to_owned(), vec![Value(*x)])),
            Operation::ActivationGrad { activation, y, dy } => Some((format!("{}_grad", activation_name(*activation)), vec![Value(*y), Value(*dy)])),
            _ => None,
        }
    }
}

impl Graph {
    /// Fuses elementwise operations that read each other into one `chain` in place of the last.
    ///
    /// An operation joins if all its readers are in the chain already and it is not an output; if its operands have the chain's shape
    /// or are scalar constants, so that one lane computes one element; and if the chain then reads no more values than a launch
    /// can bind. A value that is read several times within the chain is computed once.
    #[must_use]
    pub fn fuse_chains(&self) -> Graph {
        let uses = self.uses();
        let mut fused = self.clone();
        for &node in self.nodes.keys().rev() {
            let Some(definition) = fused.nodes.get(&node) else { continue };
            let (shape, mut steps) = (definition.shape, fused.chain_to(node, &uses));
            if steps.pop().is_none() || steps.is_empty() {
                continue;
            }
            let before = steps.iter().filter_map(|step| Some((*step, fused.nodes.remove(step)?.operation))).collect();
            let last = Box::new(self.nodes[&node].operation.clone());
            fused.nodes.insert(node, Definition { operation: Operation::Chain { before, last }, shape });
        }
        fused
    }

    /// The operations of the chain that ends with a node, in their order: only that node, or none, if there is nothing to fuse.
    fn chain_to(&self, last: Node, uses: &BTreeMap<Node, usize>) -> Vec<Node> {
        let shape = self.nodes[&last].shape;
        let mut chain = BTreeSet::new();
        if !self.is_step(last, shape) {
            return Vec::new();
        }
        let mut next = Some(last);
        while let Some(step) = next {
            chain.insert(step);
            next = self
                .values_read_by(&chain)
                .into_iter()
                .find(|&(node, count)| {
                    let is_free = uses.get(&node) == Some(&count) && chain.len() < MAX_STEPS && self.is_step(node, shape);
                    is_free && self.inputs_of(&chain.iter().copied().chain([node]).collect()).len() <= MAX_INPUTS
                })
                .map(|(node, _)| node);
        }
        if self.inputs_of(&chain).is_empty() { Vec::new() } else { chain.into_iter().collect() }
    }

    /// Whether a value is computed element by element from values of one shape and scalar constants.
    fn is_step(&self, node: Node, shape: Shape) -> bool {
        let (operation, own) = self.operation(node);
        let fits = |read: &Read| match *read {
            Read::Value(value) => self.nodes[&value].shape == shape || self.scalar(value).is_some(),
            Read::Factor(_) => true,
        };
        own == shape && operation.elementwise().is_some_and(|(_, reads)| reads.iter().all(fits))
    }

    /// The values that the steps of a chain read from outside, and how often.
    fn values_read_by(&self, chain: &BTreeSet<Node>) -> BTreeMap<Node, usize> {
        let mut read = BTreeMap::new();
        for operand in chain.iter().flat_map(|step| self.nodes[step].operation.operands()).filter(|operand| !chain.contains(operand)) {
            *read.entry(operand).or_insert(0) += 1;
        }
        read
    }

    /// Bindings of a chain's launch: all values it reads except scalar constants.
    fn inputs_of(&self, chain: &BTreeSet<Node>) -> Vec<Node> {
        self.values_read_by(chain).into_keys().filter(|node| self.scalar(*node).is_none()).collect()
    }
}

impl GraphBuilder {
    /// Combines operations that were added, as [`Graph::fuse_chains`] does; the last keeps its handle.
    pub(super) fn chain(&mut self, before: &[Node], last: Node) -> Result<Node> {
        let graph = self.graph();
        let shape = graph.shape(last)?;
        let steps: BTreeSet<Node> = before.iter().copied().chain([last]).collect();
        let inputs = graph.inputs_of(&steps).len();
        if let Some(other) = steps.iter().find(|step| !graph.is_step(**step, shape)) {
            return Err(self.fault(format_args!("chain: {other} is not computed element by element from values of {shape:?}")));
        }
        if !(1..=MAX_INPUTS).contains(&inputs) || steps.len() > MAX_STEPS {
            return Err(self.fault(format_args!("chain: {} operations on {inputs} values; at most {MAX_STEPS}, on 1 to {MAX_INPUTS}", steps.len())));
        }
        let graph = self.graph_mut();
        let before = before.iter().filter_map(|step| Some((*step, graph.nodes.remove(step)?.operation))).collect();
        if let Some(definition) = graph.nodes.get_mut(&last) {
            let operation = std::mem::replace(&mut definition.operation, Operation::Constant { data: [].into() });
            definition.operation = Operation::Chain { before, last: Box::new(operation) };
        }
        Ok(last)
    }
}
