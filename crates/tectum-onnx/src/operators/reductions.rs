//! Operators over whole axes: reductions, norms, softmax.

use tectum::{DType, Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, Node, Reduction};

use super::Family;
use super::window::rescaled;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, shape};

pub(super) const FAMILY: Family = &[
    ("ArgMax", |emit, call| arg_extreme(emit, call, false)),
    ("ArgMin", |emit, call| arg_extreme(emit, call, true)),
    ("BatchNormalization", batch_norm),
    ("GroupNormalization", group_norm),
    ("Hardmax", hardmax),
    ("InstanceNormalization", instance_norm),
    ("LayerNormalization", layer_norm),
    ("LogSoftmax", log_softmax),
    ("LpNormalization", lp_norm),
    ("MeanVarianceNormalization", mean_variance_norm),
    ("RMSNormalization", rms_norm),
    ("ReduceL1", |emit, call| reduce(emit, call, Kind::L1)),
    ("ReduceL2", |emit, call| reduce(emit, call, Kind::L2)),
    ("ReduceLogSum", |emit, call| {
        reduce(emit, call, Kind::LogSum)
    }),
    ("ReduceLogSumExp", |emit, call| {
        reduce(emit, call, Kind::LogSumExp)
    }),
    ("ReduceMax", |emit, call| {
        reduce(emit, call, Kind::Plain(Reduction::Max))
    }),
    ("ReduceMean", |emit, call| reduce(emit, call, Kind::Mean)),
    ("ReduceMin", |emit, call| {
        reduce(emit, call, Kind::Plain(Reduction::Min))
    }),
    ("ReduceProd", |emit, call| {
        reduce(emit, call, Kind::Plain(Reduction::Prod))
    }),
    ("ReduceSum", |emit, call| {
        reduce(emit, call, Kind::Plain(Reduction::Sum))
    }),
    ("ReduceSumSquare", |emit, call| {
        reduce(emit, call, Kind::SumSquare)
    }),
    ("Softmax", softmax),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain(Reduction),
    Mean,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

fn reduce(emit: &mut Emit<'_>, call: &Call<'_>, kind: Kind) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let given = call.ints(1, "axes")?.unwrap_or_default();
    let (keeps, is_noop) = (
        call.attributes.flag("keepdims", true)?,
        call.attributes.flag("noop_with_empty_axes", false)?,
    );
    let mut axes = given
        .into_iter()
        .map(|axis| x.axis(axis))
        .collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    axes.dedup();
    if axes.is_empty() && !is_noop {
        axes = (0..x.rank()).collect();
    }
    let dims: Vec<usize> = match keeps {
        true => (0..x.rank())
            .map(|axis| {
                if axes.contains(&axis) {
                    1
                } else {
                    x.dims[axis]
                }
            })
            .collect(),
        false => (0..x.rank())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| x.dims[axis])
            .collect(),
    };
    if x.len() == 0 {
        return Ok(vec![of_nothing(kind, x.element, &dims)?]);
    }
    let node = emit.node(x)?;
    let node = if x.element.is_float() {
        reduce_floats(emit, node, &axes, kind)?
    } else {
        reduce_integers(emit, node, &axes, kind)?
    };
    Ok(vec![emit.shaped(node, x.element, &dims)?])
}

/// The reductions of no elements.
fn of_nothing(kind: Kind, element: ElementType, dims: &[usize]) -> Result<Value> {
    let (low, high) = element
        .range()
        .map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| {
            (low as f64, high as f64)
        });
    let value = match kind {
        Kind::Plain(Reduction::Sum) | Kind::L1 | Kind::L2 | Kind::SumSquare => 0.0,
        Kind::Plain(Reduction::Prod) => 1.0,
        Kind::Plain(Reduction::Max) => low,
        Kind::Plain(Reduction::Min) => high,
        Kind::LogSum | Kind::LogSumExp => f64::NEG_INFINITY,
        Kind::Mean => f64::NAN,
    };
    Ok(Array::wide(element, dims, vec![value; dims.iter().product()]).into())
}

