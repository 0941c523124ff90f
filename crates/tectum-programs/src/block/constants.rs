//! Registers that hold one constant.

use crate::{Instruction, Program, Register, Type, Write};

/// Registers that only one instruction writes, with a constant: their columns are filled once, and
/// the instruction is skipped.
pub fn constants(program: &Program) -> Vec<(usize, Register, Type, u64)> {
    let mut writes = [0u32; 256];
    Register::PRELOADED
        .iter()
        .for_each(|(register, _)| writes[usize::from(register.0)] = 1);
    for instruction in program.instructions() {
        if let Some(Write::Register(register, _)) = instruction.write() {
            writes[usize::from(register.0)] += 1;
        }
    }
    let places = program.instructions().iter().enumerate();
    places
        .filter_map(|(index, instruction)| match *instruction {
            Instruction::MoveImmediate { ty, dst, bits } if writes[usize::from(dst.0)] == 1 => {
                Some((index, dst, ty, bits))
            }
            _ => None,
        })
        .collect()
}
