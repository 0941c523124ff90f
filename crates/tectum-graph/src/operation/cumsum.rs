//! Running sums of rows.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, ValueType,
    Values, View,
};

/// Sums over the last axis up to each element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CumSum {
    pub x: Node,
    pub dtype: DType,
    /// Without the element itself.
    pub exclusive: bool,
    /// From the end of the row.
    pub reverse: bool,
}

impl Op for CumSum {
    fn arguments(&self, operands: String) -> String {
        let exclusive = if self.exclusive { ", exclusive" } else { "" };
        let reverse = if self.reverse { ", reverse" } else { "" };
        format!("{operands}{exclusive}{reverse}")
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(self.dtype)
    }

    fn evaluate(&self, _: Shape, values: &Values) -> Result<Tensor> {
        Ok(values[&self.x].map_rows(|row| {
            let mut sum = 0.0;
            let mut step = |x: &mut f64| {
                let before = sum;
                sum += *x;
                *x = if self.exclusive { before } else { sum };
            };
            if self.reverse {
                row.iter_mut().rev().for_each(&mut step)
            } else {
                row.iter_mut().for_each(&mut step)
            }
        }))
    }

    /// The running sums of the gradient from the other end.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self {
            x,
            dtype,
            exclusive,
            reverse,
        } = *self;
        match dtype {
            DType::F32 => pass.give(x, |pass| pass.builder.cumsum(g, exclusive, !reverse)),
            _ => Ok(()),
        }
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let (x, [rows, cols]) = (lowering.views[&self.x], lowering.shape(self.x).matrix());
        lowering
            .plan
            .cumsum(x, y, rows, cols, self.exclusive, self.reverse)
    }
}

impl Call for CumSum {
    const NAME: &'static str = "cumsum";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let has = |flag: &str| text.arguments.contains(&flag);
        builder.cumsum(text.node(0)?, has("exclusive"), has("reverse"))
    }
}

impl GraphBuilder {
    /// Adds the running sums over the last axis: `y[.., j] = Σ x[.., ..= j]`, without the element
    /// itself if `exclusive`, from the end with `reverse`.
    ///
    /// # Numerics
    /// As [`tectum::PlanBuilder::cumsum`].
    /// # Errors
    /// `Invalid` if `x` has no axis, is neither f32 nor i32, or the node is not of this graph.
    pub fn cumsum(&mut self, x: Node, exclusive: bool, reverse: bool) -> Result<Node> {
        let (shape, dtype) = self.typed("cumsum", x)?;
        if shape.rank() == 0 || !matches!(dtype, DType::F32 | DType::I32) {
            return Err(self.fault(format_args!(
                "cumsum: {shape:?} {}: rows of f32 or i32 are needed",
                dtype.wgsl()
            )));
        }
        Ok(self.push(
            CumSum {
                x,
                dtype,
                exclusive,
                reverse,
            },
            shape,
        ))
    }
}
