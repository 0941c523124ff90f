//! Threads among which runs on the CPU share their launches.
//!
//! A rayon thread that waits for its share of a launch runs other tasks of its pool. If these were
//! the caller's tasks, one might run an executable that needs a buffer which the waiting thread
//! holds, and deadlock. So launches are shared in pools that run nothing else, by callers that hold
//! their buffers already and that wait without running tasks. If they were another run's tasks,
//! that whole run would execute inside this one and its time would be added. So a pool shares one
//! run at a time; a run that finds its pool occupied uses only its own thread.
//!
//! An idle thread sleeps after some 10 µs, and waking it takes 10 to 50 µs: longer than many
//! launches. While a run shares launches, the pool's other threads look for tasks from its first
//! launch to its last.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pool_reservation::{PoolReservation, ReservationGuard, spawn_and_wait};
use crate::error::{Error, Result};

/// How long a thread looks for a task before it returns to where it may sleep.
const SPIN_TIMEOUT: Duration = Duration::from_micros(500);
/// Polls between two reads of the clock.
const SPINS_PER_CLOCK_CHECK: usize = 64;
/// The maximum number of threads that a user may set.
const MAX_THREADS: usize = 1024;
/// The environment variable that sets the threads of a process.
const THREADS_VARIABLE: &str = "TECTUM_THREADS";

/// The pools of runs that were started elsewhere, by their number of threads.
static SHARED_POOLS: Mutex<BTreeMap<usize, Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Whether the [`ThreadPool`] of this thread is occupied; none if it belongs to no such pool.
    static CURRENT_POOL: OnceCell<PoolReservation> = const { OnceCell::new() };
    /// Whether this thread runs launches.
    static RUNS_LAUNCHES: Cell<bool> = const { Cell::new(false) };
}

/// Threads among which runs on the CPU device share their launches.
///
/// Executables that run on one of its threads share among these, and are compiled there for as
/// many; those that run elsewhere share among separate threads, as many as rayon had where they
/// were compiled. One run at a time is shared; concurrent runs use one thread each. The work of
/// [`ThreadPool::install`] must not run executables that have a buffer in common from several rayon
/// tasks.
///
/// ```
/// let pool = tectum::ThreadPool::new(2, "loop")?;
/// assert_eq!(pool.install(|| 3), 3);
/// assert_eq!(pool.broadcast(|| std::thread::current().name().map(str::to_owned)), [Some("loop-0".into()), Some("loop-1".into())]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub struct ThreadPool {
    threads: rayon_core::ThreadPool,
    reservation: PoolReservation,
}

impl ThreadPool {
    /// Starts this many threads, at least one, with this name prefix.
    ///
    /// # Errors
    /// `Unsupported` if the operating system cannot start them.
    pub fn new(threads: usize, name: &str) -> Result<Self> {
        let reservation = PoolReservation::new();
        let member_of = reservation.clone();
        let builder = rayon_core::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .start_handler(move |_| {
                // A thread starts once and belongs to one pool.
                let _ = CURRENT_POOL.with(|member| member.set(member_of.clone()));
            });
        let name = name.to_owned();
        match builder
            .thread_name(move |index| format!("{name}-{index}"))
            .build()
        {
            Ok(threads) => Ok(Self {
                threads,
                reservation,
            }),
            Err(source) => Err(Error::unsupported(format!(
                "cpu: {threads} threads cannot be started"
            ))
            .with_source(source)),
        }
    }

