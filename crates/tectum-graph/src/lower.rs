//! Lowering: a graph's launches, written into a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tectum::{DType, Error, PlanBuilder, Result, View};

use super::{Graph, Node, Operation, Shape};

/// A node of a recorded graph and its representation in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedNode {
    /// The node of the optimized graph.
    pub node: Node,
    /// The operation with its operands, as in [`Graph::describe`].
    pub operation: String,
    /// The value's shape.
    pub shape: Shape,
    /// Where the plan stores the value.
    pub storage: ValueStorage,
    /// The launches of the plan that compute it, by number. The copy of an output to a view that a
    /// later node still reads comes after all of them.
    pub launches: Range<usize>,
}

/// Where a plan stores the value of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStorage {
    /// It is bound to a view from outside: an input, a parameter or a state.
    Fed,
    /// It is copied to the device when the plan is compiled.
    Constant,
    /// It shares the memory of another node: a reshape, a slice of whole rows, contiguous parts.
    View,
    /// Launches compute it in every run.
    Launched,
}

impl Graph {
    /// Records the launches that compute the given outputs, [optimized](Graph::optimize).
    ///
    /// `feeds` binds inputs, parameters and states, each row-major; those that the outputs do not
    /// need may be left out. A view bound to a state is also written, so it must belong to a state
    /// of the plan. `outputs` says where output nodes go; the others are not computed. An output
    /// may go to the view of an input or parameter: every operation reads the previous contents. A
    /// graph can be recorded many times into one plan, as for the steps of a rollout over shared
    /// parameters.
    ///
    /// # Errors
    /// `Invalid` if a dimension is an unbound letter; if a node is fed twice, is needed and not
    /// fed, or cannot be fed; if a node is not an output; if a view differs in element type
    /// ([`Graph::dtype`]) or length from its node; if the views of two outputs overlap, or that of
    /// a state and any other; as [`PlanBuilder::launch`]. The plan is then unchanged.
    /// # Cost
    /// One launch for each operation, two for the broadcast of a scalar, more for sums over several
    /// thousand elements. An output that other nodes read, that has several views, or whose view
    /// its own operation or a later one still reads, is computed in a temporary and copied: one
    /// launch for each view.
    pub fn record(
        &self,
        plan: &mut PlanBuilder,
        feeds: &[(Node, View)],
        outputs: &[(Node, View)],
    ) -> Result<()> {
        self.record_listed(plan, feeds, outputs).map(drop)
    }

    /// Records as [`Graph::record`], and lists the representation of each node of the optimized
    /// graph.
    ///
    /// # Errors
    /// As [`Graph::record`].
    pub fn record_listed(
        &self,
        plan: &mut PlanBuilder,
        feeds: &[(Node, View)],
        outputs: &[(Node, View)],
    ) -> Result<Vec<RecordedNode>> {
        self.check_bindings(feeds, outputs)?;
        let graph = self.with_outputs(outputs).optimize();
        plan.whole(|plan| graph.lower(plan, feeds, outputs))
    }

    /// Records as [`Graph::record`], one launch for each operation, without passes: the reference
    /// for the passes.
    ///
    /// # Errors
    /// As [`Graph::record`].
    pub fn record_unfused(
        &self,
        plan: &mut PlanBuilder,
        feeds: &[(Node, View)],
        outputs: &[(Node, View)],
    ) -> Result<()> {
        self.check_bindings(feeds, outputs)?;
        let graph = self.with_outputs(outputs).prune();
        plan.whole(|plan| graph.lower(plan, feeds, outputs))
            .map(drop)
    }

