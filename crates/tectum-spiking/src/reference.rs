//! A scalar engine written only from `docs/spiking.md`: 64-bit numbers, every neuron and every
//! burst in sequence. Every device is compared with it. It calls no code of the engine.

use std::collections::BTreeSet;

use super::{
    IdleUpdate, Memory, NetworkOptions, NeuronOptions, PlasticityRule, SpikeCounts, Synapse,
    WeightLoss,
};

#[derive(Clone)]
struct Cell {
    options: NeuronOptions,
    /// Binary places of the potential.
    bits: u32,
    potential: i64,
    touched: bool,
    arrived: i64,
    /// Remaining bursts of the refractory period.
    countdown: u64,
    consecutive: u64,
}

#[derive(Clone)]
pub struct ReferenceNetwork {
    cells: Vec<Cell>,
    synapses: Vec<(u32, Synapse)>,
    idle_update: IdleUpdate,
    seed: u32,
    /// Neuron and firing potential of the last burst.
    fired: Vec<(usize, i64)>,
    counts: SpikeCounts,
    rules: Vec<PlasticityRule>,
    /// The current weight of each synapse.
    weights: Vec<i64>,
    /// The firings of each burst, starting at 1.
    past: Vec<BTreeSet<usize>>,
    /// For each neuron, the burst from which its firings count for learning.
    counts_from: Vec<usize>,
    memories: Vec<(Memory, Vec<Option<StoredPattern>>)>,
    pub formed: u32,
    pub lost: u32,
}

/// A pattern stored by a memory's neuron.
#[derive(Clone)]
struct StoredPattern {
    /// Ages and neurons.
    pattern: BTreeSet<(usize, usize)>,
    lifespan: u64,
    is_longterm: bool,
}

/// A plastic synapse: rule, source, target, whether it inhibits, weight.
pub type PlasticRow = (u8, u32, u32, bool, i64);

const MAX: i64 = (1 << 30) - 1;

