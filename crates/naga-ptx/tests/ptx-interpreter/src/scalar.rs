//! Fundamental types and the rules for registers of these types.

use std::fmt;

/// The interpretation of a type's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Predicate,
    Bits,
    Unsigned,
    Signed,
    Float,
    /// The 16-bit format with the exponent range of `f32`.
    Brain,
    /// Two `f16` in 32 bits.
    FloatPair,
    /// Two `bf16` in 32 bits.
    BrainPair,
}

/// A PTX fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub class: Class,
    pub bits: u32,
}

const NAMES: [(&str, Scalar); 19] = [
    ("pred", Scalar::PREDICATE),
    ("b8", Scalar::new(Class::Bits, 8)),
    ("b16", Scalar::B16),
    ("b32", Scalar::B32),
    ("b64", Scalar::B64),
    ("u8", Scalar::new(Class::Unsigned, 8)),
    ("u16", Scalar::U16),
    ("u32", Scalar::U32),
    ("u64", Scalar::U64),
    ("s8", Scalar::new(Class::Signed, 8)),
    ("s16", Scalar::S16),
    ("s32", Scalar::S32),
    ("s64", Scalar::S64),
    ("f16", Scalar::F16),
    ("f32", Scalar::F32),
    ("f64", Scalar::F64),
    ("f16x2", Scalar::F16X2),
    ("bf16", Scalar::BF16),
    ("bf16x2", Scalar::BF16X2),
];

impl Scalar {
    pub const PREDICATE: Scalar = Scalar::new(Class::Predicate, 1);
    pub const B16: Scalar = Scalar::new(Class::Bits, 16);
    pub const B32: Scalar = Scalar::new(Class::Bits, 32);
    pub const B64: Scalar = Scalar::new(Class::Bits, 64);
    pub const U16: Scalar = Scalar::new(Class::Unsigned, 16);
    pub const U32: Scalar = Scalar::new(Class::Unsigned, 32);
    pub const U64: Scalar = Scalar::new(Class::Unsigned, 64);
    pub const S16: Scalar = Scalar::new(Class::Signed, 16);
    pub const S32: Scalar = Scalar::new(Class::Signed, 32);
    pub const S64: Scalar = Scalar::new(Class::Signed, 64);
    pub const F16: Scalar = Scalar::new(Class::Float, 16);
    pub const F32: Scalar = Scalar::new(Class::Float, 32);
    pub const F64: Scalar = Scalar::new(Class::Float, 64);
    pub const F16X2: Scalar = Scalar::new(Class::FloatPair, 32);
    pub const BF16: Scalar = Scalar::new(Class::Brain, 16);
    pub const BF16X2: Scalar = Scalar::new(Class::BrainPair, 32);

    pub const fn new(class: Class, bits: u32) -> Scalar {
        Scalar { class, bits }
    }

    /// The type a modifier names.
    pub fn named(name: &str) -> Option<Scalar> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, scalar)| *scalar)
    }

    pub fn bytes(self) -> usize {
        (self.bits as usize).div_ceil(8)
    }

    pub fn is_signed(self) -> bool {
        self.class == Class::Signed
    }

    pub fn is_integer(self) -> bool {
        matches!(self.class, Class::Signed | Class::Unsigned)
    }

    pub fn is_float(self) -> bool {
        matches!(self.class, Class::Float | Class::Brain)
    }

    pub fn is_pair(self) -> bool {
        matches!(self.class, Class::FloatPair | Class::BrainPair)
    }

    /// The element of a packed pair, or the type itself.
    pub fn element(self) -> Scalar {
        match self.class {
            Class::FloatPair => Scalar::F16,
            Class::BrainPair => Scalar::BF16,
            _ => self,
        }
    }

    pub fn mask(self) -> u64 {
        mask(self.bits)
    }

    /// Whether a register of type `register` may be an operand of this instruction type.
    pub fn accepts(self, register: Scalar) -> bool {
        self.bits == register.bits && self.class_accepts(register)
    }

    /// The relaxed rule of `ld`, `st` and `cvt`: the register may be wider.
    pub fn accepts_wider(self, register: Scalar) -> bool {
        if self.is_float() && register.is_float() {
            return self == register;
        }
        register.class != Class::Predicate
            && self.bits <= register.bits
            && self.class_accepts(register)
    }

    fn class_accepts(self, register: Scalar) -> bool {
        match (self.class, register.class) {
            (Class::Predicate, other) | (other, Class::Predicate) => other == Class::Predicate,
            (Class::Bits, _) | (_, Class::Bits) => true,
            (Class::Signed | Class::Unsigned, Class::Signed | Class::Unsigned) => true,
            (own, other) => own == other,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, scalar)| scalar == self);
        write!(out, ".{}", name.map_or("?", |(name, _)| name))
    }
}

/// The low `bits` bits set.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The low `bits` bits of `value` read in two's complement.
pub(crate) fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((value << shift) as i64) >> shift
}
