//! Gradients of activation functions, element by element.

use tectum::{Activation, Error};

use super::activate::{activation_name, activation_named, slope};
use super::elementwise::{Elementwise, Read};
use super::{
    Adjoints, Call, CallText, Cow, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result,
    Shape, Tensor, Values, View,
};

/// The gradient at an activation's argument, from its result and the gradient there; `dy` repeats
/// as the second operand of a sum does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivationGrad {
    pub activation: Activation,
    pub y: Node,
    pub dy: Node,
}

impl ActivationGrad {
    fn full_name(&self) -> String {
        format!("{}_grad", activation_name(self.activation))
    }

    fn named(name: &str) -> Option<Activation> {
        name.strip_suffix("_grad")
            .and_then(activation_named)
            .filter(|activation| slope(*activation).is_some())
    }
}

impl Op for ActivationGrad {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.y, &mut self.dy]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let slope = slope(self.activation)
            .ok_or_else(|| Error::unsupported(format!("{} of a result", self.full_name())))?;
        let (y, dy) = (&values[&self.y], &values[&self.dy]);
        // A step selects: it does not make NaN of an infinite gradient.
        let is_step = self.activation == Activation::Relu;
        Ok(Tensor::from_fn(shape, |place| match slope(y.data[place]) {
            0.0 if is_step => 0.0,
            slope => slope * dy.broadcast_element(shape, place),
        }))
    }

    /// z = f′(y)·dy, with f′ as a function of the activation's result: 1 − y², y − y², or a step.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { activation, y, dy } = *self;
        pass.give(dy, |pass| {
            let product = pass.builder.activation_grad(activation, y, g)?;
            pass.reduce_like(product, dy)
        })?;
        if activation == Activation::Relu {
            return Ok(());
        }
        pass.give(y, |pass| {
            let product = pass.builder.mul(g, dy)?;
            let curved = pass.builder.mul(product, y)?;
            let curved = pass.builder.scale(curved, -2.0)?;
            if activation == Activation::Sigmoid {
                pass.builder.add(product, curved)
            } else {
                Ok(curved)
            }
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        self.elementwise()
            .into_iter()
            .try_for_each(|entry| entry.launch(lowering, y))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise {
            name: self.full_name(),
            x: self.y,
            second: Some(Read::Value(self.dy)),
        })
    }

    /// As a sum, it repeats the gradient itself.
    fn simpler(&self, graph: &Graph, shape: Shape) -> Option<Operation> {
        graph
            .unbroadcast(self.dy, shape)
            .map(|dy| Self { dy, ..*self }.into())
    }
}

impl Call for ActivationGrad {
    const NAME: &'static str = "activation_grad";

    fn name(&self) -> Cow<'static, str> {
        self.full_name().into()
    }

    fn is_named(name: &str) -> bool {
        Self::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let activation = Self::named(text.name).ok_or_else(|| text.unknown())?;
        builder.activation_grad(activation, text.node(0)?, text.node(1)?)
    }
}

impl GraphBuilder {
    /// The gradient at an activation's argument.
    pub(crate) fn activation_grad(
        &mut self,
        activation: Activation,
        y: Node,
        dy: Node,
    ) -> Result<Node> {
        let (shape, dy_shape) = (
            self.shape(ActivationGrad::NAME, y)?,
            self.shape(ActivationGrad::NAME, dy)?,
        );
        if !dy_shape.broadcasts_to(shape) {
            return Err(self.fault(format_args!(
                "activation_grad: y {shape:?}, dy {dy_shape:?}: it does not repeat"
            )));
        }
        Ok(self.push(ActivationGrad { activation, y, dy }, shape))
    }
}
