//! Conformance of the kernels of spiking networks: random networks, burst by burst, compared
//! exactly with the naive engine.

use std::sync::Arc;
use std::time::Instant;

use tectum::{Device, Error, ErrorKind, LayoutPreferences, Result};
use tectum_bench::api_fuzz::Random;
use tectum_bench::conformance::{Case, CaseContext, Seed, Suite};

use super::reference::{PlasticRow, ReferenceNetwork};
use super::{
    IdleUpdate, Memory, MemoryReport, Network, NetworkOptions, NeuronOptions, Neurons,
    PlasticityRule, Simulation, SimulationOptions, Synapse, SynapseList, WeightLoss,
};

/// Neurons of the largest group of a network that fits one workgroup, and of one that needs
/// several.
const SMALL: u64 = 60;
const LARGE: u64 = 400;

/// Neurons of the largest group of a network that has several parts.
const SEVERAL_PARTS: u64 = 4000;
/// Neurons of the smallest part.
const PART_NEURONS: u32 = 2048;

/// The suites of networks that do not learn, that learn and remember, that are split into shards,
/// and whose shards have several parts.
pub fn suites() -> Vec<Suite> {
    vec![
        Suite::new("spiking", |seed: &mut Seed| {
            let networks =
                std::iter::once(one_neuron()).chain(networks(seed, random_network, [12, 3]));
            networks
                .map(|network| case(seed, network, 1, RunSchedule::new(12, 1)))
                .collect()
        }),
        Suite::new("spiking_batches", |seed: &mut Seed| {
            let networks = networks(seed, random_network, [2, 1]).chain(networks(
                seed,
                learning_network,
                [2, 1],
            ));
            networks
                .map(|network| case(seed, network, 1, RunSchedule::new(36, 18)))
                .collect()
        }),
        Suite::new("spiking_learning", |seed: &mut Seed| {
            networks(seed, learning_network, [12, 3])
                .map(|network| case(seed, network, 1, RunSchedule::new(16, 1)))
                .collect()
        }),
        Suite::new("spiking_shards", |seed: &mut Seed| {
            let networks = [one_neuron(), busy(97), busy(1000)]
                .into_iter()
                .chain(networks(seed, learning_network, [4, 1]));
            networks
                .enumerate()
                .map(|(index, network)| case(seed, network, 2 + index % 2, RunSchedule::new(8, 1)))
                .collect()
        }),
        Suite::new("spiking_parts", |seed: &mut Seed| {
            let networks: Vec<_> = [random_network, learning_network]
                .map(|make| large_network(seed, make))
                .into();
            let layouts = [LaunchLayout::Joined, LaunchLayout::Apart]
                .into_iter()
                .flat_map(|layout| networks.iter().map(move |network| (layout, network)));
            layouts
                .map(|(layout, network)| {
                    case(
                        seed,
                        network.clone(),
                        1,
                        RunSchedule {
                            layout,
                            ..RunSchedule::new(8, 1)
                        },
                    )
                })
                .collect()
        }),
    ]
}

/// Numbers of small and of large networks.
fn networks(
    seed: &mut Seed,
    make: fn(u64, u64) -> RandomNetwork,
    [small, large]: [usize; 2],
) -> std::vec::IntoIter<RandomNetwork> {
    let sizes = std::iter::repeat_n(SMALL, small).chain(std::iter::repeat_n(LARGE, large));
    sizes
        .map(|size| make(u64::from(seed.word()), size))
        .collect::<Vec<_>>()
        .into_iter()
}

/// A network of several parts.
fn large_network(seed: &mut Seed, make: fn(u64, u64) -> RandomNetwork) -> RandomNetwork {
    loop {
        let network = make(u64::from(seed.word()), SEVERAL_PARTS);
        if network.groups.iter().map(|(count, _)| *count).sum::<u32>() > PART_NEURONS {
            return network;
        }
    }
}

