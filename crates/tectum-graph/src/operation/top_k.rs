//! The columns of the greatest elements of each row.

use std::cmp::Ordering;

use tectum::DType;
use tectum::operation::reduce::top_k::MAX_K;

use super::{
    Adjoints, Call, CallText, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// As many columns as the result has: greater elements first, NaN before all, ties by the lower
/// column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopK {
    pub x: Node,
}

/// The order of elements: greater first, NaN before all.
fn order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
        (a, b) => b.cmp(&a),
    }
}

impl Op for TopK {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(DType::I32)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (x, [_, k]) = (&values[&self.x], shape.matrix());
        let mut data = Vec::with_capacity(shape.len());
        for row in x.data.chunks(x.shape.matrix()[1]) {
            let mut columns: Vec<usize> = (0..row.len()).collect();
            columns.sort_by(|a, b| order(row[*a], row[*b]).then(a.cmp(b)));
            data.extend(columns[..k].iter().map(|column| *column as f64));
        }
        Ok(Tensor { shape, data })
    }

    /// Numbers of columns are constant almost everywhere.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let [rows, k] = shape.matrix();
        let values = lowering.plan.temp(DType::F32, shape.len());
        lowering.plan.top_k(
            lowering.views[&self.x],
            values,
            y.reinterpret(DType::U32),
            rows,
            k,
        )
    }
}

impl Call for TopK {
    const NAME: &'static str = "top_k";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        match shape.last() {
            Dim::Size(k) => builder.top_k(text.node(0)?, k),
            Dim::Symbol(letter) => Err(crate::parse::fault(&format!("top_k of {letter} columns"))),
        }
    }
}

impl GraphBuilder {
    /// Adds the columns (i32) of the k greatest elements of each row: greater first, NaN before
    /// all, ties by the lower column. [`GraphBuilder::gather`] takes the elements.
    ///
    /// # Shapes
    /// `x` [.., n] f32; gives [.., k].
    /// # Errors
    /// `Invalid` unless 1 ≤ k ≤ min(n, 512), or if the last dimension is a letter or the node is
    /// not of this graph.
    pub fn top_k(&mut self, x: Node, k: usize) -> Result<Node> {
        let shape = self.shape("top_k", x)?;
        match shape.dims().last() {
            Some(Dim::Size(size)) if k > 0 && k <= MAX_K.min(*size) => {
                Ok(self.push(TopK { x }, shape.with(shape.rank() - 1, k)))
            }
            _ => Err(self.fault(format_args!(
                "top_k: {k} of {shape:?}; 1 to {MAX_K} of a known size are possible"
            ))),
        }
    }
}
