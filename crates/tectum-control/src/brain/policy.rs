//! A trained policy as a brain: a network from an ONNX file, and the contract that states what its
//! numbers mean.
//!
//! A tick fills the network's inputs from the observation as the contract states, runs it once on
//! its device, and makes the action of its output. Recurrent states are kept from run to run and
//! are zero at the start of an episode. A tick allocates nothing on the host.
//!
//! # Chunks
//! An output of several rows predicts the actions of as many ticks, from that of its observation
//! on. An inference starts when `replan_steps` of the last chunk's rows were used. An asynchronous
//! one runs on a worker thread while ticks use the rest of the chunk before; when its answer is
//! there, the rows of the ticks that passed are skipped. A tick without a row is late
//! ([`Brain::unanswered_ticks`]): the loop holds the action before. Under a simulated clock the
//! tick that starts an inference runs it, and its answer is used `inference_delay` ticks later, so
//! that runs are repeatable.

pub mod binding;
mod chunks;
pub mod contract;
mod inference;
mod loading;
pub mod metadata;
mod schedule;
pub mod spec;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tectum::route::Target;
use tectum::snapshot::{Array, Snapshot};
use tectum::{CodeObject, Device, Error, InputFile, LaunchTime, Result, RunStats, Watch};
use tectum_onnx::{Model, Network};

use self::binding::{ActionKind, Binding, BoundInput, Drive, Fill, Number, NumberSource};
use self::chunks::Chunks;
use self::contract::{Contract, METADATA_KEY, TermFunction};
use self::inference::{Inference, Runner, Worker};
use self::spec::PolicySpec;
use super::{Brain, DeviceRecipe, Rebuild};
use crate::body::BodySpec;
use crate::clock::ClockKind;

/// A policy that runs on a body.
pub struct PolicyBrain {
    recipe: Arc<PolicyRecipe>,
    runner: Runner,
    device: Device,
    code: Vec<CodeObject>,
    /// The values of each term over its history, for each input.
    inputs: Vec<Vec<f32>>,
    /// The row of the last action.
    previous: Vec<f32>,
    chunks: Chunks,
    /// The inference whose answer is awaited, and its inputs.
    flight: Option<Flight>,
    asked: Vec<Vec<f32>>,
    /// Used actions at which the next inference starts.
    next_start: u64,
    /// Ticks from the start of an inference to the use of its answer, where they do not depend on
    /// its speed.
    delay: u64,
    /// Ticks of the episode.
    step: u64,
    counts: Counts,
}

/// An inference whose answer is awaited.
#[derive(Debug, Clone, Copy)]
struct Flight {
    /// Used actions at its observation.
    start: u64,
    /// The tick of its observation.
    step: u64,
    /// False while the worker is busy with one that is no longer wanted.
    is_started: bool,
}

/// What the run's ticks had to use.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Ticks up to the last one that had no row.
    late: u64,
    /// All ticks that had no row.
    held: u64,
    /// The maximum number of ticks from an observation to the use of its chunk.
    max_delay: u64,
}

/// What it is built from, kept on the host to rebuild it on another device.
pub(super) struct PolicyRecipe {
    spec: PolicySpec,
    network: Network,
    binding: Binding,
    files: Vec<InputFile>,
    clock: ClockKind,
}

impl PolicyRecipe {
    pub fn new(spec: &PolicySpec, body: &BodySpec, clock: ClockKind) -> Result<Self> {
        let path = spec.model_path();
        let mut files = vec![InputFile::of(path)?];
        let model = Model::open(path)?;
        let named = spec.contract_path();
        if let Some(file) = contract_file(path, named.as_deref()) {
            files.push(InputFile::of(&file)?);
        }
        let (network, binding) = bound(&model, path, named.as_deref(), body)?;
        Ok(Self {
            spec: spec.clone(),
            network,
            binding,
            files,
            clock,
        })
    }

    fn on(self: &Arc<Self>, device: &Device) -> Result<PolicyBrain> {
        let network = self.network.compile_as(device, self.spec.weights)?;
        let code = network.code();
        let inference = Inference::new(self, network)?;
        let action = &self.binding.action;
        let is_threaded = action.schedule.is_asynchronous && self.clock == ClockKind::Real;
        let inputs: Vec<Vec<f32>> = self
            .binding
            .inputs
            .iter()
            .map(|input| vec![0.0; input.len])
            .collect();
        Ok(PolicyBrain {
            recipe: self.clone(),
            runner: if is_threaded {
                Runner::Thread(Worker::new(inference)?)
            } else {
                Runner::Here(Box::new(inference))
            },
            device: device.clone(),
            code,
            asked: inputs.clone(),
            inputs,
            previous: vec![0.0; action.width],
            chunks: Chunks::new(&action.schedule, action.width),
            flight: None,
            next_start: 0,
            delay: if is_threaded {
                0
            } else {
                action.schedule.delay
            },
            step: 0,
            counts: Counts::default(),
        })
    }
}

