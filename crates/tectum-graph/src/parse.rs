//! The parser of the text form; the text of an operation is read in its file. Tests of passes use
//! it.

use tectum::internal::Identity;
use tectum::{Error, Result};

use super::builder::GraphBuilder;
use super::{AnyCustomOp, Dim, Graph, MAX_RANK, Node, Operation, Shape};

impl Graph {
    /// Reads the text of [`Graph::describe`]. Every operation is checked as a [`GraphBuilder`]
    /// checks it, and the stated shape must equal the inferred one.
    ///
    /// # Errors
    /// `Invalid`, naming the line, for text that is not of this form, a constant that is shown in
    /// part, an operation of another crate, operands that do not fit or come later, or a shape that
    /// differs from the inferred one.
    pub fn parse(text: &str) -> Result<Graph> {
        Graph::parse_with(text, &[])
    }

    /// Reads a text as [`Graph::parse`]; operations of other crates are found among these, by their
    /// names.
    ///
    /// # Errors
    /// As [`Graph::parse`]; `Invalid` for an operation of another crate that is not among them.
    pub fn parse_with(text: &str, custom: &[AnyCustomOp]) -> Result<Graph> {
        let mut builder = GraphBuilder::with_custom(custom);
        let lines = text
            .lines()
            .map(str::trim)
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        // Earlier nodes may read fed nodes too: passes make such graphs.
        let (fed, computed): (Vec<_>, Vec<_>) =
            lines.partition(|(_, line)| Operation::is_fed_in(line));
        for (index, line) in fed.into_iter().chain(computed) {
            parse_line(&mut builder, line)
                .map_err(|error| error.at(format_args!("line {}, `{line}`", index + 1)))?;
        }
        builder.finish()
    }
}

fn parse_line(builder: &mut GraphBuilder, line: &str) -> Result<()> {
    if let Some(output) = line.strip_prefix("output ") {
        let (name, node) = output
            .rsplit_once(" %")
            .ok_or_else(|| fault("an output is `output NAME %NODE`"))?;
        let node = parse_node(builder.graph().maker(), node)?;
        return builder.output(name, node);
    }
    let parts = line
        .strip_prefix('%')
        .and_then(|rest| rest.split_once(" = "));
    let (node, rest) = parts.ok_or_else(|| fault("a node is `%NODE = OPERATION [SHAPE]`"))?;
    let (operation, shape) = rest
        .rsplit_once(" [")
        .ok_or_else(|| fault("the shape is missing"))?;
    let shape = parse_shape(
        shape
            .strip_suffix(']')
            .ok_or_else(|| fault("the shape is not closed"))?,
    )?;
    let node = parse_node(builder.graph().maker(), node)?;
    builder.place(node, |builder| parse_operation(builder, operation, shape))?;
    let stated = builder.graph().shape(node)?;
    if stated == shape {
        Ok(())
    } else {
        Err(fault(&format!("the shape that follows is {stated:?}")))
    }
}

/// Adds the operation of a text; `shape` is the stated one.
pub(super) fn parse_operation(
    builder: &mut GraphBuilder,
    operation: &str,
    shape: Shape,
) -> Result<Node> {
    if let Some((kind, name)) = operation
        .split_once(' ')
        .filter(|(kind, _)| !kind.contains('('))
    {
        return Operation::parse_fed(builder, kind, name, shape);
    }
    let parts = operation
        .strip_suffix(')')
        .and_then(|rest| rest.split_once('('));
    let (name, arguments) = parts.ok_or_else(|| fault("an operation is `NAME(ARGUMENTS)`"))?;
    let whole = arguments;
    let arguments = whole
        .split(", ")
        .filter(|argument| !argument.is_empty())
        .collect();
    Operation::parse(
        builder,
        &CallText {
            graph: builder.graph().maker(),
            name,
            whole,
            arguments,
        },
        shape,
    )
}

/// The text of an operation: `name(arguments)`.
pub(super) struct CallText<'a> {
    graph: Identity,
    pub(super) name: &'a str,
    /// The text between the brackets.
    pub(super) whole: &'a str,
    /// The parts of `whole`, without commas.
    pub(super) arguments: Vec<&'a str>,
}

