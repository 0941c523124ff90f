//! Faults of a running checked program.

use std::fmt;

use tectum::Error;

use super::{Program, Type};

/// Why a lane could not continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that is out of bounds of a buffer, the shared memory or a pool allocation.
    OutOfBounds {
        /// The offset in bytes.
        address: u64,
        /// The type accessed.
        ty: Type,
        /// Bytes of the memory.
        size: u64,
    },
    /// An address that is not a multiple of the type's size.
    Misaligned {
        /// The offset in bytes.
        address: u64,
        /// The type accessed.
        ty: Type,
    },
    /// A handle that names no buffer of the program.
    UnknownHandle {
        /// Its value.
        handle: u64,
    },
    /// A load through the handle of a buffer declared `write`, or a store through one declared
    /// `read`.
    Denied {
        /// The buffer's handle.
        handle: u64,
    },
    /// An integer division by zero.
    DivisionByZero,
    /// A pool without room for an allocation.
    PoolExhausted {
        /// Bytes requested.
        bytes: u64,
    },
    /// More jumps back than the launch allows: an infinite loop, or one that takes longer.
    LoopLimitExceeded {
        /// [`LaunchConfig::max_loop_iterations`](super::LaunchConfig::max_loop_iterations).
        limit: u32,
    },
    /// A loop that the device ended before the program did.
    CutOff,
}

/// A lane's failure: the lane's number in the launch, the instruction's index and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The lane's number in the launch.
    pub lane: u64,
    /// The instruction's index.
    pub instruction: usize,
    /// Why.
    pub kind: FaultKind,
}

impl Fault {
    /// The error that names lane and address, and the line of the text, or the instruction (from 0)
    /// if there is no text.
    pub fn error(&self, program: &Program) -> Error {
        let text = program
            .instructions()
            .get(self.instruction)
            .map(|instruction| program.instruction_text(instruction))
            .unwrap_or_default();
        let place = program.span(self.instruction).map_or_else(
            || format!("instruction {}", self.instruction),
            |span| format!("line {}", span.line),
        );
        let name = if program.name().is_empty() {
            "program"
        } else {
            program.name()
        };
        let message = format!(
            "{name}: lane {}, {place} `{text}`: {}",
            self.lane, self.kind
        );
        if self.kind == FaultKind::CutOff {
            Error::unsupported(message)
        } else {
            Error::invalid(message)
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { address, ty, size } => write!(
                f,
                "{ty} at byte {address} is out of the {size} bytes there are"
            ),
            FaultKind::Misaligned { address, ty } => write!(
                f,
                "byte {address} is not a multiple of the {} bytes of {ty}",
                ty.bytes()
            ),
            FaultKind::UnknownHandle { handle } => write!(f, "handle {handle} names no buffer"),
            FaultKind::Denied { handle } => write!(
                f,
                "the declaration of the buffer of handle {handle} does not allow this access"
            ),
            FaultKind::DivisionByZero => write!(f, "integer division by zero"),
            FaultKind::LoopLimitExceeded { limit } => write!(
                f,
                "the loop did not end within the limit of {limit} iterations of a lane"
            ),
            FaultKind::CutOff => write!(
                f,
                "the device ended the loop before the program did; it does not run loops so long"
            ),
            FaultKind::PoolExhausted { bytes } => {
                write!(f, "the pool has no room for {bytes} bytes")
            }
        }
    }
}
