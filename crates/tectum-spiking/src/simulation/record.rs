//! Recording of a shard's plan, burst after burst.

use std::borrow::Cow;
use std::ops::Range;

use tectum::{DType, Plan, PlanBuilder, Result, View};

use super::learning::{LearningScope, LearningSlots, LearningState, LearningViews, SharedSlots};
use super::shape::Shape;
use crate::connectome::SynapsePartition;
use crate::kernels::{HEADER_WORDS, Inject, Kernels, PROPAGATE_WORKGROUPS, Propagate, Unpack, UpdateNeurons};
use crate::network::Network;
use crate::rule::IdleUpdate;

/// The slots of a plan.
#[derive(Clone)]
pub struct Views {
    pub clock: View,
    pub inputs: View,
    pub state: View,
    pub sums: View,
    pub fired: View,
    pub totals: View,
    pub head: View,
    pub events: View,
    pub watched: Option<View>,
    pub candidates: Option<View>,
    /// If there are several shards: the firings of all of them, as bits.
    pub exchanged: Option<View>,
    pub learned: Option<LearningViews>,
    /// In the order of [`tables`].
    pub tables: Vec<View>,
}

impl Views {
    /// Data that two plans of the same network share.
    pub fn shared(&self) -> Vec<View> {
        let learned = self.learned.iter().flat_map(|views| [views.synapses, views.histories, views.ledger, views.memory_state]);
        [self.state, self.sums, self.fired, self.totals].into_iter().chain(self.candidates).chain(learned).chain(self.tables.iter().copied()).collect()
    }
}

/// The inputs from which a shard's plans are recorded.
pub struct ShardPlanInputs<'a> {
    pub network: &'a Network,
    pub shape: &'a Shape,
    pub kernels: &'a Kernels,
    pub parts: &'a [SynapsePartition],
    pub steady: &'a [u32],
    pub max_inputs: usize,
    pub joined_parts: bool,
    pub is_alone: bool,
    pub learned: Option<&'a LearningState>,
}

impl<'a> ShardPlanInputs<'a> {
    fn scope(&self) -> LearningScope<'a> {
        LearningScope { network: self.network, shape: self.shape, joined_parts: self.joined_parts }
    }
}

/// Records a number of bursts.
pub fn record(source: &ShardPlanInputs<'_>, bursts: u32) -> Result<(Plan, Views)> {
    let mut plan = PlanBuilder::new("spiking");
    let views = slots(&mut plan, source)?;
    let bound = BoundViews::new(&mut plan, source, &views)?;
    bound.record_unpack(&mut plan)?;
    for burst in 0..bursts {
        bound.burst(&mut plan, burst)?;
    }
    bound.record_outputs(&mut plan)?;
    Ok((plan.finish()?, views))
}

fn slots(plan: &mut PlanBuilder, source: &ShardPlanInputs<'_>) -> Result<Views> {
    let &ShardPlanInputs { network, shape, max_inputs, is_alone, learned, .. } = source;
    let sums = shape.ranges.len() * shape.chunk();
    Ok(Views {
        clock: plan.input("clock", DType::U32, 2),
        inputs: plan.input("inputs", DType::U32, 1 + 2 * max_inputs),
        state: plan.state("state", DType::F32, shape.planes * shape.ranges.len() * shape.len),
        sums: plan.state("sums", DType::F32, sums),
        fired: plan.state("fired", DType::F32, shape.bits_at + shape.bit_words),
        totals: plan.state("totals", DType::F32, HEADER_WORDS),
        head: plan.output("head", DType::U32, HEADER_WORDS),
        events: plan.output("events", DType::U32, HEADER_WORDS),
        watched: match shape.watched.iter().map(Range::len).sum() {
            0 => None,
            words => Some(plan.output("watched", DType::U32, words)),
        },
        candidates: shape.candidates.then(|| plan.state("candidates", DType::F32, sums)),
        exchanged: (!is_alone).then(|| plan.state("exchanged", DType::F32, network.ledger_words())),
        learned: learned.map(|learned| learned.slots(plan, network)),
        tables: tables(source)?.into_iter().map(|(name, words)| plan.state(name, DType::F32, words.len())).collect(),
    })
}

