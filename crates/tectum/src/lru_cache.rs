//! A map that evicts the least recently used entry once it is full.

use std::collections::HashMap;
use std::hash::Hash;

use crate::error::Result;

/// At most `cap` values by key.
pub struct LruCache<K, V> {
    values: HashMap<K, (V, u64)>,
    uses: u64,
    misses: u64,
    cap: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> LruCache<K, V> {
    /// An empty cache.
    pub fn new(cap: usize) -> Self {
        Self {
            values: HashMap::new(),
            uses: 0,
            misses: 0,
            cap,
        }
    }

    /// The value of a key, made if it is not there.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let value = make()?;
        self.insert(key, value.clone());
        Ok(value)
    }

    /// The value of a key.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.uses += 1;
        match self.values.get_mut(key) {
            Some((value, used)) => {
                *used = self.uses;
                Some(value.clone())
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Adds a value, in place of one with the same key.
    pub fn insert(&mut self, key: K, value: V) {
        if self.values.len() >= self.cap && !self.values.contains_key(&key) {
            let oldest = self
                .values
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| key.clone());
            oldest.and_then(|key| self.values.remove(&key));
        }
        self.values.insert(key, (value, self.uses));
    }

    /// Number of lookups, and of lookups that missed.
    pub fn uses_and_misses(&self) -> (u64, u64) {
        (self.uses, self.misses)
    }

    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Values.
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn values_are_made_once_and_the_longest_unused_goes_first() {
        let mut cache = LruCache::new(2);
        let mut made = Vec::new();
        for key in [1, 2, 1, 3, 1, 2] {
            let value = cache.get_or_insert_with(key, || {
                made.push(key);
                Ok(10 * key)
            });
            assert_eq!(value.expect("made"), 10 * key);
        }
        assert_eq!(made, [1, 2, 3, 2]);
        assert_eq!((cache.uses_and_misses(), cache.len()), ((6, 4), 2));
        assert!(
            cache
                .get_or_insert_with(4, || Err(Error::invalid("no")))
                .is_err()
        );
        assert_eq!(
            cache
                .get_or_insert_with(4, || Ok(40))
                .expect("a failure is not kept"),
            40
        );
    }
}
