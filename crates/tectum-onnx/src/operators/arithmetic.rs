//! Operators element by element.

use tectum::{Activation, DType, Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, IntegerOp, Node};

use super::Family;
use super::constants::convert;
use super::window::rescaled;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[
    ("Abs", |emit, call| {
        either(emit, call, Function::Abs, IntegerOp::Abs)
    }),
    ("Acos", |emit, call| function(emit, call, Function::Acos)),
    ("Acosh", |emit, call| function(emit, call, Function::Acosh)),
    ("Add", |emit, call| {
        binary(emit, call, BinaryOp::Add, IntegerOp::Add)
    }),
    ("And", |emit, call| integers(emit, call, IntegerOp::And)),
    ("Asin", |emit, call| function(emit, call, Function::Asin)),
    ("Asinh", |emit, call| function(emit, call, Function::Asinh)),
    ("Atan", |emit, call| function(emit, call, Function::Atan)),
    ("Atanh", |emit, call| function(emit, call, Function::Atanh)),
    ("BitShift", bit_shift),
    ("BitwiseAnd", |emit, call| {
        integers(emit, call, IntegerOp::And)
    }),
    ("BitwiseNot", bitwise_not),
    ("BitwiseOr", |emit, call| {
        integers(emit, call, IntegerOp::Or)
    }),
    ("BitwiseXor", |emit, call| {
        integers(emit, call, IntegerOp::Xor)
    }),
    ("Ceil", |emit, call| function(emit, call, Function::Ceil)),
    ("Celu", celu),
    ("Clip", clip),
    ("Cos", |emit, call| function(emit, call, Function::Cos)),
    ("Cosh", |emit, call| function(emit, call, Function::Cosh)),
    ("Div", |emit, call| {
        binary(emit, call, BinaryOp::Div, IntegerOp::Div)
    }),
    ("Elu", elu),
    ("Equal", |emit, call| compare(emit, call, Comparison::Equal)),
    ("Erf", |emit, call| function(emit, call, Function::Erf)),
    ("Exp", |emit, call| function(emit, call, Function::Exp)),
    ("Floor", |emit, call| function(emit, call, Function::Floor)),
    ("Gelu", gelu),
    ("Greater", |emit, call| {
        compare(emit, call, Comparison::Greater)
    }),
    ("GreaterOrEqual", |emit, call| {
        compare(emit, call, Comparison::GreaterEqual)
    }),
    ("HardSigmoid", hard_sigmoid),
    ("HardSwish", hard_swish),
    ("IsInf", is_inf),
    ("IsNaN", is_nan),
    ("LeakyRelu", leaky_relu),
    ("Less", |emit, call| compare(emit, call, Comparison::Less)),
    ("LessOrEqual", |emit, call| {
        compare(emit, call, Comparison::LessEqual)
    }),
    ("Log", |emit, call| function(emit, call, Function::Log)),
    ("Max", |emit, call| {
        all(emit, call, BinaryOp::Max, IntegerOp::Max)
    }),
    ("Mean", mean),
    ("Min", |emit, call| {
        all(emit, call, BinaryOp::Min, IntegerOp::Min)
    }),
    ("Mish", mish),
    ("Mod", modulo),
    ("Mul", |emit, call| {
        binary(emit, call, BinaryOp::Mul, IntegerOp::Mul)
    }),
    ("Neg", |emit, call| {
        either(emit, call, Function::Neg, IntegerOp::Neg)
    }),
    ("Not", not),
    ("Or", |emit, call| integers(emit, call, IntegerOp::Or)),
    ("PRelu", prelu),
    ("Pow", pow),
    ("Reciprocal", |emit, call| {
        function(emit, call, Function::Reciprocal)
    }),
    ("Relu", relu),
    ("Round", |emit, call| function(emit, call, Function::Round)),
    ("Selu", selu),
    ("Shrink", shrink),
    ("Sigmoid", |emit, call| {
        activation(emit, call, Activation::Sigmoid)
    }),
    ("Sign", |emit, call| {
        either(emit, call, Function::Sign, IntegerOp::Sign)
    }),
    ("Sin", |emit, call| function(emit, call, Function::Sin)),
    ("Sinh", |emit, call| function(emit, call, Function::Sinh)),
    ("Softplus", softplus),
    ("Softsign", softsign),
    ("Sqrt", |emit, call| function(emit, call, Function::Sqrt)),
    ("Sub", |emit, call| {
        binary(emit, call, BinaryOp::Sub, IntegerOp::Sub)
    }),
    ("Sum", |emit, call| {
        all(emit, call, BinaryOp::Add, IntegerOp::Add)
    }),
    ("SwiGLU", swiglu),
    ("Swish", swish),
    ("Tan", |emit, call| function(emit, call, Function::Tan)),
    ("Tanh", |emit, call| {
        activation(emit, call, Activation::Tanh)
    }),
    ("ThresholdedRelu", thresholded_relu),
    ("Where", choose),
    ("Xor", |emit, call| integers(emit, call, IntegerOp::Xor)),
];

