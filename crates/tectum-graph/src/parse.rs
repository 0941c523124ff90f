//! The parser of the text form: tests of passes use it.

use tectum::internal::Identity;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, Error, Result};

use super::builder::GraphBuilder;
use super::describe::activation_name;
use super::pack::panels_shape;
use super::{BinaryOp, ColumnSlice, Dim, Factor, Graph, Heads, LinearEpilogue, MAX_RANK, Node, Operation, Shape};

impl Graph {
    /// Reads the text of [`Graph::describe`]. Every operation is checked as a [`GraphBuilder`] checks it, and the stated
    /// shape must equal the inferred one.
    ///
    /// # Errors
    /// `Invalid`, naming the line, for text that is not of this form, a constant that is shown in part, operands that do not fit
    /// or come later, or a shape that differs from the inferred one.
    pub fn parse(text: &str) -> Result<Graph> {
        let mut builder = GraphBuilder::new();
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        // Earlier nodes may read fed nodes too: passes make such graphs.
        let is_fed = |line: &str| ["= input ", "= indices ", "= parameter ", "= state "].iter().any(|kind| line.contains(kind));
        let (fed, computed): (Vec<_>, Vec<_>) = lines.partition(|(_, line)| is_fed(line));
        for (index, line) in fed.into_iter().chain(computed) {
            parse_line(&mut builder, line).map_err(|error| error.at(format_args!("line {}, `{line}`", index + 1)))?;
        }
        builder.finish()
    }
}

fn parse_line(builder: &mut GraphBuilder, line: &str) -> Result<()> {
    if let Some(output) = line.strip_prefix("output ") {
        let (name, node) = output.rsplit_once(" %").ok_or_else(|| fault("an output is `output NAME %NODE`"))?;
        let node = parse_node(builder.graph().maker(), node)?;
        return builder.output(name, node);
    }
    let parts = line.strip_prefix('%').and_then(|rest| rest.split_once(" = "));
    let (node, rest) = parts.ok_or_else(|| fault("a node is `%NODE = OPERATION [SHAPE]`"))?;
    let (operation, shape) = rest.rsplit_once(" [").ok_or_else(|| fault("the shape is missing"))?;
    let shape = parse_shape(shape.strip_suffix(']').ok_or_else(|| fault("the shape is not closed"))?)?;
    let node = parse_node(builder.graph().maker(), node)?;
    builder.place(node, |builder| add(builder, operation, shape))?;
    let stated = builder.graph().shape(node)?;
    if stated == shape { Ok(()) } else { Err(fault(&format!("the shape that follows is {stated:?}"))) }
}

