//! The programs under `programs/`, by the reference interpreter.

use super::{bytes_of, values_of};
use crate::program::{LaunchConfig, Outcome, Program};

const SIZES: [u32; 5] = [0, 1, 3, 1_024, 3_073];

/// Runs a program of the library.
fn run(name: &str, launch: LaunchConfig, mut buffers: Vec<Vec<u8>>) -> Vec<f32> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/").to_owned() + name + ".atlas";
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let program = Program::parse(&text).and_then(|program| program.check()).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(program.program().name(), name);
    let outcome = program.evaluate(&launch, &mut buffers, 100_000_000).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome, Outcome::Finished, "{name}");
    values_of(buffers.last().expect("the result is the last buffer"))
}

fn values(n: u32, scale: f32) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) * scale + 0.25).collect()
}

#[test]
fn elementwise_programs_are_right_at_every_size() {
    type Two = fn(f32, f32) -> f32;
    type One = fn(f64) -> f64;
    const BINARY: &[(&str, Two)] = &[
        ("vector_add", |a, b| a + b),
        ("vector_sub", |a, b| a - b),
        ("vector_mul", |a, b| a * b),
        ("vector_div", |a, b| a / b),
        ("vector_min", f32::min),
        ("vector_max", f32::max),
    ];
    const UNARY: &[(&str, One)] = &[
        ("abs", f64::abs),
        ("neg", |x| -x),
        ("relu", |x| x.max(0.0)),
        ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("tanh", f64::tanh),
        ("gelu", |x| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())),
        ("copy", |x| x),
    ];
    for n in SIZES {
        let (a, b, empty) = (values(n, 0.07), values(n, -0.03), vec![0; 4 * n as usize]);
        let launch = LaunchConfig::linear(n, 256);
        for (name, expected) in BINARY {
            let found = run(name, launch, vec![bytes_of(&a), bytes_of(&b), empty.clone()]);
            assert!(found.iter().zip(a.iter().zip(&b)).all(|(y, (a, b))| *y == expected(*a, *b)), "{name} n = {n}");
        }
        for (name, expected) in UNARY {
            let found = run(name, launch, vec![bytes_of(&a), empty.clone()]);
            assert!(found.iter().zip(&a).all(|(y, a)| (f64::from(*y) - expected(f64::from(*a))).abs() <= 1e-6), "{name} n = {n}");
        }
        let found = run("clip", launch, vec![bytes_of(&a), bytes_of(&[-1.0f32, 2.0]), empty.clone()]);
        assert!(found.iter().zip(&a).all(|(y, a)| *y == a.clamp(-1.0, 2.0)));
        assert!(run("scalar_add", launch, vec![bytes_of(&a), bytes_of(&[2.0f32]), empty.clone()]).iter().zip(&a).all(|(y, a)| *y == a + 2.0));
        assert!(run("scalar_mul", launch, vec![bytes_of(&a), bytes_of(&[2.0f32]), empty.clone()]).iter().zip(&a).all(|(y, a)| *y == a * 2.0));
        assert_eq!(run("fill", launch, vec![bytes_of(&[7.5f32]), empty]), vec![7.5; n as usize]);
    }
}

/// Values are multiples of 1/4, so every order of additions gives the same sum.
#[test]
fn reductions_and_matvec_are_right_at_every_size() {
    let one_block = LaunchConfig { block: [256, 1, 1], ..LaunchConfig::default() };
    for n in SIZES {
        let x = values(n, 0.25);
        let reduce = |name| run(name, one_block, vec![bytes_of(&x), bytes_of(&[u64::from(n)]), vec![0; 4]])[0];
        assert_eq!(reduce("reduce_sum"), x.iter().sum::<f32>(), "n = {n}");
        assert_eq!(reduce("reduce_min"), x.iter().copied().fold(f32::INFINITY, f32::min), "n = {n}");
        assert_eq!(reduce("reduce_max"), x.iter().copied().fold(f32::NEG_INFINITY, f32::max), "n = {n}");
    }
    for (m, k) in [(0, 3), (1, 1), (5, 7), (33, 64)] {
        let (a, x) = (values(m * k, 0.25), values(k, 0.5));
        let found = run("matvec", LaunchConfig::linear(m, 32), vec![bytes_of(&a), bytes_of(&x), bytes_of(&[u64::from(m), u64::from(k)]), vec![0; 4 * m as usize]]);
        let expected: Vec<f32> = a.chunks(k as usize).map(|row| row.iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
        assert_eq!(found, expected, "{m} by {k}");
    }
}
