//! Bodies from equation files: `[body] name = "FILE.plant"`.

pub(crate) mod batch;
pub mod identification;
mod observer;
pub mod recording;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tectum::kernel::random::philox;
use tectum::{ContentHash, Error, InputFile, Result};
use tectum_equations::{LIBRARY, Linearization, Observation, System};
use toml::Table;

use self::observer::Observer;
use super::control::{Linear, LqrWeights, Regulator};
pub use super::settings::PLANT_FILE;
use super::settings::{BodySettings, CustomSettings, PlantSettings};
use super::task::{Measure, Task};
use super::uniform::Uniform;
use super::{
    ActionChannel, Body, BodySpec, ControlModel, Descriptor, Equilibrium, ExactState,
    ObservationChannel, RandomizeState, Start, Step, mujoco, task, wrapped_rad,
};
use crate::document::{Key, Section};
use crate::registry::Custom;

/// The ending of equation files, by which a body's name is one.
pub const ENDING: &str = ".plant";
/// How long a success must last to count as reached, seconds.
const HOLD_S: f64 = 1.0;
/// A state that changes by less in a period, relative to its equilibrium or absolutely in base
/// units, is at rest.
const AT_REST: f64 = 1e-5;

/// What all bodies from equation files have in common.
pub(super) static DESCRIPTOR: Descriptor =
    Descriptor::with_settings::<EquationSettings>("equations", &[Start::Random], || {
        task::keep(0, 0.0, 1.0)
    });

/// A file, and the parameters that a scenario changes.
#[derive(Debug, Clone, Serialize)]
pub struct EquationSettings {
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    text: Arc<str>,
    /// The text is that of the program, not of a file.
    #[serde(skip)]
    is_shipped: bool,
    #[serde(skip)]
    system: Arc<System>,
    /// Values of all parameters, in base units.
    #[serde(skip)]
    values: Vec<f64>,
    /// The changed ones, in their units.
    #[serde(skip_serializing_if = "Table::is_empty")]
    parameters: Table,
    /// Values of the plant's own parameters, in base units.
    #[serde(skip)]
    actual_values: Vec<f64>,
    /// Those that its controllers do not know, in their units.
    #[serde(skip_serializing_if = "Table::is_empty")]
    actual: Table,
}

/// A body with default settings; one from an equation file or a MuJoCo model is read.
///
/// # Errors
/// `Io` or `Data` naming the file; as MuJoCo bodies report.
pub(crate) fn default_settings(name: &str) -> Result<BodySettings> {
    if name.starts_with(mujoco::PREFIX) {
        return mujoco::default_settings(name);
    }
    if let Some(settings) = BodySettings::of_family(name) {
        return settings;
    }
    let custom = name
        .ends_with(ENDING)
        .then(|| EquationSettings::open(name))
        .transpose()?;
    Ok(custom.map_or_else(
        || BodySettings::named(name),
        |settings| settings.of_body(name),
    ))
}

impl EquationSettings {
    fn of_body(self, name: &str) -> BodySettings {
        BodySettings {
            custom: Some(Custom(Arc::new(self) as Arc<dyn CustomSettings>)),
            ..BodySettings::named(name)
        }
    }

    /// Reads a file; if it does not exist, the file of this name that ships. Parameters have the
    /// values of the file.
    ///
    /// # Errors
    /// `Io` or `Data` naming the file.
    pub fn open(file: &str) -> Result<Self> {
        let (text, is_shipped) = Self::text(file)?;
        Ok(Self {
            is_shipped,
            ..Self::parse(&text, file)?
        })
    }

    /// The system, and the values of its parameters.
    pub fn system(&self) -> (&Arc<System>, &[f64]) {
        (&self.system, &self.values)
    }

    /// The text of a file, or of one that ships, and whether it is the latter.
    ///
    /// # Errors
    /// `Io` naming the file.
    pub fn text(file: &str) -> Result<(String, bool)> {
        match (
            std::fs::read_to_string(file),
            LIBRARY.iter().find(|(name, _)| *name == file),
        ) {
            (Ok(text), _) => Ok((text, false)),
            (Err(source), Some((_, text))) if source.kind() == ErrorKind::NotFound => {
                Ok(((*text).to_owned(), true))
            }
            (Err(source), _) => {
                let known = LIBRARY.map(|(name, _)| name).join(", ");
                Err(Error::io(
                    format!(
                        "{}: not readable, and none of those that ship ({known})",
                        Path::new(file).display()
                    ),
                    source,
                ))
            }
        }
    }

