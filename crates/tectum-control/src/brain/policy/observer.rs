//! From a body's observation to the inputs of networks: terms, their histories, commands and clocks.

use tectum::Result;
use tectum::snapshot::{Array, Snapshot};

use super::binding::inputs::BoundInput;
use super::binding::terms::{BoundStep, BoundTerm};
use super::binding::{Binding, NumberSource};
use super::contract::clock::ClockState;
use super::contract::term::ActionStage;
use super::rotation;
use crate::brain::commands::CommandInputs;

/// The present values that numbers come from.
#[derive(Clone, Copy)]
pub(super) struct Present<'a> {
    pub observation: &'a [f32],
    /// The stages of the last action: raw, clipped, sent.
    pub previous: &'a [Vec<f32>; 3],
    /// Outputs that are fed back.
    pub outputs: &'a [Vec<f32>],
    pub step: u64,
}

/// The inputs of the networks, and what they are made from.
#[derive(Debug)]
pub(super) struct Observer {
    /// The inputs, as the networks receive them.
    pub inputs: Vec<Vec<f32>>,
    /// The kept values of all terms, for each input; of each term the newest last.
    kept: Vec<Vec<f32>>,
    pub commands: CommandInputs,
    /// The values of the commands at the last tick.
    values: Vec<f64>,
    clocks: Vec<ClockState>,
    /// Numbers of a term on their way.
    numbers: Vec<f64>,
    other: Vec<f64>,
    /// Whether a caller has set a command.
    pub is_steered: bool,
}

impl Observer {
    pub fn new(binding: &Binding, commands: CommandInputs) -> Self {
        let widest = binding
            .inputs
            .iter()
            .flat_map(|input| &input.terms)
            .map(BoundTerm::widest)
            .max()
            .unwrap_or(0);
        Self {
            inputs: binding
                .inputs
                .iter()
                .map(|input| vec![0.0; input.len])
                .collect(),
            kept: binding
                .inputs
                .iter()
                .map(|input| vec![0.0; input.kept_len()])
                .collect(),
            values: binding.commands.iter().map(|rule| rule.at(0.0)).collect(),
            clocks: binding
                .clocks
                .iter()
                .map(|clock| ClockState::of(&clock.rule))
                .collect(),
            numbers: Vec::with_capacity(widest),
            other: Vec::with_capacity(widest),
            commands,
            is_steered: false,
        }
    }

    /// Restarts for an episode.
    pub fn clear(&mut self, binding: &Binding) {
        for values in self.inputs.iter_mut().chain(&mut self.kept) {
            values.fill(0.0);
        }
        for (state, clock) in self.clocks.iter_mut().zip(&binding.clocks) {
            *state = ClockState::of(&clock.rule);
        }
    }

    /// The inputs of an episode's first inference on zeros: constants and the step are as usual.
    pub fn prime(&mut self, binding: &Binding) {
        for (input, values) in binding.inputs.iter().zip(&mut self.inputs) {
            values.fill(0.0);
            let mut start = 0;
            for (index, _) in &input.rows {
                let term = &input.terms[*index];
                let is_fixed = |(source, _): &(NumberSource, f64)| {
                    matches!(source, NumberSource::Constant(_) | NumberSource::Step)
                };
                if term.network.is_none() && term.sources.iter().all(is_fixed) {
                    for (value, number) in values[start..].iter_mut().zip(term.constants(0)) {
                        *value = number;
                    }
                }
                start += term.len;
            }
        }
    }

    /// Fills the inputs from an observation. Histories, commands and clocks move at every tick,
    /// also where rows of a chunk are left.
    ///
    /// # Errors
    /// `Data` for a quaternion that is no rotation, naming the term.
    pub fn observe(&mut self, binding: &Binding, present: Present<'_>) -> Result<()> {
        self.move_commands(binding, present.step);
        for (input, place) in binding.inputs.iter().zip(0..) {
            self.keep(binding, input, place, present)?;
            emit(input, &self.kept[place], &mut self.inputs[place]);
        }
        Ok(())
    }

