//! The same elements in another shape.

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, ValueType,
    Values, View,
};

/// The same elements in another shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reshape {
    pub x: Node,
}

impl Op for Reshape {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.x)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        Ok(Tensor {
            shape,
            data: values[&self.x].data.clone(),
        })
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| {
            let shape = pass.builder.graph().shape(self.x)?;
            pass.builder.reshape(g, shape)
        })
    }

    fn is_view(&self) -> bool {
        true
    }

    fn alias(&self, lowering: &Lowering<'_>, _: Shape) -> Option<View> {
        lowering.views.get(&self.x).copied()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        lowering.plan.copy(lowering.views[&self.x], y)
    }
}

impl Call for Reshape {
    const NAME: &'static str = "reshape";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.reshape(text.node(0)?, shape)
    }
}

impl GraphBuilder {
    /// Adds the same elements in another shape.
    ///
    /// # Errors
    /// `Invalid` if the shapes differ in their number of elements, letter for letter, or the node
    /// is not of this graph.
    pub fn reshape(&mut self, x: Node, shape: impl Into<Shape>) -> Result<Node> {
        let ((from, _), shape) = (self.typed("reshape", x)?, shape.into());
        if from == shape {
            return Ok(x);
        }
        self.check_shape("reshape", shape)?;
        if from.content() != shape.content() {
            return Err(self.fault(format_args!(
                "reshape: {from:?} to {shape:?}: they do not hold as many elements"
            )));
        }
        Ok(self.push(Reshape { x }, shape))
    }
}
