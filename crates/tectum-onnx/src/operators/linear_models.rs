//! Linear models and the steps around them: the rest of the domain `ai.onnx.ml`.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, Node, Reduction};

use super::Family;
use super::constants::convert;
use super::scores::{Labels, Transform, two_of_one};
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[
    ("ArrayFeatureExtractor", array_feature_extractor),
    ("Binarizer", binarizer),
    ("LinearClassifier", classifier),
    ("LinearRegressor", regressor),
    ("Normalizer", normalizer),
    ("Scaler", scaler),
    ("ZipMap", zip_map),
];

/// A value as rows of floats, with their number and width; one row has no axis of rows.
pub(super) fn rows_of(emit: &mut Emit<'_>, x: &Value) -> Result<(Node, usize, usize)> {
    let (rows, width) = match x.dims[..] {
        [width] => (1, width),
        [rows, width] => (rows, width),
        _ => {
            return Err(Error::data(format!(
                "{:?}; [rows, features] is needed",
                x.dims
            )));
        }
    };
    if rows == 0 || width == 0 {
        return Err(Error::data(format!("{:?} has no elements", x.dims)));
    }
    let x = convert(emit, x, ElementType::F32)?;
    let x = emit.reshape(&x, &[rows, width])?;
    Ok((emit.node(&x)?, rows, width))
}

/// A list of floats as a node [1, len], which repeats over rows.
fn row(emit: &mut Emit<'_>, numbers: Vec<f32>) -> Result<Node> {
    let row: Value = Array::floats(&[1, numbers.len()], numbers)?.into();
    emit.node(&row)
}

/// x·coefficientsᵀ + intercepts, with the number of rows.
fn linear(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    targets: Option<usize>,
) -> Result<(Node, usize, usize)> {
    let coefficients = call.attributes.floats("coefficients")?.unwrap_or_default();
    let intercepts = call.attributes.floats("intercepts")?.unwrap_or_default();
    let (x, rows, width) = rows_of(emit, call.input(0)?)?;
    let targets = targets.unwrap_or(coefficients.len() / width);
    if targets == 0 || Some(coefficients.len()) != targets.checked_mul(width) {
        return Err(Error::data(format!(
            "{} coefficients for {targets} targets of {width} features",
            coefficients.len()
        )));
    }
    let weights: Value = Array::floats(&[targets, width], coefficients)?.into();
    let weights = emit.node(&weights)?;
    let mut node = emit.builder.matmul(x, weights.transpose())?;
    if !intercepts.is_empty() {
        if intercepts.len() != targets {
            return Err(Error::data(format!(
                "{} intercepts for {targets} targets",
                intercepts.len()
            )));
        }
        let intercepts = row(emit, intercepts)?;
        node = emit.builder.add(node, intercepts)?;
    }
    Ok((node, rows, targets))
}

fn regressor(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let targets = usize::try_from(call.attributes.int_or("targets", 1)?).unwrap_or(0);
    let transform = Transform::read(call)?;
    let (node, rows, targets) = linear(emit, call, Some(targets))?;
    let node = transform.add(emit, node)?;
    Ok(vec![emit.shaped(
        node,
        ElementType::F32,
        &[rows, targets],
    )?])
}

fn classifier(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let labels = Labels::read(call, "classlabels_ints", "classlabels_strings")?;
    // How the model was trained.
    call.attributes.int("multi_class")?;
    let transform = Transform::read(call)?;
    let (scores, rows, count) = linear(emit, call, None)?;
    if count == 1 && labels.len() == 2 {
        let label = labels.of_binary(emit, scores, 0.0, rows)?;
        let scores = match transform {
            Transform::Identity => two_of_one(emit, scores, 1.0)?,
            Transform::Logistic => {
                let score = transform.add(emit, scores)?;
                two_of_one(emit, score, 1.0)?
            }
            _ => {
                return Err(Error::unsupported(
                    "one row of coefficients for two classes with a softmax",
                ));
            }
        };
        let scores = emit.shaped(scores, ElementType::F32, &[rows, 2])?;
        return Ok(vec![label, scores]);
    }
    if count != labels.len() {
        return Err(Error::data(format!(
            "scores of {count} classes and {} labels",
            labels.len()
        )));
    }
    let label = labels.of_greatest(emit, scores, rows)?;
    let scores = transform.add(emit, scores)?;
    let scores = emit.shaped(scores, ElementType::F32, &[rows, count])?;
    Ok(vec![label, scores])
}

