//! Graphs.

use super::world::{Verdict, World};

pub struct Built;

impl World {
    pub fn use_graphs(&mut self) -> Verdict {
        Ok(())
    }
}
