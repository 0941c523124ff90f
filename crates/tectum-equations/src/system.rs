//! A parsed system: what it declares, and how it is stepped.

use tectum::{Error, Result};

use super::arithmetic::{Arithmetic, Dual, Duals, Floats};
use super::code::{Number, Recorder};
use super::expression::{Expressions, Id, Outcome, Tape, Variable};
use super::operation::{BinaryOp, UnaryOp};
use super::unit::Unit;

/// A parameter of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its unit as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// Its value in the file, in base units.
    pub value: f64,
    /// The values that it may be given, in base units.
    pub range: [f64; 2],
}

/// Where a state starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the value of an expression over parameters.
    At(Id),
    /// Between two of them, uniformly.
    Uniform(Id, Id),
}

/// A state of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Its unit as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// The range from which it is drawn to excite the system, in base units; none if the file has
    /// none.
    pub range: Option<[f64; 2]>,
    pub(crate) start: Start,
    pub(crate) equilibrium: Id,
}

/// An input of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its unit as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// Lowest and highest value, in its unit.
    pub range: [f64; 2],
    /// Only the two ends of the range are possible.
    pub is_discrete: bool,
    /// What applies when no controller answers, in its unit.
    pub safe: f64,
    pub(crate) equilibrium: Id,
}

/// A disturbance, drawn once for each period.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// Its name.
    pub name: String,
    /// Its unit, as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// Its standard deviation, in base units; or half its width if it is uniform.
    pub(crate) scale: Id,
    /// Uniform instead of normal.
    pub is_uniform: bool,
}

/// A number that a controller sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Its name.
    pub name: String,
    /// Its unit as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether it wraps after a full turn.
    pub wraps: bool,
    /// Lowest and highest value expected, in its unit.
    pub range: [f64; 2],
    /// Typical magnitude, in its unit.
    pub scale: f64,
    pub(crate) value: Id,
}

/// How rates become steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrator {
    /// All states by their rates at the beginning of the step.
    Euler,
    /// One state after another in the order of their `d/dt` lines; each rate sees the states before
    /// it as they are after the step.
    SemiImplicit,
    /// Runge and Kutta's method of fourth order.
    RungeKutta4,
}

/// What the system is to be kept at.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// What it is called in summaries.
    pub label: String,
    /// The unit of the measured number, as written.
    pub unit_text: String,
    /// Its unit.
    pub unit: Unit,
    /// Success is a magnitude below this, in base units.
    pub bound: f64,
    pub(crate) value: Id,
}

/// An event: where the condition holds after a step, the states are set, all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub condition: Id,
    pub resets: Vec<(u16, Id)>,
}

/// Quadratic weights of a regulator, for magnitudes in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights<'s> {
    /// Of each state.
    pub states: &'s [f64],
    /// Of each input.
    pub inputs: &'s [f64],
}

/// A system of equations, checked.
#[derive(Debug, Clone)]
pub struct System {
    pub(crate) name: String,
    pub(crate) period_s: f64,
    pub(crate) integrator: Integrator,
    pub(crate) substeps: u32,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) states: Vec<State>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) noises: Vec<Noise>,
    pub(crate) observations: Vec<Observation>,
    pub(crate) events: Vec<Event>,
    pub(crate) goal: Option<Goal>,
    pub(crate) weights: (Vec<f64>, Vec<f64>),
    pub(crate) expressions: Expressions,
    pub(crate) tapes: Tapes,
    pub(crate) warnings: Vec<String>,
}

/// The parts of a step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tapes {
    /// The state that each rate belongs to, in the order of the file.
    pub order: Vec<u16>,
    /// All rates at once, in that order.
    pub rates: Tape,
    /// Each alone.
    pub rate: Vec<Tape>,
    /// Condition and values of each event.
    pub events: Vec<Tape>,
    /// Reward, then whether the episode ends.
    pub outcome: Tape,
    pub observations: Tape,
    pub goal: Tape,
}

/// What a step returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The reward.
    pub reward: f64,
    /// Whether the episode is over.
    pub terminated: bool,
}

/// The step of a system around a point: s' ≈ A s + B u + E w for deviations s and u from it and
/// disturbances w, and what is observed there: o ≈ C s.
#[derive(Debug, Clone, PartialEq)]
pub struct Linearization {
    /// A, [S, S], row-major: how the state after the step depends on the state.
    pub a: Vec<f64>,
    /// B, [S, U], row-major: how it depends on the inputs, in base units.
    pub b: Vec<f64>,
    /// E, [S, W], row-major: how it depends on the disturbances, in base units.
    pub e: Vec<f64>,
    /// C, [O, S], row-major: how the observations, in base units, depend on the state.
    pub c: Vec<f64>,
}

