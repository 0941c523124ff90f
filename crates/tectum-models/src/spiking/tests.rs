//! The engine against a naive one, and every row of the list of disagreements worked by hand.

mod api_fuzz;
mod learnt;
mod naive;
mod worked;

use std::sync::Arc;

use tectum::Device;

use self::naive::Naive;
use super::*;

/// A small generator for tests: `SplitMix64` (S. Vigna).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// A network with random options, as the engine and the naive one take it.
struct Case {
    groups: Vec<(u32, NeuronOptions)>,
    synapses: Vec<(u32, Synapse)>,
    options: NetworkOptions,
    steady: Vec<(u32, f32)>,
}

fn case(seed: u64) -> Case {
    let random = &mut Random(seed);
    let group = |random: &mut Random| {
        let threshold = random.pick(&[1.0, 1.0, 3.0, 0.5, 20.0, 0.0, -1.0]);
        let options = NeuronOptions {
            threshold,
            threshold_limit: random.pick(&[None, None, None, Some(threshold + 2.0)]),
            resting_potential: random.pick(&[0.0, 0.0, 0.0, 0.25, -0.5]),
            leak: random.pick(&[0.0, 0.0, 0.1, 0.5, 1.0, 0.003]),
            excitability: random.pick(&[1.0, 1.0, 1.0, 0.5, 0.05, 0.0]),
            refractory: random.pick(&[0, 0, 0, 1, 3]),
            consecutive_fire_limit: random.pick(&[0, 0, 3, 1, 65_535]),
            snooze: random.pick(&[0, 2, 5]),
            charge_accumulation: random.below(4) > 0,
            psp: random.pick(&[1, 5, 255, 0]),
            uniform_psp: random.below(2) == 0,
            potential_driven_psp: random.below(5) == 0,
        };
        (1 + random.below(60) as u32, options)
    };
    let groups: Vec<_> = (0..1 + random.below(5)).map(|_| group(random)).collect();
    let neurons: u64 = groups.iter().map(|(count, _)| u64::from(*count)).sum();
    let mut synapses = Vec::new();
    for _ in 0..random.below(neurons * 8) {
        let synapse = Synapse::fixed(random.below(neurons) as u32, random.pick(&[1, 1, 2, 9, 255]), random.below(4) == 0);
        synapses.push((random.below(neurons) as u32, synapse));
    }
    let silence = random.pick(&[Silence::Counts, Silence::Counts, Silence::Skips]);
    let steady = (0..random.below(4).min(neurons)).map(|neuron| (neuron as u32, 1.0 + neuron as f32)).collect();
    let options = NetworkOptions { silence, seed: random.next() as u32, most_injected: 100.0, ..NetworkOptions::default() };
    Case { groups, synapses, options, steady }
}

/// The same, where half of the synapses learn, and with a memory or two.
fn learning_case(seed: u64) -> Case {
    let mut case = case(seed);
    let random = &mut Random(seed ^ 0x1ea4);
    let own: u64 = case.groups.iter().map(|(count, _)| u64::from(*count)).sum();
    // Livelier than those of other cases, so that the same fires again.
    for (_, options) in &mut case.groups {
        options.excitability = random.pick(&[1.0, 1.0, 0.8]);
        options.threshold = random.pick(&[1.0, 0.5, 0.0]);
        options.uniform_psp = true;
    }
    let rule = |random: &mut Random| PlasticityRule {
        window: random.pick(&[1, 1, 2, 3, 5, 9]),
        gain: random.pick(&[1, 3, 100, 0]),
        loss: random.pick(&[1, 1, 2, 50, 0]),
    };
    case.options.plasticity = (0..1 + random.below(3)).map(|_| rule(random)).collect();
    let rules = case.options.plasticity.len() as u64;
    for (_, synapse) in &mut case.synapses {
        synapse.plasticity = (random.below(2) == 0).then(|| random.below(rules) as u8);
        if synapse.plasticity.is_some() {
            synapse.weight = random.pick(&[0, 1, 9, 250]);
        }
    }
    let mut first = own as u32;
    for _ in 0..random.below(3) {
        let count = 1 + random.below(12) as u32;
        let neurons = first..first + count;
        case.groups.push((count, NeuronOptions { threshold: 0.0, uniform_psp: random.below(2) == 0, ..NeuronOptions::default() }));
        let split = random.below(own) as u32;
        // What it sees may be the memory before.
        let upstream: Vec<_> = [0..split.min(9), split.max(9)..(split.max(9) + 5).min(neurons.start)].into_iter().filter(|range| !range.is_empty()).collect();
        for source in neurons.clone() {
            for _ in 0..random.below(6) {
                let synapse = Synapse {
                    plasticity: (random.below(3) > 0).then(|| random.below(rules) as u8),
                    ..Synapse::fixed(random.below(own) as u32, random.pick(&[0, 1, 30]), false)
                };
                case.synapses.push((source, synapse));
                let back = Synapse { plasticity: Some(random.below(rules) as u8), ..Synapse::fixed(source, 0, false) };
                case.synapses.push((random.below(own) as u32, back));
            }
        }
        let lifespan = |random: &mut Random| 1 + random.below(6) as u32;
        case.options.memories.push(Memory {
            upstream,
            neurons: neurons.clone(),
            depth: 1 + random.below(3) as u32,
            initial_lifespan: lifespan(random),
            lifespan_growth: random.below(5) as u32,
            longterm_threshold: random.pick(&[9, 20, 100]),
        });
        first = neurons.end;
    }
    case
}

