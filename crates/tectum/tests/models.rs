//! Buffer locks and pool reservations under every possible thread schedule: the device's sources,
//! with the types of a model checker. A data race, a deadlock or an unseen value fails the model.

#[path = "../src/device/buffer_lock.rs"]
mod buffer_lock;
#[path = "../src/device/pool_reservation.rs"]
mod pool_reservation;

mod sync {
    pub(super) use loom::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, mpsc};
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use self::buffer_lock::{BufferLock, BufferLocks};
use self::pool_reservation::{PoolReservation, spawn_and_wait};

/// Memory that a lock protects.
struct Buffer {
    lock: BufferLock,
    value: UnsafeCell<u32>,
}

// SAFETY: the models check every access to the value.
unsafe impl Send for Buffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn new() -> Self {
        Self {
            lock: BufferLock::new(),
            value: UnsafeCell::new(0),
        }
    }
}

fn buffers() -> Arc<[Buffer; 2]> {
    Arc::new([Buffer::new(), Buffer::new()])
}

/// Runs `work` as an executable would that lists its buffers in this order, with the address of
/// each.
fn run(buffers: &[Buffer; 2], listed: &[(usize, bool)], work: impl FnOnce(&[Buffer; 2])) {
    let turns = BufferLocks::new(
        listed
            .iter()
            .map(|&(buffer, writes)| (buffer, 100 + buffer, writes)),
    );
    turns.with_locks(&|buffer| &buffers[buffer].lock, || work(buffers));
}

fn add(buffer: &Buffer) {
    buffer.value.with_mut(|value| {
        // Another thread may run here.
        thread::yield_now();
        // SAFETY: no other thread has the value now; the checker refuses a concurrent access.
        unsafe { *value += 1 };
    });
}

fn get(buffer: &Buffer) -> u32 {
    // SAFETY: no thread writes the value now; the checker refuses a concurrent write.
    buffer.value.with(|value| unsafe { *value })
}

#[test]
fn runs_that_list_their_buffers_in_other_orders_wait_for_each_other_and_end() {
    loom::model(|| {
        let shared = buffers();
        let other = shared.clone();
        let first = thread::spawn(move || {
            run(&other, &[(0, true), (1, true)], |all| {
                all.iter().for_each(add)
            })
        });
        run(&shared, &[(1, true), (0, true)], |all| {
            all.iter().for_each(add)
        });
        first.join().expect("a run");
        run(&shared, &[(0, false), (1, false)], |all| {
            assert_eq!([get(&all[0]), get(&all[1])], [2, 2])
        });
    });
}

#[test]
fn a_reader_sees_all_of_another_run_or_nothing_of_it() {
    loom::model(|| {
        let shared = buffers();
        let threads = [true, false].map(|writes| {
            let shared = shared.clone();
            thread::spawn(move || match writes {
                true => run(&shared, &[(1, true), (0, true)], |all| {
                    all.iter().for_each(add)
                }),
                false => run(&shared, &[(0, false), (1, false)], |all| {
                    assert_eq!(get(&all[0]), get(&all[1]))
                }),
            })
        });
        run(&shared, &[(0, false), (1, false)], |all| {
            assert_eq!(get(&all[0]), get(&all[1]))
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("a run"));
    });
}

/// A buffer that a run binds twice, read once and written once, is locked once, for writing.
#[test]
fn a_buffer_that_is_listed_twice_has_one_turn_that_writes() {
    loom::model(|| {
        let shared = buffers();
        let other = shared.clone();
        let first =
            thread::spawn(move || run(&other, &[(0, false), (0, true)], |all| add(&all[0])));
        run(&shared, &[(0, true), (0, false)], |all| add(&all[0]));
        first.join().expect("a run");
        run(&shared, &[(0, false)], |all| assert_eq!(get(&all[0]), 2));
    });
}

#[test]
fn a_pool_shares_one_run_at_a_time_and_the_next_sees_what_it_did() {
    loom::model(|| {
        let (reservation, shared) = (PoolReservation::new(), buffers());
        let threads = [(); 2].map(|()| {
            let (reservation, shared) = (reservation.clone(), shared.clone());
            thread::spawn(move || {
                // Code that runs while the pool is occupied needs no other lock.
                reservation
                    .try_reserve()
                    .map(|_occupied| add(&shared[0]))
                    .is_some()
            })
        });
        let shares = threads.map(|thread| thread.join().expect("a run"));
        assert!(shares.contains(&true), "the first of two shares");
        let last = reservation.try_reserve();
        assert!(last.is_some(), "free again");
        assert_eq!(
            get(&shared[0]),
            shares.into_iter().map(u32::from).sum::<u32>()
        );
    });
}

#[test]
fn submitted_work_is_done_and_its_borrows_released_when_the_caller_continues() {
    loom::model(|| {
        let borrowed = Buffer::new();
        let spawn = |task: Box<dyn FnOnce() + Send>| {
            thread::spawn(task);
        };
        let sent = spawn_and_wait(spawn, || {
            add(&borrowed);
            3
        });
        assert_eq!((sent, get(&borrowed)), (3, 1));
    });
}

#[test]
fn a_panic_of_submitted_work_arrives_when_it_ends() {
    loom::model(|| {
        let borrowed = Buffer::new();
        let spawn = |task: Box<dyn FnOnce() + Send>| {
            thread::spawn(task);
        };
        let panic = catch_unwind(AssertUnwindSafe(|| {
            spawn_and_wait(spawn, || {
                add(&borrowed);
                std::panic::resume_unwind(Box::new("within"));
            })
        }));
        assert_eq!(
            panic.expect_err("a panic").downcast_ref::<&str>(),
            Some(&"within")
        );
        assert_eq!(get(&borrowed), 1);
    });
}
