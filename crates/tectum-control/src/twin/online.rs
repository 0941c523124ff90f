//! Online learning: a twin that continues to learn from the body's transitions, concurrently with
//! the loop.
//!
//! The control thread writes transitions into preallocated memory and takes weights that are
//! better. Both are behind locks that it takes only with `try_lock`: while the learner copies,
//! transitions wait in a short queue, and weights arrive a tick later. So it does not train,
//! allocate or wait. For repeatable runs, under a clock that is not real, the tick that starts a
//! round runs it instead.
//!
//! A round starts from the present weights and fits them to all stored transitions except every
//! tenth. The result replaces them only if it predicts the held-out tenth better.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde::Serialize;
use tectum::{Device, Error, Result, Session};

use super::fit::{Samples, fit, held_out_loss};
use super::training::targets;
use super::{Network, Transitions, Twin, TwinLayout, TwinRecipe};
use tectum::snapshot::{Array, Snapshot};

/// One in this many transitions is held out.
const HELD_OUT: usize = 10;
/// Capacity of the queue of transitions while the learner copies; a copy takes far less than a
/// tick.
const QUEUE: usize = 64;
/// The minimum number of transitions for a round: two of them are held out.
pub const MIN_TRANSITIONS: usize = 2 * HELD_OUT;

/// When rounds run, and what they learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlineSettings {
    /// Transitions under random actions before the first round, for an untrained twin.
    pub warm_up: usize,
    /// Transitions between two rounds.
    pub every: usize,
    /// Maximum number of transitions kept; beyond it the oldest are overwritten.
    pub replay_capacity: usize,
    /// Whether rounds run on a separate thread.
    pub is_threaded: bool,
}

impl OnlineSettings {
    /// Transitions before the first round of an untrained twin.
    fn first_round_after(&self) -> usize {
        self.warm_up.max(MIN_TRANSITIONS)
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// `Invalid` naming the number.
    pub fn check(&self) -> Result<()> {
        let least = MIN_TRANSITIONS;
        let fault = if self.every == 0 {
            "every is 0; at least 1 is needed".to_owned()
        } else if self.replay_capacity < least {
            format!(
                "replay_capacity is {}; at least {least} is needed",
                self.replay_capacity
            )
        } else if self.warm_up != 0 && !(least..=self.replay_capacity).contains(&self.warm_up) {
            format!(
                "warm_up is {}; 0, or {least} up to replay_capacity ({}), is needed",
                self.warm_up, self.replay_capacity
            )
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("twin.online: {fault}")))
    }
}

/// Counters of a learner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LearningCounts {
    /// Transitions seen.
    pub transitions: u64,
    /// Transitions dropped because the queue was full.
    pub lost: u64,
    /// Rounds done.
    pub rounds: u64,
    /// Rounds whose weights did not predict the held-out transitions better, or whose loss was not
    /// a number.
    pub rejected: u64,
}

/// The learner, as the control thread sees it.
pub struct Learner {
    shared: Arc<Shared>,
    worker: Worker,
    layout: TwinLayout,
    settings: OnlineSettings,
    queue: Transitions,
    seen: u64,
    lost: u64,
    /// Transitions until the next round.
    left: usize,
}

enum Worker {
    Inline(Box<Task>),
    Thread(JoinHandle<()>),
}

/// Data shared by both threads. The control thread tries the first two locks in a tick, and takes
/// no other.
struct Shared {
    replay: Mutex<ReplayBuffer>,
    /// New weights that the control thread has not taken yet.
    learned: Mutex<Option<Twin>>,
    /// The twin that the learner produced last.
    present: Mutex<Option<Twin>>,
    /// Seed of the first start and of the batches.
    seed: AtomicU64,
    /// Number of the learner's state, from 1; each restore increments it. A round belongs to one of
    /// them; it changes under the lock of `present`.
    state: AtomicU64,
    /// The state for which a round was requested, 0 for none.
    asked: AtomicU64,
    /// Rounds done and rejected.
    rounds: AtomicU64,
    refused: AtomicU64,
    stop: AtomicBool,
}

/// The stored transitions.
struct ReplayBuffer {
    data: Transitions,
    /// The oldest transition, which the next one replaces when the buffer is full.
    next: usize,
    kept: usize,
}

impl ReplayBuffer {
    /// Moves transitions in; allocates nothing.
    fn take(&mut self, from: &mut Transitions, features: usize, channels: usize) {
        for (x, y) in from
            .features
            .chunks_exact(features)
            .zip(from.changes.chunks_exact(channels))
        {
            if self.data.len < self.kept {
                self.data.features.extend_from_slice(x);
                self.data.changes.extend_from_slice(y);
                self.data.len += 1;
            } else {
                self.data.features[self.next * features..][..features].copy_from_slice(x);
                self.data.changes[self.next * channels..][..channels].copy_from_slice(y);
                self.next = (self.next + 1) % self.kept;
            }
        }
        from.features.clear();
        from.changes.clear();
        from.len = 0;
    }
}

