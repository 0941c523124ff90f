//! The kernels of a burst with their native twins. A launch covers several parts: on the CPU each
//! part is one thread's, on other devices it has its share of the workgroups.

mod learning;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::{prefetch_line, prefetch_read, simd};
use tectum::{Kernel, NativeCall, TypedKernel, kernel_arguments};

use super::connectome::{self, INHIBITORY, TARGET_SHIFT, WEIGHT, weight_of};
use super::formats::TargetShifts;
use super::rule::{self, ALWAYS, IdleUpdate, NeuronState, POTENTIAL_MAX, PROFILE_WORDS, Profile};
use crate::kernel::built_in;
pub use learning::{
    Archive, Close, Forget, Learn, LearningKernels, MEMORY_STATE_WORDS, MEMORY_WORDS, Memorize,
    MemoryRow, set_bits,
};

/// Device code for an entry of the list of firings, prepended to the kernels that walk it.
const FIRING: &str = include_str!("../kernels/spiking_firing.wgsl");
/// Device code for the part of a workgroup, prepended to the kernels that walk rows.
const PART: &str = include_str!("../kernels/spiking_part.wgsl");

/// In the list of firings: the neuron's psp is constant.
pub const FIXED_PSP: u32 = u32::MAX;
/// Workgroups that walk rows, in all parts of a launch together.
pub const ROW_WORKGROUPS: u32 = 2048;
/// Words before the list of firings.
pub const HEADER_WORDS: usize = 64;
/// Prefetch distance of the native twin, in rows.
const AHEAD: usize = 8;
/// Neurons that are tested together for arrivals.
const BLOCK: usize = 32;

kernel_arguments! {
    /// Firings of other shards, given as bits, into the list of firings.
    pub struct Unpack { read clock: u32, read exchanged: u32, atomic fired: u32; list_at: usize, words: u32 }

    /// Inputs of the burst into the sums; the list of firings is emptied.
    pub struct Inject {
        read inputs: u32, read steady: u32, atomic sums: i32, atomic fired: u32;
        len: usize, chunk: usize, tracked: u32, is_first: u32, steady_count: usize, bits_at: usize, bit_words: usize
    }

    /// Firings through the synapses of some parts into the sums of their targets.
    pub struct Propagate {
        read fired: u32, read starts: u32, read words: u32, read senders: u32, atomic sums: i32, atomic totals: u32;
        parts: usize, neurons: usize, first: u32, len: usize, chunk: usize, tracked: u32, shift: u32, list_at: usize, slices: u32
    }

    /// Sums into the states of the neurons, and those that fire into the list of firings.
    pub struct UpdateNeurons {
        read clock: u32, read runs: u32, read profiles: u32, atomic sums: i32, read_write state: u32, atomic fired: u32;
        first: u32, base: usize, count: usize, len: usize, chunk: usize, run_count: usize, offset: u32, planes: usize, tracked: u32, skips: u32,
        seed: u32, list_at: usize, bits_at: usize
    }
}

/// The kernels of every network.
pub struct Kernels {
    pub unpack: TypedKernel<Unpack>,
    pub inject: TypedKernel<Inject>,
    pub propagate: TypedKernel<Propagate>,
    pub dynamics: TypedKernel<UpdateNeurons>,
}

impl Kernels {
    pub fn new() -> Self {
        let propagate = [
            FIRING,
            PART,
            include_str!("../kernels/spiking_propagate.wgsl"),
        ]
        .concat();
        Self {
            unpack: built_in(
                Unpack::define("spiking_unpack")
                    .body(include_str!("../kernels/spiking_unpack.wgsl")),
                native_unpack,
            ),
            inject: built_in(
                Inject::define("spiking_inject")
                    .body(include_str!("../kernels/spiking_inject.wgsl")),
                native_inject,
            ),
            propagate: built_in(
                Propagate::define("spiking_propagate").body(propagate),
                native_propagate,
            ),
            dynamics: built_in(
                UpdateNeurons::define("spiking_dynamics")
                    .body(include_str!("../kernels/spiking_dynamics.wgsl")),
                native_dynamics,
            ),
        }
    }
}

/// The kernels that every network runs.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let Kernels {
        unpack,
        inject,
        propagate,
        dynamics,
    } = Kernels::new();
    let LearningKernels {
        archive,
        learn,
        close,
        memory,
        forget,
    } = LearningKernels::new();
    let all: [&Arc<Kernel>; 9] = [
        &unpack, &inject, &propagate, &dynamics, &archive, &learn, &close, &memory, &forget,
    ];
    all.map(Arc::clone).to_vec()
}

