//! Loops of a program: heads and the jumps back to them.

use std::collections::HashMap;
use std::ops::Range;

use crate::Program;

/// Maximum nesting depth of loops.
pub const MAX_DEPTH: usize = 4;

/// Heads of loops, with the jumps back to them.
pub struct Loops(HashMap<usize, Vec<usize>>);

impl Loops {
    pub fn of(program: &Program) -> Self {
        let mut bottoms: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, instruction) in program.instructions().iter().enumerate() {
            if let Some(target) = instruction
                .target()
                .filter(|target| target.index() <= index)
            {
                bottoms.entry(target.index()).or_default().push(index);
            }
        }
        Self(bottoms)
    }

    /// The jumps back to a head; none if it is the head of no loop.
    pub fn jumps_back_to(&self, head: usize) -> Option<&Vec<usize>> {
        self.0.get(&head)
    }
}

/// A loop: `head … bottom`, and its exit if that is not at the bottom.
#[derive(Clone, Copy)]
pub struct Loop {
    pub head: usize,
    pub test: Option<usize>,
    pub bottom: usize,
}

impl Loop {
    /// Every instruction of it.
    pub fn all(&self) -> Range<usize> {
        self.head..self.bottom + 1
    }
}
