//! Results of a pass over a network's synapses: degrees, the maximum arrivals, and from them the
//! scale at which no sum overflows.

use serde::Serialize;
use tectum::{ContentHasher, Error, Result, host_memory};

use super::memory::Memory;
use super::network_options::NetworkOptions;
use super::neurons::{NeuronOptions, Neurons};
use super::rule::{self, POTENTIAL_MAX};
use super::synapses::{Synapse, SynapseRows};

/// Maximum fraction bits of a potential.
const FRACTION_BITS: u32 = 16;
/// The maximum weight that a synapse can reach.
const WEIGHT_MAX: f64 = 255.0;

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

/// Totals over the synapses.
pub struct ConnectivityStats {
    /// For each neuron, the number of synapses that share its psp: those that exist from the
    /// beginning.
    degrees: Vec<u32>,
    /// For each neuron, the maximum that can arrive in a burst, in units of psp · weight.
    max_arrival: Vec<f64>,
    /// For each neuron, half of the sum of weights: the maximum that the rounding of units can add.
    slack: Vec<f64>,
    /// Synapses.
    pub synapses: u64,
    /// Plastic synapses, by rule.
    pub plastic: Vec<u64>,
    /// The hasher with the synapses, to which the rest of the network is added.
    pub hasher: ContentHasher,
}

impl ConnectivityStats {
    /// Visits every synapse, twice.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse, for an unknown target, an unknown rule, and a plastic synapse
    /// to a memory's neuron with an initial weight other than 0; `OutOfMemory` if the
    /// totals do not fit into memory.
    pub fn new(
        neurons: &Neurons,
        rows: &dyn SynapseRows,
        options: &NetworkOptions,
    ) -> Result<Self> {
        let count = neurons.len() as usize;
        let plastic = vec![0; options.plasticity.len()];
        let mut survey = Self {
            degrees: host_memory::with_capacity("degrees of neurons", count)?,
            max_arrival: host_memory::filled("arrivals of neurons", 0.0, count)?,
            slack: host_memory::filled("arrivals of neurons", 0.0, count)?,
            synapses: 0,
            plastic,
            hasher: ContentHasher::default(),
        };
        let mut fault = Ok(());
        for (source, neuron) in neurons.each().enumerate() {
            let mut degree = 0u32;
            rows.visit(source as u32, &mut |synapse| {
                degree += u32::from(synapse.is_there())
            });
            survey.degrees.push(degree);
            survey.hasher.update(&u64::from(degree).to_le_bytes());
            let psp = if neuron.potential_driven_psp {
                255.0
            } else {
                f64::from(neuron.psp)
            };
            let psp = if neuron.uniform_psp {
                psp
            } else {
                psp / f64::from(degree.max(1))
            };
            rows.visit(source as u32, &mut |synapse| {
                let added = survey.add(&synapse, psp, &options.memories);
                if let (Ok(()), Err(what)) = (&fault, added) {
                    fault = Err(Error::invalid(format!(
                        "a synapse of neuron {source} {what}"
                    )));
                }
            });
        }
        fault.map(|()| survey)
    }

    /// Adds a synapse whose source sends at most `psp` through weight 1; returns its fault, if any.
    fn add(
        &mut self,
        synapse: &Synapse,
        psp: f64,
        memories: &[Memory],
    ) -> std::result::Result<(), String> {
        let &Synapse {
            target,
            weight,
            inhibitory,
            plasticity,
        } = synapse;
        let word = u64::from(target) << 9 | u64::from(inhibitory) << 8 | u64::from(weight);
        self.hasher
            .update(&(plasticity.map_or(0, |rule| u64::from(rule) + 1) << 48 | word).to_le_bytes());
        self.synapses += 1;
        let count = self.max_arrival.len();
        let at = target as usize;
        let (most, slack) = self
            .max_arrival
            .get_mut(at)
            .zip(self.slack.get_mut(at))
            .ok_or_else(|| format!("ends at {target} of {count} neurons"))?;
        let greatest = if plasticity.is_some() {
            WEIGHT_MAX
        } else {
            f64::from(weight)
        };
        *most += psp * greatest;
        *slack += 0.5 * greatest;
        if let Some(rule) = plasticity {
            let rules = self.plastic.len();
            *self
                .plastic
                .get_mut(rule as usize)
                .ok_or_else(|| format!("learns by rule {rule} of {rules}"))? += 1;
            if weight > 0 && remembers(memories, target) {
                return Err(format!(
                    "learns, ends at neuron {target} of a memory, and begins with weight {weight}, not 0"
                ));
            }
        }
        Ok(())
    }

