//! Control flow as `if`, `if … else` and `loop`, if a program's jumps nest accordingly.
//!
//! Every jump must be exactly one of: a branch over code that follows, with or without code for the
//! other case; the one jump back at the bottom of a loop; a branch out of the innermost loop to the
//! code after it. Any other jump, for example into the middle of a region, makes the whole program
//! use [`super::dispatch`].
//!
//! A loop is left only at its top, by the variable that says whether it continues; a faulted lane
//! is the exception. Mesa's llvmpipe (22.3) gives a lane that left in the middle the values that
//! its neighbours continued to compute: it masks only values that reach the top again.

use std::collections::HashMap;

use super::statement::Statements;
use super::{Bounds, Unsupported};
use crate::{Guard, Instruction};

/// Deeper nesting goes through the dispatch loop.
const MAX_DEPTH: u32 = 32;

/// The body of `run`, or `None` if the jumps do not nest.
pub fn body(
    statements: &mut Statements<'_>,
    has_barriers: bool,
) -> Result<Option<String>, Unsupported> {
    let mut back_edges: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, instruction) in statements.program.instructions().iter().enumerate() {
        if let Some(target) = instruction
            .target()
            .filter(|target| target.index() <= index)
        {
            back_edges.entry(target.index()).or_default().push(index);
        }
    }
    let end = statements.program.instructions().len();
    let mut writer = Writer {
        statements,
        back_edges,
        has_barriers,
        text: String::new(),
    };
    let nests = writer.region(
        0,
        end,
        NestContext {
            depth: 0,
            inner: None,
            header: None,
        },
    )?;
    Ok(nests.then_some(writer.text))
}

/// The context of code.
#[derive(Clone, Copy)]
struct NestContext {
    depth: u32,
    /// The innermost loop: its first instruction, after which its variable is named, and the one
    /// after it.
    inner: Option<(usize, usize)>,
    /// The first instruction of the loop with this body.
    header: Option<usize>,
}

impl NestContext {
    fn inside(self) -> NestContext {
        NestContext {
            depth: self.depth + 1,
            header: None,
            ..self
        }
    }
}

struct Writer<'a, 'b> {
    statements: &'a mut Statements<'b>,
    /// Jumps back, by target.
    back_edges: HashMap<usize, Vec<usize>>,
    has_barriers: bool,
    text: String,
}

type Nests = Result<bool, Unsupported>;

