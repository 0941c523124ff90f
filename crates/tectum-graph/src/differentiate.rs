//! Reverse-mode differentiation as a pass: the gradients are nodes like any other.

use std::collections::{BTreeMap, BTreeSet};

use tectum::{Activation, Error, Result};

use super::builder::GraphBuilder;
use super::describe::activation_name;
use super::{BinaryOp, Factor, Graph, Node, Operation};

impl Graph {
    /// Adds the gradient of a scalar with respect to every parameter, as outputs `grad.{parameter}` of the parameter's shape.
    ///
    /// Existing nodes and outputs are unchanged. A parameter that the loss does not depend on has a gradient of zeros.
    /// The result can be differentiated again; the second gradients are then `grad.grad.{parameter}`.
    ///
    /// # Numerics
    /// The derivative of relu at 0 is 0.
    /// # Errors
    /// `Invalid` if the loss is not [1, 1] or the graph has been fused (differentiate before [`Graph::optimize`]);
    /// `Unsupported` if a parameter passes through gelu.
    /// # Source
    /// Griewank and Walther, *Evaluating Derivatives*, 2nd edition, SIAM 2008, section 3.2: adjoints in reverse order.
    pub fn gradients(&self, loss: Node) -> Result<Graph> {
        let shape = self.shape(loss).map_err(|error| error.at("gradients"))?;
        if shape != [1, 1] {
            return Err(Error::invalid(format!("gradients: the loss is {shape:?}, [1, 1] is needed (node {loss})")));
        }
        let mut pass = Adjoints { builder: GraphBuilder::from(self.clone()), of: BTreeMap::new(), requires_grad: self.varying() };
        let seed = pass.builder.constant(&[1.0], [1, 1])?;
        pass.of.insert(loss, seed);
        for (&node, definition) in self.nodes.range(..=loss).rev() {
            if let (true, Some(&adjoint)) = (pass.requires_grad.contains(&node), pass.of.get(&node)) {
                pass.propagate(node, &definition.operation, adjoint).map_err(|error| error.at(format_args!("gradients: node {node}")))?;
            }
        }
        for (name, node, shape) in self.parameters() {
            let gradient = match pass.of.get(&node) {
                Some(&gradient) => gradient,
                None => pass.builder.constant(&vec![0.0; shape.len()], shape)?,
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
            if definition.operation.operands().iter().any(|operand| varying.contains(operand)) {
                varying.insert(node);
            }
        }
        varying
    }
}

struct Adjoints {
    builder: GraphBuilder,
    /// The gradient of the loss with respect to each node reached so far.
    of: BTreeMap<Node, Node>,
    /// The nodes whose adjoint leads to a parameter.
    requires_grad: BTreeSet<Node>,
}

impl Adjoints {
    /// Passes a node's adjoint `g` to its operands.
    fn propagate(&mut self, node: Node, operation: &Operation, g: Node) -> Result<()> {
        match *operation {
            Operation::MatMul { a, b } if self.builder.graph().is_batched(a, b) => Err(Error::unsupported("a batched product has no derivative yet")),
            Operation::Input { .. } | Operation::Indices { .. } | Operation::Parameter { .. } => Ok(()),
            Operation::State { .. } | Operation::Constant { .. } => Ok(()),
            Operation::MatMul { a, b } => self.matmul(a, b, g),
            Operation::Linear { .. } | Operation::LinearPanels { .. } | Operation::Chain { .. } => {
                Err(Error::invalid("what is fused has no derivative; differentiate before optimizing"))
            }
            Operation::Binary { op: BinaryOp::Mul, a, b } => self.mul(a, b, g),
            Operation::Binary { op, a, b } => {
                self.give(a, |_| Ok(g))?;
                self.give(b, |pass| {
                    let sum = pass.reduce_like(g, b)?;
                    if op == BinaryOp::Sub { pass.builder.scale(sum, -1.0) } else { Ok(sum) }
                })
            }
            Operation::Scale { x, factor } => self.give(x, |pass| pass.builder.scale(g, factor)),
            Operation::Activate { activation: activation @ (Activation::Gelu | Activation::GeluErf | Activation::Silu), .. } => {
                Err(Error::unsupported(format!("{} has no derivative yet", activation_name(activation))))
            }
            Operation::Activate { activation, x } => self.give(x, |pass| pass.builder.activation_grad(activation, node, g)),
            Operation::ActivationGrad { activation, y, dy } => self.activation_grad(activation, [y, dy], g),
            Operation::Reduce { x, .. } => self.give(x, |pass| {
                let shape = pass.builder.graph().shape(x)?;
                pass.builder.broadcast(g, shape)
            }),
            Operation::Broadcast { x } => self.give(x, |pass| pass.reduce_like(g, x)),
            Operation::Reshape { x } => self.give(x, |pass| {
                let shape = pass.builder.graph().shape(x)?;
                pass.builder.reshape(g, shape)
            }),
            ref other => Err(Error::unsupported(format!("{} has no derivative yet", other.name()))),
        }
    }

    /// C = A·B, the dimensions of A before its last two taken as rows: dA = G·Bᵀ, dB = Aᵀ·G, each transposed again where the factor was.
    fn matmul(&mut self, a: Factor, b: Factor, g: Node) -> Result<()> {
        self.give(a.node, |pass| match a.transposed {
            false => pass.builder.matmul(g, b.flipped()),
            true => pass.builder.matmul(b, g.transpose()),
        })?;
        let [a_shape, g_shape] = [a.node, g].map(|node| self.builder.graph().shape(node));
        let (a_shape, g_shape) = (a_shape?, g_shape?);
        let (a, g) = match a_shape.rank() {
            2 => (a, g),
            _ => (self.builder.reshape(a.node, a_shape.matrix())?.into(), self.builder.reshape(g, g_shape.matrix())?),
        };
        self.give(b.node, |pass| match b.transposed {
            false => pass.builder.matmul(a.flipped(), g),
            true => pass.builder.matmul(g.transpose(), a),
        })
    }

    fn mul(&mut self, a: Node, b: Node, g: Node) -> Result<()> {
        if a == b {
            return self.give(a, |pass| {
                let product = pass.builder.mul(a, g)?;
                pass.builder.scale(product, 2.0)
            });
        }
        self.give(a, |pass| pass.builder.mul(g, b))?;
        self.give(b, |pass| {
            let product = pass.builder.mul(g, a)?;
            pass.reduce_like(product, b)
        })
    }

    /// z = f′(y)·dy, with f′ as a function of the activation's result: 1 − y², y − y², or a step.
    fn activation_grad(&mut self, activation: Activation, [y, dy]: [Node; 2], g: Node) -> Result<()> {
        self.give(dy, |pass| {
            let product = pass.builder.activation_grad(activation, y, g)?;
            pass.reduce_like(product, dy)
        })?;
        if activation == Activation::Relu {
            return Ok(());
        }
        self.give(y, |pass| {
            let product = pass.builder.mul(g, dy)?;
            let curved = pass.builder.mul(product, y)?;
            let curved = pass.builder.scale(curved, -2.0)?;
            if activation == Activation::Sigmoid { pass.builder.add(product, curved) } else { Ok(curved) }
        })
    }

    /// Adds a contribution to a node's adjoint, if that leads to a parameter.
    fn give(&mut self, node: Node, contribution: impl FnOnce(&mut Self) -> Result<Node>) -> Result<()> {
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

    /// Sums over the repeated dimensions.
    fn reduce_like(&mut self, x: Node, like: Node) -> Result<Node> {
        let shape = self.builder.graph().shape(like)?;
        self.builder.reduce_to(x, shape)
    }
}
