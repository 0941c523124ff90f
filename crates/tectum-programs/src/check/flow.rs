//! Functions, basic blocks and the edges between them.

use std::collections::HashMap;

use super::CheckError;
use crate::{Instruction, Program};

/// Maximum blocks of all functions together; code that functions share counts for each.
const MAX_BLOCKS: usize = 1 << 17;

/// A program's functions: the first begins at instruction 0, the others are the targets of calls.
pub struct Flow {
    pub functions: Vec<Function>,
    /// The function that begins at an instruction.
    pub by_entry: HashMap<usize, usize>,
}

/// The code that one entry reaches without following calls.
pub struct Function {
    /// The first block is the entry.
    pub blocks: Vec<Block>,
}

/// Instructions that run in sequence.
pub struct Block {
    pub first: usize,
    /// One past the last.
    pub end: usize,
    /// Successors, as indices into the function's blocks; none after `ret`, `exit` and the
    /// program's end.
    pub next: Vec<usize>,
}

impl Flow {
    pub fn of(program: &Program) -> Result<Flow, CheckError> {
        let code = program.instructions();
        let mut by_entry = HashMap::from([(0, 0)]);
        let mut entries = vec![0];
        for instruction in code {
            if let Instruction::Call { target } = instruction {
                by_entry.entry(target.index()).or_insert_with(|| {
                    entries.push(target.index());
                    entries.len() - 1
                });
            }
        }
        let leaders = leaders(code);
        let (mut functions, mut blocks) = (Vec::new(), 0);
        for entry in entries {
            let function = Function::of(code, &leaders, entry, MAX_BLOCKS - blocks);
            let function = function.ok_or_else(|| CheckError {
                instruction: entry,
                message: format!("more than {MAX_BLOCKS} basic blocks"),
            })?;
            blocks += function.blocks.len();
            functions.push(function);
        }
        Ok(Flow {
            functions,
            by_entry,
        })
    }

    /// The function that a call enters.
    pub fn callee(&self, instruction: &Instruction) -> Option<usize> {
        match instruction {
            Instruction::Call { target } => self.by_entry.get(&target.index()).copied(),
            _ => None,
        }
    }
}

impl Function {
    /// The blocks that an entry reaches, or `None` beyond a number of them.
    fn of(code: &[Instruction], leaders: &[bool], entry: usize, most: usize) -> Option<Function> {
        let mut numbers = HashMap::from([(entry, 0)]);
        let mut firsts = vec![entry];
        let mut blocks: Vec<Block> = Vec::new();
        while blocks.len() < firsts.len() {
            if firsts.len() > most {
                return None;
            }
            let first = firsts[blocks.len()];
            let end = (first + 1..code.len())
                .find(|index| leaders[*index])
                .unwrap_or(code.len())
                .max(first);
            let mut number = |index: usize| {
                *numbers.entry(index).or_insert_with(|| {
                    firsts.push(index);
                    firsts.len() - 1
                })
            };
            let next = successors(code, first, end)
                .into_iter()
                .map(&mut number)
                .collect();
            blocks.push(Block { first, end, next });
        }
        Some(Function { blocks })
    }
}

impl Block {
    /// The index and instruction of each of the block's instructions.
    pub fn code<'a>(
        &self,
        program: &'a Program,
    ) -> impl Iterator<Item = (usize, &'a Instruction)> + use<'a> {
        (self.first..self.end).zip(&program.instructions()[self.first..self.end])
    }
}

/// Whether a block begins at an instruction: at targets and after instructions that jump or end.
fn leaders(code: &[Instruction]) -> Vec<bool> {
    let mut leaders = vec![false; code.len() + 1];
    leaders[0] = true;
    for (index, instruction) in code.iter().enumerate() {
        if let Some(target) = instruction.target() {
            leaders[target.index()] = true;
        }
        if instruction.target().is_some() || !instruction.falls_through() {
            leaders[index + 1] = true;
        }
    }
    leaders
}

/// First instructions of the successors of a block; the program's end is an empty block.
fn successors(code: &[Instruction], first: usize, end: usize) -> Vec<usize> {
    if first == end {
        return Vec::new();
    }
    let last = &code[end - 1];
    let mut next = Vec::new();
    if last.falls_through() {
        next.push(end);
    }
    if !matches!(last, Instruction::Call { .. }) {
        next.extend(last.target().map(|target| target.index()));
    }
    next.dedup();
    next
}
