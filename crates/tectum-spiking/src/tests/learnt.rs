//! Learning and memory worked out by hand, on every available device.

use super::super::*;
use super::worked::devices;
use std::sync::Arc;

/// Two neurons that fire on injection, and a synapse from the first to the second that is too weak
/// to have an effect.
fn pair(rule: PlasticityRule, weight: u8) -> Arc<Network> {
    let mut neurons = Neurons::default();
    neurons
        .add(
            2,
            &NeuronOptions {
                threshold: 1000.0,
                charge_accumulation: false,
                ..NeuronOptions::default()
            },
        )
        .expect("it works");
    let synapse = Synapse {
        target: 1,
        weight,
        inhibitory: false,
        plasticity: Some(0),
    };
    let options = NetworkOptions {
        plasticity: vec![rule],
        max_injected: 2000.0,
        ..NetworkOptions::default()
    };
    Arc::new(
        Network::new(
            &neurons,
            Box::new(SynapseList::new(2, &[(0, synapse)]).expect("it works")),
            options,
        )
        .expect("it works"),
    )
}

/// Makes the two fire as given, burst by burst; returns the weight after each.
fn weights(rule: PlasticityRule, weight: u8, firings: &[(bool, bool)], expected: &[u8]) {
    let network = pair(rule, weight);
    for device in devices() {
        let mut simulation =
            Simulation::new(network.clone(), &device, &SimulationOptions::default())
                .expect("it works");
        let mut found = Vec::new();
        for &(first, second) in firings {
            let inputs: Vec<_> = [(0, first), (1, second)]
                .into_iter()
                .filter(|(_, fires)| *fires)
                .map(|(neuron, _)| (neuron, 1500.0))
                .collect();
            simulation.inject(&inputs).expect("it works");
            simulation.run(1).expect("it works");
            assert_eq!(
                simulation.fired().expect("it works").len(),
                inputs.len(),
                "the synapse makes nothing fire"
            );
            found.push(simulation.plastic_synapses().expect("it works")[0].weight);
        }
        assert_eq!(found, expected, "{device:?}");
    }
}

const BOTH: (bool, bool) = (true, true);
const FIRST: (bool, bool) = (true, false);
const SECOND: (bool, bool) = (false, true);
const NONE: (bool, bool) = (false, false);

#[test]
fn a_window_of_one_gains_where_both_fire_and_loses_where_one_does() {
    let rule = PlasticityRule {
        window: 1,
        gain: 5,
        loss: 2,
        weight_loss: WeightLoss::AnyFiring,
    };
    weights(
        rule,
        10,
        &[NONE, BOTH, FIRST, SECOND, NONE, BOTH, BOTH],
        &[10, 15, 13, 11, 11, 16, 21],
    );
}

#[test]
fn a_window_of_three_gains_at_the_third_burst_of_both_and_loses_until_the_last_firing_has_left_it()
{
    let rule = PlasticityRule {
        window: 3,
        gain: 50,
        loss: 2,
        weight_loss: WeightLoss::AnyFiring,
    };
    // Bursts 1 and 2: both fire, but not in all three bursts. Burst 3: in all of them. The windows
    // of bursts 4 and 5 still hold a firing; 6 does not.
    weights(
        rule,
        20,
        &[BOTH, BOTH, BOTH, NONE, NONE, NONE],
        &[18, 16, 66, 64, 62, 62],
    );
    // A gap restarts the series.
    weights(
        rule,
        20,
        &[BOTH, BOTH, NONE, BOTH, BOTH, BOTH],
        &[18, 16, 14, 12, 10, 60],
    );
    // Only the second: the windows of bursts 2 to 4 hold its firing.
    weights(
        rule,
        20,
        &[NONE, SECOND, NONE, NONE, NONE, FIRST],
        &[20, 18, 16, 14, 14, 12],
    );
    // Both have left the window before the first fires again.
    weights(
        rule,
        20,
        &[
            FIRST, NONE, NONE, NONE, SECOND, NONE, NONE, NONE, NONE, FIRST,
        ],
        &[18, 16, 14, 14, 12, 10, 8, 8, 8, 6],
    );
}

