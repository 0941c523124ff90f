//! Settings that the format of a potential distorts: leaks that no longer change it, and thresholds
//! that are rounded.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use super::formats::{Formats, same_format};
use super::neurons::NeuronOptions;
use super::rule::fixed;
use super::rule::{LEAK_ONE, POTENTIAL_MAX};

/// The part of a threshold beyond which a distortion is reported.
const TOLERANCE: f64 = 0.01;

/// A setting of consecutive neurons with the same options that the format of some of them distorts
/// by more than 1 % of their threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imprecision {
    /// The first of these neurons with the fewest binary places.
    pub neuron: u32,
    /// How many of them are concerned.
    pub neurons: u32,
    /// The binary places of the first.
    pub fraction_bits: u32,
    /// Their threshold.
    pub threshold: f32,
    /// What is distorted.
    pub effect: PrecisionEffect,
}

/// What the format of a potential distorts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrecisionEffect {
    /// The leak.
    Leak {
        /// The fraction that it should remove in a burst.
        leak: f32,
        /// The greatest distance from rest that it does not change; none if it changes none.
        dead_zone: Option<f64>,
    },
    /// The threshold.
    Threshold {
        /// The one that acts.
        rounded: f64,
    },
}

impl Imprecision {
    /// The neurons concerned, in words.
    pub fn extent(&self) -> String {
        match self.neurons {
            1 => format!("neuron {}", self.neuron),
            neurons => format!("{neurons} neurons, such as {}", self.neuron),
        }
    }
}

impl fmt::Display for Imprecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fraction_bits,
            threshold,
            ..
        } = self;
        match self.effect {
            PrecisionEffect::Leak {
                leak,
                dead_zone: Some(zone),
            } => write!(
                f,
                "a leak of {leak} changes no potential within {zone:.3} of rest, more than 1 % of the threshold {threshold} ({fraction_bits} binary places)"
            ),
            PrecisionEffect::Leak {
                leak,
                dead_zone: None,
            } => write!(
                f,
                "a leak of {leak} changes no potential: the smallest that acts is 2^-17"
            ),
            PrecisionEffect::Threshold { rounded } => write!(
                f,
                "a threshold of {threshold} acts as {rounded} ({fraction_bits} binary places), a change of more than 1 %"
            ),
        }
    }
}

/// The settings of each kind of neurons that their formats distort.
pub fn imprecisions(kinds: &[(Range<u32>, NeuronOptions)], formats: &Formats) -> Vec<Imprecision> {
    let mut all = Vec::new();
    for (range, options) in kinds {
        for effect in [leak, threshold] {
            let mut found: Option<Imprecision> = None;
            for (range, fraction_bits) in same_format(range.clone(), formats) {
                let Some(effect) = effect(options, fraction_bits) else {
                    continue;
                };
                let count = range.len() as u32 + found.as_ref().map_or(0, |found| found.neurons);
                let worst = found
                    .take()
                    .filter(|found| found.fraction_bits <= fraction_bits);
                found = Some(Imprecision {
                    neurons: count,
                    ..worst.unwrap_or(Imprecision {
                        neuron: range.start,
                        neurons: 0,
                        fraction_bits,
                        threshold: options.threshold,
                        effect,
                    })
                });
            }
            all.extend(found);
        }
    }
    all
}

/// The dead zone of a leak, if it is too wide.
fn leak(options: &NeuronOptions, fraction_bits: u32) -> Option<PrecisionEffect> {
    if !options.charge_accumulation || options.leak == 0.0 || options.threshold <= 0.0 {
        return None;
    }
    let step = 1.0 / f64::from(1u32 << fraction_bits);
    let taken = (f64::from(options.leak) * f64::from(LEAK_ONE)).round();
    let dead_zone = (taken > 0.0).then(|| ((f64::from(LEAK_ONE) / taken).ceil() - 1.0) * step);
    let is_wide = dead_zone.is_none_or(|zone| zone > TOLERANCE * f64::from(options.threshold));
    is_wide.then_some(PrecisionEffect::Leak {
        leak: options.leak,
        dead_zone,
    })
}

/// The threshold that acts, if it is another one.
fn threshold(options: &NeuronOptions, fraction_bits: u32) -> Option<PrecisionEffect> {
    let (threshold, scale) = (
        f64::from(options.threshold),
        f64::from(1u32 << fraction_bits),
    );
    // One beyond the maximum potential is never reached, in any format.
    if threshold * scale > f64::from(POTENTIAL_MAX) {
        return None;
    }
    let rounded = f64::from(fixed(options.threshold, fraction_bits)) / scale;
    ((rounded - threshold).abs() > TOLERANCE * threshold.abs())
        .then_some(PrecisionEffect::Threshold { rounded })
}
