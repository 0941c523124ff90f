//! Cases of the matrix products and their epilogues.

use super::{Case, Data, Expected, Output, Seed, Suite};
use crate::kernel::Activation;
use crate::kernel::gemm_panels::{pack_panels, panels_len};
use crate::plan::{GemmTail, Matrix};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    vec![Suite::new("gemm", gemm_cases), Suite::new("matvec", matvec_cases), Suite::new("gemm_panels", panel_cases)]
}

#[derive(Clone, Copy)]
struct Variant {
    bias: bool,
    residual: bool,
    activation: Activation,
    a_transposed: bool,
    b_transposed: bool,
}

impl Variant {
    /// Steps through every epilogue, activation and layout as cases go by.
    fn of(index: usize) -> Self {
        Self {
            bias: index & 1 != 0,
            residual: index & 2 != 0,
            activation: Activation::ALL[index % 7],
            a_transposed: index % 3 == 1,
            b_transposed: index % 5 > 2,
        }
    }
}

/// Σ a·b in float64 with the magnitude that bounds its error.
fn dot(k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> (f64, f64) {
    let terms = (0..k).map(|i| f64::from(a(i)) * f64::from(b(i)));
    terms.fold((0.0, 0.0), |(sum, magnitude), term| (sum + term, magnitude + term.abs()))
}

/// A random walk of k roundings, five sigma wide, then bias, activation (slope at most 1.13, 8 ulp) and residual.
fn expected(variant: Variant, k: usize, (sum, magnitude): (f64, f64), bias: f32, residual: f32) -> Expected {
    let (bias, residual) = (f64::from(bias), f64::from(residual));
    let before = sum + if variant.bias { bias } else { 0.0 };
    let after = variant.activation.reference(before);
    let value = after + if variant.residual { residual } else { 0.0 };
    let product_error = ROUNDING * (5.0 * (k as f64).sqrt() + 4.0) * (magnitude + bias.abs());
    Expected { value, bound: 1.2 * product_error + ROUNDING * (16.0 * after.abs() + 2.0 * value.abs()) }
}

fn gemm_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        (0, 5, 3), (5, 0, 3), (1, 1, 1), (3, 5, 7), (64, 64, 64), (65, 63, 17), (1, 300, 64), (300, 1, 5), (128, 96, 256),
        (257, 130, 33), (256, 64, 7), (256, 4, 64), (63, 200, 1000), (512, 65, 16),
    ];
    shapes.extend((0..16).map(|_| (seed.size(1, 150), seed.size(1, 150), seed.size(1, 150))));
    shapes.into_iter().enumerate().map(|(index, shape)| gemm(seed, shape, Variant::of(index))).collect()
}

fn gemm(seed: &mut Seed, (m, n, k): (usize, usize, usize), variant: Variant) -> Case {
    let [a, b, bias, residual] = [m * k, k * n, n, m * n].map(|len| seed.floats(len, -1.0, 1.0));
    let (a_strides, b_strides) = (strides(m, k, variant.a_transposed), strides(k, n, variant.b_transposed));
    let mut values = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let product = dot(k, |i| a[row * a_strides.0 + i * a_strides.1], |i| b[i * b_strides.0 + col * b_strides.1]);
            values.push(expected(variant, k, product, bias[col], residual[row * n + col]));
        }
    }
    let shape = format!("{m}×{k}×{n} {}", describe(variant));
    let inputs = vec![Data::F32(a), Data::F32(b), Data::F32(bias), Data::F32(residual)];
    Case::new(shape, inputs, vec![Output::Near(values)], move |plan, x, y| {
        let matrix = |view, rows, cols, transposed| if transposed { Matrix::new(view, cols, rows).transpose() } else { Matrix::new(view, rows, cols) };
        let tail = GemmTail { bias: variant.bias.then_some(x[2]), activation: variant.activation, residual: variant.residual.then_some(x[3]) };
        plan.gemm(matrix(x[0], m, k, variant.a_transposed), matrix(x[1], k, n, variant.b_transposed), y[0], tail)
    })
}

