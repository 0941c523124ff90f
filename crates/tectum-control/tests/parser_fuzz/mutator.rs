//! A small deterministic mutator: the same seeds and number give the same input everywhere.

/// Numbers and marks that are difficult for parsers.
const EXTREMES: [&str; 16] = [
    "0",
    "-0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "1e308",
    "1e999",
    "-1e-999",
    "nan",
    "inf",
    "0x7fffffffffffffff",
];

/// Lengths and offsets as binary words in files.
const WORDS: [u64; 10] = [
    0,
    1,
    7,
    255,
    1 << 16,
    i32::MAX as u64,
    u32::MAX as u64,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// The maximum input length: long enough for every format, short enough for many inputs.
const MAX_BYTES: usize = 16 << 10;

/// Makes inputs from seeds.
pub struct Mutator {
    state: u64,
    seeds: Vec<Vec<u8>>,
    given: usize,
    dictionary: &'static [&'static str],
}

impl Mutator {
    /// Starts with complete files, and words of their grammar.
    pub fn new(seeds: Vec<Vec<u8>>, dictionary: &'static [&'static str], number: u64) -> Self {
        Self {
            state: number,
            given: seeds.len(),
            seeds,
            dictionary,
        }
    }

    /// The next input: one to six changes of a seed.
    pub fn next_input(&mut self) -> Vec<u8> {
        let index = self.below(self.seeds.len());
        let mut bytes = self.seeds[index].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut bytes);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    /// Keeps an accepted input, so that later ones go deeper.
    pub fn keep(&mut self, bytes: &[u8]) {
        const MAX_KEPT: usize = 64;
        if self.seeds.len() < self.given + MAX_KEPT {
            self.seeds.push(bytes.to_vec());
        } else {
            let index = self.given + self.below(MAX_KEPT);
            self.seeds[index] = bytes.to_vec();
        }
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        match self.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => {
                bytes[at] = [0, 0xFF, b'"', b'\n', b'[', 0x80, b'-', b'.'][self.below(8)]
            }
            2 => drop(bytes.drain(at..bytes.len().min(at + 1 + self.below(64)))),
            3 => bytes.truncate(at),
            4 => {
                // A chunk of this or another seed, inserted here.
                let other = self.below(self.seeds.len());
                let from = self.below(self.seeds[other].len() + 1);
                let to = self.seeds[other].len().min(from + self.below(256));
                let chunk = self.seeds[other][from..to].to_vec();
                bytes.splice(at..at, chunk);
            }
            5 if !self.dictionary.is_empty() => {
                let word = self.dictionary[self.below(self.dictionary.len())];
                bytes.splice(at..at, word.bytes());
            }
            6 => {
                // A number in text, replaced by an extreme one.
                let extreme = EXTREMES[self.below(EXTREMES.len())];
                let is_digit = |byte: &u8| byte.is_ascii_digit();
                let Some(first) = bytes[at..]
                    .iter()
                    .position(is_digit)
                    .map(|offset| at + offset)
                else {
                    return;
                };
                let last = bytes[first..]
                    .iter()
                    .position(|byte| !is_digit(byte))
                    .map_or(bytes.len(), |offset| first + offset);
                bytes.splice(first..last, extreme.bytes());
            }
            7 => {
                // A length or an offset in binary; files often begin with one.
                let word = WORDS[self.below(WORDS.len())].to_le_bytes();
                let at = if self.below(2) == 0 { 0 } else { at };
                let width = [4, 8][self.below(2)].min(bytes.len() - at.min(bytes.len()));
                bytes[at..at + width].copy_from_slice(&word[..width]);
            }
            _ => {
                // A line, or what looks like one, duplicated.
                let from = bytes[..at]
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |place| place + 1);
                let line = bytes[from..at].to_vec();
                bytes.splice(at..at, line);
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % bound.max(1) as u64) as usize
    }
}
