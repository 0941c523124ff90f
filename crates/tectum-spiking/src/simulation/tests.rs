//! Tests that read the state on the device.

use super::*;
use crate::{NetworkOptions, NeuronOptions, Neurons, PlasticityRule, SimulationOptions, Synapse, SynapseList};

#[test]
fn defect_09_events_beyond_32_bits_are_counted() {
    for plasticity in [None, Some(0)] {
        // A neuron that keeps itself firing: one event in each burst after the first.
        let mut neurons = Neurons::default();
        neurons.add(1, &NeuronOptions { threshold: 1.0, ..NeuronOptions::default() }).expect("a neuron");
        let synapses = SynapseList::new(1, &[(0, Synapse { target: 0, weight: 1, inhibitory: false, plasticity })]).expect("a synapse");
        let options = NetworkOptions { plasticity: vec![PlasticityRule { window: 1, gain: 1, loss: 0 }], ..NetworkOptions::default() };
        let network = Arc::new(Network::new(&neurons, Box::new(synapses), options).expect("a network"));
        for id in ["cpu", "vulkan:0", "cuda:0"] {
            let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
                eprintln!("skipped: {id} is absent: events beyond 32 bits");
                continue;
            };
            let mut simulation = Simulation::new(network.clone(), &device, &SimulationOptions::default()).expect("a simulation");
            // As if the batch had already counted this many.
            let shard = &mut simulation.shards[0];
            let mut totals = vec![0u32; shard.views.totals.len()];
            totals[0] = u32::MAX;
            shard.single.write_state(shard.views.totals, &totals).expect("totals");
            simulation.inject(&[(0, 1.0)]).expect("an injection");
            assert_eq!(simulation.run(17).expect("a run").events, u64::from(u32::MAX) + 16, "{id}, {plasticity:?}");
        }
    }
}