#[test]
fn weights_stay_within_a_byte() {
    let up = PlasticityRule {
        window: 1,
        gain: 200,
        loss: 0,
        weight_loss: WeightLoss::AnyFiring,
    };
    weights(up, 100, &[BOTH, BOTH, FIRST], &[255, 255, 255]);
    let down = PlasticityRule {
        window: 2,
        gain: 0,
        loss: 200,
        weight_loss: WeightLoss::AnyFiring,
    };
    weights(down, 255, &[FIRST, NONE, NONE, SECOND], &[55, 0, 0, 0]);
}

#[test]
fn a_plastic_synapse_of_weight_0_sends_nothing_until_it_gains() {
    let mut neurons = Neurons::default();
    // Any arrival makes it fire.
    neurons
        .add(
            2,
            &NeuronOptions {
                threshold: 0.0,
                ..NeuronOptions::default()
            },
        )
        .expect("it works");
    let rows = |plasticity| {
        SynapseList::new(
            2,
            &[(
                0,
                Synapse {
                    target: 1,
                    weight: 0,
                    inhibitory: false,
                    plasticity,
                },
            )],
        )
        .expect("it works")
    };
    let rules = vec![PlasticityRule {
        window: 1,
        gain: 1,
        loss: 0,
        weight_loss: WeightLoss::AnyFiring,
    }];
    for (plasticity, expected) in [(Some(0), [0, 0, 1, 2, 3]), (None, [0, 1, 2, 3, 4])] {
        let options = NetworkOptions {
            plasticity: rules.clone(),
            ..NetworkOptions::default()
        };
        let network = Arc::new(
            Network::new(&neurons, Box::new(rows(plasticity)), options).expect("it works"),
        );
        for device in devices() {
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("it works");
            // In burst 2 both fire, so burst 3 is the first in which the plastic synapse sends.
            let inputs: [&[(u32, f32)]; 5] = [
                &[(0, 1.0)],
                &[(0, 1.0), (1, 1.0)],
                &[(0, 1.0)],
                &[(0, 1.0)],
                &[],
            ];
            for (inputs, events) in inputs.into_iter().zip(expected) {
                simulation.inject(inputs).expect("it works");
                assert_eq!(
                    simulation.run(1).expect("it works").events,
                    events,
                    "{device:?}"
                );
            }
        }
    }
}

/// Neuron 0 is seen by a memory with two neurons, 1 and 2; neuron 3 is reached by both.
fn remembering(
    depth: u32,
    initial_lifespan: u32,
    lifespan_growth: u32,
    longterm_threshold: u32,
) -> Arc<Network> {
    let mut neurons = Neurons::default();
    let kind = NeuronOptions {
        uniform_psp: true,
        ..NeuronOptions::default()
    };
    neurons.add(4, &kind).expect("it works");
    let memory = Memory {
        upstream: std::iter::once(0..1).collect(),
        neurons: 1..3,
        depth,
        initial_lifespan,
        lifespan_growth,
        longterm_threshold,
    };
    let synapses = [
        (1, Synapse::fixed(3, 1, false)),
        (2, Synapse::fixed(3, 1, false)),
    ];
    let options = NetworkOptions {
        memories: vec![memory],
        ..NetworkOptions::default()
    };
    Arc::new(
        Network::new(
            &neurons,
            Box::new(SynapseList::new(4, &synapses).expect("it works")),
            options,
        )
        .expect("it works"),
    )
}

/// The firings of each burst when neuron 0 is made to fire in some.
fn firings(
    network: &Arc<Network>,
    device: &tectum::Device,
    told: &[bool],
) -> (Vec<Vec<u32>>, MemoryReport) {
    let mut simulation =
        Simulation::new(network.clone(), device, &SimulationOptions::default()).expect("it works");
    let mut found = Vec::new();
    for &fires in told {
        simulation
            .inject(if fires { &[(0, 1.0)] } else { &[] })
            .expect("it works");
        simulation.run(1).expect("it works");
        found.push(simulation.fired().expect("it works"));
    }
    (found, simulation.memories().expect("it works")[0])
}

#[test]
fn a_memory_fires_the_burst_after_its_pattern_and_a_neuron_keeps_each() {
    let network = remembering(2, 20, 3, 100);
    for device in devices() {
        // Patterns at bursts 2 to 7, newest first: 1·, 01 (one burst ago), nothing, 1·, 11, 01.
        let (found, report) = firings(
            &network,
            &device,
            &[true, false, false, true, true, false, false],
        );
        assert_eq!(
            found,
            [
                vec![0],
                vec![1],
                vec![2, 3],
                vec![0, 3],
                vec![0, 1],
                vec![3],
                vec![2]
            ],
            "{device:?}"
        );
        // The third pattern found no free neuron.
        assert_eq!(
            report,
            MemoryReport {
                patterns: 2,
                longterm: 0,
                formed: 2,
                lost: 1
            },
            "{device:?}"
        );
    }
}

