//! Real-time requests to the operating system so that ticks are on time: threads that ordinary ones
//! cannot preempt, and locked memory.
//!
//! The loop runs on a thread of a separate pool, which has as many threads as the CPU device uses
//! for its kernels; all of them have the priority. Work that is not part of a tick (a learner, a
//! brain being rebuilt, a window) stays at normal priority, and its launches use another pool.
//! Priority and locked memory are for Linux only.

use serde::Serialize;
use tectum::{Result, ThreadPool};

/// The maximum priority; the kernel's own threads have 50 and 99.
pub const MAX_PRIORITY: u8 = 99;

/// The requested settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RealTime {
    /// Priority under `SCHED_FIFO`, 1 to [`MAX_PRIORITY`]; none for ordinary threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Whether the memory that the process has mapped when the loop begins is locked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock_memory: bool,
}

/// The granted settings, as the operating system reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GrantedRealTime {
    /// Number of threads with the priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Their priority under `SCHED_FIFO`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Bytes of locked memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_bytes: Option<u64>,
}

impl RealTime {
    /// Runs the work in a separate pool with the requested settings, and returns what was granted:
    /// none if nothing was requested.
    ///
    /// # Errors
    /// `Unsupported`, naming what is needed, if the operating system refuses; the work is then not
    /// started.
    pub fn run<R: Send>(
        self,
        work: impl FnOnce() -> R + Send,
    ) -> Result<(R, Option<GrantedRealTime>)> {
        ThreadPool::start_global(None)?;
        let pool = ThreadPool::new(rayon::current_num_threads(), "tectum-loop")?;
        if self == Self::default() {
            return Ok((pool.install(work), None));
        }
        system::run(self, &pool, work)
    }
}

