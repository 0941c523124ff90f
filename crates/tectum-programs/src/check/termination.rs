//! Loops that are not proven to end.
//!
//! A loop is the code from the target of a jump back up to that jump. It is counted if a `loop`
//! counts it with a register that no other instruction in it writes, or if a branch out of it
//! compares a register that it only steps (added to, subtracted from, shifted, multiplied or
//! divided by a value it does not change) with one that it does not change. All other loops may not
//! end.

use super::CheckError;
use crate::{BinaryOp, Instruction, Predicate, Program, Register, Write};

/// Each jump back of a loop that is not counted.
pub fn doubts(program: &Program) -> Vec<CheckError> {
    let code = program.instructions();
    let back = code
        .iter()
        .enumerate()
        .filter(|(index, instruction)| instruction.turns(*index));
    back.filter_map(|(index, instruction)| {
        let first = instruction.target()?.index();
        let body = Loop {
            first,
            last: index,
            code,
            calls: code[first..=index]
                .iter()
                .any(|instruction| matches!(instruction, Instruction::Call { .. })),
        };
        (!body.is_counted()).then(|| CheckError {
            instruction: index,
            message: body.message(),
        })
    })
    .collect()
}

/// The instructions `first..=last`, the last of which jumps back.
struct Loop<'a> {
    first: usize,
    last: usize,
    code: &'a [Instruction],
    /// Whether it includes called code, which may be anywhere.
    calls: bool,
}

impl<'a> Loop<'a> {
    fn body(&self) -> &'a [Instruction] {
        &self.code[self.first..=self.last]
    }

    /// The instructions that may write while the loop runs.
    fn running(&self) -> &'a [Instruction] {
        if self.calls { self.code } else { self.body() }
    }

    fn is_counted(&self) -> bool {
        if let Instruction::Loop { count, .. } = self.code[self.last]
            && self.writers(count).count() == 1
        {
            return true;
        }
        self.exits().any(|predicate| self.is_reached(predicate))
    }

    /// Predicates of the branches that leave it.
    fn exits(&self) -> impl Iterator<Item = Predicate> {
        let leaves = |(index, instruction): (usize, &Instruction)| match *instruction {
            Instruction::Branch {
                target,
                guard: Some(guard),
            } if index == self.last || !(self.first..=self.last).contains(&target.index()) => {
                Some(guard.predicate)
            }
            _ => None,
        };
        (self.first..).zip(self.body()).filter_map(leaves)
    }

    /// Whether all writers of a predicate compare a stepped register with an unchanged one.
    fn is_reached(&self, predicate: Predicate) -> bool {
        let mut compares = self
            .running()
            .iter()
            .filter(|instruction| instruction.write() == Some(Write::Predicate(predicate)))
            .peekable();
        compares.peek().is_some()
            && compares.all(|instruction| match *instruction {
                Instruction::Compare { a, b, .. } => {
                    (self.is_induction_variable(a) && self.is_loop_invariant(b))
                        || (self.is_induction_variable(b) && self.is_loop_invariant(a))
                }
                _ => false,
            })
    }

    fn writers(&self, register: Register) -> impl Iterator<Item = &'a Instruction> {
        self.running().iter().filter(move |instruction| matches!(instruction.write(), Some(Write::Register(written, _)) if written == register))
    }

    fn is_loop_invariant(&self, register: Register) -> bool {
        self.writers(register).next().is_none()
    }

    fn is_induction_variable(&self, register: Register) -> bool {
        use BinaryOp::{Add, Div, Mul, Shl, Shr, Sub};
        let mut writers = self.writers(register).peekable();
        writers.peek().is_some()
            && writers.all(|instruction| match *instruction {
                Instruction::Binary {
                    op: Add | Mul,
                    a,
                    b,
                    ..
                } => {
                    (a == register && self.is_loop_invariant(b))
                        || (b == register && self.is_loop_invariant(a))
                }
                Instruction::Binary {
                    op: Sub | Shr | Shl | Div,
                    a,
                    b,
                    ..
                } => a == register && self.is_loop_invariant(b),
                _ => false,
            })
    }

    fn message(&self) -> String {
        let leaves = self
            .body()
            .iter()
            .any(|instruction| matches!(instruction, Instruction::Exit | Instruction::Return));
        match self.exits().next().is_none() && !leaves && !matches!(self.code[self.last], Instruction::Loop { .. }) {
            true => "the loop has no exit: every run ends with an error at its iteration limit".to_owned(),
            false => "no exit of the loop is counted, so it is not proven to end; an endless run stops with an error at its iteration limit".to_owned(),
        }
    }
}