#[test]
fn a_pattern_that_is_not_seen_again_is_forgotten_and_one_that_is_seen_often_is_kept() {
    for device in devices() {
        // Formed at burst 2 with a lifespan of 2 bursts: 1 left after burst 3, free at burst 4, so
        // formed again at burst 6.
        let (found, report) = firings(
            &remembering(1, 2, 0, 100),
            &device,
            &[true, false, false, false, true, false],
        );
        assert_eq!(found[1], [1], "{device:?}");
        assert_eq!(
            report,
            MemoryReport {
                patterns: 1,
                longterm: 0,
                formed: 2,
                lost: 0
            },
            "{device:?}"
        );
        // A lifespan of 3 bursts and 3 more each time: 3 − 1 + 3 = 5 at burst 3, 7 at burst 4; at
        // burst 5 it becomes permanent.
        let told: Vec<bool> = (0..40).map(|burst| burst < 3 || burst == 38).collect();
        let (found, report) = firings(&remembering(1, 3, 3, 7), &device, &told);
        assert_eq!(found[39], [1], "{device:?}");
        assert_eq!(
            report,
            MemoryReport {
                patterns: 1,
                longterm: 1,
                formed: 1,
                lost: 0
            },
            "{device:?}"
        );
    }
}

#[test]
fn a_genomes_memory_area_shows_what_it_remembers_and_associations_grow() {
    use crate::genome::{Genome, GenomeOptions};
    let area = |depth: u32, mappings: &str, rest: &str| {
        format!(
            r#"{{"block_boundaries": [1, 1, {depth}], "firing_threshold": 1, "cortical_mapping_dst": {{{mappings}}}{rest}}}"#
        )
    };
    let text = format!(
        r#"{{"version": "2.1", "physiology": {{"plasticity_queue_depth": 2}}, "blueprint": {{"source": {}, "memory": {}, "sunk__": {}, "other_": {}}}}}"#,
        area(
            3,
            r#""memory": [["memory", 1, 1, false]], "other_": [["associative_memory", 1, 1, true, 1, 7, 1]]"#,
            ""
        ),
        area(
            1,
            r#""sunk__": [["projector", 1, 9, true, 2, 3, 1]]"#,
            r#", "sub_group_id": "MEMORY", "temporal_depth": 1, "init_lifespan": 9"#
        ),
        area(3, "", ""),
        area(3, "", "")
    );
    let genome = Genome::parse(&text, &GenomeOptions::default()).expect("it is one");
    let connected = connect(
        &genome,
        ConnectOptions {
            memory_neurons: 4,
            ..ConnectOptions::default()
        },
        &mut tectum::WorkProgress::ignore,
    )
    .expect("it works");
    let error = connect(&genome, ConnectOptions::default(), &mut |_| {
        std::ops::ControlFlow::Break(())
    })
    .expect_err("broken off");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            tectum::ErrorKind::Cancelled,
            "counting synapses: broken off after 0 of 3".to_owned()
        )
    );
    let areas: Vec<_> = ["source", "memory", "sunk__", "other_"]
        .map(|id| {
            genome
                .areas()
                .iter()
                .find(|area| area.id.to_string() == id)
                .expect("there")
                .neurons
                .clone()
        })
        .into();
    let [source, sunk, other] = [0, 2, 3].map(|area: usize| areas[area].clone());
    let kept = genome.neurons()..genome.neurons() + 4;
    assert_eq!(
        (connected.memories.len(), connected.network.neurons()),
        (1, kept.end)
    );
    assert_eq!(
        connected.network.memories()[0],
        Memory {
            upstream: vec![source.clone()],
            neurons: kept.clone(),
            depth: 1,
            initial_lifespan: 9,
            lifespan_growth: 3,
            longterm_threshold: 100
        }
    );
    // The memory's neurons send as the area's first would: to all three. Three neurons by three
    // make eighteen pairs in both directions.
    assert_eq!(connected.network.plastic_synapses(), 4 * 3 + 3 + 18);

    let mut simulation = Simulation::new(
        Arc::new(connected.network),
        &tectum::Device::open("cpu").expect("it works"),
        &SimulationOptions::default(),
    )
    .expect("it works");
    let mut step = |inputs: &[u32]| {
        simulation
            .inject(
                &inputs
                    .iter()
                    .map(|neuron| (*neuron, 1.0))
                    .collect::<Vec<_>>(),
            )
            .expect("it works");
        simulation.run(1).expect("it works");
        let weight = |source: u32, target: u32| {
            simulation
                .plastic_synapses()
                .expect("it works")
                .into_iter()
                .find(|synapse| (synapse.source, synapse.target) == (source, target))
                .map(|synapse| synapse.weight)
        };
        (
            simulation.fired().expect("it works"),
            weight(source.start, other.start),
            weight(other.start, source.start),
            weight(kept.start, sunk.start),
        )
    };
    let together = [source.start, other.start];
    assert_eq!(
        step(&together),
        (together.to_vec(), Some(0), Some(0), Some(9))
    );
    // Two bursts together grow synapses in both directions; the pattern of the first is stored, and
    // its synapses begin to lose weight.
    assert_eq!(
        step(&together),
        (
            vec![source.start, other.start, kept.start],
            Some(7),
            Some(7),
            Some(7)
        )
    );
    // The stored pattern reaches all its targets; the grown synapses now send on their own.
    let fired = [together.to_vec(), vec![kept.start], sunk.clone().collect()].concat();
    let (mut found, ..) = step(&[]);
    found.sort_unstable();
    let mut expected = fired;
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn rules_and_memories_out_of_their_range_are_refused() {
    let mut neurons = Neurons::default();
    neurons.add(4, &NeuronOptions::default()).expect("it works");
    let refused = |options: NetworkOptions, synapses: &[(u32, Synapse)]| {
        let rows = SynapseList::new(4, synapses).expect("it works");
        Network::new(&neurons, Box::new(rows), options)
            .expect_err("it is refused")
            .to_string()
    };
    let rule = PlasticityRule {
        window: 3,
        gain: 1,
        loss: 1,
        weight_loss: WeightLoss::AnyFiring,
    };
    let learning = |plasticity: Vec<PlasticityRule>| NetworkOptions {
        plasticity,
        ..NetworkOptions::default()
    };
    assert_eq!(
        refused(
            learning(vec![
                rule,
                PlasticityRule {
                    window: 257,
                    ..rule
                }
            ]),
            &[]
        ),
        "plasticity rule 1: a plasticity window of 257 bursts; 1 to 256 are possible"
    );
    assert_eq!(
        refused(learning(vec![rule; 17]), &[]),
        "17 rules of plasticity; at most 16 are possible"
    );
    let synapse = Synapse {
        plasticity: Some(1),
        ..Synapse::fixed(2, 1, false)
    };
    assert_eq!(
        refused(learning(vec![rule]), &[(3, synapse)]),
        "a synapse of neuron 3 learns by rule 1 of 1"
    );
    let memory = Memory {
        upstream: std::iter::once(0..1).collect(),
        neurons: 1..3,
        depth: 2,
        initial_lifespan: 1,
        lifespan_growth: 0,
        longterm_threshold: 9,
    };
    let with = |memories: Vec<Memory>| NetworkOptions {
        memories,
        plasticity: vec![rule; 2],
        ..NetworkOptions::default()
    };
    assert_eq!(
        refused(with(vec![memory.clone()]), &[(3, synapse)]),
        "a synapse of neuron 3 learns, ends at neuron 2 of a memory, and begins with weight 1, not 0"
    );
    assert_eq!(
        refused(
            with(vec![Memory {
                depth: 0,
                ..memory.clone()
            }]),
            &[]
        ),
        "memory 0: a depth of 0 bursts; 1 to 256 are possible"
    );
    assert_eq!(
        refused(
            with(vec![Memory {
                initial_lifespan: 0,
                ..memory.clone()
            }]),
            &[]
        ),
        "memory 0: an initial lifespan of 0 bursts; at least 1 is needed"
    );
    assert_eq!(
        refused(
            with(vec![Memory {
                neurons: 3..5,
                ..memory.clone()
            }]),
            &[]
        ),
        "memory 0: neurons 3..5 of 4"
    );
    assert_eq!(
        refused(
            with(vec![Memory {
                upstream: vec![0..2, 1..3],
                ..memory.clone()
            }]),
            &[]
        ),
        "memory 0: upstream neurons 1..3 of 4, after 2"
    );
    assert_eq!(
        refused(
            with(vec![
                memory.clone(),
                Memory {
                    neurons: 2..4,
                    ..memory.clone()
                }
            ]),
            &[]
        ),
        "memory 1: neurons 2..4 are also of memory 0"
    );
}

