//! Identity of contents: BLAKE3, 256 bits. The one hash function of the workspace for device code,
//! stored entries and snapshots.
//!
//! Where a content is available, caches compare the content itself ([`CodeText`]); its hash names
//! it in receipts and files.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The BLAKE3 hash of a content, 256 bits; 64 hexadecimal digits as text and in JSON.
///
/// # Example
/// ```
/// use tectum::ContentHash;
/// let hash = ContentHash::of(b"");
/// assert_eq!(hash.to_string(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
/// assert_ne!(hash, ContentHash::of(b"a"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes a content.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The hash's bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash's bytes as four little-endian words.
    pub fn words(&self) -> [u64; 4] {
        let word = |index: usize| {
            self.0[8 * index..][..8]
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        std::array::from_fn(word)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bytes that [`ContentHasher`] gathers before it hashes them: BLAKE3 is fastest on many kilobytes
/// at once.
const GATHERED_BYTES: usize = 64 << 10;

/// Hashes a content that comes in parts. The boundaries of parts are not part of the content: write
/// lengths where they matter.
#[derive(Debug, Clone, Default)]
pub struct ContentHasher {
    hasher: blake3::Hasher,
    gathered: Vec<u8>,
}

impl ContentHasher {
    /// Appends a part.
    pub fn update(&mut self, part: &[u8]) {
        if self.gathered.len() + part.len() > GATHERED_BYTES {
            self.hasher.update(&self.gathered);
            self.gathered.clear();
        }
        if part.len() > GATHERED_BYTES {
            self.hasher.update(part);
        } else {
            self.gathered.extend_from_slice(part);
        }
    }

    /// The hash of everything appended so far.
    pub fn finish(mut self) -> ContentHash {
        ContentHash(*self.hasher.update(&self.gathered).finalize().as_bytes())
    }
}

/// A text of code with its hash. Two are equal if their texts are equal; a map looks them up by the
/// hash.
#[derive(Clone)]
pub(crate) struct CodeText {
    text: Arc<str>,
    hash: ContentHash,
}

impl CodeText {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self {
            hash: ContentHash::of(text.as_bytes()),
            text,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}

impl PartialEq for CodeText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self.text == other.text
    }
}

impl Eq for CodeText {}

impl Hash for CodeText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hash_as_the_whole() {
        let content: Vec<u8> = (0..200_000u32)
            .map(|index| ((index * 7) >> 3) as u8)
            .collect();
        for length in [
            1,
            13,
            1000,
            GATHERED_BYTES,
            GATHERED_BYTES + 1,
            content.len(),
        ] {
            let mut hasher = ContentHasher::default();
            content.chunks(length).for_each(|part| hasher.update(part));
            assert_eq!(
                hasher.finish(),
                ContentHash::of(&content),
                "parts of {length}"
            );
        }
    }

    #[test]
    fn words_are_the_bytes_in_order() {
        let hash = ContentHash::of(b"words");
        assert_eq!(hash.words().map(u64::to_le_bytes).concat(), hash.bytes());
    }
}
