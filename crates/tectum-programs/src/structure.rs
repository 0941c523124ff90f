//! Structural rules for every program, whatever its origin.

use std::collections::HashSet;
use std::sync::Arc;

use tectum::{Error, Result};

use super::{
    Address, BranchTarget, BufferIndex, Instruction, Predicate, Program, ProgramParts, Type, Write,
};

/// Maximum instructions of a program: suitable for indices and analyses.
pub const MAX_INSTRUCTIONS: usize = 1 << 20;

/// Maximum bytes of a lane's pool.
pub const MAX_POOL_BYTES: u32 = 1 << 16;
/// Maximum bytes of a block's shared memory that a program may request; devices have less.
pub const MAX_SHARED_BYTES: u32 = 1 << 24;

/// Why an instruction or a declaration is not well formed; the position is an instruction's index.
pub(super) struct Fault {
    /// The instruction, if one is at fault.
    pub instruction: Option<usize>,
    /// The message.
    pub message: String,
}

impl Program {
    /// Makes a program from its parts; labels are sorted.
    ///
    /// # Errors
    /// Kind `Invalid`: a target beyond the end or without a label, a buffer or predicate that does
    /// not exist, a coordinate or immediate out of range, a name that is invalid or taken.
    pub fn new(parts: ProgramParts) -> Result<Program> {
        Self::formed(parts).map_err(|fault| {
            let place = fault
                .instruction
                .map_or(String::new(), |index| format!("instruction {index}: "));
            Error::invalid(format!("program: {place}{}", fault.message))
        })
    }

    /// As [`Program::new`], with the position of the error.
    pub(super) fn formed(mut parts: ProgramParts) -> std::result::Result<Program, Fault> {
        parts
            .labels
            .sort_by(|a, b| (a.target, &a.name).cmp(&(b.target, &b.name)));
        declarations(&parts).map_err(|message| Fault {
            instruction: None,
            message,
        })?;
        let labelled: HashSet<BranchTarget> =
            parts.labels.iter().map(|label| label.target).collect();
        for (index, instruction) in parts.instructions.iter().enumerate() {
            operands(&parts, &labelled, instruction).map_err(|message| Fault {
                instruction: Some(index),
                message,
            })?;
        }
        Ok(Program {
            parts: Arc::new(parts),
            source: None,
        })
    }
}

/// Whether a word may name a program, a buffer or a label: a letter or `_`, then letters, digits,
/// `_` and `.`.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    word.len() <= 255
        && letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.')
}

/// Whether a word has another meaning inside an address: a register, a predicate, the shared
/// memory, a coordinate.
fn is_reserved(word: &str) -> bool {
    let numbered = word
        .strip_prefix(['r', 'p'])
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    numbered || word == "shared" || word == "Phi"
}

/// Checks the name and the sizes of memories.
pub(super) fn memories(parts: &ProgramParts) -> std::result::Result<(), String> {
    if !parts.name.is_empty() && !is_name(&parts.name) {
        return Err(format!("{:?} is not a name", parts.name));
    } else if parts.pool_bytes > MAX_POOL_BYTES {
        return Err(format!(
            "a pool of {} bytes, the maximum is {MAX_POOL_BYTES}",
            parts.pool_bytes
        ));
    } else if parts.shared_bytes > MAX_SHARED_BYTES {
        return Err(format!(
            "{} bytes of shared memory, the maximum is {MAX_SHARED_BYTES}",
            parts.shared_bytes
        ));
    }
    Ok(())
}

/// Checks the name of a buffer.
pub(super) fn buffer_name(name: &str) -> std::result::Result<(), String> {
    if is_name(name) && !is_reserved(name) {
        Ok(())
    } else {
        Err(format!("{name:?} cannot name a buffer"))
    }
}

