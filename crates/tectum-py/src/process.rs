//! What this process allows: a fork has no threads, and an interpreter that ends takes no thread
//! back.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The process that imported the package.
static IMPORTED_IN: OnceLock<u32> = OnceLock::new();
/// Whether the interpreter ends: only the thread that ends it runs Python from now on.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that hold the interpreter's lock, or wait for it, below functions of this package.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Threads that stay where they are because the interpreter ends.
static PARKED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Functions of this package that this thread is inside, since it last gave up the lock.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread ends the interpreter.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// Whether this is Python's main thread, once known.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Notes which process imports the package.
pub fn install() {
    IMPORTED_IN.get_or_init(std::process::id);
}

/// Whether this process is a fork of the one that imported the package: it has neither the threads
/// of devices nor what their drivers hold, and locks of other threads stay closed.
pub fn is_fork() -> bool {
    IMPORTED_IN
        .get()
        .is_some_and(|process| *process != std::process::id())
}

/// Whether values are left in memory instead of dropped: dropping them would wait for threads that
/// do not exist or do not move any more.
pub fn leaks() -> bool {
    is_fork() || PARKED.load(Ordering::SeqCst) > 0
}

/// Whether the interpreter ends, and this thread ends it.
pub fn ends_here() -> bool {
    IS_ENDING.load(Ordering::SeqCst) && ENDS.get()
}

/// Whether signals of Python are handled on this thread.
pub fn is_main(py: Python<'_>) -> bool {
    IS_MAIN.get().unwrap_or_else(|| {
        let found = main_thread(py).unwrap_or(true);
        IS_MAIN.set(Some(found));
        found
    })
}

/// Whether signals of Python are handled on this thread, as far as it is known without the lock.
pub fn is_known_main() -> bool {
    IS_MAIN.get() == Some(true)
}

fn main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}

/// A call of this package by a thread with the interpreter's lock; the end of the interpreter waits
/// for it.
#[must_use]
pub struct Call(());

/// Begins a call: the first line of every function that uses a lock, a thread, or an array.
///
/// Raises RuntimeError in a fork.
pub fn enter(py: Python<'_>) -> PyResult<Call> {
    if is_fork() {
        return Err(PyRuntimeError::new_err(
            "tectum was imported before this process was forked, and a fork has no threads and no drivers: start processes with multiprocessing's method \
             \"spawn\" or \"forkserver\"",
        ));
    }
    is_main(py);
    let call = Call::begin();
    if DEPTH.get() == 1 && is_left_out() {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        py.detach(park);
    }
    Ok(call)
}

impl Call {
    fn begin() -> Self {
        if DEPTH.get() == 0 {
            INSIDE.fetch_add(1, Ordering::SeqCst);
        }
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether this thread may not take the interpreter's lock any more: the interpreter would end it in
/// the middle of Rust code, which aborts the process.
fn is_left_out() -> bool {
    IS_ENDING.load(Ordering::SeqCst) && !ENDS.get()
}

/// Stays here until the process ends.
fn park() {
    PARKED.fetch_add(1, Ordering::SeqCst);
    loop {
        std::thread::park();
    }
}

/// Runs work without the interpreter's lock. Does not return once the interpreter ends.
pub fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    /// What this thread was inside, restored in the end.
    struct Depth(usize);

    impl Drop for Depth {
        fn drop(&mut self) {
            DEPTH.set(self.0);
            if self.0 == 0 {
                INSIDE.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Comes before the lock is taken back.
    struct Back;

    impl Drop for Back {
        fn drop(&mut self) {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            if is_left_out() {
                INSIDE.fetch_sub(1, Ordering::SeqCst);
                park();
            }
        }
    }

    let depth = Depth(DEPTH.replace(0));
    if depth.0 > 0 {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
    py.detach(|| {
        let _back = Back;
        work()
    })
}

/// Drops a value whose threads may wait for the interpreter's lock: without it.
pub fn drop_detached<T: Send>(value: T) {
    if leaks() {
        std::mem::forget(value);
        return;
    }
    // Where Python is not there any more, no thread waits for it.
    let _ = Python::try_attach(|py| detach(py, move || drop(value)));
}

/// Runs work with the interpreter's lock, from a thread without it. Does not return once the
/// interpreter ends.
pub fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    let _call = call_back();
    Python::attach(work)
}

/// As `attach`, where Python may not be there; none then.
pub fn try_attach<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _call = call_back();
    Python::try_attach(work)
}

/// Begins a call of Python by a thread without the interpreter's lock.
fn call_back() -> Call {
    let is_outermost = DEPTH.get() == 0;
    let call = Call::begin();
    if is_outermost && is_left_out() {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        park();
    }
    call
}

/// Ends the use of Python by other threads; called when the interpreter ends, which then waits for
/// functions of Python that this package called to return. False if some have not after `seconds`.
#[pyfunction]
pub fn end(py: Python<'_>, seconds: f64) -> bool {
    // The threads that a fork counts do not exist there.
    if is_fork() {
        return true;
    }
    ENDS.set(true);
    IS_ENDING.store(true, Ordering::SeqCst);
    let limit = Instant::now() + Duration::try_from_secs_f64(seconds).unwrap_or_default();
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 {
            if Instant::now() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    })
}
