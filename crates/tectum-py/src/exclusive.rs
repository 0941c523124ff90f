//! Values that one call at a time uses, from any thread.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// What a call gets that comes from inside another one: a function of Python that the value called,
/// a handler of signals or of log records.
const BUSY: &str = "the object is busy with a call: what that call runs, such as a callback or a handler of signals, cannot use the object";

/// A value behind a lock that refuses the thread that holds it, instead of waiting for ever.
pub struct Exclusive<T> {
    value: Mutex<T>,
    /// The thread that holds the lock; 0 for none.
    owner: AtomicU64,
}

/// The value, until dropped.
pub struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    owner: &'a AtomicU64,
}

thread_local!(static IS_CALLED_BACK: Cell<bool> = const { Cell::new(false) });

/// Runs what a launch calls back on a thread of a device: it does not wait for an object, which may
/// be the one that launched it.
pub fn called_back<R>(work: impl FnOnce() -> R) -> R {
    let before = IS_CALLED_BACK.replace(true);
    let result = work();
    IS_CALLED_BACK.set(before);
    result
}

/// A number of this thread, above 0.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl<T> Exclusive<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            owner: AtomicU64::new(0),
        }
    }

    /// The value, for a thread with the interpreter's lock, which it gives up while it waits.
    ///
    /// Raises RuntimeError if this thread holds the value already.
    pub fn lock(&self, py: Python<'_>) -> PyResult<Held<'_, T>>
    where
        T: Send,
    {
        self.check().map_err(PyRuntimeError::new_err)?;
        if IS_CALLED_BACK.get() {
            return match self.value.try_lock() {
                Ok(value) => Ok(self.held(value)),
                Err(TryLockError::Poisoned(poisoned)) => Ok(self.held(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(BUSY)),
            };
        }
        Ok(self.held(
            self.value
                .lock_py_attached(py)
                .unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// The value, for a thread without the interpreter's lock.
    pub fn lock_detached(&self) -> tectum::Result<Held<'_, T>> {
        self.check().map_err(tectum::Error::invalid)?;
        Ok(self.held(self.value.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The value, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            Err(BUSY)
        } else {
            Ok(())
        }
    }

    fn held<'a>(&'a self, value: MutexGuard<'a, T>) -> Held<'a, T> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        Held {
            value,
            owner: &self.owner,
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}
