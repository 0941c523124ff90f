//! Definition before use and types, on every path.
//!
//! A forward analysis over the blocks of each function. A function is analysed once: its
//! requirements on registers it has not written, and the registers at its end, are its summary,
//! which represents it at every call.

use super::CheckError;
use super::call_order::CallOrder;
use super::flow::{Flow, Function};
use crate::{Instruction, Predicate, Program, Register, Type, Write};

/// Registers, then predicates.
const SLOTS: usize = 256 + Predicate::COUNT as usize;

/// The content of a slot: a value of a type or a truth value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Value(Type),
    Truth,
}

/// The state of a slot where paths join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// No value on some path.
    Unwritten,
    /// A value of this kind on every path.
    Holds(Content),
    /// Its content when the function was entered.
    Input,
    /// The content at entry on some paths, a value of this kind on the others.
    InputOr(Content),
    /// Values of different kinds.
    Mixed,
}

type State = [Slot; SLOTS];

/// Requirements and results of a call.
#[derive(Clone)]
struct Summary {
    /// The kind that a slot must hold at the entry.
    needs: Vec<(usize, Content)>,
    /// The slots after `ret`, relative to the entry; `None` if it never returns.
    leaves: Option<Box<State>>,
}

/// Reads without a value, reads of another type, and `ret` outside a call.
pub fn errors(program: &Program, flow: &Flow, order: &CallOrder) -> Vec<CheckError> {
    let mut summaries: Vec<Option<Summary>> = vec![None; flow.functions.len()];
    let mut found = Vec::new();
    for &index in &order.0 {
        let function = &flow.functions[index];
        let mut analysis = Analysis {
            program,
            flow,
            summaries: &summaries,
            is_main: index == 0,
            needs: Vec::new(),
            found: Vec::new(),
        };
        let states = analysis.solve(function);
        let leaves = analysis.report(function, &states);
        let needs = analysis.needs;
        found.append(&mut analysis.found);
        summaries[index] = Some(Summary { needs, leaves });
    }
    found
}

struct Analysis<'a> {
    program: &'a Program,
    flow: &'a Flow,
    summaries: &'a [Option<Summary>],
    is_main: bool,
    needs: Vec<(usize, Content)>,
    found: Vec<CheckError>,
}

