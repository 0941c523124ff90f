//! A spiking network from arrays of sources, targets and weights:
//! `cargo run -p tectum-spiking --example arrays [-- DEVICE]`.

use std::sync::Arc;

use tectum::{Device, Result};
use tectum_spiking::{
    Network, NetworkOptions, NeuronOptions, Neurons, Simulation, SimulationOptions, Synapse,
    SynapseList,
};

fn main() -> Result<()> {
    // A ring: each neuron excites the next one.
    let n = 100u32;
    let (sources, targets, weights) = (
        (0..n).collect::<Vec<_>>(),
        (0..n).map(|i| (i + 1) % n).collect::<Vec<_>>(),
        vec![2u8; n as usize],
    );
    let mut neurons = Neurons::default();
    neurons.add(
        n,
        &NeuronOptions {
            threshold: 2.0,
            refractory: 3,
            ..NeuronOptions::default()
        },
    )?;
    let synapses: Vec<_> = (0..n as usize)
        .map(|i| (sources[i], Synapse::fixed(targets[i], weights[i], false)))
        .collect();
    let network = Network::new(
        &neurons,
        Box::new(SynapseList::new(n, &synapses)?),
        NetworkOptions::default(),
    )?;
    // On a GPU: `-- vulkan:0` or `-- cuda:0`; the spikes are the same.
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let mut simulation =
        Simulation::new(Arc::new(network), &device, &SimulationOptions::default())?;
    simulation.inject(&[(0, 2.0)])?;
    let counts = simulation.run(250)?;
    println!(
        "{} spikes in {} bursts, hash {:016x}; neuron {:?} fired last",
        counts.spikes,
        counts.bursts,
        counts.spike_hash,
        simulation.fired()?
    );
    assert_eq!((counts.spikes, simulation.fired()?), (250, vec![49]));
    Ok(())
}
