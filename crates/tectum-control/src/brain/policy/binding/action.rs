//! An output met with the channels of a body's action.

use tectum::{DType, Error, Result};
use tectum_onnx::{Network, NetworkPort};

use super::names::Names;
use super::terms::Around;
use super::{BoundState, NumberSource, factor, port, spread};
use crate::body::BodySpec;
use crate::body::motors::Control;
use crate::body::names::{observed, place_of};
use crate::brain::policy::contract::Contract;
use crate::brain::policy::contract::action::ActionRule;
use crate::brain::policy::schedule::Schedule;
use crate::nearest::suggestion;

/// The output that is the action.
#[derive(Debug, Clone)]
pub struct BoundAction {
    pub output: String,
    /// The numbers of a row of the output.
    pub width: usize,
    pub schedule: Schedule,
    pub kind: ActionKind,
    /// Inferences over which the action is faded in.
    pub fade_in: u64,
    /// Bounds of each number of a row.
    pub clip: Vec<[f64; 2]>,
    /// Bounds of each number by the torque of its motor.
    pub torque: Vec<TorqueClip>,
    /// Center and divisor of each number, if there is a normaliser.
    pub unnormalize: Vec<(f64, f64)>,
}

#[derive(Debug, Clone)]
pub enum ActionKind {
    /// For each channel of the body what it gets.
    Continuous(Vec<Drive>),
    /// The action for each number of the row, and the number that allows each.
    Choice(Vec<Vec<f32>>, Vec<NumberSource>),
    /// The action for each value of an output that is an index.
    Index(Vec<Vec<f32>>),
}

/// What a channel of the body's action gets.
#[derive(Debug, Clone, Copy)]
pub enum Drive {
    /// A number of the row, multiplied, and numbers added.
    Row(DrivenRow),
    /// The body's safe action: the policy does not drive it.
    Passive(f32),
}

/// A channel that a number of the row drives. All numbers are in the unit of the action, except for
/// the factor to that of the channel.
#[derive(Debug, Clone, Copy)]
pub struct DrivenRow {
    pub index: usize,
    pub scale: f64,
    pub offset: f64,
    /// A present value that is added, with the factor of its unit.
    pub add: Option<(NumberSource, f64)>,
    pub clip: [f64; 2],
    pub factor: f64,
}

/// The bounds of a number by the torque of the motor that it drives:
/// (position - offset + (damping velocity ∓ limit) / stiffness) / scale.
#[derive(Debug, Clone, Copy)]
pub struct TorqueClip {
    pub position: usize,
    pub velocity: usize,
    pub stiffness: f64,
    pub damping: f64,
    pub limit: f64,
    pub offset: f64,
    pub scale: f64,
}

impl TorqueClip {
    /// The bounds at an observation.
    pub fn bounds(&self, observation: &[f32]) -> [f64; 2] {
        let position = f64::from(observation[self.position]);
        let velocity = f64::from(observation[self.velocity]);
        let bound = |torque: f64| {
            (position - self.offset + (self.damping * velocity + torque) / self.stiffness)
                / self.scale
        };
        let (first, second) = (bound(-self.limit), bound(self.limit));
        [first.min(second), first.max(second)]
    }
}

impl BoundAction {
    /// What terms are bound to.
    pub fn around<'a>(&self, names: Names<'a>, networks: &'a [(String, usize)]) -> Around<'a> {
        Around {
            names,
            action: self.width,
            is_choice: !matches!(self.kind, ActionKind::Continuous(_)),
            networks,
        }
    }
}

