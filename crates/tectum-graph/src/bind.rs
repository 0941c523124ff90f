//! Letters of shapes bound to sizes.

use tectum::{Error, Result};

use super::operation::Operation;
use super::{Dim, Graph};

impl Graph {
    /// The same network with sizes for letters among its dimensions; the nodes keep their numbers.
    ///
    /// # Errors
    /// `Invalid` if no dimension has the letter, a slice would then leave its axis, or a value
    /// would have no elements or more than 2³² − 1.
    ///
    /// # Example
    /// ```
    /// use tectum_graph::{Dim, GraphBuilder};
    /// let mut g = GraphBuilder::new();
    /// let x = g.input("x", [Dim::from('T'), 4.into()])?;
    /// let y = g.relu(x)?;
    /// g.output("y", y)?;
    /// let bound = g.finish()?.bind(&[('T', 7)])?;
    /// assert_eq!(bound.describe(), "%0 = input x [7, 4]\n%1 = relu(%0) [7, 4]\noutput y %1\n");
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn bind(&self, letters: &[(char, usize)]) -> Result<Graph> {
        for (letter, _) in letters {
            let is_used = self
                .nodes
                .values()
                .any(|definition| definition.shape.dims().contains(&Dim::Symbol(*letter)));
            if !is_used {
                return Err(Error::invalid(format!("bind: no dimension is {letter}")));
            }
        }
        let mut bound = self.clone();
        for (node, definition) in &mut bound.nodes {
            definition.shape = definition.shape.bind(letters);
            definition
                .shape
                .check()
                .map_err(|error| error.at(format_args!("bind: node {node}")))?;
        }
        let scales: Vec<_> = bound
            .nodes
            .iter()
            .filter_map(|(node, definition)| match &definition.operation {
                Operation::Average(average) => Some((*node, average.scale(&bound)?)),
                _ => None,
            })
            .collect();
        for (node, scale) in scales {
            if let Some(definition) = bound.nodes.get_mut(&node) {
                definition.operation = scale.into();
            }
        }
        for (node, definition) in &bound.nodes {
            definition
                .operation
                .check_bound(&bound, definition.shape)
                .map_err(|error| error.at(format_args!("bind: node {node}")))?;
        }
        Ok(bound)
    }

    /// Refuses a graph with letters left.
    pub(super) fn check_bound(&self) -> Result<()> {
        let unbound = self
            .nodes
            .iter()
            .find(|(_, definition)| definition.shape.sizes().is_none());
        match unbound {
            None => Ok(()),
            Some((node, definition)) => Err(Error::invalid(format!(
                "node {node} is {:?}: its letters are to be bound first",
                definition.shape
            ))),
        }
    }
}
