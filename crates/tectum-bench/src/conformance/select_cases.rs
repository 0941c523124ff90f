//! Cases of scan, compaction and top-k: exact.

use super::{Case, Data, Output, Seed, Suite};

const LARGE: usize = 2_100_000;

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("exclusive_scan", |seed: &mut Seed| {
            sizes(seed).into_iter().map(|n| scan(seed, n)).collect()
        }),
        Suite::new("compact", |seed: &mut Seed| {
            sizes(seed).into_iter().map(|n| compact(seed, n)).collect()
        }),
        Suite::new("top_k", top_k_cases),
    ]
}

/// Beyond 1,024² elements the scan has three levels.
fn sizes(seed: &mut Seed) -> Vec<usize> {
    let mut sizes = seed.sizes(200_000);
    // Several blocks, and small enough for an interpreter.
    sizes.extend([2500, LARGE]);
    sizes
}

fn scan(seed: &mut Seed, n: usize) -> Case {
    let x: Vec<u32> = (0..n).map(|_| seed.word()).collect();
    let mut total = 0u32;
    let mut before = |x: &u32| {
        let offset = total;
        total = total.wrapping_add(*x);
        offset
    };
    let expected: Vec<u32> = x.iter().map(&mut before).collect();
    let outputs = vec![
        Output::Exact(Data::U32(expected)),
        Output::Exact(Data::U32(vec![total])),
    ];
    Case::new(format!("{n}"), vec![Data::U32(x)], outputs, |plan, x, y| {
        plan.exclusive_scan(x[0], y[0], y[1])
    })
}

fn compact(seed: &mut Seed, n: usize) -> Case {
    let flags: Vec<u32> = (0..n)
        .map(|_| {
            if seed.word().is_multiple_of(3) {
                seed.word() | 1
            } else {
                0
            }
        })
        .collect();
    let kept: Vec<u32> = (0..n as u32).filter(|&i| flags[i as usize] != 0).collect();
    let count = kept.len() as u32;
    let outputs = vec![
        Output::ExactPrefix(kept, n),
        Output::Exact(Data::U32(vec![count])),
    ];
    Case::new(
        format!("{n}"),
        vec![Data::U32(flags)],
        outputs,
        |plan, x, y| plan.compact(x[0], y[0], y[1]),
    )
}

fn top_k_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [
        (0, 5, 2),
        (1, 1, 1),
        (1, 7, 7),
        (3, 1024, 1),
        (2, 1025, 5),
        (4, 3000, 512),
        (1, 200_003, 100),
        (300, 64, 8),
        (1, 5000, 512),
    ];
    let mut cases: Vec<Case> = shapes
        .into_iter()
        .map(|(rows, cols, k)| {
            // Few distinct values, so that ties are many.
            let x = (0..rows * cols)
                .map(|_| (seed.word() % 2000) as f32 - 1000.0)
                .collect();
            top_k(x, rows, cols, k)
        })
        .collect();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    cases.push(top_k(
        vec![1.0, nan, -inf, inf, -0.0, 0.0, nan, -inf],
        1,
        8,
        8,
    ));
    cases.push(top_k(vec![-inf; 1500], 1, 1500, 4));
    cases
}

fn top_k(x: Vec<f32>, rows: usize, cols: usize, k: usize) -> Case {
    let (mut values, mut columns) = (Vec::new(), Vec::new());
    for row in x.chunks(cols) {
        let mut order: Vec<u32> = (0..cols as u32).collect();
        // A stable sort by value, greatest first, NaN before all: ties keep their columns' order.
        let rank = |&column: &u32| {
            let value = row[column as usize];
            if value.is_nan() {
                (0, 0.0)
            } else {
                (1, -f64::from(value))
            }
        };
        order.sort_by(|a, b| {
            rank(a)
                .partial_cmp(&rank(b))
                .expect("invariant: ranks hold no NaN")
        });
        order.truncate(k);
        values.extend(order.iter().map(|&column| row[column as usize]));
        columns.extend(order);
    }
    let outputs = vec![
        Output::Exact(Data::F32(values)),
        Output::Exact(Data::U32(columns)),
    ];
    Case::new(
        format!("{rows}×{cols} k {k}"),
        vec![Data::F32(x)],
        outputs,
        move |plan, x, y| plan.top_k(x[0], y[0], y[1], rows, k),
    )
}
