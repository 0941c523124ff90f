//! The suite `spiking`: whole bursts at 1 % firing compared with a plain loop over the same rows.

use std::path::Path;
use std::sync::Arc;

use tectum::{CodeObject, Device, Result, RunStats};
use tectum_bench::bench::{Case, Roofline, Suite, Workload};

use super::{
    ConnectOptions, ConnectedNetwork, Network, NetworkOptions, NeuronOptions, Neurons,
    PlasticityRule, Simulation, SimulationOptions, Stimulus, Synapse, SynapseRows, WeightLoss,
    connect,
};
use crate::genome::{Genome, GenomeOptions};

/// Neurons and synapses of each.
const SIZES: [(u32, u32, &str); 5] = [
    (10_000, 50, "n10k_s50"),
    (100_000, 100, "n100k_s100"),
    (500_000, 100, "n500k_s100"),
    (1_000_000, 100, "n1m_s100"),
    (1_000_000, 1000, "n1m_s1k"),
];
/// One neuron in this many fires in each burst.
const SPARSITY: u32 = 100;
/// Genomes that are measured if present, read in place.
const GENOMES: [&str; 3] = ["gesture_recognition", "essential_genome", "brain_pong"];
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/genomes");
/// Bursts from which the events of a burst are estimated.
const TRIAL: u32 = 200;
/// Bursts with different neurons firing, before the cycle restarts.
const PATTERNS: usize = 16;

/// The suite.
pub fn suite() -> Suite {
    Suite {
        name: "spiking",
        about: "bursts of spiking networks at 1 % firing",
        cases,
    }
}

fn cases(device: &Device) -> Vec<Case> {
    let most = if device.info().software {
        100_000
    } else {
        u32::MAX
    };
    let sizes = SIZES.into_iter().filter(|(neurons, ..)| *neurons <= most);
    sizes
        .flat_map(|(neurons, degree, shape)| {
            let events = f64::from(neurons / SPARSITY) * f64::from(degree);
            // A burst reads four bytes of each synapse, and reads and writes the sums and the
            // potentials.
            let burst = Case {
                key: format!("spiking.burst.{shape}"),
                roofline: Roofline::Copy,
                threads: None,
                amount: 4.0 * events + 16.0 * f64::from(neurons),
                prepare: Box::new(move |device| {
                    Ok(Box::new(Burst::new(
                        RandomRows {
                            neurons,
                            degree,
                            plasticity: None,
                        },
                        device,
                    )?))
                }),
                alternatives: Vec::new(),
            };
            let scatter = Case {
                key: format!("spiking.csr_scatter.{shape}"),
                roofline: Roofline::Copy,
                threads: None,
                amount: 8.0 * events,
                prepare: Box::new(move |_| Ok(Box::new(Scatter::new(neurons, degree)))),
                alternatives: Vec::new(),
            };
            [burst, scatter]
        })
        .chain(std::iter::once(plastic()))
        .chain(GENOMES.into_iter().filter_map(|name| genome(name, device)))
        .collect()
}

/// Bursts of a network in which every synapse is plastic.
fn plastic() -> Case {
    let (neurons, degree, shape) = SIZES[1];
    // The row of a firing neuron is visited twice; each visit reads and writes eight bytes of each
    // synapse.
    let visits = 2.0 * f64::from(neurons / SPARSITY) * f64::from(degree);
    Case {
        key: format!("spiking.plastic.{shape}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: 16.0 * visits + 16.0 * f64::from(neurons),
        prepare: Box::new(move |device| {
            Ok(Box::new(Burst::new(
                RandomRows {
                    neurons,
                    degree,
                    plasticity: Some(0),
                },
                device,
            )?))
        }),
        alternatives: Vec::new(),
    }
}

/// The bursts of a genome that is present, under a stimulus of 1 % of its input areas.
fn genome(name: &'static str, device: &Device) -> Option<Case> {
    let path = Path::new(FOLDER).join(name).with_extension("json");
    let genome = Arc::new(Genome::read(&path, &GenomeOptions::default()).ok()?);
    let mut trial = GenomeWorkload::new(&genome, device).ok()?;
    (0..TRIAL).try_for_each(|_| trial.run().map(|_| ())).ok()?;
    // A burst reads four bytes of each synapse and every sum.
    let events = trial.simulation.counts().events as f64 / f64::from(TRIAL);
    Some(Case {
        key: format!("spiking.genome.{name}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: 4.0 * events + 4.0 * f64::from(genome.neurons()),
        prepare: Box::new(move |device| Ok(Box::new(GenomeWorkload::new(&genome, device)?))),
        alternatives: Vec::new(),
    })
}

/// A genome under a stimulus.
struct GenomeWorkload {
    simulation: Simulation,
    stimulus: Stimulus,
}

impl GenomeWorkload {
    fn new(genome: &Genome, device: &Device) -> Result<Self> {
        let ConnectedNetwork {
            network,
            constant_inputs,
            ..
        } = connect(
            genome,
            ConnectOptions::default(),
            &mut tectum::WorkProgress::ignore,
        )?;
        let stimulus = Stimulus::new(genome, 0.01, 0)?;
        let options = SimulationOptions {
            constant_inputs,
            max_inputs: stimulus.max_inputs(),
            ..SimulationOptions::default()
        };
        Ok(Self {
            simulation: Simulation::new(Arc::new(network), device, &options)?,
            stimulus,
        })
    }
}

impl Workload for GenomeWorkload {
    fn run(&mut self) -> Result<RunStats> {
        self.stimulus.run(&mut self.simulation, 1)?;
        Ok(self.simulation.stats())
    }

    fn code(&self) -> &[CodeObject] {
        self.simulation.code()
    }
}

/// Rows of a fixed number of synapses with random targets, one in five inhibitory.
struct RandomRows {
    neurons: u32,
    degree: u32,
    plasticity: Option<u8>,
}

impl SynapseRows for RandomRows {
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse)) {
        for index in 0..self.degree {
            let bits = hash_mix(u64::from(source) << 32 | u64::from(index));
            let target = (((bits & 0xffff_ffff) * u64::from(self.neurons)) >> 32) as u32;
            visit(Synapse {
                plasticity: self.plasticity,
                ..Synapse::fixed(
                    target,
                    1 + ((bits >> 40) & 3) as u8,
                    (bits >> 48).is_multiple_of(5),
                )
            });
        }
    }
}

