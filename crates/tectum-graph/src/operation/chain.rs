//! Elementwise operations combined into one program; only [`Graph::fuse_chains`] makes them.

use std::collections::{BTreeMap, BTreeSet};

use tectum::Error;
use tectum_programs::{Chain as Program, MAX_INPUTS, Value};

use super::elementwise::{Elementwise, Read};
use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result, Shape,
    Tensor, Values, View, no_derivative_of_fused,
};
use crate::Definition;
use crate::parse::{fault, parse_node, parse_operation};

/// Maximum operations of a chain: a kernel that every device compiles quickly.
pub(crate) const MAX_STEPS: usize = 64;

/// Elementwise operations, each with its shape; the value of the last is its value.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub before: Vec<(Node, Operation)>,
    pub last: Box<Operation>,
}

impl Chain {
    /// The operations in order; the last has no handle of its own.
    fn steps(&self) -> impl Iterator<Item = (Option<Node>, &Operation)> {
        self.before
            .iter()
            .map(|(node, step)| (Some(*node), step))
            .chain([(None, &*self.last)])
    }

    /// The nodes that it reads.
    fn reads(&self) -> Vec<Node> {
        self.clone()
            .operands_mut()
            .into_iter()
            .map(|operand| *operand)
            .collect()
    }
}

impl Op for Chain {
    fn arguments(&self, _: String) -> String {
        let before: String = self
            .before
            .iter()
            .map(|(node, step)| format!("%{node} = {} | ", step.text()))
            .collect();
        before + &self.last.text()
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        let inner: Vec<Node> = self.before.iter().map(|(node, _)| *node).collect();
        let steps = self
            .before
            .iter_mut()
            .map(|(_, step)| step)
            .chain([&mut *self.last]);
        steps
            .flat_map(|step| step.operands_mut())
            .filter(|operand| !inner.contains(operand))
            .collect()
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let mut inner: Values = self
            .reads()
            .into_iter()
            .map(|node| (node, values[&node].clone()))
            .collect();
        for (node, step) in &self.before {
            let value = step.evaluate(shape, &inner)?;
            inner.insert(*node, value);
        }
        self.last.evaluate(shape, &inner)
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        no_derivative_of_fused()
    }

    /// One program; a scalar constant becomes a constant of the program.
    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let graph = lowering.graph;
        let (constants, inputs): (BTreeSet<Node>, BTreeSet<Node>) = self
            .reads()
            .into_iter()
            .partition(|node| graph.scalar(*node).is_some());
        let mut program = Program::new(inputs.len())?;
        let mut values = BTreeMap::new();
        for (index, &node) in inputs.iter().enumerate() {
            values.insert(node, program.input(index)?);
        }
        for (node, constant) in constants
            .into_iter()
            .filter_map(|node| Some((node, graph.scalar(node)?)))
        {
            values.insert(node, program.constant(constant)?);
        }
        for (node, step) in self.steps() {
            let entry = step.elementwise().ok_or_else(|| {
                Error::invalid(format!("chain: {} is not elementwise", step.name()))
            })?;
            let mut operand = |read| match read {
                Read::Factor(factor) => program.constant(factor),
                Read::Value(node) => Ok(values[&node]),
            };
            let operands: Result<Vec<Value>> = entry.reads().map(&mut operand).collect();
            let value = program.op(&entry.name, &operands?)?;
            values.extend(node.map(|node| (node, value)));
        }
        let views: Vec<View> = inputs.iter().map(|node| lowering.views[node]).collect();
        program.record(lowering.plan, &views, y)
    }
}

impl Call for Chain {
    const NAME: &'static str = "chain";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let parts = text.whole.rsplit_once(" | ");
        let (before, last) =
            parts.ok_or_else(|| fault("a chain is `%NODE = OPERATION | … OPERATION`"))?;
        let mut inner = Vec::new();
        for step in before.split(" | ") {
            let parts = step
                .strip_prefix('%')
                .and_then(|rest| rest.split_once(" = "));
            let (node, operation) = parts
                .ok_or_else(|| fault(&format!("a chain's {step:?} is no `%NODE = OPERATION`")))?;
            let node = parse_node(builder.graph().maker(), node)?;
            inner.push(node);
            builder.place(node, |builder| parse_operation(builder, operation, shape))?;
        }
        let last = parse_operation(builder, last, shape)?;
        builder.chain(&inner, last)
    }
}

impl GraphBuilder {
    /// Combines operations that were added, as [`Graph::fuse_chains`] does; the last keeps its
    /// handle.
    fn chain(&mut self, before: &[Node], last: Node) -> Result<Node> {
        let graph = self.graph();
        let shape = graph.shape(last)?;
        let steps: Steps = before.iter().copied().chain([last]).collect();
        let inputs = graph.inputs_of(&steps).len();
        if let Some(other) = steps.iter().find(|step| !graph.is_step(**step, shape)) {
            return Err(self.fault(format_args!(
                "chain: {other} is not computed element by element from values of {shape:?}"
            )));
        }
        if !(1..=MAX_INPUTS).contains(&inputs) || steps.len() > MAX_STEPS {
            return Err(self.fault(format_args!("chain: {} operations on {inputs} values; at most {MAX_STEPS}, on 1 to {MAX_INPUTS}", steps.len())));
        }
        self.graph_mut().combine(before, last);
        Ok(last)
    }
}

/// Nodes that form a chain.
pub(crate) type Steps = BTreeSet<Node>;

impl Graph {
    /// Replaces operations by a chain in place of the last.
    pub(crate) fn combine(&mut self, before: &[Node], last: Node) {
        let before = before
            .iter()
            .filter_map(|step| Some((*step, self.nodes.remove(step)?.operation)))
            .collect();
        if let Some(Definition { operation, shape }) = self.nodes.remove(&last) {
            self.nodes.insert(
                last,
                Definition {
                    operation: Chain {
                        before,
                        last: Box::new(operation),
                    }
                    .into(),
                    shape,
                },
            );
        }
    }

    /// Whether a value is computed element by element from values of one shape and scalar
    /// constants.
    pub(crate) fn is_step(&self, node: Node, shape: Shape) -> bool {
        let definition = &self.nodes[&node];
        let fits = |read| match read {
            Read::Value(value) => self.nodes[&value].shape == shape || self.scalar(value).is_some(),
            Read::Factor(_) => true,
        };
        definition.shape == shape
            && definition
                .operation
                .elementwise()
                .is_some_and(|entry: Elementwise| {
                    Program::has(&entry.name) && entry.reads().all(fits)
                })
    }

    /// The values that the steps of a chain read from outside, and how often.
    pub(crate) fn values_read_by(&self, chain: &Steps) -> BTreeMap<Node, usize> {
        let mut read = BTreeMap::new();
        for operand in chain
            .iter()
            .flat_map(|step| self.nodes[step].operation.operands())
            .filter(|operand| !chain.contains(operand))
        {
            *read.entry(operand).or_insert(0) += 1;
        }
        read
    }

    /// Bindings of a chain's launch: all values it reads except scalar constants.
    pub(crate) fn inputs_of(&self, chain: &Steps) -> Vec<Node> {
        self.values_read_by(chain)
            .into_keys()
            .filter(|node| self.scalar(*node).is_none())
            .collect()
    }

    /// The handles of values inside chains.
    pub(crate) fn inside_chains(&self) -> impl Iterator<Item = Node> {
        let inner = self
            .nodes
            .values()
            .flat_map(|definition| match &definition.operation {
                Operation::Chain(chain) => &chain.before[..],
                _ => &[],
            });
        inner.map(|(node, _)| *node)
    }
}