fn reduce_floats(emit: &mut Emit<'_>, x: Node, axes: &[usize], kind: Kind) -> Result<Node> {
    let over = |emit: &mut Emit<'_>, reduction, x| emit.builder.reduce_axes(reduction, x, axes);
    Ok(match kind {
        Kind::Plain(reduction) => over(emit, reduction, x)?,
        Kind::Mean => {
            let dims = emit.dims(x)?;
            let count: usize = axes.iter().map(|axis| dims[*axis]).product();
            let sum = over(emit, Reduction::Sum, x)?;
            if count == 1 {
                sum
            } else {
                emit.with(BinaryOp::Div, sum, count as f32)?
            }
        }
        Kind::L1 => {
            let distances = emit.builder.function(Function::Abs, x)?;
            over(emit, Reduction::Sum, distances)?
        }
        Kind::L2 | Kind::SumSquare => {
            let squares = emit.builder.mul(x, x)?;
            let sum = over(emit, Reduction::Sum, squares)?;
            if kind == Kind::L2 {
                emit.builder.sqrt(sum)?
            } else {
                sum
            }
        }
        Kind::LogSum => {
            let sum = over(emit, Reduction::Sum, x)?;
            emit.builder.log(sum)?
        }
        Kind::LogSumExp => {
            // Relative to the greatest, which is taken as 0 where it is infinite.
            let greatest = over(emit, Reduction::Max, x)?;
            let is_infinite = emit.builder.test(Comparison::IsInf, greatest)?;
            let zero = emit.number(0.0)?;
            let base = emit.builder.select(is_infinite, zero, greatest)?;
            let below = emit.builder.sub(x, base)?;
            let exponentials = emit.builder.exp(below)?;
            let sum = over(emit, Reduction::Sum, exponentials)?;
            let logarithm = emit.builder.log(sum)?;
            emit.builder.add(logarithm, base)?
        }
    })
}

fn reduce_integers(emit: &mut Emit<'_>, x: Node, axes: &[usize], kind: Kind) -> Result<Node> {
    use tectum_graph::IntegerOp;
    match kind {
        Kind::Plain(reduction) => emit.builder.reduce_axes(reduction, x, axes),
        Kind::L1 => {
            let distances = emit.builder.integer(IntegerOp::Abs, x, None)?;
            emit.builder.reduce_axes(Reduction::Sum, distances, axes)
        }
        Kind::SumSquare => {
            let squares = emit.builder.integer(IntegerOp::Mul, x, Some(x))?;
            emit.builder.reduce_axes(Reduction::Sum, squares, axes)
        }
        Kind::Mean => {
            let dims = emit.dims(x)?;
            let count: usize = axes.iter().map(|axis| dims[*axis]).product();
            let sum = emit.builder.reduce_axes(Reduction::Sum, x, axes)?;
            let count = emit.integer(count as i32)?;
            emit.builder.integer(IntegerOp::Div, sum, Some(count))
        }
        Kind::L2 | Kind::LogSum | Kind::LogSumExp => {
            let floats = emit.builder.convert(x, DType::F32)?;
            let result = reduce_floats(emit, floats, axes, kind)?;
            emit.builder.convert(result, DType::I32)
        }
    }
}

/// The place of the greatest or least on an axis, as a maximum of places.
fn arg_extreme(emit: &mut Emit<'_>, call: &Call<'_>, is_least: bool) -> Result<Vec<Value>> {
    use tectum_graph::IntegerOp;
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let (keeps, takes_last) = (
        call.attributes.flag("keepdims", true)?,
        call.attributes.flag("select_last_index", false)?,
    );
    let size = x.dims[axis];
    let node = emit.node(x)?;
    let extreme = emit.builder.reduce_axes(
        if is_least {
            Reduction::Min
        } else {
            Reduction::Max
        },
        node,
        &[axis],
    )?;
    let is_extreme = emit.builder.compare(Comparison::Equal, node, extreme)?;
    // The first place has the greatest rank, or the last one.
    emit.list(&[size])?;
    let mut along = vec![1; x.rank()];
    along[axis] = size;
    let ranks: Vec<i32> = (0..size as i32)
        .map(|place| {
            if takes_last {
                place + 1
            } else {
                size as i32 - place
            }
        })
        .collect();
    let ranks = emit.builder.integer_constant(&ranks, shape(&along)?)?;
    let ranks = emit
        .builder
        .integer(IntegerOp::Mul, is_extreme, Some(ranks))?;
    let best = emit.builder.reduce_axes(Reduction::Max, ranks, &[axis])?;
    let place = if takes_last {
        let one = emit.integer(1)?;
        emit.builder.integer(IntegerOp::Sub, best, Some(one))?
    } else {
        let whole = emit.integer(size as i32)?;
        let turned = emit.builder.integer(IntegerOp::Neg, best, None)?;
        emit.builder.integer(IntegerOp::Add, turned, Some(whole))?
    };
    let mut dims = x.dims.clone();
    if keeps {
        dims[axis] = 1;
    } else {
        dims.remove(axis);
    }
    Ok(vec![emit.shaped(place, ElementType::I64, &dims)?])
}

