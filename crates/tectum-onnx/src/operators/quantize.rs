//! Integers that represent floats by a scale and a zero point, and products of integers.
//!
//! Products of integers are exact. Sums of products of bytes below 2²⁴ are exact in f32 in any order, so the products of matrices of floats compute them, in
//! parts along the inner axis that are short enough; the parts are added as integers. Wider integers are split into bytes.

use tectum::{DType, Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, IntegerOp, Node, Reduction};

use super::Family;
use super::constants::{convert, element_of};
use super::matrix::product;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Source, Value, made};

pub(super) const FAMILY: Family = &[
    ("ConvInteger", conv_integer),
    ("DequantizeLinear", dequantize),
    ("DynamicQuantizeLinear", dynamic_quantize),
    ("MatMulInteger", matmul_integer),
    ("QLinearConv", qlinear_conv),
    ("QLinearMatMul", qlinear_matmul),
    ("QuantizeLinear", quantize),
];

/// Integers up to here are exact in f32.
const EXACT: usize = 1 << 24;

/// Parts of a long product, each of which adds operations.
const MAX_PARTS: usize = 1 << 10;

/// Which elements of a value share a scale and a zero point.
struct Granularity {
    axis: i64,
    /// Elements along the axis that share them; 0 without blocks.
    block: usize,
}

impl Granularity {
    fn read(call: &Call<'_>) -> Result<Self> {
        let block = call.attributes.int_or("block_size", 0)?;
        let block = usize::try_from(block).map_err(|_| Error::data(format!("block_size {block}")))?;
        Ok(Self { axis: call.attributes.int_or("axis", 1)?, block })
    }

    /// A scale or zero point in a shape that repeats to that of `x`.
    fn align(&self, emit: &mut Emit<'_>, x: &Value, parameter: &Value) -> Result<Value> {
        if parameter.len() == 1 {
            return emit.reshape(parameter, &[]);
        }
        let axis = x.axis(self.axis)?;
        let size = x.dims[axis];
        let fault = || Error::data(format!("a scale or zero point of {:?} for axis {axis} of {:?} in blocks of {}", parameter.dims, x.dims, self.block));
        if self.block == 0 {
            let mut dims = vec![1; x.rank()];
            dims[axis] = size;
            return if parameter.dims == [size] { emit.reshape(parameter, &dims) } else { Err(fault()) };
        }
        let mut dims = x.dims.clone();
        dims[axis] = size.div_ceil(self.block);
        if parameter.dims != dims {
            return Err(fault());
        }
        emit.list(&[size])?;
        let places: Vec<usize> = (0..size).map(|place| place / self.block).collect();
        emit.take(parameter, axis, &places)
    }
}

/// A value as floats without its zero point.
fn centred(emit: &mut Emit<'_>, x: &Value, zero: Option<&Value>) -> Result<Value> {
    let zero = zero.filter(|zero| zero.array().is_none_or(|zero| zero.to_f64().iter().any(|zero| *zero != 0.0)));
    if let (Source::Known(array), Some(Source::Known(zero))) = (&x.source, zero.map(|zero| &zero.source))
        && zero.len() == 1
    {
        let zero = zero.to_f64()[0];
        return Ok(Array::wide(ElementType::F32, &x.dims, array.to_f64().into_iter().map(|value| value - zero).collect()).into());
    }
    let floats = convert(emit, x, ElementType::F32)?;
    let Some(zero) = zero else { return Ok(floats) };
    let zero = convert(emit, zero, ElementType::F32)?;
    let (floats, zero) = (emit.node(&floats)?, emit.node(&zero)?);
    let node = emit.builder.sub(floats, zero)?;
    emit.shaped(node, ElementType::F32, &x.dims)
}

/// saturate(round(scaled) + zero) as integers of a type of at most 16 bits.
fn saturated(emit: &mut Emit<'_>, scaled: Node, zero: Option<Node>, element: ElementType) -> Result<Node> {
    let (low, high) =
        element.range().filter(|(low, high)| high - low < EXACT as i128).ok_or_else(|| Error::unsupported(format!("quantization to {element}")))?;
    let mut node = emit.builder.function(Function::Round, scaled)?;
    if let Some(zero) = zero {
        node = emit.builder.add(node, zero)?;
    }
    let node = emit.with(BinaryOp::Max, node, low as f32)?;
    let node = emit.with(BinaryOp::Min, node, high as f32)?;
    emit.builder.convert(node, DType::I32)
}

