//! The rule: what a neuron does in a burst, in integers, the same on every device.
//! `docs/spiking.md` describes it.
//!
//! A potential is a fixed-point number of at most 16 fraction bits, each neuron's own, in an `i32`
//! clamped to ±[`POTENTIAL_MAX`]. All additions of one burst's arrivals are exact, so their order does not
//! matter.

use serde::Serialize;

/// Binary places of the full format, and of the units that firings send.
pub const FRACTION_BITS: u32 = 16;
/// Maximum potential; sums are clamped to it and to its negative.
pub const POTENTIAL_MAX: i32 = (1 << 30) - 1;
/// A threshold that no potential reaches.
pub const NEVER: i32 = i32::MAX;
/// The leak that removes everything: 1.
pub const LEAK_ONE: u32 = 1 << 16;
/// The draw threshold with which a neuron always fires.
pub const ALWAYS: u32 = u32::MAX;

/// Words of a profile in the table of device code.
pub const PROFILE_WORDS: usize = 12;

/// Why a sum of 0 must be distinguished from no arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroSumReason {
    /// A neuron draws whether it fires: one that did not fire draws again at any arrival.
    Draws,
    /// A neuron that was stopped by its consecutive limit may fire at any arrival.
    Limited,
    /// Its threshold is not above its rest, so any arrival makes it fire.
    FiresAtRest,
    /// It leaks from above its limit into its window, where any arrival makes it fire.
    LeaksIntoWindow,
    /// Idle bursts are skipped: its leak and refractory period advance only at arrivals.
    Frozen,
}

/// The effect on a neuron of a burst without arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleUpdate {
    /// It leaks, its refractory period advances, and its series of firings ends. Applied when the
    /// neuron is next updated.
    #[default]
    CatchUp,
    /// None: only bursts with arrivals count, as in FEAGI's CPU engine.
    Freeze,
}

/// The constants of a neuron in integers. Neurons with equal constants share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// The minimum potential at which a neuron may fire.
    pub threshold: i32,
    /// The maximum potential at which it may fire.
    pub limit: i32,
    /// The initial potential, to which a neuron also resets after firing and leaks.
    pub rest: i32,
    /// The fraction of (potential − rest) that is lost in a burst without firing, in units of 2⁻¹⁶;
    /// at most [`LEAK_ONE`].
    pub leak: u32,
    /// A candidate fires if the draw of 32 bits is below this; [`ALWAYS`] draws nothing.
    pub chance: u32,
    /// Bursts after a firing in which arrivals are lost.
    pub refractory: u32,
    /// Firings in a row after which it snoozes; 0 for no limit.
    pub consecutive_limit: u32,
    /// Bursts added to the refractory period when the limit is reached.
    pub snooze: u32,
    /// Whether the potential persists from one burst to the next.
    pub accumulates: bool,
    /// Whether its synapses carry its firing potential.
    pub potential_driven: bool,
    /// The fraction bits that its potential has less than 16.
    pub shift: u32,
}

/// The state of a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeuronState {
    /// In fixed point.
    pub potential: i32,
    /// The burst of the last arrival.
    pub last: u32,
    /// [`IdleUpdate::CatchUp`]: the first burst after the refractory period. [`IdleUpdate::Freeze`]: its remaining bursts.
    pub ready: u32,
    /// Firings in a row.
    pub consecutive: u32,
}

impl Profile {
    /// Its words in the table of device code.
    pub fn words(&self) -> [u32; PROFILE_WORDS] {
        [
            self.threshold as u32,
            self.limit as u32,
            self.rest as u32,
            self.leak,
            self.chance,
            self.refractory,
            self.consecutive_limit,
            self.snooze,
            u32::from(self.accumulates),
            u32::from(self.potential_driven),
            self.shift,
            0,
        ]
    }

    /// The inverse of [`Profile::words`].
    pub fn of(words: &[u32; PROFILE_WORDS]) -> Self {
        let &[
            threshold,
            limit,
            rest,
            leak,
            chance,
            refractory,
            consecutive_limit,
            snooze,
            accumulates,
            potential_driven,
            shift,
            ..,
        ] = words;
        let [threshold, limit, rest] = [threshold, limit, rest].map(|word| word as i32);
        let [accumulates, potential_driven] = [accumulates, potential_driven].map(|word| word != 0);
        Self {
            threshold,
            limit,
            rest,
            leak,
            chance,
            refractory,
            consecutive_limit,
            snooze,
            accumulates,
            potential_driven,
            shift,
        }
    }

