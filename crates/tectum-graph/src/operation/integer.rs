//! Arithmetic on integers, element by element.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// `b` is of `a`'s shape, or the last dimensions of it, or a scalar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integer {
    pub op: IntegerOp,
    pub a: Node,
    /// None for functions of one operand.
    pub b: Option<Node>,
}

/// A function of integers (i32), element by element: sums, products and shifts wrap at 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerOp {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a · b
    Mul,
    /// a / b, truncated; 0 where b is 0.
    Div,
    /// The remainder with the sign of a; 0 where b is 0.
    Rem,
    /// The remainder with the sign of b; 0 where b is 0.
    Mod,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// The bits that both have.
    And,
    /// The bits that one of them has.
    Or,
    /// The bits that only one of them has.
    Xor,
    /// a shifted by b bits to the left.
    Shl,
    /// a shifted by b bits to the right; its sign comes in.
    Shr,
    /// a to the power of b.
    Pow,
    /// −a
    Neg,
    /// The distance from 0.
    Abs,
    /// All bits of a inverted.
    Not,
    /// −1, 0 or 1.
    Sign,
}

impl IntegerOp {
    const ALL: [(IntegerOp, &'static str, &'static str); 18] = [
        (IntegerOp::Add, "integer_add", "add"),
        (IntegerOp::Sub, "integer_sub", "sub"),
        (IntegerOp::Mul, "integer_mul", "mul"),
        (IntegerOp::Div, "integer_div", "div"),
        (IntegerOp::Rem, "integer_rem", "rem"),
        (IntegerOp::Mod, "integer_mod", "mod"),
        (IntegerOp::Min, "integer_min", "min"),
        (IntegerOp::Max, "integer_max", "max"),
        (IntegerOp::And, "integer_and", "and"),
        (IntegerOp::Or, "integer_or", "or"),
        (IntegerOp::Xor, "integer_xor", "xor"),
        (IntegerOp::Shl, "integer_shl", "shl"),
        (IntegerOp::Shr, "integer_shr", "shr"),
        (IntegerOp::Pow, "integer_pow", "pow"),
        (IntegerOp::Neg, "integer_neg", "neg"),
        (IntegerOp::Abs, "integer_abs", "abs"),
        (IntegerOp::Not, "integer_not", "not"),
        (IntegerOp::Sign, "integer_sign", "sign"),
    ];

    fn entry(self) -> (IntegerOp, &'static str, &'static str) {
        Self::ALL
            .into_iter()
            .find(|(op, ..)| *op == self)
            .expect("invariant: the table has every operation")
    }

    fn name(self) -> &'static str {
        self.entry().1
    }

    /// The name in the kernels' table.
    fn kernel(self) -> &'static str {
        self.entry().2
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known, _)| *known == name)
            .map(|(op, ..)| op)
    }

    fn is_unary(self) -> bool {
        matches!(self, Self::Neg | Self::Abs | Self::Not | Self::Sign)
    }

    /// The value without a limit of bits.
    fn reference(self, a: i64, b: i64) -> i64 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Sub => a.wrapping_sub(b),
            Self::Mul => a.wrapping_mul(b),
            Self::Div => a.checked_div(b).unwrap_or(0),
            Self::Rem => a.checked_rem(b).unwrap_or(0),
            Self::Mod => a.checked_rem(b).map_or(0, |rest| {
                if rest != 0 && (rest < 0) != (b < 0) {
                    rest + b
                } else {
                    rest
                }
            }),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::Shl => u32::try_from(b)
                .ok()
                .and_then(|b| a.checked_shl(b))
                .unwrap_or(0),
            Self::Shr => a >> b.clamp(0, 63),
            Self::Pow if b < 0 => match a {
                1 => 1,
                -1 => 1 - 2 * (b & 1),
                _ => 0,
            },
            Self::Pow => a.wrapping_pow(u32::try_from(b).unwrap_or(u32::MAX)),
            Self::Neg => a.wrapping_neg(),
            Self::Abs => a.wrapping_abs(),
            Self::Not => !a,
            Self::Sign => a.signum(),
        }
    }
}

impl Op for Integer {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        [Some(&mut self.a), self.b.as_mut()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn element(&self) -> ValueType {
        ValueType::Is(DType::I32)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (a, b) = (&values[&self.a], self.b.map(|b| &values[&b]));
        let b = |place| b.map_or(0.0, |b| b.broadcast_element(shape, place));
        Ok(Tensor::from_fn(shape, |place| {
            self.op.reference(a.data[place] as i64, b(place) as i64) as f64
        }))
    }

    /// Integers have no derivative: nothing passes through.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let a = lowering.views[&self.a];
        match self.b {
            Some(b) => lowering
                .plan
                .binary(self.op.kernel(), a, lowering.views[&b], y),
            None => lowering.plan.unary(self.op.kernel(), a, y),
        }
    }
}

impl Call for Integer {
    const NAME: &'static str = "integer";

    fn name(&self) -> Cow<'static, str> {
        self.op.name().into()
    }

    fn is_named(name: &str) -> bool {
        IntegerOp::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let op = IntegerOp::named(text.name).ok_or_else(|| text.unknown())?;
        let b = if op.is_unary() {
            None
        } else {
            Some(text.node(1)?)
        };
        builder.integer(op, text.node(0)?, b)
    }
}

impl GraphBuilder {
    /// Adds a function of integers, element by element; `b` is needed unless the function is of one
    /// operand.
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// `Invalid` if the shapes do not fit, an operand is no i32, or a node is not of this graph.
    pub fn integer(&mut self, op: IntegerOp, a: Node, b: Option<Node>) -> Result<Node> {
        let shape = self.shape_as(op.name(), a, DType::I32)?;
        if b.is_none() != op.is_unary() {
            return Err(self.fault(format_args!(
                "{}: {} operand is needed",
                op.name(),
                if op.is_unary() { "one" } else { "a second" }
            )));
        }
        let Some(b) = b else {
            return Ok(self.push(Integer { op, a, b }, shape));
        };
        self.shape_as(op.name(), b, DType::I32)?;
        let (a, b, shape) = self.aligned(op.name(), a, b)?;
        Ok(self.push(Integer { op, a, b: Some(b) }, shape))
    }
}
