//! Why a network runs as it does, as data.

use std::ops::Range;

use serde::Serialize;

use super::formats::FormatGroup;
use super::learning::PlasticityRule;
use super::memory::Memory;
use super::network::Network;
use super::precision::Imprecision;
use super::rule::{IdleUpdate, Profile, ZeroSumReason};

/// Why a network runs as it does, for any device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkExplanation {
    /// Neurons.
    pub neurons: u32,
    /// Synapses.
    pub synapses: u64,
    /// Kinds of neurons: neurons with equal options share a row of constants.
    pub profiles: usize,
    /// Plastic synapses.
    pub plastic_synapses: u64,
    /// Their learning rules.
    pub plasticity: Vec<PlasticityRule>,
    /// Memories, which store patterns of firings.
    pub memories: Vec<Memory>,
    /// The fraction bits of potentials, descending, with the neurons that have them.
    pub formats: Vec<FormatGroup>,
    /// Settings that the formats distort by more than 1 % of a threshold.
    pub imprecisions: Vec<Imprecision>,
    /// Neurons for which arrivals with a sum of 0 differ from no arrival; if there are any,
    /// arrivals are marked next to the sums.
    pub zero_sums: Vec<(Range<u32>, ZeroSumReason)>,
    /// Neurons with more state than their potential; if there are any, each neuron has four planes
    /// of state instead of one.
    pub extra_state: Vec<(Range<u32>, ExtraState)>,
    /// Bytes of the synapses in host memory, from which they are packed for another device.
    pub host_synapse_bytes: u64,
}

/// A neuron's state in addition to its potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraState {
    /// Its refractory period.
    Refractory,
    /// Its firings in a row.
    Limited,
    /// The burst of its last arrival, from which the pending leak is computed.
    Leaks,
}

impl Network {
    /// Why the network runs as it does.
    pub fn explain(&self) -> NetworkExplanation {
        let runs = || {
            self.runs
                .iter()
                .map(|(range, profile)| (range.clone(), &self.profiles[*profile as usize]))
        };
        let idle_update = self.options.idle_update;
        NetworkExplanation {
            neurons: self.neurons(),
            synapses: self.synapses(),
            profiles: self.profiles.len(),
            plastic_synapses: self.plastic_synapses(),
            plasticity: self.options.plasticity.clone(),
            memories: self.options.memories.clone(),
            formats: self.format_groups.clone(),
            imprecisions: self.imprecisions.clone(),
            zero_sums: runs()
                .filter_map(|(range, profile)| Some((range, profile.zero_sums(idle_update)?)))
                .collect(),
            extra_state: runs()
                .filter_map(|(range, profile)| Some((range, extra_state(profile, idle_update)?)))
                .collect(),
            host_synapse_bytes: self.rows.bytes(),
        }
    }
}

/// Whether, and why, a neuron's state is more than its potential.
pub(super) fn extra_state(profile: &Profile, idle_update: IdleUpdate) -> Option<ExtraState> {
    if profile.refractory != 0 {
        Some(ExtraState::Refractory)
    } else if profile.consecutive_limit != 0 {
        Some(ExtraState::Limited)
    } else {
        (idle_update == IdleUpdate::CatchUp && profile.leak != 0).then_some(ExtraState::Leaks)
    }
}