    /// Fraction bits of the potential.
    pub fn fraction_bits(&self) -> u32 {
        FRACTION_BITS - self.shift
    }

    /// Whether, and why, a neuron may wait in its window for another arrival, or advances only at
    /// arrivals.
    pub fn zero_sums(&self, idle_update: IdleUpdate) -> Option<ZeroSumReason> {
        if self.chance != ALWAYS {
            Some(ZeroSumReason::Draws)
        } else if self.consecutive_limit != 0 {
            Some(ZeroSumReason::Limited)
        } else if self.threshold <= self.rest {
            Some(ZeroSumReason::FiresAtRest)
        } else if self.limit != NEVER && self.leak != 0 {
            Some(ZeroSumReason::LeaksIntoWindow)
        } else {
            (idle_update == IdleUpdate::Freeze && (self.leak != 0 || self.refractory != 0))
                .then_some(ZeroSumReason::Frozen)
        }
    }

    /// Updates a neuron in a burst with arrivals, even if their sum is 0; returns the potential
    /// with which it fires, if it does.
    ///
    /// `draw` is called at most once.
    #[inline(always)]
    pub fn update(
        &self,
        idle_update: IdleUpdate,
        state: &mut NeuronState,
        arrived: i32,
        burst: u32,
        draw: impl FnOnce() -> u32,
    ) -> Option<i32> {
        let limited = self.consecutive_limit != 0;
        match idle_update {
            IdleUpdate::CatchUp => {
                let last = std::mem::replace(&mut state.last, burst);
                if burst < state.ready {
                    return None;
                }
                if limited {
                    let woke = state.consecutive >= self.consecutive_limit
                        && self.refractory + self.snooze > 0;
                    // In an earlier burst it could have fired and did not.
                    if woke || burst > (last + 1).max(state.ready) {
                        state.consecutive = 0;
                    }
                }
                if self.leak != 0 {
                    state.potential =
                        self.leaked(state.potential, (burst - last).saturating_sub(1));
                }
            }
            IdleUpdate::Freeze => {
                state.last = burst;
                if state.ready > 0 {
                    state.ready -= 1;
                    if state.ready == 0 && limited && state.consecutive >= self.consecutive_limit {
                        state.consecutive = 0;
                    }
                    return None;
                }
            }
        }

        let before = if self.accumulates {
            state.potential
        } else {
            self.rest
        };
        let potential = (before + arrived).clamp(-POTENTIAL_MAX, POTENTIAL_MAX);
        let inside = potential >= self.threshold && potential <= self.limit;
        let kept = |potential: i32| {
            if self.accumulates {
                potential
            } else {
                self.rest
            }
        };
        if inside && limited && state.consecutive >= self.consecutive_limit {
            (state.potential, state.consecutive) = (kept(potential), 0);
            return None;
        }
        if inside && (self.chance == ALWAYS || draw() < self.chance) {
            state.potential = self.rest;
            state.consecutive = (state.consecutive + 1).min(u32::from(u16::MAX));
            let snoozes = limited && state.consecutive >= self.consecutive_limit;
            let pause = self.refractory + if snoozes { self.snooze } else { 0 };
            state.ready = if idle_update == IdleUpdate::CatchUp {
                burst + 1 + pause
            } else {
                pause
            };
            return Some(potential);
        }
        if limited {
            state.consecutive = 0;
        }
        state.potential = kept(self.leaked(potential, 1));
        None
    }

