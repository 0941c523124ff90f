//! `cvt`.

use super::reader::Reader;
use crate::compute::{Compute, Conversion, IntegralRounding};
use crate::error::Error;
use crate::float::Rounding;
use crate::operation::{Operand, Operation};
use crate::scalar::{Class, Scalar};
use crate::syntax;

/// The modifiers of a conversion before its types.
struct Head {
    rounding: Option<Rounding>,
    integral: Option<Rounding>,
    ftz: bool,
    sat: bool,
}

fn head(reader: &mut Reader<'_, '_>) -> Head {
    let rounding = reader.rounding();
    let integral = reader.pick(&[
        ("rni", Rounding::NearestEven),
        ("rzi", Rounding::Zero),
        ("rmi", Rounding::Down),
        ("rpi", Rounding::Up),
    ]);
    Head {
        rounding,
        integral,
        ftz: reader.flag("ftz"),
        sat: reader.flag("sat"),
    }
}

pub(super) fn cvt(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let head = head(&mut reader);
    let to = reader.scalar()?;
    let from = reader.scalar()?;
    reader.end_modifiers()?;
    if to.is_pair() {
        return pair(reader, &head, to, from);
    }
    check(&reader, &head, to, from)?;
    let operand = reader.operand()?;
    let (destination, register_bits) = reader.wide_destination_of(operand, to)?;
    let operand = reader.operand()?;
    let source = source(&mut reader, operand, from)?;
    reader.end()?;
    let conversion = Conversion {
        from,
        to,
        rounding: head.rounding.unwrap_or(Rounding::NearestEven),
        integral: head
            .integral
            .map_or(IntegralRounding::None, IntegralRounding::Towards),
        ftz: head.ftz,
        sat: head.sat,
        register_bits,
    };
    let none = Operand::Immediate(0);
    Ok(Operation::Compute {
        compute: Compute::Convert(conversion),
        destination,
        sources: [source, none, none, none],
    })
}

fn source<'a>(
    reader: &mut Reader<'_, 'a>,
    operand: &syntax::Operand<'a>,
    from: Scalar,
) -> Result<Operand, Error> {
    match reader.special(operand) {
        Some((special, scalar)) if from.accepts(scalar) => Ok(Operand::Special(special)),
        Some((_, scalar)) => Err(reader.error(format!("the special register is {scalar}"))),
        None => reader.wide_source_of(operand, from),
    }
}

/// Whether the modifiers are those that this pair of types needs and allows.
fn check(reader: &Reader<'_, '_>, head: &Head, to: Scalar, from: Scalar) -> Result<(), Error> {
    for scalar in [to, from] {
        if !(scalar.is_integer() || scalar.is_float()) {
            return Err(reader.error(format!("type {scalar} has no `cvt`")));
        }
    }
    check_brain(reader, head, to, from)?;
    let narrows = to.bits < from.bits || to != from && to.bits == from.bits;
    let (needs_rounding, needs_integral, may_integral) = match (from.is_float(), to.is_float()) {
        (false, false) => (false, false, false),
        (false, true) => (true, false, false),
        (true, false) => (false, true, true),
        (true, true) => (narrows, false, to == from),
    };
    if needs_rounding != head.rounding.is_some() {
        let verb = if needs_rounding { "needs" } else { "takes no" };
        return Err(reader.error(format!("`cvt` from {from} to {to} {verb} rounding")));
    }
    if needs_integral && head.integral.is_none() || head.integral.is_some() && !may_integral {
        let verb = if needs_integral { "needs" } else { "takes no" };
        return Err(reader.error(format!("`cvt` from {from} to {to} {verb} integer rounding")));
    }
    if head.sat && holds_all(to, from) {
        return Err(reader.error(format!(
            "{to} holds every {from}, so .sat does not belong here"
        )));
    }
    if head.ftz && to != Scalar::F32 && from != Scalar::F32 {
        return Err(reader.error("`cvt` takes .ftz only from or to .f32"));
    }
    Ok(())
}

/// Whether every integer of type `from` is one of type `to`.
fn holds_all(to: Scalar, from: Scalar) -> bool {
    let are_integers = to.is_integer() && from.is_integer();
    let holds = match (from.is_signed(), to.is_signed()) {
        (true, true) | (false, false) => to.bits >= from.bits,
        (false, true) => to.bits > from.bits,
        (true, false) => false,
    };
    are_integers && holds
}

fn check_brain(
    reader: &Reader<'_, '_>,
    head: &Head,
    to: Scalar,
    from: Scalar,
) -> Result<(), Error> {
    if to != Scalar::BF16 && from != Scalar::BF16 {
        return Ok(());
    }
    if head.ftz || head.sat {
        return Err(reader.error("`cvt` of bf16 takes neither .ftz nor .sat"));
    }
    if to.bits == 8 || from.bits == 8 {
        return Err(reader.error("`cvt` of bf16 knows no 8-bit integers"));
    }
    if to == Scalar::BF16 && from == Scalar::F32 {
        return reader.require("cvt to bf16", 80, (7, 0));
    }
    if to == Scalar::F32 && from == Scalar::BF16 {
        return reader.require("cvt from bf16", 80, (7, 1));
    }
    reader.require("cvt of bf16", 90, (7, 8))
}

/// Two `f32` into one register, the first source in the upper half.
fn pair(reader: Reader<'_, '_>, head: &Head, to: Scalar, from: Scalar) -> Result<Operation, Error> {
    reader.require("cvt to a pair", 80, (7, 0))?;
    let rounding = match head.rounding {
        Some(rounding @ (Rounding::NearestEven | Rounding::Zero)) => rounding,
        _ => return Err(reader.error("`cvt` to a pair needs .rn or .rz")),
    };
    if from != Scalar::F32 || head.ftz || head.sat || head.integral.is_some() {
        return Err(reader.error("`cvt` to a pair takes two .f32 and no other modifier"));
    }
    let conversion = Conversion {
        from,
        to: to.element(),
        rounding,
        integral: IntegralRounding::None,
        ftz: false,
        sat: false,
        register_bits: 16,
    };
    let class = if to == Scalar::F16X2 {
        Class::FloatPair
    } else {
        Class::BrainPair
    };
    reader.compute(
        Compute::ConvertPair(conversion),
        Scalar::new(class, 32),
        &[from, from],
    )
}
