//! Sums, differences, products, quotients, maxima and minima of two values, element by element.

use tectum::Activation;
use tectum::operation::elementwise::operation;
use tectum_programs::Chain;

use super::elementwise::{Elementwise, Read};
use super::{
    Adjoints, Call, CallText, Cow, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result,
    Scale, Shape, Tensor, Values, View,
};

/// `b` is of `a`'s shape, a row that repeats, or a scalar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    pub op: BinaryOp,
    pub a: Node,
    pub b: Node,
}

/// A function of two floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a · b
    Mul,
    /// a / b
    Div,
    /// The maximum; NaN if one is NaN.
    Max,
    /// The minimum; NaN if one is NaN.
    Min,
    /// a to the power of b.
    Pow,
    /// The remainder of a / b with the sign of a.
    Fmod,
    /// The remainder of a / b with the sign of b.
    Mod,
}

impl BinaryOp {
    const ALL: [BinaryOp; 9] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Max,
        BinaryOp::Min,
        BinaryOp::Pow,
        BinaryOp::Fmod,
        BinaryOp::Mod,
    ];

    /// The name in the op table.
    fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Max => "max",
            BinaryOp::Min => "min",
            BinaryOp::Pow => "pow",
            BinaryOp::Fmod => "fmod",
            BinaryOp::Mod => "mod",
        }
    }

    fn is_commutative(self) -> bool {
        matches!(
            self,
            BinaryOp::Add | BinaryOp::Mul | BinaryOp::Max | BinaryOp::Min
        )
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

impl Binary {
    fn differentiate_product(&self, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { a, b, .. } = *self;
        if a == b {
            return pass.give(a, |pass| {
                let product = pass.builder.mul(a, g)?;
                pass.builder.scale(product, 2.0)
            });
        }
        pass.give(a, |pass| pass.builder.mul(g, b))?;
        pass.give(b, |pass| {
            let product = pass.builder.mul(g, a)?;
            pass.reduce_like(product, b)
        })
    }

    /// y = aᵇ: da = g·b·a^(b−1), db = g·y·ln a
    fn differentiate_power(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { a, b, .. } = *self;
        pass.give(a, |pass| {
            let one = pass.builder.constant(&[1.0], [1, 1])?;
            let exponent = pass.builder.sub(b, one)?;
            let power = pass.builder.binary(BinaryOp::Pow, a, exponent)?;
            let slope = pass.builder.mul(power, b)?;
            pass.builder.mul(g, slope)
        })?;
        pass.give(b, |pass| {
            let logarithm = pass.builder.log(a)?;
            let slope = pass.builder.mul(y, logarithm)?;
            let product = pass.builder.mul(g, slope)?;
            pass.reduce_like(product, b)
        })
    }

    /// y = a − b·n with a whole n = (a − y)/b: da = g, db = −g·n
    fn differentiate_remainder(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { a, b, .. } = *self;
        pass.give(a, |_| Ok(g))?;
        pass.give(b, |pass| {
            let whole = pass.builder.sub(y, a)?;
            let count = pass.builder.div(whole, b)?;
            let product = pass.builder.mul(g, count)?;
            pass.reduce_like(product, b)
        })
    }

    /// The gradient goes to the operand whose value it is, to b if they are equal.
    fn differentiate_extreme(&self, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { op, a, b } = *self;
        let difference = pass.builder.sub(a, b)?;
        let excess = if op == BinaryOp::Max {
            difference
        } else {
            pass.builder.scale(difference, -1.0)?
        };
        let to_a = pass.builder.activation_grad(Activation::Relu, excess, g)?;
        pass.give(a, |_| Ok(to_a))?;
        pass.give(b, |pass| {
            let rest = pass.builder.sub(g, to_a)?;
            pass.reduce_like(rest, b)
        })
    }

    /// y = a/b: da = g/b, db = −g·y/b
    fn differentiate_quotient(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { a, b, .. } = *self;
        pass.give(a, |pass| pass.builder.div(g, b))?;
        pass.give(b, |pass| {
            let product = pass.builder.mul(g, y)?;
            let quotient = pass.builder.div(product, b)?;
            let sum = pass.reduce_like(quotient, b)?;
            pass.builder.scale(sum, -1.0)
        })
    }
}

impl Op for Binary {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.a, &mut self.b]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (a, b) = (&values[&self.a], &values[&self.b]);
        let entry =
            operation(self.op.name()).expect("invariant: each operation is in the op table");
        Ok(Tensor::from_fn(shape, |place| {
            (entry.reference)(a.data[place], b.broadcast_element(shape, place))
        }))
    }

    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { op, a, b } = *self;
        match op {
            BinaryOp::Mul => return self.differentiate_product(g, pass),
            BinaryOp::Div => return self.differentiate_quotient(node, g, pass),
            BinaryOp::Max | BinaryOp::Min => return self.differentiate_extreme(g, pass),
            BinaryOp::Pow => return self.differentiate_power(node, g, pass),
            BinaryOp::Fmod | BinaryOp::Mod => return self.differentiate_remainder(node, g, pass),
            BinaryOp::Add | BinaryOp::Sub => (),
        }
        pass.give(a, |_| Ok(g))?;
        pass.give(b, |pass| {
            let sum = pass.reduce_like(g, b)?;
            if op == BinaryOp::Sub {
                pass.builder.scale(sum, -1.0)
            } else {
                Ok(sum)
            }
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let b = lowering.shape(self.b);
        let run = if b.broadcasts_to(shape) {
            1
        } else {
            b.run_in(shape).unwrap_or(1)
        };
        lowering.plan.binary_by_run(
            self.op.name(),
            lowering.views[&self.a],
            lowering.views[&self.b],
            run,
            y,
        )
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Chain::has(self.op.name()).then(|| Elementwise {
            name: self.op.name().to_owned(),
            x: self.a,
            second: Some(Read::Value(self.b)),
        })
    }

    /// `op(x, broadcast(s))` of a scalar or row reads `s` itself, since it is repeated anyway;
    /// `mul(x, constant)` of a scalar is `scale`.
    fn simpler(&self, graph: &Graph, shape: Shape) -> Option<Operation> {
        let Self { op, a, b } = *self;
        if let Some(b) = graph.unbroadcast(b, shape) {
            return Some(Self { op, a, b }.into());
        }
        if op.is_commutative()
            && graph.nodes[&b].shape == shape
            && let Some(a) = graph.unbroadcast(a, shape)
        {
            return Some(Self { op, a: b, b: a }.into());
        }
        if let (BinaryOp::Mul, Some(activation)) =
            (op, graph.gated(a, b).or_else(|| graph.gated(b, a)))
        {
            return Some(activation.into());
        }
        match (op, graph.scalar(b)) {
            (BinaryOp::Mul, Some(factor)) => Some(Scale { x: a, factor }.into()),
            _ => None,
        }
    }
}

