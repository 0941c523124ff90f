//! From the nodes of a file to a graph: values, folding of what is known, and the collection of faults.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use rten_onnx::onnx::{GraphProto, NodeProto, TensorProto};
use tectum::{DType, Error, ErrorKind, Result};
use tectum_graph::{Dim, GraphBuilder, MAX_RANK, Node, Shape, Tensor};

use crate::array::Array;
use crate::attributes::Attributes;
use crate::element::ElementType;
use crate::model::{Model, OPSETS, Port, PortDim, normal, operator_name};
use crate::network::Assumption;
use crate::operators;

/// A tensor of known shape: known itself, or computed by a graph.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub element: ElementType,
    pub dims: Vec<usize>,
    pub source: Source,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Known when the model is loaded.
    Known(Array),
    /// A node of the graph.
    Node(Node),
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Self { element: array.element(), dims: array.dims().to_vec(), source: Source::Known(array) }
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
            Source::Node(_) => None,
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
    usize::try_from(from_start).ok().filter(|axis| *axis < rank).ok_or_else(|| Error::data(format!("axis {axis} of {rank} dimensions")))
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
        self.optional(index).ok_or_else(|| Error::data(format!("input {index} is missing")))
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
        if self.optional(index).is_some() { self.known(index, what).map(Some) } else { Ok(None) }
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
    kind: EmitKind,
    /// Nodes of known tensors, by the address of their numbers and their shape; the tensor is kept so that the address stays its own.
    nodes: HashMap<(usize, Vec<usize>), (Array, Node)>,
    /// The names of initializers, by the address of their numbers.
    names: HashMap<usize, String>,
    /// Tensors that have been read, by their address in the file: a loop reads its own once.
    tensors: HashMap<usize, Array>,
    /// Elements that may still be made by numbers in the file.
    budget: Rc<Cell<usize>>,
}

/// Elements that a file may make by numbers alone, such as sizes, while it is loaded.
const MAX_MADE: usize = 1 << 28;

/// How often the elements of a tensor in the file may be computed with while it is loaded.
const MAX_REUSE: usize = 64;

/// What an element costs that is computed while the file is loaded, compared with one that is filled or listed.
const FOLDING_COST: usize = 4;

/// Tensors up to this length are always computed when they are known: they are shapes.
const ALWAYS_FOLDED: usize = 1 << 12;

/// Products and sums of one known matrix product; longer ones run on the device.
const MAX_FOLDED_TERMS: f64 = (1u64 << 30) as f64;

/// The number of elements of a shape that the file asks for by numbers.
///
/// # Errors
/// `Unsupported` if they are too many.
pub(crate) fn made(dims: &[usize]) -> Result<usize> {
    let len = dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim));
    len.filter(|len| *len <= MAX_MADE).ok_or_else(|| Error::unsupported(format!("{dims:?} are too many elements to make; at most {MAX_MADE} are possible")))
}

enum EmitKind {
    /// To run: known floats of some size become parameters.
    Device { weights: Vec<(String, Array)> },
    /// To fold: known tensors are fed in float64.
    Fold { feeds: Vec<(Node, Tensor)> },
}

