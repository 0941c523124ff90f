//! Operations of other crates: kernels with a shape rule, a meaning in float64 and a gradient.

use std::fmt;
use std::sync::Arc;

use tectum::{Error, PlanBuilder};

use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View,
};
use crate::parse::fault;

/// An operation that another crate defines, usually by a kernel; [`GraphBuilder::custom`] adds it
/// to a graph.
///
/// It is a function of its operands, which are values of f32: it keeps no state, and the same
/// operands give the same value. Passes then treat it as any other operation: it is computed once
/// for the same operands, folded for constants, removed if nothing reads it; never fused.
/// `examples/custom_op.rs` of this crate is a whole one.
///
/// Shape rule, meaning and launches must agree. Compare [`Graph::evaluate`] with a run on a device,
/// and [`Graph::gradients`] with differences of it.
pub trait CustomOp: fmt::Debug + Send + Sync {
    /// Its name in text and errors: letters, digits and `_`.
    fn name(&self) -> &str;

    /// The shape of its value, from those of its operands. Dimensions may be letters; when they are
    /// bound, the rule is asked again.
    ///
    /// # Errors
    /// Operands that do not fit, with what is needed; name and node are added.
    fn shape(&self, operands: &[Shape]) -> Result<Shape>;

    /// Its value in float64: the reference for all devices.
    ///
    /// # Errors
    /// Values that it has no meaning for.
    fn evaluate(&self, operands: &[&Tensor]) -> Result<Tensor>;

    /// Records the launches that write its value to `y`, every element of it; other memory that
    /// they need is [temporary](PlanBuilder::temp). The operands are only read. No shape has
    /// letters here.
    ///
    /// # Errors
    /// As [`PlanBuilder::launch`].
    fn record(
        &self,
        plan: &mut PlanBuilder,
        operands: &[(View, Shape)],
        y: (View, Shape),
    ) -> Result<()>;

    /// Builds the gradient of a loss at each operand, of that operand's shape, from the gradient
    /// `g` at the value `y`, with operations of graphs; `None` for an operand that the value does
    /// not depend on smoothly. Operations with a gradient give second gradients too.
    ///
    /// # Errors
    /// `Unsupported` if it has no gradient, as without this method.
    fn gradient(
        &self,
        _builder: &mut GraphBuilder,
        _operands: &[Node],
        _y: Node,
        _g: Node,
    ) -> Result<Vec<Option<Node>>> {
        Err(Error::unsupported("it has no gradient"))
    }
}

/// Any operation of another crate.
pub(crate) type AnyCustomOp = Arc<dyn CustomOp>;

/// An operation of another crate with its operands.
#[derive(Debug, Clone)]
pub(crate) struct Custom {
    op: AnyCustomOp,
    operands: Vec<Node>,
}

impl Custom {
    /// Whether it is the same operation, with the same settings: the same object.
    pub(crate) fn is_same_op(&self, other: &Custom) -> bool {
        Arc::ptr_eq(&self.op, &other.op)
    }

    fn at(&self, error: Error) -> Error {
        error.at(format_args!("custom {}", self.op.name()))
    }

    fn fault(&self, message: fmt::Arguments<'_>) -> Error {
        self.at(Error::invalid(message.to_string()))
    }

    fn shapes(&self, graph: &Graph) -> Vec<Shape> {
        self.operands
            .iter()
            .map(|operand| graph.nodes[operand].shape)
            .collect()
    }
}

impl Op for Custom {
    fn arguments(&self, operands: String) -> String {
        let separator = if operands.is_empty() { "" } else { ", " };
        format!("{}{separator}{operands}", self.op.name())
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        self.operands.iter_mut().collect()
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let operands: Vec<&Tensor> = self
            .operands
            .iter()
            .map(|operand| &values[operand])
            .collect();
        let value = self
            .op
            .evaluate(&operands)
            .map_err(|error| self.at(error))?;
        if value.shape == shape {
            Ok(value)
        } else {
            Err(self.fault(format_args!(
                "its meaning is {:?}, its shape rule gives {shape:?}",
                value.shape
            )))
        }
    }

    fn differentiate(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let gradients = self
            .op
            .gradient(&mut pass.builder, &self.operands, y, g)
            .map_err(|error| self.at(error))?;
        if gradients.len() != self.operands.len() {
            return Err(self.fault(format_args!(
                "{} gradients for {} operands",
                gradients.len(),
                self.operands.len()
            )));
        }
        for (&operand, gradient) in self.operands.iter().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let shapes = [
                pass.builder
                    .graph()
                    .shape(gradient)
                    .map_err(|error| self.at(error))?,
                pass.builder.graph().shape(operand)?,
            ];
            if shapes[0] != shapes[1] {
                return Err(self.fault(format_args!(
                    "the gradient at operand {operand} {:?} is {:?}",
                    shapes[1], shapes[0]
                )));
            }
            pass.give(operand, |_| Ok(gradient))?;
        }
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let operands: Vec<(View, Shape)> = self
            .operands
            .iter()
            .map(|operand| (lowering.views[operand], lowering.shape(*operand)))
            .collect();
        self.op
            .record(lowering.plan, &operands, (y, shape))
            .map_err(|error| self.at(error))?;
        if lowering.plan.is_written(&y) {
            Ok(())
        } else {
            Err(self.fault(format_args!("no launch writes its value")))
        }
    }

    fn check_bound(&self, graph: &Graph, shape: Shape) -> Result<()> {
        let shapes = self.shapes(graph);
        let found = self.op.shape(&shapes).map_err(|error| self.at(error))?;
        if found == shape {
            Ok(())
        } else {
            Err(self.fault(format_args!(
                "{shapes:?} give {found:?}, and {shape:?} with letters"
            )))
        }
    }
}

impl Call for Custom {
    const NAME: &'static str = "custom";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let name = text.at(0)?;
        let Some(op) = builder.known_custom(name) else {
            return Err(fault(&format!(
                "no custom operation {name} is given; `Graph::parse_with` takes those of a text"
            )));
        };
        let operands: Result<Vec<Node>> = (1..text.arguments.len())
            .map(|index| text.node(index))
            .collect();
        builder.custom(op, &operands?)
    }
}

impl GraphBuilder {
    /// Adds an operation of another crate.
    ///
    /// The same object with the same operands is the same value: share one `Arc` where settings are
    /// equal.
    ///
    /// # Errors
    /// `Invalid` for a name of other characters; as [`CustomOp::shape`]; if an operand is no value
    /// of f32 or not of this graph.
    pub fn custom(&mut self, op: Arc<dyn CustomOp>, operands: &[Node]) -> Result<Node> {
        let name = format!("custom {}", op.name());
        if op.name().is_empty()
            || !op
                .name()
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_')
        {
            return Err(self.fault(format_args!(
                "custom {:?}: a name of letters, digits and _ is needed",
                op.name()
            )));
        }
        let shapes = operands
            .iter()
            .map(|operand| self.shape(&name, *operand))
            .collect::<Result<Vec<_>>>()?;
        let shape = op
            .shape(&shapes)
            .map_err(|error| self.fault(format_args!("{name}: {error}")))?;
        self.check_shape(&name, shape)?;
        Ok(self.push(
            Custom {
                op,
                operands: operands.to_vec(),
            },
            shape,
        ))
    }
}