/// A poisoned lock's data is consistent: no code panics between two writes that belong together.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One round's work.
struct Task {
    shared: Arc<Shared>,
    layout: TwinLayout,
    network: Network,
    recipe: TwinRecipe,
    device: Device,
}

impl Task {
    /// Fits, compares the weights with the present ones and offers them if they are better. If the
    /// learner's state is no longer the one for which the round was requested, the result is
    /// discarded.
    fn round(&self, state: u64) {
        let round = self.shared.rounds.load(Ordering::Acquire);
        let fitted = self.fitted(round);
        let mut present = lock(&self.shared.present);
        if self.shared.state.load(Ordering::Acquire) != state {
            return;
        }
        match fitted {
            Ok(Some(twin)) => {
                *present = Some(twin.clone());
                *lock(&self.shared.learned) = Some(twin);
            }
            Ok(None) | Err(_) => drop(self.shared.refused.fetch_add(1, Ordering::AcqRel)),
        }
        self.shared.rounds.store(round + 1, Ordering::Release);
    }

    /// A twin that predicts the held-out transitions better than the present one, if there is one.
    fn fitted(&self, round: u64) -> Result<Option<Twin>> {
        let (features, channels) = (self.network.features(), self.network.channels());
        let data = lock(&self.shared.replay).data.clone();
        let (mean, deviation) = data.change_statistics(channels);
        let part = |is_held: bool| {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            let rows = data
                .features
                .chunks_exact(features)
                .zip(data.changes.chunks_exact(channels))
                .enumerate();
            for (_, (features, changes)) in
                rows.filter(|(row, _)| (row % HELD_OUT == HELD_OUT - 1) == is_held)
            {
                x.extend_from_slice(features);
                y.extend_from_slice(changes);
            }
            Samples {
                targets: targets(&y, &mean, &deviation),
                features: x,
                physics: None,
            }
        };
        let (seen, held_out) = (part(false), part(true));
        let seed = self.shared.seed.load(Ordering::Acquire);
        let present = lock(&self.shared.present)
            .as_ref()
            .map(|twin| twin.rescaled_weights(&mean, &deviation));
        let start = present
            .clone()
            .unwrap_or_else(|| self.network.initial_weights(seed));
        let (weights, report) = fit(
            &self.network,
            &self.recipe,
            &start,
            [&seen, &held_out],
            &mut Session::new(&self.device),
            seed.wrapping_add(round),
            |_, _| ControlFlow::Continue(()),
        )?;
        let bar = match present {
            Some(present) => held_out_loss(
                &self.network,
                &self.recipe,
                &held_out,
                &self.device,
                &present,
            )?,
            None => f32::INFINITY,
        };
        // A twin without a loss is worse than any twin with one.
        let is_better = bar.is_nan() || report.held_out_loss < bar;
        let (layout, network) = (self.layout.clone(), self.network.clone());
        Ok(is_better.then_some(Twin {
            layout,
            network,
            weights,
            change_mean: mean,
            change_deviation: deviation,
        }))
    }

    /// Runs rounds on request, until the learner is dropped.
    fn work(&self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            match self.shared.asked.swap(0, Ordering::AcqRel) {
                0 => std::thread::park(),
                state => self.round(state),
            }
        }
    }
}