impl<'m> Emit<'m> {
    fn new(model: &'m Model, kind: EmitKind, budget: Rc<Cell<usize>>) -> Self {
        Self { model, builder: GraphBuilder::new(), kind, nodes: HashMap::new(), names: HashMap::new(), tensors: HashMap::new(), budget }
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
            self.budget.set(self.budget.get().saturating_add(MAX_REUSE * array.len()));
        }
        self.tensors.insert(address, array.clone());
        Ok(array)
    }

    /// The node of a value.
    pub fn node(&mut self, value: &Value) -> Result<Node> {
        let array = match &value.source {
            Source::Node(node) => return Ok(*node),
            Source::Known(array) => array,
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
                let words = array.to_i32().ok_or_else(|| Error::unsupported("an integer beyond 32 bits would reach the device"))?;
                self.builder.integer_constant(&words, shape)
            }
            EmitKind::Device { .. } if array.len() == 1 => self.builder.constant(&array.to_f32(), shape),
            EmitKind::Device { weights } => {
                let name = self.names.get(&array.address()).cloned().unwrap_or_else(|| format!("constant{}", weights.len()));
                let is_taken = weights.iter().any(|(other, _)| *other == name);
                let name = if is_taken { format!("{name}.{}", weights.len()) } else { name };
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
        shape.sizes().ok_or_else(|| Error::invalid(format!("{shape:?} has letters")))
    }

    /// A node as a value of its own shape.
    pub fn value(&self, node: Node, element: ElementType) -> Result<Value> {
        Ok(Value { element, dims: self.dims(node)?, source: Source::Node(node) })
    }

    /// A node as a value of a shape with as many elements.
    pub fn shaped(&mut self, node: Node, element: ElementType, dims: &[usize]) -> Result<Value> {
        let node = self.builder.reshape(node, shape(dims)?)?;
        self.value(node, element)
    }
}

/// The shape of these sizes.
pub(crate) fn shape(dims: &[usize]) -> Result<Shape> {
    if dims.len() > MAX_RANK {
        return Err(Error::unsupported(format!("a tensor of {} dimensions; at most {MAX_RANK} are possible", dims.len())));
    }
    Ok(Shape::of(&dims.iter().map(|size| Dim::Size(*size)).collect::<Vec<_>>()))
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
                (size, other) if size != other && other != 1 => return Err(Error::data(format!("{dims:?} does not repeat to {joint:?}"))),
                _ => (),
            }
        }
    }
    let len = joint.iter().try_fold(1usize, |product, dim| product.checked_mul((*dim).max(1)));
    if len.is_some_and(|len| len <= u32::MAX as usize) { Ok(joint) } else { Err(Error::unsupported(format!("a value of {joint:?}"))) }
}

/// The values of a graph by name; those of the graph around it are visible. `None` stands for a value that an operator with a fault would have given.
pub(crate) type Scope = HashMap<String, Option<Value>>;

/// A file that becomes a graph.
pub(crate) struct Import<'m> {
    pub emit: Emit<'m>,
    pub faults: Vec<Error>,
    pub scopes: Vec<Scope>,
    /// How deep calls are nested, and how many nodes all loops together have added.
    added: usize,
}

/// Nodes that a file may become when its loops are unrolled.
const MAX_NODES: usize = 200_000;

/// Operations of the graph that a file may become.
const MAX_OPERATIONS: usize = 2_000_000;

/// What an import gives.
pub(crate) struct Imported {
    pub builder: GraphBuilder,
    pub weights: Vec<(String, Array)>,
    pub inputs: Vec<(Port, Value)>,
    pub outputs: Vec<(String, Value)>,
    pub assumptions: Vec<Assumption>,
}

impl<'m> Import<'m> {
    /// Reads the whole graph of a model. `bindings` gives sizes to names of dimensions, `constants` values to inputs that shapes depend on.
    pub fn run(model: &'m Model, bindings: &[(&str, usize)], constants: &[(&str, Array)]) -> Result<Imported> {
        let emit = Emit::new(model, EmitKind::Device { weights: Vec::new() }, Rc::new(Cell::new(MAX_MADE)));
        let mut import = Self { emit, faults: Vec::new(), scopes: vec![Scope::new()], added: 0 };
        let opset = model.opset();
        if !OPSETS.contains(&opset) {
            import.faults.push(Error::unsupported(format!("opset {opset}: {} to {} are read", OPSETS.start(), OPSETS.end())));
        }
        let mut assumptions = Vec::new();
        check_names(model, bindings, constants)?;
        let mut inputs = Vec::new();
        for port in model.inputs() {
            match import.add_input(port, bindings, constants, &mut assumptions) {
                Ok(Some(value)) => inputs.push((port.clone(), value)),
                Ok(None) => (),
                Err(error) => {
                    import.faults.push(error.at(format_args!("input {:?}", port.name)));
                    import.define(&port.name, None);
                }
            }
        }
        import.add_graph(model.graph());
        let mut outputs = Vec::new();
        for port in model.outputs() {
            match import.look_up(&port.name) {
                Some(Some(value)) => outputs.push((port.name.clone(), value)),
                Some(None) => (),
                None => import.faults.push(Error::data(format!("output {:?}: no node computes it", port.name))),
            }
        }
        if !import.faults.is_empty() {
            return Err(joined(&import.faults));
        }
        let EmitKind::Device { weights } = import.emit.kind else { unreachable!("invariant: an import emits for a device") };
        Ok(Imported { builder: import.emit.builder, weights, inputs, outputs, assumptions })
    }

