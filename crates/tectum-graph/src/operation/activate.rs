//! Activation functions, element by element.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use tectum::{Activation, Error};

use super::elementwise::Elementwise;
use super::unary::Unary;
use super::{
    Adjoints, Binary, BinaryOp, Call, CallText, Cow, Function, Graph, GraphBuilder, Lowering, Node,
    Op, Operation, Result, Scale, Shape, Tensor, Values, View,
};

/// An activation of each element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activate {
    pub activation: Activation,
    pub x: Node,
}

/// The name of an activation in the text form; empty for `None`.
pub fn activation_name(activation: Activation) -> &'static str {
    match activation {
        Activation::None => "",
        Activation::Relu => "relu",
        Activation::Tanh => "tanh",
        Activation::Sigmoid => "sigmoid",
        Activation::Gelu => "gelu",
        Activation::GeluErf => "gelu_erf",
        Activation::Silu => "silu",
        Activation::Elu => "elu",
        Activation::HardSigmoid => "hard_sigmoid",
        Activation::HardSwish => "hard_swish",
        Activation::Relu6 => "relu6",
    }
}

/// The activation of a name in the text form.
pub fn activation_named(name: &str) -> Option<Activation> {
    Activation::ALL
        .into_iter()
        .skip(1)
        .find(|activation| activation_name(*activation) == name)
}

/// The derivatives that have a kernel, as functions of the activation's result.
pub(super) fn slope(activation: Activation) -> Option<fn(f64) -> f64> {
    match activation {
        Activation::None => Some(|_| 1.0),
        Activation::Tanh => Some(|y| 1.0 - y * y),
        Activation::Sigmoid => Some(|y| y * (1.0 - y)),
        Activation::Relu => Some(|y| if y > 0.0 { 1.0 } else { 0.0 }),
        _ => None,
    }
}

impl Activate {
    /// The derivative of y = f(x) as elementwise operations on both.
    ///
    /// That of a ramp is a step of the result on both sides, that of the exponential unit min(y, 0) + 1.
    ///
    /// x·σ(v) has the derivative σ(v) + (y − y·σ(v))·v′: silu with v = x, the tanh form of GELU
    /// with v = 2√(2/π)·(x + 0.044715·x³). x·Φ(x) has Φ(x) + x·φ(x).
    fn slope_of_argument(&self, y: Node, builder: &mut GraphBuilder) -> Result<Node> {
        let x = self.x;
        match self.activation {
            Activation::Elu => {
                let (zero, one) = (
                    builder.constant(&[0.0], [1, 1])?,
                    builder.constant(&[1.0], [1, 1])?,
                );
                let below = builder.min(y, zero)?;
                return builder.add(below, one);
            }
            Activation::Relu6 => return builder.ramp_slope(y, 6.0, 1.0),
            Activation::HardSigmoid => return builder.ramp_slope(y, 1.0, 1.0 / 6.0),
            Activation::HardSwish => {
                let gate = builder.activate(x, Activation::HardSigmoid)?;
                let slope = builder.ramp_slope(gate, 1.0, 1.0 / 6.0)?;
                let rest = builder.mul(x, slope)?;
                return builder.add(gate, rest);
            }
            _ => {}
        }
        if self.activation == Activation::GeluErf {
            let narrowed = builder.scale(x, FRAC_1_SQRT_2 as f32)?;
            let erf = builder.erf(narrowed)?;
            let (half_erf, half) = (builder.scale(erf, 0.5)?, builder.constant(&[0.5], [1, 1])?);
            let below = builder.add(half_erf, half)?;
            let density = builder.bell(x, 0.5, 0.5 * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI)?;
            let product = builder.mul(x, density)?;
            return builder.add(below, product);
        }
        let mut factor = None;
        let mut inner = x;
        if self.activation == Activation::Gelu {
            let linear = 2.0 * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI;
            let first = builder.constant(&[linear as f32], [1, 1])?;
            let square = builder.mul(x, x)?;
            let mut polynomial = |scale: f64| {
                let second = builder.scale(square, (scale * linear) as f32)?;
                builder.add(second, first)
            };
            let (growth, slope) = (polynomial(0.044715)?, polynomial(3.0 * 0.044715)?);
            inner = builder.mul(x, growth)?;
            factor = Some(slope);
        }
        let sigmoid = builder.sigmoid(inner)?;
        let product = builder.mul(y, sigmoid)?;
        let mut rest = builder.sub(y, product)?;
        if let Some(factor) = factor {
            rest = builder.mul(rest, factor)?;
        }
        builder.add(sigmoid, rest)
    }
}