/// The neurons that fire in a pattern's burst.
fn firing(neurons: u32, pattern: usize) -> Vec<u32> {
    let groups = 0..neurons / SPARSITY;
    groups
        .map(|group| {
            group * SPARSITY
                + (hash_mix(u64::from(group) << 8 | pattern as u64) % u64::from(SPARSITY)) as u32
        })
        .collect()
}

/// A bijection of 64 bits: `SplitMix64`'s (S. Vigna).
fn hash_mix(x: u64) -> u64 {
    let z = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bursts in which one neuron in a hundred is made to fire.
struct Burst {
    simulation: Simulation,
    patterns: Vec<Vec<(u32, f32)>>,
    next: usize,
}

impl Burst {
    fn new(rows: RandomRows, device: &Device) -> Result<Self> {
        const THRESHOLD: f32 = 1000.0;
        let neurons = rows.neurons;
        let mut all = Neurons::default();
        // A threshold that random arrivals rarely reach and injections always reach.
        all.add(
            neurons,
            &NeuronOptions {
                threshold: THRESHOLD,
                uniform_psp: true,
                ..NeuronOptions::default()
            },
        )?;
        // Weights do not shrink, so that they stay above 0 and every visit sends.
        let plasticity = rows
            .plasticity
            .map(|_| PlasticityRule {
                window: 3,
                gain: 1,
                loss: 0,
                weight_loss: WeightLoss::AnyFiring,
            })
            .into_iter()
            .collect();
        let options = NetworkOptions {
            max_injected: 2.0 * THRESHOLD,
            plasticity,
            ..NetworkOptions::default()
        };
        let network = Network::new(&all, Box::new(rows), options)?;
        let options = SimulationOptions {
            max_inputs: (neurons / SPARSITY) as usize,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(Arc::new(network), device, &options)?;
        let pattern = |pattern| {
            firing(neurons, pattern)
                .into_iter()
                .map(|neuron| (neuron, 1.5 * THRESHOLD))
                .collect()
        };
        let patterns: Vec<Vec<(u32, f32)>> = (0..PATTERNS).map(pattern).collect();
        simulation.inject(&patterns[0])?;
        simulation.run(1)?;
        Ok(Self {
            simulation,
            patterns,
            next: 1,
        })
    }
}

impl Workload for Burst {
    fn run(&mut self) -> Result<RunStats> {
        self.simulation
            .inject(&self.patterns[self.next % PATTERNS])?;
        self.next += 1;
        self.simulation.run(1)?;
        Ok(self.simulation.stats())
    }

    fn code(&self) -> &[CodeObject] {
        self.simulation.code()
    }
}

/// The baseline of a burst: a plain loop over rows of 32-bit targets and float weights, on one
/// thread.
struct Scatter {
    starts: Vec<u64>,
    targets: Vec<u32>,
    weights: Vec<f32>,
    sums: Vec<f32>,
    patterns: Vec<Vec<u32>>,
    next: usize,
}

impl Scatter {
    fn new(neurons: u32, degree: u32) -> Self {
        let rows = RandomRows {
            neurons,
            degree,
            plasticity: None,
        };
        let (mut starts, mut targets, mut weights) = (vec![0], Vec::new(), Vec::new());
        for source in 0..neurons {
            rows.visit(source, &mut |synapse| {
                targets.push(synapse.target);
                weights
                    .push(if synapse.inhibitory { -1.0 } else { 1.0 } * f32::from(synapse.weight));
            });
            starts.push(targets.len() as u64);
        }
        let patterns = (0..PATTERNS)
            .map(|pattern| firing(neurons, pattern))
            .collect();
        Self {
            starts,
            targets,
            weights,
            sums: vec![0.0; neurons as usize],
            patterns,
            next: 0,
        }
    }
}

impl Workload for Scatter {
    fn run(&mut self) -> Result<RunStats> {
        for &neuron in &self.patterns[self.next % PATTERNS] {
            let row =
                self.starts[neuron as usize] as usize..self.starts[neuron as usize + 1] as usize;
            for (&target, &weight) in self.targets[row.clone()].iter().zip(&self.weights[row]) {
                self.sums[target as usize] += weight;
            }
        }
        self.next += 1;
        std::hint::black_box(&mut self.sums);
        Ok(RunStats {
            launches: 1,
            ..RunStats::default()
        })
    }

    fn code(&self) -> &[CodeObject] {
        &[]
    }
}