    fn add_input(&mut self, port: &Port, bindings: &[(&str, usize)], constants: &[(&str, Array)], assumptions: &mut Vec<Assumption>) -> Result<Option<Value>> {
        if let Some((_, array)) = constants.iter().find(|(name, _)| *name == port.name) {
            let element = port.element.unwrap_or(array.element());
            self.define(&port.name, Some(array.cast(element).into()));
            return Ok(None);
        }
        let element = port.element.ok_or_else(|| Error::unsupported("it is no tensor, or its elements have no meaning here"))?;
        let stated = port.dims.as_ref().ok_or_else(|| Error::unsupported("its shape is not stated"))?;
        let mut dims = Vec::new();
        for (axis, dim) in stated.iter().enumerate() {
            let bound = match dim {
                PortDim::Size(size) => *size,
                PortDim::Named(name) => match bindings.iter().find(|(bound, _)| bound == name) {
                    Some((_, size)) => *size,
                    None => {
                        let assumption = Assumption::Dimension { name: name.clone(), size: 1 };
                        if !assumptions.contains(&assumption) {
                            assumptions.push(assumption);
                        }
                        1
                    }
                },
                PortDim::Unknown => {
                    assumptions.push(Assumption::UnnamedDimension { input: port.name.clone(), axis, size: 1 });
                    1
                }
            };
            dims.push(bound);
        }
        let shape = shape(&dims)?;
        let node = match element.dtype() {
            DType::F32 => self.emit.builder.input(&port.name, shape)?,
            _ => self.emit.builder.integers(&port.name, shape)?,
        };
        let value = self.emit.value(node, element)?;
        self.define(&port.name, Some(value.clone()));
        Ok(Some(value))
    }

    /// Adds the nodes of a graph to the innermost scope.
    pub fn add_graph(&mut self, graph: &'m GraphProto) {
        for tensor in &graph.initializer {
            let name = tensor.name.clone().unwrap_or_default();
            let value = match self.emit.tensor(tensor) {
                Ok(array) => {
                    self.emit.names.insert(array.address(), name.clone());
                    Some(array.into())
                }
                Err(error) => {
                    self.faults.push(error);
                    None
                }
            };
            self.define(&name, value);
        }
        for (index, node) in graph.node.iter().enumerate() {
            if let Err(error) = self.count_node() {
                return self.faults.push(error);
            }
            self.add_node(index, node);
        }
    }

    /// Counts a node of the file, or a repetition of a loop.
    pub fn count_node(&mut self) -> Result<()> {
        self.added += 1;
        if self.added > MAX_NODES || self.emit.builder.len() > MAX_OPERATIONS {
            return Err(Error::unsupported(format!("unrolled, it has more than {MAX_NODES} nodes or {MAX_OPERATIONS} operations")));
        }
        Ok(())
    }

