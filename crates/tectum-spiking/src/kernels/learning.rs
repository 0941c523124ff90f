//! The kernels of plasticity and of memories with their native twins, in the order in which a burst
//! runs them.

use std::ops::Range;

use rayon::prelude::*;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::prefetch_read;
use tectum::{NativeCall, TypedKernel, kernel_arguments};

use super::super::connectome::{INHIBITORY, TARGET_SHIFT, WEIGHT, padded_len, row_of};
use super::super::formats::TargetShifts;
use super::super::learning::{History, NO_SPIKE_BEFORE, PlasticityRule, Visit, WeightLoss};
use super::super::rule;
use super::{AHEAD, FIXED_PSP};
use crate::kernel::built_in;

/// Words of a memory in the table of device code.
pub const MEMORY_WORDS: usize = 12;
/// Words of a memory's state before those of its neurons, and words per neuron.
pub const MEMORY_STATE_WORDS: usize = 4;

kernel_arguments! {
    /// The firings of the previous burst into the ledger and the histories of the neurons.
    pub struct Archive {
        read clock: u32, read fired: u32, read rules: u32, atomic ledger: u32, read_write histories: u32;
        offset: u32, list_at: usize, depth: usize, words: usize, rule_count: usize, neurons: usize
    }

    /// The plastic synapses of the neurons that fired: what they learned, and what they send.
    pub struct Learn {
        read clock: u32, read fired: u32, read starts: u32, read histories: u32, read senders: u32, read_write synapses: u32, atomic sums: i32, atomic totals: u32;
        offset: u32, parts: usize, rule: usize, neurons: usize, first: u32, window: u32, gain: u32, loss: u32, steady: u32, len: usize, chunk: usize, tracked: u32,
        shift: u32, list_at: usize, slices: u32
    }

    /// The plastic synapses of the neurons whose window closes.
    pub struct Close {
        read clock: u32, read ledger: u32, read starts: u32, read histories: u32, read_write synapses: u32;
        offset: u32, parts: usize, rule: usize, neurons: usize, first: u32, len: usize, window: u32, loss: u32, depth: usize, words: usize
    }

    /// Patterns of earlier bursts into the neurons of memories, which fire.
    pub struct Memorize {
        read clock: u32, read ledger: u32, read table: u32, read_write kept: u32, atomic fired: u32;
        offset: u32, depth: usize, words: usize, first: u32, end: u32, list_at: usize, bits_at: usize, memories: usize
    }

    /// The plastic synapses of neurons that a memory took for another pattern.
    pub struct Forget {
        read clock: u32, read table: u32, read kept: u32, read starts: u32, read weights: u32, read_write histories: u32, read_write synapses: u32;
        offset: u32, parts: usize, rule: usize, neurons: usize, first: u32, end: u32, len: usize, window: u32, memories: usize, first_kept: u32,
        last_kept: u32, weights_at: usize, are_reached: u32, is_first: u32
    }
}

/// The kernels of plasticity and of memories.
pub struct LearningKernels {
    pub archive: TypedKernel<Archive>,
    pub learn: TypedKernel<Learn>,
    pub close: TypedKernel<Close>,
    pub memory: TypedKernel<Memorize>,
    pub forget: TypedKernel<Forget>,
}

impl LearningKernels {
    pub fn new() -> Self {
        let learn = [
            super::FIRING,
            super::PART,
            include_str!("../../kernels/spiking_learn.wgsl"),
        ]
        .concat();
        let close = [
            super::PART,
            include_str!("../../kernels/spiking_close.wgsl"),
        ]
        .concat();
        let forget = [
            super::PART,
            include_str!("../../kernels/spiking_forget.wgsl"),
        ]
        .concat();
        Self {
            archive: built_in(
                Archive::define("spiking_archive")
                    .body(include_str!("../../kernels/spiking_archive.wgsl")),
                native_archive,
            ),
            learn: built_in(Learn::define("spiking_learn").body(learn), native_learn),
            close: built_in(Close::define("spiking_close").body(close), native_close),
            memory: built_in(
                Memorize::define("spiking_memory")
                    .body(include_str!("../../kernels/spiking_memory.wgsl")),
                native_memory,
            ),
            forget: built_in(Forget::define("spiking_forget").body(forget), native_forget),
        }
    }
}