impl Emit<'_> {
    /// A node whose numbers wrap at the bits of a narrow type.
    pub fn wrap(&mut self, node: Node, element: ElementType) -> Result<Node> {
        let bits = 8 * element.bytes() as i32;
        let shift = |emit: &mut Self, node, op| {
            let count = emit.integer(32 - bits)?;
            emit.builder.integer(op, node, Some(count))
        };
        match element {
            ElementType::I8 | ElementType::I16 => {
                let high = shift(self, node, IntegerOp::Shl)?;
                shift(self, high, IntegerOp::Shr)
            }
            ElementType::U8 | ElementType::U16 => {
                let mask = self.integer((1 << bits) - 1)?;
                self.builder.integer(IntegerOp::And, node, Some(mask))
            }
            _ => Ok(node),
        }
    }

    /// A function of a node and a number, element by element.
    pub fn with(&mut self, op: BinaryOp, node: Node, number: f32) -> Result<Node> {
        let number = self.number(number)?;
        self.builder.binary(op, node, number)
    }
}

/// The two inputs. Before opset 7 the second repeats only if an attribute states it, from an axis
/// on or to the last axes.
fn operands(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<[Value; 2]> {
    let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
    if call.opset >= 7 {
        return Ok([a, b]);
    }
    let (repeats, axis) = (
        call.attributes.flag("broadcast", false)?,
        call.attributes.int("axis")?,
    );
    let Some(axis) = axis.filter(|_| repeats) else {
        return Ok([a, b]);
    };
    let axis = a.axis(axis)?;
    let after = a
        .rank()
        .checked_sub(axis + b.rank())
        .ok_or_else(|| Error::data(format!("{:?} from axis {axis} on of {:?}", b.dims, a.dims)))?;
    let dims = [&b.dims[..], &vec![1; after]].concat();
    let b = emit.reshape(&b, &dims)?;
    Ok([a, b])
}

/// The nodes of the two inputs and the shape that both repeat to.
fn pair(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<(Node, Node, Vec<usize>)> {
    let [a, b] = operands(emit, call)?;
    let dims = crate::emit::joint([&a.dims[..], &b.dims])?;
    Ok((emit.node(&a)?, emit.node(&b)?, dims))
}

/// The shape that all inputs repeat to.
fn joint(call: &Call<'_>) -> Result<Vec<usize>> {
    crate::emit::joint(call.inputs.iter().flatten().map(|value| &value.dims[..]))
}

/// Refuses inputs of different types.
fn one_type(call: &Call<'_>) -> Result<ElementType> {
    let element = call.input(0)?.element;
    match call
        .inputs
        .iter()
        .flatten()
        .find(|value| value.element != element)
    {
        Some(other) => Err(Error::data(format!(
            "inputs of {element} and {}",
            other.element
        ))),
        None => Ok(element),
    }
}

fn apply(
    emit: &mut Emit<'_>,
    element: ElementType,
    a: Node,
    b: Node,
    float: BinaryOp,
    integer: IntegerOp,
) -> Result<Node> {
    if element.is_float() {
        return emit.builder.binary(float, a, b);
    }
    let node = emit.builder.integer(integer, a, Some(b))?;
    emit.wrap(node, element)
}

fn binary(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    float: BinaryOp,
    integer: IntegerOp,
) -> Result<Vec<Value>> {
    let element = one_type(call)?;
    let (first, second) = (call.input(0)?, call.input(1)?);
    let is_commutative = matches!(float, BinaryOp::Add | BinaryOp::Mul);
    // Before opset 7, attributes say how shapes are aligned.
    let orders = if call.opset < 7 {
        0
    } else if is_commutative {
        2
    } else {
        1
    };
    for (value, other) in [(first, second), (second, first)].into_iter().take(orders) {
        if let Some(value) = rescaled(emit, value, other, float)? {
            return Ok(vec![value]);
        }
    }
    let (a, b, dims) = pair(emit, call)?;
    let node = apply(emit, element, a, b, float, integer)?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

/// A function of any number of inputs.
fn all(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    float: BinaryOp,
    integer: IntegerOp,
) -> Result<Vec<Value>> {
    let (element, dims) = (one_type(call)?, joint(call)?);
    let mut node = emit.input(call, 0)?;
    for index in 1..call.inputs.len() {
        let next = emit.input(call, index)?;
        node = apply(emit, element, node, next, float, integer)?;
    }
    Ok(vec![emit.shaped(node, element, &dims)?])
}

fn mean(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let values = all(emit, call, BinaryOp::Add, IntegerOp::Add)?;
    let sum = emit.node(&values[0])?;
    let node = emit.with(BinaryOp::Div, sum, call.inputs.len() as f32)?;
    Ok(vec![emit.value(node, values[0].element)?])
}

fn function(emit: &mut Emit<'_>, call: &Call<'_>, function: Function) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let x = emit.input(call, 0)?;
    let node = emit.builder.function(function, x)?;
    Ok(vec![emit.value(node, element)?])
}

/// A function of floats or of integers.
fn either(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    float: Function,
    integer: IntegerOp,
) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    if element.is_float() {
        return function(emit, call, float);
    }
    let x = emit.input(call, 0)?;
    let node = emit.builder.integer(integer, x, None)?;
    let node = emit.wrap(node, element)?;
    Ok(vec![emit.value(node, element)?])
}

fn integers(emit: &mut Emit<'_>, call: &Call<'_>, op: IntegerOp) -> Result<Vec<Value>> {
    let element = one_type(call)?;
    let (a, b, dims) = pair(emit, call)?;
    let node = emit.builder.integer(op, a, Some(b))?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

fn bitwise_not(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let x = emit.input(call, 0)?;
    let node = emit.builder.integer(IntegerOp::Not, x, None)?;
    let node = emit.wrap(node, element)?;
    Ok(vec![emit.value(node, element)?])
}

fn bit_shift(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let element = one_type(call)?;
    if matches!(element, ElementType::U32 | ElementType::U64) && call.input(0)?.array().is_none() {
        return Err(Error::unsupported(format!(
            "shifts of {element}, which is i32 on devices"
        )));
    }
    let op = match call.attributes.string_or("direction", "")? {
        "LEFT" => IntegerOp::Shl,
        "RIGHT" => IntegerOp::Shr,
        other => return Err(Error::data(format!("direction {other:?}"))),
    };
    let dims = joint(call)?;
    let (a, b) = (emit.input(call, 0)?, emit.input(call, 1)?);
    let node = emit.builder.integer(op, a, Some(b))?;
    let node = emit.wrap(node, element)?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

fn not(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, one) = (emit.input(call, 0)?, emit.integer(1)?);
    let node = emit.builder.integer(IntegerOp::Xor, x, Some(one))?;
    Ok(vec![emit.value(node, ElementType::Bool)?])
}

fn compare(emit: &mut Emit<'_>, call: &Call<'_>, comparison: Comparison) -> Result<Vec<Value>> {
    one_type(call)?;
    let (a, b, dims) = pair(emit, call)?;
    let node = emit.builder.compare(comparison, a, b)?;
    Ok(vec![emit.shaped(node, ElementType::Bool, &dims)?])
}

fn is_nan(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = emit.input(call, 0)?;
    let node = emit.builder.test(Comparison::IsNan, x)?;
    Ok(vec![emit.value(node, ElementType::Bool)?])
}

fn is_inf(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = emit.input(call, 0)?;
    let (negative, positive) = (
        call.attributes.flag("detect_negative", true)?,
        call.attributes.flag("detect_positive", true)?,
    );
    let is_infinite = emit.builder.test(Comparison::IsInf, x)?;
    let node = match (negative, positive) {
        (true, true) => is_infinite,
        (false, false) => {
            let none = emit.integer(0)?;
            emit.builder
                .integer(IntegerOp::And, is_infinite, Some(none))?
        }
        (is_negative, _) => {
            let zero = emit.number(0.0)?;
            let side = emit.builder.compare(
                if is_negative {
                    Comparison::Less
                } else {
                    Comparison::Greater
                },
                x,
                zero,
            )?;
            emit.builder
                .integer(IntegerOp::And, is_infinite, Some(side))?
        }
    };
    Ok(vec![emit.value(node, ElementType::Bool)?])
}

fn choose(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (element, dims) = (call.input(1)?.element, joint(call)?);
    let [condition, a, b] = [
        emit.input(call, 0)?,
        emit.input(call, 1)?,
        emit.input(call, 2)?,
    ];
    let node = emit.builder.select(condition, a, b)?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

fn pow(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let [base, exponent] = &operands(emit, call)?;
    let dims = crate::emit::joint([&base.dims[..], &exponent.dims])?;
    let element = base.element;
    let squares = exponent
        .array()
        .is_some_and(|array| array.len() == 1 && array.to_f64()[0] == 2.0);
    let node = if element.is_float() && squares {
        let x = emit.node(base)?;
        emit.builder.mul(x, x)?
    } else if element.is_float() || exponent.element.is_float() {
        let [base, exponent] = [base, exponent].map(|value| value.clone());
        let (base, exponent) = (
            convert(emit, &base, ElementType::F32)?,
            convert(emit, &exponent, ElementType::F32)?,
        );
        let (a, b) = (emit.node(&base)?, emit.node(&exponent)?);
        let power = emit.builder.binary(BinaryOp::Pow, a, b)?;
        let power = emit.value(power, ElementType::F32)?;
        let power = if element.is_float() {
            power
        } else {
            convert(emit, &power, element)?
        };
        emit.node(&power)?
    } else {
        let (a, b) = (emit.node(base)?, emit.node(exponent)?);
        let power = emit.builder.integer(IntegerOp::Pow, a, Some(b))?;
        emit.wrap(power, element)?
    };
    Ok(vec![emit.shaped(node, element, &dims)?])
}

fn modulo(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let is_truncated = call.attributes.flag("fmod", false)?;
    let (float, integer) = if is_truncated {
        (BinaryOp::Fmod, IntegerOp::Rem)
    } else {
        (BinaryOp::Mod, IntegerOp::Mod)
    };
    binary(emit, call, float, integer)
}

fn clip(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let bound = |index: usize, name| -> Result<Option<f64>> {
        let constant = call
            .optional(index)
            .and_then(Value::array)
            .and_then(|array| array.to_f64().first().copied());
        Ok(call.attributes.float(name)?.map(f64::from).or(constant))
    };
    if element.is_float() && (bound(1, "min")?, bound(2, "max")?) == (Some(0.0), Some(6.0)) {
        return activation(emit, call, Activation::Relu6);
    }
    let mut node = emit.input(call, 0)?;
    for (index, name, float, integer) in [
        (1, "min", BinaryOp::Max, IntegerOp::Max),
        (2, "max", BinaryOp::Min, IntegerOp::Min),
    ] {
        let bound = match call.attributes.float(name)? {
            Some(bound) => emit.number(bound)?,
            None if call.optional(index).is_some() => emit.input(call, index)?,
            None => continue,
        };
        node = if element.is_float() {
            emit.builder.binary(float, node, bound)?
        } else {
            emit.builder.integer(integer, node, Some(bound))?
        };
    }
    Ok(vec![emit.shaped(node, element, &call.input(0)?.dims)?])
}

fn activation(emit: &mut Emit<'_>, call: &Call<'_>, activation: Activation) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let x = emit.input(call, 0)?;
    let node = emit.builder.activate(x, activation)?;
    Ok(vec![emit.value(node, element)?])
}

fn relu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    if element.dtype() == DType::F32 {
        return activation(emit, call, Activation::Relu);
    }
    let (x, zero) = (emit.input(call, 0)?, emit.integer(0)?);
    let node = emit.builder.integer(IntegerOp::Max, x, Some(zero))?;
    Ok(vec![emit.value(node, element)?])
}

fn gelu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    match call.attributes.string_or("approximate", "none")? {
        "none" => activation(emit, call, Activation::GeluErf),
        "tanh" => activation(emit, call, Activation::Gelu),
        other => Err(Error::data(format!("approximate {other:?}"))),
    }
}

