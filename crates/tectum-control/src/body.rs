//! Plants: what a brain observes and controls.
//!
//! [`Body`] is what the closed loop needs, and all that a machine or a simulation of yours must
//! have. What else a body can do is optional, and each capability is a trait of its own:
//! [`ExactState`], [`RandomizeState`], [`ControlModel`]. The bodies of this crate are listed in
//! [`BODIES`]; each has one [`Descriptor`] next to its equations, with everything that the rest of
//! the crate knows about it by name.
//!
//! A simulated body is deterministic: random numbers are drawn in [`Body::reset`] and
//! [`RandomizeState::randomize_state`] from the seed given there and nowhere else, so
//! [`ExactState::state`] contains everything that the next step depends on, including the delay
//! line.

/// The accessors of the capabilities that a body of this crate has: each returns the body itself.
macro_rules! capabilities {
    ($($capability:ident),+) => {
        $(capabilities!(@ $capability);)+
    };
    (@ ExactState) => {
        fn exact_state(&self) -> Option<&dyn $crate::body::ExactState> {
            Some(self)
        }

        fn exact_state_mut(&mut self) -> Option<&mut dyn $crate::body::ExactState> {
            Some(self)
        }
    };
    (@ RandomizeState) => {
        fn randomized(&mut self) -> Option<&mut dyn $crate::body::RandomizeState> {
            Some(self)
        }
    };
    (@ ControlModel) => {
        fn into_control_model(self: Box<Self>) -> Option<Box<dyn $crate::body::ControlModel>> {
            Some(self)
        }
    };
}

pub mod acrobot;
pub mod batch;
pub mod cart_pole;
pub mod control;
mod disturbances;
pub mod equations;
mod family;
mod instances;
pub mod link;
mod message;
pub mod motors;
pub mod mujoco;
pub mod names;
mod parameters;
pub mod pendulum;
pub mod rig;
pub mod schematic;
pub mod seeker;
mod settings;
mod stated;
pub mod swing_up;
pub mod task;
pub(crate) mod uniform;

use std::fmt::Debug;
use std::ops::{Range, RangeInclusive};

use serde::Serialize;
use tectum::{Error, LatencyHistogram, Result};

use crate::clock::{Clock, ClockKind};
use crate::message::ElementType;
use crate::registry::Registry;
use batch::BatchKernel;
use control::{Linear, MppiParameters, PlantModel, Regulator};
use disturbances::Disturbances;
pub use family::{Family, register_family};
use link::LinkStatus;
use schematic::Schematic;
pub use settings::{BodySettings, PlantSettings, ReadSettings};
pub use stated::StatedChannel;
use task::Task;

/// How numbers of an observation channel behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChannelKind {
    /// An ordinary quantity.
    Linear,
    /// A quantity that wraps after a full turn.
    Angle {
        /// Radians in one unit of the channel: 1 for radians, π/180 for degrees.
        rad_per_unit: f64,
    },
}

/// A part of an observation: one number, or an array such as a picture.
///
/// An observation holds all elements as float32, those of an array in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationChannel {
    /// Name, as in recordings.
    pub name: String,
    /// Unit, as printed.
    pub unit: String,
    /// The sizes of an array, such as rows, columns and colours; empty for one number.
    pub shape: Vec<usize>,
    /// The type of the elements, as in recordings and messages.
    pub element: ElementType,
    /// Whether the number wraps.
    pub kind: ChannelKind,
    /// Lowest value expected; for plots and checks, never used to clip.
    pub low: f32,
    /// Highest value expected.
    pub high: f32,
    /// Typical magnitude: learned models divide a linear channel by it, cost tables use it as the
    /// unit.
    pub scale: f32,
}

