//! A shard's data in addition to the state of its neurons: the firings of past bursts, plastic
//! synapses, and memories.

use std::ops::Range;

use tectum::{DType, Error, Executable, PlanBuilder, Result, View, host_memory};

use super::shape::Shape;
use super::views::{LearningViews, Views};
use crate::connectome::{self, INHIBITORY, SynapsePartition, TARGET_SHIFT, WEIGHT};
use crate::kernels::{
    Archive, Close, Forget, HEADER_WORDS, Learn, LearningKernels, MEMORY_STATE_WORDS, MEMORY_WORDS,
    Memorize, MemoryRow, ROW_WORKGROUPS,
};
use crate::learning::{History, NEVER, NO_SPIKE_BEFORE, PlasticityRule, WeightLoss};
use crate::memory::{Memory, MemoryReport};
use crate::network::Network;
use tectum::snapshot::{Array, Snapshot};

/// A plastic synapse with its current weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlasticSynapse {
    /// The source neuron.
    pub source: u32,
    /// The target neuron.
    pub target: u32,
    /// The factor of its sender's psp.
    pub weight: u8,
    /// Whether it subtracts instead.
    pub inhibitory: bool,
    /// The index of its rule in the network.
    pub rule: u8,
}

/// The layout of learning state in a shard's buffers.
pub struct LearningState {
    kernels: LearningKernels,
    /// By rule and part; their words are in a buffer.
    rows: Vec<Vec<SynapsePartition>>,
    /// By rule and part: the first synapse.
    places: Vec<Vec<usize>>,
    synapses: usize,
    /// Rows of the ledger: one for each burst that it holds, and one that is cleared for the next.
    depth: u32,
    /// Words of such a row.
    words: usize,
    /// Neurons of memories, from the first to the last.
    kept: Range<u32>,
    /// The initial weights of those neurons' synapses, and where those of each rule and part begin.
    weights: Vec<u32>,
    weights_at: Vec<Vec<usize>>,
    /// Whether plastic synapses target neurons of memories.
    are_reached: bool,
    table: Vec<u32>,
    kept_words: usize,
}

/// What learning is recorded from.
#[derive(Clone, Copy)]
pub struct LearningScope<'a> {
    pub network: &'a Network,
    pub shape: &'a Shape,
    /// The parts of each launch.
    pub launches: &'a [Range<usize>],
}

impl Network {
    /// Past bursts that the network needs: the longest window or depth.
    pub(super) fn history_depth(&self) -> u32 {
        let windows = self.options.plasticity.iter().map(|rule| rule.window);
        windows
            .chain(self.options.memories.iter().map(|memory| memory.depth))
            .max()
            .unwrap_or(0)
    }

    /// Words of a row of the ledger.
    pub(super) fn ledger_words(&self) -> usize {
        (self.neurons() as usize).div_ceil(32).next_multiple_of(64)
    }

    /// Words of the state of all memories.
    pub(super) fn kept_words(&self) -> usize {
        self.options
            .memories
            .iter()
            .map(|memory| MEMORY_STATE_WORDS * (1 + memory.neurons.len()))
            .sum()
    }
}

impl LearningState {
    /// The parts of each rule.
    pub fn rows(&self) -> &[Vec<SynapsePartition>] {
        &self.rows
    }