fn swish(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    float(emit, call, |emit, x| swish_of(emit, x, alpha))
}

/// The swish of the first input times the second.
fn swiglu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (alpha, element) = (call.attributes.float_or("alpha", 1.0)?, one_type(call)?);
    let (a, b, dims) = pair(emit, call)?;
    let gate = swish_of(emit, a, alpha)?;
    let node = emit.builder.mul(gate, b)?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

/// x·σ(alpha·x)
pub(super) fn swish_of(emit: &mut Emit<'_>, x: Node, alpha: f32) -> Result<Node> {
    if alpha == 1.0 {
        return emit.builder.activate(x, Activation::Silu);
    }
    let scaled = emit.builder.scale(x, alpha)?;
    let gate = emit.builder.sigmoid(scaled)?;
    emit.builder.mul(x, gate)
}

/// A function of floats that several operations compute.
fn float(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    f: impl FnOnce(&mut Emit<'_>, Node) -> Result<Node>,
) -> Result<Vec<Value>> {
    let element = call.input(0)?.element;
    let x = emit.input(call, 0)?;
    let node = f(emit, x)?;
    Ok(vec![emit.shaped(node, element, &call.input(0)?.dims)?])
}

/// eˣ − 1 of the negative part of x, 0 elsewhere.
pub(super) fn expm1_below(emit: &mut Emit<'_>, x: Node) -> Result<Node> {
    let below = emit.with(BinaryOp::Min, x, 0.0)?;
    emit.builder.activate(below, Activation::Elu)
}

/// scale·(max(x, 0) + alpha·(e^(min(x, 0)) − 1))
pub(super) fn exponential_linear(
    emit: &mut Emit<'_>,
    x: Node,
    alpha: f32,
    scale: f32,
) -> Result<Node> {
    if alpha == 1.0 {
        let unit = emit.builder.activate(x, Activation::Elu)?;
        return if scale == 1.0 {
            Ok(unit)
        } else {
            emit.builder.scale(unit, scale)
        };
    }
    let (above, below) = (emit.builder.relu(x)?, expm1_below(emit, x)?);
    let below = emit.builder.scale(below, alpha)?;
    let sum = emit.builder.add(above, below)?;
    if scale == 1.0 {
        Ok(sum)
    } else {
        emit.builder.scale(sum, scale)
    }
}

fn elu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    float(emit, call, |emit, x| {
        exponential_linear(emit, x, alpha, 1.0)
    })
}