impl Writer<'_, '_> {
    /// Writes the instructions `first..end`; whether they nest.
    fn region(&mut self, first: usize, end: usize, place: NestContext) -> Nests {
        if place.depth > MAX_DEPTH {
            return Ok(false);
        }
        let mut at = first;
        while at < end {
            let header = self
                .back_edges
                .get(&at)
                .filter(|_| place.header != Some(at) || at != first)
                .cloned();
            let next = match header {
                Some(back_edges) => self.counted(at, &back_edges, end, place)?,
                None => self.instruction(at, end, place)?,
            };
            match next {
                Some(next) => at = next,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A loop from its header on; returns the position after it.
    fn counted(
        &mut self,
        header: usize,
        bottoms: &[usize],
        end: usize,
        place: NestContext,
    ) -> Result<Option<usize>, Unsupported> {
        let &[bottom] = bottoms else { return Ok(None) };
        let jump = self.statements.program.instructions()[bottom];
        let conditional = !matches!(jump, Instruction::Branch { guard: None, .. });
        if bottom >= end || !conditional || matches!(jump, Instruction::Call { .. }) {
            return Ok(None);
        }
        self.line(place, &format!("var more_{header} = true;"));
        self.line(
            place,
            &format!("while more_{header} && turns <= params.max_turns {{"),
        );
        let inside = NestContext {
            depth: place.depth + 1,
            inner: Some((header, bottom + 1)),
            header: Some(header),
        };
        if !self.region(header, bottom, inside)? {
            return Ok(None);
        }
        match jump {
            Instruction::Loop { count, .. } => {
                self.line(inside, &format!("more_{header} = r{} != 0u;", count.0));
                self.line(
                    inside,
                    &format!("r{0} = r{0} - u32(more_{header});", count.0),
                );
                self.line(inside, &format!("turns += u32(more_{header});"));
            }
            Instruction::Branch {
                guard: Some(guard), ..
            } => {
                self.line(inside, &format!("more_{header} = {};", condition(guard)));
                self.line(inside, &format!("turns += u32(more_{header});"));
            }
            _ => return Ok(None),
        }
        self.line(place, "}");
        self.line(
            place,
            &format!("if more_{header} {{ stopped(turns, {bottom}u); }}"),
        );
        self.leave(place);
        Ok(Some(bottom + 1))
    }

    /// One instruction, with the code that it branches over; returns the position after it, or
    /// `None` if it does not nest.
    fn instruction(
        &mut self,
        at: usize,
        end: usize,
        place: NestContext,
    ) -> Result<Option<usize>, Unsupported> {
        match self.statements.program.instructions()[at] {
            Instruction::Branch { target, guard } => {
                self.branch(at, target.index(), guard, end, place)
            }
            Instruction::Loop { .. } | Instruction::Call { .. } | Instruction::Return => Ok(None),
            Instruction::Barrier { .. } if place.depth > 0 => Ok(None),
            Instruction::Exit if self.has_barriers && (place.depth > 0 || at + 1 != end) => {
                Ok(None)
            }
            Instruction::Exit if at + 1 != end => Ok(None),
            Instruction::Exit => {
                if !self.has_barriers {
                    self.line(place, "return;");
                }
                Ok(Some(at + 1))
            }
            _ => {
                let statement = self.statements.of(at)?;
                statement
                    .lines
                    .iter()
                    .for_each(|line| self.line(place, line));
                if statement.may_fault && self.statements.bounds == Bounds::Checked {
                    self.leave(place);
                }
                Ok(Some(at + 1))
            }
        }
    }

    fn branch(
        &mut self,
        at: usize,
        target: usize,
        guard: Option<Guard>,
        end: usize,
        place: NestContext,
    ) -> Result<Option<usize>, Unsupported> {
        let Some(guard) = guard else {
            // The following code is not reached from here: only the last instruction of its region
            // may jump elsewhere.
            let out = place
                .inner
                .filter(|(_, after)| *after == target && at + 1 == end && target > end);
            if let Some((header, _)) = out {
                self.line(place, &format!("more_{header} = false;"));
                self.line(place, "continue;");
            }
            return Ok((out.is_some() || target == at + 1).then_some(at + 1));
        };
        if let Some((header, _)) = place
            .inner
            .filter(|(_, after)| *after == target && target > end)
        {
            self.line(
                place,
                &format!(
                    "if {} {{ more_{header} = false; continue; }}",
                    condition(guard)
                ),
            );
            return Ok(Some(at + 1));
        } else if target <= at || target > end {
            return Ok(None);
        }
        self.line(place, &format!("if !({}) {{", condition(guard)));
        let skip = self.statements.program.instructions()[target - 1];
        let otherwise = match skip {
            Instruction::Branch {
                target: after,
                guard: None,
            } if target - 1 > at && after.index() > target && after.index() <= end => {
                Some(after.index())
            }
            _ => None,
        };
        let nests = match otherwise {
            None => self.region(at + 1, target, place.inside())?,
            Some(after) => {
                let first = self.region(at + 1, target - 1, place.inside())?;
                self.line(place, "} else {");
                first && self.region(target, after, place.inside())?
            }
        };
        self.line(place, "}");
        Ok(nests.then_some(otherwise.unwrap_or(target)))
    }

    /// Ends a lane that faulted. If barriers follow, it continues, to reach them with the others;
    /// loops end.
    fn leave(&mut self, place: NestContext) {
        if !self.has_barriers {
            self.line(place, "if faulted { return; }");
        } else if place.inner.is_some() {
            self.line(place, "if faulted { break; }");
        }
    }

    fn line(&mut self, place: NestContext, line: &str) {
        super::indented(&mut self.text, place.depth + 1, line);
    }
}

/// When a branch is taken.
pub fn condition(guard: Guard) -> String {
    if guard.when {
        guard.predicate.to_string()
    } else {
        format!("!{}", guard.predicate)
    }
}
