//! Networks small enough to work out by hand: one test for each row of the predecessor's
//! disagreements and defects, on every available device.

use std::sync::Arc;

use tectum::Device;

use super::super::*;

/// Every available device.
pub fn devices() -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// Neurons of some kinds with synapses (source, target, weight, inhibitory).
fn network(
    kinds: &[(u32, NeuronOptions)],
    synapses: &[(u32, u32, u8, bool)],
    options: NetworkOptions,
) -> Arc<Network> {
    let mut neurons = Neurons::default();
    for (count, kind) in kinds {
        neurons.add(*count, kind).expect("it works");
    }
    let synapse = |&(source, target, weight, inhibitory): &(u32, u32, u8, bool)| {
        (source, Synapse::fixed(target, weight, inhibitory))
    };
    let list: Vec<_> = synapses.iter().map(synapse).collect();
    Arc::new(
        Network::new(
            &neurons,
            Box::new(SynapseList::new(neurons.len(), &list).expect("it works")),
            options,
        )
        .expect("it works"),
    )
}

/// Runs bursts with injections on every device: whether neuron 0 fires, and its potential, after
/// each.
fn first_neuron(kind: &NeuronOptions, inputs: &[f32], expected: &[(bool, f64)]) {
    let network = network(&[(1, kind.clone())], &[], NetworkOptions::default());
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        for (burst, (&input, &(fires, potential))) in inputs.iter().zip(expected).enumerate() {
            if input != 0.0 {
                simulation.inject(&[(0, input)]).expect("it works");
            }
            simulation.run(1).expect("it works");
            let fired = simulation.fired().expect("it works") == [0];
            let found = simulation.potentials().expect("it works")[0];
            // Potentials are whole in units of 2^-16, and a leak rounds down by less than one of
            // them.
            assert!(
                fired == fires && (found - potential).abs() < 1e-4,
                "{:?}, burst {}: {fired} {found}, not {fires} {potential}",
                device,
                burst + 1
            );
        }
        assert_eq!(inputs.len(), expected.len());
    }
}

fn kind() -> NeuronOptions {
    NeuronOptions {
        threshold: 10.0,
        ..NeuronOptions::default()
    }
}

#[test]
fn hashes_have_the_values_of_the_page() {
    assert_eq!(rule::draw(0, 0, 1), 0x8076_3136);
    assert_eq!(rule::draw(5, 7, 3), 0xef80_276a);
    assert_eq!(rule::spike_hash_words(0, 1), [0x9941_cd2d, 0x1453_cc01]);
    assert_eq!(rule::spike_hash_words(7, 3), [0x2a48_9f95, 0x8e10_d65f]);
    // scramble(0) is 0, and scramble(1) is the seed of draws of seed 2^32.
    assert_eq!(rule::seed_of(5), 5);
    assert_eq!(rule::seed_of(1 << 32), 0x514e_28b7);
}

#[test]
fn input_then_test_then_leak_only_without_firing() {
    // 8 leaks to 4; 4 + 6 reaches 10 before any leak; after firing there is nothing to leak.
    first_neuron(
        &NeuronOptions {
            leak: 0.5,
            ..kind()
        },
        &[8.0, 6.0, 0.0],
        &[(false, 4.0), (true, 0.0), (false, 0.0)],
    );
}

#[test]
fn a_leak_is_a_fraction_and_idle_bursts_leak_too() {
    first_neuron(
        &NeuronOptions {
            leak: 0.25,
            ..kind()
        },
        &[8.0, 0.0, 0.0, 1.0],
        &[(false, 6.0), (false, 4.5), (false, 3.375), (false, 3.28125)],
    );
    // Toward the resting potential, from both sides.
    let resting = NeuronOptions {
        leak: 0.5,
        resting_potential: 2.0,
        ..kind()
    };
    first_neuron(&resting, &[4.0, -8.0], &[(false, 4.0), (false, -1.0)]);
}

#[test]
fn a_leak_of_ten_is_refused() {
    let error = Neurons::default()
        .add(
            1,
            &NeuronOptions {
                leak: 10.0,
                ..kind()
            },
        )
        .expect_err("it is refused");
    assert_eq!(error.to_string(), "leak 10; 0 to 1 is needed");
}