    fn body(&self, start: Start, values: &[f64]) -> Result<Box<dyn Body>> {
        if start != Start::Random {
            return Err(Error::invalid(format!(
                "{}: start \"hanging\" is not known; the file says where its states start",
                self.file
            )));
        }
        Ok(Box::new(EquationBody::new(
            &self.file,
            self.system.clone(),
            values.to_vec(),
        )))
    }

    /// Reads the text of a file of this name; its parameters have their own values.
    ///
    /// # Errors
    /// `Data` naming the file.
    fn parse(text: &str, file: &str) -> Result<Self> {
        let system = System::parse(text, file)?;
        let (file, values) = (file.to_owned(), system.default_parameters());
        let (parameters, actual_values, actual) = (Table::new(), values.clone(), Table::new());
        Ok(Self {
            file,
            text: text.into(),
            is_shipped: false,
            values,
            system: Arc::new(system),
            parameters,
            actual_values,
            actual,
        })
    }
}

/// Reads values of parameters; returns those that were given, in their units.
fn read_parameters(
    mut given: Section<'_, '_>,
    system: &System,
    values: &mut [f64],
) -> Result<Table> {
    let mut changed = Table::new();
    for (place, parameter) in system.parameters().iter().enumerate() {
        let [low, high] = parameter.range.map(|bound| bound / parameter.unit.scale);
        if let Some(value) = given.within(&parameter.name, low..=high)? {
            changed.insert(parameter.name.clone(), value.into());
            values[place] = value * parameter.unit.scale;
        }
    }
    given.finish()?;
    Ok(changed)
}

impl PlantSettings for EquationSettings {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        let file = section.required("name")?.value;
        // A run is continued and repeated with the text that it ran.
        let copy = section
            .run_folder()
            .map(|folder| folder.join(PLANT_FILE))
            .and_then(|copy| std::fs::read_to_string(copy).ok());
        let mut settings = match copy {
            Some(text) => Self {
                is_shipped: LIBRARY.contains(&(file, &text)),
                ..Self::parse(&text, file)?
            },
            None => Self::open(file)?,
        };
        let given = section.section(Key::new(
            "parameters",
            "Parameters of an equation file, each within its range and in its unit.",
        ))?;
        settings.parameters = read_parameters(given, &settings.system, &mut settings.values)?;
        settings.actual_values.clone_from(&settings.values);
        let given = section.section(Key::new(
            "actual",
            "Parameters of an equation file that the plant has and its controllers do not know.",
        ))?;
        settings.actual = read_parameters(given, &settings.system, &mut settings.actual_values)?;
        Ok(settings)
    }

    fn make(&self, start: Start) -> Result<Box<dyn Body>> {
        self.body(start, &self.values)
    }

    fn plant(&self, start: Start) -> Result<Box<dyn Body>> {
        self.body(start, &self.actual_values)
    }

    fn task(&self) -> Option<Box<dyn Task>> {
        let goal = self.system.goal()?;
        let measure = Measure {
            name: "error".into(),
            description: "distance from the goal".into(),
            unit: goal.unit_text.clone().into(),
            success: goal.label.replace(' ', "_").into(),
            bound: goal.bound / goal.unit.scale,
            hold_s: HOLD_S,
            loss: None,
        };
        let kept = self.system.goal_state();
        let wraps = self
            .system
            .observed_states()
            .iter()
            .zip(self.system.observations())
            .any(|(state, shown)| shown.wraps && state.is_some() && *state == kept);
        Some(Box::new(Kept {
            measure,
            scale: goal.unit.scale,
            wraps,
            system: self.system.clone(),
            values: self.values.clone(),
            state: Vec::new(),
        }))
    }

    fn regulator(&self) -> Option<Result<Regulator>> {
        let weights = self.system.weights();
        let hidden = if self.system.noises().is_empty() {
            0
        } else {
            HIDDEN
        };
        let unweighed = weights
            .inputs
            .iter()
            .zip(self.system.inputs())
            .find(|(weight, _)| **weight <= 0.0)
            .map(|(_, input)| format!("input {}", input.name));
        let unweighed = unweighed.or_else(|| {
            weights
                .states
                .iter()
                .all(|weight| *weight <= 0.0)
                .then(|| "any state".to_owned())
        });
        if let Some(unweighed) = unweighed {
            let wanted = "weigh NAME WEIGHT, …";
            return Some(Err(Error::invalid(format!(
                "lqr and mpc: {} gives no weight to {unweighed}: `{wanted}` needs every input and a state",
                self.file
            ))));
        }
        let state = weights
            .states
            .iter()
            .copied()
            .chain(std::iter::repeat_n(0.0, hidden))
            .collect();
        // The inputs are in base units there, in those of the channels here.
        let action = weights
            .inputs
            .iter()
            .zip(self.system.inputs())
            .map(|(weight, input)| weight * input.unit.scale * input.unit.scale)
            .collect();
        Some(Ok(Regulator {
            weights: LqrWeights { state, action },
            swing_up: None,
            horizon: 50,
            bounds: Vec::new(),
        }))
    }

    fn has_default_task(&self) -> bool {
        false
    }

    fn input_files(&self) -> Vec<InputFile> {
        let file = InputFile {
            path: self.file.clone(),
            hash: ContentHash::of(self.text.as_bytes()),
        };
        if self.is_shipped {
            Vec::new()
        } else {
            vec![file]
        }
    }

    fn text(&self) -> Option<&str> {
        Some(&self.text)
    }

    fn equations(&self) -> Option<(&Arc<System>, &[f64])> {
        Some(self.system())
    }
}

