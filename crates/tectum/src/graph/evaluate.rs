//! The float64 evaluator: plain loops, written to be read, against which every device and pass is checked.

use std::collections::BTreeMap;

use super::{BinaryOp, Factor, Graph, Node, Operation, Over, Tail, elements};
use crate::error::{Error, Result};
use crate::kernel::Activation;

/// A row-major matrix of float64.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: [usize; 2],
    data: Vec<f64>,
}

impl Tensor {
    /// Makes a matrix of row-major data.
    ///
    /// # Errors
    /// `Invalid` if the data does not fill the shape.
    pub fn new(shape: [usize; 2], data: Vec<f64>) -> Result<Self> {
        if data.len() != elements(shape) {
            return Err(Error::invalid(format!("tensor: {} elements given for {shape:?}", data.len())));
        }
        Ok(Self { shape, data })
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The elements, row by row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    fn from_fn(shape: [usize; 2], mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(elements(shape));
        for row in 0..shape[0] {
            for col in 0..shape[1] {
                data.push(f(row, col));
            }
        }
        Self { shape, data }
    }

    fn at(&self, row: usize, col: usize) -> f64 {
        self.data[row * self.shape[1] + col]
    }

    /// The element that meets (row, col) when a scalar, row or column repeats.
    pub(super) fn repeated_at(&self, row: usize, col: usize) -> f64 {
        self.at(row % self.shape[0], col % self.shape[1])
    }
}

impl Graph {
    /// Computes the outputs in float64.
    ///
    /// # Shapes
    /// Each tensor fed has its node's shape; the outputs come in the order of [`Graph::outputs`].
    /// # Numerics
    /// Plain float64, sums from the first element to the last. Constants and factors are the f32 values that devices use.
    /// # Errors
    /// `Invalid` if an input or parameter is not fed, is fed twice or with another shape, or something else is fed.
    pub fn evaluate(&self, feeds: &[(Node, Tensor)]) -> Result<Vec<Tensor>> {
        let values = self.evaluate_nodes(feeds)?;
        Ok(self.outputs.iter().map(|(_, node)| values[node].clone()).collect())
    }

    /// The value of every node.
    pub(super) fn evaluate_nodes(&self, feeds: &[(Node, Tensor)]) -> Result<BTreeMap<Node, Tensor>> {
        let mut values = BTreeMap::new();
        for (node, tensor) in feeds {
            let shape = self.check_feed(*node)?;
            if tensor.shape != shape || values.insert(*node, tensor.clone()).is_some() {
                return Err(Error::invalid(format!("evaluate: node {} of {shape:?} fed with {:?} or twice", node.0, tensor.shape)));
            }
        }
        for (&node, definition) in &self.nodes {
            match &definition.operation {
                Operation::Input { name } | Operation::Parameter { name } => {
                    if !values.contains_key(&node) {
                        return Err(Error::invalid(format!("evaluate: {name} {:?} is not fed (node {})", definition.shape, node.0)));
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
    pub(super) fn check_feed(&self, node: Node) -> Result<[usize; 2]> {
        match self.nodes.get(&node) {
            Some(definition) if definition.operation.is_fed() => Ok(definition.shape),
            _ => Err(Error::invalid(format!("node {} is fed but is no input or parameter of this graph", node.0))),
        }
    }
}

fn compute(operation: &Operation, shape: [usize; 2], values: &BTreeMap<Node, Tensor>) -> Tensor {
    match operation {
        Operation::Input { .. } | Operation::Parameter { .. } => unreachable!("invariant: the caller has fed values"),
        Operation::Constant { data } => Tensor { shape, data: data.iter().copied().map(f64::from).collect() },
        Operation::MatMul { a, b } => linear(*a, *b, &Tail::default(), shape, values),
        Operation::Linear { a, b, tail } => linear(*a, *b, tail, shape, values),
        Operation::Binary { op, a, b } => {
            let (a, b) = (&values[a], &values[b]);
            Tensor::from_fn(shape, |row, col| op.reference(a.at(row, col), b.repeated_at(row, col)))
        }
        Operation::Scale { x, factor } => Tensor::from_fn(shape, |row, col| f64::from(*factor) * values[x].at(row, col)),
        Operation::Activate { activation, x } => Tensor::from_fn(shape, |row, col| activation.reference(values[x].at(row, col))),
        Operation::ActivationGrad { activation, y, dy } => {
            let (y, dy) = (&values[y], &values[dy]);
            Tensor::from_fn(shape, |row, col| slope(*activation, y.at(row, col)) * dy.repeated_at(row, col))
        }
        Operation::Reduce { over, x } => reduce(*over, &values[x], shape),
        Operation::Broadcast { x } => Tensor::from_fn(shape, |row, col| values[x].repeated_at(row, col)),
    }
}

fn linear(a: Factor, b: Factor, tail: &Tail, shape: [usize; 2], values: &BTreeMap<Node, Tensor>) -> Tensor {
    let [_, inner] = a.oriented(values[&a.node].shape);
    let element = |factor: Factor, row: usize, col: usize| {
        let matrix = &values[&factor.node];
        if factor.transposed { matrix.at(col, row) } else { matrix.at(row, col) }
    };
    Tensor::from_fn(shape, |row, col| {
        let product: f64 = (0..inner).map(|k| element(a, row, k) * element(b, k, col)).sum();
        let bias = tail.bias.map_or(0.0, |node| values[&node].at(0, col));
        let residual = tail.residual.map_or(0.0, |node| values[&node].at(row, col));
        tail.activation.reference(product + bias) + residual
    })
}

fn reduce(over: Over, x: &Tensor, shape: [usize; 2]) -> Tensor {
    let [rows, cols] = x.shape;
    match over {
        Over::All => Tensor { shape, data: vec![x.data.iter().sum()] },
        Over::Rows => Tensor::from_fn(shape, |_, col| (0..rows).map(|row| x.at(row, col)).sum()),
        Over::Columns => Tensor::from_fn(shape, |row, _| (0..cols).map(|col| x.at(row, col)).sum()),
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
        Activation::Relu => if y > 0.0 { 1.0 } else { 0.0 },
        Activation::Gelu => unreachable!("invariant: gradients refuse gelu"),
    }
}
