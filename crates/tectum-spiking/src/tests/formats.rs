//! Binary places of potentials: each neuron has its own, on every available device.

use std::sync::Arc;

use tectum::Device;

use super::super::*;
use super::worked::devices;

/// A leaky neuron, one with a fractional threshold, and, if there are any senders, a hub that all
/// of them reach with the maximum weight and psp.
fn with_hub(senders: u32) -> Arc<Network> {
    let mut neurons = Neurons::default();
    let mut add =
        |count: u32, options: NeuronOptions| neurons.add(count, &options).expect("in range").start;
    add(
        1,
        NeuronOptions {
            threshold: 8.0,
            leak: 0.1,
            ..NeuronOptions::default()
        },
    );
    add(
        1,
        NeuronOptions {
            threshold: 1.4,
            ..NeuronOptions::default()
        },
    );
    let first = add(
        senders,
        NeuronOptions {
            psp: 255,
            uniform_psp: true,
            ..NeuronOptions::default()
        },
    );
    let hub = add(
        u32::from(senders > 0),
        NeuronOptions {
            threshold: 1e6,
            ..NeuronOptions::default()
        },
    );
    let synapses: Vec<_> = (first..first + senders)
        .map(|sender| (sender, Synapse::fixed(hub, 255, false)))
        .collect();
    network(&neurons, &synapses)
}

fn network(neurons: &Neurons, synapses: &[(u32, Synapse)]) -> Arc<Network> {
    let rows = SynapseList::new(neurons.len(), synapses).expect("in range");
    let options = NetworkOptions {
        max_injected: 255.0,
        ..NetworkOptions::default()
    };
    Arc::new(Network::new(neurons, Box::new(rows), options).expect("it works"))
}

#[test]
fn a_hub_leaves_the_leak_and_the_thresholds_of_others_as_they_are() {
    for (senders, places) in [(0, 16), (100, 7), (1000, 4), (10_000, 0)] {
        let network = with_hub(senders);
        // With any senders, the last neuron is the hub.
        let last = network.neurons() - 1;
        assert_eq!(
            [0, 1, last].map(|neuron| network.fraction_bits_of(neuron)),
            [16, 16, places],
            "{senders} senders"
        );
        assert_eq!(network.imprecisions(), [], "{senders} senders");
        for device in devices() {
            let bursts = if device.info().id == "cpu" { 500 } else { 150 };
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("it works");
            let mut step = |inputs: &[(u32, f32)], bursts: u32| {
                simulation.inject(inputs).expect("in range");
                simulation.run(bursts).expect("it runs");
                (
                    simulation.fired().expect("reads"),
                    simulation.potentials().expect("reads"),
                )
            };
            let (fired, _) = step(&[(0, 5.0), (1, 1.2)], 1);
            assert!(
                fired.is_empty(),
                "{senders} on {device:?}: 1.2 is below 1.4"
            );
            let (_, potentials) = step(&[], bursts - 1);
            // 9 steps of 2^-16 is the dead zone of a leak of 0.1.
            assert_eq!(potentials[0] * 65_536.0, 9.0, "{senders} on {device:?}");
            let (fired, _) = step(&[(0, 4.0)], 1);
            assert!(fired.is_empty(), "{senders} on {device:?}: 4 is below 8");
        }
    }
}

#[test]
fn an_arrival_is_rounded_to_the_nearest_step_of_its_target() {
    // With a threshold of 100,000 the target has 13 binary places. A third of a psp of 1 is 21,845
    // of 2^-16, and 2,731 of 2^-13.
    for (first_limit, places, second) in [(None, 13..=16, 21_845.0), (Some(1e5), 13..=13, 2731.0)] {
        arrivals(first_limit, places, second);
    }
}

/// Compares what arrives from a source with a third of its psp for each target, where it and the
/// first target have a limit, with the numbers of binary places and the steps at that target.
fn arrivals(limit: Option<f32>, places: std::ops::RangeInclusive<u32>, second: f64) {
    let mut neurons = Neurons::default();
    let first = NeuronOptions {
        threshold_limit: limit,
        ..NeuronOptions::default()
    };
    neurons.add(2, &first).expect("in range");
    let wide = NeuronOptions {
        threshold: 100_000.0,
        ..NeuronOptions::default()
    };
    neurons.add(2, &wide).expect("in range");
    let synapses = [
        (0, Synapse::fixed(1, 1, false)),
        (0, Synapse::fixed(2, 1, false)),
        (0, Synapse::fixed(3, 5, true)),
    ];
    let network = network(&neurons, &synapses);
    assert_eq!(network.fraction_bits(), places);
    for device in devices() {
        for shards in [1, 2] {
            let mut simulation = Simulation::sharded(
                network.clone(),
                &vec![device.clone(); shards],
                &SimulationOptions::default(),
            )
            .expect("it works");
            simulation.inject(&[(0, 1.0), (2, 0.3)]).expect("in range");
            simulation.run(2).expect("it runs");
            let potentials = simulation.potentials().expect("reads");
            let found: Vec<f64> = potentials
                .iter()
                .zip(0..)
                .map(|(potential, neuron)| {
                    potential * f64::from(1u32 << network.fraction_bits_of(neuron))
                })
                .collect();
            // The injection of 0.3 is 2,458 steps of its neuron; 5 · 21,845 / 8 is 13,653.
            assert_eq!(
                found,
                [0.0, second, 2731.0 + 2458.0, -13_653.0],
                "{device:?} in {shards}"
            );
        }
    }
}

