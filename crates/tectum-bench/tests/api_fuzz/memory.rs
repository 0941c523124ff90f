//! The model of memory: for each 32-bit word its bits, a number with a bound, or unknown.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use tectum::{DType, View};

/// Numbers below the smallest normal one may be flushed: this much is tolerated everywhere, as in
/// the conformance cases.
const FLUSH: f64 = f32::MIN_POSITIVE as f64 * 16.0;

/// Known state of one word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Word {
    /// Its bits.
    Exact(u32),
    /// An f32 within a bound of a value.
    Near(f64, f64),
    /// One half of an f64 within a bound of a value; `true` for the high half.
    Wide(f64, f64, bool),
    /// Unknown.
    Unknown,
}

/// The words of a slot or buffer, shared if they are the same memory.
pub type Memory = Rc<RefCell<Vec<Word>>>;

/// A memory of zeros.
pub fn zeros(words: usize) -> Memory {
    Rc::new(RefCell::new(vec![Word::Exact(0); words]))
}

/// A view together with its owner.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub view: View,
    pub plan: u64,
    pub slot: usize,
    pub offset: usize,
    pub len: usize,
    pub dtype: DType,
}

impl Seen {
    /// The words of its slot that it covers; saturated for slots that fit no memory.
    pub fn words(&self) -> Range<usize> {
        let width = self.dtype.bytes() / 4;
        self.offset.saturating_mul(width)
            ..self.offset.saturating_add(self.len).saturating_mul(width)
    }

    /// As the 32-bit words that moves bind.
    pub fn as_words(&self) -> Seen {
        let words = self.words();
        Seen {
            offset: words.start,
            len: words.end - words.start,
            dtype: DType::U32,
            ..*self
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "plan{}.slot{}[{}+{}]:{}",
            self.plan,
            self.slot,
            self.offset,
            self.len,
            self.dtype.wgsl()
        )
    }
}

/// The slots of an executable while the model runs its plan.
pub struct Space<'a> {
    pub plan: u64,
    pub memories: &'a [Memory],
}

impl Space<'_> {
    pub fn words(&self, of: &Seen) -> Vec<Word> {
        // A view that an empty operation never reads may belong to another plan.
        if of.plan != self.plan || of.len == 0 {
            return Vec::new();
        }
        self.memories[of.slot].borrow()[of.words()].to_vec()
    }

    pub fn put(&self, to: &Seen, words: &[Word]) {
        if to.plan == self.plan && to.len > 0 {
            self.memories[to.slot].borrow_mut()[to.words()].copy_from_slice(words);
        }
    }

    /// The elements as numbers; none if one is unknown, or below the smallest normal number.
    pub fn numbers(&self, of: &Seen) -> Vec<Option<f64>> {
        numbers(of.dtype, &self.words(of))
    }

    /// The elements as bits of integers.
    pub fn integers(&self, of: &Seen) -> Vec<Option<u32>> {
        let bits = |word: Word| {
            if let Word::Exact(bits) = word {
                Some(bits)
            } else {
                None
            }
        };
        self.words(of).into_iter().map(bits).collect()
    }

    /// Stores results with their bounds, as f32 or f64.
    pub fn put_numbers(&self, to: &Seen, results: impl IntoIterator<Item = Option<(f64, f64)>>) {
        let words: Vec<Word> = results
            .into_iter()
            .flat_map(|result| words_of(to.dtype, result))
            .collect();
        self.put(to, &words);
    }
}

fn numbers(dtype: DType, words: &[Word]) -> Vec<Option<f64>> {
    let normal = |value: f64, is_small: bool| (!is_small).then_some(value);
    match dtype {
        DType::F64 => words
            .chunks(2)
            .map(|pair| match *pair {
                [Word::Exact(low), Word::Exact(high)] => {
                    let value = f64::from_bits(u64::from(high) << 32 | u64::from(low));
                    normal(value, value.is_subnormal())
                }
                [Word::Wide(value, 0.0, false), Word::Wide(_, 0.0, true)] => Some(value),
                _ => None,
            })
            .collect(),
        DType::F32 => words
            .iter()
            .map(|word| match *word {
                Word::Exact(bits) => normal(
                    f64::from(f32::from_bits(bits)),
                    f32::from_bits(bits).is_subnormal(),
                ),
                Word::Near(value, 0.0) => Some(value),
                _ => None,
            })
            .collect(),
        DType::U32 | DType::I32 => words
            .iter()
            .map(|word| {
                if let Word::Exact(bits) = word {
                    Some(f64::from(*bits))
                } else {
                    None
                }
            })
            .collect(),
    }
}

fn words_of(dtype: DType, result: Option<(f64, f64)>) -> Vec<Word> {
    match (dtype, result) {
        (DType::F64, Some((value, bound))) => vec![
            Word::Wide(value, bound, false),
            Word::Wide(value, bound, true),
        ],
        (DType::F64, None) => vec![Word::Unknown; 2],
        // An exact number has its bits, except for the sign of zero.
        (_, Some((value, 0.0)))
            if value.is_finite()
                && value != 0.0
                && f64::from(value as f32) == value
                && (value as f32).is_normal() =>
        {
            vec![Word::Exact((value as f32).to_bits())]
        }
        (_, Some((value, bound))) => vec![Word::Near(value, bound)],
        (_, None) => vec![Word::Unknown],
    }
}

/// Compares the actual words with the known ones.
pub fn compare(known: &[Word], found: &[u32]) -> Result<(), String> {
    if known.len() != found.len() {
        return Err(format!(
            "{} words found, {} expected",
            found.len(),
            known.len()
        ));
    }
    for (place, (word, &bits)) in known.iter().zip(found).enumerate() {
        let is_right = match *word {
            Word::Unknown => true,
            Word::Exact(expected) => bits == expected,
            Word::Near(value, bound) => is_near(
                f64::from(f32::from_bits(bits)),
                value,
                bound,
                f64::from(value as f32),
            ),
            Word::Wide(value, bound, true)
                if place > 0 && known[place - 1] == Word::Wide(value, bound, false) =>
            {
                is_near(
                    f64::from_bits(u64::from(bits) << 32 | u64::from(found[place - 1])),
                    value,
                    bound,
                    value,
                )
            }
            Word::Wide(..) => true,
        };
        if !is_right {
            return Err(format!(
                "word {place} of {}: found 0x{bits:08x} ({:e}), expected {word:x?}",
                known.len(),
                f32::from_bits(bits)
            ));
        }
    }
    Ok(())
}

/// A reference beyond the type's range is the infinity that it rounds to; one at the very edge may
/// round either way.
fn is_near(found: f64, value: f64, bound: f64, rounded: f64) -> bool {
    if value.is_nan() {
        return found.is_nan();
    }
    if rounded.is_infinite() {
        return found == rounded
            || (value.is_finite()
                && found.abs() >= f64::from(f32::MAX)
                && found.signum() == value.signum());
    }
    (found - value).abs() <= bound.max(FLUSH)
}
