//! The engine compared with a naive one, and every row of the list of disagreements worked out by
//! hand.

mod api_fuzz;
mod formats;
mod learnt;
#[cfg(feature = "genome")]
mod stimulated;
mod worked;

use std::sync::Arc;

use tectum::Device;

use super::conformance::{
    RandomNetwork, RunSchedule, compare, inputs, learning_network, plastic, random_network,
};
use super::reference::ReferenceNetwork;
use super::*;
use tectum_bench::api_fuzz::Random;

/// Neurons of the largest group.
const LARGEST_GROUP: u64 = 60;

fn case(seed: u64) -> RandomNetwork {
    random_network(seed, LARGEST_GROUP)
}

fn learning_case(seed: u64) -> RandomNetwork {
    learning_network(seed, LARGEST_GROUP)
}

fn network(case: &RandomNetwork) -> Arc<Network> {
    case.network().expect("it works")
}

/// Results of runs of learning networks.
#[derive(Default)]
struct Learnt {
    grown: usize,
    shrunk: usize,
    formed: u32,
    lost: u32,
}

/// Runs a case in single bursts; see [`compare`].
fn check(seed: u64, case: &RandomNetwork, devices: &[Device], bursts: u32) -> Learnt {
    let naive =
        compare(seed, case, devices, RunSchedule::new(bursts, 1), |_, _| {}).expect("it works");
    let begun = case
        .synapses
        .iter()
        .filter(|(_, synapse)| synapse.plasticity.is_some())
        .map(|(_, synapse)| u32::from(synapse.weight))
        .sum::<u32>();
    let now = naive
        .plastic()
        .iter()
        .map(|(.., weight)| *weight as u32)
        .sum::<u32>();
    Learnt {
        grown: usize::from(now > begun),
        shrunk: usize::from(now < begun),
        formed: naive.formed,
        lost: naive.lost,
    }
}

/// Runs learning networks on devices and checks that they learn.
fn check_learning(seeds: std::ops::Range<u64>, devices: impl Fn(u64) -> Vec<Device>, bursts: u32) {
    let mut all = Learnt::default();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let Learnt {
            grown,
            shrunk,
            formed,
            lost,
        } = check(seed, &learning_case(seed), &devices(seed), bursts);
        all = Learnt {
            grown: all.grown + grown,
            shrunk: all.shrunk + shrunk,
            formed: all.formed + formed,
            lost: all.lost + lost,
        };
    }
    let Learnt {
        grown,
        shrunk,
        formed,
        lost,
    } = all;
    println!(
        "{count} learning networks: {grown} have grown, {shrunk} shrunk; {formed} patterns formed, {lost} lost"
    );
    assert!(
        grown as u64 > count / 10
            && shrunk as u64 > count / 10
            && u64::from(formed) > count
            && lost > 0
    );
}

fn cpu() -> Device {
    Device::open("cpu").expect("it works")
}

#[test]
fn two_hundred_random_networks_fire_as_the_naive_engine_says() {
    let cpu = cpu();
    for seed in 0..200 {
        check(seed, &case(seed), std::slice::from_ref(&cpu), 60);
    }
}

#[test]
fn shards_fire_as_the_naive_engine_says() {
    let cpu = cpu();
    for seed in 200..260 {
        let shards = 2 + (seed % 2) as usize;
        check(seed, &case(seed), &vec![cpu.clone(); shards], 40);
    }
}

#[test]
fn learning_networks_do_as_the_naive_engine_says() {
    check_learning(600..760, |_| vec![cpu()], 40);
}

#[test]
fn learning_networks_in_shards_do_as_the_naive_engine_says() {
    check_learning(760..800, |seed| vec![cpu(); 2 + (seed % 2) as usize], 30);
}

#[test]
fn learning_networks_on_devices_do_as_the_naive_engine_says() {
    for id in ["vulkan:0", "cuda:0"] {
        match Device::open(id) {
            Ok(device) => check_learning(800..824, |_| vec![device.clone()], 25),
            Err(error) => eprintln!("skipped: {id}: {error}"),
        }
    }
}

#[test]
fn batches_of_bursts_are_bursts() {
    (300..380).for_each(|seed| check_batches(seed, &cpu()));
    match Device::open("vulkan:0") {
        Ok(device) => (300..304)
            .chain(340..344)
            .for_each(|seed| check_batches(seed, &device)),
        Err(error) => eprintln!("skipped: {error}"),
    }
}

