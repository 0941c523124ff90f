//! Values of a file, and the graph that operators add them to.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use rten_onnx::onnx::{GraphProto, TensorProto};
use tectum::{DType, Error, Result, Window, host_memory};
use tectum_graph::{Dim, GraphBuilder, IntegerOp, MAX_RANK, Node, Shape, Tensor};

use crate::array::Array;
use crate::attributes::Attributes;
use crate::element::ElementType;
use crate::model::Model;

/// A tensor of known shape: known itself, or computed by a graph.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub element: ElementType,
    pub dims: Vec<usize>,
    pub source: Source,
    /// The integers that it was made of, for products of integers.
    pub codes: Option<Rc<Codes>>,
    /// The convolution that it is the result of, if one node alone reads it.
    pub convolution: Option<Rc<KnownConvolution>>,
}

/// A convolution with filters and bias that are known when the model is loaded: factors and offsets
/// that follow become part of them.
#[derive(Debug, Clone)]
pub(crate) struct KnownConvolution {
    pub x: Value,
    pub filters: Array,
    pub bias: Option<Array>,
    pub groups: usize,
    pub window: Window,
}

/// Integers that represent floats: `scale · (integer − zero)`.
#[derive(Debug)]
pub(crate) struct Codes {
    pub integers: Value,
    pub scale: Value,
    pub zero: Option<Value>,
    /// The axis along which scale and zero point differ, if they are lists.
    pub axis: i64,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Known when the model is loaded.
    Known(Array),
    /// A node of the graph.
    Node(Node),
    /// Several tensors, of which operators read one.
    Sequence(Rc<Vec<Value>>),
    /// No tensor of numbers, so that nothing can read it, with the reason.
    Refused(&'static str),
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Self {
            element: array.element(),
            dims: array.dims().to_vec(),
            source: Source::Known(array),
            codes: None,
            convolution: None,
        }
    }
}

impl Value {
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// The numbers, if they are known.
    pub fn array(&self) -> Option<&Array> {
        match &self.source {
            Source::Known(array) => Some(array),
            Source::Node(_) | Source::Sequence(_) | Source::Refused(_) => None,
        }
    }

    /// An axis counted from either end.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        normal_axis(axis, self.rank())
    }
}

/// An axis of a tensor of `rank` dimensions, counted from either end.
pub(crate) fn normal_axis(axis: i64, rank: usize) -> Result<usize> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_start)
        .ok()
        .filter(|axis| *axis < rank)
        .ok_or_else(|| Error::data(format!("axis {axis} of {rank} dimensions")))
}

/// A node of the file that is being added.
pub(crate) struct Call<'a> {
    pub opset: i64,
    pub inputs: Vec<Option<Value>>,
    pub attributes: Attributes<'a>,
    /// Which outputs have a name, so that something may read them.
    pub outputs: Vec<bool>,
}

impl Call<'_> {
    /// An input that the operator needs.
    pub fn input(&self, index: usize) -> Result<&Value> {
        self.optional(index)
            .ok_or_else(|| Error::data(format!("input {index} is missing")))
    }

    /// An input that may be left out.
    pub fn optional(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index).and_then(Option::as_ref)
    }

    /// An input that must be known when the model is loaded.
    pub fn known(&self, index: usize, what: &str) -> Result<&Array> {
        let value = self.input(index)?;
        value
            .array()
            .ok_or_else(|| Error::unsupported(format!("input {index}, {what}, is computed while the network runs; it must be known when it is loaded")))
    }

    /// An optional input that must be known.
    pub fn optional_known(&self, index: usize, what: &str) -> Result<Option<&Array>> {
        if self.optional(index).is_some() {
            self.known(index, what).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Integers that are an input, or an attribute in files of earlier opsets.
    pub fn ints(&self, index: usize, attribute: &'static str) -> Result<Option<Vec<i64>>> {
        match self.attributes.ints(attribute)? {
            Some(ints) => Ok(Some(ints)),
            None => Ok(self.optional_known(index, attribute)?.map(Array::to_i64)),
        }
    }

    /// Whether an output has a name.
    pub fn wants(&self, output: usize) -> bool {
        self.outputs.get(output).copied().unwrap_or(false)
    }
}

/// Adds operations to a graph, for operators.
pub(crate) struct Emit<'m> {
    pub model: &'m Model,
    pub builder: GraphBuilder,
    pub kind: EmitKind,
    /// Nodes of known tensors, by the address of their numbers and their shape; the tensor is kept
    /// so that the address stays its own.
    nodes: HashMap<(usize, Vec<usize>), (Array, Node)>,
    /// The names of initializers, by the address of their numbers.
    pub names: HashMap<usize, String>,
    /// Tensors that have been read, by their address in the file: a loop reads its own once.
    tensors: HashMap<usize, Array>,
    /// Elements that may still be made by numbers in the file.
    pub budget: Rc<Cell<usize>>,
    pub draws: Draws,
}

