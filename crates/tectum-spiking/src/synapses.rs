//! Synapses by source.

use tectum::{Error, Result, host_memory};

/// A synapse's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synapse {
    /// The target neuron.
    pub target: u32,
    /// The factor of its sender's psp.
    pub weight: u8,
    /// Whether it subtracts instead.
    pub inhibitory: bool,
    /// Index in [`NetworkOptions::plasticity`](crate::NetworkOptions::plasticity) of its learning
    /// rule; none for a fixed weight.
    pub plasticity: Option<u8>,
}

impl Synapse {
    /// A synapse with a fixed weight.
    pub fn fixed(target: u32, weight: u8, inhibitory: bool) -> Self {
        Self {
            target,
            weight,
            inhibitory,
            plasticity: None,
        }
    }

    /// Whether it exists from the beginning, and not only after learning.
    pub(super) fn is_there(&self) -> bool {
        self.plasticity.is_none() || self.weight > 0
    }
}

/// Synapses by source. A network visits them twice, so that they need not be in memory.
pub trait SynapseRows: Send + Sync {
    /// Visits a source's synapses, the same ones in the same order each time.
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse));

    /// The number of sources, if it is fixed: a network of another number of neurons is then
    /// refused.
    fn sources(&self) -> Option<u32> {
        None
    }

    /// Bytes that they take in memory; 0 for synapses that are generated when visited.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Synapses in memory, by source: six bytes each.
#[derive(Debug, Clone)]
pub struct SynapseList {
    /// The start of each source's row, then the end of the last.
    starts: Vec<u64>,
    targets: Vec<u32>,
    /// Weight, sign and rule of each: [`packed`].
    effects: Vec<u16>,
}

/// Bytes of a synapse in a list.
pub(super) const LIST_BYTES: u64 = (size_of::<u32>() + size_of::<u16>()) as u64;
/// Synapses that are counted between two looks at the available memory.
const COUNTED_BETWEEN: u64 = 1 << 24;
/// Maximum rules of plasticity that an effect can name.
const MAX_LISTED_RULES: u8 = 127;

impl SynapseList {
    /// Sorts synapses by source; the sort is stable.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse, if its source is not a neuron or its rule is above 126;
    /// `OutOfMemory` if the list does not fit into memory.
    pub fn new(neurons: u32, list: &[(u32, Synapse)]) -> Result<Self> {
        Self::from_passes(neurons, || Ok(list.iter().copied().map(Ok)))
    }

    /// Sorts synapses by source, from two passes over them, so that no other copy of them is in
    /// memory. `pass` starts one, in the same order each time; the sort is stable.
    ///
    /// # Errors
    /// As [`SynapseList::new`], `Invalid` if the two passes differ, and errors of the passes.
    ///
    /// # Cost
    /// Six bytes for each synapse and eight for each neuron.
    ///
    /// # Example
    /// ```
    /// use tectum_spiking::{Synapse, SynapseList, SynapseRows};
    /// let (source, target) = ([1, 0, 1], [0, 1, 1]);
    /// let synapses = || {
    ///     let ends = source.iter().zip(&target);
    ///     Ok(ends.map(|(source, target)| Ok((*source, Synapse::fixed(*target, 3, false)))))
    /// };
    /// let list = SynapseList::from_passes(2, synapses)?;
    /// let mut targets = Vec::new();
    /// list.visit(1, &mut |synapse| targets.push(synapse.target));
    /// assert_eq!(targets, [0, 1]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn from_passes<I: Iterator<Item = Result<(u32, Synapse)>>>(
        neurons: u32,
        mut pass: impl FnMut() -> Result<I>,
    ) -> Result<Self> {
        let mut counts = SynapseCounts::new(neurons)?;
        for synapse in pass()? {
            counts.add(synapse?.0)?;
        }
        let mut filling = counts.into_filling()?;
        for synapse in pass()? {
            let (source, synapse) = synapse?;
            filling.add(source, synapse)?;
        }
        filling.finish()
    }
}

