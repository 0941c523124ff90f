//! The cache of lowered programs.
//!
//! A key holds the whole program, including constants, and the parts of the launch that the code
//! depends on; two different programs never share an entry. Devices cache the machine code of
//! kernels themselves, by content hash of their text.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tectum::Result;
use tectum::internal::LruCache;

use super::lower::Shape;
use super::{Bounds, Checked, LaunchConfig, Lowered, Program};

/// Capacity of the shared cache in lowered programs.
const MAX_LOWERED: usize = 512;

/// Everything that the code of a program depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeKey {
    program: Program,
    shape: Shape,
    bounds: Bounds,
}

/// Hits and misses of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Lookups answered from the cache.
    pub hits: u64,
    /// Lookups that had to build the entry.
    pub misses: u64,
    /// Current entries.
    pub entries: usize,
}

/// Lowered programs; the least recently used is evicted first.
pub struct LoweredCache(Mutex<LruCache<CodeKey, Lowered>>);

impl LoweredCache {
    /// A cache of so many lowered programs.
    pub fn new(most: usize) -> Self {
        Self(Mutex::new(LruCache::new(most)))
    }

    /// The process's cache.
    pub fn shared() -> &'static Arc<LoweredCache> {
        static SHARED: LazyLock<Arc<LoweredCache>> =
            LazyLock::new(|| Arc::new(LoweredCache::new(MAX_LOWERED)));
        &SHARED
    }

    /// As [`ProgramCache::lowered`](crate::ProgramCache::lowered).
    pub fn lowered(
        &self,
        program: &Checked,
        launch: &LaunchConfig,
        bounds: Bounds,
    ) -> Result<Lowered> {
        locked(&self.0).get_or_insert_with(CodeKey::of(program, launch, bounds), || {
            program.lower_or_native(launch, bounds)
        })
    }

    /// Hits and misses.
    pub fn counts(&self) -> CacheCounts {
        counts(&locked(&self.0))
    }
}

impl CodeKey {
    pub fn of(program: &Checked, launch: &LaunchConfig, bounds: Bounds) -> Self {
        Self {
            program: program.program().clone(),
            shape: Shape::of(program.program(), launch),
            bounds,
        }
    }
}

pub fn locked<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn counts<K: Eq + std::hash::Hash + Clone, V: Clone>(cache: &LruCache<K, V>) -> CacheCounts {
    let (uses, misses) = cache.uses_and_misses();
    CacheCounts {
        hits: uses - misses,
        misses,
        entries: cache.len(),
    }
}