    /// Sets the threads of the CPU device and of host work in this process, on all threads that
    /// belong to no other pool: to this number; without one, to that of the environment variable
    /// `TECTUM_THREADS`, if it is set. They are rayon's global pool, which has one thread for each
    /// of the processor's otherwise, and which cannot change once anything uses it: without a
    /// number, a pool that is in use stays as it is.
    ///
    /// Opening the CPU device calls this without a number. [`Device::cpu`](crate::Device::cpu) sets
    /// the threads of one device.
    ///
    /// # Errors
    /// `Invalid` for a number that is not from 1 to 1024, or a variable with another text, which
    /// the error names; or for a number if the pool is in use.
    pub fn start_global(threads: Option<usize>) -> Result<()> {
        let is_required = threads.is_some();
        let threads = match (threads, std::env::var_os(THREADS_VARIABLE)) {
            (Some(threads), _) => check_threads("threads", threads)?,
            (None, Some(text)) => parse_threads(THREADS_VARIABLE, &text.to_string_lossy())?,
            (None, None) => return Ok(()),
        };
        match rayon_core::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
        {
            Err(source) if is_required => Err(Error::invalid(format!(
                "threads: {threads} cannot be set, as the pool is in use"
            ))
            .with_source(source)),
            _ => Ok(()),
        }
    }

    /// The pool of runs that were started elsewhere.
    pub(super) fn shared(threads: usize) -> Result<Arc<Self>> {
        let mut common = SHARED_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = common.get(&threads) {
            return Ok(pool.clone());
        }
        let pool = Arc::new(Self::new(threads, "tectum")?);
        common.insert(threads, pool.clone());
        Ok(pool)
    }

    /// Whether the current thread belongs to such a pool.
    pub(super) fn is_pool_thread() -> bool {
        CURRENT_POOL.with(|member| member.get().is_some())
    }

    /// Reserves the pool for one run; none if another run has it.
    pub(super) fn try_reserve(&self) -> Option<ReservationGuard> {
        self.reservation.try_reserve()
    }

    /// The pool of the current thread, if it belongs to one that shares no run.
    pub(super) fn try_reserve_current() -> Option<ReservationGuard> {
        CURRENT_POOL.with(|member| member.get()?.try_reserve())
    }

    /// Does `work` on a thread of the pool; rayon tasks that it starts stay in the pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.threads.install(work)
    }

    /// Does `work` once on each thread.
    pub fn broadcast<R: Send>(&self, work: impl Fn() -> R + Sync) -> Vec<R> {
        self.threads.broadcast(|_| work())
    }

    /// Does `work` on a thread of the pool; the current thread waits and does nothing else, while
    /// in [`ThreadPool::install`] a thread of another pool would run tasks of that pool.
    pub(super) fn install_blocking<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        spawn_and_wait(|task| self.threads.spawn(task), work)
    }
}

/// Refuses an impossible number of threads.
pub(super) fn check_threads(what: &str, threads: usize) -> Result<usize> {
    if (1..=MAX_THREADS).contains(&threads) {
        Ok(threads)
    } else {
        Err(impossible_threads(what, threads))
    }
}

fn parse_threads(what: &str, text: &str) -> Result<usize> {
    let threads = text
        .trim()
        .parse()
        .map_err(|_| impossible_threads(what, format_args!("{text:?}")))?;
    check_threads(what, threads)
}

fn impossible_threads(what: &str, given: impl std::fmt::Display) -> Error {
    Error::invalid(format!(
        "{what}: {given} is no number of threads from 1 to {MAX_THREADS}"
    ))
}

/// Sets a flag when dropped, also on a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Does `work` on this thread of a pool with this many threads awake, including itself.
pub(super) fn with_spinning_workers<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    if threads <= 1 {
        return work();
    }
    let is_over = &AtomicBool::new(false);
    rayon_core::scope(|scope| {
        let was = RUNS_LAUNCHES.replace(true);
        let _end = OnDrop(|| {
            is_over.store(true, Ordering::Relaxed);
            RUNS_LAUNCHES.set(was);
        });
        for _ in 1..threads {
            scope.spawn(|_| spin_for_tasks(is_over));
        }
        work()
    })
}