/// A value as a node of floats.
fn floats(emit: &mut Emit<'_>, value: &Value) -> Result<Node> {
    let value = if value.element.is_float() { value.clone() } else { convert(emit, value, ElementType::F32)? };
    emit.node(&value)
}

fn quantize(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, granularity) = (call.input(0)?, Granularity::read(call)?);
    // Of floats of eight bits only.
    call.attributes.int("saturate")?;
    // Floats of any width are f32 on devices.
    call.attributes.int("precision")?;
    let stated = match call.attributes.int_or("output_dtype", 0)? {
        0 => None,
        code => Some(element_of(code)?),
    };
    let element = call.optional(2).map(|zero| zero.element).or(stated).unwrap_or(ElementType::U8);
    if stated.is_some_and(|stated| stated != element) {
        return Err(Error::data(format!("output_dtype differs from the zero point's {element}")));
    }
    let scale = granularity.align(emit, x, call.input(1)?)?;
    let zero = match call.optional(2) {
        Some(zero) => {
            let zero = granularity.align(emit, x, zero)?;
            Some(floats(emit, &zero)?)
        }
        None => None,
    };
    let (node, scale) = (floats(emit, x)?, emit.node(&scale)?);
    let scaled = emit.builder.div(node, scale)?;
    let node = saturated(emit, scaled, zero, element)?;
    Ok(vec![emit.shaped(node, element, &x.dims)?])
}

fn dequantize(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, scale, granularity) = (call.input(0)?, call.input(1)?, Granularity::read(call)?);
    let element = match call.attributes.int_or("output_dtype", 0)? {
        0 => scale.element,
        code => element_of(code)?,
    };
    if x.element.is_float() || !element.is_float() {
        return Err(Error::data(format!("{} as {element}", x.element)));
    }
    let scale = granularity.align(emit, x, scale)?;
    let zero = match call.optional(2) {
        Some(zero) => Some(granularity.align(emit, x, zero)?),
        None => None,
    };
    let centred = centred(emit, x, zero.as_ref())?;
    let (node, scale) = (emit.node(&centred)?, emit.node(&scale)?);
    let node = emit.builder.mul(node, scale)?;
    Ok(vec![emit.shaped(node, element, &x.dims)?])
}

/// Bytes with a scale and a zero point that cover all elements and 0.
fn dynamic_quantize(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let node = emit.input(call, 0)?;
    let flat = emit.builder.reshape(node, [1, x.len()])?;
    let mut extreme = |reduction, op| -> Result<Node> {
        let extreme = emit.builder.reduce_axes(reduction, flat, &[1])?;
        emit.with(op, extreme, 0.0)
    };
    let (highest, lowest) = (extreme(Reduction::Max, BinaryOp::Max)?, extreme(Reduction::Min, BinaryOp::Min)?);
    let range = emit.builder.sub(highest, lowest)?;
    let scale = emit.with(BinaryOp::Div, range, 255.0)?;
    // Zeros alone have the scale 0; as bytes they are zeros.
    let (nothing, one) = (emit.number(0.0)?, emit.number(1.0)?);
    let is_zero = emit.builder.compare(Comparison::Equal, scale, nothing)?;
    let divisor = emit.builder.select(is_zero, one, scale)?;
    let lowest = emit.builder.div(lowest, divisor)?;
    let negative = emit.builder.scale(lowest, -1.0)?;
    let zero = saturated(emit, negative, None, ElementType::U8)?;
    let zero_float = emit.builder.convert(zero, DType::F32)?;
    let scaled = emit.builder.div(flat, divisor)?;
    let y = saturated(emit, scaled, Some(zero_float), ElementType::U8)?;
    Ok(vec![emit.shaped(y, ElementType::U8, &x.dims)?, emit.shaped(scale, ElementType::F32, &[])?, emit.shaped(zero, ElementType::U8, &[])?])
}