/// The first of two passes over synapses: how many each source has.
pub(super) struct SynapseCounts {
    neurons: u32,
    /// Synapses of source `s` at `s + 2`.
    counts: Vec<u64>,
    /// Synapses so far.
    pub total: u64,
    /// A hash of the sources in their order.
    order: u64,
}

impl SynapseCounts {
    pub fn new(neurons: u32) -> Result<Self> {
        Ok(Self {
            neurons,
            counts: host_memory::filled(
                format_args!("rows of synapses of {neurons} neurons"),
                0,
                neurons as usize + 2,
            )?,
            total: 0,
            order: 0,
        })
    }

    /// Counts the next synapse; refuses one with which the list no longer fits into memory.
    #[inline]
    pub fn add(&mut self, source: u32) -> Result<()> {
        if source >= self.neurons {
            return Err(Error::invalid(format!(
                "synapse {}: source {source} of {} neurons",
                self.total, self.neurons
            )));
        }
        self.counts[source as usize + 2] += 1;
        self.total += 1;
        self.order = followed(self.order, source);
        if self.total.is_multiple_of(COUNTED_BETWEEN) {
            self.check_memory()?;
        }
        Ok(())
    }

    /// Checks that a list of the synapses so far fits into memory.
    fn check_memory(&self) -> Result<()> {
        host_memory::check(
            format_args!("a list of {} or more synapses", self.total),
            self.total.saturating_mul(LIST_BYTES),
        )
    }

    /// The second pass, in the same order.
    pub fn into_filling(self) -> Result<SynapseFilling> {
        self.check_memory()?;
        let Self {
            counts: mut starts,
            total,
            order,
            ..
        } = self;
        for index in 2..starts.len() {
            starts[index] += starts[index - 1];
        }
        let len = usize::try_from(total).unwrap_or(usize::MAX);
        let what = format_args!("a list of {total} synapses");
        Ok(SynapseFilling {
            targets: host_memory::filled(what, 0, len)?,
            effects: host_memory::filled(what, 0, len)?,
            next: starts,
            added: 0,
            order: 0,
            expected_order: order,
        })
    }
}

/// The second of two passes over synapses: each goes to its place.
pub(super) struct SynapseFilling {
    /// The place of the next synapse of source `s` at `s + 1`; after all of them, that is the end
    /// of its row.
    next: Vec<u64>,
    targets: Vec<u32>,
    effects: Vec<u16>,
    added: u64,
    order: u64,
    expected_order: u64,
}

impl SynapseFilling {
    /// Adds the next synapse.
    #[inline]
    pub fn add(&mut self, source: u32, synapse: Synapse) -> Result<()> {
        let effect = packed(&synapse).ok_or_else(|| self.unknown_rule(&synapse))?;
        let place = self
            .next
            .get_mut(source as usize + 1)
            .ok_or_else(passes_differ)?;
        let (target, other) = self
            .targets
            .get_mut(*place as usize)
            .zip(self.effects.get_mut(*place as usize))
            .ok_or_else(passes_differ)?;
        (*target, *other) = (synapse.target, effect);
        *place += 1;
        self.added += 1;
        self.order = followed(self.order, source);
        Ok(())
    }

    #[cold]
    fn unknown_rule(&self, synapse: &Synapse) -> Error {
        Error::invalid(format!(
            "synapse {}: plasticity rule {}; at most {} can be named",
            self.added,
            synapse.plasticity.unwrap_or(0),
            MAX_LISTED_RULES - 1
        ))
    }

    pub fn finish(mut self) -> Result<SynapseList> {
        if self.added != self.targets.len() as u64 || self.order != self.expected_order {
            return Err(passes_differ());
        }
        // The last entry was for counting.
        self.next.pop();
        Ok(SynapseList {
            starts: self.next,
            targets: self.targets,
            effects: self.effects,
        })
    }
}

