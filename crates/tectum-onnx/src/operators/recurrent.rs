//! Recurrent layers: a step for each time, unrolled.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Node};

use super::Family;
use super::arithmetic::exponential_linear;
use super::quantize::{codes_product, dynamic_codes, weight_codes};
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[("GRU", gru), ("LSTM", lstm), ("RNN", rnn)];

/// Steps that a file may ask for: each adds nodes.
const MAX_STEPS: usize = 2048;

/// What the three have in common.
struct Layer {
    /// Steps, batch, width of the input.
    steps: usize,
    batch: usize,
    width: usize,
    hidden: usize,
    element: ElementType,
    /// Time is the second axis, not the first.
    batch_first: bool,
    directions: Vec<Direction>,
    activations: Vec<Gate>,
    clip: Option<f32>,
    /// The length of each sequence, if they differ.
    lengths: Option<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Reverse,
}

/// An activation with its parameters.
#[derive(Clone)]
struct Gate {
    name: String,
    alpha: Option<f32>,
    beta: Option<f32>,
}

impl Gate {
    fn add(&self, emit: &mut Emit<'_>, x: Node) -> Result<Node> {
        let (alpha, beta) = (self.alpha, self.beta);
        match self.name.to_ascii_lowercase().as_str() {
            "tanh" => emit.builder.tanh(x),
            "sigmoid" => emit.builder.sigmoid(x),
            "relu" => emit.builder.relu(x),
            "elu" => exponential_linear(emit, x, alpha.unwrap_or(1.0), 1.0),
            "affine" => {
                let scaled = emit.builder.scale(x, alpha.unwrap_or(1.0))?;
                emit.with(BinaryOp::Add, scaled, beta.unwrap_or(0.0))
            }
            "leakyrelu" => {
                let (above, below) = (emit.builder.relu(x)?, emit.with(BinaryOp::Min, x, 0.0)?);
                let below = emit.builder.scale(below, alpha.unwrap_or(0.01))?;
                emit.builder.add(above, below)
            }
            "hardsigmoid" => {
                let scaled = emit.builder.scale(x, alpha.unwrap_or(0.2))?;
                let shifted = emit.with(BinaryOp::Add, scaled, beta.unwrap_or(0.5))?;
                let below = emit.with(BinaryOp::Min, shifted, 1.0)?;
                emit.with(BinaryOp::Max, below, 0.0)
            }
            "softsign" => {
                let distance = emit.builder.function(tectum_graph::Function::Abs, x)?;
                let sum = emit.with(BinaryOp::Add, distance, 1.0)?;
                emit.builder.div(x, sum)
            }
            _ => Err(Error::unsupported(format!("activation {:?}", self.name))),
        }
    }
}

impl Layer {
    fn read(call: &Call<'_>, defaults: &[&str]) -> Result<Self> {
        let hidden = call.input(2)?.dims.last().copied().unwrap_or(0);
        Self::of_hidden(call, defaults, hidden)
    }