    /// The layout of a shard; none for a network without plasticity, memories and ledger.
    pub fn new(network: &Network, shape: &Shape, ledger: u32) -> Result<Option<Self>> {
        let history_depth = network.history_depth().max(ledger);
        if history_depth == 0 {
            return Ok(None);
        }
        let memories = &network.options.memories;
        let kept = memories
            .iter()
            .map(|memory| memory.neurons.start)
            .min()
            .unwrap_or(0)
            ..memories
                .iter()
                .map(|memory| memory.neurons.end)
                .max()
                .unwrap_or(0);
        let (mut rows, mut places, mut synapses) = (Vec::new(), Vec::new(), 0);
        let (mut weights, mut weights_at) = (Vec::new(), Vec::new());
        let mut are_reached = false;
        for rule in 0..network.options.plasticity.len() {
            let parts = connectome::partition(
                network.neurons(),
                &*network.rows,
                Some(rule as u8),
                &shape.ranges,
            )?;
            let (mut first, mut first_weight) = (Vec::new(), Vec::new());
            for part in &parts {
                first.push(synapses);
                first_weight.push(weights.len());
                synapses += part.padded_len();
                if memories.is_empty() {
                    continue;
                }
                let of_kept = part.starts[kept.start as usize] as usize
                    ..part.starts[kept.end as usize] as usize;
                host_memory::reserve("weights of memories", &mut weights, of_kept.len())?;
                let is_kept = |word: u32| {
                    memories.iter().any(|memory| {
                        memory
                            .neurons
                            .contains(&(part.targets.start + (word >> TARGET_SHIFT)))
                    })
                };
                connectome::pack(&*network.rows, Some(rule as u8), part, |begin, block| {
                    let inside = |at: usize| at.clamp(begin, begin + block.len()) - begin;
                    weights.extend(
                        block[inside(of_kept.start)..inside(of_kept.end)]
                            .iter()
                            .map(|word| word & WEIGHT),
                    );
                    are_reached |= block.iter().any(|&word| is_kept(word));
                    Ok(())
                })?;
            }
            rows.push(parts);
            places.push(first);
            weights_at.push(first_weight);
        }
        let mut table = Vec::new();
        let mut ranges_at = MEMORY_WORDS * memories.len();
        let mut kept_at = 0;
        for memory in memories {
            table.extend(MemoryRow::words(memory, kept_at, ranges_at));
            ranges_at += 2 * memory.upstream.len();
            kept_at += MEMORY_STATE_WORDS * (1 + memory.neurons.len());
        }
        table.extend(memories.iter().flat_map(|memory| {
            memory
                .upstream
                .iter()
                .flat_map(|range| [range.start, range.end])
        }));
        let learned = Self {
            kernels: LearningKernels::new(),
            rows,
            places,
            synapses,
            depth: history_depth + 1,
            words: network.ledger_words(),
            kept,
            weights,
            weights_at,
            are_reached,
            table,
            kept_words: kept_at,
        };
        Ok(Some(learned))
    }

