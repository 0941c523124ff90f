//! Registers and predicates of a lane.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Type;

/// One of a lane's 256 registers. It holds a value of the type last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Register(pub u8);

impl Register {
    /// R252, preloaded: the lane's x in its block, `u32`.
    pub const LANE: Register = Register(252);
    /// R253, preloaded: the block's x in the grid, `u32`.
    pub const BLOCK: Register = Register(253);
    /// R254, preloaded: the block's size in x, `u32`.
    pub const BLOCK_SIZE: Register = Register(254);
    /// R255, preloaded: the lane's number in the launch, `u64`.
    pub const GLOBAL_LANE: Register = Register(255);

    /// The registers that hold a value when a lane starts, with their types.
    pub const PRELOADED: [(Register, Type); 4] = [
        (Register::LANE, Type::U32),
        (Register::BLOCK, Type::U32),
        (Register::BLOCK_SIZE, Type::U32),
        (Register::GLOBAL_LANE, Type::U64),
    ];
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// One of a lane's 16 predicates: a truth value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Predicate(pub u8);

impl Predicate {
    /// Predicates of a lane.
    pub const COUNT: u8 = 16;
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}