impl Contract {
    pub(super) fn bound_action(
        &self,
        network: &Network,
        names: &Names<'_>,
        states: &[BoundState],
        notes: &mut Vec<String>,
    ) -> Result<BoundAction> {
        let (rule, body) = (&self.action, names.body);
        let output = self.action_output(network, states, notes)?;
        let len: usize = output.dims.iter().product();
        let discrete = match &body.action[..] {
            [only] if only.discrete => Some(vec![vec![only.low], vec![only.high]]),
            _ => None,
        };
        let schedule = Schedule::of(rule, states.first().map(|state| state.input.as_str()))?;
        if !rule.passive.is_empty() {
            notes.push(format!(
                "passive channels {} keep the body's safe action",
                rule.passive.join(", ")
            ));
        }
        let chosen = |width: usize, kind: ActionKind| match schedule.chunk {
            1 => Ok(BoundAction {
                output: output.name.clone(),
                width,
                schedule: Schedule::default(),
                kind,
                fade_in: 0,
                clip: Vec::new(),
                torque: Vec::new(),
                unnormalize: Vec::new(),
            }),
            rows => Err(Error::invalid(format!(
                "action: chunk {rows}: output {} {:?} chooses one action, it has no rows",
                output.name, output.dims
            ))),
        };
        let choices = rule.choices(body)?;
        let mask = |choices: usize| masked(rule, names, choices);
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
            if !rule.mask.is_empty() {
                return Err(Error::invalid(format!(
                    "action: mask: output {} is an index, which the network has chosen",
                    output.name
                )));
            }
            return chosen(1, ActionKind::Index(choices));
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
            let mask = mask(choices.len())?;
            return chosen(len, ActionKind::Choice(choices, mask));
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
            let mask = mask(choices.len())?;
            return chosen(len, ActionKind::Choice(choices, mask));
        }
        if !rule.mask.is_empty() {
            return Err(Error::invalid("action: mask is for choices"));
        }
        check_rows(rule, output, &channels, body)?;
        if rule.channels.is_none() {
            notes.push(format!(
                "output {} is {} in this order (assumed)",
                output.name,
                shown(&channels, body)
            ));
        }
        let numbers = |what, values: &[f64], default| match values {
            [] => Ok(vec![default; width]),
            values => spread(what, values, width, None),
        };
        let bounds = |what, values: &[[f64; 2]]| match values {
            [] => Ok(vec![[f64::NEG_INFINITY, f64::INFINITY]; width]),
            values => spread(what, values, width, None),
        };
        let scale = numbers("action: scale", &rule.scale, 1.0)?;
        let offset = numbers("action: offset", &rule.offset, 0.0)?;
        let clip_target = bounds("action: clip_target", &rule.clip_target)?;
        let add = added(rule, names, width)?;
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
            driven[channel] = Drive::Row(DrivenRow {
                index,
                scale: scale[index],
                offset: offset[index],
                // What is added is in the channel's unit.
                add: add[index].map(|source| (source, 1.0 / factor)),
                clip: clip_target[index],
                factor,
            });
        }
        let unnormalize = match &rule.unnormalize {
            None => Vec::new(),
            Some(normalizer) => {
                spread("action: its normaliser", &normalizer.parts()?, width, None)?
            }
        };
        Ok(BoundAction {
            output: output.name.clone(),
            width,
            schedule,
            fade_in: rule.fade_in,
            clip: bounds("action: clip", &rule.clip)?,
            torque: self.torque_clips(body, &channels, &scale, &offset)?,
            unnormalize,
            kind: ActionKind::Continuous(driven),
        })
    }

    /// The output that is the action.
    fn action_output<'n>(
        &self,
        network: &'n Network,
        states: &[BoundState],
        notes: &mut Vec<String>,
    ) -> Result<&'n NetworkPort> {
        if let Some(name) = &self.output {
            return port(network.outputs(), "output", name);
        }
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
        Ok(first)
    }

    /// The bounds of the numbers by the torque of their motors, if the contract asks for them.
    fn torque_clips(
        &self,
        body: &BodySpec,
        channels: &[usize],
        scale: &[f64],
        offset: &[f64],
    ) -> Result<Vec<TorqueClip>> {
        if !self.action.is_torque_clipped {
            return Ok(Vec::new());
        }
        let invalid = |message: String| Error::invalid(format!("action: clip_torque: {message}"));
        let motors = self
            .motors
            .as_ref()
            .ok_or_else(|| invalid("the contract has no [motors]".to_owned()))?;
        let joints = motors.joints.as_deref().unwrap_or_default();
        let mut clips = Vec::new();
        for (index, &channel) in channels.iter().enumerate() {
            let name = &body.action[channel].name;
            let place = joints
                .iter()
                .position(|joint| joint == name)
                .ok_or_else(|| invalid(format!("{name} is no joint of [motors]")))?;
            let of = |list: &[f64]| match list {
                [one] => Some(*one),
                several => several.get(place).copied(),
            };
            let control = match &motors.control[..] {
                [] => Control::Position,
                [one] => *one,
                several => several.get(place).copied().unwrap_or_default(),
            };
            let (Some(stiffness), Some(limit), Control::Position) =
                (of(&motors.stiffness), of(&motors.torque_limit), control)
            else {
                return Err(invalid(format!(
                    "joint {name} needs position control with stiffness and torque_limit"
                )));
            };
            let stated = |list: &Option<Vec<String>>, kind: &str| {
                list.as_ref().map_or_else(
                    || format!("{kind}.{name}"),
                    |list| list.get(place).cloned().unwrap_or_default(),
                )
            };
            let observed = |name: &str| match observed(body, name)?[..] {
                [channel] if !body.observation[channel].is_array() => Ok(body.range(channel).start),
                _ => Err(invalid(format!("{name} is not one number of the body"))),
            };
            if stiffness <= 0.0 || scale[index] == 0.0 {
                return Err(invalid(format!(
                    "joint {name} has stiffness {stiffness} and scale {}: both are divided by",
                    scale[index]
                )));
            }
            clips.push(TorqueClip {
                position: observed(&stated(&motors.position, "joint_pos"))?,
                velocity: observed(&stated(&motors.velocity, "joint_vel"))?,
                stiffness,
                damping: of(&motors.damping).unwrap_or(0.0),
                limit,
                offset: offset[index],
                scale: scale[index],
            });
        }
        Ok(clips)
    }
}

