//! Integers that represent floats by a scale and a zero point, and products of integers.
//!
//! Products of integers are exact. Sums of products of bytes below 2²⁴ are exact in f32 in any
//! order, so the products of matrices of floats compute them, in parts along the inner axis that
//! are short enough; the parts are added as integers. Wider integers are split into bytes.

use std::rc::Rc;

use tectum::{DType, Error, Result, Window};
use tectum_graph::{BinaryOp, Comparison, Function, IntegerOp, Node, Reduction};

use super::Family;
use super::constants::{convert, element_of};
use super::matrix::product;
use super::window::convolution_of;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Codes, Emit, Source, Value};

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
        let block =
            usize::try_from(block).map_err(|_| Error::data(format!("block_size {block}")))?;
        Ok(Self {
            axis: call.attributes.int_or("axis", 1)?,
            block,
        })
    }

    /// A scale or zero point in a shape that repeats to that of `x`.
    fn align(&self, emit: &mut Emit<'_>, x: &Value, parameter: &Value) -> Result<Value> {
        if parameter.len() == 1 {
            return emit.reshape(parameter, &[]);
        }
        let axis = x.axis(self.axis)?;
        let size = x.dims[axis];
        let fault = || {
            Error::data(format!(
                "a scale or zero point of {:?} for axis {axis} of {:?} in blocks of {}",
                parameter.dims, x.dims, self.block
            ))
        };
        if self.block == 0 {
            let mut dims = vec![1; x.rank()];
            dims[axis] = size;
            return if parameter.dims == [size] {
                emit.reshape(parameter, &dims)
            } else {
                Err(fault())
            };
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
    let zero = zero.filter(|zero| !is_zero(zero));
    if let (Source::Known(array), Some(Source::Known(zero))) =
        (&x.source, zero.map(|zero| &zero.source))
        && zero.len() == 1
    {
        let zero = zero.to_f64()[0];
        return Ok(Array::wide(
            ElementType::F32,
            &x.dims,
            array
                .to_f64()
                .into_iter()
                .map(|value| value - zero)
                .collect(),
        )
        .into());
    }
    let floats = convert(emit, x, ElementType::F32)?;
    let Some(zero) = zero else { return Ok(floats) };
    let zero = convert(emit, zero, ElementType::F32)?;
    let (floats, zero) = (emit.node(&floats)?, emit.node(&zero)?);
    let node = emit.builder.sub(floats, zero)?;
    emit.shaped(node, ElementType::F32, &x.dims)
}

/// saturate(round(scaled) + zero) as integers of a type of at most 16 bits.
fn saturated(
    emit: &mut Emit<'_>,
    scaled: Node,
    zero: Option<Node>,
    element: ElementType,
) -> Result<Node> {
    let (low, high) = element
        .range()
        .filter(|(low, high)| high - low < EXACT as i128)
        .ok_or_else(|| Error::unsupported(format!("quantization to {element}")))?;
    let mut node = emit.builder.function(Function::Round, scaled)?;
    if let Some(zero) = zero {
        node = emit.builder.add(node, zero)?;
    }
    let node = emit.with(BinaryOp::Max, node, low as f32)?;
    let node = emit.with(BinaryOp::Min, node, high as f32)?;
    emit.builder.convert(node, DType::I32)
}

/// A value as a node of floats.
pub(super) fn floats(emit: &mut Emit<'_>, value: &Value) -> Result<Node> {
    let value = if value.element.is_float() {
        value.clone()
    } else {
        convert(emit, value, ElementType::F32)?
    };
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
    let element = call
        .optional(2)
        .map(|zero| zero.element)
        .or(stated)
        .unwrap_or(ElementType::U8);
    if stated.is_some_and(|stated| stated != element) {
        return Err(Error::data(format!(
            "output_dtype differs from the zero point's {element}"
        )));
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
    let is_shared = granularity.block == 0 && element == ElementType::F32;
    let codes = Codes {
        integers: x.clone(),
        scale: call.input(1)?.clone(),
        zero: call.optional(2).cloned(),
        axis: granularity.axis,
    };
    Ok(vec![Value {
        codes: is_shared.then(|| Rc::new(codes)),
        ..emit.shaped(node, element, &x.dims)?
    }])
}

/// Bytes with a scale and a zero point that cover all elements and 0.
fn dynamic_quantize(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let DynamicBytes {
        bytes, scale, zero, ..
    } = DynamicBytes::of(emit, x)?;
    Ok(vec![
        emit.shaped(bytes, ElementType::U8, &x.dims)?,
        emit.shaped(scale, ElementType::F32, &[])?,
        emit.shaped(zero, ElementType::U8, &[])?,
    ])
}

/// A value as bytes with a scale and a zero point that cover all its elements and 0.
struct DynamicBytes {
    /// [1, elements]
    bytes: Node,
    scale: Node,
    zero: Node,
    zero_float: Node,
}

impl DynamicBytes {
    fn of(emit: &mut Emit<'_>, x: &Value) -> Result<Self> {
        let node = emit.node(x)?;
        let flat = emit.builder.reshape(node, [1, x.len()])?;
        let mut extreme = |reduction, op| -> Result<Node> {
            let extreme = emit.builder.reduce_axes(reduction, flat, &[1])?;
            emit.with(op, extreme, 0.0)
        };
        let (highest, lowest) = (
            extreme(Reduction::Max, BinaryOp::Max)?,
            extreme(Reduction::Min, BinaryOp::Min)?,
        );
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
        let bytes = saturated(emit, scaled, Some(zero_float), ElementType::U8)?;
        Ok(Self {
            bytes,
            scale,
            zero,
            zero_float,
        })
    }
}

/// A value as whole numbers without their zero point, and their scale: the bytes that cover it.
pub(super) fn dynamic_codes(emit: &mut Emit<'_>, x: &Value) -> Result<(Value, Node)> {
    let DynamicBytes {
        bytes,
        scale,
        zero_float,
        ..
    } = DynamicBytes::of(emit, x)?;
    let node = emit.builder.convert(bytes, DType::F32)?;
    let node = emit.builder.sub(node, zero_float)?;
    Ok((emit.shaped(node, ElementType::F32, &x.dims)?, scale))
}

/// Bytes of weights as whole numbers without their zero point.
pub(super) fn weight_codes(
    emit: &mut Emit<'_>,
    weights: &Value,
    zero: Option<&Value>,
) -> Result<Value> {
    bound(weights.element, zero.is_some())?;
    let zero = zero.map(|zero| of_columns(emit, zero)).transpose()?;
    centred(emit, weights, zero.as_ref())
}

/// The exact product of codes of bytes, as floats.
pub(super) fn codes_product(emit: &mut Emit<'_>, a: &Value, b: &Value) -> Result<Node> {
    let sums = exact_product(emit, a, b, 255 * 255)?;
    floats(emit, &sums)
}

/// The greatest distance of integers of a type from a zero point of the type, or from 0.
fn bound(element: ElementType, has_zero: bool) -> Result<usize> {
    match (element, has_zero) {
        (ElementType::I8, false) => Ok(128),
        (ElementType::I8 | ElementType::U8, _) => Ok(255),
        _ => Err(Error::data(format!(
            "a product of {element}: int8 or uint8 is needed"
        ))),
    }
}

/// The exact product of floats that are integers and whose products are at most `bound`: floats if
/// every sum is exact in f32, integers otherwise.
fn exact_product(emit: &mut Emit<'_>, a: &Value, b: &Value, bound: usize) -> Result<Value> {
    let (a_axis, b_axis) = (a.rank().saturating_sub(1), b.rank().saturating_sub(2));
    let inner = a.dims.last().copied().unwrap_or(1);
    let part = EXACT / bound.max(1);
    if inner <= part || emit.is_folding() || b.dims.get(b_axis) != Some(&inner) {
        return product(emit, a, b);
    }
    if inner / part > MAX_PARTS {
        return Err(Error::unsupported(format!(
            "sums of {inner} products; at most {} are possible",
            part * MAX_PARTS
        )));
    }
    let mut sum: Option<Value> = None;
    for start in (0..inner).step_by(part) {
        let places = start..inner.min(start + part);
        let (a, b) = (
            emit.run(a, a_axis, places.clone())?,
            emit.run(b, b_axis, places)?,
        );
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
        let words = array.to_i32().ok_or_else(|| {
            Error::unsupported("an integer beyond 32 bits would reach the device")
        })?;
        let byte = |place: usize| {
            words
                .iter()
                .map(|word| f64::from(word.to_le_bytes()[place]))
                .collect()
        };
        return Ok((0..4)
            .map(|place| Array::wide(ElementType::F32, &value.dims, byte(place)).into())
            .collect());
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
pub(super) fn of_columns(emit: &mut Emit<'_>, parameter: &Value) -> Result<Value> {
    if parameter.dims == [1] {
        emit.reshape(parameter, &[])
    } else {
        Ok(parameter.clone())
    }
}

/// The product of the inputs `a` and `b` without their zero points.
fn byte_product(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    [a, a_zero, b, b_zero]: [usize; 4],
) -> Result<Value> {
    let a_zero = call
        .optional(a_zero)
        .map(|zero| of_rows(emit, zero))
        .transpose()?;
    let b_zero = call
        .optional(b_zero)
        .map(|zero| of_columns(emit, zero))
        .transpose()?;
    let (a, b) = (call.input(a)?, call.input(b)?);
    let bound = bound(a.element, a_zero.is_some())? * bound(b.element, b_zero.is_some())?;
    let (a, b) = (
        centred(emit, a, a_zero.as_ref())?,
        centred(emit, b, b_zero.as_ref())?,
    );
    exact_product(emit, &a, &b, bound)
}

fn matmul_integer(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let product = byte_product(emit, call, [0, 2, 1, 3])?;
    Ok(vec![convert(emit, &product, ElementType::I32)?])
}

/// A product with the scales of its operands as integers with another scale and zero point.
fn rescaled(
    emit: &mut Emit<'_>,
    product: &Value,
    [a_scale, b_scale, y_scale]: [&Value; 3],
    zero: Option<&Value>,
) -> Result<Value> {
    let element = zero.map_or(ElementType::U8, |zero| zero.element);
    let [a_scale, b_scale, y_scale] = [
        emit.node(a_scale)?,
        emit.node(b_scale)?,
        emit.node(y_scale)?,
    ];
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
    let (a_scale, b_scale) = (
        of_rows(emit, call.input(1)?)?,
        of_columns(emit, call.input(4)?)?,
    );
    let (y_scale, zero) = (
        of_rows(emit, call.input(6)?)?,
        of_rows(emit, call.input(7)?)?,
    );
    Ok(vec![rescaled(
        emit,
        &product,
        [&a_scale, &b_scale, &y_scale],
        Some(&zero),
    )?])
}

/// The product of the matrices of bytes 0 and 3 without their zero points 2 and 5, plus the
/// integers 6; either may be turned.
pub(super) fn byte_gemm(emit: &mut Emit<'_>, call: &Call<'_>, turns: [bool; 2]) -> Result<Value> {
    let mut factor = |index: usize, turns: bool| -> Result<(Value, usize)> {
        let (value, zero) = (call.input(index)?, call.optional(index + 2));
        let bound = bound(value.element, zero.is_some())?;
        let zero = zero.map(|zero| of_columns(emit, zero)).transpose()?;
        if value.rank() != 2 {
            return Err(Error::data(format!("{:?} is no matrix", value.dims)));
        }
        let value = if turns {
            emit.permute(value, &[1, 0])?
        } else {
            value.clone()
        };
        Ok((centred(emit, &value, zero.as_ref())?, bound))
    };
    let ((a, a_bound), (b, b_bound)) = (factor(0, turns[0])?, factor(3, turns[1])?);
    let sums = exact_product(emit, &a, &b, a_bound * b_bound)?;
    let Some(c) = call.optional(6) else {
        return Ok(sums);
    };
    if c.element != ElementType::I32 {
        return Err(Error::data(format!("C of {}; int32 is needed", c.element)));
    }
    let whole = convert(emit, &sums, ElementType::I32)?;
    let c = emit.repeat(c, &whole.dims)?;
    added(emit, &whole, &c)
}

/// Floats as integers of a scale and a zero point.
pub(super) fn requantized(
    emit: &mut Emit<'_>,
    y: &Value,
    scale: &Value,
    zero: Option<&Value>,
) -> Result<Value> {
    let element = zero.map_or(ElementType::U8, |zero| zero.element);
    let (node, scale) = (emit.node(y)?, emit.node(scale)?);
    let scaled = emit.builder.div(node, scale)?;
    let zero = zero
        .map(|zero| of_columns(emit, zero).and_then(|zero| floats(emit, &zero)))
        .transpose()?;
    let node = saturated(emit, scaled, zero, element)?;
    emit.shaped(node, element, &y.dims)
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
    let (x_scale, w_scale) = (
        of_columns(emit, call.input(1)?)?,
        of_channels(emit, call.input(4)?, sums.rank())?,
    );
    let (y_scale, zero) = (
        of_columns(emit, call.input(6)?)?,
        of_columns(emit, call.input(7)?)?,
    );
    Ok(vec![rescaled(
        emit,
        &sums,
        [&x_scale, &w_scale, &y_scale],
        Some(&zero),
    )?])
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

/// The convolution of the inputs `x` and `w` without their zero points.
fn byte_convolution(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    [x, x_zero, w, w_zero]: [usize; 4],
) -> Result<Value> {
    let (x, w) = (call.input(x)?, call.input(w)?);
    let (groups, window) = convolution_of(call, x, w)?;
    let w_zero = call
        .optional(w_zero)
        .map(|zero| of_channels(emit, zero, w.rank() + 1))
        .transpose()?;
    centred_convolution(
        emit,
        (groups, window),
        [(x, call.optional(x_zero)), (w, w_zero.as_ref())],
    )
}

/// The exact convolution of an image with filters of bytes, both without their zero points, of
/// which the image's is one number.
fn centred_convolution(
    emit: &mut Emit<'_>,
    (groups, window): (usize, Window),
    [x, w]: [(&Value, Option<&Value>); 2],
) -> Result<Value> {
    let bound = bound(x.0.element, x.1.is_some())? * bound(w.0.element, w.1.is_some())?;
    let x_zero = x.1.map(|zero| emit.reshape(zero, &[])).transpose()?;
    let (x, w) = (
        centred(emit, x.0, x_zero.as_ref())?,
        centred(emit, w.0, w.1)?,
    );
    let width = w.dims.get(1).copied().unwrap_or_default();
    let part = EXACT / bound.max(1) / window.taps().max(1);
    let convolve = |emit: &mut Emit<'_>, x: &Value, w: &Value| {
        let (x, w) = (emit.node(x)?, emit.node(w)?);
        let node = emit.builder.convolution_exact(x, w, groups, window)?;
        emit.value(node, ElementType::F32)
    };
    if width <= part || emit.is_folding() {
        return convolve(emit, &x, &w);
    }
    if part == 0 || width / part > MAX_PARTS {
        return Err(Error::unsupported(format!(
            "sums of {} products of bytes",
            width.saturating_mul(window.taps())
        )));
    }
    let mut sum: Option<Value> = None;
    for start in (0..width).step_by(part) {
        let places = start..width.min(start + part);
        let channels: Vec<usize> = (0..groups)
            .flat_map(|group| places.clone().map(move |place| group * width + place))
            .collect();
        let x = if groups == 1 {
            emit.run(&x, 1, places.clone())?
        } else {
            emit.take(&x, 1, &channels)?
        };
        let w = emit.run(&w, 1, places)?;
        let term = convolve(emit, &x, &w)?;
        let term = convert(emit, &term, ElementType::I32)?;
        sum = Some(match sum {
            Some(sum) => added(emit, &sum, &term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| Error::data("a convolution over no channels"))
}

/// A convolution of dequantized bytes as one of integers: exact sums, scaled once; none if an
/// operand is no such value.
pub(super) fn dequantized_convolution(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    groups: usize,
    window: Window,
) -> Result<Option<Value>> {
    let (Some(x), Some(w)) = (&call.input(0)?.codes, &call.input(1)?.codes) else {
        return Ok(None);
    };
    if !is_bytes(x) || !is_bytes(w) || x.scale.len() != 1 || (w.scale.len() != 1 && w.axis != 0) {
        return Ok(None);
    }
    let rank = w.integers.rank();
    let w_zero = w
        .zero
        .as_ref()
        .map(|zero| of_channels(emit, zero, rank + 1))
        .transpose()?;
    let sums = centred_convolution(
        emit,
        (groups, window),
        [
            (&x.integers, x.zero.as_ref()),
            (&w.integers, w_zero.as_ref()),
        ],
    )?;
    let scales = [
        emit.reshape(&x.scale, &[])?,
        of_channels(emit, &w.scale, rank)?,
    ];
    let bias = call
        .optional(2)
        .map(|bias| Ok::<_, Error>((of_channels(emit, bias, rank)?, bias)))
        .transpose()?;
    scaled_sums(emit, sums, scales, bias, |emit, integers| {
        of_channels(emit, integers, rank)
    })
    .map(Some)
}

/// A product of matrices of dequantized bytes as one of integers, with a bias of columns; none if
/// an operand is no such value.
pub(super) fn dequantized_product(
    emit: &mut Emit<'_>,
    [a, b]: [&Value; 2],
    is_turned: bool,
    bias: Option<&Value>,
) -> Result<Option<Value>> {
    let (Some(a), Some(b)) = (&a.codes, &b.codes) else {
        return Ok(None);
    };
    let columns = if is_turned { 0 } else { 1 };
    let fits = b.integers.rank() == 2
        && (b.scale.len() == 1 || b.integers.axis(b.axis)? == columns)
        && bias.is_none_or(|bias| bias.rank() == 1);
    if !is_bytes(a) || !is_bytes(b) || a.scale.len() != 1 || !fits {
        return Ok(None);
    }
    let bound =
        bound(a.integers.element, a.zero.is_some())? * bound(b.integers.element, b.zero.is_some())?;
    let turned = |emit: &mut Emit<'_>, value: &Value| {
        if is_turned {
            emit.permute(value, &[1, 0])
        } else {
            Ok(value.clone())
        }
    };
    let a_zero = a
        .zero
        .as_ref()
        .map(|zero| emit.reshape(zero, &[]))
        .transpose()?;
    let b_zero = b
        .zero
        .as_ref()
        .map(|zero| of_columns(emit, zero))
        .transpose()?;
    let b_integers = turned(emit, &b.integers)?;
    let (x, y) = (
        centred(emit, &a.integers, a_zero.as_ref())?,
        centred(emit, &b_integers, b_zero.as_ref())?,
    );
    let sums = exact_product(emit, &x, &y, bound)?;
    let scales = [emit.reshape(&a.scale, &[])?, of_columns(emit, &b.scale)?];
    scaled_sums(
        emit,
        sums,
        scales,
        bias.map(|bias| (bias.clone(), bias)),
        |_, integers| Ok(integers.clone()),
    )
    .map(Some)
}

fn is_bytes(codes: &Codes) -> bool {
    matches!(codes.integers.element, ElementType::I8 | ElementType::U8)
}

/// Sums of products times the scales of both operands, plus a bias: of integers before the scaling
/// if it was made of them, for it has the product's scale.
fn scaled_sums(
    emit: &mut Emit<'_>,
    mut sums: Value,
    [a, b]: [Value; 2],
    bias: Option<(Value, &Value)>,
    align: impl FnOnce(&mut Emit<'_>, &Value) -> Result<Value>,
) -> Result<Value> {
    let mut rest = None;
    if let Some((floats, given)) = bias {
        match given.codes.as_ref().filter(|codes| {
            codes.integers.element == ElementType::I32 && codes.zero.as_ref().is_none_or(is_zero)
        }) {
            Some(codes) => {
                let (whole, integers) = (
                    convert(emit, &sums, ElementType::I32)?,
                    align(emit, &codes.integers)?,
                );
                sums = added(emit, &whole, &integers)?;
            }
            None => rest = Some(floats),
        }
    }
    let (node, a, b) = (floats(emit, &sums)?, emit.node(&a)?, emit.node(&b)?);
    let scale = emit.builder.mul(b, a)?;
    let mut node = emit.builder.mul(node, scale)?;
    if let Some(rest) = rest {
        let rest = emit.node(&rest)?;
        node = emit.builder.add(node, rest)?;
    }
    emit.shaped(node, ElementType::F32, &sums.dims)
}

fn is_zero(value: &Value) -> bool {
    value
        .array()
        .is_some_and(|array| array.to_f64().iter().all(|number| *number == 0.0))
}
