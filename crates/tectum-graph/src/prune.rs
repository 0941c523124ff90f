//! Dead code elimination.

use std::collections::BTreeSet;

use super::{Graph, Node};

impl Graph {
    /// Removes every operation that no output needs. Inputs and parameters stay: they are the
    /// graph's interface.
    #[must_use]
    pub fn prune(&self) -> Graph {
        let live = self.ancestors(self.outputs.iter().map(|(_, node)| *node));
        let mut pruned = self.clone();
        pruned
            .nodes
            .retain(|node, definition| live.contains(node) || definition.operation.is_fed());
        pruned
    }

    /// The nodes themselves and all nodes that they depend on.
    pub(super) fn ancestors(&self, of: impl Iterator<Item = Node>) -> BTreeSet<Node> {
        let mut live: BTreeSet<Node> = of.collect();
        for (node, definition) in self.nodes.iter().rev() {
            if live.contains(node) {
                live.extend(definition.operation.operands());
            }
        }
        live
    }
}
