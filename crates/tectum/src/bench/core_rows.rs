//! The rows of the core suite: one or more for every kernel.

use super::{Roofline, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::Activation;
use crate::kernel::elementwise::{Arity, OPS};
use crate::plan::{GemmTail, Matrix, PlanBuilder, View};

const F: DType = DType::F32;
const U: DType = DType::U32;

fn memory(
    name: &'static str,
    shape: String,
    bytes: usize,
    operands: Vec<(DType, usize)>,
    record: impl Fn(&mut PlanBuilder, &[View]) -> Result<()> + 'static,
) -> Work {
    Work { name, shape, roofline: Roofline::Copy, amount: bytes as f64, operands, record: Box::new(record) }
}

/// Every row; a software device gets a sixteenth of the elements.
pub(super) fn rows(software: bool) -> Vec<Work> {
    let n = if software { 1 << 20 } else { 16 << 20 };
    let mut rows = elementwise(n);
    rows.extend(reductions(n));
    rows.extend(selections(n));
    rows.extend(products(if software { 512 } else { 1024 }));
    rows.extend(random(n));
    rows.extend(normalizations(n));
    rows
}

fn elementwise(n: usize) -> Vec<Work> {
    let mut rows = vec![
        memory("fill", format!("n{n}"), 4 * n, vec![(U, n)], |plan, v| plan.fill(v[0], 7)),
        memory("copy", format!("n{n}"), 8 * n, vec![(U, n), (U, n)], |plan, v| plan.copy(v[0], v[1])),
    ];
    rows.extend(OPS.iter().map(|op| match op.arity {
        Arity::Unary => memory(op.name, format!("n{n}"), 8 * n, vec![(F, n), (F, n)], |plan, v| plan.unary(op.name, v[0], v[1])),
        Arity::Binary => {
            memory(op.name, format!("n{n}"), 12 * n, vec![(F, n); 3], |plan, v| plan.binary(op.name, v[0], v[1], v[2]))
        }
    }));
    rows
}

fn reductions(n: usize) -> Vec<Work> {
    let (rows, cols) = (n / 1024, 1024);
    vec![
        memory("sum", format!("1x{n}"), 4 * n, vec![(F, n), (F, 1)], move |plan, v| plan.sum(v[0], v[1], 1, n)),
        memory("sum_columns", format!("{rows}x{cols}"), 4 * n, vec![(F, n), (F, cols)], move |plan, v| plan.sum_columns(v[0], v[1], rows, cols)),
        memory("max", format!("1x{n}"), 4 * n, vec![(F, n), (F, 1)], move |plan, v| plan.max(v[0], v[1], 1, n)),
        memory("argmax", format!("1x{n}"), 4 * n, vec![(F, n), (U, 1)], move |plan, v| plan.argmax(v[0], v[1], 1, n)),
        memory("softmax", format!("{rows}x{cols}"), 8 * n, vec![(F, n), (F, n)], move |plan, v| plan.softmax(v[0], v[1], rows, cols, 1.0)),
    ]
}

fn selections(n: usize) -> Vec<Work> {
    vec![
        memory("exclusive_scan", format!("n{n}"), 8 * n, vec![(U, n), (U, n), (U, 1)], |plan, v| plan.exclusive_scan(v[0], v[1], v[2])),
        memory("compact", format!("n{n}"), 8 * n, vec![(U, n), (U, n), (U, 1)], |plan, v| plan.compact(v[0], v[1], v[2])),
        memory("top_k", format!("1x{n}.k64"), 4 * n, vec![(F, n), (F, 64), (U, 64)], |plan, v| plan.top_k(v[0], v[1], v[2], 1, 64)),
    ]
}

fn products(side: usize) -> Vec<Work> {
    let tails = [(false, false), (true, false), (false, true), (true, true)];
    let tail = |(bias, residual): (bool, bool), v: &[View]| GemmTail {
        bias: bias.then_some(v[3]),
        activation: if bias { Activation::Tanh } else { Activation::None },
        residual: residual.then_some(v[4]),
    };
    let suffix = |(bias, residual): (bool, bool)| match (bias, residual) {
        (false, false) => "",
        (true, false) => ".bias_tanh",
        (false, true) => ".residual",
        (true, true) => ".bias_tanh_residual",
    };
    let area = side * side;
    let gemm = tails.map(|kind| Work {
        name: "gemm",
        shape: format!("{side}x{side}x{side}{}", suffix(kind)),
        roofline: Roofline::Gemm,
        amount: 2.0 * (side as f64).powi(3),
        operands: vec![(F, area), (F, area), (F, area), (F, side), (F, area)],
        record: Box::new(move |plan, v| {
            plan.gemm(Matrix::new(v[0], side, side), Matrix::new(v[1], side, side), v[2], tail(kind, v))
        }),
    });
    let long = 4 * side;
    let operands = vec![(F, long * long), (F, long), (F, long), (F, long), (F, long)];
    let matvec = tails.map(|kind| {
        let shape = format!("{long}x{long}{}", suffix(kind));
        memory("matvec", shape, 4 * long * long, operands.clone(), move |plan, v| plan.matvec(v[0], v[1], v[2], tail(kind, v)))
    });
    gemm.into_iter().chain(matvec).collect()
}

fn random(n: usize) -> Vec<Work> {
    vec![
        memory("random_bits", format!("n{n}"), 4 * n, vec![(U, 4), (U, n)], |plan, v| plan.random_bits(v[0], v[1])),
        memory("uniform", format!("n{n}"), 4 * n, vec![(U, 4), (F, n)], |plan, v| plan.uniform(v[0], v[1])),
        memory("normal", format!("n{n}"), 4 * n, vec![(U, 4), (F, n)], |plan, v| plan.normal(v[0], v[1])),
        memory("adamw", format!("n{}", n / 4), 7 * n, vec![(F, 4), (F, n / 4), (F, n / 4), (F, n / 4), (F, n / 4)], |plan, v| {
            plan.adamw(v[0], v[1], [v[2], v[3], v[4]], 0.9, 0.999)
        }),
    ]
}

fn normalizations(n: usize) -> Vec<Work> {
    let (rows, cols) = (n / 1024, 1024);
    let shape = format!("{rows}x{cols}");
    let vectors = vec![(F, n), (F, rows), (F, rows)];
    vec![
        memory("min", format!("1x{n}"), 4 * n, vec![(F, n), (F, 1)], move |plan, v| plan.min(v[0], v[1], 1, n)),
        memory("mean", format!("1x{n}"), 4 * n, vec![(F, n), (F, 1)], move |plan, v| plan.mean(v[0], v[1], 1, n)),
        memory("variance", shape.clone(), 4 * n, vectors, move |plan, v| plan.variance(v[0], v[1], v[2], rows, cols, 0)),
        memory("variance", format!("1x{n}"), 4 * n, vec![(F, n), (F, 1), (F, 1)], move |plan, v| {
            plan.variance(v[0], v[1], v[2], 1, n, 1)
        }),
        memory("layer_norm", shape.clone(), 8 * n, vec![(F, n), (F, cols), (F, cols), (F, n)], move |plan, v| {
            plan.layer_norm(v[0], [v[1], v[2]], v[3], 1e-5)
        }),
        memory("rms_norm", shape, 8 * n, vec![(F, n), (F, cols), (F, n)], move |plan, v| plan.rms_norm(v[0], v[1], v[2], 1e-5)),
    ]
}
