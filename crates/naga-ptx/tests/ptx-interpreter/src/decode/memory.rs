//! Loads, stores, atomics and fences.

use super::reader::Reader;
use crate::error::Error;
use crate::operation::{Atomic, AtomicKind, Load, Operand, Operation, SINK, Store, Strength};
use crate::scalar::{Class, Scalar};
use crate::syntax::{self, Space};

const SPACES: [(&str, Space); 7] = [
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("local", Space::Local),
    ("const", Space::Const),
    ("param", Space::Param),
    ("param::entry", Space::Param),
];

const SCOPES: [(&str, Strength); 4] = [
    ("cta", Strength::Block),
    ("cluster", Strength::Block),
    ("gpu", Strength::Device),
    ("sys", Strength::Device),
];

const LOAD_CACHES: [(&str, ()); 5] = [("ca", ()), ("cg", ()), ("cs", ()), ("lu", ()), ("cv", ())];
const STORE_CACHES: [(&str, ()); 4] = [("wb", ()), ("cg", ()), ("cs", ()), ("wt", ())];
const EVICTIONS: [(&str, ()); 5] = [
    ("L1::evict_normal", ()),
    ("L1::evict_unchanged", ()),
    ("L1::evict_first", ()),
    ("L1::evict_last", ()),
    ("L1::no_allocate", ()),
];
/// Each size with the first target that supports it.
const PREFETCHES: [(&str, u32); 3] = [("L2::64B", 75), ("L2::128B", 75), ("L2::256B", 80)];

fn scope(reader: &mut Reader<'_, '_>) -> Result<Strength, Error> {
    let is_cluster = reader.peek() == Some("cluster");
    if is_cluster {
        reader.require("the cluster scope", 90, (7, 8))?;
    }
    reader.choose(&SCOPES)
}

/// The ordering of a load or store: weak, volatile, or with a scope.
fn strength(reader: &mut Reader<'_, '_>, ordered: &str) -> Result<Strength, Error> {
    if reader.flag("weak") {
        return Ok(Strength::Weak);
    }
    if reader.flag("volatile") {
        return Ok(Strength::Device);
    }
    if reader.flag("relaxed") || reader.flag(ordered) {
        reader.require("a memory ordering", 70, (6, 0))?;
        return scope(reader);
    }
    Ok(Strength::Weak)
}

fn space(reader: &mut Reader<'_, '_>) -> Space {
    reader.pick(&SPACES).unwrap_or(Space::Generic)
}

/// A cache operator replaces an eviction priority.
fn hints(reader: &mut Reader<'_, '_>, may_evict: bool) -> Result<(), Error> {
    if may_evict && reader.pick(&EVICTIONS).is_some() {
        reader.require("an eviction priority", 70, (7, 4))?;
    }
    if let Some(target) = reader.pick(&PREFETCHES) {
        reader.require("a prefetch size", target, (7, 4))?;
    }
    Ok(())
}

fn lanes(reader: &mut Reader<'_, '_>) -> usize {
    reader.pick(&[("v2", 2), ("v4", 4)]).unwrap_or(1)
}

fn memory_scalar(reader: &mut Reader<'_, '_>, lanes: usize) -> Result<Scalar, Error> {
    let scalar = reader.scalar()?;
    let is_held = scalar.is_integer()
        || scalar.class == Class::Bits
        || matches!(scalar, Scalar::F32 | Scalar::F64);
    if !is_held {
        return Err(reader.error(format!("type {scalar} has no `{}`", reader.opcode())));
    }
    if lanes * scalar.bytes() > 16 {
        return Err(reader.error("a vector access holds at most 16 bytes"));
    }
    Ok(scalar)
}

