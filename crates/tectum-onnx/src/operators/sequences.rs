//! Sequences of tensors: their lengths and the places that are read are known when the model is
//! loaded, so that nothing of them is left to run.

use std::rc::Rc;

use tectum::{Error, Result};

use super::AddControl;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Source, Unroll, Value, normal_axis};

pub(super) const FAMILY: &[(&str, AddControl)] = &[
    ("ConcatFromSequence", concat),
    ("SequenceAt", at),
    ("SequenceConstruct", construct),
    ("SequenceEmpty", empty),
    ("SequenceErase", erase),
    ("SequenceInsert", insert),
    ("SequenceLength", length),
    ("SplitToSequence", split),
];

/// A sequence as a value.
fn sequence(parts: Vec<Value>) -> Value {
    Value {
        element: parts.first().map_or(ElementType::F32, |part| part.element),
        dims: Vec::new(),
        source: Source::Sequence(Rc::new(parts)),
        codes: None,
        convolution: None,
    }
}

/// The values of the sequence that an input is.
fn parts<'c>(call: &'c Call<'_>) -> Result<&'c [Value]> {
    match &call.input(0)?.source {
        Source::Sequence(parts) => Ok(parts),
        _ => Err(Error::data("input 0 is no sequence")),
    }
}

/// The place of an input that counts from either end, below `count`; none without the input.
fn position(call: &Call<'_>, input: usize, count: usize) -> Result<Option<usize>> {
    let Some(array) = call.optional_known(input, "the position")? else {
        return Ok(None);
    };
    match array.to_i64()[..] {
        [place] => normal_axis(place, count)
            .map(Some)
            .map_err(|_| Error::data(format!("position {place} of {count}"))),
        _ => Err(Error::data("the position is no single number")),
    }
}

fn construct<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let values = call.inputs.iter().flatten().cloned().collect();
    Ok(Some(vec![sequence(values)]))
}

fn empty<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    // The type of the elements that follow is their own.
    call.attributes.int("dtype")?;
    Ok(Some(vec![sequence(Vec::new())]))
}

fn at<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let parts = parts(call)?;
    let place = position(call, 1, parts.len())?;
    let place = place.ok_or_else(|| Error::data("input 1, the position, is missing"))?;
    Ok(Some(vec![parts[place].clone()]))
}

fn erase<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let mut parts = parts(call)?.to_vec();
    let removed = match position(call, 1, parts.len())? {
        Some(place) => Some(parts.remove(place)),
        None => parts.pop(),
    };
    if removed.is_none() {
        return Err(Error::data("the sequence is empty"));
    }
    Ok(Some(vec![sequence(parts)]))
}

fn insert<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let mut parts = parts(call)?.to_vec();
    // One more place than there are values: the end.
    let place = match call.optional_known(2, "the position")?.map(Array::to_i64) {
        Some(place) if place[..] == [parts.len() as i64] => parts.len(),
        Some(_) => position(call, 2, parts.len())?.unwrap_or(parts.len()),
        None => parts.len(),
    };
    parts.insert(place, call.input(1)?.clone());
    Ok(Some(vec![sequence(parts)]))
}

fn length<'m>(_: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let count = parts(call)?.len() as f64;
    Ok(Some(vec![Array::scalar(ElementType::I64, count).into()]))
}

fn concat<'m>(import: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let (parts, emit) = (parts(call)?, import.emit());
    let axis = call
        .attributes
        .int("axis")?
        .ok_or_else(|| Error::data("attribute axis is missing"))?;
    let is_new = call.attributes.flag("new_axis", false)?;
    let first = parts
        .first()
        .ok_or_else(|| Error::unsupported("a sequence without values is joined"))?;
    let axis = normal_axis(axis, first.rank() + usize::from(is_new))?;
    let widened = parts.iter().map(|part| {
        let mut dims = part.dims.clone();
        if is_new {
            dims.insert(axis.min(dims.len()), 1);
        }
        emit.reshape(part, &dims)
    });
    let widened = widened.collect::<Result<Vec<_>>>()?;
    Ok(Some(vec![emit.join(&widened, axis)?]))
}

fn split<'m>(import: &mut dyn Unroll<'m>, call: &Call<'m>) -> Result<Option<Vec<Value>>> {
    let (x, emit) = (call.input(0)?, import.emit());
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let keeps_axis = call.attributes.flag("keepdims", true)?;
    let size = x.dims[axis];
    let split = call.optional_known(1, "split")?;
    let sizes = split.map(|array| array.to_i64().into_iter().map(usize::try_from));
    let sizes = sizes
        .map(Iterator::collect::<std::result::Result<Vec<usize>, _>>)
        .transpose()
        .map_err(|_| Error::data("a size of a part is negative"))?;
    let sizes = match (sizes.as_deref(), split) {
        (Some([chunk]), Some(array)) if array.dims().is_empty() => chunks(size, *chunk)?,
        (Some(sizes), _) => sizes.to_vec(),
        (None, _) => chunks(size, 1)?,
    };
    let sum = sizes
        .iter()
        .try_fold(0usize, |sum, part| sum.checked_add(*part));
    if sum != Some(size) {
        return Err(Error::data(format!(
            "axis {axis} of {:?} in parts {sizes:?}",
            x.dims
        )));
    }
    let mut start = 0;
    let mut values = Vec::new();
    for part in sizes {
        values.push(piece(
            emit,
            x,
            axis,
            start,
            part,
            keeps_axis || split.is_some(),
        )?);
        start += part;
    }
    Ok(Some(vec![sequence(values)]))
}

/// The parts of a size in chunks, of which the last may be smaller.
fn chunks(size: usize, chunk: usize) -> Result<Vec<usize>> {
    if chunk == 0 {
        return Err(Error::data("parts of size 0"));
    }
    Ok((0..size)
        .step_by(chunk)
        .map(|start| chunk.min(size - start))
        .collect())
}

/// A part of an axis, without the axis if it is not kept.
fn piece(
    emit: &mut Emit<'_>,
    x: &Value,
    axis: usize,
    start: usize,
    part: usize,
    keeps_axis: bool,
) -> Result<Value> {
    let value = emit.run(x, axis, start..start + part)?;
    if keeps_axis {
        return Ok(value);
    }
    let mut dims = value.dims.clone();
    dims.remove(axis);
    emit.reshape(&value, &dims)
}
