//! `mov`, `cvta` and `isspacep`.

use super::reader::Reader;
use crate::compute::Compute;
use crate::error::Error;
use crate::operation::{Operand, Operation};
use crate::program::GENERIC_OFFSET;
use crate::scalar::{Class, Scalar};
use crate::syntax::{self, Space};

const SPACES: [(&str, Space); 6] = [
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("local", Space::Local),
    ("const", Space::Const),
    ("param", Space::Param),
];

pub(super) fn mov(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let scalar = reader.scalar()?;
    let is_movable = !matches!(
        scalar.class,
        Class::FloatPair | Class::Brain | Class::BrainPair
    ) && scalar.bits != 8
        && scalar != Scalar::F16;
    if !is_movable {
        return Err(reader.error(format!("type {scalar} has no `mov`")));
    }
    reader.end_modifiers()?;
    if let Some(syntax::Operand::Vector(elements)) = reader.peek_operand() {
        reader.operand()?;
        return unpack(reader, scalar, elements);
    }
    let destination = reader.destination(scalar)?;
    let operand = reader.operand()?;
    reader.end()?;
    if let syntax::Operand::Vector(elements) = operand {
        return pack(reader, scalar, destination, elements);
    }
    let source = mov_source(&mut reader, operand, scalar)?;
    Ok(Operation::Compute {
        compute: Compute::Move { bits: scalar.bits },
        destination,
        sources: [
            source,
            Operand::Immediate(0),
            Operand::Immediate(0),
            Operand::Immediate(0),
        ],
    })
}

fn mov_source<'a>(
    reader: &mut Reader<'_, 'a>,
    operand: &syntax::Operand<'a>,
    scalar: Scalar,
) -> Result<Operand, Error> {
    if let Some((special, found)) = reader.special(operand) {
        let narrows = scalar.bits == 16 && found == Scalar::U32;
        return if scalar.accepts(found) || narrows && !scalar.is_float() {
            Ok(Operand::Special(special))
        } else {
            Err(reader.error(format!("the special register is {found}, not {scalar}")))
        };
    }
    let (name, offset) = match operand {
        syntax::Operand::Name(name) => (*name, 0),
        syntax::Operand::Offset(name, offset) => (*name, *offset),
        other => return reader.source_of(other, scalar),
    };
    let is_register = reader.decoder.scopes.register(name).is_some();
    match reader.decoder.scopes.symbol(name) {
        Some((space, address)) if !is_register => {
            symbol_value(reader, scalar, space, address.wrapping_add_signed(offset))
        }
        _ => reader.source_of(operand, scalar),
    }
}

fn symbol_value(
    reader: &Reader<'_, '_>,
    scalar: Scalar,
    space: Space,
    address: u64,
) -> Result<Operand, Error> {
    let is_wide = scalar.bits == 64 || scalar.bits == 32 && space != Space::Global;
    if !is_wide || scalar.is_float() {
        return Err(reader.error(format!("an address does not fit {scalar}")));
    }
    Ok(Operand::Immediate(address))
}

fn element_scalar(reader: &Reader<'_, '_>, whole: Scalar, count: usize) -> Result<Scalar, Error> {
    let element = match (whole.bits, count) {
        (16, 2) => Scalar::new(Class::Bits, 8),
        (32, 2) => Scalar::B16,
        (32, 4) => Scalar::new(Class::Bits, 8),
        (64, 2) => Scalar::B32,
        (64, 4) => Scalar::B16,
        _ => return Err(reader.error(format!("{whole} does not hold {count} elements"))),
    };
    if whole.class != Class::Bits {
        return Err(reader.error("packing needs a type .b16, .b32 or .b64"));
    }
    Ok(element)
}

fn pack<'a>(
    mut reader: Reader<'_, 'a>,
    scalar: Scalar,
    destination: u32,
    elements: &[syntax::Operand<'a>],
) -> Result<Operation, Error> {
    let element = element_scalar(&reader, scalar, elements.len())?;
    let sources: Result<Box<[Operand]>, Error> = elements
        .iter()
        .map(|operand| reader.source_of(operand, element))
        .collect();
    Ok(Operation::Pack {
        destination,
        sources: sources?,
        element_bits: element.bits,
    })
}

fn unpack<'a>(
    mut reader: Reader<'_, 'a>,
    scalar: Scalar,
    elements: &[syntax::Operand<'a>],
) -> Result<Operation, Error> {
    let element = element_scalar(&reader, scalar, elements.len())?;
    let destinations: Result<Box<[u32]>, Error> = elements
        .iter()
        .map(|operand| match operand {
            syntax::Operand::Name("_") => Ok(crate::operation::SINK),
            other => reader.destination_of(other, element),
        })
        .collect();
    let source = reader.source(scalar)?;
    reader.end()?;
    Ok(Operation::Unpack {
        destinations: destinations?,
        source,
        element_bits: element.bits,
    })
}

pub(super) fn cvta(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let to_space = reader.flag("to");
    let space = reader.choose(&SPACES)?;
    if space == Space::Param {
        reader.require("cvta.param", 70, (7, 7))?;
    }
    let scalar = reader.scalar_of(&[Scalar::U64])?;
    reader.end_modifiers()?;
    let destination = reader.destination(scalar)?;
    let operand = reader.operand()?;
    reader.end()?;
    let source = mov_source(&mut reader, operand, scalar)?;
    let by = match (space, to_space) {
        (Space::Global, _) => 0,
        (_, false) => GENERIC_OFFSET,
        (_, true) => GENERIC_OFFSET.wrapping_neg(),
    };
    Ok(Operation::Compute {
        compute: Compute::Rebase { by },
        destination,
        sources: [
            source,
            Operand::Immediate(0),
            Operand::Immediate(0),
            Operand::Immediate(0),
        ],
    })
}

pub(super) fn isspacep(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let space = reader.choose(&SPACES)?;
    reader.end_modifiers()?;
    let destination = reader.destination(Scalar::PREDICATE)?;
    let source = reader.source(Scalar::U64)?;
    reader.end()?;
    Ok(Operation::IsSpace {
        destination,
        source,
        space,
    })
}
