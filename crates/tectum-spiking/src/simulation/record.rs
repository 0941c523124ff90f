//! Recording of a shard's plan, burst after burst.

use std::ops::Range;

use tectum::{DType, Plan, PlanBuilder, Result, View};

use super::learning::{LearningScope, LearningSlots, LearningState, starts_len, workgroups};
use super::shape::Shape;
use super::views::{RowViews, Views};
use crate::connectome::{self, SynapsePartition};
use crate::kernels::{
    HEADER_WORDS, Inject, Kernels, Propagate, ROW_WORKGROUPS, Unpack, UpdateNeurons,
};
use crate::network::Network;
use crate::rule::{IdleUpdate, PROFILE_WORDS};

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
        LearningScope {
            network: self.network,
            shape: self.shape,
            launches: self.launches,
        }
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
    let words = parts
        .iter()
        .map(SynapsePartition::padded_len)
        .sum::<usize>()
        .max(1);
    RowViews {
        starts: plan.state("starts", DType::U32, starts_len(parts)),
        words: plan.state("words", DType::U32, words),
    }
}

fn slots(plan: &mut PlanBuilder, source: &ShardPlanInputs<'_>) -> Views {
    let &ShardPlanInputs {
        network,
        shape,
        parts,
        max_inputs,
        launches,
        is_alone,
        learned,
        ..
    } = source;
    let sums = shape.ranges.len() * shape.chunk();
    Views {
        clock: plan.input("clock", DType::U32, 2),
        inputs: plan.input("inputs", DType::U32, 1 + 2 * max_inputs),
        state: plan.state(
            "state",
            DType::U32,
            shape.planes * shape.ranges.len() * shape.len,
        ),
        sums: plan.state("sums", DType::I32, sums),
        fired: plan.state("fired", DType::U32, shape.bits_at + shape.bit_words),
        totals: plan.state("totals", DType::U32, HEADER_WORDS),
        head: plan.output("head", DType::U32, HEADER_WORDS),
        events: plan.output("events", DType::U32, HEADER_WORDS),
        watched: match shape.watched.iter().map(Range::len).sum() {
            0 => None,
            words => Some(plan.output("watched", DType::U32, words)),
        },
        candidates: shape
            .candidates
            .then(|| plan.state("candidates", DType::I32, sums)),
        exchanged: (!is_alone).then(|| plan.state("exchanged", DType::U32, network.ledger_words())),
        learned: learned.map(|learned| learned.slots(plan, network, launches)),
        senders: plan.state("senders", DType::U32, network.sender_word_count()),
        runs: plan.state("runs", DType::U32, 2 * network.runs.len()),
        profiles: plan.state(
            "profiles",
            DType::U32,
            PROFILE_WORDS * network.profiles.len(),
        ),
        rows: launches
            .iter()
            .map(|launch| row_slots(plan, &parts[launch.clone()]))
            .collect(),
    }
}

/// A plan's slots as its launches are bound to them.
struct BoundViews<'a> {
    source: &'a ShardPlanInputs<'a>,
    views: &'a Views,
    steady: View,
    learning: Option<(&'a LearningState, LearningSlots)>,
}

impl<'a> BoundViews<'a> {
    fn new(plan: &mut PlanBuilder, source: &'a ShardPlanInputs<'a>, views: &'a Views) -> Self {
        let learning = source.learned.zip(views.learned.as_ref());
        let learning = learning.map(|(learned, own)| {
            (
                learned,
                LearningSlots::new(plan, learned, views, own, source.network),
            )
        });
        let steady = plan.constant(
            "steady",
            if source.steady.is_empty() {
                &[0]
            } else {
                source.steady
            },
        );
        Self {
            source,
            views,
            steady,
            learning,
        }
    }

    /// The firings of other shards, if they were passed as bits.
    fn record_unpack(&self, plan: &mut PlanBuilder) -> Result<()> {
        let Some(exchanged) = self.views.exchanged else {
            return Ok(());
        };
        let &ShardPlanInputs {
            network,
            shape,
            kernels,
            ..
        } = self.source;
        let words = network.ledger_words() as u32;
        let &Views { clock, fired, .. } = self.views;
        let arguments = Unpack {
            clock,
            exchanged,
            fired,
            list_at: shape.list_at,
            words,
        };
        plan.launch(&kernels.unpack, arguments, words.div_ceil(256).min(1024))
    }

