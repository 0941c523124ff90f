//! One of two values, element by element.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, ValueType,
    Values, View,
};

/// `a` where the condition is not 0, `b` elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Select {
    pub condition: Node,
    pub a: Node,
    pub b: Node,
}

impl Op for Select {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.condition, &mut self.a, &mut self.b]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.a)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let [condition, a, b] = [self.condition, self.a, self.b].map(|node| &values[&node]);
        Ok(Tensor::from_fn(shape, |place| {
            let chosen = if condition.data[place] != 0.0 { a } else { b };
            chosen.broadcast_element(shape, place)
        }))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        for (operand, is_first) in [(self.a, true), (self.b, false)] {
            pass.give(operand, |pass| {
                let zero = pass.builder.constant(&[0.0], [1, 1])?;
                let (a, b) = if is_first { (g, zero) } else { (zero, g) };
                let part = pass.builder.select(self.condition, a, b)?;
                pass.reduce_like(part, operand)
            })?;
        }
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [condition, a, b] = [self.condition, self.a, self.b].map(|node| lowering.views[&node]);
        lowering.plan.select(condition, a, b, y)
    }
}

impl Call for Select {
    const NAME: &'static str = "select";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.select(text.node(0)?, text.node(1)?, text.node(2)?)
    }
}

impl GraphBuilder {
    /// Adds a choice, element by element: `a` where the condition (i32) is not 0, `b` elsewhere.
    /// Both have one type.
    ///
    /// # Shapes
    /// All three repeat to one shape, as in [`GraphBuilder::add`].
    /// # Errors
    /// `Invalid` if the shapes or types do not fit or a node is not of this graph.
    pub fn select(&mut self, condition: Node, a: Node, b: Node) -> Result<Node> {
        let shape = self.shape_as("select", condition, DType::I32)?;
        let ((a_shape, dtype), (b_shape, other)) =
            (self.typed("select", a)?, self.typed("select", b)?);
        let whole = shape.joint(a_shape).and_then(|whole| whole.joint(b_shape));
        let Some(whole) = whole.filter(|_| dtype == other) else {
            let (dtype, other) = (dtype.wgsl(), other.wgsl());
            return Err(self.fault(format_args!(
                "select: condition {shape:?}, {a_shape:?} {dtype} or {b_shape:?} {other} do not fit"
            )));
        };
        let condition = self.broadcast(condition, whole)?;
        let mut repeated = |node, shape: Shape| {
            if shape.broadcasts_to(whole) {
                Ok(node)
            } else {
                self.broadcast(node, whole)
            }
        };
        let (a, b) = (repeated(a, a_shape)?, repeated(b, b_shape)?);
        Ok(self.push(Select { condition, a, b }, whole))
    }
}
