//! Terms met with a body: where each number comes from, and the steps on its way to an input.

use tectum::{Error, Result};
use tectum_equations::{Dimension, Unit};

use super::names::Names;
use super::{LastAxis, NumberSource, factor, spread};
use crate::body::{BodySpec, ChannelKind};
use crate::brain::policy::contract::history::Fill;
use crate::brain::policy::contract::term::{
    QuaternionOrder, Term, TermFunction, TermSource, TermStep,
};

/// A term of a body.
#[derive(Debug, Clone)]
pub struct BoundTerm {
    /// Where each number comes from, and the factor of its unit.
    pub sources: Vec<(NumberSource, f64)>,
    pub steps: Vec<BoundStep>,
    /// The numbers after the steps.
    pub len: usize,
    /// The range of the numbers, where they are elements of integer channels as they are.
    pub whole: Option<[f64; 2]>,
    /// The last axis, where the numbers are the elements of one array.
    pub last_axis: Option<LastAxis>,
    /// What precedes the first ones of an episode; the first ones themselves without it.
    pub fill: Option<Vec<f32>>,
    /// The other network whose output it is.
    pub network: Option<usize>,
    pub place: String,
}

/// A step on the way of numbers to an input.
#[derive(Debug, Clone)]
pub enum BoundStep {
    Function(TermFunction, QuaternionOrder),
    Offset(Vec<f64>),
    Clip(Vec<[f64; 2]>),
    Scale(Vec<f64>),
    Round,
}

/// What terms are bound to besides names.
pub struct Around<'a> {
    pub names: Names<'a>,
    /// The numbers of an action.
    pub action: usize,
    /// Whether the action is one of choices, which have no stages.
    pub is_choice: bool,
    /// The names and the output's numbers of the networks that run before.
    pub networks: &'a [(String, usize)],
}

impl BoundTerm {
    /// All channels of a body in their order and units.
    pub fn of_channels(body: &BodySpec) -> Self {
        let ranges = body.ranges().enumerate();
        let elements = ranges.flat_map(|(channel, range)| {
            range.map(move |element| (NumberSource::Channel { channel, element }, 1.0))
        });
        Self {
            sources: elements.collect(),
            steps: Vec::new(),
            len: body.observation_len(),
            whole: None,
            last_axis: None,
            fill: None,
            network: None,
            place: String::new(),
        }
    }

    /// Whether its numbers are whole, for inputs of integers.
    pub fn is_whole(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, BoundStep::Round))
    }
}

impl Term {
    pub(super) fn bound(
        &self,
        around: &Around<'_>,
        fill: &Fill,
        notes: &mut Vec<String>,
    ) -> Result<BoundTerm> {
        let place = &self.place;
        let mut network = None;
        let sources: Vec<NumberSource> = match &self.source {
            TermSource::Channels(names) => names
                .iter()
                .map(|name| around.names.resolve(name))
                .collect::<Result<Vec<_>>>()
                .map_err(|error| error.at(place))?
                .into_iter()
                .flatten()
                .collect(),
            TermSource::PreviousAction(stage) => {
                if around.is_choice && *stage != Default::default() {
                    return Err(Error::invalid(format!(
                        "{place}: a choice has no stages; `as` is for actions of numbers"
                    )));
                }
                (0..around.action)
                    .map(|index| NumberSource::Previous(*stage, index))
                    .collect()
            }
            TermSource::Constant(numbers) => numbers
                .iter()
                .map(|number| NumberSource::Constant(*number))
                .collect(),
            TermSource::Step => vec![NumberSource::Step],
            TermSource::Network(name) => {
                let known = around.networks.iter().position(|(known, _)| known == name);
                let index = known.ok_or_else(|| {
                    Error::invalid(format!(
                        "{place}: the contract has no network {name:?} before this one"
                    ))
                })?;
                network = Some(index);
                vec![NumberSource::Constant(0.0); around.networks[index].1]
            }
        };
        if sources.is_empty() {
            return Err(Error::invalid(format!("{place}: it has no numbers")));
        }
        let (sources, last_axis) = self.ordered(sources, around.names.body)?;
        let sources = sources
            .into_iter()
            .map(|source| Ok((source, self.factor(around, source, notes)?)))
            .collect::<Result<Vec<_>>>()?;
        let (steps, len) = self.steps(sources.len(), last_axis.as_ref())?;
        let whole = self.whole_range(&sources, &steps, around.names.body);
        if network.is_some() && (!steps.is_empty() || !self.history.is_newest()) {
            return Err(Error::invalid(format!(
                "{place}: the output of a network enters as it is"
            )));
        }
        if !self.history.is_order_stated {
            notes.push(format!(
                "{place}: its last values are the oldest first (assumed)"
            ));
        }
        if self.apply.is_none() && !self.clip.is_empty() && !is_neutral(&self.scale, 1.0) {
            notes.push(format!(
                "{place}: it is clipped before it is scaled (assumed)"
            ));
        }
        Ok(BoundTerm {
            sources,
            steps,
            len,
            fill: match fill {
                Fill::First => None,
                Fill::Zeros => Some(vec![0.0; len]),
                Fill::Values(values) => Some(
                    spread(
                        &format!("{place}: fill_value"),
                        values,
                        len,
                        last_axis.as_ref(),
                    )?
                    .into_iter()
                    .map(|value| value as f32)
                    .collect(),
                ),
            },
            network,
            whole,
            last_axis,
            place: place.clone(),
        })
    }

