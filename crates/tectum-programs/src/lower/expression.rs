//! The result of an instruction, as a WGSL expression over registers (`r5` for up to 32 bits, `w5`
//! for 64).

use super::Unsupported;
use crate::{BinaryOp, Condition, Register, TernaryOp, Type, UnaryOp};

type Expression = Result<String, Unsupported>;

/// The variable of a register that holds a type.
pub fn variable(register: Register, ty: Type) -> String {
    let letter = if ty.bytes() == 8 { 'w' } else { 'r' };
    format!("{letter}{}", register.0)
}

/// The bits of a constant.
pub fn constant(ty: Type, bits: u64) -> String {
    if ty.bytes() == 8 {
        return format!("vec2<u32>({:#x}u, {:#x}u)", bits as u32, bits >> 32);
    }
    let word = match ty {
        Type::I8 => bits as i8 as u32,
        Type::I16 => bits as i16 as u32,
        _ => bits as u32,
    };
    format!("{word:#x}u")
}

/// The low bits of a word as a value of an integer type of up to 32 bits, or of a half-width float.
pub fn wrap(ty: Type, word: String) -> String {
    match ty {
        Type::I8 => format!("sign8({word})"),
        Type::I16 => format!("sign16({word})"),
        Type::U8 => format!("({word}) & 0xffu"),
        Type::U16 | Type::F16 | Type::Bf16 => format!("({word}) & 0xffffu"),
        _ => word,
    }
}

/// A half-width float as the bits of an f32; an f32 unchanged.
fn widened(ty: Type, value: &str) -> String {
    match ty {
        Type::F16 => format!("tectum_f16_bits({value})"),
        Type::Bf16 => format!("tectum_bf16_bits({value})"),
        _ => value.to_owned(),
    }
}

/// The bits of an f32 as a half-width float; of an f32 as they are.
fn narrowed(ty: Type, value: String) -> String {
    match ty {
        Type::F16 => format!("tectum_to_f16({value})"),
        Type::Bf16 => format!("tectum_to_bf16({value})"),
        _ => value,
    }
}

fn no_f64(name: &str) -> Unsupported {
    Unsupported::new(format!(
        "{name}.f64: portable device code has no arithmetic of 64-bit floats"
    ))
}

/// The function family of an integer type, used in the names of its comparisons and extremes.
fn order(ty: Type) -> &'static str {
    match (ty.bytes() == 8, ty.is_signed()) {
        (true, true) => "i64",
        (true, false) => "u64",
        (false, true) => "i32",
        (false, false) => "u32",
    }
}

/// An operation of one operand.
pub fn unary(op: UnaryOp, ty: Type, a: &str) -> Expression {
    if ty.is_float() {
        float_unary(op, ty, a)
    } else {
        Ok(integer_unary(op, ty, a))
    }
}

fn integer_unary(op: UnaryOp, ty: Type, a: &str) -> String {
    let wide = ty.bytes() == 8;
    match op {
        UnaryOp::Abs if !ty.is_signed() => a.to_owned(),
        UnaryOp::Abs if wide => format!("abs_i64({a})"),
        UnaryOp::Abs => wrap(ty, format!("abs_i32({a})")),
        UnaryOp::Neg if wide => format!("neg_64({a})"),
        UnaryOp::Neg => wrap(ty, format!("0u - {a}")),
        UnaryOp::Not if wide => format!("~{a}"),
        UnaryOp::Not => wrap(ty, format!("~{a}")),
        UnaryOp::Relu if !ty.is_signed() => a.to_owned(),
        UnaryOp::Relu if wide => format!("max_i64({a}, vec2<u32>(0u, 0u))"),
        _ => format!("max_i32({a}, 0u)"),
    }
}

