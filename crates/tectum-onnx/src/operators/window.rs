//! Windows of convolutions and pooling, as attributes state them.

use std::rc::Rc;

use tectum::{Error, Result, Window};
use tectum_graph::BinaryOp;

use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, KnownConvolution, Value};

/// The axes of space of a value [N, C, ..].
pub(super) fn space(x: &Value) -> Result<&[usize]> {
    match x.rank() {
        3..=5 => Ok(&x.dims[2..]),
        _ => Err(Error::unsupported(format!(
            "{:?}: [N, C, ..] with one to three axes of space are needed",
            x.dims
        ))),
    }
}

pub(super) fn sizes(
    call: &Call<'_>,
    name: &'static str,
    axes: usize,
    default: usize,
) -> Result<Vec<usize>> {
    let Some(given) = call.attributes.ints(name)? else {
        return Ok(vec![default; axes]);
    };
    let sizes = given
        .iter()
        .map(|size| usize::try_from(*size).ok())
        .collect::<Option<Vec<_>>>();
    sizes
        .filter(|sizes| sizes.len() == axes)
        .ok_or_else(|| Error::data(format!("{name} {given:?} for {axes} axes of space")))
}

/// Three sizes, of which the last are given.
pub(super) fn padded(sizes: &[usize], rest: usize) -> [usize; 3] {
    let mut three = [rest; 3];
    three[3 - sizes.len()..].copy_from_slice(sizes);
    three
}

/// Window, and the padding after the input that was asked for, which is less than the window's in
/// the ceiling mode.
pub(super) fn window(
    call: &Call<'_>,
    size_in: &[usize],
    kernel: &[usize],
) -> Result<(Window, [usize; 3])> {
    let axes = size_in.len();
    let (stride, dilation) = (
        sizes(call, "strides", axes, 1)?,
        sizes(call, "dilations", axes, 1)?,
    );
    let mut pads = sizes(call, "pads", 2 * axes, 0)?;
    let rounds_up = call.attributes.flag("ceil_mode", false)?;
    let mode = call.attributes.string_or("auto_pad", "NOTSET")?;
    if kernel.len() != axes || stride.contains(&0) || dilation.contains(&0) || kernel.contains(&0) {
        return Err(Error::data(format!(
            "kernel {kernel:?}, strides {stride:?}, dilations {dilation:?} for {axes} axes of space"
        )));
    }
    let extent = |axis: usize| {
        (kernel[axis] - 1)
            .saturating_mul(dilation[axis])
            .saturating_add(1)
    };
    match mode {
        "NOTSET" => (),
        "VALID" => pads = vec![0; 2 * axes],
        "SAME_UPPER" | "SAME_LOWER" => {
            for axis in 0..axes {
                let out = size_in[axis].div_ceil(stride[axis]);
                let needed = (out
                    .saturating_sub(1)
                    .saturating_mul(stride[axis])
                    .saturating_add(extent(axis)))
                .saturating_sub(size_in[axis]);
                let (less, more) = (needed / 2, needed - needed / 2);
                (pads[axis], pads[axes + axis]) = if mode == "SAME_UPPER" {
                    (less, more)
                } else {
                    (more, less)
                };
            }
        }
        other => return Err(Error::data(format!("auto_pad {other:?}"))),
    }
    let (before, asked) = (pads[..axes].to_vec(), pads[axes..].to_vec());
    let mut after = asked.clone();
    if rounds_up {
        for axis in 0..axes {
            let whole = size_in[axis]
                .saturating_add(before[axis])
                .saturating_add(asked[axis]);
            let steps = whole.saturating_sub(extent(axis)).div_ceil(stride[axis]);
            // The last window begins inside the input or the padding before it.
            let steps = if steps * stride[axis] >= size_in[axis].saturating_add(before[axis]) {
                steps.saturating_sub(1)
            } else {
                steps
            };
            let reach = (steps * stride[axis]).saturating_add(extent(axis));
            after[axis] = reach
                .saturating_sub(size_in[axis].saturating_add(before[axis]))
                .max(if reach > whole { 0 } else { asked[axis] });
        }
    }
    let window = Window {
        kernel: padded(kernel, 1),
        stride: padded(&stride, 1),
        dilation: padded(&dilation, 1),
        pad_before: padded(&before, 0),
        pad_after: padded(&after, 0),
    };
    Ok((window, padded(&asked, 0)))
}

pub(super) fn groups(call: &Call<'_>) -> Result<usize> {
    let groups = call.attributes.int_or("group", 1)?;
    usize::try_from(groups)
        .ok()
        .filter(|groups| *groups > 0)
        .ok_or_else(|| Error::data(format!("group {groups}")))
}

/// Groups and window of a convolution of `x` with filters.
pub(super) fn convolution_of(
    call: &Call<'_>,
    x: &Value,
    filters: &Value,
) -> Result<(usize, Window)> {
    call.attributes.ints("kernel_shape")?;
    let (window, _) = window(call, space(x)?, filters.dims.get(2..).unwrap_or_default())?;
    Ok((groups(call)?, window))
}

