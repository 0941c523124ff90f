//! Branches and loops: decided and unrolled when the model is loaded. Of a condition that is
//! computed while the network runs, both branches are computed and one is selected.

use rten_onnx::onnx::GraphProto;
use tectum::{Error, Result};

use super::AddControl;
use super::constants::sizes;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Unroll, Value, normal_axis};
use crate::model::{Port, PortDim};

pub(super) const FAMILY: &[(&str, AddControl)] =
    &[("If", choose), ("Loop", repeat), ("Scan", scan)];

/// The first element of a tensor that is a scalar or has one element.
fn single(array: &Array, what: &str) -> Result<f64> {
    match array.to_f64()[..] {
        [value] => Ok(value),
        _ => Err(Error::data(format!(
            "{what} of {:?}: one element is needed",
            array.dims()
        ))),
    }
}

fn choose<'m>(import: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let condition = call.input(0)?;
    let (on, off) = (
        call.attributes.graph("then_branch")?,
        call.attributes.graph("else_branch")?,
    );
    if let Some(known) = condition.array() {
        let is_on = single(known, "the condition")? != 0.0;
        return import.subgraph(if is_on { on } else { off }, Vec::new());
    }
    if condition.len() != 1 {
        return Err(Error::data(format!(
            "the condition of {:?}: one element is needed",
            condition.dims
        )));
    }
    let (Some(on), Some(off)) = (
        import.subgraph(on, Vec::new())?,
        import.subgraph(off, Vec::new())?,
    ) else {
        return Ok(None);
    };
    if on.len() != off.len() {
        return Err(Error::data(format!(
            "its branches have {} and {} outputs",
            on.len(),
            off.len()
        )));
    }
    let emit = import.emit();
    on.iter()
        .zip(&off)
        .map(|(on, off)| selected(emit, condition, on, off))
        .collect::<Result<Vec<_>>>()
        .map(Some)
}

/// One of two values, by a condition that is computed while the network runs.
fn selected(emit: &mut Emit<'_>, condition: &Value, on: &Value, off: &Value) -> Result<Value> {
    if on.element != off.element || on.dims != off.dims {
        return Err(Error::unsupported(format!(
            "its branches give {:?} {} and {:?} {}, and input 0, the condition, is computed while the network runs: both need one shape and type",
            on.dims, on.element, off.dims, off.element
        )));
    }
    if on.len() == 0 {
        return Ok(on.clone());
    }
    let [condition, on_node, off_node] = [emit.node(condition)?, emit.node(on)?, emit.node(off)?];
    let node = emit.builder.select(condition, on_node, off_node)?;
    emit.shaped(node, on.element, &on.dims)
}

/// The values that one output of a body had in each repetition.
struct Collected {
    parts: Vec<Value>,
    axis: i64,
    is_reversed: bool,
}

impl Collected {
    fn new(axis: i64, is_reversed: bool) -> Self {
        Self {
            parts: Vec::new(),
            axis,
            is_reversed,
        }
    }

    /// The values along a new axis.
    fn join(mut self, emit: &mut Emit<'_>, graph: &GraphProto, output: usize) -> Result<Value> {
        if self.is_reversed {
            self.parts.reverse();
        }
        let Some(first) = self.parts.first() else {
            return nothing(emit, graph, output, self.axis);
        };
        let axis = normal_axis(self.axis, first.rank() + 1)?;
        let widened = self.parts.iter().map(|part| {
            let mut dims = part.dims.clone();
            if axis > dims.len() {
                return Err(Error::data(format!("axis {axis} of {dims:?}")));
            }
            dims.insert(axis, 1);
            emit.reshape(part, &dims)
        });
        let widened = widened.collect::<Result<Vec<_>>>()?;
        emit.join(&widened, axis)
    }
}

/// What is collected of no repetitions: the shape of one value is stated in the file.
fn nothing(emit: &Emit<'_>, graph: &GraphProto, output: usize, axis: i64) -> Result<Value> {
    let fault = || {
        Error::unsupported(format!(
            "no repetitions, and the shape of output {output} of the body is not stated"
        ))
    };
    let port = graph.output.get(output).map(Port::of).ok_or_else(fault)?;
    let size = |dim: &PortDim| {
        if let PortDim::Size(size) = dim {
            Some(*size)
        } else {
            None
        }
    };
    let dims = port
        .dims
        .as_ref()
        .and_then(|dims| dims.iter().map(size).collect::<Option<Vec<_>>>());
    let (Some(element), Some(mut dims)) = (port.element, dims) else {
        return Err(fault());
    };
    let axis = normal_axis(axis, dims.len() + 1)?;
    dims.insert(axis, 0);
    Ok(emit.filled(element, &dims, 0.0)?.into())
}