    fn check_bindings(&self, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        self.check_bound()?;
        let mut fed = BTreeSet::new();
        for (node, view) in feeds {
            let shape = self.check_feed(*node)?;
            check_view(
                "feed",
                (*node, shape),
                self.view_len(*node),
                self.dtype(*node)?,
                view,
            )?;
            if !fed.insert(*node) {
                return Err(Error::invalid(format!("node {node} is fed twice")));
            }
        }
        for (node, view) in outputs {
            let shape = self.shape(*node).map_err(|error| error.at("output"))?;
            if !self.outputs.iter().any(|(_, output)| output == node) {
                return Err(Error::invalid(format!("node {node} is no output")));
            }
            check_view(
                "output",
                (*node, shape),
                self.view_len(*node),
                self.dtype(*node)?,
                view,
            )?;
        }
        self.check_overlaps(feeds, outputs)?;
        let needed = self.ancestors(outputs.iter().map(|(node, _)| *node));
        match self
            .inputs()
            .chain(self.parameters())
            .chain(self.states())
            .find(|(_, node, _)| needed.contains(node) && !fed.contains(node))
        {
            Some((name, node, shape)) => Err(Error::invalid(format!(
                "{name} {shape:?} is needed and not fed (node {node})"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses views whose contents would depend on the order of launches.
    fn check_overlaps(&self, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        let is_state = |node: &Node| self.nodes[node].operation.state_format().is_some();
        let states = feeds
            .iter()
            .filter(|(node, _)| is_state(node))
            .map(|entry| ("state", entry));
        let written: Vec<(&str, &(Node, View))> = states
            .chain(outputs.iter().map(|entry| ("output", entry)))
            .collect();
        for (place, (kind, (node, view))) in written.iter().enumerate() {
            let reads = feeds
                .iter()
                .filter(|(other, _)| *kind == "state" && !is_state(other))
                .map(|entry| ("feed", entry));
            let others = written[place + 1..].iter().copied().chain(reads);
            if let Some((other_kind, (other, _))) = others
                .into_iter()
                .find(|(_, (_, other))| view.overlaps(other))
            {
                return Err(Error::invalid(format!(
                    "the views of {kind} {node} and {other_kind} {other} overlap"
                )));
            }
        }
        Ok(())
    }

    /// The last node that reads the memory of each value, directly or through a view.
    fn last_readers(&self) -> BTreeMap<Node, Node> {
        let mut last: BTreeMap<Node, Node> = self
            .outputs
            .iter()
            .map(|(_, node)| (*node, *node))
            .collect();
        for (&node, definition) in self.nodes.iter().rev() {
            let reader = last
                .get(&node)
                .copied()
                .filter(|_| definition.operation.is_view())
                .unwrap_or(node);
            for operand in definition.operation.operands() {
                let reader = last
                    .get(&operand)
                    .copied()
                    .map_or(reader, |known| known.max(reader));
                last.insert(operand, reader);
            }
        }
        last
    }

    /// The graph with only the requested outputs.
    fn with_outputs(&self, outputs: &[(Node, View)]) -> Graph {
        let mut graph = self.clone();
        graph
            .outputs
            .retain(|(_, node)| outputs.iter().any(|(wanted, _)| wanted == node));
        graph
    }

    fn lower(
        &self,
        plan: &mut PlanBuilder,
        feeds: &[(Node, View)],
        outputs: &[(Node, View)],
    ) -> Result<Vec<RecordedNode>> {
        let read: BTreeSet<Node> = self
            .nodes
            .values()
            .flat_map(|definition| definition.operation.operands())
            .collect();
        let mut lowering = Lowering {
            graph: self,
            plan,
            views: feeds.iter().copied().collect(),
            uniform: BTreeMap::new(),
            faults: None,
        };
        let last_readers = self.last_readers();
        // Outputs whose view a later node still reads: copied at the end.
        let mut held = Vec::new();
        let mut recorded = Vec::with_capacity(self.nodes.len());
        for (&node, definition) in &self.nodes {
            let first = lowering.plan.launch_count();
            let targets: Vec<View> = outputs
                .iter()
                .filter(|(output, _)| *output == node)
                .map(|(_, view)| *view)
                .collect();
            let made = definition.operation.alias(&lowering, definition.shape);
            let is_read_later = |target: &View| {
                feeds.iter().any(|(fed, view)| {
                    view.overlaps(target) && last_readers.get(fed).is_some_and(|last| *last > node)
                })
            };
            let is_read_here = |target: &View| {
                lowering
                    .sources(node)
                    .any(|source| source.shares_slot(target))
            };
            let direct = made.is_none()
                && lowering.is_computed(node)
                && !read.contains(&node)
                && matches!(targets[..], [target] if !is_read_later(&target) && !is_read_here(&target));
            let view = match (&definition.operation, made) {
                (_, Some(view)) => view,
                _ if direct => targets[0],
                (operation, _) if operation.is_fed() => match lowering.views.get(&node) {
                    Some(view) => *view,
                    None => continue,
                },
                (Operation::Constant(constant), _) => lowering
                    .plan
                    .constant(format!("constant{node}"), &constant.data),
                (Operation::IntegerConstant(constant), _) => lowering
                    .plan
                    .constant(format!("constant{node}"), &constant.data),
                (operation, _) => lowering
                    .plan
                    .temp(operation.dtype(self), definition.shape.len()),
            };
            lowering.views.insert(node, view);
            if made.is_none() {
                definition
                    .operation
                    .lower(&mut lowering, definition.shape, view)
                    .map_err(|error| error.at(format_args!("graph: node {node}")))?;
            }
            for target in targets.into_iter().filter(|_| !direct) {
                let (is_late, is_outside) = (
                    is_read_later(&target),
                    made.is_some() || definition.operation.is_fed(),
                );
                let source = if (is_late && is_outside) || view.shares_slot(&target) {
                    lowering.copied(view)?
                } else {
                    view
                };
                if is_late {
                    held.push((source, target))
                } else {
                    lowering.plan.copy(source, target)?
                }
            }
            let how = match &definition.operation {
                _ if made.is_some() => ValueStorage::View,
                operation if operation.is_fed() => ValueStorage::Fed,
                operation if operation.is_constant() => ValueStorage::Constant,
                _ => ValueStorage::Launched,
            };
            let launches = first..lowering.plan.launch_count();
            recorded.push(RecordedNode {
                node,
                operation: definition.operation.text(),
                shape: definition.shape,
                storage: how,
                launches,
            });
        }
        held.into_iter()
            .try_for_each(|(source, target)| lowering.plan.copy(source, target))?;
        Ok(recorded)
    }
}

/// A graph that is being written into a plan.
pub(super) struct Lowering<'a> {
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a mut PlanBuilder,
    pub(super) views: BTreeMap<Node, View>,
    /// Constants of one value, by its bits and their length.
    uniform: BTreeMap<(u32, usize), View>,
    /// Where gathers count row numbers that are out of range.
    pub(super) faults: Option<View>,
}

impl Lowering<'_> {
    fn is_computed(&self, node: Node) -> bool {
        let operation = &self.graph.nodes[&node].operation;
        !operation.is_fed() && !operation.is_constant()
    }

    pub(super) fn shape(&self, node: Node) -> Shape {
        self.graph.nodes[&node].shape
    }

    /// Operand of an operation.
    fn sources(&self, node: Node) -> impl Iterator<Item = &View> {
        self.graph.nodes[&node]
            .operation
            .operands()
            .into_iter()
            .filter_map(|operand| self.views.get(&operand))
    }

    /// A value in memory that no other launch writes.
    fn copied(&mut self, view: View) -> Result<View> {
        let copy = self.plan.temp(view.dtype(), view.len());
        self.plan.copy(view, copy)?;
        Ok(copy)
    }

    /// Row numbers as u32: negative ones are out of range.
    pub(super) fn rows(&self, node: Node) -> View {
        self.views[&node].reinterpret(DType::U32)
    }

    /// A constant of one value, made once.
    pub(super) fn uniform(&mut self, value: f32, len: usize) -> View {
        let plan = &mut *self.plan;
        *self
            .uniform
            .entry((value.to_bits(), len))
            .or_insert_with(|| plan.constant(format!("{value}×{len}"), &vec![value; len]))
    }
}

fn check_view(
    kind: &str,
    (node, shape): (Node, Shape),
    elements: usize,
    needed: DType,
    view: &View,
) -> Result<()> {
    if view.len() == elements && view.dtype() == needed {
        return Ok(());
    }
    let (len, dtype) = (view.len(), view.dtype().wgsl());
    Err(Error::invalid(format!(
        "{kind} of node {node}, {shape:?} {}: a view of {len} × {dtype} does not fit",
        needed.wgsl()
    )))
}