#[test]
fn the_ledger_and_the_candidates_are_what_fired_and_what_arrived() {
    let mut neurons = Neurons::default();
    neurons
        .add(
            70,
            &NeuronOptions {
                threshold: 10.0,
                uniform_psp: true,
                psp: 5,
                ..NeuronOptions::default()
            },
        )
        .expect("it works");
    let synapses = [
        (0, Synapse::fixed(40, 1, false)),
        (0, Synapse::fixed(65, 2, true)),
        (69, Synapse::fixed(40, 1, true)),
    ];
    let network = Arc::new(
        Network::new(
            &neurons,
            Box::new(SynapseList::new(70, &synapses).expect("it works")),
            NetworkOptions::default(),
        )
        .expect("it works"),
    );
    for device in devices() {
        for shards in [1, 2] {
            let options = SimulationOptions {
                ledger: 2,
                candidates: true,
                ..SimulationOptions::default()
            };
            let mut simulation =
                Simulation::sharded(network.clone(), &vec![device.clone(); shards], &options)
                    .expect("it works");
            assert_eq!(simulation.ledger().expect("it works"), []);
            let told: [&[u32]; 4] = [&[3], &[0, 69], &[], &[64]];
            for neurons in told {
                simulation
                    .inject(
                        &neurons
                            .iter()
                            .map(|neuron| (*neuron, 20.0))
                            .collect::<Vec<_>>(),
                    )
                    .expect("it works");
                simulation.run(1).expect("it works");
                if simulation.counts().bursts == 3 {
                    // A neuron whose arrivals cancel is still a candidate.
                    assert_eq!(
                        simulation.candidates().expect("it works"),
                        [(40, 0.0), (65, -10.0)],
                        "{device:?}"
                    );
                }
            }
            let ledger = simulation.ledger().expect("it works");
            let listed: Vec<(u32, Vec<u32>)> = ledger
                .iter()
                .map(|(burst, fired)| (*burst, fired.iter().collect()))
                .collect();
            assert_eq!(
                listed,
                [(2, vec![0, 69]), (3, vec![]), (4, vec![64])],
                "{device:?} in {shards}"
            );
        }
    }
}

