//! Inputs of a network met with the terms that fill them.

use std::ops::RangeInclusive;

use tectum::{DType, Error, Result};
use tectum_onnx::{ElementType, NetworkPort};

use super::terms::{Around, BoundTerm};
use super::{NumberSource, port, spread};
use crate::brain::policy::contract::history::{Fill, History};
use crate::brain::policy::contract::input::InputRule;
use crate::brain::policy::contract::term::Term;

/// An input that terms fill.
#[derive(Debug, Clone)]
pub struct BoundInput {
    pub name: String,
    /// The network that it belongs to: 0 is the policy, then those that run before it.
    pub network: usize,
    pub len: usize,
    /// Whether its elements are integers or truth values.
    pub is_integer: bool,
    pub terms: Vec<BoundTerm>,
    /// The rows that it holds in their order: a term, and the age of its values.
    pub rows: Vec<(usize, usize)>,
    /// How many values of each term are kept.
    pub depths: Vec<usize>,
    /// Center and divisor of each number of a frame, if there is a normaliser.
    pub normalize: Vec<(f64, f64)>,
    /// Bounds of each number of a frame; none without it.
    pub clip: Vec<[f64; 2]>,
}

impl BoundInput {
    /// The numbers that all kept values have.
    pub fn kept_len(&self) -> usize {
        self.terms
            .iter()
            .zip(&self.depths)
            .map(|(term, depth)| term.len * depth)
            .sum()
    }
}

/// The inputs of a network, and what fills them.
pub struct Inputs<'a> {
    pub network: usize,
    /// Its inputs that are no states.
    pub open: Vec<&'a NetworkPort>,
    pub input: Option<&'a str>,
    pub terms: &'a [Term],
    pub rules: &'a [InputRule],
}