#[test]
fn firing_resets_to_rest() {
    first_neuron(&kind(), &[25.0, 1.0], &[(true, 0.0), (false, 1.0)]);
    first_neuron(
        &NeuronOptions {
            resting_potential: 3.0,
            ..kind()
        },
        &[9.0, 1.0],
        &[(true, 3.0), (false, 4.0)],
    );
}

#[test]
fn a_refractory_period_is_each_neurons_own_and_loses_input() {
    let expected = |fires: [bool; 6]| fires.map(|fires| (fires, 0.0));
    first_neuron(
        &NeuronOptions {
            refractory: 0,
            ..kind()
        },
        &[20.0; 6],
        &expected([true; 6]),
    );
    first_neuron(
        &NeuronOptions {
            refractory: 1,
            ..kind()
        },
        &[20.0; 6],
        &expected([true, false, true, false, true, false]),
    );
    first_neuron(
        &NeuronOptions {
            refractory: 4,
            ..kind()
        },
        &[20.0; 6],
        &expected([true, false, false, false, false, true]),
    );
}

#[test]
fn above_the_upper_limit_nothing_fires() {
    let limited = NeuronOptions {
        threshold_limit: Some(12.0),
        ..kind()
    };
    // 12 is inside, 13 is not, and is inside again when 1 is subtracted.
    first_neuron(
        &limited,
        &[12.0, 13.0, -1.0],
        &[(true, 0.0), (false, 13.0), (true, 0.0)],
    );
}

#[test]
fn a_threshold_that_is_reached_exactly_fires() {
    first_neuron(&kind(), &[9.75, 0.25], &[(false, 9.75), (true, 0.0)]);
}

#[test]
fn without_accumulation_a_burst_begins_at_rest() {
    let forgetful = NeuronOptions {
        charge_accumulation: false,
        ..kind()
    };
    first_neuron(
        &forgetful,
        &[6.0, 6.0, 10.0],
        &[(false, 0.0), (false, 0.0), (true, 0.0)],
    );
}

#[test]
fn a_series_that_reaches_its_limit_snoozes() {
    let tired = NeuronOptions {
        consecutive_fire_limit: 2,
        snooze: 3,
        ..kind()
    };
    let fires = [true, true, false, false, false, true, true, false];
    first_neuron(&tired, &[20.0; 8], &fires.map(|fires| (fires, 0.0)));
    // A burst without arrivals ends the series.
    let inputs = [20.0, 0.0, 20.0, 20.0, 20.0];
    first_neuron(
        &tired,
        &inputs,
        &[true, false, true, true, false].map(|fires| (fires, 0.0)),
    );
}

#[test]
fn a_limit_without_any_pause_blocks_one_burst_and_keeps_its_input() {
    let limited = NeuronOptions {
        consecutive_fire_limit: 2,
        leak: 0.5,
        ..kind()
    };
    // The third is blocked, without a leak: 20 remains, and with 20 more it fires.
    first_neuron(
        &limited,
        &[20.0; 4],
        &[(true, 0.0), (true, 0.0), (false, 20.0), (true, 0.0)],
    );
}

#[test]
fn excitability_is_the_fraction_of_candidates_that_fire() {
    for (excitability, neurons) in [(0.5f32, 100_000u32), (0.05, 100_000), (0.9, 100_000)] {
        let lazy = NeuronOptions {
            threshold: 1.0,
            excitability,
            charge_accumulation: false,
            ..NeuronOptions::default()
        };
        let network = network(
            &[(neurons, lazy)],
            &[],
            NetworkOptions {
                seed: 7,
                ..NetworkOptions::default()
            },
        );
        let constant_inputs = (0..neurons).map(|neuron| (neuron, 1.0)).collect();
        let mut simulation = Simulation::new(
            network,
            &Device::open("cpu").expect("it works"),
            &SimulationOptions {
                constant_inputs,
                ..SimulationOptions::default()
            },
        )
        .expect("it works");
        let spikes = simulation.run(1).expect("it works").spikes as f64;
        let (mean, chance) = (
            f64::from(neurons) * f64::from(excitability),
            f64::from(excitability),
        );
        let sigma = (mean * (1.0 - chance)).sqrt();
        assert!(
            (spikes - mean).abs() < 4.0 * sigma,
            "{excitability}: {spikes} of {neurons}, {mean} ± {sigma}"
        );
    }
    first_neuron(
        &NeuronOptions {
            excitability: 0.0,
            ..kind()
        },
        &[20.0],
        &[(false, 20.0)],
    );
    first_neuron(
        &NeuronOptions {
            excitability: 0.999,
            ..kind()
        },
        &[20.0],
        &[(true, 0.0)],
    );
}

