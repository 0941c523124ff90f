//! Graphs: dense networks that are built, trained and run.

mod compiled;
mod node;
mod trainer;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::{Activation, Window};
use tectum_graph::{
    AdamW, Dim, Graph as Network, GraphBuilder, Heads, LearningRate, MAX_RANK, PoolKind, Shape,
    Trainer as Training, activation_name, activation_named,
};

use crate::array::floats;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::sequence::{OneOrEach, Sequence, stated_len};
use crate::whole;

pub use compiled::CompiledGraph;
pub use node::Node;
pub use trainer::Trainer;

/// The builder of a graph, which its nodes share.
type Shared = Exclusive<GraphBuilder>;

/// A dimension: a size, or an upper-case letter that gets one later.
#[derive(FromPyObject)]
enum DimArgument {
    Size(usize),
    Letter(char),
}

/// A shape from Python: one size, or a sequence of sizes and letters.
fn shape_of(value: &Bound<'_, PyAny>) -> PyResult<Shape> {
    let dims = match value.extract::<DimArgument>() {
        Ok(only) => vec![only],
        Err(_) => {
            let rank = stated_len(value);
            if rank > MAX_RANK && !value.is_instance_of::<pyo3::types::PyString>() {
                return Err(PyValueError::new_err(format!(
                    "a shape of {rank} dimensions; at most {MAX_RANK} are possible"
                )));
            }
            let dims = value.extract::<Sequence<DimArgument>>().map_err(|_| {
                PyTypeError::new_err(
                    "shape: sizes or upper-case letters are needed, such as (32, 2)",
                )
            })?;
            dims.0
        }
    };
    if dims.len() > MAX_RANK {
        return Err(PyValueError::new_err(format!(
            "a shape of {} dimensions; at most {MAX_RANK} are possible",
            dims.len()
        )));
    }
    let dim = |dim: DimArgument| match dim {
        DimArgument::Size(size) => Dim::Size(size),
        DimArgument::Letter(letter) => Dim::Symbol(letter),
    };
    Ok(Shape::of(&dims.into_iter().map(dim).collect::<Vec<_>>()))
}

/// A shape for Python: sizes, and letters as text.
fn shape_to_python<'py>(
    py: Python<'py>,
    shape: Shape,
) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
    let dims = shape.dims().iter().map(|dim| match dim {
        Dim::Size(size) => Ok(size.into_pyobject(py)?.into_any()),
        Dim::Symbol(letter) => Ok(letter.into_pyobject(py)?.into_any()),
    });
    pyo3::types::PyTuple::new(py, dims.collect::<PyResult<Vec<_>>>()?)
}

/// The shape of a constant.
fn constant_shape(sizes: &[usize]) -> PyResult<Shape> {
    if sizes.len() > MAX_RANK {
        return Err(PyValueError::new_err(format!(
            "constant: {} dimensions; at most {MAX_RANK} are possible",
            sizes.len()
        )));
    }
    let dims: Vec<Dim> = sizes.iter().map(|size| Dim::Size(*size)).collect();
    Ok(Shape::of(&dims))
}

/// Names with shapes for Python.
type NamedShapes<'py> = Vec<(String, Bound<'py, pyo3::types::PyTuple>)>;