impl ObservationChannel {
    /// A linear channel whose scale is the larger bound of the range.
    /// [`ObservationChannel::wrapping`] and [`ObservationChannel::scaled`] change that.
    pub fn new(
        name: impl Into<String>,
        unit: impl Into<String>,
        range: RangeInclusive<f32>,
    ) -> Self {
        let (low, high) = range.into_inner();
        Self {
            name: name.into(),
            unit: unit.into(),
            shape: Vec::new(),
            element: ElementType::F32,
            kind: ChannelKind::Linear,
            low,
            high,
            scale: low.abs().max(high.abs()),
        }
    }

    /// The channel as an array.
    #[must_use]
    pub fn array(self, shape: impl Into<Vec<usize>>, element: ElementType) -> Self {
        Self {
            shape: shape.into(),
            element,
            ..self
        }
    }

    /// The number of its elements.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        !self.shape.is_empty()
    }

    /// The channel as an angle: `rad_per_unit` is 1 for radians, π/180 for degrees.
    #[must_use]
    pub fn wrapping(self, rad_per_unit: f64) -> Self {
        Self {
            kind: ChannelKind::Angle { rad_per_unit },
            ..self
        }
    }

    /// The channel with another typical magnitude.
    #[must_use]
    pub fn scaled(self, scale: f32) -> Self {
        Self { scale, ..self }
    }
}

/// One number of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionChannel {
    /// Name, as in recordings.
    pub name: String,
    /// Unit, as printed.
    pub unit: String,
    /// Lowest value; lower ones are clipped to it.
    pub low: f32,
    /// Highest value; higher ones are clipped to it.
    pub high: f32,
    /// Only `low` and `high` are possible: the body applies `high` for values ≥ 0 and `low` for the
    /// others.
    pub discrete: bool,
}

impl ActionChannel {
    /// A channel that takes every value of the range.
    pub fn new(
        name: impl Into<String>,
        unit: impl Into<String>,
        range: RangeInclusive<f32>,
    ) -> Self {
        let (low, high) = range.into_inner();
        Self {
            name: name.into(),
            unit: unit.into(),
            low,
            high,
            discrete: false,
        }
    }

    /// What the body applies for `value`; `None` if it is not a finite number.
    pub fn applied(&self, value: f32) -> Option<f32> {
        match (value.is_finite(), self.discrete) {
            (false, _) => None,
            (true, true) => Some(if value >= 0.0 { self.high } else { self.low }),
            (true, false) => Some(value.clamp(self.low, self.high)),
        }
    }
}

/// The constants of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct BodySpec {
    /// Name, as in scenarios.
    pub name: String,
    /// Time between two actions, in seconds.
    pub dt_s: f64,
    /// The channels of an observation, in order.
    pub observation: Vec<ObservationChannel>,
    /// The numbers of an action, in order.
    pub action: Vec<ActionChannel>,
    /// Applied when the brain gives no action, one number for each action channel.
    pub safe_action: Vec<f32>,
}

/// The largest number of elements of an array channel.
const MAX_ARRAY: usize = 1 << 26;

impl BodySpec {
    /// The elements of an observation: one for each number, all of each array.
    pub fn observation_len(&self) -> usize {
        self.observation.iter().map(ObservationChannel::size).sum()
    }