impl DeviceRecipe for Arc<PolicyRecipe> {
    fn build(&self, device: &Device, _: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        Ok(Box::new(self.on(device)?))
    }
}

impl PolicyBrain {
    /// Builds a policy for a body on a device or [`Target::Auto`], at the start of an episode, for
    /// simulated time.
    ///
    /// # Errors
    /// `Io`, `Data` or `Unsupported` for a file that cannot be read; `Invalid` for a contract that
    /// fits neither the network nor the body; what the device reports.
    pub fn new<'d>(
        spec: &PolicySpec,
        body: &BodySpec,
        target: impl Into<Target<'d>>,
    ) -> Result<Self> {
        let recipe = Arc::new(PolicyRecipe::new(spec, body, ClockKind::Sim)?);
        let device = recipe.network.open_device(target)?;
        recipe.on(&device)
    }

    /// Fills the inputs from an observation. Histories move at every tick, also where rows of a
    /// chunk are left.
    fn observe(&mut self, observation: &[f32]) {
        let Self {
            recipe,
            inputs,
            previous,
            step,
            ..
        } = self;
        for (input, values) in recipe.binding.inputs.iter().zip(inputs) {
            fill(input, values, observation, previous, *step);
        }
    }

    /// Starts an inference on the present inputs.
    fn begin(&mut self) {
        for (asked, values) in self.asked.iter_mut().zip(&self.inputs) {
            asked.copy_from_slice(values);
        }
        self.flight = Some(Flight {
            start: self.chunks.used,
            step: self.step,
            is_started: false,
        });
        self.next_start = self.chunks.used + self.recipe.binding.action.schedule.replan as u64;
    }

    /// Adds the chunk that is awaited, if it is due and there. After an error, the next tick starts
    /// another inference.
    fn receive(&mut self) -> Result<Option<RunStats>> {
        let Some(mut flight) = self.flight.take() else {
            return Ok(None);
        };
        let delay = self.step - flight.step;
        let answer = self.poll(&mut flight, delay >= self.delay);
        match &answer {
            Ok(Some(_)) => self.counts.max_delay = self.counts.max_delay.max(delay),
            Ok(None) => self.flight = Some(flight),
            Err(_) => self.next_start = self.chunks.used,
        }
        answer
    }

    fn poll(&mut self, flight: &mut Flight, is_due: bool) -> Result<Option<RunStats>> {
        flight.is_started = flight.is_started || self.runner.start(&self.asked)?;
        if !flight.is_started || !is_due {
            return Ok(None);
        }
        self.runner
            .take(|output| self.chunks.push(flight.start, output))
    }

    /// The action of the present row.
    fn act(&self, action: &mut [f32]) -> Result<()> {
        let (rule, row) = (&self.recipe.binding.action, &self.previous);
        match &rule.kind {
            ActionKind::Index(choices) => {
                let choice = Some(row[0])
                    .filter(|index| *index >= 0.0)
                    .and_then(|index| choices.get(index as usize));
                action.copy_from_slice(choice.ok_or_else(|| {
                    Error::data(format!(
                        "the policy chose action {} of {}",
                        row[0],
                        choices.len()
                    ))
                })?);
            }
            ActionKind::Choice(_) if row.iter().any(|number| number.is_nan()) => {
                action.fill(f32::NAN)
            }
            ActionKind::Choice(choices) => {
                let best =
                    (0..row.len()).fold(
                        0,
                        |best, index| if row[index] > row[best] { index } else { best },
                    );
                action.copy_from_slice(&choices[best]);
            }
            ActionKind::Continuous(channels) => {
                for (action, drive) in action.iter_mut().zip(channels) {
                    *action = match *drive {
                        Drive::Row {
                            index,
                            scale,
                            offset,
                        } => (bounded(f64::from(row[index]), rule.clip) * scale + offset) as f32,
                        Drive::Passive(safe) => safe,
                    };
                }
            }
        }
        Ok(())
    }
}

