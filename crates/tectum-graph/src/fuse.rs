//! Fusion of a product with its bias, activation and residual into one launch.

use std::collections::BTreeMap;

use tectum::Activation;

use super::operation::{Activate, Binary, BinaryOp, Convolution, Linear, LinearEpilogue, MatMul};
use super::{Definition, Graph, Node, Operation, Shape};

impl Graph {
    /// Makes each chain `matmul [+ row] [activation] [+ matrix]` one `linear` in place of its last
    /// node, and each chain `convolution [+ value] [activation]` one `convolution`.
    ///
    /// A step joins the chain only if the value before it has this single use and is not an output.
    /// The product may be either operand of an addition; the `linear` reads the other, so its
    /// producer stays. Every node except the fused ones keeps its number, and the last node of a
    /// chain comes after all its operands, so the order stays topological.
    #[must_use]
    pub fn fuse(&self) -> Graph {
        let uses = self.uses();
        let mut fused = self.clone();
        for (&node, definition) in &self.nodes {
            if let Some(Operation::Convolution(convolution)) = fused
                .nodes
                .get(&node)
                .map(|definition| &definition.operation)
            {
                let convolution = *convolution;
                fused.fuse_tail(&uses, node, convolution);
                continue;
            }
            // An addition of two products belongs to the first: a `linear` that reads the second
            // replaces it.
            let Operation::MatMul(MatMul { a, b }) = definition.operation else {
                continue;
            };
            if self.is_batched(a, b) {
                continue;
            }
            let tailed = Tailed::follow(&fused, &uses, node);
            if tailed.last == node {
                continue;
            }
            for swallowed in tailed.swallowed {
                fused.nodes.remove(&swallowed);
            }
            let operation = Linear {
                a,
                b,
                tail: tailed.tail,
            }
            .into();
            fused.nodes.insert(
                tailed.last,
                Definition {
                    operation,
                    shape: definition.shape,
                },
            );
        }
        fused
    }
}

impl Graph {
    /// Lets a convolution add the value and apply the activation that alone read it, in this order.
    fn fuse_tail(
        &mut self,
        uses: &BTreeMap<Node, usize>,
        mut node: Node,
        mut convolution: Convolution,
    ) {
        loop {
            let is_output = self.outputs.iter().any(|(_, output)| *output == node);
            if uses.get(&node) != Some(&1)
                || is_output
                || convolution.activation != Activation::None
            {
                return;
            }
            let reader = self
                .nodes
                .range(node..)
                .find(|(_, definition)| definition.operation.operands().contains(&node));
            let Some((&next, definition)) = reader else {
                return;
            };
            let shape = definition.shape;
            match definition.operation {
                Operation::Activate(Activate { activation, .. }) => {
                    convolution.activation = activation
                }
                Operation::Binary(Binary {
                    op: BinaryOp::Add,
                    a,
                    b,
                }) if convolution.takes_residual() => {
                    let other = if a == node { b } else { a };
                    if [shape, self.nodes[&other].shape] != [self.nodes[&node].shape; 2] {
                        return;
                    }
                    convolution.residual = Some(other);
                }
                _ => return,
            }
            self.nodes.remove(&node);
            self.nodes.insert(
                next,
                Definition {
                    operation: convolution.into(),
                    shape,
                },
            );
            node = next;
        }
    }
}

/// A product with the following steps that fit into one launch.
struct Tailed {
    tail: LinearEpilogue,
    last: Node,
    swallowed: Vec<Node>,
}

impl Tailed {
    fn follow(graph: &Graph, uses: &BTreeMap<Node, usize>, product: Node) -> Self {
        let mut tailed = Self {
            tail: LinearEpilogue::default(),
            last: product,
            swallowed: Vec::new(),
        };
        while let Some((next, tail)) = tailed.step(graph, uses) {
            tailed.swallowed.push(tailed.last);
            (tailed.last, tailed.tail) = (next, tail);
        }
        tailed
    }

    /// The only reader of the last node and the tail with it, if it can be fused.
    fn step(&self, graph: &Graph, uses: &BTreeMap<Node, usize>) -> Option<(Node, LinearEpilogue)> {
        let is_output = graph.outputs.iter().any(|(_, node)| *node == self.last);
        if uses.get(&self.last) != Some(&1) || is_output || self.tail.residual.is_some() {
            return None;
        }
        let reads_last =
            |definition: &Definition| definition.operation.operands().contains(&self.last);
        let (&next, definition) = graph
            .nodes
            .range(self.last..)
            .find(|(_, definition)| reads_last(definition))?;
        let tail = match definition.operation {
            Operation::Activate(Activate { activation, .. })
                if self.tail.activation == Activation::None =>
            {
                LinearEpilogue {
                    activation,
                    ..self.tail
                }
            }
            Operation::Binary(Binary {
                op: BinaryOp::Add,
                a,
                b,
            }) if definition.shape == graph.nodes[&self.last].shape => {
                self.with_addend(graph, if a == self.last { b } else { a }, definition.shape)?
            }
            _ => return None,
        };
        Some((next, tail))
    }

    /// A row is the bias if there is no bias and no activation yet; a matrix is the residual.
    fn with_addend(&self, graph: &Graph, addend: Node, shape: Shape) -> Option<LinearEpilogue> {
        let addend_shape = graph.nodes[&addend].shape;
        if addend_shape.is_row_of(shape)
            && self.tail.bias.is_none()
            && self.tail.activation == Activation::None
        {
            return Some(LinearEpilogue {
                bias: Some(addend),
                ..self.tail
            });
        }
        (addend_shape == shape).then_some(LinearEpilogue {
            residual: Some(addend),
            ..self.tail
        })
    }
}