/// A plan's slots as its launches are bound to them.
struct BoundViews<'a> {
    source: &'a ShardPlanInputs<'a>,
    views: &'a Views,
    steady: View,
    state: View,
    sums: View,
    fired: View,
    totals: View,
    senders: View,
    profile_of: View,
    profiles: View,
    /// For each part, the starts of rows and the synapses; on the CPU there is one for all.
    rows: Vec<[View; 2]>,
    learning: Option<(&'a LearningState, LearningSlots)>,
}

impl<'a> BoundViews<'a> {
    fn new(plan: &mut PlanBuilder, source: &'a ShardPlanInputs<'a>, views: &'a Views) -> Result<Self> {
        let tables: Vec<View> = views.tables.iter().map(|table| table.reinterpret(DType::U32)).collect();
        let ([senders, profile_of, profiles], (rows, _)) = ([0, 1, 2].map(|table| tables[table]), tables[3..].as_chunks::<2>());
        let [state, fired, totals] = [views.state, views.fired, views.totals].map(|view| view.reinterpret(DType::U32));
        let shared = SharedSlots { clock: views.clock, fired, sums: views.sums.reinterpret(DType::I32), totals, senders };
        let learning = match (source.learned, &views.learned) {
            (Some(learned), Some(own)) => Some((learned, LearningSlots::new(plan, learned, shared, own, source.scope())?)),
            _ => None,
        };
        let steady = plan.constant("steady", if source.steady.is_empty() { &[0] } else { source.steady });
        let sums = views.sums.reinterpret(DType::I32);
        Ok(Self { source, views, steady, state, sums, fired, totals, senders, profile_of, profiles, rows: rows.to_vec(), learning })
    }

    /// The firings of other shards, if they were passed as bits.
    fn record_unpack(&self, plan: &mut PlanBuilder) -> Result<()> {
        let Some(exchanged) = self.views.exchanged else { return Ok(()) };
        let &ShardPlanInputs { network, shape, kernels, .. } = self.source;
        let words = network.ledger_words() as u32;
        let exchanged = exchanged.reinterpret(DType::U32);
        let arguments = Unpack { clock: self.views.clock, exchanged, fired: self.fired, list_at: shape.list_at, words };
        plan.launch(&kernels.unpack, arguments, words.div_ceil(256).min(1024))
    }

    fn burst(&self, plan: &mut PlanBuilder, burst: u32) -> Result<()> {
        let &ShardPlanInputs { network, shape, kernels, parts, steady, joined_parts, .. } = self.source;
        let (tracked, len, fired) = (u32::from(shape.tracked), shape.len, self.fired);
        if let Some((learned, slots)) = &self.learning {
            learned.record_before(plan, slots, self.source.scope(), burst)?;
        }
        for (index, &[starts, words]) in self.rows.iter().enumerate() {
            let sums = if joined_parts { self.sums } else { self.sums.part(index * shape.chunk()..(index + 1) * shape.chunk()) };
            let slices = if joined_parts { 1 } else { parts[index].slices() };
            let &Self { senders, totals, .. } = self;
            let (fraction_bits, list_at) = (network.fraction_bits, shape.list_at);
            let arguments = Propagate { fired, starts, words, senders, sums, totals, len, tracked, fraction_bits, list_at, slices };
            plan.launch(&kernels.propagate, arguments, PROPAGATE_WORKGROUPS)?;
        }
        let arguments = Inject {
            inputs: self.views.inputs,
            steady: self.steady,
            sums: self.sums,
            fired,
            len,
            chunk: shape.chunk(),
            tracked,
            is_first: u32::from(burst == 0),
            steady_count: steady.len() / 2,
            bits_at: shape.bits_at,
            bit_words: shape.bit_words,
        };
        plan.launch(&kernels.inject, arguments, (shape.bit_words as u32).div_ceil(256).clamp(1, 1024))?;
        if let Some(view) = self.views.candidates {
            plan.copy(self.views.sums.reinterpret(DType::U32), view.reinterpret(DType::U32))?;
        }
        (0..self.rows.len()).try_for_each(|part| self.dynamics(plan, burst, part))?;
        match &self.learning {
            Some((learned, slots)) => learned.record_after(plan, slots, self.source.scope(), burst),
            None => Ok(()),
        }
    }

