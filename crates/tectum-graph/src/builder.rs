//! Building a graph; every invalid operation is reported here, with the shapes and the node number.

use std::sync::Arc;

use tectum::internal::Identity;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, DType, Error, Result};

use super::{BinaryOp, Definition, Dim, Factor, Graph, Node, Operation, ReduceAxes, Shape};

/// A graph under construction.
///
/// # Example
/// ```
/// use tectum::Device;
/// use tectum_graph::GraphBuilder;
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
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
}

impl From<Graph> for GraphBuilder {
    /// Continues a graph; its nodes and outputs are unchanged. New nodes belong only to this builder's graph.
    fn from(mut graph: Graph) -> Self {
        graph.makers.push(Identity::next());
        Self { graph }
    }
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::from(Graph::default())
    }
}

impl GraphBuilder {
    /// Starts an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value that the caller gives for each run.
    ///
    /// # Errors
    /// `Invalid` if an input or parameter has this name, or the shape has no elements or more than 2³² − 1.
    pub fn input(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_new("input", name, shape)?;
        Ok(self.push(Operation::Input { name: name.to_owned() }, shape))
    }

    /// Adds row numbers (u32) that the caller gives for each run, for [`GraphBuilder::gather`] and positions.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn indices(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_new("indices", name, shape)?;
        Ok(self.push(Operation::Indices { name: name.to_owned() }, shape))
    }

    /// Adds a value that is learned: [`Graph::gradients`] gives its gradient.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn parameter(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_new("parameter", name, shape)?;
        Ok(self.push(Operation::Parameter { name: name.to_owned(), format: PanelFormat::F32 }, shape))
    }

    /// Adds a value that never changes.
    ///
    /// # Errors
    /// `Invalid` if `data` does not fill the shape, or the shape has no elements or more than 2³² − 1.
    pub fn constant(&mut self, data: &[f32], shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_shape("constant", shape)?;
        if shape.elements() != Some(data.len()) {
            return Err(self.fault(format_args!("constant: {} elements given for {shape:?}", data.len())));
        }
        Ok(self.push(Operation::Constant { data: Arc::from(data) }, shape))
    }

    /// Adds the product a·b; either operand may be [transposed](Node::transpose) in its last two dimensions.
    ///
    /// # Shapes
    /// `a` [.., m, k], `b` [k, n], after transposition; gives [.., m, n]. Or one product for each matrix of a batch: `a`
    /// [.., m, k], `b` [.., k, n] with the same leading dimensions.
    /// # Errors
    /// `Invalid` if the inner sizes or the leading dimensions differ, `a` is transposed and has more dimensions than `b`, or a
    /// node is not of this graph.
    pub fn matmul(&mut self, a: impl Into<Factor>, b: impl Into<Factor>) -> Result<Node> {
        let (a, b) = (a.into(), b.into());
        let shape = self.product_shape("matmul", a, b)?;
        Ok(self.push(Operation::MatMul { a, b }, shape))
    }

    /// The shape of a product whose operands fit.
    pub(super) fn product_shape(&self, op: &str, a: Factor, b: Factor) -> Result<Shape> {
        let (a_shape, b_shape) = (self.shape(op, a.node)?, self.shape(op, b.node)?);
        if a_shape.rank() < 2 || b_shape.rank() < 2 {
            return Err(self.fault(format_args!("{op}: lhs {a_shape:?}, rhs {b_shape:?}: at least two dimensions are needed")));
        }
        let ([m, k], [b_rows, n]) = (a.oriented(a_shape), b.oriented(b_shape));
        let before = |shape: Shape| shape.dims()[..shape.rank() - 2].to_vec();
        let shown = |shape: Shape, [rows, cols]: [Dim; 2]| Shape::of(&[&before(shape)[..], &[rows, cols]].concat());
        let (a_shown, b_shown) = (shown(a_shape, [m, k]), shown(b_shape, [b_rows, n]));
        if k != b_rows {
            return Err(self.fault(format_args!("{op}: lhs {a_shown:?}, rhs {b_shown:?}: inner sizes {k:?} and {b_rows:?} differ")));
        }
        let is_shared = b_shape.rank() == 2 && (a_shape.rank() == 2 || !a.transposed);
        if !is_shared && before(a_shape) != before(b_shape) {
            return Err(self.fault(format_args!("{op}: lhs {a_shown:?}, rhs {b_shown:?}: the dimensions before the matrices differ")));
        }
        let shape = shown(a_shape, [m, n]);
        self.check_shape(op, shape)?;
        Ok(shape)
    }

    /// Adds a + b.
    ///
    /// # Shapes
    /// Both [.., m, n]; or the shape of one, without leading ones, equals the last dimensions of the other: [n] or [1, n], repeated
    /// over the rows, or [1, 1], repeated everywhere.
    /// # Errors
    /// `Invalid` if neither broadcasts to the other's shape or a node is not of this graph.
    pub fn add(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Adds a − b.
    ///
    /// # Shapes
    /// `a` [.., m, n]; `b` as in [`GraphBuilder::add`].
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

    /// Adds an activation; `None` adds nothing and gives `x`. [`Graph::gradients`] has no derivative of `Gelu`.
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
    /// `x` [.., k], W [k, width], b [1, width]; gives [.., width].
    /// # Errors
    /// As [`GraphBuilder::parameter`].
    pub fn dense(&mut self, name: &str, x: Node, width: usize, activation: Activation) -> Result<Node> {
        let inner = match self.shape("dense", x)?.last() {
            Dim::Size(inner) => inner,
            Dim::Symbol(letter) => return Err(self.fault(format_args!("dense {name}: the last dimension is {letter}, a size is needed"))),
        };
        let weight = self.parameter(&format!("{name}.weight"), [inner, width])?;
        let bias = self.parameter(&format!("{name}.bias"), [1, width])?;
        let product = self.matmul(x, weight)?;
        let sum = self.add(product, bias)?;
        self.activate(sum, activation)
    }

    /// Adds the sum of all elements.
    ///
    /// # Shapes
    /// Gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::All)
    }

    /// Adds the sum of the rows: y[col] = Σ x[.., col].
    ///
    /// # Shapes
    /// `x` [.., n]; gives [1, n].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_rows(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::Rows)
    }

    /// Adds the sum of the columns: y[row] = Σ x[row, ..].
    ///
    /// # Shapes
    /// `x` [.., m, n]; gives [.., m, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_columns(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::Columns)
    }

    /// Adds the mean of all elements, as their sum scaled by the f32 nearest to 1/(m·n).
    ///
    /// # Shapes
    /// `x` [m, n]; gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn mean(&mut self, x: Node) -> Result<Node> {
        let shape = self.shape("mean", x)?;
        let Some(count) = shape.elements() else {
            return Err(self.fault(format_args!("mean: {shape:?} holds an unknown number of elements")));
        };
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
        self.graph.shape(node).map_err(|error| error.at("output"))?;
        if matches!(self.graph.nodes[&node].operation, Operation::State { .. }) {
            return Err(self.fault(format_args!("output {name}: node {node} is a state")));
        }
        if self.graph.outputs.iter().any(|(other, _)| other == name) {
            return Err(self.fault(format_args!("output {name}: the name is taken")));
        }
        self.graph.outputs.push((name.to_owned(), node));
        Ok(())
    }

    /// Finishes the graph.
    ///
    /// # Errors
    /// `Invalid` if the graph has no output.
    pub fn finish(self) -> Result<Graph> {
        if self.graph.outputs.is_empty() { Err(Error::invalid("graph: no outputs")) } else { Ok(self.graph) }
    }

    /// The gradient at an activation's argument.
    pub(super) fn activation_grad(&mut self, activation: Activation, y: Node, dy: Node) -> Result<Node> {
        let shape = self.shape("activation_grad", y)?;
        let dy_shape = self.shape("activation_grad", dy)?;
        if !dy_shape.broadcasts_to(shape) {
            return Err(self.fault(format_args!("activation_grad: y {shape:?}, dy {dy_shape:?}: it does not repeat")));
        }
        Ok(self.push(Operation::ActivationGrad { activation, y, dy }, shape))
    }

    /// Adds the sum over one axis, which is kept with size 1.
    ///
    /// # Errors
    /// `Invalid` if there is no such axis or the node is not of this graph.
    pub fn sum_axis(&mut self, x: Node, axis: usize) -> Result<Node> {
        let shape = self.shape("sum_axis", x)?;
        self.check_axis("sum_axis", shape, axis)?;
        match axis {
            _ if axis + 1 == shape.rank() => self.reduce(x, ReduceAxes::Columns),
            0 if shape.rank() == 2 => self.reduce(x, ReduceAxes::Rows),
            _ => self.reduce(x, ReduceAxes::Axis(axis)),
        }
    }

    /// Repeats a scalar, row or column to a shape.
    pub(super) fn broadcast(&mut self, x: Node, shape: impl Into<Shape>) -> Result<Node> {
        let (from, shape) = (self.shape("broadcast", x)?, shape.into());
        self.check_shape("broadcast", shape)?;
        if from == shape {
            return Ok(x);
        }
        let is_column = from.rank() == shape.rank() && from == shape.with(shape.rank() - 1, 1);
        if !from.broadcasts_to(shape) && !is_column {
            return Err(self.fault(format_args!("broadcast: {from:?} does not repeat to {shape:?}")));
        }
        Ok(self.push(Operation::Broadcast { x }, shape))
    }

    /// Sums to a shape that [`GraphBuilder::broadcast`] expands to the shape of `x`.
    pub(super) fn reduce_to(&mut self, x: Node, shape: Shape) -> Result<Node> {
        let from = self.shape("reduce", x)?;
        let sum = match () {
            () if shape == from => return Ok(x),
            () if shape.trimmed().is_empty() => self.reduce(x, ReduceAxes::All)?,
            () if shape.is_row_of(from) => self.reduce(x, ReduceAxes::Rows)?,
            () if shape.rank() == from.rank() && shape == from.with(from.rank() - 1, 1) => self.reduce(x, ReduceAxes::Columns)?,
            () => return Err(Error::unsupported(format!("no derivative yet of what repeats {shape:?} to {from:?}"))),
        };
        self.reshape(sum, shape)
    }

    fn reduce(&mut self, x: Node, axes: ReduceAxes) -> Result<Node> {
        let from = self.shape("sum", x)?;
        let shape = match axes {
            ReduceAxes::All => Shape::from([1, 1]),
            ReduceAxes::Rows => Shape::of(&[Dim::Size(1), from.last()]),
            ReduceAxes::Columns if from.rank() == 0 => return Err(self.fault(format_args!("sum: {from:?} has no axis"))),
            ReduceAxes::Columns => from.with(from.rank() - 1, 1),
            ReduceAxes::Axis(axis) => from.with(axis, 1),
        };
        Ok(self.push(Operation::Reduce { axes, x }, shape))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Node, b: Node) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape(op.name(), a)?, self.shape(op.name(), b)?);
        if b_shape.broadcasts_to(a_shape) {
            Ok(self.push(Operation::Binary { op, a, b }, a_shape))
        } else if op != BinaryOp::Sub && a_shape.broadcasts_to(b_shape) {
            Ok(self.push(Operation::Binary { op, a: b, b: a }, b_shape))
        } else {
            let rule = if op == BinaryOp::Sub { "rhs does not repeat to lhs" } else { "neither repeats to the other" };
            Err(self.fault(format_args!("{}: lhs {a_shape:?}, rhs {b_shape:?}: {rule}", op.name())))
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    pub(super) fn push(&mut self, operation: Operation, shape: Shape) -> Node {
        let node = Node { number: self.graph.next, step: 0, graph: self.graph.maker() };
        self.graph.nodes.insert(node, Definition { operation, shape });
        self.graph.next = self.graph.next.checked_add(1).expect("invariant: no memory holds as many nodes");
        node
    }

    /// The shape of a value of floats that any operation may read.
    pub(super) fn shape(&self, op: &str, node: Node) -> Result<Shape> {
        let shape = self.graph.shape(node).map_err(|error| error.at(op))?;
        let operation = &self.graph.nodes[&node].operation;
        match operation.dtype() {
            DType::F32 if matches!(operation, Operation::State { .. }) => Err(self.fault(format_args!("{op}: operand {node} {shape:?} is a state"))),
            DType::F32 => Ok(shape),
            dtype => Err(self.fault(format_args!("{op}: operand {node} {shape:?} is {}, f32 is needed", dtype.wgsl()))),
        }
    }

    pub(super) fn check_new(&self, kind: &str, name: &str, shape: Shape) -> Result<()> {
        let mut named = self.graph.inputs().chain(self.graph.parameters()).chain(self.graph.states());
        if named.any(|(other, ..)| other == name) {
            return Err(self.fault(format_args!("{kind} {name}: the name is taken")));
        }
        self.check_shape(&format!("{kind} {name}"), shape)
    }

    pub(super) fn check_axis(&self, op: &str, shape: Shape, axis: usize) -> Result<()> {
        if axis < shape.rank() { Ok(()) } else { Err(self.fault(format_args!("{op}: {shape:?} has no axis {axis}"))) }
    }

    pub(super) fn check_shape(&self, what: &str, shape: Shape) -> Result<()> {
        shape.check().map_err(|error| self.fault(format_args!("{what}: {error}")))
    }

    /// An error at the node that would have been the next.
    pub(super) fn fault(&self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid(format!("{message} (node {})", self.graph.next))
    }
}

impl BinaryOp {
    pub(super) const ALL: [BinaryOp; 3] = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul];

    /// The name in the op table.
    pub(super) fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
        }
    }
}