/// Fills an input: each term's history moves back, and its new values come last. The first values
/// of an episode fill the whole history.
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
    pub(super) fn value(&self, observation: &[f32], previous: &[f32], step: u64) -> f32 {
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
        self.observe(observation);
        let mut stats = self.receive()?;
        if self.flight.is_none() && self.chunks.used >= self.next_start {
            self.begin();
            stats = self.receive()?.or(stats);
        }
        let stats = stats.unwrap_or_default();
        self.step += 1;
        if self.chunks.next(&mut self.previous) {
            self.counts.late = 0;
            return self.act(action).map(|()| stats);
        }
        // Before the first chunk of an episode, the time of an inference is no fault of a device.
        self.counts.late = if self.chunks.has_any() {
            self.counts.late + 1
        } else {
            1
        };
        self.counts.held += 1;
        Ok(stats)
    }

    fn unanswered_ticks(&self) -> u64 {
        self.counts.late
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for (name, arrays) in [
            ("input", &self.inputs[..]),
            ("asked", &self.asked[..]),
            ("state", self.runner.states()),
        ] {
            for (index, values) in arrays.iter().enumerate() {
                snapshot.insert(format!("{name}{index}"), Array::F32(values.clone()));
            }
        }
        snapshot.insert("previous", Array::F32(self.previous.clone()));
        self.chunks.save(&mut snapshot);
        let Counts {
            late,
            held,
            max_delay,
        } = self.counts;
        snapshot.insert(
            "counts",
            Array::U64(vec![self.step, self.next_start, late, held, max_delay]),
        );
        snapshot.insert(
            "flight",
            Array::U64(
                self.flight
                    .map_or(Vec::new(), |flight| vec![flight.start, flight.step]),
            ),
        );
        Ok(snapshot)
    }

    /// An inference whose answer was awaited starts again, from its observation.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        for (name, arrays) in [
            ("input", &mut self.inputs[..]),
            ("asked", &mut self.asked[..]),
            ("state", self.runner.states_mut()),
        ] {
            for (index, values) in arrays.iter_mut().enumerate() {
                let len = values.len();
                values.copy_from_slice(snapshot.f32(&format!("{name}{index}"), len)?);
            }
        }
        let width = self.previous.len();
        self.previous
            .copy_from_slice(snapshot.f32("previous", width)?);
        self.chunks.load(snapshot)?;
        let &[step, next_start, late, held, max_delay] = snapshot.u64("counts", 5)? else {
            return Err(Error::data("counts: five numbers are needed"));
        };
        (self.step, self.next_start, self.counts) = (
            step,
            next_start,
            Counts {
                late,
                held,
                max_delay,
            },
        );
        self.flight = match snapshot.len_of("flight") {
            Some(0) => None,
            _ => snapshot
                .u64("flight", 2)?
                .first_chunk()
                .map(|&[start, step]| Flight {
                    start,
                    step,
                    is_started: false,
                }),
        };
        Ok(())
    }

    fn episode_ended(&mut self) {
        for values in self.runner.states_mut().iter_mut().chain(&mut self.inputs) {
            values.fill(0.0);
        }
        self.previous.fill(0.0);
        self.chunks.clear();
        (self.flight, self.next_start, self.step, self.counts.late) = (None, 0, 0, 0);
    }

    fn run_notes(&self) -> Vec<String> {
        let Counts {
            held, max_delay, ..
        } = self.counts;
        let delay =
            format!("policy: chunks were used up to {max_delay} ticks after their observation");
        let held = format!(
            "policy: {held} ticks had no row of a chunk, so that the action before was held"
        );
        let is_asynchronous = self.recipe.binding.action.schedule.is_asynchronous;
        [delay, held]
            .into_iter()
            .zip([is_asynchronous, self.counts.held > 0])
            .filter(|(_, applies)| *applies)
            .map(|(note, _)| note)
            .collect()
    }

    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.runner.trace()
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
        self.code.clone()
    }
}

/// The file of a policy's contract: the one that is named, else the one next to the model with its
/// name and the ending `.toml`, if there is one.
fn contract_file(path: &Path, named: Option<&Path>) -> Option<PathBuf> {
    named
        .map(Path::to_path_buf)
        .or_else(|| Some(path.with_extension("toml")).filter(|file| file.is_file()))
}

/// The contract of a policy: the file that is named, else the file next to the model with its name
/// and the ending `.toml`, else the one in the model's metadata, else what can be assumed.
fn contract_of(
    model: &Model,
    path: &Path,
    contract: Option<&Path>,
    body: &BodySpec,
) -> Result<Contract> {
    if let Some(file) = contract_file(path, contract) {
        return Contract::read(&file);
    }
    let metadata = model.metadata();
    let origin = format!("metadata of {}", path.display());
    match metadata.get(METADATA_KEY) {
        Some(text) => Contract::parse(text, &origin),
        None if metadata::is_known(&metadata) => metadata::contract(&metadata, &origin, Some(body)),
        None => Ok(Contract {
            origin: format!("{} (it has no contract)", path.display()),
            ..Contract::default()
        }),
    }
}

/// Reads a policy's file with its contract, and checks it against a body.
///
/// # Errors
/// As [`PolicyBrain::new`], without a device.
pub fn check(model: &Path, contract: Option<&Path>, body: &BodySpec) -> Result<Binding> {
    bound(&Model::open(model)?, model, contract, body).map(|(_, binding)| binding)
}

/// The network of a policy with the sizes and outputs that its contract needs, and the contract's
/// binding to it and to a body.
fn bound(
    model: &Model,
    path: &Path,
    contract: Option<&Path>,
    body: &BodySpec,
) -> Result<(Network, Binding)> {
    let mut contract = contract_of(model, path, contract, body)?;
    let network = contract.load(model, path, body)?;
    let binding = contract.bind(&network, body)?;
    Ok((network, binding))
}
