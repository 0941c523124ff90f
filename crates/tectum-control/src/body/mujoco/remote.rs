//! A body that a process steps.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError};

use tectum::{Error, ErrorKind, Result};
use toml::Table;

use super::Shared;
use super::process::Process;
use crate::body::{Body, BodySpec, ExactState, Picture, Push, Step};
use crate::message::{Array, Message};

/// The maximum numbers of a state.
const MAX_STATE: f64 = 1e7;

/// What the process reports of its model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Specification {
    pub spec: BodySpec,
    pub state_size: usize,
    pub can_push: bool,
    pub files: Vec<String>,
    pub libraries: Vec<String>,
    /// Of Python and of its packages.
    pub versions: Table,
}

impl Specification {
    pub fn read(name: &str, answer: &Message) -> Result<Self> {
        let refused =
            |what: &str| Error::data(format!("body {name}: its process states no valid {what}"));
        let spec = BodySpec::from_message(name, answer)?;
        let state_size = answer
            .number("state_size")
            .filter(|size| size.fract() == 0.0 && (0.0..=MAX_STATE).contains(size))
            .ok_or_else(|| refused("size of the state"))?;
        let texts = |field: &str| answer.texts(field).ok_or_else(|| refused(field));
        let versions = ["mujoco", "numpy", "python"]
            .into_iter()
            .filter_map(|package| {
                let version = answer.map("versions")?.text(package)?.to_owned();
                Some((package.to_owned(), version.into()))
            });
        Ok(Self {
            spec,
            state_size: state_size as usize,
            can_push: answer.flag("can_push").unwrap_or(false),
            files: texts("files")?,
            libraries: texts("libraries")?,
            versions: versions.collect(),
        })
    }
}

/// A body that a process steps. State: MuJoCo's integration state, the periods of the episode, and
/// the timesteps that are left of a push.
pub(super) struct RemoteBody {
    shared: Arc<Shared>,
    /// None after a failure.
    process: RefCell<Option<Process>>,
    observation: Vec<f32>,
    failure: RefCell<Option<(ErrorKind, String)>>,
}

impl RemoteBody {
    /// The body at its start for seed 0.
    pub fn at_start(shared: Arc<Shared>) -> Result<Self> {
        let process = shared.process()?;
        let mut body = Self {
            observation: vec![0.0; shared.specification.spec.observation_len()],
            process: RefCell::new(Some(process)),
            failure: RefCell::new(None),
            shared,
        };
        body.reset(0);
        body.health()?;
        Ok(body)
    }

    fn name(&self) -> &str {
        &self.shared.specification.spec.name
    }

    /// An answer, or nothing after a failure, which [`Body::health`] then reports.
    fn ask<T>(&self, work: impl FnOnce(&mut Process) -> Result<T>) -> Option<T> {
        let mut held = self.process.borrow_mut();
        let answer = work(held.as_mut()?);
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                *held = None;
                *self.failure.borrow_mut() = Some((error.kind(), error.to_string()));
                None
            }
        }
    }

    fn observed(&mut self, answer: Option<(Vec<f32>, Message)>) -> Option<Message> {
        let (observation, answer) = answer?;
        self.observation = observation;
        Some(answer)
    }
}

/// The observation of an answer, and the answer.
fn observation_of(
    process: &mut Process,
    answer: Message,
    spec: &BodySpec,
) -> Result<(Vec<f32>, Message)> {
    let mut observation = Vec::with_capacity(spec.observation_len());
    match spec.read_observation(&answer, &mut observation) {
        Ok(()) => Ok((observation, answer)),
        Err(error) => Err(process.incomplete(&error)),
    }
}

impl Body for RemoteBody {
    capabilities!(ExactState);

    fn spec(&self) -> &BodySpec {
        &self.shared.specification.spec
    }

    fn reset(&mut self, seed: u64) {
        let spec = &self.shared.specification.spec;
        let answer = self.ask(|process| {
            let answer =
                process.request("reset", "observation", |message| message.with("seed", seed))?;
            observation_of(process, answer, spec)
        });
        self.observed(answer);
    }