fn add(builder: &mut GraphBuilder, operation: &str, shape: Shape) -> Result<Node> {
    if let Some((kind, name)) = operation.split_once(' ').filter(|(kind, _)| !kind.contains('(')) {
        return match kind {
            "input" => builder.input(name, shape),
            "indices" => builder.indices(name, shape),
            "parameter" => match name.rsplit_once(' ').map(|(name, format)| (name, format.parse())) {
                Some((name, Ok(format))) => builder.panels(name, format, shape),
                _ => builder.parameter(name, shape),
            },
            "state" => match name.rsplit_once(' ').map(|(name, format)| (name, format.parse())) {
                Some((name, Ok(format))) => builder.state_as(name, format, shape),
                _ => builder.state(name, shape),
            },
            _ => Err(fault(&format!("no operation {kind}"))),
        };
    }
    let parts = operation.strip_suffix(')').and_then(|rest| rest.split_once('('));
    let (name, arguments) = parts.ok_or_else(|| fault("an operation is `NAME(ARGUMENTS)`"))?;
    if name == "chain" {
        return parse_chain(builder, arguments, shape);
    }
    let parts = arguments.split(", ").filter(|argument| !argument.is_empty()).collect();
    let arguments = Arguments { graph: builder.graph().maker(), parts };
    if let Some(op) = BinaryOp::ALL.into_iter().find(|op| op.name() == name) {
        return builder.binary(op, arguments.node(0)?, arguments.node(1)?);
    }
    if let Some(activation) = activation(name) {
        return builder.activate(arguments.node(0)?, activation);
    }
    if let Some(activation) = name.strip_suffix("_grad").and_then(activation) {
        return builder.activation_grad(activation, arguments.node(0)?, arguments.node(1)?);
    }
    match name {
        "constant" => {
            let numbers: Result<Vec<f32>> = arguments.parts.iter().map(|number| parse_number(number)).collect();
            builder.constant(&numbers?, shape)
        }
        "matmul" => builder.matmul(arguments.factor(0)?, arguments.factor(1)?),
        "linear" => builder.linear(arguments.factor(0)?, arguments.factor(1)?, arguments.tail()?),
        "linear_panels" => {
            let format = arguments.text("weights").map_or(Ok(PanelFormat::F32), str::parse)?;
            builder.linear_panels([arguments.node(0)?, arguments.node(1)?], format, arguments.tail()?, shape.last())
        }
        "scale" => builder.scale(arguments.node(0)?, parse_number(arguments.at(1)?)?),
        "sum" => builder.sum(arguments.node(0)?),
        "sum_over_rows" => builder.sum_over_rows(arguments.node(0)?),
        "sum_over_columns" => builder.sum_over_columns(arguments.node(0)?),
        "sum_axis" => builder.sum_axis(arguments.node(0)?, arguments.named("axis")?),
        "broadcast" => builder.broadcast(arguments.node(0)?, shape),
        "gather" => builder.gather(arguments.node(0)?, arguments.node(1)?),
        "reshape" => builder.reshape(arguments.node(0)?, shape),
        "permute" => {
            let order = arguments.text("order").ok_or_else(|| fault("order is missing"))?;
            let order: Result<Vec<usize>> = order.split(' ').map(parse_number).collect();
            builder.permute(arguments.node(0)?, &order?)
        }
        "slice" => {
            let axis: usize = arguments.named("axis")?;
            let len = shape.dims().get(axis).ok_or_else(|| fault(&format!("{shape:?} has no axis {axis}")))?;
            builder.slice(arguments.node(0)?, axis, arguments.named("from")?, *len)
        }
        "concat" => {
            let parts: Result<Vec<Node>> = (0..arguments.parts.len().saturating_sub(1)).map(|index| arguments.node(index)).collect();
            builder.concat(&parts?, arguments.named("axis")?)
        }
        "softmax" => builder.softmax(arguments.node(0)?, shape.rank().saturating_sub(1)),
        "layer_norm" => builder.layer_norm(arguments.node(0)?, arguments.node(1)?, arguments.node(2)?, arguments.named("epsilon")?),
        "rms_norm" => builder.rms_norm(arguments.node(0)?, arguments.node(1)?, arguments.named("epsilon")?),
        "attention" | "attention_cached" => parse_attention(builder, name, &arguments),
        "rotary" => builder.rotary(arguments.node(0)?, arguments.node(1)?, arguments.named("heads")?, arguments.named("base")?),
        _ => Err(fault(&format!("no operation {name}"))),
    }
}

/// Elementwise operations, each except the last with its handle.
fn parse_chain(builder: &mut GraphBuilder, text: &str, shape: Shape) -> Result<Node> {
    let (before, last) = text.rsplit_once(" | ").ok_or_else(|| fault("a chain is `%NODE = OPERATION | … OPERATION`"))?;
    let mut inner = Vec::new();
    for step in before.split(" | ") {
        let parts = step.strip_prefix('%').and_then(|rest| rest.split_once(" = "));
        let (node, operation) = parts.ok_or_else(|| fault(&format!("a chain's {step:?} is no `%NODE = OPERATION`")))?;
        let node = parse_node(builder.graph().maker(), node)?;
        inner.push(node);
        builder.place(node, |builder| add(builder, operation, shape))?;
    }
    let last = add(builder, last, shape)?;
    builder.chain(&inner, last)
}