/// The elements of a vector operand, or the operand itself.
fn elements<'d, 'a>(
    reader: &mut Reader<'d, 'a>,
    lanes: usize,
) -> Result<&'d [syntax::Operand<'a>], Error> {
    let operand = reader.operand()?;
    let elements = match operand {
        syntax::Operand::Vector(elements) if lanes > 1 => elements.as_slice(),
        other => std::slice::from_ref(other),
    };
    if elements.len() == lanes {
        Ok(elements)
    } else {
        Err(reader.error(format!("a vector of {lanes} registers is needed")))
    }
}

pub(super) fn ld(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let strength = strength(&mut reader, "acquire")?;
    let space = space(&mut reader);
    check_ordered(&reader, strength, space)?;
    let has_cache = strength == Strength::Weak && reader.pick(&LOAD_CACHES).is_some();
    let coherent = !(space == Space::Global && strength == Strength::Weak && reader.flag("nc"));
    hints(&mut reader, !has_cache)?;
    let lanes = lanes(&mut reader);
    let scalar = memory_scalar(&mut reader, lanes)?;
    reader.end_modifiers()?;
    let destinations: Result<Box<[(u32, u32)]>, Error> = elements(&mut reader, lanes)?
        .iter()
        .map(|operand| reader.wide_destination_of(operand, scalar))
        .collect();
    let address = reader.address(space)?;
    reader.end()?;
    Ok(Operation::Load(Box::new(Load {
        address,
        scalar,
        strength,
        coherent,
        destinations: destinations?,
    })))
}

fn check_ordered(reader: &Reader<'_, '_>, strength: Strength, space: Space) -> Result<(), Error> {
    let is_private = matches!(space, Space::Local | Space::Const | Space::Param);
    if strength != Strength::Weak && is_private {
        return Err(reader.error("only global, shared and generic accesses are ordered"));
    }
    Ok(())
}

pub(super) fn st(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let strength = strength(&mut reader, "release")?;
    let space = space(&mut reader);
    check_ordered(&reader, strength, space)?;
    if matches!(space, Space::Const | Space::Param) {
        return Err(reader.error("this state space is read-only"));
    }
    let has_cache = strength == Strength::Weak && reader.pick(&STORE_CACHES).is_some();
    if !has_cache && reader.pick(&EVICTIONS).is_some() {
        reader.require("an eviction priority", 70, (7, 4))?;
    }
    let lanes = lanes(&mut reader);
    let scalar = memory_scalar(&mut reader, lanes)?;
    reader.end_modifiers()?;
    let address = reader.address(space)?;
    let sources: Result<Box<[Operand]>, Error> = elements(&mut reader, lanes)?
        .iter()
        .map(|operand| reader.wide_source_of(operand, scalar))
        .collect();
    reader.end()?;
    Ok(Operation::Store(Box::new(Store {
        address,
        scalar,
        strength,
        sources: sources?,
    })))
}

const ATOMICS: [(&str, AtomicKind); 10] = [
    ("add", AtomicKind::Add),
    ("min", AtomicKind::Minimum),
    ("max", AtomicKind::Maximum),
    ("and", AtomicKind::And),
    ("or", AtomicKind::Or),
    ("xor", AtomicKind::Xor),
    ("exch", AtomicKind::Exchange),
    ("cas", AtomicKind::CompareExchange),
    ("inc", AtomicKind::Increment),
    ("dec", AtomicKind::Decrement),
];