impl ReferenceNetwork {
    pub fn new(
        groups: &[(u32, NeuronOptions)],
        synapses: &[(u32, Synapse)],
        options: &NetworkOptions,
    ) -> Self {
        let formats = formats(groups, synapses, options.max_injected);
        let mut cells = Vec::new();
        for (count, options) in groups {
            for _ in 0..*count {
                let bits = formats[cells.len()];
                let potential = fixed(options.resting_potential, bits);
                cells.push(Cell {
                    options: options.clone(),
                    bits,
                    potential,
                    touched: false,
                    arrived: 0,
                    countdown: 0,
                    consecutive: 0,
                });
            }
        }
        let (synapses, idle_update, seed) = (synapses.to_vec(), options.idle_update, options.seed);
        let memories = options
            .memories
            .iter()
            .map(|memory| {
                (
                    memory.clone(),
                    memory.neurons.clone().map(|_| None).collect(),
                )
            })
            .collect();
        Self {
            counts_from: vec![1; cells.len()],
            cells,
            weights: synapses
                .iter()
                .map(|(_, synapse)| i64::from(synapse.weight))
                .collect(),
            synapses,
            idle_update,
            seed,
            fired: Vec::new(),
            counts: SpikeCounts::default(),
            rules: options.plasticity.clone(),
            past: Vec::new(),
            memories,
            formed: 0,
            lost: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn counts(&self) -> SpikeCounts {
        self.counts
    }

    /// The binary places of each neuron.
    pub fn formats(&self) -> Vec<u32> {
        self.cells.iter().map(|cell| cell.bits).collect()
    }

    pub fn potentials(&self) -> Vec<f64> {
        let up_to_now = |cell: &Cell| cell.potential as f64 / f64::from(1u32 << cell.bits);
        self.cells.iter().map(up_to_now).collect()
    }

    /// The plastic synapses by rule, source and target; equal ones in any order.
    pub fn plastic(&self) -> Vec<PlasticRow> {
        let all = self.synapses.iter().zip(&self.weights);
        let mut plastic: Vec<_> = all
            .filter_map(|((source, synapse), weight)| {
                Some((
                    synapse.plasticity?,
                    *source,
                    synapse.target,
                    synapse.inhibitory,
                    *weight,
                ))
            })
            .collect();
        plastic.sort_unstable();
        plastic
    }

    /// Makes memories fire and updates their stored patterns.
    fn update_memories(&mut self, burst: usize) -> Vec<usize> {
        let mut fired = Vec::new();
        for (memory, kept) in &mut self.memories {
            let mut pattern = BTreeSet::new();
            for age in 0..(memory.depth as usize).min(burst - 1) {
                let before = &self.past[burst - 2 - age];
                pattern.extend(
                    memory
                        .upstream
                        .iter()
                        .cloned()
                        .flatten()
                        .filter(|neuron| before.contains(&(*neuron as usize)))
                        .map(|neuron| (age, neuron as usize)),
                );
            }
            for slot in kept.iter_mut() {
                if let Some(StoredPattern {
                    lifespan,
                    is_longterm,
                    ..
                }) = slot
                {
                    if !*is_longterm && *lifespan >= u64::from(memory.longterm_threshold) {
                        *is_longterm = true;
                    } else if !*is_longterm {
                        *lifespan -= 1;
                        if *lifespan == 0 {
                            *slot = None;
                        }
                    }
                }
            }
            if pattern.is_empty() {
                continue;
            }
            let first = memory.neurons.start as usize;
            if let Some(known) = kept
                .iter()
                .position(|slot| slot.as_ref().is_some_and(|kept| kept.pattern == pattern))
            {
                if let Some(StoredPattern {
                    lifespan,
                    is_longterm: false,
                    ..
                }) = &mut kept[known]
                {
                    *lifespan += u64::from(memory.lifespan_growth);
                }
                fired.push(first + known);
            } else if let Some(free) = kept.iter().position(Option::is_none) {
                kept[free] = Some(StoredPattern {
                    pattern,
                    lifespan: u64::from(memory.initial_lifespan),
                    is_longterm: false,
                });
                self.formed += 1;
                fired.push(first + free);
                self.counts_from[first + free] = burst;
                for ((source, synapse), weight) in self.synapses.iter().zip(&mut self.weights) {
                    if synapse.plasticity.is_some() && *source as usize == first + free {
                        *weight = i64::from(synapse.weight);
                    }
                    if synapse.plasticity.is_some() && synapse.target as usize == first + free {
                        *weight = 0;
                    }
                }
            } else {
                self.lost += 1;
            }
        }
        fired
    }

    fn learn(&mut self, burst: usize) {
        for ((source, synapse), weight) in self.synapses.iter().zip(&mut self.weights) {
            let Some(rule) = synapse.plasticity.map(|rule| self.rules[rule as usize]) else {
                continue;
            };
            let has_fired = |neuron: usize, burst: usize| {
                burst >= self.counts_from[neuron] && self.past[burst - 1].contains(&neuron)
            };
            let ends = [*source as usize, synapse.target as usize];
            let window = rule.window as usize;
            let bursts = burst.saturating_sub(window - 1).max(1)..=burst;
            let is_whole = burst >= window;
            if is_whole
                && bursts
                    .clone()
                    .all(|burst| ends.iter().all(|end| has_fired(*end, burst)))
            {
                *weight = (*weight + i64::from(rule.gain)).min(255);
                continue;
            }
            let source = ends[0];
            let loses = match rule.weight_loss {
                WeightLoss::AnyFiring => bursts
                    .clone()
                    .any(|burst| ends.iter().any(|end| has_fired(*end, burst))),
                WeightLoss::SteadySource => {
                    is_whole && bursts.clone().all(|burst| has_fired(source, burst))
                }
            };
            if loses {
                *weight = (*weight - i64::from(rule.loss)).max(0);
            }
        }
    }

    pub fn burst<'a>(&mut self, inputs: impl Iterator<Item = &'a (u32, f32)>) -> Vec<u32> {
        self.counts.bursts += 1;
        let burst = self.counts.bursts;
        for (source, potential) in std::mem::take(&mut self.fired) {
            let is_there = |synapse: &Synapse| synapse.plasticity.is_none() || synapse.weight > 0;
            let share = self
                .synapses
                .iter()
                .filter(|(from, synapse)| *from as usize == source && is_there(synapse))
                .count() as i64;
            let options = self.cells[source].options.clone();
            let remembers = self
                .memories
                .iter()
                .any(|(memory, _)| memory.neurons.contains(&(source as u32)));
            let psp = if options.potential_driven_psp && !remembers {
                (potential as f64 / f64::from(1u32 << self.cells[source].bits))
                    .round()
                    .clamp(0.0, 255.0) as i64
            } else {
                i64::from(options.psp)
            };
            let share = if options.uniform_psp { 1 } else { share.max(1) };
            let unit = ((psp << 16) + share / 2) / share;
            for ((from, synapse), weight) in self.synapses.iter().zip(&self.weights) {
                if *from as usize == source && (synapse.plasticity.is_none() || *weight > 0) {
                    let step = 1 << (16 - self.cells[synapse.target as usize].bits);
                    let sent = (unit * weight + step / 2) / step;
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
            cell.arrived += fixed(*amount, cell.bits);
        }
        let remembered = self.update_memories(burst as usize);
        for index in 0..self.cells.len() {
            let random = draw(self.seed, index as u32, burst);
            let idle_update = self.idle_update;
            let cell = &mut self.cells[index];
            let is_memory = self
                .memories
                .iter()
                .any(|(memory, _)| memory.neurons.contains(&(index as u32)));
            let potential = cell.burst(idle_update, random, is_memory);
            if remembered.contains(&index) {
                self.fired.push((index, 0));
            } else if let Some(potential) = potential {
                self.fired.push((index, potential));
            }
            if !cell.options.charge_accumulation {
                cell.potential = fixed(cell.options.resting_potential, cell.bits);
            }
        }
        self.counts.spikes += self.fired.len() as u64;
        let fired: Vec<u32> = self.fired.iter().map(|(index, _)| *index as u32).collect();
        for &neuron in &fired {
            let [first, second] = spike_marks(neuron, burst);
            let (low, high) = (
                self.counts.spike_hash as u32,
                (self.counts.spike_hash >> 32) as u32,
            );
            self.counts.spike_hash =
                u64::from(low.wrapping_add(first)) | u64::from(high.wrapping_add(second)) << 32;
        }
        self.past
            .push(fired.iter().map(|neuron| *neuron as usize).collect());
        self.learn(burst as usize);
        fired
    }
}

impl Cell {
    fn burst(&mut self, idle_update: IdleUpdate, random: u32, is_memory: bool) -> Option<i64> {
        let (options, bits) = (self.options.clone(), self.bits);
        let (touched, arrived) = (
            std::mem::take(&mut self.touched),
            std::mem::take(&mut self.arrived),
        );
        let limit = if options.consecutive_fire_limit == 65_535 {
            0
        } else {
            u64::from(options.consecutive_fire_limit)
        };
        let rest = fixed(options.resting_potential, bits);
        if !touched && idle_update == IdleUpdate::Freeze {
            return None;
        }
        // Refractory: arrivals are lost.
        if self.countdown > 0 {
            self.countdown -= 1;
            if self.countdown == 0 && limit > 0 && self.consecutive >= limit {
                self.consecutive = 0;
            }
            return None;
        }
        // A burst without arrivals is a burst without firing.
        if !touched {
            if limit > 0 {
                self.consecutive = 0;
            }
            self.leak(rest);
            return None;
        }
        let potential = (self.potential + arrived).clamp(-MAX, MAX);
        self.potential = potential;
        let inside = !is_memory
            && potential >= fixed(options.threshold, bits)
            && options
                .threshold_limit
                .is_none_or(|limit| potential <= fixed(limit, bits));
        if inside && limit > 0 && self.consecutive >= limit {
            self.consecutive = 0;
            return None;
        }
        let chance = if options.excitability >= 0.999 {
            1.0
        } else {
            f64::from(options.excitability)
        };
        if inside && f64::from(random) < (chance * 4_294_967_296.0).floor() {
            self.potential = rest;
            self.consecutive = (self.consecutive + 1).min(65_535);
            let snooze = if limit > 0 && self.consecutive >= limit {
                u64::from(options.snooze)
            } else {
                0
            };
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

/// The binary places of each neuron: the most, up to 16, with which its sums and its own levels stay
/// within the maximum.
fn formats(
    groups: &[(u32, NeuronOptions)],
    synapses: &[(u32, Synapse)],
    max_injected: f32,
) -> Vec<u32> {
    let options: Vec<&NeuronOptions> = groups
        .iter()
        .flat_map(|(count, options)| std::iter::repeat_n(options, *count as usize))
        .collect();
    let mut shares = vec![0u32; options.len()];
    for (source, synapse) in synapses {
        shares[*source as usize] += u32::from(synapse.plasticity.is_none() || synapse.weight > 0);
    }
    let (mut arrivals, mut weights) = (vec![0.0; options.len()], vec![0.0; options.len()]);
    let mut by_source: Vec<_> = synapses.iter().collect();
    by_source.sort_by_key(|(source, _)| *source);
    for (source, synapse) in by_source {
        let sender = options[*source as usize];
        let psp = if sender.potential_driven_psp {
            255.0
        } else {
            f64::from(sender.psp)
        };
        let share = if sender.uniform_psp {
            1
        } else {
            shares[*source as usize].max(1)
        };
        let weight = if synapse.plasticity.is_some() {
            255.0
        } else {
            f64::from(synapse.weight)
        };
        arrivals[synapse.target as usize] += psp / f64::from(share) * weight;
        weights[synapse.target as usize] += weight;
    }
    let places = |neuron: usize| {
        let options = options[neuron];
        let fits = |places: &u32| {
            let one = f64::from(1u32 << places);
            let rounding = weights[neuron] * if *places == 16 { 0.5 } else { 1.0 };
            let levels = [
                options.threshold,
                options.threshold_limit.unwrap_or(0.0),
                options.resting_potential,
            ];
            let is_low = |level: f32| {
                let level = f64::from(level.abs());
                level > f64::from(1 << 29) || level * one <= MAX as f64
            };
            (arrivals[neuron] + 2.0 * f64::from(max_injected)) * one + rounding <= MAX as f64
                && levels.into_iter().all(is_low)
        };
        (0..=16).rev().find(fits).unwrap_or(0)
    };
    (0..options.len()).map(places).collect()
}

/// The draw of a neuron and a burst, modulo 2³².
fn draw(seed: u32, neuron: u32, burst: u32) -> u32 {
    let mixed = word((u64::from(neuron) + u64::from(seed)) % (1 << 32) * 2_654_435_761)
        + word(u64::from(burst) * 1_597_334_677);
    let state = word(word(mixed) * 747_796_405 + 2_891_336_453);
    let scrambled = word(((state >> ((state >> 28) + 4)) ^ state) * 277_803_737);
    ((scrambled >> 22) ^ scrambled) as u32
}

/// The two words that a firing adds to the spike hash.
fn spike_marks(neuron: u32, burst: u32) -> [u32; 2] {
    let (neuron, burst) = (u64::from(neuron), u64::from(burst));
    let first = scramble(neuron ^ scramble(burst ^ 0x9e37_79b9));
    [
        first,
        scramble(first ^ word(neuron * 0x85eb_ca6b) ^ 0x27d4_eb2f),
    ]
    .map(|mark| mark as u32)
}

fn scramble(x: u64) -> u64 {
    let x = word((x ^ (x >> 16)) * 0x85eb_ca6b);
    let x = word((x ^ (x >> 13)) * 0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The lower 32 bits.
fn word(number: u64) -> u64 {
    number % (1 << 32)
}

fn fixed(value: f32, bits: u32) -> i64 {
    (f64::from(value) * f64::from(1u32 << bits)).round() as i64
}