fn network(case: &Case) -> Arc<Network> {
    let mut neurons = Neurons::default();
    for (count, options) in &case.groups {
        neurons.add(*count, options).expect("it works");
    }
    let rows = SynapseList::new(neurons.len(), &case.synapses).expect("it works");
    Arc::new(Network::new(&neurons, Box::new(rows), case.options.clone()).expect("it works"))
}

/// What arrives from outside in a burst: now and then a few neurons.
fn inputs(random: &mut Random, neurons: u64) -> Vec<(u32, f32)> {
    let mut inputs: Vec<(u32, f32)> = Vec::new();
    for _ in 0..random.below(6) {
        let neuron = random.below(neurons) as u32;
        if !inputs.iter().any(|(other, _)| *other == neuron) {
            inputs.push((neuron, random.pick(&[1.0, 30.0, 0.4, -2.0])));
        }
    }
    if random.below(3) == 0 { inputs } else { Vec::new() }
}

/// What runs of learning networks came to.
#[derive(Default)]
struct Learning {
    grown: usize,
    shrunk: usize,
    formed: u32,
    lost: u32,
}

/// Runs a case on some devices beside the naive engine: the same firings, potentials and weights after every burst.
fn check(seed: u64, case: &Case, devices: &[Device], parts: Option<u32>, bursts: u32) -> Learning {
    let network = network(case);
    let mut naive = Naive::new(&case.groups, &case.synapses, &case.options, network.fraction_bits());
    let options = SimulationOptions { steady: case.steady.clone(), parts, ..SimulationOptions::default() };
    let mut simulation = Simulation::sharded(network, devices, &options).expect("it works");
    let random = &mut Random(seed ^ 0xabcd);
    for burst in 1..=bursts {
        let inputs = inputs(random, naive.len() as u64);
        simulation.inject(&inputs).expect("it works");
        simulation.run(1).expect("it works");
        let fired = naive.burst(case.steady.iter().chain(&inputs));
        assert_eq!(simulation.fired().expect("it works"), fired, "seed {seed}, burst {burst}: firings");
        assert_eq!(
            simulation.potentials().expect("it works"),
            naive.potentials(),
            "seed {seed}, burst {burst}: potentials of {:?} with {:?}",
            case.groups,
            case.options
        );
        let mut plastic: Vec<_> = simulation
            .plastic_synapses()
            .expect("it works")
            .into_iter()
            .map(|synapse| (synapse.rule, synapse.source, synapse.target, synapse.inhibitory, i64::from(synapse.weight)))
            .collect();
        plastic.sort_unstable();
        assert_eq!(plastic, naive.plastic(), "seed {seed}, burst {burst}: weights with {:?}", case.options.plasticity);
    }
    assert_eq!(simulation.counts(), naive.counts(), "seed {seed}");
    let memories = simulation.memories().expect("it works");
    let sum = |count: fn(&MemoryReport) -> u32| memories.iter().map(count).sum::<u32>();
    assert_eq!((sum(|memory| memory.formed), sum(|memory| memory.lost)), (naive.formed, naive.lost), "seed {seed}");
    let begun = case.synapses.iter().filter(|(_, synapse)| synapse.plasticity.is_some()).map(|(_, synapse)| u32::from(synapse.weight)).sum::<u32>();
    let now = naive.plastic().iter().map(|(.., weight)| *weight as u32).sum::<u32>();
    Learning { grown: usize::from(now > begun), shrunk: usize::from(now < begun), formed: naive.formed, lost: naive.lost }
}