/// Values of parameters, inputs and noise while a system is stepped.
struct Held<'v, V> {
    parameters: &'v [V],
    inputs: &'v [V],
    noise: &'v [V],
}

impl System {
    /// The name after `body`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds between two inputs.
    pub fn period_s(&self) -> f64 {
        self.period_s
    }

    /// How rates become steps, and how many steps a period has.
    pub fn integrator(&self) -> (Integrator, u32) {
        (self.integrator, self.substeps)
    }

    /// Its parameters, in the order of the file.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Its states, in the order of the file.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Its inputs, in the order of the file.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Its disturbances, in the order of the file.
    pub fn noises(&self) -> &[Noise] {
        &self.noises
    }

    /// What a controller sees, in the order of the file.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// What a user should know of the file: names that are declared and never read, with their
    /// lines.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What it is to be kept at, if the file says so.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// Weights of a regulator, 0 where the file has none.
    pub fn weights(&self) -> Weights<'_> {
        Weights {
            states: &self.weights.0,
            inputs: &self.weights.1,
        }
    }

    /// The values of parameters in the file, in base units.
    pub fn default_parameters(&self) -> Vec<f64> {
        self.parameters
            .iter()
            .map(|parameter| parameter.value)
            .collect()
    }

    /// Other values of some parameters, in their units.
    ///
    /// # Errors
    /// `Invalid` for a name that the file does not have, or a value out of its range.
    pub fn with_parameters<'n>(
        &self,
        given: impl IntoIterator<Item = (&'n str, f64)>,
    ) -> Result<Vec<f64>> {
        let mut values = self.default_parameters();
        for (name, value) in given {
            let names = || {
                self.parameters
                    .iter()
                    .map(|parameter| parameter.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let unknown = || {
                Error::invalid(format!(
                    "body {}: it has no parameter {name:?}; known: {}",
                    self.name,
                    names()
                ))
            };
            let place = self
                .parameters
                .iter()
                .position(|parameter| parameter.name == name)
                .ok_or_else(unknown)?;
            let Parameter {
                unit_text,
                unit,
                range: [low, high],
                ..
            } = &self.parameters[place];
            let base = value * unit.scale;
            if !(*low..=*high).contains(&base) {
                let [low, high] = [low, high].map(|bound| bound / unit.scale);
                return Err(Error::invalid(format!(
                    "body {}: parameter {name} is {value} {unit_text}; needs {low} to {high} {unit_text}",
                    self.name
                )));
            }
            values[place] = base;
        }
        Ok(values)
    }

    /// The start of each state for numbers between 0 and 1, one for each state that starts at
    /// random.
    ///
    /// # Panics
    /// If there is not one number for each parameter; so for the other methods below.
    pub fn start(&self, parameters: &[f64], mut uniform: impl FnMut() -> f64) -> Vec<f64> {
        let at = |id: Id| self.constant(id, parameters);
        let starts = self.states.iter().map(|state| match state.start {
            Start::At(id) => at(id),
            Start::Uniform(low, high) => at(low) + (at(high) - at(low)) * uniform(),
        });
        starts.collect()
    }

    /// The standard deviation of each noise, or half its width if it is uniform, in base units.
    ///
    /// # Panics
    /// As [`System::step`].
    pub fn noise_scales(&self, parameters: &[f64]) -> Vec<f64> {
        self.noises
            .iter()
            .map(|noise| self.constant(noise.scale, parameters))
            .collect()
    }

    /// States and inputs (in base units) at which nothing changes, as the file declares.
    pub fn equilibrium(&self, parameters: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let states = self
            .states
            .iter()
            .map(|state| self.constant(state.equilibrium, parameters))
            .collect();
        (
            states,
            self.inputs
                .iter()
                .map(|input| self.constant(input.equilibrium, parameters))
                .collect(),
        )
    }

    /// The disturbances of a period, given two uniform numbers in (0, 1] and [0, 1) for each.
    pub fn disturbances(
        &self,
        parameters: &[f64],
        mut uniforms: impl FnMut() -> [f64; 2],
    ) -> Vec<f64> {
        let drawn = self.noises.iter().map(|noise| {
            let [first, second] = uniforms();
            let unit = if noise.is_uniform {
                2.0 * second - 1.0
            } else {
                (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
            };
            self.constant(noise.scale, parameters) * unit
        });
        drawn.collect()
    }

    /// Records [`System::disturbances`] over a recorder's numbers, two uniform ones in [0, 1) for
    /// each.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn record_disturbances(
        &self,
        recorder: &mut Recorder,
        parameters: &[f64],
        uniforms: &[Number],
    ) -> Vec<Number> {
        let drawn = self
            .noises
            .iter()
            .zip(uniforms.chunks(2))
            .map(|(noise, pair)| {
                let [first, second] = [pair[0], pair[1]];
                let unit = if noise.is_uniform {
                    let width = recorder.scaled(&second, 2.0);
                    recorder.subtract(&width, &Number::Constant(1.0))
                } else {
                    let above_zero = recorder.subtract(&Number::Constant(1.0), &first);
                    let logarithm = recorder.unary(UnaryOp::Log, &above_zero);
                    let square = recorder.scaled(&logarithm, -2.0);
                    let radius = recorder.unary(UnaryOp::Sqrt, &square);
                    let angle = recorder.scaled(&second, std::f64::consts::TAU);
                    let cosine = recorder.unary(UnaryOp::Cos, &angle);
                    recorder.multiply(&radius, &cosine)
                };
                recorder.scaled(&unit, self.constant(noise.scale, parameters))
            });
        drawn.collect()
    }

    /// Advances a state by one period under inputs and disturbances, all in base units.
    ///
    /// # Panics
    /// If a slice does not have one number for each parameter, state, input or disturbance.
    pub fn step(
        &self,
        parameters: &[f64],
        state: &mut [f64],
        inputs: &[f64],
        noise: &[f64],
    ) -> Step {
        let (reward, terminated) = self.step_with(&mut Floats, parameters, state, [inputs, noise]);
        Step { reward, terminated }
    }

    /// [`System::step`] in another arithmetic: over a [`Recorder`] it records the step. Returns the
    /// reward and whether the episode ends.
    ///
    /// # Panics
    /// As [`System::step`].
    pub fn step_with<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        parameters: &[f64],
        state: &mut [A::Value],
        [inputs, noise]: [&[A::Value]; 2],
    ) -> (A::Value, A::Condition) {
        self.check_lengths([parameters.len(), state.len(), inputs.len(), noise.len()]);
        let parameters: Vec<A::Value> = parameters
            .iter()
            .map(|value| arithmetic.constant(*value))
            .collect();
        let held = Held {
            parameters: &parameters,
            inputs,
            noise,
        };
        let mut now = state.to_vec();
        self.advance(arithmetic, &held, &mut now);
        let outcome = self.compute(arithmetic, &self.tapes.outcome, &held, &now);
        state.clone_from_slice(&now);
        let invariant = "invariant: a reward and a condition";
        (
            outcome[0].as_number().expect(invariant),
            outcome[1].as_condition().expect(invariant),
        )
    }

    /// Records [`System::observe`] over a recorder's numbers.
    ///
    /// # Panics
    /// As [`System::observe`].
    pub fn record_observations(
        &self,
        recorder: &mut Recorder,
        parameters: &[f64],
        state: &[Number],
    ) -> Vec<Number> {
        let parameters: Vec<Number> = parameters
            .iter()
            .map(|value| Number::Constant(*value))
            .collect();
        let held = Held {
            parameters: &parameters,
            inputs: &[],
            noise: &[],
        };
        let numbers: Vec<Number> = self
            .compute(recorder, &self.tapes.observations, &held, state)
            .iter()
            .filter_map(Outcome::as_number)
            .collect();
        let shown = self
            .observations
            .iter()
            .zip(numbers)
            .map(|(observation, number)| {
                let number = if observation.wraps {
                    recorder.wrap_angle(&number)
                } else {
                    number
                };
                recorder.scaled(&number, 1.0 / observation.unit.scale)
            });
        shown.collect()
    }

    /// The derivatives of a step and of the observations at a state and inputs, at disturbances of
    /// 0: exact, of the equations and the integrator.
    ///
    /// # Panics
    /// As [`System::step`].
    pub fn linearize(&self, parameters: &[f64], state: &[f64], inputs: &[f64]) -> Linearization {
        let [s, u, w] = [state.len(), inputs.len(), self.noises.len()];
        self.check_lengths([parameters.len(), s, u, w]);
        let mut duals = Duals {
            variables: s + u + w,
        };
        let parameters: Vec<Dual> = parameters
            .iter()
            .map(|value| duals.constant(*value))
            .collect();
        let variables = |values: &[f64], first: usize| -> Vec<Dual> {
            let numbered = values.iter().zip(first..);
            numbered
                .map(|(value, number)| duals.variable(*value, number))
                .collect()
        };
        let (inputs, noise) = (variables(inputs, s), variables(&vec![0.0; w], s + u));
        let mut now = variables(state, 0);
        let held = Held {
            parameters: &parameters,
            inputs: &inputs,
            noise: &noise,
        };
        let part = |duals: &[Dual], range: std::ops::Range<usize>| {
            duals
                .iter()
                .flat_map(|dual| dual.by[range.clone()].to_vec())
                .collect()
        };
        let observed: Vec<Dual> = self
            .compute(&mut duals, &self.tapes.observations, &held, &now)
            .iter()
            .filter_map(Outcome::as_number)
            .collect();
        self.advance(&mut duals, &held, &mut now);
        Linearization {
            a: part(&now, 0..s),
            b: part(&now, s..s + u),
            e: part(&now, s + u..s + u + w),
            c: part(&observed, 0..s),
        }
    }

    /// The standard deviation of each disturbance, in base units.
    pub fn noise_deviations(&self, parameters: &[f64]) -> Vec<f64> {
        let deviation = |noise: &Noise| {
            let scale = self.constant(noise.scale, parameters);
            if noise.is_uniform {
                scale / 3f64.sqrt()
            } else {
                scale
            }
        };
        self.noises.iter().map(deviation).collect()
    }

    /// Whether each state is an angle: an observation that wraps shows it unchanged.
    pub fn wrapped_states(&self) -> Vec<bool> {
        let mut wraps = vec![false; self.states.len()];
        for (state, observation) in self.observed_states().iter().zip(&self.observations) {
            if let Some(state) = state {
                wraps[*state] |= observation.wraps;
            }
        }
        wraps
    }

    /// What a controller sees of a state, in the units of the observations.
    ///
    /// # Panics
    /// If there is not one number for each parameter and state.
    pub fn observe(&self, parameters: &[f64], state: &[f64]) -> Vec<f64> {
        let numbers = self.numbers(&self.tapes.observations, parameters, state);
        let shown = self
            .observations
            .iter()
            .zip(numbers)
            .map(|(observation, number)| {
                let number = if observation.wraps {
                    wrapped(number)
                } else {
                    number
                };
                number / observation.unit.scale
            });
        shown.collect()
    }

    /// What the goal measures, in base units; `None` without a goal.
    ///
    /// # Panics
    /// As [`System::observe`].
    pub fn measure(&self, parameters: &[f64], state: &[f64]) -> Option<f64> {
        self.numbers(&self.tapes.goal, parameters, state)
            .first()
            .copied()
    }

    /// The state that the goal measures, if it is a state alone.
    pub fn goal_state(&self) -> Option<usize> {
        match self.tapes.goal.as_variable()? {
            Variable::State(number) => Some(usize::from(number)),
            _ => None,
        }
    }

    /// The state that is the rate of another, if its rate is a state alone: the speed of a
    /// position.
    pub fn rate_state(&self, state: usize) -> Option<usize> {
        let place = self
            .tapes
            .order
            .iter()
            .position(|number| usize::from(*number) == state)?;
        match self.tapes.rate[place].as_variable()? {
            Variable::State(number) => Some(usize::from(number)),
            _ => None,
        }
    }

    /// The state that each observation shows unchanged, if it does.
    pub fn observed_states(&self) -> Vec<Option<usize>> {
        let state =
            |observation: &Observation| match self.expressions.as_variable(observation.value) {
                Some(Variable::State(number)) => Some(usize::from(number)),
                _ => None,
            };
        self.observations.iter().map(state).collect()
    }

    fn check_lengths(&self, given: [usize; 4]) {
        assert_eq!(
            given,
            [
                self.parameters.len(),
                self.states.len(),
                self.inputs.len(),
                self.noises.len()
            ],
            "parameters, states, inputs and noises of {}",
            self.name
        );
    }

    /// The value of an expression over parameters.
    fn constant(&self, id: Id, parameters: &[f64]) -> f64 {
        self.numbers(&self.expressions.tape([id]), parameters, &[])
            .first()
            .copied()
            .unwrap_or(0.0)
    }

    fn numbers(&self, tape: &Tape, parameters: &[f64], state: &[f64]) -> Vec<f64> {
        let held = Held {
            parameters,
            inputs: &[],
            noise: &[],
        };
        self.compute(&mut Floats, tape, &held, state)
            .iter()
            .filter_map(Outcome::as_number)
            .collect()
    }

    fn compute<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        tape: &Tape,
        held: &Held<'_, A::Value>,
        state: &[A::Value],
    ) -> Vec<Outcome<A>> {
        tape.evaluate(arithmetic, |_, variable| match variable {
            Variable::Parameter(number) => held.parameters[usize::from(number)].clone(),
            Variable::State(number) => state[usize::from(number)].clone(),
            Variable::Input(number) => held.inputs[usize::from(number)].clone(),
            Variable::Noise(number) => held.noise[usize::from(number)].clone(),
        })
    }

    /// The steps of a period, each followed by the events.
    fn advance<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        held: &Held<'_, A::Value>,
        state: &mut Vec<A::Value>,
    ) {
        let step_s = self.period_s / f64::from(self.substeps);
        for _ in 0..self.substeps {
            match self.integrator {
                Integrator::Euler => {
                    let rates = self.rates(arithmetic, held, state);
                    *state = self.moved(arithmetic, state, &rates, step_s);
                }
                Integrator::SemiImplicit => {
                    for (number, tape) in self.tapes.order.iter().zip(&self.tapes.rate) {
                        let rate = self.compute(arithmetic, tape, held, state)[0]
                            .as_number()
                            .expect("invariant: rates are numbers");
                        let number = usize::from(*number);
                        state[number] = add_scaled(arithmetic, &state[number], &rate, step_s);
                    }
                }
                Integrator::RungeKutta4 => self.runge_kutta(arithmetic, held, state, step_s),
            }
            self.apply_events(arithmetic, held, state);
        }
    }

    /// k1 … k4 at the beginning, twice in the middle, and at the end; s + h/6 (k1 + 2 k2 + 2 k3 +
    /// k4).
    fn runge_kutta<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        held: &Held<'_, A::Value>,
        state: &mut Vec<A::Value>,
        step_s: f64,
    ) {
        let k1 = self.rates(arithmetic, held, state);
        let at = self.moved(arithmetic, state, &k1, 0.5 * step_s);
        let k2 = self.rates(arithmetic, held, &at);
        let at = self.moved(arithmetic, state, &k2, 0.5 * step_s);
        let k3 = self.rates(arithmetic, held, &at);
        let at = self.moved(arithmetic, state, &k3, step_s);
        let k4 = self.rates(arithmetic, held, &at);
        let mut sum = self.moved(arithmetic, &k1, &k2, 2.0);
        sum = self.moved(arithmetic, &sum, &k3, 2.0);
        sum = self.moved(arithmetic, &sum, &k4, 1.0);
        *state = self.moved(arithmetic, state, &sum, step_s / 6.0);
    }

    /// The rate of each state, in the order of states.
    fn rates<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        held: &Held<'_, A::Value>,
        state: &[A::Value],
    ) -> Vec<A::Value> {
        let found = self.compute(arithmetic, &self.tapes.rates, held, state);
        let mut rates = state.to_vec();
        for (number, rate) in self.tapes.order.iter().zip(found) {
            rates[usize::from(*number)] = rate.as_number().expect("invariant: rates are numbers");
        }
        rates
    }

    fn moved<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        state: &[A::Value],
        rates: &[A::Value],
        step: f64,
    ) -> Vec<A::Value> {
        state
            .iter()
            .zip(rates)
            .map(|(value, rate)| add_scaled(arithmetic, value, rate, step))
            .collect()
    }

    fn apply_events<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        held: &Held<'_, A::Value>,
        state: &mut [A::Value],
    ) {
        for (event, tape) in self.events.iter().zip(&self.tapes.events) {
            let found = self.compute(arithmetic, tape, held, state);
            let Some(condition) = found[0].as_condition() else {
                continue;
            };
            for ((number, _), value) in event
                .resets
                .iter()
                .zip(found[1..].iter().filter_map(Outcome::as_number))
            {
                let number = usize::from(*number);
                state[number] = arithmetic.select(&condition, &value, &state[number]);
            }
        }
    }
}

/// value + step · rate.
fn add_scaled<A: Arithmetic>(
    arithmetic: &mut A,
    value: &A::Value,
    rate: &A::Value,
    step: f64,
) -> A::Value {
    let step = arithmetic.constant(step);
    let change = arithmetic.binary(BinaryOp::Multiply, &step, rate);
    arithmetic.binary(BinaryOp::Add, value, &change)
}

/// An angle in [−π, π).
fn wrapped(angle_rad: f64) -> f64 {
    (angle_rad + std::f64::consts::PI).rem_euclid(std::f64::consts::TAU) - std::f64::consts::PI
}