fn native_archive(_: &NativeCall<'_>, arguments: Archive<Slices<'_>>) {
    let Archive {
        clock,
        fired,
        rules,
        ledger,
        histories,
        offset,
        list_at,
        depth,
        words,
        rule_count,
        neurons,
    } = arguments;
    let burst = clock[0].wrapping_add(offset) - 1;
    let row = |burst: usize| burst % depth * words..(burst % depth + 1) * words;
    ledger[row(burst as usize + 1)].fill(0);
    let row = &mut ledger[row(burst as usize)];
    let (list, _) = fired[list_at..].as_chunks::<2>();
    let list = &list[..fired[0] as usize];
    for &[neuron, _] in list {
        row[neuron as usize / 32] |= 1 << (neuron % 32);
    }
    let (histories, _) = histories.as_chunks_mut::<4>();
    let (rules, _) = rules.as_chunks::<4>();
    for (histories, [window, ..]) in histories.chunks_mut(neurons).zip(&rules[..rule_count]) {
        for &[neuron, _] in list {
            let words = &mut histories[neuron as usize];
            let mut history = History::of(*words);
            history.fire(burst, *window);
            *words = history.words();
        }
    }
}

/// A part of a launch: the starts of its rows, its first target, and its synapses, word and count
/// of each.
type Part<'a> = (&'a [u32], usize, &'a mut [[u32; 2]]);

/// The parts of a launch, each of `len` targets from `first` on.
fn parts<'a>(
    count: usize,
    neurons: usize,
    starts: &'a [u32],
    [first, len]: [usize; 2],
    synapses: &'a mut [u32],
) -> impl Iterator<Item = Part<'a>> {
    let (mut rest, _) = synapses.as_chunks_mut::<2>();
    starts
        .chunks_exact(neurons + 1)
        .take(count)
        .enumerate()
        .map(move |(part, starts)| {
            let synapses = rest.split_off_mut(..padded_len(starts)).unwrap_or_default();
            (starts, first + part * len, synapses)
        })
}

/// Each thread walks, for its part of the targets, the plastic rows of all neurons that fired.
fn native_learn(call: &NativeCall<'_>, arguments: Learn<Slices<'_>>) {
    let Learn {
        clock,
        fired,
        starts,
        histories,
        senders,
        synapses,
        sums,
        totals,
        offset,
        parts: count,
        rule: number,
        neurons,
        first,
        ..
    } = arguments;
    let Learn {
        window,
        gain,
        loss,
        steady,
        len,
        chunk,
        shift,
        list_at,
        ..
    } = arguments;
    let burst = clock[0].wrapping_add(offset) - 1;
    let rule = PlasticityRule {
        window,
        gain: gain as u8,
        loss: loss as u8,
        weight_loss: if steady != 0 {
            WeightLoss::SteadySource
        } else {
            WeightLoss::AnyFiring
        },
    };
    let (histories, _) = histories.as_chunks::<4>();
    let histories = &histories[number * neurons..(number + 1) * neurons];
    let (list, _) = fired[list_at..].as_chunks::<2>();
    let list = &list[..fired[0] as usize];
    let (senders, shifts) = senders.split_at(neurons);
    let walk = |((starts, first, synapses), sums): (Part<'_>, &mut [i32])| {
        let (sums, bits) = sums.split_at_mut(len);
        let targets = &histories[first..];
        let mut ends = RowTargets {
            targets,
            sums,
            bits,
            shifts: TargetShifts::new(shift, shifts, first),
        };
        let mut events = 0;
        for (index, &[neuron, psp]) in list.iter().enumerate() {
            if let Some(&[next, _]) = list.get(index + AHEAD) {
                let row = row_of(starts, next);
                prefetch_read(synapses[row.start..row.end.min(row.start + 128)].as_flattened());
            }
            let sender = senders[neuron as usize];
            let unit = if psp == FIXED_PSP {
                sender
            } else {
                rule::unit(psp, sender)
            };
            let visit = rule.visit(&History::of(histories[neuron as usize]), burst);
            let row = &mut synapses[row_of(starts, neuron)];
            events += match (visit.lost.is_some(), visit.may_gain) {
                (false, false) => ends.learn::<false, false>(row, visit, unit),
                (false, true) => ends.learn::<false, true>(row, visit, unit),
                (true, false) => ends.learn::<true, false>(row, visit, unit),
                (true, true) => ends.learn::<true, true>(row, visit, unit),
            };
            if rule.window == 1 {
                row.iter_mut().for_each(|[word, seen]| {
                    *seen = History::of(targets[(*word >> TARGET_SHIFT) as usize]).active
                });
            }
        }
        events
    };
    // A plastic synapse costs about as much as twenty streamed elements.
    let work = list
        .len()
        .saturating_mul(synapses.len() / 2 / neurons + 1)
        .saturating_mul(20);
    let shared =
        parts(count, neurons, starts, [first as usize, len], synapses).zip(sums.chunks_mut(chunk));
    let events: u64 = if call.threads_for(work) > 1 {
        shared.collect::<Vec<_>>().into_par_iter().map(walk).sum()
    } else {
        shared.map(walk).sum()
    };
    super::count_events(totals, events);
}

