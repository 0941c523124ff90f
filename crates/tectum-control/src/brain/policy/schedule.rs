//! When a policy's network runs, and which of the rows that it gives a tick uses.

use tectum::{Error, Result};

use super::contract::action::ActionRule;

/// The schedule of inferences and of the rows of their chunks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schedule {
    /// Rows of an answer that are used.
    pub chunk: usize,
    /// Rows that are used before the next inference starts. By default 1 with an ensemble, as ACT
    /// has it; else half of the chunk, rounded up, for asynchronous inferences, and all rows for
    /// others.
    pub replan: usize,
    /// The coefficient m of temporal ensembling.
    pub ensemble: Option<f64>,
    pub is_asynchronous: bool,
    /// Ticks from the start of an asynchronous inference to the use of its answer, where time is
    /// simulated.
    pub delay: u64,
}

impl Default for Schedule {
    /// An inference at every tick.
    fn default() -> Self {
        Self {
            chunk: 1,
            replan: 1,
            ensemble: None,
            is_asynchronous: false,
            delay: 0,
        }
    }
}

impl Schedule {
    /// The schedule of a contract; `state` is a recurrent state of its network.
    ///
    /// # Errors
    /// `Invalid` naming the key of a chunk's schedule that has no effect or excludes another.
    pub fn of(rule: &ActionRule, state: Option<&str>) -> Result<Self> {
        let invalid = |message: String| Err(Error::invalid(format!("action: {message}")));
        let chunk = rule.chunk.max(1);
        let given = [
            ("replan_steps", rule.replan_steps.is_some()),
            (
                "temporal_ensemble_coeff",
                rule.temporal_ensemble_coeff.is_some(),
            ),
            ("asynchronous", rule.is_asynchronous),
        ];
        if let (1, Some((key, _))) = (chunk, given.iter().find(|(_, is_given)| *is_given)) {
            return invalid(format!(
                "{key} needs the key chunk: two or more rows of the output"
            ));
        }
        let replan = rule.replan_steps.unwrap_or(
            match (rule.temporal_ensemble_coeff, rule.is_asynchronous) {
                (Some(_), _) => 1,
                (None, true) => chunk.div_ceil(2),
                (None, false) => chunk,
            },
        );
        if replan > chunk {
            return invalid(format!("replan_steps {replan}: a chunk has {chunk} rows"));
        }
        if rule.temporal_ensemble_coeff.is_some() && replan == chunk {
            return invalid(format!(
                "temporal_ensemble_coeff has no effect: with replan_steps {replan} of {chunk} rows, each tick has one prediction"
            ));
        }
        let delay = match rule.inference_delay {
            Some(_) if !rule.is_asynchronous => {
                return invalid(
                    "inference_delay has no effect: the inferences are not asynchronous".to_owned(),
                );
            }
            delay => delay.unwrap_or(0),
        };
        if delay >= chunk {
            return invalid(format!(
                "inference_delay {delay}: all {chunk} rows of a chunk are for ticks before its arrival"
            ));
        }
        if let (true, Some(state)) = (rule.is_asynchronous, state) {
            return invalid(format!(
                "asynchronous: the state {state} would depend on when answers arrive; run the network synchronously"
            ));
        }
        Ok(Self {
            chunk,
            replan,
            ensemble: rule.temporal_ensemble_coeff,
            is_asynchronous: rule.is_asynchronous,
            delay: delay as u64,
        })
    }

    /// Chunks that can predict the same tick.
    pub fn overlap(&self) -> usize {
        self.ensemble
            .map_or(1, |_| self.chunk.div_ceil(self.replan))
    }
}