/// The greatest distance of integers of a type from a zero point of the type, or from 0.
fn bound(element: ElementType, has_zero: bool) -> Result<usize> {
    match (element, has_zero) {
        (ElementType::I8, false) => Ok(128),
        (ElementType::I8 | ElementType::U8, _) => Ok(255),
        _ => Err(Error::data(format!("a product of {element}: int8 or uint8 is needed"))),
    }
}

/// The exact product of floats that are integers and whose products are at most `bound`: floats if every sum is exact in f32, integers otherwise.
fn exact_product(emit: &mut Emit<'_>, a: &Value, b: &Value, bound: usize) -> Result<Value> {
    let (a_axis, b_axis) = (a.rank().saturating_sub(1), b.rank().saturating_sub(2));
    let inner = a.dims.last().copied().unwrap_or(1);
    let part = EXACT / bound.max(1);
    if inner <= part || emit.is_folding() || b.dims.get(b_axis) != Some(&inner) {
        return product(emit, a, b);
    }
    if inner / part > MAX_PARTS {
        return Err(Error::unsupported(format!("sums of {inner} products; at most {} are possible", part * MAX_PARTS)));
    }
    let mut sum: Option<Value> = None;
    for start in (0..inner).step_by(part) {
        let places = start..inner.min(start + part);
        let (a, b) = (emit.run(a, a_axis, places.clone())?, emit.run(b, b_axis, places)?);
        let term = product(emit, &a, &b)?;
        let term = convert(emit, &term, ElementType::I32)?;
        sum = Some(match sum {
            Some(sum) => added(emit, &sum, &term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| Error::data("a product of nothing"))
}

fn added(emit: &mut Emit<'_>, a: &Value, b: &Value) -> Result<Value> {
    let (a_node, b_node) = (emit.node(a)?, emit.node(b)?);
    let node = emit.builder.integer(IntegerOp::Add, a_node, Some(b_node))?;
    emit.shaped(node, ElementType::I32, &a.dims)
}

/// The product of integers of one type of 16 bits or more; it wraps at 32 bits on devices.
pub(super) fn integer_product(emit: &mut Emit<'_>, a: &Value, b: &Value) -> Result<Value> {
    let element = a.element;
    if emit.is_folding() {
        // In float64, without a detour over f32.
        let mut wide = |value: &Value| -> Result<Value> {
            let node = emit.node(value)?;
            let node = emit.builder.convert(node, DType::F32)?;
            emit.value(node, ElementType::F32)
        };
        let (a, b) = (wide(a)?, wide(b)?);
        let node = product(emit, &a, &b)?;
        let node = emit.node(&node)?;
        let node = emit.builder.convert(node, DType::I32)?;
        return emit.value(node, element);
    }
    let (a_bytes, b_bytes) = (bytes(emit, a)?, bytes(emit, b)?);
    let mut sum: Option<Value> = None;
    for (low, a) in a_bytes.iter().enumerate() {
        for (high, b) in b_bytes.iter().enumerate().take(4 - low) {
            let term = exact_product(emit, a, b, 255 * 255)?;
            let term = convert(emit, &term, ElementType::I32)?;
            let (node, shift) = (emit.node(&term)?, emit.integer(8 * (low + high) as i32)?);
            let node = emit.builder.integer(IntegerOp::Shl, node, Some(shift))?;
            let term = emit.shaped(node, ElementType::I32, &term.dims)?;
            sum = Some(match sum {
                Some(sum) => added(emit, &sum, &term)?,
                None => term,
            });
        }
    }
    let sum = sum.ok_or_else(|| Error::data("a product of nothing"))?;
    let node = emit.node(&sum)?;
    let node = emit.wrap(node, element)?;
    emit.shaped(node, element, &sum.dims)
}

/// The four bytes of words, from the lowest, as floats.
fn bytes(emit: &mut Emit<'_>, value: &Value) -> Result<Vec<Value>> {
    if let Some(array) = value.array() {
        let words = array.to_i32().ok_or_else(|| Error::unsupported("an integer beyond 32 bits would reach the device"))?;
        let byte = |place: usize| words.iter().map(|word| f64::from(word.to_le_bytes()[place])).collect();
        return Ok((0..4).map(|place| Array::wide(ElementType::F32, &value.dims, byte(place)).into()).collect());
    }
    let (node, mask) = (emit.node(value)?, emit.integer(255)?);
    let byte = |place: i32| {
        let count = emit.integer(8 * place)?;
        let shifted = emit.builder.integer(IntegerOp::Shr, node, Some(count))?;
        let byte = emit.builder.integer(IntegerOp::And, shifted, Some(mask))?;
        let byte = emit.builder.convert(byte, DType::F32)?;
        emit.shaped(byte, ElementType::F32, &value.dims)
    };
    (0..4).map(byte).collect()
}

/// A scale or zero point of rows in a shape that repeats over columns.
fn of_rows(emit: &mut Emit<'_>, parameter: &Value) -> Result<Value> {
    match parameter.dims[..] {
        [1] => emit.reshape(parameter, &[]),
        [rows] => emit.reshape(parameter, &[rows, 1]),
        _ => Ok(parameter.clone()),
    }
}

/// A scale or zero point of columns; that of all is a scalar.
fn of_columns(emit: &mut Emit<'_>, parameter: &Value) -> Result<Value> {
    if parameter.dims == [1] { emit.reshape(parameter, &[]) } else { Ok(parameter.clone()) }
}

/// The product of the inputs `a` and `b` without their zero points.
fn byte_product(emit: &mut Emit<'_>, call: &Call<'_>, [a, a_zero, b, b_zero]: [usize; 4]) -> Result<Value> {
    let a_zero = call.optional(a_zero).map(|zero| of_rows(emit, zero)).transpose()?;
    let b_zero = call.optional(b_zero).map(|zero| of_columns(emit, zero)).transpose()?;
    let (a, b) = (call.input(a)?, call.input(b)?);
    let bound = bound(a.element, a_zero.is_some())? * bound(b.element, b_zero.is_some())?;
    let (a, b) = (centred(emit, a, a_zero.as_ref())?, centred(emit, b, b_zero.as_ref())?);
    exact_product(emit, &a, &b, bound)
}

fn matmul_integer(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let product = byte_product(emit, call, [0, 2, 1, 3])?;
    Ok(vec![convert(emit, &product, ElementType::I32)?])
}

/// A product with the scales of its operands as integers with another scale and zero point.
fn rescaled(emit: &mut Emit<'_>, product: &Value, [a_scale, b_scale, y_scale]: [&Value; 3], zero: Option<&Value>) -> Result<Value> {
    let element = zero.map_or(ElementType::U8, |zero| zero.element);
    let [a_scale, b_scale, y_scale] = [emit.node(a_scale)?, emit.node(b_scale)?, emit.node(y_scale)?];
    let node = floats(emit, product)?;
    let scaled = emit.builder.mul(node, a_scale)?;
    let scaled = emit.builder.mul(scaled, b_scale)?;
    let scaled = emit.builder.div(scaled, y_scale)?;
    let zero = match zero {
        Some(zero) => Some(floats(emit, zero)?),
        None => None,
    };
    let node = saturated(emit, scaled, zero, element)?;
    emit.shaped(node, element, &product.dims)
}

fn qlinear_matmul(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let product = byte_product(emit, call, [0, 2, 3, 5])?;
    let (a_scale, b_scale) = (of_rows(emit, call.input(1)?)?, of_columns(emit, call.input(4)?)?);
    let (y_scale, zero) = (of_rows(emit, call.input(6)?)?, of_rows(emit, call.input(7)?)?);
    Ok(vec![rescaled(emit, &product, [&a_scale, &b_scale, &y_scale], Some(&zero))?])
}

fn conv_integer(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let sums = byte_convolution(emit, call, [0, 2, 1, 3])?;
    Ok(vec![convert(emit, &sums, ElementType::I32)?])
}

fn qlinear_conv(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let mut sums = byte_convolution(emit, call, [0, 2, 3, 5])?;
    if let Some(bias) = call.optional(8) {
        let bias = of_channels(emit, bias, sums.rank())?;
        let whole = convert(emit, &sums, ElementType::I32)?;
        sums = added(emit, &whole, &bias)?;
    }
    let (x_scale, w_scale) = (of_columns(emit, call.input(1)?)?, of_channels(emit, call.input(4)?, sums.rank())?);
    let (y_scale, zero) = (of_columns(emit, call.input(6)?)?, of_columns(emit, call.input(7)?)?);
    Ok(vec![rescaled(emit, &sums, [&x_scale, &w_scale, &y_scale], Some(&zero))?])
}

/// A number for each channel of a value of `rank` axes.
fn of_channels(emit: &mut Emit<'_>, parameter: &Value, rank: usize) -> Result<Value> {
    if parameter.len() == 1 {
        return emit.reshape(parameter, &[]);
    }
    let mut dims = vec![1; rank - 1];
    dims[0] = parameter.len();
    emit.reshape(parameter, &dims)
}

/// The places of a convolution's taps.
struct Taps {
    /// For each axis: outputs, taps of the kernel, stride, dilation, padding before.
    axes: Vec<[usize; 5]>,
    sizes: Vec<usize>,
}

impl Taps {
    fn read(call: &Call<'_>, sizes: &[usize], kernel: &[usize]) -> Result<Self> {
        let attributes = &call.attributes;
        let fault = || Error::data(format!("a kernel of {kernel:?} on {sizes:?}: strides, dilations or pads do not fit"));
        let rank = sizes.len();
        let counts = |ints: Option<Vec<i64>>, count: usize, default: usize| -> Result<Vec<usize>> {
            let Some(ints) = ints else { return Ok(vec![default; count]) };
            let counts = ints.into_iter().map(|value| usize::try_from(value).ok().filter(|value| *value <= u32::MAX as usize)).collect::<Option<Vec<_>>>();
            counts.filter(|counts| counts.len() == count).ok_or_else(fault)
        };
        let stated = counts(attributes.ints("kernel_shape")?, rank, 1)?;
        if attributes.ints("kernel_shape")?.is_some() && stated != kernel {
            return Err(fault());
        }
        let (strides, dilations) = (counts(attributes.ints("strides")?, rank, 1)?, counts(attributes.ints("dilations")?, rank, 1)?);
        let pads = counts(attributes.ints("pads")?, 2 * rank, 0)?;
        let mode = attributes.string_or("auto_pad", "NOTSET")?;
        let axis = |axis: usize| -> Result<[usize; 5]> {
            let (size, taps, stride, dilation) = (sizes[axis], kernel[axis], strides[axis], dilations[axis]);
            if stride == 0 || dilation == 0 || taps == 0 {
                return Err(fault());
            }
            let reach = (taps - 1) * dilation + 1;
            let (before, after) = match mode {
                "NOTSET" => (pads[axis], pads[rank + axis]),
                "VALID" => (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => {
                    let all = (size.div_ceil(stride).saturating_sub(1) * stride).saturating_add(reach).saturating_sub(size);
                    if mode == "SAME_UPPER" { (all / 2, all.div_ceil(2)) } else { (all.div_ceil(2), all / 2) }
                }
                other => return Err(Error::data(format!("auto_pad {other:?}"))),
            };
            let outputs = (size + before + after).checked_sub(reach).ok_or_else(fault)? / stride + 1;
            Ok([outputs, taps, stride, dilation, before])
        };
        Ok(Self { axes: (0..rank).map(axis).collect::<Result<_>>()?, sizes: sizes.to_vec() })
    }

    fn outputs(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis[0]).collect()
    }

    /// The place in the image of each output, for each tap; the one after the last place is padding.
    fn places(&self) -> Vec<i32> {
        let (outputs, taps): (usize, usize) = (self.axes.iter().map(|axis| axis[0]).product(), self.axes.iter().map(|axis| axis[1]).product());
        let padding = self.sizes.iter().product::<usize>();
        let place = |mut tap: usize, mut output: usize| {
            let (mut place, mut stride) = (0, 1);
            for (&[outputs, taps, step, dilation, before], &size) in self.axes.iter().zip(&self.sizes).rev() {
                let at = (output % outputs * step + tap % taps * dilation).checked_sub(before).filter(|at| *at < size)?;
                place += at * stride;
                (stride, tap, output) = (stride * size, tap / taps, output / outputs);
            }
            Some(place)
        };
        (0..taps).flat_map(|tap| (0..outputs).map(move |output| (tap, output))).map(|(tap, output)| place(tap, output).unwrap_or(padding) as i32).collect()
    }
}

/// The convolution of the inputs `x` and `w` without their zero points, as a product with the image's places gathered for each tap of the kernel.
///
/// A convolution of floats computes the same without the gathered copy where channels · taps · 255² is below [`EXACT`].
fn byte_convolution(emit: &mut Emit<'_>, call: &Call<'_>, [x, x_zero, w, w_zero]: [usize; 4]) -> Result<Value> {
    let (x, w) = (call.input(x)?, call.input(w)?);
    let groups = usize::try_from(call.attributes.int_or("group", 1)?).unwrap_or(0);
    let fault = || Error::data(format!("{:?} convolved with {:?} in {groups} groups", x.dims, w.dims));
    if x.rank() < 3
        || w.rank() != x.rank()
        || groups == 0
        || !w.dims[0].is_multiple_of(groups)
        || w.dims[1].checked_mul(groups) != Some(x.dims[1])
        || x.len() == 0
    {
        return Err(fault());
    }
    let taps = Taps::read(call, &x.dims[2..], &w.dims[2..])?;
    let x_zero = call.optional(x_zero).map(|zero| of_columns(emit, zero)).transpose()?;
    let w_zero = call.optional(w_zero).map(|zero| of_channels(emit, zero, w.rank() + 1)).transpose()?;
    let bound = bound(x.element, x_zero.is_some())? * bound(w.element, w_zero.is_some())?;
    let (batch, channels, width) = (x.dims[0], x.dims[1], w.dims[1]);
    let (places, kernel): (usize, usize) = (x.dims[2..].iter().product(), w.dims[2..].iter().product());
    let (filters, outputs) = (w.dims[0], made(&taps.outputs())?);
    emit.spend(made(&[kernel, outputs])?)?;
    made(&[batch, channels, kernel, outputs])?;
    // [places, batch · channels], with a row of zeros for the padding.
    let image = centred(emit, x, x_zero.as_ref())?;
    let image = emit.reshape(&image, &[batch * channels, places])?;
    let image = emit.permute(&image, &[1, 0])?;
    let padding = emit.filled(ElementType::F32, &[1, batch * channels], 0.0)?.into();
    let image = emit.join(&[image, padding], 0)?;
    let (table, rows) = (emit.node(&image)?, emit.builder.integer_constant(&taps.places(), [kernel * outputs])?);
    let gathered = emit.builder.gather(table, rows)?;
    let gathered = emit.shaped(gathered, ElementType::F32, &[kernel, outputs, batch, channels])?;
    let columns = emit.permute(&gathered, &[3, 0, 2, 1])?;
    let columns = emit.reshape(&columns, &[channels * kernel, batch * outputs])?;
    let weights = centred(emit, w, w_zero.as_ref())?;
    let weights = emit.reshape(&weights, &[filters, width * kernel])?;
    let mut parts = Vec::new();
    for group in 0..groups {
        let (rows, inner) = (filters / groups, width * kernel);
        let (weights, columns) = (emit.run(&weights, 0, group * rows..(group + 1) * rows)?, emit.run(&columns, 0, group * inner..(group + 1) * inner)?);
        parts.push(exact_product(emit, &weights, &columns, bound)?);
    }
    let sums = emit.join(&parts, 0)?;
    let sums = emit.reshape(&sums, &[filters, batch, outputs])?;
    let sums = emit.permute(&sums, &[1, 0, 2])?;
    emit.reshape(&sums, &[&[batch, filters][..], &taps.outputs()].concat())
}