/// The smallest network: a neuron with a synapse to itself.
fn one_neuron() -> RandomNetwork {
    RandomNetwork {
        groups: vec![(
            1,
            NeuronOptions {
                leak: 0.25,
                threshold: 2.0,
                ..NeuronOptions::default()
            },
        )],
        synapses: vec![(0, Synapse::fixed(0, 1, false))],
        options: NetworkOptions::default(),
        constant_inputs: vec![(0, 1.0)],
    }
}

/// A network of which about half fires in each burst, so that shards exchange bits instead of a
/// list.
fn busy(neurons: u32) -> RandomNetwork {
    RandomNetwork {
        groups: vec![(
            neurons,
            NeuronOptions {
                excitability: 0.5,
                uniform_psp: true,
                ..NeuronOptions::default()
            },
        )],
        synapses: (0..neurons)
            .map(|source| (source, Synapse::fixed((source + 13) % neurons, 1, false)))
            .collect(),
        options: NetworkOptions::default(),
        constant_inputs: (0..neurons).map(|neuron| (neuron, 1.0)).collect(),
    }
}

fn case(seed: &mut Seed, network: RandomNetwork, shards: usize, pace: RunSchedule) -> Case {
    let inputs_seed = u64::from(seed.word());
    let neurons: usize = network
        .groups
        .iter()
        .map(|(count, _)| *count as usize)
        .sum();
    let layout = match pace.layout {
        LaunchLayout::Preferred => "",
        LaunchLayout::Joined => ", parts in one launch",
        LaunchLayout::Apart => ", a launch for each part",
    };
    let shape = format!(
        "{neurons} neurons, {} synapses, {shards} shards, {} bursts by {}{layout}",
        network.synapses.len(),
        pace.bursts,
        pace.at_once
    );
    Case::of_run(
        shape,
        neurons + 2 * network.synapses.len(),
        move |trial: &mut CaseContext<'_>| {
            let devices = vec![trial.device.clone(); shards];
            compare(
                inputs_seed,
                &network,
                &devices,
                pace,
                |simulation, start| {
                    trial.uses(simulation.code());
                    trial.record(&simulation.stats(), start);
                },
            )?;
            Ok(0.0)
        },
    )
}

/// A network with random options, in the form that both engines take.
#[derive(Clone)]
pub struct RandomNetwork {
    pub groups: Vec<(u32, NeuronOptions)>,
    pub synapses: Vec<(u32, Synapse)>,
    pub options: NetworkOptions,
    pub constant_inputs: Vec<(u32, f32)>,
}

impl RandomNetwork {
    pub fn network(&self) -> Result<Arc<Network>> {
        let mut neurons = Neurons::default();
        for (count, options) in &self.groups {
            neurons.add(*count, options)?;
        }
        let rows = SynapseList::new(neurons.len(), &self.synapses)?;
        Ok(Arc::new(Network::new(
            &neurons,
            Box::new(rows),
            self.options.clone(),
        )?))
    }
}

/// Up to five groups of 1 to `largest_group` neurons.
pub fn random_network(seed: u64, largest_group: u64) -> RandomNetwork {
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
        (1 + random.below(largest_group) as u32, options)
    };
    let groups: Vec<_> = (0..1 + random.below(5)).map(|_| group(random)).collect();
    let neurons: u64 = groups.iter().map(|(count, _)| u64::from(*count)).sum();
    let mut synapses = Vec::new();
    for _ in 0..random.below(neurons * 8) {
        let synapse = Synapse::fixed(
            random.below(neurons) as u32,
            random.pick(&[1, 1, 2, 9, 255]),
            random.below(4) == 0,
        );
        synapses.push((random.below(neurons) as u32, synapse));
    }
    let idle_update = random.pick(&[IdleUpdate::CatchUp, IdleUpdate::CatchUp, IdleUpdate::Freeze]);
    let constant_inputs = (0..random.below(4).min(neurons))
        .map(|neuron| (neuron as u32, 1.0 + neuron as f32))
        .collect();
    let options = NetworkOptions {
        idle_update,
        seed: random.word() as u32,
        max_injected: 100.0,
        ..NetworkOptions::default()
    };
    RandomNetwork {
        groups,
        synapses,
        options,
        constant_inputs,
    }
}