    /// A layer with as many elements of its state.
    fn of_hidden(call: &Call<'_>, defaults: &[&str], hidden: usize) -> Result<Self> {
        let attributes = &call.attributes;
        let x = call.input(0)?;
        let batch_first = attributes.int_or("layout", 0)? != 0;
        let &[first, second, width] = &x.dims[..] else {
            return Err(Error::data(format!("a sequence of {:?}", x.dims)));
        };
        let (steps, batch) = if batch_first {
            (second, first)
        } else {
            (first, second)
        };
        if attributes
            .int("hidden_size")?
            .is_some_and(|size| size != hidden as i64)
        {
            return Err(Error::data(format!(
                "hidden_size differs from the weights' {hidden}"
            )));
        }
        if steps > MAX_STEPS {
            return Err(Error::unsupported(format!(
                "{steps} steps; at most {MAX_STEPS} are unrolled"
            )));
        }
        let directions = match attributes.string_or("direction", "forward")? {
            "forward" => vec![Direction::Forward],
            "reverse" => vec![Direction::Reverse],
            "bidirectional" => vec![Direction::Forward, Direction::Reverse],
            other => return Err(Error::data(format!("direction {other:?}"))),
        };
        let names: Vec<String> = match attributes.strings("activations")? {
            Some(names) => names.to_vec(),
            None => directions
                .iter()
                .flat_map(|_| defaults.iter().map(|name| (*name).to_owned()))
                .collect(),
        };
        if names.len() != defaults.len() * directions.len() {
            return Err(Error::data(format!(
                "{} activations; {} are needed",
                names.len(),
                defaults.len() * directions.len()
            )));
        }
        // Parameters are listed for the activations that have them, in their order.
        let (mut alphas, mut betas) = (
            attributes
                .floats("activation_alpha")?
                .unwrap_or_default()
                .into_iter(),
            attributes
                .floats("activation_beta")?
                .unwrap_or_default()
                .into_iter(),
        );
        let has = |name: &str, list: &[&str]| list.contains(&name.to_ascii_lowercase().as_str());
        let activations = names
            .into_iter()
            .map(|name| {
                let alpha = has(
                    &name,
                    &[
                        "elu",
                        "affine",
                        "leakyrelu",
                        "hardsigmoid",
                        "thresholdedrelu",
                        "scaledtanh",
                    ],
                )
                .then(|| alphas.next())
                .flatten();
                let beta = has(&name, &["affine", "hardsigmoid", "scaledtanh"])
                    .then(|| betas.next())
                    .flatten();
                Gate { name, alpha, beta }
            })
            .collect();
        let lengths = match call.optional(4) {
            Some(_) => {
                let lengths = call.known(4, "the lengths")?.to_i64();
                let lengths = lengths
                    .into_iter()
                    .map(|len| usize::try_from(len).unwrap_or(usize::MAX))
                    .collect::<Vec<_>>();
                if lengths.len() != batch || lengths.iter().any(|len| *len > steps) {
                    return Err(Error::data(format!(
                        "lengths {lengths:?} of {batch} sequences of {steps}"
                    )));
                }
                Some(lengths).filter(|lengths| lengths.iter().any(|len| *len != steps))
            }
            None => None,
        };
        let clip = attributes.float("clip")?;
        if call.opset < 7 {
            // Whether the states of all steps are an output: they are computed either way.
            attributes.int("output_sequence")?;
        }
        Ok(Self {
            steps,
            batch,
            width,
            hidden,
            element: x.element,
            batch_first,
            directions,
            activations,
            clip,
            lengths,
        })
    }

    /// The input of each step, [batch, width].
    fn inputs(&self, emit: &mut Emit<'_>, x: &Value) -> Result<Vec<Node>> {
        let axis = usize::from(self.batch_first);
        let parts = (0..self.steps).map(|step| {
            let part = emit.take(x, axis, &[step])?;
            let part = emit.reshape(&part, &[self.batch, self.width])?;
            emit.node(&part)
        });
        parts.collect()
    }

