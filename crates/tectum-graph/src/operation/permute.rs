//! A value with its axes in another order.

use tectum::Strided;

use super::{
    Adjoints, Call, CallText, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};
use crate::parse::{fault, parse_number};

/// Axis `i` of the result is axis `order[i]` of `x`.
#[derive(Debug, Clone)]
pub(crate) struct Permute {
    pub x: Node,
    pub order: Vec<usize>,
}

impl Op for Permute {
    fn arguments(&self, operands: String) -> String {
        let order: Vec<String> = self.order.iter().map(usize::to_string).collect();
        format!("{operands}, order {}", order.join(" "))
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Of(self.x)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let (sizes, to, from) = (shape.fixed(), shape.strides(), x.shape.strides());
        let source = |place: usize| {
            (0..sizes.len())
                .map(|axis| place / to[axis] % sizes[axis] * from[self.order[axis]])
                .sum::<usize>()
        };
        Ok(Tensor::from_fn(shape, |place| x.data[source(place)]))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let mut inverse = vec![0; self.order.len()];
        self.order
            .iter()
            .enumerate()
            .for_each(|(place, &axis)| inverse[axis] = place);
        pass.give(self.x, |pass| pass.builder.permute(g, &inverse))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let shape = lowering.shape(self.x);
        let (strides, sizes) = (shape.strides(), shape.fixed());
        let axes: Vec<Strided> = self
            .order
            .iter()
            .map(|&axis| Strided {
                size: sizes[axis],
                stride: strides[axis],
            })
            .collect();
        lowering
            .plan
            .copy_strided(lowering.views[&self.x], 0, &axes, y)
    }
}

impl Call for Permute {
    const NAME: &'static str = "permute";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let order = text
            .named("order")
            .ok_or_else(|| fault("order is missing"))?;
        let order: Result<Vec<usize>> = order.split(' ').map(parse_number).collect();
        builder.permute(text.node(0)?, &order?)
    }
}

impl GraphBuilder {
    /// Adds the value with its axes in another order: axis `i` of the result is axis `order[i]` of
    /// `x`.
    ///
    /// # Errors
    /// `Invalid` if `order` does not name each axis once or the node is not of this graph.
    pub fn permute(&mut self, x: Node, order: &[usize]) -> Result<Node> {
        let (shape, _) = self.typed("permute", x)?;
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != (0..shape.rank()).collect::<Vec<_>>() {
            return Err(self.fault(format_args!(
                "permute: {shape:?} by {order:?}: each axis is needed once"
            )));
        }
        if order.is_sorted() {
            return Ok(x);
        }
        let dims: Vec<Dim> = order.iter().map(|&axis| shape.dims()[axis]).collect();
        Ok(self.push(
            Permute {
                x,
                order: order.to_vec(),
            },
            Shape::of(&dims),
        ))
    }
}
