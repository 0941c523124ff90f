//! Losses, norms over neighbouring channels, determinants, and bits as other types.

use std::collections::BTreeMap;

use tectum::{DType, Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, IntegerOp, Node, Reduction};

use super::Family;
use super::constants::element_of;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[
    ("BitCast", bit_cast),
    ("Det", determinant),
    ("LRN", local_response_norm),
    ("NegativeLogLikelihoodLoss", likelihood_loss),
    ("SoftmaxCrossEntropyLoss", cross_entropy_loss),
];

fn likelihood_loss(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?.clone();
    Ok(vec![loss_of(emit, call, &x)?])
}

fn cross_entropy_loss(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    if x.rank() < 2 {
        return Err(Error::data(format!("{:?} has no classes", x.dims)));
    }
    let node = emit.node(x)?;
    let greatest = emit.builder.reduce_axes(Reduction::Max, node, &[1])?;
    let below = emit.builder.sub(node, greatest)?;
    let exponentials = emit.builder.exp(below)?;
    let sum = emit
        .builder
        .reduce_axes(Reduction::Sum, exponentials, &[1])?;
    let logarithm = emit.builder.log(sum)?;
    let logarithms = emit.builder.sub(below, logarithm)?;
    let logarithms = emit.value(logarithms, x.element)?;
    Ok(vec![loss_of(emit, call, &logarithms)?, logarithms])
}

/// The negative log-probabilities of the classes of input 1, weighted by input 2.
fn loss_of(emit: &mut Emit<'_>, call: &Call<'_>, x: &Value) -> Result<Value> {
    let target = call.input(1)?;
    let (reduction, ignored) = (
        call.attributes.string_or("reduction", "mean")?,
        call.attributes.int("ignore_index")?,
    );
    let fault = || Error::data(format!("classes {:?} for {:?}", target.dims, x.dims));
    if x.rank() < 2 || target.dims != [&x.dims[..1], &x.dims[2..]].concat() || x.len() == 0 {
        return Err(fault());
    }
    let (classes, count) = (x.dims[1], target.len());
    let turned = emit.axis_last(x, 1)?;
    let rows = emit.node(&turned)?;
    let rows = emit.builder.reshape(rows, [count * classes, 1])?;
    let numbers = emit.node(target)?;
    let mut numbers = emit.builder.reshape(numbers, [count, 1])?;
    let mut is_ignored = None;
    if let Some(ignored) = ignored {
        let ignored = i32::try_from(ignored)
            .map_err(|_| Error::unsupported(format!("ignore_index {ignored}, beyond 32 bits")))?;
        let (ignored, first) = (emit.integer(ignored)?, emit.integer(0)?);
        let mask = emit.builder.compare(Comparison::Equal, numbers, ignored)?;
        numbers = emit.builder.select(mask, first, numbers)?;
        is_ignored = Some(mask);
    }
    let starts: Vec<i32> = (0..count).map(|row| (row * classes) as i32).collect();
    let starts = emit.builder.integer_constant(&starts, [count, 1])?;
    let places = emit
        .builder
        .integer(IntegerOp::Add, numbers, Some(starts))?;
    let picked = emit.builder.gather(rows, places)?;
    let picked = emit.builder.reshape(picked, [count, 1])?;
    let mut losses = emit.builder.function(Function::Neg, picked)?;
    let zero = emit.number(0.0)?;
    let mut weights = None;
    if let Some(weight) = call.optional(2) {
        let table = emit.reshape(weight, &[classes, 1])?;
        let table = emit.node(&table)?;
        let each = emit.builder.gather(table, numbers)?;
        let each = emit.builder.reshape(each, [count, 1])?;
        losses = emit.builder.mul(losses, each)?;
        weights = Some(each);
    }
    if let Some(mask) = is_ignored {
        losses = emit.builder.select(mask, zero, losses)?;
        let one = emit.number(1.0)?;
        weights = Some(emit.builder.select(mask, zero, weights.unwrap_or(one))?);
    }
    let total = |emit: &mut Emit<'_>, x: Node| emit.builder.reduce_axes(Reduction::Sum, x, &[0]);
    let node = match reduction {
        "none" => return emit.shaped(losses, x.element, &target.dims),
        "sum" => total(emit, losses)?,
        "mean" => {
            let sum = total(emit, losses)?;
            match weights {
                Some(weights) => {
                    let divisor = total(emit, weights)?;
                    emit.builder.div(sum, divisor)?
                }
                None => emit.with(BinaryOp::Div, sum, count as f32)?,
            }
        }
        other => return Err(Error::data(format!("reduction {other:?}"))),
    };
    emit.shaped(node, x.element, &[])
}

