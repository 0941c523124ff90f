//! Spiking networks by one rule in integers: the same spikes on every device, thread count and number of shards.
//!
//! [`Neurons`] with their [`NeuronOptions`] and synapses, as [`SynapseRows`], make a [`Network`]; a [`Simulation`] runs it.
//! `docs/spiking.md` has the rule in words.

mod bench;
pub(crate) mod conformance;
pub mod connectome;
mod explanation;
mod from_genome;
mod kernels;
mod learning;
mod memory;
mod naive;
mod network;
pub mod rule;
mod simulation;
mod stimulus;
mod survey;

pub use bench::suite;
pub use explanation::{ExtraState, NetworkExplanation, ScaleLimit, ZeroSumReason};
pub use from_genome::{ConnectOptions, ConnectedNetwork, UnsupportedFeature, connect, rule, undone};
pub use kernels::kernels;
pub use learning::PlasticityRule;
pub use memory::{Memory, MemoryReport};
pub use network::{Network, NetworkOptions, NeuronOptions, Neurons, Synapse, SynapseList, SynapseRows};
pub use rule::{IdleUpdate, seed_of};
pub use simulation::{FireLedger, MemoryUse, PlasticSynapse, ShardLayout, Simulation, SimulationOptions, SpikeCounts, layout};
pub use stimulus::Stimulus;

#[cfg(test)]
mod tests;
