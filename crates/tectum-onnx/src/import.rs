//! From the nodes of a file to a graph: names, folding of what is known, and the collection of
//! faults.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use rten_onnx::onnx::{GraphProto, NodeProto};
use tectum::{DType, Error, ErrorKind, Result};
use tectum_graph::GraphBuilder;

use crate::array::Array;
use crate::assumption::Assumption;
use crate::attributes::Attributes;
use crate::emit::{
    ALWAYS_FOLDED, Call, Emit, EmitKind, FOLDING_COST, MAX_FOLDED_TERMS, MAX_MADE, Source, Unroll,
    Value, shape,
};
use crate::model::{Model, OPSETS, Port, PortDim, axis_name, normal, operator_name};
use crate::operators;

/// The values of a graph by name; those of the graph around it are visible. `None` represents a
/// value that an operator with a fault would have given.
pub(crate) type Scope = HashMap<String, Option<Value>>;

/// A file that becomes a graph.
pub(crate) struct Import<'m> {
    pub emit: Emit<'m>,
    pub faults: Vec<Error>,
    pub scopes: Vec<Scope>,
    /// Nodes that have been added, and repetitions of loops.
    added: usize,
    /// How often a name is read, in the graph and those within it.
    readers: HashMap<&'m str, usize>,
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
    /// The input with the key of random numbers, if some are drawn.
    pub draws: Option<String>,
}

fn count_readers<'m>(graph: &'m GraphProto, readers: &mut HashMap<&'m str, usize>) {
    let outputs = graph
        .output
        .iter()
        .filter_map(|output| output.name.as_deref());
    let inputs = graph
        .node
        .iter()
        .flat_map(|node| &node.input)
        .map(String::as_str);
    inputs
        .chain(outputs)
        .for_each(|name| *readers.entry(name).or_default() += 1);
    for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
        attribute
            .g
            .iter()
            .for_each(|graph| count_readers(graph, readers));
    }
}

impl<'m> Import<'m> {
    /// Reads the graph of a model, or the part of it that some outputs depend on. `bindings` gives
    /// sizes to names of dimensions, `constants` values to inputs that shapes depend on.
    pub fn run(
        model: &'m Model,
        bindings: &[(&str, usize)],
        constants: &[(&str, Array)],
        outputs: Option<&[&str]>,
    ) -> Result<Imported> {
        let part = outputs.map(|outputs| part_of(model, outputs)).transpose()?;
        let is_needed = |name: &str| part.as_ref().is_none_or(|part| part.contains(name));
        let emit = Emit::new(
            model,
            EmitKind::Device {
                weights: Vec::new(),
            },
            Rc::new(Cell::new(MAX_MADE)),
        );
        let mut import = Self {
            emit,
            faults: Vec::new(),
            scopes: vec![Scope::new()],
            added: 0,
            readers: HashMap::new(),
        };
        count_readers(model.graph(), &mut import.readers);
        let opset = model.opset();
        if !OPSETS.contains(&opset) {
            import.faults.push(Error::unsupported(format!(
                "opset {opset}: {} to {} are read",
                OPSETS.start(),
                OPSETS.end()
            )));
        }
        let mut assumptions = Vec::new();
        check_names(model, bindings, constants)?;
        let mut inputs = Vec::new();
        for port in model.inputs().iter().filter(|port| is_needed(&port.name)) {
            match import.add_input(port, bindings, constants, &mut assumptions) {
                Ok(Some(value)) => inputs.push((port.clone(), value)),
                Ok(None) => (),
                Err(error) => {
                    import
                        .faults
                        .push(error.at(format_args!("input {:?}", port.name)));
                    import.define(&port.name, None);
                }
            }
        }
        import.add_nodes(model.graph(), &is_needed);
        let mut outputs: Vec<(String, Value)> = Vec::new();
        for (index, port) in model.outputs().iter().enumerate() {
            // Files may list an output twice: it is one value.
            let is_repeated = model.outputs()[..index]
                .iter()
                .any(|earlier| earlier.name == port.name);
            if is_repeated || !is_needed(&port.name) {
                continue;
            }
            match import.look_up(&port.name) {
                Some(Some(value)) => outputs.push((port.name.clone(), value)),
                Some(None) => (),
                None => import.faults.push(Error::data(format!(
                    "output {:?}: no node computes it",
                    port.name
                ))),
            }
        }
        if !import.faults.is_empty() {
            return Err(joined(&import.faults));
        }
        if import.emit.draws.is_unseeded {
            assumptions.push(Assumption::Seed);
        }
        let EmitKind::Device { weights } = import.emit.kind else {
            unreachable!("invariant: an import emits for a device")
        };
        Ok(Imported {
            builder: import.emit.builder,
            weights,
            inputs,
            outputs,
            assumptions,
            draws: import.emit.draws.input.map(|(_, name)| name),
        })
    }

