//! Barriers and the instructions of a warp.

use super::reader::Reader;
use crate::error::Error;
use crate::operation::{
    AtomicKind, Barrier, BarrierKind, BarrierReduction, Operand, Operation, SINK, ShuffleMode,
    VoteMode, WarpKind, WarpOperation,
};
use crate::scalar::Scalar;

pub(super) fn bar(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    let is_old = reader.opcode() == "bar";
    if is_old && reader.flag("warp") {
        return warp_barrier(reader);
    }
    if reader.flag("cta") {
        reader.require("the .cta barrier", 30, (7, 8))?;
    }
    if !is_old {
        reader.require("barrier", 30, (6, 0))?;
    }
    if reader.flag("red") {
        return reducing_barrier(reader, is_old);
    }
    let arrives = reader.choose(&[("sync", false), ("arrive", true)])?;
    let aligned = is_old || reader.flag("aligned");
    reader.end_modifiers()?;
    let barrier = Barrier {
        id: barrier_id(&mut reader)?,
        count: barrier_count(&mut reader, 1)?,
        aligned,
        kind: if arrives {
            BarrierKind::Arrive
        } else {
            BarrierKind::Wait
        },
    };
    reader.end()?;
    if arrives && barrier.count.is_none() {
        return Err(reader.error("an arrival needs the number of threads"));
    }
    Ok(Operation::Barrier(Box::new(barrier)))
}

fn barrier_id(reader: &mut Reader<'_, '_>) -> Result<Operand, Error> {
    match reader.source(Scalar::U32)? {
        Operand::Immediate(id) if id > 15 => Err(reader.error(format!("barrier {id} of 16"))),
        id => Ok(id),
    }
}

/// The number of threads, when more operands remain than those that follow it.
fn barrier_count(reader: &mut Reader<'_, '_>, remaining: usize) -> Result<Option<Operand>, Error> {
    let mut count = None;
    if reader.operands_left() >= remaining {
        count = Some(reader.source(Scalar::U32)?);
    }
    if let Some(Operand::Immediate(threads)) = count
        && (threads == 0 || threads % 32 != 0)
    {
        return Err(reader.error("the number of threads must be a multiple of the warp size"));
    }
    Ok(count)
}

fn reducing_barrier(mut reader: Reader<'_, '_>, is_old: bool) -> Result<Operation, Error> {
    let reduction = reader.choose(&[
        ("popc", BarrierReduction::Population),
        ("and", BarrierReduction::And),
        ("or", BarrierReduction::Or),
    ])?;
    let aligned = is_old || reader.flag("aligned");
    let scalar = if reduction == BarrierReduction::Population {
        reader.scalar_of(&[Scalar::U32])?
    } else {
        reader.scalar_of(&[Scalar::PREDICATE])?
    };
    reader.end_modifiers()?;
    let destination = reader.destination(scalar)?;
    let id = barrier_id(&mut reader)?;
    let count = barrier_count(&mut reader, 2)?;
    let (predicate, is_negated) = reader.predicate()?;
    reader.end()?;
    Ok(Operation::Barrier(Box::new(Barrier {
        id,
        count,
        aligned,
        kind: BarrierKind::Reduce {
            reduction,
            destination,
            predicate,
            is_negated,
        },
    })))
}

fn warp(mask: Operand, kind: WarpKind) -> Operation {
    Operation::Warp(Box::new(WarpOperation { mask, kind }))
}

fn warp_barrier(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("bar.warp.sync", 30, (6, 0))?;
    reader.choose(&[("sync", ())])?;
    reader.end_modifiers()?;
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    Ok(warp(mask, WarpKind::Synchronise))
}

