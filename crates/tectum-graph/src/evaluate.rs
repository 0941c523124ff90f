//! The float64 evaluator: plain, readable loops; every device and pass is checked against it.

use std::collections::BTreeMap;

use tectum::{Activation, Error, Result};

use super::evaluate_network::compute_network;
use super::tensor::Tensor;
use super::{BinaryOp, Factor, Graph, LinearEpilogue, Node, Operation, ReduceAxes, Shape};

impl Graph {
    /// Computes the outputs in float64.
    ///
    /// # Shapes
    /// Each tensor fed has its node's shape; the outputs come in the order of [`Graph::outputs`]. States are fed with their values before
    /// the run.
    /// # Numerics
    /// Plain float64, sums from the first element to the last. Constants and factors are the f32 values that devices use.
    /// # Errors
    /// `Invalid` if an input or parameter is not fed, is fed twice or with the wrong shape, or another node is fed.
    pub fn evaluate(&self, feeds: &[(Node, Tensor)]) -> Result<Vec<Tensor>> {
        let values = self.evaluate_nodes(feeds)?;
        Ok(self.outputs.iter().map(|(_, node)| values[node].clone()).collect())
    }

    /// The value of every node.
    pub(super) fn evaluate_nodes(&self, feeds: &[(Node, Tensor)]) -> Result<BTreeMap<Node, Tensor>> {
        self.check_bound()?;
        let mut values = BTreeMap::new();
        for (node, tensor) in feeds {
            let shape = self.check_feed(*node)?;
            if tensor.shape != shape || values.insert(*node, tensor.clone()).is_some() {
                return Err(Error::invalid(format!("evaluate: node {node} of {shape:?} fed with {:?} or twice", tensor.shape)));
            }
        }
        for (&node, definition) in &self.nodes {
            match &definition.operation {
                Operation::Input { name } | Operation::Indices { name } | Operation::Parameter { name, .. } | Operation::State { name, .. } => {
                    if !values.contains_key(&node) {
                        return Err(Error::invalid(format!("evaluate: {name} {:?} is not fed (node {node})", definition.shape)));
                    }
                }
                operation => {
                    let value = compute(operation, definition.shape, &values);
                    values.insert(node, value);
                }
            }
        }
        Ok(values)
    }

    /// The shape of a node that can be fed.
    pub(super) fn check_feed(&self, node: Node) -> Result<Shape> {
        let shape = self.shape(node).map_err(|error| error.at("feed"))?;
        if self.nodes[&node].operation.is_fed() { Ok(shape) } else { Err(Error::invalid(format!("node {node} is fed but is no input or parameter"))) }
    }
}

fn compute(operation: &Operation, shape: Shape, values: &BTreeMap<Node, Tensor>) -> Tensor {
    match operation {
        Operation::Constant { data } => Tensor { shape, data: data.iter().copied().map(f64::from).collect() },
        Operation::MatMul { a, b } => linear(*a, *b, &LinearEpilogue::default(), shape, values),
        Operation::Linear { a, b, tail } => linear(*a, *b, tail, shape, values),
        Operation::Binary { op, a, b } => {
            let (a, b) = (&values[a], &values[b]);
            Tensor::from_fn(shape, |place| op.reference(a.data[place], b.broadcast_element(shape, place)))
        }
        Operation::Scale { x, factor } => Tensor::from_fn(shape, |place| f64::from(*factor) * values[x].data[place]),
        Operation::Activate { activation, x } => Tensor::from_fn(shape, |place| activation.reference(values[x].data[place])),
        Operation::ActivationGrad { activation, y, dy } => {
            let (y, dy) = (&values[y], &values[dy]);
            Tensor::from_fn(shape, |place| slope(*activation, y.data[place]) * dy.broadcast_element(shape, place))
        }
        Operation::Chain { before, last } => {
            let mut inner: BTreeMap<Node, Tensor> = operation.operands().into_iter().map(|node| (node, values[&node].clone())).collect();
            for (node, step) in before {
                let value = compute(step, shape, &inner);
                inner.insert(*node, value);
            }
            compute(last, shape, &inner)
        }
        Operation::Reduce { axes, x } => reduce(*axes, &values[x], shape),
        Operation::Broadcast { x } => Tensor::from_fn(shape, |place| values[x].broadcast_element(shape, place)),
        other => compute_network(other, shape, values),
    }
}

/// Products with their tail: of matrices, or of each matrix of a batch; the batch may share one right operand.
fn linear(a: Factor, b: Factor, tail: &LinearEpilogue, shape: Shape, values: &BTreeMap<Node, Tensor>) -> Tensor {
    let sizes = |factor: Factor| {
        let sizes = values[&factor.node].shape.fixed();
        [sizes[sizes.len() - 2], sizes[sizes.len() - 1]]
    };
    let element = |factor: Factor, matrix: usize, row: usize, col: usize| {
        let ([rows, cols], value) = (sizes(factor), &values[&factor.node]);
        let matrix = matrix % (value.data.len() / (rows * cols));
        value.data[matrix * rows * cols + if factor.transposed { col * cols + row } else { row * cols + col }]
    };
    let [rows, cols] = [shape.fixed()[shape.rank() - 2], shape.fixed()[shape.rank() - 1]];
    let inner = sizes(a)[usize::from(!a.transposed)];
    Tensor::from_fn(shape, |place| {
        let (matrix, row, col) = (place / (rows * cols), place / cols % rows, place % cols);
        let product: f64 = (0..inner).map(|k| element(a, matrix, row, k) * element(b, matrix, k, col)).sum();
        let bias = tail.bias.map_or(0.0, |node| values[&node].data[col]);
        let residual = tail.residual.map_or(0.0, |node| values[&node].data[place]);
        tail.activation.reference(product + bias) + residual
    })
}

fn reduce(over: ReduceAxes, x: &Tensor, shape: Shape) -> Tensor {
    let [rows, cols] = x.shape.matrix();
    match over {
        ReduceAxes::All => Tensor { shape, data: vec![x.data.iter().sum()] },
        ReduceAxes::Rows => Tensor::from_fn(shape, |col| (0..rows).map(|row| x.data[row * cols + col]).sum()),
        ReduceAxes::Columns => Tensor::from_fn(shape, |row| (0..cols).map(|col| x.data[row * cols + col]).sum()),
        ReduceAxes::Axis(axis) => {
            let [_, count, inner] = x.shape.around(axis);
            Tensor::from_fn(shape, |place| (0..count).map(|i| x.data[(place / inner * count + i) * inner + place % inner]).sum())
        }
    }
}

impl BinaryOp {
    fn reference(self, a: f64, b: f64) -> f64 {
        match self {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
        }
    }
}

/// An activation's derivative, from its result.
fn slope(activation: Activation, y: f64) -> f64 {
    match activation {
        Activation::None => 1.0,
        Activation::Tanh => 1.0 - y * y,
        Activation::Sigmoid => y * (1.0 - y),
        Activation::Relu => {
            if y > 0.0 {
                1.0
            } else {
                0.0
            }
        }
        Activation::Gelu | Activation::GeluErf | Activation::Silu => unreachable!("invariant: gradients refuse them"),
    }
}
