//! The programs under `programs/`: one table of cases, for the reference interpreter here and for
//! devices in the lowering tests.

use super::{bytes_of, values_of};
use crate::{Checked, LaunchConfig, Outcome, Program};

/// One launch of a program of the library; its result is the last buffer.
pub struct Job {
    pub program: Checked,
    pub launch: LaunchConfig,
    pub buffers: Vec<Vec<u8>>,
    /// In f64.
    expected: Vec<f64>,
    /// Tolerance of results, relative to the greater of 1 and the expected value.
    tolerance: f64,
}

/// A program of the library over n elements.
pub type Case = (&'static str, Box<dyn Fn(u32) -> Job>);

impl Job {
    /// The first result that is not as expected.
    pub fn fault(&self, result: &[u8]) -> Option<String> {
        let found: Vec<f32> = values_of(result);
        if found.len() != self.expected.len() {
            return Some(format!(
                "{} results where {} are expected",
                found.len(),
                self.expected.len()
            ));
        }
        let is_near = |y: f64, expected: f64| {
            (y - expected).abs() <= self.tolerance * expected.abs().max(1.0)
        };
        let mut pairs = found
            .iter()
            .map(|y| f64::from(*y))
            .zip(&self.expected)
            .enumerate();
        let differs = |y: f64, expected: f64| {
            !(y == expected || (y.is_nan() && expected.is_nan()) || is_near(y, expected))
        };
        pairs
            .find(|(_, (y, expected))| differs(*y, **expected))
            .map(|(index, (y, expected))| format!("element {index} is {y}, expected {expected}"))
    }
}

fn library(name: &str) -> Checked {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/").to_owned() + name + ".atlas";
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let program = Program::parse(&text)
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(program.program().name(), name);
    program
}

fn values(n: u32, scale: f32) -> Vec<f32> {
    (0..n)
        .map(|i| (((u64::from(i) * 37) % 101) as f32 - 50.0) * scale + 0.25)
        .collect()
}

fn wide(values: &[f32]) -> impl Iterator<Item = f64> + '_ {
    values.iter().map(|value| f64::from(*value))
}

/// Blocks of 256 lanes, and whole numbers as a buffer.
fn lanes(n: u32) -> LaunchConfig {
    LaunchConfig::linear(n, 256)
}

fn blocks(count: u32) -> LaunchConfig {
    LaunchConfig {
        grid: [count, 1, 1],
        block: [256, 1, 1],
        ..LaunchConfig::default()
    }
}

fn binary(name: &'static str, tolerance: f64, expected: fn(f64, f64) -> f64) -> Case {
    let case = move |n| {
        let (a, b) = (values(n, 0.07), values(n, -0.03));
        let expected = wide(&a)
            .zip(wide(&b))
            .map(|(a, b)| f64::from(expected(a, b) as f32))
            .collect();
        Job {
            program: library(name),
            launch: lanes(n),
            buffers: vec![bytes_of(&a), bytes_of(&b), vec![0; 4 * a.len()]],
            expected,
            tolerance,
        }
    };
    (name, Box::new(case))
}

/// Cases with one array and the given scalars.
fn unary(
    name: &'static str,
    scalars: &'static [f32],
    tolerance: f64,
    expected: fn(f64) -> f64,
) -> Case {
    let case = move |n| {
        let x = values(n, 0.07);
        let expected = wide(&x).map(|x| f64::from(expected(x) as f32)).collect();
        let scalars = (!scalars.is_empty()).then(|| bytes_of(scalars));
        let buffers = [Some(bytes_of(&x)), scalars, Some(vec![0; 4 * x.len()])]
            .into_iter()
            .flatten()
            .collect();
        Job {
            program: library(name),
            launch: lanes(n),
            buffers,
            expected,
            tolerance,
        }
    };
    (name, Box::new(case))
}

fn reduction(name: &'static str, tolerance: f64, expected: fn(&[f32]) -> f64) -> Case {
    let case = move |n| {
        let x = values(n, 0.25);
        let buffers = vec![bytes_of(&x), bytes_of(&[u64::from(n)]), vec![0; 4]];
        Job {
            program: library(name),
            launch: blocks(1),
            buffers,
            expected: vec![expected(&x)],
            tolerance,
        }
    };
    (name, Box::new(case))
}

/// A mean over pairs of a probability and a target, both including zeros and ones.
fn loss(name: &'static str, term: fn(f64, f64) -> f64) -> Case {
    let case = move |n| {
        let p: Vec<f32> = (0..u64::from(n))
            .map(|i| {
                if i % 50 == 7 {
                    1.0
                } else {
                    ((i * 37 % 101) as f32 + 0.5) / 102.0
                }
            })
            .collect();
        let t: Vec<f32> = (0..u64::from(n))
            .map(|i| [0.0, 1.0, 0.375][i as usize % 3])
            .collect();
        let sum: f64 = wide(&p).zip(wide(&t)).map(|(p, t)| term(p, t)).sum();
        let buffers = vec![
            bytes_of(&p),
            bytes_of(&t),
            bytes_of(&[u64::from(n)]),
            vec![0; 4],
        ];
        Job {
            program: library(name),
            launch: blocks(1),
            buffers,
            expected: vec![sum / f64::from(n)],
            tolerance: 1e-5,
        }
    };
    (name, Box::new(case))
}

