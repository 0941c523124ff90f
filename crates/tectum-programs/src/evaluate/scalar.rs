//! Arithmetic on the bits of one value: the definition of each operation for each type.
//!
//! Values are words whose bits above the type's width are 0.

use tectum::kernel::pack::{bf16_bits, f16_bits, to_bf16, to_f16};
use tectum::kernel::reference;

use crate::{BinaryOp, Condition, TernaryOp, Type, UnaryOp};

/// The result of an operation of one operand.
#[inline(always)]
pub fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    let sign = 1 << (ty.bits() - 1);
    match op {
        UnaryOp::Abs if ty.is_float() => a & !sign,
        UnaryOp::Neg if ty.is_float() => a ^ sign,
        UnaryOp::Abs if signed(ty, a) < 0 && ty.is_signed() => a.wrapping_neg() & ty.mask(),
        UnaryOp::Abs => a,
        UnaryOp::Neg => a.wrapping_neg() & ty.mask(),
        UnaryOp::Not => !a & ty.mask(),
        UnaryOp::Relu if ty.is_float() => {
            if is_nan(ty, a) || a & sign == 0 {
                a
            } else {
                0
            }
        }
        UnaryOp::Relu => {
            if ty.is_signed() && signed(ty, a) < 0 {
                0
            } else {
                a
            }
        }
        _ => function(ty, a, elementary(op)),
    }
}

/// The result of an operation of two operands; `None` for an integer division by zero.
#[inline(always)]
pub fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> Option<u64> {
    if ty.is_float() {
        return Some(float_binary(op, ty, a, b));
    }
    let (x, y) = (signed(ty, a), signed(ty, b));
    let amount = b % u64::from(ty.bits());
    let lesser = if ty.is_signed() { x < y } else { a < b };
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if b == 0 => return None,
        BinaryOp::Div if ty.is_signed() => x.wrapping_div(y) as u64,
        BinaryOp::Div => a / b,
        BinaryOp::Min => {
            if lesser {
                a
            } else {
                b
            }
        }
        BinaryOp::Max => {
            if lesser {
                b
            } else {
                a
            }
        }
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a << amount,
        BinaryOp::Shr if ty.is_signed() => (x >> amount) as u64,
        BinaryOp::Shr => a >> amount,
    };
    Some(result & ty.mask())
}

/// The result of an operation of three operands.
#[inline(always)]
pub fn ternary(op: TernaryOp, ty: Type, a: u64, b: u64, c: u64) -> u64 {
    match op {
        TernaryOp::Mad => {
            let step = |op, a, b| binary(op, ty, a, b).expect("invariant: neither is a division");
            step(BinaryOp::Add, step(BinaryOp::Mul, a, b), c)
        }
        TernaryOp::Fma if ty == Type::F64 => f64::from_bits(a)
            .mul_add(f64::from_bits(b), f64::from_bits(c))
            .to_bits(),
        TernaryOp::Fma => narrow(ty, widen(ty, a).mul_add(widen(ty, b), widen(ty, c))),
    }
}

/// Whether a comparison holds.
#[inline(always)]
pub fn compare(condition: Condition, ty: Type, a: u64, b: u64) -> bool {
    let order = if ty.is_float() {
        real(ty, a).partial_cmp(&real(ty, b))
    } else if ty.is_signed() && !condition.is_unsigned() {
        Some(signed(ty, a).cmp(&signed(ty, b)))
    } else {
        Some(a.cmp(&b))
    };
    match condition {
        Condition::Eq => order.is_some_and(|order| order.is_eq()),
        Condition::Ne => order.is_none_or(|order| order.is_ne()),
        Condition::Lt | Condition::Ltu => order.is_some_and(|order| order.is_lt()),
        Condition::Le | Condition::Leu => order.is_some_and(|order| order.is_le()),
        Condition::Gt | Condition::Gtu => order.is_some_and(|order| order.is_gt()),
        Condition::Ge | Condition::Geu => order.is_some_and(|order| order.is_ge()),
    }
}

/// A value as another type.
#[inline(always)]
pub fn convert(to: Type, from: Type, a: u64) -> u64 {
    match to {
        _ if to == from => a,
        Type::F64 if from.is_float() => real(from, a).to_bits(),
        Type::F64 if from.is_signed() => (signed(from, a) as f64).to_bits(),
        Type::F64 => (a as f64).to_bits(),
        _ if to.is_float() => narrow(to, single(from, a)),
        _ if from.is_float() => saturated(to, real(from, a)) & to.mask(),
        _ if from.is_signed() => signed(from, a) as u64 & to.mask(),
        _ => a & to.mask(),
    }
}

