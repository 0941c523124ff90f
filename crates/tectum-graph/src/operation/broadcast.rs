//! Repetition of a value along axes.

use tectum::Strided;

use super::{
    Adjoints, Call, CallText, Constant, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result,
    Shape, Tensor, ValueType, Values, View,
};

/// Repeats a value along axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broadcast {
    pub x: Node,
}

impl Op for Broadcast {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.x)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let (sizes, to, from) = (shape.fixed(), shape.strides(), x.shape.strides_in(shape));
        let source = |place: usize| {
            (0..sizes.len())
                .map(|axis| place / to[axis] % sizes[axis] * from[axis])
                .sum::<usize>()
        };
        Ok(Tensor::from_fn(shape, |place| x.data[source(place)]))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| pass.reduce_like(g, self.x))
    }

    /// A copy in which the axes that repeat have stride 0.
    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let (view, from) = (lowering.views[&self.x], lowering.shape(self.x));
        if let (Operation::Constant(Constant { data }), 1) =
            (&lowering.graph.nodes[&self.x].operation, from.len())
        {
            return lowering.plan.fill(y, data[0].to_bits());
        }
        let axes: Vec<Strided> = shape
            .fixed()
            .into_iter()
            .zip(from.strides_in(shape))
            .map(|(size, stride)| Strided { size, stride })
            .collect();
        lowering.plan.copy_strided(view, 0, &axes, y)
    }
}

impl Call for Broadcast {
    const NAME: &'static str = "broadcast";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.broadcast(text.node(0)?, shape)
    }
}

impl GraphBuilder {
    /// Repeats a value to a shape: aligned at the last axis, each of its dimensions is that of the
    /// shape or 1; missing ones count as 1.
    ///
    /// # Errors
    /// `Invalid` if a dimension differs and is not 1, or the node is not of this graph.
    pub fn broadcast(&mut self, x: Node, shape: impl Into<Shape>) -> Result<Node> {
        let ((from, _), shape) = (self.typed("broadcast", x)?, shape.into());
        self.check_shape("broadcast", shape)?;
        if from == shape {
            return Ok(x);
        }
        if !from.repeats_to(shape) {
            return Err(self.fault(format_args!(
                "broadcast: {from:?} does not repeat to {shape:?}"
            )));
        }
        Ok(self.push(Broadcast { x }, shape))
    }

    /// Two values repeated to the shape that both repeat to; an operand that operations repeat
    /// themselves stays as it is.
    ///
    /// # Errors
    /// `Invalid` if there is no such shape.
    pub(super) fn aligned(&mut self, op: &str, a: Node, b: Node) -> Result<(Node, Node, Shape)> {
        let ((a_shape, _), (b_shape, _)) = (self.typed(op, a)?, self.typed(op, b)?);
        if b_shape.broadcasts_to(a_shape) {
            return Ok((a, b, a_shape));
        }
        let Some(shape) = a_shape.joint(b_shape) else {
            return Err(self.fault(format_args!(
                "{op}: lhs {a_shape:?}, rhs {b_shape:?}: neither repeats to the other"
            )));
        };
        let a = self.broadcast(a, shape)?;
        let b = if b_shape.broadcasts_to(shape) {
            b
        } else {
            self.broadcast(b, shape)?
        };
        Ok((a, b, shape))
    }
}

impl Graph {
    /// The operand of a broadcast, if operations repeat it themselves.
    pub(super) fn unbroadcast(&self, node: Node, shape: Shape) -> Option<Node> {
        match self.nodes[&node].operation {
            Operation::Broadcast(Broadcast { x }) if self.nodes[&x].shape.broadcasts_to(shape) => {
                Some(x)
            }
            _ => None,
        }
    }
}