/// Gives the present thread normal priority. A thread inherits the priority of the thread that
/// starts it; work that no tick waits for drops it.
pub(crate) fn drop_priority() {
    system::drop_priority();
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::mm::{MlockAllFlags, mlockall, munlockall};
    use tectum::{Error, Result, ThreadPool};
    use thread_priority::{
        NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority,
        ThreadPriorityValue, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id, thread_schedule_policy_param,
    };

    use super::{GrantedRealTime, RealTime};

    const FIFO: ThreadSchedulePolicy =
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    /// The library's value for a niceness of 0.
    const NORMAL_PRIORITY: u8 = 48;

    /// Memory that is locked until this is dropped.
    struct Locked;

    impl Drop for Locked {
        fn drop(&mut self) {
            // This process locked the memory and may unlock it.
            let _ = munlockall();
        }
    }

    pub fn run<R: Send>(
        asked: RealTime,
        pool: &ThreadPool,
        work: impl FnOnce() -> R + Send,
    ) -> Result<(R, Option<GrantedRealTime>)> {
        let raised = match asked.priority {
            Some(priority) => pool
                .broadcast(|| raise(priority))
                .into_iter()
                .collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let (threads, priority) = (
            asked.priority.map(|_| raised.len()),
            raised.iter().copied().min(),
        );
        let (_locked, locked_bytes) = lock(asked.lock_memory)?;
        Ok((
            pool.install(work),
            Some(GrantedRealTime {
                threads,
                priority,
                locked_bytes,
            }),
        ))
    }

    /// Sets the priority of the present thread; returns the resulting priority.
    fn raise(priority: u8) -> Result<u8> {
        let failed = |fault: &dyn std::fmt::Debug| {
            let needs = "the process needs CAP_SYS_NICE, or a limit of real-time priority (ulimit -r) as high as that";
            Error::unsupported(format!(
                "priority {priority} under SCHED_FIFO is not granted ({fault:?}); {needs}"
            ))
        };
        let value = ThreadPriorityValue::try_from(priority).map_err(|fault| failed(&fault))?;
        let thread = thread_native_id();
        set_thread_priority_and_policy(thread, ThreadPriority::Crossplatform(value), FIFO)
            .map_err(|fault| failed(&fault))?;
        match thread_schedule_policy_param(thread) {
            Ok((FIFO, param)) => Ok(param.sched_priority as u8),
            other => Err(failed(&other)),
        }
    }

    pub fn drop_priority() {
        if let (Ok((FIFO, _)), Ok(value)) = (
            thread_schedule_policy_param(thread_native_id()),
            ThreadPriorityValue::try_from(NORMAL_PRIORITY),
        ) {
            let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
            // Any process may lower its priority.
            let _ = set_thread_priority_and_policy(
                thread_native_id(),
                ThreadPriority::Crossplatform(value),
                policy,
            );
        }
    }

    fn lock(is_wanted: bool) -> Result<(Option<Locked>, Option<u64>)> {
        if !is_wanted {
            return Ok((None, None));
        }
        mlockall(MlockAllFlags::CURRENT).map_err(|source| {
            let needs = "the process needs CAP_IPC_LOCK, or a limit of locked memory (ulimit -l) above its size";
            Error::unsupported(format!("memory cannot be locked; {needs}")).with_source(source)
        })?;
        let locked = Locked;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = status.lines().find_map(|line| {
            line.strip_prefix("VmLck:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        });
        Ok((Some(locked), kib.map(|kib| kib * 1024)))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use tectum::{Error, Result, ThreadPool};

    use super::{GrantedRealTime, RealTime};

    pub fn run<R: Send>(
        _: RealTime,
        _: &ThreadPool,
        _: impl FnOnce() -> R + Send,
    ) -> Result<(R, Option<GrantedRealTime>)> {
        Err(Error::unsupported("priority and lock_memory are for Linux"))
    }

    pub fn drop_priority() {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{GrantedRealTime, RealTime, drop_priority};

    /// Policy (1 is `SCHED_FIFO`) and priority of the present thread, from the kernel's own table.
    fn policy() -> (u64, u64) {
        let text = std::fs::read_to_string("/proc/thread-self/stat").expect("there on Linux");
        // Of the fields after the name, which may hold anything: the 38th and 39th of proc(5) are
        // 40 and 41 of all.
        let fields = text
            .rsplit_once(')')
            .expect("a name in brackets")
            .1
            .split_whitespace()
            .collect::<Vec<_>>();
        let number = |field: usize| fields[field - 3].parse().expect("a number");
        (number(41), number(40))
    }

    #[test]
    fn the_loops_threads_have_the_priority_and_what_they_begin_can_give_it_up() {
        let ran = RealTime {
            priority: Some(7),
            lock_memory: false,
        }
        .run(|| {
            let own = policy();
            let kernels = rayon::broadcast(|_| policy());
            let begun = std::thread::spawn(|| (policy(), drop_priority(), policy()))
                .join()
                .expect("does not panic");
            (own, kernels, begun)
        });
        match ran {
            Ok((
                (own, kernels, (inherited, (), ordinary)),
                Some(GrantedRealTime {
                    threads: Some(threads),
                    priority,
                    locked_bytes: None,
                }),
            )) => {
                assert_eq!(
                    (own, priority, inherited, ordinary),
                    ((1, 7), Some(7), (1, 7), (0, 0))
                );
                assert_eq!(kernels, vec![(1, 7); threads]);
            }
            // If it is not granted, the error says what is needed.
            other => assert!(
                other
                    .expect_err("granted, but otherwise")
                    .to_string()
                    .contains("CAP_SYS_NICE")
            ),
        }
        assert_eq!(policy().0, 0, "the thread that asked stays ordinary");
    }

    #[test]
    fn memory_is_locked_while_the_work_lasts() {
        let locked = || {
            std::fs::read_to_string("/proc/self/status")
                .expect("there")
                .lines()
                .any(|line| line.starts_with("VmLck:") && !line.ends_with(" 0 kB"))
        };
        match (RealTime {
            priority: None,
            lock_memory: true,
        })
        .run(locked)
        {
            Ok((during, granted)) => {
                assert!(
                    during && granted.is_some_and(|granted| granted.locked_bytes > Some(0)),
                    "{granted:?}"
                );
                assert!(!locked());
            }
            Err(error) => assert!(error.to_string().contains("CAP_IPC_LOCK"), "{error}"),
        }
        let (answer, granted) = RealTime::default().run(|| 3).expect("asks for nothing");
        assert_eq!((answer, granted), (3, None));
    }
}
