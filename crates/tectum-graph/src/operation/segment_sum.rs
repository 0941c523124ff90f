//! Sums of rows by row number: the gradient of a gather.

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View,
};

/// `y[r, j] = Σ x[.., j]` over all rows whose index is r.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSum {
    pub x: Node,
    pub indices: Node,
}

impl Op for SegmentSum {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x, &mut self.indices]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (x, indices) = (&values[&self.x], &values[&self.indices]);
        let [rows, cols] = shape.matrix();
        let mut data = vec![0.0; rows * cols];
        for (x, index) in x
            .data
            .chunks(cols)
            .zip(&indices.data)
            .filter(|(_, index)| (0.0..rows as f64).contains(*index))
        {
            data[*index as usize * cols..][..cols]
                .iter_mut()
                .zip(x)
                .for_each(|(sum, x)| *sum += x);
        }
        Ok(Tensor { shape, data })
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| pass.builder.gather(g, self.indices))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        lowering.plan.segment_sum(
            lowering.views[&self.x],
            lowering.rows(self.indices),
            y,
            shape.matrix()[1],
        )
    }
}

impl Call for SegmentSum {
    const NAME: &'static str = "segment_sum";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.segment_sum(text.node(0)?, text.node(1)?, shape)
    }
}

impl GraphBuilder {
    /// Adds the sums of rows with the same index: `y[r, j] = Σ x[.., j]` over all rows whose index
    /// is r; a row of y without any is zero. An index out of range adds nothing.
    ///
    /// # Shapes
    /// `x` [.., n], `indices` [..] as [`GraphBuilder::indices`] adds them; gives `shape`, which is
    /// [rows.., n] with the rows counted over all dimensions except the last.
    /// # Errors
    /// `Invalid` if the shapes do not fit, `indices` is not row numbers, or a node is not of this
    /// graph.
    pub fn segment_sum(&mut self, x: Node, indices: Node, shape: impl Into<Shape>) -> Result<Node> {
        let (x_shape, indices_shape, shape) = (
            self.shape("segment_sum", x)?,
            self.index_shape("segment_sum", indices)?,
            shape.into(),
        );
        self.check_shape("segment_sum", shape)?;
        let fits = x_shape
            .dims()
            .split_last()
            .is_some_and(|(last, rows)| rows == indices_shape.dims() && *last == shape.last());
        if !fits || shape.rank() < 2 {
            let shapes = format!("x {x_shape:?}, indices {indices_shape:?}, to {shape:?}");
            return Err(self.fault(format_args!(
                "segment_sum: {shapes}: x [.., n], indices [..], to [rows.., n] are needed"
            )));
        }
        Ok(self.push(SegmentSum { x, indices }, shape))
    }
}
