//! Networks small enough to work out by hand.