/// The numbers after the states, of a body with noise: the seed's halves and the number of the
/// period.
const HIDDEN: usize = 3;

/// A body that steps a system. State: the system's states, in base units and the order of the file;
/// of a system with noise, then the seed's lower and upper half and the number of the period.
struct EquationBody {
    spec: BodySpec,
    system: Arc<System>,
    values: Vec<f64>,
    state: Vec<f64>,
    seed: u64,
    period: u64,
    /// The state that each observation shows.
    observed: Vec<Option<usize>>,
    /// Buffer of the inputs.
    inputs: Vec<f64>,
    /// It predicts for a controller: without disturbances.
    is_model: bool,
    /// How observations correct the states that they do not show.
    observer: Option<Observer>,
}

impl EquationBody {
    fn new(name: &str, system: Arc<System>, values: Vec<f64>) -> Self {
        let observed = system.observed_states();
        let inputs = vec![0.0; system.inputs().len()];
        let mut body = Self {
            spec: spec(name, &system),
            system,
            values,
            state: Vec::new(),
            seed: 0,
            period: 0,
            observed,
            inputs,
            is_model: false,
            observer: None,
        };
        body.reset(0);
        body
    }

    fn has_noise(&self) -> bool {
        !self.system.noises().is_empty()
    }

    /// The disturbances of a period: by counter, so that they depend on seed and period alone; 0 in
    /// a prediction.
    fn disturbances(&self) -> Vec<f64> {
        if self.is_model {
            return vec![0.0; self.system.noises().len()];
        }
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let mut number = 0;
        self.system.disturbances(&self.values, || {
            let [a, b, c, d] = philox(
                [self.period as u32, (self.period >> 32) as u32, number, 0],
                key,
            );
            number += 1;
            let unit = |high: u32, low: u32| {
                ((u64::from(high) << 32 | u64::from(low)) >> 11) as f64 * 0.5f64.powi(53)
            };
            [1.0 - unit(a, b), unit(c, d)]
        })
    }

    /// The exact derivatives of a step at the equilibrium, with the inputs in the units of the
    /// channels. An input without influence there, as within a dead band, is linearised over half
    /// its range.
    fn derivatives(&self) -> Linearization {
        let (state, inputs) = self.system.equilibrium(&self.values);
        let mut linear = self.system.linearize(&self.values, &state, &inputs);
        let (width, calm) = (inputs.len(), vec![0.0; self.system.noises().len()]);
        for (place, input) in self.system.inputs().iter().enumerate() {
            if linear
                .b
                .iter()
                .skip(place)
                .step_by(width)
                .any(|slope| *slope != 0.0)
            {
                continue;
            }
            let reach = 0.25 * (input.range[1] - input.range[0]) * input.unit.scale;
            let [above, below] = [reach, -reach].map(|moved| {
                let (mut state, mut inputs) = (state.clone(), inputs.clone());
                inputs[place] += moved;
                self.system.step(&self.values, &mut state, &inputs, &calm);
                state
            });
            for (row, (above, below)) in above.iter().zip(&below).enumerate() {
                linear.b[row * width + place] = (above - below) / (2.0 * reach);
            }
        }
        let scales = self
            .system
            .inputs()
            .iter()
            .map(|input| input.unit.scale)
            .cycle();
        linear
            .b
            .iter_mut()
            .zip(scales)
            .for_each(|(number, scale)| *number *= scale);
        linear
    }
}