    /// The neurons of a part; on the CPU all.
    fn dynamics(&self, plan: &mut PlanBuilder, burst: u32, part: usize) -> Result<()> {
        let &ShardPlanInputs { network, shape, kernels, joined_parts, .. } = self.source;
        let range = &shape.ranges[part];
        let count = if joined_parts { shape.targets.len() } else { range.len() };
        let (sums, state, profile_of) = if joined_parts {
            (self.sums, self.state, self.profile_of)
        } else {
            let (chunk, planes, first) = (shape.chunk(), shape.planes * shape.len, part * shape.len);
            let sums = self.sums.part(part * chunk..(part + 1) * chunk);
            (sums, self.state.part(part * planes..(part + 1) * planes), self.profile_of.part(first..first + range.len()))
        };
        let arguments = UpdateNeurons {
            clock: self.views.clock,
            profile_of,
            profiles: self.profiles,
            sums,
            state,
            fired: self.fired,
            first: range.start,
            base: part * shape.len,
            count,
            len: shape.len,
            offset: burst,
            planes: shape.planes,
            tracked: u32::from(shape.tracked),
            skips: u32::from(network.options.idle_update == IdleUpdate::Freeze),
            seed: network.options.seed,
            fraction_bits: network.fraction_bits,
            list_at: shape.list_at,
            bits_at: shape.bits_at,
        };
        plan.launch(&kernels.dynamics, arguments, (range.len() as u32).div_ceil(256))
    }

    /// The outputs of every run.
    fn record_outputs(&self, plan: &mut PlanBuilder) -> Result<()> {
        plan.copy(self.fired.part(0..HEADER_WORDS), self.views.head)?;
        plan.copy(self.totals, self.views.events)?;
        let Some(view) = self.views.watched else { return Ok(()) };
        let mut at = 0;
        for words in &self.source.shape.watched {
            let bits_at = self.source.shape.bits_at;
            plan.copy(self.fired.part(bits_at + words.start..bits_at + words.end), view.part(at..at + words.len()))?;
            at += words.len();
        }
        Ok(())
    }
}

/// The profile of each of some neurons.
fn profile_of(network: &Network, targets: &Range<u32>) -> Vec<u32> {
    let mut all = Vec::with_capacity(targets.len());
    for (range, profile) in &network.runs {
        let part = range.start.max(targets.start)..range.end.min(targets.end);
        all.extend(part.map(|_| *profile));
    }
    all
}

/// A table's name and words.
type Table<'a> = (&'static str, Cow<'a, [u32]>);

/// Constant tables of a running network, in this order: the units of senders; except on the CPU, whose twins hold them, also
/// the profile of each neuron, the profiles, and for each part the starts of rows and the synapses.
pub fn tables<'a>(source: &ShardPlanInputs<'a>) -> Result<Vec<Table<'a>>> {
    let &ShardPlanInputs { network, shape, parts, joined_parts, .. } = source;
    let absent = || Cow::Owned(vec![0]);
    let profiles = || Cow::Owned(network.profiles.iter().flat_map(crate::rule::Profile::words).collect());
    let mut tables = vec![
        ("senders", Cow::Borrowed(&network.senders[..])),
        ("profile_of", if joined_parts { absent() } else { Cow::Owned(profile_of(network, &shape.targets)) }),
        ("profiles", if joined_parts { absent() } else { profiles() }),
    ];
    for part in parts.iter().take(if joined_parts { 1 } else { parts.len() }) {
        let words = if joined_parts || part.words.is_empty() { absent() } else { Cow::Borrowed(&part.words[..]) };
        tables.extend([("starts", if joined_parts { absent() } else { Cow::Owned(part.row_starts_u32()?) }), ("words", words)]);
    }
    Ok(tables)
}