/// Learning networks on devices, and that they do learn.
fn check_learning(seeds: std::ops::Range<u64>, devices: impl Fn(u64) -> Vec<Device>, bursts: u32) {
    let mut all = Learning::default();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let Learning { grown, shrunk, formed, lost } = check(seed, &learning_case(seed), &devices(seed), None, bursts);
        all = Learning { grown: all.grown + grown, shrunk: all.shrunk + shrunk, formed: all.formed + formed, lost: all.lost + lost };
    }
    let Learning { grown, shrunk, formed, lost } = all;
    println!("{count} learning networks: {grown} have grown, {shrunk} shrunk; {formed} patterns formed, {lost} lost");
    assert!(grown as u64 > count / 10 && shrunk as u64 > count / 10 && u64::from(formed) > count && lost > 0);
}

fn cpu() -> Device {
    Device::open("cpu").expect("it works")
}

#[test]
fn two_hundred_random_networks_fire_as_the_naive_engine_says() {
    let cpu = cpu();
    for seed in 0..200 {
        check(seed, &case(seed), std::slice::from_ref(&cpu), None, 60);
    }
}

#[test]
fn shards_fire_as_the_naive_engine_says() {
    let cpu = cpu();
    for seed in 200..260 {
        let shards = 2 + (seed % 2) as usize;
        check(seed, &case(seed), &vec![cpu.clone(); shards], None, 40);
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
        Ok(device) => (300..304).chain(340..344).for_each(|seed| check_batches(seed, &device)),
        Err(error) => eprintln!("skipped: {error}"),
    }
}

/// Fifty bursts in as few submissions as a device makes of them against fifty submissions on the CPU.
fn check_batches(seed: u64, device: &Device) {
    let case = if seed < 340 { case(seed) } else { learning_case(seed) };
    let network = network(&case);
    let options = SimulationOptions { steady: case.steady.clone(), ..SimulationOptions::default() };
    let mut whole = Simulation::new(network.clone(), device, &options).expect("it works");
    let mut single = Simulation::new(network, &cpu(), &options).expect("it works");
    whole.run(50).expect("it works");
    assert!(whole.stats().launches > 100 && whole.stats().transfers_up < 10, "{:?}", whole.stats());
    (0..50).for_each(|_| {
        single.run(1).expect("it works");
    });
    assert_eq!(whole.counts(), single.counts(), "seed {seed} on {device:?}");
    assert_eq!(whole.potentials().expect("it works"), single.potentials().expect("it works"), "seed {seed} on {device:?}");
    assert_eq!(whole.plastic_synapses().expect("it works"), single.plastic_synapses().expect("it works"), "seed {seed} on {device:?}");
}

#[test]
fn watched_neurons_are_told_as_the_list_has_them() {
    let vulkan = Device::open("vulkan:0").map_err(|error| eprintln!("skipped: {error}"));
    let devices = [vec![cpu()], vec![cpu(); 3]].into_iter().chain(vulkan.into_iter().flat_map(|device| [vec![device.clone()], vec![device, cpu()]]));
    let mut neurons = Neurons::default();
    neurons.add(20_000, &NeuronOptions { excitability: 0.5, uniform_psp: true, ..NeuronOptions::default() }).expect("it works");
    // Every neuron reaches the one 4,999 after it, so half of what fires does so again.
    let synapse = |source: u32| (source, Synapse::fixed((source + 4_999) % 20_000, 1, false));
    let rows = SynapseList::new(neurons.len(), &(0..20_000).map(synapse).collect::<Vec<_>>()).expect("it works");
    let network = Arc::new(Network::new(&neurons, Box::new(rows), NetworkOptions::default()).expect("it works"));
    // One run of words, two that touch, one at the end.
    let watched = vec![19_990..20_000, 2_040..2_060, 70..75, 4_100..4_101, 10_239..10_240];
    // Half of all fires, so shards hand that over as bits.
    let mut counts = Vec::new();
    for devices in devices {
        let options = SimulationOptions { most_inputs: 20_000, watched: watched.clone(), ..SimulationOptions::default() };
        let mut simulation = Simulation::sharded(network.clone(), &devices, &options).expect("it works");
        assert!(!simulation.has_fired(70));
        let mut told = 0;
        for bursts in [1, 1, 2, 16, 1, 17] {
            simulation.inject(&(0..20_000).map(|neuron| (neuron, 1.0)).collect::<Vec<_>>()).expect("it works");
            simulation.run(bursts).expect("it works");
            let fired = simulation.fired().expect("it works");
            for neuron in watched.iter().cloned().flatten() {
                assert_eq!(simulation.has_fired(neuron), fired.binary_search(&neuron).is_ok(), "neuron {neuron} after {bursts} on {devices:?}");
                told += u32::from(simulation.has_fired(neuron));
            }
        }
        assert!(told > 20, "{told}");
        counts.push(simulation.counts());
        let snapshot = simulation.snapshot().expect("it works");
        simulation.restore(&snapshot).expect("it works");
        assert!(watched.iter().cloned().flatten().all(|neuron| !simulation.has_fired(neuron)));
    }
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?}");
}

