//! One run of a policy's network, and where it takes place: in the tick that starts it, or on a
//! worker thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tectum::{Error, LaunchTime, Result, RunStats};
use tectum_onnx::CompiledNetwork;

use super::PolicyRecipe;
use super::binding::action::ActionKind;
use crate::real_time::drop_priority;

/// The networks of a policy with their inputs, its recurrent states and its answer.
pub(super) struct Inference {
    pub recipe: Arc<PolicyRecipe>,
    /// The policy, then those that run before it.
    networks: Vec<CompiledNetwork>,
    inputs: Vec<Vec<f32>>,
    /// The inputs of integers and truth values; empty for inputs of floats.
    integers: Vec<Vec<i32>>,
    /// Recurrent states.
    states: Vec<Vec<f32>>,
    /// Outputs that are fed back.
    fed_back: Vec<Vec<f32>>,
    /// The output that is the action, with an index as a number.
    output: Vec<f32>,
    /// Of the last run, until it is taken.
    answer: Option<Result<RunStats>>,
}

impl Inference {
    /// The networks are ready: their drivers have compiled them.
    pub fn new(recipe: &Arc<PolicyRecipe>, networks: Vec<CompiledNetwork>) -> Result<Self> {
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
            fed_back: binding
                .outputs
                .iter()
                .map(|(_, len)| vec![0.0; *len])
                .collect(),
            output: vec![0.0; len],
            answer: None,
            recipe: recipe.clone(),
            networks,
        };
        // Drivers compile at the first launch: launch here, not in the first tick.
        for network in 0..inference.networks.len() {
            inference.feed(network)?;
            for _ in 0..2 {
                inference.networks[network].run()?;
            }
        }
        Ok(inference)
    }

    /// The inputs of the next run, and its number, which its random numbers depend on.
    fn set_inputs(&mut self, inputs: &[Vec<f32>], number: u64) {
        self.answer = None;
        let seed = self.recipe.seed;
        for (index, network) in (0u64..).zip(&mut self.networks) {
            // Networks differ in the upper half.
            network.set_draws(seed ^ index << 32, number as u32);
        }
        for (own, values) in self.inputs.iter_mut().zip(inputs) {
            own.copy_from_slice(values);
        }
    }

    /// Gives a network its inputs and states.
    fn feed(&mut self, network: usize) -> Result<()> {
        let Self {
            recipe,
            networks,
            inputs,
            integers,
            states,
            ..
        } = self;
        let compiled = &mut networks[network];
        for ((input, values), integers) in recipe.binding.inputs.iter().zip(inputs).zip(integers) {
            if input.network != network {
                continue;
            }
            if input.is_integer {
                for (integer, value) in integers.iter_mut().zip(values) {
                    *integer = *value as i32;
                }
                compiled.set_integers(&input.name, integers)?;
            } else {
                compiled.set_floats(&input.name, values)?;
            }
        }
        if network == 0 {
            for (state, values) in recipe.binding.states.iter().zip(states) {
                compiled.set_floats(&state.input, values)?;
            }
        }
        Ok(())
    }

    /// Runs the networks, those before the policy first, and keeps the states and outputs that the
    /// policy gives.
    fn run(&mut self) -> Result<RunStats> {
        for network in 1..self.networks.len() {
            self.feed(network)?;
            self.networks[network].run()?;
            for link in &self.recipe.binding.links {
                if link.network == network {
                    let output = self.networks[network].floats(&link.output)?;
                    self.inputs[link.input][link.start..][..link.len].copy_from_slice(output);
                }
            }
        }
        self.feed(0)?;
        let Self {
            recipe,
            networks,
            states,
            fed_back,
            output,
            ..
        } = self;
        let network = &mut networks[0];
        let stats = network.run()?;
        for (state, values) in recipe.binding.states.iter().zip(states) {
            values.copy_from_slice(network.floats(&state.output)?);
        }
        for ((name, _), values) in recipe.binding.outputs.iter().zip(fed_back) {
            values.copy_from_slice(network.floats(name)?);
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
                .for_each(|(own, other)| *own = *other),
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
    /// Starts the inference of a number; false if an earlier one, whose answer is no longer wanted, still runs.
    pub fn start(&mut self, inputs: &[Vec<f32>], number: u64) -> Result<bool> {
        match self {
            Self::Here(inference) => {
                inference.set_inputs(inputs, number);
                inference.answer = Some(inference.run());
                Ok(true)
            }
            Self::Thread(worker) => worker.start(inputs, number),
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

    /// Outputs that are fed back; asynchronous inferences have none.
    pub fn fed_back(&self) -> &[Vec<f32>] {
        match self {
            Self::Here(inference) => &inference.fed_back,
            Self::Thread(_) => &[],
        }
    }

    pub fn fed_back_mut(&mut self) -> &mut [Vec<f32>] {
        match self {
            Self::Here(inference) => &mut inference.fed_back,
            Self::Thread(_) => &mut [],
        }
    }

    /// The time of each launch of one more run; waits for the present one.
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        let all = |inference: &mut Inference| {
            let mut launches = Vec::new();
            for network in &mut inference.networks {
                launches.extend(network.trace()?);
            }
            Ok(launches)
        };
        match self {
            Self::Here(inference) => all(inference),
            Self::Thread(worker) => all(&mut *worker.shared.inference()?),
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

    fn start(&self, inputs: &[Vec<f32>], number: u64) -> Result<bool> {
        if self.is_busy() {
            return Ok(false);
        }
        self.shared.inference()?.set_inputs(inputs, number);
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
