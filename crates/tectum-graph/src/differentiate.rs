//! Reverse-mode differentiation as a pass: the gradients are nodes like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tectum::{DType, Error, Result, host_memory};

use super::builder::GraphBuilder;
use super::{Dim, Graph, Node};

impl Graph {
    /// Adds the gradient of a scalar with respect to every parameter, as outputs `grad.{parameter}`
    /// of the parameter's shape.
    ///
    /// Existing nodes and outputs are unchanged. A parameter that the loss does not depend on has a
    /// gradient of zeros. The result can be differentiated again; the second gradients are then
    /// `grad.grad.{parameter}`.
    ///
    /// # Numerics
    /// The derivative of relu at 0 is 0.
    /// # Errors
    /// `Invalid` if the loss is not [1, 1] f32 or the graph has been fused (differentiate before
    /// [`Graph::optimize`]); `Unsupported` if a parameter passes through an operation on caches, or
    /// through one whose gradient needs the size of a dimension that is a letter.
    /// # Source
    /// Griewank and Walther, *Evaluating Derivatives*, 2nd edition, SIAM 2008, section 3.2:
    /// adjoints in reverse order.
    pub fn gradients(&self, loss: Node) -> Result<Graph> {
        let shape = self.shape(loss).map_err(|error| error.at("gradients"))?;
        if shape != [1, 1] || self.dtype(loss)? != DType::F32 {
            return Err(Error::invalid(format!(
                "gradients: the loss is {shape:?} {}, [1, 1] f32 is needed (node {loss})",
                self.dtype(loss)?.wgsl()
            )));
        }
        let mut pass = Adjoints {
            builder: GraphBuilder::from(self.clone()),
            of: BTreeMap::new(),
            requires_grad: self.varying(),
        };
        let seed = pass.builder.constant(&[1.0], [1, 1])?;
        pass.of.insert(loss, seed);
        for (&node, definition) in self.nodes.range(..=loss).rev() {
            if let (true, Some(&adjoint)) = (pass.requires_grad.contains(&node), pass.of.get(&node))
            {
                definition
                    .operation
                    .differentiate(node, adjoint, &mut pass)
                    .map_err(|error| error.at(format_args!("gradients: node {node}")))?;
            }
        }
        for (name, node, shape) in self.parameters() {
            let gradient = match pass.of.get(&node) {
                Some(&gradient) => gradient,
                None => {
                    let zeros = host_memory::filled(
                        format_args!("the gradient of {name}"),
                        0.0,
                        shape.len(),
                    )?;
                    pass.builder.constant(&zeros, shape)?
                }
            };
            pass.builder.output(&self.gradient_name(name), gradient)?;
        }
        pass.builder.finish()
    }

    /// The first name `grad.grad…{parameter}` that is free.
    fn gradient_name(&self, parameter: &str) -> String {
        let mut name = format!("grad.{parameter}");
        while self.outputs.iter().any(|(other, _)| *other == name) {
            name.insert_str(0, "grad.");
        }
        name
    }

    /// The nodes that depend on a parameter.
    fn varying(&self) -> BTreeSet<Node> {
        // Parameters may come after their readers.
        let mut varying: BTreeSet<Node> = self.parameters().map(|(_, node, _)| node).collect();
        for (&node, definition) in &self.nodes {
            if definition
                .operation
                .operands()
                .iter()
                .any(|operand| varying.contains(operand))
            {
                varying.insert(node);
            }
        }
        varying
    }
}

/// The gradients of the loss that are known so far; each operation passes its own to its operands.
pub(super) struct Adjoints {
    pub(super) builder: GraphBuilder,
    /// The gradient of the loss with respect to each node reached so far.
    of: BTreeMap<Node, Node>,
    /// The nodes whose adjoint leads to a parameter.
    requires_grad: BTreeSet<Node>,
}

impl Adjoints {
    /// Adds a contribution to a node's adjoint, if that leads to a parameter.
    pub(super) fn give(
        &mut self,
        node: Node,
        contribution: impl FnOnce(&mut Self) -> Result<Node>,
    ) -> Result<()> {
        if !self.requires_grad.contains(&node) {
            return Ok(());
        }
        let contribution = contribution(self)?;
        let total = match self.of.get(&node) {
            Some(&sum) => self.builder.add(sum, contribution)?,
            None => contribution,
        };
        self.of.insert(node, total);
        Ok(())
    }

    /// The size of an axis that a gradient needs to know.
    pub(super) fn size(&self, node: Node, axis: usize) -> Result<usize> {
        let shape = self.builder.graph().shape(node)?;
        match shape.dims()[axis] {
            Dim::Size(size) => Ok(size),
            Dim::Symbol(letter) => Err(Error::unsupported(format!(
                "the gradient needs a size for axis {axis} of {shape:?}; bind {letter} first"
            ))),
        }
    }

    /// Sums over the repeated dimensions.
    pub(super) fn reduce_like(&mut self, x: Node, like: Node) -> Result<Node> {
        let shape = self.builder.graph().shape(like)?;
        self.builder.reduce_to(x, shape)
    }
}

/// The answer of an operation that cannot be differentiated.
pub(super) fn no_derivative(name: impl fmt::Display) -> Result<()> {
    Err(Error::unsupported(format!(
        "{name} has no derivative: it changes its caches"
    )))
}

/// The answer of an operation that only passes make.
pub(super) fn no_derivative_of_fused() -> Result<()> {
    Err(Error::invalid(
        "what is fused has no derivative; differentiate before optimizing",
    ))
}
