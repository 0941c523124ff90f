//! Facts about a program before it runs: constants, and in one without branches, registers that are
//! needed once.

use crate::{Address, BufferIndex, Instruction, Program, Register, Write};

/// A program without branches in which each constant has its own register, as far as registers
/// suffice, so that [`constants`](super::constants::constants) finds it; any other program
/// unchanged.
pub fn with_own_constants(program: &Program) -> Program {
    if !is_straight(program) {
        return program.clone();
    }
    let mut parts = program.parts().clone();
    let mut free = free_registers(program);
    for index in 0..parts.instructions.len() {
        if let Instruction::MoveImmediate { dst, .. } = parts.instructions[index]
            && let Some(own) = free.last()
            && rename(&mut parts.instructions[index..], dst, *own)
        {
            free.pop();
        }
    }
    Program::new(parts)
        .expect("invariant: a well-formed program with other registers is well formed")
}

/// For each instruction of a program without branches, the buffer to which it can write its result,
/// words which only the next instruction needs: a store of each lane's own element.
pub fn direct_stores(program: &Program) -> Vec<Option<BufferIndex>> {
    let instructions = program.instructions();
    let is_straight = is_straight(program);
    let next_store = |index: usize| match (&instructions[index], instructions.get(index + 1)) {
        (
            Instruction::Unary { ty, dst, .. }
            | Instruction::Binary { ty, dst, .. }
            | Instruction::Ternary { ty, dst, .. },
            Some(Instruction::StoreGlobal {
                ty: stored,
                src,
                address: Address::Own { buffer },
            }),
        ) if is_straight
            && src == dst
            && ty.bytes() == 4
            && stored.bytes() == 4
            && is_unread(&instructions[index + 2..], *dst) =>
        {
            Some(*buffer)
        }
        _ => None,
    };
    (0..instructions.len()).map(next_store).collect()
}

/// Whether instructions run once each, in order.
pub fn is_straight(program: &Program) -> bool {
    let turns = |instruction: &Instruction| {
        instruction.target().is_some()
            || matches!(
                instruction,
                Instruction::Return | Instruction::Exit | Instruction::Barrier { .. }
            )
    };
    !program
        .instructions()
        .split_last()
        .is_some_and(|(last, rest)| {
            rest.iter().any(turns) || last.target().is_some() || matches!(last, Instruction::Return)
        })
}

/// Whether no instruction reads a register before one writes it.
fn is_unread(instructions: &[Instruction], register: Register) -> bool {
    for instruction in instructions {
        if instruction
            .reads()
            .registers
            .iter()
            .any(|(read, _)| *read == register)
        {
            return false;
        }
        if matches!(instruction.write(), Some(Write::Register(written, _)) if written == register) {
            return true;
        }
    }
    true
}

fn free_registers(program: &Program) -> Vec<Register> {
    let used = super::register_file::used(program);
    let is_free = |register: &Register| {
        !used.iter().any(|(used, _)| used == register)
            && !Register::PRELOADED
                .iter()
                .any(|(preloaded, _)| preloaded == register)
    };
    (0..=u8::MAX).map(Register).filter(is_free).collect()
}

/// Renames the result register of the first instruction in all reads before the next write; no
/// change if there is no other write of the register, or if one of those instructions names its
/// operands differently.
fn rename(instructions: &mut [Instruction], from: Register, to: Register) -> bool {
    let rewrites = |instruction: &Instruction| matches!(instruction.write(), Some(Write::Register(written, _)) if written == from);
    let Some(next) = instructions[1..].iter().position(rewrites) else {
        return false;
    };
    let (first, readers) = instructions[..next + 2]
        .split_first_mut()
        .expect("invariant: the write is there");
    let reads = |instruction: &&mut Instruction| {
        instruction
            .reads()
            .registers
            .iter()
            .any(|(read, _)| *read == from)
    };
    let mut renamed = readers.to_vec();
    if !renamed
        .iter_mut()
        .filter(reads)
        .all(|instruction| read_instead(instruction, from, to))
    {
        return false;
    }
    if let Instruction::MoveImmediate { dst, .. } = first {
        *dst = to;
    }
    readers.clone_from_slice(&renamed);
    true
}

/// Makes an instruction of arithmetic read another register.
fn read_instead(instruction: &mut Instruction, from: Register, to: Register) -> bool {
    let rename =
        |register: &mut Register| *register = if *register == from { to } else { *register };
    match instruction {
        Instruction::Unary { src, .. }
        | Instruction::Move { src, .. }
        | Instruction::Convert { src, .. } => rename(src),
        Instruction::Binary { a, b, .. } | Instruction::Compare { a, b, .. } => {
            [a, b].into_iter().for_each(rename)
        }
        Instruction::Ternary { a, b, c, .. } => [a, b, c].into_iter().for_each(rename),
        Instruction::Select {
            on_true, on_false, ..
        } => [on_true, on_false].into_iter().for_each(rename),
        Instruction::StoreGlobal {
            src,
            address: Address::Own { .. } | Address::Constant { .. },
            ..
        } => rename(src),
        _ => return false,
    }
    true
}
