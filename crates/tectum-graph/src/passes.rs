//! The passes of [`Graph::optimize`], by name and in their order.

use std::fmt;

use super::Graph;

/// A pass that keeps the value of every output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// [`Graph::simplify`].
    Simplify,
    /// [`Graph::fold`].
    Fold,
    /// [`Graph::eliminate_common_subexpressions`].
    CommonSubexpressions,
    /// [`Graph::fuse`].
    Fuse,
    /// [`Graph::merge_products`].
    MergeProducts,
    /// [`Graph::fuse_slices`].
    FuseSlices,
    /// [`Graph::fuse_chains`].
    FuseChains,
    /// [`Graph::prune`].
    Prune,
}

impl Pass {
    /// All passes in the order in which they run. Values that `unify` leaves unread are removed
    /// immediately, since only a value's last reader can absorb it.
    pub const ALL: [Pass; 9] = [
        Pass::Simplify,
        Pass::Fold,
        Pass::CommonSubexpressions,
        Pass::Prune,
        Pass::Fuse,
        Pass::MergeProducts,
        Pass::FuseSlices,
        Pass::FuseChains,
        Pass::Prune,
    ];

    /// Runs only this pass.
    #[must_use]
    pub fn run(self, graph: &Graph) -> Graph {
        match self {
            Pass::Simplify => graph.simplify(),
            Pass::Fold => graph.fold(),
            Pass::CommonSubexpressions => graph.eliminate_common_subexpressions(),
            Pass::Fuse => graph.fuse(),
            Pass::MergeProducts => graph.merge_products(),
            Pass::FuseSlices => graph.fuse_slices(),
            Pass::FuseChains => graph.fuse_chains(),
            Pass::Prune => graph.prune(),
        }
    }
}

/// The name of the function that implements the pass.
impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pass::Simplify => "simplify",
            Pass::Fold => "fold",
            Pass::CommonSubexpressions => "unify",
            Pass::Fuse => "fuse",
            Pass::MergeProducts => "merge_products",
            Pass::FuseSlices => "fuse_slices",
            Pass::FuseChains => "fuse_chains",
            Pass::Prune => "prune",
        })
    }
}

impl Graph {
    /// The same network with fewer launches: runs all passes in order. Outputs, inputs and
    /// parameters keep their nodes.
    #[must_use]
    pub fn optimize(&self) -> Graph {
        self.optimize_without(&[])
    }

    /// As [`Graph::optimize`], without some passes.
    #[must_use]
    pub fn optimize_without(&self, off: &[Pass]) -> Graph {
        Pass::ALL
            .iter()
            .filter(|pass| !off.contains(pass))
            .fold(self.clone(), |graph, pass| pass.run(&graph))
    }
}