    /// The outputs of a graph within a node, for these inputs; none if a fault in it has been recorded.
    pub fn subgraph(&mut self, graph: &'m GraphProto, inputs: Vec<Value>) -> Result<Option<Vec<Value>>> {
        if inputs.len() != graph.input.len() {
            return Err(Error::data(format!("its graph has {} inputs; {} are given", graph.input.len(), inputs.len())));
        }
        let faults = self.faults.len();
        self.scopes.push(Scope::new());
        for (port, value) in graph.input.iter().zip(inputs) {
            self.define(port.name.as_deref().unwrap_or_default(), Some(value));
        }
        self.add_graph(graph);
        let found: Vec<_> = graph.output.iter().map(|port| port.name.as_deref().unwrap_or_default()).map(|name| (name, self.look_up(name))).collect();
        let missing = found.iter().find(|(_, value)| value.is_none()).map(|(name, _)| format!("output {name:?} of its graph is computed by no node"));
        self.scopes.pop();
        match missing {
            _ if self.faults.len() > faults => Ok(None),
            Some(missing) => Err(Error::data(missing)),
            None => Ok(found.into_iter().map(|(_, value)| value.flatten()).collect()),
        }
    }

    fn add_node(&mut self, index: usize, proto: &'m NodeProto) {
        let operator = proto.op_type.as_deref().unwrap_or_default();
        let domain = normal(proto.domain.as_deref().unwrap_or_default());
        let opset = self.emit.model.opset_of(domain);
        let place = Place { index, proto, opset };
        let outcome = match operators::find(domain, operator) {
            None => Err(Error::unsupported("the operator is not supported")),
            Some(add) => match self.inputs_of(proto) {
                Err(error) => Err(error),
                // An earlier fault is the cause.
                Ok(None) => return self.poison(proto),
                Ok(Some(inputs)) => {
                    let call = Call { opset, inputs, attributes: Attributes::of(proto), outputs: proto.output.iter().map(|name| !name.is_empty()).collect() };
                    match self.call(add, &call) {
                        Ok(None) => return self.poison(proto),
                        Ok(Some(values)) => Ok(values),
                        Err(error) => Err(error),
                    }
                }
            },
        };
        match outcome {
            Ok(values) => {
                for (index, name) in proto.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                    match values.get(index) {
                        Some(value) => self.define(name, Some(value.clone())),
                        None => {
                            self.faults.push(Error::unsupported(format!("{place}: output {index} is not supported")));
                            self.define(name, None);
                        }
                    }
                }
            }
            Err(error) => {
                self.faults.push(error.at(&place));
                self.poison(proto);
            }
        }
    }

    fn poison(&mut self, proto: &NodeProto) {
        for name in proto.output.iter().filter(|name| !name.is_empty()) {
            self.define(name, None);
        }
    }

    /// The inputs of a node; none if one of them has a fault.
    fn inputs_of(&self, proto: &NodeProto) -> Result<Option<Vec<Option<Value>>>> {
        let mut inputs = Vec::new();
        for name in &proto.input {
            if name.is_empty() {
                inputs.push(None);
                continue;
            }
            match self.look_up(name) {
                Some(Some(value)) => inputs.push(Some(value)),
                Some(None) => return Ok(None),
                None => return Err(Error::data(format!("input {name:?} is computed by no earlier node"))),
            }
        }
        Ok(Some(inputs))
    }

    /// Adds a node; none if a fault in a graph within it has been recorded.
    fn call(&mut self, add: operators::Add, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
        if call.opset < 6 {
            // Buffers that an operator may overwrite: a matter of memory.
            call.attributes.ints("consumed_inputs")?;
        }
        let values = match add {
            operators::Add::Control(add) => match add(self, call)? {
                Some(values) => values,
                None => return Ok(None),
            },
            operators::Add::Plain(add) => {
                let is_known = call.inputs.iter().flatten().all(|value| value.array().is_some());
                match is_known && !call.inputs.is_empty() {
                    true => match self.fold(add, call)? {
                        Some(values) => values,
                        None => add(&mut self.emit, call)?,
                    },
                    false => add(&mut self.emit, call)?,
                }
            }
        };
        for value in &values {
            let product = value.dims.iter().try_fold(1usize, |product, dim| product.checked_mul((*dim).max(1)));
            if product.is_none_or(|product| product > u32::MAX as usize) {
                return Err(Error::unsupported(format!("a value of {:?}", value.dims)));
            }
        }
        let unread = call.attributes.unread();
        if unread.is_empty() { Ok(Some(values)) } else { Err(Error::unsupported(format!("attribute {} is not supported", unread.join(", ")))) }
    }

    /// Computes an operator of known tensors now; none if that would take too much memory or time.
    fn fold(&self, add: operators::AddPlain, call: &Call<'_>) -> Result<Option<Vec<Value>>> {
        let mut emit = Emit::new(self.emit.model, EmitKind::Fold { feeds: Vec::new() }, Rc::clone(&self.emit.budget));
        let mut values = add(&mut emit, call)?;
        let EmitKind::Fold { feeds } = emit.kind else { unreachable!("invariant: it was made to fold") };
        let mut builder = emit.builder;
        let mut computed = Vec::new();
        for (index, value) in values.iter().enumerate() {
            if let Source::Node(node) = value.source {
                builder.output(&index.to_string(), node)?;
                computed.push(index);
            }
        }
        if computed.is_empty() {
            return Ok(Some(values));
        }
        let (elements, terms) = (builder.elements(), builder.product_terms());
        if elements > ALWAYS_FOLDED {
            match self.emit.budget.get().checked_sub(elements.saturating_mul(FOLDING_COST)).filter(|_| terms <= MAX_FOLDED_TERMS) {
                Some(left) => self.emit.budget.set(left),
                None => return Ok(None),
            }
        }
        let tensors = builder.finish()?.evaluate(&feeds)?;
        for (index, tensor) in computed.into_iter().zip(tensors) {
            let Value { element, dims, .. } = &values[index];
            values[index] = Array::wide(*element, dims, tensor.data().to_vec()).into();
        }
        Ok(Some(values))
    }

    fn define(&mut self, name: &str, value: Option<Value>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    pub fn look_up(&self, name: &str) -> Option<Option<Value>> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }
}