fn float_unary(op: UnaryOp, ty: Type, a: &str) -> Expression {
    let (sign, rest) = if ty.bytes() == 2 {
        ("0x8000u", "0x7fffu")
    } else {
        ("0x80000000u", "0x7fffffffu")
    };
    Ok(match (op, ty) {
        (UnaryOp::Abs, Type::F64) => format!("{a} & vec2<u32>(0xffffffffu, {rest})"),
        (UnaryOp::Neg, Type::F64) => format!("{a} ^ vec2<u32>(0u, {sign})"),
        (UnaryOp::Relu, Type::F64) => format!("relu_f64({a})"),
        (UnaryOp::Abs, _) => format!("{a} & {rest}"),
        (UnaryOp::Neg, _) => format!("{a} ^ {sign}"),
        (_, Type::F64) => return Err(no_f64(op.name())),
        _ => narrowed(ty, format!("{}_f32({})", op.name(), widened(ty, a))),
    })
}

/// An operation of two operands.
pub fn binary(op: BinaryOp, ty: Type, a: &str, b: &str) -> Expression {
    match ty {
        Type::F64 if matches!(op, BinaryOp::Min | BinaryOp::Max) => {
            Ok(format!("{}_f64({a}, {b})", op.name()))
        }
        Type::F64 => Err(no_f64(op.name())),
        _ if ty.is_float() => Ok(narrowed(
            ty,
            format!("{}_f32({}, {})", op.name(), widened(ty, a), widened(ty, b)),
        )),
        Type::I64 | Type::U64 => Ok(wide_binary(op, ty, a, b)),
        _ => Ok(word_binary(op, ty, a, b)),
    }
}

fn wide_binary(op: BinaryOp, ty: Type, a: &str, b: &str) -> String {
    let name = op.name();
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => format!("{name}_64({a}, {b})"),
        BinaryOp::And => format!("{a} & {b}"),
        BinaryOp::Or => format!("{a} | {b}"),
        BinaryOp::Xor => format!("{a} ^ {b}"),
        BinaryOp::Shl => format!("shl_64({a}, {b} & 63u)"),
        BinaryOp::Shr => format!("shr_{}({a}, {b} & 63u)", order(ty)),
        BinaryOp::Div | BinaryOp::Min | BinaryOp::Max => format!("{name}_{}({a}, {b})", order(ty)),
    }
}

fn word_binary(op: BinaryOp, ty: Type, a: &str, b: &str) -> String {
    let (signed, last) = (ty.is_signed(), ty.bits() - 1);
    let word = match op {
        BinaryOp::Add => format!("{a} + {b}"),
        BinaryOp::Sub => format!("{a} - {b}"),
        BinaryOp::Mul => format!("{a} * {b}"),
        BinaryOp::Div if signed => format!("div_i32({a}, {b})"),
        BinaryOp::Div => return format!("{a} / {b}"),
        BinaryOp::Min | BinaryOp::Max if signed => return format!("{}_i32({a}, {b})", op.name()),
        BinaryOp::Min | BinaryOp::Max => return format!("{}({a}, {b})", op.name()),
        BinaryOp::And => return format!("{a} & {b}"),
        BinaryOp::Or => return format!("{a} | {b}"),
        BinaryOp::Xor => return format!("{a} ^ {b}"),
        BinaryOp::Shl => format!("{a} << ({b} & {last}u)"),
        BinaryOp::Shr if signed => return format!("shr_i32({a}, {b} & {last}u)"),
        BinaryOp::Shr => return format!("{a} >> ({b} & {last}u)"),
    };
    wrap(ty, word)
}

/// `mad` or `fma`.
pub fn ternary(op: TernaryOp, ty: Type, [a, b, c]: [&str; 3]) -> Expression {
    if ty == Type::F64 {
        return Err(no_f64(op.name()));
    } else if ty.is_integer() {
        let product = binary(BinaryOp::Mul, ty, a, b)?;
        return binary(
            BinaryOp::Add,
            ty,
            &if ty.bytes() == 8 {
                product
            } else {
                format!("({product})")
            },
            c,
        );
    }
    match op {
        // Rounds twice, as two instructions.
        TernaryOp::Mad => binary(BinaryOp::Add, ty, &binary(BinaryOp::Mul, ty, a, b)?, c),
        TernaryOp::Fma => Ok(narrowed(
            ty,
            format!(
                "fma_f32({}, {}, {})",
                widened(ty, a),
                widened(ty, b),
                widened(ty, c)
            ),
        )),
    }
}

