//! Sums.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Cow, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View,
};

/// A sum over axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reduce {
    pub axes: ReduceAxes,
    pub x: Node,
}

/// What a sum runs over: everything, all axes but the last, the last, or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReduceAxes {
    All,
    Rows,
    Columns,
    Axis(usize),
}

impl Op for Reduce {
    fn arguments(&self, operands: String) -> String {
        match self.axes {
            ReduceAxes::Axis(axis) => format!("{operands}, axis {axis}"),
            _ => operands,
        }
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let [rows, cols] = x.shape.matrix();
        Ok(match self.axes {
            ReduceAxes::All => Tensor {
                shape,
                data: vec![x.data.iter().sum()],
            },
            ReduceAxes::Rows => Tensor::from_fn(shape, |col| {
                (0..rows).map(|row| x.data[row * cols + col]).sum()
            }),
            ReduceAxes::Columns => Tensor::from_fn(shape, |row| {
                (0..cols).map(|col| x.data[row * cols + col]).sum()
            }),
            ReduceAxes::Axis(axis) => {
                let [_, count, inner] = x.shape.around(axis);
                Tensor::from_fn(shape, |place| {
                    (0..count)
                        .map(|i| x.data[(place / inner * count + i) * inner + place % inner])
                        .sum()
                })
            }
        })
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| {
            let shape = pass.builder.graph().shape(self.x)?;
            let ReduceAxes::Axis(axis) = self.axes else {
                return pass.builder.broadcast(g, shape);
            };
            // The axis is moved first, where values repeat, and back.
            let (mut order, mut dims) =
                ((0..shape.rank()).collect::<Vec<_>>(), shape.dims().to_vec());
            order.swap(0, axis);
            dims.swap(0, axis);
            let first = pass.builder.permute(g, &order)?;
            let repeated = pass.builder.broadcast(first, Shape::of(&dims))?;
            pass.builder.permute(repeated, &order)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let (x, shape) = (lowering.views[&self.x], lowering.shape(self.x));
        let [rows, cols] = shape.matrix();
        match self.axes {
            ReduceAxes::All => lowering.plan.sum(x, y, 1, rows * cols),
            ReduceAxes::Rows => lowering.plan.sum_columns(x, y, rows, cols),
            ReduceAxes::Columns => lowering.plan.sum(x, y, rows, cols),
            ReduceAxes::Axis(axis) => {
                let [outer, count, inner] = shape.around(axis);
                if outer == 1 {
                    return lowering.plan.sum_columns(x, y, count, inner);
                }
                // The axis is moved last, then summed over.
                let turned = lowering.plan.temp(DType::F32, outer * count * inner);
                lowering.plan.transpose(x, turned, [outer, count, inner])?;
                lowering.plan.sum(turned, y, outer * inner, count)
            }
        }
    }
}

impl Call for Reduce {
    const NAME: &'static str = "sum";

    fn name(&self) -> Cow<'static, str> {
        match self.axes {
            ReduceAxes::All => Self::NAME.into(),
            ReduceAxes::Rows => "sum_over_rows".into(),
            ReduceAxes::Columns => "sum_over_columns".into(),
            ReduceAxes::Axis(_) => "sum_axis".into(),
        }
    }

    fn is_named(name: &str) -> bool {
        matches!(
            name,
            "sum" | "sum_over_rows" | "sum_over_columns" | "sum_axis"
        )
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let x = text.node(0)?;
        match text.name {
            "sum" => builder.sum(x),
            "sum_over_rows" => builder.sum_over_rows(x),
            "sum_over_columns" => builder.sum_over_columns(x),
            _ => builder.sum_axis(x, text.number("axis")?),
        }
    }
}

impl GraphBuilder {
    /// Adds the sum of all elements.
    ///
    /// # Shapes
    /// Gives [1, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::All)
    }

    /// Adds the sum of the rows: y\[col\] = Σ x[.., col].
    ///
    /// # Shapes
    /// `x` [.., n]; gives [1, n].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_rows(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::Rows)
    }

    /// Adds the sum of the columns: y\[row\] = Σ x[row, ..].
    ///
    /// # Shapes
    /// `x` [.., m, n]; gives [.., m, 1].
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sum_over_columns(&mut self, x: Node) -> Result<Node> {
        self.reduce(x, ReduceAxes::Columns)
    }

    /// Adds the sum over one axis, which is kept with size 1.
    ///
    /// # Errors
    /// `Invalid` if there is no such axis or the node is not of this graph.
    pub fn sum_axis(&mut self, x: Node, axis: usize) -> Result<Node> {
        let shape = self.shape("sum_axis", x)?;
        self.check_axis("sum_axis", shape, axis)?;
        match axis {
            _ if axis + 1 == shape.rank() => self.reduce(x, ReduceAxes::Columns),
            0 if shape.rank() == 2 => self.reduce(x, ReduceAxes::Rows),
            _ => self.reduce(x, ReduceAxes::Axis(axis)),
        }
    }

    /// Sums to a shape that [`GraphBuilder::broadcast`] expands to the shape of `x`.
    pub(crate) fn reduce_to(&mut self, x: Node, shape: Shape) -> Result<Node> {
        let from = self.shape("reduce", x)?;
        let sum = match () {
            () if shape == from => return Ok(x),
            () if shape.trimmed().is_empty() => self.reduce(x, ReduceAxes::All)?,
            () if shape.is_row_of(from) => self.reduce(x, ReduceAxes::Rows)?,
            () if shape.rank() == from.rank() && shape == from.with(from.rank() - 1, 1) => {
                self.reduce(x, ReduceAxes::Columns)?
            }
            () if shape.repeats_to(from) && !shape.broadcasts_to(from) => {
                let (kept, first) = (shape.trimmed(), from.rank() - shape.trimmed().len());
                let repeats = |axis: &usize| {
                    from.dims()[*axis] != Dim::Size(1)
                        && (*axis < first || kept[*axis - first] == Dim::Size(1))
                };
                (0..from.rank())
                    .filter(repeats)
                    .try_fold(x, |sum, axis| self.sum_axis(sum, axis))?
            }
            () if shape.broadcasts_to(from) => {
                let repeated = from.rank() - shape.trimmed().len();
                (0..repeated)
                    .filter(|&axis| from.dims()[axis] != Dim::Size(1))
                    .try_fold(x, |sum, axis| self.sum_axis(sum, axis))?
            }
            () => {
                return Err(self.fault(format_args!(
                    "reduce: {shape:?} does not repeat to {from:?}"
                )));
            }
        };
        self.reshape(sum, shape)
    }

    fn reduce(&mut self, x: Node, axes: ReduceAxes) -> Result<Node> {
        let from = self.shape(Reduce::NAME, x)?;
        let shape = match axes {
            ReduceAxes::All => Shape::from([1, 1]),
            ReduceAxes::Rows => Shape::of(&[Dim::Size(1), from.last()]),
            ReduceAxes::Columns if from.rank() == 0 => {
                return Err(self.fault(format_args!("sum: {from:?} has no axis")));
            }
            ReduceAxes::Columns => from.with(from.rank() - 1, 1),
            ReduceAxes::Axis(axis) => from.with(axis, 1),
        };
        Ok(self.push(Reduce { axes, x }, shape))
    }
}
