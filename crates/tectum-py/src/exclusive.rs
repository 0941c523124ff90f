//! Values that one call at a time uses, from any thread: the lock of every object of the package.

use std::cell::Cell;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::interrupt::{INTERVAL, Interrupt, LongWork, SLOW};
use crate::job::{is_own, new_number, this_thread};
use crate::mutex::locked;
use crate::process;

/// What a call gets that comes from inside another one: a function of Python that the value called,
/// a handler of signals or of log records.
const BUSY: &str = "the object is busy with a call: what that call runs, such as a callback or a handler of signals, cannot use the object";
/// What the thread that ends the interpreter gets, while another one keeps the value.
const KEPT: &str =
    "the object is busy with a call of a thread that does not return, since Python ends";

/// A value that one call at a time uses. A thread that waits for it gives up the interpreter's lock
/// and looks at signals; the call that has the value already is refused, since it would wait for
/// ever.
pub struct Exclusive<T>(Arc<Inner<T>>);

struct Inner<T> {
    /// None only when dropped. Only the owner locks it.
    value: Mutex<Option<T>>,
    /// The number of the thread or job that has the value; 0 for none.
    owner: Mutex<u64>,
    freed: Condvar,
    /// Whether the last work took so long that the next one runs on a thread of its own.
    is_slow: AtomicBool,
}

/// The value, until dropped.
pub struct Held<'a, T> {
    exclusive: &'a Exclusive<T>,
    /// None after it became a turn.
    value: Option<MutexGuard<'a, Option<T>>>,
}

/// The right to the value, which moves between threads; until dropped.
pub struct Turn<T>(Option<Exclusive<T>>);

thread_local! {
    static IS_CALLED_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs what a launch calls back on a thread of a device: it does not wait for an object, which may
/// be the one that launched it.
pub fn called_back<R>(work: impl FnOnce() -> R) -> R {
    let before = IS_CALLED_BACK.replace(true);
    let result = work();
    IS_CALLED_BACK.set(before);
    result
}

impl<T> Clone for Exclusive<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Exclusive<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(Inner {
            value: Mutex::new(Some(value)),
            owner: Mutex::new(0),
            freed: Condvar::new(),
            is_slow: AtomicBool::new(true),
        }))
    }

    /// The value, for a thread with the interpreter's lock, which it gives up while it waits.
    ///
    /// Raises RuntimeError if the call that has the value runs this one, and what a handler of
    /// signals raises.
    pub fn lock(&self, py: Python<'_>) -> PyResult<Held<'_, T>>
    where
        T: Send,
    {
        if self.try_own().map_err(PyRuntimeError::new_err)? {
            return Ok(self.held());
        }
        loop {
            if IS_CALLED_BACK.get() {
                return Err(PyRuntimeError::new_err(BUSY));
            }
            if process::ends_here() {
                return Err(PyRuntimeError::new_err(KEPT));
            }
            if process::detach(py, || self.wait_to_own()) {
                return Ok(self.held());
            }
            py.check_signals()?;
        }
    }

    /// The value, for a thread without the interpreter's lock.
    pub fn lock_detached(&self) -> tectum::Result<Held<'_, T>> {
        let mut is_owned = self.try_own().map_err(tectum::Error::invalid)?;
        while !is_owned {
            is_owned = self.wait_to_own();
        }
        Ok(self.held())
    }

    /// Becomes the owner if there is none.
    fn try_own(&self) -> Result<bool, &'static str> {
        let mut owner = locked(&self.0.owner);
        if *owner == 0 {
            *owner = this_thread();
            return Ok(true);
        }
        if is_own(*owner) { Err(BUSY) } else { Ok(false) }
    }

    /// Becomes the owner, unless there is another one for as long as signals may wait.
    fn wait_to_own(&self) -> bool {
        let mut owner = locked(&self.0.owner);
        if *owner != 0 {
            (owner, _) = self
                .0
                .freed
                .wait_timeout(owner, INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if *owner == 0 {
            *owner = this_thread();
            return true;
        }
        false
    }

    /// The value, for its owner.
    fn held(&self) -> Held<'_, T> {
        Held {
            exclusive: self,
            value: Some(locked(&self.0.value)),
        }
    }

    fn free(&self) {
        *locked(&self.0.owner) = 0;
        self.0.freed.notify_one();
    }
}