/// Where random numbers come from.
#[derive(Debug, Default)]
pub(crate) struct Draws {
    /// The input with the key of a run, and its name: `[seed low, seed high, 0, run]`. None if
    /// nothing is drawn.
    pub input: Option<(Node, String)>,
    /// Whether a node without a seed of its own draws.
    pub is_unseeded: bool,
    /// The place in the file of the node that is being added.
    place: u32,
    /// How often the node at this place has drawn; loops repeat theirs.
    count: u32,
}

impl Draws {
    /// What follows is drawn by the node at this place in the file.
    pub fn begin(&mut self, place: usize) {
        (self.place, self.count) = (place as u32, 0);
    }

    /// The stream of the next draws, different for each place and repetition: multiples of the
    /// golden ratio of 2³² keep places far from each other.
    fn stream(&mut self) -> i32 {
        self.count += 1;
        let stream = self
            .place
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add(self.count);
        stream.cast_signed()
    }
}

/// Elements that a file may make by numbers alone, such as sizes, while it is loaded.
pub(crate) const MAX_MADE: usize = 1 << 28;

/// How often the elements of a tensor in the file may be computed with while it is loaded.
const MAX_REUSE: usize = 64;

/// What an element costs that is computed while the file is loaded, compared with one that is
/// filled or listed.
pub(crate) const FOLDING_COST: usize = 4;

/// Tensors up to this length are always computed when they are known: they are shapes.
pub(crate) const ALWAYS_FOLDED: usize = 1 << 12;

/// Products and sums of one known matrix product; longer ones run on the device.
pub(crate) const MAX_FOLDED_TERMS: f64 = (1u64 << 30) as f64;

/// The number of elements of a shape that the file asks for by numbers.
///
/// # Errors
/// `Unsupported` if they are too many; `OutOfMemory` if they do not fit into memory.
pub(crate) fn made(dims: &[usize]) -> Result<usize> {
    let len = dims
        .iter()
        .try_fold(1usize, |product, dim| product.checked_mul(*dim));
    let len = len.filter(|len| *len <= MAX_MADE).ok_or_else(|| {
        Error::unsupported(format!(
            "{dims:?} are too many elements to make; at most {MAX_MADE} are possible"
        ))
    })?;
    host_memory::check(
        format_args!("{dims:?} elements that the file asks for"),
        host_memory::array_bytes::<f64>(len),
    )?;
    Ok(len)
}

pub(crate) enum EmitKind {
    /// To run: known floats of some size become parameters.
    Device { weights: Vec<(String, Array)> },
    /// To fold: known tensors are fed in float64.
    Fold { feeds: Vec<(Node, Tensor)> },
}

impl<'m> Emit<'m> {
    pub fn new(model: &'m Model, kind: EmitKind, budget: Rc<Cell<usize>>) -> Self {
        Self {
            model,
            builder: GraphBuilder::new(),
            kind,
            nodes: HashMap::new(),
            names: HashMap::new(),
            tensors: HashMap::new(),
            budget,
            draws: Draws::default(),
        }
    }

    /// Whether values are computed now, in float64.
    pub fn is_folding(&self) -> bool {
        matches!(self.kind, EmitKind::Fold { .. })
    }

    /// Counts elements that are made by numbers in the file.
    ///
    /// # Errors
    /// `Unsupported` if all together are too many.
    pub fn spend(&self, elements: usize) -> Result<()> {
        let left = self.budget.get().checked_sub(elements);
        self.budget
            .set(left.ok_or_else(|| Error::unsupported(format!("{elements} more elements are to be made while it is loaded; all together are too many")))?);
        Ok(())
    }

