//! Logarithm of the sum of exponentials.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View,
};

/// log Σ exp(x) over the last axis, which is kept with size 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSumExp {
    pub x: Node,
}

impl Op for LogSumExp {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let data = x.data.chunks(x.shape.matrix()[1]).map(|row| {
            let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            greatest + row.iter().map(|x| (x - greatest).exp()).sum::<f64>().ln()
        });
        Ok(Tensor {
            shape,
            data: data.collect(),
        })
    }

    /// g ⊙ softmax(x)
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| {
            let shape = pass.builder.graph().shape(self.x)?;
            let soft = pass.builder.softmax(self.x, shape.rank() - 1)?;
            let repeated = pass.builder.broadcast(g, shape)?;
            pass.builder.mul(soft, repeated)
        })
    }

    /// The softmax of the maximum is 1 / Σ exp(x − max), at least 1/n: max x − log max softmax(x)
    /// neither overflows nor underflows.
    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let (x, [rows, cols]) = (lowering.views[&self.x], lowering.shape(self.x).matrix());
        let plan = &mut *lowering.plan;
        let soft = plan.temp(DType::F32, rows * cols);
        let [greatest, share, log] = [(); 3].map(|()| plan.temp(DType::F32, rows));
        plan.max(x, greatest, rows, cols)?;
        plan.softmax(x, soft, rows, cols, 1.0)?;
        plan.max(soft, share, rows, cols)?;
        plan.unary("log", share, log)?;
        plan.binary("sub", greatest, log, y)
    }
}

impl Call for LogSumExp {
    const NAME: &'static str = "logsumexp";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.logsumexp(text.node(0)?)
    }
}

impl GraphBuilder {
    /// Adds log Σ exp(x) over the last axis.
    ///
    /// # Shapes
    /// `x` [.., n]; gives [.., 1].
    /// # Numerics
    /// Relative to the row's maximum, so it neither overflows nor underflows.
    /// # Errors
    /// `Invalid` if `x` has no axis or the node is not of this graph.
    pub fn logsumexp(&mut self, x: Node) -> Result<Node> {
        let shape = self.shape("logsumexp", x)?;
        match shape.rank() {
            0 => Err(self.fault(format_args!("logsumexp: {shape:?} has no axis"))),
            rank => Ok(self.push(LogSumExp { x }, shape.with(rank - 1, 1))),
        }
    }
}
