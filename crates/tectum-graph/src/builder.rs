//! Building a graph; the method that adds an operation is in the file of the operation. Every
//! invalid operation is reported there, with the shapes and the node number.

use tectum::internal::Identity;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, DType, Error, Result, host_memory};

use super::{AnyCustomOp, Definition, Dim, Graph, Node, Operation, Shape};

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
    /// Operations of other crates that a text may name.
    custom: Vec<AnyCustomOp>,
}

impl From<Graph> for GraphBuilder {
    /// Continues a graph; its nodes and outputs are unchanged. New nodes belong only to this
    /// builder's graph.
    fn from(mut graph: Graph) -> Self {
        graph.makers.push(Identity::next());
        Self {
            graph,
            custom: Vec::new(),
        }
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

    /// Starts an empty graph, for a text that names operations of other crates.
    pub(super) fn with_custom(custom: &[AnyCustomOp]) -> Self {
        Self {
            custom: custom.to_vec(),
            ..Self::default()
        }
    }

    /// The shape of a value.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn shape_of(&self, node: Node) -> Result<Shape> {
        self.graph.shape(node)
    }

    /// How many operations it has.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a graph without operations is of no use"
    )]
    pub fn len(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Elements of all values together, which bounds the memory of [`Graph::evaluate`]; letters
    /// count as 1.
    pub fn elements(&self) -> usize {
        let sizes = |shape: Shape| {
            shape.dims().iter().fold(1usize, |product, dim| {
                product.saturating_mul(if let Dim::Size(size) = dim { *size } else { 1 })
            })
        };
        self.graph.nodes.values().fold(0, |sum, definition| {
            sum.saturating_add(sizes(definition.shape))
        })
    }

    /// Terms of the sums of all operations together, estimated from the sizes of operands and
    /// results: √(a·b·y) for a product a·b = y, which is exact for matrices. It bounds the time of
    /// [`Graph::evaluate`].
    pub fn product_terms(&self) -> f64 {
        let len = |node: &Node| {
            self.graph.nodes[node]
                .shape
                .dims()
                .iter()
                .fold(1f64, |product, dim| {
                    product
                        * if let Dim::Size(size) = dim {
                            *size as f64
                        } else {
                            1.0
                        }
                })
        };
        let terms =
            |(node, definition): (&Node, &Definition)| match definition.operation.operands()[..] {
                [a, b, ..] if definition.operation.elementwise().is_none() => {
                    (len(&a) * len(&b) * len(node)).sqrt()
                }
                _ => 0.0,
            };
        self.graph.nodes.iter().map(terms).sum()
    }

    /// Adds a dense layer, activation(x·W + b), with parameters `{name}.weight` and `{name}.bias`.
    ///
    /// # Shapes
    /// `x` [.., k], W [k, width], b [1, width]; gives [.., width].
    /// # Errors
    /// As [`GraphBuilder::parameter`].
    pub fn dense(
        &mut self,
        name: &str,
        x: Node,
        width: usize,
        activation: Activation,
    ) -> Result<Node> {
        let inner = match self.shape("dense", x)?.last() {
            Dim::Size(inner) => inner,
            Dim::Symbol(letter) => {
                return Err(self.fault(format_args!(
                    "dense {name}: the last dimension is {letter}, a size is needed"
                )));
            }
        };
        let weight = self.parameter(&format!("{name}.weight"), [inner, width])?;
        let bias = self.parameter(&format!("{name}.bias"), [1, width])?;
        let product = self.matmul(x, weight)?;
        let sum = self.add(product, bias)?;
        self.activate(sum, activation)
    }

    /// Adds the mean of all elements, as their sum scaled by the f32 nearest to 1/(m·n).
    ///
    /// # Shapes
    /// `x` [m, n]; gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn mean(&mut self, x: Node) -> Result<Node> {
        let sum = self.sum(x)?;
        self.average(sum, x)
    }

    /// Adds the elements of an axis at some places, in any order and any number of times.
    ///
    /// # Errors
    /// `Invalid` if the axis does not exist, no place is given or one is beyond the axis, a
    /// dimension is a letter, there are 2³¹ rows or more, or the node is not of this graph;
    /// `OutOfMemory` for more places than fit into memory.
    pub fn take(&mut self, x: Node, axis: usize, places: &[usize]) -> Result<Node> {
        let (shape, _) = self.typed("take", x)?;
        self.check_axis("take", shape, axis)?;
        let Some(sizes) = shape.sizes() else {
            return Err(self.fault(format_args!("take: {shape:?}: sizes are needed")));
        };
        let size = sizes[axis];
        if let Some(place) = places.iter().find(|place| **place >= size) {
            return Err(self.fault(format_args!(
                "take: place {place} of axis {axis} of {shape:?}"
            )));
        }
        if places.is_empty() {
            return Err(self.fault(format_args!("take: no places of axis {axis} of {shape:?}")));
        }
        let outer: usize = sizes[..axis].iter().product();
        let inner: usize = sizes[axis + 1..].iter().product();
        if i32::try_from(outer * size).is_err() {
            return Err(self.fault(format_args!(
                "take: axis {axis} of {shape:?}: {} rows; at most {} are possible",
                outer * size,
                i32::MAX
            )));
        }
        let count = outer.saturating_mul(places.len());
        let mut rows: Vec<i32> = host_memory::with_capacity("the rows of take", count)?;
        rows.extend((0..outer).flat_map(|outer| {
            places
                .iter()
                .map(move |place| (outer * size + place) as i32)
        }));
        let table = self.reshape(x, [outer * size, inner])?;
        let rows = self.integer_constant(&rows, [rows.len()])?;
        let taken = self.gather(table, rows)?;
        self.reshape(taken, shape.with(axis, places.len()))
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
            return Err(self.fault(format_args!(
                "mse: prediction {:?}, target {:?}: shapes differ",
                shapes[0], shapes[1]
            )));
        }
        let difference = self.sub(prediction, target)?;
        let square = self.mul(difference, difference)?;
        self.mean(square)
    }

    /// Adds the mean over all rows of logsumexp(logits) − logits\[index\]: the negative
    /// log-likelihood of the classes under softmax(logits).
    ///
    /// # Shapes
    /// `logits` [.., classes], `indices` [..] as [`GraphBuilder::indices`] adds them; gives [1, 1].
    /// # Numerics
    /// Relative to the maximum of each row, so no exponential overflows and no logarithm is of 0.
    /// Logits of −∞ are possible where their class is not the index. An index out of range counts
    /// as a logit of 0.
    /// # Errors
    /// `Invalid` if the shapes do not fit, the classes are a letter, `indices` is not row numbers,
    /// or a node is not of this graph.
    /// # Source
    /// Goodfellow, Bengio and Courville, *Deep Learning*, MIT Press 2016, section 6.2.2.3; the mean
    /// as `cross_entropy` of PyTorch.
    pub fn cross_entropy(&mut self, logits: Node, indices: Node) -> Result<Node> {
        let (shape, rows) = (
            self.shape("cross_entropy", logits)?,
            self.index_shape("cross_entropy", indices)?,
        );
        let Some((Dim::Size(classes), before)) = shape.dims().split_last() else {
            return Err(self.fault(format_args!(
                "cross_entropy: logits {shape:?}: the number of classes is needed"
            )));
        };
        if before != rows.dims() {
            return Err(self.fault(format_args!("cross_entropy: logits {shape:?}, indices {rows:?}: an index for each row of logits is needed")));
        }
        let normalizer = self.logsumexp(logits)?;
        let picked = self.one_hot(indices, *classes)?;
        // The logit where the class is the index and 0 elsewhere, where a product would make NaN of
        // an infinite logit.
        let picked = self.activation_grad(Activation::Relu, picked, logits)?;
        let picked = self.sum_over_columns(picked)?;
        let difference = self.sub(normalizer, picked)?;
        self.mean(difference)
    }

    /// Makes a node an output under a name; a node may be several.
    ///
    /// # Errors
    /// `Invalid` if an output has this name or the node is not of this graph.
    pub fn output(&mut self, name: &str, node: Node) -> Result<()> {
        self.graph.shape(node).map_err(|error| error.at("output"))?;
        if self.graph.nodes[&node].operation.state_format().is_some() {
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
        if self.graph.outputs.is_empty() {
            Err(Error::invalid("graph: no outputs"))
        } else {
            Ok(self.graph)
        }
    }

    pub(super) fn known_custom(&self, name: &str) -> Option<AnyCustomOp> {
        self.custom.iter().find(|op| op.name() == name).cloned()
    }

    /// The graph so far, which may be without outputs. Its nodes are valid in a clone of it.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// Adds an operation whose operands and shape are checked.
    pub(super) fn push(&mut self, operation: impl Into<Operation>, shape: Shape) -> Node {
        let operation = operation.into();
        let node = Node {
            number: self.graph.next,
            step: 0,
            graph: self.graph.maker(),
        };
        self.graph
            .nodes
            .insert(node, Definition { operation, shape });
        self.graph.next = self
            .graph
            .next
            .checked_add(1)
            .expect("invariant: no memory holds as many nodes");
        node
    }

    /// The shape of a value of floats that any operation may read.
    pub(super) fn shape(&self, op: &str, node: Node) -> Result<Shape> {
        self.shape_as(op, node, DType::F32)
    }

    /// The shape of a value of this type that any operation may read.
    pub(super) fn shape_as(&self, op: &str, node: Node, needed: DType) -> Result<Shape> {
        match self.typed(op, node)? {
            (shape, dtype) if dtype == needed => Ok(shape),
            (shape, dtype) => Err(self.fault(format_args!(
                "{op}: operand {node} {shape:?} is {}, {} is needed",
                dtype.wgsl(),
                needed.wgsl()
            ))),
        }
    }

    /// The shape and type of a value that any operation may read.
    pub(super) fn typed(&self, op: &str, node: Node) -> Result<(Shape, DType)> {
        let shape = self.graph.shape(node).map_err(|error| error.at(op))?;
        let operation = &self.graph.nodes[&node].operation;
        if operation.state_format().is_some() {
            return Err(self.fault(format_args!("{op}: operand {node} {shape:?} is a state")));
        }
        if self
            .graph
            .panel_format(node)
            .is_some_and(|format| format != PanelFormat::F32)
        {
            return Err(self.fault(format_args!(
                "{op}: operand {node} {shape:?} is words of packed weights"
            )));
        }
        Ok((shape, operation.dtype(&self.graph)))
    }

    pub(super) fn check_axis(&self, op: &str, shape: Shape, axis: usize) -> Result<()> {
        if axis < shape.rank() {
            Ok(())
        } else {
            Err(self.fault(format_args!("{op}: {shape:?} has no axis {axis}")))
        }
    }

    pub(super) fn check_shape(&self, what: &str, shape: Shape) -> Result<()> {
        shape
            .check()
            .map_err(|error| self.fault(format_args!("{what}: {error}")))
    }

    /// An error at the node that would have been the next.
    pub(super) fn fault(&self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid(format!("{message} (node {})", self.graph.next))
    }
}
