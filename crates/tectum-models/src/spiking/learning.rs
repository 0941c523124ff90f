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
/// In [`History::before`], of a neuron whose earlier firings no longer count.
pub const FRESH: u32 = u32::MAX;

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

/// What a rule must know of a neuron's firings up to some burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct History {
    /// The burst of its last firing; 0 before the first.
    pub last: u32,
    /// Bursts in a row up to that one in which it fired.
    pub run: u32,
    /// Bursts up to that one that had a firing of it in their window, modulo 2³².
    pub active: u32,
    /// The burst of the firing before; 0 if there is none, [`FRESH`] if it is not to count.
    pub before: u32,
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

    /// A weight at the end of a burst in which its source fired, both histories up to that burst. `seen` is what the target's
    /// number of active bursts was when the source's window last closed.
    #[inline(always)]
    pub fn at_firing(&self, source: &History, target: &History, weight: u32, seen: u32, burst: u32) -> u32 {
        // Bursts since the firing before, all of them lost: the source's own window holds them, or else the target's firings do.
        let lost = match source.before {
            before if before != 0 && burst - before < self.window => burst - before - 1,
            _ => target.active_until(burst - 1, self.window).wrapping_sub(seen),
        };
        let weight = self.less(weight, lost);
        if source.run >= self.window && target.last == burst && target.run >= self.window {
            (weight + u32::from(self.gain)).min(WEIGHT_MAX)
        } else {
            self.less(weight, 1)
        }
    }

    /// A weight when the window of its source's last firing closes: at the end of the burst `window − 1` after it.
    #[inline(always)]
    pub fn at_close(&self, weight: u32) -> u32 {
        self.less(weight, self.window - 1)
    }

    /// A weight at the end of a burst, both histories up to that burst, whenever it was last brought up to date.
    pub fn now(&self, source: &History, target: &History, weight: u32, seen: u32, burst: u32) -> u32 {
        match source.last {
            last if last == burst => self.at_firing(source, target, weight, seen, burst),
            last if last != 0 && source.before != FRESH && burst - last < self.window => self.less(weight, burst - last),
            _ => self.less(weight, target.active_until(burst, self.window).wrapping_sub(seen)),
        }
    }
}

impl History {
    /// Takes in a firing.
    #[inline(always)]
    pub fn fire(&mut self, burst: u32, window: u32) {
        let gap = burst - self.last;
        let (run, active) = if self.last == 0 { (1, 1) } else { (if gap == 1 { self.run + 1 } else { 1 }, self.active.wrapping_add(gap.min(window))) };
        let before = if self.before == FRESH { 0 } else { self.last };
        *self = Self { last: burst, run, active, before };
    }

    /// Bursts up to one that had a firing in their window: one not before the last firing, or the one just before it.
    #[inline(always)]
    pub fn active_until(&self, burst: u32, window: u32) -> u32 {
        match self.last {
            0 => 0,
            last if burst < last => self.active.wrapping_sub(1),
            last => self.active.wrapping_add((burst - last).min(window - 1)),
        }
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
