//! The memory that a network takes while it is built, and at rest: counted by the allocator of this
//! program, which is a process of its own for that.
#![cfg(feature = "genome")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tectum::{Device, WorkProgress};
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_spiking::{
    ConnectOptions, Network, NetworkOptions, NeuronOptions, Neurons, Simulation, SimulationOptions,
    Synapse, SynapseList, connect,
};

struct Counting;

/// Bytes that are allocated.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Their maximum since it was last set.
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every request on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller upholds it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller upholds it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Neurons of each of two areas that are connected all to all.
const SIDE: u32 = 3200;

/// The bytes that building a simulation allocates in excess of those before, for each synapse: the
/// maximum during it, and what remains with the simulation.
fn bytes_per_synapse(build: impl FnOnce() -> Simulation) -> [f64; 2] {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let simulation = build();
    let [peak, rest] = [&PEAK, &LIVE].map(|bytes| bytes.load(Ordering::Relaxed) - before);
    let synapses = simulation.network().synapses() as f64;
    assert_eq!(synapses, f64::from(SIDE) * f64::from(SIDE));
    [peak, rest].map(|bytes| bytes as f64 / synapses)
}

fn simulation(network: Network) -> Simulation {
    let device = Device::open("cpu").expect("always there");
    Simulation::new(Arc::new(network), &device, &SimulationOptions::default()).expect("it fits")
}

fn genome(plastic: bool) -> Genome {
    let text = format!(
        r#"{{"version": "2.1", "blueprint": {{
            "i__eye": {{"block_boundaries": [{SIDE}, 1, 1], "cortical_mapping_dst": {{"o__arm": [["all_to_all", 1, 1, {plastic}, 1, 1, 1]]}}}},
            "o__arm": {{"block_boundaries": [{SIDE}, 1, 1]}}}}}}"#
    );
    Genome::parse(&text, &GenomeOptions::default()).expect("a genome")
}

/// One test: others in this process would be counted too.
#[test]
fn building_a_network_allocates_little_more_than_it_keeps() {
    // The device and its threads are not counted.
    let warm = simulation(from_arrays(&[0], &[1], &[1], 2));
    drop(warm);
    let connected = |plastic: bool| {
        let genome = genome(plastic);
        bytes_per_synapse(|| {
            let options = ConnectOptions::default();
            let network = connect(&genome, options, &mut WorkProgress::ignore)
                .expect("it fits")
                .network;
            assert_eq!(network.plastic_synapses() > 0, plastic);
            simulation(network)
        })
    };
    let (source, target): (Vec<u32>, Vec<u32>) = (0..SIDE)
        .flat_map(|source| (SIDE..2 * SIDE).map(move |target| (source, target)))
        .unzip();
    let weight = vec![1u8; source.len()];
    let arrays = bytes_per_synapse(|| simulation(from_arrays(&source, &target, &weight, 2 * SIDE)));
    for (what, [peak, rest], [max_peak, max_rest]) in [
        ("a genome", connected(false), [12.5, 11.0]),
        ("a genome that learns", connected(true), [16.0, 15.0]),
        ("arrays", arrays, [12.5, 11.0]),
    ] {
        println!("{what}: {peak:.2} bytes for each synapse at most, {rest:.2} at rest");
        assert!(
            peak <= max_peak && rest <= max_rest,
            "{what}: {peak} bytes for each synapse at most and {rest} at rest; {max_peak} and {max_rest} expected"
        );
    }
}

fn from_arrays(source: &[u32], target: &[u32], weight: &[u8], count: u32) -> Network {
    let mut neurons = Neurons::default();
    neurons
        .add(count, &NeuronOptions::default())
        .expect("in range");
    let synapses = || {
        let columns = source.iter().zip(target).zip(weight);
        Ok(columns.map(|((source, target), weight)| {
            Ok((*source, Synapse::fixed(*target, *weight, false)))
        }))
    };
    let list = SynapseList::from_passes(count, synapses).expect("it fits");
    Network::new(&neurons, Box::new(list), NetworkOptions::default()).expect("in range")
}
