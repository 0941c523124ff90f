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
mod observer;
mod rotation;
mod schedule;
pub mod spec;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tectum::route::Target;
use tectum::snapshot::{Array, Snapshot};
use tectum::{CodeObject, Device, Error, InputFile, LaunchTime, Result, RunStats, Watch};
use tectum_onnx::Model;

use self::binding::action::{ActionKind, Drive};
use self::binding::{Binding, Networks};
use self::chunks::Chunks;
use self::contract::{Contract, METADATA_KEY};
use self::inference::{Inference, Runner, Worker};
use self::observer::{Observer, Present, bounded};
use self::spec::PolicySpec;
use super::commands::{CommandChannel, CommandInputs};
use super::{Brain, DeviceRecipe, Rebuild};
use crate::body::BodySpec;
use crate::body::motors::MotorRule;
use crate::clock::ClockKind;

/// A policy that runs on a body.
pub struct PolicyBrain {
    recipe: Arc<PolicyRecipe>,
    runner: Runner,
    device: Device,
    code: Vec<CodeObject>,
    observer: Observer,
    /// The last action: the row as the network gave it, after its bounds, and as it was sent.
    previous: [Vec<f32>; 3],
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
    /// Inferences of the run up to the present one: its random numbers depend on it.
    inferences: u64,
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
    networks: Networks,
    binding: Binding,
    /// Shared by all brains of the recipe: one that is rebuilt has the same commands.
    commands: CommandInputs,
    files: Vec<InputFile>,
    clock: ClockKind,
    /// The seed of random numbers that the networks draw.
    seed: u64,
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
        let mut contract = contract_of(&model, path, named.as_deref(), body)?;
        for file in contract.network_files(path) {
            files.push(InputFile::of(&file)?);
        }
        if let Some(motors) = &contract.motors
            && motors
                .spec(body, contract.period_s)
                .is_ok_and(|driven| driven != *body)
        {
            return Err(Error::invalid(format!(
                "{}: the contract states [motors], and nothing drives the body {} by them",
                contract.origin, body.name
            )));
        }
        let networks = contract.load(&model, path, body)?;
        let binding = contract.bind(&networks, body)?;
        let commands = binding.commands.iter().map(|rule| CommandChannel {
            name: rule.name.clone(),
            unit: rule.unit.clone().unwrap_or_default(),
            range: rule.range,
        });
        Ok(Self {
            spec: spec.clone(),
            networks,
            commands: CommandInputs::new(commands.collect()),
            binding,
            files,
            clock,
            seed: 0,
        })
    }

    fn on(self: &Arc<Self>, device: &Device) -> Result<PolicyBrain> {
        let networks = std::iter::once(&self.networks.policy)
            .chain(self.networks.before.iter().map(|(network, _)| network))
            .map(|network| network.compile_as(device, self.spec.weights))
            .collect::<Result<Vec<_>>>()?;
        let code = networks.iter().flat_map(|network| network.code()).collect();
        let inference = Inference::new(self, networks)?;
        let action = &self.binding.action;
        let is_threaded = action.schedule.is_asynchronous && self.clock == ClockKind::Real;
        let observer = Observer::new(&self.binding, self.commands.clone());
        Ok(PolicyBrain {
            recipe: self.clone(),
            runner: if is_threaded {
                Runner::Thread(Worker::new(inference)?)
            } else {
                Runner::Here(Box::new(inference))
            },
            device: device.clone(),
            code,
            asked: observer.inputs.clone(),
            observer,
            previous: std::array::from_fn(|_| vec![0.0; action.width]),
            chunks: Chunks::new(&action.schedule, action.width),
            flight: None,
            next_start: 0,
            delay: if is_threaded {
                0
            } else {
                action.schedule.delay
            },
            step: 0,
            inferences: 0,
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
        let device = recipe.networks.policy.open_device(target)?;
        recipe.on(&device)
    }

    /// Begins an episode with an inference on zeros, whose outputs the first observation has.
    fn prime(&mut self) -> Result<()> {
        self.observer.prime(&self.recipe.binding);
        self.inferences += 1;
        self.runner.start(&self.observer.inputs, self.inferences)?;
        self.runner.take(|_| ())?;
        for values in self.runner.states_mut() {
            values.fill(0.0);
        }
        Ok(())
    }

    /// Starts an inference on the present inputs.
    fn begin(&mut self) {
        for (asked, values) in self.asked.iter_mut().zip(&self.observer.inputs) {
            asked.copy_from_slice(values);
        }
        self.flight = Some(Flight {
            start: self.chunks.used,
            step: self.step,
            is_started: false,
        });
        self.inferences += 1;
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
        flight.is_started = flight.is_started || self.runner.start(&self.asked, self.inferences)?;
        if !flight.is_started || !is_due {
            return Ok(None);
        }
        self.runner
            .take(|output| self.chunks.push(flight.start, output))
    }

    /// The action of the present row.
    fn act(&mut self, observation: &[f32], action: &mut [f32]) -> Result<()> {
        let Self {
            recipe,
            runner,
            observer,
            previous,
            step,
            ..
        } = self;
        let rule = &recipe.binding.action;
        let (outputs, step) = (runner.fed_back(), *step);
        let now = |source, previous: &[Vec<f32>; 3]| {
            let present = Present {
                observation,
                previous,
                outputs,
                step,
            };
            observer.number(&recipe.binding, source, present)
        };
        match &rule.kind {
            ActionKind::Index(choices) => {
                let row = &previous[0];
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
            ActionKind::Choice(..) if previous[0].iter().any(|number| number.is_nan()) => {
                action.fill(f32::NAN)
            }
            ActionKind::Choice(choices, mask) => {
                let row = &previous[0];
                let is_allowed = |index: usize| {
                    mask.get(index)
                        .is_none_or(|source| now(*source, previous) > 0.5)
                };
                let best = (0..row.len()).filter(|index| is_allowed(*index)).fold(
                    None,
                    |best: Option<usize>, index| match best {
                        Some(best) if row[index] <= row[best] => Some(best),
                        _ => Some(index),
                    },
                );
                let best = best.ok_or_else(|| Error::data("the mask allows no action"))?;
                action.copy_from_slice(&choices[best]);
            }
            ActionKind::Continuous(channels) => {
                let fade = match rule.fade_in {
                    0 => 1.0,
                    actions => (self.chunks.used as f64 / actions as f64).min(1.0),
                };
                let [raw, clipped, _] = &mut *previous;
                for (index, (clipped, raw)) in clipped.iter_mut().zip(raw).enumerate() {
                    let mut number = fade * f64::from(*raw);
                    number = bounded(number, rule.clip[index]);
                    if let Some(clip) = rule.torque.get(index) {
                        number = bounded(number, clip.bounds(observation));
                    }
                    *clipped = number as f32;
                }
                for (action, drive) in action.iter_mut().zip(channels) {
                    let Drive::Row(row) = drive else {
                        if let Drive::Passive(safe) = drive {
                            *action = *safe;
                        }
                        continue;
                    };
                    let mut number = f64::from(previous[1][row.index]);
                    if let Some((center, divisor)) = rule.unnormalize.get(row.index) {
                        number = number * divisor + center;
                    }
                    number = number * row.scale + row.offset;
                    if let Some((source, factor)) = row.add {
                        number += factor * now(source, previous);
                    }
                    number = bounded(number, row.clip);
                    previous[2][row.index] = number as f32;
                    *action = (number * row.factor) as f32;
                }
            }
        }
        Ok(())
    }
}

impl Brain for PolicyBrain {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        if self.step == 0 && self.recipe.binding.is_primed {
            self.prime()?;
        }
        let present = Present {
            observation,
            previous: &self.previous,
            outputs: self.runner.fed_back(),
            step: self.step,
        };
        self.observer.observe(&self.recipe.binding, present)?;
        let mut stats = self.receive()?;
        if self.flight.is_none() && self.chunks.used >= self.next_start {
            self.begin();
            stats = self.receive()?.or(stats);
        }
        let stats = stats.unwrap_or_default();
        if self.chunks.next(&mut self.previous[0]) {
            self.counts.late = 0;
            let acted = self.act(observation, action);
            self.step += 1;
            return acted.map(|()| stats);
        }
        self.step += 1;
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
            ("previous", &self.previous[..]),
            ("asked", &self.asked[..]),
            ("state", self.runner.states()),
            ("fed_back", self.runner.fed_back()),
        ] {
            for (index, values) in arrays.iter().enumerate() {
                snapshot.insert(format!("{name}{index}"), Array::F32(values.clone()));
            }
        }
        self.observer.save(&mut snapshot);
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
        snapshot.insert("inferences", Array::U64(vec![self.inferences]));
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
        let load = |name: &str, arrays: &mut [Vec<f32>]| -> Result<()> {
            for (index, values) in arrays.iter_mut().enumerate() {
                let len = values.len();
                values.copy_from_slice(snapshot.f32(&format!("{name}{index}"), len)?);
            }
            Ok(())
        };
        load("previous", &mut self.previous)?;
        load("asked", &mut self.asked)?;
        load("state", self.runner.states_mut())?;
        load("fed_back", self.runner.fed_back_mut())?;
        self.observer.load(&self.recipe.binding, snapshot)?;
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
        self.inferences = match snapshot.u64("inferences", 1)? {
            [inferences] => *inferences,
            _ => 0,
        };
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
        for values in self.runner.states_mut() {
            values.fill(0.0);
        }
        for values in self
            .runner
            .fed_back_mut()
            .iter_mut()
            .chain(&mut self.previous)
        {
            values.fill(0.0);
        }
        self.observer.clear(&self.recipe.binding);
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
        let steered = "policy: a caller set commands while it ran".to_owned();
        [delay, held, steered]
            .into_iter()
            .zip([
                is_asynchronous,
                self.counts.held > 0,
                self.observer.is_steered,
            ])
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

    fn commands(&self) -> Option<CommandInputs> {
        let commands = &self.recipe.commands;
        (!commands.channels().is_empty()).then(|| commands.clone())
    }

    fn network_inputs(&self) -> Vec<(String, Vec<f32>)> {
        let inputs = self.recipe.binding.inputs.iter().zip(&self.observer.inputs);
        inputs
            .map(|(input, values)| (input.name.clone(), values.clone()))
            .collect()
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
///
/// The motors drive the channels of the action where they name no joints, and their default pose
/// is its offset.
fn contract_of(
    model: &Model,
    path: &Path,
    contract: Option<&Path>,
    body: &BodySpec,
) -> Result<Contract> {
    let mut contract = stated_contract(model, path, contract, body)?;
    let action = &contract.action;
    if let Some(motors) = &mut contract.motors {
        motors.joints = motors.joints.take().or_else(|| action.channels.clone());
        if motors.default.is_empty() {
            motors.default.clone_from(&action.offset);
        }
    }
    Ok(contract)
}

fn stated_contract(
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

/// The stage between a policy's action and the motors of a body, and the time between two answers,
/// as its contract states them; none if it states no stage.
///
/// # Errors
/// As [`PolicyBrain::new`].
pub fn motors(
    model: &Path,
    contract: Option<&Path>,
    body: &BodySpec,
) -> Result<Option<(MotorRule, Option<f64>)>> {
    let contract = contract_of(&Model::open(model)?, model, contract, body)?;
    Ok(contract.motors.map(|motors| (motors, contract.period_s)))
}

/// Reads a policy's file with its contract, and checks it against a body. The stage between its
/// action and the motors is the contract's.
///
/// # Errors
/// As [`PolicyBrain::new`], without a device.
pub fn check(path: &Path, contract: Option<&Path>, body: &BodySpec) -> Result<Binding> {
    let model = Model::open(path)?;
    let mut contract = contract_of(&model, path, contract, body)?;
    let driven = match &contract.motors {
        Some(motors) => motors
            .spec(body, contract.period_s)
            .map_err(|error| error.at(&contract.origin))?,
        None => body.clone(),
    };
    let networks = contract.load(&model, path, &driven)?;
    contract.bind(&networks, &driven)
}
