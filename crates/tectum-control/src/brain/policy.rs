//! A trained policy as a brain: a network from an ONNX file, and the contract that states what its numbers mean.
//!
//! A tick fills the network's inputs from the observation as the contract states, runs it once on its device, and makes the action of its output. Recurrent
//! states are kept from tick to tick and are zero at the start of an episode. A tick allocates nothing on the host.

pub mod binding;
pub mod contract;
mod metadata;
pub mod spec;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tectum::snapshot::{Array, Snapshot};
use tectum::{CodeObject, Device, Error, InputFile, LaunchTime, Result, RunStats, Watch};
use tectum_onnx::{CompiledNetwork, Model, Network};

use self::binding::{ActionKind, Binding, BoundInput, Fill, Number, NumberSource};
use self::contract::{Contract, METADATA_KEY, TermFunction};
use self::spec::PolicySpec;
use super::{Brain, DeviceRecipe, Rebuild};
use crate::body::BodySpec;

/// A policy that runs on a body.
pub struct PolicyBrain {
    recipe: Arc<PolicyRecipe>,
    network: CompiledNetwork,
    device: Device,
    /// The values of each term over its history, for each input.
    inputs: Vec<Vec<f32>>,
    /// Recurrent states.
    states: Vec<Vec<f32>>,
    /// The last row of the output.
    previous: Vec<f32>,
    /// Rows of a chunk that are not used yet.
    chunk: Vec<f32>,
    used: usize,
    /// Ticks of the episode.
    step: u64,
}

/// What it is built from, kept on the host to rebuild it on another device.
pub(super) struct PolicyRecipe {
    spec: PolicySpec,
    network: Network,
    binding: Binding,
    files: Vec<InputFile>,
}

impl PolicyRecipe {
    pub fn new(spec: &PolicySpec, body: &BodySpec) -> Result<Self> {
        let path = spec.model_path();
        let mut files = vec![InputFile::of(path)?];
        let model = Model::open(path)?;
        let named = spec.contract_path();
        if let Some(file) = contract_file(path, named.as_deref()) {
            files.push(InputFile::of(&file)?);
        }
        let contract = contract_of(&model, path, named.as_deref())?;
        let network = model.load(&[]).map_err(|error| error.at(path.display()))?;
        let binding = contract.bind(&network, body)?;
        Ok(Self { spec: spec.clone(), network, binding, files })
    }

    fn on(self: &Arc<Self>, device: &Device) -> Result<PolicyBrain> {
        let mut network = self.network.compile_as(device, self.spec.weights)?;
        let binding = &self.binding;
        let inputs: Vec<Vec<f32>> = binding.inputs.iter().map(|input| vec![0.0; input.len]).collect();
        let states: Vec<Vec<f32>> = binding.states.iter().map(|state| vec![0.0; state.len]).collect();
        // Drivers compile at the first launch: launch here, not in the first tick.
        for (input, values) in binding.inputs.iter().zip(&inputs) {
            network.set_floats(&input.name, values)?;
        }
        for (state, values) in binding.states.iter().zip(&states) {
            network.set_floats(&state.input, values)?;
        }
        for _ in 0..2 {
            network.run()?;
        }
        let (width, chunk) = (binding.action.width, binding.action.chunk);
        Ok(PolicyBrain {
            recipe: self.clone(),
            network,
            device: device.clone(),
            inputs,
            states,
            previous: vec![0.0; width],
            chunk: vec![0.0; width * chunk],
            used: chunk,
            step: 0,
        })
    }
}

impl DeviceRecipe for Arc<PolicyRecipe> {
    fn build(&self, device: &Device, _: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        Ok(Box::new(self.on(device)?))
    }
}

impl PolicyBrain {
    /// Builds a policy for a body on a device, at the start of an episode.
    ///
    /// # Errors
    /// `Io`, `Data` or `Unsupported` for a file that cannot be read; `Invalid` for a contract that fits neither the network nor the body; what the device
    /// reports.
    pub fn new(spec: &PolicySpec, body: &BodySpec, device: &Device) -> Result<Self> {
        Arc::new(PolicyRecipe::new(spec, body)?).on(device)
    }

