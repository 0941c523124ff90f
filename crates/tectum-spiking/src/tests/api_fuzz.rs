//! Simulations under random calls, valid and invalid, compared with the naive engine: firings,
//! potentials and weights are right; invalid calls give typed errors and change nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tectum::ErrorKind;

use super::*;
use tectum::snapshot::Snapshot;
use tectum_bench::api_fuzz;

struct World {
    random: Random,
    simulation: Simulation,
    naive: ReferenceNetwork,
    constant_inputs: Vec<(u32, f32)>,
    pending: Vec<(u32, f32)>,
    fired: Vec<u32>,
    /// Whether the last burst ran here, rather than came from a restored state.
    has_run: bool,
    saved: Vec<(Snapshot, ReferenceNetwork, Vec<u32>)>,
    /// A snapshot of another network.
    foreign: Snapshot,
    journal: Vec<String>,
}

fn is_kind<T: std::fmt::Debug>(result: tectum::Result<T>, kind: ErrorKind) {
    let error = result.expect_err("the caller's mistake");
    assert_eq!(error.kind(), kind, "{error}");
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let case = if random.below(2) == 0 {
            case(seed)
        } else {
            learning_case(seed)
        };
        let network = network(&case);
        let naive = ReferenceNetwork::new(&case.groups, &case.synapses, &case.options);
        let recorded_neurons = std::iter::once(0..(naive.len() as u32).div_ceil(2)).collect();
        let options = SimulationOptions {
            constant_inputs: case.constant_inputs.clone(),
            max_inputs: 8,
            recorded_neurons,
            ledger: 4,
            ..SimulationOptions::default()
        };
        let cpu = cpu();
        is_kind(
            Simulation::sharded(network.clone(), &[], &options),
            ErrorKind::Invalid,
        );
        is_kind(
            Simulation::new(
                network.clone(),
                &cpu,
                &SimulationOptions {
                    constant_inputs: vec![(u32::MAX, 1.0)],
                    ..options.clone()
                },
            ),
            ErrorKind::Invalid,
        );
        is_kind(
            Simulation::new(
                network.clone(),
                &cpu,
                &SimulationOptions {
                    constant_inputs: vec![(0, f32::NAN)],
                    ..options.clone()
                },
            ),
            ErrorKind::Invalid,
        );
        let shards = 1 + random.below(3) as usize;
        let simulation =
            Simulation::sharded(network, &vec![cpu.clone(); shards], &options).expect("it works");
        let other = Simulation::new(
            super::network(&super::case(seed ^ 1)),
            &cpu,
            &SimulationOptions::default(),
        )
        .expect("it works");
        let foreign = other.snapshot().expect("it works");
        let journal = vec![format!(
            "{shards} shards of {:?} with {:?}",
            case.groups, case.options
        )];
        Self {
            random,
            simulation,
            naive,
            constant_inputs: case.constant_inputs,
            pending: vec![],
            fired: vec![],
            has_run: false,
            saved: vec![],
            foreign,
            journal,
        }
    }

    fn call(&mut self) {
        match self.random.below(12) {
            0..3 => self.inject(),
            3 => self.inject_wrong(),
            4..8 => self.run(),
            8 => self.look(),
            9 => self.save_or_restore(),
            10 => self.restore_foreign(),
            _ => self.has_fired(),
        }
    }

    fn inject(&mut self) {
        let mut inputs = inputs(&mut self.random, self.naive.len() as u64);
        inputs.retain(|(neuron, _)| !self.pending.iter().any(|(other, _)| other == neuron));
        self.journal.push(format!("inject {inputs:?}"));
        if self.pending.len() + inputs.len() > 8 {
            return is_kind(self.simulation.inject(&inputs), ErrorKind::Invalid);
        }
        self.simulation.inject(&inputs).expect("fits");
        self.pending.extend(inputs);
    }

    fn inject_wrong(&mut self) {
        let neurons = self.naive.len() as u32;
        let wrong = match self.random.below(6) {
            0 => vec![(0, 1.0), (neurons, 1.0)],
            1 => vec![(u32::MAX, 1.0)],
            2 => vec![(0, f32::NAN)],
            3 => vec![(0, self.random.pick(&[f32::INFINITY, -100.5, f32::MAX]))],
            4 => vec![(0, 1.0), (0, 1.0)],
            _ => (0..9).map(|place| (place % neurons, 1.0)).collect(),
        };
        self.journal.push(format!("inject {wrong:?}"));
        is_kind(self.simulation.inject(&wrong), ErrorKind::Invalid);
    }

    fn run(&mut self) {
        let bursts = self
            .random
            .pick(&[0, 1, 1, 1, 2, 3, 16, 17, 33, u32::MAX, u32::MAX - 1]);
        self.journal.push(format!("run {bursts}"));
        if bursts > 100 {
            return is_kind(self.simulation.run(bursts), ErrorKind::Unsupported);
        }
        let counts = self.simulation.run(bursts).expect("it works");
        for _ in 0..bursts {
            let inputs = std::mem::take(&mut self.pending);
            self.fired = self.naive.burst(self.constant_inputs.iter().chain(&inputs));
            self.has_run = true;
        }
        assert_eq!(
            (counts, self.simulation.counts()),
            (self.naive.counts(), self.naive.counts())
        );
        assert_eq!(self.simulation.fired().expect("it works"), self.fired);
    }

    /// Compares everything that can be read from a state.
    fn look(&mut self) {
        self.journal.push(
            "potentials, plastic_synapses, memories, candidates, ledger, stats, code".to_owned(),
        );
        assert_eq!(
            self.simulation.potentials().expect("it works"),
            self.naive.potentials()
        );
        assert_eq!(
            plastic(&self.simulation).expect("it works"),
            self.naive.plastic()
        );
        is_kind(self.simulation.candidates(), ErrorKind::Invalid);
        self.simulation.memories().expect("it works");
        let ledger = self.simulation.ledger().expect("it works");
        if let Some((burst, fired)) = ledger.last().filter(|_| self.has_run) {
            assert_eq!(
                (*burst, fired.iter().collect::<Vec<_>>()),
                (self.naive.counts().bursts, self.fired.clone())
            );
        }
        let _ = self.simulation.stats();
        assert!(!self.simulation.code().is_empty() && !format!("{:?}", self.simulation).is_empty());
    }

    fn save_or_restore(&mut self) {
        let count = self.saved.len() as u64;
        if count == 0 || self.random.below(2) == 0 {
            self.journal.push(format!("snapshot {count}"));
            self.saved.push((
                self.simulation.snapshot().expect("it works"),
                self.naive.clone(),
                self.fired.clone(),
            ));
            return;
        }
        let place = self.random.below(count) as usize;
        self.journal.push(format!("restore {place}"));
        let (snapshot, naive, fired) = &self.saved[place];
        self.simulation.restore(snapshot).expect("its own");
        (self.naive, self.fired) = (naive.clone(), fired.clone());
        self.pending.clear();
        self.has_run = false;
        assert_eq!(self.simulation.counts(), self.naive.counts());
        assert_eq!(self.simulation.fired().expect("it works"), self.fired);
    }

    fn restore_foreign(&mut self) {
        self.journal.push("restore of another network".to_owned());
        is_kind(self.simulation.restore(&self.foreign), ErrorKind::Data);
    }

    fn has_fired(&mut self) {
        let neuron = self.random.below(self.naive.len() as u64 + 1) as u32;
        self.journal.push(format!("has_fired {neuron}"));
        let found = catch_unwind(AssertUnwindSafe(|| self.simulation.has_fired(neuron)));
        let is_watched = neuron < (self.naive.len() as u32).div_ceil(2);
        assert_eq!(
            found.is_ok(),
            is_watched,
            "a neuron that is not watched is a documented panic"
        );
        if let Ok(found) = found {
            assert_eq!(found, self.has_run && self.fired.contains(&neuron));
        }
    }
}

impl api_fuzz::FuzzTarget for World {
    const CALLS: u64 = 25;
    const SHARE: u64 = 20;

    fn new(seed: u64) -> Self {
        Self::new(seed)
    }

    fn call(&mut self) {
        self.call();
    }

    fn journal(&self) -> &[String] {
        &self.journal
    }
}

#[test]
fn api_fuzz_of_simulations() {
    api_fuzz::run_sequences::<World>();
}
