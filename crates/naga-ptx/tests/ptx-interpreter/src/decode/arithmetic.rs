//! Integer arithmetic, and the opcodes that it shares with floating point.

use super::floating;
use super::reader::Reader;
use crate::compute::{Compute, IntegerOperation};
use crate::error::Error;
use crate::operation::{Carry, CarryKind, Operand, Operation};
use crate::scalar::{Class, Scalar};

const INTEGERS: [Scalar; 6] = [
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::S16,
    Scalar::S32,
    Scalar::S64,
];
const SIGNED: [Scalar; 3] = [Scalar::S16, Scalar::S32, Scalar::S64];
const WORDS: [(&str, Scalar); 2] = [("u32", Scalar::U32), ("s32", Scalar::S32)];

/// Which part of a product an instruction keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Low,
    High,
    Wide,
}

const PARTS: [(&str, Part); 3] = [("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)];

fn is_float(reader: &Reader<'_, '_>) -> bool {
    reader
        .last_scalar()
        .is_some_and(|scalar| scalar.is_float() || scalar.is_pair())
}

fn integer(
    reader: Reader<'_, '_>,
    operation: IntegerOperation,
    scalar: Scalar,
    count: usize,
) -> Result<Operation, Error> {
    reader.compute(
        Compute::Integer(operation, scalar),
        scalar,
        &[scalar; 3][..count],
    )
}

pub(super) fn add(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::binary(reader);
    }
    let is_add = reader.opcode() == "add";
    if reader.flag("cc") {
        return carry(reader, false, true);
    }
    if reader.flag("sat") {
        let operation = if is_add {
            IntegerOperation::AddSaturating
        } else {
            IntegerOperation::SubtractSaturating
        };
        let scalar = reader.scalar_of(&[Scalar::S32])?;
        return integer(reader, operation, scalar, 2);
    }
    let operation = if is_add {
        IntegerOperation::Add
    } else {
        IntegerOperation::Subtract
    };
    let scalar = reader.scalar_of(&INTEGERS)?;
    integer(reader, operation, scalar, 2)
}

pub(super) fn add_with_carry(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let writes = reader.flag("cc");
    carry(reader, true, writes)
}

fn carry(mut reader: Reader<'_, '_>, reads: bool, writes: bool) -> Result<Operation, Error> {
    let kind = if reader.opcode().starts_with("add") {
        CarryKind::Add
    } else {
        CarryKind::Subtract
    };
    let scalar = reader.scalar_of(&[Scalar::U32, Scalar::S32, Scalar::U64, Scalar::S64])?;
    if scalar.bits == 64 {
        reader.require("64-bit carry", 20, (4, 3))?;
    }
    let operation = Carry {
        kind,
        scalar,
        reads,
        writes,
        destination: reader.destination(scalar)?,
        sources: [
            reader.source(scalar)?,
            reader.source(scalar)?,
            Operand::Immediate(0),
        ],
    };
    reader.end()?;
    Ok(Operation::Carry(Box::new(operation)))
}

pub(super) fn mul(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::binary(reader);
    }
    let part = reader.choose(&PARTS)?;
    let scalar = reader.scalar_of(&INTEGERS)?;
    match part {
        Part::Low => integer(reader, IntegerOperation::MultiplyLow, scalar, 2),
        Part::High => integer(reader, IntegerOperation::MultiplyHigh, scalar, 2),
        Part::Wide => {
            let compute = Compute::Integer(IntegerOperation::MultiplyWide, scalar);
            let wide = doubled(&reader, scalar)?;
            reader.compute(compute, wide, &[scalar; 2])
        }
    }
}

fn doubled(reader: &Reader<'_, '_>, scalar: Scalar) -> Result<Scalar, Error> {
    if scalar.bits == 64 {
        return Err(reader.error("no type is twice as wide"));
    }
    Ok(Scalar::new(scalar.class, scalar.bits * 2))
}

