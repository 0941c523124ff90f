//! A twin that learns on from what the body does, beside the loop.
//!
//! The control thread writes transitions into memory allocated before and takes weights that were found better. Both lie behind locks that
//! it only tries: while the learner copies, transitions wait in a short queue, and weights come a tick later. So it neither trains nor
//! allocates nor waits. Where a run is to repeat, under a clock that is not real, the tick that begins a round runs it instead.
//!
//! A round goes on from the present weights and fits them to all transitions that are kept but each tenth. What comes of it replaces them
//! only if it foretells those tenths better.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde::Serialize;
use tectum::{Device, Error, Result, Session};

use super::fit::{Samples, fit, held_out_loss};
use super::training::targets;
use super::{Network, Transitions, Twin, TwinLayout, TwinRecipe};
use crate::snapshot::{Array, Snapshot};

/// Every so many transitions one is held out.
const HELD_OUT: usize = 10;
/// Transitions that wait while the learner copies; a copy takes far less than a tick.
const QUEUE: usize = 64;
/// The fewest transitions that a round begins with: two of them are held out.
pub const MIN_TRANSITIONS: usize = 2 * HELD_OUT;

/// When rounds are, and what they learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlineSettings {
    /// Transitions under random actions before the first round, of a twin that begins with nothing.
    pub warm_up: usize,
    /// Transitions from one round to the next.
    pub every: usize,
    /// Transitions kept; beyond them the oldest give way.
    pub kept: usize,
    /// Whether rounds are run by a thread of their own.
    pub is_threaded: bool,
}

impl OnlineSettings {
    /// Transitions before the first round of a twin that begins with nothing.
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
        } else if self.kept < least {
            format!("kept is {}; at least {least} is needed", self.kept)
        } else if self.warm_up != 0 && !(least..=self.kept).contains(&self.warm_up) {
            format!("warm_up is {}; 0, or {least} up to what is kept ({}), is needed", self.warm_up, self.kept)
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("twin.online: {fault}")))
    }
}

/// What a learner has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LearningCounts {
    /// Transitions seen.
    pub transitions: u64,
    /// Transitions that came while the queue was full.
    pub lost: u64,
    /// Rounds done.
    pub rounds: u64,
    /// Rounds whose weights foretold what was held out no better, or whose loss was not a number.
    pub refused: u64,
}

/// The learner, as the control thread has it.
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

/// What both threads reach. The control thread tries the first two locks in a tick, and takes no other.
struct Shared {
    experience: Mutex<ReplayBuffer>,
    /// Weights that wait to be taken.
    learned: Mutex<Option<Twin>>,
    /// The twin as the learner last gave it.
    present: Mutex<Option<Twin>>,
    /// Seed of the first start and of the batches.
    seed: AtomicU64,
    /// States taken up, from 1. A round belongs to one of them; it changes under the lock of `present`.
    state: AtomicU64,
    /// The state that a round was asked for, 0 for none.
    asked: AtomicU64,
    /// Rounds done and refused.
    rounds: AtomicU64,
    refused: AtomicU64,
    stop: AtomicBool,
}

/// The transitions kept.
struct ReplayBuffer {
    data: Transitions,
    /// The oldest, which the next one replaces once all places are taken.
    next: usize,
    kept: usize,
}

