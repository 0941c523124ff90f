//! The last values of a term or of whole frames, and what precedes the first one.

use tectum::Result;

use crate::document::{Key, Section};

/// The maximum number of values that a history holds.
const MAX_LEN: usize = 1000;
/// The maximum age of a value.
const MAX_AGE: f64 = 1000.0;

/// Which of the last values a term or a frame holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The ages of the values in their order; 0 is the newest.
    pub ages: Vec<usize>,
    /// Whether the contract states their order.
    pub is_order_stated: bool,
}

impl Default for History {
    /// The newest value alone.
    fn default() -> Self {
        Self {
            ages: vec![0],
            is_order_stated: true,
        }
    }
}

impl History {
    /// The last `len` values, the oldest first.
    pub fn oldest_first(len: usize) -> Self {
        Self {
            ages: (0..len.max(1)).rev().collect(),
            is_order_stated: true,
        }
    }

    /// Whether it is the newest value alone.
    pub fn is_newest(&self) -> bool {
        self.ages == [0]
    }

    /// The number of values that have to be kept.
    pub fn depth(&self) -> usize {
        self.ages.iter().max().map_or(1, |age| age + 1)
    }

    pub(super) fn read(section: &mut Section<'_, '_>, key: &'static str) -> Result<Self> {
        let numbers = section.numbers(
            Key::new(
                key,
                "how many of the last values, or a list of their ages: 0 is the newest",
            )
            .values("1 to 1000, or ages")
            .or(1),
        )?;
        let is_newest_first = section.choice(
            Key::new("order", "the order of the last values").or("\"oldest first\""),
            &[("oldest first", false), ("newest first", true)],
        )?;
        let is_list = section.is_list(key);
        let whole = |number: &f64| number.fract() == 0.0 && (0.0..=MAX_AGE).contains(number);
        let Some(numbers) = numbers else {
            return match is_newest_first {
                None => Ok(Self::default()),
                Some(_) => Err(section.fault(format_args!("order has no effect without {key}"))),
            };
        };
        if !numbers.iter().all(whole) {
            return Err(section.fault(format_args!(
                "{key} is {numbers:?}: whole numbers are needed"
            )));
        }
        let mut ages: Vec<usize> = numbers.iter().map(|number| *number as usize).collect();
        if is_list {
            if is_newest_first.is_some() {
                return Err(section.fault(format_args!("order has no effect: {key} lists ages")));
            }
            if ages.len() > MAX_LEN {
                return Err(section.fault(format_args!("{key} has more than {MAX_LEN} ages")));
            }
            return Ok(Self {
                ages,
                is_order_stated: true,
            });
        }
        let len = ages[0];
        if !(1..=MAX_LEN).contains(&len) {
            return Err(section.fault(format_args!("{key} is {len}: needs 1 to {MAX_LEN}")));
        }
        ages = (0..len).collect();
        if is_newest_first != Some(true) {
            ages.reverse();
        }
        Ok(Self {
            ages,
            is_order_stated: is_newest_first.is_some() || len == 1,
        })
    }
}

/// What precedes the first value of an episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// The first value.
    First,
    /// Zeros.
    Zeros,
    /// These numbers.
    Values(Vec<f64>),
}

impl Fill {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Result<Option<Self>> {
        let fill = section.choice(
            Key::new("fill", "what precedes the first value of an episode").or("\"first\""),
            &[("first", false), ("zeros", true)],
        )?;
        let values = section.numbers(Key::new(
            "fill_value",
            "numbers that precede the first value of an episode",
        ))?;
        match (fill, values) {
            (Some(_), Some(_)) => Err(section.fault("fill and fill_value exclude each other")),
            (None, Some(values)) => Ok(Some(Self::Values(values))),
            (Some(true), None) => Ok(Some(Self::Zeros)),
            (Some(false), None) => Ok(Some(Self::First)),
            (None, None) => Ok(None),
        }
    }
}
