//! Operations that work element by element: an entry of the op table each, alone or as a step of a
//! chain.

use super::{Lowering, Node, Result, View};

/// Operand of an elementwise operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Read {
    Value(Node),
    Factor(f32),
}

/// An entry of the op table with its operands.
#[derive(Debug)]
pub(crate) struct Elementwise {
    pub name: String,
    pub x: Node,
    pub second: Option<Read>,
}

impl Elementwise {
    /// Its operands in their order.
    pub fn reads(&self) -> impl Iterator<Item = Read> {
        [Some(Read::Value(self.x)), self.second]
            .into_iter()
            .flatten()
    }

    /// Records it as one launch.
    pub fn launch(&self, lowering: &mut Lowering<'_>, y: View) -> Result<()> {
        let x = lowering.views[&self.x];
        match self.second {
            None => lowering.plan.unary(&self.name, x, y),
            Some(Read::Value(b)) => lowering.plan.binary(&self.name, x, lowering.views[&b], y),
            Some(Read::Factor(factor)) => {
                let factor = lowering.uniform(factor, 1);
                lowering.plan.binary(&self.name, x, factor, y)
            }
        }
    }
}
