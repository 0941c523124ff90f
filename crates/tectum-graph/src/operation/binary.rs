//! Sums, differences, products, quotients, maxima and minima of two values, element by element.

use tectum::Activation;
use tectum::operation::elementwise::operation;

use super::elementwise::{Elementwise, Read};
use super::{Adjoints, Call, CallText, Cow, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result, Scale, Shape, Tensor, Values, View};

/// `b` is of `a`'s shape, a row that repeats, or a scalar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    pub op: BinaryOp,
    pub a: Node,
    pub b: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
}

impl BinaryOp {
    const ALL: [BinaryOp; 6] = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Max, BinaryOp::Min];

    /// The name in the op table.
    fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Max => "max",
            BinaryOp::Min => "min",
        }
    }

    fn is_commutative(self) -> bool {
        !matches!(self, BinaryOp::Sub | BinaryOp::Div)
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

    /// The gradient goes to the operand whose value it is, to b if they are equal.
    fn differentiate_extreme(&self, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { op, a, b } = *self;
        let difference = pass.builder.sub(a, b)?;
        let excess = if op == BinaryOp::Max { difference } else { pass.builder.scale(difference, -1.0)? };
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
        let entry = operation(self.op.name()).expect("invariant: each operation is in the op table");
        Ok(Tensor::from_fn(shape, |place| (entry.reference)(a.data[place], b.broadcast_element(shape, place))))
    }

    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { op, a, b } = *self;
        match op {
            BinaryOp::Mul => return self.differentiate_product(g, pass),
            BinaryOp::Div => return self.differentiate_quotient(node, g, pass),
            BinaryOp::Max | BinaryOp::Min => return self.differentiate_extreme(g, pass),
            BinaryOp::Add | BinaryOp::Sub => (),
        }
        pass.give(a, |_| Ok(g))?;
        pass.give(b, |pass| {
            let sum = pass.reduce_like(g, b)?;
            if op == BinaryOp::Sub { pass.builder.scale(sum, -1.0) } else { Ok(sum) }
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        self.elementwise().into_iter().try_for_each(|entry| entry.launch(lowering, y))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { name: self.op.name().to_owned(), x: self.a, second: Some(Read::Value(self.b)) })
    }

    /// `op(x, broadcast(s))` of a scalar or row reads `s` itself, since it is repeated anyway; `mul(x, constant)` of a scalar is `scale`.
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
    /// Both [.., m, n]; or the shape of one, without leading ones, equals the last dimensions of the other: \[n\] or [1, n], repeated
    /// over the rows, or [1, 1], repeated everywhere.
    /// # Errors
    /// `Invalid` if neither broadcasts to the other's shape or a node is not of this graph.
    pub fn add(&mut self, a: Node, b: Node) -> Result<Node> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Adds a − b.
    ///
    /// # Shapes
    /// `a` [.., m, n]; `b` as in [`GraphBuilder::add`].
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

    /// Adds the greater of a and b, element by element; where they are equal, the gradient goes to the operand that repeats, or to b.
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

    fn binary(&mut self, op: BinaryOp, a: Node, b: Node) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape(op.name(), a)?, self.shape(op.name(), b)?);
        if b_shape.broadcasts_to(a_shape) {
            Ok(self.push(Binary { op, a, b }, a_shape))
        } else if op.is_commutative() && a_shape.broadcasts_to(b_shape) {
            Ok(self.push(Binary { op, a: b, b: a }, b_shape))
        } else {
            let rule = if op.is_commutative() { "neither repeats to the other" } else { "rhs does not repeat to lhs" };
            Err(self.fault(format_args!("{}: lhs {a_shape:?}, rhs {b_shape:?}: {rule}", op.name())))
        }
    }
}