/// Before opset 13 an axis divides the value into rows; since then it is the axis.
fn over_axis(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    f: impl FnOnce(&mut Emit<'_>, Node, usize) -> Result<Node>,
) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let element = x.element;
    if call.opset >= 13 {
        let axis = x.axis(call.attributes.int_or("axis", -1)?)?;
        let node = emit.node(x)?;
        let node = f(emit, node, axis)?;
        return Ok(vec![emit.value(node, element)?]);
    }
    let axis = x.axis(call.attributes.int_or("axis", 1)?)?;
    let (rows, cols): (usize, usize) = (
        x.dims[..axis].iter().product(),
        x.dims[axis..].iter().product(),
    );
    let node = emit.node(x)?;
    let flat = emit.builder.reshape(node, [rows, cols])?;
    let node = f(emit, flat, 1)?;
    Ok(vec![emit.shaped(node, element, &x.dims)?])
}

fn softmax(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    over_axis(emit, call, |emit, x, axis| emit.builder.softmax(x, axis))
}

fn log_softmax(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    over_axis(emit, call, |emit, x, axis| {
        let greatest = emit.builder.reduce_axes(Reduction::Max, x, &[axis])?;
        let below = emit.builder.sub(x, greatest)?;
        let exponentials = emit.builder.exp(below)?;
        let sum = emit
            .builder
            .reduce_axes(Reduction::Sum, exponentials, &[axis])?;
        let logarithm = emit.builder.log(sum)?;
        emit.builder.sub(below, logarithm)
    })
}

/// 1 at the first greatest, 0 elsewhere.
fn hardmax(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    use tectum_graph::IntegerOp;
    over_axis(emit, call, |emit, x, axis| {
        let dims = emit.dims(x)?;
        let greatest = emit.builder.reduce_axes(Reduction::Max, x, &[axis])?;
        let is_greatest = emit.builder.compare(Comparison::Equal, x, greatest)?;
        emit.list(&[dims[axis]])?;
        let mut along = vec![1; dims.len()];
        along[axis] = dims[axis];
        let ranks: Vec<i32> = (0..dims[axis] as i32).rev().map(|rank| rank + 1).collect();
        let ranks = emit.builder.integer_constant(&ranks, shape(&along)?)?;
        let ranks = emit
            .builder
            .integer(IntegerOp::Mul, is_greatest, Some(ranks))?;
        let best = emit.builder.reduce_axes(Reduction::Max, ranks, &[axis])?;
        let one = emit.integer(1)?;
        let best = emit.builder.integer(IntegerOp::Max, best, Some(one))?;
        let is_first = emit.builder.compare(Comparison::Equal, ranks, best)?;
        emit.builder.convert(is_first, DType::F32)
    })
}

/// (x − mean)·scale/√(variance + epsilon) + bias, of known statistics.
fn batch_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let epsilon = call.attributes.float_or("epsilon", 1e-5)?;
    call.attributes.float("momentum")?;
    if call.attributes.flag("training_mode", false)? {
        return Err(Error::unsupported("training mode"));
    }
    if call.opset < 7 && !call.attributes.flag("is_test", false)? {
        return Err(Error::unsupported("training mode"));
    }
    let is_spatial = call.opset >= 9 || call.attributes.flag("spatial", true)?;
    // Statistics of each channel, or of each place of each channel.
    let channels = x.dims.get(1).copied().unwrap_or(1);
    let mut dims = vec![1; x.rank().max(2) - 1];
    dims[0] = channels;
    if !is_spatial {
        dims = x.dims.get(1..).unwrap_or_default().to_vec();
    }
    let channels: usize = dims.iter().product();
    let node = emit.node(x)?;
    let known: Option<Vec<&Array>> = (1..5)
        .map(|index| call.optional(index).and_then(Value::array))
        .collect();
    let (factor, offset) = match known {
        // Folded in float64.
        Some(known) => {
            let [scale, bias, mean, variance] = [0, 1, 2, 3].map(|index| known[index].to_f64());
            if [&scale, &bias, &mean, &variance]
                .iter()
                .any(|values| values.len() != channels)
            {
                return Err(Error::data(format!(
                    "statistics of other than {channels} channels"
                )));
            }
            let factor: Vec<f64> = scale
                .iter()
                .zip(&variance)
                .map(|(scale, variance)| scale / (variance + f64::from(epsilon)).sqrt())
                .collect();
            let offset: Vec<f64> = (0..channels)
                .map(|channel| bias[channel] - mean[channel] * factor[channel])
                .collect();
            let array = |values| -> Value { Array::wide(ElementType::F32, &dims, values).into() };
            if let Some(scaled) = rescaled(emit, x, &array(factor.clone()), BinaryOp::Mul)?
                && let Some(moved) = rescaled(emit, &scaled, &array(offset.clone()), BinaryOp::Add)?
            {
                return Ok(vec![moved]);
            }
            (emit.node(&array(factor))?, emit.node(&array(offset))?)
        }
        None => {
            let mut row = |index| -> Result<Node> {
                let node = emit.input(call, index)?;
                emit.builder.reshape(node, shape(&dims)?)
            };
            let (scale, bias, mean, variance) = (row(1)?, row(2)?, row(3)?, row(4)?);
            let sum = emit.with(BinaryOp::Add, variance, epsilon)?;
            let deviation = emit.builder.sqrt(sum)?;
            let factor = emit.builder.div(scale, deviation)?;
            let moved = emit.builder.mul(mean, factor)?;
            (factor, emit.builder.sub(bias, moved)?)
        }
    };
    let scaled = emit.builder.mul(node, factor)?;
    let node = emit.builder.add(scaled, offset)?;
    Ok(vec![emit.shaped(node, x.element, &x.dims)?])
}