    /// Where the elements of each channel are in an observation.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        self.observation.iter().scan(0, |end, channel| {
            let start = *end;
            *end += channel.size();
            Some(start..*end)
        })
    }

    /// Where the elements of a channel are in an observation.
    ///
    /// # Panics
    /// If there is no channel of this number.
    pub fn range(&self, channel: usize) -> Range<usize> {
        let before = &self.observation[..channel];
        let start = before.iter().map(ObservationChannel::size).sum();
        start..start + self.observation[channel].size()
    }

    /// Checks the channels.
    ///
    /// # Errors
    /// `Invalid` naming a channel with an array that is empty, has more than 2^26 elements, or
    /// elements that float32 does not hold exactly.
    pub fn check(&self) -> Result<()> {
        for ObservationChannel {
            name,
            shape,
            element,
            ..
        } in &self.observation
        {
            let refused = |reason: String| {
                Err(Error::invalid(format!(
                    "body {}: channel {name}: {reason}",
                    self.name
                )))
            };
            let size = shape
                .iter()
                .try_fold(1usize, |size, next| size.checked_mul(*next));
            if !size.is_some_and(|size| (1..=MAX_ARRAY).contains(&size)) {
                return refused(format!(
                    "the shape is {shape:?}, needs 1 to {MAX_ARRAY} elements"
                ));
            }
            if !element.is_exact_in_f32() {
                return refused(format!(
                    "the elements are {}, needs float32, uint8, int8 or bool",
                    element.name()
                ));
            }
        }
        Ok(())
    }

    /// Refuses arrays, for brains that read one number for each channel.
    ///
    /// # Errors
    /// `Unsupported` naming the brain and the first array.
    pub fn require_numbers(&self, reader: &str) -> Result<()> {
        match self.observation.iter().find(|channel| channel.is_array()) {
            None => Ok(()),
            Some(channel) => Err(Error::unsupported(format!(
                "{reader}: channel {} of the body {} is an array of shape {:?}; only channels of one number are supported",
                channel.name, self.name, channel.shape
            ))),
        }
    }
}

/// What one step returned. The default is a reward of 0 in an episode that continues.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// The body's own score of the step; each body documents how it is computed.
    pub reward: f64,
    /// The episode is over: the body is outside the region where its task is defined.
    pub terminated: bool,
    /// The episode is over: the body's own time limit has passed.
    pub truncated: bool,
    /// The action was not finite, so the safe action was applied instead.
    pub refused: bool,
}

impl Step {
    /// Whether the episode is over, for either reason.
    pub fn ends_episode(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// Where [`Body::reset`] starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Hanging at rest, moved by a small seeded perturbation.
    Hanging,
    /// The body's own random reset.
    Random,
}

impl Start {
    /// Reads a start from its name in scenarios.
    ///
    /// # Errors
    /// Unknown names, listing the known ones.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "hanging" => Ok(Self::Hanging),
            "random" => Ok(Self::Random),
            _ => Err(Error::invalid(format!(
                "start {name:?} is unknown; known: hanging, random"
            ))),
        }
    }
}

/// A state to linearise around, with the steps that a numerical linearisation should take.
#[derive(Debug, Clone, PartialEq)]
pub struct Equilibrium {
    /// A [`ExactState::state`] in which the body stays under [`Equilibrium::action`] (or nearly so,
    /// where the action is discrete).
    pub state: Vec<f64>,
    /// Perturbation of each state number; 0 marks a number that is not a dynamic state.
    pub state_step: Vec<f64>,
    /// The action under which the body stays in it, one for each channel.
    pub action: Vec<f32>,
    /// Perturbation of each number of the action: large where small actions fall into a dead band.
    pub action_step: Vec<f32>,
}

/// An action of a loop, and when it applies.
pub struct Command<'a> {
    /// One number for each channel.
    pub action: &'a [f32],
    /// Whether it is the safe action because there is no answer.
    pub is_safe: bool,
    pace: Option<(&'a mut dyn Clock, u64, &'a mut InnerPeriods)>,
}

impl<'a> Command<'a> {
    /// An action that applies at once.
    pub fn new(action: &'a [f32]) -> Self {
        Self {
            action,
            is_safe: false,
            pace: None,
        }
    }

    /// An action for the period that begins at `begin_ns` of a clock.
    pub(crate) fn timed(
        action: &'a [f32],
        is_safe: bool,
        clock: &'a mut dyn Clock,
        begin_ns: u64,
        periods: &'a mut InnerPeriods,
    ) -> Self {
        Self {
            action,
            is_safe,
            pace: clock.is_real().then_some((clock, begin_ns, periods)),
        }
    }