/// Adds a convolution that remembers what it was made of.
pub(super) fn known_convolution(emit: &mut Emit<'_>, known: KnownConvolution) -> Result<Value> {
    let filters: Value = known.filters.clone().into();
    let bias: Option<Value> = known.bias.clone().map(Value::from);
    let value = match whole_input(
        emit,
        &known.x,
        &filters,
        bias.as_ref(),
        known.groups,
        &known.window,
    )? {
        Some(value) => value,
        None => {
            let (x, w) = (emit.node(&known.x)?, emit.node(&filters)?);
            let bias = bias.map(|bias| emit.node(&bias)).transpose()?;
            let node = emit
                .builder
                .convolution(x, w, bias, known.groups, known.window)?;
            emit.value(node, ElementType::F32)?
        }
    };
    Ok(Value {
        convolution: Some(Rc::new(known)),
        ..value
    })
}

/// A convolution with one window, which is the whole input: a dense layer. None for others.
pub(super) fn whole_input(
    emit: &mut Emit<'_>,
    x: &Value,
    filters: &Value,
    bias: Option<&Value>,
    groups: usize,
    window: &Window,
) -> Result<Option<Value>> {
    let (size, kernel) = (space(x)?, filters.dims.get(2..).unwrap_or_default());
    let is_padded = window.pad_before != [0; 3] || window.pad_after != [0; 3];
    let (&[images, channels, ..], &[outputs, inputs, ..]) = (&x.dims[..], &filters.dims[..]) else {
        return Ok(None);
    };
    let is_dilated = (kernel.iter().zip(&window.dilation[3 - size.len()..]))
        .any(|(kernel, dilation)| *kernel > 1 && *dilation > 1);
    if groups != 1
        || is_padded
        || is_dilated
        || kernel != size
        || inputs != channels
        || x.len() == 0
    {
        return Ok(None);
    }
    let width = x.len() / images;
    let rows = emit.reshape(x, &[images, width])?;
    let weights = emit.reshape(filters, &[outputs, width])?;
    let (rows, weights) = (emit.node(&rows)?, emit.node(&weights)?);
    let mut node = emit.builder.matmul(rows, weights.transpose())?;
    if let Some(bias) = bias {
        let bias = emit.node(bias)?;
        node = emit.builder.add(node, bias)?;
    }
    let mut dims = vec![1; x.rank()];
    (dims[0], dims[1]) = (images, outputs);
    emit.shaped(node, x.element, &dims).map(Some)
}

/// A convolution that a factor or offset of each channel follows, with it in its filters and bias;
/// computed in float64. None if the other operand is something else.
pub(super) fn rescaled(
    emit: &mut Emit<'_>,
    value: &Value,
    other: &Value,
    op: BinaryOp,
) -> Result<Option<Value>> {
    let (Some(known), Some(array)) = (&value.convolution, other.array()) else {
        return Ok(None);
    };
    let channels = value.dims[1];
    let by_channel = array.dims().len() <= value.rank()
        && array
            .dims()
            .iter()
            .rev()
            .enumerate()
            .all(|(from_end, size)| {
                *size == 1 || from_end + 2 == value.rank() && *size == channels
            });
    if !by_channel || array.is_empty() {
        return Ok(None);
    }
    let numbers = array.to_f64();
    let of = |channel: usize| numbers[channel % numbers.len()];
    let filter_len = known.filters.len() / channels;
    let offsets = || {
        known
            .bias
            .as_ref()
            .map_or(vec![0.0; channels], Array::to_f64)
    };
    let scaled = |data: Vec<f64>, len: usize| {
        data.into_iter()
            .enumerate()
            .map(|(at, number)| {
                if op == BinaryOp::Mul {
                    number * of(at / len)
                } else {
                    number / of(at / len)
                }
            })
            .collect()
    };
    let wide = |dims: &[usize], data: Vec<f64>| Array::wide(ElementType::F32, dims, data);
    let (filters, bias) = match op {
        BinaryOp::Mul | BinaryOp::Div => {
            let bias = known
                .bias
                .as_ref()
                .map(|bias| wide(&[channels], scaled(bias.to_f64(), 1)));
            (
                wide(
                    known.filters.dims(),
                    scaled(known.filters.to_f64(), filter_len),
                ),
                bias,
            )
        }
        BinaryOp::Add => (
            known.filters.clone(),
            Some(wide(
                &[channels],
                offsets()
                    .into_iter()
                    .enumerate()
                    .map(|(at, offset)| offset + of(at))
                    .collect(),
            )),
        ),
        BinaryOp::Sub => (
            known.filters.clone(),
            Some(wide(
                &[channels],
                offsets()
                    .into_iter()
                    .enumerate()
                    .map(|(at, offset)| offset - of(at))
                    .collect(),
            )),
        ),
        _ => return Ok(None),
    };
    Ok(Some(known_convolution(
        emit,
        KnownConvolution {
            filters,
            bias,
            ..KnownConvolution::clone(known)
        },
    )?))
}
