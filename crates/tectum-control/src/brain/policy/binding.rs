//! A contract met with a body and a network: every name is found, every length agrees.

use tectum::{DType, Error, Result};
use tectum_equations::Unit;
use tectum_onnx::{Network, NetworkPort};

use super::contract::{ActionRule, Contract, Term, TermFunction, TermSource, state_by_name};
use super::schedule::Schedule;
use crate::body::BodySpec;
use crate::nearest::suggestion;

/// How the numbers of a body become inputs, and an output an action.
#[derive(Debug, Clone)]
pub struct Binding {
    pub(super) inputs: Vec<BoundInput>,
    pub(super) states: Vec<BoundState>,
    pub(super) action: BoundAction,
    /// What was assumed, and what is only recorded.
    pub notes: Vec<String>,
}

/// An input that terms fill.
#[derive(Debug, Clone)]
pub(super) struct BoundInput {
    pub name: String,
    pub len: usize,
    pub fills: Vec<Fill>,
}

/// A term: its numbers, and how often they are repeated back in time.
#[derive(Debug, Clone)]
pub(super) struct Fill {
    pub numbers: Vec<Number>,
    pub history: usize,
}

impl Fill {
    pub fn len(&self) -> usize {
        self.numbers.len() * self.history
    }
}

/// clip(function(factor·source) − offset)·scale
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub source: NumberSource,
    pub function: TermFunction,
    pub factor: f64,
    pub offset: f64,
    pub clip: [f64; 2],
    pub scale: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum NumberSource {
    Channel(usize),
    Previous(usize),
    Constant(f64),
    Step,
}

/// An input that is an output of the tick before.
#[derive(Debug, Clone)]
pub(super) struct BoundState {
    pub input: String,
    pub output: String,
    pub len: usize,
}

/// The output that is the action.
#[derive(Debug, Clone)]
pub(super) struct BoundAction {
    pub output: String,
    /// The numbers of a row of the output.
    pub width: usize,
    pub schedule: Schedule,
    pub kind: ActionKind,
    pub clip: [f64; 2],
}

#[derive(Debug, Clone)]
pub(super) enum ActionKind {
    /// For each channel of the body: the number of the row, its factor and what is added.
    Continuous(Vec<(usize, f64, f64)>),
    /// The action for each number of the row.
    Choice(Vec<Vec<f32>>),
    /// The action for each value of an output that is an index.
    Index(Vec<Vec<f32>>),
}

impl Contract {
    /// Checks the contract against a body and a network.
    ///
    /// # Errors
    /// `Invalid`, with the contract's origin, for the first of: a period that is not the body's; an
    /// input, output or channel that does not exist; a length, unit or shape that does not fit; an
    /// input that nothing fills; a channel of the action that is driven twice or not at all.
    pub fn bind(&self, network: &Network, body: &BodySpec) -> Result<Binding> {
        self.bound(network, body)
            .map_err(|error| error.at(&self.origin))
    }

    fn bound(&self, network: &Network, body: &BodySpec) -> Result<Binding> {
        let mut notes = self.assumed.clone();
        notes.extend(
            network
                .assumptions()
                .iter()
                .map(|assumption| format!("{assumption} (assumed)")),
        );
        if let Some(period) = self.period_s
            && (period - body.dt_s).abs() > 1e-6 * body.dt_s
        {
            return Err(Error::invalid(format!(
                "period {period} s; the body {} has one of {} s",
                body.name, body.dt_s
            )));
        }
        let states = self.states(network, &mut notes)?;
        let action = self.bound_action(network, body, &states, &mut notes)?;
        let inputs = self.inputs(network, body, &states, action.width, &mut notes)?;
        for (name, gains) in [
            ("stiffness", &self.action.stiffness),
            ("damping", &self.action.damping),
        ] {
            if !gains.is_empty() {
                notes.push(format!(
                    "{name} {gains:?} of the joints' controllers is not used: the body has its own"
                ));
            }
        }
        Ok(Binding {
            inputs,
            states,
            action,
            notes,
        })
    }