impl ReplayBuffer {
    /// Moves transitions in; allocates nothing.
    fn take(&mut self, from: &mut Transitions, features: usize, channels: usize) {
        for (x, y) in from.features.chunks_exact(features).zip(from.changes.chunks_exact(channels)) {
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

/// A poisoned lock's data is whole: nothing panics between two writes of it that belong together.
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
    /// Fits, compares the weights with the present ones and offers them if they are better. Once the learner has another state than the
    /// round was asked for, the round counts for nothing.
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

    /// A twin that foretells what was held out better than the present one, if there is one.
    fn fitted(&self, round: u64) -> Result<Option<Twin>> {
        let (features, channels) = (self.network.features(), self.network.channels());
        let data = lock(&self.shared.experience).data.clone();
        let (mean, deviation) = data.change_statistics(channels);
        let part = |is_held: bool| {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            let rows = data.features.chunks_exact(features).zip(data.changes.chunks_exact(channels)).enumerate();
            for (_, (features, changes)) in rows.filter(|(row, _)| (row % HELD_OUT == HELD_OUT - 1) == is_held) {
                x.extend_from_slice(features);
                y.extend_from_slice(changes);
            }
            Samples { targets: targets(&y, &mean, &deviation), features: x, physics: None }
        };
        let (seen, held_out) = (part(false), part(true));
        let seed = self.shared.seed.load(Ordering::Acquire);
        let present = lock(&self.shared.present).as_ref().map(|twin| twin.rescaled_weights(&mean, &deviation));
        let start = present.clone().unwrap_or_else(|| self.network.initial_weights(seed));
        let (weights, report) =
            fit(&self.network, &self.recipe, &start, [&seen, &held_out], &mut Session::new(&self.device), seed.wrapping_add(round), |_, _| ())?;
        let bar = match present {
            Some(present) => held_out_loss(&self.network, &self.recipe, &held_out, &self.device, &present)?,
            None => f32::INFINITY,
        };
        // What has no loss is worse than anything that has one.
        let is_better = bar.is_nan() || report.held_out_loss < bar;
        let (layout, network) = (self.layout.clone(), self.network.clone());
        Ok(is_better.then_some(Twin { layout, network, weights, change_mean: mean, change_deviation: deviation }))
    }

    /// Rounds as they are asked for, until the learner is dropped.
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
    /// A learner of a twin that is there, or that begins with nothing.
    ///
    /// # Errors
    /// `Invalid` for settings that none can have; a thread that cannot be started.
    pub fn new(twin: &Twin, is_trained: bool, recipe: &TwinRecipe, settings: OnlineSettings, seed: u64) -> Result<Self> {
        settings.check()?;
        let (layout, network) = (twin.layout.clone(), twin.network.clone());
        let room = |rows: usize| {
            let (features, changes) = (Vec::with_capacity(rows * network.features()), Vec::with_capacity(rows * network.channels()));
            Transitions { features, changes, len: 0 }
        };
        let shared = Arc::new(Shared {
            experience: Mutex::new(ReplayBuffer { data: room(settings.kept), next: 0, kept: settings.kept }),
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
        let task = Task { shared: shared.clone(), layout: layout.clone(), network, recipe: recipe.clone(), device };
        let worker = if settings.is_threaded {
            let thread = std::thread::Builder::new().name("tectum-learner".to_owned()).spawn(move || task.work());
            Worker::Thread(thread.map_err(|source| Error::io("a thread for the learner", source))?)
        } else {
            Worker::Inline(Box::new(task))
        };
        let left = if is_trained { settings.every } else { settings.first_round_after() };
        Ok(Self { shared, worker, layout, settings, queue, seen: 0, lost: 0, left })
    }

    /// Hands over what followed an observation under `[previous action, action]`, and begins a round when it is time.
    pub fn offer(&mut self, before: &[f32], actions: [f32; 2], after: &[f32]) {
        self.seen += 1;
        if self.queue.len < QUEUE {
            self.queue.push(&self.layout, before, actions, after);
        } else {
            self.lost += 1;
        }
        if let Ok(mut experience) = self.shared.experience.try_lock() {
            experience.take(&mut self.queue, self.layout.features(), self.layout.channels.len());
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

    /// Exchanges the twin for a better one, if one waits.
    pub fn exchange(&self, twin: &mut Twin) -> bool {
        let Ok(mut learned) = self.shared.learned.try_lock() else { return false };
        match learned.as_mut() {
            Some(better) if !better.weights.is_empty() => {
                // The old one stays behind, emptied of meaning, so that nothing is freed here.
                std::mem::swap(better, twin);
                better.weights.clear();
                true
            }
            _ => false,
        }
    }

    /// What it has done.
    pub fn counts(&self) -> LearningCounts {
        let [rounds, refused] = [&self.shared.rounds, &self.shared.refused].map(|count| count.load(Ordering::Acquire));
        LearningCounts { transitions: self.seen, lost: self.lost, rounds, refused }
    }

    /// What it has seen and where it stands.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let experience = lock(&self.shared.experience);
        snapshot.insert("features", Array::F32([&experience.data.features[..], &self.queue.features].concat()));
        snapshot.insert("changes", Array::F32([&experience.data.changes[..], &self.queue.changes].concat()));
        let LearningCounts { transitions, lost, rounds, refused } = self.counts();
        let (seed, left, next) = (self.shared.seed.load(Ordering::Acquire), self.left as u64, experience.next as u64);
        snapshot.insert("counters", Array::U64(vec![transitions, lost, rounds, refused, left, next, seed]));
        snapshot
    }

    /// Goes back to what [`Learner::snapshot`] gave; `twin` is the one of then, none if it had none. A round under way is dropped.
    ///
    /// # Errors
    /// `Data` naming what is missing or of another length.
    pub fn restore(&mut self, snapshot: &Snapshot, twin: Option<Twin>) -> Result<()> {
        let (features, channels) = (self.layout.features(), self.layout.channels.len());
        let rows = snapshot.len_of("features").unwrap_or(0) / features;
        let x = snapshot.f32("features", rows * features)?;
        let y = snapshot.f32("changes", rows * channels)?;
        let &[transitions, lost, rounds, refused, left, next, seed] = snapshot.u64("counters", 7)? else {
            return Err(Error::data("the learner's counters are of another length"));
        };
        let (left, next) = (left as usize, next as usize);
        let most = self.settings.kept + QUEUE;
        if rows > most || left == 0 || left > self.settings.every.max(self.settings.first_round_after()) || next >= self.settings.kept {
            return Err(Error::data(format!("the learner's state is of other settings: {rows} transitions, {left} to the next round")));
        }
        let mut given = Transitions { features: x.to_vec(), changes: y.to_vec(), len: rows };
        // From here on, no round of the old state ends.
        let mut present = lock(&self.shared.present);
        self.shared.state.fetch_add(1, Ordering::AcqRel);
        self.shared.asked.store(0, Ordering::Release);
        *present = twin;
        *lock(&self.shared.learned) = None;
        self.shared.seed.store(seed, Ordering::Release);
        self.shared.rounds.store(rounds, Ordering::Release);
        self.shared.refused.store(refused, Ordering::Release);
        drop(present);
        let mut experience = lock(&self.shared.experience);
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
        // A round under way ends by itself: nobody waits for it here.
        self.shared.stop.store(true, Ordering::Release);
        if let Worker::Thread(thread) = &self.worker {
            thread.thread().unpark();
        }
    }
}
