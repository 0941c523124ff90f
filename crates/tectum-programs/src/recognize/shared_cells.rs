//! What the cells of shared memory hold.

use std::ops::Range;

use super::graph::Id;
use crate::{BinaryOp, Type};

/// The first cells of shared memory.
#[derive(Debug, Clone)]
pub struct Cells {
    pub ty: Type,
    pub count: u64,
    /// The contents of the cell of the lane's number.
    pub value: Id,
}

/// A value that lanes stored, each its own.
#[derive(Debug, Clone, Copy)]
pub struct StoredValue {
    pub value: Id,
    pub lanes: u64,
}

/// The known state of a block's shared memory.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    /// The state after the last barrier; the rest is unknown.
    pub cells: Option<Cells>,
    /// Values stored since then.
    pub stored: Option<Cells>,
    /// The bytes that lanes loaded from others since then.
    pub loaded: Vec<Range<u64>>,
    /// The values of [`Node::Stored`](super::graph::Node::Stored).
    pub parts: Vec<StoredValue>,
}

/// A value of one lane that is an operation over what every lane stored.
#[derive(Debug, Clone, Copy)]
pub struct BlockReduction {
    pub op: BinaryOp,
    pub part: StoredValue,
}
