//! Rows of a table by their numbers.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};
use crate::MAX_RANK;

/// `y[.., j] = table[indices[..], j]`
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gather {
    pub table: Node,
    pub indices: Node,
}

impl Op for Gather {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.table, &mut self.indices]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.table)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (table, indices) = (&values[&self.table], &values[&self.indices]);
        let [rows, cols] = table.shape.matrix();
        Ok(Tensor::from_fn(shape, |place| {
            match indices.row(place / cols) {
                Some(row) if row < rows => table.data[row * cols + place % cols],
                _ => 0.0,
            }
        }))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.table, |pass| {
            let shape = pass.builder.graph().shape(self.table)?;
            pass.builder.segment_sum(g, self.indices, shape)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let faults = *lowering
            .faults
            .get_or_insert_with(|| lowering.plan.temp(DType::U32, 1));
        let cols = lowering.shape(self.table).matrix()[1];
        let indices = lowering.rows(self.indices);
        lowering
            .plan
            .gather(lowering.views[&self.table], indices, y, faults, cols)
    }

    fn rows(&self, graph: &Graph, indices: Node, _: Shape) -> Option<usize> {
        let table = graph.shape(self.table).ok()?.sizes()?;
        let (_, rows) = table.split_last()?;
        (indices == self.indices).then(|| rows.iter().product())
    }
}

impl Call for Gather {
    const NAME: &'static str = "gather";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.gather(text.node(0)?, text.node(1)?)
    }
}

impl GraphBuilder {
    /// Adds rows of a table by index: `y[.., j] = table[indices[..], j]`. An index out of range
    /// gives zeros.
    ///
    /// # Shapes
    /// `table` [rows.., n], whose rows are counted over all dimensions except the last, `indices`
    /// [..] as [`GraphBuilder::indices`] adds them; gives [.., n].
    /// # Errors
    /// `Invalid` if the table has fewer than two dimensions, `indices` has more than seven or is
    /// not row numbers, or a node is not of this graph.
    pub fn gather(&mut self, table: Node, indices: Node) -> Result<Node> {
        let (table_shape, _) = self.typed("gather", table)?;
        let indices_shape = self.index_shape("gather", indices)?;
        if table_shape.rank() < 2 || indices_shape.rank() >= MAX_RANK {
            let shapes = format!("table {table_shape:?}, indices {indices_shape:?}");
            return Err(self.fault(format_args!("gather: {shapes}: a table [rows.., n] and at most seven dimensions of indices are needed")));
        }
        let shape = Shape::of(&[indices_shape.dims(), &[table_shape.last()]].concat());
        self.check_shape("gather", shape)?;
        Ok(self.push(Gather { table, indices }, shape))
    }
}
