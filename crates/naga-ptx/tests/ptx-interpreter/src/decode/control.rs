//! Branches and ends.

use super::reader::Reader;
use super::{Decoder, Jump};
use crate::error::Error;
use crate::operation::Operation;
use crate::scalar::Scalar;
use crate::syntax;

fn label<'a>(reader: &mut Reader<'_, 'a>) -> Result<&'a str, Error> {
    match reader.operand()? {
        syntax::Operand::Name(name) => Ok(name),
        _ => Err(reader.error("a label is needed")),
    }
}

fn record<'a>(decoder: &mut Decoder<'a>, line: u32, labels: Vec<&'a str>) {
    let jump = Jump {
        instruction: decoder.instructions.len(),
        scope: decoder.scopes.current(),
        line,
        labels,
    };
    decoder.jumps.push(jump);
}

pub(super) fn bra(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.flag("uni");
    reader.end_modifiers()?;
    let target = label(&mut reader)?;
    reader.end()?;
    record(reader.decoder, reader.instruction.line, vec![target]);
    Ok(Operation::Branch { target: 0 })
}

pub(super) fn brx(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("brx.idx", 30, (6, 0))?;
    reader.choose(&[("idx", ())])?;
    reader.flag("uni");
    reader.end_modifiers()?;
    let index = reader.source(Scalar::U32)?;
    let table = label(&mut reader)?;
    reader.end()?;
    let targets = reader
        .decoder
        .scopes
        .targets(table)
        .ok_or_else(|| reader.error(format!("branch targets `{table}` are not declared")))?;
    record(reader.decoder, reader.instruction.line, targets);
    Ok(Operation::BranchIndexed {
        index,
        targets: Box::default(),
    })
}

pub(super) fn end(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    if reader.opcode() == "ret" {
        reader.flag("uni");
    }
    reader.end()?;
    Ok(if reader.opcode() == "trap" {
        Operation::Trap
    } else {
        Operation::Exit
    })
}

pub(super) fn nanosleep(mut reader: Reader<'_, '_>) -> Result<Operation, Error> {
    reader.require("nanosleep", 70, (6, 3))?;
    reader.scalar_of(&[Scalar::U32])?;
    reader.source(Scalar::U32)?;
    reader.end()?;
    Ok(Operation::Nothing)
}
