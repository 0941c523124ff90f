//! The values of a channel over time.

use tectum::{Error, Result};

use super::ChannelReport;
use crate::body::StatedChannel;
use crate::message::{Array, ElementType};
use crate::recording::fields::Reading;

/// The values of a channel: one for each message that has one, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Series {
    times_ns: Vec<u64>,
    values: Values,
    /// The message that each period uses.
    chosen: Vec<u32>,
    /// How long a value is used.
    gap_ns: u64,
}

#[derive(Debug, Default)]
enum Values {
    #[default]
    None,
    Numbers(Vec<f32>),
    Arrays(Vec<Array>),
}

impl Series {
    /// Adds the reading of a message; returns the bytes that it takes.
    pub fn push(&mut self, time_ns: u64, reading: Reading) -> Result<usize> {
        if self.times_ns.len() >= u32::MAX as usize {
            return Err(Error::unsupported("more than 2^32 messages of a channel"));
        }
        let bytes = match (&mut self.values, reading) {
            (_, Reading::Absent) => return Ok(0),
            (Values::Numbers(numbers), Reading::Number(number)) => {
                numbers.push(number as f32);
                4
            }
            (values @ Values::None, Reading::Number(number)) => {
                *values = Values::Numbers(vec![number as f32]);
                4
            }
            (Values::Arrays(arrays), Reading::Array(array)) => {
                let first = &arrays[0];
                if (&first.shape, first.element) != (&array.shape, array.element) {
                    return Err(Error::data(format!(
                        "its shape is {:?} of {}, that of the first message is {:?} of {}",
                        array.shape,
                        array.element.name(),
                        first.shape,
                        first.element.name()
                    )));
                }
                let bytes = array.data.len() + size_of::<Array>();
                arrays.push(array);
                bytes
            }
            (values @ Values::None, Reading::Array(array)) => {
                if array.data.is_empty() {
                    return Err(Error::data("the array is empty"));
                }
                let bytes = array.data.len() + size_of::<Array>();
                *values = Values::Arrays(vec![array]);
                bytes
            }
            (Values::Numbers(_), Reading::Array(_)) | (Values::Arrays(_), Reading::Number(_)) => {
                return Err(Error::data(
                    "it is a number in one message and an array in another",
                ));
            }
        };
        self.times_ns.push(time_ns);
        Ok(bytes + size_of::<u64>())
    }