fn parse_attention(builder: &mut GraphBuilder, name: &str, arguments: &Arguments<'_>) -> Result<Node> {
    let heads = Heads {
        count: arguments.named("heads")?,
        kv: arguments.named("kv")?,
        width: arguments.named("width")?,
        scale: arguments.named("scale")?,
        causal: arguments.parts.contains(&"causal"),
    };
    let operand = |index: usize| {
        let text = arguments.at(index)?;
        match text.split_once('@') {
            None => Ok(ColumnSlice { node: arguments.node(index)?, start: 0 }),
            Some((node, start)) => Ok(ColumnSlice { node: arguments.reference(node)?, start: parse_number(start)? }),
        }
    };
    let operands = [operand(0)?, operand(1)?, operand(2)?];
    if name == "attention_cached" {
        return builder.attention_cached_of(operands, [arguments.node(3)?, arguments.node(4)?], arguments.node(5)?, heads);
    }
    builder.attention_of(operands, arguments.named_node("mask")?, heads)
}

/// The text between the brackets of an operation.
struct Arguments<'a> {
    graph: Identity,
    parts: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn at(&self, index: usize) -> Result<&'a str> {
        self.parts.get(index).copied().ok_or_else(|| fault(&format!("argument {index} is missing")))
    }

    fn reference(&self, text: &str) -> Result<Node> {
        parse_node(self.graph, text.strip_prefix('%').ok_or_else(|| fault(&format!("{text:?} is no %NODE")))?)
    }

    fn node(&self, index: usize) -> Result<Node> {
        self.reference(self.at(index)?)
    }

    fn factor(&self, index: usize) -> Result<Factor> {
        match self.at(index)?.strip_suffix('ᵀ') {
            Some(node) => Ok(self.reference(node)?.transpose()),
            None => Ok(self.node(index)?.into()),
        }
    }

    /// The text after a name and a blank.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.parts.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix(' '))
    }

    fn named<T: std::str::FromStr>(&self, name: &str) -> Result<T> {
        parse_number(self.text(name).ok_or_else(|| fault(&format!("{name} is missing")))?)
    }

    fn named_node(&self, name: &str) -> Result<Option<Node>> {
        self.text(name).map(|text| self.reference(text)).transpose()
    }

    fn tail(&self) -> Result<LinearEpilogue> {
        Ok(LinearEpilogue { bias: self.named_node("bias")?, activation: self.activation(), residual: self.named_node("residual")? })
    }

    fn activation(&self) -> Activation {
        self.parts.iter().find_map(|argument| activation(argument)).unwrap_or_default()
    }
}

fn activation(name: &str) -> Option<Activation> {
    Activation::ALL.into_iter().skip(1).find(|activation| activation_name(*activation) == name)
}

/// The maximum node number in a text: nodes added later have greater numbers.
const MAX_NUMBER: u32 = u32::MAX / 2;

fn parse_node(graph: Identity, text: &str) -> Result<Node> {
    let (number, step) = text.split_once('.').unwrap_or((text, "0"));
    let (number, step): (u32, u32) = (parse_number(number)?, parse_number(step)?);
    match number.max(step) {
        0..=MAX_NUMBER => Ok(Node { number, step, graph }),
        _ => Err(fault(&format!("node {text}: numbers go up to {MAX_NUMBER}"))),
    }
}

fn parse_number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| fault(&format!("{text:?} is no such number")))
}

