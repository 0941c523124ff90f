//! Products with their tail, as one launch; only [`Graph::fuse`](crate::Graph::fuse) and
//! [`Graph::merge_products`](crate::Graph::merge_products) make them.

use tectum::{Activation, GemmEpilogue};

use super::activate::{activation_name, activation_named};
use super::{
    Adjoints, Call, CallText, Factor, GraphBuilder, Lowering, MatMul, Node, Op, Result, Shape,
    Tensor, Values, View, no_derivative_of_fused,
};

/// The tail of a fused product: `activation(a·b + bias) + residual`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LinearEpilogue {
    pub bias: Option<Node>,
    pub activation: Activation,
    pub residual: Option<Node>,
}

impl LinearEpilogue {
    pub(super) fn operands_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.bias.iter_mut().chain(self.residual.as_mut())
    }

    /// As it follows the product's operands in text.
    pub(super) fn text(&self) -> String {
        let bias = self
            .bias
            .map_or(String::new(), |node| format!(", bias %{node}"));
        let activation = if self.activation == Activation::None {
            String::new()
        } else {
            format!(", {}", activation_name(self.activation))
        };
        let residual = self
            .residual
            .map_or(String::new(), |node| format!(", residual %{node}"));
        bias + &activation + &residual
    }

    pub(super) fn parse(text: &CallText<'_>) -> Result<Self> {
        let activation = text
            .arguments
            .iter()
            .find_map(|argument| activation_named(argument))
            .unwrap_or_default();
        Ok(Self {
            bias: text.named_node("bias")?,
            activation,
            residual: text.named_node("residual")?,
        })
    }

    /// The products of these rows, finished.
    pub(super) fn evaluate(&self, mut products: Tensor, values: &Values) -> Tensor {
        let cols = products.shape.matrix()[1];
        for (place, product) in products.data.iter_mut().enumerate() {
            let bias = self
                .bias
                .map_or(0.0, |node| values[&node].data[place % cols]);
            let residual = self.residual.map_or(0.0, |node| values[&node].data[place]);
            *product = self.activation.reference(*product + bias) + residual;
        }
        products
    }

    pub(super) fn lowered(&self, lowering: &Lowering<'_>) -> GemmEpilogue {
        let [bias, residual] =
            [self.bias, self.residual].map(|node| node.map(|node| lowering.views[&node]));
        GemmEpilogue {
            bias,
            activation: self.activation,
            residual,
        }
    }
}

/// A product with its tail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub a: Factor,
    pub b: Factor,
    pub tail: LinearEpilogue,
}

impl Linear {
    fn product(&self) -> MatMul {
        MatMul {
            a: self.a,
            b: self.b,
        }
    }
}

impl Op for Linear {
    fn arguments(&self, _: String) -> String {
        self.product().arguments(String::new()) + &self.tail.text()
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        [&mut self.a.node, &mut self.b.node]
            .into_iter()
            .chain(self.tail.operands_mut())
            .collect()
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        Ok(self
            .tail
            .evaluate(self.product().evaluate(shape, values)?, values))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        no_derivative_of_fused()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let tail = self.tail.lowered(lowering);
        self.product().launch(lowering, tail, y)
    }
}

impl Call for Linear {
    const NAME: &'static str = "linear";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.linear(
            Factor::parse(text, 0)?,
            Factor::parse(text, 1)?,
            LinearEpilogue::parse(text)?,
        )
    }
}

impl GraphBuilder {
    /// A product with its tail.
    fn linear(&mut self, a: Factor, b: Factor, tail: LinearEpilogue) -> Result<Node> {
        let shape = self.product_shape("linear", a, b)?;
        if self.graph().is_batched(a, b) {
            return Err(self.fault(format_args!(
                "linear: a batched product {shape:?} has no tail"
            )));
        }
        self.check_epilogue("linear", tail, shape)?;
        Ok(self.push(Linear { a, b, tail }, shape))
    }

    pub(super) fn check_epilogue(
        &self,
        op: &str,
        tail: LinearEpilogue,
        shape: Shape,
    ) -> Result<()> {
        let bias = tail.bias.map(|node| self.shape(op, node)).transpose()?;
        let residual = tail.residual.map(|node| self.shape(op, node)).transpose()?;
        if bias.is_some_and(|bias| !bias.is_row_of(shape))
            || residual.is_some_and(|residual| residual != shape)
        {
            return Err(self.fault(format_args!(
                "{op}: {shape:?} with bias {bias:?}, residual {residual:?}"
            )));
        }
        Ok(())
    }
}