/// x / (bias + alpha/size · Σ x²)^beta, where the sum is over neighbouring channels.
fn local_response_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (alpha, beta, bias) = (
        call.attributes.float_or("alpha", 1e-4)?,
        call.attributes.float_or("beta", 0.75)?,
        call.attributes.float_or("bias", 1.0)?,
    );
    let size = call
        .attributes
        .int("size")?
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0);
    let size = size.ok_or_else(|| Error::data("attribute size is missing"))?;
    let channels = *x
        .dims
        .get(1)
        .ok_or_else(|| Error::data(format!("{:?} has no channels", x.dims)))?;
    let node = emit.node(x)?;
    let squares = emit.builder.mul(node, node)?;
    let squares = emit.value(squares, x.element)?;
    let (before, after) = ((size - 1) / 2, size / 2);
    let zeros = |count: usize| -> Value {
        let mut dims = x.dims.clone();
        dims[1] = count;
        Array::wide(x.element, &dims, vec![0.0; dims.iter().product()]).into()
    };
    let parts = [zeros(before), squares, zeros(after)];
    let padded = emit.join(&parts, 1)?;
    let padded = emit.node(&padded)?;
    let mut sum: Option<Node> = None;
    for first in 0..size {
        let part = emit.builder.slice(padded, 1, first, channels)?;
        sum = Some(match sum {
            Some(sum) => emit.builder.add(sum, part)?,
            None => part,
        });
    }
    let sum = sum.ok_or_else(|| Error::data("a sum of no channels"))?;
    let scaled = emit.builder.scale(sum, alpha / size as f32)?;
    let raised = emit.with(BinaryOp::Add, scaled, bias)?;
    let divisor = emit.with(BinaryOp::Pow, raised, beta)?;
    let y = emit.builder.div(node, divisor)?;
    Ok(vec![emit.shaped(y, x.element, &x.dims)?])
}

/// The greatest matrices whose determinants are expanded.
const MAX_DETERMINANT: usize = 6;

/// Expansion by rows: the determinants of the first rows and each choice of as many columns.
fn determinant(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let &[ref before @ .., rows, size] = &x.dims[..] else {
        return Err(Error::data(format!("{:?} is no matrix", x.dims)));
    };
    if rows != size || size == 0 || x.len() == 0 {
        return Err(Error::data(format!("the determinant of {rows}×{size}")));
    }
    if size > MAX_DETERMINANT {
        return Err(Error::unsupported(format!(
            "the determinant of {size}×{size}; at most {MAX_DETERMINANT}×{MAX_DETERMINANT} are expanded"
        )));
    }
    let count = x.len() / size / size;
    let node = emit.node(x)?;
    let flat = emit.builder.reshape(node, [count, size * size])?;
    let mut minors: BTreeMap<usize, Node> = BTreeMap::new();
    for row in 0..size {
        let mut wider: BTreeMap<usize, Node> = BTreeMap::new();
        for columns in
            (1..1usize << size).filter(|columns| columns.count_ones() as usize == row + 1)
        {
            let mut sum: Option<Node> = None;
            for column in (0..size).filter(|column| columns & (1 << column) != 0) {
                let element = emit.builder.slice(flat, 1, row * size + column, 1usize)?;
                let term = match minors.get(&(columns & !(1 << column))) {
                    Some(minor) => emit.builder.mul(*minor, element)?,
                    None => element,
                };
                // The sign of the last row's element: how many chosen columns follow.
                let is_negative = (columns >> (column + 1)).count_ones() % 2 == 1;
                sum = Some(match sum {
                    Some(sum) if is_negative => emit.builder.sub(sum, term)?,
                    Some(sum) => emit.builder.add(sum, term)?,
                    None if is_negative => emit.builder.function(Function::Neg, term)?,
                    None => term,
                });
            }
            wider.extend(sum.map(|sum| (columns, sum)));
        }
        minors = wider;
    }
    let all = (1 << size) - 1;
    let node = *minors
        .get(&all)
        .ok_or_else(|| Error::data("no determinant"))?;
    Ok(vec![emit.shaped(node, x.element, before)?])
}

