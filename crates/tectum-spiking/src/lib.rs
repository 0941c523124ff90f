//! Spiking networks by one integer rule: the same spikes on every device, for any thread count and
//! any number of shards.
//!
//! [`Neurons`] with their [`NeuronOptions`] and synapses, as [`SynapseRows`], make a [`Network`]; a
//! [`Simulation`] runs it. `docs/spiking.md` describes the rule.
//!
//! ```
//! use std::sync::Arc;
//! use tectum_spiking::{Network, NetworkOptions, NeuronOptions, Neurons, Simulation, SimulationOptions, Synapse, SynapseList};
//! // Neuron 0 excites neuron 1.
//! let mut neurons = Neurons::default();
//! neurons.add(2, &NeuronOptions::default())?;
//! let synapses = SynapseList::new(2, &[(0, Synapse::fixed(1, 1, false))])?;
//! let network = Network::new(&neurons, Box::new(synapses), NetworkOptions::default())?;
//! let mut simulation = Simulation::new(Arc::new(network), &tectum::Device::open("cpu")?, &SimulationOptions::default())?;
//! simulation.inject(&[(0, 1.0)])?;
//! assert_eq!(simulation.run(1)?.spikes, 1);
//! simulation.run(1)?;
//! assert_eq!(simulation.fired()?, [1]);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | module or type | what for |
//! |---|---|
//! | [`Network`], [`Synapse`], [`SynapseRows`] | networks from arrays or from a function that lists the synapses of a neuron |
//! | [`genome`], [`connect`], [`GenomeSynapses`] | networks from FEAGI genomes, and their synapses without a network |
//! | [`Simulation`], [`SpikeCounts`] | runs on one device or several, injections, spikes, snapshots |
//! | [`PlasticityRule`], [`Memory`] | learning |
//! | [`NetworkExplanation`] | sizes and layout before anything is allocated |
//! | [`mod@rule`] | the arithmetic of the rule, for engines that are compared with this one |

#[cfg(any(test, feature = "bench"))]
mod bench;
#[cfg(any(test, feature = "bench"))]
mod conformance;
#[cfg(feature = "genome")]
mod connect_options;
mod connectivity_stats;
pub mod connectome;
mod explanation;
mod formats;
#[cfg(feature = "genome")]
mod from_genome;
#[cfg(feature = "genome")]
pub mod genome;
#[cfg(feature = "genome")]
mod genome_synapses;
mod kernel;
mod kernels;
mod learning;
#[cfg(feature = "genome")]
mod limitations;
#[cfg(feature = "genome")]
mod mapping_rules;
mod memory;
mod network;
mod network_options;
mod neurons;
mod precision;
#[cfg(any(test, feature = "bench"))]
mod reference;
pub mod rule;
#[cfg(feature = "genome")]
mod samples;
mod simulation;
#[cfg(feature = "genome")]
mod stimulus;
mod synapses;
mod weight_outcomes;

#[cfg(any(test, feature = "bench"))]
pub use bench::suite as bench_suite;
#[cfg(any(test, feature = "bench"))]
pub use conformance::suites as conformance_suites;
#[cfg(feature = "genome")]
pub use connect_options::ConnectOptions;
pub use explanation::{ExtraState, NetworkExplanation};
pub use formats::{FormatGroup, ScaleLimit};
#[cfg(feature = "genome")]
pub use from_genome::{ConnectedNetwork, connect};
#[cfg(feature = "genome")]
pub use genome_synapses::GenomeSynapses;
pub use kernels::kernels;
pub use learning::{PlasticityRule, WeightLoss};
#[cfg(feature = "genome")]
pub use limitations::{UnsupportedFeature, limitations, unsupported_features};
#[cfg(feature = "genome")]
pub use mapping_rules::{grown_directions, rule};
pub use memory::{Memory, MemoryReport};
pub use network::Network;
pub use network_options::NetworkOptions;
pub use neurons::{NeuronOptions, Neurons};
pub use precision::{Imprecision, PrecisionEffect};
pub use rule::{IdleUpdate, ZeroSumReason, seed_of};
#[cfg(feature = "genome")]
pub use samples::SAMPLES;
pub use simulation::{
    FireLedger, MemoryUse, PlasticSynapse, ShardLayout, Simulation, SimulationOptions, SpikeCounts,
    layout,
};
#[cfg(feature = "genome")]
pub use stimulus::Stimulus;
pub use synapses::{Synapse, SynapseList, SynapseRows};
#[cfg(feature = "genome")]
pub use weight_outcomes::mapping_outcomes;
pub use weight_outcomes::rule_outcomes;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