    fn observe(&self, observation: &mut [f32]) {
        assert_eq!(
            observation.len(),
            self.observation.len(),
            "{}: an observation has {} elements",
            self.name(),
            self.observation.len()
        );
        observation.copy_from_slice(&self.observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let spec = &self.shared.specification.spec;
        assert_eq!(
            action.len(),
            spec.action.len(),
            "{}: an action has {} numbers",
            spec.name,
            spec.action.len()
        );
        let applied: Option<Vec<f32>> = spec
            .action
            .iter()
            .zip(action)
            .map(|(channel, value)| channel.applied(*value))
            .collect();
        let refused = applied.is_none();
        let applied = Array::of_f32(applied.as_ref().unwrap_or(&spec.safe_action));
        let answer = self.ask(|process| {
            let answer = process.request("step", "observation", |message| {
                message.with_array("action", &applied)
            })?;
            observation_of(process, answer, spec)
        });
        let failed = Step {
            reward: f64::NAN,
            refused,
            ..Step::default()
        };
        self.observed(answer).map_or(failed, |answer| Step {
            reward: answer.number("reward").unwrap_or(f64::NAN),
            terminated: answer.flag("terminated").unwrap_or(false),
            truncated: answer.flag("truncated").unwrap_or(false),
            refused,
        })
    }

    fn health(&self) -> Result<()> {
        match &*self.failure.borrow() {
            None => Ok(()),
            Some((ErrorKind::Invalid, text)) => Err(Error::invalid(text.clone())),
            Some((ErrorKind::Unsupported, text)) => Err(Error::unsupported(text.clone())),
            Some((_, text)) => Err(Error::data(text.clone())),
        }
    }

    fn pushed(&mut self) -> Option<&mut dyn Push> {
        self.shared.specification.can_push.then_some(self)
    }

    fn picture(&mut self, width: u32, height: u32) -> Result<Option<Picture>> {
        let mut held = self.process.borrow_mut();
        let Some(process) = held.as_mut() else {
            return self.health().map(|()| None);
        };
        // A picture that is refused, as without OpenGL, leaves the body as it is.
        let answer = process.request("frame", "frame", |message| {
            message.with("width", width).with("height", height)
        })?;
        let picture = answer.array("picture")?;
        let (rows, columns) = (height as usize, width as usize);
        if picture.shape != [rows, columns, 3] || picture.data.len() != 3 * rows * columns {
            return Err(Error::data(format!(
                "body {}: its picture has the shape {:?}",
                self.name(),
                picture.shape
            )));
        }
        Ok(Some(Picture {
            width,
            height,
            rgb: picture.data,
        }))
    }
}

impl ExactState for RemoteBody {
    fn append_state(&self, state: &mut Vec<f64>) {
        let size = self.shared.specification.state_size;
        let numbers = self.ask(|process| {
            let answer = process.request("state", "state", |message| message)?;
            let numbers = answer.array("state").map(|array| array.to_f64());
            match numbers {
                Ok(Some(numbers)) if numbers.len() == size => Ok(numbers),
                _ => Err(process.incomplete(&Error::data(format!(
                    "its state is not {size} numbers of float64"
                )))),
            }
        });
        // After a failure the length is kept; the loop asks for the failure before it uses them.
        state.extend(numbers.unwrap_or_else(|| vec![0.0; size]));
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let size = self.shared.specification.state_size;
        if state.len() != size {
            return Err(Error::invalid(format!(
                "{}: a state has {size} numbers, given {}",
                self.name(),
                state.len()
            )));
        }
        if let Some(place) = state.iter().position(|number| !number.is_finite()) {
            return Err(Error::invalid(format!(
                "{}: state number {place} is {}",
                self.name(),
                state[place]
            )));
        }
        let (state, spec) = (Array::of_f64(state), &self.shared.specification.spec);
        let answer = self.ask(|process| {
            let answer = process.request("set_state", "observation", |message| {
                message.with_array("state", &state)
            })?;
            observation_of(process, answer, spec)
        });
        self.observed(answer);
        self.health()
    }
}

impl Push for RemoteBody {
    fn push(&mut self) {
        self.ask(|process| process.request("push", "push", |message| message));
    }
}

impl Drop for RemoteBody {
    fn drop(&mut self) {
        // For the next body of the same settings.
        let spare = &self.shared.spare;
        let process = self.process.take();
        if process.is_some() {
            *spare.lock().unwrap_or_else(PoisonError::into_inner) = process;
        }
    }
}
