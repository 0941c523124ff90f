//! The synapses of a genome's network, mapping by mapping, without storing them.

use std::ops::Range;

use tectum::{Error, Result, host_memory};

use super::connect_options::ConnectOptions;
use super::learning::PlasticityRule;
use super::mapping_rules::{grown_directions, memory_areas, rule};
use super::synapses::Synapse;
use crate::genome::{Genome, Mapping};

/// Maximum pairs of neurons between which one mapping may grow synapses.
const MAX_PAIRS: u64 = 1 << 26;
/// About so many pairs of neurons are visited between two looks at the watch.
const PAIRS_BETWEEN: u64 = 1 << 20;

/// The synapses of the network that [`connect`](crate::connect) makes of a genome, one after the
/// other, without storing them.
///
/// # Example
/// ```
/// use tectum_spiking::genome::{Genome, GenomeOptions};
/// use tectum_spiking::{ConnectOptions, GenomeSynapses};
/// let text = r#"{"version": "2.0", "blueprint": {
///     "_____10c-_power-cx-___bbx-i": 1, "_____10c-_power-cx-___bby-i": 1, "_____10c-_power-cx-___bbz-i": 1,
///     "_____10c-_power-cx-dstmap-d": {"o__mot": [["projector", [1, 1, 1], -2, false]]},
///     "_____10c-o__mot-cx-___bbx-i": 3, "_____10c-o__mot-cx-___bby-i": 1, "_____10c-o__mot-cx-___bbz-i": 1
/// }}"#;
/// let genome = Genome::parse(text, &GenomeOptions::default())?;
/// let synapses = GenomeSynapses::new(&genome, &ConnectOptions::default())?;
/// let mut ends = Vec::new();
/// synapses.visit(0, &mut || Ok(()), |source, synapse| {
///     ends.push((source, synapse.target, synapse.weight, synapse.inhibitory));
///     Ok(())
/// })?;
/// assert_eq!(ends, [(0, 1, 2, true), (0, 2, 2, true), (0, 3, 2, true)]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub struct GenomeSynapses<'a> {
    genome: &'a Genome,
    seed: u64,
    /// Areas whose neurons store patterns.
    memory_areas: Vec<usize>,
    /// For each area the neurons that represent it in learning: those of its memory, or its own.
    active: Vec<Range<u32>>,
    rules: Vec<PlasticityRule>,
    mappings: Vec<MappingRole>,
}

/// What a mapping contributes.
#[derive(Debug, Clone, Copy)]
enum MappingRole {
    /// Synapses of its morphology, with a rule if they learn.
    Fixed(Option<u8>),
    /// Synapses between all neurons of both areas, with initial weight 0.
    Grown { rule: u8, both_ways: bool },
    /// None: an earlier mapping of the same areas has them, or nothing learns.
    Nothing,
}

