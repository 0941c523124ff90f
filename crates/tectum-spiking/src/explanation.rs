//! Why a network runs as it does, as data.

use std::ops::Range;

use serde::Serialize;

use super::learning::PlasticityRule;
use super::memory::Memory;
use super::network::Network;
use super::rule::{ALWAYS, IdleUpdate, NEVER, Profile};

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
    /// Fraction bits of a potential.
    pub fraction_bits: u32,
    /// Why there are no more.
    pub scale: ScaleLimit,
    /// Neurons for which arrivals with a sum of 0 differ from no arrival; if there are any, arrivals are marked next to the sums.
    pub zero_sums: Vec<(Range<u32>, ZeroSumReason)>,
    /// Neurons with more state than their potential; if there are any, each neuron has four planes of state instead of one.
    pub extra_state: Vec<(Range<u32>, ExtraState)>,
    /// Bytes of the synapses in host memory, from which they are packed for another device.
    pub host_synapse_bytes: u64,
}

/// The reason why potentials have no more fraction bits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleLimit {
    /// None: there are as many as are useful.
    MaxBits,
    /// The maximum that a neuron may receive in one burst.
    Sum {
        /// The first neuron that could overflow with one more bit.
        neuron: u32,
        /// In units of psp · weight, without injections.
        max_sum: f64,
    },
    /// The greatest threshold, limit or resting potential.
    Threshold,
}

/// Why a sum of 0 must be distinguished from no arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroSumReason {
    /// A neuron draws whether it fires: one that did not fire draws again at any arrival.
    Draws,
    /// A neuron that was stopped by its consecutive limit may fire at any arrival.
    Limited,
    /// Its threshold is not above its rest, so any arrival makes it fire.
    FiresAtRest,
    /// It leaks from above its limit into its window, where any arrival makes it fire.
    LeaksIntoWindow,
    /// Idle bursts are skipped: its leak and refractory period advance only at arrivals.
    Frozen,
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
        let runs = || self.runs.iter().map(|(range, profile)| (range.clone(), &self.profiles[*profile as usize]));
        let idle_update = self.options.idle_update;
        NetworkExplanation {
            neurons: self.neurons(),
            synapses: self.synapses(),
            profiles: self.profiles.len(),
            plastic_synapses: self.plastic_synapses(),
            plasticity: self.options.plasticity.clone(),
            memories: self.options.memories.clone(),
            fraction_bits: self.fraction_bits,
            scale: self.scale,
            zero_sums: runs().filter_map(|(range, profile)| Some((range, zero_sums(profile, idle_update)?))).collect(),
            extra_state: runs().filter_map(|(range, profile)| Some((range, extra_state(profile, idle_update)?))).collect(),
            host_synapse_bytes: self.rows.bytes(),
        }
    }
}

/// Whether, and why, a neuron may wait in its window for another arrival, or advances only at arrivals.
pub(super) fn zero_sums(profile: &Profile, idle_update: IdleUpdate) -> Option<ZeroSumReason> {
    if profile.chance != ALWAYS {
        Some(ZeroSumReason::Draws)
    } else if profile.consecutive_limit != 0 {
        Some(ZeroSumReason::Limited)
    } else if profile.threshold <= profile.rest {
        Some(ZeroSumReason::FiresAtRest)
    } else if profile.limit != NEVER && profile.leak != 0 {
        Some(ZeroSumReason::LeaksIntoWindow)
    } else {
        (idle_update == IdleUpdate::Freeze && (profile.leak != 0 || profile.refractory != 0)).then_some(ZeroSumReason::Frozen)
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
