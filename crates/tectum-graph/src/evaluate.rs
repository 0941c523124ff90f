//! The float64 evaluator: every device and pass is checked against it.

use tectum::{Error, Result, host_memory};

use super::tensor::{Tensor, Values};
use super::{Graph, Node, Shape};

impl Graph {
    /// Computes the outputs in float64.
    ///
    /// # Shapes
    /// Each tensor fed has its node's shape; the outputs come in the order of [`Graph::outputs`].
    /// States are fed with their values before the run.
    /// # Numerics
    /// Plain float64, sums from the first element to the last. Constants and factors are the f32
    /// values that devices use.
    /// # Errors
    /// `Invalid` if an input or parameter is not fed, is fed twice or with the wrong shape, or
    /// another node is fed; `OutOfMemory` if a value does not fit into memory.
    pub fn evaluate(&self, feeds: &[(Node, Tensor)]) -> Result<Vec<Tensor>> {
        let values = self.evaluate_nodes(feeds)?;
        Ok(self
            .outputs
            .iter()
            .map(|(_, node)| values[node].clone())
            .collect())
    }

    /// The value of every node.
    pub(super) fn evaluate_nodes(&self, feeds: &[(Node, Tensor)]) -> Result<Values> {
        self.check_bound()?;
        let mut values = Values::new();
        for (node, tensor) in feeds {
            let shape = self.check_feed(*node)?;
            if tensor.shape != shape || values.insert(*node, tensor.clone()).is_some() {
                return Err(Error::invalid(format!(
                    "evaluate: node {node} of {shape:?} fed with {:?} or twice",
                    tensor.shape
                )));
            }
        }
        for (&node, definition) in &self.nodes {
            if !values.contains_key(&node) {
                host_memory::check(
                    format_args!("evaluate: node {node} of {:?}", definition.shape),
                    host_memory::array_bytes::<f64>(definition.shape.len()),
                )?;
                let value = definition.operation.evaluate(definition.shape, &values);
                values.insert(
                    node,
                    value.map_err(|error| {
                        Error::invalid(format!("evaluate: {error} (node {node})"))
                    })?,
                );
            }
        }
        Ok(values)
    }

    /// The shape of a node that can be fed.
    pub(super) fn check_feed(&self, node: Node) -> Result<Shape> {
        let shape = self.shape(node).map_err(|error| error.at("feed"))?;
        if self.nodes[&node].operation.is_fed() {
            Ok(shape)
        } else {
            Err(Error::invalid(format!(
                "node {node} is fed but is no input or parameter"
            )))
        }
    }
}
