//! Reading a file: its statements one after another, then the whole.

mod expression;
mod quantity;
mod statement;
mod token;

use std::collections::{HashMap, HashSet};

use tectum::Result;

use self::expression::Typed;
use super::diagnostic::{Source, Span};
use super::expression::{Expressions, Id, Node};
use super::lexer::{Kind, Token, tokens};
use super::operation::Comparison;
use super::system::{
    Event, Goal, Input, Integrator, Noise, Observation, Parameter, State, System, Tapes,
};
use super::unit::Unit;

/// Maximum nodes of all expressions.
const MAX_NODES: usize = 100_000;
/// Maximum length of a file in bytes.
const MAX_BYTES: usize = 1 << 20;

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
    /// What the file declares, with its kind, in order.
    declared: Vec<(&'static str, String, Span)>,
    /// The names that an expression reads.
    read: HashSet<String>,
    system: Draft,
}

/// What the statements so far declare.
#[derive(Default)]
struct Draft {
    name: Option<String>,
    name_span: Span,
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
        return Err(source.error(
            Span { line: 1, column: 1 },
            format!("the file has {} bytes; at most {MAX_BYTES}", text.len()),
        ));
    }
    let mut parser = Parser::of(source)?;
    while *parser.peek() != Kind::EndOfFile {
        parser.statement()?;
    }
    parser.finish()
}

/// The unit that a whole text is, such as `m/s^2`; `None` if it is none.
pub(crate) fn unit(text: &str) -> Option<Unit> {
    // In a file this word begins a range.
    let text = text
        .split_inclusive(|letter: char| !letter.is_alphabetic())
        .map(|part| match part.strip_prefix("in") {
            Some(rest) if !rest.starts_with(char::is_alphabetic) => format!("inch{rest}"),
            _ => part.to_owned(),
        });
    let text = text.collect::<String>();
    let mut parser = Parser::of(Source {
        origin: "",
        text: &text,
    })
    .ok()?;
    let (unit, _) = parser.unit().ok()??;
    parser.end().ok().map(|()| unit)
}

/// A file's text with other values of parameters.
pub(crate) fn text_with(
    system: &System,
    text: &str,
    origin: &str,
    values: &[f64],
) -> Result<String> {
    assert_eq!(
        values.len(),
        system.parameters().len(),
        "values of the parameters of {}",
        system.name()
    );
    let source = Source { origin, text };
    let parser = Parser::of(source)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut written = 0;
    for (at, token) in parser.tokens.iter().enumerate() {
        let kind = |ahead: usize| parser.tokens.get(at + ahead).map(|token| &token.kind);
        let (Kind::Name(word), Some(Kind::Name(name)), Some(Kind::Symbol("="))) =
            (&token.kind, kind(1), kind(2))
        else {
            continue;
        };
        let Some(place) = system
            .parameters()
            .iter()
            .position(|parameter| parameter.name == *name)
            .filter(|_| word == "parameter")
        else {
            continue;
        };
        let Parameter { value, unit, .. } = &system.parameters()[place];
        written += 1;
        if *value == values[place] {
            continue;
        }
        let (line, column) = (
            parser.tokens[at + 3].span.line as usize - 1,
            parser.tokens[at + 3].span.column as usize - 1,
        );
        let letters: Vec<char> = lines[line].chars().collect();
        // The number: a sign, digits, and what belongs to them.
        let is_number = |at: usize| {
            let letter = letters[at];
            let after_e = at > 0 && matches!(letters[at - 1], 'e' | 'E');
            letter.is_ascii_digit()
                || letter == '.'
                || (letter == '-' && (at == column || after_e))
                || (letter == '+' && after_e)
        };
        let is_exponent = |at: usize| {
            matches!(letters[at], 'e' | 'E')
                && letters
                    .get(at + 1)
                    .is_some_and(|next| next.is_ascii_digit() || matches!(next, '+' | '-'))
        };
        let mut end = column;
        while end < letters.len() && (is_number(end) || is_exponent(end)) {
            end += 1;
        }
        lines[line] = format!(
            "{}{}{}",
            letters[..column].iter().collect::<String>(),
            values[place] / unit.scale,
            letters[end..].iter().collect::<String>()
        );
    }
    match written == values.len() {
        true => Ok(lines.join("\n") + "\n"),
        false => Err(source.error(
            Span { line: 1, column: 1 },
            format!("this is not the file of body {}", system.name()),
        )),
    }
}

