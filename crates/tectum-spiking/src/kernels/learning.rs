//! The kernels of plasticity and of memories with their native twins, in the order in which a burst runs them.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tectum::kernel::native::prefetch_read;
use tectum::{DType, Kernel, NativeCall};

use super::super::connectome::{SynapsePartition, TARGET_SHIFT, WEIGHT, weight_of};
use super::super::learning::{History, NO_SPIKE_BEFORE, PlasticityRule, Visit};
use super::super::rule;
use super::{AHEAD, FIXED_PSP};
use crate::kernel::{built_in, words};

/// Words of a memory in the table of device code.
pub const MEMORY_WORDS: usize = 12;
/// Words of a memory's state before those of its neurons, and words per neuron.
pub const MEMORY_STATE_WORDS: usize = 4;

/// The kernels of plasticity and of memories.
pub struct LearningKernels {
    pub archive: Arc<Kernel>,
    pub learn: Arc<Kernel>,
    pub close: Arc<Kernel>,
    pub memory: Arc<Kernel>,
    pub forget: Arc<Kernel>,
}

impl LearningKernels {
    /// The kernels, and for the CPU the rows of plastic synapses, by rule and part; their words are in another buffer.
    pub fn new(rows: Arc<Vec<Vec<SynapsePartition>>>) -> Self {
        let reading = |name: &'static str, read: &[&'static str]| read.iter().fold(Kernel::define(name), |builder, name| builder.read(name, DType::U32));
        let archive = reading("spiking_archive", &["clock", "fired", "rules"]).atomic("ledger", DType::U32).read_write("histories", DType::U32);
        let learn = reading("spiking_learn", &["clock", "fired", "starts", "histories", "senders"]).read_write("synapses", DType::U32);
        let learn = learn.atomic("sums", DType::I32).atomic("totals", DType::U32);
        let close = reading("spiking_close", &["clock", "ledger", "starts", "histories"]).read_write("synapses", DType::U32);
        let memory = reading("spiking_memory", &["clock", "ledger", "table"]).read_write("kept", DType::U32).atomic("fired", DType::U32);
        let forget = reading("spiking_forget", &["clock", "table", "kept", "starts", "weights"]);
        let forget = forget.read_write("histories", DType::U32).read_write("synapses", DType::U32);

        let archive = words(archive, &["offset", "list_at", "depth", "words", "rule_count", "neurons"]);
        let learn = words(learn, &["offset", "rule", "neurons", "first", "window", "gain", "loss", "len", "tracked", "fraction_bits", "list_at", "slices"]);
        let close = words(close, &["offset", "rule", "neurons", "first", "window", "loss", "depth", "words"]);
        let memory = words(memory, &["offset", "depth", "words", "first", "end", "list_at", "bits_at", "memories"]);
        let forget = words(
            forget,
            &["offset", "rule", "neurons", "first", "end", "window", "memories", "first_kept", "last_kept", "weights_at", "are_reached", "is_first"],
        );
        Self {
            archive: built_in(archive.body(include_str!("../../kernels/spiking_archive.wgsl")), native_archive),
            learn: built_in(learn.body(super::FIRING.to_owned() + include_str!("../../kernels/spiking_learn.wgsl")).data(rows.clone()), native_learn),
            close: built_in(close.body(include_str!("../../kernels/spiking_close.wgsl")).data(rows.clone()), native_close),
            memory: built_in(memory.body(include_str!("../../kernels/spiking_memory.wgsl")), native_memory),
            forget: built_in(forget.body(include_str!("../../kernels/spiking_forget.wgsl")).data(rows), native_forget),
        }
    }
}