fn native_unpack(
    _: &NativeCall<'_>,
    Unpack {
        clock,
        exchanged,
        fired,
        list_at,
        words,
    }: Unpack<Slices<'_>>,
) {
    if clock[1] == 0 {
        return;
    }
    let (head, rest) = fired.split_at_mut(list_at);
    let (list, _) = rest.as_chunks_mut::<2>();
    for neuron in set_bits(exchanged, 0..32 * words) {
        list[head[0] as usize] = [neuron, FIXED_PSP];
        head[0] += 1;
    }
}

fn native_inject(_: &NativeCall<'_>, arguments: Inject<Slices<'_>>) {
    let Inject {
        inputs,
        steady: constant_inputs,
        sums,
        fired,
        len,
        chunk,
        tracked,
        is_first,
        steady_count,
        bits_at,
        bit_words,
    } = arguments;
    fired[0] = 0;
    fired[bits_at..][..bit_words].fill(0);
    let mut add = |[neuron, amount]: [u32; 2]| {
        let (part, i) = (neuron as usize / len * chunk, neuron as usize % len);
        sums[part + i] = sums[part + i].wrapping_add(amount as i32);
        if tracked != 0 {
            sums[part + len + i / 32] |= 1 << (i % 32);
        }
    };
    let count = if is_first != 0 { inputs[0] as usize } else { 0 };
    let (inputs, _) = inputs[1..].as_chunks::<2>();
    inputs[..count].iter().for_each(|pair| add(*pair));
    let (constant_inputs, _) = constant_inputs.as_chunks::<2>();
    constant_inputs[..steady_count]
        .iter()
        .for_each(|pair| add(*pair));
}

/// Each thread walks, for its part of the targets, the rows of all neurons that fired.
fn native_propagate(call: &NativeCall<'_>, arguments: Propagate<Slices<'_>>) {
    let Propagate {
        fired,
        starts,
        mut words,
        senders,
        sums,
        totals,
        parts,
        neurons,
        first,
        len,
        chunk,
        shift,
        list_at,
        ..
    } = arguments;
    let (list, _) = fired[list_at..].as_chunks::<2>();
    let list = &list[..fired[0] as usize];
    let (senders, shifts) = senders.split_at(neurons);
    let walk = |(part, ((starts, words), sums)): (usize, (PartRows<'_>, &mut [i32]))| {
        let (sums, bits) = sums.split_at_mut(len);
        let rows = Rows {
            starts,
            words,
            list,
            senders,
        };
        let shifts = TargetShifts::new(shift, shifts, first as usize + part * len);
        if shifts.is_none() {
            // Every target has the full format: the fast path has no rounding.
            let whole = |word: u32, unit: u32, _: usize| weight_of(word) * unit as i32;
            propagate(rows, sums, bits, whole)
        } else {
            let rounded = |word: u32, unit: u32, target: usize| {
                let size = shifts.rounded((word & WEIGHT) * unit, target);
                if word & INHIBITORY == 0 { size } else { -size }
            };
            propagate(rows, sums, bits, rounded)
        }
    };
    // A synapse costs about as much as eight streamed elements.
    let work = list
        .len()
        .saturating_mul(words.len() / neurons + 1)
        .saturating_mul(8);
    let rows = starts.chunks_exact(neurons + 1).take(parts).map(|starts| {
        (
            starts,
            words
                .split_off(..connectome::padded_len(starts))
                .unwrap_or_default(),
        )
    });
    let shared = rows.zip(sums.chunks_mut(chunk)).enumerate();
    let events: u64 = if call.threads_for(work) > 1 {
        shared.collect::<Vec<_>>().into_par_iter().map(walk).sum()
    } else {
        shared.map(walk).sum()
    };
    count_events(totals, events);
}

/// Adds to the 64-bit count in words 0 and 1.
fn count_events(totals: &mut [u32], events: u64) {
    let count = (u64::from(totals[1]) << 32 | u64::from(totals[0])).wrapping_add(events);
    (totals[0], totals[1]) = (count as u32, (count >> 32) as u32);
}

/// The starts of a part's rows, and its synapses.
type PartRows<'a> = (&'a [u32], &'a [u32]);

/// The rows of a part, and the firings that go through them.
#[derive(Clone, Copy)]
struct Rows<'a> {
    starts: &'a [u32],
    words: &'a [u32],
    list: &'a [[u32; 2]],
    senders: &'a [u32],
}