/// The targets of a part's rows.
struct RowTargets<'a> {
    targets: &'a [[u32; 4]],
    sums: &'a mut [i32],
    bits: &'a mut [i32],
    shifts: TargetShifts<'a>,
}

impl RowTargets<'_> {
    /// Brings a row up to date and sends through it; returns the number of synapses that carried a
    /// spike. One loop for each kind of row, so that conditions common to all of its synapses are
    /// tested once.
    #[inline(never)]
    fn learn<const IS_OPEN: bool, const MAY_GAIN: bool>(
        &mut self,
        row: &mut [[u32; 2]],
        visit: Visit,
        unit: u32,
    ) -> u64 {
        let visit = Visit {
            lost: visit.lost.filter(|_| IS_OPEN),
            may_gain: MAY_GAIN,
            ..visit
        };
        let mut events = 0;
        for [word, seen] in row {
            let i = (*word >> TARGET_SHIFT) as usize;
            let weight = visit.weight(&History::of(self.targets[i]), *word & WEIGHT, *seen);
            *word = *word & !WEIGHT | weight;
            if weight != 0 {
                events += 1;
                let size = if self.shifts.is_none() {
                    (weight * unit) as i32
                } else {
                    self.shifts.rounded(weight * unit, i)
                };
                let size = if *word & INHIBITORY == 0 { size } else { -size };
                self.sums[i] = self.sums[i].wrapping_add(size);
                if !self.bits.is_empty() {
                    self.bits[i / 32] |= 1 << (i % 32);
                }
            }
        }
        events
    }
}

