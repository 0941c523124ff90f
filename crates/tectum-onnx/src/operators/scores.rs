//! Scores of classes and targets: their transforms, and the labels that follow from them.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Comparison, Function, Node, Reduction};

use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Source, Value};

/// What the attribute `post_transform` does with the scores of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Transform {
    Identity,
    Softmax,
    Logistic,
    /// As softmax; scores of 0 add nothing to the sum.
    SoftmaxZero,
}

impl Transform {
    pub fn read(call: &Call<'_>) -> Result<Self> {
        Self::named(call.attributes.string_or("post_transform", "NONE")?)
    }

    pub fn named(name: &str) -> Result<Self> {
        match name {
            "NONE" => Ok(Self::Identity),
            "SOFTMAX" => Ok(Self::Softmax),
            "LOGISTIC" => Ok(Self::Logistic),
            "SOFTMAX_ZERO" => Ok(Self::SoftmaxZero),
            other => Err(Error::unsupported(format!("post_transform {other}"))),
        }
    }

    /// The transformed scores [rows, classes].
    pub fn add(self, emit: &mut Emit<'_>, scores: Node) -> Result<Node> {
        match self {
            Self::Identity => Ok(scores),
            Self::Softmax => emit.builder.softmax(scores, 1),
            Self::Logistic => emit.builder.sigmoid(scores),
            Self::SoftmaxZero => softmax_zero(emit, scores),
        }
    }
}

/// Scores that count as 0 for [`Transform::SoftmaxZero`], as in ONNX Runtime.
const NEAR_ZERO: f32 = 1e-7;

/// e^(x − max) over their sum; of a score of 0, neither is it in the sum nor changed but in scale.
fn softmax_zero(emit: &mut Emit<'_>, scores: Node) -> Result<Node> {
    let greatest = emit.builder.reduce_axes(Reduction::Max, scores, &[1])?;
    let shifted = emit.builder.sub(scores, greatest)?;
    let powers = emit.builder.function(Function::Exp, shifted)?;
    let distance = emit.builder.function(Function::Abs, scores)?;
    let (limit, zero) = (emit.number(NEAR_ZERO)?, emit.number(0.0)?);
    let counts = emit.builder.compare(Comparison::Greater, distance, limit)?;
    let counted = emit.builder.select(counts, powers, zero)?;
    let sum = emit.builder.reduce_axes(Reduction::Sum, counted, &[1])?;
    let lowered = emit.builder.scale(greatest, -1.0)?;
    let lowered = emit.builder.function(Function::Exp, lowered)?;
    let scaled = emit.builder.mul(scores, lowered)?;
    let all = emit.builder.select(counts, powers, scaled)?;
    emit.builder.div(all, sum)
}

/// The labels of classes.
pub(super) enum Labels {
    Integers(Vec<i64>),
    /// How many texts.
    Texts(usize),
}

impl Labels {
    /// From the attributes of these names.
    pub fn read(call: &Call<'_>, integers: &'static str, texts: &'static str) -> Result<Self> {
        let (integers, texts) = (
            call.attributes.ints(integers)?,
            call.attributes.strings(texts)?,
        );
        match (integers, texts) {
            (Some(integers), _) if !integers.is_empty() => Ok(Self::Integers(integers)),
            (_, Some(texts)) if !texts.is_empty() => Ok(Self::Texts(texts.len())),
            _ => Err(Error::data("there are no labels of classes")),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Integers(labels) => labels.len(),
            Self::Texts(count) => *count,
        }
    }

    /// The labels of classes by number, [rows] i32. Texts become a value that nothing can read.
    pub fn of(&self, emit: &mut Emit<'_>, classes: Node, rows: usize) -> Result<Value> {
        match self {
            Self::Texts(_) => Ok(Value::refused(
                vec![rows],
                "its labels of classes are texts; choose the output of the scores",
            )),
            Self::Integers(labels) => {
                let table: Value = Array::int64s(labels).reshaped(&[labels.len(), 1]).into();
                let table = emit.node(&table)?;
                let found = emit.builder.gather(table, classes)?;
                emit.shaped(found, ElementType::I64, &[rows])
            }
        }
    }

    /// The label of the greatest score of each row [rows, classes]; the first of equal ones.
    pub fn of_greatest(&self, emit: &mut Emit<'_>, scores: Node, rows: usize) -> Result<Value> {
        let best = emit.builder.top_k(scores, 1)?;
        let best = emit.builder.reshape(best, [rows])?;
        self.of(emit, best, rows)
    }

    /// The second label where a score [rows, 1] is greater than a limit, else the first.
    pub fn of_binary(
        &self,
        emit: &mut Emit<'_>,
        score: Node,
        limit: f32,
        rows: usize,
    ) -> Result<Value> {
        let limit = emit.number(limit)?;
        let class = emit.builder.compare(Comparison::Greater, score, limit)?;
        let class = emit.builder.reshape(class, [rows])?;
        self.of(emit, class, rows)
    }
}

/// Two scores of one: the given one, and 1 minus it, or minus it.
pub(super) fn two_of_one(emit: &mut Emit<'_>, score: Node, sum: f32) -> Result<Node> {
    let other = emit.builder.scale(score, -1.0)?;
    let other = emit.with(BinaryOp::Add, other, sum)?;
    emit.builder.concat(&[other, score], 1)
}

impl Value {
    /// A value that no operator can read, with the reason.
    pub fn refused(dims: Vec<usize>, reason: &'static str) -> Self {
        Self {
            element: ElementType::I64,
            dims,
            source: Source::Refused(reason),
            codes: None,
            convolution: None,
        }
    }
}