#[test]
fn maximal_inputs_do_not_overflow() {
    for inputs in [33u32, 34, 10_000] {
        let strong = NeuronOptions {
            threshold: 1.0,
            psp: 255,
            uniform_psp: true,
            ..NeuronOptions::default()
        };
        let quiet = NeuronOptions {
            threshold: 1e9,
            ..NeuronOptions::default()
        };
        let synapses: Vec<_> = (0..inputs)
            .map(|source| (source, inputs, 255, false))
            .collect();
        let network = network(
            &[(inputs, strong), (1, quiet)],
            &synapses,
            NetworkOptions {
                max_injected: 10.0,
                ..NetworkOptions::default()
            },
        );
        for device in devices() {
            let mut simulation = Simulation::new(
                network.clone(),
                &device,
                &SimulationOptions {
                    max_inputs: 10_000,
                    ..SimulationOptions::default()
                },
            )
            .expect("it works");
            simulation
                .inject(&(0..inputs).map(|neuron| (neuron, 1.0)).collect::<Vec<_>>())
                .expect("it works");
            simulation.run(2).expect("it works");
            let potential = simulation.potentials().expect("it works")[inputs as usize];
            assert_eq!(
                potential,
                f64::from(inputs) * 65_025.0,
                "{inputs} on {device:?}"
            );
        }
    }
}

#[test]
fn what_could_overflow_is_refused_by_name() {
    let mut neurons = Neurons::default();
    neurons
        .add(
            20_000,
            &NeuronOptions {
                psp: 255,
                uniform_psp: true,
                ..kind()
            },
        )
        .expect("it works");
    let list: Vec<_> = (0..20_000)
        .map(|source| (source, Synapse::fixed(5, 255, false)))
        .collect();
    let rows = SynapseList::new(20_000, &list).expect("it works");
    let error = Network::new(&neurons, Box::new(rows), NetworkOptions::default())
        .expect_err("it is refused");
    assert_eq!(
        error.to_string(),
        "neuron 5 can receive 1300500000 from synapses and 1024 from an injection in one burst; at most 1073741823 are possible"
    );
}

#[test]
fn a_maximum_injection_is_a_finite_number_from_0() {
    let mut neurons = Neurons::default();
    neurons.add(2, &kind()).expect("it works");
    for max_injected in [f32::NAN, f32::INFINITY, -1.0] {
        let rows = SynapseList::new(2, &[]).expect("it works");
        let refused = Network::new(
            &neurons,
            Box::new(rows),
            NetworkOptions {
                max_injected,
                ..NetworkOptions::default()
            },
        );
        let message = refused.expect_err("it is refused").to_string();
        assert_eq!(
            message,
            format!("a maximum injection of {max_injected}; needs a finite number from 0")
        );
    }
}