/// All faults as one error: of the file's world if one is, of what is not supported if one is, and otherwise of the file.
fn joined(faults: &[Error]) -> Error {
    let is_any = |kind: &ErrorKind| faults.iter().any(|fault| fault.kind() == *kind);
    let kind = [ErrorKind::Io, ErrorKind::Unsupported].into_iter().find(is_any).unwrap_or(ErrorKind::Data);
    let list = faults.iter().map(Error::to_string).collect::<Vec<_>>().join("\n  ");
    Error::new(kind, if faults.len() == 1 { list } else { format!("{} faults:\n  {list}", faults.len()) })
}

/// Refuses names that the model does not have.
fn check_names(model: &Model, bindings: &[(&str, usize)], constants: &[(&str, Array)]) -> Result<()> {
    let named: BTreeMap<&str, ()> = model
        .inputs()
        .iter()
        .flat_map(|port| port.dims.iter().flatten())
        .filter_map(|dim| match dim {
            PortDim::Named(name) => Some((name.as_str(), ())),
            _ => None,
        })
        .collect();
    if let Some((name, _)) = bindings.iter().find(|(name, _)| !named.contains_key(name)) {
        let known = if named.is_empty() { "none".to_owned() } else { named.into_keys().collect::<Vec<_>>().join(", ") };
        return Err(Error::invalid(format!("no dimension of an input is named {name:?}; there are {known}")));
    }
    if let Some((name, _)) = constants.iter().find(|(name, _)| model.inputs().iter().all(|port| port.name != *name)) {
        return Err(Error::invalid(format!("no input is named {name:?}")));
    }
    Ok(())
}

/// A node in errors.
struct Place<'a> {
    index: usize,
    proto: &'a NodeProto,
    opset: i64,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = operator_name(self.proto.domain.as_deref(), self.proto.op_type.as_deref());
        match self.proto.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => write!(f, "node {name:?} ({operator}, opset {})", self.opset),
            None => write!(f, "node {} ({operator}, opset {})", self.index, self.opset),
        }
    }
}
