//! How far an f32 evaluation of a graph may be from the float64 one: a bound for each element, by
//! running error analysis (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition,
//! section 3.3), any order of summation.

use std::collections::BTreeMap;

use tectum::Activation;

use crate::operation::{
    Activate, ActivationGrad, Binary, BinaryOp, Broadcast, Function, MatMul, Reduce, ReduceAxes,
    Scale, Unary,
};
use crate::{Factor, Graph, Node, Operation, Tensor};

/// Half a unit in the last place.
const U: f64 = 1.0 / (1 << 24) as f64;
/// Error of a tanh, sigmoid or their derivatives for its own argument: 8 ulp.
const FUNCTION: f64 = 16.0 * U;
/// Terms of second order, factors merged by simplification and numbers flushed to zero.
const SLACK: f64 = 2.0;
const FLUSH: f64 = 1e-36;

/// For each node of an unfused graph, the bound of each element; fed values are exact.
pub fn error_bounds(graph: &Graph, values: &BTreeMap<Node, Tensor>) -> BTreeMap<Node, Vec<f64>> {
    let mut bounds: BTreeMap<Node, Vec<f64>> = BTreeMap::new();
    for (&node, definition) in &graph.nodes {
        let [rows, cols] = definition.shape.matrix();
        let pass = Pass {
            values,
            bounds: &bounds,
        };
        let at = |row, col| pass.bound(&definition.operation, node, row, col);
        let of_node = (0..rows * cols)
            .map(|index| at(index / cols, index % cols))
            .collect();
        bounds.insert(node, of_node);
    }
    bounds
        .values_mut()
        .flatten()
        .for_each(|bound| *bound = *bound * SLACK + FLUSH);
    bounds
}

struct Pass<'a> {
    values: &'a BTreeMap<Node, Tensor>,
    bounds: &'a BTreeMap<Node, Vec<f64>>,
}

impl Pass<'_> {
    /// Value and bound of the element that belongs to (row, col).
    fn element(&self, node: Node, row: usize, col: usize) -> (f64, f64) {
        let tensor = &self.values[&node];
        let [rows, cols] = tensor.shape().matrix();
        let place = (row % rows) * cols + col % cols;
        (tensor.data()[place], self.bounds[&node][place])
    }

    fn factor(&self, factor: Factor, row: usize, col: usize) -> (f64, f64) {
        if factor.transposed {
            self.element(factor.node, col, row)
        } else {
            self.element(factor.node, row, col)
        }
    }

    fn bound(&self, operation: &Operation, node: Node, row: usize, col: usize) -> f64 {
        let value = {
            let tensor = &self.values[&node];
            tensor.data()[row * tensor.shape().matrix()[1] + col]
        };
        match operation {
            Operation::Fed(_) | Operation::Constant(_) => 0.0,
            Operation::MatMul(MatMul { a, b }) => {
                let [rows, cols] = self.values[&a.node].shape().matrix();
                let inner = if a.transposed { rows } else { cols };
                (0..inner)
                    .map(|k| {
                        product(
                            self.factor(*a, row, k),
                            self.factor(*b, k, col),
                            U * (inner + 1) as f64,
                        )
                    })
                    .sum()
            }
            Operation::Linear(_) | Operation::LinearPanels(_) => {
                unreachable!("bounds are of the unfused graph")
            }
            Operation::Binary(Binary { op, a, b }) => {
                let (a, b) = (self.element(*a, row, col), self.element(*b, row, col));
                match op {
                    BinaryOp::Mul => product(a, b, U),
                    BinaryOp::Max | BinaryOp::Min => a.1.max(b.1),
                    BinaryOp::Div => {
                        (a.1 + value.abs() * b.1) / (b.0.abs() - b.1).max(0.0)
                            + 3.0 * U * value.abs()
                    }
                    BinaryOp::Add | BinaryOp::Sub => a.1 + b.1 + U * (value.abs() + a.1 + b.1),
                    BinaryOp::Pow | BinaryOp::Fmod | BinaryOp::Mod => {
                        unreachable!("graphs of matrices hold no other functions of two values")
                    }
                }
            }
            Operation::Scale(Scale { x, factor }) => product(
                self.element(*x, row, col),
                (f64::from(*factor), 0.0),
                U * 2.0,
            ),
            Operation::Activate(Activate { activation, x }) => {
                let steepest = match activation {
                    Activation::Sigmoid => 0.25,
                    Activation::Gelu | Activation::GeluErf | Activation::Silu => 1.13,
                    _ => 1.0,
                };
                self.element(*x, row, col).1 * steepest + FUNCTION * value.abs()
            }
            Operation::ActivationGrad(ActivationGrad { activation, y, dy }) => activation_grad(
                *activation,
                self.element(*y, row, col),
                self.element(*dy, row, col),
            ),
            Operation::Unary(Unary { function, x }) => {
                let (x, bound) = self.element(*x, row, col);
                let least = (x - bound).max(0.0);
                let moved = match function {
                    Function::Exp => value * bound.exp_m1(),
                    Function::Log => (x / least).ln(),
                    Function::Sqrt => value - least.sqrt(),
                    Function::Erf => 1.13 * bound,
                    _ => unreachable!("graphs of matrices hold no other functions"),
                };
                moved + FUNCTION * value.abs()
            }
            Operation::Reduce(Reduce { axes, x }) => {
                let [rows, cols] = self.values[x].shape().matrix();
                let count = match axes {
                    ReduceAxes::All => rows * cols,
                    ReduceAxes::Rows => rows,
                    _ => cols,
                } as f64;
                let terms = (0..rows * cols).filter(|index| match axes {
                    ReduceAxes::All => true,
                    ReduceAxes::Rows => index % cols == col,
                    _ => index / cols == row,
                });
                let terms = terms.map(|index| self.element(*x, index / cols, index % cols));
                terms
                    .map(|(value, bound)| bound + U * count * (value.abs() + bound))
                    .sum()
            }
            Operation::Broadcast(Broadcast { x }) => self.element(*x, row, col).1,
            _ => unreachable!("graphs of matrices hold no other operations"),
        }
    }
}

fn product(a: (f64, f64), b: (f64, f64), rounding: f64) -> f64 {
    a.0.abs() * b.1 + a.1 * b.0.abs() + a.1 * b.1 + rounding * (a.0.abs() + a.1) * (b.0.abs() + b.1)
}

fn activation_grad(activation: Activation, (y, y_bound): (f64, f64), dy: (f64, f64)) -> f64 {
    let slope = match activation {
        Activation::Tanh => (
            1.0 - y * y,
            2.0 * y.abs() * y_bound + y_bound * y_bound + FUNCTION,
        ),
        Activation::Sigmoid => (y * (1.0 - y), y_bound + FUNCTION),
        // A result this close to 0 may be on its other side.
        Activation::Relu if y_bound > 0.0 && y.abs() <= SLACK * y_bound => (0.0, 1.0),
        _ => return dy.1,
    };
    product(slope, dy, FUNCTION)
}
