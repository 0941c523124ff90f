//! One run of a policy's network, and where it takes place: in the tick that starts it, or on a
//! worker thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tectum::{Error, LaunchTime, Result, RunStats};
use tectum_onnx::CompiledNetwork;

use super::PolicyRecipe;
use super::binding::ActionKind;
use crate::real_time::drop_priority;

/// A network with its inputs, its recurrent states and its answer.
pub(super) struct Inference {
    pub recipe: Arc<PolicyRecipe>,
    network: CompiledNetwork,
    inputs: Vec<Vec<f32>>,
    /// The inputs of integers and truth values; empty for inputs of floats.
    integers: Vec<Vec<i32>>,
    /// Recurrent states.
    states: Vec<Vec<f32>>,
    /// The output that is the action, with an index as a number.
    output: Vec<f32>,
    /// Of the last run, until it is taken.
    answer: Option<Result<RunStats>>,
}

impl Inference {
    /// The network is ready: its drivers have compiled it.
    pub fn new(recipe: &Arc<PolicyRecipe>, network: CompiledNetwork) -> Result<Self> {
        let binding = &recipe.binding;
        let len = binding.action.width * binding.action.schedule.chunk;
        let mut inference = Self {
            inputs: binding
                .inputs
                .iter()
                .map(|input| vec![0.0; input.len])
                .collect(),
            integers: binding
                .inputs
                .iter()
                .map(|input| vec![0; if input.is_integer { input.len } else { 0 }])
                .collect(),
            states: binding
                .states
                .iter()
                .map(|state| vec![0.0; state.len])
                .collect(),
            output: vec![0.0; len],
            answer: None,
            recipe: recipe.clone(),
            network,
        };
        // Drivers compile at the first launch: launch here, not in the first tick.
        inference.feed()?;
        for _ in 0..2 {
            inference.network.run()?;
        }
        Ok(inference)
    }

    fn set_inputs(&mut self, inputs: &[Vec<f32>]) {
        self.answer = None;
        for (own, given) in self.inputs.iter_mut().zip(inputs) {
            own.copy_from_slice(given);
        }
    }

    fn feed(&mut self) -> Result<()> {
        let Self {
            recipe,
            network,
            inputs,
            integers,
            states,
            ..
        } = self;
        for ((input, values), integers) in recipe.binding.inputs.iter().zip(inputs).zip(integers) {
            if input.is_integer {
                for (integer, value) in integers.iter_mut().zip(values) {
                    *integer = *value as i32;
                }
                network.set_integers(&input.name, integers)?;
            } else {
                network.set_floats(&input.name, values)?;
            }
        }
        for (state, values) in recipe.binding.states.iter().zip(states) {
            network.set_floats(&state.input, values)?;
        }
        Ok(())
    }

    /// Runs the network, and keeps the states and the output that it gives.
    fn run(&mut self) -> Result<RunStats> {
        self.feed()?;
        let stats = self.network.run()?;
        let Self {
            recipe,
            network,
            states,
            output,
            ..
        } = self;
        for (state, values) in recipe.binding.states.iter().zip(states) {
            values.copy_from_slice(network.floats(&state.output)?);
        }
        let action = &recipe.binding.action;
        match action.kind {
            ActionKind::Index(_) => {
                output[0] = network
                    .integers(&action.output)?
                    .first()
                    .map_or(-1.0, |index| *index as f32)
            }
            // Of longer chunks, only the first rows are used.
            _ => output
                .iter_mut()
                .zip(network.floats(&action.output)?)
                .for_each(|(own, given)| *own = *given),
        }
        Ok(stats)
    }

    fn take(&mut self, read: impl FnOnce(&[f32])) -> Option<Result<RunStats>> {
        let answer = self.answer.take()?;
        if answer.is_ok() {
            read(&self.output);
        }
        Some(answer)
    }
}

/// Where inferences run.
pub(super) enum Runner {
    /// In the tick that starts them.
    Here(Box<Inference>),
    /// Concurrently with the loop.
    Thread(Worker),
}

impl Runner {
    /// Starts an inference; false if an earlier one, whose answer is no longer wanted, still runs.
    pub fn start(&mut self, inputs: &[Vec<f32>]) -> Result<bool> {
        match self {
            Self::Here(inference) => {
                inference.set_inputs(inputs);
                inference.answer = Some(inference.run());
                Ok(true)
            }
            Self::Thread(worker) => worker.start(inputs),
        }
    }

    /// The answer of the inference that was started, if it is there and was not taken yet; `read`
    /// gets its output.
    pub fn take(&mut self, read: impl FnOnce(&[f32])) -> Result<Option<RunStats>> {
        match self {
            Self::Here(inference) => inference.take(read).transpose(),
            Self::Thread(worker) if worker.is_busy() => Ok(None),
            Self::Thread(worker) => worker.shared.inference()?.take(read).transpose(),
        }
    }

    /// Recurrent states; asynchronous inferences have none.
    pub fn states(&self) -> &[Vec<f32>] {
        match self {
            Self::Here(inference) => &inference.states,
            Self::Thread(_) => &[],
        }
    }

    pub fn states_mut(&mut self) -> &mut [Vec<f32>] {
        match self {
            Self::Here(inference) => &mut inference.states,
            Self::Thread(_) => &mut [],
        }
    }

    /// The time of each launch of one more run; waits for the present one.
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        match self {
            Self::Here(inference) => inference.network.trace(),
            Self::Thread(worker) => worker.shared.inference()?.network.trace(),
        }
    }
}

/// A thread that runs inferences, at normal priority; it sleeps between them.
pub(super) struct Worker {
    pub shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The worker holds the lock while it is busy, the control thread only while it is not: neither
/// ever waits for it.
pub(super) struct Shared {
    pub inference: Mutex<Inference>,
    /// Set by the control thread, after it has released the lock; cleared by the worker, after it
    /// has.
    is_busy: AtomicBool,
    is_over: AtomicBool,
}

/// Reports the end of the worker's work, also of one that panics.
struct Ready<'a>(&'a AtomicBool);

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Shared {
    pub fn inference(&self) -> Result<MutexGuard<'_, Inference>> {
        self.inference
            .lock()
            .map_err(|_| Error::device_lost("the thread of the policy's inferences has panicked"))
    }

    fn work(&self) {
        drop_priority();
        while !self.is_over.load(Ordering::Acquire) {
            if !self.is_busy.load(Ordering::Acquire) {
                std::thread::park();
                continue;
            }
            // Dropped after the lock.
            let _ready = Ready(&self.is_busy);
            let Ok(mut inference) = self.inference.lock() else {
                return;
            };
            inference.answer = Some(inference.run());
        }
    }
}

impl Worker {
    pub fn new(inference: Inference) -> Result<Self> {
        let shared = Arc::new(Shared {
            inference: Mutex::new(inference),
            is_busy: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("tectum-policy".to_owned())
            .spawn(move || own.work());
        let thread =
            thread.map_err(|source| Error::io("a thread for the policy's inferences", source))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    fn is_busy(&self) -> bool {
        self.shared.is_busy.load(Ordering::Acquire)
    }

    fn start(&self, inputs: &[Vec<f32>]) -> Result<bool> {
        if self.is_busy() {
            return Ok(false);
        }
        self.shared.inference()?.set_inputs(inputs);
        self.shared.is_busy.store(true, Ordering::Release);
        self.thread
            .iter()
            .for_each(|thread| thread.thread().unpark());
        Ok(true)
    }
}

impl Drop for Worker {
    /// Waits for the present inference.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was reported where its answer was asked for.
            let _ = thread.join();
        }
    }
}
