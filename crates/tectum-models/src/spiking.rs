//! Spiking networks by one rule in integers: the same spikes on every device, thread count and number of shards.
//!
//! [`Neurons`] with their [`NeuronOptions`] and synapses, as [`Rows`], make a [`Network`]; a [`Simulation`] runs it.
//! `docs/spiking.md` has the rule in words.

mod bench;
pub mod connectome;
mod from_genome;
mod kernels;
mod network;
pub mod rule;
mod simulation;
mod stimulus;

pub use bench::suite;
pub use kernels::kernels;
pub use from_genome::{Connected, connect};
pub use network::{Network, NetworkOptions, NeuronOptions, Neurons, Rows, Synapse, SynapseList};
pub use rule::Silence;
pub use simulation::{Simulation, SimulationOptions, SpikeCounts};
pub use stimulus::Stimulus;

#[cfg(test)]
mod tests;