    fn move_commands(&mut self, binding: &Binding, step: u64) {
        let time_s = step as f64 * binding.period_s;
        for (place, (value, rule)) in self.values.iter_mut().zip(&binding.commands).enumerate() {
            let set = self.commands.take(place);
            self.is_steered |= set.is_some();
            *value = set.map_or_else(|| rule.at(time_s), |value| rule.clamped(value));
        }
        for (state, clock) in self.clocks.iter_mut().zip(&binding.clocks) {
            let norm = (!clock.commands.is_empty()).then(|| {
                let square = |command: &usize| self.values[*command] * self.values[*command];
                clock.commands.iter().map(square).sum::<f64>().sqrt()
            });
            state.advance(&clock.rule, binding.period_s, step == 0, norm);
        }
    }

    /// Moves the kept values of an input's terms back, and adds the present ones.
    fn keep(
        &mut self,
        binding: &Binding,
        input: &BoundInput,
        place: usize,
        present: Present<'_>,
    ) -> Result<()> {
        let mut start = 0;
        for (term, depth) in input.terms.iter().zip(&input.depths) {
            self.numbers.clear();
            for (source, factor) in &term.sources {
                let raw = self.number(binding, *source, present);
                self.numbers.push(factor * raw);
            }
            term.apply(&mut self.numbers, &mut self.other)?;
            let (len, kept) = (term.len, &mut self.kept[place][start..]);
            let newest = (depth - 1) * len;
            kept.copy_within(len..newest + len, 0);
            for (value, number) in kept[newest..].iter_mut().zip(&self.numbers) {
                *value = *number as f32;
            }
            if present.step == 0 {
                for row in 0..depth - 1 {
                    match &term.fill {
                        None => kept.copy_within(newest..newest + len, row * len),
                        Some(fill) => kept[row * len..][..len].copy_from_slice(fill),
                    }
                }
            }
            start += depth * len;
        }
        Ok(())
    }

    /// A present number.
    pub fn number(&self, binding: &Binding, source: NumberSource, present: Present<'_>) -> f64 {
        match source {
            NumberSource::Channel { element, .. } => f64::from(present.observation[element]),
            NumberSource::Previous(stage, index) => {
                f64::from(present.previous[stage_index(stage)][index])
            }
            NumberSource::Constant(value) => value,
            NumberSource::Step => present.step as f64,
            NumberSource::Command(command) => self.values[command],
            NumberSource::Clock { clock, leg } => {
                let rule = &binding.clocks[clock].rule;
                self.clocks[clock].angle(rule, leg, present.step == 0)
            }
            NumberSource::Output { output, index } => f64::from(present.outputs[output][index]),
        }
    }

    pub fn save(&self, snapshot: &mut Snapshot) {
        for (index, values) in self.kept.iter().enumerate() {
            snapshot.insert(format!("kept{index}"), Array::F32(values.clone()));
        }
        let clocks = self
            .clocks
            .iter()
            .flat_map(|clock| [clock.phase, f64::from(u8::from(clock.stands))]);
        snapshot.insert("clocks", Array::F64(clocks.collect()));
        snapshot.insert("commands", Array::F64(self.values.clone()));
    }

    /// # Errors
    /// `Data` if an array is missing or has a different length.
    pub fn load(&mut self, binding: &Binding, snapshot: &Snapshot) -> Result<()> {
        for (index, values) in self.kept.iter_mut().enumerate() {
            let len = values.len();
            values.copy_from_slice(snapshot.f32(&format!("kept{index}"), len)?);
        }
        let clocks = snapshot.f64("clocks", 2 * self.clocks.len())?;
        for (clock, numbers) in self.clocks.iter_mut().zip(clocks.chunks_exact(2)) {
            (clock.phase, clock.stands) = (numbers[0], numbers[1] > 0.5);
        }
        let values = snapshot.f64("commands", self.values.len())?;
        self.values.copy_from_slice(values);
        for (place, input) in binding.inputs.iter().enumerate() {
            emit(input, &self.kept[place], &mut self.inputs[place]);
        }
        Ok(())
    }
}

