//! Tests that read the state on the device.

use super::*;
use crate::{
    NetworkOptions, NeuronOptions, Neurons, PlasticityRule, SimulationOptions, Synapse,
    SynapseList, WeightLoss,
};

#[test]
fn defect_09_events_beyond_32_bits_are_counted() {
    for plasticity in [None, Some(0)] {
        // A neuron that keeps itself firing: one event in each burst after the first.
        let mut neurons = Neurons::default();
        neurons
            .add(
                1,
                &NeuronOptions {
                    threshold: 1.0,
                    ..NeuronOptions::default()
                },
            )
            .expect("a neuron");
        let synapses = SynapseList::new(
            1,
            &[(
                0,
                Synapse {
                    target: 0,
                    weight: 1,
                    inhibitory: false,
                    plasticity,
                },
            )],
        )
        .expect("a synapse");
        let options = NetworkOptions {
            plasticity: vec![PlasticityRule {
                window: 1,
                gain: 1,
                loss: 0,
                weight_loss: WeightLoss::AnyFiring,
            }],
            ..NetworkOptions::default()
        };
        let network =
            Arc::new(Network::new(&neurons, Box::new(synapses), options).expect("a network"));
        for id in ["cpu", "vulkan:0", "cuda:0"] {
            let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
                eprintln!("skipped: {id} is absent: events beyond 32 bits");
                continue;
            };
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("a simulation");
            // As if the batch had already counted this many.
            let shard = &mut simulation.shards[0];
            let mut totals = vec![0u32; shard.views.totals.len()];
            totals[0] = u32::MAX;
            shard
                .single
                .write_state(shard.views.totals, &totals)
                .expect("totals");
            simulation.inject(&[(0, 1.0)]).expect("an injection");
            assert_eq!(
                simulation.run(17).expect("a run").events,
                u64::from(u32::MAX) + 16,
                "{id}, {plasticity:?}"
            );
        }
    }
}

#[test]
fn any_layout_and_number_of_parts_gives_the_same_spikes() {
    let mut neurons = Neurons::default();
    neurons
        .add(
            5000,
            &NeuronOptions {
                threshold: 1.0,
                leak: 0.1,
                uniform_psp: true,
                ..NeuronOptions::default()
            },
        )
        .expect("neurons");
    let synapses: Vec<_> = (0..5000)
        .flat_map(|source| {
            [7, 2049].map(|step| (source, Synapse::fixed((source * 3 + step) % 5000, 1, false)))
        })
        .collect();
    let synapses = SynapseList::new(5000, &synapses).expect("synapses");
    let network = Arc::new(
        Network::new(&neurons, Box::new(synapses), NetworkOptions::default()).expect("a network"),
    );
    let device = Device::open("cpu").expect("cpu");
    let run = |parts: Option<u32>, layout: Option<LayoutPreferences>| {
        let options = SimulationOptions {
            parts,
            layout,
            ..SimulationOptions::default()
        };
        let mut simulation =
            Simulation::new(network.clone(), &device, &options).expect("a simulation");
        simulation
            .inject(&[(0, 1.0), (2048, 1.0), (4999, 1.0)])
            .expect("injections");
        (
            simulation.run(20).expect("a run"),
            simulation.shards[0].shape.ranges.len(),
        )
    };
    let (expected, _) = run(None, None);
    assert!(expected.spikes > 100, "{expected:?}");
    let preferred = device.info().preferences();
    let layouts = [(0, 0), (1, 4), (u32::MAX, u64::MAX), (3, u64::MAX)];
    let layouts = layouts.map(|(threads, max_binding_bytes)| {
        Some(LayoutPreferences {
            threads,
            max_binding_bytes,
            ..preferred
        })
    });
    for (layout, parts) in layouts
        .into_iter()
        .flat_map(|layout| [None, Some(0), Some(2), Some(u32::MAX)].map(|parts| (layout, parts)))
    {
        let (found, ranges) = run(parts, layout);
        assert_eq!(found, expected, "{layout:?}, {parts:?}");
        assert!(
            parts.is_none_or(|parts| ranges == (parts.clamp(1, 3) as usize)),
            "{layout:?}, {parts:?}: {ranges} parts"
        );
    }
}

/// The run has the bursts that it says, whole plans of them, and continues as if it had never
/// stopped.
#[test]
fn a_run_that_is_broken_off_has_its_bursts_and_continues() {
    let mut neurons = Neurons::default();
    neurons
        .add(
            100,
            &NeuronOptions {
                threshold: 1.0,
                leak: 0.1,
                uniform_psp: true,
                ..NeuronOptions::default()
            },
        )
        .expect("neurons");
    let synapses: Vec<_> = (0..100)
        .map(|source| (source, Synapse::fixed((source * 3 + 7) % 100, 1, false)))
        .collect();
    let network = Network::new(
        &neurons,
        Box::new(SynapseList::new(100, &synapses).expect("synapses")),
        NetworkOptions::default(),
    );
    let network = Arc::new(network.expect("a network"));
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a run that is broken off");
            continue;
        };
        let started = || {
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("a simulation");
            simulation
                .inject(&[(0, 1.0), (50, 1.0)])
                .expect("injections");
            simulation
        };
        let (mut whole, mut broken, mut seen) = (started(), started(), Vec::new());
        let expected = whole.run(50).expect("a run");
        let counts = broken.run_watched(50, |counts| {
            seen.push(counts.bursts);
            if counts.bursts >= 20 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let counts = counts.expect("a run");
        assert!(
            counts == broken.counts()
                && seen.last() == Some(&counts.bursts)
                && (20..36).contains(&counts.bursts),
            "{id}: {seen:?}"
        );
        assert_eq!(
            broken.run(50 - counts.bursts).expect("a run"),
            expected,
            "{id}"
        );
    }
}