    /// Fills the inputs from an observation. Histories move at every tick, also where rows of a chunk are left.
    fn observe(&mut self, observation: &[f32]) {
        let Self { recipe, inputs, previous, step, .. } = self;
        for (input, values) in recipe.binding.inputs.iter().zip(inputs) {
            fill(input, values, observation, previous, *step);
        }
    }

    /// Runs the network on the inputs, and keeps the states that it gives.
    fn think(&mut self) -> Result<RunStats> {
        let Self { recipe, network, inputs, states, .. } = self;
        let binding = &recipe.binding;
        for (input, values) in binding.inputs.iter().zip(inputs) {
            network.set_floats(&input.name, values)?;
        }
        for (state, values) in binding.states.iter().zip(&mut *states) {
            network.set_floats(&state.input, values)?;
        }
        let stats = network.run()?;
        for (state, values) in binding.states.iter().zip(states) {
            values.copy_from_slice(network.floats(&state.output)?);
        }
        Ok(stats)
    }
}

/// Fills an input: each term's history moves back, and its new values come last. The first values of an episode fill the whole history.
fn fill(input: &BoundInput, values: &mut [f32], observation: &[f32], previous: &[f32], step: u64) {
    let mut start = 0;
    for term in &input.fills {
        let Fill { numbers, history } = term;
        let (part, count) = (&mut values[start..start + term.len()], numbers.len());
        part.copy_within(count.., 0);
        let last = (history - 1) * count;
        for (value, number) in part[last..].iter_mut().zip(numbers) {
            *value = number.value(observation, previous, step);
        }
        if step == 0 {
            for row in 0..history - 1 {
                part.copy_within(last.., row * count);
            }
        }
        start += term.len();
    }
}

impl Number {
    fn value(&self, observation: &[f32], previous: &[f32], step: u64) -> f32 {
        let raw = match self.source {
            NumberSource::Channel(channel) => f64::from(observation[channel]),
            NumberSource::Previous(index) => f64::from(previous[index]),
            NumberSource::Constant(value) => value,
            NumberSource::Step => step as f64,
        };
        let scaled = self.factor * raw;
        let value = match self.function {
            TermFunction::Identity => scaled,
            TermFunction::Sin => scaled.sin(),
            TermFunction::Cos => scaled.cos(),
        };
        (bounded(value - self.offset, self.clip) * self.scale) as f32
    }
}

/// A number within bounds; NaN stays NaN, so that the loop sees it.
fn bounded(value: f64, [low, high]: [f64; 2]) -> f64 {
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}