fn native_archive(call: &NativeCall<'_>) {
    let (clock, fired, rules) = (call.read::<u32>(0), call.read::<u32>(1), call.read::<u32>(2));
    let (ledger, histories) = (call.write::<u32>(3), call.write::<u32>(4));
    let burst = clock[0].wrapping_add(call.u32(0)) - 1;
    let [depth, words, rule_count, neurons] = [2, 3, 4, 5].map(|index| call.size(index));
    let row = |burst: usize| burst % depth * words..(burst % depth + 1) * words;
    ledger[row(burst as usize + 1)].fill(0);
    let row = &mut ledger[row(burst as usize)];
    let (list, _) = fired[call.size(1)..].as_chunks::<2>();
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

/// The synapses of one rule by part: word and count of each.
fn by_part<'a>(parts: &'a [SynapsePartition], synapses: &'a mut [u32]) -> impl Iterator<Item = (&'a SynapsePartition, &'a mut [[u32; 2]])> {
    let (mut rest, _) = synapses.as_chunks_mut::<2>();
    parts.iter().map(move |part| {
        let (synapses, others) = std::mem::take(&mut rest).split_at_mut(part.padded_len());
        rest = others;
        (part, synapses)
    })
}

/// Each thread walks, for its part of the targets, the plastic rows of all neurons that fired.
fn native_learn(call: &NativeCall<'_>) {
    let burst = call.read::<u32>(0)[0].wrapping_add(call.u32(0)) - 1;
    let (fired, histories, senders) = (call.read::<u32>(1), call.read::<u32>(3), call.read::<u32>(4));
    let (synapses, sums, totals) = (call.write::<u32>(5), call.write::<i32>(6), call.write::<u32>(7));
    let (number, neurons, len) = (call.size(1), call.size(2), call.size(7));
    let rule = PlasticityRule { window: call.u32(4), gain: call.u32(5) as u8, loss: call.u32(6) as u8 };
    let (tracked, fraction_bits) = (call.u32(8) != 0, call.u32(9));
    let parts = &call.data::<Vec<Vec<SynapsePartition>>>()[number];
    let (histories, _) = histories.as_chunks::<4>();
    let histories = &histories[number * neurons..(number + 1) * neurons];
    let (list, _) = fired[call.size(10)..].as_chunks::<2>();
    let list = &list[..fired[0] as usize];
    let walk = |((part, synapses), sums): ((&SynapsePartition, &mut [[u32; 2]]), &mut [i32])| {
        let (sums, bits) = sums.split_at_mut(len);
        let targets = &histories[part.targets.start as usize..part.targets.end as usize];
        let bits = if tracked { bits } else { &mut [] };
        let mut ends = RowTargets { targets, sums, bits };
        let mut events = 0;
        for (index, &[neuron, psp]) in list.iter().enumerate() {
            if let Some(&[next, _]) = list.get(index + AHEAD) {
                let row = part.row(next);
                prefetch_read(synapses[row.start..row.end.min(row.start + 128)].as_flattened());
            }
            let sender = senders[neuron as usize];
            let unit = if psp == FIXED_PSP { sender } else { rule::unit(psp, fraction_bits, sender) } as i32;
            let visit = rule.visit(&History::of(histories[neuron as usize]), burst);
            let row = &mut synapses[part.row(neuron)];
            events += match (visit.lost.is_some(), visit.may_gain) {
                (false, false) => ends.learn::<false, false>(row, visit, unit),
                (false, true) => ends.learn::<false, true>(row, visit, unit),
                (true, false) => ends.learn::<true, false>(row, visit, unit),
                (true, true) => ends.learn::<true, true>(row, visit, unit),
            };
            if rule.window == 1 {
                row.iter_mut().for_each(|[word, seen]| *seen = History::of(targets[(*word >> TARGET_SHIFT) as usize]).active);
            }
        }
        events
    };
    let shared = by_part(parts, synapses).zip(sums.chunks_mut(if tracked { len + len / 32 } else { len }));
    let rows: usize = parts.iter().map(SynapsePartition::padded_len).sum();
    // A plastic synapse costs about as much as twenty streamed elements.
    let work = list.len().saturating_mul(rows / neurons + 1).saturating_mul(20);
    let events: u64 = if call.threads_for(work) > 1 { shared.collect::<Vec<_>>().into_par_iter().map(walk).sum() } else { shared.map(walk).sum() };
    super::count_events(totals, events);
}

