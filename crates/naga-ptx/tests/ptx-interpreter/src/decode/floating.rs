//! Floating-point arithmetic.

use super::reader::Reader;
use crate::compute::{ApproximateOperation, Compute, FloatMode, FloatOperation, Property};
use crate::error::Error;
use crate::float::Rounding;
use crate::operation::Operation;
use crate::scalar::Scalar;

const HALVES: [Scalar; 4] = [Scalar::F16, Scalar::F16X2, Scalar::BF16, Scalar::BF16X2];
const ALL: [Scalar; 6] = [
    Scalar::F32,
    Scalar::F64,
    Scalar::F16,
    Scalar::F16X2,
    Scalar::BF16,
    Scalar::BF16X2,
];
const FULL: [Scalar; 2] = [Scalar::F32, Scalar::F64];

fn float(
    reader: Reader<'_, '_>,
    operation: FloatOperation,
    mode: FloatMode,
    count: usize,
) -> Result<Operation, Error> {
    let scalar = mode.scalar;
    reader.compute(
        Compute::Float(operation, mode),
        scalar,
        &[scalar; 3][..count],
    )
}

/// Half precision rounds to nearest only and requires later targets.
fn check_half(
    reader: &Reader<'_, '_>,
    scalar: Scalar,
    rounding: Rounding,
    brain: (u32, (u32, u32)),
) -> Result<(), Error> {
    if !HALVES.contains(&scalar) {
        return Ok(());
    }
    if rounding != Rounding::NearestEven {
        return Err(reader.error(format!("type {scalar} rounds to nearest only")));
    }
    let (target, version) = if scalar.element() == Scalar::BF16 {
        brain
    } else {
        (53, (4, 2))
    };
    reader.require("half precision", target, version)
}

pub(super) fn binary(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let operation = match reader.opcode() {
        "add" => FloatOperation::Add,
        "sub" => FloatOperation::Subtract,
        _ => FloatOperation::Multiply,
    };
    let rounding = reader.rounding().unwrap_or(Rounding::NearestEven);
    let mode = reader.float_mode(rounding, &ALL, true)?;
    check_half(&reader, mode.scalar, rounding, (90, (7, 8)))?;
    float(reader, operation, mode, 2)
}

pub(super) fn fma(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let rounding = reader.rounding().ok_or_else(|| {
        let message = format!("`{}` needs a rounding", reader.opcode());
        reader.error(message)
    })?;
    let allowed: &[Scalar] = if reader.opcode() == "mad" {
        &FULL
    } else {
        &ALL
    };
    let mode = reader.float_mode(rounding, allowed, true)?;
    check_half(&reader, mode.scalar, rounding, (80, (7, 0)))?;
    float(reader, FloatOperation::Fused, mode, 3)
}

pub(super) fn div(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let approximate = reader.pick(&[
        ("approx", ApproximateOperation::Divide),
        ("full", ApproximateOperation::DivideFull),
    ]);
    if let Some(operation) = approximate {
        let mode = reader.float_mode(Rounding::NearestEven, &[Scalar::F32], false)?;
        return approximation(reader, operation, mode, 2);
    }
    let rounding = reader
        .rounding()
        .ok_or_else(|| reader.error("`div` needs .approx, .full or a rounding"))?;
    let mode = reader.float_mode(rounding, &FULL, false)?;
    float(reader, FloatOperation::Divide, mode, 2)
}

fn approximation(
    reader: Reader<'_, '_>,
    operation: ApproximateOperation,
    mode: FloatMode,
    count: usize,
) -> Result<Operation, Error> {
    let scalar = mode.scalar;
    let compute = Compute::Approximate(operation, mode);
    reader.compute(compute, scalar, &[scalar; 2][..count])
}

pub(super) fn root(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let is_reciprocal = reader.opcode() == "rcp";
    if reader.flag("approx") {
        let operation = if is_reciprocal {
            ApproximateOperation::Reciprocal
        } else {
            ApproximateOperation::SquareRoot
        };
        let mode = approximate_mode(&mut reader, is_reciprocal, false)?;
        return approximation(reader, operation, mode, 1);
    }
    let rounding = reader.rounding().ok_or_else(|| {
        let message = format!("`{}` needs .approx or a rounding", reader.opcode());
        reader.error(message)
    })?;
    let mode = reader.float_mode(rounding, &FULL, false)?;
    let operation = if is_reciprocal {
        FloatOperation::Reciprocal
    } else {
        FloatOperation::SquareRoot
    };
    float(reader, operation, mode, 1)
}