/// An f32 as f16, bf16 or f32.
#[inline(always)]
fn narrow(ty: Type, value: f32) -> u64 {
    let bits = value.to_bits();
    u64::from(match ty {
        Type::F16 => to_f16(bits),
        Type::Bf16 => to_bf16(bits),
        _ => bits,
    })
}

/// An f16, bf16 or f32 as f32.
#[inline(always)]
fn widen(ty: Type, bits: u64) -> f32 {
    f32::from_bits(match ty {
        Type::F16 => f16_bits(bits as u32),
        Type::Bf16 => bf16_bits(bits as u32),
        _ => bits as u32,
    })
}

/// Any value as the nearest f32.
#[inline(always)]
fn single(from: Type, bits: u64) -> f32 {
    match from {
        Type::F64 => f64::from_bits(bits) as f32,
        _ if from.is_float() => widen(from, bits),
        _ if from.is_signed() => signed(from, bits) as f32,
        _ => bits as f32,
    }
}

/// A float as f64, which is exact.
#[inline(always)]
fn real(ty: Type, bits: u64) -> f64 {
    if ty == Type::F64 {
        f64::from_bits(bits)
    } else {
        f64::from(widen(ty, bits))
    }
}

#[inline(always)]
fn is_nan(ty: Type, bits: u64) -> bool {
    real(ty, bits).is_nan()
}

/// The value of the bits as a signed integer of the type's width.
#[inline(always)]
fn signed(ty: Type, bits: u64) -> i64 {
    let unused = 64 - ty.bits();
    (bits << unused) as i64 >> unused
}

/// Truncated towards zero, then saturated to the type; 0 for NaN.
#[inline(always)]
fn saturated(to: Type, value: f64) -> u64 {
    match to {
        Type::I8 => value as i8 as u64,
        Type::I16 => value as i16 as u64,
        Type::I32 => value as i32 as u64,
        Type::I64 => value as i64 as u64,
        Type::U8 => u64::from(value as u8),
        Type::U16 => u64::from(value as u16),
        Type::U32 => u64::from(value as u32),
        _ => value as u64,
    }
}

#[inline(always)]
fn float_binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    if matches!(op, BinaryOp::Min | BinaryOp::Max) {
        return min_max(op == BinaryOp::Min, ty, a, b);
    }
    if ty == Type::F64 {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        return match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            _ => x / y,
        }
        .to_bits();
    }
    let (x, y) = (widen(ty, a), widen(ty, b));
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        _ => x / y,
    };
    narrow(ty, result)
}

/// The lesser or greater of two floats; NaN if either is; −0 below +0.
#[inline(always)]
fn min_max(least: bool, ty: Type, a: u64, b: u64) -> u64 {
    let (x, y) = (real(ty, a), real(ty, b));
    let a_is_less = if x == y { x.is_sign_negative() } else { x < y };
    match () {
        () if x.is_nan() => a,
        () if y.is_nan() => b,
        () if a_is_less == least => a,
        () => b,
    }
}

/// A function of f64 on f32 or f64.
fn function(ty: Type, a: u64, f: fn(f64) -> f64) -> u64 {
    let value = f(real(ty, a));
    if ty == Type::F64 {
        value.to_bits()
    } else {
        narrow(ty, value as f32)
    }
}

fn elementary(op: UnaryOp) -> fn(f64) -> f64 {
    match op {
        UnaryOp::Exp => f64::exp,
        UnaryOp::Log => f64::ln,
        UnaryOp::Log2 => f64::log2,
        UnaryOp::Log10 => f64::log10,
        UnaryOp::Sqrt => f64::sqrt,
        UnaryOp::Rsqrt => |x| 1.0 / x.sqrt(),
        UnaryOp::Sin => f64::sin,
        UnaryOp::Cos => f64::cos,
        UnaryOp::Tan => f64::tan,
        UnaryOp::Tanh => f64::tanh,
        UnaryOp::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Gelu => reference::gelu,
        UnaryOp::GeluErf => reference::gelu_erf,
        UnaryOp::Silu => reference::silu,
        UnaryOp::Erf => reference::erf,
        UnaryOp::Exp2 => f64::exp2,
        UnaryOp::Floor => f64::floor,
        UnaryOp::Ceil => f64::ceil,
        UnaryOp::Round => f64::round_ties_even,
        UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Not | UnaryOp::Relu => |x| x,
    }
}
