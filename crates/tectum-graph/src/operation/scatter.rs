//! Rows stored to a table by their numbers, or combined with its rows.

use tectum::{Error, ScatterUpdate};

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// `y` is `table` with `y[indices[i], ..]` updated by `updates[i, ..]`, in the order of i.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scatter {
    pub how: ScatterUpdate,
    pub table: Node,
    pub indices: Node,
    pub updates: Node,
}

const ALL: [(ScatterUpdate, &str); 5] = [
    (ScatterUpdate::Assign, "scatter_assign"),
    (ScatterUpdate::Add, "scatter_add"),
    (ScatterUpdate::Mul, "scatter_mul"),
    (ScatterUpdate::Max, "scatter_max"),
    (ScatterUpdate::Min, "scatter_min"),
];

fn name_of(how: ScatterUpdate) -> &'static str {
    ALL.into_iter()
        .find(|(other, _)| *other == how)
        .expect("invariant: the table has every update")
        .1
}

fn named(name: &str) -> Option<ScatterUpdate> {
    ALL.into_iter()
        .find(|(_, known)| *known == name)
        .map(|(how, _)| how)
}

/// The greater or the lesser; NaN if one is NaN.
fn extreme(a: f64, b: f64, takes_b: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if takes_b {
        b
    } else {
        a
    }
}

impl Op for Scatter {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.table, &mut self.indices, &mut self.updates]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.table)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let [table, indices, updates] =
            [self.table, self.indices, self.updates].map(|node| &values[&node]);
        let [rows, cols] = shape.matrix();
        let mut data = table.data.clone();
        for (place, update) in updates.data.chunks(cols).enumerate() {
            let Some(row) = indices.row(place).filter(|row| *row < rows) else {
                continue;
            };
            for (y, &x) in data[row * cols..][..cols].iter_mut().zip(update) {
                *y = match self.how {
                    ScatterUpdate::Assign => x,
                    ScatterUpdate::Add => *y + x,
                    ScatterUpdate::Mul => *y * x,
                    ScatterUpdate::Max => extreme(*y, x, x > *y),
                    ScatterUpdate::Min => extreme(*y, x, x < *y),
                };
            }
        }
        Ok(Tensor { shape, data })
    }

    /// Of an assignment, for row numbers that differ: the table keeps the gradient of the rows that
    /// stay, the updates get that of theirs.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self {
            how,
            table,
            indices,
            updates,
        } = *self;
        match how {
            ScatterUpdate::Assign => {
                pass.give(table, |pass| {
                    let shape = pass.builder.graph().shape(updates)?;
                    let zero = pass.builder.constant(&[0.0], [1, 1])?;
                    let zeros = pass.builder.broadcast(zero, shape)?;
                    pass.builder.scatter(how, g, indices, zeros)
                })?;
                pass.give(updates, |pass| pass.builder.gather(g, indices))
            }
            ScatterUpdate::Add => {
                pass.give(table, |_| Ok(g))?;
                pass.give(updates, |pass| pass.builder.gather(g, indices))
            }
            _ => {
                let fault = || {
                    Err(Error::unsupported(format!(
                        "{} has no gradient",
                        name_of(how)
                    )))
                };
                pass.give(table, |_| fault())?;
                pass.give(updates, |_| fault())
            }
        }
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [table, updates] = [self.table, self.updates].map(|node| lowering.views[&node]);
        lowering.plan.copy(table, y)?;
        lowering
            .plan
            .scatter(lowering.rows(self.indices), updates, y, self.how)
    }
}

impl Call for Scatter {
    const NAME: &'static str = "scatter";

    fn name(&self) -> Cow<'static, str> {
        name_of(self.how).into()
    }

    fn is_named(name: &str) -> bool {
        named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let how = named(text.name).ok_or_else(|| text.unknown())?;
        builder.scatter(how, text.node(0)?, text.node(1)?, text.node(2)?)
    }
}

impl GraphBuilder {
    /// Adds a table of which some rows are updated: `y[indices[i], ..]` becomes `updates[i, ..]` or
    /// is combined with it, in the order of i. With equal indices the last assignment stays; an
    /// index out of range is ignored.
    ///
    /// # Shapes
    /// `table` [rows.., n], whose rows are counted over all dimensions except the last, `indices`
    /// [..] and `updates` [.., n]; table and updates are both f32 or both i32. Gives the shape of
    /// `table`.
    /// # Numerics
    /// As [`tectum::PlanBuilder::scatter`]. The gradient of an assignment is that of row numbers
    /// that differ.
    /// # Errors
    /// `Invalid` if the shapes or types do not fit or a node is not of this graph.
    pub fn scatter(
        &mut self,
        how: ScatterUpdate,
        table: Node,
        indices: Node,
        updates: Node,
    ) -> Result<Node> {
        let name = name_of(how);
        let ((table_shape, dtype), (updates_shape, other)) =
            (self.typed(name, table)?, self.typed(name, updates)?);
        let indices_shape = self.index_shape(name, indices)?;
        let rows = updates_shape
            .dims()
            .split_last()
            .map(|(last, rows)| (*last, rows));
        if table_shape.rank() < 2
            || dtype != other
            || rows != Some((table_shape.last(), indices_shape.dims()))
        {
            let (dtype, other) = (dtype.wgsl(), other.wgsl());
            return Err(self.fault(format_args!(
                "{name}: table {table_shape:?} {dtype}, indices {indices_shape:?}, updates {updates_shape:?} {other}: [rows.., n], [..], [.., n] of one type are needed"
            )));
        }
        Ok(self.push(
            Scatter {
                how,
                table,
                indices,
                updates,
            },
            table_shape,
        ))
    }
}
