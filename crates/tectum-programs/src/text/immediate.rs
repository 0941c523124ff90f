//! Immediate values: numbers as text, and as the bits of a type.

use tectum::kernel::pack::{bf16_bits, f16_bits, to_bf16, to_f16};

use crate::Type;

/// The bits of a number of a type; `0x…` are the bits themselves.
pub fn bits_of(ty: Type, text: &str) -> Result<u64, String> {
    if let Some(digits) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16)
            .ok()
            .filter(|bits| bits & !ty.mask() == 0 && !digits.starts_with('+'));
        return bits.ok_or_else(|| format!("{text} is not the bits of {ty}"));
    }
    let bits = if ty.is_float() {
        float_bits(ty, text)
    } else {
        integer_bits(ty, text)
    };
    bits.ok_or_else(|| format!("{text} is no {ty}"))
}

/// Text for bits of a type: [`bits_of`] returns the same bits.
pub fn text_of(ty: Type, bits: u64) -> String {
    match ty {
        Type::F64 => {
            let value = f64::from_bits(bits);
            if value.is_nan() {
                format!("{bits:#x}")
            } else {
                format!("{value:?}")
            }
        }
        Type::F32 => float_text(bits as u32),
        Type::F16 if bits & 0x7fff > 0x7c00 => format!("{bits:#x}"),
        Type::Bf16 if bits & 0x7fff > 0x7f80 => format!("{bits:#x}"),
        Type::F16 => float_text(f16_bits(bits as u32)),
        Type::Bf16 => float_text(bf16_bits(bits as u32)),
        _ if ty.is_signed() => {
            let unused = 64 - ty.bits();
            ((bits << unused) as i64 >> unused).to_string()
        }
        _ => bits.to_string(),
    }
}

/// Text for an f32; NaN as its bits.
pub fn float_text(bits: u32) -> String {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        format!("{bits:#x}")
    } else {
        format!("{value:?}")
    }
}

fn integer_bits(ty: Type, text: &str) -> Option<u64> {
    let value: i128 = text.parse().ok()?;
    let (least, most) = if ty.is_signed() {
        (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1)
    } else {
        (0, i128::from(ty.mask()))
    };
    (least..=most)
        .contains(&value)
        .then_some(value as u64 & ty.mask())
}

/// A decimal number rounded to nearest; a finite one must stay finite.
fn float_bits(ty: Type, text: &str) -> Option<u64> {
    let infinite = text.contains("inf");
    if ty == Type::F64 {
        let value: f64 = text.parse().ok()?;
        return (value.is_infinite() == infinite).then_some(value.to_bits());
    }
    let value: f32 = text.parse().ok()?;
    let bits = match ty {
        Type::F16 => to_f16(value.to_bits()),
        Type::Bf16 => to_bf16(value.to_bits()),
        _ => value.to_bits(),
    };
    let rounded = match ty {
        Type::F16 => f16_bits(bits),
        Type::Bf16 => bf16_bits(bits),
        _ => bits,
    };
    (f32::from_bits(rounded).is_infinite() == infinite).then_some(u64::from(bits))
}