    /// Whether it is for a period of a clock that is not simulated and `period_ns` after whose start
    /// has passed: what a machine gets now is for a later period.
    pub fn has_passed(&mut self, period_ns: u64) -> bool {
        self.pace
            .as_mut()
            .is_some_and(|(clock, begin_ns, _)| clock.now_ns() >= *begin_ns + period_ns)
    }

    /// Whether its time is that of a clock that is not simulated.
    pub fn is_timed(&self) -> bool {
        self.pace.is_some()
    }

    /// Waits until `offset_ns` after the start of the period, and counts an inner period; it is
    /// missed if it begins `period_ns` late. Returns immediately where time is simulated.
    pub fn wait(&mut self, offset_ns: u64, period_ns: u64) {
        if let Some((clock, begin_ns, periods)) = &mut self.pace {
            let lateness_ns = clock.wait_until(*begin_ns + offset_ns);
            periods.lateness.record(lateness_ns);
            periods.count += 1;
            periods.missed += u64::from(lateness_ns >= period_ns);
        }
    }
}

/// The periods of what a body steps several times in each of its own, under a real clock.
#[derive(Debug, Clone, Default)]
pub struct InnerPeriods {
    /// Periods.
    pub count: u64,
    /// Those that began after their end.
    pub missed: u64,
    /// From the time of each to its start.
    pub lateness: LatencyHistogram,
}

/// A plant that runs in steps of a fixed time.
///
/// The methods without a default are the whole contract of the loop. The others give access to
/// optional capabilities; a body that has one returns itself.
///
/// # Example
/// ```
/// use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
///
/// /// A tank that a pump fills and a leak empties.
/// struct Tank { spec: BodySpec, level_m: f64 }
///
/// impl Body for Tank {
///     fn spec(&self) -> &BodySpec { &self.spec }
///     fn reset(&mut self, _seed: u64) { self.level_m = 1.0; }
///     fn observe(&self, observation: &mut [f32]) { observation[0] = self.level_m as f32; }
///     fn step(&mut self, action: &[f32]) -> Step {
///         let pumped = self.spec.action[0].applied(action[0]);
///         self.level_m += 0.1 * (f64::from(pumped.unwrap_or(0.0)) - 0.5 * self.level_m);
///         Step { reward: -(self.level_m - 1.0).abs(), refused: pumped.is_none(), ..Step::default() }
///     }
/// }
///
/// let level = ObservationChannel::new("level", "m", 0.0..=2.0);
/// let pump = ActionChannel::new("pump", "m/s", 0.0..=1.0);
/// let spec = BodySpec { name: "tank".into(), dt_s: 0.1, observation: vec![level], action: vec![pump], safe_action: vec![0.0] };
/// let mut tank = Tank { spec, level_m: 1.0 };
/// assert_eq!(tank.step(&[0.5]).reward, 0.0);
/// assert!(tank.exact_state().is_none());
/// ```
pub trait Body: Send {
    /// Describes channels, units and time.
    fn spec(&self) -> &BodySpec;

    /// Puts the body at its start; the same seed gives the same start on every machine.
    fn reset(&mut self, seed: u64);

    /// Writes the observation.
    ///
    /// # Panics
    /// If `observation` does not have [`BodySpec::observation_len`] elements.
    fn observe(&self, observation: &mut [f32]);

    /// Applies an action for `dt_s` seconds. Values are clipped to the channel's range; if one is
    /// not finite, the safe action is applied and the step reports it: a plant cannot wait until a
    /// brain recovers.
    ///
    /// # Panics
    /// If `action` does not have one number for each channel.
    fn step(&mut self, action: &[f32]) -> Step;

    /// Applies a command of a loop: an action, and when it applies. A body that is stepped several
    /// times in a period waits for the time of each.
    ///
    /// # Panics
    /// As [`Body::step`].
    fn advance(&mut self, command: &mut Command<'_>) -> Step {
        self.step(command.action)
    }

