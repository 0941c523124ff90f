//! Algebra that saves launches, mostly in what differentiation leaves behind.

use super::{BinaryOp, Definition, Graph, Node, Operation, Shape};

impl Graph {
    /// Rewrites operations in place, from the first node to the last:
    ///
    /// - `op(x, broadcast(s))` of a scalar or row reads `s` itself, since it is repeated anyway;
    /// - `mul(x, constant)` of a scalar is `scale`;
    /// - `scale(constant)` is a constant, `scale(scale(x))` one `scale`.
    ///
    /// # Numerics
    /// Factors are multiplied in float64 and rounded to f32 once.
    #[must_use]
    pub fn simplify(&self) -> Graph {
        let mut simple = self.clone();
        let nodes: Vec<Node> = self.nodes.keys().copied().collect();
        for node in nodes {
            // Each rule makes the operation strictly smaller, so this ends.
            while let Some(operation) = simple.simpler(&simple.nodes[&node]) {
                let shape = simple.nodes[&node].shape;
                simple.nodes.insert(node, Definition { operation, shape });
            }
        }
        simple
    }

    fn simpler(&self, definition: &Definition) -> Option<Operation> {
        let shape = definition.shape;
        match definition.operation {
            Operation::Binary { op, a, b } => {
                if let Some(b) = self.unbroadcast(b, shape) {
                    return Some(Operation::Binary { op, a, b });
                }
                if op != BinaryOp::Sub
                    && self.nodes[&b].shape == shape
                    && let Some(a) = self.unbroadcast(a, shape)
                {
                    return Some(Operation::Binary { op, a: b, b: a });
                }
                match (op, self.scalar(b)) {
                    (BinaryOp::Mul, Some(factor)) => Some(Operation::Scale { x: a, factor }),
                    _ => None,
                }
            }
            Operation::ActivationGrad { activation, y, dy } => self.unbroadcast(dy, shape).map(|dy| Operation::ActivationGrad { activation, y, dy }),
            Operation::Scale { x, factor } => match &self.nodes[&x].operation {
                Operation::Constant { data } => Some(Operation::Constant { data: data.iter().map(|value| value * factor).collect() }),
                Operation::Scale { x, factor: inner } => {
                    let product = (f64::from(factor) * f64::from(*inner)) as f32;
                    product.is_finite().then_some(Operation::Scale { x: *x, factor: product })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The operand of a broadcast, if operations repeat it themselves.
    fn unbroadcast(&self, node: Node, shape: Shape) -> Option<Node> {
        match self.nodes[&node].operation {
            Operation::Broadcast { x } if self.nodes[&x].shape.broadcasts_to(shape) => Some(x),
            _ => None,
        }
    }

    /// The value of a finite scalar constant.
    pub(super) fn scalar(&self, node: Node) -> Option<f32> {
        match &self.nodes[&node].operation {
            Operation::Constant { data } if data.len() == 1 && data[0].is_finite() => Some(data[0]),
            _ => None,
        }
    }
}