/// Compares fifty bursts in as few submissions as possible on a device with fifty submissions on
/// the CPU.
fn check_batches(seed: u64, device: &Device) {
    let case = if seed < 340 {
        case(seed)
    } else {
        learning_case(seed)
    };
    let network = network(&case);
    let options = SimulationOptions {
        constant_inputs: case.constant_inputs.clone(),
        ..SimulationOptions::default()
    };
    let mut whole = Simulation::new(network.clone(), device, &options).expect("it works");
    let mut single = Simulation::new(network, &cpu(), &options).expect("it works");
    whole.run(50).expect("it works");
    assert!(
        whole.stats().launches > 100 && whole.stats().transfers_up < 10,
        "{:?}",
        whole.stats()
    );
    (0..50).for_each(|_| {
        single.run(1).expect("it works");
    });
    assert_eq!(whole.counts(), single.counts(), "seed {seed} on {device:?}");
    assert_eq!(
        whole.potentials().expect("it works"),
        single.potentials().expect("it works"),
        "seed {seed} on {device:?}"
    );
    assert_eq!(
        whole.plastic_synapses().expect("it works"),
        single.plastic_synapses().expect("it works"),
        "seed {seed} on {device:?}"
    );
}

#[test]
fn synapses_of_another_number_of_neurons_are_refused() {
    let mut neurons = Neurons::default();
    neurons.add(2, &NeuronOptions::default()).expect("fits");
    for sources in [1, 3] {
        let rows =
            SynapseList::new(sources, &[(0, Synapse::fixed(1, 1, false))]).expect("in range");
        let error =
            Network::new(&neurons, Box::new(rows), NetworkOptions::default()).expect_err("refused");
        assert_eq!(
            error.to_string(),
            format!("synapses of {sources} neurons for a network of 2")
        );
    }
}

#[test]
fn recorded_neurons_are_reported_in_the_order_of_the_list() {
    let vulkan = Device::open_if_present("vulkan:0").expect("absent or usable");
    if vulkan.is_none() {
        eprintln!("skipped: vulkan:0 is absent");
    }
    let devices = [vec![cpu()], vec![cpu(); 3]].into_iter().chain(
        vulkan
            .into_iter()
            .flat_map(|device| [vec![device.clone()], vec![device, cpu()]]),
    );
    let mut neurons = Neurons::default();
    neurons
        .add(
            20_000,
            &NeuronOptions {
                excitability: 0.5,
                uniform_psp: true,
                ..NeuronOptions::default()
            },
        )
        .expect("it works");
    // Every neuron reaches the one 4,999 after it, so half of the firing neurons fire again.
    let synapse = |source: u32| (source, Synapse::fixed((source + 4_999) % 20_000, 1, false));
    let rows = SynapseList::new(neurons.len(), &(0..20_000).map(synapse).collect::<Vec<_>>())
        .expect("it works");
    let network = Arc::new(
        Network::new(&neurons, Box::new(rows), NetworkOptions::default()).expect("it works"),
    );
    // One range of words, two adjacent ones, one at the end.
    let watched = vec![
        19_990..20_000,
        2_040..2_060,
        70..75,
        4_100..4_101,
        10_239..10_240,
    ];
    // Half of all neurons fire, so shards exchange bits.
    let mut counts = Vec::new();
    for devices in devices {
        let options = SimulationOptions {
            max_inputs: 20_000,
            recorded_neurons: watched.clone(),
            ..SimulationOptions::default()
        };
        let mut simulation =
            Simulation::sharded(network.clone(), &devices, &options).expect("it works");
        assert!(!simulation.has_fired(70));
        let mut told = 0;
        for bursts in [1, 1, 2, 16, 1, 17] {
            simulation
                .inject(&(0..20_000).map(|neuron| (neuron, 1.0)).collect::<Vec<_>>())
                .expect("it works");
            simulation.run(bursts).expect("it works");
            let fired = simulation.fired().expect("it works");
            for neuron in watched.iter().cloned().flatten() {
                assert_eq!(
                    simulation.has_fired(neuron),
                    fired.binary_search(&neuron).is_ok(),
                    "neuron {neuron} after {bursts} on {devices:?}"
                );
                told += u32::from(simulation.has_fired(neuron));
            }
        }
        assert!(told > 20, "{told}");
        counts.push(simulation.counts());
        let snapshot = simulation.snapshot().expect("it works");
        simulation.restore(&snapshot).expect("it works");
        assert!(
            watched
                .iter()
                .cloned()
                .flatten()
                .all(|neuron| !simulation.has_fired(neuron))
        );
    }
    assert!(
        counts.windows(2).all(|pair| pair[0] == pair[1]),
        "{counts:?}"
    );
}

