//! Synapses by source.

use tectum::{Error, Result};

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

/// Synapses in memory, by source.
#[derive(Debug, Clone)]
pub struct SynapseList {
    starts: Vec<u64>,
    synapses: Vec<Synapse>,
}

impl SynapseList {
    /// Sorts synapses by source; the sort is stable.
    ///
    /// # Errors
    /// `Invalid`, naming the synapse, if its source is not a neuron.
    pub fn new(neurons: u32, list: &[(u32, Synapse)]) -> Result<Self> {
        let mut starts = vec![0u64; neurons as usize + 1];
        for (index, (source, _)) in list.iter().enumerate() {
            let count = starts.get_mut(*source as usize + 1);
            *count.ok_or_else(|| {
                Error::invalid(format!(
                    "synapse {index}: source {source} of {neurons} neurons"
                ))
            })? += 1;
        }
        for index in 0..neurons as usize {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut synapses = vec![Synapse::fixed(0, 0, false); list.len()];
        for (source, synapse) in list {
            synapses[next[*source as usize] as usize] = *synapse;
            next[*source as usize] += 1;
        }
        Ok(Self { starts, synapses })
    }
}

impl SynapseRows for SynapseList {
    fn visit(&self, source: u32, visit: &mut dyn FnMut(Synapse)) {
        let range =
            self.starts[source as usize] as usize..self.starts[source as usize + 1] as usize;
        self.synapses[range].iter().copied().for_each(visit);
    }

    fn sources(&self) -> Option<u32> {
        Some(self.starts.len() as u32 - 1)
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&self.starts[..]) + size_of_val(&self.synapses[..])) as u64
    }
}