    /// Part of a weight or bias: a direction, and rows of it.
    fn rows(
        &self,
        emit: &mut Emit<'_>,
        value: &Value,
        direction: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<Node> {
        let part = emit.take(value, 0, &[direction])?;
        let part = emit.reshape(&part, &value.dims[1..])?;
        let part = emit.run(&part, 0, rows)?;
        emit.node(&part)
    }

    /// The state before the first step, [batch, hidden].
    fn start(
        &self,
        emit: &mut Emit<'_>,
        call: &Call<'_>,
        input: usize,
        direction: usize,
    ) -> Result<Node> {
        let value = match call.optional(input) {
            Some(value) => emit.take(value, usize::from(self.batch_first), &[direction])?,
            None => emit
                .filled(self.element, &[self.batch, self.hidden], 0.0)?
                .into(),
        };
        let value = emit.reshape(&value, &[self.batch, self.hidden])?;
        emit.node(&value)
    }

    fn clipped(&self, emit: &mut Emit<'_>, x: Node) -> Result<Node> {
        let Some(bound) = self.clip else { return Ok(x) };
        let below = emit.with(BinaryOp::Min, x, bound)?;
        emit.with(BinaryOp::Max, below, -bound)
    }

    /// A new state where the sequence continues, the previous one where it has ended.
    fn kept(&self, emit: &mut Emit<'_>, step: usize, new: Node, old: Node) -> Result<Node> {
        let Some(lengths) = &self.lengths else {
            return Ok(new);
        };
        emit.list(&[self.batch])?;
        let goes_on: Vec<i32> = lengths.iter().map(|len| i32::from(step < *len)).collect();
        let goes_on = emit.builder.integer_constant(&goes_on, [self.batch, 1])?;
        emit.builder.select(goes_on, new, old)
    }

    /// The steps in the order of a direction.
    fn order(&self, direction: Direction) -> Vec<usize> {
        if direction == Direction::Forward {
            (0..self.steps).collect()
        } else {
            (0..self.steps).rev().collect()
        }
    }

    /// The outputs: all states, then the last of each kind.
    fn outputs(
        &self,
        emit: &mut Emit<'_>,
        call: &Call<'_>,
        states: Vec<Vec<Node>>,
        last: Vec<Vec<Node>>,
    ) -> Result<Vec<Value>> {
        let (directions, batch, hidden) = (self.directions.len(), self.batch, self.hidden);
        let mut joined = |nodes: Vec<Node>, dims: &[usize]| -> Result<Value> {
            let node = emit.builder.concat(&nodes, 0)?;
            emit.shaped(node, self.element, dims)
        };
        let mut values = Vec::new();
        // [steps, directions, batch, hidden]
        let by_step: Vec<Node> = (0..self.steps)
            .flat_map(|step| states.iter().map(move |states| states[step]))
            .collect();
        let all = joined(by_step, &[self.steps, directions, batch, hidden])?;
        let mut rest = Vec::new();
        for kind in last {
            rest.push(joined(kind, &[directions, batch, hidden])?);
        }
        if self.batch_first {
            values.push(if call.wants(0) {
                emit.permute(&all, &[2, 0, 1, 3])?
            } else {
                all
            });
            for value in rest {
                values.push(emit.permute(&value, &[1, 0, 2])?);
            }
        } else {
            values.push(all);
            values.extend(rest);
        }
        Ok(values)
    }
}

/// x·Wᵀ + bias
fn affine(emit: &mut Emit<'_>, x: Node, weight: Node, bias: Option<Node>) -> Result<Node> {
    let product = emit.builder.matmul(x, weight.transpose())?;
    match bias {
        Some(bias) => emit.builder.add(product, bias),
        None => Ok(product),
    }
}

/// The columns of one gate.
fn gate(emit: &mut Emit<'_>, all: Node, index: usize, hidden: usize) -> Result<Node> {
    emit.builder.slice(all, 1, index * hidden, hidden)
}

/// The activations of an LSTM: of the gates, of the cell's input, and of what it shows.
const LSTM_GATES: &[&str] = &["Sigmoid", "Tanh", "Tanh"];

fn lstm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let layer = Layer::read(call, LSTM_GATES)?;
    let inputs = layer.inputs(emit, call.input(0)?)?;
    let n = layer.hidden;
    lstm_of(emit, call, &layer, &mut |emit, index| {
        let (w, r) = (
            layer.rows(emit, call.input(1)?, index, 0..4 * n)?,
            layer.rows(emit, call.input(2)?, index, 0..4 * n)?,
        );
        Ok(Weights::Floats {
            inputs: inputs.clone(),
            w,
            r,
        })
    })
}