#[test]
fn random_networks_have_formats_of_many_kinds() {
    let ranges: Vec<_> = (0..200)
        .map(|seed| {
            super::network(&super::case(seed))
                .fraction_bits()
                .into_inner()
        })
        .collect();
    let count = |is_counted: fn(&&(u32, u32)) -> bool| ranges.iter().filter(is_counted).count();
    let mixed = count(|(first, last)| first != last);
    let full = count(|(first, _)| *first == 16);
    println!("{mixed} with several formats, {full} with 16 binary places");
    assert!(mixed > 20 && full > 20, "{mixed} {full}");
}

#[test]
fn what_a_format_distorts_is_reported() {
    let found = |options: NeuronOptions, senders: u32| {
        let mut neurons = Neurons::default();
        let sender = NeuronOptions {
            psp: 255,
            uniform_psp: true,
            ..NeuronOptions::default()
        };
        neurons.add(senders, &sender).expect("in range");
        neurons.add(2, &options).expect("in range");
        let synapses: Vec<_> = (0..senders)
            .map(|sender| (sender, Synapse::fixed(senders, 255, false)))
            .collect();
        network(&neurons, &synapses)
            .imprecisions()
            .iter()
            .map(|found| format!("{}: {found}", found.extent()))
            .collect::<Vec<_>>()
    };
    let leaky = |threshold: f32, leak: f32| NeuronOptions {
        threshold,
        leak,
        ..NeuronOptions::default()
    };
    assert_eq!(found(leaky(8.0, 0.1), 0), [""; 0]);
    // The second neuron receives nothing, and has 16 binary places.
    assert_eq!(
        found(leaky(8.0, 0.1), 10_000),
        [
            "neuron 10000: a leak of 0.1 changes no potential within 9.000 of rest, more than 1 % of the threshold 8 (0 binary places)"
        ]
    );
    assert_eq!(
        found(leaky(1.4, 0.0), 10_000),
        ["neuron 10000: a threshold of 1.4 acts as 1 (0 binary places), a change of more than 1 %"]
    );
    assert_eq!(found(leaky(1000.0, 0.1), 10_000), [""; 0]);
    // 21,845 steps of 2^-16 are a third of the threshold.
    assert_eq!(
        found(leaky(1.0, 0.000_04), 0),
        [
            "2 neurons, such as 0: a leak of 0.00004 changes no potential within 0.333 of rest, more than 1 % of the threshold 1 (16 binary places)"
        ]
    );
    assert_eq!(
        found(leaky(1.0, 0.000_001), 0),
        [
            "2 neurons, such as 0: a leak of 0.000001 changes no potential: the smallest that acts is 2^-17"
        ]
    );
    let forgetful = NeuronOptions {
        charge_accumulation: false,
        ..leaky(8.0, 0.1)
    };
    assert_eq!(found(forgetful, 10_000), [""; 0]);
}

#[test]
fn a_snapshot_of_one_format_for_all_is_refused_by_name() {
    let cpu = Device::open("cpu").expect("there");
    let simulation = |network: Arc<Network>| {
        Simulation::new(network, &cpu, &SimulationOptions::default()).expect("it works")
    };
    let other = simulation(with_hub(0)).snapshot().expect("reads");
    let error = simulation(with_hub(100))
        .restore(&other)
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the snapshot is of another network, or of the same with other options, or of a version in which all neurons had the same binary places; here they have 7 to 16"
    );
}

#[test]
fn a_network_of_16_binary_places_loads_snapshots_of_one_format_for_all() {
    use crate::genome::{Genome, GenomeOptions};
    let text = std::str::from_utf8(SAMPLES[0].files[0].1).expect("text");
    let genome = Genome::parse(text, &GenomeOptions::default()).expect("a genome");
    let connected = connect(
        &genome,
        ConnectOptions::default(),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("it works");
    let cpu = Device::open("cpu").expect("there");
    let simulation = Simulation::new(
        Arc::new(connected.network),
        &cpu,
        &SimulationOptions::default(),
    )
    .expect("it works");
    let snapshot = simulation.snapshot().expect("reads");
    // The fingerprint in a snapshot of a version in which all neurons had the same binary places.
    assert_eq!(
        snapshot.u64("network", 4).expect("there"),
        [
            0xb9e6_d7cc_8547_faed,
            0x355a_3cd2_b680_6a52,
            0x5a55_eafd_ba18_d2e2,
            0x7477_8d83_209c_8d11
        ]
    );
}
