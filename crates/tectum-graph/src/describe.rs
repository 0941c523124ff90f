//! The text form of a graph.

use super::Graph;

impl Graph {
    /// One line for each node, then one for each output. The text is stable; [`Graph::parse`] reads
    /// it.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (node, definition) in &self.nodes {
            text += &format!(
                "%{node} = {} {:?}\n",
                definition.operation.text(),
                definition.shape
            );
        }
        for (name, node) in &self.outputs {
            text += &format!("output {name} %{node}\n");
        }
        text
    }
}
