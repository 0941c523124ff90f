//! Values that are known when the model is loaded, and types.

use tectum::{DType, Error, Result};
use tectum_graph::Comparison;

use super::Family;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Source, Value, made};

pub(super) const FAMILY: Family = &[
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Constant", constant),
    ("ConstantOfShape", constant_of_shape),
    ("Dropout", dropout),
    ("EyeLike", eye_like),
    ("Identity", identity),
    ("NonZero", non_zero),
    ("Range", range),
    ("Shape", shape),
    ("Size", size),
];

/// The type of an attribute with ONNX's number for it.
pub(super) fn element_of(code: i64) -> Result<ElementType> {
    let known = i32::try_from(code)
        .ok()
        .and_then(|code| ElementType::of(rten_onnx::onnx::DataType(code)));
    known.ok_or_else(|| Error::unsupported(format!("elements of type {code}")))
}

/// The type of an attribute with ONNX's name for it.
fn named_element(name: &str) -> Result<ElementType> {
    let known = match name {
        "FLOAT" => ElementType::F32,
        "DOUBLE" => ElementType::F64,
        "FLOAT16" => ElementType::F16,
        "INT8" => ElementType::I8,
        "INT16" => ElementType::I16,
        "INT32" => ElementType::I32,
        "INT64" => ElementType::I64,
        "UINT8" => ElementType::U8,
        "UINT16" => ElementType::U16,
        "UINT32" => ElementType::U32,
        "UINT64" => ElementType::U64,
        "BOOL" => ElementType::Bool,
        _ => return Err(Error::unsupported(format!("elements of type {name:?}"))),
    };
    Ok(known)
}

fn constant(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let attributes = &call.attributes;
    if let Some(tensor) = attributes.tensor("value")? {
        return Ok(vec![emit.tensor(tensor)?.into()]);
    }
    let floats = |values: Vec<f32>, dims: &[usize]| Array::floats(dims, values);
    let array = match (
        attributes.float("value_float")?,
        attributes.floats("value_floats")?,
    ) {
        (Some(value), _) => floats(vec![value], &[])?,
        (_, Some(values)) => floats(values.clone(), &[values.len()])?,
        _ => match (attributes.int("value_int")?, attributes.ints("value_ints")?) {
            (Some(value), _) => Array::scalar(ElementType::I64, value as f64),
            (_, Some(values)) => Array::int64s(&values),
            _ => {
                return Err(Error::unsupported(
                    "a constant that is no tensor of numbers",
                ));
            }
        },
    };
    Ok(vec![array.into()])
}

/// Sizes given by an input.
pub(super) fn sizes(array: &Array) -> Result<Vec<usize>> {
    let sizes = array
        .to_i64()
        .into_iter()
        .map(|size| usize::try_from(size).ok())
        .collect::<Option<Vec<_>>>();
    let sizes = sizes.ok_or_else(|| Error::data(format!("sizes {:?}", array.to_i64())))?;
    let len = sizes
        .iter()
        .try_fold(1usize, |product, size| product.checked_mul((*size).max(1)));
    if len.is_some_and(|len| len <= u32::MAX as usize) {
        Ok(sizes)
    } else {
        Err(Error::data(format!("{sizes:?} are too many elements")))
    }
}

fn constant_of_shape(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let dims = sizes(call.known(0, "the shape")?)?;
    let value = match call.attributes.tensor("value")? {
        Some(tensor) => emit.tensor(tensor)?,
        None => Array::floats(&[1], vec![0.0])?,
    };
    let fill = value
        .to_f64()
        .first()
        .copied()
        .ok_or_else(|| Error::data("value has no elements"))?;
    Ok(vec![emit.filled(value.element(), &dims, fill)?.into()])
}

fn dropout(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    call.attributes.float("ratio")?;
    call.attributes.int("seed")?;
    if call.opset < 7 && !call.attributes.flag("is_test", false)? {
        return Err(Error::unsupported("dropout in training is random"));
    }
    let is_training = match call.optional_known(2, "training_mode")? {
        Some(mode) => mode.to_f64().iter().any(|value| *value != 0.0),
        None => false,
    };
    let ratio = call
        .optional_known(1, "ratio")?
        .map_or(0.5, |ratio| ratio.to_f64().first().copied().unwrap_or(0.5));
    if is_training && ratio != 0.0 {
        return Err(Error::unsupported("dropout in training is random"));
    }
    let x = call.input(0)?.clone();
    if !call.wants(1) {
        return Ok(vec![x]);
    }
    let mask = emit.filled(ElementType::Bool, &x.dims, 1.0)?;
    Ok(vec![x, mask.into()])
}