fn selu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (alpha, gamma) = (
        call.attributes.float_or("alpha", 1.673_263_2)?,
        call.attributes.float_or("gamma", 1.050_701)?,
    );
    float(emit, call, |emit, x| {
        exponential_linear(emit, x, alpha, gamma)
    })
}

/// max(x, 0) + alpha·(e^(min(x, 0)/alpha) − 1)
fn celu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    float(emit, call, |emit, x| {
        let narrowed = emit.builder.scale(x, 1.0 / alpha)?;
        let (above, below) = (emit.builder.relu(x)?, expm1_below(emit, narrowed)?);
        let below = emit.builder.scale(below, alpha)?;
        emit.builder.add(above, below)
    })
}

fn leaky_relu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 0.01)?;
    float(emit, call, |emit, x| {
        let (above, below) = (emit.builder.relu(x)?, emit.with(BinaryOp::Min, x, 0.0)?);
        let below = emit.builder.scale(below, alpha)?;
        emit.builder.add(above, below)
    })
}

fn prelu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (element, dims) = (call.input(0)?.element, call.input(0)?.dims.clone());
    if !element.is_float() {
        return Err(Error::unsupported(format!(
            "a parametric ramp of {element}"
        )));
    }
    let mut slope = call.input(1)?.clone();
    if call.opset < 7 && slope.rank() == 1 && slope.len() > 1 && dims.len() > 2 {
        // One for each channel.
        let channels = [&[slope.len()][..], &vec![1; dims.len() - 2]].concat();
        slope = emit.reshape(&slope, &channels)?;
    }
    let (x, slope) = (emit.input(call, 0)?, emit.node(&slope)?);
    let (above, below) = (emit.builder.relu(x)?, emit.with(BinaryOp::Min, x, 0.0)?);
    let below = emit.builder.mul(below, slope)?;
    let node = emit.builder.add(above, below)?;
    Ok(vec![emit.shaped(node, element, &dims)?])
}