fn repeat<'m>(import: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let body = call.attributes.graph("body")?;
    let trips = match call.optional_known(0, "the number of repetitions")? {
        Some(trips) => Some((
            single(trips, "the number of repetitions")?,
            trips.dims().to_vec(),
        )),
        None => None,
    };
    let mut condition = match call.optional_known(1, "the condition")? {
        Some(condition) => single(condition, "the condition")? != 0.0,
        None => true,
    };
    let mut states = call
        .inputs
        .iter()
        .skip(2)
        .cloned()
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::data("an initial value is missing"))?;
    let count = states.len();
    let outputs = body.output.len().checked_sub(1 + count).ok_or_else(|| {
        Error::data(format!(
            "its body has {} outputs for {count} values",
            body.output.len()
        ))
    })?;
    let mut collected: Vec<Collected> = (0..outputs).map(|_| Collected::new(0, false)).collect();
    // The counter has the shape that the body states, or that of the number of repetitions.
    let counter = body
        .input
        .first()
        .map(Port::of)
        .and_then(|port| port.dims)
        .map(|dims| vec![1; dims.len()]);
    let counter = counter
        .or(trips.as_ref().map(|(_, dims)| dims.clone()))
        .unwrap_or_default();
    let mut trip = 0;
    while condition
        && trips
            .as_ref()
            .is_none_or(|(trips, _)| f64::from(trip) < *trips)
    {
        import.count_node()?;
        let number = Array::scalar(ElementType::I64, trip.into()).reshaped(&counter);
        let goes_on = Array::scalar(ElementType::Bool, 1.0);
        let inputs = [number.into(), goes_on.into()]
            .into_iter()
            .chain(states)
            .collect();
        let Some(values) = import.subgraph(body, inputs)? else {
            return Ok(None);
        };
        let mut values = values.into_iter();
        let next = values
            .next()
            .ok_or_else(|| Error::data("its body has no condition"))?;
        let known = next.array().ok_or_else(|| Error::unsupported("its condition is computed while the network runs; it must be known when it is loaded"))?;
        condition = single(known, "the condition")? != 0.0;
        states = values.by_ref().take(count).collect();
        collected
            .iter_mut()
            .zip(values)
            .for_each(|(collected, value)| collected.parts.push(value));
        trip += 1;
    }
    for (index, collected) in collected.into_iter().enumerate() {
        states.push(collected.join(import.emit(), body, 1 + count + index)?);
    }
    Ok(Some(states))
}

/// Axes or directions, one for each of `count` values.
fn settings(call: &Call<'_>, name: &'static str, count: usize) -> Result<Vec<i64>> {
    let given = call
        .attributes
        .ints(name)?
        .unwrap_or_else(|| vec![0; count]);
    if given.len() == count {
        Ok(given)
    } else {
        Err(Error::data(format!(
            "{name} has {} numbers; {count} are needed",
            given.len()
        )))
    }
}

fn scan<'m>(import: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let body = call.attributes.graph("body")?;
    let inputs = call
        .attributes
        .int("num_scan_inputs")?
        .and_then(|count| usize::try_from(count).ok());
    let inputs =
        inputs.ok_or_else(|| Error::data("attribute num_scan_inputs is missing or negative"))?;
    let is_batched = call.opset < 9;
    let all = call
        .inputs
        .iter()
        .skip(usize::from(is_batched))
        .cloned()
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::data("an input is missing"))?;
    let fault = || {
        Error::data(format!(
            "{} inputs and {} outputs of its body for {inputs} sequences",
            all.len(),
            body.output.len()
        ))
    };
    let states = all.len().checked_sub(inputs).ok_or_else(fault)?;
    let outputs = body.output.len().checked_sub(states).ok_or_else(fault)?;
    let sequences = &all[states..];
    if is_batched {
        let directions = settings(call, "directions", inputs)?;
        return scan_batch(
            import,
            call,
            body,
            Batched {
                states: &all[..states],
                sequences,
                directions,
                outputs,
            },
        );
    }
    let (input_axes, output_axes) = (
        settings(call, "scan_input_axes", inputs)?,
        settings(call, "scan_output_axes", outputs)?,
    );
    let directions = settings(call, "scan_input_directions", inputs)?;
    let output_directions = settings(call, "scan_output_directions", outputs)?;
    let axes = sequences
        .iter()
        .zip(input_axes)
        .map(|(value, axis)| value.axis(axis))
        .collect::<Result<Vec<_>>>()?;
    let mut collected = output_axes
        .into_iter()
        .zip(output_directions)
        .map(|(axis, direction)| Collected::new(axis, direction != 0))
        .collect::<Vec<_>>();
    let steps = steps(sequences, &axes)?;
    let Some(mut values) = unroll(
        import,
        body,
        all[..states].to_vec(),
        Steps {
            sequences,
            axes: &axes,
            directions: &directions,
            steps,
        },
        &mut collected,
    )?
    else {
        return Ok(None);
    };
    for (index, collected) in collected.into_iter().enumerate() {
        values.push(collected.join(import.emit(), body, states + index)?);
    }
    Ok(Some(values))
}

/// The length that all sequences have.
fn steps(sequences: &[Value], axes: &[usize]) -> Result<usize> {
    let lengths: Vec<usize> = sequences
        .iter()
        .zip(axes)
        .map(|(value, axis)| value.dims[*axis])
        .collect();
    match lengths.first() {
        Some(first) if lengths.iter().all(|len| len == first) => Ok(*first),
        _ => Err(Error::data(format!(
            "sequences of lengths {lengths:?}: one length is needed"
        ))),
    }
}

