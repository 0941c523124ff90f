//! How plastic synapses learn, in integers, the same on every device. `docs/spiking.md` describes
//! it.
//!
//! A weight is needed when its source fires, so it is brought up to date then. It is updated again
//! when the source's last firing leaves the window: from then on only the target's firings count,
//! and one number of the target is the count of their bursts. Between such visits a weight only
//! shrinks, so the cost of a burst is that of the rows of the neurons that fired. With
//! [`WeightLoss::SteadySource`] a weight changes only at firings of its source.

use serde::Serialize;
use tectum::{Error, Result};

/// Maximum window, in bursts.
pub const WINDOW_MAX: u32 = 256;
/// Maximum weight.
const WEIGHT_MAX: u32 = 255;
/// The burst of a firing that never happened: so far before the first, modulo 2³², that no window
/// reaches it.
pub const NEVER: u32 = u32::MAX - 4 * WINDOW_MAX;
/// In [`History::before`]: earlier firings of the neuron do not count.
pub const NO_SPIKE_BEFORE: u32 = u32::MAX;

/// When a weight that does not gain loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightLoss {
    /// If either end fired in any burst of the window.
    #[default]
    AnyFiring,
    /// If its source fired in every burst of the window.
    SteadySource,
}

impl WeightLoss {
    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            WeightLoss::AnyFiring => "any_firing",
            WeightLoss::SteadySource => "steady_source",
        }
    }
}

/// How synapses learn from the firings of their two ends: by coincidence within a window, symmetric
/// in the order of the firings.
///
/// A source that fires just before its target has the same effect as one that fires just after it;
/// `docs/spiking.md` has a worked table.
///
/// # Source
/// The two engines of FEAGI, which call it STDP: the newer one has [`WeightLoss::AnyFiring`], the
/// older one [`WeightLoss::SteadySource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlasticityRule {
    /// The window of coincidence in bursts, 1 to 256.
    pub window: u32,
    /// Added to a weight when both ends fired in all of them.
    pub gain: u8,
    /// Subtracted otherwise, if the condition of a loss is met.
    pub loss: u8,
    /// The condition of a loss.
    pub weight_loss: WeightLoss,
}

/// The history of a neuron's firings that a rule needs, up to some burst. Differences of bursts are
/// modulo 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// The burst of its last firing; [`NEVER`] before the first.
    pub last: u32,
    /// Consecutive bursts in which it fired, up to that one.
    pub run: u32,
    /// Bursts up to that one with one of its firings in their window, modulo 2³².
    pub active: u32,
    /// The burst of the previous firing; [`NEVER`] if there is none, [`NO_SPIKE_BEFORE`] if earlier
    /// ones do not count.
    pub before: u32,
}

/// The effect of a firing on the synapses of its source.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// How the synapses learn.
    pub rule: PlasticityRule,
    /// The burst of the firing.
    pub burst: u32,
    /// Bursts since the previous firing that cost weight whatever the target did; none if only its
    /// firings count.
    pub lost: Option<u32>,
    /// Whether the source fired in all bursts of the window.
    pub may_gain: bool,
}

impl PlasticityRule {
    /// Everything that determines its behaviour; rules with [`WeightLoss::AnyFiring`] have the
    /// numbers that they had when there was no other.
    pub(super) fn numbers(&self) -> [u32; 3] {
        let loss = u32::from(self.loss) | (self.weight_loss as u32) << 8;
        [self.window, self.gain.into(), loss]
    }

    /// # Errors
    /// `Invalid` for a window out of range.
    pub fn check(&self) -> Result<()> {
        match self.window {
            1..=WINDOW_MAX => Ok(()),
            window => Err(Error::invalid(format!(
                "a plasticity window of {window} bursts; 1 to {WINDOW_MAX} are possible"
            ))),
        }
    }

    /// A weight after a number of bursts in which it shrank.
    #[inline(always)]
    fn less(&self, weight: u32, bursts: u32) -> u32 {
        weight.saturating_sub(bursts.min(WEIGHT_MAX) * u32::from(self.loss))
    }

