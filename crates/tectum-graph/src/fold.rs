//! Constant folding: values known before anything is fed.

use std::sync::Arc;

use tectum::DType;

use super::operation::Constant;
use super::{Definition, Graph, Node, Operation};

impl Graph {
    /// Replaces a value computed only from constants by a constant, unless it has more elements
    /// than the largest of them.
    ///
    /// # Numerics
    /// A value is computed in float64 from the f32 values of its operands and rounded to f32 once.
    /// A value that is not finite, or of integers, is not folded.
    #[must_use]
    pub fn fold(&self) -> Graph {
        let mut folded = self.clone();
        for (&node, definition) in &self.nodes {
            if let Some(data) = folded.constant_of(node) {
                folded.nodes.insert(
                    node,
                    Definition {
                        operation: Constant { data }.into(),
                        shape: definition.shape,
                    },
                );
            }
        }
        folded
    }

    /// The value of an operation whose operands are all constants.
    fn constant_of(&self, node: Node) -> Option<Arc<[f32]>> {
        let definition = &self.nodes[&node];
        if definition.operation.dtype(self) != DType::F32 {
            return None;
        }
        let operands = definition.operation.operands();
        let constant = |operand: &Node| match &self.nodes[operand].operation {
            Operation::Constant(Constant { data }) => Some(data.len()),
            _ => None,
        };
        let largest = operands
            .iter()
            .map(constant)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()?;
        if definition.shape.elements()? > largest {
            return None;
        }
        let nodes = operands
            .iter()
            .chain([&node])
            .map(|node| (*node, self.nodes[node].clone()))
            .collect();
        let alone = Graph {
            nodes,
            outputs: vec![(String::new(), node)],
            next: self.next,
            makers: self.makers.clone(),
        };
        let values = alone.evaluate(&[]).ok()?;
        let data: Arc<[f32]> = values
            .first()?
            .data()
            .iter()
            .map(|value| *value as f32)
            .collect();
        data.iter().all(|value| value.is_finite()).then_some(data)
    }
}
