//! The rule: what a neuron does in a burst, in integers, the same on every device. `docs/spiking.md` has it in words.
//!
//! A potential is a fixed-point number of `fraction_bits` binary places, in an `i32` that stays within ±[`POTENTIAL_MAX`]. All
//! additions of one burst's arrivals are exact, so their order does not matter.

use serde::Serialize;

/// The greatest potential; a sum beyond it stays there, as does one below its negative.
pub const POTENTIAL_MAX: i32 = (1 << 30) - 1;
/// A threshold that no potential reaches.
pub const NEVER: i32 = i32::MAX;
/// The leak that takes everything: 1.
pub const LEAK_ONE: u32 = 1 << 16;
/// A chance of firing that is no question.
pub const ALWAYS: u32 = u32::MAX;

/// What a burst in which nothing arrives does to a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleUpdate {
    /// It leaks, its refractory period runs, and it breaks a series of firings. Made up for when the neuron is next touched.
    #[default]
    Counts,
    /// Nothing: only bursts with arrivals count, as in FEAGI's CPU engine.
    Skips,
}

/// The constants of a neuron in integers. Neurons that agree share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// A neuron may fire from this potential on, …
    pub threshold: i32,
    /// … up to this one.
    pub limit: i32,
    /// Where a neuron begins, returns to after firing, and leaks to.
    pub rest: i32,
    /// The part of potential less rest that a burst without firing takes, in 2⁻¹⁶; at most [`LEAK_ONE`].
    pub leak: u32,
    /// A candidate fires if the draw of 32 bits is below this; [`ALWAYS`] draws nothing.
    pub chance: u32,
    /// Bursts after a firing in which arrivals are lost.
    pub refractory: u32,
    /// Firings in a row after which it snoozes; 0 for no limit.
    pub consecutive_limit: u32,
    /// Bursts that the refractory period is longer when the limit is reached.
    pub snooze: u32,
    /// Whether a potential is kept from one burst to the next.
    pub accumulates: bool,
    /// Whether its firing potential is what its synapses carry.
    pub potential_driven: bool,
}

/// What changes of a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeuronState {
    /// In fixed point.
    pub potential: i32,
    /// The burst in which something last arrived.
    pub last: u32,
    /// [`IdleUpdate::Counts`]: the first burst after the refractory period. [`IdleUpdate::Skips`]: bursts of it that are left.
    pub ready: u32,
    /// Firings in a row.
    pub consecutive: u32,
}

