//! The families of operations: each member with its name, and the types it is defined for.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Type;

/// Makes a family: the enum, all its members and their names in the text form.
macro_rules! family {
    ($(#[$attribute:meta])* $family:ident { $($(#[$doc:meta])* $member:ident = $name:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $family {
            $($(#[$doc])* $member,)*
        }

        impl $family {
            /// Every member.
            pub const ALL: &[$family] = &[$($family::$member),*];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self {
                    $($family::$member => $name,)*
                }
            }

            /// The member of a name in the text form.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.name() == name)
            }
        }

        impl fmt::Display for $family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

family! {
    /// An operation of one operand, of the result's type.
    UnaryOp {
        /// |a|; the minimum signed integer is unchanged.
        Abs = "abs",
        /// −a; integers wrap.
        Neg = "neg",
        /// Every bit flipped; integers.
        Not = "not",
        /// max(a, 0); NaN stays NaN, −0 becomes +0.
        Relu = "relu",
        /// ½a(1 + tanh(√(2/π)(a + 0.044715a³))).
        Gelu = "gelu",
        /// a·Φ(a), Φ the normal distribution function.
        GeluErf = "gelu_erf",
        /// a/(1 + e⁻ᵃ).
        Silu = "silu",
        /// The error function.
        Erf = "erf",
        /// eᵃ.
        Exp = "exp",
        /// 2ᵃ.
        Exp2 = "exp2",
        /// ln a.
        Log = "log",
        /// log₂ a.
        Log2 = "log2",
        /// log₁₀ a.
        Log10 = "log10",
        /// √a.
        Sqrt = "sqrt",
        /// 1/√a.
        Rsqrt = "rsqrt",
        /// sin a, radians.
        Sin = "sin",
        /// cos a, radians.
        Cos = "cos",
        /// tan a, radians.
        Tan = "tan",
        /// tanh a.
        Tanh = "tanh",
        /// 1/(1 + e⁻ᵃ).
        Sigmoid = "sigmoid",
        /// The greatest integer not above a.
        Floor = "floor",
        /// The smallest integer not below a.
        Ceil = "ceil",
        /// The nearest integer, ties to even.
        Round = "round",
    }
}

impl UnaryOp {
    /// Whether the operation is defined for a type: `not` for integers, `abs`, `neg` and `relu` for
    /// all, the rest for f32 and f64.
    pub const fn takes(self, ty: Type) -> bool {
        match self {
            UnaryOp::Not => ty.is_integer(),
            UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu => true,
            _ => matches!(ty, Type::F32 | Type::F64),
        }
    }
}

family! {
    /// An operation of two operands of the result's type (the amount of a shift is a `u32`).
    BinaryOp {
        /// a + b; integers wrap.
        Add = "add",
        /// a − b; integers wrap.
        Sub = "sub",
        /// a·b; integers wrap.
        Mul = "mul",
        /// a/b; integers towards zero, and a zero divisor is a fault.
        Div = "div",
        /// The minimum; NaN if either is NaN; −0 below +0.
        Min = "min",
        /// The maximum; NaN if either is NaN; −0 below +0.
        Max = "max",
        /// Bitwise and; integers.
        And = "and",
        /// Bitwise or; integers.
        Or = "or",
        /// Bitwise exclusive or; integers.
        Xor = "xor",
        /// Shift left by (amount mod width); integers.
        Shl = "shl",
        /// Shift right by (amount mod width), filled with the sign of signed types; integers.
        Shr = "shr",
    }
}

impl BinaryOp {
    /// Whether the operation is defined for a type: logic and shifts for integers, arithmetic for
    /// all.
    pub const fn takes(self, ty: Type) -> bool {
        match self {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
                ty.is_integer()
            }
            _ => true,
        }
    }

    /// Whether the second operand is the amount of a shift, a `u32`.
    pub const fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr)
    }

    /// The type of the second operand.
    pub const fn second_type(self, ty: Type) -> Type {
        if self.is_shift() { Type::U32 } else { ty }
    }
}

family! {
    /// An operation a, b, c of the result's type.
    TernaryOp {
        /// a·b + c, the product rounded first.
        Mad = "mad",
        /// a·b + c, rounded once; floats.
        Fma = "fma",
    }
}

impl TernaryOp {
    /// Whether the operation is defined for a type: `fma` for floats, `mad` for all.
    pub const fn takes(self, ty: Type) -> bool {
        matches!(self, TernaryOp::Mad) || ty.is_float()
    }
}

family! {
    /// A comparison.
    Condition {
        /// a = b.
        Eq = "eq",
        /// a ≠ b; true if either is NaN.
        Ne = "ne",
        /// a < b.
        Lt = "lt",
        /// a ≤ b.
        Le = "le",
        /// a > b.
        Gt = "gt",
        /// a ≥ b.
        Ge = "ge",
        /// a < b, the bits read as unsigned; integers.
        Ltu = "ltu",
        /// a ≤ b, the bits read as unsigned; integers.
        Leu = "leu",
        /// a > b, the bits read as unsigned; integers.
        Gtu = "gtu",
        /// a ≥ b, the bits read as unsigned; integers.
        Geu = "geu",
    }
}

impl Condition {
    /// Whether the bits are read as unsigned, for any type.
    pub const fn is_unsigned(self) -> bool {
        matches!(
            self,
            Condition::Ltu | Condition::Leu | Condition::Gtu | Condition::Geu
        )
    }

    /// Whether the comparison is defined for a type: the unsigned ones for integers.
    pub const fn takes(self, ty: Type) -> bool {
        !self.is_unsigned() || ty.is_integer()
    }
}

family! {
    /// The operation of a reduction over consecutive registers, from the first upwards.
    ReduceOp {
        /// The sum.
        Add = "reduce_add",
        /// The minimum.
        Min = "reduce_min",
        /// The maximum.
        Max = "reduce_max",
        /// The product.
        Mul = "reduce_mul",
    }
}

impl ReduceOp {
    /// Whether the reduction is defined for a type: i32, i64, f32, f64.
    pub const fn takes(self, ty: Type) -> bool {
        matches!(ty, Type::I32 | Type::I64 | Type::F32 | Type::F64)
    }

    /// The operation between the accumulated value and the next register.
    pub const fn step(self) -> BinaryOp {
        match self {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::Mul => BinaryOp::Mul,
        }
    }
}

family! {
    /// Among which lanes a fence orders memory.
    Scope {
        /// This lane.
        Thread = "thread",
        /// The block.
        Block = "block",
        /// The device.
        Device = "device",
        /// The device and its host.
        System = "system",
    }
}
