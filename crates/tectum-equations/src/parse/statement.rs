//! Statements: declarations, equations and what a controller needs to know.

use tectum::Result;

use super::expression::{Type, Typed};
use super::{Meaning, Parser};
use crate::diagnostic::Span;
use crate::expression::{Node, Variable};
use crate::lexer::{Kind, Token};
use crate::system::{Event, Goal, Input, Integrator, Noise, Observation, Parameter, Start, State};
use crate::unit::{Dimension, Unit};

/// Maximum numbers of what a file declares.
const MAX_PARAMETERS: usize = 256;
const MAX_STATES: usize = 64;
const MAX_INPUTS: usize = 16;
/// Maximum steps in a period.
const MAX_SUBSTEPS: u32 = 1_000;
/// Maximum length of a period in seconds.
const MAX_PERIOD_S: f64 = 1e6;

impl Parser<'_> {
    pub(super) fn body(&mut self, span: Span) -> Result<()> {
        self.once(self.system.name.is_some(), span, "body")?;
        let (name, _) = self.name()?;
        (self.system.name, self.system.name_span) = (Some(name), span);
        Ok(())
    }

    pub(super) fn period(&mut self, span: Span) -> Result<()> {
        self.once(self.system.period_s.is_some(), span, "period")?;
        let place = self.span();
        let number = self.number()?;
        let after = self.span();
        let Some((unit, text)) = self.unit()? else {
            return self.fail(after, "the period needs a unit, such as 20 ms");
        };
        if unit.dimension != Dimension::TIME {
            return self.fail(after, format!("{text} is {}; expected s", unit.dimension));
        }
        let seconds = number * unit.scale;
        if !(seconds > 0.0 && seconds <= MAX_PERIOD_S) {
            return self.fail(
                place,
                format!("the period is {seconds} s; needs above 0, at most {MAX_PERIOD_S} s"),
            );
        }
        self.system.period_s = Some(seconds);
        Ok(())
    }

    pub(super) fn integrate(&mut self, span: Span) -> Result<()> {
        self.once(self.system.integrator.is_some(), span, "integrate")?;
        let (method, place) = self.word("euler, semi_implicit or rk4")?;
        let integrator = match method.as_str() {
            "euler" => Integrator::Euler,
            "semi_implicit" => Integrator::SemiImplicit,
            "rk4" => Integrator::RungeKutta4,
            _ => {
                return self.fail(
                    place,
                    format!("{method} is no integrator; known: euler, semi_implicit, rk4"),
                );
            }
        };
        let mut steps = 1;
        if self.takes("steps") {
            let place = self.span();
            let number = self.number()?;
            if !(number.fract() == 0.0 && (1.0..=f64::from(MAX_SUBSTEPS)).contains(&number)) {
                return self.fail(
                    place,
                    format!(
                        "{number} steps in a period; needs a whole number from 1 to {MAX_SUBSTEPS}"
                    ),
                );
            }
            steps = number as u32;
        }
        self.system.integrator = Some((integrator, steps));
        Ok(())
    }

    /// `parameter NAME = NUMBER UNIT [in LOW .. HIGH]`
    pub(super) fn parameter(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(
            self.system.parameters.len(),
            MAX_PARAMETERS,
            place,
            "parameters",
        )?;
        self.symbol("=")?;
        let number = self.number()?;
        let (unit, unit_text) = self.unit()?.unwrap_or((Unit::NONE, String::new()));
        let range = if self.takes("in") {
            self.range(unit)?
        } else {
            [f64::NEG_INFINITY, f64::INFINITY]
        };
        let value = number * unit.scale;
        if !(range[0]..=range[1]).contains(&value) {
            return self.fail(
                place,
                format!("{name} is {number} {unit_text}, which is outside its own range"),
            );
        }
        let id = self.expressions.add(Node::Variable(Variable::Parameter(
            self.system.parameters.len() as u16,
        )));
        self.declare(
            "parameter",
            name.clone(),
            place,
            Meaning::Value(Typed {
                id,
                ty: Type::Number(unit.dimension),
                span: place,
            }),
        );
        self.system.parameters.push(Parameter {
            name,
            unit_text,
            unit,
            value,
            range,
        });
        Ok(())
    }

    /// `state NAME: UNIT [start VALUE | start uniform(LOW, HIGH)] [in LOW .. HIGH] [equilibrium
    /// VALUE]`
    pub(super) fn state(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(self.system.states.len(), MAX_STATES, place, "states")?;
        let (unit, unit_text) = self.declared_unit()?;
        let zero = self.expressions.constant(0.0);
        let mut state = State {
            name: name.clone(),
            unit_text,
            unit,
            range: None,
            start: Start::At(zero),
            equilibrium: zero,
        };
        loop {
            if self.takes("start") {
                state.start = match self.takes("uniform") {
                    true => {
                        self.symbol("(")?;
                        let low = self.fixed(unit)?;
                        self.symbol(",")?;
                        let high = self.fixed(unit)?;
                        self.symbol(")")?;
                        Start::Uniform(low, high)
                    }
                    false => Start::At(self.fixed(unit)?),
                };
            } else if self.takes("in") {
                state.range = Some(self.range(unit)?);
            } else if self.takes("equilibrium") {
                state.equilibrium = self.fixed(unit)?;
            } else {
                break;
            }
        }
        self.declare(
            "state",
            name,
            place,
            Meaning::State(self.system.states.len() as u16),
        );
        self.system.states.push(state);
        Ok(())
    }

    /// `input NAME: UNIT in LOW .. HIGH [safe VALUE] [equilibrium VALUE] [discrete]`
    pub(super) fn input(&mut self) -> Result<()> {
        let (name, declared) = self.new_name()?;
        self.limit(self.system.inputs.len(), MAX_INPUTS, declared, "inputs")?;
        let (unit, unit_text) = self.declared_unit()?;
        if !self.takes("in") {
            return self.fail(
                self.span(),
                format!("input {name} needs its limits: in LOW .. HIGH"),
            );
        }
        let range = self.range(unit)?.map(|bound| bound / unit.scale);
        let zero = self.expressions.constant(0.0);
        let mut input = Input {
            name: name.clone(),
            unit_text,
            unit,
            range,
            is_discrete: false,
            safe: 0f64.clamp(range[0], range[1]),
            equilibrium: zero,
        };
        loop {
            let place = self.span();
            if self.takes("safe") {
                input.safe = self.quantity(unit)? / unit.scale;
                if !(range[0]..=range[1]).contains(&input.safe) {
                    return self.fail(
                        place,
                        format!("the safe value of {name} is outside its limits"),
                    );
                }
            } else if self.takes("equilibrium") {
                input.equilibrium = self.fixed(unit)?;
            } else if self.takes("discrete") {
                input.is_discrete = true;
            } else {
                break;
            }
        }
        self.declare(
            "input",
            name,
            declared,
            Meaning::Input(self.system.inputs.len() as u16),
        );
        self.system.inputs.push(input);
        Ok(())
    }

    /// `noise NAME: UNIT normal(DEVIATION)` or `uniform(HALF_WIDTH)`
    pub(super) fn noise(&mut self) -> Result<()> {
        let (name, declared) = self.new_name()?;
        self.limit(self.system.noises.len(), MAX_INPUTS, declared, "noises")?;
        let (unit, unit_text) = self.declared_unit()?;
        let (kind, place) = self.word("normal or uniform")?;
        if !matches!(kind.as_str(), "normal" | "uniform") {
            return self.fail(
                place,
                format!("{kind} is no distribution; known: normal, uniform"),
            );
        }
        self.symbol("(")?;
        let scale = self.fixed(unit)?;
        self.symbol(")")?;
        let id = self.expressions.add(Node::Variable(Variable::Noise(
            self.system.noises.len() as u16
        )));
        self.declare(
            "noise",
            name.clone(),
            declared,
            Meaning::Value(Typed {
                id,
                ty: Type::Number(unit.dimension),
                span: place,
            }),
        );
        self.system.noises.push(Noise {
            name,
            unit_text,
            unit,
            scale,
            is_uniform: kind == "uniform",
        });
        Ok(())
    }

    /// `NAME = EXPRESSION`
    pub(super) fn definition(&mut self, name: String, span: Span) -> Result<()> {
        self.refuse_known(&name, span)?;
        if *self.peek() != Kind::Symbol("=") {
            return self.fail(
                span,
                format!("{name} is no keyword, and a definition continues with ="),
            );
        }
        self.at += 1;
        let value = self.expression()?;
        self.declare("definition", name, span, Meaning::Value(value));
        Ok(())
    }

    /// `d/dt NAME = EXPRESSION`
    pub(super) fn rate(&mut self) -> Result<()> {
        let (number, name, place) = self.state_name()?;
        if self.system.rates.iter().any(|(known, _)| *known == number) {
            return self.fail(place, format!("d/dt {name} is given twice"));
        }
        self.symbol("=")?;
        let rate = self.expression()?;
        let unit = self.system.states[usize::from(number)].unit.dimension;
        let needed = unit.over(Dimension::TIME).ok_or_else(|| {
            self.source
                .error(place, "the unit's exponents are too large")
        })?;
        self.needs(&rate, needed, &format!("d/dt {name}"))?;
        self.system.rates.push((number, rate.id));
        Ok(())
    }

    /// `observe NAME: UNIT = EXPRESSION [wraps] [in LOW .. HIGH] [scale VALUE]`
    pub(super) fn observe(&mut self) -> Result<()> {
        let (name, place) = self.name()?;
        if self
            .system
            .observations
            .iter()
            .any(|known| known.name == name)
        {
            return self.fail(place, format!("{name} is observed twice"));
        }
        self.limit(
            self.system.observations.len(),
            MAX_STATES,
            place,
            "observations",
        )?;
        let (unit, unit_text) = self.declared_unit()?;
        self.symbol("=")?;
        let value = self.expression()?;
        self.needs(&value, unit.dimension, &format!("observation {name}"))?;
        if self
            .expressions
            .tape([value.id])
            .reads(|variable| matches!(variable, Variable::Input(_) | Variable::Noise(_)))
        {
            return self.fail(value.span, format!("observation {name} depends on an input or on noise; it may depend on states and parameters"));
        }
        let mut observation = Observation {
            name,
            unit_text,
            unit,
            wraps: false,
            range: [-1.0, 1.0],
            scale: 1.0,
            value: value.id,
        };
        loop {
            let place = self.span();
            if self.takes("wraps") {
                observation.wraps = true;
                self.needs(&value, Dimension::NONE, "an angle that wraps")?;
            } else if self.takes("in") {
                observation.range = self.range(unit)?.map(|bound| bound / unit.scale);
            } else if self.takes("scale") {
                observation.scale = self.quantity(unit)? / unit.scale;
                if observation.scale <= 0.0 {
                    return self.fail(place, "a scale is above 0");
                }
            } else {
                break;
            }
        }
        self.system.observations.push(observation);
        Ok(())
    }

    pub(super) fn reward(&mut self, span: Span) -> Result<()> {
        self.once(self.system.reward.is_some(), span, "reward")?;
        self.symbol("=")?;
        let value = self.expression()?;
        self.needs(&value, Dimension::NONE, "the reward")?;
        self.system.reward = Some(value.id);
        Ok(())
    }

    /// `terminate when CONDITION`
    pub(super) fn terminate(&mut self, span: Span) -> Result<()> {
        self.once(self.system.terminated.is_some(), span, "terminate")?;
        if !self.takes("when") {
            return self.fail(self.span(), "terminate continues with when and a condition");
        }
        self.system.terminated = Some(self.condition()?);
        Ok(())
    }

    /// `when CONDITION: NAME = EXPRESSION, …`
    pub(super) fn event(&mut self) -> Result<()> {
        let condition = self.condition()?;
        self.symbol(":")?;
        let mut resets = Vec::new();
        loop {
            let (number, name, place) = self.state_name()?;
            if resets.iter().any(|(known, _)| *known == number) {
                return self.fail(place, format!("{name} is set twice in one event"));
            }
            self.symbol("=")?;
            let value = self.expression()?;
            self.needs(
                &value,
                self.system.states[usize::from(number)].unit.dimension,
                &name,
            )?;
            resets.push((number, value.id));
            if *self.peek() != Kind::Symbol(",") {
                break;
            }
            self.at += 1;
        }
        self.system.events.push(Event { condition, resets });
        Ok(())
    }

    /// `keep EXPRESSION within BOUND [as "LABEL"]`
    pub(super) fn keep(&mut self, span: Span) -> Result<()> {
        self.once(self.system.goal.is_some(), span, "keep")?;
        let value = self.expression()?;
        if self
            .expressions
            .tape([value.id])
            .reads(|variable| matches!(variable, Variable::Input(_) | Variable::Noise(_)))
        {
            return self.fail(value.span, "what is kept depends on states and parameters");
        }
        if !self.takes("within") {
            return self.fail(
                self.span(),
                "keep EXPRESSION continues with within and a bound",
            );
        }
        let place = self.span();
        let number = self.number()?;
        let (unit, unit_text) = self.unit()?.unwrap_or((Unit::NONE, String::new()));
        self.needs(&value, unit.dimension, "what is kept")?;
        if number <= 0.0 {
            return self.fail(place, "a bound is above 0");
        }
        let mut label = "on target".to_owned();
        if self.takes("as") {
            let Token {
                kind: Kind::Text(text),
                ..
            } = self.tokens[self.at].clone()
            else {
                return self.fail(self.span(), "a label is a text in quotes");
            };
            self.at += 1;
            label = text;
        }
        self.system.goal = Some(Goal {
            label,
            unit_text,
            unit,
            bound: number * unit.scale,
            value: value.id,
        });
        Ok(())
    }

    /// `weigh NAME WEIGHT, …`
    pub(super) fn weigh(&mut self) -> Result<()> {
        loop {
            let (name, place) = self.name()?;
            let meaning = match self.names.get(&name) {
                Some(meaning @ (Meaning::State(_) | Meaning::Input(_))) => *meaning,
                _ => return self.fail(place, format!("{name} is no state and no input")),
            };
            let place = self.span();
            let weight = self.number()?;
            if weight < 0.0 {
                return self.fail(place, "a weight is 0 or above");
            }
            self.system.weights.push((meaning, weight));
            if *self.peek() != Kind::Symbol(",") {
                return Ok(());
            }
            self.at += 1;
        }
    }
}