/// The hash of a sequence of sources and one more.
fn followed(order: u64, source: u32) -> u64 {
    (order ^ u64::from(source)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ order >> 32
}

#[cold]
fn passes_differ() -> Error {
    Error::invalid("two passes over the same synapses have other synapses")
}

/// Rule + 1, or 0 without one (7 bits) · inhibitory (1) · weight (8); none for a rule that has no
/// number there.
fn packed(synapse: &Synapse) -> Option<u16> {
    let rule = match synapse.plasticity {
        None => 0,
        Some(rule) if rule < MAX_LISTED_RULES => u16::from(rule) + 1,
        Some(_) => return None,
    };
    Some(rule << 9 | u16::from(synapse.inhibitory) << 8 | u16::from(synapse.weight))
}

fn unpacked(target: u32, effect: u16) -> Synapse {
    Synapse {
        target,
        weight: effect as u8,
        inhibitory: effect >> 8 & 1 != 0,
        plasticity: ((effect >> 9) as u8).checked_sub(1),
    }
}

impl SynapseRows for SynapseList {
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse)) {
        let range =
            self.starts[source as usize] as usize..self.starts[source as usize + 1] as usize;
        let effects = &self.effects[range.clone()];
        self.targets[range]
            .iter()
            .zip(effects)
            .for_each(|(target, effect)| visit(unpacked(*target, *effect)));
    }

    fn sources(&self) -> Option<u32> {
        Some(self.starts.len() as u32 - 1)
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&self.starts[..])
            + size_of_val(&self.targets[..])
            + size_of_val(&self.effects[..])) as u64
    }
}

#[cfg(test)]
mod tests {
    use tectum::ErrorKind;

    use super::*;

    #[test]
    fn a_list_has_the_rows_of_its_synapses_in_their_order() {
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32 % below
        };
        let neurons = 37;
        let all: Vec<(u32, Synapse)> = (0..2000)
            .map(|_| {
                let synapse = Synapse {
                    target: random(u32::MAX),
                    weight: random(256) as u8,
                    inhibitory: random(2) == 1,
                    plasticity: random(3).checked_sub(1).map(|_| random(127) as u8),
                };
                // Some sources have no synapses, the first and the last among them.
                (1 + 2 * random(neurons / 2), synapse)
            })
            .collect();
        let list = SynapseList::new(neurons, &all).expect("in range");
        for source in 0..neurons {
            let mut row = Vec::new();
            list.visit(source, &mut |synapse| row.push(synapse));
            let expected = all.iter().filter(|(other, _)| *other == source);
            assert!(
                row.iter().eq(expected.map(|(_, synapse)| synapse)),
                "{source}"
            );
        }
        assert_eq!(list.sources(), Some(neurons));
        assert_eq!(list.bytes(), 6 * 2000 + 8 * 38);
        assert_eq!(SynapseList::new(0, &[]).expect("empty").sources(), Some(0));
    }

    #[test]
    fn a_list_refuses_unknown_sources_rules_and_other_passes() {
        let synapse = |source: u32, rule: Option<u8>| {
            let plastic = Synapse {
                plasticity: rule,
                ..Synapse::fixed(0, 1, false)
            };
            (source, plastic)
        };
        let refused =
            |list: &[(u32, Synapse)]| SynapseList::new(2, list).expect_err("refused").to_string();
        assert_eq!(
            refused(&[synapse(1, None), synapse(2, None)]),
            "synapse 1: source 2 of 2 neurons"
        );
        assert_eq!(
            refused(&[synapse(0, Some(126)), synapse(0, Some(127))]),
            "synapse 1: plasticity rule 127; at most 126 can be named"
        );
        let passes: [[&[u32]; 2]; 5] = [
            [&[0, 1, 1], &[0, 0, 1]],
            [&[0, 1, 1], &[0, 1]],
            [&[0, 1], &[0, 1, 1]],
            [&[0, 1, 2], &[1, 1, 2]],
            [&[0, 1, 2], &[0, 2, 1]],
        ];
        for [first, second] in passes {
            let mut passes = [first, second].into_iter();
            let error = SynapseList::from_passes(3, || {
                let sources = passes.next().unwrap_or_default().iter();
                Ok(sources.map(|source| Ok(synapse(*source, None))))
            })
            .expect_err("the passes differ");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{first:?} {second:?}");
        }
    }
}