/// Rows to mean 0 and variance 1, then their mean and 1/√(variance + epsilon).
pub(super) struct Normalized {
    pub rows: Node,
    pub mean: Node,
    pub inverse: Node,
}

pub(super) fn normalize_rows(emit: &mut Emit<'_>, x: Node, epsilon: f32) -> Result<Normalized> {
    let dims = emit.dims(x)?;
    let (axis, count) = (dims.len() - 1, dims[dims.len() - 1] as f32);
    let mean_of = |emit: &mut Emit<'_>, x| -> Result<Node> {
        let sum = emit.builder.reduce_axes(Reduction::Sum, x, &[axis])?;
        emit.with(BinaryOp::Div, sum, count)
    };
    let mean = mean_of(emit, x)?;
    let centred = emit.builder.sub(x, mean)?;
    let squares = emit.builder.mul(centred, centred)?;
    let variance = mean_of(emit, squares)?;
    let sum = emit.with(BinaryOp::Add, variance, epsilon)?;
    let deviation = emit.builder.sqrt(sum)?;
    let inverse = emit.builder.function(Function::Reciprocal, deviation)?;
    Ok(Normalized {
        rows: emit.builder.mul(centred, inverse)?,
        mean,
        inverse,
    })
}

fn layer_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", -1)?)?;
    let epsilon = call.attributes.float_or("epsilon", 1e-5)?;
    call.attributes.int("stash_type")?;
    let (rows, cols): (usize, usize) = (
        x.dims[..axis].iter().product(),
        x.dims[axis..].iter().product(),
    );
    let node = emit.node(x)?;
    let flat = emit.builder.reshape(node, [rows, cols])?;
    let vector = |emit: &mut Emit<'_>, index: usize| -> Result<Option<Node>> {
        let Some(value) = call.optional(index) else {
            return Ok(None);
        };
        let value = if value.len() == cols {
            value.clone()
        } else {
            emit.repeat(value, &x.dims[axis..])?
        };
        let value = emit.reshape(&value, &[cols])?;
        emit.node(&value).map(Some)
    };
    let (gain, bias) = (vector(emit, 1)?, vector(emit, 2)?);
    let wants_statistics = call.wants(1) || call.wants(2);
    if let (Some(gain), false) = (gain, wants_statistics) {
        let bias = match bias {
            Some(bias) => bias,
            None => {
                let zero: Value = emit.filled(ElementType::F32, &[cols], 0.0)?.into();
                emit.node(&zero)?
            }
        };
        let node = emit.builder.layer_norm(flat, gain, bias, epsilon)?;
        return Ok(vec![emit.shaped(node, x.element, &x.dims)?]);
    }
    let Normalized {
        mut rows,
        mean,
        inverse,
    } = normalize_rows(emit, flat, epsilon)?;
    if let Some(gain) = gain {
        rows = emit.builder.mul(rows, gain)?;
    }
    if let Some(bias) = bias {
        rows = emit.builder.add(rows, bias)?;
    }
    let statistics: Vec<usize> = (0..x.rank())
        .map(|place| if place < axis { x.dims[place] } else { 1 })
        .collect();
    let values = [(rows, &x.dims), (mean, &statistics), (inverse, &statistics)];
    values
        .into_iter()
        .map(|(node, dims)| emit.shaped(node, x.element, dims))
        .collect()
}