fn declarations(parts: &ProgramParts) -> std::result::Result<(), String> {
    let count = parts.instructions.len();
    if count > MAX_INSTRUCTIONS {
        return Err(format!(
            "{count} instructions, the maximum is {MAX_INSTRUCTIONS}"
        ));
    }
    memories(parts)?;
    let mut names = HashSet::new();
    for buffer in &parts.buffers {
        let name = &buffer.name;
        buffer_name(name)?;
        if !names.insert(name) {
            return Err(format!("buffer {name} is declared twice"));
        }
    }
    if parts
        .buffers
        .iter()
        .filter(|buffer| buffer.boundary)
        .count()
        > 1
    {
        return Err("more than one buffer is the boundary".to_owned());
    }
    let mut names = HashSet::new();
    for label in &parts.labels {
        if !is_name(&label.name) {
            return Err(format!("{:?} cannot name a label", label.name));
        } else if !names.insert(&label.name) {
            return Err(format!("label @{} is defined twice", label.name));
        } else if label.target.index() > count {
            return Err(format!(
                "label @{} refers to instruction {} of {count}",
                label.name, label.target.0
            ));
        }
    }
    Ok(())
}

fn operands(
    parts: &ProgramParts,
    labelled: &HashSet<BranchTarget>,
    instruction: &Instruction,
) -> std::result::Result<(), String> {
    if let Some(target) = instruction
        .target()
        .filter(|target| !labelled.contains(target))
    {
        return Err(format!("target {} has no label", target.0));
    }
    let written = instruction.write().and_then(|write| {
        if let Write::Predicate(predicate) = write {
            Some(predicate)
        } else {
            None
        }
    });
    if let Some(predicate) = written
        .into_iter()
        .chain(instruction.reads().predicate)
        .find(|predicate| predicate.0 >= Predicate::COUNT)
    {
        return Err(format!(
            "{predicate}: predicates are p0 to p{}",
            Predicate::COUNT - 1
        ));
    }
    match instruction {
        Instruction::LoadGlobal { address, .. } | Instruction::StoreGlobal { address, .. } => {
            addressed(parts, address)
        }
        Instruction::MoveImmediate { ty, bits, .. } if bits & !ty.mask() != 0 => {
            Err(format!("immediate {bits:#x} does not fit {ty}"))
        }
        Instruction::Barrier { id } if *id > 15 => {
            Err(format!("barrier {id}: barriers are 0 to 15"))
        }
        Instruction::Reduce { count: 0, .. } => Err("a reduction of no registers".to_owned()),
        Instruction::Reduce { first, count, .. }
            if u64::from(first.0) + u64::from(*count) > 256 =>
        {
            Err(format!(
                "a reduction of {count} registers from {first} passes r255"
            ))
        }
        _ => supported(instruction),
    }
}

fn addressed(parts: &ProgramParts, address: &Address) -> std::result::Result<(), String> {
    match address {
        Address::Phi(phi) if phi.class >= 96 => {
            Err(format!("class {}: classes are 0 to 95", phi.class))
        }
        Address::Phi(phi) if phi.page >= 48 => Err(format!("page {}: pages are 0 to 47", phi.page)),
        Address::Phi(_) if !parts.buffers.iter().any(|buffer| buffer.boundary) => {
            Err("no buffer is declared the boundary".to_owned())
        }
        _ => match address.buffer() {
            Some(BufferIndex(index)) if index as usize >= parts.buffers.len() => {
                Err(format!("buffer {index} of {}", parts.buffers.len()))
            }
            _ => Ok(()),
        },
    }
}

/// Whether the operation is defined for its type.
fn supported(instruction: &Instruction) -> std::result::Result<(), String> {
    let (name, ty, takes): (&str, Type, bool) = match *instruction {
        Instruction::Unary { op, ty, .. } => (op.name(), ty, op.takes(ty)),
        Instruction::Binary { op, ty, .. } => (op.name(), ty, op.takes(ty)),
        Instruction::Ternary { op, ty, .. } => (op.name(), ty, op.takes(ty)),
        Instruction::Compare { condition, ty, .. } => (condition.name(), ty, condition.takes(ty)),
        Instruction::Reduce { op, ty, .. } => (op.name(), ty, op.takes(ty)),
        _ => return Ok(()),
    };
    if takes {
        Ok(())
    } else {
        Err(format!("{name} is not defined for {ty}"))
    }
}