    /// Counts a list of places, `dims` multiplied, before it is made.
    pub fn list(&self, dims: &[usize]) -> Result<()> {
        self.spend(made(dims)?)
    }

    /// A tensor of this shape, which numbers in the file ask for, filled with one number.
    pub fn filled(&self, element: ElementType, dims: &[usize], number: f64) -> Result<Array> {
        let len = made(dims)?;
        self.spend(len)?;
        Ok(Array::filled(element, dims, number, len))
    }

    /// A tensor of the file.
    pub fn tensor(&mut self, proto: &TensorProto) -> Result<Array> {
        let address = std::ptr::from_ref(proto) as usize;
        if let Some(array) = self.tensors.get(&address) {
            return Ok(array.clone());
        }
        let model = self.model;
        let array = Array::read(proto, &mut |tensor| model.external(tensor))?;
        // Tensors that are read to fold are read once for each repetition.
        if matches!(self.kind, EmitKind::Device { .. }) {
            self.budget
                .set(self.budget.get().saturating_add(MAX_REUSE * array.len()));
        }
        self.tensors.insert(address, array.clone());
        Ok(array)
    }

    /// The node of a value.
    pub fn node(&mut self, value: &Value) -> Result<Node> {
        let array = match &value.source {
            Source::Node(node) => return Ok(*node),
            Source::Known(array) => array,
            Source::Sequence(_) => {
                return Err(Error::unsupported("a sequence where a tensor is needed"));
            }
            Source::Refused(reason) => return Err(Error::unsupported(*reason)),
        };
        let key = (array.address(), array.dims().to_vec());
        if let Some((_, node)) = self.nodes.get(&key) {
            return Ok(*node);
        }
        let node = self.add_known(array)?;
        self.nodes.insert(key, (array.clone(), node));
        Ok(node)
    }

    /// The node of an input.
    pub fn input(&mut self, call: &Call<'_>, index: usize) -> Result<Node> {
        self.node(call.input(index)?)
    }

    fn add_known(&mut self, array: &Array) -> Result<Node> {
        let shape = shape(array.dims())?;
        match &mut self.kind {
            EmitKind::Fold { feeds } => {
                let name = format!("value{}", feeds.len());
                let node = match array.element().dtype() {
                    DType::F32 => self.builder.input(&name, shape)?,
                    _ => self.builder.integers(&name, shape)?,
                };
                feeds.push((node, Tensor::new(shape, array.to_f64())?));
                Ok(node)
            }
            EmitKind::Device { .. } if array.element().dtype() == DType::I32 => {
                let words = array.to_i32().ok_or_else(|| {
                    Error::unsupported("an integer beyond 32 bits would reach the device")
                })?;
                self.builder.integer_constant(&words, shape)
            }
            EmitKind::Device { .. } if array.len() == 1 => {
                self.builder.constant(&array.to_f32(), shape)
            }
            EmitKind::Device { weights } => {
                let name = self
                    .names
                    .get(&array.address())
                    .cloned()
                    .unwrap_or_else(|| format!("constant{}", weights.len()));
                let is_taken = weights.iter().any(|(other, _)| *other == name);
                let name = if is_taken {
                    format!("{name}.{}", weights.len())
                } else {
                    name
                };
                let node = self.builder.parameter(&name, shape)?;
                weights.push((name, array.clone()));
                Ok(node)
            }
        }
    }

    /// A number as a node that repeats to any shape.
    pub fn number(&mut self, value: f32) -> Result<Node> {
        self.builder.constant(&[value], [1, 1])
    }

    /// An integer as a node that repeats to any shape.
    pub fn integer(&mut self, value: i32) -> Result<Node> {
        self.builder.integer_constant(&[value], [1, 1])
    }

    /// The sizes of a node.
    pub fn dims(&self, node: Node) -> Result<Vec<usize>> {
        let shape = self.builder.shape_of(node)?;
        shape
            .sizes()
            .ok_or_else(|| Error::invalid(format!("{shape:?} has letters")))
    }

