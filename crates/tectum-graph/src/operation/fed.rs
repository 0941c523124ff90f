//! Values that the caller feeds: inputs, row numbers, parameters, states.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormat, DType, Error};

use super::{
    Adjoints, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result, Shape, Tensor, ValueType,
    Values, View,
};

/// A value that the caller gives by its node.
#[derive(Debug, Clone)]
pub(crate) struct Fed {
    pub kind: FedKind,
    pub name: String,
}

/// What a fed value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FedKind {
    Input,
    /// Rows of a table, positions or spans.
    Indices,
    /// Integers or truth values.
    Integers,
    /// A learned value: of f32, or words of weights in panels of another format.
    Parameter(PanelFormat),
    /// A value that stays on the device between runs, in a format.
    State(CacheFormat),
}

impl FedKind {
    const ALL: [FedKind; 5] = [
        FedKind::Input,
        FedKind::Indices,
        FedKind::Integers,
        FedKind::Parameter(PanelFormat::F32),
        FedKind::State(CacheFormat::F32),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            FedKind::Input => "input",
            FedKind::Indices => "indices",
            FedKind::Integers => "integers",
            FedKind::Parameter(_) => "parameter",
            FedKind::State(_) => "state",
        }
    }

    fn dtype(self) -> DType {
        match self {
            FedKind::Input => DType::F32,
            FedKind::Indices => DType::U32,
            FedKind::Integers => DType::I32,
            FedKind::Parameter(format) => format.dtype(),
            FedKind::State(format) => format.dtype(),
        }
    }

    /// The same kind in the format of a text; none if the kind has no such format.
    fn with_format(self, text: &str) -> Option<FedKind> {
        match self {
            FedKind::Input | FedKind::Indices | FedKind::Integers => None,
            FedKind::Parameter(_) => text.parse().ok().map(FedKind::Parameter),
            FedKind::State(_) => text.parse().ok().map(FedKind::State),
        }
    }
}

impl Fed {
    /// The line of text, without its handle and shape.
    pub(super) fn text(&self) -> String {
        let format = match self.kind {
            FedKind::Parameter(format) if format != PanelFormat::F32 => format!(" {format}"),
            FedKind::State(format) if format != CacheFormat::F32 => format!(" {format}"),
            _ => String::new(),
        };
        format!("{} {}{format}", self.kind.name(), self.name)
    }
}

impl Op for Fed {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        Vec::new()
    }

    fn element(&self) -> ValueType {
        ValueType::Is(self.kind.dtype())
    }

    fn evaluate(&self, shape: Shape, _: &Values) -> Result<Tensor> {
        Err(Error::invalid(format!(
            "{} {shape:?} is not fed",
            self.name
        )))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, _: &mut Lowering<'_>, _: Shape, _: View) -> Result<()> {
        Ok(())
    }
}

impl Operation {
    /// Whether the caller gives the value.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(self, Operation::Fed(_))
    }

    /// The format of a state.
    pub(crate) fn state_format(&self) -> Option<CacheFormat> {
        match self {
            Operation::Fed(Fed {
                kind: FedKind::State(format),
                ..
            }) => Some(*format),
            _ => None,
        }
    }

    /// Whether it is a parameter, in any format.
    pub(crate) fn is_parameter(&self) -> bool {
        matches!(
            self,
            Operation::Fed(Fed {
                kind: FedKind::Parameter(_),
                ..
            })
        )
    }

    /// Whether a line of text is of a fed value.
    pub(crate) fn is_fed_in(line: &str) -> bool {
        FedKind::ALL
            .iter()
            .any(|kind| line.contains(&format!("= {} ", kind.name())))
    }

    /// Adds the fed value of a text `kind name`.
    pub(crate) fn parse_fed(
        builder: &mut GraphBuilder,
        kind: &str,
        name: &str,
        shape: Shape,
    ) -> Result<Node> {
        let plain = FedKind::ALL.into_iter().find(|known| known.name() == kind);
        let plain = plain.ok_or_else(|| Error::invalid(format!("no operation {kind}")))?;
        let formatted = name
            .rsplit_once(' ')
            .and_then(|(name, format)| Some((plain.with_format(format)?, name)));
        let (kind, name) = formatted.unwrap_or((plain, name));
        builder.fed(kind, name, shape)
    }
}

