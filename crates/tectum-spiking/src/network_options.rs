//! Options of a network as a whole.

use super::learning::PlasticityRule;
use super::memory::Memory;
use super::rule::IdleUpdate;

/// Options of a network as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOptions {
    /// The effect of a burst without arrivals. Default: `IdleUpdate::CatchUp`.
    pub idle_update: IdleUpdate,
    /// Added to each neuron's number for its draws. Default: 0.
    pub seed: u32,
    /// Maximum magnitude of the injection into a neuron in one burst; the scale leaves room for it.
    /// Default: 1024.0.
    pub max_injected: f32,
    /// Learning rules of plastic synapses, at most 16. Default: none.
    pub plasticity: Vec<PlasticityRule>,
    /// Memories, which store patterns of firings. Default: none.
    pub memories: Vec<Memory>,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            idle_update: IdleUpdate::CatchUp,
            seed: 0,
            max_injected: 1024.0,
            plasticity: Vec::new(),
            memories: Vec::new(),
        }
    }
}