/// An LSTM whose weights are bytes. The inputs of all steps become bytes with one scale, and so
/// does the state before each step.
pub(super) fn dynamic_lstm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (w, r) = (call.input(1)?, call.input(2)?);
    let (&[_, _, w_columns], &[_, hidden, r_columns]) = (&w.dims[..], &r.dims[..]) else {
        return Err(Error::data(format!(
            "weights {:?} and {:?}; [directions, rows, gates] is needed",
            w.dims, r.dims
        )));
    };
    let layer = Layer::of_hidden(call, LSTM_GATES, hidden)?;
    if w_columns != 4 * hidden || r_columns != 4 * hidden || w.dims[1] != layer.width {
        return Err(Error::data(format!(
            "weights {:?} and {:?} for inputs of {}",
            w.dims, r.dims, layer.width
        )));
    }
    let (codes, x_scale) = dynamic_codes(emit, call.input(0)?)?;
    let inputs = layer.inputs(emit, &codes)?;
    lstm_of(emit, call, &layer, &mut |emit, index| {
        let mut bytes = |weights: usize, scale: usize| -> Result<(Value, Value)> {
            let weights = of_direction(emit, call.input(weights)?, index)?;
            let (zero, scale) = (call.optional(scale + 1), call.input(scale)?);
            let zero = zero
                .map(|zero| of_direction(emit, zero, index))
                .transpose()?;
            let codes = weight_codes(emit, &weights, zero.as_ref())?;
            Ok((codes, of_direction(emit, scale, index)?))
        };
        let ((w, w_scale), (r, r_scale)) = (bytes(1, 8)?, bytes(2, 10)?);
        let scale = emit.node(&w_scale)?;
        Ok(Weights::Bytes {
            inputs: inputs.clone(),
            scale: emit.builder.mul(scale, x_scale)?,
            w: Box::new(w),
            r: Box::new(r),
            r_scale: emit.node(&r_scale)?,
        })
    })
}

/// The part of a direction; one number of it repeats.
fn of_direction(emit: &mut Emit<'_>, value: &Value, direction: usize) -> Result<Value> {
    let part = emit.take(value, 0, &[direction])?;
    let dims = if part.len() == 1 {
        &[][..]
    } else {
        &value.dims[1..]
    };
    emit.reshape(&part, dims)
}

/// The weights of a direction, with the inputs that they are multiplied by.
enum Weights {
    Floats {
        inputs: Vec<Node>,
        w: Node,
        r: Node,
    },
    Bytes {
        /// Without their zero points.
        inputs: Vec<Node>,
        w: Box<Value>,
        r: Box<Value>,
        /// Of the inputs times that of `w`.
        scale: Node,
        r_scale: Node,
    },
}

impl Weights {
    /// x·W + bias at a step.
    fn of_input(&self, emit: &mut Emit<'_>, step: usize, bias: Option<Node>) -> Result<Node> {
        match self {
            Self::Floats { inputs, w, .. } => affine(emit, inputs[step], *w, bias),
            Self::Bytes {
                inputs, w, scale, ..
            } => {
                let x = emit.value(inputs[step], ElementType::F32)?;
                let sums = codes_product(emit, &x, w)?;
                let product = emit.builder.mul(sums, *scale)?;
                bias.map_or(Ok(product), |bias| emit.builder.add(product, bias))
            }
        }
    }

    /// h·R + bias
    fn of_state(&self, emit: &mut Emit<'_>, h: Node, bias: Option<Node>) -> Result<Node> {
        match self {
            Self::Floats { r, .. } => affine(emit, h, *r, bias),
            Self::Bytes { r, r_scale, .. } => {
                let h = emit.value(h, ElementType::F32)?;
                let (codes, scale) = dynamic_codes(emit, &h)?;
                let sums = codes_product(emit, &codes, r)?;
                let scale = emit.builder.mul(*r_scale, scale)?;
                let product = emit.builder.mul(sums, scale)?;
                bias.map_or(Ok(product), |bias| emit.builder.add(product, bias))
            }
        }
    }
}

