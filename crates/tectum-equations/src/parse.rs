//! Statements: declarations, equations and what a controller needs to know.

mod expression;

use std::collections::HashMap;

use tectum::Result;

use self::expression::{Type, Typed};
use super::diagnostic::{Source, Span};
use super::expression::{Expressions, Id, Node, Variable};
use super::lexer::{Kind, Token, tokens};
use super::operation::Comparison;
use super::system::{Event, Goal, Input, Integrator, Noise, Observation, Parameter, Start, State, System, Tapes};
use super::unit::{Dimension, Unit};

/// Maximum numbers of what a file declares.
const MAX_PARAMETERS: usize = 256;
const MAX_STATES: usize = 64;
const MAX_INPUTS: usize = 16;
/// Maximum nodes of all expressions.
const MAX_NODES: usize = 100_000;
/// Maximum length of a file in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Maximum steps in a period.
const MAX_SUBSTEPS: u32 = 1_000;
/// Maximum length of a period in seconds.
const MAX_PERIOD_S: f64 = 1e6;

/// Words that begin statements, or have a meaning in them, and so are no names.
const KEYWORDS: [&str; 29] = [
    "body",
    "period",
    "integrate",
    "steps",
    "parameter",
    "state",
    "input",
    "noise",
    "observe",
    "reward",
    "terminate",
    "when",
    "keep",
    "within",
    "as",
    "weigh",
    "in",
    "start",
    "equilibrium",
    "safe",
    "discrete",
    "wraps",
    "scale",
    "if",
    "then",
    "else",
    "and",
    "or",
    "not",
];

/// A name in scope.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Value(Typed),
    State(u16),
    Input(u16),
}

pub(crate) struct Parser<'t> {
    source: Source<'t>,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    expressions: Expressions,
    names: HashMap<String, Meaning>,
    system: Draft,
}

/// What the statements so far declare.
#[derive(Default)]
struct Draft {
    name: Option<String>,
    period_s: Option<f64>,
    integrator: Option<(Integrator, u32)>,
    parameters: Vec<Parameter>,
    states: Vec<State>,
    inputs: Vec<Input>,
    noises: Vec<Noise>,
    observations: Vec<Observation>,
    /// The rate of each state, in the order of the file.
    rates: Vec<(u16, Id)>,
    events: Vec<Event>,
    reward: Option<Id>,
    terminated: Option<Id>,
    goal: Option<Goal>,
    weights: Vec<(Meaning, f64)>,
}