fn eye_like(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let element = call
        .attributes
        .int("dtype")?
        .map_or(Ok(x.element), element_of)?;
    let shift = call.attributes.int_or("k", 0)?;
    let &[rows, cols] = &x.dims[..] else {
        return Err(Error::data(format!("{:?} is no matrix", x.dims)));
    };
    let one = |place: usize| {
        f64::from(u8::from(
            (place % cols) as i64 == ((place / cols) as i64).saturating_add(shift),
        ))
    };
    emit.spend(made(&[rows, cols])?)?;
    Ok(vec![
        Array::wide(element, &[rows, cols], (0..rows * cols).map(one).collect()).into(),
    ])
}

fn identity(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    Ok(vec![call.input(0)?.clone()])
}

fn non_zero(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.known(0, "whose places are a shape")?;
    let places: Vec<usize> = x
        .to_f64()
        .iter()
        .enumerate()
        .filter(|(_, value)| **value != 0.0)
        .map(|(place, _)| place)
        .collect();
    let mut stride = x.len();
    let mut rows = Vec::new();
    for size in x.dims() {
        stride /= (*size).max(1);
        rows.extend(
            places
                .iter()
                .map(|place| (place / stride.max(1) % size) as f64),
        );
    }
    Ok(vec![
        Array::wide(ElementType::I64, &[x.dims().len(), places.len()], rows).into(),
    ])
}

fn range(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let number = |index: usize, what: &str| {
        let array = call.known(index, what)?;
        array
            .to_f64()
            .first()
            .copied()
            .ok_or_else(|| Error::data(format!("{what} has no elements")))
    };
    let (start, limit, step) = (
        number(0, "the start")?,
        number(1, "the limit")?,
        number(2, "the step")?,
    );
    let count = ((limit - start) / step).ceil();
    if step == 0.0 || !count.is_finite() {
        return Err(Error::data(format!("from {start} to {limit} by {step}")));
    }
    let count = made(&[count.max(0.0) as usize])?;
    emit.spend(count)?;
    Ok(vec![
        Array::wide(
            element,
            &[count],
            (0..count)
                .map(|place| start + place as f64 * step)
                .collect(),
        )
        .into(),
    ])
}

fn shape(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let rank = x.rank() as i64;
    let place = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
    let (start, end) = (
        place(call.attributes.int_or("start", 0)?),
        place(call.attributes.int_or("end", rank)?),
    );
    let dims: Vec<i64> = x
        .dims
        .get(start..end)
        .unwrap_or_default()
        .iter()
        .map(|size| *size as i64)
        .collect();
    Ok(vec![Array::int64s(&dims).into()])
}

fn size(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    Ok(vec![
        Array::scalar(ElementType::I64, call.input(0)?.len() as f64).into(),
    ])
}

fn cast(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let to = match call.opset {
        ..6 => named_element(call.attributes.string_or("to", "")?)?,
        _ => element_of(call.attributes.int_or("to", 0)?)?,
    };
    call.attributes.int("saturate")?;
    call.attributes.string("round_mode")?;
    convert(emit, call.input(0)?, to).map(|value| vec![value])
}

fn cast_like(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let to = call.input(1)?.element;
    call.attributes.int("saturate")?;
    call.attributes.string("round_mode")?;
    convert(emit, call.input(0)?, to).map(|value| vec![value])
}

/// A value as another type.
pub(super) fn convert(emit: &mut Emit<'_>, value: &Value, to: ElementType) -> Result<Value> {
    if let Source::Known(array) = &value.source {
        return Ok(array.cast(to).into());
    }
    if value.element == to {
        return Ok(value.clone());
    }
    let node = emit.node(value)?;
    let is_narrower = to.range().is_some_and(|(low, high)| {
        value
            .element
            .range()
            .is_none_or(|(from_low, from_high)| from_low < low || from_high > high)
    });
    let node = match (value.element.dtype(), to.dtype()) {
        (from, into) if from == into => node,
        (DType::F32, _) if to == ElementType::Bool => {
            let zero = emit.number(0.0)?;
            emit.builder.compare(Comparison::NotEqual, node, zero)?
        }
        (_, into) => emit.builder.convert(node, into)?,
    };
    let node = match to {
        ElementType::Bool
            if value.element.dtype() == DType::I32 && value.element != ElementType::Bool =>
        {
            let zero = emit.integer(0)?;
            emit.builder.compare(Comparison::NotEqual, node, zero)?
        }
        ElementType::I8 | ElementType::I16 | ElementType::U8 | ElementType::U16 if is_narrower => {
            emit.wrap(node, to)?
        }
        _ => node,
    };
    Ok(Value {
        element: to,
        ..emit.value(node, to)?
    })
}