/// Refuses an output whose rows are not those of the channels.
fn check_rows(
    rule: &ActionRule,
    output: &NetworkPort,
    channels: &[usize],
    body: &BodySpec,
) -> Result<()> {
    let (len, width) = (output.dims.iter().product::<usize>(), channels.len());
    let rows = output.dims.iter().rev().skip(1).product::<usize>();
    let is_chunk = output.dims.last() == Some(&width) && rows >= rule.chunk.max(1);
    if len == width && rule.chunk <= 1 || is_chunk && (rows == 1 || rule.chunk > 1) {
        return Ok(());
    }
    let chunk = if rule.chunk > 1 {
        format!(" in {} rows", rule.chunk)
    } else {
        String::new()
    };
    Err(Error::invalid(format!(
        "output {} {:?} for the {width} channels {}{chunk}: the sizes differ",
        output.name,
        output.dims,
        shown(channels, body)
    )))
}

fn shown(channels: &[usize], body: &BodySpec) -> String {
    channels
        .iter()
        .map(|channel| body.action[*channel].name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The numbers that allow choices, one for each; none without a mask.
fn masked(rule: &ActionRule, names: &Names<'_>, choices: usize) -> Result<Vec<NumberSource>> {
    let mask = numbers_of(&rule.mask, names, "mask")?;
    if mask.is_empty() || mask.len() == choices {
        return Ok(mask);
    }
    Err(Error::invalid(format!(
        "action: mask has {} numbers for {choices} choices",
        mask.len()
    )))
}

/// The present values that are added, one for each channel.
fn added(rule: &ActionRule, names: &Names<'_>, width: usize) -> Result<Vec<Option<NumberSource>>> {
    let numbers = numbers_of(&rule.add, names, "add")?;
    if numbers.is_empty() {
        return Ok(vec![None; width]);
    }
    if numbers.len() != width {
        return Err(Error::invalid(format!(
            "action: add has {} numbers for {width} channels",
            numbers.len()
        )));
    }
    Ok(numbers.into_iter().map(Some).collect())
}

fn numbers_of(list: &[String], names: &Names<'_>, key: &str) -> Result<Vec<NumberSource>> {
    let mut numbers = Vec::new();
    for name in list {
        numbers.extend(
            names
                .resolve(name)
                .map_err(|error| error.at(format!("action: {key}")))?,
        );
    }
    Ok(numbers)
}

impl ActionRule {
    /// The channels of the body that the output drives, in its order; each of the body is driven
    /// once, or passive.
    pub(in crate::brain::policy) fn channels(&self, body: &BodySpec) -> Result<Vec<usize>> {
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
