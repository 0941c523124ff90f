//! Decoded instructions.

use crate::compute::{Comparison, Compute};
use crate::scalar::Scalar;
use crate::syntax::Space;

/// The index of a register among those of a kernel.
pub(crate) type Slot = u32;

/// The destination `_`.
pub(crate) const SINK: Slot = Slot::MAX;

/// One decoded instruction.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub line: u32,
    pub guard: Option<Guard>,
    pub operation: Operation,
}

/// The predicate that lets an instruction execute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub slot: Slot,
    pub is_negated: bool,
}

/// A source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    Register(Slot),
    Immediate(u64),
    Special(Special),
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    BlockExtent(u8),
    Block(u8),
    GridExtent(u8),
    Lane,
    Warp,
    WarpCount,
    LaneMaskEqual,
    LaneMaskLess,
    LaneMaskLessEqual,
    LaneMaskGreater,
    LaneMaskGreaterEqual,
    Clock,
    Clock64,
    GlobalTimer,
}

/// The operation of an instruction.
#[derive(Debug)]
pub(crate) enum Operation {
    Compute {
        compute: Compute,
        destination: Slot,
        sources: [Operand; 4],
    },
    SetPredicate(Box<SetPredicate>),
    Carry(Box<Carry>),
    Pack {
        destination: Slot,
        sources: Box<[Operand]>,
        element_bits: u32,
    },
    Unpack {
        destinations: Box<[Slot]>,
        source: Operand,
        element_bits: u32,
    },
    IsSpace {
        destination: Slot,
        source: Operand,
        space: Space,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Barrier(Box<Barrier>),
    Warp(Box<WarpOperation>),
    ActiveMask {
        destination: Slot,
    },
    Branch {
        target: u32,
    },
    BranchIndexed {
        index: Operand,
        targets: Box<[u32]>,
    },
    Exit,
    Trap,
    /// Fences, prefetches and sleeps, which change no value.
    Nothing,
}

/// `setp`.
#[derive(Debug)]
pub(crate) struct SetPredicate {
    pub comparison: Comparison,
    /// The outcome and its complement, or the lower and upper outcome of a packed pair.
    pub destinations: [Slot; 2],
    pub is_pair: bool,
    pub sources: [Operand; 3],
}

/// Extended-precision addition, subtraction and multiplication.
#[derive(Debug)]
pub(crate) struct Carry {
    pub kind: CarryKind,
    pub scalar: Scalar,
    pub reads: bool,
    pub writes: bool,
    pub destination: Slot,
    pub sources: [Operand; 3],
}

/// What an extended-precision instruction adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Subtract,
    MultiplyAddLow,
    MultiplyAddHigh,
}

/// An address and how it may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub space: Space,
    pub base: Operand,
    pub offset: i64,
}

/// How strongly an access is ordered relative to those of other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// Conflicts with any unordered access.
    Weak,
    /// Atomic with respect to threads of the same block only.
    Block,
    /// Atomic with respect to every thread.
    Device,
}

/// `ld`.
#[derive(Debug)]
pub(crate) struct Load {
    pub address: Address,
    pub scalar: Scalar,
    pub strength: Strength,
    pub coherent: bool,
    /// The registers with their widths.
    pub destinations: Box<[(Slot, u32)]>,
}

/// `st`.
#[derive(Debug)]
pub(crate) struct Store {
    pub address: Address,
    pub scalar: Scalar,
    pub strength: Strength,
    pub sources: Box<[Operand]>,
}

/// `atom` and `red`.
#[derive(Debug)]
pub(crate) struct Atomic {
    pub address: Address,
    pub kind: AtomicKind,
    pub scalar: Scalar,
    pub strength: Strength,
    pub destination: Slot,
    pub sources: [Operand; 2],
}

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Add,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
    Increment,
    Decrement,
}

/// `bar` and `barrier`.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub id: Operand,
    pub count: Option<Operand>,
    pub aligned: bool,
    pub kind: BarrierKind,
}

/// Effects of a barrier in addition to waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierKind {
    Wait,
    Arrive,
    Reduce {
        reduction: BarrierReduction,
        destination: Slot,
        predicate: Operand,
        is_negated: bool,
    },
}

/// The reduction of `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierReduction {
    Population,
    And,
    Or,
}

/// An instruction that the named threads of a warp execute together.
#[derive(Debug)]
pub(crate) struct WarpOperation {
    pub mask: Operand,
    pub kind: WarpKind,
}

/// The exchange between threads of a warp.
#[derive(Debug)]
pub(crate) enum WarpKind {
    Synchronise,
    Shuffle {
        mode: ShuffleMode,
        destination: Slot,
        in_range: Slot,
        value: Operand,
        lane: Operand,
        clamp: Operand,
    },
    Vote {
        mode: VoteMode,
        destination: Slot,
        predicate: Operand,
        is_negated: bool,
    },
    Reduce {
        kind: AtomicKind,
        scalar: Scalar,
        destination: Slot,
        value: Operand,
    },
    Match {
        all: bool,
        destination: Slot,
        predicate: Slot,
        value: Operand,
    },
    Elect {
        destination: Slot,
        predicate: Slot,
    },
}

/// Which lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The question of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}
