//! The check: conditions that every program must satisfy to run.

mod access;
mod bounds;
mod call_order;
mod definitions;
mod flow;
mod postdominators;
mod range;
mod termination;
mod uniformity;

use tectum::Result;

use super::diagnostic::{Diagnostic, SourceMap};
use super::{Instruction, Program, SharedAddress};
pub use bounds::Bounded;
use call_order::call_order;
use flow::Flow;

/// A program that the check accepts: every read has a value of its type, accesses are allowed by
/// the declarations, barriers are in uniform flow, calls are bounded. Only [`Program::check`] makes
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    program: Program,
}

impl Program {
    /// Checks types, definition before use on every path, buffer access, calls and barriers.
    ///
    /// # Errors
    /// Kind `Invalid`; each error with line, column and the line of the text (of the printed form,
    /// for a program that was not assembled).
    pub fn check(&self) -> Result<Checked> {
        let found = self.mistakes();
        if found.is_empty() {
            Ok(Checked {
                program: self.clone(),
            })
        } else {
            Err(Diagnostic::error(self.name(), &found))
        }
    }

    /// All errors that the check finds, in the order of the instructions; empty if it accepts the
    /// program.
    pub fn mistakes(&self) -> Vec<Diagnostic> {
        let mut found = access::mistakes(self);
        match Flow::of(self).and_then(|flow| Ok((call_order(&flow, self)?, flow))) {
            Ok((order, flow)) => {
                let written = definitions::errors(self, &flow, &order);
                found.extend(written);
                found.extend(uniformity::mistakes(self, &flow));
            }
            Err(mistake) => found.push(mistake),
        }
        if found.is_empty() {
            return Vec::new();
        }
        found.sort_by(|a, b| (a.instruction, &a.message).cmp(&(b.instruction, &b.message)));
        found.dedup();
        let places = SourceMap::of(self);
        found
            .into_iter()
            .map(|mistake| places.diagnostic(mistake.instruction, mistake.message))
            .collect()
    }
}

impl Checked {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Loops that are not proven to end, which a run ends at
    /// [`LaunchConfig::max_loop_iterations`](super::LaunchConfig::max_loop_iterations); shared
    /// memory that lanes exchange values through without any barrier.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let places = SourceMap::of(&self.program);
        let loops = termination::doubts(&self.program)
            .into_iter()
            .map(|doubt| places.diagnostic(doubt.instruction, doubt.message));
        let message = "a lane may read here what another lane writes, and no barrier orders them: bar.sync does";
        loops
            .chain(
                self.unordered_read()
                    .map(|instruction| places.diagnostic(instruction, message.to_owned())),
            )
            .collect()
    }

    /// The first read of another lane's cell of shared memory, in a program that also writes there
    /// and has no barrier.
    fn unordered_read(&self) -> Option<usize> {
        let instructions = self.program.instructions();
        let writes = instructions
            .iter()
            .any(|instruction| matches!(instruction, Instruction::StoreShared { .. }));
        let has_barrier = instructions
            .iter()
            .any(|instruction| matches!(instruction, Instruction::Barrier { .. }));
        let reads = |instruction: &Instruction| matches!(instruction, Instruction::LoadShared { address, .. } if *address != SharedAddress::Own);
        instructions
            .iter()
            .position(reads)
            .filter(|_| writes && !has_barrier)
    }
}

/// What is wrong with an instruction.
#[derive(Debug, PartialEq, Eq)]
struct CheckError {
    instruction: usize,
    message: String,
}
