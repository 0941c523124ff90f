//! Addresses of loads and stores.

use serde::{Deserialize, Serialize};

use super::{Phi, Register};

/// The index of a buffer among a program's declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BufferIndex(pub u32);

impl BufferIndex {
    /// The value by which registers name the buffer at run time: its index plus one, so that 0
    /// names none.
    pub const fn handle(self) -> u64 {
        self.0 as u64 + 1
    }
}

/// An address in a buffer. All offsets are bytes; an offset in a register is a `u64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// `[b0]`: the lane's own element, at its number in the launch times the size of the accessed
    /// type.
    Own {
        /// Where.
        buffer: BufferIndex,
    },
    /// `[b0 + 16]`: a constant offset.
    Constant {
        /// Where.
        buffer: BufferIndex,
        /// Bytes from its start.
        bytes: u64,
    },
    /// `[b0 + r5]`: an offset in a register.
    Indexed {
        /// Where.
        buffer: BufferIndex,
        /// Bytes from its start, `u64`.
        offset: Register,
    },
    /// `[r1 + 16]`: a constant offset in the buffer whose handle is in a register.
    Handle {
        /// A buffer's handle, `u64` (see [`BufferIndex::handle`]).
        handle: Register,
        /// Bytes from its start.
        bytes: u64,
    },
    /// `[r1 + r5]`: an offset in a register in the buffer whose handle is in a register.
    Computed {
        /// A buffer's handle, `u64`.
        handle: Register,
        /// Bytes from its start, `u64`.
        offset: Register,
    },
    /// `[Phi(c,p,b)]`: a position in the boundary buffer, the one declared `boundary`.
    Phi(Phi),
}

impl Address {
    /// The buffer, where the address names one.
    pub const fn buffer(self) -> Option<BufferIndex> {
        match self {
            Address::Own { buffer }
            | Address::Constant { buffer, .. }
            | Address::Indexed { buffer, .. } => Some(buffer),
            Address::Handle { .. } | Address::Computed { .. } | Address::Phi(_) => None,
        }
    }

    /// The registers read, all `u64`.
    pub const fn registers(self) -> [Option<Register>; 2] {
        match self {
            Address::Own { .. } | Address::Constant { .. } | Address::Phi(_) => [None, None],
            Address::Indexed { offset, .. } => [None, Some(offset)],
            Address::Handle { handle, .. } => [Some(handle), None],
            Address::Computed { handle, offset } => [Some(handle), Some(offset)],
        }
    }
}

/// An address in the shared memory of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SharedAddress {
    /// `[shared]`: the lane's own element, at its number in the block times the size of the
    /// accessed type.
    Own,
    /// `[shared + 16]`: a constant offset.
    Constant(u64),
    /// `[shared + r5]`: an offset in a register, `u64`.
    Indexed(Register),
}
