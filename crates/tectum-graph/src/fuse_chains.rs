//! Fusion of elementwise operations into one launch: intermediate values stay in registers.

use std::collections::BTreeMap;

use tectum_programs::MAX_INPUTS;

use super::operation::{MAX_STEPS, Steps};
use super::{Graph, Node};

impl Graph {
    /// Fuses elementwise operations that read each other into one `chain` in place of the last.
    ///
    /// An operation joins if all its readers are in the chain already and it is not an output; if
    /// its operands have the chain's shape or are scalar constants, so that one lane computes one
    /// element; and if the chain then reads no more values than a launch can bind. A value that is
    /// read several times within the chain is computed once.
    #[must_use]
    pub fn fuse_chains(&self) -> Graph {
        let uses = self.uses();
        let mut fused = self.clone();
        for &node in self.nodes.keys().rev() {
            if !fused.nodes.contains_key(&node) {
                continue;
            }
            if let [before @ .., last] = &fused.chain_to(node, &uses)[..]
                && !before.is_empty()
            {
                fused.combine(before, *last);
            }
        }
        fused
    }

    /// The operations of the chain that ends with a node, in their order: only that node, or none,
    /// if there is nothing to fuse.
    fn chain_to(&self, last: Node, uses: &BTreeMap<Node, usize>) -> Vec<Node> {
        let shape = self.nodes[&last].shape;
        let mut chain = Steps::new();
        if !self.is_step(last, shape) {
            return Vec::new();
        }
        let mut next = Some(last);
        while let Some(step) = next {
            chain.insert(step);
            next = self
                .values_read_by(&chain)
                .into_iter()
                .find(|&(node, count)| {
                    let is_free = uses.get(&node) == Some(&count)
                        && chain.len() < MAX_STEPS
                        && self.is_step(node, shape);
                    is_free
                        && self
                            .inputs_of(&chain.iter().copied().chain([node]).collect())
                            .len()
                            <= MAX_INPUTS
                })
                .map(|(node, _)| node);
        }
        if self.inputs_of(&chain).is_empty() {
            Vec::new()
        } else {
            chain.into_iter().collect()
        }
    }
}