impl Profile {
    /// Takes a neuron through a burst in which something arrived, be its sum 0; gives the potential with which it fires, if it does.
    ///
    /// `draw` is called at most once.
    #[inline(always)]
    pub fn touch(&self, silence: IdleUpdate, state: &mut NeuronState, arrived: i32, burst: u32, draw: impl FnOnce() -> u32) -> Option<i32> {
        let limited = self.consecutive_limit != 0;
        match silence {
            IdleUpdate::Counts => {
                let last = std::mem::replace(&mut state.last, burst);
                if burst < state.ready {
                    return None;
                }
                if limited {
                    let woke = state.consecutive >= self.consecutive_limit && self.refractory + self.snooze > 0;
                    // A burst passed in which it could have fired and did not.
                    if woke || burst > (last + 1).max(state.ready) {
                        state.consecutive = 0;
                    }
                }
                if self.leak != 0 {
                    state.potential = self.leaked(state.potential, (burst - last).saturating_sub(1));
                }
            }
            IdleUpdate::Skips => {
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

        let before = if self.accumulates { state.potential } else { self.rest };
        let potential = (before + arrived).clamp(-POTENTIAL_MAX, POTENTIAL_MAX);
        let inside = potential >= self.threshold && potential <= self.limit;
        let kept = |potential: i32| if self.accumulates { potential } else { self.rest };
        if inside && limited && state.consecutive >= self.consecutive_limit {
            (state.potential, state.consecutive) = (kept(potential), 0);
            return None;
        }
        if inside && (self.chance == ALWAYS || draw() < self.chance) {
            state.potential = self.rest;
            state.consecutive = (state.consecutive + 1).min(u32::from(u16::MAX));
            let snoozes = limited && state.consecutive >= self.consecutive_limit;
            let pause = self.refractory + if snoozes { self.snooze } else { 0 };
            state.ready = if silence == IdleUpdate::Counts { burst + 1 + pause } else { pause };
            return Some(potential);
        }
        if limited {
            state.consecutive = 0;
        }
        state.potential = kept(self.leaked(potential, 1));
        None
    }

    /// The name of a number of a state that no run of so many bursts comes to, if there is one.
    pub fn unreachable(&self, silence: IdleUpdate, state: &NeuronState, bursts: u32) -> Option<&'static str> {
        let &NeuronState { potential, last, ready, consecutive } = state;
        let limited = self.consecutive_limit != 0;
        // A neuron fires whenever it comes into its window, and no leak takes it there.
        let never_waits = self.chance == ALWAYS && !limited && (self.leak == 0 || self.rest < self.threshold && self.limit >= POTENTIAL_MAX);
        let waits = potential >= self.threshold && potential <= self.limit;
        let is_kept = self.accumulates && potential.unsigned_abs() <= POTENTIAL_MAX.unsigned_abs() && !(never_waits && waits);
        let pause = self.refractory.saturating_add(if limited { self.snooze } else { 0 });
        let longest = if silence == IdleUpdate::Counts { pause.saturating_add(bursts).saturating_add(1) } else { pause };
        let most = if limited { self.consecutive_limit } else { u32::from(u16::MAX) };
        let faults = [
            ("potential", potential != self.rest && !is_kept),
            ("last", last > bursts),
            ("ready", ready > longest),
            ("consecutive", consecutive > most.min(bursts)),
        ];
        faults.into_iter().find_map(|(name, is_fault)| is_fault.then_some(name))
    }

    /// A potential after so many bursts of leak; it stops where a burst takes less than one unit.
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
        self.rest + if above < 0 { -(size as i32) } else { size as i32 }
    }
}

/// ⌊size · leak / 2¹⁶⌋, exact for a size below 2³¹.
#[inline(always)]
fn leak_of(size: u32, leak: u32) -> u32 {
    (size >> 16) * leak + (((size & 0xffff) * leak) >> 16)
}

/// 32 random bits of a neuron and a burst: FEAGI's counter hash of both, its seed added to the neuron's number.
#[inline(always)]
pub fn draw(seed: u32, neuron: u32, burst: u32) -> u32 {
    let mixed = neuron.wrapping_add(seed).wrapping_mul(2_654_435_761).wrapping_add(burst.wrapping_mul(1_597_334_677));
    let state = mixed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

/// The seed of draws from one of 64 bits, each of which matters; below 2³² it is the same number.
pub fn seed_of(seed: u64) -> u32 {
    seed as u32 ^ scramble((seed >> 32) as u32)
}

/// Two sums that a run adds up over its spikes; together they are its spike hash, whatever the order.
#[inline(always)]
pub fn spike_marks(neuron: u32, burst: u32) -> [u32; 2] {
    let first = scramble(neuron ^ scramble(burst ^ 0x9e37_79b9));
    [first, scramble(first ^ neuron.wrapping_mul(0x85eb_ca6b) ^ 0x27d4_eb2f)]
}

/// A bijection of 32 bits: the end of `MurmurHash3` (A. Appleby).
#[inline(always)]
fn scramble(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// What a firing sends through each unit of weight: psp · 2^`fraction_bits` over the synapses that share it, rounded to the
/// nearest.
#[inline(always)]
pub fn unit(psp: u32, fraction_bits: u32, share: u32) -> u32 {
    ((psp << fraction_bits) + share / 2) / share
}

/// The psp of a firing potential: rounded to the nearest whole number from 0 to 255.
#[inline(always)]
pub fn potential_psp(potential: i32, fraction_bits: u32) -> u32 {
    let half = (1 << fraction_bits) >> 1;
    ((potential + half) >> fraction_bits).clamp(0, 255) as u32
}