    /// Passes on the commands that have arrived with its connection to `set`, by name; no value is the
    /// command's own schedule. The loop calls it at the beginning of each period.
    fn commands(&mut self, _set: &mut dyn FnMut(&str, Option<f64>) -> Result<()>) {}

    /// The state of its connection, for a body outside of the process: the loop calls it at the
    /// beginning of each period, before it observes, and queries the brain only for a new
    /// observation. None for a body that is part of the process.
    fn link(&mut self, _clock: ClockKind) -> Option<LinkStatus> {
        None
    }

    /// The clock that a loop of it needs; none for a body that runs under each.
    fn clock(&self) -> Option<ClockKind> {
        None
    }

    /// Whether a brain controls it. Before that it starts by itself: it is stepped with its safe
    /// action, and no brain is queried.
    fn is_ready(&self) -> bool {
        true
    }

    /// The body that it drives; none if it is itself the body.
    fn into_inner(self: Box<Self>) -> Option<Box<dyn Body>> {
        None
    }

    /// The period of what it steps several times in each of its own, in seconds.
    fn inner_period_s(&self) -> Option<f64> {
        None
    }

    /// A drawing of it as it is now: its geometry, or gauges of its channels.
    fn schematic(&self) -> Schematic {
        let mut observation = vec![0.0; self.spec().observation_len()];
        self.observe(&mut observation);
        Schematic::gauges(self.spec(), &observation)
    }

    /// Its exact state: needed to resume runs, for tasks that measure the state, and to step many
    /// instances on a device.
    fn exact_state(&self) -> Option<&dyn ExactState> {
        None
    }

    /// The same, to restore it.
    fn exact_state_mut(&mut self) -> Option<&mut dyn ExactState> {
        None
    }

    /// Its states at random: needed to learn a twin of it.
    fn randomized(&mut self) -> Option<&mut dyn RandomizeState> {
        None
    }

    /// Whether it can be used. A body whose simulation or machine is out of reach returns the same
    /// observation and a reward of NaN; the loop then ends with this error.
    ///
    /// # Errors
    /// Why it cannot be used any more.
    fn health(&self) -> Result<()> {
        Ok(())
    }

    /// The body, to push it: for the fault `push`.
    fn pushed(&mut self) -> Option<&mut dyn Push> {
        None
    }

    /// A picture of it as it is now, of a size in pixels; `None` for a body that has none besides
    /// its drawing.
    ///
    /// # Errors
    /// What the renderer reports.
    fn picture(&mut self, _width: u32, _height: u32) -> Result<Option<Picture>> {
        Ok(None)
    }

    /// The body as the model of a controller: needed for regulators.
    fn into_control_model(self: Box<Self>) -> Option<Box<dyn ControlModel>> {
        None
    }
}

/// A body whose whole state can be read and restored.
pub trait ExactState: Body {
    /// Appends everything that the next step depends on; each body documents the order.
    fn append_state(&self, state: &mut Vec<f64>);

    /// Everything that the next step depends on.
    fn state(&self) -> Vec<f64> {
        let mut state = Vec::new();
        self.append_state(&mut state);
        state
    }

    /// Restores what [`ExactState::state`] returned, exactly.
    ///
    /// # Errors
    /// A wrong length or a number that is not finite.
    fn set_state(&mut self, state: &[f64]) -> Result<()>;
}

/// A body that can be pushed.
pub trait Push: Body {
    /// Begins the push that its settings state; it lasts for as long as they say, beyond the end of
    /// a step.
    fn push(&mut self);
}

/// A picture of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green and blue of each pixel, from the upper left corner in rows.
    pub rgb: Vec<u8>,
}

/// A body that can be put in any state of its range, to excite it for learning.
pub trait RandomizeState: Body {
    /// Puts the body in a state drawn from its whole range.
    ///
    /// Hidden memory (filters, delay lines) is only consistent with the observation after one
    /// further step.
    fn randomize_state(&mut self, seed: u64);
}