#[test]
fn the_tables_of_the_page_are_what_a_network_does() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/spiking.md"
    ))
    .expect("the page");
    for (head, weight_loss) in [
        ("| Source fires in bursts |", WeightLoss::AnyFiring),
        (
            "| Steady source fires in bursts |",
            WeightLoss::SteadySource,
        ),
    ] {
        let rule = PlasticityRule {
            window: 2,
            gain: 10,
            loss: 3,
            weight_loss,
        };
        let table = page.lines().skip_while(|line| !line.contains(head)).skip(2);
        let rows = table
            .map_while(|line| line.trim().strip_prefix("| ")?.strip_suffix(" |"))
            .map(|row| row.split(" | ").collect::<Vec<_>>());
        let mut compared = 0;
        for row in rows {
            let bursts = |cell: &str| {
                cell.split(", ")
                    .filter_map(|burst| burst.parse::<usize>().ok())
                    .collect::<Vec<_>>()
            };
            let (source, target) = (bursts(row[0]), bursts(row[1]));
            let expected = row[2..]
                .iter()
                .map(|weight| weight.parse().expect("a weight"))
                .collect::<Vec<u8>>();
            let firings = (1..=expected.len())
                .map(|burst| (source.contains(&burst), target.contains(&burst)))
                .collect::<Vec<_>>();
            weights(rule, 100, &firings, &expected);
            compared += 1;
        }
        assert_eq!(compared, 6, "{head}");
    }
}

