//! Lowering: a graph's launches, written into a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::describe::activation_name;
use super::{Factor, Graph, Node, Operation, Over, Tail, elements};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::plan::{GemmTail, Matrix, PlanBuilder, View};

impl Graph {
    /// Records the launches that compute the given outputs, [optimized](Graph::optimize).
    ///
    /// `feeds` binds inputs and parameters, each read row-major; those that the outputs do not need may be left out.
    /// `outputs` says where output nodes go; the others are not computed. Any slots will do as long as no launch would read
    /// and write one slot, so gradients go to another slot than the weights. A graph can be recorded many times into one
    /// plan, as for the steps of a rollout over shared parameters.
    ///
    /// # Errors
    /// `Invalid` if a node is fed twice, is needed and not fed, or is none to be fed; if a node is no output; if a view is
    /// not f32 or of another length than its node; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch for each operation, two for the broadcast of a scalar, more for sums over several thousand elements. An
    /// output that other nodes read, or that has several views, is computed aside and copied: one launch for each view.
    pub fn record(&self, plan: &mut PlanBuilder, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        self.check_bindings(feeds, outputs)?;
        self.with_outputs(outputs).optimize().lower(plan, feeds, outputs)
    }

    /// Records as [`Graph::record`], one launch for each operation as it stands: the reference for the passes.
    ///
    /// # Errors
    /// As [`Graph::record`].
    pub fn record_unfused(&self, plan: &mut PlanBuilder, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        self.check_bindings(feeds, outputs)?;
        self.with_outputs(outputs).prune().lower(plan, feeds, outputs)
    }

    fn check_bindings(&self, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        let mut fed = BTreeSet::new();
        for (node, view) in feeds {
            check_view("feed", *node, self.check_feed(*node)?, view)?;
            if !fed.insert(*node) {
                return Err(Error::invalid(format!("node {} is fed twice", node.0)));
            }
        }
        for (node, view) in outputs {
            if !self.outputs.iter().any(|(_, output)| output == node) {
                return Err(Error::invalid(format!("node {} is no output", node.0)));
            }
            check_view("output", *node, self.shape(*node)?, view)?;
        }
        let needed = self.ancestors(outputs.iter().map(|(node, _)| *node));
        match self.inputs().chain(self.parameters()).find(|(_, node, _)| needed.contains(node) && !fed.contains(node)) {
            Some((name, node, shape)) => Err(Error::invalid(format!("{name} {shape:?} is needed and not fed (node {})", node.0))),
            None => Ok(()),
        }
    }

    /// The graph with those of its outputs that are asked for.
    fn with_outputs(&self, outputs: &[(Node, View)]) -> Graph {
        let mut graph = self.clone();
        graph.outputs.retain(|(_, node)| outputs.iter().any(|(wanted, _)| wanted == node));
        graph
    }

    fn lower(&self, plan: &mut PlanBuilder, feeds: &[(Node, View)], outputs: &[(Node, View)]) -> Result<()> {
        let read: BTreeSet<Node> = self.nodes.values().flat_map(|definition| definition.operation.operands()).collect();
        let mut lowering = Lowering { graph: self, plan, views: feeds.iter().copied().collect(), uniform: BTreeMap::new() };
        for (&node, definition) in &self.nodes {
            let targets: Vec<View> = outputs.iter().filter(|(output, _)| *output == node).map(|(_, view)| *view).collect();
            let direct = targets.len() == 1 && !read.contains(&node) && lowering.is_computed(node);
            let view = match definition.operation {
                _ if direct => targets[0],
                Operation::Input { .. } | Operation::Parameter { .. } => match lowering.views.get(&node) {
                    Some(view) => *view,
                    None => continue,
                },
                Operation::Constant { ref data } => lowering.plan.constant(format!("constant{}", node.0), data),
                _ => lowering.plan.temp(DType::F32, elements(definition.shape)),
            };
            lowering.views.insert(node, view);
            lowering.launch(&definition.operation, view).map_err(|error| error.at(format_args!("graph: node {}", node.0)))?;
            if !direct {
                targets.iter().try_for_each(|target| lowering.plan.copy(view, *target))?;
            }
        }
        Ok(())
    }
}

struct Lowering<'a> {
    graph: &'a Graph,
    plan: &'a mut PlanBuilder,
    views: BTreeMap<Node, View>,
    /// Constants of one value, by its bits and their length.
    uniform: BTreeMap<(u32, usize), View>,
}