    /// The range of elements of integer channels that no step changes; none for other numbers.
    fn whole_range(
        &self,
        sources: &[(NumberSource, f64)],
        steps: &[BoundStep],
        body: &BodySpec,
    ) -> Option<[f64; 2]> {
        let range = |(source, factor): &(NumberSource, f64)| match source {
            NumberSource::Channel { channel, .. } if *factor == 1.0 => {
                body.observation[*channel].element.whole_range()
            }
            _ => None,
        };
        let mut whole = range(&sources[0]).filter(|_| steps.is_empty())?;
        for source in sources {
            let [low, high] = range(source)?;
            whole = [whole[0].min(low), whole[1].max(high)];
        }
        Some(whole)
    }

    /// The numbers in the order of the axes, and the place of each on the last axis of the array.
    fn ordered(
        &self,
        sources: Vec<NumberSource>,
        body: &BodySpec,
    ) -> Result<(Vec<NumberSource>, Option<LastAxis>)> {
        let refused = |reason: &str| Err(Error::invalid(format!("{}: {reason}", self.place)));
        let channel = match sources[0] {
            NumberSource::Channel { channel, .. } => Some(channel),
            _ => None,
        };
        let array = channel.filter(|channel| {
            let own = &body.observation[*channel];
            own.is_array() && own.size() == sources.len()
        });
        let Some(channel) = array else {
            return match self.axes[..] {
                [] => Ok((sources, None)),
                _ => refused("axes are for one channel that is an array"),
            };
        };
        let shape = &body.observation[channel].shape;
        let own: Vec<usize> = (0..shape.len()).collect();
        let axes = if self.axes.is_empty() {
            &own
        } else {
            &self.axes
        };
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if sorted != own {
            return refused(&format!(
                "axes are {axes:?}; the array has the shape {shape:?} and needs each of {own:?} once"
            ));
        }
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let mut order = vec![0];
        for axis in axes {
            let along = |start: &usize| {
                let (start, stride) = (*start, strides[*axis]);
                (0..shape[*axis]).map(move |index| start + index * stride)
            };
            order = order.iter().flat_map(along).collect();
        }
        let size = shape[shape.len() - 1];
        let places = order
            .iter()
            .map(|element| (element % size) as u32)
            .collect();
        let sources = order.iter().map(|element| sources[*element]).collect();
        Ok((sources, Some(LastAxis { size, places })))
    }

    /// The steps that have an effect, and the numbers after them.
    fn steps(&self, count: usize, last_axis: Option<&LastAxis>) -> Result<(Vec<BoundStep>, usize)> {
        let place = &self.place;
        let (mut steps, mut len) = (Vec::new(), count);
        for step in self.order() {
            match step {
                TermStep::Function if self.function == TermFunction::Identity => {}
                TermStep::Function => {
                    len = self.function.len(len).ok_or_else(|| {
                        let takes = self.function.group().map_or(0, |(takes, _)| takes);
                        Error::invalid(format!(
                            "{place}: function {:?} takes {takes} numbers, or several times as many; it has {len}",
                            self.function.name()
                        ))
                    })?;
                    let order = self.quaternion.unwrap_or(QuaternionOrder::Wxyz);
                    steps.push(BoundStep::Function(self.function, order));
                }
                TermStep::Offset if is_neutral(&self.offset, 0.0) => {}
                TermStep::Offset => steps.push(BoundStep::Offset(spread(
                    &format!("{place}: offset"),
                    &self.offset,
                    len,
                    last_axis,
                )?)),
                TermStep::Clip if self.clip.is_empty() => {}
                TermStep::Clip => steps.push(BoundStep::Clip(spread(
                    &format!("{place}: clip"),
                    &self.clip,
                    len,
                    last_axis,
                )?)),
                TermStep::Scale if is_neutral(&self.scale, 1.0) => {}
                TermStep::Scale => steps.push(BoundStep::Scale(spread(
                    &format!("{place}: scale"),
                    &self.scale,
                    len,
                    last_axis,
                )?)),
            }
        }
        if self.is_rounded {
            steps.push(BoundStep::Round);
        }
        Ok((steps, len))
    }

    /// The factor from the unit of a number to that of the term, or to radians for functions of
    /// angles.
    fn factor(
        &self,
        around: &Around<'_>,
        source: NumberSource,
        notes: &mut Vec<String>,
    ) -> Result<f64> {
        let (place, body) = (&self.place, around.names.body);
        if self.function.is_of_angles() {
            return self.radians(around, source, notes);
        }
        let (from, name) = match source {
            NumberSource::Channel { channel, .. } => {
                let own = &body.observation[channel];
                (Some(&own.unit), own.name.as_str())
            }
            NumberSource::Command(command) => {
                let rule = &around.names.contract.commands[command];
                (rule.unit.as_ref(), rule.name.as_str())
            }
            _ => (None, ""),
        };
        match (from, &self.unit) {
            (Some(from), Some(unit)) => factor(place, from, unit, name),
            _ => Ok(1.0),
        }
    }

    /// Radians of one unit of a number: by its channel, or, of other sources, by the term's unit.
    fn radians(
        &self,
        around: &Around<'_>,
        source: NumberSource,
        notes: &mut Vec<String>,
    ) -> Result<f64> {
        let place = &self.place;
        let NumberSource::Channel { channel, .. } = source else {
            if matches!(source, NumberSource::Clock { .. }) {
                return Ok(1.0);
            }
            let of_unit = |unit| factor(place, unit, "rad", "the number");
            return self.unit.as_deref().map_or(Ok(1.0), of_unit);
        };
        let own = &around.names.body.observation[channel];
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

/// Whether numbers have no effect.
fn is_neutral(numbers: &[f64], neutral: f64) -> bool {
    numbers.iter().all(|number| *number == neutral)
}
