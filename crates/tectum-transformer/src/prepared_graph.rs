//! A model's graph as it is executed: its layout of weights, without the weights and without a
//! device.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{DType, LayoutPreferences, PlanBuilder, Result, View};
use tectum_graph::{Graph, Node, PackedParameter, ParameterLayout};

/// The optimised graph with a layout of its weights: enough to record a run.
#[derive(Debug, Clone)]
pub(super) struct PreparedGraph {
    graph: Graph,
    pub layout: ParameterLayout,
    /// The parameters in panels.
    pub packed: Vec<PackedParameter>,
}

impl PreparedGraph {
    /// Lays the weights out. Those of products are in the given format; without one in the format
    /// that `file` reports for a parameter if packed weights are preferred, otherwise plain f32.
    pub fn new(
        graph: &Graph,
        preferences: LayoutPreferences,
        weights: Option<PanelFormat>,
        file: impl Fn(&str) -> PanelFormat,
    ) -> Self {
        let optimized = graph.optimize();
        let is_packed =
            preferences.packed_weights || weights.is_some_and(|format| format != PanelFormat::F32);
        let (graph, packed) = if is_packed {
            optimized.pack_weights(|name| weights.unwrap_or_else(|| file(name)))
        } else {
            (optimized, Vec::new())
        };
        let layout = graph.parameter_layout();
        Self {
            graph,
            layout,
            packed,
        }
    }

    /// Binds letters of the graph.
    pub fn bind(&self, letters: &[(char, usize)]) -> Result<Graph> {
        self.graph.bind(letters)
    }

    /// Bytes of the weights.
    pub fn weight_bytes(&self) -> usize {
        4 * self.layout.len()
    }

    /// Adds the weights to a plan: returns their state, words of 32 bits, and the view that feeds
    /// each parameter.
    pub fn feeds(&self, plan: &mut PlanBuilder) -> Result<(View, Vec<(Node, View)>)> {
        let weights = plan.state("weights", DType::U32, self.layout.len());
        Ok((weights, self.layout.feeds(&self.graph, weights)?))
    }
}