impl GraphBuilder {
    /// Adds a value that the caller gives for each run.
    ///
    /// # Errors
    /// `Invalid` if an input or parameter has this name, or the shape has no elements or more than
    /// 2³² − 1.
    pub fn input(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.fed(FedKind::Input, name, shape)
    }

    /// Adds row numbers (u32) that the caller gives for each run, for [`GraphBuilder::gather`] and
    /// positions.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn indices(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.fed(FedKind::Indices, name, shape)
    }

    /// Adds integers (i32), or truth values as 0 and 1, that the caller gives for each run.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn integers(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.fed(FedKind::Integers, name, shape)
    }

    /// Adds a value that is learned: [`Graph::gradients`] gives its gradient.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn parameter(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.fed(FedKind::Parameter(PanelFormat::F32), name, shape)
    }

    /// Adds a value that stays on the device between runs, zero at first, which one operation reads
    /// and updates.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn state(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.state_as(name, CacheFormat::F32, shape)
    }

    /// Adds a state in a format: it defines how each value is stored, and the state's size
    /// ([`Graph::state_words`]) and element type ([`Graph::dtype`]) on the device.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn state_as(
        &mut self,
        name: &str,
        format: CacheFormat,
        shape: impl Into<Shape>,
    ) -> Result<Node> {
        self.fed(FedKind::State(format), name, shape)
    }

    fn fed(&mut self, kind: FedKind, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        let (what, shape) = (kind.name(), shape.into());
        if self.graph().fed(|_| true).any(|(other, ..)| other == name) {
            return Err(self.fault(format_args!("{what} {name}: the name is taken")));
        }
        self.check_shape(&format!("{what} {name}"), shape)?;
        Ok(self.push(
            Operation::Fed(Fed {
                kind,
                name: name.to_owned(),
            }),
            shape,
        ))
    }

    /// The shape of row numbers: u32, or i32 of which negative ones are out of range.
    pub(crate) fn index_shape(&self, op: &str, node: Node) -> Result<Shape> {
        match self.typed(op, node)? {
            (shape, DType::U32 | DType::I32) => Ok(shape),
            (shape, dtype) => Err(self.fault(format_args!(
                "{op}: operand {node} {shape:?} is {}, row numbers are needed",
                dtype.wgsl()
            ))),
        }
    }
}

impl Graph {
    /// The inputs in the order they were added: name, node and shape.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.fed(|kind| matches!(kind, FedKind::Input | FedKind::Indices | FedKind::Integers))
    }

    /// The parameters in the order they were added: name, node and shape.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.fed(|kind| matches!(kind, FedKind::Parameter(_)))
    }

    /// The states in the order they were added: name, node and shape.
    pub fn states(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.fed(|kind| matches!(kind, FedKind::State(_)))
    }

    fn fed(&self, is_wanted: fn(FedKind) -> bool) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.nodes
            .iter()
            .filter_map(move |(&node, definition)| match &definition.operation {
                Operation::Fed(fed) if is_wanted(fed.kind) => {
                    Some((fed.name.as_str(), node, definition.shape))
                }
                _ => None,
            })
    }

    /// Elements of the view that feeds a state: values of f32, or words of 32 bits that hold values
    /// of another format.
    ///
    /// # Errors
    /// `Invalid` if the node is not a state of this graph or has unbound letters.
    pub fn state_words(&self, node: Node) -> Result<usize> {
        let shape = self.shape(node).map_err(|error| error.at("state_words"))?;
        match (self.nodes[&node].operation.state_format(), shape.sizes()) {
            (Some(format), Some(sizes)) => Ok(words(format, &sizes)),
            _ => Err(Error::invalid(format!(
                "state_words: node {node} is no state whose letters are bound"
            ))),
        }
    }

    /// The elements of a view that feeds or receives a value.
    pub(crate) fn view_len(&self, node: Node) -> usize {
        let definition = &self.nodes[&node];
        match definition.operation.state_format() {
            Some(format) => words(format, &definition.shape.fixed()),
            None => definition.shape.len(),
        }
    }
}

/// Words of a state of these sizes: the last are columns, those before it tokens, the others items.
fn words(format: CacheFormat, sizes: &[usize]) -> usize {
    let (columns, rest) = sizes
        .split_last()
        .map_or((1, &[][..]), |(last, rest)| (*last, rest));
    let (rows, items) = rest
        .split_last()
        .map_or((1, &[][..]), |(last, rest)| (*last, rest));
    items.iter().product::<usize>() * format.words(rows, columns)
}
