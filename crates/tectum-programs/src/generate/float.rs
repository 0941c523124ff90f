//! Float operations that keep values in [−1, 1] and amplify no error.

use super::random::Random;
use crate::{BinaryOp, Instruction, ProgramBuilder, Register, TernaryOp, Type, UnaryOp, scalar};

/// Registers for intermediate values and constants.
const VALUE: Register = Register(222);
const CONSTANT: Register = Register(223);

/// One operation on values in [−1, 1].
pub fn operation(
    builder: &mut ProgramBuilder,
    random: &mut Random,
    ty: Type,
    dst: Register,
    [a, b, c]: [Register; 3],
) {
    match random.below(if matches!(ty, Type::F32 | Type::F64) {
        6
    } else {
        3
    }) {
        0 => {
            let op = random.pick(&[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::Min,
                BinaryOp::Max,
            ]);
            builder.binary(op, ty, VALUE, a, b);
            scale(builder, ty, 0.5);
        }
        1 => {
            let op = random.pick(TernaryOp::ALL);
            builder.ternary(op, ty, VALUE, [a, b, c]);
            scale(builder, ty, 0.25);
        }
        2 => {
            let op = random.pick(&[UnaryOp::Abs, UnaryOp::Neg, UnaryOp::Relu]);
            builder.unary(op, ty, VALUE, a);
        }
        3 => {
            let op = random.pick(&[
                UnaryOp::Tanh,
                UnaryOp::Sigmoid,
                UnaryOp::Sin,
                UnaryOp::Cos,
                UnaryOp::Erf,
            ]);
            builder.unary(op, ty, VALUE, a);
        }
        4 => {
            let op = random.pick(&[
                UnaryOp::Exp,
                UnaryOp::Exp2,
                UnaryOp::Tan,
                UnaryOp::Gelu,
                UnaryOp::GeluErf,
                UnaryOp::Silu,
            ]);
            builder.unary(op, ty, VALUE, a);
            scale(builder, ty, 0.25);
        }
        _ => {
            // Values in [1.5, 3.5]: roots, logarithms and quotients are well conditioned there.
            set(builder, ty, 2.5);
            builder.binary(BinaryOp::Add, ty, VALUE, a, CONSTANT);
            if random.one_in(3) {
                builder.binary(BinaryOp::Div, ty, VALUE, b, VALUE);
            } else {
                let op = random.pick(&[
                    UnaryOp::Log,
                    UnaryOp::Log2,
                    UnaryOp::Log10,
                    UnaryOp::Sqrt,
                    UnaryOp::Rsqrt,
                ]);
                builder.unary(op, ty, VALUE, VALUE);
                scale(builder, ty, 0.5);
            }
        }
    }
    clip(builder, ty, dst);
}

/// A value of another float type, or a byte, in [−1, 1].
pub fn converted(builder: &mut ProgramBuilder, ty: Type, from: Type, dst: Register, src: Register) {
    builder.push(Instruction::Convert {
        to: ty,
        from,
        dst: VALUE,
        src,
    });
    if from.is_integer() {
        scale(builder, ty, 1.0 / 256.0);
    }
    clip(builder, ty, dst);
}

fn set(builder: &mut ProgramBuilder, ty: Type, value: f32) {
    builder.immediate(
        ty,
        CONSTANT,
        scalar::convert(ty, Type::F32, u64::from(value.to_bits())),
    );
}

fn scale(builder: &mut ProgramBuilder, ty: Type, by: f32) {
    set(builder, ty, by);
    builder.binary(BinaryOp::Mul, ty, VALUE, VALUE, CONSTANT);
}

fn clip(builder: &mut ProgramBuilder, ty: Type, dst: Register) {
    set(builder, ty, 1.0);
    builder.binary(BinaryOp::Min, ty, VALUE, VALUE, CONSTANT);
    set(builder, ty, -1.0);
    builder.binary(BinaryOp::Max, ty, dst, VALUE, CONSTANT);
}