    /// Puts the messages in the order of time; those of the same time keep their order.
    pub fn sort(&mut self) {
        if self.times_ns.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.times_ns.len()).collect();
        order.sort_by_key(|place| self.times_ns[*place]);
        self.times_ns = order.iter().map(|place| self.times_ns[*place]).collect();
        match &mut self.values {
            Values::None => {}
            Values::Numbers(numbers) => {
                *numbers = order.iter().map(|place| numbers[*place]).collect();
            }
            Values::Arrays(arrays) => {
                let mut taken: Vec<_> = std::mem::take(arrays).into_iter().map(Some).collect();
                *arrays = order
                    .iter()
                    .filter_map(|place| taken[*place].take())
                    .collect();
            }
        }
    }

    /// The times of the first and the last message.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((*self.times_ns.first()?, *self.times_ns.last()?))
    }

    /// Chooses the latest message at or before each of some times in order, none of which precedes
    /// the first message. `limit_ns` is how long a value is used; without it, it depends on the
    /// period and the median interval of the messages.
    pub fn choose(
        &mut self,
        times_ns: impl Iterator<Item = u64>,
        limit_ns: Option<u64>,
        period_ns: u64,
    ) {
        let mut next = 0;
        self.chosen = times_ns
            .map(|time_ns| {
                while self.times_ns.get(next).is_some_and(|own| *own <= time_ns) {
                    next += 1;
                }
                next.saturating_sub(1) as u32
            })
            .collect();
        self.gap_ns = limit_ns.unwrap_or_else(|| {
            let mut intervals: Vec<u64> = self.intervals_ns().collect();
            let middle = intervals.len() / 2;
            let median = match intervals.is_empty() {
                true => 0,
                false => *intervals.select_nth_unstable(middle).1,
            };
            let hold = period_ns.saturating_mul(3).min(100_000_000);
            let half_more = |ns: u64| ns.saturating_add(ns / 2);
            hold.max(half_more(period_ns)).max(half_more(median))
        });
    }

    fn intervals_ns(&self) -> impl Iterator<Item = u64> {
        self.times_ns.windows(2).map(|pair| pair[1] - pair[0])
    }

    fn place(&self, tick: u64) -> usize {
        let last = self.chosen.last().copied().unwrap_or(0);
        let chosen = usize::try_from(tick)
            .ok()
            .and_then(|tick| self.chosen.get(tick));
        *chosen.unwrap_or(&last) as usize
    }

    /// The number of a period; NaN of an array.
    pub fn number(&self, tick: u64) -> f32 {
        match &self.values {
            Values::Numbers(numbers) => numbers.get(self.place(tick)).copied().unwrap_or(f32::NAN),
            Values::None | Values::Arrays(_) => f32::NAN,
        }
    }

    /// Writes the elements of a period.
    pub fn write(&self, tick: u64, own: &mut [f32]) {
        match &self.values {
            Values::Arrays(arrays) => {
                if let Some(array) = arrays.get(self.place(tick)) {
                    array.write_to(own);
                }
            }
            Values::None | Values::Numbers(_) => own.fill(self.number(tick)),
        }
    }

    /// Whether the value of a period that begins at a time is older than the limit.
    pub fn is_stale(&self, tick: u64, begin_ns: u64) -> bool {
        let time_ns = self.times_ns.get(self.place(tick)).copied().unwrap_or(0);
        begin_ns.saturating_sub(time_ns) > self.gap_ns
    }

    /// The shape and the elements of an array.
    pub fn shape(&self) -> Option<(Vec<usize>, ElementType)> {
        match &self.values {
            Values::Arrays(arrays) => arrays.first().map(|own| (own.shape.clone(), own.element)),
            Values::None | Values::Numbers(_) => None,
        }
    }

    /// The bounds that a scenario states, or those of the recording.
    pub fn range(&self, stated: &StatedChannel) -> [f32; 2] {
        let elements: &mut dyn Iterator<Item = f32> = match &self.values {
            Values::None => &mut std::iter::empty(),
            Values::Numbers(numbers) => &mut numbers.iter().copied(),
            Values::Arrays(arrays) => {
                match arrays.first().and_then(|own| own.element.whole_range()) {
                    Some([low, high]) => &mut [low as f32, high as f32].into_iter(),
                    None => &mut arrays.iter().flat_map(|array| {
                        let mut elements = Vec::new();
                        array.append_to(&mut elements);
                        elements
                    }),
                }
            }
        };
        let finite = elements.filter(|element| element.is_finite());
        let own = finite.fold(None, |range: Option<[f32; 2]>, element| {
            let [low, high] = range.unwrap_or([element; 2]);
            Some([low.min(element), high.max(element)])
        });
        let [low, high] = own.unwrap_or([0.0; 2]);
        let stated = [stated.low, stated.high].map(|bound| bound.map(|bound| bound as f32));
        match stated {
            [Some(low), Some(high)] => [low, high],
            [Some(stated), None] => [stated, high.max(stated)],
            [None, Some(stated)] => [low.min(stated), stated],
            [None, None] => [low, high],
        }
    }

    /// Describes it.
    pub fn report(&self, kind: &'static str, channel: &str, topic: &str) -> ChannelReport {
        let seconds = |ns: u64| ns as f64 / 1e9;
        ChannelReport {
            kind,
            channel: channel.to_owned(),
            topic: topic.to_owned(),
            messages: self.times_ns.len() as u64,
            gap_limit_s: seconds(self.gap_ns),
            gaps: self.intervals_ns().filter(|own| *own > self.gap_ns).count() as u64,
            longest_s: seconds(self.intervals_ns().max().unwrap_or(0)),
        }
    }
}