impl<'a> CallText<'a> {
    pub(super) fn at(&self, index: usize) -> Result<&'a str> {
        self.arguments
            .get(index)
            .copied()
            .ok_or_else(|| fault(&format!("argument {index} is missing")))
    }

    pub(super) fn reference(&self, text: &str) -> Result<Node> {
        parse_node(
            self.graph,
            text.strip_prefix('%')
                .ok_or_else(|| fault(&format!("{text:?} is no %NODE")))?,
        )
    }

    pub(super) fn node(&self, index: usize) -> Result<Node> {
        self.reference(self.at(index)?)
    }

    /// The text after a name and a blank.
    pub(super) fn named(&self, name: &str) -> Option<&'a str> {
        self.arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(name)?.strip_prefix(' '))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T> {
        parse_number(
            self.named(name)
                .ok_or_else(|| fault(&format!("{name} is missing")))?,
        )
    }

    pub(super) fn named_node(&self, name: &str) -> Result<Option<Node>> {
        self.named(name)
            .map(|text| self.reference(text))
            .transpose()
    }

    /// An error: no operation has the name.
    pub(super) fn unknown(&self) -> Error {
        fault(&format!("no operation {}", self.name))
    }
}

/// The maximum node number in a text: nodes added later have greater numbers.
const MAX_NUMBER: u32 = u32::MAX / 2;

pub(super) fn parse_node(graph: Identity, text: &str) -> Result<Node> {
    let (number, step) = text.split_once('.').unwrap_or((text, "0"));
    let (number, step): (u32, u32) = (parse_number(number)?, parse_number(step)?);
    match number.max(step) {
        0..=MAX_NUMBER => Ok(Node {
            number,
            step,
            graph,
        }),
        _ => Err(fault(&format!(
            "node {text}: numbers go up to {MAX_NUMBER}"
        ))),
    }
}

pub(super) fn parse_number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| fault(&format!("{text:?} is no such number")))
}

fn parse_shape(text: &str) -> Result<Shape> {
    let dim = |text: &str| match text.parse::<usize>() {
        Ok(size) => Ok(Dim::Size(size)),
        Err(_) if text.chars().count() == 1 => {
            Ok(Dim::Symbol(text.chars().next().unwrap_or_default()))
        }
        Err(_) => Err(fault(&format!("{text:?} is no size or letter"))),
    };
    let dims: Result<Vec<Dim>> = text
        .split(", ")
        .filter(|dim| !dim.is_empty())
        .map(dim)
        .collect();
    let dims = dims?;
    if dims.len() <= MAX_RANK {
        Ok(Shape::of(&dims))
    } else {
        Err(fault(&format!(
            "{} dimensions; at most {MAX_RANK} are possible",
            dims.len()
        )))
    }
}

pub(super) fn fault(message: &str) -> Error {
    Error::invalid(message)
}

impl GraphBuilder {
    /// Adds one operation under a given handle.
    pub(super) fn place(
        &mut self,
        node: Node,
        add: impl FnOnce(&mut Self) -> Result<Node>,
    ) -> Result<()> {
        /// Above every number that a text may use.
        const ASIDE: u32 = MAX_NUMBER + 1;
        if self.graph().nodes.contains_key(&node)
            || self.graph().inside_chains().any(|inner| inner == node)
        {
            return Err(fault(&format!("{node} is taken")));
        }
        let next = std::mem::replace(&mut self.graph_mut().next, ASIDE);
        let added = add(self);
        let graph = self.graph_mut();
        graph.next = next.max(node.number + 1);
        let mut aside = graph.nodes.split_off(&Node {
            number: ASIDE,
            step: 0,
            graph: graph.maker(),
        });
        added?;
        let Some((_, definition)) = aside.pop_first() else {
            return Err(fault("the operation does nothing"));
        };
        if !aside.is_empty() {
            return Err(fault(
                "an operand repeats to another shape: a `broadcast` on its own line is needed",
            ));
        }
        let is_late = |operand: &Node| *operand > node && !graph.nodes[operand].operation.is_fed();
        if definition.operation.operands().iter().any(is_late) {
            return Err(fault("an operand comes later"));
        }
        graph.nodes.insert(node, definition);
        Ok(())
    }
}