fn parse_shape(text: &str) -> Result<Shape> {
    let dim = |text: &str| match text.parse::<usize>() {
        Ok(size) => Ok(Dim::Size(size)),
        Err(_) if text.chars().count() == 1 => Ok(Dim::Symbol(text.chars().next().unwrap_or_default())),
        Err(_) => Err(fault(&format!("{text:?} is no size or letter"))),
    };
    let dims: Result<Vec<Dim>> = text.split(", ").filter(|dim| !dim.is_empty()).map(dim).collect();
    let dims = dims?;
    if dims.len() <= MAX_RANK { Ok(Shape::of(&dims)) } else { Err(fault(&format!("{} dimensions; at most {MAX_RANK} are possible", dims.len()))) }
}

fn fault(message: &str) -> Error {
    Error::invalid(message)
}

impl GraphBuilder {
    /// Adds one operation under a given handle.
    fn place(&mut self, node: Node, add: impl FnOnce(&mut Self) -> Result<Node>) -> Result<()> {
        /// Above every number that a text may use.
        const ASIDE: u32 = MAX_NUMBER + 1;
        if self.graph().nodes.contains_key(&node) || self.graph().inside_chains().any(|inner| inner == node) {
            return Err(fault(&format!("{node} is taken")));
        }
        let next = std::mem::replace(&mut self.graph_mut().next, ASIDE);
        let added = add(self);
        let graph = self.graph_mut();
        graph.next = next.max(node.number + 1);
        let definition = graph.nodes.remove(&Node { number: ASIDE, step: 0, graph: graph.maker() });
        added?;
        let Some(definition) = definition else { return Err(fault("the operation does nothing")) };
        let is_late = |operand: &Node| *operand > node && !graph.nodes[operand].operation.is_fed();
        if definition.operation.operands().iter().any(is_late) {
            return Err(fault("an operand comes later"));
        }
        graph.nodes.insert(node, definition);
        Ok(())
    }

    /// A product with its tail.
    pub(super) fn linear(&mut self, a: Factor, b: Factor, tail: LinearEpilogue) -> Result<Node> {
        let shape = self.product_shape("linear", a, b)?;
        if self.graph().is_batched(a, b) {
            return Err(self.fault(format_args!("linear: a batched product {shape:?} has no tail")));
        }
        self.check_epilogue("linear", tail, shape)?;
        Ok(self.push(Operation::Linear { a, b, tail }, shape))
    }

    /// A product of some columns with its right operand in panels.
    fn linear_panels(&mut self, [a, b]: [Node; 2], format: PanelFormat, tail: LinearEpilogue, columns: Dim) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape("linear_panels", a)?, self.graph().shape(b)?);
        let fits = match (columns, a_shape.rank(), a_shape.last()) {
            (Dim::Size(n), 2.., Dim::Size(k)) => b_shape == panels_shape(format, k, n),
            _ => false,
        };
        if !fits || self.graph().panel_format(b) != Some(format) {
            return Err(self.fault(format_args!("linear_panels: a {a_shape:?}, b {b_shape:?} for {columns:?} columns of {format}")));
        }
        let shape = a_shape.with(a_shape.rank() - 1, columns);
        self.check_epilogue("linear_panels", tail, shape)?;
        Ok(self.push(Operation::LinearPanels { a, b, format, tail }, shape))
    }

    /// A parameter of words.
    fn panels(&mut self, name: &str, format: PanelFormat, shape: Shape) -> Result<Node> {
        self.check_new("parameter", name, shape)?;
        Ok(self.push(Operation::Parameter { name: name.to_owned(), format }, shape))
    }

    fn check_epilogue(&self, op: &str, tail: LinearEpilogue, shape: Shape) -> Result<()> {
        let bias = tail.bias.map(|node| self.shape(op, node)).transpose()?;
        let residual = tail.residual.map(|node| self.shape(op, node)).transpose()?;
        if bias.is_some_and(|bias| !bias.is_row_of(shape)) || residual.is_some_and(|residual| residual != shape) {
            return Err(self.fault(format_args!("{op}: {shape:?} with bias {bias:?}, residual {residual:?}")));
        }
        Ok(())
    }
}