impl Brain for PolicyBrain {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let rule = &self.recipe.clone().binding.action;
        let mut stats = RunStats::default();
        self.observe(observation);
        if let ActionKind::Index(choices) = &rule.kind {
            stats = self.think()?;
            let index = self.network.integers(&rule.output)?.first().copied().unwrap_or(-1);
            let choice = usize::try_from(index).ok().and_then(|index| choices.get(index));
            let choice = choice.ok_or_else(|| Error::data(format!("the policy chose action {index} of {}", choices.len())))?;
            self.previous[0] = index as f32;
            action.copy_from_slice(choice);
            self.step += 1;
            return Ok(stats);
        }
        if self.used >= rule.chunk {
            stats = self.think()?;
            let output = self.network.floats(&rule.output)?;
            let rows = self.chunk.len();
            self.chunk.copy_from_slice(&output[..rows]);
            self.used = 0;
        }
        self.previous.copy_from_slice(&self.chunk[self.used * rule.width..][..rule.width]);
        self.used += 1;
        self.step += 1;
        match &rule.kind {
            ActionKind::Choice(choices) => {
                if self.previous.iter().any(|number| number.is_nan()) {
                    action.fill(f32::NAN);
                    return Ok(stats);
                }
                let best = (0..self.previous.len()).fold(0, |best, index| if self.previous[index] > self.previous[best] { index } else { best });
                action.copy_from_slice(&choices[best]);
            }
            ActionKind::Continuous(channels) => {
                for (action, (index, scale, offset)) in action.iter_mut().zip(channels) {
                    *action = (bounded(f64::from(self.previous[*index]), rule.clip) * scale + offset) as f32;
                }
            }
            ActionKind::Index(_) => unreachable!("invariant: it returned above"),
        }
        Ok(stats)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for (index, values) in self.inputs.iter().enumerate() {
            snapshot.insert(format!("input{index}"), Array::F32(values.clone()));
        }
        for (index, values) in self.states.iter().enumerate() {
            snapshot.insert(format!("state{index}"), Array::F32(values.clone()));
        }
        snapshot.insert("previous", Array::F32(self.previous.clone()));
        snapshot.insert("chunk", Array::F32(self.chunk.clone()));
        snapshot.insert("count", Array::U64(vec![self.used as u64, self.step]));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        for (index, values) in self.inputs.iter_mut().enumerate() {
            let len = values.len();
            values.copy_from_slice(snapshot.f32(&format!("input{index}"), len)?);
        }
        for (index, values) in self.states.iter_mut().enumerate() {
            let len = values.len();
            values.copy_from_slice(snapshot.f32(&format!("state{index}"), len)?);
        }
        let (width, len) = (self.previous.len(), self.chunk.len());
        self.previous.copy_from_slice(snapshot.f32("previous", width)?);
        self.chunk.copy_from_slice(snapshot.f32("chunk", len)?);
        let &[used, step] = snapshot.u64("count", 2)? else { return Err(Error::data("count: two numbers are needed")) };
        (self.used, self.step) = (usize::try_from(used).unwrap_or(usize::MAX), step);
        Ok(())
    }

    fn episode_ended(&mut self) {
        self.states.iter_mut().for_each(|values| values.fill(0.0));
        self.inputs.iter_mut().for_each(|values| values.fill(0.0));
        self.previous.fill(0.0);
        self.used = self.recipe.binding.action.chunk;
        self.step = 0;
    }

    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.network.trace()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let recipe = self.recipe.clone();
        Some(Box::new(move |device| Ok(Box::new(recipe.on(device)?))))
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.device)
    }

    fn notes(&self) -> &[String] {
        &self.recipe.binding.notes
    }

    fn inputs(&self) -> Vec<InputFile> {
        self.recipe.files.clone()
    }

    fn code(&self) -> Vec<CodeObject> {
        self.network.code()
    }
}

/// The file of a policy's contract: the one that is named, else the one next to the model with its name and the ending `.toml`, if there is one.
fn contract_file(path: &Path, named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_path_buf).or_else(|| Some(path.with_extension("toml")).filter(|file| file.is_file()))
}

/// The contract of a policy: the file that is named, else the file next to the model with its name and the ending `.toml`, else the one in the model's
/// metadata, else what can be assumed.
fn contract_of(model: &Model, path: &Path, contract: Option<&Path>) -> Result<Contract> {
    if let Some(file) = contract_file(path, contract) {
        return Contract::read(&file);
    }
    let metadata = model.metadata();
    let origin = format!("metadata of {}", path.display());
    match metadata.get(METADATA_KEY) {
        Some(text) => Contract::parse(text, &origin),
        None if metadata.contains_key("joint_names") => metadata::contract(&metadata, &origin),
        None => Ok(Contract { origin: format!("{} (it has no contract)", path.display()), ..Contract::default() }),
    }
}

/// Reads a policy's file with its contract, and checks it against a body.
///
/// # Errors
/// As [`PolicyBrain::new`], without a device.
pub fn check(model: &Path, contract: Option<&Path>, body: &BodySpec) -> Result<Binding> {
    let file = Model::open(model)?;
    let contract = contract_of(&file, model, contract)?;
    contract.bind(&file.load(&[]).map_err(|error| error.at(model.display()))?, body)
}