/// A comparison, as a truth value.
pub fn compare(condition: Condition, ty: Type, a: &str, b: &str) -> String {
    use Condition as C;
    if ty.is_float() {
        let suffix = if ty == Type::F64 { "f64" } else { "f32" };
        let (a, b) = (widened(ty, a), widened(ty, b));
        return match condition {
            C::Eq => format!("eq_{suffix}({a}, {b})"),
            C::Ne => format!("!eq_{suffix}({a}, {b})"),
            C::Lt | C::Ltu => format!("lt_{suffix}({a}, {b})"),
            C::Le | C::Leu => format!("le_{suffix}({a}, {b})"),
            C::Gt | C::Gtu => format!("lt_{suffix}({b}, {a})"),
            C::Ge | C::Geu => format!("le_{suffix}({b}, {a})"),
        };
    }
    let wide = ty.bytes() == 8;
    let kind = match (order(ty), condition.is_unsigned()) {
        ("i32", false) => "i32",
        ("i64", false) => "i64",
        (_, _) if wide => "u64",
        _ => "u32",
    };
    let less = |a: &str, b: &str| {
        if kind == "u32" {
            format!("({a} < {b})")
        } else {
            format!("lt_{kind}({a}, {b})")
        }
    };
    match condition {
        C::Eq if wide => format!("eq_64({a}, {b})"),
        C::Ne if wide => format!("!eq_64({a}, {b})"),
        C::Eq => format!("({a} == {b})"),
        C::Ne => format!("({a} != {b})"),
        C::Lt | C::Ltu => less(a, b),
        C::Gt | C::Gtu => less(b, a),
        C::Le | C::Leu => format!("!{}", less(b, a)),
        C::Ge | C::Geu => format!("!{}", less(a, b)),
    }
}

/// A conversion.
pub fn convert(to: Type, from: Type, a: &str) -> String {
    match (to.is_float(), from.is_float()) {
        (_, _) if to == from => a.to_owned(),
        (false, false) => between_integers(to, from, a),
        (true, false) => from_integer(to, from, a),
        (false, true) => to_integer(to, from, a),
        (true, true) if to == Type::F64 => format!("f64_from_f32({})", widened(from, a)),
        (true, true) if from == Type::F64 => narrowed(to, format!("f32_from_f64({a})")),
        (true, true) => narrowed(to, widened(from, a)),
    }
}

/// An integer as 64 bits.
fn as_wide(from: Type, a: &str) -> String {
    match (from.bytes() == 8, from.is_signed()) {
        (true, _) => a.to_owned(),
        (false, true) => format!("sign_64({a})"),
        (false, false) => format!("vec2<u32>({a}, 0u)"),
    }
}

fn between_integers(to: Type, from: Type, a: &str) -> String {
    match (to.bytes() == 8, from.bytes() == 8) {
        (true, _) => as_wide(from, a),
        (false, true) => wrap(to, format!("{a}.x")),
        (false, false) => wrap(to, a.to_owned()),
    }
}

fn from_integer(to: Type, from: Type, a: &str) -> String {
    if to == Type::F64 {
        let kind = if from.is_signed() { "i64" } else { "u64" };
        return format!("f64_from_{kind}({})", as_wide(from, a));
    }
    narrowed(to, format!("f32_from_{}({a})", order(from)))
}

fn to_integer(to: Type, from: Type, a: &str) -> String {
    let (whole, sign) = if from == Type::F64 {
        (format!("whole_f64({a})"), format!("{a}.y"))
    } else {
        let wide = widened(from, a);
        (format!("whole_f32({wide})"), wide)
    };
    match (to.bytes() == 8, to.is_signed()) {
        (true, _) => format!("saturate_{}({whole}, {sign})", order(to)),
        (false, true) => format!("saturate_signed({whole}, {sign}, {:#x}u)", to.mask() >> 1),
        (false, false) => format!("saturate_unsigned({whole}, {sign}, {:#x}u)", to.mask()),
    }
}
