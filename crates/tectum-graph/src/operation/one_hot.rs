//! Class numbers as rows of zeros and a one.

use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View,
};
use crate::MAX_RANK;

/// `y[.., j]` is 1 where `j = indices[..]`, else 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneHot {
    pub indices: Node,
}

impl Op for OneHot {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.indices]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (indices, [_, classes]) = (&values[&self.indices], shape.matrix());
        Ok(Tensor::from_fn(shape, |place| {
            f64::from(u8::from(
                indices.data[place / classes] == (place % classes) as f64,
            ))
        }))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        lowering
            .plan
            .one_hot(lowering.rows(self.indices), y, shape.matrix()[1])
    }

    fn rows(&self, _: &Graph, indices: Node, shape: Shape) -> Option<usize> {
        let sizes = shape.sizes()?;
        (indices == self.indices).then(|| sizes.last().copied())?
    }
}

impl Call for OneHot {
    const NAME: &'static str = "one_hot";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.one_hot_as(text.node(0)?, shape)
    }
}

impl GraphBuilder {
    /// Adds class numbers as rows of `classes` zeros with a 1 at the class; a number out of range
    /// gives zeros.
    ///
    /// # Shapes
    /// `indices` [..] as [`GraphBuilder::indices`] adds them, of at most seven dimensions; gives
    /// [.., classes].
    /// # Errors
    /// `Invalid` if `indices` has more dimensions or is not row numbers, `classes` is 0, or the
    /// node is not of this graph.
    pub fn one_hot(&mut self, indices: Node, classes: usize) -> Result<Node> {
        let shape = self.index_shape("one_hot", indices)?;
        if shape.rank() >= MAX_RANK {
            return Err(self.fault(format_args!(
                "one_hot: indices {shape:?}: at most seven dimensions are possible"
            )));
        }
        self.one_hot_as(
            indices,
            Shape::of(&[shape.dims(), &[classes.into()]].concat()),
        )
    }

    fn one_hot_as(&mut self, indices: Node, shape: Shape) -> Result<Node> {
        let rows = self.index_shape("one_hot", indices)?;
        self.check_shape("one_hot", shape)?;
        if shape.dims().split_last().map(|(_, rows)| rows) != Some(rows.dims()) {
            return Err(self.fault(format_args!("one_hot: indices {rows:?} to {shape:?}")));
        }
        Ok(self.push(OneHot { indices }, shape))
    }
}
