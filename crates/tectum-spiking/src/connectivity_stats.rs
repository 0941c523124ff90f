//! Results of a pass over a network's synapses: degrees, the maximum arrivals, and from them the
//! formats in which no sum overflows.

use tectum::{ContentHasher, Error, Result, host_memory};

use super::formats::{FormatGroup, Formats, ScaleLimit};
use super::memory::Memory;
use super::network_options::NetworkOptions;
use super::neurons::{NeuronOptions, Neurons};
use super::rule::FRACTION_BITS;
use super::rule::{self, POTENTIAL_MAX};
use super::synapses::{Synapse, SynapseRows};

/// The maximum weight that a synapse can reach.
const WEIGHT_MAX: f64 = 255.0;

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
    /// Of them, those with an initial weight above 0.
    pub plastic_at_first: Vec<u64>,
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
        let plastic_at_first = plastic.clone();
        let mut survey = Self {
            degrees: host_memory::with_capacity("degrees of neurons", count)?,
            max_arrival: host_memory::filled("arrivals of neurons", 0.0, count)?,
            slack: host_memory::filled("arrivals of neurons", 0.0, count)?,
            synapses: 0,
            plastic,
            plastic_at_first,
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
            self.plastic_at_first[rule as usize] += u64::from(weight > 0);
            if weight > 0 && remembers(memories, target) {
                return Err(format!(
                    "learns, ends at neuron {target} of a memory, and begins with weight {weight}, not 0"
                ));
            }
        }
        Ok(())
    }

    /// Whether every possible sum of a neuron is within the maximum potential with this many
    /// fraction bits.
    fn fits(&self, neuron: u32, bits: u32, max_injected: f32) -> bool {
        let (scale, injected) = (f64::from(1u32 << bits), 2.0 * f64::from(max_injected));
        let (most, slack) = (
            self.max_arrival[neuron as usize],
            self.slack[neuron as usize],
        );
        // Below the full format every arrival is rounded once more, by at most half a step.
        let slack = if bits == FRACTION_BITS {
            slack
        } else {
            2.0 * slack
        };
        (most + injected) * scale + slack <= f64::from(POTENTIAL_MAX)
    }

    /// The format of each neuron: the maximum number of fraction bits with every possible sum, and
    /// its own threshold, limit and resting potential, within 2³⁰.
    ///
    /// # Errors
    /// `Invalid`, naming the neuron, if even integers could overflow.
    pub fn formats(
        &self,
        neurons: &Neurons,
        max_injected: f32,
    ) -> Result<(Formats, Vec<FormatGroup>)> {
        let mut end = 0;
        let levels: Vec<(u32, f64)> = neurons
            .groups
            .iter()
            .map(|(count, options)| {
                end += count;
                (end, highest(options))
            })
            .collect();
        Formats::new(neurons.len(), |neuron| {
            let (_, level) = levels[levels.partition_point(|(end, _)| *end <= neuron)];
            let has_level = |bits: u32| level * f64::from(1u32 << bits) <= f64::from(POTENTIAL_MAX);
            let bits = (0..=FRACTION_BITS)
                .rev()
                .find(|&bits| has_level(bits) && self.fits(neuron, bits, max_injected))
                .ok_or_else(|| {
                    let synapses = self.max_arrival[neuron as usize];
                    Error::invalid(format!(
                        "neuron {neuron} can receive {synapses:.0} from synapses and {max_injected} from an injection in one burst; at most {POTENTIAL_MAX} are possible"
                    ))
                })?;
            let limit = if bits == FRACTION_BITS {
                ScaleLimit::MaxBits
            } else if has_level(bits + 1) {
                ScaleLimit::Sum {
                    max_sum: self.max_arrival[neuron as usize],
                }
            } else {
                ScaleLimit::Threshold
            };
            Ok((bits, limit))
        })
    }

    /// For each neuron the unit that its firing sends, or, where that depends on the firing, the
    /// number of synapses that share it.
    pub fn senders(&self, neurons: &Neurons, memories: &[Memory]) -> Result<Vec<u32>> {
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
                    rule::unit(u32::from(neuron.psp), share)
                }
            });
        let mut senders = host_memory::with_capacity("units of neurons", self.degrees.len())?;
        senders.extend(units);
        Ok(senders)
    }
}

/// The greatest magnitude among a neuron's threshold, limit and resting potential. One beyond half
/// the maximum potential does not count: it is never reached in any format.
fn highest(options: &NeuronOptions) -> f64 {
    let levels = [
        options.threshold,
        options.threshold_limit.unwrap_or(0.0),
        options.resting_potential,
    ];
    let counted = levels
        .map(f32::abs)
        .into_iter()
        .filter(|level| *level <= POTENTIAL_MAX as f32 / 2.0);
    f64::from(counted.fold(0.0, f32::max))
}

fn remembers(memories: &[Memory], neuron: u32) -> bool {
    memories
        .iter()
        .any(|memory| memory.neurons.contains(&neuron))
}