/// An LSTM with the weights that `weights` gives for each direction.
fn lstm_of(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    layer: &Layer,
    weights: &mut dyn FnMut(&mut Emit<'_>, usize) -> Result<Weights>,
) -> Result<Vec<Value>> {
    let n = layer.hidden;
    let couples = call.attributes.flag("input_forget", false)?;
    let (mut states, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
    for (index, &direction) in layer.directions.iter().enumerate() {
        let [f, g, h_of] = [0, 1, 2].map(|place| layer.activations[3 * index + place].clone());
        let weights = weights(emit, index)?;
        let bias = match call.optional(3) {
            Some(bias) => Some((
                layer.rows(emit, bias, index, 0..4 * n)?,
                layer.rows(emit, bias, index, 4 * n..8 * n)?,
            )),
            None => None,
        };
        let peepholes = match call.optional(7) {
            Some(p) => Some([
                layer.rows(emit, p, index, 0..n)?,
                layer.rows(emit, p, index, n..2 * n)?,
                layer.rows(emit, p, index, 2 * n..3 * n)?,
            ]),
            None => None,
        };
        let (mut h, mut c) = (
            layer.start(emit, call, 5, index)?,
            layer.start(emit, call, 6, index)?,
        );
        let mut all = vec![h; layer.steps];
        for step in layer.order(direction) {
            // The gates in the file's order: input, output, forget, cell.
            let of_input = weights.of_input(emit, step, bias.map(|(first, _)| first))?;
            let of_state = weights.of_state(emit, h, bias.map(|(_, second)| second))?;
            let sum = emit.builder.add(of_input, of_state)?;
            let looked = |emit: &mut Emit<'_>, index: usize, c: Node| -> Result<Node> {
                let gate = gate(emit, sum, index, n)?;
                let gate = match peepholes.filter(|_| index < 3) {
                    Some(p) => {
                        let seen = emit.builder.mul(c, p[index])?;
                        emit.builder.add(gate, seen)?
                    }
                    None => gate,
                };
                layer.clipped(emit, gate)
            };
            let input = looked(emit, 0, c)?;
            let input = f.add(emit, input)?;
            let forget = if couples {
                let negative = emit.builder.scale(input, -1.0)?;
                emit.with(BinaryOp::Add, negative, 1.0)?
            } else {
                let forget = looked(emit, 2, c)?;
                f.add(emit, forget)?
            };
            let cell = looked(emit, 3, c)?;
            let cell = g.add(emit, cell)?;
            let (kept, added) = (emit.builder.mul(forget, c)?, emit.builder.mul(input, cell)?);
            let new_c = emit.builder.add(kept, added)?;
            let output = looked(emit, 1, new_c)?;
            let output = f.add(emit, output)?;
            let shown = h_of.add(emit, new_c)?;
            let new_h = emit.builder.mul(output, shown)?;
            all[step] = ended(emit, layer, step, new_h)?;
            (h, c) = (
                layer.kept(emit, step, new_h, h)?,
                layer.kept(emit, step, new_c, c)?,
            );
        }
        states.push(all);
        last_h.push(h);
        last_c.push(c);
    }
    layer.outputs(emit, call, states, vec![last_h, last_c])
}

/// What a step shows: zeros after the end of a sequence.
fn ended(emit: &mut Emit<'_>, layer: &Layer, step: usize, new: Node) -> Result<Node> {
    let zero = emit.number(0.0)?;
    layer.kept(emit, step, new, zero)
}

fn gru(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let layer = Layer::read(call, &["Sigmoid", "Tanh"])?;
    let n = layer.hidden;
    let is_linear_first = call.attributes.flag("linear_before_reset", false)?;
    let inputs = layer.inputs(emit, call.input(0)?)?;
    let (mut states, mut last) = (Vec::new(), Vec::new());
    for (index, &direction) in layer.directions.iter().enumerate() {
        let [f, g] = [0, 1].map(|place| layer.activations[2 * index + place].clone());
        let w = layer.rows(emit, call.input(1)?, index, 0..3 * n)?;
        let (r, r_hidden) = (
            layer.rows(emit, call.input(2)?, index, 0..2 * n)?,
            layer.rows(emit, call.input(2)?, index, 2 * n..3 * n)?,
        );
        let (mut w_bias, mut r_bias, mut hidden_bias) = (None, None, None);
        if let Some(bias) = call.optional(3) {
            w_bias = Some(layer.rows(emit, bias, index, 0..3 * n)?);
            r_bias = Some(layer.rows(emit, bias, index, 3 * n..5 * n)?);
            hidden_bias = Some(layer.rows(emit, bias, index, 5 * n..6 * n)?);
        }
        let mut h = layer.start(emit, call, 5, index)?;
        let mut all = vec![h; layer.steps];
        for step in layer.order(direction) {
            // The gates in the file's order: update, reset, hidden.
            let of_input = affine(emit, inputs[step], w, w_bias)?;
            let of_state = affine(emit, h, r, r_bias)?;
            let gated = |emit: &mut Emit<'_>, index: usize| -> Result<Node> {
                let (a, b) = (
                    gate(emit, of_input, index, n)?,
                    gate(emit, of_state, index, n)?,
                );
                let sum = emit.builder.add(a, b)?;
                let sum = layer.clipped(emit, sum)?;
                f.add(emit, sum)
            };
            let (update, reset) = (gated(emit, 0)?, gated(emit, 1)?);
            let seen = if is_linear_first {
                let linear = affine(emit, h, r_hidden, hidden_bias)?;
                emit.builder.mul(reset, linear)?
            } else {
                let part = emit.builder.mul(reset, h)?;
                affine(emit, part, r_hidden, hidden_bias)?
            };
            let candidate = gate(emit, of_input, 2, n)?;
            let candidate = emit.builder.add(candidate, seen)?;
            let candidate = layer.clipped(emit, candidate)?;
            let candidate = g.add(emit, candidate)?;
            // (1 − z)·candidate + z·h
            let difference = emit.builder.sub(h, candidate)?;
            let moved = emit.builder.mul(update, difference)?;
            let new = emit.builder.add(candidate, moved)?;
            all[step] = ended(emit, &layer, step, new)?;
            h = layer.kept(emit, step, new, h)?;
        }
        states.push(all);
        last.push(h);
    }
    layer.outputs(emit, call, states, vec![last])
}

