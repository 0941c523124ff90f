//! Common subexpressions.

use std::collections::BTreeMap;

use super::{Definition, Graph, Node, Operation};

impl Graph {
    /// Replaces reads of a value that an earlier node already computes by reads of that node. The
    /// later one stays: it may be an output, and [`prune`](Graph::prune) removes it if it is not.
    ///
    /// Inputs, parameters, states and operations that write to a cache are never merged. Constants
    /// are equal if their bits are.
    #[must_use]
    pub fn eliminate_common_subexpressions(&self) -> Graph {
        let mut unified = self.clone();
        let mut first: BTreeMap<Node, Node> = BTreeMap::new();
        let mut known: BTreeMap<String, Vec<(Node, Definition)>> = BTreeMap::new();
        for (&node, definition) in &mut unified.nodes {
            for operand in definition.operation.operands_mut() {
                *operand = first.get(operand).copied().unwrap_or(*operand);
            }
            if definition.operation.is_fed() || definition.operation.writes_state() {
                continue;
            }
            let alike = known
                .entry(format!(
                    "{} {:?}",
                    definition.operation.text(),
                    definition.shape
                ))
                .or_default();
            match alike
                .iter()
                .find(|(_, other)| has_same_data(&definition.operation, &other.operation))
            {
                Some((earlier, _)) => drop(first.insert(node, *earlier)),
                None => alike.push((node, definition.clone())),
            }
        }
        unified
    }
}

/// Whether two operations with the same text have the same data; the text of a long constant omits
/// values, that of another crate's operation its settings.
fn has_same_data(a: &Operation, b: &Operation) -> bool {
    match (a, b) {
        (Operation::Constant(a), Operation::Constant(b)) => a
            .data
            .iter()
            .map(|value| value.to_bits())
            .eq(b.data.iter().map(|value| value.to_bits())),
        (Operation::IntegerConstant(a), Operation::IntegerConstant(b)) => a.data == b.data,
        (Operation::Custom(a), Operation::Custom(b)) => a.is_same_op(b),
        _ => true,
    }
}
