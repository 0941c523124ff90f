//! Random numbers: draws that the run's seed, the node and the number of the run determine.
//!
//! Philox4x32-10 on a counter: the draws have the same bits on every device, and a run that is
//! repeated with its seed and number draws the same again. A node with the attribute `seed` has a
//! seed of its own.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Comparison, Distribution, Node, Reduction};

use super::Family;
use super::constants::{convert, element_of};
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, shape};

/// Never computed while the model is loaded, also for known tensors.
pub(super) const FAMILY: Family = &[
    ("Bernoulli", bernoulli),
    ("Multinomial", multinomial),
    ("RandomNormal", |emit, call| {
        drawn(emit, call, Distribution::Normal)
    }),
    ("RandomNormalLike", |emit, call| {
        drawn(emit, call, Distribution::Normal)
    }),
    ("RandomUniform", |emit, call| {
        drawn(emit, call, Distribution::Uniform)
    }),
    ("RandomUniformLike", |emit, call| {
        drawn(emit, call, Distribution::Uniform)
    }),
];

impl Emit<'_> {
    /// Draws of a node of the file, with its own seed if the attribute `seed` gives one.
    fn draw(
        &mut self,
        call: &Call<'_>,
        distribution: Distribution,
        dims: &[usize],
    ) -> Result<Node> {
        let key = match call.attributes.float("seed")? {
            Some(seed) => self.draws_of_seed(seed)?,
            None => self.draws()?,
        };
        self.builder.random(distribution, key, shape(dims)?)
    }
}

/// The type of the attribute `dtype`.
fn element(call: &Call<'_>, default: ElementType) -> Result<ElementType> {
    call.attributes
        .int("dtype")?
        .map_or(Ok(default), element_of)
}

/// The shape that an attribute states, or that of an input.
fn drawn(emit: &mut Emit<'_>, call: &Call<'_>, distribution: Distribution) -> Result<Vec<Value>> {
    let (dims, default) = match call.optional(0) {
        Some(like) => (like.dims.clone(), like.element),
        None => {
            let stated = call.attributes.ints("shape")?;
            let stated = stated.ok_or_else(|| Error::data("attribute shape is missing"))?;
            let sizes = stated.iter().map(|size| usize::try_from(*size).ok());
            let sizes = sizes.collect::<Option<Vec<_>>>();
            let sizes = sizes.ok_or_else(|| Error::data(format!("shape {stated:?}")))?;
            (sizes, ElementType::F32)
        }
    };
    let element = element(call, default)?;
    let (factor, offset) = match distribution {
        Distribution::Normal => (
            call.attributes.float_or("scale", 1.0)?,
            call.attributes.float_or("mean", 0.0)?,
        ),
        Distribution::Uniform => {
            let low = call.attributes.float_or("low", 0.0)?;
            (call.attributes.float_or("high", 1.0)? - low, low)
        }
    };
    if !element.is_float() {
        return Err(Error::data(format!(
            "draws of {element}; a type of floats is needed"
        )));
    }
    if dims.contains(&0) {
        call.attributes.float("seed")?;
        return Ok(vec![Array::wide(element, &dims, Vec::new()).into()]);
    }
    let mut node = emit.draw(call, distribution, &dims)?;
    if factor != 1.0 {
        node = emit.with(BinaryOp::Mul, node, factor)?;
    }
    if offset != 0.0 {
        node = emit.with(BinaryOp::Add, node, offset)?;
    }
    Ok(vec![emit.shaped(node, element, &dims)?])
}

/// 1 with the probability that an element is, else 0.
fn bernoulli(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let element = element(call, x.element)?;
    if !x.element.is_float() {
        return Err(Error::data(format!("probabilities of {}", x.element)));
    }
    if x.len() == 0 {
        call.attributes.float("seed")?;
        return Ok(vec![Array::wide(element, &x.dims, Vec::new()).into()]);
    }
    let draws = emit.draw(call, Distribution::Uniform, &x.dims)?;
    let probabilities = emit.node(x)?;
    let is_one = emit
        .builder
        .compare(Comparison::Less, draws, probabilities)?;
    let value = emit.shaped(is_one, ElementType::Bool, &x.dims)?;
    Ok(vec![convert(emit, &value, element)?])
}

/// Classes by logarithms of their probabilities: the first class up to which the sum of
/// probabilities exceeds a draw.
///
/// # Numerics
/// A class of probability p is drawn with a probability of p ± 2⁻²⁴.
fn multinomial(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let element = element(call, ElementType::I32)?;
    let samples = call.attributes.int_or("sample_size", 1)?;
    let (&[batch, classes], Ok(samples)) = (&x.dims[..], usize::try_from(samples)) else {
        return Err(Error::data(format!(
            "{samples} draws of {:?}; [batch, classes] is needed",
            x.dims
        )));
    };
    if batch == 0 || samples == 0 || classes == 0 || !x.element.is_float() {
        return Err(Error::data(format!(
            "{samples} draws of {} {:?}",
            x.element, x.dims
        )));
    }
    if !matches!(element, ElementType::I32 | ElementType::I64) {
        return Err(Error::data(format!("classes as {element}")));
    }
    let draws = emit.draw(call, Distribution::Uniform, &[batch, samples, 1])?;
    if classes == 1 {
        return Ok(vec![emit.filled(element, &[batch, samples], 0.0)?.into()]);
    }
    let logits = emit.node(x)?;
    let probabilities = emit.builder.softmax(logits, 1)?;
    let sums = emit.builder.cumsum(probabilities, false, false)?;
    let sums = emit.shaped(sums, ElementType::F32, &[batch, 1, classes])?;
    // The sum of all may differ from 1 by rounding.
    let all = emit.run(&sums, 2, classes - 1..classes)?;
    let before = emit.run(&sums, 2, 0..classes - 1)?;
    let (all, before) = (emit.node(&all)?, emit.node(&before)?);
    let draws = emit.builder.binary(BinaryOp::Mul, draws, all)?;
    let is_passed = emit.builder.compare(Comparison::LessEqual, before, draws)?;
    let class = emit.builder.reduce_axes(Reduction::Sum, is_passed, &[2])?;
    Ok(vec![emit.shaped(class, element, &[batch, samples])?])
}