pub(super) fn shfl(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("shfl.sync", 30, (6, 0))?;
    reader.choose(&[("sync", ())])?;
    let mode = reader.choose(&[
        ("up", ShuffleMode::Up),
        ("down", ShuffleMode::Down),
        ("bfly", ShuffleMode::Butterfly),
        ("idx", ShuffleMode::Index),
    ])?;
    let scalar = reader.scalar_of(&[Scalar::B32])?;
    reader.end_modifiers()?;
    let [destination, in_range] = reader.pair(scalar, Scalar::PREDICATE)?;
    if destination == SINK {
        return Err(reader.error("a shuffle needs a register for its value"));
    }
    let kind = WarpKind::Shuffle {
        mode,
        destination,
        in_range,
        value: reader.source(scalar)?,
        lane: reader.source(Scalar::B32)?,
        clamp: reader.source(Scalar::B32)?,
    };
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    Ok(warp(mask, kind))
}

pub(super) fn vote(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("vote.sync", 30, (6, 0))?;
    reader.choose(&[("sync", ())])?;
    let mode = reader.choose(&[
        ("all", VoteMode::All),
        ("any", VoteMode::Any),
        ("uni", VoteMode::Uniform),
        ("ballot", VoteMode::Ballot),
    ])?;
    let scalar = if mode == VoteMode::Ballot {
        reader.scalar_of(&[Scalar::B32])?
    } else {
        reader.scalar_of(&[Scalar::PREDICATE])?
    };
    reader.end_modifiers()?;
    let destination = reader.destination(scalar)?;
    let (predicate, is_negated) = reader.predicate()?;
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    let kind = WarpKind::Vote {
        mode,
        destination,
        predicate,
        is_negated,
    };
    Ok(warp(mask, kind))
}

pub(super) fn redux(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("redux.sync", 80, (7, 0))?;
    reader.choose(&[("sync", ())])?;
    let kind = reader.choose(&[
        ("add", AtomicKind::Add),
        ("min", AtomicKind::Minimum),
        ("max", AtomicKind::Maximum),
        ("and", AtomicKind::And),
        ("or", AtomicKind::Or),
        ("xor", AtomicKind::Xor),
    ])?;
    let scalar = match kind {
        AtomicKind::And | AtomicKind::Or | AtomicKind::Xor => reader.scalar_of(&[Scalar::B32])?,
        _ => reader.scalar_of(&[Scalar::U32, Scalar::S32])?,
    };
    reader.end_modifiers()?;
    let destination = reader.destination(scalar)?;
    let value = reader.source(scalar)?;
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    let kind = WarpKind::Reduce {
        kind,
        scalar,
        destination,
        value,
    };
    Ok(warp(mask, kind))
}

pub(super) fn match_any(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("match.sync", 70, (6, 0))?;
    let all = reader.choose(&[("any", false), ("all", true)])?;
    reader.choose(&[("sync", ())])?;
    let scalar = reader.scalar_of(&[Scalar::B32, Scalar::B64])?;
    reader.end_modifiers()?;
    let [destination, predicate] = reader.pair(Scalar::B32, Scalar::PREDICATE)?;
    if predicate != SINK && !all {
        return Err(reader.error("`match.any` has one destination"));
    }
    let value = reader.source(scalar)?;
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    let kind = WarpKind::Match {
        all,
        destination,
        predicate,
        value,
    };
    Ok(warp(mask, kind))
}

pub(super) fn elect(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("elect.sync", 90, (8, 0))?;
    reader.choose(&[("sync", ())])?;
    reader.end_modifiers()?;
    let [destination, predicate] = reader.pair(Scalar::B32, Scalar::PREDICATE)?;
    if predicate == SINK {
        return Err(reader.error("`elect` needs a predicate"));
    }
    let mask = reader.source(Scalar::B32)?;
    reader.end()?;
    let kind = WarpKind::Elect {
        destination,
        predicate,
    };
    Ok(warp(mask, kind))
}

pub(super) fn activemask(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("activemask", 30, (6, 2))?;
    let scalar = reader.scalar_of(&[Scalar::B32])?;
    let destination = reader.destination(scalar)?;
    reader.end()?;
    Ok(Operation::ActiveMask { destination })
}