fn native_close(call: &NativeCall<'_>, arguments: Close<Slices<'_>>) {
    let Close {
        clock,
        ledger,
        starts,
        histories,
        synapses,
        offset,
        parts: count,
        rule: number,
        neurons,
        first,
        len,
        window,
        loss,
        depth,
        words,
    } = arguments;
    let burst = clock[0].wrapping_add(offset) - 1;
    let rule = PlasticityRule {
        window,
        gain: 0,
        loss: loss as u8,
        weight_loss: WeightLoss::AnyFiring,
    };
    let Some(closing) = (burst + 1)
        .checked_sub(rule.window)
        .filter(|closing| *closing > 0)
    else {
        return;
    };
    let (histories, _) = histories.as_chunks::<4>();
    let histories = &histories[number * neurons..(number + 1) * neurons];
    let row = &ledger[closing as usize % depth * words..][..words];
    let closed: Vec<u32> = set_bits(row, 0..neurons as u32)
        .filter(|neuron| histories[*neuron as usize][0] == closing)
        .collect();
    let walk = |(starts, first, synapses): Part<'_>| {
        let targets = &histories[first..];
        for (index, &neuron) in closed.iter().enumerate() {
            if let Some(&next) = closed.get(index + AHEAD) {
                let row = row_of(starts, next);
                prefetch_read(synapses[row.start..row.end.min(row.start + 128)].as_flattened());
            }
            for [word, seen] in &mut synapses[row_of(starts, neuron)] {
                *seen = History::of(targets[(*word >> TARGET_SHIFT) as usize])
                    .active_until(burst, rule.window);
                *word = *word & !WEIGHT | rule.weight_at_window_close(*word & WEIGHT);
            }
        }
    };
    let work = closed
        .len()
        .saturating_mul(synapses.len() / 2 / neurons + 1)
        .saturating_mul(16);
    let shared = parts(count, neurons, starts, [first as usize, len], synapses);
    if call.threads_for(work) > 1 {
        shared.collect::<Vec<_>>().into_par_iter().for_each(walk)
    } else {
        shared.for_each(walk)
    }
}

/// The positions of the set bits in a range of a row, ascending.
pub fn set_bits(row: &[u32], range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
    let words = range.start / 32..range.end.div_ceil(32);
    words
        .flat_map(move |word| {
            let mut bits = row[word as usize];
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 32).then_some(32 * word + bit)
            })
        })
        .filter(move |bit| range.contains(bit))
}

/// A memory in the table of device code.
pub struct MemoryRow {
    pub neurons: Range<u32>,
    pub depth: u32,
    pub initial: u32,
    pub growth: u32,
    pub longterm: u32,
    pub kept_at: usize,
    ranges: Range<usize>,
}

impl MemoryRow {
    /// The words of a row; its upstream ranges begin at `ranges_at` in the table.
    pub fn words(
        memory: &super::super::memory::Memory,
        kept_at: usize,
        ranges_at: usize,
    ) -> [u32; MEMORY_WORDS] {
        let Range { start, end } = memory.neurons;
        let [kept_at, ranges_at, ranges] =
            [kept_at, ranges_at, memory.upstream.len()].map(|size| size as u32);
        [
            start,
            end - start,
            memory.depth,
            memory.initial_lifespan,
            memory.lifespan_growth,
            memory.longterm_threshold,
            kept_at,
            ranges_at,
            ranges,
            0,
            0,
            0,
        ]
    }

    fn read(table: &[u32], index: usize) -> Self {
        let row = &table[MEMORY_WORDS * index..][..MEMORY_WORDS];
        let ranges_at = row[7] as usize;
        Self {
            neurons: row[0]..row[0] + row[1],
            depth: row[2],
            initial: row[3],
            growth: row[4],
            longterm: row[5],
            kept_at: row[6] as usize,
            ranges: ranges_at..ranges_at + 2 * row[8] as usize,
        }
    }
}