/// The targets of a part's rows.
struct RowTargets<'a> {
    targets: &'a [[u32; 4]],
    sums: &'a mut [i32],
    bits: &'a mut [i32],
}

impl RowTargets<'_> {
    /// Brings a row up to date and sends through it; returns the number of synapses that carried a spike. One loop for each kind of row, so that
    /// conditions common to all of its synapses are tested once.
    #[inline(never)]
    fn learn<const IS_OPEN: bool, const MAY_GAIN: bool>(&mut self, row: &mut [[u32; 2]], visit: Visit, unit: i32) -> u64 {
        let visit = Visit { lost: visit.lost.filter(|_| IS_OPEN), may_gain: MAY_GAIN, ..visit };
        let mut events = 0;
        for [word, seen] in row {
            let i = (*word >> TARGET_SHIFT) as usize;
            let weight = visit.weight(&History::of(self.targets[i]), *word & WEIGHT, *seen);
            *word = *word & !WEIGHT | weight;
            if weight != 0 {
                events += 1;
                self.sums[i] = self.sums[i].wrapping_add(weight_of(*word) * unit);
                if !self.bits.is_empty() {
                    self.bits[i / 32] |= 1 << (i % 32);
                }
            }
        }
        events
    }
}

fn native_close(call: &NativeCall<'_>) {
    let burst = call.read::<u32>(0)[0].wrapping_add(call.u32(0)) - 1;
    let (ledger, histories, synapses) = (call.read::<u32>(1), call.read::<u32>(3), call.write::<u32>(4));
    let (number, neurons) = (call.size(1), call.size(2));
    let rule = PlasticityRule { window: call.u32(4), gain: 0, loss: call.u32(5) as u8 };
    let (depth, words) = (call.size(6), call.size(7));
    let Some(closing) = (burst + 1).checked_sub(rule.window).filter(|closing| *closing > 0) else { return };
    let (histories, _) = histories.as_chunks::<4>();
    let histories = &histories[number * neurons..(number + 1) * neurons];
    let row = &ledger[closing as usize % depth * words..][..words];
    let closed: Vec<u32> = set_bits(row, 0..neurons as u32).filter(|neuron| histories[*neuron as usize][0] == closing).collect();
    let parts = &call.data::<Vec<Vec<SynapsePartition>>>()[number];
    let walk = |(part, synapses): (&SynapsePartition, &mut [[u32; 2]])| {
        let targets = &histories[part.targets.start as usize..part.targets.end as usize];
        for (index, &neuron) in closed.iter().enumerate() {
            if let Some(&next) = closed.get(index + AHEAD) {
                let row = part.row(next);
                prefetch_read(synapses[row.start..row.end.min(row.start + 128)].as_flattened());
            }
            for [word, seen] in &mut synapses[part.row(neuron)] {
                *seen = History::of(targets[(*word >> TARGET_SHIFT) as usize]).active_until(burst, rule.window);
                *word = *word & !WEIGHT | rule.weight_at_window_close(*word & WEIGHT);
            }
        }
    };
    let rows: usize = parts.iter().map(SynapsePartition::padded_len).sum();
    let work = closed.len().saturating_mul(rows / neurons + 1).saturating_mul(16);
    let shared = by_part(parts, synapses);
    if call.threads_for(work) > 1 { shared.collect::<Vec<_>>().into_par_iter().for_each(walk) } else { shared.for_each(walk) }
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
    pub fn words(memory: &super::super::memory::Memory, kept_at: usize, ranges_at: usize) -> [u32; MEMORY_WORDS] {
        let Range { start, end } = memory.neurons;
        let [kept_at, ranges_at, ranges] = [kept_at, ranges_at, memory.upstream.len()].map(|size| size as u32);
        [start, end - start, memory.depth, memory.initial_lifespan, memory.lifespan_growth, memory.longterm_threshold, kept_at, ranges_at, ranges, 0, 0, 0]
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

fn native_memory(call: &NativeCall<'_>) {
    let (ledger, table, kept, fired) = (call.read::<u32>(1), call.read::<u32>(2), call.write::<u32>(3), call.write::<u32>(4));
    let burst = call.read::<u32>(0)[0].wrapping_add(call.u32(0));
    let [depth, words] = [1, 2].map(|index| call.size(index));
    let (own, list_at, bits_at) = (call.u32(3)..call.u32(4), call.size(5), call.size(6));
    for index in 0..call.size(7) {
        let memory = MemoryRow::read(table, index);
        let (mut is_seen, mut pattern) = (false, [0u32; 2]);
        let (ranges, _) = table[memory.ranges.clone()].as_chunks::<2>();
        for age in 0..memory.depth.min(burst - 1) {
            let row = &ledger[(burst - 1 - age) as usize % depth * words..][..words];
            for neuron in ranges.iter().flat_map(|&[start, end]| set_bits(row, start..end)) {
                is_seen = true;
                let marks = rule::spike_hash_words(neuron, age);
                pattern = [0, 1].map(|index| pattern[index].wrapping_add(marks[index]));
            }
        }

        let (head, slots) = kept[memory.kept_at..][..MEMORY_STATE_WORDS * (1 + memory.neurons.len())].split_at_mut(MEMORY_STATE_WORDS);
        let (slots, _) = slots.as_chunks_mut::<MEMORY_STATE_WORDS>();
        for [life, is_long, ..] in slots.iter_mut() {
            if *life != 0 && *is_long == 0 {
                if *life >= memory.longterm { *is_long = 1 } else { *life -= 1 }
            }
        }
        head[0] = 0;
        if !is_seen {
            continue;
        }
        let chosen = match slots.iter().position(|[life, _, first, second]| *life != 0 && [*first, *second] == pattern) {
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

fn native_forget(call: &NativeCall<'_>) {
    let (table, kept, weights) = (call.read::<u32>(1), call.read::<u32>(2), call.read::<u32>(4));
    let (histories, synapses) = (call.write::<u32>(5), call.write::<u32>(6));
    let burst = call.read::<u32>(0)[0].wrapping_add(call.u32(0));
    let (number, neurons, window, memories) = (call.size(1), call.size(2), call.u32(5), call.size(6));
    let (first_kept, last_kept, are_reached) = (call.u32(7), call.u32(8), call.u32(10) != 0);
    let (histories, _) = histories.as_chunks_mut::<4>();
    let histories = &mut histories[number * neurons..(number + 1) * neurons];
    for index in 0..memories {
        let memory = MemoryRow::read(table, index);
        let Some(taken) = kept[memory.kept_at].checked_sub(1) else { continue };
        let neuron = memory.neurons.start + taken;
        let mut weights_at = call.size(9);
        for (part, synapses) in by_part(&call.data::<Vec<Vec<SynapsePartition>>>()[number], synapses) {
            let row = part.row(neuron);
            let first = part.starts[first_kept as usize] as usize;
            let begun = &weights[weights_at + row.start - first..][..row.len()];
            for ([word, seen], weight) in synapses[row].iter_mut().zip(begun) {
                *seen = History::of(histories[(part.targets.start + (*word >> TARGET_SHIFT)) as usize]).active_until(burst - 1, window);
                *word = *word & !WEIGHT | weight;
            }
            if are_reached && part.targets.contains(&neuron) {
                let reached = neuron - part.targets.start;
                synapses.iter_mut().filter(|[word, _]| word >> TARGET_SHIFT == reached).for_each(|[word, _]| *word &= !WEIGHT);
            }
            weights_at += part.starts[last_kept as usize] as usize - first;
        }
        let [_, run, _, before] = &mut histories[neuron as usize];
        (*run, *before) = (0, NO_SPIKE_BEFORE);
    }
}
