//! Checks that all lanes of a block reach each barrier together.
//!
//! A register *varies* if lanes of a block may hold different values in it. A branch on a varying
//! value is divergent: the blocks between it and the point where its paths join again (its nearest
//! postdominator) are divergent, and so are the registers they write. Lanes that end in divergent
//! flow make the rest of the program divergent. Functions are analysed with the union of their
//! callers' states.

use super::CheckError;
use super::flow::{Flow, Function};
use super::postdominators::Postdominators;
use crate::{Address, Instruction, Predicate, Program, Register, Write};

/// Registers, predicates, then the phase.
const SLOTS: usize = 256 + Predicate::COUNT as usize + 1;
const PHASE: usize = SLOTS - 1;

/// Which slots vary.
type Varying = [bool; SLOTS];

/// Barriers in divergent flow.
pub fn mistakes(program: &Program, flow: &Flow) -> Vec<CheckError> {
    if !program
        .instructions()
        .iter()
        .any(|instruction| matches!(instruction, Instruction::Barrier { .. }))
    {
        return Vec::new();
    }
    let mut analysis = Analysis::new(program, flow);
    while analysis.round() {}
    analysis.divergent_barriers()
}

/// The analysis state of a function; all sets only grow.
struct FunctionFacts {
    /// Slots that vary before each block.
    before: Vec<Varying>,
    /// Blocks in divergent flow.
    divergent: Vec<bool>,
    /// Slots that vary after `ret`.
    after: Varying,
    /// Whether lanes may end in divergent flow inside.
    exits_divergently: bool,
    /// Whether it is reachable.
    entered: bool,
}

struct Analysis<'a> {
    program: &'a Program,
    flow: &'a Flow,
    postdominators: Vec<Postdominators>,
    known: Vec<FunctionFacts>,
    changed: bool,
}

impl<'a> Analysis<'a> {
    fn new(program: &'a Program, flow: &'a Flow) -> Self {
        let knowledge = |function: &Function| FunctionFacts {
            before: vec![[false; SLOTS]; function.blocks.len()],
            divergent: vec![false; function.blocks.len()],
            after: [false; SLOTS],
            exits_divergently: false,
            entered: false,
        };
        let mut known: Vec<FunctionFacts> = flow.functions.iter().map(knowledge).collect();
        known[0].entered = true;
        known[0].before[0][usize::from(Register::LANE.0)] = true;
        known[0].before[0][usize::from(Register::GLOBAL_LANE.0)] = true;
        let postdominators = flow.functions.iter().map(Postdominators::of).collect();
        Self {
            program,
            flow,
            postdominators,
            known,
            changed: false,
        }
    }

    /// Analyses all functions once; returns whether anything changed.
    fn round(&mut self) -> bool {
        self.changed = false;
        for function in 0..self.flow.functions.len() {
            if self.known[function].entered {
                for block in 0..self.flow.functions[function].blocks.len() {
                    self.block(function, block);
                }
            }
        }
        self.changed
    }

    fn block(&mut self, function: usize, index: usize) {
        let flow = self.flow;
        let block = &flow.functions[function].blocks[index];
        let mut state = self.known[function].before[index];
        let mut splits = false;
        for (_, instruction) in block.code(self.program) {
            let divergent = self.known[function].divergent[index];
            splits |= is_divergent_branch(&state, instruction);
            self.write(&mut state, instruction, divergent);
            if let Some(callee) = flow.callee(instruction) {
                self.enter(callee, &state, divergent);
                splits |= self.known[callee].exits_divergently;
                let after = self.known[callee].after;
                include(&mut state, &after);
            }
            if matches!(instruction, Instruction::Return) {
                self.changed |= include(&mut self.known[function].after, &state);
            }
        }
        for &next in &block.next {
            self.changed |= include(&mut self.known[function].before[next], &state);
        }
        if splits {
            self.split(function, index);
        }
        let last = self.program.instructions()[block.first..block.end].last();
        let ends = block.next.is_empty() && !matches!(last, Some(Instruction::Return));
        let calls_apart = last
            .and_then(|last| flow.callee(last))
            .is_some_and(|callee| self.known[callee].exits_divergently);
        if (ends && self.known[function].divergent[index] || calls_apart)
            && !self.known[function].exits_divergently
        {
            self.known[function].exits_divergently = true;
            self.changed = true;
        }
    }