impl Analysis<'_> {
    /// The slots before each block; `None` for unreachable blocks.
    fn solve(&self, function: &Function) -> Vec<Option<Box<State>>> {
        let mut states: Vec<Option<Box<State>>> = vec![None; function.blocks.len()];
        states[0] = Some(Box::new(self.entry()));
        let (mut open, mut is_open) = (vec![0], vec![false; function.blocks.len()]);
        while let Some(index) = open.pop() {
            is_open[index] = false;
            let block = &function.blocks[index];
            let Some(mut state) = states[index].clone() else {
                continue;
            };
            let reached = block
                .code(self.program)
                .all(|(_, instruction)| self.step(&mut state, instruction));
            for &next in block.next.iter().filter(|_| reached) {
                if merge(&mut states[next], &state) && !std::mem::replace(&mut is_open[next], true)
                {
                    open.push(next);
                }
            }
        }
        states
    }

    fn entry(&self) -> State {
        if !self.is_main {
            return [Slot::Input; SLOTS];
        }
        let mut state = [Slot::Unwritten; SLOTS];
        for (register, ty) in Register::PRELOADED {
            state[usize::from(register.0)] = Slot::Holds(Content::Value(ty));
        }
        state
    }

    /// The slots after an instruction; false if no instruction follows.
    fn step(&self, state: &mut State, instruction: &Instruction) -> bool {
        if let Some((slot, content)) = written(instruction) {
            state[slot] = Slot::Holds(content);
        }
        let Some(summary) = self
            .flow
            .callee(instruction)
            .and_then(|callee| self.summaries[callee].as_ref())
        else {
            return true;
        };
        let Some(leaves) = &summary.leaves else {
            return false;
        };
        for (slot, left) in state.iter_mut().zip(leaves.iter()) {
            *slot = match *left {
                Slot::Input => *slot,
                Slot::InputOr(content) => join(*slot, Slot::Holds(content)),
                other => other,
            };
        }
        true
    }

    /// Walks the code again, records errors and requirements; returns the slots after `ret`.
    fn report(&mut self, function: &Function, states: &[Option<Box<State>>]) -> Option<Box<State>> {
        let mut leaves: Option<Box<State>> = None;
        for (block, state) in function.blocks.iter().zip(states) {
            let Some(mut state) = state.clone() else {
                continue;
            };
            for (index, instruction) in block.code(self.program) {
                self.reads(&state, index, instruction);
                if matches!(instruction, Instruction::Return) {
                    if self.is_main {
                        self.found.push(CheckError {
                            instruction: index,
                            message: "a `ret` outside a call".to_owned(),
                        });
                    }
                    merge(&mut leaves, &state);
                }
                if !self.step(&mut state, instruction) {
                    break;
                }
            }
        }
        leaves
    }

    fn reads(&mut self, state: &State, index: usize, instruction: &Instruction) {
        let reads = instruction.reads();
        let registers = reads
            .registers
            .iter()
            .map(|(register, ty)| (usize::from(register.0), Content::Value(*ty)));
        let predicate = reads
            .predicate
            .map(|predicate| (256 + usize::from(predicate.0), Content::Truth));
        let called = self
            .flow
            .callee(instruction)
            .and_then(|callee| self.summaries[callee].as_ref());
        let called = called.map_or(Vec::new(), |summary| summary.needs.clone());
        for (slot, content) in registers.chain(predicate).collect::<Vec<_>>() {
            self.need(state, index, slot, content, "");
        }
        for (slot, content) in called {
            self.need(state, index, slot, content, " by what is called");
        }
    }

    /// One read of a slot.
    fn need(&mut self, state: &State, instruction: usize, slot: usize, content: Content, by: &str) {
        let name = if slot < 256 {
            Register(slot as u8).to_string()
        } else {
            Predicate((slot - 256) as u8).to_string()
        };
        let asked = |content: Content| {
            if let Content::Value(ty) = content {
                format!("{ty}")
            } else {
                "a truth value".to_owned()
            }
        };
        let message = match state[slot] {
            Slot::Holds(held) if held == content => return,
            Slot::Unwritten => format!("{name} is read{by} and has no value on some path"),
            Slot::Holds(held) | Slot::InputOr(held) if held != content => format!(
                "{name} is read{by} as {} and holds {}",
                asked(content),
                asked(held)
            ),
            Slot::Mixed => format!(
                "{name} is read{by} as {} and holds different types on different paths",
                asked(content)
            ),
            Slot::Input | Slot::InputOr(_) | Slot::Holds(_) => {
                match self.needs.iter().find(|(other, _)| *other == slot) {
                    None => return self.needs.push((slot, content)),
                    Some((_, needed)) if *needed == content => return,
                    Some((_, needed)) => format!(
                        "{name} is read{by} as {} and elsewhere in the function as {}",
                        asked(content),
                        asked(*needed)
                    ),
                }
            }
        };
        self.found.push(CheckError {
            instruction,
            message,
        });
    }
}

fn written(instruction: &Instruction) -> Option<(usize, Content)> {
    instruction.write().map(|write| match write {
        Write::Register(register, ty) => (usize::from(register.0), Content::Value(ty)),
        Write::Predicate(predicate) => (256 + usize::from(predicate.0), Content::Truth),
    })
}

/// Merges the slots of another path into a block's; returns whether that changed them.
fn merge(into: &mut Option<Box<State>>, from: &State) -> bool {
    let Some(into) = into else {
        *into = Some(Box::new(*from));
        return true;
    };
    let mut changed = false;
    for (slot, other) in into.iter_mut().zip(from) {
        let joined = join(*slot, *other);
        changed |= joined != *slot;
        *slot = joined;
    }
    changed
}

fn join(a: Slot, b: Slot) -> Slot {
    use Slot::{Holds, Input, InputOr, Mixed, Unwritten};
    match (a, b) {
        _ if a == b => a,
        (Unwritten, _) | (_, Unwritten) => Unwritten,
        (Holds(content), Input) | (Input, Holds(content)) => InputOr(content),
        (InputOr(content), Input) | (Input, InputOr(content)) => InputOr(content),
        (InputOr(first), Holds(second)) | (Holds(second), InputOr(first)) if first == second => {
            a.max_input(b)
        }
        _ => Mixed,
    }
}

impl Slot {
    /// The one of two that is `InputOr`.
    fn max_input(self, other: Slot) -> Slot {
        if matches!(self, Slot::InputOr(_)) {
            self
        } else {
            other
        }
    }
}
