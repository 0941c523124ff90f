//! Softmax.

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View,
};

/// Over the last axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Softmax {
    pub x: Node,
}

impl Op for Softmax {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, _: Shape, values: &Values) -> Result<Tensor> {
        Ok(values[&self.x].map_rows(|row| {
            let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|x| *x = (*x - greatest).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }))
    }

    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| pass.builder.softmax_adjoint(node, g))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let [rows, cols] = shape.matrix();
        lowering
            .plan
            .softmax(lowering.views[&self.x], y, rows, cols, 1.0)
    }
}

impl Call for Softmax {
    const NAME: &'static str = "softmax";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.softmax(text.node(0)?, shape.rank().saturating_sub(1))
    }
}

impl GraphBuilder {
    /// Adds softmax over an axis.
    ///
    /// # Errors
    /// `Invalid` if there is no such axis or the node is not of this graph.
    pub fn softmax(&mut self, x: Node, axis: usize) -> Result<Node> {
        let shape = self.shape("softmax", x)?;
        self.check_axis("softmax", shape, axis)?;
        if axis + 1 == shape.rank() {
            return Ok(self.push(Softmax { x }, shape));
        }
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        order.swap(axis, shape.rank() - 1);
        let last = self.permute(x, &order)?;
        let soft = self.push(Softmax { x: last }, self.graph().shape(last)?);
        self.permute(soft, &order)
    }

    /// The gradient at the argument of a softmax over the last axis, from its result y: y ⊙ (g − Σ
    /// y ⊙ g).
    pub(super) fn softmax_adjoint(&mut self, y: Node, g: Node) -> Result<Node> {
        let product = self.mul(y, g)?;
        let sum = self.sum_over_columns(product)?;
        let sum = self.broadcast(sum, self.graph().shape(y)?)?;
        let difference = self.sub(g, sum)?;
        self.mul(y, difference)
    }
}