    /// Records that a block calls a function.
    fn enter(&mut self, callee: usize, state: &Varying, divergent: bool) {
        let known = &mut self.known[callee];
        self.changed |= !std::mem::replace(&mut known.entered, true);
        self.changed |= include(&mut known.before[0], state);
        if divergent && known.divergent.contains(&false) {
            known.divergent.fill(true);
            self.changed = true;
        }
    }

    /// Records that lanes diverge after a block, until its postdominator; permanently if lanes have
    /// ended.
    fn split(&mut self, function: usize, index: usize) {
        let blocks = &self.flow.functions[function].blocks;
        let ends = matches!(
            self.program.instructions()[blocks[index].first..blocks[index].end].last(),
            Some(Instruction::Call { .. })
        );
        let meeting = if ends {
            None
        } else {
            self.postdominators[function].nearest(index)
        };
        let (mut open, mut seen) = (blocks[index].next.clone(), vec![false; blocks.len()]);
        while let Some(block) = open.pop() {
            if Some(block) == meeting || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            self.changed |= !std::mem::replace(&mut self.known[function].divergent[block], true);
            open.extend(&blocks[block].next);
        }
    }

    /// The slots after what an instruction itself writes.
    fn write(&self, state: &mut Varying, instruction: &Instruction, divergent: bool) {
        let reads = instruction.reads();
        let operands = reads
            .registers
            .iter()
            .any(|(register, _)| state[usize::from(register.0)]);
        let predicate = reads
            .predicate
            .is_some_and(|predicate| state[256 + usize::from(predicate.0)]);
        let varies = divergent
            || operands
            || predicate
            || self.is_own(instruction)
            || matches!(instruction, Instruction::PhaseGet { .. } if state[PHASE]);
        match instruction.write() {
            Some(Write::Register(register, _)) => state[usize::from(register.0)] = varies,
            Some(Write::Predicate(predicate)) => state[256 + usize::from(predicate.0)] = varies,
            None => {}
        }
        state[PHASE] |= divergent && matches!(instruction, Instruction::PhaseAdvance { .. });
    }

    /// Whether lanes may get different values for the same operands: all memory except constant
    /// offsets of read-only buffers.
    fn is_own(&self, instruction: &Instruction) -> bool {
        match instruction {
            Instruction::LoadGlobal { address, .. } => {
                let buffer = if matches!(address, Address::Phi(_)) {
                    self.program.boundary()
                } else {
                    address.buffer()
                };
                matches!(address, Address::Own { .. })
                    || buffer.is_none_or(|buffer| self.program.buffer(buffer).access.writes())
            }
            Instruction::LoadShared { .. }
            | Instruction::PoolLoad { .. }
            | Instruction::PoolAllocate { .. }
            | Instruction::UnityTest { .. } => true,
            _ => false,
        }
    }

    fn divergent_barriers(&self) -> Vec<CheckError> {
        let mut found = Vec::new();
        for (function, known) in self
            .flow
            .functions
            .iter()
            .zip(&self.known)
            .filter(|(_, known)| known.entered)
        {
            for (block, _) in function
                .blocks
                .iter()
                .zip(&known.divergent)
                .filter(|(_, divergent)| **divergent)
            {
                let barriers = block
                    .code(self.program)
                    .filter(|(_, instruction)| matches!(instruction, Instruction::Barrier { .. }));
                found.extend(barriers.map(|(instruction, _)| CheckError {
                    instruction,
                    message: "a barrier that only some lanes of a block may reach".to_owned(),
                }));
            }
        }
        found
    }
}

/// Whether lanes may take different paths from an instruction.
fn is_divergent_branch(state: &Varying, instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Branch {
            guard: Some(guard), ..
        } => state[256 + usize::from(guard.predicate.0)],
        Instruction::Loop { count, .. } => state[usize::from(count.0)],
        _ => false,
    }
}

/// Adds to a set; whether that made it larger.
fn include(into: &mut Varying, other: &Varying) -> bool {
    let mut grew = false;
    for (slot, other) in into.iter_mut().zip(other) {
        grew |= *other && !*slot;
        *slot |= *other;
    }
    grew
}
