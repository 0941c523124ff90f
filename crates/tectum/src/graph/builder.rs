//! Building a graph; every mistake is found here, with the shapes and the number of the node.

use std::sync::Arc;

use super::{BinaryOp, Definition, Factor, Graph, Node, Operation, Over, elements};
use crate::error::{Error, Result};
use crate::kernel::Activation;

/// A graph under construction.
///
/// # Example
/// ```
/// use tectum::{Device, GraphBuilder};
/// let mut g = GraphBuilder::new();
/// let x = g.input("x", [1, 2])?;
/// let w = g.parameter("w", [2, 1])?;
/// let product = g.matmul(x, w)?;
/// let y = g.relu(product)?;
/// g.output("y", y)?;
/// let graph = g.finish()?;
/// assert_eq!(graph.optimize().describe(), "%0 = input x [1, 2]\n%1 = parameter w [2, 1]\n%3 = linear(%0, %1, relu) [1, 1]\noutput y %3\n");
/// let mut run = graph.compile(&Device::open("cpu")?)?;
/// run.set_parameter("w", &[10.0, 1.0])?;
/// run.set_input("x", &[2.0, 3.0])?;
/// run.run()?;
/// assert_eq!(run.output("y")?, [23.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
}

impl From<Graph> for GraphBuilder {
    /// Goes on building where a graph ended; its nodes and outputs stay as they are.
    fn from(graph: Graph) -> Self {
        Self { graph }
    }
}

impl GraphBuilder {
    /// Starts a graph with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value that the caller gives for each run.
    ///
    /// # Errors
    /// `Invalid` if an input or parameter has this name, or the shape holds no elements or more than 2³² − 1.
    pub fn input(&mut self, name: &str, shape: [usize; 2]) -> Result<Node> {
        self.check_new("input", name, shape)?;
        Ok(self.push(Operation::Input { name: name.to_owned() }, shape))
    }

