//! Terms met with a body: where each number comes from, and the steps on its way to an input.

use tectum::{Error, Result};
use tectum_equations::{Dimension, Unit};

use super::names::Names;
use super::{NumberSource, bounds_of, factor, per_number};
use crate::body::ChannelKind;
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
    /// Numbers of channels alone, as the body has them.
    pub fn of_channels(channels: usize) -> Self {
        Self {
            sources: (0..channels)
                .map(|channel| (NumberSource::Channel(channel), 1.0))
                .collect(),
            steps: Vec::new(),
            len: channels,
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
        let count = sources.len();
        let sources = sources
            .into_iter()
            .map(|source| Ok((source, self.factor(around, source, notes)?)))
            .collect::<Result<Vec<_>>>()?;
        let (steps, len) = self.steps(count)?;
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
                    per_number(&format!("{place}: fill_value"), values, len, 0.0)?
                        .into_iter()
                        .map(|value| value as f32)
                        .collect(),
                ),
            },
            network,
            place: place.clone(),
        })
    }

    /// The steps that have an effect, and the numbers after them.
    fn steps(&self, count: usize) -> Result<(Vec<BoundStep>, usize)> {
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
                TermStep::Offset => steps.push(BoundStep::Offset(per_number(
                    &format!("{place}: offset"),
                    &self.offset,
                    len,
                    0.0,
                )?)),
                TermStep::Clip if self.clip.is_empty() => {}
                TermStep::Clip => steps.push(BoundStep::Clip(bounds_of(
                    &format!("{place}: clip"),
                    &self.clip,
                    len,
                )?)),
                TermStep::Scale if is_neutral(&self.scale, 1.0) => {}
                TermStep::Scale => steps.push(BoundStep::Scale(per_number(
                    &format!("{place}: scale"),
                    &self.scale,
                    len,
                    1.0,
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
            NumberSource::Channel(channel) => {
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
        let NumberSource::Channel(channel) = source else {
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
