//! Activation functions, element by element.

use tectum::{Activation, Error};

use super::elementwise::Elementwise;
use super::{Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View};

/// An activation of each element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activate {
    pub activation: Activation,
    pub x: Node,
}

/// An activation's name in the op table; empty for `None`.
pub(super) fn activation_name(activation: Activation) -> &'static str {
    match activation {
        Activation::None => "",
        Activation::Relu => "relu",
        Activation::Tanh => "tanh",
        Activation::Sigmoid => "sigmoid",
        Activation::Gelu => "gelu",
        Activation::GeluErf => "gelu_erf",
        Activation::Silu => "silu",
    }
}

pub(super) fn activation_named(name: &str) -> Option<Activation> {
    Activation::ALL.into_iter().skip(1).find(|activation| activation_name(*activation) == name)
}

/// An activation's derivative as a function of its result.
///
/// # Errors
/// `Unsupported` if it has none.
pub(super) fn slope(activation: Activation) -> Result<fn(f64) -> f64> {
    match activation {
        Activation::None => Ok(|_| 1.0),
        Activation::Tanh => Ok(|y| 1.0 - y * y),
        Activation::Sigmoid => Ok(|y| y * (1.0 - y)),
        Activation::Relu => Ok(|y| if y > 0.0 { 1.0 } else { 0.0 }),
        Activation::Gelu | Activation::GeluErf | Activation::Silu => Err(Error::unsupported(format!("{} has no derivative yet", activation_name(activation)))),
    }
}

impl Op for Activate {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        Ok(Tensor::from_fn(shape, |place| self.activation.reference(x.data[place])))
    }

    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        slope(self.activation)?;
        pass.give(self.x, |pass| pass.builder.activation_grad(self.activation, node, g))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        self.elementwise().into_iter().try_for_each(|entry| entry.launch(lowering, y))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { name: activation_name(self.activation).to_owned(), x: self.x, second: None })
    }
}

impl Call for Activate {
    const NAME: &'static str = "activate";

    fn name(&self) -> Cow<'static, str> {
        activation_name(self.activation).into()
    }

    fn is_named(name: &str) -> bool {
        activation_named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let activation = activation_named(text.name).ok_or_else(|| text.unknown())?;
        builder.activate(text.node(0)?, activation)
    }
}

impl GraphBuilder {
    /// Adds tanh(x).
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn tanh(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Tanh)
    }

    /// Adds max(x, 0); its derivative at 0 is 0.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn relu(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Relu)
    }

    /// Adds 1 / (1 + exp(−x)).
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sigmoid(&mut self, x: Node) -> Result<Node> {
        self.activate(x, Activation::Sigmoid)
    }

    /// Adds an activation; `None` adds nothing and gives `x`. [`Graph::gradients`](crate::Graph::gradients) has no derivative of `Gelu`.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn activate(&mut self, x: Node, activation: Activation) -> Result<Node> {
        let shape = self.shape(Activate::NAME, x)?;
        if activation == Activation::None {
            return Ok(x);
        }
        Ok(self.push(Activate { activation, x }, shape))
    }
}