    fn add_input(
        &mut self,
        port: &Port,
        bindings: &[(&str, usize)],
        constants: &[(&str, Array)],
        assumptions: &mut Vec<Assumption>,
    ) -> Result<Option<Value>> {
        if let Some((_, array)) = constants.iter().find(|(name, _)| *name == port.name) {
            let element = port.element.unwrap_or(array.element());
            self.define(&port.name, Some(array.cast(element).into()));
            return Ok(None);
        }
        let element = port.element.ok_or_else(|| {
            Error::unsupported("it is no tensor, or its elements have no meaning here")
        })?;
        let stated = port
            .dims
            .as_ref()
            .ok_or_else(|| Error::unsupported("its shape is not stated"))?;
        let mut dims = Vec::new();
        for (axis, dim) in stated.iter().enumerate() {
            let bound = match dim {
                PortDim::Size(size) => *size,
                PortDim::Named(_) | PortDim::Unknown => {
                    match bound_size(bindings, &port.name, axis, dim) {
                        Some(size) => size,
                        None => {
                            let assumption = unknown_size(&port.name, axis, dim);
                            if !assumptions.contains(&assumption) {
                                assumptions.push(assumption);
                            }
                            1
                        }
                    }
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
        self.add_nodes(graph, &|_| true);
    }

    /// Adds the nodes of which an output is needed.
    fn add_nodes(&mut self, graph: &'m GraphProto, is_needed: &dyn Fn(&str) -> bool) {
        for tensor in &graph.initializer {
            let name = tensor.name.clone().unwrap_or_default();
            if !is_needed(&name) {
                continue;
            }
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
            if !node.output.is_empty() && !node.output.iter().any(|name| is_needed(name)) {
                continue;
            }
            if let Err(error) = self.count_node() {
                return self.faults.push(error);
            }
            if self.scopes.len() == 1 {
                self.emit.draws.begin(index);
            }
            self.add_node(index, node);
        }
    }

    fn add_node(&mut self, index: usize, proto: &'m NodeProto) {
        let operator = proto.op_type.as_deref().unwrap_or_default();
        let domain = normal(proto.domain.as_deref().unwrap_or_default());
        let opset = self.emit.model.opset_of(domain);
        let place = Place {
            index,
            proto,
            opset,
        };
        let outcome = match operators::find(domain, operator) {
            None => Err(Error::unsupported("the operator is not supported")),
            Some(add) => match self.inputs_of(proto) {
                Err(error) => Err(error),
                // An earlier fault is the cause.
                Ok(None) => return self.poison(proto),
                Ok(Some(inputs)) => {
                    let call = Call {
                        opset,
                        inputs,
                        attributes: Attributes::of(proto),
                        outputs: proto.output.iter().map(|name| !name.is_empty()).collect(),
                    };
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
                for (index, name) in proto
                    .output
                    .iter()
                    .enumerate()
                    .filter(|(_, name)| !name.is_empty())
                {
                    match values.get(index) {
                        Some(value) => {
                            let convolution = value
                                .convolution
                                .clone()
                                .filter(|_| self.readers.get(name.as_str()) == Some(&1));
                            self.define(
                                name,
                                Some(Value {
                                    convolution,
                                    ..value.clone()
                                }),
                            );
                        }
                        None => {
                            self.faults.push(Error::unsupported(format!(
                                "{place}: output {index} is not supported"
                            )));
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
                None => {
                    return Err(Error::data(format!(
                        "input {name:?} is computed by no earlier node"
                    )));
                }
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
                let is_known = call
                    .inputs
                    .iter()
                    .flatten()
                    .all(|value| value.array().is_some());
                match is_known && !call.inputs.is_empty() {
                    true => match self.fold(add, call)? {
                        Some(values) => values,
                        None => add(&mut self.emit, call)?,
                    },
                    false => add(&mut self.emit, call)?,
                }
            }
            operators::Add::Random(add) => add(&mut self.emit, call)?,
        };
        for value in &values {
            let product = value
                .dims
                .iter()
                .try_fold(1usize, |product, dim| product.checked_mul((*dim).max(1)));
            if product.is_none_or(|product| product > u32::MAX as usize) {
                return Err(Error::unsupported(format!("a value of {:?}", value.dims)));
            }
        }
        let unread = call.attributes.unread();
        if unread.is_empty() {
            Ok(Some(values))
        } else {
            Err(Error::unsupported(format!(
                "attribute {} is not supported",
                unread.join(", ")
            )))
        }
    }

    /// Computes an operator of known tensors now; none if that would take too much memory or time.
    fn fold(&self, add: operators::AddPlain, call: &Call<'_>) -> Result<Option<Vec<Value>>> {
        let mut emit = Emit::new(
            self.emit.model,
            EmitKind::Fold { feeds: Vec::new() },
            Rc::clone(&self.emit.budget),
        );
        let mut values = add(&mut emit, call)?;
        let EmitKind::Fold { feeds } = emit.kind else {
            unreachable!("invariant: it was made to fold")
        };
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
            match self
                .emit
                .budget
                .get()
                .checked_sub(elements.saturating_mul(FOLDING_COST))
                .filter(|_| terms <= MAX_FOLDED_TERMS)
            {
                Some(left) => self.emit.budget.set(left),
                None => return Ok(None),
            }
        }
        let tensors = builder.finish()?.evaluate(&feeds)?;
        for (index, tensor) in computed.into_iter().zip(tensors) {
            let Value {
                element,
                dims,
                codes,
                ..
            } = &values[index];
            values[index] = Value {
                codes: codes.clone(),
                ..Array::wide(*element, dims, tensor.data().to_vec()).into()
            };
        }
        Ok(Some(values))
    }

    fn define(&mut self, name: &str, value: Option<Value>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    pub fn look_up(&self, name: &str) -> Option<Option<Value>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .cloned()
    }
}

impl<'m> Unroll<'m> for Import<'m> {
    fn emit(&mut self) -> &mut Emit<'m> {
        &mut self.emit
    }

    fn count_node(&mut self) -> Result<()> {
        self.added += 1;
        if self.added > MAX_NODES || self.emit.builder.len() > MAX_OPERATIONS {
            return Err(Error::unsupported(format!(
                "unrolled, it has more than {MAX_NODES} nodes or {MAX_OPERATIONS} operations"
            )));
        }
        Ok(())
    }

    fn subgraph(
        &mut self,
        graph: &'m GraphProto,
        inputs: Vec<Value>,
    ) -> Result<Option<Vec<Value>>> {
        if inputs.len() != graph.input.len() {
            return Err(Error::data(format!(
                "its graph has {} inputs; {} are given",
                graph.input.len(),
                inputs.len()
            )));
        }
        let faults = self.faults.len();
        self.scopes.push(Scope::new());
        for (port, value) in graph.input.iter().zip(inputs) {
            self.define(port.name.as_deref().unwrap_or_default(), Some(value));
        }
        self.add_graph(graph);
        let found: Vec<_> = graph
            .output
            .iter()
            .map(|port| port.name.as_deref().unwrap_or_default())
            .map(|name| (name, self.look_up(name)))
            .collect();
        let missing = found
            .iter()
            .find(|(_, value)| value.is_none())
            .map(|(name, _)| format!("output {name:?} of its graph is computed by no node"));
        self.scopes.pop();
        match missing {
            _ if self.faults.len() > faults => Ok(None),
            Some(missing) => Err(Error::data(missing)),
            None => Ok(found
                .into_iter()
                .map(|(_, value)| value.flatten())
                .collect()),
        }
    }
}

/// All faults as one error: `Io` if one of them is, else `Unsupported` if one is, else `Data`.
fn joined(faults: &[Error]) -> Error {
    let is_any = |kind: &ErrorKind| faults.iter().any(|fault| fault.kind() == *kind);
    let kind = [ErrorKind::Io, ErrorKind::Unsupported]
        .into_iter()
        .find(is_any)
        .unwrap_or(ErrorKind::Data);
    let list = faults
        .iter()
        .map(Error::to_string)
        .collect::<Vec<_>>()
        .join("\n  ");
    Error::new(
        kind,
        if faults.len() == 1 {
            list
        } else {
            format!("{} faults:\n  {list}", faults.len())
        },
    )
}

/// The size that an axis of an input is given, under its own name or that of its dimension.
fn bound_size(
    bindings: &[(&str, usize)],
    input: &str,
    axis: usize,
    dim: &PortDim,
) -> Option<usize> {
    let own = axis_name(input, axis);
    let named = |name: &str| bindings.iter().find(|(bound, _)| *bound == name);
    let (_, size) = named(&own).or_else(|| match dim {
        PortDim::Named(name) => named(name),
        _ => None,
    })?;
    Some(*size)
}

/// That an axis of an input is 1.
fn unknown_size(input: &str, axis: usize, dim: &PortDim) -> Assumption {
    match dim {
        PortDim::Named(name) => Assumption::Dimension {
            name: name.clone(),
            size: 1,
        },
        _ => Assumption::UnnamedDimension {
            input: input.to_owned(),
            axis,
            size: 1,
        },
    }
}

/// The names that some outputs depend on, themselves included.
fn part_of<'m>(model: &'m Model, outputs: &[&str]) -> Result<HashSet<&'m str>> {
    let mut part = HashSet::new();
    for name in outputs {
        let port = model.outputs().iter().find(|port| port.name == *name);
        let port = port.ok_or_else(|| {
            let known: Vec<&str> = model
                .outputs()
                .iter()
                .map(|port| port.name.as_str())
                .collect();
            Error::invalid(format!(
                "no output {name:?}; there are {}",
                known.join(", ")
            ))
        })?;
        part.insert(port.name.as_str());
    }
    for node in model.graph().node.iter().rev() {
        if node.output.iter().any(|name| part.contains(name.as_str())) {
            add_read(node, &mut part);
        }
    }
    Ok(part)
}

/// Adds the names that a node reads, in the graphs within it too.
fn add_read<'m>(node: &'m NodeProto, names: &mut HashSet<&'m str>) {
    names.extend(node.input.iter().map(String::as_str));
    for graph in node
        .attribute
        .iter()
        .filter_map(|attribute| attribute.g.as_ref())
    {
        graph.node.iter().for_each(|node| add_read(node, names));
        names.extend(graph.output.iter().filter_map(|port| port.name.as_deref()));
    }
}

/// Refuses names that the model does not have.
fn check_names(
    model: &Model,
    bindings: &[(&str, usize)],
    constants: &[(&str, Array)],
) -> Result<()> {
    let mut named = BTreeSet::new();
    let mut axes = BTreeSet::new();
    for port in model.inputs() {
        axes.extend(port.open_axes().map(|(_, name)| name));
        for (axis, dim) in port.dims.iter().flatten().enumerate() {
            match dim {
                PortDim::Named(name) => _ = named.insert(name.clone()),
                PortDim::Unknown => _ = named.insert(axis_name(&port.name, axis)),
                PortDim::Size(_) => (),
            }
        }
    }
    let is_known = |name: &str| named.contains(name) || axes.contains(name);
    if let Some((name, _)) = bindings.iter().find(|(name, _)| !is_known(name)) {
        let known = if named.is_empty() {
            "none".to_owned()
        } else {
            named.into_iter().collect::<Vec<_>>().join(", ")
        };
        return Err(Error::invalid(format!(
            "no dimension of an input is named {name:?}; there are {known}"
        )));
    }
    if let Some((name, _)) = constants
        .iter()
        .find(|(name, _)| model.inputs().iter().all(|port| port.name != *name))
    {
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
