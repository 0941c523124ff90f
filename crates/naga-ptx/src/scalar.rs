//! Scalar types, and the register class that holds each.

use naga::ScalarKind;

/// A scalar type of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    Bool,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// A class of registers: PTX lets an untyped register serve every type of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Predicate,
    Half,
    Word,
    Long,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Predicate, Class::Half, Class::Word, Class::Long];

    /// The register's prefix.
    pub fn prefix(self) -> &'static str {
        match self {
            Class::Predicate => "%p",
            Class::Half => "%h",
            Class::Word => "%r",
            Class::Long => "%d",
        }
    }

    /// The type that it is declared with, and that moves and loads use.
    pub fn bits(self) -> &'static str {
        match self {
            Class::Predicate => "pred",
            Class::Half => "b16",
            Class::Word => "b32",
            Class::Long => "b64",
        }
    }
}

impl Scalar {
    /// The scalar of naga's; none for abstract types.
    pub fn of(scalar: naga::Scalar) -> Option<Scalar> {
        Some(match (scalar.kind, scalar.width) {
            (ScalarKind::Bool, _) => Scalar::Bool,
            (ScalarKind::Sint, 2) => Scalar::I16,
            (ScalarKind::Uint, 2) => Scalar::U16,
            (ScalarKind::Sint, 4) => Scalar::I32,
            (ScalarKind::Uint, 4) => Scalar::U32,
            (ScalarKind::Sint, 8) => Scalar::I64,
            (ScalarKind::Uint, 8) => Scalar::U64,
            (ScalarKind::Float, 2) => Scalar::F16,
            (ScalarKind::Float, 4) => Scalar::F32,
            (ScalarKind::Float, 8) => Scalar::F64,
            _ => return None,
        })
    }

    pub fn class(self) -> Class {
        match self {
            Scalar::Bool => Class::Predicate,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => Class::Half,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => Class::Word,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Class::Long,
        }
    }

    /// The instruction suffix of the type.
    pub fn suffix(self) -> &'static str {
        match self {
            Scalar::Bool => "pred",
            Scalar::I16 => "s16",
            Scalar::U16 => "u16",
            Scalar::I32 => "s32",
            Scalar::U32 => "u32",
            Scalar::I64 => "s64",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The instruction suffix of its bits.
    pub fn bits(self) -> &'static str {
        self.class().bits()
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::F32 | Scalar::F64)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// The unsigned integer with the same bits.
    pub fn unsigned(self) -> Scalar {
        match self.class() {
            Class::Half => Scalar::U16,
            Class::Long => Scalar::U64,
            _ => Scalar::U32,
        }
    }

    /// The signed integer with the same bits.
    pub fn signed(self) -> Scalar {
        match self.class() {
            Class::Half => Scalar::I16,
            Class::Long => Scalar::I64,
            _ => Scalar::I32,
        }
    }

    /// The minimum of a signed integer.
    pub fn min_value(self) -> i128 {
        -(1 << (8 * self.bytes() - 1))
    }
}