/// Propagates a list of firings to one part, which marks arrivals if it has `bits`; `amount` is
/// what a synapse adds, from its word, the unit of the firing and its target. Returns the number of
/// synapses.
#[inline(always)]
fn propagate(
    rows: Rows<'_>,
    sums: &mut [i32],
    bits: &mut [i32],
    amount: impl Fn(u32, u32, usize) -> i32,
) -> u64 {
    let Rows {
        starts,
        words,
        list,
        senders,
    } = rows;
    let mut events = 0;
    for (index, &[neuron, psp]) in list.iter().enumerate() {
        if let Some(&[later, _]) = list.get(index + 2 * AHEAD) {
            prefetch_line(starts, later as usize);
            prefetch_line(senders, later as usize);
        }
        if let Some(&[next, _]) = list.get(index + AHEAD) {
            let range = connectome::row_of(starts, next);
            prefetch_read(&words[range.start..range.end.min(range.start + 256)]);
        }
        let sender = senders[neuron as usize];
        let unit = if psp == FIXED_PSP {
            sender
        } else {
            rule::unit(psp, sender)
        };
        let row = &words[connectome::row_of(starts, neuron)];
        events += row.len() as u64;
        if bits.is_empty() {
            for &word in row {
                let target = (word >> TARGET_SHIFT) as usize;
                sums[target] = sums[target].wrapping_add(amount(word, unit, target));
            }
        } else {
            for &word in row {
                let target = (word >> TARGET_SHIFT) as usize;
                sums[target] = sums[target].wrapping_add(amount(word, unit, target));
                bits[target / 32] |= 1 << (target % 32);
            }
        }
    }
    events
}

/// Data for updating a part's neurons.
struct PartState<'a> {
    first: u32,
    sums: &'a mut [i32],
    arrivals: &'a mut [i32],
    state: &'a mut [u32],
    list: &'a mut [[u32; 2]],
    bits: &'a mut [u32],
    firings: usize,
    marks: [u32; 2],
}

/// The parameters of a launch of the dynamics.
#[derive(Clone, Copy)]
struct Burst {
    number: u32,
    len: usize,
    planes: usize,
    seed: u32,
    idle_update: IdleUpdate,
}

fn native_dynamics(call: &NativeCall<'_>, arguments: UpdateNeurons<Slices<'_>>) {
    let UpdateNeurons {
        clock,
        runs,
        profiles,
        sums,
        state,
        fired,
        first,
        base,
        count,
        len,
        chunk,
        run_count,
        offset,
        planes,
        skips,
        ..
    } = arguments;
    let UpdateNeurons {
        seed,
        list_at,
        bits_at,
        ..
    } = arguments;
    let idle_update = if skips != 0 {
        IdleUpdate::Freeze
    } else {
        IdleUpdate::CatchUp
    };
    let burst = Burst {
        number: clock[0].wrapping_add(offset),
        len,
        planes,
        seed,
        idle_update,
    };
    let (runs, _) = runs.as_chunks::<2>();
    let (runs, (profiles, _)) = (&runs[..run_count], profiles.as_chunks::<PROFILE_WORDS>());
    let (head, rest) = fired.split_at_mut(list_at);
    let (list, bits) = rest.split_at_mut(bits_at - list_at);
    // Firings of parts in earlier launches are in the list already.
    let (list, _) = list.as_chunks_mut::<2>();
    let (list, bits) = (&mut list[head[0] as usize..], &mut bits[base / 32..]);

    let shared = sums
        .chunks_mut(chunk)
        .zip(state.chunks_mut(planes * len))
        .zip(list.chunks_mut(len))
        .zip(bits.chunks_mut(len / 32))
        .enumerate();
    let places: Vec<PartState<'_>> = shared
        .map(|(part, (((sums, state), list), bits))| {
            let (sums, arrivals) = sums.split_at_mut(len);
            PartState {
                first: first + (part * len) as u32,
                sums,
                arrivals,
                state,
                list,
                bits,
                firings: 0,
                marks: [0; 2],
            }
        })
        .collect();
    let work = |mut place: PartState<'_>| {
        let end = (place.first + len as u32).min(first + count as u32);
        let mut begin = place.first;
        for &[run_end, profile] in
            &runs[runs.partition_point(|[run_end, _]| *run_end <= place.first)..]
        {
            let range = (begin - place.first) as usize..(run_end.min(end) - place.first) as usize;
            place.run(&Profile::of(&profiles[profile as usize]), range, burst);
            begin = run_end;
            if begin >= end {
                break;
            }
        }
        place.arrivals.fill(0);
        (place.firings, place.marks)
    };
    let found: Vec<(usize, [u32; 2])> = if call.threads_for(2 * count) > 1 {
        places.into_par_iter().map(work).collect()
    } else {
        places.into_iter().map(work).collect()
    };

    let mut total = 0;
    for (part, (firings, marks)) in found.into_iter().enumerate() {
        list.copy_within(part * len..part * len + firings, total);
        total += firings;
        for (sum, mark) in head[2..4].iter_mut().zip(marks) {
            *sum = sum.wrapping_add(mark);
        }
    }
    head[0] += total as u32;
    head[1] = head[1].wrapping_add(total as u32);
}

