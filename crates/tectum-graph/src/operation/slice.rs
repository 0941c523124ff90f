//! A part of an axis.

use tectum::{ALIGNED_ELEMENTS, Error, Strided};

use super::{
    Adjoints, Call, CallText, Dim, Graph, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};
use crate::parse::fault;

/// As many elements of an axis as the result has, from `start` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub x: Node,
    pub axis: usize,
    pub start: usize,
}

impl Op for Slice {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, axis {}, from {}", self.axis, self.start)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.x)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let ([_, len, inner], [_, whole, _]) = (shape.around(self.axis), x.shape.around(self.axis));
        Ok(Tensor::from_fn(shape, |place| {
            let (outer, at) = (place / (len * inner), place / inner % len);
            x.data[(outer * whole + self.start + at) * inner + place % inner]
        }))
    }

    /// The gradient between zeros.
    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { x, axis, start } = *self;
        pass.give(x, |pass| {
            let (whole, len) = (pass.size(x, axis)?, pass.size(node, axis)?);
            let shape = pass.builder.graph().shape(x)?;
            let mut parts = Vec::new();
            for (before, part) in [(start, Some(g)), (whole - start - len, None)] {
                if before > 0 {
                    let zero = pass.builder.constant(&[0.0], [1, 1])?;
                    parts.push(pass.builder.broadcast(zero, shape.with(axis, before))?);
                }
                parts.extend(part);
            }
            pass.builder.concat(&parts, axis)
        })
    }

    fn is_view(&self) -> bool {
        true
    }

    /// Whole rows at an aligned offset.
    fn alias(&self, lowering: &Lowering<'_>, shape: Shape) -> Option<View> {
        let [outer, _, inner] = lowering.shape(self.x).around(self.axis);
        let first = self.start * inner;
        let is_bindable = outer == 1 && first.is_multiple_of(ALIGNED_ELEMENTS);
        is_bindable.then(|| lowering.views[&self.x].part(first..first + shape.len()))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [outer, len, inner] = lowering.shape(self.x).around(self.axis);
        let axes = [
            Strided {
                size: outer,
                stride: len * inner,
            },
            Strided {
                size: y.len() / outer,
                stride: 1,
            },
        ];
        lowering
            .plan
            .copy_strided(lowering.views[&self.x], self.start * inner, &axes, y)
    }

    fn check_bound(&self, graph: &Graph, shape: Shape) -> Result<()> {
        let Self { x, axis, start } = *self;
        let (whole, len) = (graph.nodes[&x].shape, shape.dims()[axis]);
        if fits(whole, axis, start, len) {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "{len:?} from {start} on of axis {axis} of {whole:?}"
            )))
        }
    }
}

impl Call for Slice {
    const NAME: &'static str = "slice";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let axis: usize = text.number("axis")?;
        let len = shape
            .dims()
            .get(axis)
            .ok_or_else(|| fault(&format!("{shape:?} has no axis {axis}")))?;
        builder.slice(text.node(0)?, axis, text.number("from")?, *len)
    }
}

impl GraphBuilder {
    /// Adds `len` elements of an axis from `start` on; a letter as `len` must fit when it is bound.
    ///
    /// # Errors
    /// `Invalid` if the axis is too short, is a letter or does not exist, `len` is 0, or the node
    /// is not of this graph.
    pub fn slice(
        &mut self,
        x: Node,
        axis: usize,
        start: usize,
        len: impl Into<Dim>,
    ) -> Result<Node> {
        let ((shape, _), len) = (self.typed("slice", x)?, len.into());
        self.check_axis("slice", shape, axis)?;
        match (shape.dims()[axis], len) {
            (whole, len) if start == 0 && whole == len => Ok(x),
            (Dim::Size(_), len) if fits(shape, axis, start, len) => {
                let sliced = shape.with(axis, len);
                self.check_shape("slice", sliced)?;
                Ok(self.push(Slice { x, axis, start }, sliced))
            }
            (dim, _) => Err(self.fault(format_args!(
                "slice: {len:?} from {start} on of axis {axis} of {shape:?}, which is {dim:?}"
            ))),
        }
    }
}

/// Whether an axis is long enough for a slice of it, as far as known.
fn fits(whole: Shape, axis: usize, start: usize, len: Dim) -> bool {
    match (whole.dims()[axis], len) {
        (Dim::Size(size), Dim::Size(len)) => {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= size)
        }
        (Dim::Size(size), Dim::Symbol(_)) => start < size,
        (Dim::Symbol(_), _) => false,
    }
}
