//! A genome's spiking network as a brain: channels of the observation written to input areas,
//! channels of the action read from output areas.
//!
//! ```text
//! observation → voxels along z, injected before the tick's first burst → bursts_per_tick bursts → firings of the last burst → action
//! ```

mod coding;
pub mod spec;
mod wiring;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use tectum::{CodeObject, Device, InputFile, Result, RunStats, Watch, WorkProgress};

use self::spec::{GenomeSpec, WeightMode};
use self::wiring::Wiring;
use super::{Brain, DeviceRecipe, Rebuild};
use crate::body::BodySpec;
use tectum::snapshot::Snapshot;
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_spiking::{
    ConnectOptions, ConnectedNetwork, Network, NetworkOptions, Simulation, SimulationOptions,
    connect, mapping_outcomes, seed_of,
};

/// Changes of converted units that a note gives.
const MAX_CHANGES: usize = 4;

/// A genome that runs.
///
/// # Numerics
/// Spikes are the same on every device, and the codings are host arithmetic, so actions are the
/// same too.
///
/// # Cost
/// A tick is one run of the network: for one burst an upload, a submission, a download.
pub struct GenomeBrain {
    recipe: Arc<GenomeRecipe>,
    simulation: Simulation,
    device: Device,
    injected: Vec<(u32, f32)>,
    ticks: u64,
    /// For each motor, the ticks in which a neuron of its column fired.
    fired: Vec<u64>,
}

/// A connected genome, wired to a body; kept on the host to build it on any device.
pub(super) struct GenomeRecipe {
    genome: Genome,
    network: Arc<Network>,
    /// The areas of the network's memories.
    memories: Vec<usize>,
    constant_inputs: Vec<(u32, f32)>,
    wiring: Wiring,
    bursts_per_tick: u32,
    notes: Vec<String>,
    input: InputFile,
}

impl GenomeRecipe {
    /// Reads and connects the genome, and wires it to a body.
    ///
    /// # Errors
    /// As [`Genome::read`] and [`Network::new`]; `Invalid`, naming the key, for wiring that does
    /// not fit genome or body.
    fn new(spec: &GenomeSpec, body: &BodySpec, seed: u64) -> Result<Self> {
        let input = InputFile::of(Path::new(&spec.genome))?;
        let genome = Genome::read(
            Path::new(&spec.genome),
            &GenomeOptions {
                units: spec.units,
                weight_loss: spec.weight_loss,
                strict: false,
            },
        )?;
        let wiring = Wiring::new(spec, &genome, body)?;
        let defaults = NetworkOptions::default();
        let max_injected = defaults.max_injected.max(wiring.max_injected());
        let network = NetworkOptions {
            idle_update: spec.idle_update,
            seed: seed_of(seed),
            max_injected,
            ..defaults
        };
        let options = ConnectOptions {
            seed,
            learns: spec.weights == WeightMode::Learn,
            network,
            ..ConnectOptions::default()
        };
        let ConnectedNetwork {
            network,
            constant_inputs,
            memories,
            mut notes,
            ..
        } = connect(&genome, options, &mut WorkProgress::ignore)
            .map_err(|error| error.at(&spec.genome))?;
        notes.extend(genome.units().notes(MAX_CHANGES));
        notes.extend((network.plastic_synapses() > 0).then(|| genome.weight_loss().note()));
        Ok(Self {
            genome,
            memories,
            network: Arc::new(network),
            constant_inputs,
            wiring,
            bursts_per_tick: spec.bursts_per_tick,
            notes,
            input,
        })
    }

    fn on(self: &Arc<Self>, device: &Device) -> Result<GenomeBrain> {
        let max_inputs = self.wiring.max_inputs();
        let options = SimulationOptions {
            constant_inputs: self.constant_inputs.clone(),
            max_inputs,
            recorded_neurons: self.wiring.watched(),
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(self.network.clone(), device, &options)?;
        // Drivers compile at the first launch: launch here, not in the first tick.
        let first = simulation.snapshot()?;
        simulation.run(self.bursts_per_tick)?;
        simulation.restore(&first)?;
        let fired = vec![0; self.wiring.motor_names().len()];
        Ok(GenomeBrain {
            recipe: self.clone(),
            simulation,
            device: device.clone(),
            injected: Vec::with_capacity(max_inputs),
            ticks: 0,
            fired,
        })
    }
}

impl DeviceRecipe for Arc<GenomeRecipe> {
    fn build(&self, device: &Device, _: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        Ok(Box::new(self.on(device)?))
    }
}

impl Brain for GenomeBrain {
    fn name(&self) -> &'static str {
        "genome"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        self.recipe.wiring.sense(observation, &mut self.injected);
        self.simulation.inject(&self.injected)?;
        // Injections of a tick are only for its own bursts.
        self.simulation
            .run(self.recipe.bursts_per_tick)
            .inspect_err(|_| self.simulation.clear_inputs())?;
        self.recipe.wiring.act(
            |neuron| self.simulation.has_fired(neuron),
            action,
            &mut self.fired,
        );
        self.ticks += 1;
        Ok(self.simulation.stats())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.simulation.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.simulation.restore(snapshot)
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let recipe = self.recipe.clone();
        Some(Box::new(move |device| Ok(Box::new(recipe.on(device)?))))
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.device)
    }

    fn inputs(&self) -> Vec<InputFile> {
        vec![self.recipe.input.clone()]
    }

    fn code(&self) -> Vec<CodeObject> {
        self.simulation.code().to_vec()
    }

    fn notes(&self) -> &[String] {
        &self.recipe.notes
    }

    fn run_notes(&self) -> Vec<String> {
        let silent = self
            .recipe
            .wiring
            .motor_names()
            .zip(&self.fired)
            .filter(|(_, fired)| **fired == 0 && self.ticks > 0);
        let silent = silent.map(|(name, _)| {
            format!(
                "{name} never fired: at rest in {ticks} of {ticks} ticks",
                ticks = self.ticks
            )
        });
        // Weights that cannot be read, after a fault of the device, are no note.
        let weights = self.simulation.plastic_synapses().unwrap_or_default();
        let GenomeRecipe {
            genome,
            network,
            memories,
            ..
        } = &*self.recipe;
        silent
            .chain(mapping_outcomes(genome, network, memories, &weights))
            .collect()
    }
}
