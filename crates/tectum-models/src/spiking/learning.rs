//! How plastic synapses learn, in integers, the same on every device. `docs/spiking.md` has it in words.
//!
//! A weight is needed when its source fires, so that is when it is brought up to date; once more when the source's last firing
//! leaves the window, since from then on only the target's firings count, and how many bursts those made count is one number of
//! the target. Between such visits a weight only shrinks, so a burst costs as much as the rows of what fired in it.

use serde::Serialize;
use tectum::{Error, Result};

/// Bursts of the longest window.
pub const WINDOW_MAX: u32 = 256;
/// The greatest weight.
const WEIGHT_MAX: u32 = 255;
/// The burst of a firing that never was: so far before the first, counted round, that no window reaches from it.
pub const NEVER: u32 = u32::MAX - 4 * WINDOW_MAX;
/// In [`History::before`], of a neuron whose firings so far will not count.
pub const NO_SPIKE_BEFORE: u32 = u32::MAX;

/// How synapses learn from the firings of their two ends.
///
/// # Source
/// The windowed STDP of FEAGI's burst engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlasticityRule {
    /// Bursts that count as together, 1 to 256.
    pub window: u32,
    /// What a weight gains when both ends fired in all of them.
    pub gain: u8,
    /// What it loses when either did in some.
    pub loss: u8,
}

/// What a rule must know of a neuron's firings up to some burst. Differences of bursts are taken modulo 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// The burst of its last firing; [`NEVER`] before the first.
    pub last: u32,
    /// Bursts in a row up to that one in which it fired.
    pub run: u32,
    /// Bursts up to that one that had a firing of it in their window, modulo 2³².
    pub active: u32,
    /// The burst of the firing before; [`NEVER`] if there is none, [`NO_SPIKE_BEFORE`] if those so far are not to count.
    pub before: u32,
}

/// What a firing does to the synapses of its source.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// How the synapses learn.
    pub rule: PlasticityRule,
    /// The burst of the firing.
    pub burst: u32,
    /// Bursts since the firing before that were lost whatever the target did; none if its firings alone count.
    pub lost: Option<u32>,
    /// Whether the source fired in all bursts of the window.
    pub may_gain: bool,
}

impl PlasticityRule {
    /// # Errors
    /// `Invalid` for a window that is none.
    pub fn check(&self) -> Result<()> {
        match self.window {
            1..=WINDOW_MAX => Ok(()),
            window => Err(Error::invalid(format!("a plasticity window of {window} bursts; 1 to {WINDOW_MAX} are possible"))),
        }
    }

    /// A weight after so many bursts in which it lost.
    #[inline(always)]
    fn less(&self, weight: u32, bursts: u32) -> u32 {
        weight.saturating_sub(bursts.min(WEIGHT_MAX) * u32::from(self.loss))
    }

    /// What the source's firing in a burst does, its history up to that burst.
    #[inline(always)]
    pub fn visit(self, source: &History, burst: u32) -> Visit {
        // The source's own window holds the bursts since its firing before, or else the target's firings alone count.
        let gap = burst.wrapping_sub(source.before);
        Visit { rule: self, burst, lost: (gap < self.window).then(|| gap.saturating_sub(1)), may_gain: source.run >= self.window }
    }

    /// A weight when the window of its source's last firing closes: at the end of the burst `window − 1` after it.
    #[inline(always)]
    pub fn weight_at_window_close(&self, weight: u32) -> u32 {
        self.less(weight, self.window - 1)
    }

    /// A weight at the end of a burst, both histories up to that burst, whenever it was last brought up to date.
    pub fn now(&self, source: &History, target: &History, weight: u32, seen: u32, burst: u32) -> u32 {
        match burst.wrapping_sub(source.last) {
            0 => self.visit(source, burst).weight(target, weight, seen),
            gap if gap < self.window && source.before != NO_SPIKE_BEFORE => self.less(weight, gap),
            _ => self.less(weight, target.active_until(burst, self.window).wrapping_sub(seen)),
        }
    }
}

impl Visit {
    /// A synapse's weight at the end of the burst, the target's history up to that burst. `seen` is what the target's number of
    /// active bursts was when the source's window last closed.
    #[inline(always)]
    pub fn weight(&self, target: &History, weight: u32, seen: u32) -> u32 {
        let lost = self.lost.unwrap_or_else(|| target.active_until(self.burst - 1, self.rule.window).wrapping_sub(seen));
        let weight = self.rule.less(weight, lost);
        if self.may_gain && target.last == self.burst && target.run >= self.rule.window {
            (weight + u32::from(self.rule.gain)).min(WEIGHT_MAX)
        } else {
            self.rule.less(weight, 1)
        }
    }
}

impl History {
    /// Of a neuron that has not fired yet.
    pub fn none(window: u32) -> Self {
        // The bursts since a firing that never was make it 0.
        Self { last: NEVER, run: 0, active: 1u32.wrapping_sub(window), before: NEVER }
    }

    /// Takes in a firing.
    #[inline(always)]
    pub fn fire(&mut self, burst: u32, window: u32) {
        let gap = burst.wrapping_sub(self.last);
        let before = if self.before == NO_SPIKE_BEFORE { NEVER } else { self.last };
        *self = Self { last: burst, run: if gap == 1 { self.run + 1 } else { 1 }, active: self.active.wrapping_add(gap.min(window)), before };
    }

    /// Bursts up to one that had a firing in their window: one not before the last firing, or the one just before it.
    #[inline(always)]
    pub fn active_until(&self, burst: u32, window: u32) -> u32 {
        let gap = burst.wrapping_sub(self.last);
        self.active.wrapping_add(if gap == u32::MAX { gap } else { gap.min(window - 1) })
    }

    /// From its words in memory.
    #[inline(always)]
    pub fn of([last, run, active, before]: [u32; 4]) -> Self {
        Self { last, run, active, before }
    }

    /// Its words in memory.
    #[inline(always)]
    pub fn words(self) -> [u32; 4] {
        [self.last, self.run, self.active, self.before]
    }
}