pub(super) fn atom(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let returns = reader.opcode() == "atom";
    let orderings = [
        ("relaxed", ()),
        ("acquire", ()),
        ("release", ()),
        ("acq_rel", ()),
    ];
    let orderings = if returns {
        &orderings[..]
    } else {
        &[orderings[0], orderings[2]][..]
    };
    if reader.pick(orderings).is_some() {
        reader.require("a memory ordering", 70, (6, 0))?;
    }
    let strength = match reader.pick(&SCOPES[..1]) {
        Some(block) => block,
        None if SCOPES.iter().any(|(name, _)| reader.peek() == Some(name)) => scope(&mut reader)?,
        None => Strength::Device,
    };
    let space = space(&mut reader);
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return Err(reader.error("atomics need global, shared or generic addresses"));
    }
    let kind = reader.choose(&ATOMICS)?;
    if !returns && matches!(kind, AtomicKind::Exchange | AtomicKind::CompareExchange) {
        return Err(reader.error("`red` has neither .exch nor .cas"));
    }
    let noftz = kind == AtomicKind::Add && reader.flag("noftz");
    let scalar = reader.scalar()?;
    check_atomic(&reader, kind, scalar, noftz)?;
    reader.end_modifiers()?;
    let destination = if returns {
        reader.destination_or_sink(scalar)?
    } else {
        SINK
    };
    let address = reader.address(space)?;
    let first = reader.source(scalar)?;
    let second = if kind == AtomicKind::CompareExchange {
        reader.source(scalar)?
    } else {
        Operand::Immediate(0)
    };
    reader.end()?;
    Ok(Operation::Atomic(Box::new(Atomic {
        address,
        kind,
        scalar,
        strength,
        destination,
        sources: [first, second],
    })))
}

fn check_atomic(
    reader: &Reader<'_, '_>,
    kind: AtomicKind,
    scalar: Scalar,
    noftz: bool,
) -> Result<(), Error> {
    let is_half = matches!(scalar.element(), Scalar::F16 | Scalar::BF16);
    if noftz != (is_half && kind == AtomicKind::Add) {
        return Err(reader.error(".noftz belongs to the addition of halves, and is needed there"));
    }
    let integers = [Scalar::U32, Scalar::S32, Scalar::U64, Scalar::S64];
    let allowed: &[Scalar] = match kind {
        AtomicKind::Add if is_half => return check_half_add(reader, scalar),
        AtomicKind::Add => &[
            Scalar::U32,
            Scalar::S32,
            Scalar::U64,
            Scalar::F32,
            Scalar::F64,
        ],
        AtomicKind::Minimum | AtomicKind::Maximum => &integers,
        AtomicKind::And | AtomicKind::Or | AtomicKind::Xor | AtomicKind::Exchange => {
            &[Scalar::B32, Scalar::B64]
        }
        AtomicKind::CompareExchange => &[Scalar::B16, Scalar::B32, Scalar::B64],
        AtomicKind::Increment | AtomicKind::Decrement => &[Scalar::U32],
    };
    if !allowed.contains(&scalar) {
        return Err(reader.error(format!("type {scalar} has no such atomic")));
    }
    match scalar {
        Scalar::F64 => reader.require("atomic addition of f64", 60, (5, 0)),
        Scalar::B16 => reader.require("atomic exchange of 16 bits", 70, (6, 3)),
        _ => Ok(()),
    }
}

fn check_half_add(reader: &Reader<'_, '_>, scalar: Scalar) -> Result<(), Error> {
    match scalar {
        Scalar::F16X2 => reader.require("atomic addition of f16x2", 60, (6, 2)),
        Scalar::F16 => reader.require("atomic addition of f16", 70, (6, 3)),
        _ => reader.require("atomic addition of bf16", 90, (7, 8)),
    }
}

pub(super) fn prefetch(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let is_uniform = reader.opcode() == "prefetchu";
    let space = if is_uniform {
        Space::Generic
    } else {
        space(&mut reader)
    };
    if !matches!(space, Space::Generic | Space::Global | Space::Local) {
        return Err(reader.error("this state space has no prefetch"));
    }
    let levels = [("L1", ()), ("L2", ())];
    reader.choose(if is_uniform { &levels[..1] } else { &levels })?;
    reader.address(space)?;
    reader.end()?;
    Ok(Operation::Nothing)
}

pub(super) fn fence(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if reader.opcode() == "membar" {
        reader.choose(&[("cta", ()), ("gl", ()), ("sys", ())])?;
    } else {
        reader.require("fence", 70, (6, 0))?;
        reader.pick(&[("sc", ()), ("acq_rel", ())]);
        scope(&mut reader)?;
    }
    reader.end()?;
    Ok(Operation::Nothing)
}