fn named_shapes(py: Python<'_>, shapes: Vec<(String, Shape)>) -> PyResult<NamedShapes<'_>> {
    shapes
        .into_iter()
        .map(|(name, shape)| Ok((name, shape_to_python(py, shape)?)))
        .collect()
}

/// One size for every axis of space, or one for each.
type Axes = OneOrEach<usize, usize>;

impl Axes {
    /// The three axes of a window over `space` axes of space, the first of which are `otherwise`.
    fn spread(&self, what: &str, space: usize, otherwise: usize) -> PyResult<[usize; 3]> {
        let mut sizes = [otherwise; 3];
        match self {
            Axes::One(size) => sizes[3 - space..].fill(*size),
            Axes::Each(each) if each.len() == space => sizes[3 - space..].copy_from_slice(each),
            Axes::Each(each) => {
                return Err(PyValueError::new_err(format!(
                    "{what} has {} sizes for {space} axes of space",
                    each.len()
                )));
            }
        }
        Ok(sizes)
    }
}

/// A dense network as operations on tensors of float32, checked as they are added (docs/graphs.md).
///
/// Dimensions are sizes, or upper-case letters that `compile` and `trainer` give sizes. A node
/// supports `+`, `-`, `*`, `/`, `@` with nodes and numbers.
///
/// Raises ValueError naming the operation and the shapes that do not fit.
///
/// >>> import numpy as np, tectum as tt
/// >>> graph = tt.Graph()
/// >>> x, target = graph.input("x", (4, 1)), graph.input("target", (4, 1))
/// >>> y = graph.dense("layer", x, 1)
/// >>> graph.output("y", y)
/// >>> trainer = graph.trainer(graph.mse(y, target), learning_rate=0.1, weight_decay=0.0)
/// >>> trainer.initialize(seed=1)
/// >>> for _ in range(500):
/// ...     loss = trainer.step(x=[[0], [1], [2], [3]], target=[[1], [3], [5], [7]])
/// >>> network = graph.compile()
/// >>> network.set_parameters(trainer.parameters)
/// >>> np.round(network(x=[[10], [11], [12], [13]])["y"][:, 0]).tolist()
/// [21.0, 23.0, 25.0, 27.0]
#[pyclass(frozen, module = "tectum")]
pub struct Graph {
    builder: Shared,
}

impl Graph {
    /// A new node of an operation.
    fn add(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&mut GraphBuilder) -> tectum::Result<tectum_graph::Node>,
    ) -> PyResult<Node> {
        Node::add(py, &self.builder, operation)
    }

    /// The graph so far, with sizes for its letters.
    fn bound(&self, py: Python<'_>, dims: Option<&Bound<'_, PyDict>>) -> PyResult<Network> {
        let mut sizes = Vec::new();
        for (name, size) in dims.into_iter().flatten() {
            let letter = name.extract::<char>().map_err(|_| {
                PyValueError::new_err(format!(
                    "{name} is no dimension: an upper-case letter is needed"
                ))
            })?;
            sizes.push((letter, size.extract::<usize>()?));
        }
        let builder = self.builder.lock(py)?;
        let (_, graph) = self.builder.run(py, builder, move |builder| {
            let graph = builder.graph();
            if sizes.is_empty() {
                Ok(graph.clone())
            } else {
                graph.bind(&sizes)
            }
        })?;
        Ok(graph)
    }

    /// Axes of space of the filters of a convolution, and their sizes.
    fn space_of(&self, py: Python<'_>, filters: &Node) -> PyResult<(usize, [usize; 3])> {
        let sizes = self
            .builder
            .lock(py)?
            .shape_of(filters.node)
            .or_raise()?
            .sizes()
            .unwrap_or_default();
        if !(3..=5).contains(&sizes.len()) {
            return Err(PyValueError::new_err(format!(
                "convolution: the filters have the shape {sizes:?}, needs 3 to 5 sizes"
            )));
        }
        let (space, mut kernel) = (sizes.len() - 2, [1; 3]);
        kernel[3 - space..].copy_from_slice(&sizes[2..]);
        Ok((space, kernel))
    }
}

/// A learning rate: a number, or a schedule by name with its numbers.
#[derive(FromPyObject)]
enum Rate {
    Constant(f32),
    Cosine(String, f32, u64, u64, f32),
    Step(String, f32, f32, u64),
}

impl Rate {
    fn schedule(self) -> PyResult<LearningRate> {
        match self {
            Rate::Constant(rate) => Ok(LearningRate::Constant(rate)),
            Rate::Cosine(name, peak, warm_up, total, floor) if name == "cosine" => {
                Ok(LearningRate::Cosine {
                    peak,
                    warm_up,
                    total,
                    floor,
                })
            }
            Rate::Step(name, initial, factor, every) if name == "step" => {
                Ok(LearningRate::StepDecay {
                    initial,
                    factor,
                    every,
                })
            }
            Rate::Cosine(name, ..) | Rate::Step(name, ..) => Err(PyValueError::new_err(format!(
                "learning_rate is {name:?}, needs a number, (\"cosine\", peak, warm_up, total, floor) or (\"step\", initial, factor, every)"
            ))),
        }
    }
}