impl<T: Send + 'static> Exclusive<T> {
    /// Runs work with the value and without the interpreter's lock, and returns the value too.
    ///
    /// On Python's main thread, work that may take long runs on a thread of its own, while this one
    /// looks at signals. If a handler of signals raises, its exception is raised at once: the work
    /// continues without a caller and keeps the value until it ends.
    pub fn run<'a, R: Send + 'static>(
        &'a self,
        py: Python<'_>,
        held: Held<'a, T>,
        work: impl FnOnce(&mut T) -> tectum::Result<R> + Send + 'static,
    ) -> PyResult<(Held<'a, T>, R)> {
        self.run_watched(py, LongWork::silent(), held, |value, _| {
            work(value).or_raise()
        })
    }

    /// As `run`, for work that reports its progress, which also ends it early.
    pub fn run_watched<'a, R: Send + 'static>(
        &'a self,
        py: Python<'_>,
        long: LongWork,
        mut held: Held<'a, T>,
        work: impl FnOnce(&mut T, &mut Interrupt) -> PyResult<R> + Send + 'static,
    ) -> PyResult<(Held<'a, T>, R)> {
        if !(process::is_main(py) && self.0.is_slow.load(Ordering::Relaxed)) {
            let (value, is_slow) = (&mut *held, &self.0.is_slow);
            let result = long.run_here(py, |interrupt| {
                let result = work(value, interrupt);
                is_slow.store(interrupt.longest() >= SLOW, Ordering::Relaxed);
                result
            })?;
            return Ok((held, result));
        }
        let number = new_number();
        let turn = held.into_turn(number);
        let (turn, result) = long.run_as(py, number, move |interrupt| {
            let result = turn.with(|value| work(value, interrupt))?;
            turn.note_pace(interrupt);
            Ok((turn, result))
        })?;
        Ok((turn.into_held(self), result))
    }

    /// The next work runs on a thread of its own, whatever the last one took.
    pub fn expect_slow(&self) {
        self.0.is_slow.store(true, Ordering::Relaxed);
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        if process::leaks() {
            let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(value.take());
        }
    }
}

impl<'a, T> Held<'a, T> {
    /// Gives the value to a job.
    pub fn into_turn(mut self, job: u64) -> Turn<T> {
        self.value = None;
        *locked(&self.exclusive.0.owner) = job;
        Turn(Some(self.exclusive.clone()))
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
            .as_deref()
            .and_then(Option::as_ref)
            .expect("invariant: it has the value until it becomes a turn")
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
            .as_deref_mut()
            .and_then(Option::as_mut)
            .expect("invariant: it has the value until it becomes a turn")
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if self.value.take().is_some() {
            self.exclusive.free();
        }
    }
}

impl<T> Turn<T> {
    fn exclusive(&self) -> &Exclusive<T> {
        self.0
            .as_ref()
            .expect("invariant: it has the object until it becomes a value that is held")
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut value = locked(&self.exclusive().0.value);
        work(
            value
                .as_mut()
                .expect("invariant: the value is there until it is dropped"),
        )
    }

    fn note_pace(&self, interrupt: &mut Interrupt) {
        let is_slow = interrupt.longest() >= SLOW;
        self.exclusive().0.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// The value again, on the thread that the work came from.
    fn into_held(mut self, exclusive: &Exclusive<T>) -> Held<'_, T> {
        self.0 = None;
        *locked(&exclusive.0.owner) = this_thread();
        exclusive.held()
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        if let Some(exclusive) = self.0.take() {
            exclusive.free();
        }
    }
}