impl Lowering<'_> {
    fn is_computed(&self, node: Node) -> bool {
        let operation = &self.graph.nodes[&node].operation;
        !operation.is_fed() && !matches!(operation, Operation::Constant { .. })
    }

    /// Records the launches of one operation.
    fn launch(&mut self, operation: &Operation, y: View) -> Result<()> {
        match operation {
            Operation::Input { .. } | Operation::Parameter { .. } | Operation::Constant { .. } => Ok(()),
            Operation::MatMul { a, b } => self.linear(*a, *b, Tail::default(), y),
            Operation::Linear { a, b, tail } => self.linear(*a, *b, *tail, y),
            Operation::Binary { op, a, b } => self.plan.binary(op.name(), self.views[a], self.views[b], y),
            Operation::Scale { x, factor } => {
                let factor = self.uniform(*factor, 1);
                self.plan.binary("mul", self.views[x], factor, y)
            }
            Operation::Activate { activation, x } => self.plan.unary(activation_name(*activation), self.views[x], y),
            Operation::ActivationGrad { activation, y: result, dy } => {
                let op = format!("{}_grad", activation_name(*activation));
                self.plan.binary(&op, self.views[result], self.views[dy], y)
            }
            Operation::Reduce { over, x } => {
                let [rows, cols] = self.graph.nodes[x].shape;
                match over {
                    Over::All => self.plan.sum(self.views[x], y, 1, rows * cols),
                    Over::Rows => self.plan.sum_columns(self.views[x], y, rows, cols),
                    Over::Columns => self.plan.sum(self.views[x], y, rows, cols),
                }
            }
            Operation::Broadcast { x } => self.broadcast(*x, y),
        }
    }

    /// A row or column of ones times the value; a scalar is added to zeros.
    fn broadcast(&mut self, x: Node, y: View) -> Result<()> {
        let (view, from) = (self.views[&x], self.graph.nodes[&x].shape);
        if let (Operation::Constant { data }, [1, 1]) = (&self.graph.nodes[&x].operation, from) {
            return self.plan.fill(y, data[0].to_bits());
        }
        match from {
            [1, 1] => {
                let zeros = self.plan.temp(DType::F32, y.len());
                self.plan.fill(zeros, 0.0f32.to_bits())?;
                self.plan.binary("add", zeros, view, y)
            }
            [1, cols] => {
                let rows = y.len() / cols;
                let ones = self.uniform(1.0, rows);
                self.plan.gemm(Matrix::new(ones, rows, 1), Matrix::new(view, 1, cols), y, GemmTail::default())
            }
            [rows, _] => {
                let cols = y.len() / rows;
                let ones = self.uniform(1.0, cols);
                self.plan.gemm(Matrix::new(view, rows, 1), Matrix::new(ones, 1, cols), y, GemmTail::default())
            }
        }
    }

    /// A vector goes to the matrix-vector kernel where the matrix lies as that reads it.
    fn linear(&mut self, a: Factor, b: Factor, tail: Tail, y: View) -> Result<()> {
        let (a_matrix, b_matrix) = (self.matrix(a), self.matrix(b));
        let ([m, _], [_, n]) = (self.oriented(a), self.oriented(b));
        let (bias, residual) = (tail.bias.map(|node| self.views[&node]), tail.residual.map(|node| self.views[&node]));
        let tail = GemmTail { bias, activation: tail.activation, residual };
        if m == 1 && b.transposed {
            self.plan.matvec(self.views[&b.node], self.views[&a.node], y, tail)
        } else if n == 1 && !a.transposed && bias.is_none() {
            self.plan.matvec(self.views[&a.node], self.views[&b.node], y, tail)
        } else {
            self.plan.gemm(a_matrix, b_matrix, y, tail)
        }
    }

    fn oriented(&self, factor: Factor) -> [usize; 2] {
        factor.oriented(self.graph.nodes[&factor.node].shape)
    }

    fn matrix(&self, factor: Factor) -> Matrix {
        let [rows, cols] = self.graph.nodes[&factor.node].shape;
        let matrix = Matrix::new(self.views[&factor.node], rows, cols);
        if factor.transposed { matrix.transpose() } else { matrix }
    }

    fn uniform(&mut self, value: f32, len: usize) -> View {
        let plan = &mut *self.plan;
        *self.uniform.entry((value.to_bits(), len)).or_insert_with(|| plan.constant(format!("{value}×{len}"), &vec![value; len]))
    }
}

fn check_view(kind: &str, node: Node, shape: [usize; 2], view: &View) -> Result<()> {
    if view.len() == elements(shape) && view.dtype() == DType::F32 {
        return Ok(());
    }
    let (len, dtype) = (view.len(), view.dtype().wgsl());
    Err(Error::invalid(format!("{kind} of node {}, {shape:?} f32: a view of {len} × {dtype} does not fit", node.0)))
}
