//! Multiplication by a factor.

use super::elementwise::{Elementwise, Read};
use super::{
    Adjoints, Call, CallText, Constant, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result,
    Shape, Tensor, Values, View,
};
use crate::parse::parse_number;

/// factor · x
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub x: Node,
    pub factor: f32,
}

impl Op for Scale {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, {}", self.factor)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        Ok(Tensor::from_fn(shape, |place| {
            f64::from(self.factor) * x.data[place]
        }))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| pass.builder.scale(g, self.factor))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        self.elementwise()
            .into_iter()
            .try_for_each(|entry| entry.launch(lowering, y))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise {
            name: "mul".to_owned(),
            x: self.x,
            second: Some(Read::Factor(self.factor)),
        })
    }

    /// `scale(constant)` is a constant, `scale(scale(x))` one `scale`.
    fn simpler(&self, graph: &Graph, _: Shape) -> Option<Operation> {
        if let (0.5, Some(gelu)) = (self.factor, graph.doubled_gelu(self.x)) {
            return Some(gelu.into());
        }
        match &graph.nodes[&self.x].operation {
            Operation::Constant(Constant { data }) => Some(
                Constant {
                    data: data.iter().map(|value| value * self.factor).collect(),
                }
                .into(),
            ),
            Operation::Scale(inner) => {
                let factor = (f64::from(self.factor) * f64::from(inner.factor)) as f32;
                factor
                    .is_finite()
                    .then(|| Self { x: inner.x, factor }.into())
            }
            _ => None,
        }
    }
}

impl Call for Scale {
    const NAME: &'static str = "scale";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.scale(text.node(0)?, parse_number(text.at(1)?)?)
    }
}

impl GraphBuilder {
    /// Adds factor · x.
    ///
    /// # Errors
    /// `Invalid` if the factor is not finite or the node is not of this graph.
    pub fn scale(&mut self, x: Node, factor: f32) -> Result<Node> {
        let shape = self.shape("scale", x)?;
        if !factor.is_finite() {
            return Err(self.fault(format_args!("scale: factor {factor} is not finite")));
        }
        Ok(self.push(Scale { x, factor }, shape))
    }
}