fn native_memory(_: &NativeCall<'_>, arguments: Memorize<Slices<'_>>) {
    let Memorize {
        clock,
        ledger,
        table,
        kept,
        fired,
        offset,
        depth,
        words,
        first,
        end,
        list_at,
        bits_at,
        memories,
    } = arguments;
    let (burst, own) = (clock[0].wrapping_add(offset), first..end);
    for index in 0..memories {
        let memory = MemoryRow::read(table, index);
        let (mut is_seen, mut pattern) = (false, [0u32; 2]);
        let (ranges, _) = table[memory.ranges.clone()].as_chunks::<2>();
        for age in 0..memory.depth.min(burst - 1) {
            let row = &ledger[(burst - 1 - age) as usize % depth * words..][..words];
            for neuron in ranges
                .iter()
                .flat_map(|&[start, end]| set_bits(row, start..end))
            {
                is_seen = true;
                let marks = rule::spike_hash_words(neuron, age);
                pattern = [0, 1].map(|index| pattern[index].wrapping_add(marks[index]));
            }
        }

        let (head, slots) = kept[memory.kept_at..]
            [..MEMORY_STATE_WORDS * (1 + memory.neurons.len())]
            .split_at_mut(MEMORY_STATE_WORDS);
        let (slots, _) = slots.as_chunks_mut::<MEMORY_STATE_WORDS>();
        for [life, is_long, ..] in slots.iter_mut() {
            if *life != 0 && *is_long == 0 {
                if *life >= memory.longterm {
                    *is_long = 1
                } else {
                    *life -= 1
                }
            }
        }
        head[0] = 0;
        if !is_seen {
            continue;
        }
        let chosen = match slots
            .iter()
            .position(|[life, _, first, second]| *life != 0 && [*first, *second] == pattern)
        {
            Some(chosen) => {
                let [life, is_long, ..] = &mut slots[chosen];
                if *is_long == 0 {
                    *life = life.saturating_add(memory.growth);
                }
                chosen
            }
            None => match slots.iter().position(|[life, ..]| *life == 0) {
                Some(free) => {
                    slots[free] = [memory.initial, 0, pattern[0], pattern[1]];
                    head[0] = free as u32 + 1;
                    head[1] = head[1].wrapping_add(1);
                    free
                }
                None => {
                    head[2] = head[2].wrapping_add(1);
                    continue;
                }
            },
        };
        let neuron = memory.neurons.start + chosen as u32;
        if own.contains(&neuron) {
            let place = list_at + 2 * fired[0] as usize;
            fired[place..place + 2].copy_from_slice(&[neuron, FIXED_PSP]);
            let marks = rule::spike_hash_words(neuron, burst);
            for (word, added) in fired[..4].iter_mut().zip([1, 1, marks[0], marks[1]]) {
                *word = word.wrapping_add(added);
            }
            let i = neuron - own.start;
            fired[bits_at + i as usize / 32] |= 1 << (i % 32);
        }
    }
}

fn native_forget(_: &NativeCall<'_>, arguments: Forget<Slices<'_>>) {
    let Forget {
        clock,
        table,
        kept,
        starts,
        weights,
        histories,
        synapses,
        offset,
        parts: count,
        rule: number,
        neurons,
        first,
        len,
        window,
        ..
    } = arguments;
    let Forget {
        memories,
        first_kept,
        last_kept,
        weights_at: first_weight,
        are_reached,
        is_first,
        ..
    } = arguments;
    let burst = clock[0].wrapping_add(offset);
    let (histories, _) = histories.as_chunks_mut::<4>();
    let histories = &mut histories[number * neurons..(number + 1) * neurons];
    for index in 0..memories {
        let memory = MemoryRow::read(table, index);
        let Some(taken) = kept[memory.kept_at].checked_sub(1) else {
            continue;
        };
        let neuron = memory.neurons.start + taken;
        let mut weights_at = first_weight;
        for (starts, first, synapses) in
            parts(count, neurons, starts, [first as usize, len], synapses)
        {
            let [row, kept] = [
                row_of(starts, neuron),
                starts[first_kept as usize] as usize..starts[last_kept as usize] as usize,
            ];
            let begun = &weights[weights_at + row.start - kept.start..][..row.len()];
            for ([word, seen], weight) in synapses[row].iter_mut().zip(begun) {
                *seen = History::of(histories[first + (*word >> TARGET_SHIFT) as usize])
                    .active_until(burst - 1, window);
                *word = *word & !WEIGHT | weight;
            }
            if are_reached != 0 && (first..first + len).contains(&(neuron as usize)) {
                let reached = neuron - first as u32;
                synapses
                    .iter_mut()
                    .filter(|[word, _]| word >> TARGET_SHIFT == reached)
                    .for_each(|[word, _]| *word &= !WEIGHT);
            }
            weights_at += kept.len();
        }
        if is_first != 0 {
            let [_, run, _, before] = &mut histories[neuron as usize];
            (*run, *before) = (0, NO_SPIKE_BEFORE);
        }
    }
}