fn spec(name: &str, system: &System) -> BodySpec {
    let channel = |observation: &Observation| {
        let [low, high] = observation.range.map(|bound| bound as f32);
        let channel = ObservationChannel::new(
            observation.name.as_str(),
            observation.unit_text.as_str(),
            low..=high,
        );
        let channel = channel.scaled(observation.scale as f32);
        match observation.wraps {
            true => channel.wrapping(observation.unit.scale),
            false => channel,
        }
    };
    let action = system.inputs().iter().map(|input| ActionChannel {
        name: input.name.clone(),
        unit: input.unit_text.clone(),
        low: input.range[0] as f32,
        high: input.range[1] as f32,
        discrete: input.is_discrete,
    });
    BodySpec {
        name: name.to_owned(),
        dt_s: system.period_s(),
        observation: system.observations().iter().map(channel).collect(),
        action: action.collect(),
        safe_action: system
            .inputs()
            .iter()
            .map(|input| input.safe as f32)
            .collect(),
    }
}

impl Body for EquationBody {
    capabilities!(ExactState, RandomizeState, ControlModel);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.state = self
            .system
            .start(&self.values, || uniform.between(0.0, 1.0));
        (self.seed, self.period) = (seed, 0);
    }

    fn observe(&self, observation: &mut [f32]) {
        let numbers = self.system.observe(&self.values, &self.state);
        assert_eq!(
            observation.len(),
            numbers.len(),
            "{}: an observation has {} numbers",
            self.spec.name,
            numbers.len()
        );
        observation
            .iter_mut()
            .zip(numbers)
            .for_each(|(shown, number)| *shown = number as f32);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        assert_eq!(
            action.len(),
            self.inputs.len(),
            "{}: an action has {} numbers",
            self.spec.name,
            self.inputs.len()
        );
        let applied: Option<Vec<f32>> = self
            .spec
            .action
            .iter()
            .zip(action)
            .map(|(channel, value)| channel.applied(*value))
            .collect();
        let refused = applied.is_none();
        let applied = applied.unwrap_or_else(|| self.spec.safe_action.clone());
        for ((number, applied), input) in self
            .inputs
            .iter_mut()
            .zip(applied)
            .zip(self.system.inputs())
        {
            *number = f64::from(applied) * input.unit.scale;
        }
        let noise = self.disturbances();
        let step = self
            .system
            .step(&self.values, &mut self.state, &self.inputs, &noise);
        self.period += 1;
        Step {
            reward: step.reward,
            terminated: step.terminated,
            truncated: false,
            refused,
        }
    }
}

impl ExactState for EquationBody {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(&self.state);
        if self.has_noise() {
            state.extend([
                (self.seed & 0xffff_ffff) as f64,
                (self.seed >> 32) as f64,
                self.period as f64,
            ]);
        }
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let (name, hidden) = (&self.spec.name, if self.has_noise() { HIDDEN } else { 0 });
        let needed = self.state.len() + hidden;
        if state.len() != needed {
            return Err(Error::invalid(format!(
                "{name}: a state has {needed} numbers, given {}",
                state.len()
            )));
        }
        if let Some(place) = state.iter().position(|number| !number.is_finite()) {
            return Err(Error::invalid(format!(
                "{name}: state number {place} is {}",
                state[place]
            )));
        }
        let (states, rest) = state.split_at(self.state.len());
        if let [low, high, period] = *rest {
            let is_whole =
                |number: f64, most: f64| number.fract() == 0.0 && (0.0..=most).contains(&number);
            if !(is_whole(low, 4_294_967_295.0)
                && is_whole(high, 4_294_967_295.0)
                && is_whole(period, 2f64.powi(53)))
            {
                return Err(Error::invalid(format!(
                    "{name}: seed and period are {low}, {high} and {period}; whole numbers are needed"
                )));
            }
            (self.seed, self.period) = ((high as u64) << 32 | low as u64, period as u64);
        }
        self.state.copy_from_slice(states);
        Ok(())
    }
}

impl RandomizeState for EquationBody {
    fn randomize_state(&mut self, seed: u64) {
        self.reset(seed);
        let mut uniform = Uniform::new(seed ^ 0x9e37_79b9);
        for (number, state) in self.state.iter_mut().zip(self.system.states()) {
            if let Some([low, high]) = state.range {
                *number = uniform.between(low, high);
            }
        }
    }
}

impl ControlModel for EquationBody {
    fn assimilate(&mut self, observation: &[f32]) {
        if let Some(observer) = &self.observer {
            observer.correct(&self.system, &self.values, &mut self.state, observation);
        }
        self.begin(observation);
    }

    fn prepare_observer(&mut self) -> Result<()> {
        self.is_model = true;
        self.observer =
            Observer::new(&self.system, &self.values).map_err(|error| error.at(&self.spec.name))?;
        Ok(())
    }

    fn state_names(&self) -> Vec<String> {
        let states = self.system.states().iter();
        states.map(|state| state.name.clone()).collect()
    }

