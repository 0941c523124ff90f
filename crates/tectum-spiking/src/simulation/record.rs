//! Recording of a shard's plan, burst after burst.

use std::ops::Range;

use tectum::{DType, Plan, PlanBuilder, Result, View};

use super::learning::{LearningScope, LearningSlots, LearningState, LearningViews, SharedSlots, starts_len, workgroups};
use super::shape::Shape;
use crate::connectome::{self, SynapsePartition};
use crate::kernels::{HEADER_WORDS, Inject, Kernels, Propagate, ROW_WORKGROUPS, Unpack, UpdateNeurons};
use crate::network::Network;
use crate::rule::{IdleUpdate, PROFILE_WORDS};

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
    /// The unit of each sender.
    pub senders: View,
    /// The ends of ranges of neurons, and their profile.
    pub runs: View,
    pub profiles: View,
    /// The rows of each launch.
    pub rows: Vec<RowViews>,
}

/// The fixed synapses of a launch.
#[derive(Clone, Copy)]
pub struct RowViews {
    pub starts: View,
    pub words: View,
}

impl Views {
    /// Data that two plans of the same network share.
    pub fn shared(&self) -> Vec<View> {
        let learned = self.learned.iter().flat_map(|views| {
            let starts = views.starts.iter().flatten().copied();
            [views.synapses, views.histories, views.ledger, views.memory_state].into_iter().chain(starts)
        });
        let rows = self.rows.iter().flat_map(|rows| [rows.starts, rows.words]);
        let own = [self.state, self.sums, self.fired, self.totals, self.senders, self.runs, self.profiles];
        own.into_iter().chain(self.candidates).chain(learned).chain(rows).collect()
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
    /// The parts of each launch.
    pub launches: &'a [Range<usize>],
    pub is_alone: bool,
    pub learned: Option<&'a LearningState>,
}

impl<'a> ShardPlanInputs<'a> {
    fn scope(&self) -> LearningScope<'a> {
        LearningScope { network: self.network, shape: self.shape, launches: self.launches }
    }
}

/// Records a number of bursts.
pub fn record(source: &ShardPlanInputs<'_>, bursts: u32) -> Result<(Plan, Views)> {
    let mut plan = PlanBuilder::new("spiking");
    let views = slots(&mut plan, source);
    let bound = BoundViews::new(&mut plan, source, &views);
    bound.record_unpack(&mut plan)?;
    for burst in 0..bursts {
        bound.burst(&mut plan, burst)?;
    }
    bound.record_outputs(&mut plan)?;
    Ok((plan.finish()?, views))
}

fn row_slots(plan: &mut PlanBuilder, parts: &[SynapsePartition]) -> RowViews {
    // A slot has at least one element.
    let words = parts.iter().map(SynapsePartition::padded_len).sum::<usize>().max(1);
    RowViews { starts: plan.state("starts", DType::F32, starts_len(parts)), words: plan.state("words", DType::F32, words) }
}

fn slots(plan: &mut PlanBuilder, source: &ShardPlanInputs<'_>) -> Views {
    let &ShardPlanInputs { network, shape, parts, max_inputs, launches, is_alone, learned, .. } = source;
    let sums = shape.ranges.len() * shape.chunk();
    Views {
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
        learned: learned.map(|learned| learned.slots(plan, network, launches)),
        senders: plan.state("senders", DType::F32, network.senders.len()),
        runs: plan.state("runs", DType::F32, 2 * network.runs.len()),
        profiles: plan.state("profiles", DType::F32, PROFILE_WORDS * network.profiles.len()),
        rows: launches.iter().map(|launch| row_slots(plan, &parts[launch.clone()])).collect(),
    }
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
    learning: Option<(&'a LearningState, LearningSlots)>,
}

impl<'a> BoundViews<'a> {
    fn new(plan: &mut PlanBuilder, source: &'a ShardPlanInputs<'a>, views: &'a Views) -> Self {
        let [state, fired, totals, senders] = [views.state, views.fired, views.totals, views.senders].map(|view| view.reinterpret(DType::U32));
        let sums = views.sums.reinterpret(DType::I32);
        let shared = SharedSlots { clock: views.clock, fired, sums, totals, senders };
        let learning = source.learned.zip(views.learned.as_ref());
        let learning = learning.map(|(learned, own)| (learned, LearningSlots::new(plan, learned, shared, own, source.scope())));
        let steady = plan.constant("steady", if source.steady.is_empty() { &[0] } else { source.steady });
        Self { source, views, steady, state, sums, fired, totals, senders, learning }
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
        let &ShardPlanInputs { network, shape, kernels, parts, steady, launches, .. } = self.source;
        let (tracked, len, chunk, fired) = (u32::from(shape.tracked), shape.len, shape.chunk(), self.fired);
        if let Some((learned, slots)) = &self.learning {
            learned.record_before(plan, slots, self.source.scope(), burst)?;
        }
        let slices = connectome::slices(parts);
        for (launch, rows) in launches.iter().zip(&self.views.rows) {
            let sums = self.sums.part(launch.start * chunk..launch.end * chunk);
            let [starts, words] = [rows.starts, rows.words].map(|view| view.reinterpret(DType::U32));
            let &Self { senders, totals, .. } = self;
            let (parts, neurons, fraction_bits, list_at) = (launch.len(), network.neurons() as usize, network.fraction_bits, shape.list_at);
            let arguments = Propagate { fired, starts, words, senders, sums, totals, parts, neurons, len, chunk, tracked, fraction_bits, list_at, slices };
            plan.launch(&kernels.propagate, arguments, workgroups(ROW_WORKGROUPS, parts))?;
        }
        let arguments = Inject {
            inputs: self.views.inputs,
            steady: self.steady,
            sums: self.sums,
            fired,
            len,
            chunk,
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
        launches.iter().try_for_each(|launch| self.dynamics(plan, burst, launch))?;
        match &self.learning {
            Some((learned, slots)) => learned.record_after(plan, slots, self.source.scope(), burst),
            None => Ok(()),
        }
    }

    /// The neurons of a launch.
    fn dynamics(&self, plan: &mut PlanBuilder, burst: u32, launch: &Range<usize>) -> Result<()> {
        let &ShardPlanInputs { network, shape, kernels, .. } = self.source;
        let (chunk, planes) = (shape.chunk(), shape.planes * shape.len);
        let (first, end) = (shape.ranges[launch.start].start, shape.ranges[launch.end - 1].end);
        let arguments = UpdateNeurons {
            clock: self.views.clock,
            runs: self.views.runs.reinterpret(DType::U32),
            profiles: self.views.profiles.reinterpret(DType::U32),
            sums: self.sums.part(launch.start * chunk..launch.end * chunk),
            state: self.state.part(launch.start * planes..launch.end * planes),
            fired: self.fired,
            first,
            base: launch.start * shape.len,
            count: (end - first) as usize,
            len: shape.len,
            chunk,
            run_count: network.runs.len(),
            offset: burst,
            planes: shape.planes,
            tracked: u32::from(shape.tracked),
            skips: u32::from(network.options.idle_update == IdleUpdate::Freeze),
            seed: network.options.seed,
            fraction_bits: network.fraction_bits,
            list_at: shape.list_at,
            bits_at: shape.bits_at,
        };
        plan.launch(&kernels.dynamics, arguments, (end - first).div_ceil(256))
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