/// A body that can be the model of a controller: it follows the observations of another, and has an
/// equilibrium to linearise around.
pub trait ControlModel: ExactState {
    /// Replaces the observed part of the state and corrects the rest, or keeps it: the correction
    /// step of an observer.
    fn assimilate(&mut self, observation: &[f32]);

    /// The first observation: replaces the observed part of the state and keeps the rest. What
    /// differs from the state before is where the body starts, not an error of a prediction.
    fn begin(&mut self, observation: &[f32]) {
        self.assimilate(observation);
    }

    /// Prepares [`ControlModel::assimilate`], and makes [`Body::step`] a prediction, without
    /// disturbances; [`control_model`] calls it.
    ///
    /// # Errors
    /// `Unsupported` for a state that no observation determines.
    fn prepare_observer(&mut self) -> Result<()> {
        Ok(())
    }

    /// Names of the numbers of the state, as far as they have names; for messages.
    fn state_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which numbers of the state are angles in radians, whose difference from the equilibrium is
    /// taken around the circle; those after the last one are not.
    fn wrapped_states(&self) -> Vec<bool> {
        Vec::new()
    }

    /// The state to linearise around.
    fn equilibrium(&self) -> Equilibrium;

    /// The exact linear model of a step around the equilibrium, for a body that knows its
    /// derivatives; controllers take differences of others.
    ///
    /// # Errors
    /// A derivative that is not finite.
    fn linearized(&self) -> Result<Option<Linear>> {
        Ok(None)
    }

    /// What moves at the equilibrium, for a body whose user states the equilibrium: a regulator
    /// around it then errs by as much.
    fn drift(&self) -> Option<String> {
        None
    }
}

/// A capability that a body lacks.
fn lacks(spec: &BodySpec, capability: &str) -> Error {
    Error::unsupported(format!("body {}: it has no {capability}", spec.name))
}

/// The body as the model of a controller.
///
/// # Errors
/// `Unsupported` for a body that cannot be one, or whose state its observations do not determine.
pub fn control_model(body: Box<dyn Body>) -> Result<Box<dyn ControlModel>> {
    let error = lacks(
        body.spec(),
        "equilibrium with an observer, which a controller's model needs",
    );
    let mut model = body.into_control_model().ok_or(error)?;
    model.prepare_observer()?;
    Ok(model)
}

impl dyn Body + '_ {
    /// The exact state.
    ///
    /// # Errors
    /// `Unsupported` for a body without exact state.
    pub fn state(&self) -> Result<Vec<f64>> {
        self.exact_state()
            .map(ExactState::state)
            .ok_or_else(|| lacks(self.spec(), "exact state"))
    }

    /// The body, to draw states of its whole range.
    ///
    /// # Errors
    /// `Unsupported` for a body without random states.
    pub fn require_randomized(&mut self) -> Result<&mut dyn RandomizeState> {
        let error = lacks(self.spec(), "random states");
        self.randomized().ok_or(error)
    }

    /// Restores what [`ExactState::state`] returned, exactly.
    ///
    /// # Errors
    /// `Unsupported` for a body without exact state; as [`ExactState::set_state`].
    pub fn set_state(&mut self, state: &[f64]) -> Result<()> {
        match self.exact_state_mut() {
            Some(body) => body.set_state(state),
            None => Err(lacks(self.spec(), "exact state")),
        }
    }
}

/// Makes a body with disturbances, at its start for seed 0.
pub type MakeDisturbed = fn(Disturbances, Start) -> Result<Box<dyn Body>>;