/// max(0, min(1, alpha·x + beta))
fn ramp(emit: &mut Emit<'_>, x: Node, alpha: f32, beta: f32) -> Result<Node> {
    let scaled = emit.builder.scale(x, alpha)?;
    let shifted = emit.with(BinaryOp::Add, scaled, beta)?;
    let below = emit.with(BinaryOp::Min, shifted, 1.0)?;
    emit.with(BinaryOp::Max, below, 0.0)
}

fn hard_sigmoid(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (alpha, beta) = (
        call.attributes.float_or("alpha", 0.2)?,
        call.attributes.float_or("beta", 0.5)?,
    );
    if beta == 0.5 && (alpha - 1.0 / 6.0).abs() < 1e-6 {
        return activation(emit, call, Activation::HardSigmoid);
    }
    float(emit, call, |emit, x| ramp(emit, x, alpha, beta))
}

fn hard_swish(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    activation(emit, call, Activation::HardSwish)
}

/// max(x, 0) + log(1 + e^(−|x|))
fn log1p_exp(emit: &mut Emit<'_>, x: Node) -> Result<Node> {
    let distance = emit.builder.function(Function::Abs, x)?;
    let falling = emit.builder.scale(distance, -1.0)?;
    let exponential = emit.builder.exp(falling)?;
    let sum = emit.with(BinaryOp::Add, exponential, 1.0)?;
    let (above, logarithm) = (emit.builder.relu(x)?, emit.builder.log(sum)?);
    emit.builder.add(above, logarithm)
}