impl PartState<'_> {
    /// Neurons of one profile.
    fn run(&mut self, profile: &Profile, range: Range<usize>, burst: Burst) {
        let tracked = !self.arrivals.is_empty();
        let is_plain = burst.planes == 1
            && !tracked
            && profile.leak == 0
            && profile.chance == ALWAYS
            && profile.accumulates
            && profile.threshold > profile.rest;
        if is_plain {
            return self.run_plain(profile, range, burst);
        }
        let mut begin = range.start;
        while begin < range.end {
            let end = (begin + BLOCK).min(range.end);
            let block = begin..end;
            if tracked {
                for word in begin / 32..=(block.end - 1) / 32 {
                    let inside = |bit: usize| block.contains(&(32 * word + bit));
                    let mut bits = self.arrivals[word] as u32;
                    while bits != 0 {
                        let bit = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        if inside(bit) {
                            self.touch(profile, 32 * word + bit, burst);
                        }
                    }
                }
            } else if self.sums[block.clone()]
                .iter()
                .fold(0, |any, sum| any | sum)
                != 0
            {
                for i in block {
                    if self.sums[i] != 0 {
                        self.touch(profile, i, burst);
                    }
                }
            }
            begin = end;
        }
    }

    /// Neurons that only add, fire and reset: those without arrivals do not change, since none of
    /// them waits in its window. One block at a time, so that the common case has no branch.
    fn run_plain(&mut self, profile: &Profile, range: Range<usize>, burst: Burst) {
        let (threshold, limit, rest) = (profile.threshold, profile.limit, profile.rest);
        let mut begin = range.start;
        while begin < range.end {
            let end = (begin + BLOCK).min(range.end);
            let (sums, state) = (&mut self.sums[begin..end], &mut self.state[begin..end]);
            let mut potentials = [0; BLOCK];
            let fires = simd(
                #[inline(always)]
                || match (
                    sums.first_chunk_mut::<BLOCK>(),
                    state.first_chunk_mut::<BLOCK>(),
                ) {
                    (Some(sums), Some(state)) => {
                        plain_block(threshold, limit, rest, sums, state, &mut potentials)
                    }
                    _ => plain_block(threshold, limit, rest, sums, state, &mut potentials),
                },
            );
            if fires {
                for (i, potential) in (begin..end).zip(potentials) {
                    if potential >= threshold && potential <= limit {
                        self.fire(profile, i, potential, burst);
                    }
                }
            }
            begin = end;
        }
    }

    fn touch(&mut self, profile: &Profile, i: usize, burst: Burst) {
        let plane = |number: usize| number * burst.len + i;
        let whole = burst.planes == 4;
        let aux = |number: usize| if whole { self.state[plane(number)] } else { 0 };
        let mut state = NeuronState {
            potential: self.state[i] as i32,
            last: aux(1),
            ready: aux(2),
            consecutive: aux(3),
        };
        let arrived = std::mem::take(&mut self.sums[i]);
        let neuron = self.first + i as u32;
        let fired = profile.update(burst.idle_update, &mut state, arrived, burst.number, || {
            rule::draw(burst.seed, neuron, burst.number)
        });
        self.state[i] = state.potential as u32;
        if whole {
            (
                self.state[plane(1)],
                self.state[plane(2)],
                self.state[plane(3)],
            ) = (state.last, state.ready, state.consecutive);
        }
        if let Some(potential) = fired {
            self.fire(profile, i, potential, burst);
        }
    }

    fn fire(&mut self, profile: &Profile, i: usize, potential: i32, burst: Burst) {
        let neuron = self.first + i as u32;
        let psp = if profile.potential_driven {
            rule::potential_psp(potential, profile.fraction_bits())
        } else {
            FIXED_PSP
        };
        self.list[self.firings] = [neuron, psp];
        self.firings += 1;
        self.bits[i / 32] |= 1 << (i % 32);
        let marks = rule::spike_hash_words(neuron, burst.number);
        self.marks = [
            self.marks[0].wrapping_add(marks[0]),
            self.marks[1].wrapping_add(marks[1]),
        ];
    }
}

/// Adds the sums of some neurons and leaves the result in `potentials`; returns whether any fires.
#[inline(always)]
fn plain_block(
    threshold: i32,
    limit: i32,
    rest: i32,
    sums: &mut [i32],
    state: &mut [u32],
    potentials: &mut [i32; BLOCK],
) -> bool {
    if sums.iter().fold(0, |any, sum| any | sum) == 0 {
        potentials.fill(i32::MIN);
        return false;
    }
    let mut any = 0;
    for ((sum, state), made) in sums.iter_mut().zip(state).zip(potentials) {
        let potential = (*state as i32 + *sum).clamp(-POTENTIAL_MAX, POTENTIAL_MAX);
        let is_inside = (potential >= threshold) & (potential <= limit);
        *state = if is_inside { rest } else { potential } as u32;
        *sum = 0;
        *made = potential;
        any |= i32::from(is_inside);
    }
    any != 0
}