#[test]
fn sums_that_cancel_are_arrivals() {
    // Neuron 2 waits in its window for a draw that never succeeds, so only its leak shows that it
    // was updated: frozen silence leaves 8, an arrival of 3 − 3 leaks it to 4.
    let frozen = NetworkOptions {
        idle_update: IdleUpdate::Freeze,
        ..NetworkOptions::default()
    };
    let sender = NeuronOptions {
        threshold: 1.0,
        psp: 3,
        ..NeuronOptions::default()
    };
    let network = network(
        &[
            (2, sender),
            (
                1,
                NeuronOptions {
                    leak: 0.5,
                    ..kind()
                },
            ),
        ],
        &[(0, 2, 1, false), (1, 2, 1, true)],
        frozen,
    );
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        simulation
            .inject(&[(0, 1.0), (1, 1.0), (2, 8.0)])
            .expect("it works");
        simulation.run(1).expect("it works");
        assert_eq!(
            simulation.potentials().expect("it works")[2],
            4.0,
            "8 leaks when it arrives"
        );
        simulation.run(1).expect("it works");
        assert_eq!(
            simulation.potentials().expect("it works")[2],
            2.0,
            "{device:?}: 3 and −3 arrive"
        );
        simulation.run(3).expect("it works");
        assert_eq!(
            simulation.potentials().expect("it works")[2],
            2.0,
            "{device:?}: nothing arrives"
        );
    }
}

#[test]
fn a_sum_that_cancels_fires_what_leaked_into_its_window() {
    // 22 is above the limit of 12 and leaks to 11, inside the window that begins at 10; then 3 − 3
    // arrives.
    let sender = NeuronOptions {
        threshold: 1.0,
        psp: 3,
        ..NeuronOptions::default()
    };
    let limited = NeuronOptions {
        threshold_limit: Some(12.0),
        leak: 0.5,
        ..kind()
    };
    let network = network(
        &[(2, sender), (1, limited)],
        &[(0, 2, 1, false), (1, 2, 1, true)],
        NetworkOptions::default(),
    );
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        simulation
            .inject(&[(0, 1.0), (1, 1.0), (2, 22.0)])
            .expect("it works");
        simulation.run(1).expect("it works");
        assert_eq!(
            (
                simulation.fired().expect("it works"),
                simulation.potentials().expect("it works")[2]
            ),
            (vec![0, 1], 11.0)
        );
        simulation.run(1).expect("it works");
        assert_eq!(
            (
                simulation.fired().expect("it works"),
                simulation.potentials().expect("it works")[2]
            ),
            (vec![2], 0.0),
            "{device:?}"
        );
    }
}

#[test]
fn a_psp_is_whole_or_shared_out() {
    let receiver = NeuronOptions {
        threshold: 1e6,
        ..NeuronOptions::default()
    };
    for (uniform_psp, expected) in [(true, 10.0), (false, 2.5)] {
        let sender = NeuronOptions {
            threshold: 1.0,
            psp: 5,
            uniform_psp,
            ..NeuronOptions::default()
        };
        let synapses = [
            (0, 1, 2, false),
            (0, 2, 1, false),
            (0, 3, 1, false),
            (0, 4, 1, true),
        ];
        let network = network(
            &[(1, sender), (4, receiver.clone())],
            &synapses,
            NetworkOptions::default(),
        );
        for device in devices() {
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("it works");
            simulation.inject(&[(0, 1.0)]).expect("it works");
            simulation.run(2).expect("it works");
            let half = expected / 2.0;
            assert_eq!(
                simulation.potentials().expect("it works"),
                [0.0, expected, half, half, -half],
                "{device:?}"
            );
        }
    }
}

#[test]
fn a_driven_psp_is_the_firing_potential_as_a_whole_number_to_255() {
    let receiver = NeuronOptions {
        threshold: 1e6,
        ..NeuronOptions::default()
    };
    let sender = NeuronOptions {
        threshold: 1.0,
        psp: 1,
        uniform_psp: true,
        potential_driven_psp: true,
        ..NeuronOptions::default()
    };
    let network = network(
        &[(1, sender), (1, receiver)],
        &[(0, 1, 2, false)],
        NetworkOptions::default(),
    );
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        let mut expected = 0.0;
        for (input, psp) in [(7.0, 7.0), (7.5, 8.0), (7.25, 7.0), (400.0, 255.0)] {
            simulation.inject(&[(0, input)]).expect("it works");
            simulation.run(2).expect("it works");
            expected += 2.0 * psp;
            assert_eq!(
                simulation.potentials().expect("it works")[1],
                expected,
                "{device:?}: {input}"
            );
        }
    }
}