    fn burst(&self, plan: &mut PlanBuilder, burst: u32) -> Result<()> {
        let &ShardPlanInputs {
            network,
            shape,
            kernels,
            parts,
            steady,
            launches,
            ..
        } = self.source;
        let (tracked, len, chunk) = (u32::from(shape.tracked), shape.len, shape.chunk());
        let &Views {
            inputs,
            sums,
            fired,
            totals,
            senders,
            ..
        } = self.views;
        if let Some((learned, slots)) = &self.learning {
            learned.record_before(plan, slots, self.source.scope(), burst)?;
        }
        let slices = connectome::slices(parts);
        for (launch, &RowViews { starts, words }) in launches.iter().zip(&self.views.rows) {
            let sums = sums.part(launch.start * chunk..launch.end * chunk);
            let (parts, neurons, first, shift, list_at) = (
                launch.len(),
                network.neurons() as usize,
                shape.ranges[launch.start].start,
                network.formats.shift(),
                shape.list_at,
            );
            let arguments = Propagate {
                fired,
                starts,
                words,
                senders,
                sums,
                totals,
                parts,
                neurons,
                first,
                len,
                chunk,
                tracked,
                shift,
                list_at,
                slices,
            };
            plan.launch(
                &kernels.propagate,
                arguments,
                workgroups(ROW_WORKGROUPS, parts),
            )?;
        }
        let arguments = Inject {
            inputs,
            steady: self.steady,
            sums,
            fired,
            len,
            chunk,
            tracked,
            is_first: u32::from(burst == 0),
            steady_count: steady.len() / 2,
            bits_at: shape.bits_at,
            bit_words: shape.bit_words,
        };
        plan.launch(
            &kernels.inject,
            arguments,
            (shape.bit_words as u32).div_ceil(256).clamp(1, 1024),
        )?;
        if let Some(view) = self.views.candidates {
            plan.copy(sums.reinterpret(DType::U32), view.reinterpret(DType::U32))?;
        }
        launches
            .iter()
            .try_for_each(|launch| self.dynamics(plan, burst, launch))?;
        match &self.learning {
            Some((learned, slots)) => learned.record_after(plan, slots, self.source.scope(), burst),
            None => Ok(()),
        }
    }

    /// The neurons of a launch.
    fn dynamics(&self, plan: &mut PlanBuilder, burst: u32, launch: &Range<usize>) -> Result<()> {
        let &ShardPlanInputs {
            network,
            shape,
            kernels,
            ..
        } = self.source;
        let (chunk, planes) = (shape.chunk(), shape.planes * shape.len);
        let (first, end) = (
            shape.ranges[launch.start].start,
            shape.ranges[launch.end - 1].end,
        );
        let &Views {
            clock,
            runs,
            profiles,
            sums,
            state,
            fired,
            ..
        } = self.views;
        let arguments = UpdateNeurons {
            clock,
            runs,
            profiles,
            sums: sums.part(launch.start * chunk..launch.end * chunk),
            state: state.part(launch.start * planes..launch.end * planes),
            fired,
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
            list_at: shape.list_at,
            bits_at: shape.bits_at,
        };
        plan.launch(&kernels.dynamics, arguments, (end - first).div_ceil(256))
    }

    /// The outputs of every run.
    fn record_outputs(&self, plan: &mut PlanBuilder) -> Result<()> {
        plan.copy(self.views.fired.part(0..HEADER_WORDS), self.views.head)?;
        plan.copy(self.views.totals, self.views.events)?;
        let Some(view) = self.views.watched else {
            return Ok(());
        };
        let mut at = 0;
        for words in &self.source.shape.watched {
            let bits_at = self.source.shape.bits_at;
            plan.copy(
                self.views
                    .fired
                    .part(bits_at + words.start..bits_at + words.end),
                view.part(at..at + words.len()),
            )?;
            at += words.len();
        }
        Ok(())
    }
}