    /// Adds a value that is learned: [`Graph::gradients`] gives its gradient.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn parameter(&mut self, name: &str, shape: [usize; 2]) -> Result<Node> {
        self.check_new("parameter", name, shape)?;
        Ok(self.push(Operation::Parameter { name: name.to_owned() }, shape))
    }

    /// Adds a value that never changes.
    ///
    /// # Errors
    /// `Invalid` if `data` does not fill the shape, or the shape holds no elements or more than 2³² − 1.
    pub fn constant(&mut self, data: &[f32], shape: [usize; 2]) -> Result<Node> {
        self.check_shape("constant", shape)?;
        if data.len() != elements(shape) {
            return Err(self.fault(format_args!("constant: {} elements given for {shape:?}", data.len())));
        }
        Ok(self.push(Operation::Constant { data: Arc::from(data) }, shape))
    }

    /// Adds the product a·b; either operand may be [transposed](Node::transpose).
    ///
    /// # Shapes
    /// `a` [m, k], `b` [k, n], after transposition; gives [m, n].
    /// # Errors
    /// `Invalid` if the inner sizes differ or a node is not of this graph.
    pub fn matmul(&mut self, a: impl Into<Factor>, b: impl Into<Factor>) -> Result<Node> {
        let (a, b) = (a.into(), b.into());
        let [m, k] = a.oriented(self.shape("matmul", a.node)?);
        let [b_rows, n] = b.oriented(self.shape("matmul", b.node)?);
        if k != b_rows {
            return Err(self.fault(format_args!("matmul: lhs [{m}, {k}], rhs [{b_rows}, {n}]: inner sizes {k} and {b_rows} differ")));
        }
        self.check_shape("matmul", [m, n])?;
        Ok(self.push(Operation::MatMul { a, b }, [m, n]))
    }

    /// Adds a + b.
    ///
    /// # Shapes
    /// Both [m, n]; or one of them [1, n], repeated over the rows, or [1, 1], repeated everywhere.
    /// # Errors
    /// `Invalid` if neither repeats to the other's shape or a node is not of this graph.
    pub fn add(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Adds a − b.
    ///
    /// # Shapes
    /// `a` [m, n]; `b` [m, n], or [1, n], repeated over the rows, or [1, 1], repeated everywhere.
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn sub(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// Adds a ⊙ b, element by element.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn mul(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// Adds factor · x.
    ///
    /// # Errors
    /// `Invalid` if the factor is not finite or the node is not of this graph.
    pub fn scale(&mut self, x: Node, factor: f32) -> Result<Node> {
        let shape = self.shape("scale", x)?;
        if !factor.is_finite() {
            return Err(self.fault(format_args!("scale: factor {factor} is not finite")));
        }
        Ok(self.push(Operation::Scale { x, factor }, shape))
    }

    /// Adds tanh(x).
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn tanh(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Tanh)
    }

    /// Adds max(x, 0); its derivative at 0 is 0.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn relu(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Relu)
    }

    /// Adds 1 / (1 + exp(−x)).
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sigmoid(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Sigmoid)
    }

    /// Adds an activation; `None` adds nothing and gives `x`. [`Graph::gradients`] knows no derivative of `Gelu`.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn activate(&mut self, x: Node, activation: Activation) -> Result<Node> {
        let shape = self.shape("activate", x)?;
        if activation == Activation::None {
            return Ok(x);
        }
        Ok(self.push(Operation::Activate { activation, x }, shape))
    }

    /// Adds a dense layer, activation(x·W + b), with parameters `{name}.weight` and `{name}.bias`.
    ///
    /// # Shapes
    /// `x` [m, k], W [k, width], b [1, width]; gives [m, width].
    /// # Errors
    /// As [`GraphBuilder::parameter`].
    pub fn dense(&mut self, name: &str, x: Node, width: usize, activation: Activation) -> Result<Node> {
        let [_, inner] = self.shape("dense", x)?;
        let weight = self.parameter(&format!("{name}.weight"), [inner, width])?;
        let bias = self.parameter(&format!("{name}.bias"), [1, width])?;
        let product = self.matmul(x, weight)?;
        let sum = self.add(product, bias)?;
        self.activate(sum, activation)
    }

    /// Adds the sum of all elements.
    ///
    /// # Shapes
    /// `x` [m, n]; gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, Over::All)
    }

    /// Adds the sum of the rows: y[col] = Σ x[.., col].
    ///
    /// # Shapes
    /// `x` [m, n]; gives [1, n].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_rows(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, Over::Rows)
    }

    /// Adds the sum of the columns: y[row] = Σ x[row, ..].
    ///
    /// # Shapes
    /// `x` [m, n]; gives [m, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_columns(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, Over::Columns)
    }

    /// Adds the mean of all elements, as their sum scaled by the f32 nearest to 1/(m·n).
    ///
    /// # Shapes
    /// `x` [m, n]; gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn mean(&mut self, x: Node) -> Result<Node> {
        let count = elements(self.shape("mean", x)?);
        let sum = self.sum(x)?;
        self.scale(sum, (1.0 / count as f64) as f32)
    }

    /// Adds the mean over all elements of (prediction − target)².
    ///
    /// # Shapes
    /// Both [m, n]; gives [1, 1].
    /// # Errors
    /// `Invalid` if the shapes differ or a node is not of this graph.
    pub fn mse(&mut self, prediction: Node, target: Node) -> Result<Node> {
        let shapes = [self.shape("mse", prediction)?, self.shape("mse", target)?];
        if shapes[0] != shapes[1] {
            return Err(self.fault(format_args!("mse: prediction {:?}, target {:?}: shapes differ", shapes[0], shapes[1])));
        }
        let difference = self.sub(prediction, target)?;
        let square = self.mul(difference, difference)?;
        self.mean(square)
    }

    /// Makes a node an output under a name; a node may be several.
    ///
    /// # Errors
    /// `Invalid` if an output has this name or the node is not of this graph.
    pub fn output(&mut self, name: &str, node: Node) -> Result<()> {
        self.shape("output", node)?;
        if self.graph.outputs.iter().any(|(other, _)| other == name) {
            return Err(self.fault(format_args!("output {name}: the name is taken")));
        }
        self.graph.outputs.push((name.to_owned(), node));
        Ok(())
    }

    /// Ends the building.
    ///
    /// # Errors
    /// `Invalid` if nothing is an output.
    pub fn finish(self) -> Result<Graph> {
        if self.graph.outputs.is_empty() { Err(Error::invalid("graph: nothing is an output")) } else { Ok(self.graph) }
    }

    /// The gradient at an activation's argument.
    pub(super) fn activation_grad(&mut self, activation: Activation, y: Node, dy: Node) -> Result<Node> {
        let shape = self.shape("activation_grad", y)?;
        Ok(self.push(Operation::ActivationGrad { activation, y, dy }, shape))
    }

    /// Repeats a scalar, row or column to a shape.
    pub(super) fn broadcast(&mut self, x: Node, shape: [usize; 2]) -> Result<Node> {
        let from = self.shape("broadcast", x)?;
        if from == shape {
            return Ok(x);
        }
        if from != [1, 1] && from != [1, shape[1]] && from != [shape[0], 1] {
            return Err(self.fault(format_args!("broadcast: {from:?} does not repeat to {shape:?}")));
        }
        Ok(self.push(Operation::Broadcast { x }, shape))
    }

    /// Sums to a shape that [`GraphBuilder::broadcast`] repeats to `x`'s.
    pub(super) fn reduce_to(&mut self, x: Node, shape: [usize; 2]) -> Result<Node> {
        let from = self.shape("reduce", x)?;
        match shape {
            _ if shape == from => Ok(x),
            [1, 1] => self.reduce(x, Over::All),
            [1, _] => self.reduce(x, Over::Rows),
            _ => self.reduce(x, Over::Columns),
        }
    }

    fn reduce(&mut self, x: Node, over: Over) -> Result<Node> {
        let [rows, cols] = self.shape("sum", x)?;
        let shape = match over {
            Over::All => [1, 1],
            Over::Rows => [1, cols],
            Over::Columns => [rows, 1],
        };
        Ok(self.push(Operation::Reduce { over, x }, shape))
    }

    fn binary(&mut self, op: BinaryOp, a: Node, b: Node) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape(op.name(), a)?, self.shape(op.name(), b)?);
        if repeats(b_shape, a_shape) {
            Ok(self.push(Operation::Binary { op, a, b }, a_shape))
        } else if op != BinaryOp::Sub && repeats(a_shape, b_shape) {
            Ok(self.push(Operation::Binary { op, a: b, b: a }, b_shape))
        } else {
            let rule = if op == BinaryOp::Sub { "rhs does not repeat to lhs" } else { "neither repeats to the other" };
            Err(self.fault(format_args!("{}: lhs {a_shape:?}, rhs {b_shape:?}: {rule}", op.name())))
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    fn push(&mut self, operation: Operation, shape: [usize; 2]) -> Node {
        let node = Node(self.graph.next);
        self.graph.nodes.insert(node, Definition { operation, shape });
        self.graph.next += 1;
        node
    }

    fn shape(&self, op: &str, node: Node) -> Result<[usize; 2]> {
        self.graph.shape(node).map_err(|error| error.at(op))
    }

    fn check_new(&self, kind: &str, name: &str, shape: [usize; 2]) -> Result<()> {
        let mut named = self.graph.inputs().chain(self.graph.parameters());
        if named.any(|(other, ..)| other == name) {
            return Err(self.fault(format_args!("{kind} {name}: the name is taken")));
        }
        self.check_shape(&format!("{kind} {name}"), shape)
    }

    fn check_shape(&self, what: &str, shape: [usize; 2]) -> Result<()> {
        match shape[0].checked_mul(shape[1]) {
            Some(1..=0xffff_ffff) => Ok(()),
            Some(0) => Err(self.fault(format_args!("{what}: {shape:?} holds no elements"))),
            _ => Err(self.fault(format_args!("{what}: {shape:?} holds more than {} elements", u32::MAX))),
        }
    }

    /// A mistake at the node that would have been the next.
    fn fault(&self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid(format!("{message} (node {})", self.graph.next))
    }
}

/// Whether a value of shape `b`, repeated, has shape `a`: it is the same, a row, or a scalar.
pub(super) fn repeats(b: [usize; 2], a: [usize; 2]) -> bool {
    b == a || b == [1, a[1]] || b == [1, 1]
}

impl BinaryOp {
    /// The name in the op table.
    pub(super) fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
        }
    }
}
