//! The operations of expressions.

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// −a.
    Negate,
    /// The sine of an angle in radians.
    Sin,
    /// The cosine of an angle in radians.
    Cos,
    /// The tangent of an angle in radians.
    Tan,
    /// The arcsine, in radians.
    Asin,
    /// The arccosine, in radians.
    Acos,
    /// The arctangent, in radians.
    Atan,
    /// eᵃ.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// The hyperbolic tangent.
    Tanh,
    /// The magnitude.
    Abs,
    /// −1, 0 or 1.
    Sign,
}

/// Functions of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// a · b.
    Multiply,
    /// a / b.
    Divide,
    /// a to the power of b, which is a constant.
    Power,
    /// The angle of the point (b, a), in radians.
    Atan2,
    /// The lesser.
    Minimum,
    /// The greater.
    Maximum,
}

/// Comparisons of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// a < b.
    Less,
    /// a ≤ b.
    LessOrEqual,
    /// a > b.
    Greater,
    /// a ≥ b.
    GreaterOrEqual,
}
