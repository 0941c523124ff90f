//! Programs and threads.

use super::world::{Verdict, World};

impl World {
    pub fn use_programs(&mut self) -> Verdict {
        Ok(())
    }

    pub fn use_threads(&mut self) -> Verdict {
        Ok(())
    }
}