impl Op for Activate {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        Ok(Tensor::from_fn(shape, |place| {
            self.activation.reference(x.data[place])
        }))
    }

    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| match slope(self.activation) {
            Some(_) => pass.builder.activation_grad(self.activation, node, g),
            None => {
                let slope = self.slope_of_argument(node, &mut pass.builder)?;
                pass.builder.mul(g, slope)
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
            name: activation_name(self.activation).to_owned(),
            x: self.x,
            second: None,
        })
    }
}

impl Graph {
    /// The activation that the product of a value and a gate is: x·σ(x), or ½x·(1 + erf(x/√2)).
    pub(super) fn gated(&self, value: Node, gate: Node) -> Option<Activate> {
        match (&self.nodes[&gate].operation, &self.nodes[&value].operation) {
            (
                Operation::Activate(Activate {
                    activation: Activation::Sigmoid,
                    x,
                }),
                _,
            ) if *x == value => Some(Activate {
                activation: Activation::Silu,
                x: value,
            }),
            (_, Operation::Scale(Scale { x, factor: 0.5 })) if self.erf_gate(gate) == Some(*x) => {
                Some(Activate {
                    activation: Activation::GeluErf,
                    x: *x,
                })
            }
            _ => None,
        }
    }

    /// The activation whose double a node is: x·(1 + erf(x/√2)).
    pub(super) fn doubled_gelu(&self, node: Node) -> Option<Activate> {
        let Operation::Binary(Binary {
            op: BinaryOp::Mul,
            a,
            b,
        }) = self.nodes[&node].operation
        else {
            return None;
        };
        [(a, b), (b, a)]
            .into_iter()
            .find(|(x, gate)| self.erf_gate(*gate) == Some(*x))
            .map(|(x, _)| Activate {
                activation: Activation::GeluErf,
                x,
            })
    }

    /// The x of 1 + erf(x/√2).
    fn erf_gate(&self, gate: Node) -> Option<Node> {
        let Operation::Binary(Binary {
            op: BinaryOp::Add,
            a,
            b,
        }) = self.nodes[&gate].operation
        else {
            return None;
        };
        let erf = if self.scalar(b) == Some(1.0) { a } else { b };
        if self.scalar(if erf == a { b } else { a }) != Some(1.0) {
            return None;
        }
        let Operation::Unary(Unary {
            function: Function::Erf,
            x,
        }) = self.nodes[&erf].operation
        else {
            return None;
        };
        let (x, factor) = match self.nodes[&x].operation {
            Operation::Binary(Binary {
                op: BinaryOp::Div,
                a,
                b,
            }) => (a, 1.0 / f64::from(self.scalar(b)?)),
            Operation::Scale(Scale { x, factor }) => (x, f64::from(factor)),
            _ => return None,
        };
        ((factor - FRAC_1_SQRT_2).abs() < 1e-6).then_some(x)
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

    /// `slope` where 0 < y < end, 0 elsewhere.
    fn ramp_slope(&mut self, y: Node, end: f32, slope: f32) -> Result<Node> {
        let (end, slope) = (
            self.constant(&[end], [1, 1])?,
            self.constant(&[slope], [1, 1])?,
        );
        let left = self.sub(end, y)?;
        let is_below = self.activation_grad(Activation::Relu, left, slope)?;
        self.activation_grad(Activation::Relu, y, is_below)
    }

    /// Adds a function or an activation of each float by its name in the text form, such as `sqrt`
    /// or `gelu`.
    ///
    /// # Errors
    /// `Invalid` for an unknown name, listing the known ones, or a node that is not of this graph.
    pub fn apply(&mut self, name: &str, x: Node) -> Result<Node> {
        match (Function::named(name), activation_named(name)) {
            (Some(function), _) => self.function(function, x),
            (None, Some(activation)) => self.activate(x, activation),
            (None, None) => {
                let activations = Activation::ALL.into_iter().skip(1).map(activation_name);
                let known: Vec<&str> = Function::ALL
                    .into_iter()
                    .map(|(_, name)| name)
                    .chain(activations)
                    .collect();
                Err(Error::invalid(format!(
                    "no function {name:?}; there are {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// Adds an activation; `None` adds nothing and gives `x`.
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