/// Elements of the last axis by their numbers.
fn array_feature_extractor(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, places) = (call.input(0)?, call.input(1)?);
    let Some((&width, before)) = x.dims.split_last() else {
        return Err(Error::data("elements of a scalar"));
    };
    let rows: usize = before.iter().product();
    let count = places.len();
    if rows == 0 || width == 0 || count == 0 || places.element.is_float() {
        return Err(Error::data(format!(
            "elements {:?} of {:?}",
            places.dims, x.dims
        )));
    }
    let dims = match before {
        [] => vec![1, count],
        _ => [before, &[count]].concat(),
    };
    if let Some(known) = places.array() {
        let known: Option<Vec<usize>> = known
            .to_i64()
            .into_iter()
            .map(|place| usize::try_from(place).ok().filter(|place| *place < width))
            .collect();
        let known =
            known.ok_or_else(|| Error::data(format!("an element beyond the {width} there are")))?;
        let value = emit.take(x, x.rank() - 1, &known)?;
        return Ok(vec![emit.reshape(&value, &dims)?]);
    }
    // Columns as rows of a table.
    let flat = emit.reshape(x, &[rows, width])?;
    let columns = emit.permute(&flat, &[1, 0])?;
    let (columns, places) = (emit.node(&columns)?, emit.node(places)?);
    let places = emit.builder.reshape(places, [count])?;
    let found = emit.builder.gather(columns, places)?;
    let found = emit.value(found, x.element)?;
    let found = emit.permute(&found, &[1, 0])?;
    Ok(vec![emit.reshape(&found, &dims)?])
}

/// 1 above a threshold, else 0.
fn binarizer(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let threshold = call.attributes.float_or("threshold", 0.0)?;
    let floats = convert(emit, x, ElementType::F32)?;
    let (node, threshold) = (emit.node(&floats)?, emit.number(threshold)?);
    let above = emit.builder.compare(Comparison::Greater, node, threshold)?;
    let above = emit.shaped(above, ElementType::Bool, &x.dims)?;
    Ok(vec![convert(emit, &above, x.element)?])
}

/// Rows divided by their norm; rows of zeros stay.
fn normalizer(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (node, ..) = rows_of(emit, x)?;
    let mut sum = |node, reduction| emit.builder.reduce_axes(reduction, node, &[1]);
    let norm = match call.attributes.string_or("norm", "MAX")? {
        "MAX" => sum(node, Reduction::Max)?,
        "L1" => {
            let distance = emit.builder.function(Function::Abs, node)?;
            emit.builder.reduce_axes(Reduction::Sum, distance, &[1])?
        }
        "L2" => {
            let squares = emit.builder.mul(node, node)?;
            let sum = emit.builder.reduce_axes(Reduction::Sum, squares, &[1])?;
            emit.builder.function(Function::Sqrt, sum)?
        }
        other => return Err(Error::data(format!("norm {other:?}"))),
    };
    let (zero, one) = (emit.number(0.0)?, emit.number(1.0)?);
    let is_zero = emit.builder.compare(Comparison::Equal, norm, zero)?;
    let norm = emit.builder.select(is_zero, one, norm)?;
    let node = emit.builder.div(node, norm)?;
    Ok(vec![emit.shaped(node, ElementType::F32, &x.dims)?])
}

/// (x − offset)·scale, each of all features or of one.
fn scaler(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (mut node, _, width) = rows_of(emit, x)?;
    for (name, op) in [("offset", BinaryOp::Sub), ("scale", BinaryOp::Mul)] {
        let Some(numbers) = call.attributes.floats(name)? else {
            continue;
        };
        if numbers.len() != width && numbers.len() != 1 {
            return Err(Error::data(format!(
                "{name} of {} numbers for {width} features",
                numbers.len()
            )));
        }
        let numbers = row(emit, numbers)?;
        node = emit.builder.binary(op, node, numbers)?;
    }
    Ok(vec![emit.shaped(node, ElementType::F32, &x.dims)?])
}

/// A map from labels to scores for each row, which is no tensor.
fn zip_map(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    call.attributes.ints("classlabels_int64s")?;
    call.attributes.strings("classlabels_strings")?;
    Ok(vec![Value::refused(
        call.input(0)?.dims.clone(),
        "ZipMap makes maps from labels to scores, no tensor: choose another output, or export without it (skl2onnx: options={'zipmap': False})",
    )])
}