fn rms_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", -1)?)?;
    let epsilon = call.attributes.float_or("epsilon", 1e-5)?;
    call.attributes.int("stash_type")?;
    let (rows, cols): (usize, usize) = (
        x.dims[..axis].iter().product(),
        x.dims[axis..].iter().product(),
    );
    let gain = emit.repeat(call.input(1)?, &x.dims[axis..])?;
    let gain = emit.reshape(&gain, &[cols])?;
    let (node, gain) = (emit.node(x)?, emit.node(&gain)?);
    let flat = emit.builder.reshape(node, [rows, cols])?;
    let node = emit.builder.rms_norm(flat, gain, epsilon)?;
    Ok(vec![emit.shaped(node, x.element, &x.dims)?])
}

/// Groups of channels normalized over all places, then a scale and a bias for each channel.
fn by_groups(
    emit: &mut Emit<'_>,
    x: &Value,
    groups: usize,
    scale: &Value,
    bias: &Value,
    epsilon: f32,
) -> Result<Value> {
    let (&batch, &channels) = (&x.dims[0], &x.dims[1]);
    if groups == 0 || x.len() == 0 || !channels.is_multiple_of(groups) {
        return Err(Error::data(format!(
            "{channels} channels in {groups} groups"
        )));
    }
    let node = emit.node(x)?;
    let flat = emit
        .builder
        .reshape(node, [batch * groups, x.len() / batch / groups])?;
    let Normalized { rows, .. } = normalize_rows(emit, flat, epsilon)?;
    let places: usize = x.dims[2..].iter().product();
    let wide = emit.builder.reshape(rows, [batch, channels, places])?;
    let mut column = |value: &Value| -> Result<Node> {
        // Files of opset 18 give a number for each group.
        let value = if value.len() == groups && groups != channels {
            let rows = emit.reshape(value, &[groups, 1])?;
            emit.repeat(&rows, &[groups, channels / groups])?
        } else {
            value.clone()
        };
        let value = emit.reshape(&value, &[channels, 1])?;
        emit.node(&value)
    };
    let (scale, bias) = (column(scale)?, column(bias)?);
    let scaled = emit.builder.mul(wide, scale)?;
    let node = emit.builder.add(scaled, bias)?;
    emit.shaped(node, x.element, &x.dims)
}

fn image(x: &Value) -> Result<&Value> {
    if x.rank() >= 2 {
        Ok(x)
    } else {
        Err(Error::data(format!("{:?} has no channels", x.dims)))
    }
}

fn group_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let groups = usize::try_from(call.attributes.int_or("num_groups", 0)?).unwrap_or(0);
    let epsilon = call.attributes.float_or("epsilon", 1e-5)?;
    call.attributes.int("stash_type")?;
    Ok(vec![by_groups(
        emit,
        image(call.input(0)?)?,
        groups,
        call.input(1)?,
        call.input(2)?,
        epsilon,
    )?])
}

fn instance_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = image(call.input(0)?)?;
    let epsilon = call.attributes.float_or("epsilon", 1e-5)?;
    Ok(vec![by_groups(
        emit,
        x,
        x.dims[1],
        call.input(1)?,
        call.input(2)?,
        epsilon,
    )?])
}

fn lp_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", -1)?)?;
    let kind = match call.attributes.int_or("p", 2)? {
        1 => Kind::L1,
        2 => Kind::L2,
        other => return Err(Error::data(format!("p {other}"))),
    };
    let node = emit.node(x)?;
    let norm = reduce_floats(emit, node, &[axis], kind)?;
    // A row of zeros stays zero.
    let zero = emit.number(0.0)?;
    let is_zero = emit.builder.compare(Comparison::Equal, norm, zero)?;
    let one = emit.number(1.0)?;
    let divisor = emit.builder.select(is_zero, one, norm)?;
    let node = emit.builder.div(node, divisor)?;
    Ok(vec![emit.value(node, x.element)?])
}

fn mean_variance_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axes = call
        .attributes
        .ints("axes")?
        .unwrap_or_else(|| vec![0, 2, 3]);
    let axes = axes
        .into_iter()
        .map(|axis| x.axis(axis))
        .collect::<Result<Vec<_>>>()?;
    let node = emit.node(x)?;
    let mean = reduce_floats(emit, node, &axes, Kind::Mean)?;
    let centred = emit.builder.sub(node, mean)?;
    let squares = emit.builder.mul(centred, centred)?;
    let variance = reduce_floats(emit, squares, &axes, Kind::Mean)?;
    let deviation = emit.builder.sqrt(variance)?;
    let deviation = emit.with(BinaryOp::Add, deviation, 1e-9)?;
    let node = emit.builder.div(centred, deviation)?;
    Ok(vec![emit.value(node, x.element)?])
}
