//! Why a network runs as it does, as data.

use std::ops::Range;

use serde::Serialize;

use super::learning::PlasticityRule;
use super::memory::Memory;
use super::network::Network;
use super::rule::{ALWAYS, IdleUpdate, NEVER, Profile};

/// Why a network runs as it does, whatever the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkExplanation {
    /// Neurons.
    pub neurons: u32,
    /// Synapses.
    pub synapses: u64,
    /// Kinds of neurons: those that agree in all their numbers share a row of constants.
    pub profiles: usize,
    /// Synapses that learn.
    pub plastic_synapses: u64,
    /// By what rules they do.
    pub plasticity: Vec<PlasticityRule>,
    /// What keeps patterns of firings.
    pub memories: Vec<Memory>,
    /// Binary places of a potential.
    pub fraction_bits: u32,
    /// Why there are not more.
    pub scale: ScaleLimit,
    /// Neurons for which an arrival whose sum is 0 differs from none; if there are any, arrivals are marked beside the sums.
    pub zero_sums: Vec<(Range<u32>, ZeroSumReason)>,
    /// Neurons with more to remember than their potential; if there are any, each has four planes of state in place of one.
    pub past: Vec<(Range<u32>, ExtraState)>,
    /// Bytes of the synapses as the host keeps them, to pack them for another device.
    pub host_synapse_bytes: u64,
}

/// What keeps potentials from having more binary places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleLimit {
    /// Nothing: there are as many as are of use.
    Most,
    /// What a neuron may receive in one burst.
    Sum {
        /// The first neuron for which one place more would not be safe.
        neuron: u32,
        /// In units of psp · weight, without injections.
        most: f64,
    },
    /// The greatest threshold, limit or resting potential.
    Threshold,
}

/// Why a sum of 0 must be told from silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroSumReason {
    /// A neuron draws whether it fires: one that did not draws again at any arrival.
    Draws,
    /// A neuron that was stopped by its consecutive limit may fire at any arrival.
    Limited,
    /// Its threshold is not above its rest, so any arrival makes it fire.
    FiresAtRest,
    /// From above its limit it leaks into its window, where any arrival makes it fire.
    LeaksIntoWindow,
    /// Silence skips: its leak and refractory period go on at arrivals alone.
    Frozen,
}

/// What a neuron remembers beside its potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraState {
    /// Its refractory period.
    Refractory,
    /// Its firings in a row.
    Limited,
    /// The burst of its last arrival, from which the leak is made up for.
    Leaks,
}

impl Network {
    /// Why the network runs as it does.
    pub fn explain(&self) -> NetworkExplanation {
        let runs = || self.runs.iter().map(|(range, profile)| (range.clone(), &self.profiles[*profile as usize]));
        let silence = self.options.silence;
        NetworkExplanation {
            neurons: self.neurons(),
            synapses: self.synapses(),
            profiles: self.profiles.len(),
            plastic_synapses: self.plastic_synapses(),
            plasticity: self.options.plasticity.clone(),
            memories: self.options.memories.clone(),
            fraction_bits: self.fraction_bits,
            scale: self.scale,
            zero_sums: runs().filter_map(|(range, profile)| Some((range, zero_sums(profile, silence)?))).collect(),
            past: runs().filter_map(|(range, profile)| Some((range, past(profile, silence)?))).collect(),
            host_synapse_bytes: self.rows.bytes(),
        }
    }
}

/// Whether, and why, a neuron may wait in its window for another arrival, or is moved on by arrivals alone.
pub(super) fn zero_sums(profile: &Profile, silence: IdleUpdate) -> Option<ZeroSumReason> {
    if profile.chance != ALWAYS {
        Some(ZeroSumReason::Draws)
    } else if profile.consecutive_limit != 0 {
        Some(ZeroSumReason::Limited)
    } else if profile.threshold <= profile.rest {
        Some(ZeroSumReason::FiresAtRest)
    } else if profile.limit != NEVER && profile.leak != 0 {
        Some(ZeroSumReason::LeaksIntoWindow)
    } else {
        (silence == IdleUpdate::Skips && (profile.leak != 0 || profile.refractory != 0)).then_some(ZeroSumReason::Frozen)
    }
}

/// Whether, and why, a neuron's state is more than its potential.
pub(super) fn past(profile: &Profile, silence: IdleUpdate) -> Option<ExtraState> {
    if profile.refractory != 0 {
        Some(ExtraState::Refractory)
    } else if profile.consecutive_limit != 0 {
        Some(ExtraState::Limited)
    } else {
        (silence == IdleUpdate::Counts && profile.leak != 0).then_some(ExtraState::Leaks)
    }
}