impl<'t> Parser<'t> {
    fn of(source: Source<'t>) -> Result<Self> {
        let (tokens, expressions) = (tokens(source)?, Expressions::default());
        let (names, declared, read) = (HashMap::new(), Vec::new(), HashSet::new());
        Ok(Self {
            source,
            tokens,
            at: 0,
            depth: 0,
            expressions,
            names,
            declared,
            read,
            system: Draft::default(),
        })
    }
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<()> {
        let Token { kind, span } = self.tokens[self.at].clone();
        let Kind::Name(word) = kind else {
            return self.fail(
                span,
                "a statement begins with a keyword, with a name and =, or with d/dt",
            );
        };
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
            _ if KEYWORDS.contains(&word.as_str()) => {
                self.fail(span, format!("{word} begins no statement"))
            }
            _ => self.definition(word, span),
        }?;
        self.end()
    }

    fn is_rate(&self, word: &str) -> bool {
        let kind = |ahead: usize| self.tokens.get(self.at + ahead).map(|token| &token.kind);
        word == "d"
            && kind(1) == Some(&Kind::Symbol("/"))
            && kind(2) == Some(&Kind::Name("dt".to_owned()))
    }

    /// Adds a name.
    fn declare(&mut self, kind: &'static str, name: String, span: Span, meaning: Meaning) {
        self.declared.push((kind, name.clone(), span));
        self.names.insert(name, meaning);
    }

    /// The names that are declared and never read.
    fn warnings(&self) -> Vec<String> {
        let unused = self
            .declared
            .iter()
            .filter(|(_, name, _)| !self.read.contains(name));
        let warning = |(kind, name, span): &(&str, String, Span)| {
            let keyword = KEYWORDS
                .iter()
                .find(|keyword| keyword.eq_ignore_ascii_case(name));
            let perhaps = keyword.map_or_else(String::new, |keyword| {
                format!("; the statement is written {keyword}")
            });
            format!(
                "{}: line {}: {kind} {name} is never used{perhaps}",
                self.source.origin, span.line
            )
        };
        unused.map(warning).collect()
    }

    fn finish(mut self) -> Result<System> {
        let end = self.span();
        let warnings = self.warnings();
        let draft = std::mem::take(&mut self.system);
        let name = draft.name.ok_or_else(|| {
            self.source.error(
                Span { line: 1, column: 1 },
                "the file names no body: body NAME",
            )
        })?;
        let period_s = draft.period_s.ok_or_else(|| {
            self.source
                .error(draft.name_span, "the file has no period: period NUMBER ms")
        })?;
        if draft.states.is_empty() || draft.inputs.is_empty() || draft.observations.is_empty() {
            return self.fail(
                end,
                "a body has at least one state, one input and one observation",
            );
        }
        let missing = (0..draft.states.len()).find(|number| {
            !draft
                .rates
                .iter()
                .any(|(known, _)| usize::from(*known) == *number)
        });
        if let Some(number) = missing {
            let name = &draft.states[number].name;
            let span = self
                .declared
                .iter()
                .find(|(_, known, _)| known == name)
                .map_or(end, |(.., span)| *span);
            return self.fail(
                span,
                format!("state {name} has no equation: d/dt {name} = …"),
            );
        }
        let (integrator, substeps) = draft.integrator.unwrap_or((Integrator::RungeKutta4, 1));
        let never = {
            let one = self.expressions.constant(1.0);
            self.expressions
                .add(Node::Compare(Comparison::Less, one, one))
        };
        let reward = draft
            .reward
            .unwrap_or_else(|| self.expressions.constant(0.0));
        let expressions = self.expressions;
        let tapes = Tapes {
            order: draft.rates.iter().map(|(number, _)| *number).collect(),
            rates: expressions.tape(draft.rates.iter().map(|(_, id)| *id)),
            rate: draft
                .rates
                .iter()
                .map(|(_, id)| expressions.tape([*id]))
                .collect(),
            events: draft
                .events
                .iter()
                .map(|event| {
                    expressions.tape(
                        [event.condition]
                            .into_iter()
                            .chain(event.resets.iter().map(|(_, id)| *id)),
                    )
                })
                .collect(),
            outcome: expressions.tape([reward, draft.terminated.unwrap_or(never)]),
            observations: expressions.tape(
                draft
                    .observations
                    .iter()
                    .map(|observation| observation.value),
            ),
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
            warnings,
        })
    }
}