#[test]
fn a_snapshot_goes_on_as_if_nothing_had_been() {
    for seed in 500..580 {
        let case = if seed < 540 {
            case(seed)
        } else {
            learning_case(seed)
        };
        let network = network(&case);
        let options = SimulationOptions {
            constant_inputs: case.constant_inputs.clone(),
            ..SimulationOptions::default()
        };
        let mut whole = Simulation::new(network.clone(), &cpu(), &options).expect("it works");
        let random = &mut Random(seed);
        let mut feed = |simulations: &mut [&mut Simulation]| {
            let inputs = inputs(random, u64::from(network.neurons()));
            for simulation in simulations {
                simulation.inject(&inputs).expect("it works");
                simulation.run(1).expect("it works");
            }
        };
        (0..17).for_each(|_| feed(&mut [&mut whole]));
        let bytes = whole.snapshot().expect("it works").to_bytes();
        let snapshot = tectum::snapshot::Snapshot::parse(&bytes).expect("it works");
        // A different number of shards, in the middle of another run.
        let mut other = Simulation::sharded(
            network.clone(),
            &vec![cpu(); 1 + seed as usize % 3],
            &options,
        )
        .expect("it works");
        other.run(5).expect("it works");
        other.restore(&snapshot).expect("it works");
        assert_eq!(other.snapshot().expect("it works"), snapshot, "seed {seed}");
        (0..20).for_each(|_| feed(&mut [&mut whole, &mut other]));
        assert_eq!(other.counts(), whole.counts(), "seed {seed}");
        assert_eq!(
            other.potentials().expect("it works"),
            whole.potentials().expect("it works"),
            "seed {seed}"
        );
    }
}

#[test]
fn snapshots_with_impossible_states_are_refused_or_run() {
    hostile_snapshots(
        &network(&case(3)),
        &[
            "potential",
            "last",
            "ready",
            "consecutive",
            "fired",
            "counts",
            "network",
        ],
    );
}

#[test]
fn snapshots_that_have_learnt_the_impossible_are_refused_or_run() {
    let case = (900..)
        .map(learning_case)
        .find(|case| case.options.memories.len() == 2)
        .expect("there is one");
    hostile_snapshots(
        &network(&case),
        &[
            "ledger",
            "histories",
            "weights",
            "seen",
            "kept",
            "fired",
            "counts",
        ],
    );
}

fn hostile_snapshots(network: &Arc<Network>, names: &[&'static str]) {
    use tectum::snapshot::{Array, Snapshot};
    let neurons = network.neurons() as usize;
    let mut simulation =
        Simulation::new(network.clone(), &cpu(), &SimulationOptions::default()).expect("it works");
    simulation.inject(&[(0, 50.0)]).expect("it works");
    simulation.run(9).expect("it works");
    let whole = simulation.snapshot().expect("it works");
    let random = &mut Random(8);
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..2000 {
        let mut hostile = whole.clone();
        for _ in 0..=random.below(3) {
            let value = random.pick(&[0, 1, 9, 10, 70_000, 1 << 30, u32::MAX - 1, u32::MAX]);
            let name = random.pick(names);
            match name {
                "counts" | "network" => {
                    let mut words = whole
                        .u64(name, whole.len_of(name).expect("it is there"))
                        .expect("it is there")
                        .to_vec();
                    let at = random.below(words.len() as u64) as usize;
                    words[at] = u64::from(value) << random.below(33);
                    hostile.insert(name, Array::U64(words));
                }
                name if whole.len_of(name).is_some() => {
                    let right = whole
                        .len_of(name)
                        .filter(|_| name != "fired")
                        .unwrap_or(neurons);
                    let length = random.pick(&[right, right, right, right + 1, 0, 2, 4]);
                    // All words, or a few.
                    let mut words = whole
                        .u32(name, whole.len_of(name).expect("it is there"))
                        .expect("it is there")
                        .to_vec();
                    words.resize(length, 0);
                    let few = random.below(2) == 0;
                    words
                        .iter_mut()
                        .filter(|_| !few || random.below(40) == 0)
                        .for_each(|word| *word = value);
                    hostile.insert(name, Array::U32(words));
                }
                _ => {}
            }
        }
        let before = simulation.snapshot().expect("it works");
        match simulation.restore(&hostile) {
            Ok(()) => {
                // Any accepted state can be run, up to the largest burst number.
                let _ = simulation.run(3);
                ran += 1;
            }
            Err(_) => {
                assert_eq!(
                    simulation.snapshot().expect("it works"),
                    before,
                    "nothing changed"
                );
                refused += 1;
            }
        }
        simulation.restore(&whole).expect("it works");
    }
    assert!(refused > 100 && ran > 100, "{refused} refused, {ran} ran");
    assert!(simulation.restore(&Snapshot::default()).is_err());
}

#[test]
fn a_snapshot_of_another_network_is_refused() {
    let simulation = |seed: u64| {
        Simulation::new(network(&case(seed)), &cpu(), &SimulationOptions::default())
            .expect("it works")
    };
    let snapshot = simulation(1).snapshot().expect("it works");
    let error = simulation(2).restore(&snapshot).expect_err("it is refused");
    assert_eq!(
        error.to_string(),
        "the snapshot is of another network, or of the same with other options"
    );
}

#[test]
fn device_networks_fire_as_the_naive_engine_says() {
    for id in ["vulkan:0", "cuda:0"] {
        match Device::open(id) {
            Ok(device) => {
                for seed in 400..424 {
                    check(seed, &case(seed), std::slice::from_ref(&device), 25);
                }
            }
            Err(error) => eprintln!("skipped: {id}: {error}"),
        }
    }
}
