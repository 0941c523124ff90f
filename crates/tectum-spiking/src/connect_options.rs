//! Options of the network of a genome.

use super::network_options::NetworkOptions;

/// How a genome is connected.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectOptions {
    /// The seed of synapses that exist with a probability. Default: 0.
    pub seed: u64,
    /// Whether plastic mappings learn; if not, their weights keep their initial values, and no
    /// synapses grow. Default: yes.
    pub learns: bool,
    /// Maximum stored patterns of each memory area. Default: 1024.
    pub memory_neurons: u32,
    /// Options that the genome does not define; the genome's rules and memories are added.
    pub network: NetworkOptions,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            learns: true,
            memory_neurons: 1024,
            network: NetworkOptions::default(),
        }
    }
}