impl Inputs<'_> {
    /// The input that terms fill which name no other.
    fn main(&self) -> Result<&NetworkPort> {
        match (self.input, &self.open[..]) {
            (Some(name), _) => port(self.open.iter().copied(), "input", name),
            (None, [only]) => Ok(only),
            (None, []) => Err(Error::invalid("the network has no input that is no state")),
            (None, several) => {
                let named = several
                    .iter()
                    .map(|input| input.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                Err(Error::invalid(format!(
                    "the network has several inputs ({named}); `input` names the one that the terms fill"
                )))
            }
        }
    }

    pub fn bound(&self, around: &Around<'_>, notes: &mut Vec<String>) -> Result<Vec<BoundInput>> {
        if self.open.is_empty() && self.terms.is_empty() {
            return Ok(Vec::new());
        }
        let main = self.main()?;
        if self.terms.is_empty() {
            return self
                .bound_to_all(main, around, notes)
                .map(|input| vec![input]);
        }
        for rule in self.rules {
            port(self.open.iter().copied(), "inputs: input", &rule.name)?;
        }
        let mut parts: Vec<(&NetworkPort, Vec<&Term>)> = Vec::new();
        for term in self.terms {
            let input = match &term.input {
                Some(name) => port(
                    self.open.iter().copied(),
                    &format!("{}: input", term.place),
                    name,
                )?,
                None => main,
            };
            match parts.iter_mut().find(|(known, _)| known.name == input.name) {
                Some((_, terms)) => terms.push(term),
                None => parts.push((input, vec![term])),
            }
        }
        if let Some(input) = self
            .open
            .iter()
            .find(|input| parts.iter().all(|(known, _)| known.name != input.name))
        {
            return Err(Error::invalid(format!(
                "input {} {:?} is filled by no term and is no state",
                input.name, input.dims
            )));
        }
        parts
            .into_iter()
            .map(|(input, terms)| self.bound_input(input, &terms, around, notes))
            .collect()
    }

    fn bound_input(
        &self,
        input: &NetworkPort,
        terms: &[&Term],
        around: &Around<'_>,
        notes: &mut Vec<String>,
    ) -> Result<BoundInput> {
        let none = InputRule::default();
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.name == input.name)
            .unwrap_or(&none);
        let is_integer = input.element.dtype() != DType::F32;
        let mut bound = Vec::new();
        for term in terms {
            if !rule.frames.is_newest() && !term.history.is_newest() {
                return Err(Error::invalid(format!(
                    "{}: input {} has frames, and the term a history: one of them is possible",
                    term.place, input.name
                )));
            }
            let stated = term.fill.as_ref().or(rule.fill.as_ref());
            let own = term.bound(around, stated.unwrap_or(&Fill::First), notes)?;
            let keeps = !rule.frames.is_newest() || !term.history.is_newest();
            if stated.is_none() && keeps {
                notes.push(format!(
                    "{}: the first value of an episode fills its history (assumed)",
                    term.place
                ));
            }
            if is_integer {
                own.check_whole(input)
                    .map_err(|error| error.at(&term.place))?;
            }
            bound.push(own);
        }
        if !rule.frames.is_order_stated {
            notes.push(format!(
                "input {}: its frames are the oldest first (assumed)",
                input.name
            ));
        }
        let frame: usize = bound.iter().map(|term| term.len).sum();
        let clip = match &rule.clip[..] {
            [] => Vec::new(),
            clip => spread(&format!("inputs.{}: clip", input.name), clip, frame, None)?,
        };
        let mut clip = clip;
        let mut normalize = Vec::new();
        if let Some(normalizer) = &rule.normalize {
            let what = format!("inputs.{}: its normaliser", input.name);
            let last_axis = match &bound[..] {
                [only] => only.last_axis.as_ref(),
                _ => None,
            };
            normalize = spread(&what, &normalizer.parts()?, frame, last_axis)?;
            if let Some(limit) = normalizer.clip {
                if clip.is_empty() {
                    clip = vec![[f64::NEG_INFINITY, f64::INFINITY]; frame];
                }
                for [low, high] in &mut clip {
                    (*low, *high) = (low.max(-limit), high.min(limit));
                }
            }
        }
        let rows = rows_of(&rule.frames, terms);
        let depths = terms
            .iter()
            .map(|term| term.history.depth().max(rule.frames.depth()))
            .collect();
        let sizes: Vec<usize> = terms
            .iter()
            .zip(&bound)
            .map(|(term, bound)| bound.len * term.history.ages.len() * rule.frames.ages.len())
            .collect();
        let (len, sum) = (
            input.dims.iter().product::<usize>(),
            sizes.iter().sum::<usize>(),
        );
        if sum != len {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            return Err(Error::invalid(format!(
                "input {} {:?} has {len} numbers, its terms {} = {sum}",
                input.name,
                input.dims,
                sizes.join(" + ")
            )));
        }
        if (is_integer || !normalize.is_empty() || !clip.is_empty())
            && bound.iter().any(|term| term.network.is_some())
        {
            return Err(Error::invalid(format!(
                "input {}: the output of a network enters inputs of floats without a normaliser or bounds",
                input.name
            )));
        }
        Ok(BoundInput {
            name: input.name.clone(),
            network: self.network,
            len,
            is_integer,
            terms: bound,
            rows,
            depths,
            normalize,
            clip,
        })
    }

    /// The input of a network without a contract: all channels in the body's order.
    fn bound_to_all(
        &self,
        main: &NetworkPort,
        around: &Around<'_>,
        notes: &mut Vec<String>,
    ) -> Result<BoundInput> {
        let body = around.names.body;
        let (len, elements) = (main.dims.iter().product::<usize>(), body.observation_len());
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
        if len != elements || self.open.len() > 1 {
            let shape = format!(
                "input {} {:?} has {len} numbers, the body {} {elements} ({names})",
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
        Ok(BoundInput {
            name: main.name.clone(),
            network: self.network,
            len,
            is_integer: false,
            terms: vec![BoundTerm::of_channels(body)],
            rows: vec![(0, 0)],
            depths: vec![1],
            normalize: Vec::new(),
            clip: Vec::new(),
        })
    }
}

/// The order of rows: whole frames after each other, or each term with its history.
fn rows_of(frames: &History, terms: &[&Term]) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    for frame in &frames.ages {
        for (index, term) in terms.iter().enumerate() {
            rows.extend(term.history.ages.iter().map(|age| (index, age + frame)));
        }
    }
    rows
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

impl BoundTerm {
    /// Refuses numbers that may not be whole, for an input of integers or truth values.
    fn check_whole(&self, input: &NetworkPort) -> Result<()> {
        let refused = |what: &str| {
            Err(Error::invalid(format!(
                "input {} is {}: {what}",
                input.name, input.element
            )))
        };
        let possible = integer_range(input.element);
        let is_within = |range: &[f64; 2]| range.iter().all(|end| possible.contains(end));
        if self.is_whole() || self.whole.as_ref().is_some_and(is_within) {
            return Ok(());
        }
        if self
            .sources
            .iter()
            .any(|(source, _)| !matches!(source, NumberSource::Constant(_) | NumberSource::Step))
        {
            return refused(
                "only `value`, the step and integer channels in its range are whole numbers; `round = true` rounds others",
            );
        }
        // A step is 0, 1, 2 and so on: whole at 0 and at 1, it is whole at all of them.
        for step in [0, 1] {
            for number in self.constants(step) {
                let value = f64::from(number);
                if self
                    .sources
                    .iter()
                    .any(|(source, _)| matches!(source, NumberSource::Step))
                {
                    if value.fract() != 0.0 {
                        return refused("the step becomes a fraction");
                    }
                } else if value.fract() != 0.0 || !possible.contains(&value) {
                    return refused(&format!("{value} is none of its values"));
                }
            }
        }
        Ok(())
    }
}