/// Reads a whole file.
pub(crate) fn parse(text: &str, origin: &str) -> Result<System> {
    let source = Source { origin, text };
    if text.len() > MAX_BYTES {
        return Err(source.error(Span { line: 1, column: 1 }, format!("the file has {} bytes; at most {MAX_BYTES}", text.len())));
    }
    let tokens = tokens(source)?;
    let mut parser = Parser { source, tokens, at: 0, depth: 0, expressions: Expressions::default(), names: HashMap::new(), system: Draft::default() };
    while *parser.peek() != Kind::EndOfFile {
        parser.statement()?;
    }
    parser.finish()
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<()> {
        let Token { kind, span } = self.tokens[self.at].clone();
        let Kind::Name(word) = kind else { return self.fail(span, "a statement begins with a keyword, with a name and =, or with d/dt") };
        if self.is_rate(&word) {
            self.at += 3;
            return self.rate().and_then(|()| self.end());
        }
        self.at += 1;
        match word.as_str() {
            "body" => self.body(span),
            "period" => self.period(span),
            "integrate" => self.integrate(span),
            "parameter" => self.parameter(),
            "state" => self.state(),
            "input" => self.input(),
            "noise" => self.noise(),
            "observe" => self.observe(),
            "reward" => self.reward(span),
            "terminate" => self.terminate(span),
            "when" => self.event(),
            "keep" => self.keep(span),
            "weigh" => self.weigh(),
            _ if KEYWORDS.contains(&word.as_str()) => self.fail(span, format!("{word} begins no statement")),
            _ => self.definition(word, span),
        }?;
        self.end()
    }

    fn is_rate(&self, word: &str) -> bool {
        let kind = |ahead: usize| self.tokens.get(self.at + ahead).map(|token| &token.kind);
        word == "d" && kind(1) == Some(&Kind::Symbol("/")) && kind(2) == Some(&Kind::Name("dt".to_owned()))
    }

    fn body(&mut self, span: Span) -> Result<()> {
        self.once(self.system.name.is_some(), span, "body")?;
        let (name, _) = self.name()?;
        self.system.name = Some(name);
        Ok(())
    }

    fn period(&mut self, span: Span) -> Result<()> {
        self.once(self.system.period_s.is_some(), span, "period")?;
        let place = self.span();
        let seconds = self.quantity(Unit { dimension: Dimension::TIME, scale: 1.0 })?;
        if !(seconds > 0.0 && seconds <= MAX_PERIOD_S) {
            return self.fail(place, format!("the period is {seconds} s; needs above 0, at most {MAX_PERIOD_S} s"));
        }
        self.system.period_s = Some(seconds);
        Ok(())
    }

    fn integrate(&mut self, span: Span) -> Result<()> {
        self.once(self.system.integrator.is_some(), span, "integrate")?;
        let (method, place) = self.word("euler, semi_implicit or rk4")?;
        let integrator = match method.as_str() {
            "euler" => Integrator::Euler,
            "semi_implicit" => Integrator::SemiImplicit,
            "rk4" => Integrator::RungeKutta4,
            _ => return self.fail(place, format!("{method} is no integrator; known: euler, semi_implicit, rk4")),
        };
        let mut steps = 1;
        if self.takes("steps") {
            let place = self.span();
            let number = self.number()?;
            if !(number.fract() == 0.0 && (1.0..=f64::from(MAX_SUBSTEPS)).contains(&number)) {
                return self.fail(place, format!("{number} steps in a period; needs a whole number from 1 to {MAX_SUBSTEPS}"));
            }
            steps = number as u32;
        }
        self.system.integrator = Some((integrator, steps));
        Ok(())
    }

    /// `parameter NAME = NUMBER UNIT [in LOW .. HIGH]`
    fn parameter(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(self.system.parameters.len(), MAX_PARAMETERS, place, "parameters")?;
        self.symbol("=")?;
        let number = self.number()?;
        let (unit, unit_text) = self.unit()?.unwrap_or((Unit::NONE, String::new()));
        let range = if self.takes("in") { self.range(unit)? } else { [f64::NEG_INFINITY, f64::INFINITY] };
        let value = number * unit.scale;
        if !(range[0]..=range[1]).contains(&value) {
            return self.fail(place, format!("{name} is {number} {unit_text}, which is outside its own range"));
        }
        let id = self.expressions.add(Node::Variable(Variable::Parameter(self.system.parameters.len() as u16)));
        self.names.insert(name.clone(), Meaning::Value(Typed { id, ty: Type::Number(unit.dimension), span: place }));
        self.system.parameters.push(Parameter { name, unit_text, unit, value, range });
        Ok(())
    }

    /// `state NAME: UNIT [start VALUE | start uniform(LOW, HIGH)] [in LOW .. HIGH] [equilibrium VALUE]`
    fn state(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(self.system.states.len(), MAX_STATES, place, "states")?;
        let (unit, unit_text) = self.declared_unit()?;
        let zero = self.expressions.constant(0.0);
        let mut state = State { name: name.clone(), unit_text, unit, range: None, start: Start::At(zero), equilibrium: zero };
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
        self.names.insert(name, Meaning::State(self.system.states.len() as u16));
        self.system.states.push(state);
        Ok(())
    }

    /// `input NAME: UNIT in LOW .. HIGH [safe VALUE] [equilibrium VALUE] [discrete]`
    fn input(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(self.system.inputs.len(), MAX_INPUTS, place, "inputs")?;
        let (unit, unit_text) = self.declared_unit()?;
        if !self.takes("in") {
            return self.fail(self.span(), format!("input {name} needs its limits: in LOW .. HIGH"));
        }
        let range = self.range(unit)?.map(|bound| bound / unit.scale);
        let zero = self.expressions.constant(0.0);
        let mut input = Input { name: name.clone(), unit_text, unit, range, is_discrete: false, safe: 0f64.clamp(range[0], range[1]), equilibrium: zero };
        loop {
            let place = self.span();
            if self.takes("safe") {
                input.safe = self.quantity(unit)? / unit.scale;
                if !(range[0]..=range[1]).contains(&input.safe) {
                    return self.fail(place, format!("the safe value of {name} is outside its limits"));
                }
            } else if self.takes("equilibrium") {
                input.equilibrium = self.fixed(unit)?;
            } else if self.takes("discrete") {
                input.is_discrete = true;
            } else {
                break;
            }
        }
        self.names.insert(name, Meaning::Input(self.system.inputs.len() as u16));
        self.system.inputs.push(input);
        Ok(())
    }

    /// `noise NAME: UNIT normal(DEVIATION)` or `uniform(HALF_WIDTH)`
    fn noise(&mut self) -> Result<()> {
        let (name, place) = self.new_name()?;
        self.limit(self.system.noises.len(), MAX_INPUTS, place, "noises")?;
        let (unit, _) = self.declared_unit()?;
        let (kind, place) = self.word("normal or uniform")?;
        if !matches!(kind.as_str(), "normal" | "uniform") {
            return self.fail(place, format!("{kind} is no distribution; known: normal, uniform"));
        }
        self.symbol("(")?;
        let scale = self.fixed(unit)?;
        self.symbol(")")?;
        let id = self.expressions.add(Node::Variable(Variable::Noise(self.system.noises.len() as u16)));
        self.names.insert(name.clone(), Meaning::Value(Typed { id, ty: Type::Number(unit.dimension), span: place }));
        self.system.noises.push(Noise { name, scale, is_uniform: kind == "uniform" });
        Ok(())
    }

    /// `NAME = EXPRESSION`
    fn definition(&mut self, name: String, span: Span) -> Result<()> {
        self.refuse_known(&name, span)?;
        if *self.peek() != Kind::Symbol("=") {
            return self.fail(span, format!("{name} is no keyword, and a definition continues with ="));
        }
        self.at += 1;
        let value = self.expression()?;
        self.names.insert(name, Meaning::Value(value));
        Ok(())
    }

    /// `d/dt NAME = EXPRESSION`
    fn rate(&mut self) -> Result<()> {
        let (number, name, place) = self.state_name()?;
        if self.system.rates.iter().any(|(known, _)| *known == number) {
            return self.fail(place, format!("d/dt {name} is given twice"));
        }
        self.symbol("=")?;
        let rate = self.expression()?;
        let unit = self.system.states[usize::from(number)].unit.dimension;
        let needed = unit.over(Dimension::TIME).ok_or_else(|| self.source.error(place, "the unit's exponents are too large"))?;
        self.needs(&rate, needed, &format!("d/dt {name}"))?;
        self.system.rates.push((number, rate.id));
        Ok(())
    }

    /// `observe NAME: UNIT = EXPRESSION [wraps] [in LOW .. HIGH] [scale VALUE]`
    fn observe(&mut self) -> Result<()> {
        let (name, place) = self.name()?;
        if self.system.observations.iter().any(|known| known.name == name) {
            return self.fail(place, format!("{name} is observed twice"));
        }
        self.limit(self.system.observations.len(), MAX_STATES, place, "observations")?;
        let (unit, unit_text) = self.declared_unit()?;
        self.symbol("=")?;
        let value = self.expression()?;
        self.needs(&value, unit.dimension, &format!("observation {name}"))?;
        if self.expressions.tape([value.id]).reads(&self.expressions, |variable| matches!(variable, Variable::Input(_) | Variable::Noise(_))) {
            return self.fail(value.span, format!("observation {name} depends on an input or on noise; it may depend on states and parameters"));
        }
        let mut observation = Observation { name, unit_text, unit, wraps: false, range: [-1.0, 1.0], scale: 1.0, value: value.id };
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

    fn reward(&mut self, span: Span) -> Result<()> {
        self.once(self.system.reward.is_some(), span, "reward")?;
        self.symbol("=")?;
        let value = self.expression()?;
        self.needs(&value, Dimension::NONE, "the reward")?;
        self.system.reward = Some(value.id);
        Ok(())
    }

    /// `terminate when CONDITION`
    fn terminate(&mut self, span: Span) -> Result<()> {
        self.once(self.system.terminated.is_some(), span, "terminate")?;
        if !self.takes("when") {
            return self.fail(self.span(), "terminate continues with when and a condition");
        }
        self.system.terminated = Some(self.condition()?);
        Ok(())
    }

    /// `when CONDITION: NAME = EXPRESSION, …`
    fn event(&mut self) -> Result<()> {
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
            self.needs(&value, self.system.states[usize::from(number)].unit.dimension, &name)?;
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
    fn keep(&mut self, span: Span) -> Result<()> {
        self.once(self.system.goal.is_some(), span, "keep")?;
        let value = self.expression()?;
        if self.expressions.tape([value.id]).reads(&self.expressions, |variable| matches!(variable, Variable::Input(_) | Variable::Noise(_))) {
            return self.fail(value.span, "what is kept depends on states and parameters");
        }
        if !self.takes("within") {
            return self.fail(self.span(), "keep EXPRESSION continues with within and a bound");
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
            let Token { kind: Kind::Text(text), .. } = self.tokens[self.at].clone() else { return self.fail(self.span(), "a label is a text in quotes") };
            self.at += 1;
            label = text;
        }
        self.system.goal = Some(Goal { label, unit_text, unit, bound: number * unit.scale, value: value.id });
        Ok(())
    }

    /// `weigh NAME WEIGHT, …`
    fn weigh(&mut self) -> Result<()> {
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

    fn finish(mut self) -> Result<System> {
        let end = self.span();
        let draft = std::mem::take(&mut self.system);
        let name = draft.name.ok_or_else(|| self.source.error(Span { line: 1, column: 1 }, "the file names no body: body NAME"))?;
        let period_s = draft.period_s.ok_or_else(|| self.source.error(end, "the file has no period: period NUMBER ms"))?;
        if draft.states.is_empty() || draft.inputs.is_empty() || draft.observations.is_empty() {
            return self.fail(end, "a body has at least one state, one input and one observation");
        }
        let missing = (0..draft.states.len()).find(|number| !draft.rates.iter().any(|(known, _)| usize::from(*known) == *number));
        if let Some(number) = missing {
            return self.fail(end, format!("state {} has no equation: d/dt {0} = …", draft.states[number].name));
        }
        let (integrator, substeps) = draft.integrator.unwrap_or((Integrator::RungeKutta4, 1));
        let never = {
            let one = self.expressions.constant(1.0);
            self.expressions.add(Node::Compare(Comparison::Less, one, one))
        };
        let reward = draft.reward.unwrap_or_else(|| self.expressions.constant(0.0));
        let expressions = self.expressions;
        let tapes = Tapes {
            order: draft.rates.iter().map(|(number, _)| *number).collect(),
            rates: expressions.tape(draft.rates.iter().map(|(_, id)| *id)),
            rate: draft.rates.iter().map(|(_, id)| expressions.tape([*id])).collect(),
            events: draft.events.iter().map(|event| expressions.tape([event.condition].into_iter().chain(event.resets.iter().map(|(_, id)| *id)))).collect(),
            outcome: expressions.tape([reward, draft.terminated.unwrap_or(never)]),
            observations: expressions.tape(draft.observations.iter().map(|observation| observation.value)),
            goal: expressions.tape(draft.goal.iter().map(|goal| goal.value)),
        };
        let mut weights = (vec![0.0; draft.states.len()], vec![0.0; draft.inputs.len()]);
        for (meaning, weight) in draft.weights {
            match meaning {
                Meaning::State(number) => weights.0[usize::from(number)] = weight,
                Meaning::Input(number) => weights.1[usize::from(number)] = weight,
                Meaning::Value(_) => {}
            }
        }
        Ok(System {
            name,
            period_s,
            integrator,
            substeps,
            parameters: draft.parameters,
            states: draft.states,
            inputs: draft.inputs,
            noises: draft.noises,
            observations: draft.observations,
            events: draft.events,
            goal: draft.goal,
            weights,
            expressions,
            tapes,
        })
    }

    // Tokens.

    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn fail<T>(&self, span: Span, message: impl std::fmt::Display) -> Result<T> {
        Err(self.source.error(span, message))
    }

    fn once(&self, is_there: bool, span: Span, what: &str) -> Result<()> {
        if is_there { self.fail(span, format!("{what} is given twice")) } else { Ok(()) }
    }

    fn limit(&self, count: usize, maximum: usize, span: Span, what: &str) -> Result<()> {
        if count >= maximum { self.fail(span, format!("more than {maximum} {what}")) } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        match self.peek() {
            Kind::EndOfLine => self.at += 1,
            Kind::EndOfFile => {}
            _ => return self.fail(self.span(), format!("{} is not expected here; a statement ends with its line", self.shown())),
        }
        self.limit(self.expressions.len(), MAX_NODES, self.tokens[self.at.saturating_sub(1)].span, "operations")
    }

    /// The present token, for messages.
    fn shown(&self) -> String {
        match self.peek() {
            Kind::Number(number) => number.to_string(),
            Kind::Name(name) => name.clone(),
            Kind::Text(text) => format!("{text:?}"),
            Kind::Symbol(symbol) => (*symbol).to_owned(),
            Kind::EndOfLine => "the end of the line".to_owned(),
            Kind::EndOfFile => "the end of the file".to_owned(),
        }
    }

    fn symbol(&mut self, symbol: &'static str) -> Result<()> {
        if *self.peek() != Kind::Symbol(symbol) {
            return self.fail(self.span(), format!("expected {symbol}, found {}", self.shown()));
        }
        self.at += 1;
        Ok(())
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Kind::Name(name) if name == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn word(&mut self, expected: &str) -> Result<(String, Span)> {
        let span = self.span();
        let Kind::Name(name) = self.peek().clone() else { return self.fail(span, format!("expected {expected}, found {}", self.shown())) };
        self.at += 1;
        Ok((name, span))
    }

    fn name(&mut self) -> Result<(String, Span)> {
        let (name, span) = self.word("a name")?;
        if KEYWORDS.contains(&name.as_str()) {
            return self.fail(span, format!("{name} is a keyword, not a name"));
        }
        Ok((name, span))
    }

    fn new_name(&mut self) -> Result<(String, Span)> {
        let (name, span) = self.name()?;
        self.refuse_known(&name, span)?;
        Ok((name, span))
    }

    fn refuse_known(&self, name: &str, span: Span) -> Result<()> {
        let is_known = self.names.contains_key(name) || expression::is_function(name);
        if is_known { self.fail(span, format!("{name} is defined already")) } else { Ok(()) }
    }

    fn state_name(&mut self) -> Result<(u16, String, Span)> {
        let (name, span) = self.name()?;
        match self.names.get(&name) {
            Some(Meaning::State(number)) => Ok((*number, name, span)),
            _ => self.fail(span, format!("{name} is no state that is declared above")),
        }
    }

    // Numbers with units.

    /// A number with its sign, without a unit.
    fn number(&mut self) -> Result<f64> {
        let sign = if *self.peek() == Kind::Symbol("-") { -1.0 } else { 1.0 };
        self.at += usize::from(sign < 0.0);
        let Kind::Number(number) = *self.peek() else { return self.fail(self.span(), format!("expected a number, found {}", self.shown())) };
        self.at += 1;
        Ok(sign * number)
    }

    /// A number in a unit of its own or in the given one; in base units.
    fn quantity(&mut self, unit: Unit) -> Result<f64> {
        let number = self.number()?;
        let span = self.span();
        let (own, text) = self.unit()?.unwrap_or((unit, String::new()));
        if own.dimension != unit.dimension {
            return self.fail(span, format!("{text} is {}; expected {}", own.dimension, unit.dimension));
        }
        Ok(number * own.scale)
    }

    /// `LOW .. HIGH`, in base units.
    fn range(&mut self, unit: Unit) -> Result<[f64; 2]> {
        let span = self.span();
        let low_number = self.number()?;
        let low_unit = self.unit()?;
        self.symbol("..")?;
        let high_number = self.number()?;
        let high_unit = self.unit()?;
        // A unit after the second number alone holds for both.
        let of = |own: Option<(Unit, String)>| own.map_or(unit, |(unit, _)| unit);
        let high_unit = of(high_unit);
        let low_unit = low_unit.map_or(high_unit, |(unit, _)| unit);
        if [low_unit, high_unit].iter().any(|own| own.dimension != unit.dimension) {
            return self.fail(span, format!("the range is in {}; expected {}", low_unit.dimension, unit.dimension));
        }
        let range = [low_number * low_unit.scale, high_number * high_unit.scale];
        if range[0] >= range[1] {
            return self.fail(span, "the range is empty: its first number is not below its second");
        }
        Ok(range)
    }

    /// `: UNIT`; `: 1` for a plain number.
    fn declared_unit(&mut self) -> Result<(Unit, String)> {
        self.symbol(":")?;
        if *self.peek() == Kind::Number(1.0) && !matches!(self.tokens[self.at + 1].kind, Kind::Symbol("/")) {
            self.at += 1;
            return Ok((Unit::NONE, String::new()));
        }
        let span = self.span();
        match self.unit()? {
            Some(unit) => Ok(unit),
            None => self.fail(span, format!("expected a unit (1 for a plain number), found {}", self.shown())),
        }
    }

    /// A unit such as `m/s^2`, with or without brackets, if one follows.
    fn unit(&mut self) -> Result<Option<(Unit, String)>> {
        let has_brackets = *self.peek() == Kind::Symbol("[");
        let begins = match self.peek() {
            Kind::Name(name) => !KEYWORDS.contains(&name.as_str()),
            Kind::Number(number) => *number == 1.0 && self.tokens[self.at + 1].kind == Kind::Symbol("/"),
            _ => has_brackets,
        };
        if !begins {
            return Ok(None);
        }
        self.at += usize::from(has_brackets);
        let (mut unit, mut text) = (Unit::NONE, String::new());
        let mut sign = 1;
        loop {
            let (factor, factor_text) = self.unit_factor(sign)?;
            let span = self.span();
            unit = unit.times(factor, 1).ok_or_else(|| self.source.error(span, "the unit's exponents are too large"))?;
            text.push_str(&factor_text);
            sign = match self.peek() {
                Kind::Symbol("*") => 1,
                Kind::Symbol("/") => -1,
                _ => break,
            };
            text.push(if sign > 0 { '*' } else { '/' });
            self.at += 1;
        }
        if has_brackets {
            self.symbol("]")?;
        }
        Ok(Some((unit, text)))
    }

    fn unit_factor(&mut self, sign: i32) -> Result<(Unit, String)> {
        let span = self.span();
        if *self.peek() == Kind::Number(1.0) {
            self.at += 1;
            return Ok((Unit::NONE, "1".to_owned()));
        }
        let (name, _) = self.word("a unit")?;
        let unit = Unit::named(&name)
            .ok_or_else(|| self.source.error(span, format!("{name} is no unit; known: m, g, s, A, K, N, J, W, V, rad, deg, … with prefixes")))?;
        let (mut exponent, mut text) = (1, name);
        if *self.peek() == Kind::Symbol("^") {
            self.at += 1;
            let place = self.span();
            let number = self.number()?;
            if number.fract() != 0.0 || !(1.0..=12.0).contains(&number.abs()) {
                return self.fail(place, "the exponent of a unit is a whole number from 1 to 12, or below 0");
            }
            exponent = number as i32;
            text = format!("{text}^{exponent}");
        }
        let unit = Unit::NONE.times(unit, sign * exponent).ok_or_else(|| self.source.error(span, "the unit's exponents are too large"))?;
        Ok((unit, text))
    }

    /// An expression over parameters, of a unit; a number alone is in that unit.
    fn fixed(&mut self, unit: Unit) -> Result<Id> {
        let begin = self.at;
        if let Ok(number) = self.quantity(unit)
            && matches!(self.peek(), Kind::EndOfLine | Kind::Symbol("," | ")") | Kind::Name(_))
        {
            return Ok(self.expressions.constant(number));
        }
        self.at = begin;
        let value = self.expression()?;
        if self.expressions.tape([value.id]).reads(&self.expressions, |variable| !matches!(variable, Variable::Parameter(_))) {
            return self.fail(value.span, "this depends on more than parameters");
        }
        self.needs(&value, unit.dimension, "this value")?;
        Ok(value.id)
    }
}
