//! Convolutions and pooling.

use tectum::{Error, Result, Window};
use tectum_graph::{BinaryOp, Function, PoolKind, Reduction};

use super::Family;
use super::quantize::dequantized_convolution;
use super::window::{
    convolution_of, groups, known_convolution, padded, sizes, space, whole_input, window,
};
use crate::element::ElementType;
use crate::emit::{Call, Emit, KnownConvolution, Value};

pub(super) const FAMILY: Family = &[
    ("AveragePool", average_pool),
    ("Conv", convolution),
    ("ConvTranspose", convolution_transposed),
    ("GlobalAveragePool", global_average_pool),
    ("GlobalLpPool", global_lp_pool),
    ("GlobalMaxPool", global_max_pool),
    ("LpPool", lp_pool),
    ("MaxPool", max_pool),
];

fn floats(x: &Value) -> Result<ElementType> {
    if x.element.is_float() {
        Ok(x.element)
    } else {
        Err(Error::unsupported(format!("windows of {}", x.element)))
    }
}

fn convolution(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let element = floats(x)?;
    let (groups, window) = convolution_of(call, x, w)?;
    if let Some(value) = dequantized_convolution(emit, call, groups, window)? {
        return Ok(vec![value]);
    }
    let bias = call.optional(2);
    if let (ElementType::F32, Some(filters), true) = (
        element,
        w.array(),
        bias.is_none_or(|bias| bias.array().is_some()),
    ) {
        let bias = bias.and_then(Value::array).cloned();
        let known = KnownConvolution {
            x: Value {
                convolution: None,
                ..x.clone()
            },
            filters: filters.clone(),
            bias,
            groups,
            window,
        };
        return Ok(vec![known_convolution(emit, known)?]);
    }
    if let Some(value) = whole_input(emit, x, w, bias, groups, &window)? {
        return Ok(vec![value]);
    }
    let bias = bias.map(|bias| emit.node(bias)).transpose()?;
    let (x, w) = (emit.node(x)?, emit.node(w)?);
    let node = emit.builder.convolution(x, w, bias, groups, window)?;
    Ok(vec![emit.value(node, element)?])
}

fn convolution_transposed(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let (element, size_in) = (floats(x)?, space(x)?.to_vec());
    let axes = size_in.len();
    let kernel = w.dims.get(2..).unwrap_or_default();
    call.attributes.ints("kernel_shape")?;
    let (stride, dilation) = (
        sizes(call, "strides", axes, 1)?,
        sizes(call, "dilations", axes, 1)?,
    );
    let mut adds = sizes(call, "output_padding", axes, 0)?;
    let mut pads = sizes(call, "pads", 2 * axes, 0)?;
    let mode = call.attributes.string_or("auto_pad", "NOTSET")?;
    let asked = call.attributes.ints("output_shape")?;
    if kernel.len() != axes || kernel.contains(&0) {
        return Err(Error::data(format!(
            "filters {:?} for {axes} axes of space",
            w.dims
        )));
    }
    let wanted: Option<Vec<usize>> = match (&asked, mode) {
        (Some(shape), _) => Some(
            shape[shape.len().saturating_sub(axes)..]
                .iter()
                .map(|size| usize::try_from(*size).unwrap_or(0))
                .collect(),
        ),
        (None, "SAME_UPPER" | "SAME_LOWER") => Some(
            size_in
                .iter()
                .zip(&stride)
                .map(|(size, stride)| size * stride)
                .collect(),
        ),
        _ => None,
    };
    if let Some(wanted) = wanted {
        if wanted.len() != axes {
            return Err(Error::data(format!(
                "output_shape {asked:?} for {axes} axes of space"
            )));
        }
        for axis in 0..axes {
            let reach = (size_in[axis].saturating_sub(1) * stride[axis])
                + adds[axis]
                + (kernel[axis] - 1) * dilation[axis]
                + 1;
            // More than the windows reach is added at the end.
            let total = reach.saturating_sub(wanted[axis]);
            adds[axis] += wanted[axis].saturating_sub(reach);
            let (less, more) = (total / 2, total - total / 2);
            (pads[axis], pads[axes + axis]) = if mode == "SAME_UPPER" {
                (less, more)
            } else {
                (more, less)
            };
        }
    } else if mode == "VALID" {
        pads = vec![0; 2 * axes];
    }
    let window = Window {
        kernel: padded(kernel, 1),
        stride: padded(&stride, 1),
        dilation: padded(&dilation, 1),
        pad_before: padded(&pads[..axes], 0),
        pad_after: padded(&pads[axes..], 0),
    };
    let groups = groups(call)?;
    let bias = if call.optional(2).is_some() {
        Some(emit.input(call, 2)?)
    } else {
        None
    };
    let (x, w) = (emit.node(x)?, emit.node(w)?);
    let node = emit
        .builder
        .convolution_transposed(x, w, bias, groups, window, padded(&adds, 0))?;
    Ok(vec![emit.value(node, element)?])
}

fn kernel_shape(call: &Call<'_>, axes: usize) -> Result<Vec<usize>> {
    match call.attributes.ints("kernel_shape")? {
        Some(_) => sizes(call, "kernel_shape", axes, 1),
        None => Err(Error::data("attribute kernel_shape is missing")),
    }
}

