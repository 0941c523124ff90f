//! Stimuli next to injections, and their maximum.

use std::sync::Arc;

use tectum::{Device, ErrorKind};

use crate::genome::{Genome, GenomeOptions};
use crate::{ConnectOptions, Network, Simulation, SimulationOptions, Stimulus, connect};

/// An input area of two neurons, whose threshold is far away.
fn genome() -> Genome {
    let text = r#"{"version": "2.1", "blueprint": {"i__eye":
        {"group_id": "IPU", "block_boundaries": [2, 1, 1], "mp_charge_accumulation": true, "firing_threshold": 5000}}}"#;
    Genome::parse(text, &GenomeOptions::default()).expect("a genome")
}

fn network(genome: &Genome) -> Arc<Network> {
    let options = ConnectOptions::default();
    let connected = connect(genome, options, &mut tectum::WorkProgress::ignore);
    Arc::new(connected.expect("it works").network)
}

fn simulation(network: &Arc<Network>, max_inputs: usize) -> Simulation {
    let cpu = Device::open("cpu").expect("there");
    let options = SimulationOptions {
        max_inputs,
        ..SimulationOptions::default()
    };
    Simulation::new(network.clone(), &cpu, &options).expect("it works")
}

#[test]
fn a_stimulus_and_injections_add_up() {
    let genome = genome();
    let stimulus = Stimulus::new(&genome, 1.0, 0).expect("a part");
    let stimulus = stimulus.with_amount(2.0).expect("finite");
    // Draws are below the chance, which is the largest number.
    assert_eq!(stimulus.of(1).len(), 2);
    let mut simulation = simulation(&network(&genome), 2);
    simulation.inject(&[(1, 1.5)]).expect("in range");
    stimulus.run(&mut simulation, 1).expect("it runs");
    assert_eq!(simulation.potentials().expect("reads"), [2.0, 3.5]);
    stimulus.run(&mut simulation, 1).expect("it runs");
    assert_eq!(simulation.potentials().expect("reads"), [4.0, 5.5]);
    // Opposite amounts of the same neuron.
    simulation.inject(&[(0, -2.0)]).expect("in range");
    stimulus.run(&mut simulation, 1).expect("it runs");
    assert_eq!(simulation.potentials().expect("reads"), [4.0, 7.5]);
}

#[test]
fn a_sum_beyond_the_maximum_is_refused_and_the_run_can_go_on() {
    let genome = genome();
    let stimulus = Stimulus::new(&genome, 1.0, 0).expect("a part");
    let stimulus = stimulus.with_amount(100.0).expect("finite");
    let mut simulation = simulation(&network(&genome), 2);
    simulation.inject(&[(0, 1000.0)]).expect("in range");
    let error = stimulus.run(&mut simulation, 1).expect_err("too much");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Invalid,
            "neuron 0: an injection of 1000 and a stimulus of 100 in one burst; the maximum of their sum is 1024 either way".to_owned()
        )
    );
    stimulus
        .run(&mut simulation, 1)
        .expect("nothing is injected");
    assert_eq!(simulation.potentials().expect("reads"), [100.0, 100.0]);
    // A sum takes one place of an injection.
    simulation.inject(&[(0, 1.0)]).expect("in range");
    stimulus.run(&mut simulation, 1).expect("two places");
}

#[test]
fn an_amount_beyond_the_maximum_is_refused_before_the_first_burst() {
    let genome = genome();
    let network = network(&genome);
    let rare = |amount: f32| {
        let stimulus = Stimulus::new(&genome, 1e-6, 0).expect("a part");
        stimulus.with_amount(amount).expect("finite")
    };
    for amount in [1024.0, -1024.0] {
        let mut simulation = simulation(&network, 2);
        let counts = rare(amount).run(&mut simulation, 3).expect("it runs");
        assert_eq!(counts.bursts, 3);
    }
    for amount in [1024.5, -2000.0] {
        let mut simulation = simulation(&network, 2);
        let error = rare(amount).run(&mut simulation, 3).expect_err("too much");
        assert_eq!(
            (simulation.counts().bursts, error.to_string()),
            (
                0,
                format!(
                    "an injection of {amount} into each stimulated neuron; the maximum is 1024 either way"
                )
            )
        );
    }
    let none = Stimulus::new(&genome, 0.0, 0).expect("a part");
    let none = none.with_amount(2000.0).expect("finite");
    none.check(&network).expect("it stimulates nothing");
}