fn softplus(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    float(emit, call, log1p_exp)
}

fn mish(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    float(emit, call, |emit, x| {
        let soft = log1p_exp(emit, x)?;
        let gate = emit.builder.tanh(soft)?;
        emit.builder.mul(x, gate)
    })
}

fn softsign(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    float(emit, call, |emit, x| {
        let distance = emit.builder.function(Function::Abs, x)?;
        let sum = emit.with(BinaryOp::Add, distance, 1.0)?;
        emit.builder.div(x, sum)
    })
}

fn thresholded_relu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let alpha = call.attributes.float_or("alpha", 1.0)?;
    float(emit, call, |emit, x| {
        let (bound, zero) = (emit.number(alpha)?, emit.number(0.0)?);
        let is_above = emit.builder.compare(Comparison::Greater, x, bound)?;
        emit.builder.select(is_above, x, zero)
    })
}

fn shrink(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (bias, lambda) = (
        call.attributes.float_or("bias", 0.0)?,
        call.attributes.float_or("lambd", 0.5)?,
    );
    float(emit, call, |emit, x| {
        let (low, high, zero) = (
            emit.number(-lambda)?,
            emit.number(lambda)?,
            emit.number(0.0)?,
        );
        let is_below = emit.builder.compare(Comparison::Less, x, low)?;
        let is_above = emit.builder.compare(Comparison::Greater, x, high)?;
        let (raised, lowered) = (
            emit.with(BinaryOp::Add, x, bias)?,
            emit.with(BinaryOp::Add, x, -bias)?,
        );
        let rest = emit.builder.select(is_above, lowered, zero)?;
        emit.builder.select(is_below, raised, rest)
    })
}