/// Everything that the rest of the crate knows about a body by its name.
pub struct Descriptor {
    /// Name, as in scenarios.
    pub name: &'static str,
    /// Where it can start; the default first.
    pub starts: &'static [Start],
    /// Makes it, at its start for seed 0.
    pub make: fn(Start) -> Result<Box<dyn Body>>,
    /// Makes it with disturbances that its controllers do not know.
    pub disturbed: Option<MakeDisturbed>,
    /// The task that scores runs on this body.
    pub task: fn() -> Box<dyn Task>,
    /// The kernel that steps many instances on a device.
    pub batch: Option<BatchKernel>,
    /// Parameters of MPPI over a twin of it.
    pub mppi: Option<fn() -> MppiParameters>,
    /// Its own equations, for MPPI to roll out.
    pub plant: Option<PlantModel>,
    /// Settings of the regulator and of the planner.
    pub regulator: Option<fn() -> Regulator>,
    /// Why no controller has settings for it, for messages.
    pub without_controller: Option<&'static str>,
    /// Whether recordings of the rig teach a twin of it.
    pub learns_from_rig_recordings: bool,
    /// Its keys in a scenario besides `name` and `start`, see [`Descriptor::with_settings`].
    pub settings: Option<ReadSettings>,
}

/// The bodies of this crate.
pub static BODIES: [&Descriptor; 5] = [
    &rig::DESCRIPTOR,
    &pendulum::DESCRIPTOR,
    &cart_pole::DESCRIPTOR,
    &acrobot::DESCRIPTOR,
    &seeker::DESCRIPTOR,
];

/// The names of bodies.
static NAMES: Registry<&'static Descriptor> =
    Registry::new("body", || BODIES.map(|body| body.name).to_vec());

/// Makes a body a word of scenarios: `[body] name = "NAME"` is then read, written, built, resumed
/// and repeated as the built-in bodies are. The controllers that the descriptor has settings for
/// accept it.
///
/// The registration lasts as long as the process, and may be made on any thread. [`Body::spec`]
/// must have the same name.
///
/// # Errors
/// `Invalid` for a name that is built in, already registered, or not made of letters, digits and
/// `_`; a body without a start.
///
/// # Example
/// ```
/// use tectum_control::body::{Descriptor, Start, pendulum, register_body, task};
///
/// static AGAIN: Descriptor = Descriptor::new("again", &[Start::Random], |start| Ok(Box::new(pendulum::Pendulum::new(start))), || task::keep(0, 0.0, 0.1));
/// register_body(&AGAIN)?;
/// assert_eq!(register_body(&AGAIN).unwrap_err().to_string(), "register body \"again\": the name is already registered");
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn register_body(descriptor: &'static Descriptor) -> Result<()> {
    if descriptor.starts.is_empty() {
        return Err(Error::invalid(format!(
            "register body {:?}: it has no start",
            descriptor.name
        )));
    }
    NAMES.add(descriptor.name, descriptor)
}

impl Descriptor {
    /// A body with nothing optional.
    pub const fn new(
        name: &'static str,
        starts: &'static [Start],
        make: fn(Start) -> Result<Box<dyn Body>>,
        task: fn() -> Box<dyn Task>,
    ) -> Self {
        Self {
            name,
            starts,
            make,
            task,
            disturbed: None,
            batch: None,
            mppi: None,
            plant: None,
            regulator: None,
            without_controller: None,
            learns_from_rig_recordings: false,
            settings: None,
        }
    }

