//! Code in which lanes of a block diverge and join again at barriers: regions that only the first
//! lanes run, loops with barriers.

use std::ops::Range;

use super::affine::Affine;
use super::control::{End, NOT_A_HEAD};
use super::graph::Node;
use super::lane::{ExecutionResult, SymbolicExecutor};
use super::loops::Loop;
use super::trip;
use crate::{Guard, Instruction, Type};

/// Maximum iterations of a loop with barriers.
const MAX_BARRIER_ITERATIONS: usize = 64;

impl SymbolicExecutor<'_> {
    /// Whether some lanes may skip a region: straight code without barriers that accesses shared
    /// memory.
    pub fn is_part(&self, stretch: Range<usize>) -> bool {
        let code = &self.program.instructions()[stretch];
        let is_shared = |instruction: &Instruction| {
            matches!(
                instruction,
                Instruction::LoadShared { .. } | Instruction::StoreShared { .. }
            )
        };
        let is_straight = |instruction: &Instruction| {
            instruction.target().is_none()
                && instruction.falls_through()
                && !matches!(instruction, Instruction::Barrier { .. })
        };
        code.iter().any(is_shared) && code.iter().all(is_straight)
    }

    /// Follows a region that the first lanes run and the others skip; returns where they join. Its
    /// results are known in the first lanes.
    pub fn part(&mut self, at: usize, target: usize, guard: Guard) -> ExecutionResult<usize> {
        let id = self.state.predicates[usize::from(guard.predicate.0)];
        let Some(Node::Compare {
            condition,
            ty,
            a,
            b,
        }) = id.map(|id| self.graph.node(id).clone())
        else {
            return self.refuse(at, "the branch depends on data");
        };
        let condition = if guard.when {
            trip::negated(condition)
        } else {
            condition
        };
        let all = self.extents.clone();
        if self.keep_lanes(at, condition, ty, a, b)? {
            self.part = Some(self.lanes());
            (at + 1..target).try_for_each(|index| self.step(index))?;
            self.part = None;
            self.forget_predicates(at + 1..target);
        }
        self.extents = all;
        Ok(target)
    }

    /// Follows a loop with barriers iteration by iteration.
    pub fn unroll_barrier_loop(&mut self, around: Loop) -> ExecutionResult<()> {
        let Loop { head, test, bottom } = around;
        for _ in 0..MAX_BARRIER_ITERATIONS {
            let through = match test {
                Some(test) => {
                    self.pure(around)?;
                    if self.is_taken(test)? {
                        return Ok(());
                    }
                    self.region(test + 1, bottom, Some(NOT_A_HEAD))?
                }
                None => self.region(head, bottom, Some(head))?,
            };
            if through == End::Lane {
                return self.refuse(head, "an iteration of the loop ends the lane");
            } else if !self.is_taken(bottom)? {
                return Ok(());
            }
        }
        self.refuse(
            head,
            format!("the loop meets at barriers more than {MAX_BARRIER_ITERATIONS} times"),
        )
    }

    /// Whether a uniform jump is taken.
    fn is_taken(&mut self, at: usize) -> ExecutionResult<bool> {
        match self.program.instructions()[at] {
            Instruction::Branch { guard: None, .. } => Ok(true),
            Instruction::Branch {
                guard: Some(guard), ..
            } => match self.state.predicates[usize::from(guard.predicate.0)]
                .map(|id| self.graph.node(id))
            {
                Some(Node::Truth(holds)) => Ok(*holds == guard.when),
                _ => self.refuse(
                    at,
                    "the number of iterations of a loop with barriers is not known in advance",
                ),
            },
            Instruction::Loop { count, .. } => {
                let id = self.get(count, at)?;
                match self.graph.form(id).and_then(Affine::as_constant) {
                    None => self.refuse(at, "the loop's count is not known in advance"),
                    Some(left) => {
                        let id = self
                            .graph
                            .constant(Type::U32, left.saturating_sub(1).max(0) as u64);
                        self.set(count, id);
                        Ok(left > 0)
                    }
                }
            }
            _ => self.refuse(at, "the jump is not part of a loop"),
        }
    }
}
