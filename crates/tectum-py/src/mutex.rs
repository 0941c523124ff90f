//! The lock of values that are used for an instant.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock of a value that no panic leaves half-changed.
pub fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
