//! Memories: neurons that fire when the pattern of firings which formed them is seen again. `docs/spiking.md` has the rule in words.

use std::ops::Range;

use serde::Serialize;
use tectum::{Error, Result};

use super::learning::WINDOW_MAX;

/// Neurons that each keep a pattern of what fired upstream.
///
/// # Source
/// The memory areas of FEAGI's plasticity service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Neurons whose firings it sees, ascending.
    pub upstream: Vec<Range<u32>>,
    /// Its own neurons: as many patterns can be kept at once. They fire in no other way.
    pub neurons: Range<u32>,
    /// Bursts that make up a pattern, 1 to 256.
    pub depth: u32,
    /// Bursts that a new pattern is kept without being seen again, at least 1.
    pub initial_lifespan: u32,
    /// Bursts that each time it is seen adds.
    pub lifespan_growth: u32,
    /// Lifespan from which it is kept for good.
    pub longterm_threshold: u32,
}

/// What a memory has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MemoryReport {
    /// Patterns that are kept.
    pub patterns: u32,
    /// Of them, those that are kept for good.
    pub longterm: u32,
    /// Patterns that were formed so far.
    pub formed: u32,
    /// Times that a pattern was seen for which no neuron was free.
    pub lost: u32,
}

impl Memory {
    /// All that decides what it does.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let own = [self.neurons.start, self.neurons.end, self.depth, self.initial_lifespan, self.lifespan_growth, self.longterm_threshold];
        own.into_iter().chain(self.upstream.iter().flat_map(|range| [range.start, range.end]))
    }
}

/// # Errors
/// `Invalid`, naming the memory, for numbers out of their range, neurons that are none or of two memories, and upstream neurons
/// that do not ascend.
pub(super) fn check(memories: &[Memory], neurons: u32) -> Result<()> {
    for (index, memory) in memories.iter().enumerate() {
        let fault = |what: String| Err(Error::invalid(format!("memory {index}: {what}")));
        if !(1..=WINDOW_MAX).contains(&memory.depth) {
            return fault(format!("a depth of {} bursts; 1 to {WINDOW_MAX} are possible", memory.depth));
        }
        if memory.initial_lifespan == 0 {
            return fault("an initial lifespan of 0 bursts; at least 1 is needed".to_owned());
        }
        if memory.neurons.is_empty() || memory.neurons.end > neurons {
            return fault(format!("neurons {:?} of {neurons}", memory.neurons));
        }
        let mut end = 0;
        for range in &memory.upstream {
            if range.start < end || range.is_empty() || range.end > neurons {
                return fault(format!("upstream neurons {range:?} of {neurons}, after {end}"));
            }
            end = range.end;
        }
        let overlaps = |other: &Memory| other.neurons.start < memory.neurons.end && memory.neurons.start < other.neurons.end;
        if let Some(other) = memories[..index].iter().position(overlaps) {
            return fault(format!("neurons {:?} are also of memory {other}", memory.neurons));
        }
    }
    Ok(())
}
