//! Comparisons and tests of elements, as truth values: integers 0 and 1.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// `b` is of `a`'s shape, or the last dimensions of it, or a scalar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compare {
    pub comparison: Comparison,
    pub a: Node,
    /// None for tests of one operand.
    pub b: Option<Node>,
}

/// A question about elements of one type. NaN is not equal to anything, nor less or greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// a = b
    Equal,
    /// a ≠ b
    NotEqual,
    /// a < b
    Less,
    /// a ≤ b
    LessEqual,
    /// a > b
    Greater,
    /// a ≥ b
    GreaterEqual,
    /// Whether a float is NaN.
    IsNan,
    /// Whether a float is +∞ or −∞.
    IsInf,
}

impl Comparison {
    const ALL: [(Comparison, &'static str); 8] = [
        (Comparison::Equal, "equal"),
        (Comparison::NotEqual, "not_equal"),
        (Comparison::Less, "less"),
        (Comparison::LessEqual, "less_equal"),
        (Comparison::Greater, "greater"),
        (Comparison::GreaterEqual, "greater_equal"),
        (Comparison::IsNan, "is_nan"),
        (Comparison::IsInf, "is_inf"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(comparison, _)| *comparison == self)
            .expect("invariant: the table has every comparison")
            .1
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(comparison, _)| comparison)
    }

    fn is_unary(self) -> bool {
        matches!(self, Self::IsNan | Self::IsInf)
    }

    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::LessEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterEqual => a >= b,
            Self::IsNan => a.is_nan(),
            Self::IsInf => a.is_infinite(),
        }
    }
}

impl Op for Compare {
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
            f64::from(u8::from(self.comparison.holds(a.data[place], b(place))))
        }))
    }

    /// It is constant almost everywhere.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let a = lowering.views[&self.a];
        match self.b {
            Some(b) => lowering
                .plan
                .compare(self.comparison.name(), a, lowering.views[&b], y),
            None => lowering.plan.predicate(self.comparison.name(), a, y),
        }
    }
}

impl Call for Compare {
    const NAME: &'static str = "compare";

    fn name(&self) -> Cow<'static, str> {
        self.comparison.name().into()
    }

    fn is_named(name: &str) -> bool {
        Comparison::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let comparison = Comparison::named(text.name).ok_or_else(|| text.unknown())?;
        if comparison.is_unary() {
            builder.test(comparison, text.node(0)?)
        } else {
            builder.compare(comparison, text.node(0)?, text.node(1)?)
        }
    }
}

impl GraphBuilder {
    /// Adds a comparison of two values, element by element: 1 where it holds, 0 elsewhere (i32).
    ///
    /// # Shapes
    /// As [`GraphBuilder::add`].
    /// # Errors
    /// `Invalid` if the shapes or types do not fit, the comparison is of one operand, or a node is
    /// not of this graph.
    pub fn compare(&mut self, comparison: Comparison, a: Node, b: Node) -> Result<Node> {
        let name = comparison.name();
        let ((_, dtype), (_, other)) = (self.typed(name, a)?, self.typed(name, b)?);
        if dtype != other || comparison.is_unary() {
            return Err(self.fault(format_args!(
                "{name}: of {} and {}: two operands of one type are needed",
                dtype.wgsl(),
                other.wgsl()
            )));
        }
        let (a, b, shape) = self.aligned(name, a, b)?;
        Ok(self.push(
            Compare {
                comparison,
                a,
                b: Some(b),
            },
            shape,
        ))
    }

    /// Adds a test of each float: 1 where it holds, 0 elsewhere (i32).
    ///
    /// # Errors
    /// `Invalid` if the comparison is of two operands or the node is not of this graph.
    pub fn test(&mut self, comparison: Comparison, a: Node) -> Result<Node> {
        let shape = self.shape(comparison.name(), a)?;
        if !comparison.is_unary() {
            return Err(self.fault(format_args!(
                "{}: two operands are needed",
                comparison.name()
            )));
        }
        Ok(self.push(
            Compare {
                comparison,
                a,
                b: None,
            },
            shape,
        ))
    }
}