    fn wrapped_states(&self) -> Vec<bool> {
        self.system.wrapped_states()
    }

    fn begin(&mut self, observation: &[f32]) {
        for (place, (number, shown)) in self.observed.iter().zip(observation).enumerate() {
            if let Some(state) = number {
                self.state[*state] =
                    f64::from(*shown) * self.system.observations()[place].unit.scale;
            }
        }
    }

    fn equilibrium(&self) -> Equilibrium {
        let (mut state, inputs) = self.system.equilibrium(&self.values);
        let hidden = if self.has_noise() { HIDDEN } else { 0 };
        state.extend(std::iter::repeat_n(0.0, hidden));
        let action = inputs
            .iter()
            .zip(self.system.inputs())
            .map(|(number, input)| (number / input.unit.scale) as f32)
            .collect();
        let action_step = self
            .spec
            .action
            .iter()
            .map(|channel| {
                if channel.discrete {
                    channel.high
                } else {
                    1e-3 * (channel.high - channel.low)
                }
            })
            .collect();
        let state_step = (0..state.len())
            .map(|place| if place < self.state.len() { 1e-5 } else { 0.0 })
            .collect();
        Equilibrium {
            state,
            state_step,
            action,
            action_step,
        }
    }

    fn linearized(&self) -> Result<Option<Linear>> {
        let (s, u) = (self.state.len(), self.inputs.len());
        let n = if self.has_noise() { s + HIDDEN } else { s };
        let exact = self.derivatives();
        let slopes = exact.a.chunks_exact(s).zip(exact.b.chunks_exact(u));
        if let Some((state, _)) = self
            .system
            .states()
            .iter()
            .zip(slopes)
            .find(|(_, (a, b))| a.iter().chain(*b).any(|slope| !slope.is_finite()))
        {
            let (file, name) = (&self.spec.name, &state.name);
            return Err(Error::invalid(format!(
                "{file}: the slope of {name} at the equilibrium is not finite; `equilibrium VALUE` of states and inputs moves it"
            )));
        }
        let mut linear = Linear {
            a: vec![0.0; n * n],
            b: vec![0.0; n * u],
        };
        for row in 0..s {
            linear.a[row * n..][..s].copy_from_slice(&exact.a[row * s..][..s]);
            linear.b[row * u..][..u].copy_from_slice(&exact.b[row * u..][..u]);
        }
        Ok(Some(linear))
    }

    fn drift(&self) -> Option<String> {
        let (balanced, inputs) = self.system.equilibrium(&self.values);
        let mut after = balanced.clone();
        self.system.step(
            &self.values,
            &mut after,
            &inputs,
            &vec![0.0; self.system.noises().len()],
        );
        let (linear, s) = (self.derivatives(), balanced.len());
        // A state that nothing influences, such as a clock, is not at fault.
        let is_driven = |place: usize| {
            let row = linear.a[place * s..][..s].iter().enumerate();
            row.into_iter()
                .any(|(column, slope)| column != place && *slope != 0.0)
        };
        let moved = |place: &usize| {
            (after[*place] - balanced[*place]).abs() > AT_REST * balanced[*place].abs().max(1.0)
        };
        let place = (0..s).filter(moved).find(|place| {
            is_driven(*place)
                || linear.b[place * inputs.len()..][..inputs.len()]
                    .iter()
                    .any(|slope| *slope != 0.0)
        })?;
        let (state, change) = (&self.system.states()[place], after[place] - balanced[place]);
        let (name, unit, change) = (&state.name, &state.unit_text, change / state.unit.scale);
        Some(format!(
            "{} is not at rest at its equilibrium: {name} changes by {change:.2e} {unit} in a period",
            self.spec.name
        ))
    }
}

/// The task that a file's `keep` states.
struct Kept {
    measure: Measure,
    /// The unit of the measure, in base units.
    scale: f64,
    /// It is a state that controllers see as an angle that wraps: a full turn is no distance from
    /// the goal.
    wraps: bool,
    system: Arc<System>,
    values: Vec<f64>,
    /// Buffer of the body's state.
    state: Vec<f64>,
}

impl Task for Kept {
    fn measure(&self) -> &Measure {
        &self.measure
    }

    fn value(&mut self, body: &dyn Body) -> f64 {
        let Some(body) = body.exact_state() else {
            return f64::NAN;
        };
        self.state.clear();
        body.append_state(&mut self.state);
        self.state.truncate(self.system.states().len());
        let value = self
            .system
            .measure(&self.values, &self.state)
            .unwrap_or(f64::NAN);
        let value = if self.wraps {
            wrapped_rad(value)
        } else {
            value
        };
        value / self.scale
    }
}
