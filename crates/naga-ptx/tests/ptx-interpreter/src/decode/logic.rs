//! Logic, shifts and bit fields.

use super::reader::Reader;
use crate::compute::{BitsOperation, Compute, PermuteMode};
use crate::error::Error;
use crate::operation::Operation;
use crate::scalar::Scalar;
use crate::syntax;

const BITS: [Scalar; 3] = [Scalar::B16, Scalar::B32, Scalar::B64];
const WIDE: [Scalar; 4] = [Scalar::U32, Scalar::U64, Scalar::S32, Scalar::S64];

pub(super) fn boolean(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let (operation, count) = match reader.opcode() {
        "and" => (BitsOperation::And, 2),
        "or" => (BitsOperation::Or, 2),
        "xor" => (BitsOperation::Xor, 2),
        "not" => (BitsOperation::Not, 1),
        _ => (BitsOperation::LogicalNot, 1),
    };
    let mut allowed = BITS.to_vec();
    if operation != BitsOperation::LogicalNot {
        allowed.push(Scalar::PREDICATE);
    }
    let scalar = reader.scalar_of(&allowed)?;
    reader.compute(
        Compute::Bits(operation, scalar),
        scalar,
        &[scalar; 2][..count],
    )
}

pub(super) fn lop3(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("lop3", 50, (4, 3))?;
    let scalar = reader.scalar_of(&[Scalar::B32])?;
    reader.end_modifiers()?;
    let destination = reader.destination(scalar)?;
    let sources = [
        reader.source(scalar)?,
        reader.source(scalar)?,
        reader.source(scalar)?,
        crate::operation::Operand::Immediate(0),
    ];
    let table = match reader.operand()? {
        syntax::Operand::Integer(value, false) => u8::try_from(*value).ok(),
        _ => None,
    };
    let table = table.ok_or_else(|| reader.error("the table must be an integer of 0 to 255"))?;
    reader.end()?;
    Ok(Operation::Compute {
        compute: Compute::Bits(BitsOperation::Lop3(table), scalar),
        destination,
        sources,
    })
}

pub(super) fn shift(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let is_left = reader.opcode() == "shl";
    let mut allowed = BITS.to_vec();
    if !is_left {
        allowed.extend([Scalar::U16, Scalar::S16]);
        allowed.extend(WIDE);
    }
    let operation = if is_left {
        BitsOperation::ShiftLeft
    } else {
        BitsOperation::ShiftRight
    };
    let scalar = reader.scalar_of(&allowed)?;
    reader.compute(
        Compute::Bits(operation, scalar),
        scalar,
        &[scalar, Scalar::U32],
    )
}

pub(super) fn funnel(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("shf", 32, (3, 1))?;
    let is_left = reader.choose(&[("l", true), ("r", false)])?;
    let clamp = reader.choose(&[("clamp", true), ("wrap", false)])?;
    let operation = if is_left {
        BitsOperation::FunnelLeft { clamp }
    } else {
        BitsOperation::FunnelRight { clamp }
    };
    let scalar = reader.scalar_of(&[Scalar::B32])?;
    reader.compute(
        Compute::Bits(operation, scalar),
        scalar,
        &[scalar, scalar, Scalar::U32],
    )
}

pub(super) fn prmt(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&[Scalar::B32])?;
    let mode = reader.pick(&[
        ("f4e", PermuteMode::Forward4Extract),
        ("b4e", PermuteMode::Backward4Extract),
        ("rc8", PermuteMode::Replicate8),
        ("ecl", PermuteMode::EdgeClampLeft),
        ("ecr", PermuteMode::EdgeClampRight),
        ("rc16", PermuteMode::Replicate16),
    ]);
    let operation = BitsOperation::Permute(mode.unwrap_or(PermuteMode::Index));
    reader.compute(Compute::Bits(operation, scalar), scalar, &[scalar; 3])
}

pub(super) fn field(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if reader.opcode() == "bfe" {
        let scalar = reader.scalar_of(&WIDE)?;
        let sources = [scalar, Scalar::U32, Scalar::U32];
        return reader.compute(
            Compute::Bits(BitsOperation::Extract, scalar),
            scalar,
            &sources,
        );
    }
    let scalar = reader.scalar_of(&[Scalar::B32, Scalar::B64])?;
    let sources = [scalar, scalar, Scalar::U32, Scalar::U32];
    reader.compute(
        Compute::Bits(BitsOperation::Insert, scalar),
        scalar,
        &sources,
    )
}

pub(super) fn bfind(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let shift_amount = reader.flag("shiftamt");
    let scalar = reader.scalar_of(&WIDE)?;
    reader.compute(
        Compute::Bits(BitsOperation::FindLeading { shift_amount }, scalar),
        Scalar::U32,
        &[scalar],
    )
}

pub(super) fn count(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&[Scalar::B32, Scalar::B64])?;
    let (operation, result) = match reader.opcode() {
        "brev" => (BitsOperation::Reverse, scalar),
        "clz" => (BitsOperation::LeadingZeros, Scalar::U32),
        _ => (BitsOperation::Population, Scalar::U32),
    };
    reader.compute(Compute::Bits(operation, scalar), result, &[scalar])
}