    /// Writes the initial synapses: for each a word and the active bursts of its target, none yet.
    pub fn write_synapses(
        &self,
        network: &Network,
        mut write: impl FnMut(Range<usize>, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        for (rule, (parts, places)) in self.rows.iter().zip(&self.places).enumerate() {
            for (part, place) in parts.iter().zip(places) {
                connectome::pack(&*network.rows, Some(rule as u8), part, |first, block| {
                    pairs.clear();
                    host_memory::reserve("a block of synapses", &mut pairs, 2 * block.len())?;
                    pairs.extend(block.iter().flat_map(|&word| [word, 0]));
                    let begin = 2 * (place + first);
                    write(begin..begin + pairs.len(), &pairs)
                })?;
            }
        }
        Ok(())
    }

    /// Bursts whose firings the ledger holds.
    pub fn bursts(&self) -> u32 {
        self.depth - 1
    }

    /// The histories of neurons that have not fired yet, in a slot of `len` words.
    pub fn initial_histories(network: &Network, len: usize) -> Result<Vec<u32>> {
        let mut words = host_memory::with_capacity("the past of neurons that learn", len)?;
        for rule in &network.options.plasticity {
            let none = History::none(rule.window).words();
            (0..network.neurons()).for_each(|_| words.extend(none));
        }
        words.resize(len, 0);
        Ok(words)
    }

    /// The slots, in a plan.
    pub fn slots(
        &self,
        plan: &mut PlanBuilder,
        network: &Network,
        launches: &[Range<usize>],
    ) -> LearningViews {
        let histories = 4 * network.options.plasticity.len() * network.neurons() as usize;
        let mut starts = |launch: &Range<usize>, parts: &[SynapsePartition]| {
            plan.state("starts", DType::U32, starts_len(&parts[launch.clone()]))
        };
        let starts = self
            .rows
            .iter()
            .map(|parts| {
                launches
                    .iter()
                    .map(|launch| starts(launch, parts))
                    .collect()
            })
            .collect();
        // A slot has at least one element.
        let mut slot = |name, words: usize| plan.state(name, DType::U32, words.max(64));
        LearningViews {
            starts,
            synapses: slot("synapses", 2 * self.synapses),
            histories: slot("histories", histories),
            ledger: slot("ledger", self.depth as usize * self.words),
            memory_state: slot("kept", self.kept_words),
        }
    }

    /// Records the steps before a burst's fixed synapses: the firings of the previous burst are
    /// stored, and plastic synapses learn and send.
    pub fn record_before(
        &self,
        plan: &mut PlanBuilder,
        slots: &LearningSlots,
        scope: LearningScope<'_>,
        burst: u32,
    ) -> Result<()> {
        let LearningScope { network, shape, .. } = scope;
        let (neurons, plasticity) = (network.neurons() as usize, &network.options.plasticity);
        let (depth, words, offset, list_at) =
            (self.depth as usize, self.words, burst, shape.list_at);
        let &LearningSlots {
            clock,
            fired,
            rules,
            ledger,
            histories,
            senders,
            totals,
            ..
        } = slots;
        let arguments = Archive {
            clock,
            fired,
            rules,
            ledger,
            histories,
            offset,
            list_at,
            depth,
            words,
            rule_count: plasticity.len(),
            neurons,
        };
        plan.launch(
            &self.kernels.archive,
            arguments,
            (words as u32).div_ceil(256).clamp(16, 1024),
        )?;
        for (number, rule) in plasticity.iter().enumerate() {
            let slices = connectome::slices(&self.rows[number]);
            for RuleSynapses {
                launch,
                starts,
                synapses,
            } in self.synapses(slots, scope, number)
            {
                let first = shape.ranges[launch.start].start;
                let (len, chunk, parts) = (shape.len, shape.chunk(), launch.len());
                let sums = slots.sums.part(launch.start * chunk..launch.end * chunk);
                let [gain, loss] = [rule.gain, rule.loss].map(u32::from);
                let arguments = Learn {
                    clock,
                    fired,
                    starts,
                    histories,
                    senders,
                    synapses,
                    sums,
                    totals,
                    offset,
                    parts,
                    rule: number,
                    neurons,
                    first,
                    window: rule.window,
                    gain,
                    loss,
                    steady: u32::from(rule.weight_loss == WeightLoss::SteadySource),
                    len,
                    chunk,
                    tracked: u32::from(shape.tracked),
                    shift: network.formats.shift(),
                    list_at,
                    slices,
                };
                plan.launch(
                    &self.kernels.learn,
                    arguments,
                    workgroups(ROW_WORKGROUPS, parts),
                )?;
                let window = rule.window;
                // Otherwise nothing changes between firings of a source.
                if window > 1 && rule.weight_loss == WeightLoss::AnyFiring {
                    let rule = number;
                    let arguments = Close {
                        clock,
                        ledger,
                        starts,
                        histories,
                        synapses,
                        offset,
                        parts,
                        rule,
                        neurons,
                        first,
                        len,
                        window,
                        loss,
                        depth,
                        words,
                    };
                    plan.launch(
                        &self.kernels.close,
                        arguments,
                        workgroups((words as u32).min(ROW_WORKGROUPS), parts),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Records the step after a burst's dynamics: memories fire.
    pub fn record_after(
        &self,
        plan: &mut PlanBuilder,
        slots: &LearningSlots,
        scope: LearningScope<'_>,
        burst: u32,
    ) -> Result<()> {
        let LearningScope { network, shape, .. } = scope;
        let memories = network.options.memories.len();
        if memories == 0 {
            return Ok(());
        }
        let Range { start, end } = shape.targets;
        let &LearningSlots {
            clock,
            fired,
            table,
            weights,
            ledger,
            histories,
            kept,
            ..
        } = slots;
        let (depth, words, list_at, bits_at) = (
            self.depth as usize,
            self.words,
            shape.list_at,
            shape.bits_at,
        );
        let arguments = Memorize {
            clock,
            ledger,
            table,
            kept,
            fired,
            offset: burst,
            depth,
            words,
            first: start,
            end,
            list_at,
            bits_at,
            memories,
        };
        plan.launch(&self.kernels.memory, arguments, memories as u32)?;
        for (number, rule) in network.options.plasticity.iter().enumerate() {
            let mut is_first = true;
            for RuleSynapses {
                launch,
                starts,
                synapses,
            } in self.synapses(slots, scope, number)
            {
                let arguments = Forget {
                    clock,
                    table,
                    kept,
                    starts,
                    weights,
                    histories,
                    synapses,
                    offset: burst,
                    parts: launch.len(),
                    rule: number,
                    neurons: network.neurons() as usize,
                    first: shape.ranges[launch.start].start,
                    end: shape.ranges[launch.end - 1].end,
                    len: shape.len,
                    window: rule.window,
                    memories,
                    first_kept: self.kept.start,
                    last_kept: self.kept.end,
                    weights_at: self.weights_at[number][launch.start],
                    are_reached: u32::from(self.are_reached),
                    is_first: u32::from(std::mem::take(&mut is_first)),
                };
                plan.launch(
                    &self.kernels.forget,
                    arguments,
                    workgroups(64, launch.len()),
                )?;
            }
        }
        Ok(())
    }

    /// A rule's synapses by launch; those of launches without any are left out.
    fn synapses(
        &self,
        slots: &LearningSlots,
        scope: LearningScope<'_>,
        rule: usize,
    ) -> Vec<RuleSynapses> {
        let end = |part: usize| self.places[rule][part] + self.rows[rule][part].padded_len();
        let synapses = |(launch, &starts): (&Range<usize>, &View)| {
            let range = 2 * self.places[rule][launch.start]..2 * end(launch.end - 1);
            (!range.is_empty()).then(|| RuleSynapses {
                launch: launch.clone(),
                starts,
                synapses: slots.synapses.part(range),
            })
        };
        scope
            .launches
            .iter()
            .zip(&slots.starts[rule])
            .filter_map(synapses)
            .collect()
    }
}

/// Words of the starts of some parts.
pub fn starts_len(parts: &[SynapsePartition]) -> usize {
    parts.iter().map(|part| part.starts.len()).sum()
}

/// About so many workgroups, an equal number for each part.
pub fn workgroups(count: u32, parts: usize) -> u32 {
    let parts = parts as u32;
    (count / parts).max(1) * parts
}

/// The synapses of a launch.
struct RuleSynapses {
    launch: Range<usize>,
    starts: View,
    synapses: View,
}

/// The views that the launches of a plan bind.
pub struct LearningSlots {
    clock: View,
    fired: View,
    senders: View,
    sums: View,
    totals: View,
    rules: View,
    table: View,
    weights: View,
    starts: Vec<Vec<View>>,
    synapses: View,
    histories: View,
    ledger: View,
    kept: View,
}

impl LearningSlots {
    /// The slots of a plan, with the constants that learning needs.
    pub fn new(
        plan: &mut PlanBuilder,
        learned: &LearningState,
        shared: &Views,
        own: &LearningViews,
        network: &Network,
    ) -> Self {
        let mut constant = |name: String, words: &[u32]| {
            plan.constant(name, if words.is_empty() { &[0] } else { words })
        };
        let rules: Vec<u32> = network
            .options
            .plasticity
            .iter()
            .flat_map(|rule| [rule.window, u32::from(rule.gain), u32::from(rule.loss), 0])
            .collect();
        Self {
            rules: constant("rules".to_owned(), &rules),
            table: constant("memories".to_owned(), &learned.table),
            weights: constant("weights".to_owned(), &learned.weights),
            starts: own.starts.clone(),
            clock: shared.clock,
            fired: shared.fired,
            senders: shared.senders,
            sums: shared.sums,
            totals: shared.totals,
            synapses: own.synapses,
            histories: own.histories,
            ledger: own.ledger,
            kept: own.memory_state,
        }
    }
}

/// A shard's part of the learning state.
pub struct ShardLearning<'a> {
    pub learned: &'a LearningState,
    pub views: &'a LearningViews,
    pub executable: &'a Executable,
}

impl ShardLearning<'_> {
    fn words(&self, view: View) -> Result<Vec<u32>> {
        self.executable.read_state(view)
    }

    /// The rows of the ledger for some bursts, concatenated; those before the first are empty.
    pub fn ledger(&self, bursts: Range<u32>) -> Result<Vec<u32>> {
        let ring = self.words(self.views.ledger)?;
        let row = |burst: u32| {
            &ring[(burst % self.learned.depth) as usize * self.learned.words..]
                [..self.learned.words]
        };
        Ok(bursts.flat_map(row).copied().collect())
    }
}

/// Adds the shards' learning state to a snapshot of burst `burst`.
pub fn save(
    network: &Network,
    shards: &[ShardLearning<'_>],
    burst: u32,
    snapshot: &mut Snapshot,
) -> Result<()> {
    let first = &shards[0];
    let history_depth = network.history_depth();
    // Rows of bursts before the first are empty.
    let kept = burst.min(history_depth);
    let mut ledger = vec![0; (history_depth - kept) as usize * first.learned.words];
    ledger.extend(first.ledger(burst - kept..burst)?);
    snapshot.insert("ledger", Array::U32(ledger));
    if !network.options.plasticity.is_empty() {
        let mut histories = first.words(first.views.histories)?;
        histories.truncate(4 * network.options.plasticity.len() * network.neurons() as usize);
        snapshot.insert("histories", Array::U32(histories));
        let held = shards
            .iter()
            .map(|shard| shard.words(shard.views.synapses))
            .collect::<Result<Vec<_>>>()?;
        let (mut weights, mut seen) = (Vec::new(), Vec::new());
        for_each_row(network, shards, |_, _, shard, row| {
            let (pairs, _) = held[shard][2 * row.start..2 * row.end].as_chunks::<2>();
            weights.extend(pairs.iter().map(|[word, _]| word & WEIGHT));
            seen.extend(pairs.iter().map(|[_, seen]| *seen));
        });
        snapshot.insert("weights", Array::U32(weights));
        snapshot.insert("seen", Array::U32(seen));
    }
    if !network.options.memories.is_empty() {
        let mut kept = first.words(first.views.memory_state)?;
        kept.truncate(first.learned.kept_words);
        snapshot.insert("kept", Array::U32(kept));
    }
    Ok(())
}

/// Visits the rows of plastic synapses by rule, source and target across shards: rule, source,
/// shard and places.
fn for_each_row(
    network: &Network,
    shards: &[ShardLearning<'_>],
    mut visit: impl FnMut(usize, u32, usize, Range<usize>),
) {
    for rule in 0..network.options.plasticity.len() {
        for source in 0..network.neurons() {
            for (index, ShardLearning { learned, .. }) in shards.iter().enumerate() {
                for (part, place) in learned.rows[rule].iter().zip(&learned.places[rule]) {
                    let row = part.row(source);
                    if !row.is_empty() {
                        visit(rule, source, index, place + row.start..place + row.end);
                    }
                }
            }
        }
    }
}

/// The validated learning state of a snapshot.
pub struct SavedLearning {
    ledger: Vec<u32>,
    histories: Vec<u32>,
    weights: Vec<u32>,
    seen: Vec<u32>,
    kept: Vec<u32>,
}

impl SavedLearning {
    /// # Errors
    /// `Data` for an invalid array.
    pub fn read(network: &Network, snapshot: &Snapshot, burst: u32) -> Result<Self> {
        let words = |name: &str, len: usize| {
            snapshot
                .u32(
                    name,
                    if len == 0 {
                        snapshot.len_of(name).unwrap_or(0)
                    } else {
                        len
                    },
                )
                .map(<[u32]>::to_vec)
        };
        let (neurons, rules) = (network.neurons() as usize, network.options.plasticity.len());
        let row = network.ledger_words();
        let ledger = words("ledger", network.history_depth() as usize * row)?;
        let beyond = |row: &[u32]| {
            row[neurons / 32] >> (neurons % 32) != 0
                || row[neurons / 32 + 1..].iter().any(|word| *word != 0)
        };
        // A row has spare bits after its last neuron, unless that is the last bit of its words.
        if ledger
            .chunks(row)
            .any(|words| neurons / 32 < row && beyond(words))
        {
            return Err(Error::data(
                "the snapshot's array ledger has an unknown neuron",
            ));
        }
        let mut saved = Self {
            ledger,
            histories: Vec::new(),
            weights: Vec::new(),
            seen: Vec::new(),
            kept: Vec::new(),
        };
        if rules > 0 {
            saved.histories = words("histories", 4 * rules * neurons)?;
            let is_possible = |words: &[u32; 4]| {
                let History {
                    last, run, before, ..
                } = History::of(*words);
                let is_past = |firing: u32| firing < burst || firing == NEVER;
                is_past(last) && run <= burst && (is_past(before) || before == NO_SPIKE_BEFORE)
            };
            if !saved.histories.as_chunks::<4>().0.iter().all(is_possible) {
                return Err(Error::data(
                    "the snapshot's array histories has a neuron with an impossible past",
                ));
            }
            let synapses = network.plastic_synapses() as usize;
            (saved.weights, saved.seen) = (words("weights", synapses)?, words("seen", synapses)?);
            if saved.weights.iter().any(|weight| *weight > WEIGHT) {
                return Err(Error::data(
                    "the snapshot's array weights has a weight beyond 255",
                ));
            }
        }
        if !network.options.memories.is_empty() {
            saved.kept = words("kept", network.kept_words())?;
        }
        Ok(saved)
    }

    /// The words of a shard's slots: synapses, histories, ledger and memories.
    pub fn of_shard(
        &self,
        network: &Network,
        shards: &[ShardLearning<'_>],
        index: usize,
        burst: u32,
    ) -> Result<[Vec<u32>; 4]> {
        let ShardLearning { learned, views, .. } = &shards[index];
        let mut synapses = shards[index].words(views.synapses)?;
        let mut next = 0;
        for_each_row(network, shards, |_, _, shard, row| {
            let taken = next..next + row.len();
            next = taken.end;
            if shard == index {
                for ((pair, weight), seen) in synapses[2 * row.start..2 * row.end]
                    .chunks_exact_mut(2)
                    .zip(&self.weights[taken.clone()])
                    .zip(&self.seen[taken])
                {
                    pair[0] = pair[0] & !WEIGHT | weight;
                    pair[1] = *seen;
                }
            }
        });
        let sized = |words: &[u32], view: View| {
            let mut words = words.to_vec();
            words.resize(view.len(), 0);
            words
        };
        let mut ledger = vec![0; views.ledger.len()];
        let rows = self.ledger.chunks(learned.words);
        let first = i64::from(burst) - rows.len() as i64;
        for (row, burst) in rows.zip(first..).filter(|(_, burst)| *burst >= 0) {
            let at = (burst % i64::from(learned.depth)) as usize * learned.words;
            ledger[at..at + learned.words].copy_from_slice(row);
        }
        Ok([
            synapses,
            sized(&self.histories, views.histories),
            ledger,
            sized(&self.kept, views.memory_state),
        ])
    }
}

/// Every plastic synapse with its weight at the end of burst `burst`, in which `fired` fired.
pub fn plastic_synapses(
    network: &Network,
    shards: &[ShardLearning<'_>],
    fired: &[u32],
    burst: u32,
) -> Result<Vec<PlasticSynapse>> {
    let first = &shards[0];
    let neurons = network.neurons() as usize;
    let histories = first.words(first.views.histories)?;
    let mut histories: Vec<Vec<History>> = histories
        .as_chunks::<4>()
        .0
        .chunks(neurons)
        .map(|rule| rule.iter().map(|words| History::of(*words)).collect())
        .collect();
    let rules: &[PlasticityRule] = &network.options.plasticity;
    for (histories, rule) in histories.iter_mut().zip(rules) {
        fired
            .iter()
            .for_each(|neuron| histories[*neuron as usize].fire(burst, rule.window));
    }
    let held = shards
        .iter()
        .map(|shard| shard.words(shard.views.synapses))
        .collect::<Result<Vec<_>>>()?;
    let mut all =
        host_memory::with_capacity("plastic synapses", network.plastic_synapses() as usize)?;
    for_each_row(network, shards, |rule, source, shard, row| {
        let ShardLearning { learned, .. } = &shards[shard];
        let part = learned.places[rule].partition_point(|place| *place <= row.start) - 1;
        let first = learned.rows[rule][part].targets.start;
        let (pairs, _) = held[shard][2 * row.start..2 * row.end].as_chunks::<2>();
        all.extend(pairs.iter().map(|[word, seen]| {
            let target = first + (word >> TARGET_SHIFT);
            let ends = [source, target].map(|neuron| histories[rule][neuron as usize]);
            let weight = rules[rule].now(&ends[0], &ends[1], word & WEIGHT, *seen, burst) as u8;
            PlasticSynapse {
                source,
                target,
                weight,
                inhibitory: word & INHIBITORY != 0,
                rule: rule as u8,
            }
        }));
    });
    Ok(all)
}

/// The state of each memory.
pub fn memories(network: &Network, shard: &ShardLearning<'_>) -> Result<Vec<MemoryReport>> {
    let kept = shard.words(shard.views.memory_state)?;
    let mut at = 0;
    let report = |memory: &Memory| {
        let own = &kept[at..at + MEMORY_STATE_WORDS * (1 + memory.neurons.len())];
        at += own.len();
        let (slots, _) = own[MEMORY_STATE_WORDS..].as_chunks::<MEMORY_STATE_WORDS>();
        let count = |is_counted: fn(&&[u32; MEMORY_STATE_WORDS]) -> bool| {
            slots.iter().filter(is_counted).count() as u32
        };
        MemoryReport {
            patterns: count(|slot| slot[0] != 0),
            longterm: count(|slot| slot[0] != 0 && slot[1] != 0),
            formed: own[1],
            lost: own[2],
        }
    };
    Ok(network.options.memories.iter().map(report).collect())
}

/// Words of learning state on a device: synapses, histories, ledger and memories.
pub fn sizes(network: &Network, synapses: u64, ledger: u32) -> [u64; 4] {
    let history_depth = network.history_depth().max(ledger);
    if history_depth == 0 {
        return [0; 4];
    }
    let histories = 4 * network.options.plasticity.len() as u64 * u64::from(network.neurons());
    [
        2 * synapses,
        histories,
        (u64::from(history_depth) + 1) * network.ledger_words() as u64,
        (network.kept_words() + HEADER_WORDS) as u64,
    ]
}