/// The place of a stage among the last action's.
pub(super) fn stage_index(stage: ActionStage) -> usize {
    match stage {
        ActionStage::Raw => 0,
        ActionStage::Clipped => 1,
        ActionStage::Sent => 2,
    }
}

/// Writes the rows of an input: the values of its terms with their ages, normalised and bounded.
fn emit(input: &BoundInput, kept: &[f32], values: &mut [f32]) {
    let mut start = 0;
    for (index, age) in &input.rows {
        let (mut place, len) = (0, input.terms[*index].len);
        for (term, depth) in input.terms[..*index].iter().zip(&input.depths) {
            place += term.len * depth;
        }
        let row = place + (input.depths[*index] - 1 - age) * len;
        values[start..start + len].copy_from_slice(&kept[row..row + len]);
        start += len;
    }
    if input.normalize.is_empty() && input.clip.is_empty() {
        return;
    }
    start = 0;
    for (index, _) in &input.rows {
        // The number of the frame that a term begins with.
        let first: usize = input.terms[..*index].iter().map(|term| term.len).sum();
        for (offset, value) in values[start..][..input.terms[*index].len]
            .iter_mut()
            .enumerate()
        {
            let mut number = f64::from(*value);
            if let Some((center, divisor)) = input.normalize.get(first + offset) {
                number = (number - center) / divisor;
            }
            if let Some(bounds) = input.clip.get(first + offset) {
                number = bounded(number, *bounds);
            }
            *value = number as f32;
        }
        start += input.terms[*index].len;
    }
}

impl BoundTerm {
    /// The maximum number of values between its source and the input.
    fn widest(&self) -> usize {
        self.sources.len().max(self.len)
    }

    /// Applies the steps.
    fn apply(&self, numbers: &mut Vec<f64>, other: &mut Vec<f64>) -> Result<()> {
        for step in &self.steps {
            match step {
                BoundStep::Function(function, order) => {
                    rotation::apply(*function, *order, numbers, other)
                        .map_err(|error| error.at(&self.place))?;
                }
                BoundStep::Offset(offsets) => {
                    for (number, offset) in numbers.iter_mut().zip(offsets) {
                        *number -= offset;
                    }
                }
                BoundStep::Clip(bounds) => {
                    for (number, bounds) in numbers.iter_mut().zip(bounds) {
                        *number = bounded(*number, *bounds);
                    }
                }
                BoundStep::Scale(scales) => {
                    for (number, scale) in numbers.iter_mut().zip(scales) {
                        *number *= scale;
                    }
                }
                BoundStep::Round => {
                    for number in numbers.iter_mut() {
                        *number = number.round_ties_even();
                    }
                }
            }
        }
        Ok(())
    }

    /// The numbers of a term of constants and the step, at a step.
    pub(super) fn constants(&self, step: u64) -> Vec<f32> {
        let mut numbers: Vec<f64> = self
            .sources
            .iter()
            .map(|(source, factor)| match source {
                NumberSource::Constant(value) => factor * value,
                NumberSource::Step => factor * step as f64,
                _ => 0.0,
            })
            .collect();
        // Only a quaternion of zeros has an error, and it has no numbers.
        if self.apply(&mut numbers, &mut Vec::new()).is_err() {
            return vec![0.0; self.len];
        }
        numbers.into_iter().map(|number| number as f32).collect()
    }
}

/// A number within bounds; NaN stays NaN, so that the loop sees it.
pub(super) fn bounded(value: f64, [low, high]: [f64; 2]) -> f64 {
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}