    /// The key of draws by the seed and number of a run.
    pub fn draws(&mut self) -> Result<Node> {
        self.draws.is_unseeded = true;
        let (run, stream) = (self.run_key()?, self.draws.stream());
        let stream = self.builder.integer_constant(&[0, 0, stream, 0], [4])?;
        self.builder.integer(IntegerOp::Add, run, Some(stream))
    }

    /// The key of draws of a node that has a seed of its own, by the number of a run.
    pub fn draws_of_seed(&mut self, seed: f32) -> Result<Node> {
        let (run, stream) = (self.run_key()?, self.draws.stream());
        let number = self.builder.integer_constant(&[0, 0, 0, 1], [4])?;
        let number = self.builder.integer(IntegerOp::Mul, run, Some(number))?;
        // The high word is that of no seed of a run below 2^63.
        let own = [seed.to_bits().cast_signed(), -1, stream, 0];
        let own = self.builder.integer_constant(&own, [4])?;
        self.builder.integer(IntegerOp::Add, number, Some(own))
    }

    /// The input with the seed and the number of a run, which is no input of the file.
    fn run_key(&mut self) -> Result<Node> {
        if let Some((node, _)) = &self.draws.input {
            return Ok(*node);
        }
        let mut name = "draws".to_owned();
        while self.model.inputs().iter().any(|port| port.name == name) {
            name.push('_');
        }
        let node = self.builder.integers(&name, [4])?;
        self.draws.input = Some((node, name));
        Ok(node)
    }

    /// A node as a value of its own shape.
    pub fn value(&self, node: Node, element: ElementType) -> Result<Value> {
        Ok(Value {
            element,
            dims: self.dims(node)?,
            source: Source::Node(node),
            codes: None,
            convolution: None,
        })
    }

    /// A node as a value of a shape with as many elements.
    pub fn shaped(&mut self, node: Node, element: ElementType, dims: &[usize]) -> Result<Value> {
        let node = self.builder.reshape(node, shape(dims)?)?;
        self.value(node, element)
    }
}

/// What operators with graphs within them ask of the import: values by operations, and the outputs
/// of such a graph.
pub(crate) trait Unroll<'m> {
    /// Where operations are added.
    fn emit(&mut self) -> &mut Emit<'m>;

    /// Counts a node of the file, or a repetition of a loop.
    ///
    /// # Errors
    /// `Unsupported` if there are too many.
    fn count_node(&mut self) -> Result<()>;

    /// The outputs of a graph within a node, for these inputs; none if a fault in it has been
    /// recorded.
    ///
    /// # Errors
    /// `Data` for another number of inputs, or an output that no node computes.
    fn subgraph(&mut self, graph: &'m GraphProto, inputs: Vec<Value>)
    -> Result<Option<Vec<Value>>>;
}

/// The shape of these sizes.
pub(crate) fn shape(dims: &[usize]) -> Result<Shape> {
    if dims.len() > MAX_RANK {
        return Err(Error::unsupported(format!(
            "a tensor of {} dimensions; at most {MAX_RANK} are possible",
            dims.len()
        )));
    }
    Ok(Shape::of(
        &dims.iter().map(|size| Dim::Size(*size)).collect::<Vec<_>>(),
    ))
}

/// The shape that tensors repeat to, aligned at the last axis.
pub(crate) fn joint<'a>(all: impl IntoIterator<Item = &'a [usize]>) -> Result<Vec<usize>> {
    let mut joint: Vec<usize> = Vec::new();
    for dims in all {
        if dims.len() > joint.len() {
            joint.splice(0..0, std::iter::repeat_n(1, dims.len() - joint.len()));
        }
        let first = joint.len() - dims.len();
        for (size, other) in joint[first..].iter_mut().zip(dims) {
            match (*size, *other) {
                (1, other) => *size = other,
                (size, other) if size != other && other != 1 => {
                    return Err(Error::data(format!(
                        "{dims:?} does not repeat to {joint:?}"
                    )));
                }
                _ => (),
            }
        }
    }
    let len = joint
        .iter()
        .try_fold(1usize, |product, dim| product.checked_mul((*dim).max(1)));
    if len.is_some_and(|len| len <= u32::MAX as usize) {
        Ok(joint)
    } else {
        Err(Error::unsupported(format!("a value of {joint:?}")))
    }
}