#[test]
fn a_snapshot_goes_on_as_if_nothing_had_been() {
    for seed in 500..580 {
        let case = if seed < 540 { case(seed) } else { learning_case(seed) };
        let network = network(&case);
        let options = SimulationOptions { steady: case.steady.clone(), ..SimulationOptions::default() };
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
        let bytes = whole.snapshot().expect("it works").to_bytes().expect("it works");
        let snapshot = crate::snapshot::Snapshot::parse(&bytes).expect("it works");
        // Another number of shards, in the midst of another run.
        let mut other = Simulation::sharded(network.clone(), &vec![cpu(); 1 + seed as usize % 3], &options).expect("it works");
        other.run(5).expect("it works");
        other.restore(&snapshot).expect("it works");
        assert_eq!(other.snapshot().expect("it works"), snapshot, "seed {seed}");
        (0..20).for_each(|_| feed(&mut [&mut whole, &mut other]));
        assert_eq!(other.counts(), whole.counts(), "seed {seed}");
        assert_eq!(other.potentials().expect("it works"), whole.potentials().expect("it works"), "seed {seed}");
    }
}

#[test]
fn snapshots_with_impossible_states_are_refused_or_run() {
    hostile_snapshots(&network(&case(3)), &["potential", "last", "ready", "consecutive", "fired", "counts", "network"]);
}

#[test]
fn snapshots_that_have_learnt_the_impossible_are_refused_or_run() {
    let case = (900..).map(learning_case).find(|case| case.options.memories.len() == 2).expect("there is one");
    hostile_snapshots(&network(&case), &["ledger", "histories", "weights", "seen", "kept", "fired", "counts"]);
}

fn hostile_snapshots(network: &Arc<Network>, names: &[&'static str]) {
    use crate::snapshot::{Array, Snapshot};
    let neurons = network.neurons() as usize;
    let mut simulation = Simulation::new(network.clone(), &cpu(), &SimulationOptions::default()).expect("it works");
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
                    let mut words = whole.u64(name, whole.len_of(name).expect("it is there")).expect("it is there").to_vec();
                    let at = random.below(words.len() as u64) as usize;
                    words[at] = u64::from(value) << random.below(33);
                    hostile.insert(name, Array::U64(words));
                }
                name if whole.len_of(name).is_some() => {
                    let right = whole.len_of(name).filter(|_| name != "fired").unwrap_or(neurons);
                    let length = random.pick(&[right, right, right, right + 1, 0, 2, 4]);
                    // All of it, or a few words.
                    let mut words = whole.u32(name, whole.len_of(name).expect("it is there")).expect("it is there").to_vec();
                    words.resize(length, 0);
                    let few = random.below(2) == 0;
                    words.iter_mut().filter(|_| !few || random.below(40) == 0).for_each(|word| *word = value);
                    hostile.insert(name, Array::U32(words));
                }
                _ => {}
            }
        }
        let before = simulation.snapshot().expect("it works");
        match simulation.restore(&hostile) {
            Ok(()) => {
                // Whatever it is, it can be run from, up to the end of the numbers.
                let _ = simulation.run(3);
                ran += 1;
            }
            Err(_) => {
                assert_eq!(simulation.snapshot().expect("it works"), before, "nothing changed");
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
    let simulation = |seed: u64| Simulation::new(network(&case(seed)), &cpu(), &SimulationOptions::default()).expect("it works");
    let snapshot = simulation(1).snapshot().expect("it works");
    let error = simulation(2).restore(&snapshot).expect_err("it is refused");
    assert_eq!(error.to_string(), "the snapshot is of another network, or of the same with other options");
}

#[test]
fn device_networks_fire_as_the_naive_engine_says() {
    for id in ["vulkan:0", "cuda:0"] {
        match Device::open(id) {
            Ok(device) => {
                for seed in 400..424 {
                    check(seed, &case(seed), std::slice::from_ref(&device), None, 25);
                }
            }
            Err(error) => eprintln!("skipped: {id}: {error}"),
        }
    }
}
