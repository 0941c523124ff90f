//! What a file does not state.

use std::fmt;

/// What a file does not state, and the value that loading assumed.
#[derive(Debug, Clone, PartialEq)]
pub enum Assumption {
    /// A named dimension without a size.
    Dimension {
        /// Its name.
        name: String,
        /// Its size.
        size: usize,
    },
    /// A dimension of an input without a name or a size.
    UnnamedDimension {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
    },
    /// Random numbers of a node without a seed.
    Seed,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumption::Dimension { name, size } => write!(f, "dimension {name:?} is {size}"),
            Assumption::UnnamedDimension { input, axis, size } => write!(
                f,
                "axis {axis} of input {input:?}, which has no name and size, is {size}"
            ),
            Assumption::Seed => f.write_str("the seed of random numbers is 0"),
        }
    }
}