    /// The name of a state variable whose value no run of this many bursts can reach, if there is
    /// one.
    pub fn unreachable(
        &self,
        idle_update: IdleUpdate,
        state: &NeuronState,
        bursts: u32,
    ) -> Option<&'static str> {
        let &NeuronState {
            potential,
            last,
            ready,
            consecutive,
        } = state;
        let limited = self.consecutive_limit != 0;
        // A neuron fires whenever it enters its window, and no leak moves it there.
        let never_waits = self.chance == ALWAYS
            && !limited
            && (self.leak == 0 || self.rest < self.threshold && self.limit >= POTENTIAL_MAX);
        let waits = potential >= self.threshold && potential <= self.limit;
        let is_kept = self.accumulates
            && potential.unsigned_abs() <= POTENTIAL_MAX.unsigned_abs()
            && !(never_waits && waits);
        let pause = self
            .refractory
            .saturating_add(if limited { self.snooze } else { 0 });
        let longest = if idle_update == IdleUpdate::CatchUp {
            pause.saturating_add(bursts).saturating_add(1)
        } else {
            pause
        };
        let most = if limited {
            self.consecutive_limit
        } else {
            u32::from(u16::MAX)
        };
        let faults = [
            ("potential", potential != self.rest && !is_kept),
            ("last", last > bursts),
            ("ready", ready > longest),
            ("consecutive", consecutive > most.min(bursts)),
        ];
        faults
            .into_iter()
            .find_map(|(name, is_fault)| is_fault.then_some(name))
    }

    /// A potential after a number of bursts of leak; it stops where a burst removes less than one
    /// unit.
    #[inline(always)]
    pub fn leaked(&self, potential: i32, bursts: u32) -> i32 {
        let above = potential - self.rest;
        let mut size = above.unsigned_abs();
        for _ in 0..bursts {
            let taken = leak_of(size, self.leak);
            if taken == 0 {
                break;
            }
            size -= taken;
        }
        self.rest
            + if above < 0 {
                -(size as i32)
            } else {
                size as i32
            }
    }
}

/// ⌊size · leak / 2¹⁶⌋, exact for a size below 2³¹.
#[inline(always)]
fn leak_of(size: u32, leak: u32) -> u32 {
    (size >> 16) * leak + (((size & 0xffff) * leak) >> 16)
}

/// 32 random bits for a neuron and a burst: FEAGI's counter hash of both, with the seed added to
/// the neuron's number.
#[inline(always)]
pub fn draw(seed: u32, neuron: u32, burst: u32) -> u32 {
    let mixed = neuron
        .wrapping_add(seed)
        .wrapping_mul(2_654_435_761)
        .wrapping_add(burst.wrapping_mul(1_597_334_677));
    let state = mixed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

/// The seed of draws from a 64-bit seed; every bit has an effect, and below 2³² it is the same
/// number.
pub fn seed_of(seed: u64) -> u32 {
    seed as u32 ^ hash_mix((seed >> 32) as u32)
}

/// Two words that a run sums over its spikes; the sums are its spike hash, independent of the
/// order.
#[inline(always)]
pub fn spike_hash_words(neuron: u32, burst: u32) -> [u32; 2] {
    let first = hash_mix(neuron ^ hash_mix(burst ^ 0x9e37_79b9));
    [
        first,
        hash_mix(first ^ neuron.wrapping_mul(0x85eb_ca6b) ^ 0x27d4_eb2f),
    ]
}

/// A bijection of 32 bits: the finaliser of `MurmurHash3` (A. Appleby).
#[inline(always)]
fn hash_mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The amount that a firing sends through each unit of weight, in steps of 2⁻¹⁶: psp · 2¹⁶ divided
/// by the number of synapses that share it, rounded to the nearest.
#[inline(always)]
pub fn unit(psp: u32, share: u32) -> u32 {
    ((psp << FRACTION_BITS) + share / 2) / share
}

/// An amount that arrives, weight · unit, for a target with `shift` fraction bits less than 16:
/// rounded to the nearest, halves up. 255 · 255 · 2¹⁶ + 2¹⁵ is below 2³².
#[inline(always)]
pub fn rounded(amount: u32, shift: u32) -> u32 {
    (amount + ((1 << shift) >> 1)) >> shift
}

/// The psp of a firing potential: rounded to the nearest integer, clamped to 0 to 255.
#[inline(always)]
pub fn potential_psp(potential: i32, fraction_bits: u32) -> u32 {
    let half = (1 << fraction_bits) >> 1;
    ((potential + half) >> fraction_bits).clamp(0, 255) as u32
}
/// A number in fixed point, rounded to the nearest and clamped to the range of a potential.
pub fn fixed(value: f32, fraction_bits: u32) -> i32 {
    let scaled = (f64::from(value) * f64::from(1u32 << fraction_bits)).round();
    scaled.clamp(-f64::from(POTENTIAL_MAX), f64::from(POTENTIAL_MAX)) as i32
}