    /// The effect of the source's firing in a burst, from its history up to that burst.
    #[inline(always)]
    pub fn visit(self, source: &History, burst: u32) -> Visit {
        // Either the source's window covers the bursts since its previous firing, or only the
        // target's firings count.
        let gap = burst.wrapping_sub(source.before);
        let may_gain = source.run >= self.window;
        if self.weight_loss == WeightLoss::SteadySource {
            // Nothing is lost between firings, nor at one that does not complete a window.
            let loss = if may_gain { self.loss } else { 0 };
            return Visit {
                rule: Self { loss, ..self },
                burst,
                lost: Some(0),
                may_gain,
            };
        }
        Visit {
            rule: self,
            burst,
            lost: (gap < self.window).then(|| gap.saturating_sub(1)),
            may_gain,
        }
    }

    /// A weight when the window of its source's last firing closes: at the end of the burst
    /// `window − 1` after it.
    #[inline(always)]
    pub fn weight_at_window_close(&self, weight: u32) -> u32 {
        self.less(weight, self.window - 1)
    }

    /// A weight at the end of a burst, from both histories up to that burst, regardless of its last
    /// update.
    pub fn now(
        &self,
        source: &History,
        target: &History,
        weight: u32,
        seen: u32,
        burst: u32,
    ) -> u32 {
        match burst.wrapping_sub(source.last) {
            0 => self.visit(source, burst).weight(target, weight, seen),
            _ if self.weight_loss == WeightLoss::SteadySource => weight,
            gap if gap < self.window && source.before != NO_SPIKE_BEFORE => self.less(weight, gap),
            _ => self.less(
                weight,
                target.active_until(burst, self.window).wrapping_sub(seen),
            ),
        }
    }
}

impl Visit {
    /// A synapse's weight at the end of the burst, from the target's history up to that burst.
    /// `seen` is the target's number of active bursts at the time when the source's window last
    /// closed.
    #[inline(always)]
    pub fn weight(&self, target: &History, weight: u32, seen: u32) -> u32 {
        let lost = self.lost.unwrap_or_else(|| {
            target
                .active_until(self.burst - 1, self.rule.window)
                .wrapping_sub(seen)
        });
        let weight = self.rule.less(weight, lost);
        if self.may_gain && target.last == self.burst && target.run >= self.rule.window {
            (weight + u32::from(self.rule.gain)).min(WEIGHT_MAX)
        } else {
            self.rule.less(weight, 1)
        }
    }
}

impl History {
    /// The history of a neuron that has not fired yet.
    pub fn none(window: u32) -> Self {
        // The bursts since a firing that never happened make it 0.
        Self {
            last: NEVER,
            run: 0,
            active: 1u32.wrapping_sub(window),
            before: NEVER,
        }
    }

    /// Records a firing.
    #[inline(always)]
    pub fn fire(&mut self, burst: u32, window: u32) {
        let gap = burst.wrapping_sub(self.last);
        let before = if self.before == NO_SPIKE_BEFORE {
            NEVER
        } else {
            self.last
        };
        *self = Self {
            last: burst,
            run: if gap == 1 { self.run + 1 } else { 1 },
            active: self.active.wrapping_add(gap.min(window)),
            before,
        };
    }

    /// Bursts up to `burst` with a firing in their window; `burst` is not before the last firing,
    /// or is the one just before it.
    #[inline(always)]
    pub fn active_until(&self, burst: u32, window: u32) -> u32 {
        let gap = burst.wrapping_sub(self.last);
        self.active.wrapping_add(if gap == u32::MAX {
            gap
        } else {
            gap.min(window - 1)
        })
    }

    /// Reads it from its words in memory.
    #[inline(always)]
    pub fn of([last, run, active, before]: [u32; 4]) -> Self {
        Self {
            last,
            run,
            active,
            before,
        }
    }

    /// Its words in memory.
    #[inline(always)]
    pub fn words(self) -> [u32; 4] {
        [self.last, self.run, self.active, self.before]
    }
}
