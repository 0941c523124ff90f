//! What a pointer points to.

use crate::writer::Operand;

/// A state space with addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global { constant: bool },
    Shared,
    Local,
}

impl Space {
    pub fn name(self) -> &'static str {
        match self {
            Space::Global { .. } => "global",
            Space::Shared => "shared",
            Space::Local => "local",
        }
    }
}

/// A run-time index into values that live in registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DynamicIndex {
    pub index: Operand,
    pub count: u32,
    pub scalars: usize,
}

/// The target of a pointer.
#[derive(Debug, Clone)]
pub(crate) enum PointerTarget {
    /// Scalars of a variable that lives in registers, from `first` on.
    Registers {
        variable: usize,
        first: usize,
        dynamic_indices: Vec<DynamicIndex>,
    },
    /// Bytes at an address; `length` is that of the run-time array at the end of the buffer.
    Memory {
        space: Space,
        address: Operand,
        offset: i64,
        length: Option<Operand>,
    },
}
