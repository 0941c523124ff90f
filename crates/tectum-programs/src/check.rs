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

use super::Program;
use super::diagnostic::{Diagnostic, SourceMap};
pub use bounds::Bounded;
use call_order::call_order;
use flow::Flow;

/// A program that the check accepts: every read has a value of its type, accesses are allowed by the declarations, barriers
/// are in uniform flow, calls are bounded. Only [`Program::check`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    program: Program,
}

impl Program {
    /// Checks types, definition before use on every path, buffer access, calls and barriers.
    ///
    /// # Errors
    /// Kind `Invalid`; each error with line, column and the line of the text (of the printed form, for a program that was
    /// not assembled).
    pub fn check(&self) -> Result<Checked> {
        let found = self.mistakes();
        if found.is_empty() { Ok(Checked { program: self.clone() }) } else { Err(Diagnostic::error(self.name(), &found)) }
    }

    /// All errors that the check finds, in the order of the instructions; empty if it accepts the program.
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
        found.into_iter().map(|mistake| places.diagnostic(mistake.instruction, mistake.message)).collect()
    }
}

impl Checked {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Loops that are not proven to end. A run ends all loops, at [`LaunchConfig::max_loop_iterations`](super::LaunchConfig::max_loop_iterations).
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let places = SourceMap::of(&self.program);
        termination::doubts(&self.program).into_iter().map(|doubt| places.diagnostic(doubt.instruction, doubt.message)).collect()
    }
}

/// What is wrong with an instruction.
#[derive(Debug, PartialEq, Eq)]
struct CheckError {
    instruction: usize,
    message: String,
}
