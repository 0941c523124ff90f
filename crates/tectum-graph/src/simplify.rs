//! Algebra that saves launches, mostly in what differentiation leaves behind.

use super::{Definition, Graph, Node};

impl Graph {
    /// Rewrites operations in place, from the first node to the last, by the rules in the
    /// operations' files:
    ///
    /// - `op(x, broadcast(s))` of a scalar or row reads `s` itself, since it is repeated anyway;
    /// - `mul(x, constant)` of a scalar is `scale`, `mul(x, sigmoid(x))` is `silu(x)`, ½x·(1 +
    ///   erf(x/√2)) is `gelu_erf(x)`;
    /// - `scale(constant)` is a constant, `scale(scale(x))` one `scale`.
    ///
    /// # Numerics
    /// Factors are multiplied in float64 and rounded to f32 once. `silu` has its limit −0 at −∞,
    /// where the product is NaN.
    #[must_use]
    pub fn simplify(&self) -> Graph {
        let mut simple = self.clone();
        let nodes: Vec<Node> = self.nodes.keys().copied().collect();
        for node in nodes {
            // Each rule makes the operation strictly smaller, so this ends.
            loop {
                let Definition { operation, shape } = &simple.nodes[&node];
                let (shape, Some(operation)) = (*shape, operation.simpler(&simple, *shape)) else {
                    break;
                };
                simple.nodes.insert(node, Definition { operation, shape });
            }
        }
        simple
    }
}
