//! Neurons and their options, before they are connected.

use std::ops::Range;

use tectum::{Error, Result};

use super::rule::Profile;

/// The options of a group of neurons. Potentials are in units of psp · weight.
///
/// # Source
/// The properties of a cortical area of a FEAGI genome; see `docs/spiking.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct NeuronOptions {
    /// The minimum potential at which it fires. Default: 1.0.
    pub threshold: f32,
    /// The maximum potential at which it fires; none for no limit. A neuron whose limit is below
    /// its threshold never fires. Default: none.
    pub threshold_limit: Option<f32>,
    /// The initial potential, to which it also resets and leaks. Default: 0.0.
    pub resting_potential: f32,
    /// The fraction of the potential that is lost in a burst without firing, 0 to 1. Default: 0.0.
    pub leak: f32,
    /// The probability that a candidate in its window fires, 0 to 1; at 0.999 or more it always
    /// does. Default: 1.0.
    pub excitability: f32,
    /// Bursts after a firing in which arrivals are lost. Default: 0.
    pub refractory: u16,
    /// Firings in a row after which a neuron snoozes; 0 or 65,535 for no limit. Default: 0.
    pub consecutive_fire_limit: u16,
    /// Bursts that this adds to the refractory period. Default: 0.
    pub snooze: u16,
    /// Whether the potential persists from burst to burst. Default: yes.
    pub charge_accumulation: bool,
    /// The psp that a firing sends through weight 1. Default: 1.
    pub psp: u8,
    /// Whether every synapse carries the whole psp, or the psp is divided by their number. Default:
    /// no.
    pub uniform_psp: bool,
    /// Whether the firing potential, rounded and clamped to 0 to 255, is sent instead. Default: no.
    pub potential_driven_psp: bool,
}

impl Default for NeuronOptions {
    fn default() -> Self {
        Self {
            threshold: 1.0,
            threshold_limit: None,
            resting_potential: 0.0,
            leak: 0.0,
            excitability: 1.0,
            refractory: 0,
            consecutive_fire_limit: 0,
            snooze: 0,
            charge_accumulation: true,
            psp: 1,
            uniform_psp: false,
            potential_driven_psp: false,
        }
    }
}

/// Maximum bytes of a group of neurons while a network is made: its options, twice, its profile in
/// a list and a map, and its range; lists grow by doubling.
pub(super) const GROUP_BYTES: u64 = (3 * size_of::<(Range<u32>, NeuronOptions)>()
    + 5 * size_of::<(Profile, u32)>()
    + 2 * size_of::<(Range<u32>, u32)>()) as u64;

/// Neurons, before they are connected.
#[derive(Debug, Clone, Default)]
pub struct Neurons {
    pub(super) groups: Vec<(u32, NeuronOptions)>,
    count: u32,
}

impl Neurons {
    /// Adds `count` neurons with the same options; returns their numbers.
    ///
    /// # Errors
    /// `Invalid`, naming the option, if one is out of its range, or beyond 2³¹ neurons.
    pub fn add(&mut self, count: u32, options: &NeuronOptions) -> Result<Range<u32>> {
        check(options)?;
        let end = self.count.checked_add(count).filter(|&end| end < 1 << 31);
        let end = end.ok_or_else(|| {
            Error::invalid(format!(
                "{} and {count} neurons; at most 2^31 are possible",
                self.count
            ))
        })?;
        match self.groups.last_mut() {
            Some((last, same)) if same == options => *last += count,
            _ => self.groups.push((count, options.clone())),
        }
        Ok(std::mem::replace(&mut self.count, end)..end)
    }

    /// Reserves room for groups of neurons that are added one by one.
    ///
    /// # Errors
    /// `OutOfMemory` if they do not fit into memory, with what a network makes of them.
    #[cfg(feature = "genome")]
    pub(super) fn reserve(&mut self, groups: u64) -> Result<()> {
        tectum::host_memory::check(
            format_args!("a network of {groups} groups of neurons with other options each"),
            groups.saturating_mul(GROUP_BYTES),
        )?;
        let groups = usize::try_from(groups).unwrap_or(usize::MAX);
        tectum::host_memory::reserve("groups of neurons", &mut self.groups, groups)
    }

    /// Neurons so far.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// The options of each.
    pub(super) fn each(&self) -> impl Iterator<Item = &NeuronOptions> {
        self.groups
            .iter()
            .flat_map(|(count, options)| std::iter::repeat_n(options, *count as usize))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn check(options: &NeuronOptions) -> Result<()> {
    let part = |name: &str, value: f32| match value {
        value if (0.0..=1.0).contains(&value) => Ok(()),
        value => Err(Error::invalid(format!("{name} {value}; 0 to 1 is needed"))),
    };
    part("leak", options.leak)?;
    part("excitability", options.excitability)?;
    for (name, value) in [
        ("threshold", options.threshold),
        ("resting_potential", options.resting_potential),
    ] {
        if !value.is_finite() {
            return Err(Error::invalid(format!(
                "{name} {value}; a finite number is needed"
            )));
        }
    }
    match options.threshold_limit {
        Some(limit) if limit.is_nan() => Err(Error::invalid("threshold_limit is no number")),
        _ => Ok(()),
    }
}
