//! Operators of the domain `com.microsoft`, which ONNX Runtime's optimizer and quantizer write.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Node};

use super::Family;
use super::arithmetic::swish_of;
use super::matrix::product;
use super::quantize::{byte_gemm, floats, of_columns, requantized};
use super::recurrent::dynamic_lstm;
use super::reductions::{Normalized, normalize_rows};
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[
    ("DynamicQuantizeLSTM", dynamic_lstm),
    ("FusedMatMul", fused_matmul),
    ("QGemm", qgemm),
    ("QuickGelu", quick_gelu),
    ("SkipLayerNormalization", skip_layer_norm),
    ("SkipSimplifiedLayerNormalization", skip_rms_norm),
];

/// x·σ(alpha·x)
fn quick_gelu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, alpha) = (call.input(0)?, call.attributes.float_or("alpha", 1.702)?);
    let node = emit.node(x)?;
    let node = swish_of(emit, node, alpha)?;
    Ok(vec![emit.shaped(node, x.element, &x.dims)?])
}

/// alpha·A·B, where the last two axes of A and B may be exchanged (`transA`), and the first one
/// moved before the last two's place (`transBatchA`).
fn fused_matmul(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let flag = |name| call.attributes.flag(name, false);
    let (a_turns, b_turns) = (flag("transA")?, flag("transB")?);
    let (a_batch, b_batch) = (flag("transBatchA")?, flag("transBatchB")?);
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    let (a, b) = (call.input(0)?, call.input(1)?);
    if a.element != b.element || !a.element.is_float() {
        return Err(Error::data(format!(
            "a product of {} and {}",
            a.element, b.element
        )));
    }
    let a = turned(emit, a, a_turns, a_batch)?;
    let b = turned(emit, b, b_turns, b_batch)?;
    let value = product(emit, &a, &b)?;
    if alpha == 1.0 {
        return Ok(vec![value]);
    }
    let node = emit.node(&value)?;
    let node = emit.builder.scale(node, alpha)?;
    Ok(vec![emit.shaped(node, value.element, &value.dims)?])
}

/// A factor with its axes in the order of a product. A vector stays as it is.
fn turned(emit: &mut Emit<'_>, value: &Value, turns: bool, moves_batch: bool) -> Result<Value> {
    let rank = value.rank();
    if rank < 2 {
        return Ok(value.clone());
    }
    let mut order: Vec<usize> = (0..rank).collect();
    if moves_batch {
        order[..rank - 1].rotate_left(1);
    }
    if turns {
        order.swap(rank - 2, rank - 1);
    }
    emit.permute(value, &order)
}

/// alpha·A·B + C of bytes with scales and zero points; C is integers of the product's scale. With a
/// scale of the result, bytes; floats without.
fn qgemm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    let turns = [
        call.attributes.flag("transA", false)?,
        call.attributes.flag("transB", false)?,
    ];
    let sums = byte_gemm(emit, call, turns)?;
    let (a_scale, b_scale) = (
        of_columns(emit, call.input(1)?)?,
        of_columns(emit, call.input(4)?)?,
    );
    let [sums_node, a_scale, b_scale] = [
        floats(emit, &sums)?,
        emit.node(&a_scale)?,
        emit.node(&b_scale)?,
    ];
    let scale = emit.builder.mul(b_scale, a_scale)?;
    let scale = emit.with(BinaryOp::Mul, scale, alpha)?;
    let node = emit.builder.mul(sums_node, scale)?;
    match call.optional(7) {
        Some(y_scale) => {
            let y_scale = of_columns(emit, y_scale)?;
            let zero = call.optional(8).cloned();
            let y = emit.shaped(node, ElementType::F32, &sums.dims)?;
            Ok(vec![requantized(emit, &y, &y_scale, zero.as_ref())?])
        }
        None => Ok(vec![emit.shaped(node, ElementType::F32, &sums.dims)?]),
    }
}

/// The sum of an input, another one that may repeat over the batch, and a bias of the last axis.
fn skip_sum(emit: &mut Emit<'_>, call: &Call<'_>, bias: usize) -> Result<(Node, usize)> {
    let (x, skip) = (call.input(0)?, call.input(1)?);
    let cols = x.dims.last().copied().unwrap_or(0);
    if !(2..=3).contains(&x.rank()) || skip.dims.last() != Some(&cols) || cols == 0 {
        return Err(Error::data(format!(
            "{:?} and {:?}; [batch, sequence, width] is needed",
            x.dims, skip.dims
        )));
    }
    if !x.element.is_float() {
        return Err(Error::data(format!("norms of {}", x.element)));
    }
    let skip = emit.repeat(skip, &x.dims)?;
    let (x, skip) = (emit.node(x)?, emit.node(&skip)?);
    let mut sum = emit.builder.add(x, skip)?;
    if call.optional(bias).is_some() {
        let bias = emit.input(call, bias)?;
        sum = emit.builder.add(sum, bias)?;
    }
    Ok((sum, cols))
}

/// The layer norm of a sum, then its statistics and the sum itself.
fn skip_layer_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let epsilon = call.attributes.float_or("epsilon", 1e-12)?;
    let (sum, cols) = skip_sum(emit, call, 4)?;
    let x = call.input(0)?;
    let rows = x.len() / cols;
    let flat = emit.builder.reshape(sum, [rows, cols])?;
    let gain = emit.input(call, 2)?;
    let bias = match call.optional(3) {
        Some(bias) => emit.node(bias)?,
        None => {
            let zero: Value = emit.filled(ElementType::F32, &[cols], 0.0)?.into();
            emit.node(&zero)?
        }
    };
    let normal = emit.builder.layer_norm(flat, gain, bias, epsilon)?;
    let mut statistics = x.dims.clone();
    statistics[x.rank() - 1] = 1;
    let mut values = vec![emit.shaped(normal, x.element, &x.dims)?];
    if call.wants(1) || call.wants(2) {
        let Normalized { mean, inverse, .. } = normalize_rows(emit, flat, epsilon)?;
        values.push(emit.shaped(mean, ElementType::F32, &statistics)?);
        values.push(emit.shaped(inverse, ElementType::F32, &statistics)?);
    } else {
        // Nothing reads them.
        values.extend([values[0].clone(), values[0].clone()]);
    }
    values.push(emit.shaped(sum, x.element, &x.dims)?);
    Ok(values)
}

/// The root-mean-square norm of a sum, then the sum itself as output 3.
fn skip_rms_norm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let epsilon = call.attributes.float_or("epsilon", 1e-12)?;
    if call.wants(1) || call.wants(2) {
        return Err(Error::unsupported("statistics of the norm as outputs"));
    }
    let (sum, cols) = skip_sum(emit, call, 3)?;
    let x = call.input(0)?;
    let flat = emit.builder.reshape(sum, [x.len() / cols, cols])?;
    let gain = emit.input(call, 2)?;
    let normal = emit.builder.rms_norm(flat, gain, epsilon)?;
    let normal = emit.shaped(normal, x.element, &x.dims)?;
    let sum = emit.shaped(sum, x.element, &x.dims)?;
    Ok(vec![normal.clone(), normal.clone(), normal, sum])
}