    /// The first neuron whose sum could exceed the maximum potential with this many fraction bits.
    fn overflows(&self, bits: u32, max_injected: f32) -> Option<usize> {
        let (scale, injected) = (f64::from(1u32 << bits), 2.0 * f64::from(max_injected));
        self.max_arrival
            .iter()
            .zip(&self.slack)
            .position(|(most, slack)| (most + injected) * scale + slack > f64::from(POTENTIAL_MAX))
    }

    /// The maximum number of fraction bits with every possible sum and threshold within 2³⁰, and
    /// the reason why there are no more.
    ///
    /// # Errors
    /// `Invalid`, naming the neuron, if even integers could overflow.
    pub fn scale(&self, neurons: &Neurons, max_injected: f32) -> Result<(u32, ScaleLimit)> {
        let largest = |options: &NeuronOptions| {
            [
                options.threshold,
                options.threshold_limit.unwrap_or(0.0),
                options.resting_potential,
            ]
            .map(f32::abs)
        };
        // A threshold beyond half the maximum potential is never reached at any scale.
        let levels = neurons
            .groups
            .iter()
            .flat_map(|(_, options)| largest(options))
            .filter(|value| *value <= POTENTIAL_MAX as f32 / 2.0);
        let highest = f64::from(levels.fold(0.0, f32::max));
        let fits = |bits: u32| {
            self.overflows(bits, max_injected).is_none()
                && highest * f64::from(1u32 << bits) <= f64::from(POTENTIAL_MAX)
        };
        let bits = (0..=FRACTION_BITS).rev().find(|&bits| fits(bits)).ok_or_else(|| {
            let neuron = self.overflows(0, max_injected).unwrap_or(0);
            let synapses = self.max_arrival[neuron];
            Error::invalid(format!(
                "neuron {neuron} can receive {synapses:.0} from synapses and {max_injected} from an injection in one burst; at most {POTENTIAL_MAX} are possible"
            ))
        })?;
        let limit = match self.overflows(bits + 1, max_injected) {
            _ if bits == FRACTION_BITS => ScaleLimit::MaxBits,
            Some(neuron) => ScaleLimit::Sum {
                neuron: neuron as u32,
                max_sum: self.max_arrival[neuron],
            },
            None => ScaleLimit::Threshold,
        };
        Ok((bits, limit))
    }

    /// For each neuron the unit that its firing sends, or, where that depends on the firing, the
    /// number of synapses that share it.
    pub fn senders(
        &self,
        neurons: &Neurons,
        memories: &[Memory],
        fraction_bits: u32,
    ) -> Result<Vec<u32>> {
        let units = neurons
            .each()
            .zip(&self.degrees)
            .zip(0..)
            .map(|((neuron, degree), number)| {
                let share = if neuron.uniform_psp {
                    1
                } else {
                    (*degree).max(1)
                };
                let depends_on_potential =
                    neuron.potential_driven_psp && !remembers(memories, number);
                if depends_on_potential {
                    share
                } else {
                    rule::unit(u32::from(neuron.psp), fraction_bits, share)
                }
            });
        let mut senders = host_memory::with_capacity("units of neurons", self.degrees.len())?;
        senders.extend(units);
        Ok(senders)
    }
}

fn remembers(memories: &[Memory], neuron: u32) -> bool {
    memories
        .iter()
        .any(|memory| memory.neurons.contains(&neuron))
}