/// The same bits as another type of as many.
fn bit_cast(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let to = element_of(call.attributes.int_or("to", 0)?)?;
    let from = x.element;
    if from.bytes() != to.bytes() {
        return Err(Error::data(format!(
            "the bits of {from} as {to}, which has {} bytes",
            to.bytes()
        )));
    }
    if let Some(array) = x.array() {
        let data = array
            .to_f64()
            .into_iter()
            .map(|value| number_of(to, bits_of(from, value)))
            .collect::<Option<Vec<f64>>>();
        let data = data.ok_or_else(|| {
            Error::unsupported(format!("bits that are an integer of {to} beyond 53 bits"))
        })?;
        return Ok(vec![Array::wide(to, &x.dims, data).into()]);
    }
    let node = emit.node(x)?;
    let node = match (from.is_float(), to.is_float()) {
        _ if from == to => node,
        (false, false) if to == ElementType::Bool => {
            let zero = emit.integer(0)?;
            emit.builder.compare(Comparison::NotEqual, node, zero)?
        }
        (false, false) => emit.wrap(node, to)?,
        _ if from == ElementType::F32 || to == ElementType::F32 => emit.builder.bitcast(
            node,
            if to.is_float() {
                DType::F32
            } else {
                DType::I32
            },
        )?,
        _ => {
            return Err(Error::unsupported(format!(
                "the bits of {from} as {to} while the network runs"
            )));
        }
    };
    Ok(vec![Value {
        element: to,
        ..emit.value(node, to)?
    }])
}

/// The bits of a number of a type.
fn bits_of(element: ElementType, value: f64) -> u64 {
    match element {
        ElementType::F32 => (value as f32).to_bits().into(),
        ElementType::F64 => value.to_bits(),
        ElementType::F16 => half::f16::from_f64(value).to_bits().into(),
        ElementType::Bf16 => half::bf16::from_f64(value).to_bits().into(),
        ElementType::U64 => value as u64,
        _ => (value as i64).cast_unsigned() & mask_of(element),
    }
}

fn mask_of(element: ElementType) -> u64 {
    u64::MAX >> (64 - 8 * element.bytes())
}

/// The number that bits are; none if it is an integer that f64 does not hold.
fn number_of(element: ElementType, bits: u64) -> Option<f64> {
    let integer = |value: i128| Some(value as f64).filter(|number| *number as i128 == value);
    match element {
        ElementType::F32 => Some(f32::from_bits(bits as u32).into()),
        ElementType::F64 => Some(f64::from_bits(bits)),
        ElementType::F16 => Some(half::f16::from_bits(bits as u16).to_f64()),
        ElementType::Bf16 => Some(half::bf16::from_bits(bits as u16).to_f64()),
        _ => {
            let (_, high) = element.range()?;
            let whole = i128::from(mask_of(element)) + 1;
            let value = i128::from(bits & mask_of(element));
            integer(if element != ElementType::Bool && value > high {
                value - whole
            } else {
                value
            })
        }
    }
}
