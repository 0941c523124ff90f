//! Bodies, brains and the closed loop, over the public API of `tectum` alone.

pub mod body;
pub mod brain;
pub mod rig_csv;
pub mod snapshot;