/// The same, with half of the synapses plastic and one or two memories.
pub fn learning_network(seed: u64, largest_group: u64) -> RandomNetwork {
    let mut case = random_network(seed, largest_group);
    let random = &mut Random(seed ^ 0x1ea4);
    let own: u64 = case.groups.iter().map(|(count, _)| u64::from(*count)).sum();
    // More active than in other cases, so that the same neurons fire again.
    for (_, options) in &mut case.groups {
        options.excitability = random.pick(&[1.0, 1.0, 0.8]);
        options.threshold = random.pick(&[1.0, 0.5, 0.0]);
        options.uniform_psp = true;
    }
    let rule = |random: &mut Random| PlasticityRule {
        window: random.pick(&[1, 1, 2, 3, 5, 9]),
        gain: random.pick(&[1, 3, 100, 0]),
        loss: random.pick(&[1, 1, 2, 50, 0]),
        weight_loss: WeightLoss::AnyFiring,
    };
    case.options.plasticity = (0..1 + random.below(3)).map(|_| rule(random)).collect();
    // A third of the rules lose weight by the condition of the older engine.
    for (index, rule) in case.options.plasticity.iter_mut().enumerate() {
        if (seed as usize).wrapping_add(index).is_multiple_of(3) {
            rule.weight_loss = WeightLoss::SteadySource;
        }
    }
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
        case.groups.push((
            count,
            NeuronOptions {
                threshold: 0.0,
                uniform_psp: random.below(2) == 0,
                ..NeuronOptions::default()
            },
        ));
        let split = random.below(own) as u32;
        // Its upstream may be the previous memory.
        let upstream: Vec<_> = [
            0..split.min(9),
            split.max(9)..(split.max(9) + 5).min(neurons.start),
        ]
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect();
        for source in neurons.clone() {
            for _ in 0..random.below(6) {
                let synapse = Synapse {
                    plasticity: (random.below(3) > 0).then(|| random.below(rules) as u8),
                    ..Synapse::fixed(random.below(own) as u32, random.pick(&[0, 1, 30]), false)
                };
                case.synapses.push((source, synapse));
                let back = Synapse {
                    plasticity: Some(random.below(rules) as u8),
                    ..Synapse::fixed(source, 0, false)
                };
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

/// Injections of a burst: occasionally into a few neurons.
pub fn inputs(random: &mut Random, neurons: u64) -> Vec<(u32, f32)> {
    let mut inputs: Vec<(u32, f32)> = Vec::new();
    for _ in 0..random.below(6) {
        let neuron = random.below(neurons) as u32;
        if !inputs.iter().any(|(other, _)| *other == neuron) {
            inputs.push((neuron, random.pick(&[1.0, 30.0, 0.4, -2.0])));
        }
    }
    if random.below(3) == 0 {
        inputs
    } else {
        Vec::new()
    }
}

/// How the targets of a device are laid out.
#[derive(Clone, Copy, PartialEq)]
pub enum LaunchLayout {
    /// As the device prefers.
    Preferred,
    /// Several parts in one launch.
    Joined,
    /// Several parts with a launch each.
    Apart,
}

/// The number of bursts, how many run in one call, and their layout.
#[derive(Clone, Copy)]
pub struct RunSchedule {
    pub bursts: u32,
    pub at_once: u32,
    pub layout: LaunchLayout,
}

impl RunSchedule {
    pub fn new(bursts: u32, at_once: u32) -> Self {
        Self {
            bursts,
            at_once,
            layout: LaunchLayout::Preferred,
        }
    }

    fn options(self, neurons: usize, device: &Device) -> SimulationOptions {
        let preferred = device.info().preferences();
        let (parts, layout) = match self.layout {
            LaunchLayout::Preferred => (None, None),
            LaunchLayout::Joined => (Some((neurons as u32).div_ceil(PART_NEURONS)), None),
            // Bindings that hold one part.
            LaunchLayout::Apart => (
                Some((neurons as u32).div_ceil(PART_NEURONS)),
                Some(LayoutPreferences {
                    max_binding_bytes: 4,
                    ..preferred
                }),
            ),
        };
        SimulationOptions {
            parts,
            layout,
            ..SimulationOptions::default()
        }
    }
}

/// Runs a network on some devices and on the naive engine: the same firings, potentials and weights
/// after every call, the same counts at the end. `ran` is called after each call, with the time at
/// which it began. Returns the naive engine in its final state.
///
/// # Errors
/// `Mismatch` naming the quantity that differs and the burst; device errors.
pub fn compare(
    seed: u64,
    case: &RandomNetwork,
    devices: &[Device],
    pace: RunSchedule,
    mut ran: impl FnMut(&Simulation, Instant),
) -> Result<ReferenceNetwork> {
    let network = case.network()?;
    let mut naive = ReferenceNetwork::new(&case.groups, &case.synapses, &case.options);
    let formats: Vec<u32> = (0..network.neurons())
        .map(|neuron| network.fraction_bits_of(neuron))
        .collect();
    same(&formats, &naive.formats(), || {
        format!("seed {seed}: binary places")
    })?;
    let options = SimulationOptions {
        constant_inputs: case.constant_inputs.clone(),
        ..pace.options(naive.len(), &devices[0])
    };
    let mut simulation = Simulation::sharded(network, devices, &options)?;
    let random = &mut Random(seed ^ 0xabcd);
    for call in 1..=pace.bursts / pace.at_once {
        let inputs = inputs(random, naive.len() as u64);
        simulation.inject(&inputs)?;
        let start = Instant::now();
        simulation.run(pace.at_once)?;
        ran(&simulation, start);
        let mut fired = naive.burst(case.constant_inputs.iter().chain(&inputs));
        for _ in 1..pace.at_once {
            fired = naive.burst(case.constant_inputs.iter());
        }
        let fault = |what: &str| {
            format!(
                "seed {seed}, burst {}: {what} of {} neurons with {:?}",
                call * pace.at_once,
                naive.len(),
                case.options
            )
        };
        same(&simulation.fired()?, &fired, || fault("firings"))?;
        same(&simulation.potentials()?, &naive.potentials(), || {
            fault("potentials")
        })?;
        same(&plastic(&simulation)?, &naive.plastic(), || {
            fault("weights")
        })?;
    }
    same(&[simulation.counts()], &[naive.counts()], || {
        format!("seed {seed}: counts")
    })?;
    let memories = simulation.memories()?;
    let sum = |count: fn(&MemoryReport) -> u32| memories.iter().map(count).sum::<u32>();
    same(
        &[sum(|memory| memory.formed), sum(|memory| memory.lost)],
        &[naive.formed, naive.lost],
        || format!("seed {seed}: patterns formed and lost"),
    )?;
    Ok(naive)
}

/// The plastic synapses of a simulation as the naive engine lists them.
pub fn plastic(simulation: &Simulation) -> Result<Vec<PlasticRow>> {
    let synapses = simulation.plastic_synapses()?.into_iter();
    let mut plastic: Vec<_> = synapses
        .map(|synapse| {
            (
                synapse.rule,
                synapse.source,
                synapse.target,
                synapse.inhibitory,
                i64::from(synapse.weight),
            )
        })
        .collect();
    plastic.sort_unstable();
    Ok(plastic)
}

/// # Errors
/// `Mismatch` with the first element that differs.
fn same<T: PartialEq + std::fmt::Debug>(
    found: &[T],
    expected: &[T],
    what: impl Fn() -> String,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let at = found
        .iter()
        .zip(expected)
        .take_while(|(found, expected)| found == expected)
        .count();
    let fault = format!(
        "{}: element {at} is {:?}, expected {:?} ({} elements, expected {})",
        what(),
        found.get(at),
        expected.get(at),
        found.len(),
        expected.len()
    );
    Err(Error::new(ErrorKind::Mismatch, fault))
}