/// Does tasks of the pool until the run is over. A thread that runs launches itself, and only got
/// here while it waited, does not stay.
fn spin_for_tasks(is_over: &AtomicBool) {
    if RUNS_LAUNCHES.get() {
        return;
    }
    let mut last = Instant::now();
    loop {
        for _ in 0..SPINS_PER_CLOCK_CHECK {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            match rayon_core::yield_now() {
                Some(rayon_core::Yield::Executed) => last = Instant::now(),
                _ => std::hint::spin_loop(),
            }
        }
        if last.elapsed() > SPIN_TIMEOUT {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_thread_that_waits_for_submitted_work_runs_no_tasks_of_its_own_pool() {
        let (other, pool) = (
            rayon_core::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .expect("a pool"),
            ThreadPool::new(2, "taken").expect("a pool"),
        );
        let done = AtomicBool::new(false);
        let seen = other.scope(|scope| {
            scope.spawn(|_| done.store(true, Ordering::SeqCst));
            assert!(!ThreadPool::is_pool_thread());
            let inside = pool.install_blocking(|| {
                std::thread::sleep(Duration::from_millis(20));
                rayon_core::join(ThreadPool::is_pool_thread, ThreadPool::is_pool_thread)
            });
            assert_eq!(inside, (true, true));
            done.load(Ordering::SeqCst)
        });
        assert!(
            !seen && done.load(Ordering::SeqCst),
            "the task is done after, not within"
        );
    }

    #[test]
    fn a_panic_of_submitted_work_resumes_in_the_caller() {
        let pool = ThreadPool::new(1, "panics").expect("a pool");
        let mut last = 0;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            pool.install_blocking(|| {
                last = 7;
                panic!("in the pool");
            })
        }));
        assert_eq!(
            panic.expect_err("a panic").downcast_ref::<&str>(),
            Some(&"in the pool")
        );
        assert_eq!((last, pool.install_blocking(|| last + 1)), (7, 8));
    }

    #[test]
    fn a_pool_is_occupied_by_one_run_at_a_time() {
        let pool = ThreadPool::new(2, "occupied").expect("a pool");
        let first = pool.try_reserve();
        assert!(
            first.is_some()
                && pool.try_reserve().is_none()
                && pool.install(|| ThreadPool::try_reserve_current().is_none())
        );
        drop(first);
        assert!(
            pool.install(|| ThreadPool::try_reserve_current().is_some())
                && pool.try_reserve().is_some()
        );
        assert!(
            ThreadPool::try_reserve_current().is_none(),
            "this thread belongs to no pool"
        );
    }

    #[test]
    fn an_impossible_number_of_threads_is_refused_by_its_source() {
        assert_eq!(
            (
                parse_threads("X", " 3 ").expect("a number"),
                parse_threads("X", "1024").expect("a number")
            ),
            (3, 1024)
        );
        for (text, given) in [
            ("0", "0"),
            ("1025", "1025"),
            ("-1", "\"-1\""),
            ("", "\"\""),
            ("two", "\"two\""),
            ("1.5", "\"1.5\""),
        ] {
            let error = parse_threads("TECTUM_THREADS", text).expect_err(text);
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert_eq!(
                error.to_string(),
                format!("TECTUM_THREADS: {given} is no number of threads from 1 to 1024")
            );
        }
        assert_eq!(
            ThreadPool::start_global(Some(0))
                .expect_err("none")
                .to_string(),
            "threads: 0 is no number of threads from 1 to 1024"
        );
        // The pool is in use.
        rayon_core::broadcast(|_| ());
        let error = ThreadPool::start_global(Some(2))
            .expect_err("in use")
            .to_string();
        assert!(
            error.starts_with("threads: 2 cannot be set, as the pool is in use"),
            "{error}"
        );
    }

    #[test]
    fn a_common_pool_is_made_once_for_each_number_of_threads() {
        let [a, b, c] = [3, 3, 5].map(|threads| ThreadPool::shared(threads).expect("a pool"));
        assert!(Arc::ptr_eq(&a, &b) && !Arc::ptr_eq(&a, &c));
        assert_eq!((a.broadcast(|| ()).len(), c.broadcast(|| ()).len()), (3, 5));
    }
}