pub(super) fn mad(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::fma(reader);
    }
    let part = reader.choose(&PARTS)?;
    if part != Part::Wide && reader.flag("cc") {
        return mad_carry(reader, part, false, true);
    }
    if part == Part::High && reader.flag("sat") {
        let scalar = reader.scalar_of(&[Scalar::S32])?;
        return integer(
            reader,
            IntegerOperation::MultiplyAddHighSaturating,
            scalar,
            3,
        );
    }
    let scalar = reader.scalar_of(&INTEGERS)?;
    match part {
        Part::Low => integer(reader, IntegerOperation::MultiplyAddLow, scalar, 3),
        Part::High => integer(reader, IntegerOperation::MultiplyAddHigh, scalar, 3),
        Part::Wide => {
            let compute = Compute::Integer(IntegerOperation::MultiplyAddWide, scalar);
            let wide = doubled(&reader, scalar)?;
            reader.compute(compute, wide, &[scalar, scalar, wide])
        }
    }
}

pub(super) fn mad_with_carry(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let part = reader.choose(&PARTS[..2])?;
    let writes = reader.flag("cc");
    mad_carry(reader, part, true, writes)
}

fn mad_carry(
    mut reader: Reader<'_, '_>,
    part: Part,
    reads: bool,
    writes: bool,
) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&[Scalar::U32, Scalar::S32, Scalar::U64, Scalar::S64])?;
    let kind = if part == Part::Low {
        CarryKind::MultiplyAddLow
    } else {
        CarryKind::MultiplyAddHigh
    };
    let operation = Carry {
        kind,
        scalar,
        reads,
        writes,
        destination: reader.destination(scalar)?,
        sources: [
            reader.source(scalar)?,
            reader.source(scalar)?,
            reader.source(scalar)?,
        ],
    };
    reader.end()?;
    Ok(Operation::Carry(Box::new(operation)))
}

pub(super) fn mul24(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let part = reader.choose(&PARTS[..2])?;
    let scalar = reader.choose(&WORDS)?;
    let adds = reader.opcode() == "mad24";
    let operation = match (part == Part::Low, adds) {
        (true, false) => IntegerOperation::Multiply24Low,
        (false, false) => IntegerOperation::Multiply24High,
        (true, true) => IntegerOperation::MultiplyAdd24Low,
        (false, true) => IntegerOperation::MultiplyAdd24High,
    };
    integer(reader, operation, scalar, if adds { 3 } else { 2 })
}

pub(super) fn sad(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&INTEGERS)?;
    integer(reader, IntegerOperation::AbsoluteDifference, scalar, 3)
}

pub(super) fn div(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::div(reader);
    }
    let scalar = reader.scalar_of(&INTEGERS)?;
    integer(reader, IntegerOperation::Divide, scalar, 2)
}

pub(super) fn rem(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&INTEGERS)?;
    integer(reader, IntegerOperation::Remainder, scalar, 2)
}

pub(super) fn abs(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::sign(reader);
    }
    let operation = if reader.opcode() == "abs" {
        IntegerOperation::Absolute
    } else {
        IntegerOperation::Negate
    };
    let scalar = reader.scalar_of(&SIGNED)?;
    integer(reader, operation, scalar, 1)
}

pub(super) fn min(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if is_float(&reader) {
        return floating::extremum(reader);
    }
    let operation = if reader.opcode() == "min" {
        IntegerOperation::Minimum
    } else {
        IntegerOperation::Maximum
    };
    let scalar = reader.scalar_of(&INTEGERS)?;
    integer(reader, operation, scalar, 2)
}

pub(super) fn dot(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("dot product", 61, (5, 0))?;
    let upper = if reader.opcode() == "dp2a" {
        Some(reader.choose(&[("lo", false), ("hi", true)])?)
    } else {
        None
    };
    let a = reader.choose(&WORDS)?;
    let b = reader.choose(&WORDS)?;
    let operation = match upper {
        None => IntegerOperation::Dot4(a.is_signed(), b.is_signed()),
        Some(upper) => IntegerOperation::Dot2(a.is_signed(), b.is_signed(), upper),
    };
    let is_signed = a.is_signed() || b.is_signed();
    let class = if is_signed {
        Class::Signed
    } else {
        Class::Unsigned
    };
    let sum = Scalar::new(class, 32);
    reader.compute(Compute::Integer(operation, sum), sum, &[a, b, sum])
}