#[test]
fn rows_of_every_length_arrive_whole() {
    let lengths = [0u32, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 4096];
    let count = lengths.len() as u32;
    let sender = NeuronOptions {
        threshold: 1.0,
        uniform_psp: true,
        ..NeuronOptions::default()
    };
    let receiver = NeuronOptions {
        threshold: 1e6,
        ..NeuronOptions::default()
    };
    let row = |(source, &length): (usize, &u32)| {
        (0..length).map(move |index| (source as u32, count + index, 1, false))
    };
    let synapses: Vec<_> = lengths.iter().enumerate().flat_map(row).collect();
    let network = network(
        &[(count, sender), (4096, receiver)],
        &synapses,
        NetworkOptions::default(),
    );
    for device in devices() {
        for parts in [None, Some(3)] {
            let mut simulation = Simulation::new(
                network.clone(),
                &device,
                &SimulationOptions {
                    parts,
                    ..SimulationOptions::default()
                },
            )
            .expect("it works");
            simulation
                .inject(&(0..count).map(|neuron| (neuron, 1.0)).collect::<Vec<_>>())
                .expect("it works");
            simulation.run(2).expect("it works");
            let potentials = simulation.potentials().expect("it works");
            for index in 0..4096u32 {
                let expected = lengths.iter().filter(|length| **length > index).count() as f64;
                assert_eq!(
                    potentials[(count + index) as usize],
                    expected,
                    "{device:?}, {parts:?}: target {index}"
                );
            }
            assert_eq!(
                simulation.counts().events,
                lengths.iter().map(|length| u64::from(*length)).sum::<u64>()
            );
        }
    }
}

#[test]
fn an_autapse_reaches_its_own_neuron_in_the_next_burst() {
    let network = network(
        &[(
            1,
            NeuronOptions {
                threshold: 1.0,
                ..NeuronOptions::default()
            },
        )],
        &[(0, 0, 1, false)],
        NetworkOptions::default(),
    );
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        simulation.inject(&[(0, 1.0)]).expect("it works");
        assert_eq!(
            simulation.run(50).expect("it works").spikes,
            50,
            "{device:?}: it keeps itself firing"
        );
    }
}

#[test]
fn injections_are_refused_whole() {
    let network = network(
        &[(2, kind())],
        &[],
        NetworkOptions {
            max_injected: 5.0,
            ..NetworkOptions::default()
        },
    );
    let options = SimulationOptions {
        max_inputs: 1,
        ..SimulationOptions::default()
    };
    let mut simulation =
        Simulation::new(network, &Device::open("cpu").expect("it works"), &options)
            .expect("it works");
    let mut refused = |inputs: &[(u32, f32)], expected: &str| {
        assert_eq!(
            simulation
                .inject(inputs)
                .expect_err("it is refused")
                .to_string(),
            expected
        )
    };
    refused(&[(2, 1.0)], "injection into neuron 2 of 2");
    refused(
        &[(0, 5.5)],
        "injection of 5.5 into neuron 0; the maximum is 5 either way",
    );
    refused(
        &[(0, f32::NAN)],
        "injection of NaN into neuron 0; the maximum is 5 either way",
    );
    refused(
        &[(0, 1.0), (1, 1.0)],
        "2 injections into one burst; at most 1",
    );
    simulation.run(1).expect("it works");
    assert_eq!(simulation.potentials().expect("it works"), [0.0, 0.0]);
}

#[test]
fn a_gpu_run_is_one_upload_and_one_download() {
    for device in devices()
        .into_iter()
        .filter(|device| device.info().id != "cpu")
    {
        let network = network(
            &[(64, kind())],
            &[(0, 1, 1, false)],
            NetworkOptions::default(),
        );
        let mut simulation =
            Simulation::new(network, &device, &SimulationOptions::default()).expect("it works");
        simulation.run(1).expect("it works");
        let stats = simulation.stats();
        assert_eq!(
            (stats.transfers_up, stats.transfers_down, stats.submissions),
            (1, 1, 1),
            "{device:?}"
        );
    }
}