#[pymethods]
impl Graph {
    #[new]
    fn new() -> Self {
        Self {
            builder: Exclusive::new(GraphBuilder::default()),
        }
    }

    /// Reads the text form, which has every operation; `str(graph)` writes it. Raises ValueError
    /// naming the line.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let builder = run_long(py, move || Ok(GraphBuilder::from(Network::parse(&text)?)))?;
        Ok(Self {
            builder: Exclusive::new(builder),
        })
    }

    /// Adds an input of floats.
    fn input(&self, py: Python<'_>, name: &str, shape: &Bound<'_, PyAny>) -> PyResult<Node> {
        let shape = shape_of(shape)?;
        self.add(py, |graph| graph.input(name, shape))
    }

    /// Adds an input of row numbers, for `gather` and `cross_entropy`.
    fn indices(&self, py: Python<'_>, name: &str, shape: &Bound<'_, PyAny>) -> PyResult<Node> {
        let shape = shape_of(shape)?;
        self.add(py, |graph| graph.indices(name, shape))
    }

    /// Adds a parameter, which training changes; zero at first.
    fn parameter(&self, py: Python<'_>, name: &str, shape: &Bound<'_, PyAny>) -> PyResult<Node> {
        let shape = shape_of(shape)?;
        self.add(py, |graph| graph.parameter(name, shape))
    }

    /// Adds an array of fixed values.
    fn constant(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<Node> {
        let _call = process::enter(py)?;
        let array = floats(values, "constant")?;
        let shape = constant_shape(array.shape())?;
        let values = array.into_vec()?;
        self.add(py, |graph| graph.constant(&values, shape))
    }

    /// Adds a layer, activation(x @ weight + bias), with parameters `{name}.weight` [k, width] and
    /// `{name}.bias` [1, width].
    #[pyo3(signature = (name, x, width: "int", activation = "none"))]
    fn dense(
        &self,
        py: Python<'_>,
        name: &str,
        x: &Node,
        #[pyo3(from_py_with = whole::width)] width: usize,
        activation: &str,
    ) -> PyResult<Node> {
        let none = (activation == "none").then_some(Activation::None);
        let activation = none
            .or_else(|| activation_named(activation))
            .ok_or_else(|| {
                let known: Vec<&str> = Activation::ALL.into_iter().map(activation_name).collect();
                PyValueError::new_err(format!(
                    "activation is {activation:?}, needs none{}",
                    known.join(", ")
                ))
            })?;
        self.add(py, |graph| graph.dense(name, x.node, width, activation))
    }

    /// Joins nodes along an axis.
    #[pyo3(signature = (nodes, axis: "int"))]
    fn concat(
        &self,
        py: Python<'_>,
        nodes: Sequence<PyRef<'_, Node>>,
        #[pyo3(from_py_with = whole::axis)] axis: usize,
    ) -> PyResult<Node> {
        let Sequence(nodes) = nodes;
        let parts: Vec<_> = nodes.iter().map(|node| node.node).collect();
        self.add(py, |graph| graph.concat(&parts, axis))
    }

    /// Rows of a table [rows, ..], by numbers.
    fn gather(&self, py: Python<'_>, table: &Node, indices: &Node) -> PyResult<Node> {
        self.add(py, |graph| graph.gather(table.node, indices.node))
    }

    /// (x - mean) / sqrt(variance + epsilon) * gain + bias over the last axis.
    #[pyo3(signature = (x, gain, bias, epsilon = 1e-5))]
    fn layer_norm(
        &self,
        py: Python<'_>,
        x: &Node,
        gain: &Node,
        bias: &Node,
        epsilon: f32,
    ) -> PyResult<Node> {
        self.add(py, |graph| {
            graph.layer_norm(x.node, gain.node, bias.node, epsilon)
        })
    }

    /// x / sqrt(mean of squares + epsilon) * gain over the last axis.
    #[pyo3(signature = (x, gain, epsilon = 1e-5))]
    fn rms_norm(&self, py: Python<'_>, x: &Node, gain: &Node, epsilon: f32) -> PyResult<Node> {
        self.add(py, |graph| graph.rms_norm(x.node, gain.node, epsilon))
    }

    /// softmax(q k^T / sqrt(width) + mask) v by heads. `q` is [B, T, heads * width], `k` and `v`
    /// [B, S, kv_heads * width].
    #[pyo3(signature = (q, k, v, *, heads: "int", width: "int", kv_heads: "int | None" = None, mask = None, causal = false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn attention(
        &self,
        py: Python<'_>,
        q: &Node,
        k: &Node,
        v: &Node,
        #[pyo3(from_py_with = whole::heads)] heads: usize,
        #[pyo3(from_py_with = whole::width)] width: usize,
        #[pyo3(from_py_with = whole::kv_heads)] kv_heads: Option<usize>,
        mask: Option<&Node>,
        causal: bool,
    ) -> PyResult<Node> {
        let heads = Heads {
            kv: kv_heads.unwrap_or(heads),
            causal,
            ..Heads::new(heads, width)
        };
        self.add(py, |graph| {
            graph.attention([q.node, k.node, v.node], mask.map(|mask| mask.node), heads)
        })
    }

    /// A convolution over one to three axes of space: `x` [N, C, ..], `w` [K, C / groups, ..],
    /// `bias` [K]. `stride`, `padding` and `dilation` are one size, or one for each axis of space.
    #[pyo3(signature = (x, w, bias = None, *, groups: "int" = 1, stride = Axes::One(1), padding = Axes::One(0), dilation = Axes::One(1)))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn convolution(
        &self,
        py: Python<'_>,
        x: &Node,
        w: &Node,
        bias: Option<&Node>,
        #[pyo3(from_py_with = whole::groups)] groups: usize,
        stride: Axes,
        padding: Axes,
        dilation: Axes,
    ) -> PyResult<Node> {
        let _call = process::enter(py)?;
        let (space, kernel) = self.space_of(py, w)?;
        let (pad, window) = (padding.spread("padding", space, 0)?, Window::new(kernel));
        let window = Window {
            stride: stride.spread("stride", space, 1)?,
            dilation: dilation.spread("dilation", space, 1)?,
            pad_before: pad,
            pad_after: pad,
            ..window
        };
        self.add(py, |graph| {
            graph.convolution(x.node, w.node, bias.map(|bias| bias.node), groups, window)
        })
    }

    /// The maximum ("max") or mean ("mean", of the elements inside) of windows of space of `x` [N,
    /// C, ..].
    #[pyo3(signature = (x, kind, kernel, *, stride = None, padding = Axes::One(0)))]
    fn pool(
        &self,
        py: Python<'_>,
        x: &Node,
        kind: &str,
        kernel: Axes,
        stride: Option<Axes>,
        padding: Axes,
    ) -> PyResult<Node> {
        let kind = match kind {
            "max" => PoolKind::Max,
            "mean" => PoolKind::MeanInside,
            other => {
                return Err(PyValueError::new_err(format!(
                    "kind is {other:?}, needs \"max\" or \"mean\""
                )));
            }
        };
        let _call = process::enter(py)?;
        let rank = self.builder.lock(py)?.shape_of(x.node).or_raise()?.rank();
        if !(3..=5).contains(&rank) {
            return Err(PyValueError::new_err(format!(
                "pool: x has {rank} dimensions, needs 3 to 5"
            )));
        }
        let (space, pad) = (rank - 2, padding.spread("padding", rank - 2, 0)?);
        let stride = stride
            .as_ref()
            .unwrap_or(&kernel)
            .spread("stride", space, 1)?;
        let window = Window {
            stride,
            pad_before: pad,
            pad_after: pad,
            ..Window::new(kernel.spread("kernel", space, 1)?)
        };
        self.add(py, |graph| graph.pool(x.node, kind, window))
    }

    /// The mean of squared differences, a loss.
    fn mse(&self, py: Python<'_>, prediction: &Node, target: &Node) -> PyResult<Node> {
        self.add(py, |graph| graph.mse(prediction.node, target.node))
    }

    /// The mean of -log softmax(logits) at the classes of `indices`, a loss.
    fn cross_entropy(&self, py: Python<'_>, logits: &Node, indices: &Node) -> PyResult<Node> {
        self.add(py, |graph| graph.cross_entropy(logits.node, indices.node))
    }

    /// Makes a node an output.
    fn output(&self, py: Python<'_>, name: &str, node: &Node) -> PyResult<()> {
        let _call = process::enter(py)?;
        self.builder.lock(py)?.output(name, node.node).or_raise()
    }

    /// Compiles the graph for a device; keywords give letters their sizes, such as `B=32`.
    #[pyo3(signature = (*, device = DeviceArgument::Id("cpu".to_owned()), **dims))]
    fn compile(
        &self,
        py: Python<'_>,
        device: DeviceArgument<'_>,
        dims: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<CompiledGraph> {
        let _call = process::enter(py)?;
        let (graph, device) = (self.bound(py, dims)?, device.open(py)?);
        if graph.outputs().next().is_none() {
            return Err(PyValueError::new_err("graph: no outputs"));
        }
        CompiledGraph::new(py, graph, device)
    }

    /// Compiles training of all parameters by AdamW for a loss of one element.
    ///
    /// `learning_rate` is a number, or ("cosine", peak, warm_up, total, floor), or ("step",
    /// initial, factor, every). `clip_norm` is the maximum norm of all gradients together. Keywords
    /// give letters their sizes.
    #[pyo3(signature = (loss, *, learning_rate = Rate::Constant(1e-3), beta1 = 0.9, beta2 = 0.999, weight_decay = 0.01, clip_norm = None, device = DeviceArgument::Id("cpu".to_owned()), **dims))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn trainer(
        &self,
        py: Python<'_>,
        loss: &Node,
        learning_rate: Rate,
        beta1: f32,
        beta2: f32,
        weight_decay: f32,
        clip_norm: Option<f32>,
        device: DeviceArgument<'_>,
        dims: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Trainer> {
        let _call = process::enter(py)?;
        let optimizer = AdamW {
            learning_rate: learning_rate.schedule()?,
            beta1,
            beta2,
            weight_decay,
            clip_norm,
        };
        let (graph, device, loss) = (self.bound(py, dims)?, device.open(py)?, loss.node);
        run_long(py, move || {
            let inner = Training::new(&graph, loss, optimizer, device.as_ref())?;
            Trainer::new(graph, inner)
        })
    }

    /// Name and shape of each input.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<NamedShapes<'py>> {
        let _call = process::enter(py)?;
        let shapes: Vec<(String, Shape)> = self
            .builder
            .lock(py)?
            .graph()
            .inputs()
            .map(|(name, _, shape)| (name.to_owned(), shape))
            .collect();
        named_shapes(py, shapes)
    }

    /// Name and shape of each parameter.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<NamedShapes<'py>> {
        let _call = process::enter(py)?;
        let shapes: Vec<(String, Shape)> = self
            .builder
            .lock(py)?
            .graph()
            .parameters()
            .map(|(name, _, shape)| (name.to_owned(), shape))
            .collect();
        named_shapes(py, shapes)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let builder = self.builder.lock(py)?;
        let (_, text) = self
            .builder
            .run(py, builder, |builder| Ok(builder.graph().describe()))?;
        Ok(text)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let builder = self.builder.lock(py)?;
        Ok(format!(
            "<tectum graph: {} operations, {} parameters>",
            builder.len(),
            builder.graph().parameters().count()
        ))
    }
}