fn max_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let size_in = space(x)?.to_vec();
    let (window, _) = window(call, &size_in, &kernel_shape(call, size_in.len())?)?;
    let is_column_major = call.attributes.int_or("storage_order", 0)? != 0;
    let element = x.element;
    // Integers of few bits are exact in f32.
    let is_exact = element.is_float()
        || matches!(
            element,
            ElementType::I8 | ElementType::U8 | ElementType::I16 | ElementType::U16
        );
    if !is_exact {
        return Err(Error::unsupported(format!("windows of {element}")));
    }
    let node = emit.node(x)?;
    let floats = emit.builder.convert(node, tectum::DType::F32)?;
    let greatest = emit.builder.pool(floats, PoolKind::Max, window)?;
    let back = emit.builder.convert(greatest, element.dtype())?;
    let mut values = vec![emit.value(back, element)?];
    if call.wants(1) {
        let place = emit.builder.pool(floats, PoolKind::MaxPlace, window)?;
        values.push(places(emit, x, place, &size_in, is_column_major)?);
    }
    Ok(values)
}

/// Places in a channel as places in the whole value, row-major or with the axes of space turned
/// around.
fn places(
    emit: &mut Emit<'_>,
    x: &Value,
    place: tectum_graph::Node,
    size_in: &[usize],
    is_column_major: bool,
) -> Result<Value> {
    use tectum_graph::IntegerOp;
    let volume: usize = size_in.iter().product();
    let mut node = place;
    if is_column_major {
        // Row-major digits, from the last axis on, become column-major ones.
        let mut rest = place;
        let mut turned = emit.integer(0)?;
        let mut stride = volume;
        for size in size_in.iter().rev() {
            stride /= size;
            let size = emit.integer(*size as i32)?;
            let digit = emit.builder.integer(IntegerOp::Rem, rest, Some(size))?;
            rest = emit.builder.integer(IntegerOp::Div, rest, Some(size))?;
            let weight = emit.integer(stride as i32)?;
            let scaled = emit.builder.integer(IntegerOp::Mul, digit, Some(weight))?;
            turned = emit.builder.integer(IntegerOp::Add, scaled, Some(turned))?;
        }
        node = turned;
    }
    let channels = x.dims[0] * x.dims[1];
    let starts: Vec<i32> = (0..channels)
        .map(|channel| (channel * volume) as i32)
        .collect();
    let mut dims = vec![x.dims[0], x.dims[1]];
    dims.resize(x.rank(), 1);
    let starts = emit
        .builder
        .integer_constant(&starts, crate::emit::shape(&dims)?)?;
    let node = emit.builder.integer(IntegerOp::Add, node, Some(starts))?;
    emit.value(node, ElementType::I64)
}

fn average_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (element, size_in) = (floats(x)?, space(x)?.to_vec());
    let (window, after) = window(call, &size_in, &kernel_shape(call, size_in.len())?)?;
    let kind = if call.attributes.flag("count_include_pad", false)? {
        PoolKind::MeanPadded {
            after: std::array::from_fn(|axis| after[axis].min(window.pad_after[axis])),
        }
    } else {
        PoolKind::MeanInside
    };
    let node = emit.node(x)?;
    let node = emit.builder.pool(node, kind, window)?;
    Ok(vec![emit.value(node, element)?])
}

/// (Σ |x|ᵖ)^(1/p) over windows: a mean of a window whose whole padding counts, times its elements.
fn lp_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (element, size_in) = (floats(x)?, space(x)?.to_vec());
    let (window, _) = window(call, &size_in, &kernel_shape(call, size_in.len())?)?;
    let p = call.attributes.int_or("p", 2)? as f32;
    let node = emit.node(x)?;
    let distance = emit.builder.function(Function::Abs, node)?;
    let powers = emit.with(BinaryOp::Pow, distance, p)?;
    let mean = emit.builder.pool(
        powers,
        PoolKind::MeanPadded {
            after: window.pad_after,
        },
        window,
    )?;
    let sum = emit.builder.scale(mean, window.taps() as f32)?;
    let node = emit.with(BinaryOp::Pow, sum, 1.0 / p)?;
    Ok(vec![emit.value(node, element)?])
}

fn over_space(x: &Value) -> Result<Vec<usize>> {
    if x.rank() > 2 {
        Ok((2..x.rank()).collect())
    } else {
        Err(Error::data(format!("{:?} has no axes of space", x.dims)))
    }
}

fn global_average_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (element, axes) = (floats(x)?, over_space(x)?);
    let count: usize = x.dims[2..].iter().product();
    let node = emit.node(x)?;
    let sum = emit.builder.reduce_axes(Reduction::Sum, node, &axes)?;
    let node = emit.with(BinaryOp::Div, sum, count as f32)?;
    Ok(vec![emit.value(node, element)?])
}

fn global_max_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (element, axes) = (floats(x)?, over_space(x)?);
    let node = emit.node(x)?;
    let node = emit.builder.reduce_axes(Reduction::Max, node, &axes)?;
    Ok(vec![emit.value(node, element)?])
}

fn global_lp_pool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (element, axes) = (floats(x)?, over_space(x)?);
    let p = call.attributes.int_or("p", 2)? as f32;
    let node = emit.node(x)?;
    let distance = emit.builder.function(Function::Abs, node)?;
    let powers = emit.with(BinaryOp::Pow, distance, p)?;
    let sum = emit.builder.reduce_axes(Reduction::Sum, powers, &axes)?;
    let node = emit.with(BinaryOp::Pow, sum, 1.0 / p)?;
    Ok(vec![emit.value(node, element)?])
}
