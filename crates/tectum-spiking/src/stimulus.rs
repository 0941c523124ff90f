//! A random stimulus: the input of a genome's input areas when no body feeds them.

use tectum::kernel::native::simd;
use tectum::{Error, Result};

use super::network::Network;
use super::rule::{draw, seed_of};
use super::simulation::{Simulation, SpikeCounts};
use crate::genome::{AreaRole, Genome};

/// The input of a stimulated neuron unless another is set.
const AMOUNT: f32 = 1.0;
/// Neurons whose draws are made in one block.
const BLOCK: usize = 32;

/// Input neurons, each stimulated in a fraction of all bursts: the same ones for a seed and a
/// burst, wherever a run begins.
#[derive(Debug, Clone)]
pub struct Stimulus {
    neurons: Vec<u32>,
    seed: u32,
    chance: u32,
    amount: f32,
}

impl Stimulus {
    /// Stimulates a fraction, 0 to 1, of the neurons of a genome's input areas in each burst.
    ///
    /// # Errors
    /// `Invalid` for a fraction out of range.
    pub fn new(genome: &Genome, part: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&part) {
            return Err(Error::invalid(format!(
                "a stimulus of {part}; 0 to 1 is needed"
            )));
        }
        let inputs = genome
            .areas()
            .iter()
            .filter(|area| area.role == AreaRole::Input);
        let neurons = if part == 0.0 {
            Vec::new()
        } else {
            inputs.flat_map(|area| area.neurons.clone()).collect()
        };
        // A different seed from that of the neurons' draws.
        Ok(Self {
            neurons,
            seed: !seed_of(seed),
            chance: (part * f64::from(u32::MAX)) as u32,
            amount: AMOUNT,
        })
    }

    /// Sets the input of a stimulated neuron, in units of potential; 1 without it.
    ///
    /// # Errors
    /// `Invalid` for an amount that is not finite.
    pub fn with_amount(self, amount: f32) -> Result<Self> {
        if amount.is_finite() {
            Ok(Self { amount, ..self })
        } else {
            Err(Error::invalid(format!(
                "an amplitude of {amount}; a finite number is needed"
            )))
        }
    }

    /// Checks that a network takes the input of a stimulated neuron.
    ///
    /// # Errors
    /// `Invalid` for an input beyond the network's maximum injection.
    pub fn check(&self, network: &Network) -> Result<()> {
        let max_injected = network.max_injected();
        if self.is_none() || self.amount.abs() <= max_injected {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "an injection of {} into each stimulated neuron; the maximum is {max_injected} either way",
            self.amount
        )))
    }

    /// Whether it never stimulates any neuron.
    pub fn is_none(&self) -> bool {
        self.neurons.is_empty()
    }

    /// Maximum injections into one burst.
    pub fn max_inputs(&self) -> usize {
        self.neurons.len().max(1)
    }

    /// Runs bursts of a network with the stimulus.
    ///
    /// # Errors
    /// As [`Stimulus::check`], before the first burst; as [`Simulation::stimulate`] and
    /// [`Simulation::run`].
    pub fn run(&self, simulation: &mut Simulation, bursts: u32) -> Result<SpikeCounts> {
        if self.is_none() {
            return simulation.run(bursts);
        }
        self.check(simulation.network())?;
        for _ in 0..bursts {
            simulation.stimulate(&self.of(simulation.counts().bursts + 1))?;
            simulation.run(1)?;
        }
        Ok(simulation.counts())
    }

    /// The injections of a burst.
    pub fn of(&self, burst: u32) -> Vec<(u32, f32)> {
        let mut reached = Vec::new();
        for neurons in self.neurons.chunks(BLOCK) {
            let mut are_reached = [false; BLOCK];
            // One draw per block, since few neurons are stimulated.
            let any = simd(
                #[inline(always)]
                || {
                    let draws = are_reached.iter_mut().zip(neurons);
                    draws.fold(false, |any, (is_reached, neuron)| {
                        *is_reached = draw(self.seed, *neuron, burst) < self.chance;
                        any | *is_reached
                    })
                },
            );
            if any {
                reached.extend(
                    neurons
                        .iter()
                        .zip(are_reached)
                        .filter(|(_, is_reached)| *is_reached)
                        .map(|(neuron, _)| (*neuron, self.amount)),
                );
            }
        }
        reached
    }
}
