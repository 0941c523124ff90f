//! Instructions over columns: each as defined by [`scalar`], compiled into one loop for each
//! operation and type.

use tectum::kernel::math;
use tectum::kernel::math::double;
use tectum::kernel::native::simd;

use super::register_file::Bits;
use crate::{BinaryOp, Condition, TernaryOp, Type, UnaryOp, scalar};

/// The body with the given member of a family as a constant.
macro_rules! for_member {
    ($family:ident, $value:expr, [$($member:ident)*], $name:ident => $body:expr) => {
        match $value {
            $($family::$member => {
                const $name: $family = $family::$member;
                $body
            })*
            #[allow(unreachable_patterns, reason = "some families are named whole")]
            _ => unreachable!("invariant: a program's operations are defined for their types"),
        }
    };
}

/// `out = f(a)`.
#[inline(always)]
fn map<A: Bits, R: Copy>(a: &[A], out: &mut [R], f: impl Fn(A) -> R) {
    simd(
        #[inline(always)]
        || {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a);
            }
        },
    );
}

/// `out = f(a, b)`.
#[inline(always)]
fn map2<A: Bits, B: Bits, R: Copy>(a: &[A], b: &[B], out: &mut [R], f: impl Fn(u64, u64) -> R) {
    simd(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a.bits(), b.bits());
            }
        },
    );
}

/// `out = f(a, b, c)`.
#[inline(always)]
fn map3<A: Bits>(a: &[A], b: &[A], c: &[A], out: &mut [A], f: impl Fn(u64, u64, u64) -> u64) {
    simd(
        #[inline(always)]
        || {
            for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                *out = A::of(f(a.bits(), b.bits(), c.bits()));
            }
        },
    );
}

