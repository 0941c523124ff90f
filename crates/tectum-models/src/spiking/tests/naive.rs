//! A scalar engine written from `docs/spiking.md` alone: 64-bit numbers, every neuron and every burst one after another.

use super::super::{NetworkOptions, NeuronOptions, Silence, SpikeCounts, Synapse};
use crate::spiking::rule::{draw, spike_marks};

struct Cell {
    options: NeuronOptions,
    potential: i64,
    touched: bool,
    arrived: i64,
    /// Bursts of the refractory period that are left.
    countdown: u64,
    consecutive: u64,
}

pub struct Naive {
    cells: Vec<Cell>,
    synapses: Vec<(u32, Synapse)>,
    silence: Silence,
    seed: u32,
    bits: u32,
    /// Neuron and firing potential of the last burst.
    fired: Vec<(usize, i64)>,
    counts: SpikeCounts,
}

const MAX: i64 = (1 << 30) - 1;

impl Naive {
    pub fn new(groups: &[(u32, NeuronOptions)], synapses: &[(u32, Synapse)], options: &NetworkOptions, bits: u32) -> Self {
        let mut cells = Vec::new();
        for (count, options) in groups {
            for _ in 0..*count {
                let potential = fixed(options.resting_potential, bits);
                cells.push(Cell { options: options.clone(), potential, touched: false, arrived: 0, countdown: 0, consecutive: 0 });
            }
        }
        let (synapses, silence, seed) = (synapses.to_vec(), options.silence, options.seed);
        Self { cells, synapses, silence, seed, bits, fired: Vec::new(), counts: SpikeCounts::default() }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn counts(&self) -> SpikeCounts {
        self.counts
    }

    pub fn potentials(&self) -> Vec<f64> {
        let up_to_now = |cell: &Cell| cell.potential as f64 / f64::from(1u32 << self.bits);
        self.cells.iter().map(up_to_now).collect()
    }

    pub fn burst<'a>(&mut self, inputs: impl Iterator<Item = &'a (u32, f32)>) -> Vec<u32> {
        self.counts.bursts += 1;
        let burst = self.counts.bursts;
        for (source, potential) in std::mem::take(&mut self.fired) {
            let share = self.synapses.iter().filter(|(from, _)| *from as usize == source).count() as i64;
            let options = self.cells[source].options.clone();
            let psp = if options.potential_driven_psp { (potential as f64 / f64::from(1u32 << self.bits)).round().clamp(0.0, 255.0) as i64 } else { i64::from(options.psp) };
            let share = if options.uniform_psp { 1 } else { share.max(1) };
            let unit = ((psp << self.bits) + share / 2) / share;
            for (from, synapse) in &self.synapses {
                if *from as usize == source {
                    let sent = unit * i64::from(synapse.weight);
                    let cell = &mut self.cells[synapse.target as usize];
                    cell.touched = true;
                    cell.arrived += if synapse.inhibitory { -sent } else { sent };
                    self.counts.events += 1;
                }
            }
        }
        for (neuron, amount) in inputs {
            let cell = &mut self.cells[*neuron as usize];
            cell.touched = true;
            cell.arrived += fixed(*amount, self.bits);
        }
        for index in 0..self.cells.len() {
            let random = draw(self.seed, index as u32, burst);
            let (bits, silence) = (self.bits, self.silence);
            let cell = &mut self.cells[index];
            if let Some(potential) = cell.burst(bits, silence, random) {
                self.fired.push((index, potential));
            }
            if !cell.options.charge_accumulation {
                cell.potential = fixed(cell.options.resting_potential, bits);
            }
        }
        self.counts.spikes += self.fired.len() as u64;
        let fired: Vec<u32> = self.fired.iter().map(|(index, _)| *index as u32).collect();
        for &neuron in &fired {
            let [first, second] = spike_marks(neuron, burst);
            let (low, high) = (self.counts.spike_hash as u32, (self.counts.spike_hash >> 32) as u32);
            self.counts.spike_hash = u64::from(low.wrapping_add(first)) | u64::from(high.wrapping_add(second)) << 32;
        }
        fired
    }
}

impl Cell {
    fn burst(&mut self, bits: u32, silence: Silence, random: u32) -> Option<i64> {
        let options = self.options.clone();
        let (touched, arrived) = (std::mem::take(&mut self.touched), std::mem::take(&mut self.arrived));
        let limit = if options.consecutive_fire_limit == 65_535 { 0 } else { u64::from(options.consecutive_fire_limit) };
        let rest = fixed(options.resting_potential, bits);
        if !touched && silence == Silence::Skips {
            return None;
        }
        // Refractory: what arrives is lost.
        if self.countdown > 0 {
            self.countdown -= 1;
            if self.countdown == 0 && limit > 0 && self.consecutive >= limit {
                self.consecutive = 0;
            }
            return None;
        }
        // Silence is a burst without firing.
        if !touched {
            if limit > 0 {
                self.consecutive = 0;
            }
            self.leak(rest);
            return None;
        }
        let potential = (self.potential + arrived).clamp(-MAX, MAX);
        self.potential = potential;
        let inside = potential >= fixed(options.threshold, bits) && options.threshold_limit.is_none_or(|limit| potential <= fixed(limit, bits));
        if inside && limit > 0 && self.consecutive >= limit {
            self.consecutive = 0;
            return None;
        }
        let chance = if options.excitability >= 0.999 { 1.0 } else { f64::from(options.excitability) };
        if inside && f64::from(random) < (chance * 4_294_967_296.0).floor() {
            self.potential = rest;
            self.consecutive = (self.consecutive + 1).min(65_535);
            let snooze = if limit > 0 && self.consecutive >= limit { u64::from(options.snooze) } else { 0 };
            self.countdown = u64::from(options.refractory) + snooze;
            return Some(potential);
        }
        if limit > 0 {
            self.consecutive = 0;
        }
        self.leak(rest);
        None
    }

    fn leak(&mut self, rest: i64) {
        let leak = (f64::from(self.options.leak) * 65_536.0).round() as i64;
        let above = self.potential - rest;
        let taken = above.abs() * leak / 65_536;
        self.potential -= above.signum() * taken;
    }
}

fn fixed(value: f32, bits: u32) -> i64 {
    (f64::from(value) * f64::from(1u32 << bits)).round() as i64
}