/// Rows of n elements.
fn softmax(n: u32) -> Job {
    let rows = if n > 3 { 2 } else { 5 };
    let x = values(rows * n, 0.07);
    let mut expected = Vec::with_capacity(x.len());
    for row in x.chunks(n.max(1) as usize) {
        let most = wide(row).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = wide(row).map(|x| (x - most).exp()).sum();
        expected.extend(wide(row).map(|x| (x - most).exp() / sum));
    }
    let buffers = vec![
        bytes_of(&x),
        bytes_of(&[u64::from(n)]),
        vec![0; 4 * x.len()],
    ];
    // Exponentials of 4 units in the last place, summed in another order.
    Job {
        program: library("softmax"),
        launch: blocks(rows),
        buffers,
        expected,
        tolerance: 2e-6,
    }
}

/// n results of rows of 7.
fn matvec(n: u32) -> Job {
    const K: u32 = 7;
    let (a, x) = (values(n * K, 0.25), values(K, 0.5));
    let expected = a
        .chunks(K as usize)
        .map(|row| wide(row).zip(wide(&x)).map(|(a, x)| a * x).sum())
        .collect();
    let buffers = vec![
        bytes_of(&a),
        bytes_of(&x),
        bytes_of(&[u64::from(n), u64::from(K)]),
        vec![0; 4 * n as usize],
    ];
    Job {
        program: library("matvec"),
        launch: lanes(n),
        buffers,
        expected,
        tolerance: 1e-6,
    }
}

/// n results in a number of rows that divides n.
fn gemm(n: u32) -> Job {
    const K: u32 = 5;
    let m = [256, 29, 7, 3, 1]
        .into_iter()
        .find(|rows| n.is_multiple_of(*rows))
        .unwrap_or(1);
    let columns = n / m;
    let (a, b) = (values(m * K, 0.25), values(K * columns, 0.5));
    let at = |i: u32| {
        let (row, column) = (i / columns, i % columns);
        (0..K)
            .map(|k| {
                f64::from(a[(row * K + k) as usize]) * f64::from(b[(k * columns + column) as usize])
            })
            .sum()
    };
    let expected = (0..n).map(at).collect();
    let buffers = vec![
        bytes_of(&a),
        bytes_of(&b),
        bytes_of(&[u64::from(m), u64::from(K), u64::from(columns)]),
        vec![0; 4 * n as usize],
    ];
    Job {
        program: library("gemm"),
        launch: lanes(n),
        buffers,
        expected,
        tolerance: 1e-6,
    }
}

fn fill(n: u32) -> Job {
    let buffers = vec![bytes_of(&[7.5f32]), vec![0; 4 * n as usize]];
    Job {
        program: library("fill"),
        launch: lanes(n),
        buffers,
        expected: vec![7.5; n as usize],
        tolerance: 0.0,
    }
}

/// Every program of the library.
pub fn cases() -> Vec<Case> {
    vec![
        binary("vector_add", 0.0, |a, b| a + b),
        binary("vector_sub", 0.0, |a, b| a - b),
        binary("vector_mul", 0.0, |a, b| a * b),
        binary("vector_div", 4e-7, |a, b| a / b),
        binary("vector_min", 0.0, f64::min),
        binary("vector_max", 0.0, f64::max),
        unary("abs", &[], 0.0, f64::abs),
        unary("neg", &[], 0.0, |x| -x),
        unary("relu", &[], 0.0, |x| x.max(0.0)),
        unary("copy", &[], 0.0, |x| x),
        unary("sigmoid", &[], 1e-6, |x| 1.0 / (1.0 + (-x).exp())),
        unary("tanh", &[], 1e-6, f64::tanh),
        unary("gelu", &[], 1e-6, |x| {
            0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())
        }),
        unary("clip", &[-1.0, 2.0], 0.0, |x| x.clamp(-1.0, 2.0)),
        unary("scalar_add", &[2.0], 0.0, |x| x + 2.0),
        unary("scalar_sub", &[2.0], 0.0, |x| x - 2.0),
        unary("scalar_mul", &[2.5], 0.0, |x| x * 2.5),
        unary("scalar_div", &[3.0], 4e-7, |x| x / 3.0),
        ("fill", Box::new(fill)),
        reduction("reduce_sum", 1e-5, |x| wide(x).sum()),
        reduction("reduce_min", 0.0, |x| wide(x).fold(f64::INFINITY, f64::min)),
        reduction("reduce_max", 0.0, |x| {
            wide(x).fold(f64::NEG_INFINITY, f64::max)
        }),
        loss("mse", |p, t| (p - t) * (p - t)),
        loss(
            "cross_entropy",
            |p, t| if t == 0.0 { 0.0 } else { -t * p.ln() },
        ),
        loss("bce", |p, t| {
            -t * p.ln().max(-100.0) - (1.0 - t) * (1.0 - p).ln().max(-100.0)
        }),
        ("softmax", Box::new(softmax)),
        ("matvec", Box::new(matvec)),
        ("gemm", Box::new(gemm)),
    ]
}

#[test]
fn the_reference_is_right_at_every_size() {
    for (name, case) in cases() {
        for n in [0, 1, 3, 1_024, 3_073] {
            let mut job = case(n);
            let outcome = job
                .program
                .evaluate(&job.launch, &mut job.buffers, 100_000_000)
                .unwrap_or_else(|error| panic!("{name}, n = {n}: {error}"));
            assert_eq!(outcome, Outcome::Finished, "{name}, n = {n}");
            let fault = job.fault(job.buffers.last().expect("the result is the last buffer"));
            assert!(
                fault.is_none(),
                "{name}, n = {n}: {}",
                fault.unwrap_or_default()
            );
        }
    }
}

#[test]
fn every_program_of_the_library_has_a_case() {
    let folder =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/programs")).expect("there");
    let mut files: Vec<String> = folder
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("plain")
        })
        .collect();
    files.sort();
    let mut named: Vec<String> = cases()
        .iter()
        .map(|(name, _)| format!("{name}.atlas"))
        .collect();
    named.sort();
    assert_eq!(files, named);
}