impl Call for Binary {
    const NAME: &'static str = "binary";

    fn name(&self) -> Cow<'static, str> {
        self.op.name().into()
    }

    fn is_named(name: &str) -> bool {
        BinaryOp::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let op = BinaryOp::named(text.name).ok_or_else(|| text.unknown())?;
        builder.binary(op, text.node(0)?, text.node(1)?)
    }
}

impl GraphBuilder {
    /// Adds a + b.
    ///
    /// # Shapes
    /// Aligned at the last axis, two dimensions are equal or one of them is 1 or missing, which
    /// repeats.
    /// # Errors
    /// `Invalid` if the shapes do not fit or a node is not of this graph.
    pub fn add(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Adds a − b.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn sub(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// Adds a ⊙ b, element by element.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn mul(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// Adds a / b, element by element.
    ///
    /// # Shapes
    /// As [`GraphBuilder::sub`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn div(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Div, a, b)
    }

    /// Adds the greater of a and b, element by element; where they are equal, the gradient goes to
    /// the operand that repeats, or to b.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn max(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Max, a, b)
    }

    /// Adds the lesser of a and b, element by element; equal operands as in [`GraphBuilder::max`].
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn min(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Min, a, b)
    }

    /// Adds a function of two floats, element by element.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// As [`GraphBuilder::add`].
    pub fn binary(&mut self, op: BinaryOp, a: Node, b: Node) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape(op.name(), a)?, self.shape(op.name(), b)?);
        if op.is_commutative() && !b_shape.broadcasts_to(a_shape) && a_shape.broadcasts_to(b_shape)
        {
            return Ok(self.push(Binary { op, a: b, b: a }, b_shape));
        }
        // One factor for each channel need not be repeated first.
        if b_shape.run_in(a_shape).is_some() {
            return Ok(self.push(Binary { op, a, b }, a_shape));
        }
        if op.is_commutative() && a_shape.run_in(b_shape).is_some() {
            return Ok(self.push(Binary { op, a: b, b: a }, b_shape));
        }
        let (a, b, shape) = self.aligned(op.name(), a, b)?;
        Ok(self.push(Binary { op, a, b }, shape))
    }
}
