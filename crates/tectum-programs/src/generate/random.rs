//! The random numbers behind generated programs.

use crate::{Type, scalar};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Two types, each as likely.
    pub(super) fn types(&mut self) -> Vec<Type> {
        (0..2).map(|_| self.pick(&Type::ALL)).collect()
    }

    /// The bits of a value: integers of every kind, extremes among them; floats in [−1, 1].
    pub(super) fn value(&mut self, ty: Type) -> u64 {
        if ty.is_float() {
            let unit = (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0;
            return scalar::convert(ty, Type::F32, u64::from(unit.to_bits()));
        }
        let least = 1 << (ty.bits() - 1);
        let bits = match self.below(6) {
            0 => self.below(16),
            1 => self.pick(&[0, 1, ty.mask(), least, least - 1]),
            _ => self.bits(),
        };
        bits & ty.mask()
    }

    /// The bytes of this many values.
    pub(super) fn values(&mut self, ty: Type, count: u64) -> Vec<u8> {
        let width = ty.bytes() as usize;
        (0..count)
            .flat_map(|_| self.value(ty).to_le_bytes().into_iter().take(width))
            .collect()
    }

    /// One change of a text: a line removed, duplicated or moved, a word of another line, a number,
    /// a character.
    pub(super) fn mutation(&mut self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (at, other) = (
            self.below(lines.len() as u64) as usize,
            self.below(lines.len() as u64) as usize,
        );
        match self.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = self.other_word(&lines[at], &lines[other]),
            4 => lines[at] = lines[at].replace(char::is_numeric, &self.below(300).to_string()),
            _ => {
                let letters: Vec<char> = lines[at].chars().collect();
                let place = self.below(letters.len() as u64 + 1) as usize;
                let put = self.pick(&['r', 'p', '@', '[', ',', '9', '-', '.', 'é', '\t']);
                lines[at] = letters[..place]
                    .iter()
                    .chain([&put])
                    .chain(letters.iter().skip(place + 1))
                    .collect();
            }
        }
        lines.join("\n")
    }

    fn other_word(&mut self, line: &str, other: &str) -> String {
        let words: Vec<&str> = other.split(' ').collect();
        let word = self.pick(&words);
        let mut own: Vec<&str> = line.split(' ').collect();
        let place = self.below(own.len() as u64) as usize;
        own[place] = word;
        own.join(" ")
    }
}
