//! A contract met with a body and a network: every name is found, every length agrees.

use std::ops::RangeInclusive;

use tectum::{DType, Error, Result};
use tectum_equations::{Dimension, Unit};
use tectum_onnx::{ElementType, Network, NetworkPort};

use super::contract::{ActionRule, Contract, Term, TermFunction, TermSource, state_by_name};
use super::schedule::Schedule;
use crate::body::{BodySpec, ChannelKind};
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
    /// Whether its elements are integers or truth values.
    pub is_integer: bool,
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
    /// For each channel of the body what it gets.
    Continuous(Vec<Drive>),
    /// The action for each number of the row.
    Choice(Vec<Vec<f32>>),
    /// The action for each value of an output that is an index.
    Index(Vec<Vec<f32>>),
}

/// What a channel of the body's action gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Drive {
    /// A number of the row, multiplied, and a number added.
    Row {
        index: usize,
        scale: f64,
        offset: f64,
    },
    /// The body's safe action: the policy does not drive it.
    Passive(f32),
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
            let pairs = state_by_name(network, &self.named_ports());
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
        let main = match (&self.input, &open[..]) {
            (Some(name), _) => port(open.iter().copied(), "input", name)?,
            (None, [only]) => *only,
            (None, []) if self.observation.is_empty() => return Ok(Vec::new()),
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
            if main.element.dtype() != DType::F32 {
                return Err(Error::invalid(format!(
                    "input {} is {}: only floats can be filled from a body",
                    main.name, main.element
                )));
            }
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
                is_integer: false,
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
            let fill = term.bound(body, outputs, notes)?;
            let is_integer = input.element.dtype() != DType::F32;
            if is_integer {
                fill.check_whole(input)
                    .map_err(|error| error.at(&term.place))?;
            }
            match bound.iter_mut().find(|bound| bound.name == input.name) {
                Some(bound) => bound.fills.push(fill),
                None => bound.push(BoundInput {
                    name: input.name.clone(),
                    len: input.dims.iter().product(),
                    is_integer,
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
        if !rule.passive.is_empty() {
            notes.push(format!(
                "passive channels {} keep the body's safe action",
                rule.passive.join(", ")
            ));
        }
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
        if width == 0 {
            return Err(Error::invalid("action: the policy drives no channel"));
        }
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
            let names = channels
                .iter()
                .map(|channel| body.action[*channel].name.as_str())
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
        let mut driven: Vec<Drive> = body
            .safe_action
            .iter()
            .map(|safe| Drive::Passive(*safe))
            .collect();
        for (index, &channel) in channels.iter().enumerate() {
            let own = &body.action[channel];
            let factor = rule
                .unit
                .as_deref()
                .map_or(Ok(1.0), |unit| factor("action", unit, &own.unit, &own.name))?;
            driven[channel] = Drive::Row {
                index,
                scale: scale[index] * factor,
                offset: offset[index] * factor,
            };
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

/// The numbers that an input of integers can be filled with: devices have 32 bits.
fn integer_range(element: ElementType) -> RangeInclusive<f64> {
    let unsigned = |max: u32| 0.0..=f64::from(max);
    match element {
        ElementType::Bool => unsigned(1),
        ElementType::U8 => unsigned(u8::MAX.into()),
        ElementType::U16 => unsigned(u16::MAX.into()),
        ElementType::U32 | ElementType::U64 => unsigned(i32::MAX as u32),
        ElementType::I8 => i8::MIN.into()..=i8::MAX.into(),
        ElementType::I16 => i16::MIN.into()..=i16::MAX.into(),
        _ => i32::MIN.into()..=i32::MAX.into(),
    }
}

impl Fill {
    /// Refuses numbers that may not be whole, for an input of integers or truth values.
    fn check_whole(&self, input: &NetworkPort) -> Result<()> {
        let refused = |what: &str| {
            Err(Error::invalid(format!(
                "input {} is {}: {what}",
                input.name, input.element
            )))
        };
        for number in &self.numbers {
            let parts = [number.factor, number.offset, number.scale];
            match number.source {
                NumberSource::Constant(value) => {
                    let filled = f64::from(number.value(&[], &[], 0));
                    if filled.fract() != 0.0 || !integer_range(input.element).contains(&filled) {
                        return refused(&format!("{value} is none of its values"));
                    }
                }
                NumberSource::Step
                    if number.function == TermFunction::Identity
                        && parts.iter().all(|part| part.fract() == 0.0) => {}
                NumberSource::Step => return refused("the step becomes a fraction"),
                NumberSource::Channel(_) | NumberSource::Previous(_) => {
                    return refused("only `value` and the step are whole numbers");
                }
            }
        }
        Ok(())
    }
}

impl Term {
    fn bound(&self, body: &BodySpec, outputs: usize, notes: &mut Vec<String>) -> Result<Fill> {
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
        let mut numbers = Vec::new();
        for (index, (source, factor)) in sources.into_iter().enumerate() {
            numbers.push(Number {
                source,
                function: self.function,
                factor: match self.function {
                    TermFunction::Identity => factor,
                    TermFunction::Sin | TermFunction::Cos => self.radians(body, source, notes)?,
                },
                offset: offset[index],
                clip,
                scale: scale[index],
            });
        }
        Ok(Fill {
            numbers,
            history: self.history.max(1),
        })
    }

    /// Radians of one unit of a number whose sine or cosine is taken: by its channel, or, of other
    /// sources, by the term's unit.
    fn radians(
        &self,
        body: &BodySpec,
        source: NumberSource,
        notes: &mut Vec<String>,
    ) -> Result<f64> {
        let place = &self.place;
        let NumberSource::Channel(channel) = source else {
            let of_unit = |unit| factor(place, unit, "rad", "the number");
            return self.unit.as_deref().map_or(Ok(1.0), of_unit);
        };
        let own = &body.observation[channel];
        if let ChannelKind::Angle { rad_per_unit } = own.kind {
            return Ok(rad_per_unit);
        }
        let unit = match own.unit.as_str() {
            "" => None,
            unit => Unit::parse(unit),
        };
        match unit {
            Some(unit) if unit.dimension == Dimension::NONE => Ok(unit.scale),
            Some(_) => Err(Error::invalid(format!(
                "{place}: {} is in {}; a sine or cosine needs an angle",
                own.name, own.unit
            ))),
            None => {
                notes.push(format!("{} is in radians (assumed)", own.name));
                Ok(1.0)
            }
        }
    }
}

impl ActionRule {
    /// The channels of the body that the output drives, in its order; each of the body is driven
    /// once, or passive.
    pub(super) fn channels(&self, body: &BodySpec) -> Result<Vec<usize>> {
        let mut passive = Vec::new();
        add_driven(body, &self.passive, &[], &mut passive)?;
        let Some(names) = &self.channels else {
            return Ok((0..body.action.len())
                .filter(|channel| !passive.contains(channel))
                .collect());
        };
        let mut channels = Vec::new();
        add_driven(body, names, &passive, &mut channels)?;
        match body
            .action
            .iter()
            .enumerate()
            .find(|(index, _)| !channels.contains(index) && !passive.contains(index))
        {
            Some((_, channel)) => Err(Error::invalid(format!(
                "action: channel {} of the body {} is not driven; `passive` lists the channels that keep the safe action",
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
            let mut action = body.safe_action.clone();
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

/// Adds the channels of the body's action with these names; each of them once, and none of
/// `others`.
fn add_driven(
    body: &BodySpec,
    names: &[String],
    others: &[usize],
    channels: &mut Vec<usize>,
) -> Result<()> {
    for name in names {
        let known = || body.action.iter().map(|channel| channel.name.as_str());
        let channel = place_of(name, known()).ok_or_else(|| {
            Error::invalid(format!(
                "action: the body {} has no channel {name:?}{}; it has {}",
                body.name,
                suggestion(name, known()),
                known().collect::<Vec<_>>().join(", ")
            ))
        })?;
        if channels.contains(&channel) || others.contains(&channel) {
            return Err(Error::invalid(format!(
                "action: channel {name} is named twice"
            )));
        }
        channels.push(channel);
    }
    Ok(())
}

/// A name as an equation file can have it, whose names have letters, digits and underscores alone.
fn plain(name: &str) -> String {
    name.chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect()
}

/// The place of a name: its own, else that of the only name that is the same in an equation file,
/// such as `joint_pos_hip` for `joint_pos.hip`.
pub fn place_of<'n>(name: &str, mut known: impl Iterator<Item = &'n str> + Clone) -> Option<usize> {
    let own = known.clone().position(|other| other == name);
    own.or_else(|| {
        let name = plain(name);
        let is_same = |other: &str| plain(other) == name;
        let place = known.clone().position(is_same)?;
        known.nth(place);
        (!known.any(is_same)).then_some(place)
    })
}

/// The channels of a name: one, or those that `NAME.*` represents: NAME itself or all that begin
/// with `NAME.`, or with `NAME_` where a body has no such name.
///
/// # Errors
/// `Invalid` for a name that the body does not have, listing its channels.
pub fn observed(body: &BodySpec, name: &str) -> Result<Vec<usize>> {
    let channels = || body.observation.iter().map(|channel| channel.name.as_str());
    let matching: Vec<usize> = match name.strip_suffix(".*") {
        Some(stem) => {
            let of_group = |stem: &str, mark: char| -> Vec<usize> {
                let belongs = |channel: &str| {
                    channel == stem
                        || channel
                            .strip_prefix(stem)
                            .is_some_and(|rest| rest.starts_with(mark))
                };
                (0..body.observation.len())
                    .filter(|index| belongs(&body.observation[*index].name))
                    .collect()
            };
            let dotted = of_group(stem, '.');
            if dotted.is_empty() {
                of_group(&plain(stem), '_')
            } else {
                dotted
            }
        }
        None => place_of(name, channels()).into_iter().collect(),
    };
    if !matching.is_empty() {
        return Ok(matching);
    }
    let all = channels().collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!(
        "the body {} has no channel {name:?}{}; it has {all}",
        body.name,
        suggestion(name, channels())
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
