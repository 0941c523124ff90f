//! The maximum of each row.

use tectum::Activation;

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View,
};

/// The maximum over the last axis, which is kept with size 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaxOverColumns {
    pub x: Node,
}

impl Op for MaxOverColumns {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let greater = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
        let data = x
            .data
            .chunks(x.shape.matrix()[1])
            .map(|row| row.iter().copied().fold(f64::NEG_INFINITY, greater));
        Ok(Tensor {
            shape,
            data: data.collect(),
        })
    }

    /// Shared equally by the elements that have the maximum: those from which it does not differ by
    /// more than 0.
    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| {
            let builder = &mut pass.builder;
            let shape = builder.graph().shape(self.x)?;
            let greatest = builder.broadcast(node, shape)?;
            let missing = builder.sub(greatest, self.x)?;
            let one = builder.constant(&[1.0], [1, 1])?;
            let ones = builder.broadcast(one, shape)?;
            let below = builder.activation_grad(Activation::Relu, missing, ones)?;
            let is_greatest = builder.sub(ones, below)?;
            let count = builder.sum_over_columns(is_greatest)?;
            let share = builder.div(g, count)?;
            let share = builder.broadcast(share, shape)?;
            builder.mul(is_greatest, share)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [rows, cols] = lowering.shape(self.x).matrix();
        lowering.plan.max(lowering.views[&self.x], y, rows, cols)
    }
}

impl Call for MaxOverColumns {
    const NAME: &'static str = "max_over_columns";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.max_over_columns(text.node(0)?)
    }
}

impl GraphBuilder {
    /// Adds the maximum over the last axis; its gradient is shared equally by all elements that
    /// have it.
    ///
    /// # Shapes
    /// `x` [.., n]; gives [.., 1].
    /// # Errors
    /// `Invalid` if `x` has no axis or the node is not of this graph.
    pub fn max_over_columns(&mut self, x: Node) -> Result<Node> {
        let shape = self.shape("max_over_columns", x)?;
        match shape.rank() {
            0 => Err(self.fault(format_args!("max_over_columns: {shape:?} has no axis"))),
            rank => Ok(self.push(MaxOverColumns { x }, shape.with(rank - 1, 1))),
        }
    }
}