/// `.ftz` belongs to `f64` only in the approximate forms that return the upper half.
fn approximate_mode(
    reader: &mut Reader<'_, '_>,
    has_double: bool,
    double_may_keep: bool,
) -> Result<FloatMode, Error> {
    let ftz = reader.flag("ftz");
    let allowed = if has_double { &FULL[..] } else { &FULL[..1] };
    let scalar = reader.scalar_of(allowed)?;
    if scalar == Scalar::F64 && !ftz && !double_may_keep {
        return Err(reader.error("the approximate form of .f64 needs .ftz"));
    }
    Ok(FloatMode {
        ftz,
        ..FloatMode::plain(scalar)
    })
}

pub(super) fn rsqrt(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.choose(&[("approx", ())])?;
    let mode = approximate_mode(&mut reader, true, true)?;
    approximation(reader, ApproximateOperation::ReciprocalRoot, mode, 1)
}

pub(super) fn transcendental(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let operation = match reader.opcode() {
        "ex2" => ApproximateOperation::Exponential2,
        "lg2" => ApproximateOperation::Logarithm2,
        "sin" => ApproximateOperation::Sine,
        "cos" => ApproximateOperation::Cosine,
        _ => ApproximateOperation::HyperbolicTangent,
    };
    reader.choose(&[("approx", ())])?;
    let is_tanh = operation == ApproximateOperation::HyperbolicTangent;
    let ftz = !is_tanh && reader.flag("ftz");
    let has_half = is_tanh || operation == ApproximateOperation::Exponential2;
    let allowed = if has_half { &ALL[..] } else { &ALL[..1] };
    let scalar = reader.scalar_of(allowed)?;
    check_transcendental(&reader, scalar, is_tanh, ftz)?;
    let mode = FloatMode {
        ftz,
        ..FloatMode::plain(scalar)
    };
    approximation(reader, operation, mode, 1)
}

fn check_transcendental(
    reader: &Reader<'_, '_>,
    scalar: Scalar,
    is_tanh: bool,
    ftz: bool,
) -> Result<(), Error> {
    let is_brain = scalar.element() == Scalar::BF16;
    match scalar {
        Scalar::F64 => return Err(reader.error("type .f64 has no approximate form")),
        Scalar::F32 if is_tanh => return reader.require("tanh", 75, (7, 0)),
        Scalar::F32 => return Ok(()),
        _ if is_brain => reader.require("bf16", 90, (7, 8))?,
        _ => reader.require("half precision", 75, (7, 0))?,
    }
    if is_brain && !is_tanh && !ftz {
        return Err(reader.error("`ex2` of bf16 needs .ftz"));
    }
    if !is_brain && ftz {
        return Err(reader.error("`ex2` of f16 takes no .ftz"));
    }
    Ok(())
}

pub(super) fn sign(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let operation = if reader.opcode() == "abs" {
        FloatOperation::Absolute
    } else {
        FloatOperation::Negate
    };
    let mode = reader.float_mode(Rounding::NearestEven, &ALL, false)?;
    check_half(&reader, mode.scalar, mode.rounding, (80, (7, 0)))?;
    if mode.scalar.element() == Scalar::F16 {
        let version = if operation == FloatOperation::Absolute {
            (6, 5)
        } else {
            (6, 0)
        };
        reader.require("sign of f16", 53, version)?;
    }
    float(reader, operation, mode, 1)
}

pub(super) fn extremum(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let ftz = reader.flag("ftz");
    let nan = reader.flag("NaN");
    let scalar = reader.scalar_of(&ALL)?;
    if nan || HALVES.contains(&scalar) {
        reader.require("`min` and `max` of halves or with .NaN", 80, (7, 0))?;
    }
    if scalar == Scalar::F64 && (ftz || nan) || scalar.element() == Scalar::BF16 && ftz {
        return Err(reader.error(format!("type {scalar} does not take this modifier")));
    }
    let operation = if reader.opcode() == "min" {
        FloatOperation::Minimum { nan }
    } else {
        FloatOperation::Maximum { nan }
    };
    let mode = FloatMode {
        ftz,
        ..FloatMode::plain(scalar)
    };
    float(reader, operation, mode, 2)
}

pub(super) fn copysign(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&FULL)?;
    float(
        reader,
        FloatOperation::CopySign,
        FloatMode::plain(scalar),
        2,
    )
}

pub(super) fn testp(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let property = reader.choose(&[
        ("finite", Property::Finite),
        ("infinite", Property::Infinite),
        ("number", Property::Number),
        ("notanumber", Property::NotANumber),
        ("normal", Property::Normal),
        ("subnormal", Property::Subnormal),
    ])?;
    let scalar = reader.scalar_of(&FULL)?;
    reader.compute(
        Compute::Test(property, scalar),
        Scalar::PREDICATE,
        &[scalar],
    )
}
