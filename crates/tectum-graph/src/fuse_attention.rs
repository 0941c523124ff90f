//! Fusion around attention: merged products of queries, keys and values, and slices read in place.

use std::collections::BTreeMap;

use tectum::Activation;
use tectum::internal::Identity;

use super::operation::{ColumnSlice, Concat, Linear, LinearEpilogue, MatMul, Reshape, Slice};
use super::{Definition, Factor, Graph, Node, Operation, Shape};

impl Graph {
    /// Merges products of one value with several parameters into one product; each original product
    /// becomes a slice of it.
    ///
    /// The parameters are transposed matrices `[out, in]` of equal `in`, so that they can be
    /// concatenated; either all products have a bias that is a parameter, or none has; a product
    /// with an activation or residual is not merged. Where the parameters are contiguous in memory,
    /// as [`parameter_layout`](Graph::parameter_layout) places those added consecutively, nothing
    /// is copied; otherwise a launch concatenates them. Every node keeps its value.
    #[must_use]
    pub fn merge_products(&self) -> Graph {
        let mut groups: BTreeMap<(Node, bool), Vec<Node>> = BTreeMap::new();
        for (&node, definition) in &self.nodes {
            if let Some((a, _, bias)) = self.mergeable(&definition.operation) {
                groups.entry((a, bias.is_some())).or_default().push(node);
            }
        }
        let mut merged = self.clone();
        merged.makers.push(Identity::next());
        groups
            .values()
            .filter(|group| group.len() > 1 && self.has_room_before(group[0]))
            .for_each(|group| merged.merge(group));
        merged
    }

    /// The parts of a product that may join others: the value, the parameter and the bias.
    fn mergeable(&self, operation: &Operation) -> Option<(Node, Node, Option<Node>)> {
        let (a, b, tail) = match operation {
            Operation::MatMul(MatMul { a, b }) => (a, b, LinearEpilogue::default()),
            Operation::Linear(Linear { a, b, tail }) => (a, b, *tail),
            _ => return None,
        };
        let is_parameter = |node: Node| self.nodes[&node].operation.is_parameter();
        let plain = !a.transposed && tail.activation == Activation::None && tail.residual.is_none();
        let whole = b.transposed
            && self.nodes[&b.node].shape.rank() == 2
            && self.nodes[&b.node].shape.sizes().is_some();
        let joins = plain && whole && is_parameter(b.node) && tail.bias.is_none_or(is_parameter);
        joins.then_some((a.node, b.node, tail.bias))
    }

    fn merge(&mut self, group: &[Node]) {
        let parts: Vec<(Node, Node, Option<Node>)> = group
            .iter()
            .filter_map(|node| self.mergeable(&self.nodes[node].operation))
            .collect();
        let first = group[0];
        let weights: Vec<Node> = parts.iter().map(|(_, weight, _)| *weight).collect();
        let biases: Option<Vec<Node>> = parts.iter().map(|(.., bias)| *bias).collect();
        let shape = self.nodes[&first].shape;
        let outs: Vec<usize> = weights
            .iter()
            .map(|weight| self.nodes[weight].shape.matrix()[0])
            .collect();
        let total: usize = outs.iter().sum();

        // The concatenated parameters, the product, and slices that replace the originals.
        let weight_shape = self.nodes[&weights[0]].shape.with(0, total);
        let weight = self.insert_before(
            first,
            Definition {
                operation: Concat {
                    parts: weights,
                    axis: 0,
                }
                .into(),
                shape: weight_shape,
            },
        );
        let bias = biases.map(|parts| {
            let shape = Shape::from([1, total]);
            let axis = 1;
            let parts: Vec<Node> = parts
                .into_iter()
                .map(|part| self.as_row(first, part))
                .collect();
            self.insert_before(
                first,
                Definition {
                    operation: Concat { parts, axis }.into(),
                    shape,
                },
            )
        });
        let b = Factor {
            node: weight,
            transposed: true,
        };
        let operation = Linear {
            a: parts[0].0.into(),
            b,
            tail: LinearEpilogue {
                bias,
                ..LinearEpilogue::default()
            },
        }
        .into();
        let product = self.insert_before(
            first,
            Definition {
                operation,
                shape: shape.with(shape.rank() - 1, total),
            },
        );
        let mut start = 0;
        for (&node, out) in group.iter().zip(outs) {
            let axis = shape.rank() - 1;
            self.nodes.insert(
                node,
                Definition {
                    operation: Slice {
                        x: product,
                        axis,
                        start,
                    }
                    .into(),
                    shape: shape.with(axis, out),
                },
            );
            start += out;
        }
    }

    /// A vector as [1, n].
    fn as_row(&mut self, before: Node, vector: Node) -> Node {
        let shape = Shape::from([1, self.nodes[&vector].shape.len()]);
        if self.nodes[&vector].shape == shape {
            return vector;
        }
        self.insert_before(
            before,
            Definition {
                operation: Reshape { x: vector }.into(),
                shape,
            },
        )
    }

    fn insert_before(&mut self, node: Node, definition: Definition) -> Node {
        let before = self.before(node);
        self.nodes.insert(before, definition);
        before
    }

    /// Lets attention read its operands in place: columns of a wider value instead of a slice of
    /// it. A slice with other readers, or that is an output, stays.
    #[must_use]
    pub fn fuse_slices(&self) -> Graph {
        let mut fused = self.clone();
        for definition in fused.nodes.values_mut() {
            for operand in definition.operation.columns_mut() {
                *operand = self.unsliced(*operand);
            }
        }
        fused
    }

    fn unsliced(&self, columns: ColumnSlice) -> ColumnSlice {
        let definition = &self.nodes[&columns.node];
        match definition.operation {
            Operation::Slice(Slice { x, axis, start }) if axis + 1 == definition.shape.rank() => {
                self.unsliced(ColumnSlice {
                    node: x,
                    start: columns.start + start,
                })
            }
            _ => columns,
        }
    }
}
