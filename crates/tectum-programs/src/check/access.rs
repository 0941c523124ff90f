//! Loads and stores against the declarations of the buffers.

use super::CheckError;
use crate::{Address, Instruction, Program, Type};

/// Accesses that a declaration does not allow, by direction or by type.
pub fn mistakes(program: &Program) -> Vec<CheckError> {
    let accesses = program
        .instructions()
        .iter()
        .enumerate()
        .filter_map(|(index, instruction)| match *instruction {
            Instruction::LoadGlobal { ty, address, .. } => Some((index, ty, address, false)),
            Instruction::StoreGlobal { ty, address, .. } => Some((index, ty, address, true)),
            _ => None,
        });
    let wrong = accesses.filter_map(|(instruction, ty, address, is_store)| {
        let message = refusal(program, ty, address, is_store)?;
        Some(CheckError {
            instruction,
            message,
        })
    });
    wrong.collect()
}

fn refusal(program: &Program, ty: Type, address: Address, is_store: bool) -> Option<String> {
    let is_phi = matches!(address, Address::Phi(_));
    let index = if is_phi {
        program.boundary()
    } else {
        address.buffer()
    }?;
    let buffer = program.buffer(index);
    let name = &buffer.name;
    if is_store && !buffer.access.writes() {
        Some(format!(
            "a store to buffer {name}, which is declared {}",
            buffer.access.name()
        ))
    } else if !is_store && !buffer.access.reads() {
        Some(format!(
            "a load from buffer {name}, which is declared {}",
            buffer.access.name()
        ))
    } else if !is_phi && buffer.ty != ty && buffer.ty != Type::U8 {
        Some(format!(
            "buffer {name} holds {}, the access is of {ty}",
            buffer.ty
        ))
    } else {
        None
    }
}