/// Few rows and many, one panel and many, panels that are not whole, and k beyond a slice.
fn panel_cases(seed: &mut Seed) -> Vec<Case> {
    // The small ones come first, with every epilogue: they are what an interpreter has time for.
    let mut shapes = vec![
        (0, 5, 3), (1, 1, 1), (3, 5, 7), (5, 17, 9), (2, 33, 4), (64, 64, 64), (65, 63, 17), (1, 300, 64), (300, 1, 5), (13, 500, 1000), (257, 130, 33),
        (8, 1152, 384), (130, 384, 800), (600, 40, 390), (7, 16, 3000),
    ];
    shapes.extend((0..16).map(|_| (seed.size(1, 150), seed.size(1, 150), seed.size(1, 150))));
    shapes.into_iter().enumerate().map(|(index, shape)| panels(seed, shape, Variant::of(index))).collect()
}

fn panels(seed: &mut Seed, (m, n, k): (usize, usize, usize), variant: Variant) -> Case {
    let [a, b, bias, residual] = [m * k, k * n, n, m * n].map(|len| seed.floats(len, -1.0, 1.0));
    let (row, col) = strides(k, n, variant.b_transposed);
    let mut values = Vec::with_capacity(m * n);
    for at in 0..m * n {
        let product = dot(k, |i| a[at / n * k + i], |i| b[i * row + at % n * col]);
        values.push(expected(variant, k, product, bias[at % n], residual[at]));
    }
    let mut packed = vec![f32::NAN; panels_len(k, n)];
    pack_panels(&b, [k, n], [row, col], &mut packed);
    let inputs = vec![Data::F32(a), Data::F32(packed), Data::F32(bias), Data::F32(residual)];
    Case::new(format!("{m}×{k}×{n} {}", describe(variant)), inputs, vec![Output::Near(values)], move |plan, x, y| {
        let tail = GemmTail { bias: variant.bias.then_some(x[2]), activation: variant.activation, residual: variant.residual.then_some(x[3]) };
        plan.gemm_panels(x[0], x[1], y[0], [m, k, n], tail)
    })
}

fn strides(rows: usize, cols: usize, transposed: bool) -> (usize, usize) {
    if transposed { (1, rows) } else { (cols, 1) }
}

fn describe(variant: Variant) -> String {
    let Variant { bias, residual, activation, a_transposed, b_transposed } = variant;
    format!("{activation:?} bias {bias} residual {residual} transposed {a_transposed} {b_transposed}")
}

fn matvec_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![(0, 5), (1, 1), (1, 1000), (1000, 1), (16, 256), (33, 4097), (3000, 65)];
    shapes.extend((0..8).map(|_| (seed.size(1, 300), seed.size(1, 3000))));
    shapes.into_iter().enumerate().map(|(index, shape)| matvec(seed, shape, Variant::of(index))).collect()
}

fn matvec(seed: &mut Seed, (m, k): (usize, usize), variant: Variant) -> Case {
    let [a, x, bias, residual] = [m * k, k, m, m].map(|len| seed.floats(len, -1.0, 1.0));
    let value = |row: usize| expected(variant, k, dot(k, |i| a[row * k + i], |i| x[i]), bias[row], residual[row]);
    let values = (0..m).map(value).collect();
    let shape = format!("{m}×{k} {}", describe(variant));
    let inputs = vec![Data::F32(a), Data::F32(x), Data::F32(bias), Data::F32(residual)];
    Case::new(shape, inputs, vec![Output::Near(values)], move |plan, x, y| {
        let tail = GemmTail { bias: variant.bias.then_some(x[2]), activation: variant.activation, residual: variant.residual.then_some(x[3]) };
        plan.matvec(x[0], x[1], y[0], tail)
    })
}