/// Sequences that are read step by step.
struct Steps<'a> {
    sequences: &'a [Value],
    axes: &'a [usize],
    /// 1 for those read from the end.
    directions: &'a [i64],
    steps: usize,
}

/// Repeats a body for each step: the last states; `collected` gets the other outputs.
fn unroll<'m>(
    import: &mut dyn Unroll<'m>,
    body: &'m GraphProto,
    mut states: Vec<Value>,
    all: Steps<'_>,
    collected: &mut [Collected],
) -> Result<Option<Vec<Value>>> {
    let count = states.len();
    for step in 0..all.steps {
        import.count_node()?;
        let mut inputs = states;
        for ((value, &axis), direction) in all.sequences.iter().zip(all.axes).zip(all.directions) {
            let place = if *direction == 0 {
                step
            } else {
                value.dims[axis] - 1 - step
            };
            let part = import.emit().take(value, axis, &[place])?;
            let mut dims = part.dims.clone();
            dims.remove(axis);
            inputs.push(import.emit().reshape(&part, &dims)?);
        }
        let Some(values) = import.subgraph(body, inputs)? else {
            return Ok(None);
        };
        let mut values = values.into_iter();
        states = values.by_ref().take(count).collect();
        collected
            .iter_mut()
            .zip(values)
            .for_each(|(collected, value)| collected.parts.push(value));
    }
    Ok(Some(states))
}

/// What opset 8 reads: a batch of sequences, [batch, time, ...].
struct Batched<'a> {
    states: &'a [Value],
    sequences: &'a [Value],
    directions: Vec<i64>,
    outputs: usize,
}

/// One element of a batch, without its axis.
fn item(emit: &mut Emit<'_>, value: &Value, index: usize) -> Result<Value> {
    let part = emit.take(value, 0, &[index])?;
    emit.reshape(&part, &value.dims[1..])
}

fn scan_batch<'m>(
    import: &mut dyn Unroll<'m>,
    call: &Call<'m>,
    body: &'m GraphProto,
    all: Batched<'_>,
) -> Result<Option<Vec<Value>>> {
    let batch = all
        .sequences
        .first()
        .and_then(|value| value.dims.first())
        .copied()
        .unwrap_or(0);
    let is_odd = |value: &Value, rank: usize| value.rank() < rank || value.dims[0] != batch;
    if batch == 0
        || all.states.iter().any(|value| is_odd(value, 1))
        || all.sequences.iter().any(|value| is_odd(value, 2))
    {
        return Err(Error::data("its inputs have no common batch"));
    }
    let axes = vec![0; all.sequences.len()];
    let longest = steps(all.sequences, &vec![1; all.sequences.len()])?;
    let lengths = match call.optional_known(0, "the lengths")? {
        Some(lengths) => sizes(lengths)?,
        None => vec![longest; batch],
    };
    if lengths.len() != batch || lengths.iter().any(|len| *len > longest) {
        return Err(Error::data(format!(
            "lengths {lengths:?} for {batch} sequences of {longest}"
        )));
    }
    // The values of each output, one for each element of the batch.
    let mut rows: Vec<Vec<Value>> = vec![Vec::new(); all.states.len() + all.outputs];
    for (index, steps) in lengths.into_iter().enumerate() {
        let states = all
            .states
            .iter()
            .map(|value| item(import.emit(), value, index))
            .collect::<Result<Vec<_>>>()?;
        let mut sequences = Vec::new();
        for value in all.sequences {
            let sequence = item(import.emit(), value, index)?;
            let places: Vec<usize> = (0..steps).collect();
            sequences.push(if steps == longest {
                sequence
            } else {
                import.emit().take(&sequence, 0, &places)?
            });
        }
        let mut collected: Vec<Collected> =
            (0..all.outputs).map(|_| Collected::new(0, false)).collect();
        let steps_of = Steps {
            sequences: &sequences,
            axes: &axes,
            directions: &all.directions,
            steps,
        };
        let Some(mut values) = unroll(import, body, states, steps_of, &mut collected)? else {
            return Ok(None);
        };
        for (output, collected) in collected.into_iter().enumerate() {
            let value = collected.join(import.emit(), body, all.states.len() + output)?;
            values.push(extended(import.emit(), value, longest)?);
        }
        rows.iter_mut()
            .zip(values)
            .for_each(|(row, value)| row.push(value));
    }
    let joined = rows.into_iter().map(|parts| {
        Collected {
            parts,
            axis: 0,
            is_reversed: false,
        }
        .join(import.emit(), body, 0)
    });
    joined.collect::<Result<Vec<_>>>().map(Some)
}

/// A sequence followed by zeros.
fn extended(emit: &mut Emit<'_>, value: Value, steps: usize) -> Result<Value> {
    let mut dims = value.dims.clone();
    dims[0] = steps - dims[0];
    if dims[0] == 0 {
        return Ok(value);
    }
    let zeros = emit.filled(value.element, &dims, 0.0)?.into();
    emit.join(&[value, zeros], 0)
}