fn rnn(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let layer = Layer::read(call, &["Tanh"])?;
    let n = layer.hidden;
    let inputs = layer.inputs(emit, call.input(0)?)?;
    let (mut states, mut last) = (Vec::new(), Vec::new());
    for (index, &direction) in layer.directions.iter().enumerate() {
        let f = layer.activations[index].clone();
        let (w, r) = (
            layer.rows(emit, call.input(1)?, index, 0..n)?,
            layer.rows(emit, call.input(2)?, index, 0..n)?,
        );
        let bias = match call.optional(3) {
            Some(bias) => Some((
                layer.rows(emit, bias, index, 0..n)?,
                layer.rows(emit, bias, index, n..2 * n)?,
            )),
            None => None,
        };
        let mut h = layer.start(emit, call, 5, index)?;
        let mut all = vec![h; layer.steps];
        for step in layer.order(direction) {
            let of_input = affine(emit, inputs[step], w, bias.map(|(first, _)| first))?;
            let of_state = affine(emit, h, r, bias.map(|(_, second)| second))?;
            let sum = emit.builder.add(of_input, of_state)?;
            let sum = layer.clipped(emit, sum)?;
            let new = f.add(emit, sum)?;
            all[step] = ended(emit, &layer, step, new)?;
            h = layer.kept(emit, step, new, h)?;
        }
        states.push(all);
        last.push(h);
    }
    layer.outputs(emit, call, states, vec![last])
}