    fn states(&self, network: &Network, notes: &mut Vec<String>) -> Result<Vec<BoundState>> {
        let pairs = if self.state.is_empty() {
            let pairs = state_by_name(network);
            notes.extend(pairs.iter().map(|(input, output)| {
                format!(
                    "input {input} is output {output} of the tick before, by their names (assumed)"
                )
            }));
            pairs
        } else {
            self.state.clone()
        };
        let mut states: Vec<BoundState> = Vec::new();
        for (input, output) in pairs {
            let from = port(network.outputs(), "state: output", &output)?;
            let into = port(network.inputs().iter(), "state: input", &input)?;
            if from.dims != into.dims
                || from.element != into.element
                || from.element.dtype() != DType::F32
            {
                let shown =
                    |port: &NetworkPort| format!("{} {:?} {}", port.name, port.dims, port.element);
                return Err(Error::invalid(format!(
                    "state: output {} cannot become input {}: floats of one shape are needed",
                    shown(from),
                    shown(into)
                )));
            }
            states.push(BoundState {
                input,
                output,
                len: into.dims.iter().product(),
            });
        }
        Ok(states)
    }

    fn inputs(
        &self,
        network: &Network,
        body: &BodySpec,
        states: &[BoundState],
        outputs: usize,
        notes: &mut Vec<String>,
    ) -> Result<Vec<BoundInput>> {
        let open: Vec<&NetworkPort> = network
            .inputs()
            .iter()
            .filter(|input| states.iter().all(|state| state.input != input.name))
            .collect();
        if let Some(input) = open
            .iter()
            .find(|input| input.element.dtype() != DType::F32)
        {
            return Err(Error::invalid(format!(
                "input {} is {}: only floats can be filled from a body",
                input.name, input.element
            )));
        }
        let main = match (&self.input, &open[..]) {
            (Some(name), _) => port(open.iter().copied(), "input", name)?,
            (None, [only]) => *only,
            (None, []) => return Err(Error::invalid("the network has no input that is no state")),
            (None, several) => {
                let named = several
                    .iter()
                    .map(|input| input.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(Error::invalid(format!(
                    "the network has several inputs ({named}); `input` names the one that the terms fill"
                )));
            }
        };
        if self.observation.is_empty() {
            let (len, channels) = (main.dims.iter().product::<usize>(), body.observation.len());
            let names = body
                .observation
                .iter()
                .map(|channel| channel.name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            if len != channels || open.len() > 1 {
                let shape = format!(
                    "input {} {:?} has {len} numbers, the body {} {channels} ({names})",
                    main.name, main.dims, body.name
                );
                return Err(Error::invalid(format!(
                    "{shape}, and no contract states what they are; `tectum init` writes one to fill in"
                )));
            }
            notes.push(format!(
                "input {} is {names} in this order and in the body's units (assumed)",
                main.name
            ));
            let numbers = (0..channels)
                .map(|channel| Number {
                    source: NumberSource::Channel(channel),
                    ..Number::default()
                })
                .collect();
            return Ok(vec![BoundInput {
                name: main.name.clone(),
                len,
                fills: vec![Fill {
                    numbers,
                    history: 1,
                }],
            }]);
        }
        let mut bound: Vec<BoundInput> = Vec::new();
        for term in &self.observation {
            let input = match &term.input {
                Some(name) => port(
                    open.iter().copied(),
                    &format!("{}: input", term.place),
                    name,
                )?,
                None => main,
            };
            let fill = term.bound(body, outputs)?;
            match bound.iter_mut().find(|bound| bound.name == input.name) {
                Some(bound) => bound.fills.push(fill),
                None => bound.push(BoundInput {
                    name: input.name.clone(),
                    len: input.dims.iter().product(),
                    fills: vec![fill],
                }),
            }
        }
        for input in &open {
            let Some(filled) = bound.iter().find(|bound| bound.name == input.name) else {
                return Err(Error::invalid(format!(
                    "input {} {:?} is filled by no term and is no state",
                    input.name, input.dims
                )));
            };
            let sizes: Vec<String> = filled
                .fills
                .iter()
                .map(|fill| fill.len().to_string())
                .collect();
            let sum: usize = filled.fills.iter().map(Fill::len).sum();
            if sum != filled.len {
                return Err(Error::invalid(format!(
                    "input {} {:?} has {} numbers, its terms {} = {sum}",
                    input.name,
                    input.dims,
                    filled.len,
                    sizes.join(" + ")
                )));
            }
        }
        Ok(bound)
    }

    fn bound_action(
        &self,
        network: &Network,
        body: &BodySpec,
        states: &[BoundState],
        notes: &mut Vec<String>,
    ) -> Result<BoundAction> {
        let rule = &self.action;
        let output = match &self.output {
            Some(name) => port(network.outputs(), "output", name)?,
            None => {
                let open: Vec<&NetworkPort> = network
                    .outputs()
                    .filter(|output| states.iter().all(|state| state.output != output.name))
                    .collect();
                let first = *open
                    .first()
                    .ok_or_else(|| Error::invalid("the network has no output that is no state"))?;
                if open.len() > 1 {
                    notes.push(format!(
                        "output {} is the action: the first that is no state (assumed)",
                        first.name
                    ));
                }
                first
            }
        };
        let len: usize = output.dims.iter().product();
        let clip = rule.clip.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        let discrete = match &body.action[..] {
            [only] if only.discrete => Some(vec![vec![only.low], vec![only.high]]),
            _ => None,
        };
        let schedule = Schedule::of(rule, states.first().map(|state| state.input.as_str()))?;
        let single = || match schedule.chunk {
            1 => Ok(Schedule::default()),
            rows => Err(Error::invalid(format!(
                "action: chunk {rows}: output {} {:?} chooses one action, it has no rows",
                output.name, output.dims
            ))),
        };
        let choices = rule.choices(body)?;
        if output.element.dtype() == DType::I32 {
            if len != 1 {
                return Err(Error::invalid(format!(
                    "output {} {:?} {} is no single index",
                    output.name, output.dims, output.element
                )));
            }
            let choices = choices.or(discrete).ok_or_else(|| {
                Error::invalid(format!(
                    "output {} is an index: `choices` gives the action for each",
                    output.name
                ))
            })?;
            return Ok(BoundAction {
                output: output.name.clone(),
                width: 1,
                schedule: single()?,
                kind: ActionKind::Index(choices),
                clip,
            });
        }
        if let Some(choices) = choices {
            if choices.len() != len {
                return Err(Error::invalid(format!(
                    "action: {} choices for output {} {:?} of {len} numbers",
                    choices.len(),
                    output.name,
                    output.dims
                )));
            }
            return Ok(BoundAction {
                output: output.name.clone(),
                width: len,
                schedule: single()?,
                kind: ActionKind::Choice(choices),
                clip,
            });
        }
        let channels = rule.channels(body)?;
        let width = channels.len();
        if let (Some(choices), None, false) = (discrete, &rule.channels, len == width)
            && len == choices.len()
        {
            let (low, high) = (choices[0][0], choices[1][0]);
            notes.push(format!(
                "the greatest of output {} chooses {low} or {high} {} of {} (assumed)",
                output.name, body.action[0].unit, body.action[0].name
            ));
            return Ok(BoundAction {
                output: output.name.clone(),
                width: len,
                schedule: single()?,
                kind: ActionKind::Choice(choices),
                clip,
            });
        }
        let rows = output.dims.iter().rev().skip(1).product::<usize>();
        let is_chunk = output.dims.last() == Some(&width) && rows >= rule.chunk.max(1);
        if !(len == width && rule.chunk <= 1 || is_chunk && (rows == 1 || rule.chunk > 1)) {
            let names = channels
                .iter()
                .map(|channel| body.action[*channel].name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            let chunk = if rule.chunk > 1 {
                format!(" in {} rows", rule.chunk)
            } else {
                String::new()
            };
            return Err(Error::invalid(format!(
                "output {} {:?} for the {width} channels {names}{chunk}: the sizes differ",
                output.name, output.dims
            )));
        }
        if rule.channels.is_none() {
            let names = body
                .action
                .iter()
                .map(|channel| channel.name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            notes.push(format!(
                "output {} is {names} in this order (assumed)",
                output.name
            ));
        }
        let (scale, offset) = (
            per_number("action: scale", &rule.scale, width, 1.0)?,
            per_number("action: offset", &rule.offset, width, 0.0)?,
        );
        let mut driven = vec![(0, 0.0, 0.0); body.action.len()];
        for (index, &channel) in channels.iter().enumerate() {
            let own = &body.action[channel];
            let factor = rule
                .unit
                .as_deref()
                .map_or(Ok(1.0), |unit| factor("action", unit, &own.unit, &own.name))?;
            driven[channel] = (index, scale[index] * factor, offset[index] * factor);
        }
        Ok(BoundAction {
            output: output.name.clone(),
            width,
            schedule,
            kind: ActionKind::Continuous(driven),
            clip,
        })
    }
}

impl Default for Number {
    fn default() -> Self {
        let clip = [f64::NEG_INFINITY, f64::INFINITY];
        Self {
            source: NumberSource::Constant(0.0),
            function: TermFunction::Identity,
            factor: 1.0,
            offset: 0.0,
            clip,
            scale: 1.0,
        }
    }
}

impl Term {
    fn bound(&self, body: &BodySpec, outputs: usize) -> Result<Fill> {
        let place = &self.place;
        let sources: Vec<(NumberSource, f64)> = match &self.source {
            TermSource::Channels(names) => {
                let mut sources = Vec::new();
                for channel in names
                    .iter()
                    .map(|name| observed(body, name))
                    .collect::<Result<Vec<_>>>()
                    .map_err(|error| error.at(place))?
                    .into_iter()
                    .flatten()
                {
                    let own = &body.observation[channel];
                    let factor = self
                        .unit
                        .as_deref()
                        .map_or(Ok(1.0), |unit| factor(place, &own.unit, unit, &own.name))?;
                    sources.push((NumberSource::Channel(channel), factor));
                }
                sources
            }
            TermSource::PreviousAction => (0..outputs)
                .map(|index| (NumberSource::Previous(index), 1.0))
                .collect(),
            TermSource::Constant(numbers) => numbers
                .iter()
                .map(|number| (NumberSource::Constant(*number), 1.0))
                .collect(),
            TermSource::Step => vec![(NumberSource::Step, 1.0)],
        };
        let count = sources.len();
        let offset = per_number(&format!("{place}: offset"), &self.offset, count, 0.0)?;
        let scale = per_number(&format!("{place}: scale"), &self.scale, count, 1.0)?;
        let clip = self.clip.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        let number = |(index, (source, factor)): (usize, (NumberSource, f64))| {
            let angle = if self.function == TermFunction::Identity {
                factor
            } else {
                self.radians(body, source).unwrap_or(factor)
            };
            Number {
                source,
                function: self.function,
                factor: angle,
                offset: offset[index],
                clip,
                scale: scale[index],
            }
        };
        Ok(Fill {
            numbers: sources.into_iter().enumerate().map(number).collect(),
            history: self.history.max(1),
        })
    }

    /// Radians of one unit of an angle's channel.
    fn radians(&self, body: &BodySpec, source: NumberSource) -> Option<f64> {
        let NumberSource::Channel(channel) = source else {
            return None;
        };
        match body.observation[channel].kind {
            crate::body::ChannelKind::Angle { rad_per_unit } => Some(rad_per_unit),
            crate::body::ChannelKind::Linear => None,
        }
    }
}

impl ActionRule {
    /// The channels of the body that the output drives, in its order; each of the body is driven
    /// once.
    fn channels(&self, body: &BodySpec) -> Result<Vec<usize>> {
        let Some(names) = &self.channels else {
            return Ok((0..body.action.len()).collect());
        };
        let mut channels = Vec::new();
        for name in names {
            let known = body.action.iter().map(|channel| channel.name.as_str());
            let found = body.action.iter().position(|channel| channel.name == *name);
            let channel = found.ok_or_else(|| {
                let all = body
                    .action
                    .iter()
                    .map(|channel| channel.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                Error::invalid(format!(
                    "action: the body {} has no channel {name:?}{}; it has {all}",
                    body.name,
                    suggestion(name, known)
                ))
            })?;
            if channels.contains(&channel) {
                return Err(Error::invalid(format!(
                    "action: channel {name} is named twice"
                )));
            }
            channels.push(channel);
        }
        match body
            .action
            .iter()
            .enumerate()
            .find(|(index, _)| !channels.contains(index))
        {
            Some((_, channel)) => Err(Error::invalid(format!(
                "action: channel {} of the body {} is not driven",
                channel.name, body.name
            ))),
            None => Ok(channels),
        }
    }

    /// The actions to choose from, in the body's order.
    fn choices(&self, body: &BodySpec) -> Result<Option<Vec<Vec<f32>>>> {
        if self.choices.is_empty() {
            return Ok(None);
        }
        let channels = self.channels(body)?;
        let mut choices = Vec::new();
        for (index, choice) in self.choices.iter().enumerate() {
            if choice.len() != channels.len() {
                return Err(Error::invalid(format!(
                    "action: choice {} has {} numbers for {} channels",
                    index + 1,
                    choice.len(),
                    channels.len()
                )));
            }
            let mut action = vec![0.0; body.action.len()];
            for (number, &channel) in choice.iter().zip(&channels) {
                let own = &body.action[channel];
                let factor = self
                    .unit
                    .as_deref()
                    .map_or(Ok(1.0), |unit| factor("action", unit, &own.unit, &own.name))?;
                let value = (number * factor) as f32;
                if !(own.low..=own.high).contains(&value) {
                    return Err(Error::invalid(format!(
                        "action: choice {}: {value} {} is outside {} to {} of {}",
                        index + 1,
                        own.unit,
                        own.low,
                        own.high,
                        own.name
                    )));
                }
                action[channel] = value;
            }
            choices.push(action);
        }
        Ok(Some(choices))
    }
}

/// The channels of a name: one, or those that `NAME.*` represents: NAME itself or all that begin
/// with `NAME.`.
fn observed(body: &BodySpec, name: &str) -> Result<Vec<usize>> {
    let matching: Vec<usize> = match name.strip_suffix(".*") {
        Some(stem) => {
            let belongs = |channel: &str| {
                channel == stem
                    || channel
                        .strip_prefix(stem)
                        .is_some_and(|rest| rest.starts_with('.'))
            };
            (0..body.observation.len())
                .filter(|index| belongs(&body.observation[*index].name))
                .collect()
        }
        None => body
            .observation
            .iter()
            .position(|channel| channel.name == name)
            .into_iter()
            .collect(),
    };
    if !matching.is_empty() {
        return Ok(matching);
    }
    let known = body.observation.iter().map(|channel| channel.name.as_str());
    let all = known.clone().collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!(
        "the body {} has no channel {name:?}{}; it has {all}",
        body.name,
        suggestion(name, known)
    )))
}

/// One number for all, or one for each.
fn per_number(what: &str, numbers: &[f64], count: usize, default: f64) -> Result<Vec<f64>> {
    match numbers {
        [] => Ok(vec![default; count]),
        [one] => Ok(vec![*one; count]),
        several if several.len() == count => Ok(several.to_vec()),
        several => Err(Error::invalid(format!(
            "{what} has {} numbers for {count}",
            several.len()
        ))),
    }
}

/// How many of one unit another is.
fn factor(place: &str, from: &str, to: &str, channel: &str) -> Result<f64> {
    if from == to {
        return Ok(1.0);
    }
    let unit = |text: &str| {
        Unit::parse(text).ok_or_else(|| Error::invalid(format!("{place}: {text:?} is no unit")))
    };
    let (one, other) = (unit(from)?, unit(to)?);
    if one.dimension != other.dimension {
        return Err(Error::invalid(format!(
            "{place}: {channel}: {from} cannot be converted to {to}"
        )));
    }
    Ok(one.scale / other.scale)
}

fn port<'p>(
    ports: impl Iterator<Item = &'p NetworkPort>,
    what: &str,
    name: &str,
) -> Result<&'p NetworkPort> {
    let mut known = Vec::new();
    for port in ports {
        if port.name == name {
            return Ok(port);
        }
        known.push(port.name.as_str());
    }
    Err(Error::invalid(format!(
        "{what} {name:?} does not exist{}; there are {}",
        suggestion(name, known.iter().copied()),
        known.join(", ")
    )))
}