/// Twenty plastic synapses of weight 1 from inputs to outputs, as a robot's genome of the older
/// engine has them.
fn pairs_of_weight_1(weight_loss: crate::genome::WeightLossPolicy) -> crate::genome::Genome {
    let area = |id: &str, mappings: &str| {
        format!(
            r#"{{"cortical_name": "{id}", "group_id": "{id}", "block_boundaries": [1, 1, 20], "mp_charge_accumulation": false, "psp_uniform_distribution": true, "cortical_mapping_dst": {{{mappings}}}}}"#
        )
    };
    let text = format!(
        r#"{{"version": "2.0", "physiology": {{"burst_delay": 0.0125, "plasticity_queue_depth": 3}}, "blueprint": {{"source": {}, "target": {}}}}}"#,
        area("IPU", r#""target": [["projector", 1, 1, true, 1, 1, 1]]"#),
        area("OPU", "")
    );
    read(&text, weight_loss)
}

fn read(text: &str, weight_loss: crate::genome::WeightLossPolicy) -> crate::genome::Genome {
    let options = crate::genome::GenomeOptions {
        weight_loss,
        ..Default::default()
    };
    crate::genome::Genome::parse(text, &options).expect("a genome")
}

/// Events and weights of the pairs after some bursts, by an engine written from the page.
fn expected_pairs(stimulus: &Stimulus, weight_loss: WeightLoss, bursts: u32) -> (u64, Vec<u8>) {
    const WINDOW: usize = 3;
    let (mut weights, mut events) = ([1u8; 20], 0);
    let mut past = vec![[[false; 2]; 20]];
    for burst in 1..=bursts {
        let stimulated = stimulus.of(burst);
        let mut fired = [[false; 2]; 20];
        for (pair, fired) in fired.iter_mut().enumerate() {
            let sends = past[past.len() - 1][pair][0] && weights[pair] > 0;
            events += u64::from(sends);
            let input = stimulated.iter().any(|(neuron, _)| *neuron == pair as u32);
            *fired = [input, sends];
        }
        past.push(fired);
        for (pair, weight) in weights.iter_mut().enumerate() {
            let window = &past[past.len().saturating_sub(WINDOW)..];
            let all = |end: usize| burst >= 3 && window.iter().all(|fired| fired[pair][end]);
            let any = window.iter().any(|fired| fired[pair].contains(&true));
            let loses = match weight_loss {
                WeightLoss::AnyFiring => any,
                WeightLoss::SteadySource => all(0),
            };
            if all(0) && all(1) {
                *weight = weight.saturating_add(1);
            } else if loses {
                *weight = weight.saturating_sub(1);
            }
        }
    }
    (events, weights.to_vec())
}

#[test]
fn a_weight_of_1_lives_by_the_rule_of_the_older_engine() {
    use crate::genome::WeightLossPolicy;
    let genome = pairs_of_weight_1(WeightLossPolicy::Detect);
    let report = genome.weight_loss();
    assert_eq!(report.condition, WeightLoss::SteadySource);
    assert_eq!(
        report.note(),
        "learning: a weight that does not gain loses if its source fired in every burst of the window (weight loss steady_source: version 2.0 without simulation_timestep and genome_schema_version)"
    );
    let mut living = 0;
    for policy in [WeightLossPolicy::Detect, WeightLossPolicy::AnyFiring] {
        let genome = pairs_of_weight_1(policy);
        let weight_loss = genome.weight_loss().condition;
        for (seed, bursts) in [(1, 20), (1, 200), (2, 200), (3, 200)] {
            let stimulus = Stimulus::new(&genome, 0.3, seed).expect("a part");
            let expected = expected_pairs(&stimulus, weight_loss, bursts);
            let (events, weights) = &expected;
            match weight_loss {
                WeightLoss::SteadySource => {
                    assert!(bursts < 200 || *events > 150, "{events}");
                }
                WeightLoss::AnyFiring => assert_eq!((*events, weights), (0, &vec![0; 20])),
            }
            for device in devices() {
                let connected = connect(
                    &genome,
                    ConnectOptions::default(),
                    &mut tectum::WorkProgress::ignore,
                )
                .expect("it works");
                assert_eq!(
                    connected.notes,
                    [
                        "1 mapping loses its whole weight at the first loss, and sends nothing before it gains again: source to target (weight 1, loss 1)"
                    ]
                );
                let options = SimulationOptions {
                    max_inputs: stimulus.max_inputs(),
                    ..SimulationOptions::default()
                };
                let network = Arc::new(connected.network);
                let mut simulation =
                    Simulation::new(network.clone(), &device, &options).expect("it works");
                stimulus.run(&mut simulation, bursts).expect("it runs");
                let synapses = simulation.plastic_synapses().expect("reads");
                let found: Vec<u8> = synapses.iter().map(|synapse| synapse.weight).collect();
                assert_eq!(
                    (simulation.counts().events, found),
                    expected,
                    "{weight_loss:?}, seed {seed}, {bursts} bursts on {device:?}"
                );
                let outcomes = mapping_outcomes(&genome, &network, &[], &synapses);
                let outcomes_by_rule = rule_outcomes(&network, &synapses);
                if expected.1.iter().all(|weight| *weight == 0) {
                    let what =
                        "the weights of all 20 plastic synapses are 0, so that nothing is sent";
                    assert_eq!(outcomes, [format!("source to target: {what}")]);
                    assert_eq!(outcomes_by_rule, [format!("rule 0: {what}")]);
                } else {
                    living += 1;
                    assert_eq!(
                        [outcomes, outcomes_by_rule],
                        [const { Vec::<String>::new() }; 2]
                    );
                }
            }
        }
    }
    assert!(living > 0, "weights live at first");
}

#[test]
fn weights_that_all_reach_the_maximum_are_reported() {
    let rule = PlasticityRule {
        window: 1,
        gain: 200,
        loss: 0,
        weight_loss: WeightLoss::AnyFiring,
    };
    let network = pair(rule, 100);
    let cpu = tectum::Device::open("cpu").expect("there");
    let mut simulation =
        Simulation::new(network.clone(), &cpu, &SimulationOptions::default()).expect("it works");
    let mut outcome = || {
        let synapses = simulation.plastic_synapses().expect("reads");
        let outcome = rule_outcomes(&network, &synapses);
        simulation
            .inject(&[(0, 1500.0), (1, 1500.0)])
            .expect("in range");
        simulation.run(1).expect("it runs");
        outcome
    };
    assert_eq!(outcome(), [""; 0]);
    assert_eq!(
        outcome(),
        ["rule 0: the weight of its 1 plastic synapse is 255, the maximum"]
    );
}

/// Each of two associative mappings between two areas has the synapses of its own direction; one
/// alone has both.
#[test]
fn two_associative_mappings_learn_each_in_its_direction() {
    use crate::genome::WeightLossPolicy;
    let area = |size: u32, mappings: &str| {
        format!(
            r#"{{"block_boundaries": [{size}, 1, 1], "mp_charge_accumulation": true, "cortical_mapping_dst": {{{mappings}}}}}"#
        )
    };
    let there = r#""target": [["associative_memory", 1, 1, true, 1, 10, 1]]"#;
    let back = r#""source": [["associative_memory", 1, -1, true, 1, 33, 2]]"#;
    let silent = r#""source": [["associative_memory", 1, -1, true, 1, 0, 2]]"#;
    // Weights from the source to the target and back after all neurons fired once, and the sign of
    // the latter.
    for (there, back, expected) in [
        (there, back, (Some(10), Some(33), true)),
        (there, "", (Some(10), Some(10), false)),
        ("", back, (Some(33), Some(33), true)),
        (there, silent, (Some(10), None, false)),
    ] {
        let text = format!(
            r#"{{"version": "2.1", "physiology": {{"plasticity_queue_depth": 1}}, "blueprint": {{"source": {}, "target": {}}}}}"#,
            area(2, there),
            area(3, back)
        );
        let genome = read(&text, WeightLossPolicy::Detect);
        let options = ConnectOptions::default();
        let mut inhibitory = Vec::new();
        let synapses = GenomeSynapses::new(&genome, &options).expect("it works");
        for mapping in 0..genome.mappings().len() {
            let visited = synapses.visit(mapping, &mut || Ok(()), |source, synapse| {
                inhibitory.extend((source >= 2).then_some(synapse.inhibitory));
                Ok(())
            });
            visited.expect("it works");
        }
        assert!(inhibitory.iter().all(|sign| *sign == expected.2), "{text}");
        let connected =
            connect(&genome, options, &mut tectum::WorkProgress::ignore).expect("it works");
        let network = Arc::new(connected.network);
        for device in devices() {
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("it works");
            let inputs: Vec<(u32, f32)> = (0..5).map(|neuron| (neuron, 1.0)).collect();
            simulation.inject(&inputs).expect("in range");
            simulation.run(1).expect("it runs");
            let synapses = simulation.plastic_synapses().expect("reads");
            let weight = |is_back: bool| {
                let mut weights = synapses
                    .iter()
                    .filter(|synapse| (synapse.source >= 2) == is_back)
                    .map(|synapse| synapse.weight);
                let first = weights.next()?;
                assert!(weights.all(|weight| weight == first), "{text}");
                Some(first)
            };
            assert_eq!(
                (weight(false), weight(true)),
                (expected.0, expected.1),
                "{device:?}: {text}"
            );
            let pairs = 6 * [expected.0, expected.1].into_iter().flatten().count();
            assert_eq!((synapses.len(), network.synapses()), (pairs, pairs as u64));
        }
    }
}

#[test]
fn the_condition_of_a_loss_is_that_of_the_engine_of_the_file() {
    use crate::genome::WeightLossPolicy::{AnyFiring, Detect, SteadySource};
    let of = |head: &str, policy| {
        let text =
            format!(r#"{{{head}, "blueprint": {{"area00": {{"block_boundaries": [1, 1, 1]}}}}}}"#);
        let report = read(&text, policy).weight_loss().clone();
        (report.condition.name(), report.evidence)
    };
    for (head, policy, condition, evidence) in [
        (
            r#""version": "2.1""#,
            Detect,
            "any_firing",
            "the file has version 2.1",
        ),
        (
            r#""version": "2.0", "physiology": {"simulation_timestep": 0.1}"#,
            Detect,
            "any_firing",
            "the file has simulation_timestep",
        ),
        (
            r#""version": "2.0", "genome_schema_version": 4"#,
            Detect,
            "any_firing",
            "the file has genome_schema_version 4",
        ),
        (
            r#""version": "2.0", "physiology": {"burst_delay": 0.1}"#,
            Detect,
            "steady_source",
            "version 2.0 without simulation_timestep and genome_schema_version",
        ),
        (
            r#""version": "2.1""#,
            SteadySource,
            "steady_source",
            "as requested",
        ),
        (
            r#""version": "2.0""#,
            AnyFiring,
            "any_firing",
            "as requested",
        ),
    ] {
        assert_eq!(of(head, policy), (condition, evidence.to_owned()), "{head}");
    }
    let error = "old"
        .parse::<crate::genome::WeightLossPolicy>()
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "weight loss \"old\": detect, any_firing or steady_source needed"
    );
}

#[test]
fn the_pages_table_of_refractory_periods_is_what_a_network_does() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/spiking.md"
    ))
    .expect("the page");
    let table = page
        .lines()
        .skip_while(|line| !line.contains("| Window | Refractory period |"))
        .skip(2);
    let rows = table
        .map_while(|line| line.trim().strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect::<Vec<_>>());
    let mut count = 0;
    for row in rows {
        let [window, refractory, limit, expected] = row[..4] else {
            panic!("{row:?}")
        };
        let number = |text: &str| {
            if text == "none" {
                0
            } else {
                text.parse().expect("a number")
            }
        };
        let kind = NeuronOptions {
            threshold: 1000.0,
            charge_accumulation: false,
            refractory: number(refractory),
            consecutive_fire_limit: number(limit),
            ..NeuronOptions::default()
        };
        let mut neurons = Neurons::default();
        neurons.add(2, &kind).expect("it works");
        let rules = vec![PlasticityRule {
            window: u32::from(number(window)),
            gain: 10,
            loss: 3,
            weight_loss: WeightLoss::AnyFiring,
        }];
        let synapse = Synapse {
            target: 1,
            weight: 100,
            inhibitory: false,
            plasticity: Some(0),
        };
        let options = NetworkOptions {
            plasticity: rules,
            max_injected: 2000.0,
            ..NetworkOptions::default()
        };
        let network = Arc::new(
            Network::new(
                &neurons,
                Box::new(SynapseList::new(2, &[(0, synapse)]).expect("it works")),
                options,
            )
            .expect("it works"),
        );
        for device in devices() {
            let mut simulation =
                Simulation::new(network.clone(), &device, &SimulationOptions::default())
                    .expect("it works");
            for _ in 0..10 {
                simulation
                    .inject(&[(0, 1500.0), (1, 1500.0)])
                    .expect("it works");
                simulation.run(1).expect("it works");
            }
            assert_eq!(
                simulation.plastic_synapses().expect("it works")[0].weight,
                expected.parse::<u8>().expect("a weight"),
                "{device:?}: {row:?}"
            );
        }
        count += 1;
    }
    assert_eq!(count, 7, "the page has the table");
}
