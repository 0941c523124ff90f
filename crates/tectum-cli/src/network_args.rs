//! Options of `run`, `explain` and `serve` for a genome's network.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use tectum::route::Choice;
use tectum::{Device, Result};
use tectum_spiking::genome::{Genome, GenomeOptions, UnitPolicy, WeightLossPolicy};
use tectum_spiking::{
    ConnectOptions, ConnectedNetwork, IdleUpdate, Network, NetworkOptions, Simulation,
    SimulationOptions, Stimulus, connect, seed_of,
};

use crate::progress::{Bar, Unit};

/// How a genome is connected and split.
#[derive(Args)]
pub struct NetworkArgs {
    /// Of a genome: parts of the network, by target, that exchange their spikes; one if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: Option<u32>,
    /// Of a genome: the units of its numbers, detect, fraction or legacy; detected if not given.
    #[arg(long)]
    units: Option<UnitPolicy>,
    /// Of a genome: when synapses that learn lose weight, detect, any_firing or steady_source;
    /// detected if not given.
    ///
    /// any_firing: if either end fired in any burst of the window. steady_source: if the source
    /// fired in every burst of it, as in FEAGI's older engine.
    #[arg(long)]
    weight_loss: Option<WeightLossPolicy>,
    /// Of a genome: a neuron in which nothing arrives neither leaks nor recovers, as in FEAGI's CPU
    /// engine.
    #[arg(long, alias = "frozen-silence")]
    freeze_idle: bool,
    /// Of a genome: its plastic synapses keep their initial weights.
    #[arg(long)]
    frozen_weights: bool,
    /// Of a genome: maximum number of patterns in each memory area; 1,024 if not given.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory_neurons: Option<u32>,
}

impl NetworkArgs {
    /// The first of these options that was given.
    pub fn first_given_option(&self) -> Option<&'static str> {
        let given = [
            ("--shards", self.shards.is_some()),
            ("--units", self.units.is_some()),
            ("--weight-loss", self.weight_loss.is_some()),
            ("--freeze-idle", self.freeze_idle),
            ("--frozen-weights", self.frozen_weights),
            ("--memory-neurons", self.memory_neurons.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Whether plastic synapses learn.
    pub fn learns(&self) -> bool {
        !self.frozen_weights
    }

    /// Reads and connects a genome.
    ///
    /// # Errors
    /// An invalid genome or network.
    pub fn connect(&self, path: &Path, seed: u64) -> Result<(Genome, ConnectedNetwork)> {
        let genome = Genome::read(
            path,
            &GenomeOptions {
                units: self.units.unwrap_or(UnitPolicy::Detect),
                weight_loss: self.weight_loss.unwrap_or_default(),
                strict: false,
            },
        )?;
        let idle_update = if self.freeze_idle {
            IdleUpdate::Freeze
        } else {
            IdleUpdate::CatchUp
        };
        let network = NetworkOptions {
            idle_update,
            seed: seed_of(seed),
            ..NetworkOptions::default()
        };
        let defaults = ConnectOptions::default();
        let options = ConnectOptions {
            seed,
            learns: self.learns(),
            memory_neurons: self.memory_neurons.unwrap_or(defaults.memory_neurons),
            network,
        };
        let bar = Bar::new(Unit::Steps);
        let connected = connect(&genome, options, &mut bar.watch())
            .map_err(|error| error.at(path.display()))?;
        Ok((genome, connected))
    }

    /// The device of each shard; for `auto` the one with the minimum time of a trial of the
    /// network, with the choice.
    ///
    /// # Errors
    /// A device that does not exist; `auto` without any device on which the network runs.
    pub fn devices(
        &self,
        id: &str,
        network: &Arc<Network>,
        options: &SimulationOptions,
        stimulus: &Stimulus,
    ) -> Result<(Vec<Device>, Option<Choice>)> {
        let shards = self.shards.unwrap_or(1) as usize;
        if id != "auto" {
            return Ok((vec![Device::open(id)?; shards], None));
        }
        let (device, choice) =
            Simulation::choose_device(network, shards, options, &mut |simulation, bursts| {
                stimulus.run(simulation, bursts).map(drop)
            })?;
        Ok((vec![device; shards], Some(choice)))
    }
}