    /// A body with keys of its own in a scenario, and nothing else that is optional. `S` reads
    /// them, is written as the same keys, and makes the body.
    pub const fn with_settings<S: PlantSettings + Serialize + Debug + 'static>(
        name: &'static str,
        starts: &'static [Start],
        task: fn() -> Box<dyn Task>,
    ) -> Self {
        Self {
            settings: Some(settings::read_settings::<S>),
            ..Self::new(name, starts, settings::make_default::<S>, task)
        }
    }

    /// Finds a built-in or registered body; all bodies from equation files have one, and all from
    /// MuJoCo models.
    pub fn find(name: &str) -> Option<&'static Self> {
        if name.starts_with(mujoco::PREFIX) {
            return Some(&mujoco::DESCRIPTOR);
        }
        if let Some(family) = Family::of(name) {
            return Some(family.descriptor);
        }
        let from_file = || {
            name.ends_with(equations::ENDING)
                .then_some(&equations::DESCRIPTOR)
        };
        BODIES
            .into_iter()
            .find(|body| body.name == name)
            .or_else(from_file)
            .or_else(|| NAMES.get(name).map(|(_, body)| body))
    }

    /// Finds a body by name.
    ///
    /// # Errors
    /// An unknown name, listing the known ones.
    pub fn of(name: &str) -> Result<&'static Self> {
        Self::find(name).ok_or_else(|| NAMES.unknown(name))
    }

    /// How to make it with disturbances.
    ///
    /// # Errors
    /// A body that has none.
    pub fn require_disturbed(&self) -> Result<MakeDisturbed> {
        let known = || Self::names_with(|body| body.disturbed.is_some());
        self.disturbed.ok_or_else(|| {
            Error::invalid(format!(
                "body {:?} has no disturbances; known: {}",
                self.name,
                known()
            ))
        })
    }

    /// What a controller reports that has no settings for a body: what is missing, why if that is
    /// known, and the names of the bodies with a property.
    pub(crate) fn missing(what: &str, name: &str, has: impl Fn(&Self) -> bool) -> String {
        let reason = Self::find(name)
            .and_then(|body| body.without_controller)
            .map_or_else(String::new, |reason| format!(": {reason}"));
        format!(
            "{what} body {name:?}{reason}; known: {}",
            Self::names_with(has)
        )
    }

    /// The names of the bodies with a property, for messages.
    pub fn names_with(has: impl Fn(&Self) -> bool) -> String {
        let added = NAMES.added().into_iter().map(|(_, body)| body);
        BODIES
            .into_iter()
            .chain(added)
            .filter(|body| has(body))
            .map(|body| body.name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Makes a body by name, at its start for seed 0.
///
/// `start` is where resets begin; without it the rig hangs, the Gymnasium plants start at random,
/// as in Gymnasium, and so does the seeker.
///
/// # Errors
/// An unknown name; a start that the body does not have.
///
/// # Example
/// ```
/// let mut body = tectum_control::body::body("pendulum", Some(tectum_control::body::Start::Hanging)).unwrap();
/// body.set_state(&[0.0, 0.0]).unwrap();
/// assert_eq!(body.step(&[0.0]).reward, 0.0);
/// ```
pub fn body(name: &str, start: Option<Start>) -> Result<Box<dyn Body>> {
    let descriptor = Descriptor::of(name)?;
    (descriptor.make)(start.unwrap_or(descriptor.starts[0]))
}

/// An angle in [−π, π).
pub(crate) fn wrapped_rad(angle_rad: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    (angle_rad + PI).rem_euclid(TAU) - PI
}

/// The single action channel's applied value, and whether the given one was rejected.
fn applied_action(spec: &BodySpec, action: &[f32]) -> (f64, bool) {
    assert_eq!(action.len(), 1, "{}: an action has 1 number", spec.name);
    let applied = spec.action[0].applied(action[0]);
    (
        f64::from(applied.unwrap_or(spec.safe_action[0])),
        applied.is_none(),
    )
}

/// Rejects a snapshot of the wrong length or with numbers that are not finite.
fn check_state<const N: usize>(name: &str, state: &[f64]) -> Result<[f64; N]> {
    let numbers: [f64; N] = state.try_into().map_err(|_| {
        Error::invalid(format!(
            "{name}: a state has {N} numbers, given {}",
            state.len()
        ))
    })?;
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => Err(Error::invalid(format!(
            "{name}: state number {place} is {}",
            numbers[place]
        ))),
        None => Ok(numbers),
    }
}