impl Learner {
    /// A learner for a trained or an untrained twin.
    ///
    /// # Errors
    /// `Invalid` for invalid settings; a thread that cannot be started.
    pub fn new(
        twin: &Twin,
        is_trained: bool,
        recipe: &TwinRecipe,
        settings: OnlineSettings,
        seed: u64,
    ) -> Result<Self> {
        settings.check()?;
        let (layout, network) = (twin.layout.clone(), twin.network.clone());
        let room = |rows: usize| {
            let (features, changes) = (
                Vec::with_capacity(rows * network.features()),
                Vec::with_capacity(rows * network.channels()),
            );
            Transitions {
                features,
                changes,
                len: 0,
            }
        };
        let shared = Arc::new(Shared {
            replay: Mutex::new(ReplayBuffer {
                data: room(settings.replay_capacity),
                next: 0,
                kept: settings.replay_capacity,
            }),
            learned: Mutex::new(None),
            present: Mutex::new(is_trained.then(|| twin.clone())),
            seed: AtomicU64::new(seed),
            state: AtomicU64::new(1),
            asked: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let queue = room(QUEUE);
        let device = Device::open("cpu")?;
        let task = Task {
            shared: shared.clone(),
            layout: layout.clone(),
            network,
            recipe: recipe.clone(),
            device,
        };
        let worker = if settings.is_threaded {
            let thread = std::thread::Builder::new()
                .name("tectum-learner".to_owned())
                .spawn(move || task.work());
            Worker::Thread(thread.map_err(|source| Error::io("a thread for the learner", source))?)
        } else {
            Worker::Inline(Box::new(task))
        };
        let left = if is_trained {
            settings.every
        } else {
            settings.first_round_after()
        };
        Ok(Self {
            shared,
            worker,
            layout,
            settings,
            queue,
            seen: 0,
            lost: 0,
            left,
        })
    }

    /// Adds the transition from an observation under `[previous action, action]`, and starts a
    /// round when one is due.
    pub fn push_transition(&mut self, before: &[f32], actions: [f32; 2], after: &[f32]) {
        self.seen += 1;
        if self.queue.len < QUEUE {
            self.queue.push(&self.layout, before, actions, after);
        } else {
            self.lost += 1;
        }
        if let Ok(mut experience) = self.shared.replay.try_lock() {
            experience.take(
                &mut self.queue,
                self.layout.features(),
                self.layout.channels.len(),
            );
        }
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = self.settings.every;
        let state = self.shared.state.load(Ordering::Acquire);
        match &self.worker {
            Worker::Inline(task) => task.round(state),
            Worker::Thread(thread) => {
                self.shared.asked.store(state, Ordering::Release);
                thread.thread().unpark();
            }
        }
    }

    /// Swaps the twin for a better one, if one is available.
    pub fn take_update(&self, twin: &mut Twin) -> bool {
        let Ok(mut learned) = self.shared.learned.try_lock() else {
            return false;
        };
        match learned.as_mut() {
            Some(better) if !better.weights.is_empty() => {
                // The old twin stays in the slot as a placeholder, so that no memory is freed here.
                std::mem::swap(better, twin);
                better.weights.clear();
                true
            }
            _ => false,
        }
    }

    /// The learner's counters.
    pub fn counts(&self) -> LearningCounts {
        let [rounds, rejected] =
            [&self.shared.rounds, &self.shared.refused].map(|count| count.load(Ordering::Acquire));
        LearningCounts {
            transitions: self.seen,
            lost: self.lost,
            rounds,
            rejected,
        }
    }

    /// The stored transitions and the counters.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let experience = lock(&self.shared.replay);
        snapshot.insert(
            "features",
            Array::F32([&experience.data.features[..], &self.queue.features].concat()),
        );
        snapshot.insert(
            "changes",
            Array::F32([&experience.data.changes[..], &self.queue.changes].concat()),
        );
        let LearningCounts {
            transitions,
            lost,
            rounds,
            rejected,
        } = self.counts();
        let (seed, left, next) = (
            self.shared.seed.load(Ordering::Acquire),
            self.left as u64,
            experience.next as u64,
        );
        snapshot.insert(
            "counters",
            Array::U64(vec![transitions, lost, rounds, rejected, left, next, seed]),
        );
        snapshot
    }

    /// Restores what [`Learner::snapshot`] returned; `twin` is the twin at that time, none if there
    /// was none. A running round is discarded.
    ///
    /// # Errors
    /// `Data` naming what is missing or has a different length.
    pub fn restore(&mut self, snapshot: &Snapshot, twin: Option<Twin>) -> Result<()> {
        let (features, channels) = (self.layout.features(), self.layout.channels.len());
        let rows = snapshot.len_of("features").unwrap_or(0) / features;
        let x = snapshot.f32("features", rows * features)?;
        let y = snapshot.f32("changes", rows * channels)?;
        let &[transitions, lost, rounds, refused, left, next, seed] =
            snapshot.u64("counters", 7)?
        else {
            return Err(Error::data("the learner's counters are of another length"));
        };
        let (left, next) = (left as usize, next as usize);
        let most = self.settings.replay_capacity + QUEUE;
        if rows > most
            || left == 0
            || left > self.settings.every.max(self.settings.first_round_after())
            || next >= self.settings.replay_capacity
        {
            return Err(Error::data(format!(
                "the learner's state is of other settings: {rows} transitions, {left} to the next round"
            )));
        }
        let mut given = Transitions {
            features: x.to_vec(),
            changes: y.to_vec(),
            len: rows,
        };
        // From here on, no round of the old state can finish.
        let mut present = lock(&self.shared.present);
        self.shared.state.fetch_add(1, Ordering::AcqRel);
        self.shared.asked.store(0, Ordering::Release);
        *present = twin;
        *lock(&self.shared.learned) = None;
        self.shared.seed.store(seed, Ordering::Release);
        self.shared.rounds.store(rounds, Ordering::Release);
        self.shared.refused.store(refused, Ordering::Release);
        drop(present);
        let mut experience = lock(&self.shared.replay);
        (experience.data.len, experience.next) = (0, next);
        experience.data.features.clear();
        experience.data.changes.clear();
        experience.take(&mut given, features, channels);
        drop(experience);
        for waiting in [&mut self.queue.features, &mut self.queue.changes] {
            waiting.clear();
        }
        self.queue.len = 0;
        (self.seen, self.lost, self.left) = (transitions, lost, left);
        Ok(())
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        // A running round ends by itself; this does not wait for it.
        self.shared.stop.store(true, Ordering::Release);
        if let Worker::Thread(thread) = &self.worker {
            thread.thread().unpark();
        }
    }
}
