//! Memories: neurons that fire when the pattern of firings that formed them occurs again.
//! `docs/spiking.md` describes the rule.

use std::ops::Range;

use serde::Serialize;
use tectum::{Error, Result};

use super::learning::WINDOW_MAX;

/// Neurons that each store a pattern of upstream firings.
///
/// # Source
/// The memory areas of FEAGI's plasticity service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Upstream neurons, ascending.
    pub upstream: Vec<Range<u32>>,
    /// Its own neurons, one for each stored pattern. They fire for no other reason.
    pub neurons: Range<u32>,
    /// Bursts of a pattern, 1 to 256.
    pub depth: u32,
    /// Lifespan of a new pattern that does not occur again, in bursts, at least 1.
    pub initial_lifespan: u32,
    /// Bursts that each recurrence adds.
    pub lifespan_growth: u32,
    /// Lifespan from which it is permanent.
    pub longterm_threshold: u32,
}

/// Counts of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MemoryReport {
    /// Stored patterns.
    pub patterns: u32,
    /// Permanent patterns among them.
    pub longterm: u32,
    /// Patterns formed so far.
    pub formed: u32,
    /// New patterns for which no neuron was free.
    pub lost: u32,
}

impl Memory {
    /// Feeds everything that determines its behaviour to the hasher.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let own = [
            self.neurons.start,
            self.neurons.end,
            self.depth,
            self.initial_lifespan,
            self.lifespan_growth,
            self.longterm_threshold,
        ];
        own.into_iter().chain(
            self.upstream
                .iter()
                .flat_map(|range| [range.start, range.end]),
        )
    }
}

/// # Errors
/// `Invalid`, naming the memory, for numbers out of range, unknown neurons or neurons of two
/// memories, and upstream neurons that do not ascend.
pub(super) fn check(memories: &[Memory], neurons: u32) -> Result<()> {
    for (index, memory) in memories.iter().enumerate() {
        let fault = |what: String| Err(Error::invalid(format!("memory {index}: {what}")));
        if !(1..=WINDOW_MAX).contains(&memory.depth) {
            return fault(format!(
                "a depth of {} bursts; 1 to {WINDOW_MAX} are possible",
                memory.depth
            ));
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
                return fault(format!(
                    "upstream neurons {range:?} of {neurons}, after {end}"
                ));
            }
            end = range.end;
        }
        let overlaps = |other: &Memory| {
            other.neurons.start < memory.neurons.end && memory.neurons.start < other.neurons.end
        };
        if let Some(other) = memories[..index].iter().position(overlaps) {
            return fault(format!(
                "neurons {:?} are also of memory {other}",
                memory.neurons
            ));
        }
    }
    Ok(())
}
