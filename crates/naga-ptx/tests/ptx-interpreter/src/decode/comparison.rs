//! Comparisons and selections.

use super::reader::Reader;
use crate::compute::{Combination, Comparison, Compute, Relation};
use crate::error::Error;
use crate::operation::{Operand, Operation, SINK, SetPredicate};
use crate::scalar::{Class, Scalar};

const COMPARED: [Scalar; 14] = [
    Scalar::B16,
    Scalar::B32,
    Scalar::B64,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::S16,
    Scalar::S32,
    Scalar::S64,
    Scalar::F32,
    Scalar::F64,
    Scalar::F16,
    Scalar::F16X2,
    Scalar::BF16,
];

/// Each comparison with its relation, whether it is true for NaN, and the kinds of type it
/// supports.
const RELATIONS: [(&str, (Relation, bool, For)); 18] = [
    ("eq", (Relation::Equal, false, For::Any)),
    ("ne", (Relation::NotEqual, false, For::Any)),
    ("lt", (Relation::Less, false, For::Ordered)),
    ("le", (Relation::LessEqual, false, For::Ordered)),
    ("gt", (Relation::Greater, false, For::Ordered)),
    ("ge", (Relation::GreaterEqual, false, For::Ordered)),
    ("lo", (Relation::Less, false, For::Unsigned)),
    ("ls", (Relation::LessEqual, false, For::Unsigned)),
    ("hi", (Relation::Greater, false, For::Unsigned)),
    ("hs", (Relation::GreaterEqual, false, For::Unsigned)),
    ("equ", (Relation::Equal, true, For::Float)),
    ("neu", (Relation::NotEqual, true, For::Float)),
    ("ltu", (Relation::Less, true, For::Float)),
    ("leu", (Relation::LessEqual, true, For::Float)),
    ("gtu", (Relation::Greater, true, For::Float)),
    ("geu", (Relation::GreaterEqual, true, For::Float)),
    ("num", (Relation::Number, false, For::Float)),
    ("nan", (Relation::NotANumber, false, For::Float)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Any,
    Ordered,
    Unsigned,
    Float,
}

/// The comparison without its operand type, which follows later in `set`.
struct Head {
    relation: Relation,
    unordered: bool,
    kinds: For,
    combination: Combination,
    ftz: bool,
}

fn head(reader: &mut Reader<'_, '_>) -> Result<Head, Error> {
    let (relation, unordered, kinds) = reader.choose(&RELATIONS)?;
    let mut ftz = reader.flag("ftz");
    let combination = reader.pick(&[
        ("and", Combination::And),
        ("or", Combination::Or),
        ("xor", Combination::Xor),
    ]);
    ftz |= !ftz && reader.flag("ftz");
    Ok(Head {
        relation,
        unordered,
        kinds,
        combination: combination.unwrap_or(Combination::None),
        ftz,
    })
}

fn comparison(reader: &Reader<'_, '_>, head: &Head, scalar: Scalar) -> Result<Comparison, Error> {
    let is_float = scalar.is_float() || scalar.is_pair();
    let fits = match head.kinds {
        For::Any => true,
        For::Ordered => scalar.class != Class::Bits,
        For::Unsigned => scalar.class == Class::Unsigned,
        For::Float => is_float,
    };
    let takes_ftz = scalar == Scalar::F32 || scalar.element() == Scalar::F16;
    if !fits || head.ftz && !takes_ftz {
        return Err(reader.error(format!("type {scalar} has no such comparison")));
    }
    match scalar.element() {
        Scalar::F16 => reader.require("comparison of f16", 53, (4, 2))?,
        Scalar::BF16 => reader.require("comparison of bf16", 90, (7, 8))?,
        _ => {}
    }
    Ok(Comparison {
        relation: head.relation,
        // `ne` on floats is ordered as all comparisons without a trailing u.
        unordered: head.unordered,
        scalar: scalar.element(),
        ftz: head.ftz,
        combination: head.combination,
        negate_predicate: false,
    })
}

/// The third operand, which a combined comparison must have.
fn joined(reader: &mut Reader<'_, '_>, comparison: &mut Comparison) -> Result<Operand, Error> {
    if comparison.combination == Combination::None {
        return Ok(Operand::Immediate(0));
    }
    let (predicate, is_negated) = reader.predicate()?;
    comparison.negate_predicate = is_negated;
    Ok(predicate)
}

pub(super) fn setp(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let head = head(&mut reader)?;
    let scalar = reader.scalar_of(&COMPARED)?;
    reader.end_modifiers()?;
    let mut comparison = comparison(&reader, &head, scalar)?;
    let destinations = reader.pair(Scalar::PREDICATE, Scalar::PREDICATE)?;
    if scalar.is_pair() && destinations[1] == SINK {
        return Err(reader.error("a comparison of pairs has two destinations"));
    }
    let sources = [
        reader.source(scalar)?,
        reader.source(scalar)?,
        joined(&mut reader, &mut comparison)?,
    ];
    reader.end()?;
    Ok(Operation::SetPredicate(Box::new(SetPredicate {
        comparison,
        destinations,
        is_pair: scalar.is_pair(),
        sources,
    })))
}

pub(super) fn set(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let head = head(&mut reader)?;
    let result = reader.scalar()?;
    let scalar = reader.scalar_of(&COMPARED)?;
    check_set(&reader, result, scalar)?;
    reader.end_modifiers()?;
    let mut comparison = comparison(&reader, &head, scalar)?;
    let destination = reader.destination(result)?;
    let sources = [
        reader.source(scalar)?,
        reader.source(scalar)?,
        joined(&mut reader, &mut comparison)?,
        Operand::Immediate(0),
    ];
    reader.end()?;
    Ok(Operation::Compute {
        compute: Compute::Set { comparison, result },
        destination,
        sources,
    })
}

/// Half-precision comparisons give integers or their own type; all types except bf16 compare into
/// f16.
fn check_set(reader: &Reader<'_, '_>, result: Scalar, scalar: Scalar) -> Result<(), Error> {
    let integers = [Scalar::U16, Scalar::S16, Scalar::U32, Scalar::S32];
    let fits = match scalar {
        Scalar::F16 | Scalar::BF16 => result == scalar || integers.contains(&result),
        _ => [Scalar::U32, Scalar::S32, Scalar::F32, Scalar::F16].contains(&result),
    };
    if scalar.is_pair() || !fits {
        return Err(reader.error(format!("no `set` from {scalar} to {result}")));
    }
    Ok(())
}

pub(super) fn selp(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar_of(&COMPARED[..11])?;
    reader.compute(
        Compute::Select,
        scalar,
        &[scalar, scalar, Scalar::PREDICATE],
    )
}

pub(super) fn slct(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let ftz = reader.flag("ftz");
    let scalar = reader.scalar_of(&COMPARED[..11])?;
    let condition = reader.scalar_of(&[Scalar::S32, Scalar::F32])?;
    if ftz && condition != Scalar::F32 {
        return Err(reader.error(".ftz needs an .f32 condition"));
    }
    let compute = Compute::SelectSign { condition, ftz };
    reader.compute(compute, scalar, &[scalar, scalar, condition])
}