impl<'a> GenomeSynapses<'a> {
    /// Assigns neurons to memories and rules to mappings.
    ///
    /// # Errors
    /// `Unsupported`, naming the mapping, if one may grow more than 2²⁶ synapses; `Invalid` beyond
    /// 2³¹ neurons.
    pub fn new(genome: &'a Genome, options: &ConnectOptions) -> Result<Self> {
        let memory_areas = memory_areas(genome);
        let mut active: Vec<Range<u32>> = genome
            .areas()
            .iter()
            .map(|area| area.neurons.clone())
            .collect();
        let mut end = genome.neurons();
        for &area in &memory_areas {
            let start = end;
            end = start
                .checked_add(options.memory_neurons)
                .filter(|&end| end < 1 << 31)
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "area {}: {start} and {} neurons for patterns; at most 2^31 neurons are possible",
                        genome.areas()[area].id,
                        options.memory_neurons
                    ))
                })?;
            active[area] = start..end;
        }
        let mut synapses = Self {
            genome,
            seed: options.seed,
            memory_areas,
            active,
            rules: options.network.plasticity.clone(),
            mappings: Vec::new(),
        };
        for index in 0..genome.mappings().len() {
            let role = synapses.role(index, options.learns)?;
            synapses.mappings.push(role);
        }
        Ok(synapses)
    }

    fn role(&mut self, index: usize, learns: bool) -> Result<MappingRole> {
        let mapping = &self.genome.mappings()[index];
        let rule = if learns {
            rule(self.genome, mapping)
        } else {
            None
        };
        let plasticity = rule.map(|rule| rule_index(&mut self.rules, rule));
        if !mapping.grows() {
            return Ok(MappingRole::Fixed(plasticity));
        }
        let Some(rule) = plasticity else {
            return Ok(MappingRole::Nothing);
        };
        let directions = grown_directions(self.genome, mapping);
        let [from, to] = self.ends(mapping).map(|range| range.len() as u64);
        let pairs = from.saturating_mul(to).saturating_mul(directions.into());
        if pairs > MAX_PAIRS {
            return Err(Error::unsupported(format!(
                "{}: synapses may grow between {pairs} pairs of neurons; at most {MAX_PAIRS} are possible",
                self.place(index)
            )));
        }
        Ok(MappingRole::Grown {
            rule,
            both_ways: directions > 1,
        })
    }

    /// The neurons of both areas of a mapping, in learning.
    fn ends(&self, mapping: &Mapping) -> [&Range<u32>; 2] {
        [mapping.source, mapping.destination].map(|area| &self.active[area])
    }

    /// A mapping, for messages.
    pub(super) fn place(&self, index: usize) -> String {
        let mapping = &self.genome.mappings()[index];
        let [from, to] =
            [mapping.source, mapping.destination].map(|area| self.genome.areas()[area].id);
        format!("mapping {from} to {to}")
    }

    /// The indices of the areas that store patterns, in the order of their neurons for them.
    pub fn memory_areas(&self) -> &[usize] {
        &self.memory_areas
    }

    /// For each area the neurons that represent it in learning: those of its memory, or its own.
    pub fn active_neurons(&self) -> &[Range<u32>] {
        &self.active
    }

    /// The rules of learning: those of the options, then those of the genome.
    pub fn rules(&self) -> &[PlasticityRule] {
        &self.rules
    }

    /// The index in [`GenomeSynapses::rules`] of a mapping's rule; none if its synapses do not
    /// learn.
    ///
    /// # Panics
    /// If there is no such mapping.
    pub fn rule(&self, mapping: usize) -> Option<u8> {
        match self.mappings[mapping] {
            MappingRole::Fixed(rule) => rule,
            MappingRole::Grown { rule, .. } => Some(rule),
            MappingRole::Nothing => None,
        }
    }

    /// Synapses that there will be at least, by arithmetic.
    pub(super) fn min_total(&self) -> u64 {
        let minimum = |(index, role): (usize, &MappingRole)| match role {
            MappingRole::Fixed(_) => self.genome.min_synapses(index),
            // Between all pairs of neurons, but not from a neuron to itself.
            MappingRole::Grown { .. } => {
                let [from, to] = self.ends(&self.genome.mappings()[index]).map(Range::len);
                from as u64 * (to as u64).saturating_sub(1)
            }
            MappingRole::Nothing => 0,
        };
        self.mappings
            .iter()
            .enumerate()
            .map(minimum)
            .fold(0, u64::saturating_add)
    }

    /// Visits the synapses of one mapping with their sources, the same ones in the same order each
    /// time, and calls `between` now and then, which may break it off.
    ///
    /// # Errors
    /// Those of `between` and `visit`; `OutOfMemory` if a row of a memory's synapses does not fit.
    ///
    /// # Cost
    /// Time proportional to the pairs of neurons of the mapping.
    ///
    /// # Panics
    /// If there is no such mapping.
    pub fn visit(
        &self,
        mapping: usize,
        between: &mut dyn FnMut() -> Result<()>,
        mut visit: impl FnMut(u32, Synapse) -> Result<()>,
    ) -> Result<()> {
        match self.mappings[mapping] {
            MappingRole::Fixed(rule) => self.visit_fixed(mapping, rule, between, &mut visit),
            MappingRole::Grown { rule, both_ways } => {
                self.visit_grown(mapping, (rule, both_ways), &mut visit)
            }
            MappingRole::Nothing => Ok(()),
        }
    }

    fn visit_fixed(
        &self,
        index: usize,
        plasticity: Option<u8>,
        between: &mut dyn FnMut() -> Result<()>,
        visit: &mut impl FnMut(u32, Synapse) -> Result<()>,
    ) -> Result<()> {
        let mapping = &self.genome.mappings()[index];
        let [from, to] =
            [mapping.source, mapping.destination].map(|area| &self.genome.areas()[area].neurons);
        let synapse = |target: u32| Synapse {
            target,
            weight: mapping.weight(),
            inhibitory: mapping.is_inhibitory(),
            plasticity,
        };
        let rows = (PAIRS_BETWEEN / (to.len() as u64).max(1)).max(1) as usize;
        for first in from.clone().step_by(rows) {
            between()?;
            let rows = first..(first.saturating_add(rows as u32)).min(from.end);
            let mut result = Ok(());
            self.genome
                .mapping_synapses(index, rows, self.seed, &mut |each| {
                    if result.is_ok() {
                        result = visit(each.source, synapse(each.target));
                    }
                });
            result?;
        }
        // Every neuron of a memory sends as the area's first neuron does.
        if !self.memory_areas.contains(&mapping.source) {
            return Ok(());
        }
        let first = from.start..from.start + 1;
        let mut count = 0;
        self.genome
            .mapping_synapses(index, first.clone(), self.seed, &mut |_| count += 1);
        let mut row = host_memory::with_capacity(
            format_args!("{}: a row of {count} synapses", self.place(index)),
            count,
        )?;
        self.genome
            .mapping_synapses(index, first, self.seed, &mut |each| {
                row.push(synapse(each.target));
            });
        for source in self.active[mapping.source].clone() {
            between()?;
            row.iter().try_for_each(|synapse| visit(source, *synapse))?;
        }
        Ok(())
    }

    /// Synapses between all pairs of two areas, in one direction or in both, with initial weight 0.
    fn visit_grown(
        &self,
        index: usize,
        (rule, both_ways): (u8, bool),
        visit: &mut impl FnMut(u32, Synapse) -> Result<()>,
    ) -> Result<()> {
        let mapping = &self.genome.mappings()[index];
        let [from, to] = self.ends(mapping);
        let synapse = |target: u32| Synapse {
            target,
            weight: 0,
            inhibitory: mapping.is_inhibitory(),
            plasticity: Some(rule),
        };
        for source in from.clone() {
            for target in to.clone().filter(|target| *target != source) {
                visit(source, synapse(target))?;
            }
        }
        if !both_ways {
            return Ok(());
        }
        for source in to.clone() {
            for target in from.clone() {
                visit(source, synapse(target))?;
            }
        }
        Ok(())
    }
}

fn rule_index(rules: &mut Vec<PlasticityRule>, rule: PlasticityRule) -> u8 {
    let known = rules
        .iter()
        .position(|other| *other == rule)
        .unwrap_or(rules.len());
    if known == rules.len() {
        rules.push(rule);
    }
    // The network rejects more than 16.
    known.min(usize::from(u8::MAX)) as u8
}
