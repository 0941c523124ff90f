//! Sums, products and extremes of rows, of either type.

use tectum::{DType, Error};

use super::{
    Adjoints, Call, CallText, Cow, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};
use crate::operation::Function;

/// A reduction over the last axis, which is kept with size 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReduceRows {
    pub reduction: Reduction,
    pub dtype: DType,
    pub x: Node,
}

/// How elements become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their maximum; NaN if there is one.
    Max,
    /// Their minimum; NaN if there is one.
    Min,
}

impl Reduction {
    const ALL: [(Reduction, &'static str); 4] = [
        (Reduction::Sum, "sum_of_rows"),
        (Reduction::Prod, "prod_of_rows"),
        (Reduction::Max, "max_of_rows"),
        (Reduction::Min, "min_of_rows"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(reduction, _)| *reduction == self)
            .expect("invariant: the table has every reduction")
            .1
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(reduction, _)| reduction)
    }
}

impl Op for ReduceRows {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(self.dtype)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let pick = |a: f64, b: f64, is_b: bool| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else if is_b {
                b
            } else {
                a
            }
        };
        let data = x
            .data
            .chunks(x.shape.matrix()[1])
            .map(|row| match self.reduction {
                Reduction::Sum => row.iter().sum(),
                Reduction::Prod => row.iter().product(),
                Reduction::Max => row
                    .iter()
                    .fold(f64::NEG_INFINITY, |a, &b| pick(a, b, b > a)),
                Reduction::Min => row.iter().fold(f64::INFINITY, |a, &b| pick(a, b, b < a)),
            });
        Ok(Tensor {
            shape,
            data: data.collect(),
        })
    }

    /// Of a product, g·y/x: without zeros among the elements.
    fn differentiate(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        match (self.dtype, self.reduction) {
            (DType::F32, Reduction::Prod) => pass.give(self.x, |pass| {
                let product = pass.builder.mul(g, y)?;
                let repeated = pass
                    .builder
                    .broadcast(product, pass.builder.graph().shape(self.x)?)?;
                pass.builder.div(repeated, self.x)
            }),
            (DType::F32, _) => Err(Error::invalid(format!(
                "{}: other operations have this value and a gradient",
                self.reduction.name()
            ))),
            _ => Ok(()),
        }
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let (x, [rows, cols]) = (lowering.views[&self.x], lowering.shape(self.x).matrix());
        match self.reduction {
            Reduction::Sum => lowering.plan.sum(x, y, rows, cols),
            Reduction::Prod => lowering.plan.prod(x, y, rows, cols),
            Reduction::Max => lowering.plan.max(x, y, rows, cols),
            Reduction::Min => lowering.plan.min(x, y, rows, cols),
        }
    }
}

impl Call for ReduceRows {
    const NAME: &'static str = "reduce_rows";

    fn name(&self) -> Cow<'static, str> {
        self.reduction.name().into()
    }

    fn is_named(name: &str) -> bool {
        Reduction::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let reduction = Reduction::named(text.name).ok_or_else(|| text.unknown())?;
        builder.reduce_rows(reduction, text.node(0)?)
    }
}

impl GraphBuilder {
    /// Adds a reduction over axes, which are kept with size 1.
    ///
    /// # Errors
    /// `Invalid` if an axis does not exist or is named twice, or the node is not of this graph.
    /// # Numerics
    /// Integers wrap at 32 bits. The gradient of a product is that of factors without zeros.
    pub fn reduce_axes(&mut self, reduction: Reduction, x: Node, axes: &[usize]) -> Result<Node> {
        let (shape, _) = self.typed("reduce_axes", x)?;
        axes.iter()
            .try_for_each(|axis| self.check_axis("reduce_axes", shape, *axis))?;
        let mut kept: Vec<usize> = (0..shape.rank())
            .filter(|axis| !axes.contains(axis))
            .collect();
        if kept.len() + axes.len() != shape.rank() {
            return Err(self.fault(format_args!(
                "reduce_axes: {shape:?} over {axes:?}: each axis once"
            )));
        }
        if axes.is_empty() {
            return Ok(x);
        }
        let reduced = axes.iter().fold(shape, |shape, axis| shape.with(*axis, 1));
        let count = axes
            .iter()
            .try_fold(1usize, |count, axis| match shape.dims()[*axis] {
                Dim::Size(size) => Some(count * size),
                Dim::Symbol(_) => None,
            });
        let rows: Vec<Dim> = kept.iter().map(|axis| shape.dims()[*axis]).collect();
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        kept.extend(&sorted);
        let turned = self.permute(x, &kept)?;
        let flat = match count {
            Some(count) => {
                self.reshape(turned, Shape::of(&[&rows[..], &[count.into()]].concat()))?
            }
            None if axes.len() == 1 => turned,
            None => {
                return Err(self.fault(format_args!(
                    "reduce_axes: {shape:?} over {axes:?}: sizes are needed"
                )));
            }
        };
        let result = self.reduce_last(reduction, flat)?;
        self.reshape(result, reduced)
    }

    /// The operation with a gradient where there is one.
    fn reduce_last(&mut self, reduction: Reduction, x: Node) -> Result<Node> {
        let (_, dtype) = self.typed("reduce_axes", x)?;
        match (dtype, reduction) {
            (DType::F32, Reduction::Sum) => self.sum_over_columns(x),
            (DType::F32, Reduction::Max) => self.max_over_columns(x),
            (DType::F32, Reduction::Min) => {
                let negative = self.function(Function::Neg, x)?;
                let greatest = self.max_over_columns(negative)?;
                self.function(Function::Neg, greatest)
            }
            _ => self.reduce_rows(reduction, x),
        }
    }

    fn reduce_rows(&mut self, reduction: Reduction, x: Node) -> Result<Node> {
        let (shape, dtype) = self.typed(reduction.name(), x)?;
        match shape.rank() {
            0 => Err(self.fault(format_args!("{}: {shape:?} has no axis", reduction.name()))),
            rank => Ok(self.push(
                ReduceRows {
                    reduction,
                    dtype,
                    x,
                },
                shape.with(rank - 1, 1),
            )),
        }
    }
}