/// A unary operation on words.
pub fn unary_words(op: UnaryOp, ty: Type, a: &[u32], out: &mut [u32]) {
    match op {
        UnaryOp::Not | UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu if ty.is_integer() => {
            for_member!(UnaryOp, op, [Not Abs Neg Relu], OP => {
                for_member!(Type, ty, [I8 I16 I32 U8 U16 U32], T => map(a, out, #[inline(always)] |a| scalar::unary(OP, T, a.bits()) as u32))
            })
        }
        UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu => {
            for_member!(UnaryOp, op, [Abs Neg Relu], OP => {
                for_member!(Type, ty, [F16 Bf16 F32], T => map(a, out, #[inline(always)] |a| scalar::unary(OP, T, a.bits()) as u32))
            })
        }
        _ => single(op, a, out),
    }
}

/// A unary operation on values of 64 bits.
pub fn unary_longs(op: UnaryOp, ty: Type, a: &[u64], out: &mut [u64]) {
    match op {
        UnaryOp::Not | UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Relu => {
            for_member!(UnaryOp, op, [Not Abs Neg Relu], OP => {
                for_member!(Type, ty, [I64 U64 F64], T => map(a, out, #[inline(always)] |a| scalar::unary(OP, T, a)))
            })
        }
        _ => twofold(op, a, out),
    }
}

/// The functions on f32.
fn single(op: UnaryOp, a: &[u32], out: &mut [u32]) {
    macro_rules! on {
        ($f:expr) => {
            map(
                a,
                out,
                #[inline(always)]
                |a| -> u32 { f32::to_bits($f(f32::from_bits(a))) },
            )
        };
    }
    let mut over =
        |f: fn(&[f32], &mut [f32])| f(bytemuck::cast_slice(a), bytemuck::cast_slice_mut(out));
    let near = || {
        a.iter()
            .fold(true, |near, &a| near & math::is_near(f32::from_bits(a)))
    };
    match op {
        UnaryOp::Exp => over(math::slices::exp),
        UnaryOp::Log => on!(math::log),
        UnaryOp::Log2 => on!(math::log2),
        UnaryOp::Log10 => on!(|a| math::log(a) * std::f32::consts::LOG10_E),
        UnaryOp::Sqrt => on!(f32::sqrt),
        UnaryOp::Rsqrt => on!(|a| 1.0 / f32::sqrt(a)),
        UnaryOp::Sin if near() => on!(math::sin_near),
        UnaryOp::Cos if near() => on!(math::cos_near),
        UnaryOp::Tan if near() => on!(|a| math::sin_near(a) / math::cos_near(a)),
        UnaryOp::Sin => on!(math::sin),
        UnaryOp::Cos => on!(math::cos),
        UnaryOp::Tan => on!(|a| math::sin(a) / math::cos(a)),
        UnaryOp::Tanh => over(math::slices::tanh),
        UnaryOp::Sigmoid => over(math::slices::sigmoid),
        UnaryOp::Gelu => on!(math::gelu),
        UnaryOp::GeluErf => on!(math::gelu_erf),
        UnaryOp::Silu => on!(math::silu),
        UnaryOp::Erf => on!(math::erf),
        UnaryOp::Exp2 => over(math::slices::exp2),
        UnaryOp::Floor => on!(f32::floor),
        UnaryOp::Ceil => on!(f32::ceil),
        UnaryOp::Round => on!(f32::round_ties_even),
        UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Not | UnaryOp::Relu => {
            unreachable!("invariant: these are no functions")
        }
    }
}

/// The functions on f64.
fn twofold(op: UnaryOp, a: &[u64], out: &mut [u64]) {
    macro_rules! on {
        ($f:expr) => {
            map(
                a,
                out,
                #[inline(always)]
                |a| -> u64 { f64::to_bits($f(f64::from_bits(a))) },
            )
        };
    }
    match op {
        UnaryOp::Exp => on!(double::exp),
        UnaryOp::Log => on!(double::log),
        UnaryOp::Log2 => on!(double::log2),
        UnaryOp::Log10 => on!(|a| double::log(a) * std::f64::consts::LOG10_E),
        UnaryOp::Sqrt => on!(f64::sqrt),
        UnaryOp::Rsqrt => on!(|a| 1.0 / f64::sqrt(a)),
        UnaryOp::Sin => on!(double::sin),
        UnaryOp::Cos => on!(double::cos),
        UnaryOp::Tan => on!(|a| double::sin(a) / double::cos(a)),
        UnaryOp::Tanh => on!(double::tanh),
        UnaryOp::Sigmoid => on!(double::sigmoid),
        UnaryOp::Gelu => on!(double::gelu),
        UnaryOp::GeluErf => on!(double::gelu_erf),
        UnaryOp::Silu => on!(double::silu),
        UnaryOp::Erf => on!(double::erf),
        UnaryOp::Exp2 => on!(double::exp2),
        UnaryOp::Floor => on!(f64::floor),
        UnaryOp::Ceil => on!(f64::ceil),
        UnaryOp::Round => on!(f64::round_ties_even),
        UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Not | UnaryOp::Relu => {
            unreachable!("invariant: these are no functions")
        }
    }
}

/// A binary operation on words; the quotient by zero is the dividend.
pub fn binary_words(op: BinaryOp, ty: Type, a: &[u32], b: &[u32], out: &mut [u32]) {
    if ty.is_float() {
        for_member!(BinaryOp, op, [Add Sub Mul Div Min Max], OP => {
            for_member!(Type, ty, [F16 Bf16 F32], T => map2(a, b, out, #[inline(always)] |a, b| scalar::binary(OP, T, a, b).unwrap_or(a) as u32))
        });
    } else {
        for_member!(BinaryOp, op, [Add Sub Mul Div Min Max And Or Xor Shl Shr], OP => {
            for_member!(Type, ty, [I8 I16 I32 U8 U16 U32], T => map2(a, b, out, #[inline(always)] |a, b| scalar::binary(OP, T, a, b).unwrap_or(a) as u32))
        });
    }
}

/// A binary operation on values of 64 bits except a shift; the quotient by zero is the dividend.
pub fn binary_longs(op: BinaryOp, ty: Type, a: &[u64], b: &[u64], out: &mut [u64]) {
    if ty.is_float() {
        for_member!(BinaryOp, op, [Add Sub Mul Div Min Max], OP => {
            map2(a, b, out, #[inline(always)] |a, b| scalar::binary(OP, Type::F64, a, b).unwrap_or(a))
        });
    } else {
        for_member!(BinaryOp, op, [Add Sub Mul Div Min Max And Or Xor], OP => {
            for_member!(Type, ty, [I64 U64], T => map2(a, b, out, #[inline(always)] |a, b| scalar::binary(OP, T, a, b).unwrap_or(a)))
        });
    }
}

/// A shift of values of 64 bits.
pub fn shift_longs(op: BinaryOp, ty: Type, a: &[u64], amount: &[u32], out: &mut [u64]) {
    for_member!(BinaryOp, op, [Shl Shr], OP => {
        for_member!(Type, ty, [I64 U64], T => map2(a, amount, out, #[inline(always)] |a, b| scalar::binary(OP, T, a, b).unwrap_or(a)))
    });
}

/// A ternary operation on words.
pub fn ternary_words(op: TernaryOp, ty: Type, [a, b, c]: [&[u32]; 3], out: &mut [u32]) {
    match op {
        TernaryOp::Mad => for_member!(Type, ty, [I8 I16 I32 U8 U16 U32 F16 Bf16 F32], T => {
            map3(a, b, c, out, #[inline(always)] |a, b, c| scalar::ternary(TernaryOp::Mad, T, a, b, c))
        }),
        TernaryOp::Fma => for_member!(Type, ty, [F16 Bf16 F32], T => {
            map3(a, b, c, out, #[inline(always)] |a, b, c| scalar::ternary(TernaryOp::Fma, T, a, b, c))
        }),
    }
}

/// A ternary operation on values of 64 bits.
pub fn ternary_longs(op: TernaryOp, ty: Type, [a, b, c]: [&[u64]; 3], out: &mut [u64]) {
    match op {
        TernaryOp::Mad => for_member!(Type, ty, [I64 U64 F64], T => {
            map3(a, b, c, out, #[inline(always)] |a, b, c| scalar::ternary(TernaryOp::Mad, T, a, b, c))
        }),
        TernaryOp::Fma => map3(
            a,
            b,
            c,
            out,
            #[inline(always)]
            |a, b, c| scalar::ternary(TernaryOp::Fma, Type::F64, a, b, c),
        ),
    }
}

/// A comparison of words: 1 where it holds, else 0.
pub fn compare_words(condition: Condition, ty: Type, a: &[u32], b: &[u32], out: &mut [u8]) {
    if ty.is_float() {
        for_member!(Condition, condition, [Eq Ne Lt Le Gt Ge], C => {
            for_member!(Type, ty, [F16 Bf16 F32], T => map2(a, b, out, #[inline(always)] |a, b| u8::from(scalar::compare(C, T, a, b))))
        });
    } else {
        for_member!(Condition, condition, [Eq Ne Lt Le Gt Ge Ltu Leu Gtu Geu], C => {
            for_member!(Type, ty, [I8 I16 I32 U8 U16 U32], T => map2(a, b, out, #[inline(always)] |a, b| u8::from(scalar::compare(C, T, a, b))))
        });
    }
}

/// A comparison of values of 64 bits.
pub fn compare_longs(condition: Condition, ty: Type, a: &[u64], b: &[u64], out: &mut [u8]) {
    if ty.is_float() {
        for_member!(Condition, condition, [Eq Ne Lt Le Gt Ge], C => map2(a, b, out, #[inline(always)] |a, b| u8::from(scalar::compare(C, Type::F64, a, b))));
    } else {
        for_member!(Condition, condition, [Eq Ne Lt Le Gt Ge Ltu Leu Gtu Geu], C => {
            for_member!(Type, ty, [I64 U64], T => map2(a, b, out, #[inline(always)] |a, b| u8::from(scalar::compare(C, T, a, b))))
        });
    }
}

/// A selection by truth values.
pub fn select<B: Bits>(truths: &[u8], on_true: &[B], on_false: &[B], out: &mut [B]) {
    simd(
        #[inline(always)]
        || {
            for (((out, &truth), &a), &b) in out.iter_mut().zip(truths).zip(on_true).zip(on_false) {
                *out = if truth != 0 { a } else { b };
            }
        },
    );
}

/// A conversion; those between types of 32 and 64 bits have separate loops.
pub fn convert<A: Bits, R: Bits>(to: Type, from: Type, a: &[A], out: &mut [R]) {
    macro_rules! loops {
        ($([$to:ident $from:ident])*) => {
            match (to, from) {
                $((Type::$to, Type::$from) => map(a, out, #[inline(always)] |a| R::of(scalar::convert(Type::$to, Type::$from, a.bits()))),)*
                _ => map(a, out, |a| R::of(scalar::convert(to, from, a.bits()))),
            }
        };
    }
    match (size_of::<R>(), size_of::<A>()) {
        (4, 4) => {
            loops!([F32 I32] [F32 U32] [I32 F32] [U32 F32] [I32 U32] [U32 I32] [F32 F16] [F32 Bf16] [F16 F32] [Bf16 F32] [I32 I8] [I32 U8] [F32 I8] [F32 U8] [U8 I32] [I8 I32])
        }
        (8, 4) => loops!([F64 F32] [F64 I32] [F64 U32] [I64 I32] [U64 U32] [U64 I32] [I64 U32]),
        (4, 8) => loops!([F32 F64] [I32 F64] [U32 U64] [I32 I64] [U32 I64] [F32 U64] [F32 I64]),
        _ => loops!([F64 I64] [F64 U64] [I64 U64] [U64 I64]),
    }
}
