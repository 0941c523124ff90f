//! Recording a chain of elementwise operations.

use super::{PlanBuilder, View};
use crate::error::{Error, Result};
use crate::kernel::{Chain, groups_for};

impl PlanBuilder {
    /// Records the last value of a chain over `inputs` as one launch.
    ///
    /// # Shapes
    /// Every input and `y` [n].
    /// # Numerics
    /// Each operation as by itself; a GPU may fuse a product with a sum that follows.
    /// # Errors
    /// `Invalid` if the number of inputs or the lengths do not fit or the chain is not whole; as [`PlanBuilder::launch`].
    /// # Cost
    /// Each input is read once and `y` written once.
    pub fn chain(&mut self, chain: &Chain, inputs: &[View], y: View) -> Result<()> {
        let kernel = chain.kernel()?;
        if inputs.len() != chain.inputs() || inputs.iter().any(|x| x.len() != y.len()) {
            let lengths: Vec<_> = inputs.iter().map(View::len).collect();
            return Err(Error::invalid(format!("chain: inputs of {lengths:?} elements, {} of y's {} needed", chain.inputs(), y.len())));
        }
        if y.is_empty() {
            return Ok(());
        }
        let views: Vec<View> = inputs.iter().copied().chain([y]).collect();
        self.launch(&kernel, &views, &[y.len() as u32], groups_for(y.len()))
    }
}
